"""Who is worst off: a few people told outright, whom every average hides."""

import math

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.attributes import Attribute
from privacyfunnel.auditing import Finding, logistic_regression
from privacyfunnel.auditing.findings import About
from privacyfunnel.auditing.measures.guesses import Groups, group_findings, guess_findings
from privacyfunnel.report.wording import worst_off

N = 800
FAST = {"adversaries": [logistic_regression()], "n_jobs": 1}
AVERAGES = {"max_success": 0.6, "max_leakage": 0.1}


def coins(seed=0):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(0, 2, N)


def test_a_few_people_told_outright_by_numbers():
    rng, y = coins()
    Z = rng.normal(size=(N, 2))
    Z[np.flatnonzero(y == 1)[:21]] += 30
    report = pf.audit(Z=Z, private=y, **FAST)
    assert all(one.passed for one in report.gate(**AVERAGES))
    lift = report.find("lift", source="worst-off region")[0]
    assert lift.value == pytest.approx(-math.log2(y.mean()), abs=0.25)
    assert lift.low > 0.2
    assert not report.gate(max_lift=0.5)[0].passed
    assert report.find("group size")[0].value == pytest.approx(21, abs=10)  # and a few neighbours
    assert not report.gate(min_group=50)[0].passed


def test_a_symbol_that_only_one_class_has():
    rng, y = coins()
    z = np.array(list("abcd"))[rng.integers(0, 4, N)]
    z[np.flatnonzero(y == 1)[:5]] = "e"
    report = pf.audit(Z=z, private=y, n_jobs=1)
    assert all(one.passed for one in report.gate(**AVERAGES))
    lift, group = report.find("lift", source="worst-off symbol")[0], report.find("group size")[0]
    assert lift.value == pytest.approx(-math.log2(y.mean()))
    assert (group.value, group.kind) == (5, "exact")
    judged = {one.name: one for one in report.gate(max_lift=0.5, min_group=6)}
    assert not judged["max_lift"].passed
    assert not judged["min_group"].passed
    assert "as low as 5 records" in judged["min_group"].sentence
    assert report.gate(min_group=5)[0].passed
    assert "5 records" in worst_off(report)
    assert "times as likely" in worst_off(report)


def test_a_value_among_numbers_that_only_one_class_has():
    rng, y = coins()
    Z = np.column_stack([rng.normal(size=N), np.zeros(N)])
    Z[np.flatnonzero(y == 1)[:5], 1] = 1
    report = pf.audit(Z=Z, private=y, **FAST)
    lift = report.find("lift", source="worst-off symbol")[0]
    assert lift.value == pytest.approx(-math.log2(y.mean()))
    judged = {one.name: one for one in report.gate(max_lift=0.7, min_group=6)}
    assert not judged["max_lift"].passed
    assert "as low as 5 records" in judged["min_group"].sentence
    assert not judged["min_group"].passed


def test_nobody_is_worst_off_where_nothing_is_told():
    rng, y = coins(3)
    for Z in (rng.normal(size=(N, 2)), rng.integers(0, 3, N)):
        report = pf.audit(Z=Z, private=y, **FAST)
        assert report.gate(max_lift=0.8)[0].passed
        assert report.gate(min_group=100)[0].passed == (Z.ndim == 1)  # of numbers it cannot be measured
        for one in report.find("lift"):
            assert one.low < 0.1


def unique_to_each():
    rng, y = coins()
    return rng.permutation(N).astype(float)[:, None], y


def far_from_the_rest():
    rng = np.random.default_rng(0)
    y, Z = rng.integers(0, 2, 3000), rng.normal(size=(3000, 2))
    few = rng.choice(3000, 9, replace=False)
    Z[few, 0] = 100 + 1000 * y[few]
    return Z, y


def a_column_of_few_values():
    rng, y = coins()
    return np.column_stack([rng.normal(size=N), rng.integers(0, 2, N)]), y


@pytest.mark.parametrize(
    "records",
    [unique_to_each, far_from_the_rest, a_column_of_few_values],
    ids=["unique to each person", "nine people far from the rest", "beside a column of few values"],
)
def test_groups_that_could_not_be_measured_do_not_pass(records):
    Z, y = records()
    report = pf.audit(Z=Z, private=y, **FAST)
    for limit in (2, 5, 100):
        (verdict,) = report.gate(min_group=limit)
        assert not verdict.passed
        assert "not measured, only the regions and values" in verdict.sentence or verdict.value < limit


