"""Densities, distances, reconstructions: against closed forms and slow twins."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

from privacyfunnel.auditing.inputs import location_scale_density, location_scale_draw
from privacyfunnel.auditing.measures.bits import class_terms, code_distances, number_terms
from privacyfunnel.auditing.measures.utility import (
    gaussian_utility_bound,
    mixture_leakage,
    mixture_utility,
    peak_of,
    psnr,
    squared_errors,
    structural_similarity,
)


@pytest.mark.parametrize(("latent", "family"), [("normal", norm), ("laplace", laplace)])
def test_densities_agree_with_scipy(latent, family):
    rng = np.random.default_rng(0)
    Z, loc, log_scale = rng.normal(size=(4, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    expected = [
        [family.logpdf(z, m, np.exp(s)).sum() for m, s in zip(loc, log_scale, strict=True)] for z in Z
    ]
    np.testing.assert_allclose(location_scale_density(Z, loc, log_scale, latent), expected, rtol=1e-9)


@pytest.mark.parametrize(("latent", "family"), [("normal", norm), ("laplace", laplace)])
def test_draws_follow_the_density(latent, family):
    draws = location_scale_draw(
        np.full((20_000, 1), 2.0), np.full((20_000, 1), 0.5), latent, np.random.default_rng(1)
    )
    for q in (0.1, 0.5, 0.9):
        assert (draws <= family.ppf(q, 2, math.exp(0.5))).mean() == pytest.approx(q, abs=0.01)


def test_mixtures_agree_with_the_slow_sum():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 3
    Z = X + rng.normal(size=X.shape)
    table = location_scale_density(Z, X, np.zeros_like(X), "normal")
    lower, upper, kept = [], [], []
    for i in range(30):
        others = [j for j in range(30) if j != i]
        same = [j for j in others if y[j] == y[i]]
        p = np.exp(table[i])
        lower.append(np.log2(p[same].mean() / p.mean()))
        upper.append(np.log2(p[[*same, i]].mean() / p[others].mean()))
        kept.append(np.log2(p[i] / p[others].mean()))
    found = mixture_leakage(table, y, 0.95)
    assert (found.lower[0], found.upper[0]) == pytest.approx((np.mean(lower), np.mean(upper)))
    assert mixture_utility(table, 0.95).upper[0] == pytest.approx(np.mean(kept))


def test_far_apart_codes_do_not_overflow_and_the_gaussian_bound_helps():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 8))
    log_scale = np.full_like(X, math.log(0.01))
    Z = location_scale_draw(X, log_scale, "normal", rng)
    table = location_scale_density(Z, X, log_scale, "normal")
    found = mixture_utility(table, 0.95)
    assert found.lower[0] == pytest.approx(math.log2(200), abs=1e-6)
    assert found.upper[0] > 1000
    exact = 8 * 0.5 * math.log2(1 + 1e4)
    bound = gaussian_utility_bound(np.diag(table), Z, np.arange(200) % 2).mean()
    assert exact - 1 < bound < exact + 3


def test_ross_and_kraskov_know_the_gaussian():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 1500)
    z = (2.0 * y + rng.normal(size=1500))[:, None]
    grid = np.linspace(-8, 10, 4001)
    p = 0.5 * norm.pdf(grid) + 0.5 * norm.pdf(grid, 2)
    exact = np.trapezoid(-p * np.log2(p), grid) - 0.5 * math.log2(2 * math.pi * math.e)
    assert class_terms(code_distances(z), y).mean() == pytest.approx(exact, abs=0.05)
    a = rng.normal(size=(1500, 1))
    b = 0.8 * a[:, 0] + 0.6 * rng.normal(size=1500)
    assert number_terms(code_distances(a), b).mean() == pytest.approx(-0.5 * math.log2(1 - 0.64), abs=0.06)
    assert number_terms(code_distances(a), rng.permutation(b)).mean() == pytest.approx(0, abs=0.05)


def test_ross_agrees_with_scikit_learn_in_one_dimension():
    from sklearn.feature_selection import mutual_info_classif

    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 600)
    z = (y + rng.normal(size=600))[:, None]
    expected = mutual_info_classif(z, y, n_neighbors=5, random_state=0)[0] / math.log(2)
    assert class_terms(code_distances(z), y).mean() == pytest.approx(expected, abs=0.02)


def test_records_alone_in_their_class_are_left_out():
    assert len(class_terms(code_distances(np.arange(5.0)[:, None]), np.array([0, 0, 0, 1, 2]))) == 3
    assert len(class_terms(code_distances(np.arange(2.0)[:, None]), np.array([0, 1]))) == 0


def test_psnr_of_a_known_error():
    X = np.random.default_rng(6).random((5, 4, 4))
    errors = squared_errors(X, X + 0.1)
    np.testing.assert_allclose(errors, 0.01)
    assert psnr(float(errors.mean()), 1.0) == pytest.approx(20)
    assert psnr(0.0, 1.0) == math.inf


def test_peaks():
    assert peak_of(np.array([0.0, 0.7])) == 1
    assert peak_of(np.array([0.0, 200.0])) == 255
    assert peak_of(np.array([-3.0, 5.5])) == 8.5
    assert peak_of(np.zeros(3)) == 1


def test_similarity_agrees_with_the_slow_twin():
    rng = np.random.default_rng(7)
    a = rng.random((2, 12, 10))
    b = np.clip(a + 0.2 * rng.normal(size=a.shape), 0, 1)
    expected = []
    for one, two in zip(a, b, strict=True):
        values = []
        for i in range(12 - 6):
            for j in range(10 - 6):
                u, v = one[i : i + 7, j : j + 7].ravel(), two[i : i + 7, j : j + 7].ravel()
                cov = np.cov(u, v)
                c1, c2 = 0.01**2, 0.03**2
                top = (2 * u.mean() * v.mean() + c1) * (2 * cov[0, 1] + c2)
                values.append(top / ((u.mean() ** 2 + v.mean() ** 2 + c1) * (cov[0, 0] + cov[1, 1] + c2)))
        expected.append(np.mean(values))
    np.testing.assert_allclose(structural_similarity(a, b, 1.0), expected, rtol=1e-9)
    np.testing.assert_allclose(structural_similarity(a, a, 1.0), 1.0)
    colour = np.stack([a, b], axis=-1)
    both = (structural_similarity(a, b, 1.0) + structural_similarity(b, a, 1.0)) / 2
    np.testing.assert_allclose(structural_similarity(colour, colour[..., ::-1], 1.0), both)
