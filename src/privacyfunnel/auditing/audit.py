"""audit(): attack a release with every adversary and measure what it keeps."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import InvalidInputError, TrainingRecordsWarning
from ..joint import Joint
from ..mechanism import TableMechanism
from ..order import warn_of_order
from ..progress import progress_bar, say_first
from .adversaries.clustering import import_umap
from .attacks import Attack, Found, expected_seconds, run_pieces
from .findings import About
from .inputs import Given, Settings, Table, described, read_input
from .measures.bits import marked_short
from .measures.certified import joint_certificate
from .measures.kept import KeptColumn, as_kept
from .measures.tables import exact_findings
from .plan import NOT_FRESH, Plan
from .published import densities_of, samples_of
from .report import AuditReport

PACKAGES = ("privacyfunnel", "numpy", "scipy", "scikit-learn", "umap-learn")

TRAINED_ON = "Whether the mechanism was trained on these records: audit it on others."
#: Share of the audited records from which on it is said that the mechanism was trained on them: a few may
#: equal others by chance.
TOLD_FROM = 0.2
#: Who says that the records had no part in making the mechanism.
SAID_FRESH = "Records that had no part in making the mechanism, as whoever audits says."
#: What is no proof: marks are of some of the records, and know no changed copy.
NO_MARKS = "Records without any mark that the mechanism keeps of its training: a sign, and no proof."
SAME_ORDER = (
    "That codes and private values are of the same people in the same order: of a file in another order, as "
    "a shuffled one is, an audit finds nothing, whatever it tells. Audit the mechanism, or the file before "
    "it is shuffled."
)
NOT_TRIED = "Adversaries that were not tried."
ALWAYS_OPEN = (
    "Knowledge about people that comes from elsewhere.",
    "Several releases of one record, unless many_draws was set.",
    "Records that are distributed in another way than these.",
)


def audit(
    mechanism: Any = None,
    X: Any = None,
    private: Any = None,
    *,
    Z: Any = None,
    X_hat: Any = None,
    joint: Joint | None = None,
    task: Any = None,
    numeric: Sequence[str] | None = None,
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
    fresh_records: bool = False,
) -> AuditReport:
    """What a release tells about a private attribute, and what it keeps of the records.

    >>> report = pf.audit(funnel, X_test, y_test)                        # doctest: +SKIP
    >>> report = pf.audit(Z=codes, private=y_test, X=X_test)             # doctest: +SKIP
    >>> report = pf.audit(solution.mechanism, joint)                     # doctest: +SKIP

    Adversaries with labels learn from the codes of other people: the records are split into folds, and each
    fold is attacked by adversaries trained on the others. Use records that the mechanism was not trained
    on: on its own, leakage looks smaller than it is. A fitted funnel notices them, with a
    `TrainingRecordsWarning` and a sentence in the report.

    Parameters
    ----------
    mechanism : a fitted funnel, a TableMechanism, or anything with release(X, rng) or transform(X)
    X : (n, …) array of records, letters of a table mechanism, or a Joint
        With `Z` only needed for the comparison with raw records and for utility.
    private : column, mapping or frame of columns
        The private attributes, each audited by itself. Numbers that are not all whole are a numeric
        attribute: they get regressors, and are cut into eight classes for success and bits. "y" is the name
        of one without a name, or what the mechanism calls it.
    Z, X_hat : arrays, optional
        Codes that were released elsewhere, and reconstructions.
    joint : Joint, optional
        A known joint: a table mechanism then gets exact numbers, with or without records.
    task : column, mapping or frame of columns, optional
        What the release should stay good for: predicted by boosted trees from X and from Z.
    numeric : names, optional
        Private attributes of whole numbers that are numbers and no classes, such as an age. By default those
        that the mechanism was fitted with as such.
    keep : mapping or frame of columns, optional
        What is handed out beside the release, unchanged: success and bits from each column alone and together
        with Z, and from all of them with Z.
    adversaries : sequence, optional
        Instead of the default set: objects of the `Adversary` protocol, `ClusteringAdversary`, regressors,
        or names of ours, such as "boosted trees" or "UMAP and KMeans". By name, trees for more than thirty
        classes are randomised ones, which do in seconds what would take minutes.
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
        see `privacyfunnel.keys.owner_key`. Without it only what is released (Z) is fingerprinted.
    fresh_records : bool
        Say that these records are independent draws of the population and had no part in making the
        mechanism. Symbols and tables then get certificates: upper bounds on success and bits for every
        adversary who sees one release of a new person (docs/certificates.md). Nobody else can know it: the
        marks that a fitted funnel keeps are of some of its records.

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
    about = About(settings.confidence, seed)
    exact, unnamed = [], "y"
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
        exact = exact_findings(about, mechanism, joint)
        if X is None and Z is None:
            counted = joint.n_samples is not None
            if counted and fresh_records:
                exact += joint_certificate(about, mechanism, joint)
            meta = _described(
                mechanism,
                asdict(settings),
                name=name,
                begun=begun,
                joint=joint,
                not_audited=[NOT_FRESH] if counted and not fresh_records else [],
                fresh=SAID_FRESH if fresh_records and counted else "",
            )
            return AuditReport(tuple(exact), (), meta)
    given = read_input(mechanism, X, private, Z, X_hat, task, unnamed, fingerprint_key, numeric)
    trained_on = _share_trained_on(mechanism, X)
    if fresh_records and trained_on:
        _refuse_known(trained_on, X)
    if told := _trained_note(trained_on):
        warnings.warn(f"audit: {told}", TrainingRecordsWarning, stacklevel=2)
    fresh = SAID_FRESH if fresh_records else NO_MARKS if trained_on == 0 else ""
    plan = Plan(about, settings, given, adversaries, fresh_records)
    kept = () if keep is None else as_kept(keep, given.n)
    _check_names(given, kept)
    for one in given.attributes:
        agreeing = int((one.y[1:] == one.y[:-1]).sum())
        warn_of_order(agreeing, np.bincount(one.y), one.name)
    draws = given.draws(settings.n_repeats, seed)
    plan.check_adversaries(draws[0])
    copies = given.copies(draws)
    attacks = [plan.attacks(draws, copies), plan.kept(kept, draws[0])]
    (found, tables), (beside, _) = _carried_out(attacks, plan, n_jobs, progress)
    found = marked_short(found) + beside
    names = dict.fromkeys(one.source for one in found if one.threat_model and one.on != "X")
    meta = _described(
        mechanism,
        asdict(settings) | {"adversaries": list(names)},
        name=name,
        begun=begun,
        given=given,
        not_audited=plan.left_out(draws, copies),
        n_jobs=n_jobs,
        trained_on=trained_on,
        fresh=fresh,
    )
    meta["kept"] = [one.name for one in kept]
    shown = _shown(given, draws[0], copies, figures, show_records)
    return AuditReport((*exact, *found), tuple(tables), meta, shown)


