"""All pairs at once: the threshold holds for the prices that come out, and blocks are no excuse."""

import numpy as np
import pytest
from discrete.exact.test_pairs import binary_entropy, brute_force

from privacyfunnel.discrete.exact.blocks import (
    MARGIN,
    build_blocks,
    lifted_prices,
    open_shares,
    raise_prices,
)
from privacyfunnel.discrete.exact.pairs import price_pairs


def raised_prices(t, prices, beta, threshold, nodes=10**9):
    """The prices after one pass; in pieces of `nodes`."""
    parts, shape = build_blocks(t, prices)
    stack, shares = np.zeros((4096, 2), dtype=np.int64), np.zeros((4096, 2))
    shares[0, 1] = 1.0
    raised, height = np.zeros(t.size), 1
    while height:
        height = raise_prices(
            t, 1 - t, prices, beta, threshold, parts, shape, stack, shares, height, nodes, raised
        )
    return prices + raised


def largest(t, prices, beta):
    """The largest G over all pairs and letters, one by one."""
    n = t.size
    found = np.full(n, -np.inf), np.zeros(n, dtype=np.intp), np.zeros(n)
    bound = price_pairs(0, n, 1, t, 1 - t, prices, beta, -np.inf, *found)
    return max(bound, (binary_entropy(t) - prices).max())


def letters(rng, kind, n):
    """Sorted t of several shapes."""
    t = {
        "even": lambda: rng.random(n),
        "ends": lambda: np.concatenate([[0.0, 1.0], rng.random(n - 2)]),
        "low": lambda: rng.random(n) ** 9,
        "both ends": lambda: rng.beta(0.05, 0.05, n),
        "two heaps": lambda: np.where(rng.random(n) < 0.5, 0.2, 0.7) + 1e-6 * rng.random(n),
    }[kind]()
    return np.unique(t)


