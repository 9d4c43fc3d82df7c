"""solve() and frontier(): the entry points of the known-distribution funnel."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ConvergenceWarning, InfeasibleError, InvalidInputError
from ..frontier import Frontier
from ..joint import Joint
from ..progress import progress_bar
from ..solution import Solution, Status
from ..tradeoff import TradeoffPoint
from .batch import DETERMINISTIC, ITERATIVE, PAPER_METHODS, as_seed, n_workers
from .problem import NATS_PER_BIT, Problem
from .search import Options, Search, corners_around

METHODS = ("auto", "exact", *ITERATIVE, *DETERMINISTIC)
DEFAULT_ALPHA = 0.1
FIRST_BETAS = 16  # how many values of β a constrained search looks at before its own slopes
_LARGEST = 10**12  # of whole numbers that are sizes: beyond, arrays cannot be asked for


def solve(
    joint: Joint,
    *,
    beta: float | None = None,
    min_utility: float | None = None,
    max_leakage: float | None = None,
    method: str = "auto",
    n_z: int | Sequence[int] | None = None,
    n_starts: int = 20,
    alpha: float | Sequence[float] | None = None,
    penalty: float | None = None,
    tol: float = 1e-6,
    max_steps: int = 10_000,
    time_limit: float = 300.0,
    node_limit: int | None = None,
    rng: Any = None,
    n_jobs: int = -1,
    progress: bool | None = None,
) -> Solution:
    """Find a release Z of X that is useful and tells little about Y, for a known P(X,Y).

    Exactly one of three problems, all over channels P(Z|X) and in bits:

    - ``beta``: minimise I(Z;Y) − β I(Z;X);
    - ``min_utility``: minimise I(Z;Y) subject to I(Z;X) ≥ min_utility;
    - ``max_leakage``: maximise I(Z;X) subject to I(Z;Y) ≤ max_leakage.

    ``exact`` solves them to proved optimality. The other methods are local: they return the best they find,
    and solve the constrained problems by search over β and, between two solutions, time sharing.

    Parameters
    ----------
    joint : Joint
        The distribution of public X and private Y.
    beta, min_utility, max_leakage : float
        The problem; see above.
    method : str
        ``exact`` (with a certificate), ``dca`` (monotone, the default local solver), ``dca-ridge`` and
        ``dca-sparse`` (the paper's two), ``greedy``, ``submodular`` (deterministic maps), ``splitting``.
        ``auto`` takes ``exact`` where a proof is likely within minutes, else ``dca``; `Solution.method`
        says which.
    n_z : int or ints, optional
        Number of symbols of Z; max(|X|, |Y|) + 1 by default. Several are all tried.
    n_starts : int
        Random starts for each setting.
    alpha : float or floats, optional
        Regularisation of ``dca-ridge`` and ``dca-sparse``, 0.1 by default. Several are all tried.
    penalty : float, optional
        Penalty of ``splitting``, in units of n_z · max(1, β); 2 by default.
    tol : float
        ``exact``: the gap to prove, in bits. Others: stop rule |L_k − L_{k+1}| ≤ tol, in bits.
    max_steps : int
        Steps after which a start of an iterative method is given up.
    time_limit, node_limit : float (seconds) and int, optional
        When ``exact`` stops proving. Its result then carries the best release and the best bound so far.
    rng : None, int or numpy Generator
        Where random starts come from. The result does not depend on `n_jobs`.
    n_jobs : int
        Worker threads; −1 for all cores.
    progress : bool, optional
        Show a progress bar; by default when stderr is a terminal, and a line a minute when it is none.

    Returns
    -------
    Solution
        Local methods return the best of all starts; ``exact`` also gives `lower_bound` and `gap`. A solver
        that did not meet its stop rule is returned with its status and one ConvergenceWarning. Ctrl-C during
        ``exact`` returns the best so far.
    """
    begun = time.perf_counter()
    kind, value = _check_target(joint, beta, min_utility, max_leakage)
    problem = Problem(joint)
    method = _choose(problem, method, n_z)
    options = _options(problem, method, n_z, n_starts, alpha, penalty, tol, max_steps, rng, n_jobs)
    if method == "exact":
        from .exact.entry import solve_exact
        from .exact.master import Target

        target = Target(kind, value if kind == "beta" else value * NATS_PER_BIT)
        limits = _limits(options, time_limit, node_limit)
        solution = solve_exact(problem, target, limits, n_workers(n_jobs), options.seed, progress)
        return _warned(solution)
    search = Search(problem, options)
    with progress_bar(f"Solving with {options.method}", progress) as report:
        if beta is not None:
            runs = search.run([beta], report=report)
            best = min(runs, key=lambda run: run.objective)
            mechanism, status = problem.mechanism(best.p), best.status
            history, n_steps = best.history / NATS_PER_BIT, best.n_steps
        else:
            search.run(_first_betas(options.method, FIRST_BETAS), report=report)
            if options.method == "greedy" and min_utility is not None:
                search.add_native_greedy(min_utility)
            history = np.array(search.refine(utility=min_utility, leakage=max_leakage))
            front = search.frontier
            wanted = min_utility if min_utility is not None else front.utility_at(max_leakage or 0.0)
            mechanism, status = front.mechanism_at(wanted), _status_at(front, wanted)
            n_steps = search.n_steps
    solution = Solution(
        joint=joint,
        mechanism=mechanism,
        method=options.method,
        status=status,
        beta=beta,
        min_utility=min_utility,
        max_leakage=max_leakage,
        history=history,
        n_steps=n_steps,
        seconds=time.perf_counter() - begun,
        notes=_notes(problem, options.method),
    )
    return _warned(solution)


def frontier(
    joint: Joint,
    *,
    method: str = "auto",
    n_points: int = 40,
    betas: Sequence[float] | None = None,
    n_z: int | Sequence[int] | None = None,
    n_starts: int = 20,
    alpha: float | Sequence[float] | None = None,
    penalty: float | None = None,
    tol: float = 1e-6,
    max_steps: int = 10_000,
    time_limit: float = 300.0,
    node_limit: int | None = None,
    rng: Any = None,
    n_jobs: int = -1,
    progress: bool | None = None,
) -> Frontier:
    """Trace the trade-off between I(Z;X) and I(Z;Y) that a method reaches on a known P(X,Y).

    Parameters
    ----------
    joint : Joint
        The distribution of public X and private Y.
    method, n_z, n_starts, alpha, penalty, tol, max_steps, time_limit, node_limit, rng, n_jobs, progress
        As for `solve`, limits for each point. Every combination of β, n_z, α and start is run, in one batch.
    n_points : int
        ``exact``: at most how many utilities to solve for, each where least is proved so far. Others: how
        many values of β to spend, the first 16 on a geometric grid, the rest on slopes of the hull.
    betas : floats, optional
        Use exactly these values of β instead.

    Returns
    -------
    Frontier
        Every run is a point; those that no other run beats carry their mechanism. A constant release
        and Z = X are always among the points. ``exact`` adds proved lines below every release
        (`Frontier.lower_bound_at`).
    """
    problem = Problem(joint)
    method = _choose(problem, method, n_z)
    options = _options(problem, method, n_z, n_starts, alpha, penalty, tol, max_steps, rng, n_jobs)
    if method == "exact":
        from .exact.entry import frontier_exact

        checked = None if betas is None else [_number("beta", beta, 0.0) for beta in betas]
        front = frontier_exact(
            problem,
            checked,
            _whole("n_points", n_points),
            _limits(options, time_limit, node_limit),
            n_workers(n_jobs),
            options.seed,
            progress,
        )
        return _warned_front(front, front.points)
    search = Search(problem, options)
    with progress_bar(f"Frontier with {options.method}", progress) as report:
        if betas is not None:
            search.run([_number("beta", beta, 0.0) for beta in betas], report=report)
        else:
            total = _whole("n_points", n_points)
            search.run(_first_betas(options.method, min(total, FIRST_BETAS)), report=report)
            search.trace(total, report)
    return _warned_front(search.frontier, search.points)


def perfect_privacy(joint: Joint) -> Solution:
    """Find the most useful release that tells nothing at all about Y, for a known P(X,Y).

    Maximises I(Z;X) subject to I(Z;Y) = 0, with a proof: `Solution.lower_bound` is one on −I(Z;X). A utility
    of 0 means it is proved that no useful release is perfectly private. The mechanism's leakage is 0 up to
    rounding.
    """
    from .exact.entry import perfect_solution

    return perfect_solution(joint)


def _warned(solution: Solution) -> Solution:
    if not solution.status.ok:
        warnings.warn(f"{solution.method}: {solution.status.value}", ConvergenceWarning, stacklevel=3)
    return solution


def _warned_front(front: Frontier, points: Sequence[TradeoffPoint]) -> Frontier:
    early = [point for point in points if point.status is not None and not point.status.ok]
    if early:
        warnings.warn(
            f"{early[0].method}: {len(early)} of {len(points)} runs stopped before their stop rule was met; "
            "their best results are among the points. The status of each point says why.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return front


def _choose(problem: Problem, method: str, n_z: Any) -> str:
    if method not in METHODS:
        raise InvalidInputError(f"method must be one of {', '.join(METHODS)}; it is {method!r}.")
    if method == "exact" and n_z is not None:
        raise InvalidInputError(
            "n_z belongs to the local methods; exact finds the best number of symbols itself."
        )
    if method != "auto":
        return method
    if n_z is not None:
        return "dca"
    from .exact.entry import likely_provable

    return "exact" if likely_provable(problem) else "dca"


def _limits(options: Options, time_limit: float, node_limit: int | None) -> Any:
    from .exact.engine import Limits

    nodes = np.inf if node_limit is None else _whole("node_limit", node_limit)
    # Rounding alone is worth 1e-12 bit; less than that cannot be proved.
    return Limits(max(options.tol, 1e-11), _number("time_limit", time_limit, 0.0, strict=True), nodes)


def _first_betas(method: str, n: int) -> list[float]:
    """A geometric grid of β. From β = 1 on, Z = X is optimal; only the paper's solvers, which do not
    minimise L, find other points there."""
    lowest, highest = (0.1, 10.0) if method in PAPER_METHODS else (0.01, 0.99)
    return [float(beta) for beta in np.geomspace(lowest, highest, n)]


def _status_at(front: Frontier, utility: float) -> Status:
    """The status of the corners around a utility: the first that is not ok, or one of them."""
    corners = corners_around(front, utility)
    found = [point.status for point in corners if point.status is not None]
    return next((status for status in found if not status.ok), found[0] if found else Status.FINISHED)


def _notes(problem: Problem, method: str) -> tuple[str, ...]:
    if method in PAPER_METHODS and problem.rank < problem.n_y:
        return (
            f"P(Y|X) has rank {problem.rank} with {problem.n_y} letters of Y; the paper assumes full row "
            "rank. The step's target is a least-squares one.",
        )
    return ()


def _check_target(
    joint: Joint, beta: float | None, min_utility: float | None, max_leakage: float | None
) -> tuple[str, float]:
    given = {"beta": beta, "min_utility": min_utility, "max_leakage": max_leakage}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"solve: pass exactly one of beta, min_utility and max_leakage; got {', '.join(named) or 'none'}."
        )
    value = _number(named[0], given[named[0]], 0.0)
    if min_utility is not None and value > joint.entropy_x + 1e-9:
        raise InfeasibleError(
            f"solve: min_utility = {value:g} bit is more than H(X) = {joint.entropy_x:.6g} bit, "
            "the utility of releasing X itself. Ask for less."
        )
    return named[0], value


def _options(
    problem: Problem,
    method: str,
    n_z: int | Sequence[int] | None,
    n_starts: int,
    alpha: float | Sequence[float] | None,
    penalty: float | None,
    tol: float,
    max_steps: int,
    rng: Any,
    n_jobs: int,
) -> Options:
    if alpha is not None and method not in PAPER_METHODS:
        raise InvalidInputError(f"alpha belongs to {' and '.join(PAPER_METHODS)}; leave it out for {method}.")
    if penalty is not None and method != "splitting":
        raise InvalidInputError(f"penalty belongs to splitting; leave it out for {method}.")
    n_workers(n_jobs)  # checked before any work
    default = max(problem.n_x, problem.n_y) + 1
    return Options(
        method=method,
        n_z=tuple(_whole("n_z", n) for n in ([default] if n_z is None else np.atleast_1d(n_z).tolist())),
        n_starts=_whole("n_starts", n_starts),
        parameters=_parameters(method, alpha, penalty),
        tol=_number("tol", tol, 0.0) * NATS_PER_BIT,
        max_steps=_whole("max_steps", max_steps),
        n_jobs=n_jobs,
        seed=as_seed(rng),
    )


def _parameters(
    method: str, alpha: float | Sequence[float] | None, penalty: float | None
) -> tuple[float, ...]:
    if method in PAPER_METHODS:
        values = np.atleast_1d(DEFAULT_ALPHA if alpha is None else alpha)
        return tuple(_number("alpha", value, 0.0, strict=True) for value in values)
    if method == "splitting":
        from .splitting import DEFAULT_PENALTY

        return (_number("penalty", DEFAULT_PENALTY if penalty is None else penalty, 0.0, strict=True),)
    return (math.nan,)


def _number(name: str, value: Any, least: float, *, strict: bool = False) -> float:
    bound = "more than" if strict else "at least"
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and (number > least if strict else number >= least)):
        shown = value.item() if isinstance(value, np.generic) else value
        raise InvalidInputError(f"{name} must be a finite number, {bound} {least:g}; it is {shown!r}.")
    return number


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InvalidInputError(f"{name} must be a whole number, at least 1; it is {value!r}.")
    if value > _LARGEST:
        raise InvalidInputError(f"{name} must be a whole number of at most {_LARGEST:,}; it is larger.")
    return int(value)