def _carried_out(
    groups: Sequence[Sequence[Attack]], plan: Plan, n_jobs: int, progress: bool | None
) -> list[Found]:
    """What each group of attacks found; all pieces of all groups are done together."""
    pieces = [piece for group in groups for attack in group for piece in attack.pieces()]
    if said := plan.announcement(expected_seconds(pieces, n_jobs)):
        say_first(said, progress)
    with progress_bar("Auditing", progress) as report:
        results = run_pieces(pieces, n_jobs, report)
    found = [[attack.findings(results) for attack in group] for group in groups]
    return [
        ([one for part in parts for one in part[0]], [one for part in parts for one in part[1]])
        for parts in found
    ]


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


def _shown(
    given: Given, codes: Table, copies: Sequence[FloatArray], figures: bool, show_records: bool
) -> dict[str, Any]:
    """What figures need beyond the findings; nothing that was not asked for."""
    shown: dict[str, Any] = {}
    if figures:
        views = {on: table for on, table in (("X", given.X), ("Z", codes)) if table is not None}
        density = densities_of(views, given.attributes[0])
        shown = {"density": density} if density else {}
    if show_records and copies and given.X is not None and copies[0].ndim == 3:
        shown["images"] = samples_of(given.X.codes, copies[0])
    return shown


def _described(
    mechanism: Any,
    settings: dict[str, Any],
    *,
    name: str | None,
    begun: float,
    given: Given | None = None,
    joint: Joint | None = None,
    not_audited: list[str] | None = None,
    n_jobs: int = 1,
    trained_on: float | None = None,
    fresh: str = "",
) -> dict[str, Any]:
    """The `meta` of a report, in JSON types; `trained_on` is the share of the records that is known to have
    trained the mechanism, None where nobody knows; `fresh` who says that they had no part in it."""
    known = given is None and joint is not None and joint.n_samples is None
    description = described(mechanism) if given is None else given.release.description
    attributes = [] if given is None else [one.describe() for one in given.attributes]
    open_ = [TRAINED_ON] if trained_on is None and not fresh else []
    meta: dict[str, Any] = {
        "name": name or (type(mechanism).__name__ if mechanism is not None else "released codes"),
        "mechanism": description,
        "n_records": given.n if given is not None else None if joint is None else joint.n_samples,
        "from_joint": given is None,
        "attributes": attributes,
        "tasks": [] if given is None else [one.describe() for one in given.tasks],
        "fingerprint": {} if given is None else dict(given.fingerprints),
        "settings": settings,
        "versions": {"python": platform.python_version(), **_versions()},
        "audited": _audited(given, joint),
        "not_audited": [*(not_audited or []), *([] if known else [*open_, NOT_TRIED]), *ALWAYS_OPEN],
        "run": {"seconds": round(time.perf_counter() - begun, 3), "n_jobs": n_jobs},
    }
    meta["audited"] += [note for note in (_trained_note(trained_on), fresh) if note]
    if given is not None and mechanism is None:
        meta["not_audited"].insert(0, SAME_ORDER)
    if given is not None and not given.release.seeded:
        meta["not_audited"].append(
            "The mechanism has a randomness of its own: the seed of this audit does not fix its codes."
        )
    return meta


