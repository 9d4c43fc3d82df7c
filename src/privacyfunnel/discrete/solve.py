"""solve() and frontier(): the entry points of the known-distribution funnel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..checks import whole_number
from ..errors import ConvergenceWarning, FewRecordsWarning
from ..frontier import Frontier
from ..joint import Joint
from ..progress import progress_bar
from ..solution import Solution, Status
from ..tradeoff import TradeoffPoint
from ..uncertainty import few_records
from .arguments import (
    check_betas,
    check_limits,
    check_method,
    check_size,
    check_target,
    make_options,
)
from .batch import PAPER_METHODS, n_workers
from .problem import NATS_PER_BIT, FloatArray, Problem
from .search import Options, Search, corners_around

FIRST_BETAS = 16  # how many values of β a constrained search looks at before its own slopes
AUTO_SECONDS = 20.0  # that auto gives exact, and exact at least gives dca where nothing was proved
UNLISTED_SECONDS = 5.0  # of these, where there are more sets of letters than can be listed for a proof


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
        ``auto`` tries ``exact`` for 20 seconds (or `time_limit`, if that is less). If that proves no optimum,
        ``dca`` goes on from its release, and the bound is kept. `Solution.method` and `Solution.notes` say
        what was done.
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
        When ``exact`` stops proving. ``dca`` then has as long again, and at least 20 s, to find a better
        release; the result carries the better one and the best bound so far.
    rng : None, int or numpy Generator
        Where random starts come from. The result does not depend on `n_jobs`, unless a time limit ends the
        proof.
    n_jobs : int
        Worker threads; −1 for all cores.
    progress : bool, optional
        Show a progress bar; by default when stderr is a terminal and the work takes longer than a moment.

    Returns
    -------
    Solution
        Local methods return the best of all starts; ``exact`` also gives `lower_bound` and `gap`. A solver
        that did not meet its stop rule is returned with its status and one ConvergenceWarning. Ctrl-C during
        ``exact`` returns the best so far.
    """
    begun = time.perf_counter()
    asked = check_target(joint, beta, min_utility, max_leakage)
    check_method(method, n_z)
    limits = check_limits(time_limit, node_limit)
    problem = Problem(joint)
    options = make_options(problem, method, n_z, n_starts, alpha, penalty, tol, max_steps, rng, n_jobs)
    proving = method == "exact" or (method == "auto" and n_z is None)
    check_size(problem, options, whole=proving or asked[0] != "beta")
    if not proving:
        solution = _solve_locally(problem, options, asked, progress)
    elif method == "exact":
        solution = _solve_exactly(problem, options, asked, limits, progress)
    else:
        solution = _solve_either_way(problem, options, asked, limits, progress)
    return _finished(solution, begun)


def _solve_exactly(
    problem: Problem,
    options: Options,
    asked: tuple[str, float],
    limits: tuple[float, float],
    progress: bool | None,
) -> Solution:
    """The result of `exact`, and where it proved no optimum the better one of it and `dca`."""
    found = _prove(problem, options, asked, limits, progress)
    if found.status in (Status.OPTIMAL, Status.INTERRUPTED):
        return found
    end = time.perf_counter() + max(limits[0], AUTO_SECONDS)
    local = _solve_locally(problem, replace(options, end=end), asked, progress, _channel(problem, found))
    if local.objective >= found.objective:
        return found
    note = f"dca improved the release that exact had found by {found.objective - local.objective:.2g} bit."
    return _bounded(replace(found, mechanism=local.mechanism), found, note)


def _solve_either_way(
    problem: Problem,
    options: Options,
    asked: tuple[str, float],
    limits: tuple[float, float],
    progress: bool | None,
) -> Solution:
    """What `auto` does: `exact` for a while, and where that proves no optimum, `dca` from what it found."""
    from .exact.entry import worth_trying

    if not worth_trying(problem, asked):
        local = _solve_locally(problem, options, asked, progress)
        return replace(
            local, notes=(*local.notes, "auto left exact out: the joint is too large for a proof.")
        )
    seconds = min(limits[0], AUTO_SECONDS)
    found = _prove(problem, options, asked, (seconds, limits[1]), progress, UNLISTED_SECONDS)
    if found.status in (Status.OPTIMAL, Status.INTERRUPTED):
        return found
    local = _solve_locally(problem, options, asked, progress, _channel(problem, found))
    note = (
        f"auto tried exact first, for {found.seconds:.1f} s: the optimum was not proved "
        f"({found.status.name}), its bound is kept, and dca went on from its release."
    )
    return _bounded(local, found, note)


def _prove(
    problem: Problem,
    options: Options,
    asked: tuple[str, float],
    limits: tuple[float, float],
    progress: bool | None,
    unlisted_seconds: float = np.inf,
) -> Solution:
    """The result of `exact` alone."""
    from .exact.engine import Limits
    from .exact.entry import solve_exact
    from .exact.master import Target

    kind, value = asked
    target = Target(kind, value if kind == "beta" else value * NATS_PER_BIT)
    # Rounding alone is worth 1e-12 bit; less than that cannot be proved.
    within = Limits(max(options.tol, 1e-11), *limits, unlisted_seconds)
    return solve_exact(problem, target, within, n_workers(options.n_jobs), options.seed, progress)


