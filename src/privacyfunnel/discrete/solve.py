"""solve() and frontier(): the entry points of the known-distribution funnel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..checks import shown, whole_number
from ..errors import ConvergenceWarning, FewRecordsWarning, InvalidInputError
from ..joint import Joint
from ..measures import Distance, Measures, Task
from ..parallel import n_workers
from ..progress import progress_bar
from ..solution import Solution, Target
from ..tradeoff import Frontier
from ..uncertainty import few_records
from .arguments import (
    WORKING_TABLES,
    check_betas,
    check_limits,
    check_measures,
    check_method,
    check_methods,
    check_size,
    check_target,
    make_options,
    own_settings,
    require_joint,
    require_memory,
)
from .batch import as_seed
from .methods import METHODS
from .population import solve_for_population
from .problem import Problem
from .search import Options, Search
from .ways import (
    AUTO_SECONDS,
    FIRST_BETAS,
    LEAST_TOL,
    solve_locally,
    solve_measured,
    solve_with_proof,
)

TRIED_POINTS = 8  # of a frontier that auto tries to prove, where it may not come to an end


def solve(
    joint: Joint,
    *,
    beta: float | None = None,
    min_utility: float | None = None,
    max_leakage: float | Mapping[str, float] | None = None,
    utility: str | Distance | Task = "information",
    leakage: str = "information",
    max_lift: float | None = None,
    population: float | None = None,
    held_out: Any = None,
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

    With `utility` and `leakage` the same three problems in other measures and their units. For two private
    values the bounds hold for every release. For more of them, a Distance or a Task is solved over finite
    actions, and `Solution.scope` says for which releases the bound holds (docs/exact.md, section 11).

    Parameters
    ----------
    joint : Joint
        The distribution of public X and private Y.
    beta, min_utility, max_leakage : float
        The problem; see above. In the unit of the measures, where they are not information. `max_leakage`
        may be a mapping from private columns to a limit each, for a Distance or a Task: `Solution.leakage` is
        then the largest share of a limit that is used, and `Solution.leakages` has each column's own.
    utility : "information", Distance or Task
        What useful means: bits about X; closeness (`Distance`); bits about a task (`Task`).
    leakage : {"information", "success", "parity"}
        What telling means: bits about Y; the share of people whose private value the best guess gets right;
        the largest difference between two private values in the share of people that any rule on Z selects.
    max_lift : float, optional
        Besides: no symbol may make any private value more or less probable by a factor above 2 to this.
    population : float, optional
        With `max_leakage`: the limit is to hold for the population that the records come from, against every
        adversary, with this confidence, such as 0.95. A third of the records is held back for it, at random,
        and `Solution.certified` is the bound. Needs a joint with counts.
    held_out : Joint or frame, optional
        For `population`: other records of the population, instead of a third of these.
    method : str
        ``exact`` (with a certificate), ``dca`` (monotone, the default local solver), ``dca-ridge`` and
        ``dca-sparse`` (the paper's two), ``em`` and ``splitting`` (baselines), ``greedy``,
        ``submodular`` (deterministic maps).
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
        ``exact``: the gap to prove, in bits or the unit of what is minimised (a distance counts as a share
        of all there is). Others: stop rule |L_k − L_{k+1}| ≤ tol, in bits.
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
        Show a progress bar; by default when stderr is a terminal, and a line a minute when it is none.

    Returns
    -------
    Solution
        Local methods return the best of all starts; ``exact`` also gives `lower_bound` and `gap`. A solver
        that did not meet its stop rule is returned with its status and one ConvergenceWarning. Ctrl-C during
        ``exact`` returns the best so far.
    """
    begun = time.perf_counter()
    require_joint(joint, "solve")
    check_method(method, n_z)
    measures = check_measures(joint, utility, leakage, max_lift, [method], max_leakage, n_z)
    if population is not None or held_out is not None:
        given: dict[str, Any] = {
            "max_lift": max_lift,
            "method": method,
            "n_z": n_z,
            "n_starts": n_starts,
            "alpha": alpha,
            "penalty": penalty,
            "tol": tol,
            "max_steps": max_steps,
            "time_limit": time_limit,
            "node_limit": node_limit,
            "n_jobs": n_jobs,
            "progress": progress,
        }
        target = check_target(joint, beta, min_utility, max_leakage, measures)
        return solve_for_population(solve, joint, target, measures, population, held_out, as_seed(rng), given)
    target = check_target(joint, beta, min_utility, max_leakage, measures)
    limits = check_limits(time_limit, node_limit)
    problem = Problem(joint, measures)
    options = make_options(
        problem, target.kind, method, n_z, n_starts, alpha, penalty, tol, max_steps, rng, n_jobs
    )
    insist = METHODS[method].proof == "sought"
    proving = insist or (METHODS[method].proof == "tried" and n_z is None)
    if not (proving and _without_tables(problem, target)):
        check_size(problem, options, whole=proving or target.kind != "beta")
    if not measures.plain:
        solution = solve_measured(problem, options, target, limits, progress)
    elif proving:
        solution = solve_with_proof(problem, options, target, limits, progress, insist=insist)
    else:
        solution = solve_locally(problem, options, target, progress)
    if not solution.status.ok:
        ended = f"{solution.method}: {solution.status.value}"
        warnings.warn(ConvergenceWarning(ended, names=solution.status.names), stacklevel=2)
    return _finished(solution, begun)


