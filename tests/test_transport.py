"""Barycentres of Gaussians: against closed forms, against moves of samples, and for records."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from scipy.optimize import linear_sum_assignment
from scipy.stats import ortho_group

from privacyfunnel import transport
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.transport import barycentre, barycentre_cost, no_leakage_mse


def gaussians(seed, k=3, d=4):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(k, d, d))
    return rng.normal(size=(k, d)), factors @ np.swapaxes(factors, 1, 2), rng.dirichlet(np.ones(k))


def squared_distance(mean, covariance, other_mean, other):
    """W₂² of two Gaussians, by its formula."""
    root = sqrtm(covariance)
    return np.sum((mean - other_mean) ** 2) + np.trace(
        covariance + other - 2 * sqrtm(root @ other @ root).real
    )


def test_on_a_line_standard_deviations_are_averaged():
    means, deviations, weights = (
        np.array([0.0, 1.0, 5.0]),
        np.array([1.0, 3.0, 0.5]),
        np.array([0.5, 0.3, 0.2]),
    )
    expected = (
        weights @ (means - weights @ means) ** 2 + weights @ deviations**2 - (weights @ deviations) ** 2
    )
    cost = barycentre_cost(means[:, None], (deviations**2)[:, None, None], weights)
    assert cost == pytest.approx(expected, rel=1e-9)
    middle = barycentre(means[:, None], (deviations**2)[:, None, None], weights)
    assert middle.covariance == pytest.approx((weights @ deviations) ** 2)
    np.testing.assert_allclose(middle.maps[:, 0, 0], (weights @ deviations) / deviations, rtol=1e-6)
    points = np.array([[0.0], [7.0]])
    np.testing.assert_allclose(
        middle.moved(points, 1), weights @ means + (points - 1) * (weights @ deviations) / 3, rtol=1e-6
    )


def test_covariances_that_commute_are_averaged_direction_by_direction():
    rng = np.random.default_rng(0)
    axes, values = ortho_group.rvs(5, random_state=0), rng.uniform(0.1, 4, size=(4, 5))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    covariances = [axes @ np.diag(v) @ axes.T for v in values]
    expected = (weights @ values - (weights @ np.sqrt(values)) ** 2).sum()
    assert barycentre_cost(np.zeros((4, 5)), covariances, weights) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_two_gaussians_meet_on_the_way(seed):
    means, covariances, weights = gaussians(seed, k=2)
    whole = squared_distance(means[0], covariances[0], means[1], covariances[1])
    cost = barycentre_cost(means, covariances, weights)
    assert cost == pytest.approx(weights[0] * weights[1] * whole, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_maps_take_every_class_to_the_same_gaussian(seed):
    means, covariances, weights = gaussians(seed)
    middle = barycentre(means, covariances, weights)
    for matrix, covariance in zip(middle.maps, covariances, strict=True):
        moved = matrix @ covariance @ matrix
        np.testing.assert_allclose(moved, middle.covariance, atol=1e-3 * np.trace(middle.covariance))
    direct = sum(
        p * squared_distance(m, c, middle.mean, middle.covariance)
        for p, m, c in zip(weights, means, covariances, strict=True)
    )
    assert barycentre_cost(means, covariances, weights) == pytest.approx(direct, rel=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_cost_is_a_lower_bound_however_far_the_iteration_got(steps, monkeypatch):
    for seed in range(10):
        means, covariances, weights = gaussians(seed, d=6)
        best = barycentre_cost(means, covariances, weights)
        with monkeypatch.context() as early:
            early.setattr(transport, "MOST_STEPS", steps)
            assert 0 < barycentre_cost(means, covariances, weights) <= best * (1 + 1e-9)


def test_no_move_of_samples_costs_less():
    """Of any shape: exact transport between samples, to middles of any kind."""
    rng = np.random.default_rng(1)
    n, weights = 60, np.array([0.5, 0.3, 0.2])
    for _ in range(10):
        clouds = [
            rng.normal(size=(n, 2)) @ rng.normal(size=(2, 2)),
            rng.exponential(size=(n, 2)) - rng.normal(size=2),
            np.sign(rng.normal(size=(n, 2))) * rng.uniform(0.5, 2),
        ]
        moments = ([c.mean(axis=0) for c in clouds], [np.cov(c.T, bias=True) for c in clouds], weights)
        bound = barycentre_cost(*moments)
        middle = barycentre(*moments)
        candidates = [*clouds, *(middle.moved(cloud, y) for y, cloud in enumerate(clouds))]
        for candidate in candidates:
            cost = 0.0
            for weight, cloud in zip(weights, clouds, strict=True):
                squared = ((cloud[:, None] - candidate[None]) ** 2).sum(axis=2)
                cost += weight * squared[linear_sum_assignment(squared)].mean()
            assert cost >= bound
        assert bound > 0.1 * min(np.var(cloud, axis=0).sum() for cloud in clouds)


def test_without_variance():
    zero = np.zeros((2, 3, 3))
    points = np.array([[0.0, 0, 0], [2.0, 0, 0]])
    assert barycentre_cost(points, zero, [0.5, 0.5]) == pytest.approx(1.0)
    assert barycentre_cost(np.zeros((2, 3)), zero, [0.5, 0.5]) == 0.0
    # A point and a flat Gaussian: the middle has half the standard deviation, a quarter of the variance.
    flat = np.array([np.zeros((3, 3)), np.diag([1.0, 4.0, 0.0])])
    cost = barycentre_cost(np.zeros((2, 3)), flat, [0.5, 0.5])
    assert cost <= 1.25
    assert cost == pytest.approx(1.25, rel=1e-4)
    # One class, or weight for one only: nothing to move.
    assert barycentre_cost(np.ones((1, 3)), np.eye(3)[None], [1.0]) == 0.0
    assert barycentre_cost(points, np.array([np.eye(3), 5 * np.eye(3)]), [1.0, 0.0]) == pytest.approx(
        0, abs=1e-9
    )


def test_records_of_two_gaussians():
    rng = np.random.default_rng(2)
    n, covariance = 4000, np.diag([4.0, 1.0, 1.0])
    y = rng.integers(2, size=n)
    x = rng.normal(size=(n, 3))
    x[y == 1] = x[y == 1] @ np.sqrt(covariance) + [1.0, 0.0, 0.0]
    exact = 0.25 * squared_distance(np.zeros(3), np.eye(3), np.array([1.0, 0, 0]), covariance)
    assert no_leakage_mse(x, y) == pytest.approx(exact, rel=0.1)
    # Which a release reaches: each class is moved onto the middle.
    middle = barycentre([[0, 0, 0], [1, 0, 0]], [np.eye(3), covariance], [0.5, 0.5])
    released = np.where((y == 1)[:, None], middle.moved(x, 1), middle.moved(x, 0))
    assert ((released - x) ** 2).sum(axis=1).mean() == pytest.approx(exact, rel=0.1)


def test_what_is_fitted_to_noise_does_not_count():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(300, 40)), rng.integers(3, size=300)
    moments = [x[y == label] for label in range(3)]
    plugged_in = barycentre_cost(
        [part.mean(axis=0) for part in moments], [np.cov(part.T) for part in moments], np.bincount(y) / 300
    )
    assert plugged_in > 3  # of 40, where nothing needs moving
    assert no_leakage_mse(x, y) == 0.0


def test_many_features_are_looked_at_by_their_largest_components(monkeypatch):
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=600)
    x = 0.1 * rng.normal(size=(600, 5, 6))
    x[:, 2, 3] += 3 * y
    whole = no_leakage_mse(x, y)
    monkeypatch.setattr(transport, "MOST_COMPONENTS", 4)
    assert no_leakage_mse(x, y) == pytest.approx(whole, rel=0.05)
    assert whole == pytest.approx(9 / 4, rel=0.05)


def test_what_cannot_be_used():
    with pytest.raises(InvalidInputError, match=r"shapes \(k, d\), \(k, d, d\) and \(k,\)"):
        barycentre_cost([[0.0]], [[1.0]], [1.0])
    with pytest.raises(InvalidInputError, match=r"sum to 0\.9"):
        barycentre_cost([[0.0], [1.0]], np.ones((2, 1, 1)), [0.5, 0.4])
    with pytest.raises(InvalidInputError, match="negative eigenvalues"):
        barycentre_cost(np.zeros((1, 2)), [[[1, 2], [2, 1]]], [1.0])
    with pytest.raises(InvalidInputError, match="must be finite"):
        barycentre_cost([[np.nan]], [[[1.0]]], [1.0])
    with pytest.raises(InvalidInputError, match="at least 10 records of each class; 'b' has 1"):
        no_leakage_mse(np.zeros((12, 2)), ["a"] * 11 + ["b"])
    with pytest.raises(InvalidInputError, match="12 records and 11 classes"):
        no_leakage_mse(np.zeros((12, 2)), ["a"] * 11)
    with pytest.raises(InvalidInputError, match="finite numbers"):
        no_leakage_mse(np.full((12, 2), np.inf), ["a"] * 12)
