"""Numbers on pages: sign of the kind, unit, digits; and which numbers are picked for the summary."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from report_samples import exact_report, finding, make_report

import privacyfunnel as pf
from privacyfunnel.auditing import AuditReport
from privacyfunnel.errors import TrainingRecordsWarning
from privacyfunnel.report import card_markdown, release_card
from privacyfunnel.report.html import headline
from privacyfunnel.report.wording import (
    SIGNS,
    attributes,
    basis,
    before,
    bracket,
    chance,
    common,
    first_lines,
    interval,
    limits,
    number,
    signed,
    strongest,
    view,
    who,
)


def test_every_kind_has_a_sign_of_its_own():
    assert len(set(SIGNS.values())) == len(SIGNS) == 4
    for kind, sign in SIGNS.items():
        assert signed(finding("leakage", 0.5, kind, "s")) == f"{sign} 0.500 bit"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.6789, "share", "67.9 %"),
        (-0.05, "share", "−5.0 %"),
        (0.0, "bits", "0.000 bit"),
        (-1e-17, "bits", "0.000 bit"),
        (0.00002, "bits", "2.0e−05 bit"),
        (12.3456, "dB", "12.35 dB"),
        (math.inf, "dB", "∞ dB"),
        (0.001, "", "0.001"),
        (123456.0, "", "1.235e+05"),
        (30.41, "records", "30 records"),
        (1.2, "records", "1 record"),
        (12345.6, "records", "12,346 records"),
    ],
)
def test_digits_fit_the_unit(value, unit, text):
    assert number(value, unit) == text


def test_an_interval_has_its_unit_once():
    assert interval(finding("success", 0.6, "lower bound", "s", interval=(0.5, 0.7))) == "50.0 to 70.0 %"
    assert interval(finding("leakage", 0.6, "estimate", "s", interval=(0.5, 0.7))) == "0.500 to 0.700 bit"
    assert interval(finding("p-value", 0.6, "estimate", "s", interval=(0.5, 0.7))) == "0.5 to 0.7"
    assert interval(finding("leakage", 0.6, "exact", "s")) == "–"


def test_what_is_seen_is_said():
    assert view("Z") == "release Z"
    assert view("Z × 16") == "16 releases of each record"
    assert who(finding("success", 0.6, "lower bound", "trees")) == "trees"
    assert who(finding("success", 0.6, "lower bound", "trees", "Z × 4")).endswith(
        "(4 releases of each record)"
    )


def test_what_is_shared_is_said_once_and_only_if_it_is_shared():
    one = finding("leakage", 0.6, "estimate", "s", interval=(0.5, 0.7))
    other = finding("leakage", 0.6, "estimate", "s", interval=(0.5, 0.7), n_samples=80, seed=7)
    assert common([one, one]) == "n = 90, seed 7, 95 % intervals, each by itself"
    assert "n =" not in common([one, other])
    assert "seed 7" in common([one, other])


def test_the_summary_picks_the_strongest_and_the_tightest():
    report = make_report()
    best = strongest(report)
    assert best is not None
    assert (best.source, best.on) == ("trees", "Z")  # not 0.9 on raw records
    raw, nothing = before(report, best), chance(report, "colour")
    assert raw is not None
    assert (raw.on, raw.value) == ("X", 0.9)
    assert nothing is not None
    assert nothing.value == pytest.approx(1 / 3)
    found = bracket(report, "leakage", "colour")
    assert (found.low, found.high) == (0.25, 1.3)  # of the intervals of 0.31 and 1.2
    assert [one.kind for one in found.findings] == ["lower bound", "estimate", "upper bound"]
    exact = bracket(exact_report(), "leakage")
    assert exact.low == exact.high == 0.25
    assert bracket(report, "maximal leakage").findings == []


def test_an_estimate_that_an_upper_bound_contradicts_is_not_picked():
    high, low = (finding("leakage", value, "estimate", "s") for value in (2.0, 0.5))
    ceiling = finding("leakage", 1.0, "upper bound", "s")
    assert bracket(AuditReport((high, low, ceiling)), "leakage").middle == low
    assert bracket(AuditReport((high, low)), "leakage").middle == high
    assert bracket(AuditReport((high, ceiling)), "leakage").middle == high


def test_an_estimate_below_a_lower_bound_is_not_shown_beside_it():
    low = finding("leakage", 0.693, "estimate", "neighbours")
    reached = finding("leakage", 0.737, "lower bound", "lines")
    assert bracket(AuditReport((low, reached)), "leakage").findings == [reached]
    assert bracket(AuditReport((low,)), "leakage").middle == low


def test_what_the_order_tells_is_no_part_of_the_bracket_of_one_release():
    order = finding("leakage", 1.0, "lower bound", "order of the rows", "order")
    ceiling = finding("leakage", 0.1, "upper bound", "known table")
    assert bracket(AuditReport((order, ceiling)), "leakage").findings == [ceiling]


def test_records_are_counted_in_words():
    assert [number(value, "records") for value in (1, 21, 0.96, 30.41, 32561)] == [
        *("1 record", "21 records", "1 record", "30 records", "32,561 records")
    ]


def test_attributes_are_named_once():
    report = make_report()
    assert attributes(report) == ["colour"]


def test_the_first_line_is_a_sentence():
    assert first_lines(make_report())[-1] == (
        "The strongest attacker tried is right about colour 60.0 % of the time; without the release 33.3 %, "
        "with the raw records 90.0 %."
    )
    assert first_lines(exact_report()) == [
        "The best attacker is right about colour 75.0 % of the time; without the release 50.0 %, with the "
        "raw records 90.0 %."
    ]
    many = AuditReport((finding("success", 0.6, "lower bound", "trees", "Z × 16"),))
    assert first_lines(many) == [
        "The strongest attacker tried is right about colour 60.0 % of the time from 16 releases of each "
        "record; without the release it was not measured, with the raw records it was not measured."
    ]
    codes = [
        finding("success", 0.6, "lower bound", "trees"),
        finding("success", 0.9, "lower bound", "trees", "X"),
    ]
    report = AuditReport((*codes, finding("success", 0.7, "lower bound", "order of the rows", "order")))
    assert str(report) == (  # what is handed out comes first; the order can be changed
        "The strongest attacker tried is right about colour 60.0 % of the time; without the release it was "
        "not measured, with the raw records 90.0 %. From the order of the rows alone 70.0 %: shuffle them."
    )
    bits = AuditReport((finding("leakage", 0.6, "lower bound", "trees"),))
    assert first_lines(bits) == ["How often an attacker is right about colour was not measured."]


def test_a_counted_joint_is_not_called_known():
    joint = pf.datasets.paper_joint()
    counted = pf.Joint.from_counts(np.array([[30, 10], [5, 55]]), x_names="job", y_names="sex")
    for given, words in ((joint, "a known distribution"), (counted, "counted in 100 records")):
        report = pf.audit(pf.TableMechanism.identity(given), given)
        assert words in basis(report)
        text = card_markdown(release_card(report))
        assert words in text
        assert ("known" in text.partition("## Limits")[0]) == (given is joint)


def test_an_audit_of_a_joint_shows_before_and_names_what_is_useful():
    counted = pf.Joint.from_counts(np.array([[30, 10], [5, 55]]), x_names="job", y_names="sex")
    merged = pf.TableMechanism(np.ones((2, 1)), x_labels=counted.x_labels, x_names=("job",))
    report = pf.audit(merged, counted)
    best = strongest(report, "sex")
    assert best is not None
    raw = before(report, best)
    assert raw is not None
    assert (best.value, raw.value, raw.on) == (pytest.approx(0.65), pytest.approx(0.85), "X")
    assert {one.attribute for one in report.find("utility")} == {"job"}
    assert attributes(report) == ["sex"]
    assert "| utility | job |" in card_markdown(release_card(report))
    leaked = next(tile for tile in headline(report) if tile["title"].startswith("I(Z;Y)"))
    assert [one.on for _, one in leaked["beside"]] == ["X"]


def test_an_audit_that_knows_the_training_records_does_not_say_that_it_cannot_see_them():
    class Known:
        share = 1.0

        def transform(self, X):
            return X

        def trained_on(self, X):
            return self.share

    X = np.random.default_rng(0).normal(size=(120, 1))
    y = np.random.default_rng(1).integers(0, 2, 120)
    given = {"adversaries": ["logistic regression"], "n_repeats": 1, "n_jobs": 1}
    for share, seen in ((1.0, True), (0.0, True), (None, False)):
        known = Known()
        known.share = share
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrainingRecordsWarning)
            report = pf.audit(known, X, y, **given)
        told = limits(report)["Records the mechanism was made from"]
        assert ("cannot see" not in told) == seen
        assert "looks smaller" in told
