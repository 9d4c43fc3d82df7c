"""The ways to one solution: a local search, and a proof that a local search goes on from."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..arrays import FloatArray
from ..parallel import n_workers
from ..progress import progress_bar
from ..solution import Solution, Status, Target
from ..tradeoff import Frontier
from .methods import Method
from .problem import NATS_PER_BIT, Problem
from .search import Options, Search, corners_around

FIRST_BETAS = 16  # how many values of β a constrained search looks at before its own slopes
AUTO_SECONDS = 20.0  # that auto gives exact, and exact at least gives dca where nothing was proved
LEAST_TOL = 1e-11  # nats: rounding alone is worth a tenth of it, and less cannot be proved


def solve_with_proof(
    problem: Problem,
    options: Options,
    target: Target,
    limits: tuple[float, float],
    progress: bool | None,
    *,
    insist: bool,
) -> Solution:
    """The result of `exact`, and where it proved no optimum, `dca` goes on from the release that it found.

    `exact` insists: it takes its time, and the better one of the two releases is returned. `auto` gives it a
    while, if a proof can be begun at all, and returns what `dca` found.
    """
    from .exact.engine import Limits
    from .exact.entry import MOST_LETTERS, solve_exact, worth_trying

    if not insist and not worth_trying(problem, target):
        local = solve_locally(problem, options, target, progress)
        return replace(
            local, notes=(*local.notes, "auto left exact out: the joint is too large for a proof.")
        )
    seconds, nodes = limits
    given = seconds if insist else min(seconds, AUTO_SECONDS)
    within = Limits(max(options.tol, LEAST_TOL), given, nodes)
    found = solve_exact(problem, target, within, n_workers(options.n_jobs), options.seed, progress)
    if found.status in (Status.OPTIMAL, Status.INTERRUPTED):
        return found
    if problem.n_x > MOST_LETTERS and problem.n_y == 2:
        note = "dca was left out: it needs tables of all letters and symbols."
        return replace(found, notes=(*found.notes, note))
    if insist:
        options = replace(options, end=time.perf_counter() + max(seconds, AUTO_SECONDS))
    start = np.ascontiguousarray(found.mechanism.p_z_given_x[problem.rows])  # on the letters that occur
    local = solve_locally(problem, options, target, progress, start)
    if not insist:
        note = (
            f"auto tried exact first, for {found.seconds:.1f} s: the optimum was not proved "
            f"({found.status.name}), its bound is kept, and dca went on from its release."
        )
    elif local.objective < found.objective:
        gain = found.objective - local.objective
        local = replace(found, mechanism=local.mechanism)
        note = f"dca improved the release that exact had found by {gain:.2g} bit."
    else:
        return found
    bound = None if found.lower_bound is None else min(found.lower_bound, local.objective)
    return replace(local, lower_bound=bound, notes=(*found.notes, note))


def solve_measured(
    problem: Problem,
    options: Options,
    target: Target,
    limits: tuple[float, float],
    progress: bool | None,
) -> Solution:
    """The result for other measures than information: proved, for every release or for finite answers."""
    from .exact.engine import Limits
    from .exact.entry import solve_exact

    within = Limits(max(options.tol, LEAST_TOL), *limits)
    return solve_exact(problem, target, within, n_workers(options.n_jobs), options.seed, progress)


def solve_locally(
    problem: Problem,
    options: Options,
    target: Target,
    progress: bool | None,
    start: FloatArray | None = None,
) -> Solution:
    """The best that a local method finds, not worse than the release `start`."""
    search = Search(problem, options)
    with progress_bar(f"Solving with {options.method}", progress) as report:
        if target.kind == "beta":
            runs = search.run([target.value], [] if start is None else [start], report)
            best = min(runs, key=lambda run: run.objective)
            mechanism, status = problem.mechanism(best.p), best.status
            history, n_steps = best.history / NATS_PER_BIT, best.n_steps
        else:
            if start is not None:
                search.add_release(start)
            search.run(search.method.first_betas(FIRST_BETAS), report=report)
            if target.kind == "min_utility":
                search.add_own_form(target.value)
            history = np.array(search.refine(target))
            front = search.frontier
            wanted = target.value if target.kind == "min_utility" else front.utility_at(target.value)
            mechanism, status = front.mechanism_at(wanted), _status_at(front, wanted)
            n_steps = search.n_steps
    return Solution(
        joint=problem.joint,
        mechanism=mechanism,
        method=options.method,
        status=status,
        target=target,
        history=history,
        n_steps=n_steps,
        notes=_notes(problem, search.method),
    )


def _status_at(front: Frontier, utility: float) -> Status:
    """The status of the corners around a utility: the first that is not ok, or one of them."""
    corners = corners_around(front, utility)
    found = [point.status for point in corners if point.status is not None]
    return next((status for status in found if not status.ok), found[0] if found else Status.FINISHED)


def _notes(problem: Problem, method: Method) -> tuple[str, ...]:
    if method.full_rank and problem.rank < problem.n_y:
        return (
            f"P(Y|X) has rank {problem.rank} with {problem.n_y} letters of Y; the paper assumes full row "
            "rank. The step's target is a least-squares one.",
        )
    return ()
