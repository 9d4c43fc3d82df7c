"""`greedy` and `submodular`: deterministic releases, found by merging letters.

Z is a function of X, a partition of its letters into blocks. Both methods start from Z = X and merge blocks
while that lowers L = I(Z;Y) − β I(Z;X):

- `greedy` (Makhdoumi, Salamatian, Fawaz & Médard 2014): each round merges the best *pair*. In its native
  form, `greedy_with_utility`, the pair that lowers I(Z;Y) most while I(Z;X) stays above a threshold.
- `submodular` (Ding & Sadeghi 2019, "IAC-MDSF"): each round merges the best *subset* S of the blocks.

With φ(a, b) = (a+b) log(a+b) − a log a − b log b, weights w = P(z) and v(y) = P(y, z), merging blocks i and j
costs φ(w_i, w_j) nats of utility, and changes L by

    Σ_y φ(v_i(y), v_j(y)) − (1−β) φ(w_i, w_j)

A subset is a chain of such merges. Each sum of φ over a chain is a supermodular function of S, so the change
is a difference of submodular functions (see subsets.py). It is minimised exactly, by enumeration, for up to
ENUMERATED blocks, and beyond by the modular–modular procedure (Iyer & Bilmes 2012) from several starts, the
best pair among them: a round is never worse than one of `greedy` would be.

Guarantee: L falls in every round; a merge is never undone, so the result need not be the best partition. For
β ≥ 1 no merge helps (data processing), and Z = X is returned, which is optimal. Ties are never merged, which
keeps utility: β = 0 ends at leakage 0 with all blocks apart whose P(Y|z) are alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from ..arrays import BoolArray, FloatArray, IntArray
from .problem import NATS_PER_BIT, Problem
from .subsets import ROUND_OFF, add_to, enumerate_subsets, phi, phi_rows, search_subsets, subset_change

ENUMERATED = 14  # blocks up to which all subsets are tried: 16,384
UTILITY_SLACK = 1e-12  # nats below min_utility that count as reaching it


@dataclass(frozen=True, eq=False)
class Partition:
    """A deterministic release: letter i of the problem's X is released as labels[i]."""

    labels: IntArray  # (n_x,) 0, 1, … in the order in which they first appear
    history: FloatArray  # what was minimised after 0, 1, … rounds, nats
    n_rounds: int

    @property
    def n_z(self) -> int:
        return int(self.labels.max()) + 1


def greedy(problem: Problem, beta: float) -> Partition:
    """Merge the pair of blocks that lowers L = I(Z;Y) − β I(Z;X) most, until none does: O(n_x² n_y)."""
    blocks = _start(problem, beta)
    return _finish(problem, beta, blocks, _merge_pairs(blocks, 1.0 - beta, np.inf))


def greedy_with_utility(problem: Problem, min_utility: float) -> Partition:
    """Merge the pair that lowers I(Z;Y) most of those that keep I(Z;X) ≥ min_utility bits, until none does.

    The history is I(Z;Y). Where even Z = X has less utility, it is returned unmerged.
    """
    blocks = _start(problem, 0.0)
    budget = (problem.joint.entropy_x - min_utility) * NATS_PER_BIT + UTILITY_SLACK
    return _finish(problem, 0.0, blocks, _merge_pairs(blocks, 1.0, budget))


