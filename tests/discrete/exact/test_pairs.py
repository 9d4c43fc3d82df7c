import numpy as np
import pytest

from privacyfunnel.discrete.exact.pairs import price_pairs


def binary_entropy(t):
    t = np.clip(t, 0, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.nan_to_num(t * np.log(t)) - np.nan_to_num((1 - t) * np.log1p(-t))


def brute_force(t, prices, beta, n_grid=4001):
    """The largest reduced value of every pair on a fine grid of shares, away from the ends."""
    s = np.linspace(0, 1, n_grid)[1:-1]
    values = np.full((t.size, t.size), -np.inf)
    for i in range(t.size):
        for j in range(i + 1, t.size):
            at = t[i] + s * (t[j] - t[i])
            g = binary_entropy(at) - beta * binary_entropy(s) - (1 - s) * prices[i] - s * prices[j]
            values[i, j] = g.max()
    return values


def price(t, prices, beta, strips=1):
    n = t.size
    best, partner, share = np.full(n, -np.inf), np.zeros(n, dtype=np.intp), np.zeros(n)
    bounds = [
        price_pairs(first, n, strips, t, 1 - t, prices, beta, -np.inf, best, partner, share)
        for first in range(strips)
    ]
    return max(bounds), best, partner, share


@pytest.mark.parametrize("beta", [0.01, 0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("ends", [False, True])
def test_the_bound_holds_and_is_reached(beta, ends):
    rng = np.random.default_rng(0)
    for _ in range(20):
        t = np.sort(rng.random(7))
        if ends:
            t[0], t[-1] = 0.0, 1.0
        prices = binary_entropy(t) + rng.exponential(0.2, size=7)
        bound, best, partner, share = price(t, prices, beta)
        grid = brute_force(t, prices, beta)
        letters = (binary_entropy(t) - prices).max()
        assert max(bound, letters) >= grid.max() - 1e-12
        for i in np.flatnonzero(best > letters + 1e-9):
            j, s = partner[i], share[i]
            assert 0 <= s <= 1
            at = t[i] + s * (t[j] - t[i])
            value = binary_entropy(at) - beta * binary_entropy(s) - (1 - s) * prices[i] - s * prices[j]
            assert best[i] == pytest.approx(value, abs=1e-12)
            assert best[i] >= max(grid[min(i, j), max(i, j)], letters) - 1e-12
        # The bound is tight: the best posterior reaches it.
        assert bound <= max(best.max(), letters) + 1e-9


def test_strips_change_nothing():
    rng = np.random.default_rng(1)
    t = np.sort(rng.random(30))
    prices = binary_entropy(t) + rng.exponential(0.1, size=30)
    one, four = price(t, prices, 0.1), price(t, prices, 0.1, strips=4)
    assert one[0] == four[0]
    np.testing.assert_array_equal(one[1], four[1])


def test_hopeless_pairs_are_skipped():
    """Letters closer than the second-order condition allows cannot share a posterior, whatever the prices."""
    t = np.array([0.4, 0.45, 0.5])
    bound, best, _, _ = price(t, np.zeros(3), 0.5)
    assert bound == -np.inf
    assert np.all(best == -np.inf)
    letters = binary_entropy(t).max()
    assert brute_force(t, np.zeros(3), 0.5).max() <= letters
