"""Numbers that say what they are."""

import doctest
import math
import re

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel import measured
from privacyfunnel.auditing.adversaries import LeakageBound
from privacyfunnel.auditing.findings import Finding
from privacyfunnel.certified.verdict import Guess, Verdict
from privacyfunnel.measured import Estimate, Interval, Measured, Number, rounded_up

NINETY = Interval(0.1, 0.3, 0.9, "held-out", 200)


def test_an_interval_is_its_two_ends():
    low, high = NINETY
    assert (low, high) == (0.1, 0.3)
    assert [value in NINETY for value in (0.05, 0.1, 0.3, 0.35)] == [False, True, True, False]


@pytest.mark.parametrize(
    ("number", "low", "high", "certain"),
    [
        (Measured(0.2, "exact"), 0.2, 0.2, True),
        (Measured(0.2, "upper bound"), 0.2, 0.2, True),
        (Measured(0.2, "lower bound"), None, None, False),
        (Estimate(0.2, "estimate", interval=NINETY), 0.1, 0.3, False),
        (LeakageBound(0.2, 0.1, NINETY, 10, 20, "mlp", 0.6, 0.5, 0.5, 1.0), 0.1, 0.3, False),
        (Finding("leakage", 0.2, "lower bound", "bits", "net", interval=(0.1, 0.3)), 0.1, 0.3, False),
        (Finding("leakage", 0.2, "exact", "bits", "all"), 0.2, 0.2, True),
        (Finding("leakage", 0.2, "estimate", "bits", "net"), None, None, False),
    ],
)
def test_every_number_tells_its_ends_alike(number, low, high, certain):
    assert isinstance(number, Number)
    assert (float(number), number.low, number.high, number.certain) == (0.2, low, high, certain)


def test_a_number_says_what_it_is():
    assert str(Measured(1 / 3, "exact")) == "exact 0.3333 bit"
    assert str(Measured(0.5, "upper bound", "for all")) == "upper bound 0.5 bit, for all"
    assert str(Estimate(0.2, "estimate", interval=NINETY)) == "estimate 0.2 bit, 0.1 to 0.3, 90 %"
    assert doctest.testmod(measured) == (0, 1)


def test_confidence_is_that_of_the_interval():
    assert Measured(0.2, "exact").confidence is None
    assert Measured(0.2, "upper bound", interval=NINETY).confidence == 0.9


def test_held_out_leakage_is_an_estimate_with_its_interval():
    joint = pf.Joint.from_counts([[40, 10], [20, 30]])
    estimate = pf.held_out_leakage(pf.TableMechanism(np.eye(2), x_labels=joint.x_labels), joint, rng=0)
    assert (estimate.kind, estimate.n_samples, estimate.confidence) == ("estimate", 100, 0.95)
    assert estimate.low < estimate.value < estimate.high
    assert (estimate.low, estimate.high) == tuple(estimate.interval)


@pytest.mark.parametrize(
    ("value", "decimals", "told"),
    [
        (68.04, 1, "68.1"),
        (68.0, 1, "68"),
        (100 * 0.57, 1, "57"),  # 56.99999999999999
        (100 * 0.55, 1, "55"),  # 55.00000000000001
        (0.0731201, None, "0.07313"),
        (0.05, None, "0.05"),
        (1e-300, None, "1e-300"),
        (123456.0, None, "123500"),
        (0.0, None, "0"),
        (math.inf, 1, "inf"),
    ],
)
def test_bounds_are_told_no_smaller_than_they_are(value, decimals, told):
    assert f"{rounded_up(value, decimals):.6g}" == told


def test_a_printed_upper_bound_is_kept():
    rng = np.random.default_rng(0)
    for value in rng.uniform(size=200) * 10.0 ** rng.integers(-8, 3, 200):
        said = str(Measured(value, "upper bound", unit=""))
        assert value <= float(said.removeprefix("upper bound ")) <= value * 1.001
        guess = Verdict((Guess("sex", min(value, 1.0), 0.5),), 0.95, 0.5, 100, gap=min(value, 1.0))
        told = [float(one) / 100 for one in re.findall(r"more (?:often )?than ([\d.]+) %", str(guess))]
        assert len(told) == 2
        assert all(min(value, 1.0) <= one + 1e-12 <= min(value, 1.0) + 0.0011 for one in told)
