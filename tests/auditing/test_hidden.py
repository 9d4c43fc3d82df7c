"""Leaks that nobody meant to release: digits, bits, signs of zeros, remainders, and the order of the rows."""

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import default_adversaries
from privacyfunnel.auditing.adversaries.supervised import (
    OrderAdversary,
    ResidueAdversary,
    decimal_places,
    residues,
    told_by,
)

#: Records lie sorted here, which an audit warns of.
pytestmark = pytest.mark.filterwarnings("ignore:neighbours among the records")

N = 800


def last_bit(values, y):
    bits = values.view(np.uint64) & ~np.uint64(1) | y.astype(np.uint64)
    return bits.view(np.float64)


def last_single_bit(values, y):
    bits = values.astype(np.float32).view(np.uint32) & ~np.uint32(1) | y.astype(np.uint32)
    return bits.view(np.float32).astype(np.float64)


def draw(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(0, 2, N), rng.normal(size=N)


def ids(rng, y):
    return 2.0 * rng.permutation(50_000)[:N] + y


LEAKS = {
    "low-order digits": lambda rng, y, noise: np.round(noise, 6) + 1e-12 * y,
    "last bit": lambda rng, y, noise: last_bit(noise, y),
    "last bit of float32": lambda rng, y, noise: last_single_bit(noise, y),
    "parity": lambda rng, y, noise: ids(rng, y),
    "weekday of a day number": lambda rng, y, noise: 7.0 * rng.permutation(50_000)[:N] + 3 * y,
    "last decimal": lambda rng, y, noise: np.round(100 * rng.random(N), 1) + 0.01 * y,
    "sign of zero among numbers": lambda rng, y, noise: np.where(
        rng.random(N) < 0.1, noise, np.where(y, -0.0, 0.0)
    ),
    "values that come again": lambda rng, y, noise: np.where(y, noise, np.round(noise)),
}


@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
@pytest.mark.parametrize("others", [0, 5])
def test_residues_tell_what_was_hidden_in_them(leak, others):
    rng, y, noise = draw()
    Z = np.column_stack([leak(rng, y, noise), rng.normal(size=(N, others))])
    report = pf.audit(Z=Z, private=y, adversaries=[ResidueAdversary()], n_jobs=1)
    assert report.find("success")[0].low > 0.9
    assert not any(one.passed for one in report.gate(max_success=0.7, max_leakage=0.3, max_lift=0.5))


@pytest.mark.parametrize("Z", [draw()[2], np.round(draw()[2], 3), 1.0 * draw()[0].integers(0, 50_000, N)])
def test_residues_of_honest_codes_tell_nothing(Z):
    y = draw(9)[1]
    report = pf.audit(Z=Z[:, None], private=y, adversaries=[ResidueAdversary()], n_jobs=1)
    assert report.find("success")[0].value < report.find("chance")[0].value + 0.05
    assert report.find("leakage", kind="lower bound")[0].value < 0.02
    assert report.find("p-value")[0].value > 0.01


def test_the_default_set_finds_zeros_with_a_sign():
    _, y, _ = draw()
    report = pf.audit(Z=np.where(y, -0.0, 0.0), private=y, n_jobs=1)
    assert not report.gate(max_success=0.7)[0].passed


@pytest.mark.parametrize(
    ("y", "least"),
    [
        (np.sort(draw()[1]), 0.95),
        (np.arange(N) % 2, 0.95),
        ((np.arange(N) % 5 == 0).astype(int), 0.95),
        (np.repeat(draw()[1][: N // 8], 8), 0.95),
        (np.repeat(draw()[1][: N // 2], 2), 0.75),  # couples: two of three know their partner
    ],
    ids=["sorted", "alternating", "every fifth", "runs", "couples"],
)
def test_the_order_of_rows_tells(y, least):
    Z = np.random.default_rng(1).normal(size=(N, 2))
    report = pf.audit(Z=Z, private=y, adversaries=[OrderAdversary(), default_adversaries()[0]], n_jobs=1)
    found = report.find("success", on="order")[0]
    assert found.low > least
    assert report.strongest == found
    assert not report.gate(max_success=0.7)[0].passed
    assert "order" in found.threat_model or "place" in found.threat_model


def test_a_file_in_random_order_tells_nothing():
    _, y, _ = draw()
    report = pf.audit(Z=np.zeros((N, 1)), private=y, adversaries=[OrderAdversary()], n_jobs=1)
    assert report.find("success", on="order")[0].value < report.find("chance")[0].value + 0.05
    assert report.find("p-value", on="order")[0].value > 0.01


def test_both_belong_to_the_default_set():
    _, y, noise = draw()
    report = pf.audit(Z=noise[:90, None], private=y[:90], effort="quick", n_jobs=1)
    assert {"residues of the codes", "order of the rows"} <= set(report.meta["settings"]["adversaries"])


def test_decimals_are_counted():
    values = np.array([3.0, 0.5, 0.25, 1e-12, 123456.789, 0.1 + 0.2])
    np.testing.assert_array_equal(decimal_places(values), [0, 1, 2, 12, 3, 17])


def test_large_numbers_have_residues_too():
    assert np.isfinite(residues(np.arange(40.0)[:, None] * 1e17)).all()


def test_a_feature_that_tells_nothing_scores_nothing_on_average():
    """Whatever number of values it has: else those with many would be chosen for it."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    for n_values in (2, 20):
        scores = [told_by(rng.integers(0, n_values, N).astype(float), y, 3) for _ in range(200)]
        freedom = 2 * (n_values - 1)
        # 2 ln 2 times the gain is χ² of so many degrees of freedom, less its mean.
        error = np.sqrt(2 * freedom) / (2 * np.log(2)) / np.sqrt(200)
        assert abs(np.mean(scores)) < 4 * error
    assert told_by(y.astype(float), y, 3) > 1.5 * N
