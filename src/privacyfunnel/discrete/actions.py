"""Other measures than information, any number of private values: releases whose symbols are answered by a
finite set of actions.

Of a symbol z the reader makes an answer: a point, a prediction of the task, one of the answers of a table of
costs. For a fixed finite set of answers the best release is a convex problem (`convex.py`) or a linear one
(`programme.py`), so that the optimum is proved: no release *whose symbols are answered by these actions* is
better. A table of costs has no other answers, and nothing is left open. Points and predictions begin with
those of the letters, and where these are few some between them; then those that the symbols found would be
answered with best, their means, take their place beside them, and the problem is solved again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..measures import Distance, Task
from ..solution import Proof, Status, Target
from ..sparse import SparseChannel
from .exact.engine import Limits, Outcome, Watcher, line_without_search
from .exact.master import Line
from .exact.reduction import entropy_nats, reduce
from .exact.release import kept_to
from .mixtures import least_limited
from .problem import Problem
from .programme import least_programme

ROUNDS = 4  # of answers, at most
COARSE = 1e-3  # tolerance of all rounds but the last, as a share of the utility there is
LETTERS = 600  # whose own points are answers; of more letters the means of so many groups
BETWEEN, PAIRED = 200, ((0.2, 0.4, 0.6, 0.8), (0.5,), ())  # answers between two letters, and at which shares
MIXED = 1e-9  # of the overall shares in every prediction: no value is impossible
USED = 1e-7  # probability of a symbol whose mean is worth an answer
DUST = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)  # P(a|x) that is dropped where that costs next to nothing
DUST_SHARE = 0.02  # of the tolerance


@dataclass(frozen=True, eq=False)
class Actions:
    """Answers, and what each of them costs for each letter, in inner units."""

    cost: FloatArray  # (n_x, n_a)
    answers: FloatArray | None = None  # (n_a, d) points, or predictions as shares; None for a table of costs

    @property
    def n(self) -> int:
        return int(self.cost.shape[1])


@dataclass(frozen=True, eq=False)
class Answered(Outcome):
    """An outcome over finite actions, with what proves its line."""

    proof: Proof | None = None
    scope: str = ""
    notes: tuple[str, ...] = ()


#: What a problem over finite actions returns: a channel, the best line, whether that is as close as asked.
Solver = Callable[..., tuple[FloatArray, Line, Proof | None, Status, list[float]]]


class ActionEngine:
    """Solves one problem over finite actions for any number of targets, with the face of `exact`'s engine."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.p_x = problem.p_x / problem.p_x.sum()
        self.actions = self.first = first_actions(problem)
        self.nothing = loss_of_nothing(problem)
        self.fixed = self.first.answers is None  # whether no answers are to be added
        self.fullest: FloatArray | None = np.eye(problem.n_x) if problem.may_release_all else None

    @property
    def scope(self) -> str:
        """For which releases the bounds hold; empty for every one."""
        return "" if self.first.answers is None else f"among releases answered by {self.actions.n:,} actions"

    def find_fullest(self, limits: Limits) -> float:
        """Where X itself may not be released, find what is most useful; no utility is above the result."""
        if self.fullest is not None:
            return np.inf
        whole = Target("max_leakage", self.problem.evaluate(np.eye(self.problem.n_x))[1])
        outcome = self.solve(whole, limits)
        assert not isinstance(outcome.p, SparseChannel)
        self.fullest = outcome.p
        if self.first.answers is not None:  # near the end of what is useful no other answers will do
            self.actions = self.first = with_means(self.problem, self.first, outcome.p)[0]
        return -outcome.line.bound(whole)

    def settle_answers(self, targets: list[Target], limits: Limits) -> None:
        """Collect the answers that releases for these targets want, and add none from here on."""
        if self.fixed:
            return
        extra = []
        for target in targets:
            self.actions = self.first
            self.solve(target, Limits(COARSE, limits.seconds))
            assert self.actions.answers is not None
            extra.append(self.actions.answers[self.first.n :])
        self.actions = _joined(self.problem, self.first, np.vstack(extra))
        self.fixed = True

    def solve(self, target: Target, limits: Limits, watch: Watcher | None = None) -> Answered:
        """The best release over the actions, which are added to in rounds."""
        end = time.perf_counter() + limits.seconds
        history: list[float] = []
        start: FloatArray | None = None
        rounds, best = 0, np.inf
        tol_of_rounds = max(limits.tol, COARSE * self._unit(target))
        try:
            while not self.fixed and rounds < ROUNDS and time.perf_counter() < end - 0.5 * limits.seconds:
                rounds += 1
                p = self._solve(target, tol_of_rounds, end, start)[0]
                reached = target.objective(*self.problem.evaluate(p))
                history.append(reached)
                if watch is not None:
                    watch(
                        reached,
                        line_without_search(reduce(self.problem), target).bound(target),
                        self.actions.n,
                    )
                enough = reached > best - tol_of_rounds
                best = min(best, reached)
                self.actions, start = with_means(self.problem, self.first, p)
                if enough:
                    break
            p, line, proof, status, found = self._solve(target, limits.tol, end, start)
        except KeyboardInterrupt:
            p = np.ones((self.problem.n_x, 1))
            if target.kind == "min_utility" and self.fullest is not None:
                p = self.fullest
            line = line_without_search(reduce(self.problem), target)
            proof, status, found = None, Status.INTERRUPTED, []
        p = self._without_dust(p, target, limits.tol)
        history += found
        return Answered(
            p,
            line,
            status,
            np.array(history),
            rounds + 1,
            self.actions.n,
            0,
            proof,
            self.scope,
            (self._note(rounds + 1),),
        )

    def _solve(
        self, target: Target, tol: float, end: float, start: FloatArray | None
    ) -> tuple[FloatArray, Line, Proof | None, Status, list[float]]:
        reduction = reduce(self.problem)
        first = line_without_search(reduction, target)
        solver: Solver = least_limited if self.problem.smooth else least_programme
        p, line, proof, status, history = solver(
            self.problem, self.actions.cost, self.nothing, target, tol, end, first, start
        )
        if proof is not None and self.actions.answers is not None:
            answers = _given(self.problem, self.actions.answers)
            proof = replace(proof, arrays={**proof.arrays, "answers": answers})
        return p, line, proof, status, history

    def _unit(self, target: Target) -> float:
        """What is minimised, of all there is of it."""
        utility, leakage = self.problem.evaluate(np.eye(self.problem.n_x))
        return utility if target.kind == "max_leakage" else max(leakage, 1e-9)

    def _without_dust(self, p: FloatArray, target: Target, tol: float) -> FloatArray:
        """The channel without entries that are next to nothing, as many as cost next to nothing; its limit is
        kept."""
        p = kept_to(target, self.problem, p, self.fullest)
        before = target.objective(*self.problem.evaluate(p))
        for least in DUST:
            clean = np.where(p > least, p, 0.0)
            clean[np.arange(len(p)), p.argmax(axis=1)] += 1.0 - clean.sum(axis=1)
            clean = np.ascontiguousarray(clean[:, (clean > 0.0).any(axis=0)])
            clean = kept_to(target, self.problem, clean, self.fullest)
            if target.objective(*self.problem.evaluate(clean)) <= before + DUST_SHARE * tol:
                return clean
        return p

    def _note(self, rounds: int) -> str:
        n = self.actions.n
        if self.first.answers is None:
            return f"The {n:,} answers of the table are all there are: the bound holds for every release."
        what = "predictions" if isinstance(self.problem.measures.utility, Task) else "points"
        return (
            f"The bound holds for releases whose symbols are answered by one of {n:,} {what}, "
            f"found in {rounds} rounds; another release may be better by answers in between."
        )


