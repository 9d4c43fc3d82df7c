"""The ways to one solution: a local search, a proof, and both, one after the other."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..frontier import Frontier
from ..progress import progress_bar
from ..solution import Solution, Status
from .batch import PAPER_METHODS, n_workers
from .problem import NATS_PER_BIT, FloatArray, Problem
from .search import Options, Search, corners_around

FIRST_BETAS = 16  # how many values of β a constrained search looks at before its own slopes
AUTO_SECONDS = 20.0  # that auto gives exact, and exact at least gives dca where nothing was proved
LEAST_TOL = 1e-11  # nats: rounding alone is worth a tenth of it, and less cannot be proved
UNLISTED_SECONDS = 5.0  # of these, where there are more sets of letters than can be listed for a proof


def solve_exactly(
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
    local = solve_locally(problem, replace(options, end=end), asked, progress, _channel(problem, found))
    if local.objective >= found.objective:
        return found
    note = f"dca improved the release that exact had found by {found.objective - local.objective:.2g} bit."
    return _bounded(replace(found, mechanism=local.mechanism), found, note)


def solve_either_way(
    problem: Problem,
    options: Options,
    asked: tuple[str, float],
    limits: tuple[float, float],
    progress: bool | None,
) -> Solution:
    """What `auto` does: `exact` for a while, and where that proves no optimum, `dca` from what it found."""
    from .exact.entry import worth_trying

    if not worth_trying(problem, asked):
        local = solve_locally(problem, options, asked, progress)
        return replace(
            local, notes=(*local.notes, "auto left exact out: the joint is too large for a proof.")
        )
    seconds = min(limits[0], AUTO_SECONDS)
    found = _prove(problem, options, asked, (seconds, limits[1]), progress, UNLISTED_SECONDS)
    if found.status in (Status.OPTIMAL, Status.INTERRUPTED):
        return found
    local = solve_locally(problem, options, asked, progress, _channel(problem, found))
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
    within = Limits(max(options.tol, LEAST_TOL), *limits, unlisted_seconds)
    return solve_exact(problem, target, within, n_workers(options.n_jobs), options.seed, progress)


def _channel(problem: Problem, solution: Solution) -> FloatArray:
    """The release on the letters that occur."""
    return np.ascontiguousarray(solution.mechanism.p_z_given_x[problem.rows])


def _bounded(solution: Solution, proved: Solution, note: str) -> Solution:
    """The solution with what was proved about all releases, and a note on how it was found."""
    bound = None if proved.lower_bound is None else min(proved.lower_bound, solution.objective)
    return replace(solution, lower_bound=bound, notes=(*proved.notes, note))


def solve_locally(
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
            search.run(first_betas(options.method, FIRST_BETAS), report=report)
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


def first_betas(method: str, n: int) -> list[float]:
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
