"""audit(): attack a release with every adversary and measure what it keeps."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from ..joint import Joint
from ..mechanism import TableMechanism
from ..order import warn_of_order
from .adversaries.clustering import import_umap
from .attack import Outcome
from .context import Context
from .figures import densities_of, samples_of
from .given import Given, Settings, read_input
from .kept import KeptColumn, as_kept, kept_findings
from .meta import describe_audit
from .plan import Plan
from .report import AuditReport
from .tables import exact_findings


def audit(
    mechanism: Any = None,
    X: Any = None,
    private: Any = None,
    *,
    Z: Any = None,
    X_hat: Any = None,
    joint: Joint | None = None,
    task: Any = None,
    keep: Any = None,
    adversaries: Sequence[Any] | None = None,
    many_draws: int = 0,
    n_repeats: int = 3,
    n_folds: int = 3,
    effort: str = "default",
    figures: bool = False,
    show_records: bool = False,
    confidence: float = 0.95,
    random_state: int | None = 0,
    n_jobs: int = -1,
    progress: bool | None = None,
    name: str | None = None,
    fingerprint_key: bytes | None = None,
) -> AuditReport:
    """What a release tells about a private attribute, and what it keeps of the records.

    >>> report = pf.audit(funnel, X_test, y_test)                        # doctest: +SKIP
    >>> report = pf.audit(Z=codes, private=y_test, X=X_test)             # doctest: +SKIP
    >>> report = pf.audit(solution.mechanism, joint)                     # doctest: +SKIP

    Adversaries with labels learn from the codes of other people: the records are split into folds, and each
    fold is attacked by adversaries trained on the others. Use records that the mechanism was not trained
    on: on its own, leakage looks smaller than it is.

    Parameters
    ----------
    mechanism : a fitted funnel, a TableMechanism, or anything with release(X, rng) or transform(X)
    X : (n, …) array of records, letters of a table mechanism, or a Joint
        With `Z` only needed for the comparison with raw records and for utility.
    private : column, mapping or frame of columns
        The private attributes, each audited by itself. Numbers that are not all whole are a numeric
        attribute: they get regressors, and are cut into eight classes for success and bits.
    Z, X_hat : arrays, optional
        Codes that were released elsewhere, and reconstructions.
    joint : Joint, optional
        A known joint: a table mechanism then gets exact numbers, with or without records.
    task : column, mapping or frame of columns, optional
        What the release should stay good for: predicted by boosted trees from X and from Z.
    keep : mapping or frame of columns, optional
        What is handed out beside the release, unchanged: success and bits from each column alone and together
        with Z, and from all of them with Z.
    adversaries : sequence, optional
        Instead of the default set: objects of the `Adversary` protocol, `ClusteringAdversary`, regressors.
    many_draws : int
        Codes of each record that an adversary who owns the encoder draws and averages; 0 leaves it out.
    n_repeats : int
        Draws of the codes and of the embedding behind clustering and reconstruction; their spread is part
        of the interval.
    n_folds : int
    effort : {"default", "quick", "thorough"}
        How hard the adversaries try: they learn from 20,000 records at most, from 5,000 (and only lines and
        trees), or from all. Where there are more records, they are tried on a sample, and the report says so.
    figures : bool
        Whether to draw where records lie: densities of embeddings of X and Z, in cells of ten records or
        more with rough shares of the classes. Needs umap-learn. Such a report is as private as the data.
    show_records : bool
        Whether to keep a few images and their reconstructions. Such a report is as private as the data.
    confidence : float
        Of all intervals.
    random_state : int, optional
        Decides everything; None takes one from the operating system and the report says which.
    n_jobs : int
        Processes; −1 for all cores. Does not change the report.
    progress : bool, optional
        Whether to show a progress bar; by default when a person watches, and a line a minute when not. The
        time that a long audit will take is said first, on stderr, unless this is False.
    name : str, optional
        What the report calls the release.
    fingerprint_key : 32 bytes, optional
        With it the report gets fingerprints of X, private and task that only who has the key can compute;
        see `privacyfunnel.fingerprints.owner_key`. Without it only what is released (Z) is fingerprinted.

    Returns
    -------
    AuditReport
    """
    begun = time.perf_counter()
    _refuse_swapped(mechanism, X)
    if isinstance(X, Joint):
        joint, X = X, None
    seed = int(np.random.default_rng().integers(2**31)) if random_state is None else int(random_state)
    settings = Settings(int(n_folds), int(n_repeats), int(many_draws), float(confidence), seed, effort)
    context = Context(settings.confidence, seed)
    exact, unnamed = [], "private"
    if figures:
        import_umap()  # what is missing is said before the work
    if joint is not None:
        if not isinstance(mechanism, TableMechanism):
            raise InvalidInputError(
                "audit: a joint gives exact numbers for a TableMechanism only; pass records X and private."
            )
        unnamed = ", ".join(joint.y_names)
        if keep is not None and X is None and Z is None:
            raise InvalidInputError(
                "audit: what kept columns tell is measured on records; pass X and private."
            )
        exact = exact_findings(mechanism, joint, confidence=settings.confidence, seed=seed)
        if X is None and Z is None:
            meta = describe_audit(mechanism, asdict(settings), name=name, begun=begun, joint=joint)
            return AuditReport(tuple(exact), (), meta)
    given = read_input(mechanism, X, private, Z, X_hat, task, unnamed, fingerprint_key)
    plan = Plan(context, settings, given, adversaries)
    kept = () if keep is None else as_kept(keep, given.n)
    _check_names(given, kept)
    for one in given.attributes:
        agreeing = int((one.y[1:] == one.y[:-1]).sum())
        warn_of_order(agreeing, np.bincount(one.y), one.name)
    outcome = plan.carry_out(n_jobs, progress)
    if kept:
        codes = given.draws(1, seed)[0]
        table = mechanism.p_z_given_x if given.release.letters is not None else None
        for one in given.attributes:
            outcome.findings += kept_findings(
                context, one, plan.whole[one.name].folds, kept, codes, given.release.letters, table
            )
    meta = describe_audit(
        mechanism,
        asdict(settings) | {"adversaries": plan.names},
        name=name,
        begun=begun,
        given=given,
        not_audited=plan.not_audited,
        n_jobs=n_jobs,
    )
    meta["kept"] = [one.name for one in kept]
    shown = _shown(given, outcome, figures, show_records)
    return AuditReport((*exact, *outcome.findings), tuple(outcome.tables), meta, shown)


def _refuse_swapped(mechanism: Any, X: Any) -> None:
    """The mechanism comes first, here as everywhere."""
    # Asked of the type: a frame may have a column of that name.
    if hasattr(type(X), "release") or isinstance(mechanism, Joint):
        raise InvalidInputError(
            "audit: the mechanism comes first, then the records or the joint; the first argument is a "
            f"{type(mechanism).__name__}. Swap them."
        )


def _check_names(given: Given, kept: Sequence[KeptColumn]) -> None:
    """A private column that is kept needs no attack: it is handed out."""
    private = {one.name for one in given.attributes}
    if told := [one.name for one in kept if one.name in private]:
        raise InvalidInputError(f"audit: {told[0]!r} is private; it cannot be kept beside the release.")


def _shown(given: Given, outcome: Outcome, figures: bool, show_records: bool) -> dict[str, Any]:
    """What figures need beyond the findings; nothing that was not asked for."""
    shown: dict[str, Any] = {}
    if figures:
        views = {on: table for on, table in (("X", given.X), ("Z", outcome.codes)) if table is not None}
        density = densities_of(views, given.attributes[0])
        shown = {"density": density} if density else {}
    copies, X = outcome.reconstructed, given.X
    if show_records and copies is not None and X is not None and copies.ndim == 3:
        shown["images"] = samples_of(X.codes, copies)
    return shown