def submodular(problem: Problem, beta: float, rng: np.random.Generator | None = None) -> Partition:
    """Merge the subset of blocks that lowers L = I(Z;Y) − β I(Z;X) most, until none does.

    `rng` only serves alphabets of more than ENUMERATED letters. By default it is always the same: its
    permutations are an inner detail of a method that has no random starts.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    blocks = _start(problem, beta)
    changes: list[float] = []
    kappa = 1.0 - beta
    while beta < 1.0:
        alive = np.flatnonzero(blocks.alive)
        data = blocks.w[alive], blocks.v[alive], blocks.log_w[alive], blocks.log_v[alive]
        if alive.size <= ENUMERATED:
            chosen = enumerate_subsets(*data, kappa)
        else:
            pair = np.isin(alive, _best_pair(blocks, np.inf))
            chosen = search_subsets(*data, kappa, pair, rng)
        change, cost = subset_change(*data, kappa, chosen)
        if change >= -ROUND_OFF * cost:
            break
        changes.append(change)
        _merge(blocks, alive[chosen], kappa, np.inf)
    return _finish(problem, beta, blocks, np.array(changes))


def as_channel(labels: IntArray) -> FloatArray:
    """The channel (n_x, n_z) of a partition: P(z|x) = 1 where labels[x] = z."""
    return np.eye(int(labels.max()) + 1)[labels]


class _Blocks(NamedTuple):
    """The blocks of the partition so far, in place: a merged block keeps the row of its first member."""

    w: FloatArray  # (n,) P(z)
    v: FloatArray  # (n, n_y) P(y, z)
    log_w: FloatArray
    log_v: FloatArray
    alive: BoolArray
    labels: IntArray  # row of each letter's block
    change: FloatArray  # (n, n) of L if the pair is merged; +inf for what is no pair
    cost: FloatArray  # (n, n) in utility, nats
    partner: IntArray  # the best other block for each, −1 where there is none


def _start(problem: Problem, beta: float) -> _Blocks:
    n = problem.n_x
    with np.errstate(divide="ignore"):
        logs = np.log(problem.p_x), np.log(problem.p_xy)
    blocks = _Blocks(
        w=problem.p_x.copy(),
        v=problem.p_xy.copy(),
        log_w=logs[0],
        log_v=logs[1],
        alive=np.ones(n, dtype=np.bool_),
        labels=np.arange(n),
        change=np.full((n, n), np.inf),
        cost=np.zeros((n, n)),
        partner=np.full(n, -1),
    )
    if beta < 1.0:
        _fill_pairs(blocks, 1.0 - beta)
    return blocks


def _finish(problem: Problem, beta: float, blocks: _Blocks, changes: FloatArray) -> Partition:
    _, first, inverse = np.unique(blocks.labels, return_index=True, return_inverse=True)
    labels = np.argsort(np.argsort(first))[inverse]
    joint = problem.joint
    start = NATS_PER_BIT * (joint.mutual_information - beta * joint.entropy_x)
    history = start + np.concatenate([[0.0], np.cumsum(changes)])
    return Partition(labels.astype(np.intp), history, len(changes))


@njit(nogil=True, cache=True)
def _fill_pairs(blocks: _Blocks, kappa: float) -> None:
    n = blocks.w.size
    for i in range(n):
        for j in range(i):
            _fill_pair(blocks, kappa, i, j)
    for i in range(n):
        _find_partner(blocks, i, np.inf)


@njit(nogil=True, cache=True)
def _fill_pair(blocks: _Blocks, kappa: float, i: int, j: int) -> None:
    cost = phi(blocks.w[i], blocks.w[j], blocks.log_w[i], blocks.log_w[j])
    change = phi_rows(blocks.v[i], blocks.v[j], blocks.log_v[i], blocks.log_v[j]) - kappa * cost
    blocks.change[i, j] = change
    blocks.change[j, i] = change
    blocks.cost[i, j] = cost
    blocks.cost[j, i] = cost


@njit(nogil=True, cache=True)
def _find_partner(blocks: _Blocks, i: int, budget: float) -> None:
    best, partner = np.inf, -1
    for j in range(blocks.w.size):
        if blocks.change[i, j] < best and blocks.cost[i, j] <= budget:
            best, partner = blocks.change[i, j], j
    blocks.partner[i] = partner


@njit(nogil=True, cache=True)
def _best_pair(blocks: _Blocks, budget: float) -> tuple[int, int]:
    """The pair of lowest change whose cost the budget allows; (−1, −1) if there is none.

    The budget only shrinks from round to round: a pair that is too dear once need not be looked at again.
    """
    best, first, second = np.inf, -1, -1
    for i in range(blocks.w.size):
        if not blocks.alive[i]:
            continue
        j = blocks.partner[i]
        if j >= 0 and blocks.cost[i, j] > budget:
            _find_partner(blocks, i, budget)
            j = blocks.partner[i]
        if j >= 0 and blocks.change[i, j] < best:
            best, first, second = blocks.change[i, j], i, j
    return min(first, second), max(first, second)


@njit(nogil=True, cache=True)
def _merge(blocks: _Blocks, members: IntArray, kappa: float, budget: float) -> None:
    """Merge the members (ascending) into the first, and renew only what touches them."""
    n = blocks.w.size
    target = members[0]
    for k in range(1, members.size):
        other = members[k]
        blocks.alive[other] = False
        blocks.w[target] += blocks.w[other]
        add_to(blocks.v[target], blocks.log_v[target], blocks.v[other])
        for i in range(n):
            blocks.change[other, i] = np.inf
            blocks.change[i, other] = np.inf
            if blocks.labels[i] == other:
                blocks.labels[i] = target
    blocks.log_w[target] = np.log(blocks.w[target])
    for i in range(n):
        if blocks.alive[i] and i != target:
            _fill_pair(blocks, kappa, i, target)
            j = blocks.partner[i]
            if j < 0 or j == target or not blocks.alive[j]:
                _find_partner(blocks, i, budget)
            elif blocks.change[i, target] < blocks.change[i, j] and blocks.cost[i, target] <= budget:
                blocks.partner[i] = target
    _find_partner(blocks, target, budget)


@njit(nogil=True, cache=True)
def _merge_pairs(blocks: _Blocks, kappa: float, budget: float) -> FloatArray:
    """All rounds of `greedy`, in place; the change of L in each."""
    changes = np.empty(blocks.w.size)
    n_rounds = 0
    while True:
        i, j = _best_pair(blocks, budget)
        if i < 0 or blocks.change[i, j] >= -ROUND_OFF * blocks.cost[i, j]:
            return changes[:n_rounds].copy()
        changes[n_rounds] = blocks.change[i, j]
        n_rounds += 1
        budget -= blocks.cost[i, j]
        _merge(blocks, np.array([i, j]), kappa, budget)
