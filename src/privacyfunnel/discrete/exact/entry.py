"""What `solve`, `frontier` and `perfect_privacy` call for method="exact"; a measure's own unit outside,
inner units (nats, shares) inside."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...arrays import FloatArray
from ...errors import InfeasibleError
from ...measures import largest_lift
from ...progress import progress_bar, status_line
from ...solution import Proof, Solution, Status, Target
from ...sparse import Channel, SparseChannel
from ...tradeoff import Frontier, TradeoffPoint
from ..actions import ActionEngine, Answered
from ..batch import Task, random_starts, run_tasks
from ..problem import Problem
from .coarser import Coarser, best_coarser
from .engine import Engine, Limits, Outcome, Watcher
from .many import Dealt, ManyEngine
from .master import ROUNDING, Line
from .perfect import n_sets, perfect_release, proved_release
from .reduction import Reduction, reduce
from .release import ROUND_OFF, claim, evaluate, kept_to, objective_of, tidied, within_lift

MOST_LETTERS = 1000  # with distinct P(Y|x)
MANY = 200  # letters from which on clusters of them come first, for a binary Y
MOST_PAIRS = 20_000_000  # pairs of such letters times letters of Y: seconds to find those that get on
MOST_SETS = 200_000  # of letters that perfect privacy lists on the way to something else
# Local starts that are offered as columns: of each β, where it is not given of this many.
N_STARTS, MOST_SYMBOLS, N_BETAS = 4, 32, 8
# Utilities at which a frontier looks for its widest gap, and the gap (bits) that counts as closed.
GRID, KNOWN = 512, 1e-6
NEARLY_ALL = 0.999
FIRST_SHARE = 0.6  # of the time, before private values are merged for a bound
SHARES = (0.3, 0.6, 0.9)  # of the utility there is, for which a frontier over finite actions collects answers
FREE = Target("max_leakage", 0.0)


def in_clusters(problem: Problem) -> bool:
    """Whether letters are many, and solved in clusters, without any table of letters and symbols."""
    return problem.measures.plain and problem.n_y <= 2 and problem.n_x > MANY


def likely_provable(problem: Problem) -> bool:
    """Whether a certificate is likely within minutes: measured in benchmarks/exact.py."""
    if in_clusters(problem):
        return True
    reduction = reduce(problem)
    if reduction.channel.shape[1] == 2:
        return reduction.n <= MOST_LETTERS
    return n_sets(reduction) <= MOST_SETS


def worth_trying(problem: Problem, target: Target) -> bool:
    """Whether a proof can be begun, and left again, within seconds."""
    reduction = reduce(problem)
    n = reduction.n
    if target == FREE:
        # The listing of perfectly private posteriors has no time limit.
        return n_sets(reduction) <= MOST_SETS if problem.n_y > 2 else n <= MOST_LETTERS
    if in_clusters(problem):
        return True
    return n <= MOST_LETTERS and n * n * problem.n_y <= MOST_PAIRS


def solve_exact(
    problem: Problem,
    asked: Target,
    limits: Limits,
    n_workers: int,
    seed: np.random.SeedSequence,
    progress: bool | None,
) -> Solution:
    """Solve one target, given in its own unit; `limits` are in inner units."""
    target = problem.inner(asked)
    begun = time.perf_counter()
    coarser: Coarser | None = None
    settled = _without_search(problem, asked, target)
    if settled is not None:
        p, bound = settled
        outcome = Outcome(p, Line(0.0, 0.0), Status.OPTIMAL, np.empty(0), 0, 0, 0)
    else:
        engine = _engine(_searched(problem, target), n_workers, seed)
        # Pairs are priced exactly from the first round on: local solutions would cost more than they save.
        if isinstance(engine, Engine) and problem.measures.plain and not engine.pricing.in_pairs:
            offer_local_solutions(engine, _first_betas(target), seed)
        with status_line("Solving with exact", progress) as show:
            if target.kind == "min_utility":
                _require_reachable(problem, asked, target, engine.find_fullest(limits), engine.fullest)
            first = _first_limits(problem, limits)
            outcome = engine.solve(_limited(problem, target), first, _watcher(show, problem, asked.kind))
        p = within_lift(problem, tidied(problem, outcome.p, target, limits.tol))
        bound = _bound(problem, p, target, outcome)
        coarser = _coarser(problem, target, p, outcome, bound, limits, begun, n_workers, seed)
        if coarser is not None:
            bound = coarser.line.bound(target)
    status, bound = claim(problem, p, target, outcome.status, bound, limits.tol)
    return Solution(
        joint=problem.joint,
        mechanism=problem.mechanism(p),
        method="exact",
        status=status,
        target=asked,
        measures=problem.asked,
        lower_bound=problem.outer(asked.kind, bound),
        history=problem.outer(asked.kind, outcome.history),
        n_steps=outcome.n_rounds,
        seconds=time.perf_counter() - begun,
        notes=_notes(outcome) if coarser is None else (*_notes(outcome), coarser.said()),
        scope=outcome.scope if isinstance(outcome, Answered) else "",
        proof=outcome.proof if isinstance(outcome, Answered) else _proof(problem, outcome.line, coarser),
    )


def _first_betas(target: Target) -> list[float]:
    """Of the local solutions that are offered as columns."""
    return [target.value] if target.kind == "beta" else np.geomspace(0.01, 0.99, N_BETAS).tolist()


def _mergeable(problem: Problem) -> bool:
    return problem.measures.plain and problem.n_y > 2


def _first_limits(problem: Problem, limits: Limits) -> Limits:
    """What the proof for Y itself may take: the rest is for merged values, should it not end."""
    share = FIRST_SHARE if _mergeable(problem) else 1.0
    return replace(limits, seconds=share * limits.seconds)


def _coarser(
    problem: Problem,
    target: Target,
    p: Channel,
    outcome: Outcome,
    bound: float,
    limits: Limits,
    begun: float,
    n_workers: int,
    seed: np.random.SeedSequence,
) -> Coarser | None:
    """A better bound from merged private values, in the time that is left; None where there is none."""
    if outcome.status in (Status.OPTIMAL, Status.INTERRUPTED) or not _mergeable(problem):
        return None
    left = begun + limits.seconds - time.perf_counter()

    def prove(coarse: Problem, within: Limits) -> Line:
        engine = Engine(coarse, n_workers, seed)
        offer_local_solutions(engine, _first_betas(target), seed)
        return engine.solve(target, within).line

    try:
        objective = objective_of(problem, p, target)
        return best_coarser(problem, target, objective, bound, replace(limits, seconds=left), prove)
    except KeyboardInterrupt:
        return None


def _engine(
    problem: Problem, n_workers: int, seed: np.random.SeedSequence
) -> Engine | ActionEngine | ManyEngine:
    """What solves the problem: over all posteriors, from clusters of letters on, or over finite actions."""
    if in_clusters(problem):
        return ManyEngine(problem, n_workers, seed)
    return ActionEngine(problem) if problem.finite else Engine(problem, n_workers, seed)


def _bound(problem: Problem, p: Channel, target: Target, outcome: Outcome) -> float:
    """The bound of an outcome on what is minimised. One for finite actions does not hold for answers in
    between, and the release found may have better ones."""
    bound = outcome.line.bound(target)
    if isinstance(outcome, Answered) and outcome.scope:
        return min(bound, objective_of(problem, p, target))
    return bound


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
    engine = _engine(problem, n_workers, seed)
    points = _free_point(problem, limits, n_workers, seed) if betas is None else []
    front = Frontier.for_joint(problem.joint, points, measures=problem.asked)
    if engine.fullest is None:
        engine.find_fullest(limits)
        assert engine.fullest is not None
        fullest = within_lift(problem, engine.fullest)
        most = _point(problem, fullest, {"max_lift": problem.asked.max_lift}, None)
        front = replace(front, points=(*front.points, most))
    if isinstance(engine, ActionEngine):
        assert engine.fullest is not None
        most_useful = problem.evaluate(engine.fullest)[0]
        engine.settle_answers([Target("min_utility", share * most_useful) for share in SHARES], limits)
        front = replace(front, scope=engine.scope)
    total = n_points if betas is None else len(betas)
    with progress_bar("Frontier with exact", progress) as report:
        for done in range(total):
            asked = Target("beta", betas[done]) if betas is not None else _widest_gap(front)
            if not done and betas is None and not problem.measures.plain:
                # Other releases than X itself can be as useful, but for rounding, and leak less.
                asked = Target("min_utility", NEARLY_ALL * front.max_utility)
            if asked is None:
                break
            target = problem.inner(asked)
            outcome = engine.solve(target, limits)
            p = within_lift(problem, tidied(problem, outcome.p, target, limits.tol))
            bound = _bound(problem, p, target, outcome)
            status, _ = claim(problem, p, target, outcome.status, bound, limits.tol)
            point = _point(problem, p, {asked.kind: asked.value}, status)
            line = problem.outer_line(outcome.line.beta, outcome.line.value)
            front = replace(front, points=(*front.points, point), support_lines=(*front.support_lines, line))
            report(done + 1, total)
            if outcome.status is Status.INTERRUPTED:
                break
    return _above_lines(front) if front.scope else front


def _above_lines(front: Frontier) -> Frontier:
    """The frontier with lines for finite actions moved below points that have better answers in between."""
    lines = [
        (beta, min(value, *(point.leakage - beta * point.utility for point in front.points)))
        for beta, value in front.support_lines
    ]
    return replace(front, support_lines=tuple(lines))


def _point(problem: Problem, p: Channel, settings: dict[str, Any], status: Status | None) -> TradeoffPoint:
    measures = problem.measures
    utility, leakage = measures.utility_of(problem.p_x, p), measures.leakage_of(problem.p_xy, p)
    return TradeoffPoint(utility, leakage, "exact", problem.mechanism(p), settings, status)


def _free_point(
    problem: Problem, limits: Limits, n_workers: int, seed: np.random.SeedSequence
) -> list[TradeoffPoint]:
    """The best release that leaks no more than saying nothing, where listing its candidates is quick."""
    reduction = reduce(problem)
    if n_sets(reduction) > MOST_SETS:
        return []
    if problem.measures.leakage == "success":
        chance = problem.measures.without_release(problem.p_y)
        found = solve_exact(problem, Target(FREE.kind, chance), limits, n_workers, seed, progress=False)
        return [TradeoffPoint.from_solution(found)]
    listed, most = perfect_release(reduction)
    p = _within_limits(problem, listed, FREE)
    status, _ = claim(problem, p, FREE, Status.OPTIMAL, -most, KNOWN * problem.tol_unit(FREE.kind))
    return [_point(problem, p, {FREE.kind: FREE.value}, status)]


def _widest_gap(front: Frontier) -> Target | None:
    """The utility, halfway in at first, at which least is known; None when the curve is known everywhere."""
    most = front.max_utility
    utilities = np.linspace(0.0, most, GRID + 1)[1:-1]
    hull = np.array([front.leakage_at(u) for u in utilities])
    proved = np.array([front.lower_bound_at(u) or front.least_leakage for u in utilities])
    widest = int(np.argmax(hull - proved))
    if hull[widest] - proved[widest] <= KNOWN:
        return None
    return Target("min_utility", float(utilities[widest]))


def perfect_solution(problem: Problem) -> Solution:
    """See `privacyfunnel.perfect_privacy`."""
    p, most, prices = proved_release(reduce(problem))
    status, bound = claim(problem, p, FREE, Status.OPTIMAL, -most, KNOWN * problem.tol_unit(FREE.kind))
    return Solution(
        joint=problem.joint,
        mechanism=problem.mechanism(p),
        method="exact",
        status=status,
        target=FREE,
        measures=problem.asked,
        lower_bound=problem.outer(FREE.kind, bound),
        proof=None
        if prices is None
        else Proof("private", np.inf, most, {"prices": _by_letter(problem, prices)}),
    )


def offer_local_solutions(engine: Engine, betas: Sequence[float], seed: np.random.SeedSequence) -> None:
    """Give the engine the posteriors of a few quick `dca` runs as columns."""
    problem = engine.problem
    starts = random_starts(seed, "dca", problem.n_x, min(problem.n_x + 1, MOST_SYMBOLS), N_STARTS)
    tasks = [Task(beta, start=start) for beta in betas for start in starts]
    for run in run_tasks(problem, "dca", tasks, tol=1e-7, max_steps=200):
        engine.add(run.p)


def _without_search(problem: Problem, asked: Target, target: Target) -> tuple[Channel, float] | None:
    """Channel and bound where the answer is known: nothing asked for, everything allowed, or nothing to
    tell."""
    nothing, everything = np.ones((problem.n_x, 1)), SparseChannel.identity(problem.n_x)
    if target.kind != "max_leakage" and target.value == 0.0:
        return nothing, 0.0
    utility, leakage = evaluate(problem, everything)
    reduction = reduce(problem)
    lift = problem.measures.max_lift
    open_ = lift is None or largest_lift(problem.p_xy, everything) <= lift
    if open_ and (reduction.rank == 1 or (target.kind == "max_leakage" and target.value >= leakage)):
        most = utility * (1.0 + ROUNDING) + reduction.slack
        # Letters of next to no probability may be all there is of a private value, and give it away.
        gives_away = target.kind == "beta" and target.objective(utility, leakage) > 0.0
        if gives_away or target.excess(utility, leakage) > ROUND_OFF:
            return nothing, target.objective(most, 0.0)
        return everything, target.objective(most, 0.0)
    private = target == FREE and problem.measures.leakage != "success"
    if (private or lift == 0.0) and not _over_answers(problem, reduction):
        listed, most = perfect_release(reduction)
        p = _within_limits(problem, listed, target)
        if target.kind == "min_utility":
            _require_reachable(problem, asked, target, most, p)
        return p, target.objective(most, 0.0)
    return None


def _within_limits(problem: Problem, p: Channel, target: Target) -> Channel:
    """A release that was listed and not searched, changed so that it keeps its limits, whatever is rare.

    It tells nothing but for rounding, which of a private value that next to nobody has can be all there is.
    """
    p = within_lift(problem, p)
    return kept_to(target, problem, p) if target.kind == "max_leakage" else p


def _over_answers(problem: Problem, reduction: Reduction) -> bool:
    """Whether perfect privacy, too, is a matter of finite actions: there are too many posteriors to list."""
    return problem.finite and n_sets(reduction) > MOST_SETS


def _searched(problem: Problem, target: Target) -> Problem:
    """The problem with the best guess held fast, where it may not get better, and with symbols that may tell
    nothing, where nothing may be told."""
    if target != FREE:
        return problem
    if problem.finite:
        nothing_told = replace(problem.asked, leakage="parity", max_lift=0.0)
        return problem if problem.measures.leakage == "success" else replace(problem, asked=nothing_told)
    return replace(problem, same_guess=True) if problem.measures.leakage == "success" else problem


def _limited(problem: Problem, target: Target) -> Target:
    """The target of the linear programme: without a row where the problem that is searched says it all."""
    return target if _searched(problem, target) is problem else Target(FREE.kind, 1.0)


def _require_reachable(
    problem: Problem, asked: Target, target: Target, most: float, fullest: Channel | None
) -> None:
    """InfeasibleError where the limit on lift leaves no release that is as useful as was asked for."""
    best = np.inf if fullest is None else evaluate(problem, fullest)[0]
    if target.value <= best + ROUND_OFF:
        return
    unit, scale = problem.utility_unit, problem.asked.scale
    # Over finite actions other answers may do better than all that was looked at.
    among = problem.finite and scale.utility != "cost"
    proved = "proved impossible" if target.value > most and not among else "not reached"
    none = "" if among else f", and none has more than {most / unit:.6g}"
    raise InfeasibleError(
        f"solve: min_utility = {asked.value:g}{scale.utility_unit} with max_lift = {scale.max_lift:g} bit is "
        f"{proved}: the most useful release found has {best / unit:.6g}{none}. Ask for less, or allow more.",
        names=("min_utility", "max_lift"),
    )


def _proof(problem: Problem, line: Line, coarser: Coarser | None) -> Proof | None:
    """What anybody can check the line of a search with; prices of classes are those of their letters."""
    if coarser is not None:
        whole = _proof(coarser.problem, coarser.line, None)
        if whole is None:
            return None
        return replace(
            whole, kind="merged", arrays={**whole.arrays, "groups": coarser.groups.astype(np.float64)}
        )
    if line.prices is None:
        return None
    arrays = {"prices": _by_letter(problem, line.prices), "largest": np.array(line.largest)}
    return Proof("posteriors", line.beta, line.value, arrays)


def _by_letter(problem: Problem, prices: FloatArray) -> FloatArray:
    """The prices of classes for each of their letters; NaN for letters that were left out as negligible."""
    found, reduction = np.full(problem.n_x, np.nan), reduce(problem)
    found[reduction.letters] = prices[reduction.class_of]
    return found


def _watcher(show: object, problem: Problem, kind: str) -> Watcher | None:
    if not callable(show):
        return None
    unit = problem.asked.scale.objective_unit(kind)

    def watch(objective: float, bound: float, columns: int) -> None:
        proved = problem.outer(kind, bound)
        gap = problem.outer(kind, objective) - proved
        show(f"bound {proved:.6f}, gap {gap:.2g}{unit}, {columns:,} columns")

    return watch


def _notes(outcome: Outcome) -> tuple[str, ...]:
    if isinstance(outcome, Answered):
        return outcome.notes
    if not outcome.n_rounds:
        return ()
    return (
        *((outcome.note,) if isinstance(outcome, Dealt) else ()),
        f"{outcome.n_rounds} rounds, {outcome.n_columns:,} columns, "
        f"{outcome.n_nodes:,} branch-and-bound nodes.",
    )
