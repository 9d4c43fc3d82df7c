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
from .context import Context
from .figures import figures_of
from .given import Settings, read_input
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
    adversaries: Sequence[Any] | None = None,
    many_draws: int = 0,
    n_repeats: int = 3,
    n_folds: int = 3,
    effort: str = "default",
    figures: bool = False,
    confidence: float = 0.95,
    random_state: int | None = 0,
    n_jobs: int = -1,
    progress: bool | None = None,
    name: str | None = None,
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
        Whether to keep a sample of embedded points and images in the report.
    confidence : float
        Of all intervals.
    random_state : int, optional
        Decides everything; None takes one from the operating system and the report says which.
    n_jobs : int
        Processes; −1 for all cores. Does not change the report.
    progress : bool, optional
        Whether to show a progress bar; by default when a person watches. The time that a long audit will
        take is said first, on stderr, unless this is False.
    name : str, optional
        What the report calls the release.

    Returns
    -------
    AuditReport
    """
    begun = time.perf_counter()
    if isinstance(X, Joint):
        joint, X = X, None
    seed = int(np.random.default_rng().integers(2**31)) if random_state is None else int(random_state)
    settings = Settings(int(n_folds), int(n_repeats), int(many_draws), float(confidence), seed, effort)
    context = Context(settings.confidence, seed)
    exact, unnamed = [], "private"
    if joint is not None:
        if not isinstance(mechanism, TableMechanism):
            raise InvalidInputError(
                "audit: a joint gives exact numbers for a TableMechanism only; pass records X and private."
            )
        unnamed = ", ".join(joint.y_names)
        exact = exact_findings(mechanism, joint, confidence=settings.confidence, seed=seed)
        if X is None and Z is None:
            meta = describe_audit(
                mechanism, asdict(settings), name=name, begun=begun, n_samples=joint.n_samples
            )
            return AuditReport(tuple(exact), (), meta)
    given = read_input(mechanism, X, private, Z, X_hat, task, unnamed)
    plan = Plan(context, settings, given, adversaries)
    outcome = plan.carry_out(n_jobs, progress, figures)
    meta = describe_audit(
        mechanism,
        asdict(settings) | {"adversaries": plan.names},
        name=name,
        begun=begun,
        given=given,
        not_audited=plan.not_audited,
        n_jobs=n_jobs,
    )
    shown = figures_of(given, outcome, seed) if figures else {}
    return AuditReport((*exact, *outcome.findings), tuple(outcome.tables), meta, shown)