KINDS = ["even", "ends", "low", "both ends", "two heaps"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beta", [0.0, 0.01, 0.1, 0.5, 0.97])
def test_no_pair_is_above_the_threshold(kind, beta):
    rng = np.random.default_rng(KINDS.index(kind))
    for threshold in (1e-2, 1e-5, 1e-9):
        t = letters(rng, kind, int(rng.integers(12, 90)))
        prices = binary_entropy(t) + rng.choice([0.0, 1e-3, 0.1]) * rng.random(t.size)
        after = raised_prices(t, prices, beta, threshold)
        assert np.all(after >= prices)
        assert largest(t, after, beta) <= threshold + 1e-12
        # What is below the threshold stays as it is, but for the margin.
        np.testing.assert_allclose(raised_prices(t, after + 1e-9, beta, threshold), after + 1e-9, atol=1e-11)


def test_the_slow_twin_agrees():
    rng = np.random.default_rng(5)
    t = np.sort(rng.random(25))
    prices = binary_entropy(t) + 0.01 * rng.random(25)
    assert brute_force(t, prices, 0.1).max() > 0.1
    after = raised_prices(t, prices, 0.1, 1e-4)
    assert brute_force(t, after, 0.1).max() <= 1e-4 + 1e-12


def test_pieces_of_the_work_change_nothing():
    rng = np.random.default_rng(2)
    t = np.sort(rng.random(80))
    prices = binary_entropy(t) + 0.02 * rng.random(80)
    whole = raised_prices(t, prices, 0.05, 1e-4)
    np.testing.assert_array_equal(whole, raised_prices(t, prices, 0.05, 1e-4, nodes=7))


def test_blocks_hold_their_letters_and_lie_below_their_prices():
    rng = np.random.default_rng(3)
    t = letters(rng, "both ends", 300)
    prices = binary_entropy(t) + 0.1 * rng.random(t.size)
    parts, shape = build_blocks(t, prices)
    for (first, end, child), (middle, radius, slope, floor, size) in zip(parts, shape, strict=True):
        here = slice(first, end)
        assert np.all(np.abs(t[here] - middle) <= radius)
        assert np.all(floor + slope * (t[here] - middle) <= prices[here])
        assert size == np.abs(prices[here]).max()
        if child >= 0:
            assert parts[child, 0] == first
            assert parts[child, 1] == parts[child + 1, 0]
            assert parts[child + 1, 1] == end


@pytest.mark.parametrize("beta", [0.02, 0.3])
def test_shares_that_are_closed_hold_no_maximum_above_the_threshold(beta):
    rng = np.random.default_rng(4)
    seen = 0
    for _ in range(60):
        t = np.sort(rng.random(40))
        prices = binary_entropy(t) + 0.05 * rng.random(40)
        parts, shape = build_blocks(t, prices)
        a, b = rng.integers(len(parts), size=2)
        if parts[a, 1] > parts[b, 0]:
            continue
        threshold = float(rng.choice([0.0, 0.05, 0.3]))
        low, high = open_shares(shape[a], shape[b], 0.0, 1.0, beta, threshold)
        for i in range(*parts[a, :2]):
            for j in range(*parts[b, :2]):
                s = np.linspace(0, 1, 401)[1:-1]
                at = (1 - s) * t[i] + s * t[j]
                g = binary_entropy(at) - beta * binary_entropy(s) - (1 - s) * prices[i] - s * prices[j]
                bends_down = beta * at * (1 - at) <= (t[j] - t[i]) ** 2 * s * (1 - s)
                closed = ((s < low) | (s > high)) & bends_down
                assert np.all(g[closed] <= threshold + 1e-12)
                seen += int(closed.sum())
    assert seen > 10_000


@pytest.mark.parametrize("beta", [0.01, 0.2, 0.8])
def test_lifted_prices_are_the_least_that_close_all_pairs(beta):
    rng = np.random.default_rng(1)
    t, at = np.sort(rng.random(15)), rng.random(30)
    prices = raised_prices(t, binary_entropy(t) + 0.01 * rng.random(15), beta, 1e-9)
    found = np.empty(30)
    lifted_prices(at, 1 - at, t, 1 - t, prices, beta, found)
    s = np.linspace(0, 1, 4001)[:-1]  # share of the old letter
    for x in range(30):
        here = (1 - s) * at[x] + s * t[:, None]
        least = (binary_entropy(here) - beta * binary_entropy(s) - s * prices[:, None]) / (1 - s)
        best = max(least[:, s < 0.999].max(), binary_entropy(at[x]))
        assert best - 1e-9 <= found[x] <= best + 1e-4


def test_the_margin_covers_the_rounding_of_the_bounds():
    """Against exact fractions of the inputs: a block of one letter each, and a share that is a point."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(7)
    for _ in range(300):
        t = np.sort(10.0 ** -rng.uniform(0, 16, size=2))
        if rng.random() < 0.5:
            t = np.sort(1 - t)
        prices = binary_entropy(t) + 10.0 ** rng.uniform(-8, 1, size=2)
        s, beta = float(rng.random()), 0.1
        with mpmath.workdps(60):
            r, at = (
                1 - mpmath.mpf(s),
                (1 - mpmath.mpf(s)) * mpmath.mpf(t[0]) + mpmath.mpf(s) * mpmath.mpf(t[1]),
            )
            h = [-x * mpmath.log(x) - (1 - x) * mpmath.log(1 - x) if 0 < x < 1 else 0 for x in (at, s)]
            exact = h[0] - beta * h[1] - r * mpmath.mpf(prices[0]) - mpmath.mpf(s) * mpmath.mpf(prices[1])
        single = np.array([[x, MARGIN * 1e-2, 0.0, price, price] for x, price in zip(t, prices, strict=True)])
        # A threshold below the value must leave the share open, if a maximum may be there at all.
        low, high = open_shares(single[0], single[1], s, s, beta, float(exact) - 1e-15)
        bends_down = beta * float(at * (1 - at)) < (t[1] - t[0]) ** 2 * s * (1 - s)
        assert not bends_down or low <= s <= high
