"""The subset of blocks whose merging lowers the Lagrangian most: compiled search for `submodular`. Nats.

Merging two blocks of weights a and b costs φ(a, b) = (a+b) log(a+b) − a log a − b log b, and a subset S is a
chain of such merges. With U(S) the sum of φ over the chain for the weights w = P(z), V(S) that for all
v(y) = P(y, z), and κ = 1 − β, merging S changes L by

    V(S) − κ U(S)

U and V are supermodular (adding a block to a larger subset costs more) and 0 for a single block.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..arrays import BoolArray, FloatArray, IntArray

# A merge must lower L by more than this share of the utility it costs; below is rounding error.
ROUND_OFF = 1e-13
N_RANDOM_STARTS = 8


@njit(nogil=True, cache=True)
def phi(a: float, b: float, log_a: float, log_b: float) -> float:
    """φ(a, b), as a sum of terms that are not negative: exact to rounding however unequal a and b are."""
    if a < b:
        a, b, log_a, log_b = b, a, log_b, log_a
    if b <= 0.0:
        return 0.0
    return float((a + b) * np.log1p(b / a) + b * (log_a - log_b))


@njit(nogil=True, cache=True)
def phi_rows(a: FloatArray, b: FloatArray, log_a: FloatArray, log_b: FloatArray) -> float:
    """Σ_y φ(a(y), b(y))."""
    total = 0.0
    for y in range(a.size):
        total += phi(a[y], b[y], log_a[y], log_b[y])
    return total


@njit(nogil=True, cache=True)
def add_to(sums: FloatArray, log_sums: FloatArray, row: FloatArray) -> None:
    """Add a row to sums and renew their logarithms, −inf for 0."""
    for y in range(sums.size):
        sums[y] += row[y]
        log_sums[y] = np.log(sums[y]) if sums[y] > 0.0 else -np.inf


@njit(nogil=True, cache=True)
def subset_change(
    w: FloatArray, v: FloatArray, log_w: FloatArray, log_v: FloatArray, kappa: float, chosen: BoolArray
) -> tuple[float, float]:
    """V(S) − κ U(S) and U(S) of the chosen blocks S; w (m,), v (m, n_y)."""
    sum_w, change, cost = 0.0, 0.0, 0.0
    sum_v, log_sum_v = np.zeros(v.shape[1]), np.full(v.shape[1], -np.inf)
    for i in range(w.size):
        if chosen[i]:
            if sum_w > 0.0:
                step = phi(sum_w, w[i], np.log(sum_w), log_w[i])
                cost += step
                change += phi_rows(sum_v, v[i], log_sum_v, log_v[i]) - kappa * step
            sum_w += w[i]
            add_to(sum_v, log_sum_v, v[i])
    return change, cost


@njit(nogil=True, cache=True)
def enumerate_subsets(
    w: FloatArray, v: FloatArray, log_w: FloatArray, log_v: FloatArray, kappa: float
) -> BoolArray:
    """The best of all subsets; of equally good ones a smallest, which keeps most utility.

    Depth first, each subset from its parent by one addition, so that no sum is ever reduced and zeros stay.
    """
    m, n_y = v.shape
    sum_w, log_sum_w = np.zeros(m + 1), np.full(m + 1, -np.inf)
    sum_v, log_sum_v = np.zeros((m + 1, n_y)), np.full((m + 1, n_y), -np.inf)
    change, cost = np.zeros(m + 1), np.zeros(m + 1)
    path = np.empty(m + 1, dtype=np.intp)
    chosen = np.zeros(m, dtype=np.bool_)
    best, best_size = 0.0, 1
    depth, following = 0, 0
    while following < m or depth > 0:
        if following == m:
            following = path[depth] + 1
            depth -= 1
            continue
        i, below = following, depth + 1
        step = phi(sum_w[depth], w[i], log_sum_w[depth], log_w[i])
        gain = phi_rows(sum_v[depth], v[i], log_sum_v[depth], log_v[i])
        cost[below] = cost[depth] + step
        change[below] = change[depth] + gain - kappa * step
        sum_w[below] = sum_w[depth] + w[i]
        log_sum_w[below] = np.log(sum_w[below])
        for y in range(n_y):
            sum_v[below, y] = sum_v[depth, y]
        add_to(sum_v[below], log_sum_v[below], v[i])
        path[below] = i
        slack = ROUND_OFF * cost[below]
        if change[below] < best - slack or (change[below] <= best + slack and below < best_size):
            best, best_size = change[below], below
            for k in range(m):
                chosen[k] = False
            for k in range(1, below + 1):
                chosen[path[k]] = True
        depth, following = below, following + 1
    return chosen


def search_subsets(
    w: FloatArray,
    v: FloatArray,
    log_w: FloatArray,
    log_v: FloatArray,
    kappa: float,
    first: BoolArray,
    rng: np.random.Generator,
) -> BoolArray:
    """A subset at least as good as the first: descent from it, from all blocks, and from random subsets."""
    n = N_RANDOM_STARTS
    random = [rng.random(w.size) < (k + 1) / (n + 1) for k in range(n)]
    best, best_change = first, subset_change(w, v, log_w, log_v, kappa, first)[0]
    for start in (first, np.ones_like(first), *random):
        chosen, change = _descend(w, v, log_w, log_v, kappa, start)
        if change < best_change:
            best, best_change = chosen, change
    return best


def _descend(
    w: FloatArray, v: FloatArray, log_w: FloatArray, log_v: FloatArray, kappa: float, chosen: BoolArray
) -> tuple[BoolArray, float]:
    """Modular–modular descent (Iyer & Bilmes 2012), and where it ends single blocks in or out.

    At S, V is bounded from above by its gains along an order that begins with S, and U from below by one of

        U(T) ≥ U(S) − Σ_{S∖T} U(j | S∖j)
        U(T) ≥ U(S) − Σ_{S∖T} U(j | all∖j) + Σ_{T∖S} U(j | S)

    Either way the bound on the change falls apart into one term a block, and the blocks with a negative term
    are the next S. The first can only drop blocks, the second hardly ever does.
    """
    data = w, v, log_w, log_v
    change, cost = subset_change(*data, kappa, chosen)
    _, loss_from_all = _single_moves(*data, np.ones_like(chosen))
    while True:
        gain, loss = _single_moves(*data, chosen)
        switch = np.where(chosen, -1.0, 1.0) * (gain - kappa * loss)
        # S, the blocks it would rather lose last, then the others, the most welcome first.
        order = np.lexsort((np.where(chosen, -switch, switch), ~chosen))
        along = _gains_along(v, log_v, order)
        flipped = chosen.copy()
        flipped[np.argmin(switch)] ^= True
        for trial in (
            chosen & (along < kappa * loss),
            along < kappa * np.where(chosen, loss_from_all, loss),
            flipped,
        ):
            trial_change, trial_cost = subset_change(*data, kappa, trial)
            if trial_change < change - ROUND_OFF * (cost + trial_cost):
                chosen, change, cost = trial, trial_change, trial_cost
                break
        else:
            return chosen, change


@njit(nogil=True, cache=True)
def _single_moves(
    w: FloatArray, v: FloatArray, log_w: FloatArray, log_v: FloatArray, chosen: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """V(j | S∖j) and U(j | S∖j) for each block j, in S or not."""
    m, n_y = v.shape
    gain, loss = np.empty(m), np.empty(m)
    sum_v, rest, log_rest = np.zeros(n_y), np.empty(n_y), np.empty(n_y)
    sum_w = 0.0
    for j in range(m):
        if chosen[j]:
            sum_w += w[j]
            for y in range(n_y):
                sum_v[y] += v[j, y]
    for j in range(m):
        share = 1.0 if chosen[j] else 0.0
        # Rounding may leave a difference below 0; it only guides the search.
        rest_w = max(sum_w - share * w[j], 0.0)
        loss[j] = phi(rest_w, w[j], np.log(rest_w) if rest_w > 0.0 else -np.inf, log_w[j])
        for y in range(n_y):
            rest[y] = max(sum_v[y] - share * v[j, y], 0.0)
            log_rest[y] = np.log(rest[y]) if rest[y] > 0.0 else -np.inf
        gain[j] = phi_rows(rest, v[j], log_rest, log_v[j])
    return gain, loss


@njit(nogil=True, cache=True)
def _gains_along(v: FloatArray, log_v: FloatArray, order: IntArray) -> FloatArray:
    """V(j | the blocks before j in the order)."""
    gains = np.empty(order.size)
    sum_v, log_sum_v = np.zeros(v.shape[1]), np.full(v.shape[1], -np.inf)
    for j in order:
        gains[j] = phi_rows(sum_v, v[j], log_sum_v, log_v[j])
        add_to(sum_v, log_sum_v, v[j])
    return gains