def frontier(
    joint: Joint,
    *,
    utility: str | Distance | Task = "information",
    leakage: str = "information",
    max_lift: float | None = None,
    max_leakage: Mapping[str, float] | None = None,
    method: str | Sequence[str] = "auto",
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
    utility, leakage, max_lift
        As for `solve`.
    max_leakage : mapping from private columns to limits, optional
        For a Distance or a Task: the leakage of a point is then the largest share of a limit that it uses,
        so that at 1 all are kept, as by `solve`.
    method : str or several
        As for `solve`; ``auto`` takes ``exact`` where a proof is likely within minutes for each point, else
        ``dca``, and for more than two private values ``exact`` at a few points besides, for 20 seconds in
        all: its lines and its points are kept. Points of several methods come in one frontier, and
        `Frontier.select` gives those of one.
    n_z, n_starts, alpha, penalty, tol, max_steps, time_limit, node_limit, rng, n_jobs, progress
        As for `solve`, limits for each point. Every combination of β, n_z, α and start is run, in one batch.
        Of several methods each takes the settings that it has.
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
    require_joint(joint, "frontier")
    methods = check_methods(method, n_z)
    limits = check_limits(time_limit, node_limit)
    spent = check_betas(betas) if betas is not None else whole_number("n_points", n_points)
    if max_leakage is not None and not isinstance(max_leakage, Mapping):
        raise InvalidInputError(
            "frontier: max_leakage must be a mapping from private columns to a limit each; it is "
            f"{shown(max_leakage)}, and a frontier goes through every limit on all columns together.",
            names=("max_leakage",),
        )
    measures = check_measures(joint, utility, leakage, max_lift, methods, max_leakage, n_z)
    problem = Problem(joint, measures)
    seed = as_seed(rng)
    ways: list[tuple[Options, str]] = []
    for name in methods:
        own = own_settings(name, methods, {"n_z": n_z, "alpha": alpha, "penalty": penalty})
        options = make_options(
            problem,
            "min_utility",
            name,
            n_starts=n_starts,
            tol=tol,
            max_steps=max_steps,
            rng=seed,
            n_jobs=n_jobs,
            **own,
        )
        proof = METHODS[name].proof
        way = "prove" if not measures.plain or proof == "sought" else "search"
        if way == "search" and proof == "tried" and n_z is None:
            way = _way_to_try(problem)
        if not (way == "prove" and _without_tables(problem)):
            check_size(problem, options, whole=True)
        ways.append((options, way))
    fronts = []
    for options, way in ways:
        if way == "prove":
            fronts.append(_prove_frontier(problem, options, spent, limits, progress))
        else:
            fronts.append(_search_frontier(problem, options, spent, progress))
        _warn_of_early_stops(fronts[-1])
        if way == "both":  # after the warnings: that some of these are not proved is as expected
            fronts.append(_try_frontier(problem, options, spent, limits, progress))
    warn_of_few_records(joint)
    return fronts[0].merge(*fronts[1:])


def _prove_frontier(
    problem: Problem,
    options: Options,
    spent: list[float] | int,
    limits: tuple[float, float],
    progress: bool | None,
) -> Frontier:
    """The frontier of `exact`: for these values of β, or for so many points."""
    from .exact.engine import Limits
    from .exact.entry import frontier_exact

    betas, n_points = (spent, len(spent)) if isinstance(spent, list) else (None, spent)
    within = Limits(max(options.tol, LEAST_TOL), *limits)
    workers = n_workers(options.n_jobs)
    return frontier_exact(problem, betas, n_points, within, workers, options.seed, progress)


def _try_frontier(
    problem: Problem,
    options: Options,
    spent: list[float] | int,
    limits: tuple[float, float],
    progress: bool | None,
) -> Frontier:
    """What `exact` finds and proves at a few points, in the time that `auto` gives it for all of them."""
    few = spent[:: -(-len(spent) // TRIED_POINTS)] if isinstance(spent, list) else min(spent, TRIED_POINTS)
    count = len(few) if isinstance(few, list) else few
    seconds = min(limits[0], AUTO_SECONDS / count)
    return _prove_frontier(problem, options, few, (seconds, limits[1]), progress)


def _search_frontier(
    problem: Problem, options: Options, spent: list[float] | int, progress: bool | None
) -> Frontier:
    """The frontier of a local method: for these values of β, or for so many."""
    search = Search(problem, options)
    with progress_bar(f"Frontier with {options.method}", progress) as report:
        if isinstance(spent, list):
            search.run(spent, report=report)
        else:
            search.run(search.method.first_betas(min(spent, FIRST_BETAS)), report=report)
            search.trace(spent, report)
    return search.frontier


def perfect_privacy(joint: Joint, *, utility: str | Distance | Task = "information") -> Solution:
    """Find the most useful release that tells nothing at all about Y, for a known P(X,Y).

    Maximises I(Z;X), or another utility, subject to I(Z;Y) = 0, with a proof: `Solution.lower_bound` is one
    on −utility. A utility of 0 means it is proved that no useful release is perfectly private. The
    mechanism's leakage is 0 up to rounding.
    """
    from .exact.entry import perfect_solution

    begun = time.perf_counter()
    require_joint(joint, "perfect_privacy")
    require_memory(joint.n_x, joint.n_x, WORKING_TABLES)
    measures = Measures.of(joint, utility, "information", None)
    return _finished(perfect_solution(Problem(joint, measures)), begun)


def _finished(solution: Solution, begun: float) -> Solution:
    """The solution with notes and a warning on what its numbers do not say by themselves."""
    notes = solution.notes
    limit, measures, joint = solution.max_leakage, solution.measures, solution.joint
    if limit is not None and measures.leakage == "information" and not measures.budgets:
        if limit >= joint.mutual_information > 0.0:
            notes = (
                f"The limit max_leakage = {limit:g} bit does nothing: releasing X itself leaks "
                f"{joint.mutual_information:.4g} bit, I(X;Y). Ask for less to hide something.",
                *notes,
            )
    elif limit is not None and not measures.budgets:
        most = measures.leakage_of(joint.p_xy, np.eye(joint.n_x))
        if limit >= most > measures.without_release(joint.p_y):
            notes = (
                f"The limit max_leakage = {limit:g} does nothing: the {measures.leakage} of releasing X "
                f"itself is {most:.4g}. Ask for less to hide something.",
                *notes,
            )
    few = solution.few_records()
    if few is not None:
        notes = (few, *notes)
        warnings.warn(few, FewRecordsWarning, stacklevel=3)
    return replace(solution, notes=notes, seconds=time.perf_counter() - begun)


def warn_of_few_records(joint: Joint) -> None:
    """One warning to the caller of the caller, where letters have few records."""
    few = few_records(joint)
    if few is not None:
        warnings.warn(
            f"{few}: on new people a release may leak far more than its point says; solve tells how much. "
            "Merge rare letters, or use fewer columns.",
            FewRecordsWarning,
            stacklevel=3,
        )


def _warn_of_early_stops(front: Frontier) -> None:
    runs = [point for point in front.points if point.status is not None]
    early = [point for point in runs if point.status is not None and not point.status.ok]
    if early:
        warnings.warn(
            f"{early[0].method}: {len(early)} of {len(runs)} runs stopped before their stop rule was met; "
            "their best results are among the points. The status of each point says why.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _way_to_try(problem: Problem) -> str:
    """What auto does for a frontier: prove it, search and try a few proofs, or only search."""
    from .exact.entry import likely_provable, worth_trying

    if likely_provable(problem):
        return "prove"
    return "both" if problem.n_y > 2 and worth_trying(problem, Target("beta", 0.5)) else "search"


def _without_tables(problem: Problem, target: Target | None = None) -> bool:
    """Whether a proof needs no table of letters and symbols: a binary Y, unless nothing at all may leak."""
    from .exact.entry import FREE, in_clusters

    return target != FREE and in_clusters(problem)
