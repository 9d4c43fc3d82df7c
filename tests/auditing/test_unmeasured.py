"""A gate passes only what was measured: rare classes and symbols, constant attributes, bare numbers."""

import math

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.attributes import Attribute
from privacyfunnel.auditing import AuditReport, Finding, logistic_regression
from privacyfunnel.auditing.findings import About
from privacyfunnel.auditing.measures.bits import class_gaps, merged
from privacyfunnel.auditing.published import published, size_step
from privacyfunnel.information import entropy

#: Records lie sorted here, which an audit warns of.
pytestmark = pytest.mark.filterwarnings("ignore:neighbours among the records")

FAST = {"adversaries": [logistic_regression()], "n_jobs": 1}
LIMITS = {"max_success": 0.7, "max_leakage": 0.5}


def verdicts(report, **limits):
    return {one.name: one for one in report.gate(**(limits or LIMITS))}


def test_a_code_that_is_a_unique_id_fails():
    names = [f"person {i}" for i in range(97)]
    for Z in (np.arange(97.0)[:, None], np.array(names)):
        found = verdicts(pf.audit(Z=Z, private=names, **FAST))
        for one in found.values():
            assert not one.passed
        assert "Failed: not measured: 97 classes have fewer than 10 records" in found["max_success"].sentence
        assert found["max_success"].value == 1.0
        assert found["max_leakage"].value == pytest.approx(math.log2(97), abs=0.05)


@pytest.mark.parametrize("y", [np.repeat(np.arange(60), 2)[:90], [0, 1], [0] * 40 + [1] * 9])
def test_classes_of_a_few_records_fail(y):
    Z = np.random.default_rng(0).normal(size=(len(y), 2))
    report = pf.audit(Z=Z, private=y, **FAST)
    assert not verdicts(report, max_leakage=0.3)["max_leakage"].passed
    assert not verdicts(report, max_lift=0.3)["max_lift"].passed
    assert not verdicts(report, min_group=2)["min_group"].passed


def test_what_rare_classes_add_is_their_entropy_within():
    y = np.array([0] * 400 + [1] * 390 + [2] * 6 + [3] * 4)
    report = pf.audit(Z=np.random.default_rng(0).normal(size=(800, 2)), private=y, **FAST)
    bits, share = report.find("unmeasured leakage")[0], report.find("unmeasured success")[0]
    assert bits.value == pytest.approx(entropy([0.5, 0.4875, 0.0075, 0.005]) - entropy([0.5, 0.4875, 0.0125]))
    assert bits.value == pytest.approx(10 / 800 * entropy([0.6, 0.4]))  # H(Y|Y') by its definition
    assert share.value == pytest.approx(10 / 800)
    judged = verdicts(report)
    assert judged["max_leakage"].passed  # counted as told, it still keeps the limit
    assert "what was not measured (2 classes have fewer" in judged["max_leakage"].sentence
    highest = max(one.high for one in report.find("leakage", on="Z") if one.kind != "upper bound")
    gap = published([bits])[0].value  # in steps that hide five records, to the careful side
    assert bits.value <= gap < bits.value + size_step(800)
    assert judged["max_leakage"].value == pytest.approx(highest + gap, abs=0.003)


def test_rare_classes_that_are_too_few_even_together_take_the_next_one_along():
    rare = np.array([True, False, False])
    np.testing.assert_array_equal(merged(np.array([3, 500, 297]), rare), [300, 500])
    np.testing.assert_array_equal(merged(np.array([3, 4, 2]), np.ones(3, dtype=bool)), [9])
    np.testing.assert_array_equal(merged(np.array([3, 8, 90]), np.array([True, True, False])), [11, 90])


def test_symbols_that_hardly_anybody_has_are_not_judged():
    """A hundred ids as texts, whose last letter is the class: counts of them cannot see it."""
    y = np.random.default_rng(1).integers(0, 2, 100)
    ids = np.array([f"{i}{'ab'[label]}" for i, label in enumerate(y)])
    found = verdicts(pf.audit(Z=ids, private=y, n_jobs=1))
    assert not any(one.passed for one in found.values())
    assert "100 symbols have fewer than 10 records" in found["max_success"].sentence


def test_an_exact_value_covers_rare_classes():
    joint = pf.Joint(np.array([[0.5, 0.004], [0.492, 0.004]]))
    report = pf.audit(pf.TableMechanism(np.full((2, 2), 0.5)), joint)
    gap = Finding("unmeasured leakage", 0.9, "upper bound", "bits", "few", attribute="y", notes="Few.")
    verdict = verdicts(AuditReport((*report.findings, gap)), max_leakage=0.01)["max_leakage"]
    assert verdict.passed
    assert verdict.proved


