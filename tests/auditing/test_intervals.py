"""Intervals hold at their confidence, and reordering finds nothing where there is nothing."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score

from privacyfunnel.auditing.findings import (
    clipped,
    jackknife_interval,
    mean_interval,
    permutation_test,
    ranking,
    repeated_interval,
    wilson_interval,
)


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (3, 10), (10, 10), (57, 200), (1, 1)])
def test_wilson_agrees_with_scipy(hits, n):
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(hits, n, 0.95)
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_of_nothing_is_everything():
    low, high = wilson_interval([0, 2], [0, 4], 0.95)
    assert (low[0], high[0]) == (0, 1)


def test_the_mean_is_covered():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        low, high = mean_interval(rng.exponential(size=60), 0.95)
        inside += low <= 1 <= high
    assert 0.89 <= inside / 400 <= 0.98
    assert mean_interval([3.0], 0.95) == (-np.inf, np.inf)


def test_repeats_that_err_together_are_not_taken_for_more_records():
    rng = np.random.default_rng(1)
    together, apart = 0, 0
    for _ in range(300):
        # Each repeat shifts all of its records alike.
        table = rng.normal(size=(4, 1)) * 0.5 + rng.normal(size=(1, 200)) + rng.normal(size=(4, 200))
        low, high = repeated_interval(table, 0.95)
        together += low <= 0 <= high
        low, high = mean_interval(table.ravel(), 0.95)
        apart += low <= 0 <= high
    assert together / 300 >= 0.93
    assert apart / 300 < 0.6  # so the test above can fail


def test_one_repeat_is_the_plain_mean():
    values = np.random.default_rng(2).normal(size=50)
    assert repeated_interval(values[None, :], 0.9) == pytest.approx(mean_interval(values, 0.9))
    assert repeated_interval(np.ones((3, 20)), 0.95) == (1, 1)
    assert repeated_interval(np.ones((3, 1)), 0.95) == (-np.inf, np.inf)


def test_jackknife_of_the_mean_is_students_interval():
    values = np.random.default_rng(3).normal(size=25)
    without = [np.delete(values, i).mean() for i in range(25)]
    assert jackknife_interval(values.mean(), without, 0.95) == pytest.approx(mean_interval(values, 0.95))


def test_permutation_p_values_are_valid():
    rng = np.random.default_rng(4)
    values = [
        permutation_test(rng.integers(0, 2, 40), rng.integers(0, 2, 40), 99, rng)[0] for _ in range(300)
    ]
    assert np.mean(np.array(values) <= 0.1) <= 0.15
    y = rng.integers(0, 2, 40)
    p, null = permutation_test(y, y, 99, rng)
    assert p == 0.01
    assert null.max() < 1


def test_clipping_keeps_the_value_inside():
    assert clipped((-1.0, 2.0), 0.5, 0.0, 1.0) == (0.0, 1.0)
    assert clipped((0.1, 0.2), 0.0, 0.0, 1.0) == (0.0, 0.2)


@pytest.mark.parametrize("digits", [1, 6])
def test_ranking_is_the_area_under_the_curve(digits):
    """With ties, too."""
    rng = np.random.default_rng(0)
    positive = rng.random(400) < 0.3
    scores = np.round(rng.normal(size=400) + positive, digits)
    area, (low, high) = ranking(scores, positive, 0.95)
    assert area == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)
    assert ranking(-scores, positive, 0.95)[0] == pytest.approx(1 - area, abs=1e-12)
    assert high - area == pytest.approx(area - low)
    assert 0.02 < high - area < 0.08


def test_ranking_covers_its_truth():
    """Two Gaussians one deviation apart: P(higher) = Φ(1/√2)."""
    rng, truth = np.random.default_rng(1), 0.760250
    positive = np.arange(300) < 60
    found = [ranking(rng.normal(size=300) + positive, positive, 0.9)[1] for _ in range(1_000)]
    assert 0.87 < np.mean([low <= truth <= high for low, high in found]) < 0.93


def test_ranking_of_a_single_record_says_nothing():
    assert ranking(np.array([0.1, 0.9]), np.array([False, True]), 0.95) == (1.0, (0.0, 1.0))