def first_actions(problem: Problem) -> Actions:
    """The answers of a table of costs; or the letters' own points or predictions, and the overall mean."""
    utility = problem.measures.utility
    if isinstance(utility, Distance) and utility.kind == "costs":
        table = utility.table - utility.table.min(axis=1, keepdims=True)  # no release can take the rest away
        return Actions(np.ascontiguousarray(table * problem.utility_unit))
    places, p = _places(problem), problem.p_x / problem.p_x.sum()
    own = np.unique(places, axis=0)
    if len(own) > LETTERS:
        own = _grouped(places, p)
    answers = np.vstack([own, _between(own), p @ places])
    return Actions(_costs(problem, answers), answers)


def _between(own: FloatArray) -> FloatArray:
    """Answers between two of these, where there are few: rounds of means alone may settle beside the best."""
    i, j = np.triu_indices(len(own), 1)
    for shares in PAIRED:
        if i.size * len(shares) <= BETWEEN:
            return np.vstack([(1.0 - share) * own[i] + share * own[j] for share in shares] or [own[:0]])
    return own[:0]


def with_means(problem: Problem, first: Actions, p: FloatArray) -> tuple[Actions, FloatArray]:
    """The first actions and the means of a channel's symbols, and that channel over them."""
    joint = (problem.p_x / problem.p_x.sum())[:, None] * p
    weights = joint.sum(axis=0)
    used = weights > USED
    means = (joint[:, used] / weights[used]).T @ _places(problem)
    actions = _joined(problem, first, means)
    start = np.zeros((problem.n_x, actions.n))
    start[:, first.n :] = p[:, used] + 1e-12
    return actions, start / start.sum(axis=1, keepdims=True)


