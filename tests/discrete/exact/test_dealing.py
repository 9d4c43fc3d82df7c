"""Mixtures of clusters dealt out to letters: shares stay, masses add up, and P(Y|z) hardly moves."""

import numpy as np
import pytest
from discrete.twins import slow_information
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.discrete.exact.dealing import Mixture, deal, in_pairs, overlay
from privacyfunnel.discrete.exact.reduction import entropy_nats


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=5), st.integers(0, 10**6)
)
def test_cuts_laid_over_one_another(sizes, seed):
    rng = np.random.default_rng(seed)
    groups = [np.repeat(np.arange(len(sizes)), [size[side] for size in sizes]) for side in (0, 1)]
    masses = [rng.dirichlet(np.ones(group.size)) for group in groups]
    a, b, share = overlay(groups[0], masses[0], groups[1], masses[1])
    assert np.all(share > 0)
    np.testing.assert_array_equal(groups[0][a], groups[1][b])
    for side, index in ((0, a), (1, b)):
        total = np.bincount(groups[side], masses[side])[groups[side]]
        np.testing.assert_allclose(
            np.bincount(index, share, groups[side].size), masses[side] / total, atol=1e-12
        )


def problem(rng, k=6, n=60):
    """Letters sorted by t in k clusters, and a table P(cluster, z) with one to four clusters a symbol."""
    t = np.sort(rng.random(n))
    group = np.sort(np.concatenate([np.arange(k), rng.integers(k, size=n - k)]))
    p = rng.dirichlet(np.ones(n))
    p_c = np.bincount(group, p)
    t_c = np.bincount(group, p * t) / p_c
    table = rng.random((k, 9)) * (rng.random((k, 9)) < 0.3)
    table[:, 0] += 0.01
    return t, group, p, t_c, table * (p_c / table.sum(axis=1))[:, None]


@pytest.mark.parametrize("seed", range(20))
def test_dealing_keeps_masses_and_shares_and_tells_members_apart(seed):
    t, group, p, t_c, masses = problem(np.random.default_rng(seed))
    mixture = Mixture.of(masses, t_c)
    both = np.concatenate([mixture.lower, mixture.upper, mixture.alone])
    amounts = np.concatenate([mixture.low_mass, mixture.high_mass, mixture.mass])
    np.testing.assert_allclose(np.bincount(both, amounts), masses.sum(axis=1), atol=1e-12)
    channel = deal(mixture, group, p, t_c).dense()
    np.testing.assert_allclose(channel.sum(axis=1), 1.0, atol=1e-12)
    assert np.all((channel > 0).sum(axis=0) <= 2)
    utility, _ = slow_information(np.column_stack([p * (1 - t), p * t]), channel)
    # Every symbol of a pair has the pair's shares, so H(X|Z) is that of the clusters.
    weights = mixture.low_mass + mixture.high_mass
    shares = mixture.high_mass / weights
    spread = sum(w * entropy_nats(np.array([1 - s, s])) for w, s in zip(weights, shares, strict=True))
    assert utility * np.log(2) == pytest.approx(entropy_nats(p) - spread, abs=1e-9)


def test_members_with_one_t_cost_nothing():
    rng = np.random.default_rng(0)
    _, group, p, _, _ = problem(rng)
    t_c = np.sort(rng.random(6))
    table = rng.random((6, 4))
    masses = table * (np.bincount(group, p) / table.sum(axis=1))[:, None]
    t = t_c[group]
    channel = deal(Mixture.of(masses, t_c), group, p, t_c).dense()
    _, leakage = slow_information(np.column_stack([p * (1 - t), p * t]), channel)
    _, clusters = slow_information(
        np.column_stack([masses.sum(axis=1) * (1 - t_c), masses.sum(axis=1) * t_c]),
        table / table.sum(axis=1, keepdims=True),
    )
    assert leakage == pytest.approx(clusters, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_pairs_of_a_symbol_have_its_t(seed):
    rng = np.random.default_rng(seed)
    t = np.sort(rng.random(12))
    masses = rng.random(12) * (rng.random(12) < 0.6)
    masses[5] = 1.0
    mixture = in_pairs(masses, t)
    middle = masses @ t / masses.sum()
    weights = mixture.low_mass + mixture.high_mass
    at = (mixture.low_mass * t[mixture.lower] + mixture.high_mass * t[mixture.upper]) / weights
    np.testing.assert_allclose(at, middle, atol=1e-12)
    both = np.concatenate([mixture.lower, mixture.upper, mixture.alone])
    amounts = np.concatenate([mixture.low_mass, mixture.high_mass, mixture.mass])
    np.testing.assert_allclose(np.bincount(both, amounts, 12), masses, atol=1e-12)


def test_one_t_is_left_alone():
    mixture = in_pairs(np.array([0.2, 0.0, 0.3]), np.array([0.4, 0.4, 0.4]))
    assert mixture.lower.size == 0
    np.testing.assert_array_equal(mixture.alone, [0, 2])


def test_members_are_matched_in_opposite_order():
    """Symmetric pairs of clusters have t = ½, and so must every pair of their members."""
    n, k = 64, 4
    t, p = (np.arange(n) + 0.5) / n, np.full(n, 1 / n)
    group = np.repeat(np.arange(k), n // k)
    masses = np.zeros((k, k // 2))
    masses[np.arange(k), np.minimum(np.arange(k), np.arange(k)[::-1])] = 1 / k
    t_c = np.bincount(group, p * t) * k
    channel = deal(Mixture.of(masses, t_c), group, p, t_c).dense()
    assert slow_information(np.column_stack([p * (1 - t), p * t]), channel)[1] <= 1e-12
