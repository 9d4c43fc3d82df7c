"""What `solve`, `frontier` and `perfect_privacy` call for method="exact"; bits outside, nats inside."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...frontier import Frontier
from ...information import utility_and_leakage
from ...joint import Joint
from ...progress import progress_bar, status_line
from ...solution import Solution, Status
from ...tradeoff import TradeoffPoint
from ..batch import Task, random_starts, run_tasks
from ..problem import NATS_PER_BIT, FloatArray, Problem
from .engine import Engine, Limits, Outcome, Watcher
from .master import ROUNDING, Line, Target
from .perfect import perfect_release
from .pricing import n_faces
from .reduction import reduce
from .release import claim, evaluate, tidied

MOST_LETTERS = 1000  # with distinct P(Y|x)
MOST_PAIRS = 20_000_000  # pairs of such letters times letters of Y: seconds to find those that get on
MOST_FACES = 200_000
# Local starts that are offered as columns: of each β, where it is not given of this many.
N_STARTS, MOST_SYMBOLS, N_BETAS = 4, 32, 8
# Utilities at which a frontier looks for its widest gap, and the gap (bits) that counts as closed.
GRID, KNOWN = 512, 1e-6
FREE = Target("max_leakage", 0.0)


def likely_provable(problem: Problem) -> bool:
    """Whether a certificate is likely within minutes: measured in benchmarks/exact.py."""
    reduction = reduce(problem)
    if reduction.channel.shape[1] == 2:
        return reduction.n <= MOST_LETTERS
    return n_faces(reduction.n, reduction.rank) <= MOST_FACES


def worth_trying(problem: Problem, asked: tuple[str, float]) -> bool:
    """Whether a proof can be begun, and left again, within seconds."""
    if asked == ("max_leakage", 0.0):
        return likely_provable(problem)  # the listing of perfectly private posteriors has no time limit
    n = reduce(problem).n
    return n <= MOST_LETTERS and n * n * problem.n_y <= MOST_PAIRS


def solve_exact(
    problem: Problem,
    target: Target,
    limits: Limits,
    n_workers: int,
    seed: np.random.SeedSequence,
    progress: bool | None,
) -> Solution:
    """Solve one target. `target` and `limits` are in nats."""
    begun = time.perf_counter()
    joint = problem.joint
    settled = _without_search(problem, target)
    if settled is not None:
        p, bound = settled
        outcome = Outcome(p, Line(0.0, 0.0), Status.OPTIMAL, np.empty(0), 0, 0, 0)
    else:
        engine = Engine(problem, n_workers, seed)
        betas = [target.value] if target.kind == "beta" else np.geomspace(0.01, 0.99, N_BETAS).tolist()
        offer_local_solutions(engine, betas, seed)
        with status_line("Solving with exact", progress) as show:
            outcome = engine.solve(target, limits, _watcher(show))
        p = tidied(problem, outcome.p, target, limits.tol)
        bound = target.bound(outcome.line)
    status, bound = claim(problem, p, target, outcome.status, bound, limits.tol)
    return Solution(
        joint=joint,
        mechanism=problem.mechanism(p),
        method="exact",
        status=status,
        beta=target.value if target.kind == "beta" else None,
        min_utility=target.value / NATS_PER_BIT if target.kind == "min_utility" else None,
        max_leakage=target.value / NATS_PER_BIT if target.kind == "max_leakage" else None,
        lower_bound=bound / NATS_PER_BIT,
        history=outcome.history / NATS_PER_BIT,
        n_steps=outcome.n_rounds,
        seconds=time.perf_counter() - begun,
        notes=_notes(outcome),
    )


def frontier_exact(
    problem: Problem,
    betas: Sequence[float] | None,
    n_points: int,
    limits: Limits,
    n_workers: int,
    seed: np.random.SeedSequence,
    progress: bool | None,
) -> Frontier:
    """Certified points and the lines below all releases; posteriors carry over from point to point.

    With `betas`, one point for each. Else n_points utilities, each where the proved curve and the hull of the
    points found so far are furthest apart.
    """
    engine = Engine(problem, n_workers, seed)
    front = Frontier.for_joint(problem.joint, _free_point(engine) if betas is None else [])
    total = n_points if betas is None else len(betas)
    with progress_bar("Frontier with exact", progress) as report:
        for done in range(total):
            target = Target("beta", betas[done]) if betas is not None else _widest_gap(front)
            if target is None:
                break
            outcome = engine.solve(target, limits)
            p = tidied(problem, outcome.p, target, limits.tol)
            utility, leakage = utility_and_leakage(problem.p_xy, p)
            settings = {target.kind: target.value / (1.0 if target.kind == "beta" else NATS_PER_BIT)}
            bound = target.bound(outcome.line)
            status, _ = claim(problem, p, target, outcome.status, bound, limits.tol)
            point = TradeoffPoint(utility, leakage, "exact", problem.mechanism(p), settings, status)
            line = (outcome.line.beta, outcome.line.value / NATS_PER_BIT)
            front = replace(front, points=(*front.points, point), support_lines=(*front.support_lines, line))
            report(done + 1, total)
            if outcome.status is Status.INTERRUPTED:
                break
    return front


def _free_point(engine: Engine) -> list[TradeoffPoint]:
    """The best perfectly private release, where listing its candidates is quick."""
    reduction = engine.reduction
    if n_faces(reduction.n, reduction.rank) > MOST_FACES:
        return []
    p, most = perfect_release(reduction)
    status, _ = claim(engine.problem, p, FREE, Status.OPTIMAL, -most, KNOWN * NATS_PER_BIT)
    utility, leakage = utility_and_leakage(engine.problem.p_xy, p)
    mechanism = engine.problem.mechanism(p)
    return [TradeoffPoint(utility, leakage, "exact", mechanism, {"max_leakage": 0.0}, status)]


def _widest_gap(front: Frontier) -> Target | None:
    """The utility, halfway in at first, at which least is known; None when the curve is known everywhere."""
    most = front.max_utility
    utilities = np.linspace(0.0, most, GRID + 1)[1:-1]
    hull = np.array([front.leakage_at(u) for u in utilities])
    proved = np.array([front.lower_bound_at(u) or 0.0 for u in utilities])
    widest = int(np.argmax(hull - proved))
    if hull[widest] - proved[widest] <= KNOWN:
        return None
    return Target("min_utility", float(utilities[widest]) * NATS_PER_BIT)


def perfect_solution(joint: Joint) -> Solution:
    """See `privacyfunnel.perfect_privacy`."""
    problem = Problem(joint)
    p, most = perfect_release(reduce(problem))
    status, bound = claim(problem, p, FREE, Status.OPTIMAL, -most, KNOWN * NATS_PER_BIT)
    return Solution(
        joint=joint,
        mechanism=problem.mechanism(p),
        method="exact",
        status=status,
        max_leakage=0.0,
        lower_bound=bound / NATS_PER_BIT,
    )


def offer_local_solutions(engine: Engine, betas: Sequence[float], seed: np.random.SeedSequence) -> None:
    """Give the engine the posteriors of a few quick `dca` runs as columns."""
    problem = engine.problem
    starts = random_starts(seed, "dca", problem.n_x, min(problem.n_x + 1, MOST_SYMBOLS), N_STARTS)
    tasks = [Task(beta, start=start) for beta in betas for start in starts]
    for run in run_tasks(problem, "dca", tasks, tol=1e-7, max_steps=200):
        engine.add(run.p)


def _without_search(problem: Problem, target: Target) -> tuple[FloatArray, float] | None:
    """Channel and bound where the answer is known: nothing asked for, everything allowed, or nothing to
    tell."""
    nothing, everything = np.ones((problem.n_x, 1)), np.eye(problem.n_x)
    if target.kind != "max_leakage" and target.value == 0.0:
        return nothing, 0.0
    utility, leakage = evaluate(problem, everything)
    reduction = reduce(problem)
    if reduction.rank == 1 or (target.kind == "max_leakage" and target.value >= leakage):
        most = utility * (1.0 + ROUNDING) + reduction.slack
        return everything, target.objective(most, 0.0)
    if target.kind == "max_leakage" and target.value == 0.0:
        p, most = perfect_release(reduction)
        return p, -most
    return None


def _watcher(show: object) -> Watcher | None:
    if not callable(show):
        return None

    def watch(objective: float, bound: float, columns: int) -> None:
        gap = (objective - bound) / NATS_PER_BIT
        show(f"bound {bound / NATS_PER_BIT:.6f}, gap {gap:.2g} bit, {columns:,} columns")

    return watch


def _notes(outcome: Outcome) -> tuple[str, ...]:
    if not outcome.n_rounds:
        return ()
    return (
        f"{outcome.n_rounds} rounds, {outcome.n_columns:,} columns, "
        f"{outcome.n_nodes:,} branch-and-bound nodes.",
    )
