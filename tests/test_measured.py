"""Numbers that say what they are."""

import doctest

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel import measured
from privacyfunnel.auditing.adversaries import LeakageBound
from privacyfunnel.auditing.findings import Finding
from privacyfunnel.measured import Estimate, Interval, Measured, Number

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
