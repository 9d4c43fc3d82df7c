"""Leakage and utility on joints drawn around an empirical one, and the bias of measuring on a sample."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray
from .information import log2_or_zero, utility_and_leakage
from .sparse import Channel, SparseChannel

#: Entries of a block of draws; bounds the memory whatever the size of the tables (32 MB).
BLOCK = 1 << 22
#: Bits below which a spread is none.
ROUNDING = 1e-12


def least_leakage(
    p_xy: FloatArray,
    table: Channel,
    n: int,
    measured: float,
    tail: float,
    n_draws: int,
    rng: np.random.Generator,
) -> float:
    """The least leakage of a mixture of p_xy and independence that explains the measured one.

    On P_t = (1 − t) p_x p_y + t p_xy the upper quantile of the measured leakage rises with t from the one
    of independence; the answer is where it passes the measured one, found by the Illinois method.
    """
    independent = np.outer(p_xy.sum(axis=1), p_xy.sum(axis=0))

    def leakage(t: float) -> float:
        return utility_and_leakage((1 - t) * independent + t * p_xy, table)[1]

    def excess(t: float) -> float:
        draws = sampled_leakage((1 - t) * independent + t * p_xy, table, n, n_draws, rng)
        return float(np.quantile(draws, 1 - tail)) - measured

    if measured <= ROUNDING:
        return measured
    right, at_right = 1.0, excess(1.0)
    spread = at_right
    if spread <= ROUNDING:
        # Samples cannot leak more than the measured one: what counts is how often others leak as much.
        share = _solve_rising(excess, -ROUNDING)
        return leakage(share) if share > 0 else 0.0
    # Taking the spread at t = 1 for the one lower down is a little too careful, so this is a left end.
    guess = _solve_rising(leakage, measured - spread) if measured > spread else 0.0
    left, at_left = guess, excess(guess)
    if at_left > 0 and guess > 0:
        right, at_right = guess, at_left
        left, at_left = 0.0, excess(0.0)
    if at_left >= 0:
        return 0.0
    for _ in range(8):
        middle = right - at_right * (right - left) / (at_right - at_left)
        at_middle = excess(middle)
        # The quantile itself is only known to a few per cent of the spread.
        if abs(at_middle) <= 0.03 * spread:
            break
        if at_middle > 0:
            right, at_right, at_left = middle, at_middle, at_left / 2
        else:
            left, at_left, at_right = middle, at_middle, at_right / 2
    return leakage(middle)


def _solve_rising(function: Callable[[float], float], value: float) -> float:
    """Where in [0, 1] a rising function passes a value, to 1e-4."""
    low, high = 0.0, 1.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return low


def leakage_bias(p_xy: FloatArray, table: Channel, n: int) -> float:
    """The first-order bias of measured leakage in bits: ½ tr(Hessian · covariance of the frequencies).

    With s(y,z) = Σ_x p(x,y) p(z|x)² it is (Σ s(y,z)/p(y,z) − Σ s(z)/p(z) − n_y + 1) / (2 n ln 2), which is
    (n_z − 1)(n_y − 1) / (2 n ln 2) where p(z|x) is 0 or 1.
    """
    p_yz, square_yz = p_xy.T @ table, p_xy.T @ table**2
    p_z, square_z = p_yz.sum(axis=0), square_yz.sum(axis=0)
    both, either = p_yz > 0, p_z > 0
    n_y = np.count_nonzero(p_yz.sum(axis=1))
    trace = (square_yz[both] / p_yz[both]).sum() - (square_z[either] / p_z[either]).sum() - n_y + 1
    return float(trace) / (2 * n * math.log(2))


def posterior_leakage(
    counts: FloatArray, table: Channel, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Leakage on joints drawn from Dirichlet(counts); combinations never seen stay at 0."""
    cells = counts.T > 0
    y, x = np.nonzero(cells)
    shapes = counts.T[cells]
    return _leakages(lambda size: rng.standard_gamma(shapes, (size, shapes.size)), x, y, table, n_draws)


def sampled_leakage(
    p_xy: FloatArray, table: Channel, n: int, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Leakage measured on n records drawn from p_xy, n_draws times."""
    cells = p_xy.T > 0
    y, x = np.nonzero(cells)
    p = p_xy.T[cells] / p_xy.sum()
    return _leakages(lambda size: rng.multinomial(n, p, size).astype(np.float64), x, y, table, n_draws)


def _leakages(
    draw: Callable[[int], FloatArray],
    x: NDArray[np.intp],
    y: NDArray[np.intp],
    table: Channel,
    n_draws: int,
) -> FloatArray:
    """Leakage on joints whose weights on the cells (x, y), sorted by y, come from `draw` in blocks."""
    letters, starts = np.unique(y, return_index=True)
    bounds = [*starts.tolist(), y.size]
    result = np.empty(n_draws)
    block = max(1, BLOCK // max(y.size, letters.size * table.shape[1]))
    for begin in range(0, n_draws, block):
        weights = draw(min(block, n_draws - begin))
        weights /= weights.sum(axis=1, keepdims=True)
        p_yz = np.empty((len(weights), letters.size, table.shape[1]))
        for i in range(letters.size):
            cells = slice(bounds[i], bounds[i + 1])
            p_yz[:, i] = weights[:, cells] @ table[x[cells]]
        result[begin : begin + block] = _negative_entropy(p_yz, (1, 2)) - (
            _negative_entropy(p_yz.sum(axis=1), 1) + _negative_entropy(p_yz.sum(axis=2), 1)
        )
    return np.maximum(result, 0.0)


def posterior_utility(
    counts: FloatArray, table: Channel, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Utility on distributions of X drawn from Dirichlet(counts)."""
    seen = counts > 0
    shapes, rows = counts[seen], table[seen]
    if isinstance(rows, SparseChannel):
        terms = rows.probabilities * np.log2(rows.probabilities)
        noise = np.bincount(rows.rows, terms, len(rows)).astype(np.float64)
    else:
        noise = _negative_entropy(rows, 1)
    result = np.empty(n_draws)
    block = max(1, BLOCK // max(rows.shape))
    for begin in range(0, n_draws, block):
        weights = rng.standard_gamma(shapes, (min(block, n_draws - begin), shapes.size))
        weights /= weights.sum(axis=1, keepdims=True)
        result[begin : begin + block] = weights @ noise - _negative_entropy(weights @ rows, 1)
    return np.maximum(result, 0.0)


def _negative_entropy(p: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    total: FloatArray = (p * log2_or_zero(p)).sum(axis=axis)
    return total