def _share_trained_on(mechanism: Any, X: Any) -> float | None:
    """The share of the records that the mechanism knows it was trained on; None where it cannot tell."""
    ask = getattr(mechanism, "trained_on", None)
    try:
        share = ask(X) if callable(ask) and X is not None else None
    except ValueError:  # beside codes from elsewhere, X need not be what the mechanism takes
        return None
    return share if isinstance(share, float) else None


def _refuse_known(share: float, X: Any) -> None:
    """Refuse records that are called fresh, and of which more are known from the training than by chance.

    Where records of a kind equal one another, new ones equal some of the training too: as often as those
    that are audited equal others among themselves, but not more than a fifth is taken for chance. Where
    they do not, one that is known is not new.
    """
    flat = np.asarray(X).reshape(len(X), -1)
    _, place, counts = np.unique(flat, axis=0, return_inverse=True, return_counts=True)
    alike = float((counts[place.ravel()] > 1).mean())
    if share > min(alike, TOLD_FROM):
        percent = f"{100 * share:.2g} %" if share < TOLD_FROM else f"{10 * round(10 * share)} %"
        raise InvalidInputError(
            "audit: fresh_records says that these records had no part in the mechanism, and it was trained "
            f"on about {percent} of them; audit others, or leave fresh_records out.",
            names=("fresh_records",),
        )


def _trained_note(share: float | None) -> str:
    """What an audit of training records has to say; nothing of others."""
    if share is None or share < TOLD_FROM:
        return ""
    return (
        f"The mechanism was trained on about {10 * round(10 * share)} % of these records: on them leakage "
        "looks smaller than it is. Audit it on others."
    )


def _audited(given: Given | None, joint: Joint | None) -> list[str]:
    if given is None:
        n = None if joint is None else joint.n_samples
        counted = f"a joint distribution that was counted in {n} records, perhaps those it was made from"
        return [f"A table mechanism on {'a known joint distribution' if n is None else counted}."]
    names = ", ".join(one.name for one in given.attributes)
    return [f"{given.n} records, private: {names}.", f"Released by: {given.release.description}"]


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
