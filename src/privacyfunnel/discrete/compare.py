"""compare: every method on one joint in one call, with the proved optimum beside them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..checks import finite_number, whole_number
from ..comparison import Comparison
from ..errors import ConvergenceWarning, FewRecordsWarning, InvalidInputError
from ..joint import Joint
from ..progress import Report, listening, progress_bar
from ..solution import Status
from ..tradeoff import Frontier
from .arguments import check_limits, check_methods, require_joint
from .batch import as_seed
from .methods import METHODS, no_method
from .solve import frontier, warn_of_few_records

SHARES = (0.25, 0.5, 0.75)  # of H(X): where the table compares, unless told
PAPER_GRID, PAPER_STARTS = 16, 10  # values of β and of α, and starts, of the paper's sweep
STARTS = 20  # of `frontier`, by default
# Less than its defaults for a method that takes seconds a start; on the paper's joint, with seeds 0 and 1, it
# still comes within 1e-3 bit of the optimum.
SLOW: dict[str, Any] = {"n_points": 24, "n_starts": 16, "max_steps": 500}


def compare(
    joint: Joint,
    *,
    methods: Sequence[str] | None = None,
    utilities: Sequence[float] | None = None,
    n_points: int = 40,
    n_starts: int | None = None,
    time_limit: float = 10.0,
    rng: Any = None,
    n_jobs: int = -1,
    progress: bool | None = None,
) -> Comparison:
    """Compare methods on a known P(X,Y): what each reaches, its distance to the proved optimum, its time.

    The paper's two solvers, ``dca-ridge`` and ``dca-sparse``, are swept as the paper sweeps them: 16 values
    of β times 16 of α, both geometric from 0.1 to 10, 10 uniform starts for each, and three numbers of
    symbols (the paper's 2, 3 and 4 for three letters; here as many as letters, one less and one more). The
    others have the settings of `frontier`, but ``splitting``, which is slow: 24 values of β, 16 starts, 500
    steps.

    Parameters
    ----------
    joint : Joint
        The distribution of public X and private Y.
    methods : names, optional
        As for `solve`; all by default. ``exact`` is always there, for gaps are measured from what it proves.
    utilities : floats, optional
        Where the table compares, in bits; a quarter, half and three quarters of H(X) by default.
    n_points : int
        As for `frontier`.
    n_starts : int, optional
        Random starts for each setting of every method, instead of its own number.
    time_limit : float
        Seconds that ``exact`` may take for each point; what is not proved by then counts as gap.
    rng, n_jobs, progress
        As for `frontier`.

    Returns
    -------
    Comparison
        Its table (`to_frame`), figure (`plot`), page (`save`) and a `Frontier` of each method (`fronts`).
        Runs that stopped before their stop rule was met are counted in the table instead of warned of.
    """
    require_joint(joint, "compare")
    names = _check_methods(methods)
    at = _check_utilities(joint, utilities)
    common: dict[str, Any] = {"rng": as_seed(rng), "n_jobs": n_jobs, "progress": progress}
    limit = check_limits(time_limit, None)[0]
    given: dict[str, Any] = {"n_points": whole_number("n_points", n_points), "time_limit": limit}
    fronts: dict[str, Frontier] = {}
    said: dict[str, str] = {}
    seconds: dict[str, float] = {}
    starts: dict[str, int] = {}
    tiny = _tiny(joint)
    with progress_bar("Comparing methods", progress) as report:
        for number, name in enumerate(names):
            settings = method_settings(name, joint, n_starts)
            report(number, len(names), name)
            with warnings.catch_warnings(), listening(_part_of(report, name, number, len(names))):
                warnings.simplefilter("ignore", ConvergenceWarning)  # the table counts such runs
                warnings.simplefilter("ignore", FewRecordsWarning)  # once, below
                # Compiles what is not compiled yet, which is not measured.
                first: dict[str, Any] = {"n_points": 1, "n_starts": 1, "time_limit": min(limit, 1.0)}
                frontier(tiny, method=name, **{**common, "progress": False}, **first)
                begun = time.process_time()
                front = frontier(joint, method=name, **common, **{**given, **settings})
                seconds[name] = time.process_time() - begun
            if any(point.status is Status.INTERRUPTED for point in front.points):
                raise KeyboardInterrupt
            fronts[name], said[name] = front, _in_words(name, {**given, **settings})
            if METHODS[name].starts and not METHODS[name].proof:
                starts[name] = settings.get("n_starts", STARTS)
    warn_of_few_records(joint)
    lines = fronts["exact"].support_lines
    fronts = {name: replace(front, support_lines=lines) for name, front in fronts.items()}
    return Comparison(joint, fronts, said, seconds, at, starts)


def _tiny(joint: Joint) -> Joint:
    """A joint that takes no time and goes the same ways: two private values have ways of their own."""
    n_y = 2 if int((joint.p_y > 0).sum()) <= 2 else 3
    table = np.full((3, n_y), 1.0) + np.eye(3, n_y)
    return Joint(table / table.sum())


def _part_of(report: Report, name: str, number: int, n_methods: int) -> Callable[[str, int, int], None]:
    """What is told of one method, as a part of all."""

    def told(what: str, done: int, total: int) -> None:
        report(number, n_methods, f"{name} {100 * done // total} %" if total else name)

    return told


def method_settings(name: str, joint: Joint, n_starts: int | None = None) -> dict[str, Any]:
    """What a method is given, where that is not the default of `frontier`: the paper's solvers its sweep."""
    row = METHODS[name]
    settings: dict[str, Any] = {}
    if row.parameter == "alpha":
        grid = row.first_betas(PAPER_GRID)
        settings = {"betas": grid, "alpha": grid, "n_z": paper_symbols(joint), "n_starts": PAPER_STARTS}
    elif row.seconds >= 1:
        settings = dict(SLOW)
    if n_starts is not None and row.starts and not row.proof:
        settings["n_starts"] = whole_number("n_starts", n_starts)
    return settings


def paper_symbols(joint: Joint) -> tuple[int, ...]:
    """Numbers of symbols of the paper's sweep: 2, 3 and 4 for its three letters, and so around others."""
    n = max(int((joint.p_x > 0).sum()), int((joint.p_y > 0).sum()))
    return tuple(k for k in (n - 1, n, n + 1) if k >= 2)


def _check_methods(methods: Sequence[str] | None) -> tuple[str, ...]:
    if methods is None:
        return ("exact", *(name for name in METHODS if name not in ("auto", "exact")))
    given = (methods,) if isinstance(methods, str) else tuple(methods)
    if not given:
        raise InvalidInputError(
            "compare: methods is empty; name one or more, or leave it out for all.", names=("methods",)
        )
    for name in given:
        if name not in METHODS:
            raise InvalidInputError(f"compare: {no_method(name)}", names=("methods",))
    names = check_methods(given, None)
    if "auto" in names:
        raise InvalidInputError(
            "compare: 'auto' is exact or dca, whichever suits; name these instead.", names=("methods",)
        )
    return tuple(dict.fromkeys(("exact", *names)))


def _check_utilities(joint: Joint, utilities: Sequence[float] | None) -> tuple[float, ...]:
    most = joint.entropy_x
    if utilities is None:
        return tuple(share * most for share in SHARES)
    at = tuple(finite_number("utilities", utility, 0.0) for utility in utilities)
    if not at or max(at) > most:
        raise InvalidInputError(
            f"compare: utilities must be one or more numbers from 0 to H(X) = {most:.6g} bit; they are "
            f"{', '.join(f'{utility:g}' for utility in at) or 'none'}.",
            names=("utilities",),
        )
    return at


def _in_words(name: str, settings: dict[str, Any]) -> str:
    """What a method was given."""
    row = METHODS[name]
    if row.proof:
        return f"up to {settings['n_points']} points, {settings['time_limit']:g} s each at most"
    n_starts = settings.get("n_starts", STARTS)
    starts = f"{n_starts} start{'s' * (n_starts != 1)}"
    if row.parameter == "alpha":
        symbols = ", ".join(map(str, settings["n_z"]))
        paper = "as the paper sweeps" if n_starts == PAPER_STARTS else f"the paper's sweep has {PAPER_STARTS}"
        low, high = row.betas
        return (
            f"{PAPER_GRID} β × {PAPER_GRID} α from {low:g} to {high:g}, |Z| = {symbols}, {starts} ({paper})"
        )
    if not row.starts:
        return f"up to {settings['n_points']} β"
    steps = f" of {settings['max_steps']} steps at most" if "max_steps" in settings else ""
    return f"up to {settings['n_points']} β, {starts}{steps}"