def _joined(problem: Problem, first: Actions, means: FloatArray) -> Actions:
    assert first.answers is not None
    answers = np.vstack([first.answers, means])
    return Actions(_costs(problem, answers), answers)


def _places(problem: Problem) -> FloatArray:
    """Where the letters are: their points, or P(T|x)."""
    utility = problem.measures.utility
    if isinstance(utility, Task):
        assert utility.p_t_given_x is not None
        return utility.p_t_given_x
    assert isinstance(utility, Distance)
    return utility.table


def _costs(problem: Problem, answers: FloatArray) -> FloatArray:
    """Squared distances in units of the whole; for a task −Σ_t P(t|x) log a(t), in nats."""
    places = _places(problem)
    if isinstance(problem.measures.utility, Task):
        happening = problem.p_x @ places > 0.0
        given = _given(problem, answers)
        return np.asarray(-places[:, happening] @ np.log(given[:, happening]).T)
    from scipy.spatial.distance import cdist  # by differences: relative errors stay small

    return np.asarray(cdist(places, answers, "sqeuclidean") * problem.utility_unit)


def _given(problem: Problem, answers: FloatArray) -> FloatArray:
    """The answers as the reader gives them: no prediction of a task says that what happens is impossible."""
    if not isinstance(problem.measures.utility, Task):
        return answers
    shares = problem.p_x / problem.p_x.sum() @ _places(problem)
    return np.asarray((1.0 - MIXED) * answers + MIXED * shares)


def loss_of_nothing(problem: Problem) -> float:
    """The loss V(p) of nothing released, in inner units, over all answers."""
    utility, p = problem.measures.utility, problem.p_x / problem.p_x.sum()
    if isinstance(utility, Task):
        return entropy_nats(p @ _places(problem))
    assert isinstance(utility, Distance)
    if utility.kind == "costs":
        return float((p @ first_actions(problem).cost).min())
    centred = utility.table - utility.table[0]
    centred = centred - p @ centred
    return float(p @ np.square(centred).sum(axis=1)) * problem.utility_unit


def _grouped(places: FloatArray, p: FloatArray) -> FloatArray:
    from sklearn.cluster import KMeans

    return np.asarray(KMeans(LETTERS, n_init=1, random_state=0).fit(places, sample_weight=p).cluster_centers_)