def _channel(problem: Problem, solution: Solution) -> FloatArray:
    """The release on the letters that occur."""
    return np.ascontiguousarray(solution.mechanism.p_z_given_x[problem.rows])


def _bounded(solution: Solution, proved: Solution, note: str) -> Solution:
    """The solution with what was proved about all releases, and a note on how it was found."""
    bound = None if proved.lower_bound is None else min(proved.lower_bound, solution.objective)
    return replace(solution, lower_bound=bound, notes=(*proved.notes, note))


def _solve_locally(
    problem: Problem,
    options: Options,
    asked: tuple[str, float],
    progress: bool | None,
    start: FloatArray | None = None,
) -> Solution:
    """The best that a local method finds, not worse than the release `start`."""
    search = Search(problem, options)
    kind, value = asked
    with progress_bar(f"Solving with {options.method}", progress) as report:
        if kind == "beta":
            runs = search.run([value], [] if start is None else [start], report)
            best = min(runs, key=lambda run: run.objective)
            mechanism, status = problem.mechanism(best.p), best.status
            history, n_steps = best.history / NATS_PER_BIT, best.n_steps
        else:
            if start is not None:
                search.add_release(start)
            search.run(_first_betas(options.method, FIRST_BETAS), report=report)
            if options.method == "greedy" and kind == "min_utility":
                search.add_native_greedy(value)
            history = np.array(search.refine(**{kind.split("_")[1]: value}))
            front = search.frontier
            wanted = value if kind == "min_utility" else front.utility_at(value)
            mechanism, status = front.mechanism_at(wanted), _status_at(front, wanted)
            n_steps = search.n_steps
    return Solution(
        joint=problem.joint,
        mechanism=mechanism,
        method=options.method,
        status=status,
        **{kind: value},
        history=history,
        n_steps=n_steps,
        notes=_notes(problem, options.method),
    )


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
    check_method(method, n_z)
    limits = check_limits(time_limit, node_limit)
    checked = None if betas is None else check_betas(betas)
    total = whole_number("n_points", n_points)
    problem = Problem(joint)
    options = make_options(problem, method, n_z, n_starts, alpha, penalty, tol, max_steps, rng, n_jobs)
    check_size(problem, options, whole=True)
    if method == "exact" or (method == "auto" and n_z is None and _likely_provable(problem)):
        from .exact.engine import Limits
        from .exact.entry import frontier_exact

        front = frontier_exact(
            problem,
            checked,
            total,
            Limits(max(options.tol, 1e-11), *limits),
            n_workers(n_jobs),
            options.seed,
            progress,
        )
        return _warned_front(joint, front, front.points)
    search = Search(problem, options)
    with progress_bar(f"Frontier with {options.method}", progress) as report:
        if checked is not None:
            search.run(checked, report=report)
        else:
            search.run(_first_betas(options.method, min(total, FIRST_BETAS)), report=report)
            search.trace(total, report)
    return _warned_front(joint, search.frontier, search.points)


def perfect_privacy(joint: Joint) -> Solution:
    """Find the most useful release that tells nothing at all about Y, for a known P(X,Y).

    Maximises I(Z;X) subject to I(Z;Y) = 0, with a proof: `Solution.lower_bound` is one on −I(Z;X). A utility
    of 0 means it is proved that no useful release is perfectly private. The mechanism's leakage is 0 up to
    rounding.
    """
    from .exact.entry import perfect_solution

    begun = time.perf_counter()
    return _finished(perfect_solution(joint), begun)


def _finished(solution: Solution, begun: float) -> Solution:
    """The solution with notes and warnings on what its numbers do not say by themselves."""
    notes = solution.notes
    limit, most = solution.max_leakage, solution.joint.mutual_information
    if limit is not None and limit >= most > 0.0:
        notes = (
            f"The limit max_leakage = {limit:g} bit does nothing: releasing X itself leaks {most:.4g} bit, "
            "I(X;Y). Ask for less to hide something.",
            *notes,
        )
    few = solution.few_records()
    if few is not None:
        notes = (few, *notes)
        warnings.warn(few, FewRecordsWarning, stacklevel=3)
    if not solution.status.ok:
        warnings.warn(f"{solution.method}: {solution.status.value}", ConvergenceWarning, stacklevel=3)
    return replace(solution, notes=notes, seconds=time.perf_counter() - begun)


def _warned_front(joint: Joint, front: Frontier, points: Sequence[TradeoffPoint]) -> Frontier:
    few = few_records(joint)
    if few is not None:
        warnings.warn(
            f"{few}: on new people a release may leak far more than its point says; solve tells how much. "
            "Merge rare letters, or use fewer columns.",
            FewRecordsWarning,
            stacklevel=3,
        )
    early = [point for point in points if point.status is not None and not point.status.ok]
    if early:
        warnings.warn(
            f"{early[0].method}: {len(early)} of {len(points)} runs stopped before their stop rule was met; "
            "their best results are among the points. The status of each point says why.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return front


def _likely_provable(problem: Problem) -> bool:
    from .exact.entry import likely_provable

    return likely_provable(problem)


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