def test_a_constant_attribute_is_nothing_to_test():
    report = pf.audit(Z=np.random.default_rng(0).normal(size=(50, 2)), private=["a"] * 50, **FAST)
    for one in report.gate(max_success=1, max_leakage=9, max_lift=9):
        assert not one.passed
        assert not one.proved
        assert "nothing to test: all records have the same y" in one.sentence


def test_a_bound_on_the_release_does_not_cover_what_is_released_beside_it():
    exact = Finding("success", 0.55, "exact", "share", "Bayes adversary")
    beside = [
        Finding("success", 0.8, "lower bound", "share", "trees", on, interval=(0.75, 0.85))
        for on in ("column", "Z + column", "order", "Z × 4")
    ]
    for one in beside:
        verdict = AuditReport((exact, one)).gate(max_success=0.6)[0]
        assert not verdict.passed
        assert verdict.finding == one
    made = Finding("success", 0.8, "lower bound", "share", "network", "X_hat", interval=(0.5, 0.85))
    assert AuditReport((exact, made)).gate(max_success=0.6)[0].proved  # reconstructions are made from Z


def test_an_attribute_without_the_number_was_not_measured():
    chance = Finding("chance", 0.5, "estimate", "share", "largest class", "", "age", (0.4, 0.6))
    told = Finding("success", 0.5, "lower bound", "share", "trees", attribute="sex", interval=(0.4, 0.6))
    assert AuditReport((told,)).gate(max_success=0.7)[0].passed
    verdict = AuditReport((told, chance)).gate(max_success=0.7)[0]
    assert not verdict.passed
    assert "not measured" in verdict.sentence


def test_a_number_without_an_interval_has_no_ends():
    bare = Finding("success", 0.5, "estimate", "share", "Bayes adversary")
    assert (bare.low, bare.high) == (None, None)
    verdict = AuditReport((bare,)).gate(max_success=0.9)[0]
    assert not verdict.passed
    assert "no interval" in verdict.sentence
    frame = AuditReport((bare,)).to_frame()
    assert all(
        value is None or math.isnan(value) for name in ("low", "high", "confidence") for value in frame[name]
    )


def test_no_interval_in_bits_goes_beyond_the_entropy():
    """A skewed class whose records are few: what is left of H(Y) is far below one bit."""

    class Identity:
        latent = "normal"

        def encode(self, X):
            return X, np.full_like(X, 0.5)

    rng = np.random.default_rng(3)
    y = (np.arange(60) < 12).astype(int)
    X = y[:, None] + rng.normal(size=(60, 1))
    report = pf.audit(Identity(), X, rng.permutation(y) * 0 + y, **FAST)
    most = max(one.high for one in report.find("leakage", source="entropy of the attribute"))
    assert most <= 1
    for one in report.find("leakage"):
        assert one.high <= most + 1e-12


def test_a_joint_of_records_is_not_called_known():
    joint = pf.datasets.paper_joint()
    records = pf.Joint.from_samples(*joint.sample(400, 0))
    for one, known in ((joint, True), (records, False)):
        report = pf.audit(pf.TableMechanism.identity(one), one)
        assert (report.meta["n_records"] is None) is known
        assert ("a known joint" in report.meta["audited"][0]) is known
        assert any("not tried" in sentence for sentence in report.meta["not_audited"]) is not known
        verdict = report.gate(max_success=1.0)[0]
        assert verdict.proved is known
        assert report.find("success", on="X")[0].value >= report.find("success", on="Z")[0].value - 1e-12


@pytest.mark.parametrize("n_rare", [1, 2, 3, 4])
def test_nobody_counts_the_people_of_a_rare_class(n_rare):
    """Somebody who knows all private values but one must not see whether that one is rare."""
    found = []
    for count in (n_rare, n_rare + 1):
        y = np.where(np.arange(400) < count, 2, np.arange(400) % 2)
        gaps = published(class_gaps(About(0.95, 0), Attribute("y", (0, 1, 2), y)))
        found.append([(one.quantity, one.value, one.notes) for one in gaps])
        assert gaps[0].value >= count / 400
    assert found[0][0] == found[1][0]
    assert found[0][1][2] == found[1][1][2]