def test_the_lift_of_symbols_against_its_definition():
    rng = np.random.default_rng(5)
    z, y = rng.integers(0, 6, 500), rng.integers(0, 3, 500)
    attribute = Attribute("y", ("a", "b", "c"), y)
    lift, group = group_findings(About(0.95, 0), attribute, Groups.of_symbols(z, attribute))
    slow = max(
        math.log2(np.mean(y[z == symbol] == label) / np.mean(y == label))
        for symbol in range(6)
        for label in range(3)
    )
    assert lift.value == pytest.approx(slow)
    assert lift.low <= slow <= lift.high
    assert group.value == min(np.sum(z == symbol) for symbol in range(6))


def test_the_interval_of_the_lift_covers_the_truth():
    """Three symbols that raise one class from a third to a half: the truth is log2 1.5 for the worst."""
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        z, y = rng.integers(0, 3, 600), rng.integers(0, 3, 600)
        y = np.where(rng.random(600) < 0.25, z, y)
        attribute = Attribute("y", (0, 1, 2), y)
        lift = group_findings(About(0.95, 0), attribute, Groups.of_symbols(z, attribute))[0]
        hits += lift.low <= math.log2(1.5) <= lift.high
    assert hits >= 190


def test_a_table_on_records_and_on_a_known_joint():
    joint = pf.datasets.paper_joint()
    table = pf.TableMechanism.identity(joint)
    exact = pf.audit(table, joint).find("lift")[0]
    ratios = joint.p_xy / joint.p_x[:, None] / joint.p_xy.sum(axis=0)
    assert exact.kind == "exact"
    assert exact.value == pytest.approx(math.log2(ratios.max()))
    x, y = joint.sample(3000, 0)
    found = {one.quantity: one for one in pf.audit(table, list(x), list(y), n_jobs=1).findings}
    assert found["lift"].low <= exact.value <= found["lift"].high
    assert found["group size"].value == np.unique(np.array(x), return_counts=True)[1].min()


def test_groups_of_a_noisy_table_are_sizes_on_average():
    table = np.array([[0.9, 0.1], [0.2, 0.8]])
    groups = Groups.of_table(table, np.array([[40.0, 60.0], [30.0, 20.0]]))
    np.testing.assert_allclose(groups.counts.sum(axis=1), [100, 50] @ table)
    rng = np.random.default_rng(0)
    sizes = [rng.binomial(100, 0.1) + rng.binomial(50, 0.8) for _ in range(4000)]
    assert groups.spread[1] == pytest.approx(np.std(sizes), rel=0.1)


def test_every_adversary_says_how_sure_it_makes_somebody():
    rng, y = coins(1)
    Z = (y + 0.5 * rng.normal(size=N))[:, None]
    report = pf.audit(Z=Z, private=y, **FAST)
    table = report.table("logistic regression")  # shares, rounded
    guessed = table.guessed * table.sizes[:, None]
    right = np.diag(guessed) / guessed.sum(axis=0) / table.sizes
    found = report.find("lift", source="logistic regression")[0].value
    assert found == pytest.approx(math.log2(right.max()), abs=0.05)


def test_the_group_of_another_attribute_does_not_count():
    group = Finding("group size", 30, "exact", "records", "worst-off symbol", attribute="sex")
    chances = [
        Finding("chance", 0.6, "estimate", "share", "largest class", "", name) for name in ("sex", "age")
    ]
    assert pf.AuditReport((group, chances[0])).gate(min_group=20)[0].passed
    assert not pf.AuditReport((group, *chances)).gate(min_group=20)[0].passed


def test_limits_that_were_not_measured_fail():
    report = pf.AuditReport((Finding("leakage", 0.1, "exact", "bits", "all"),))
    for one in report.gate(max_lift=5, min_group=1):
        assert not one.passed
        assert "not measured" in one.sentence


def test_the_class_that_is_guessed_best_is_told_in_steps_of_two_of_its_records():
    y = np.repeat([0, 1], [1000, 500])
    guesses = np.concatenate([np.arange(1000) >= 613, np.arange(500) >= 129]).astype(np.intp)
    found, _ = guess_findings(About(0.95, 0), Attribute("y", ("a", "b"), y), guesses[None])
    told = {one.quantity: one for one in found}
    best = told["worst-class success"]
    assert (best.value, best.notes) == (0.74, "Class b.")  # 371 of 500, in steps of 0.005
    assert best.low < 0.74 < best.high
    assert best.high - best.low < 0.1
    # 0.613 of a less the 0.258 of b that are taken for it, in steps of 0.002
    assert (told["worst-class advantage"].value, told["worst-class advantage"].notes) == (0.354, "Class a.")
