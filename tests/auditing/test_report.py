"""Findings, reports and the gate: what they refuse, keep, compare and judge."""

import json
import math

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import AuditReport, ClassTable, Finding
from privacyfunnel.errors import FileFormatError, InvalidInputError, PrivacyFunnelWarning


def success(value, low, high, **more):
    return Finding(
        "success", value, "lower bound", "share", **{"source": "net", "interval": (low, high)} | more
    )


COUNTS = np.array([[80, 20, 0], [10, 30, 0], [0, 0, 10]])
TABLE = ClassTable.of_counts("net", "Z", "private", ("a", "b", 3), COUNTS)
REPORT = AuditReport(
    (
        success(0.5, 0.4, 0.6, n_samples=15, seed=0, threat_model="Sees codes."),
        Finding("psnr", math.inf, "estimate", "dB", "reconstruction", "X_hat", interval=(20.0, math.inf)),
        Finding("leakage", 0.1, "lower bound", "bits", "net", interval=(0.05, 0.15)),
        Finding("leakage", 1.0, "upper bound", "bits", "entropy of the attribute", interval=(0.9, 1.1)),
    ),
    (TABLE,),
    {"name": "one", "run": {"seconds": 1.0}},
    {"images": {"shape": [1, 2], "X": [[0.0, 1.0]], "X_hat": [[0.5, 0.5]]}},
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"quantity": "luck"}, "no quantity"),
        ({"kind": "guess"}, "kind must be one of"),
        ({"value": math.nan}, "does not lie in its interval"),
        ({"interval": (0.6, 0.7)}, "does not lie in its interval"),
    ],
)
def test_a_finding_that_says_nothing_is_refused(change, message):
    fields = {"quantity": "success", "value": 0.5, "kind": "estimate", "unit": "share", "source": "net"}
    with pytest.raises(InvalidInputError, match=message):
        Finding(**(fields | change))


def test_ends_of_an_exact_value_are_the_value():
    finding = Finding("leakage", 0.3, "exact", "bits", "all")
    assert (finding.low, finding.high, finding.interval) == (0.3, 0.3, None)
    assert finding.meaning.startswith("I(Z;Y)")


def test_reports_come_back_as_they_were(tmp_path):
    REPORT.save(tmp_path / "audit.json")
    back = pf.load(tmp_path / "audit.json")
    assert isinstance(back, AuditReport)
    assert back.findings == REPORT.findings
    assert back.tables[0].classes == TABLE.classes
    np.testing.assert_array_equal(back.tables[0].guessed, TABLE.guessed)
    assert back.to_json() == REPORT.to_json()
    assert json.loads(REPORT.to_json())["findings"][1]["value"] == "inf"


def test_damaged_and_unknown_files_are_refused(tmp_path):
    REPORT.save(tmp_path / "audit.json")
    text = (tmp_path / "audit.json").read_text().replace('"kind":"lower bound"', '"kind":"hunch"', 1)
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(FileFormatError, match="damaged"):
        pf.load(tmp_path / "audit.json")
    with pytest.raises(InvalidInputError, match=r"saved as .html or .json"):
        REPORT.save(tmp_path / "audit.txt")


def test_frames_have_a_row_a_number_and_a_row_a_class():
    frame = REPORT.to_frame()
    assert list(frame["quantity"]) == ["success", "psnr", "leakage", "leakage"]
    assert list(frame["kind"])[3] == "upper bound"
    classes = REPORT.class_frame()
    assert list(classes["success"]) == pytest.approx([0.8, 0.75, 1.0])
    assert list(classes["size"]) == pytest.approx([0.65, 0.25, 0.05])  # 100, 40 and 10 of 150
    assert list(classes["false_guesses"]) == pytest.approx([0.2, 0.2, 0])  # 10 of 50, 20 of 110
    assert (classes["low"] <= classes["success"]).all()


def test_a_number_without_an_interval_has_none():
    alone = Finding("p-value", 0.2, "estimate", "", "net", confidence=0.9)
    frame = AuditReport((alone, REPORT.findings[0])).to_frame()
    for name in ("low", "high", "confidence"):
        missing, there = list(frame[name])
        assert missing is None or missing != missing
        assert there == getattr(REPORT.findings[0], name)
    assert alone.to_dict()["confidence"] is None
    assert Finding.from_dict(alone.to_dict()).interval is None
    other = AuditReport((Finding("p-value", 0.9, "estimate", "", "net"),), meta={"name": "two"})
    assert list(AuditReport((alone,)).compare([other])["two: differs"]) == [None]


def test_few_records_make_a_report_as_private_as_they_are():
    assert "20 records" in AuditReport((), meta={"n_records": 20}).notice
    assert AuditReport((), meta={"n_records": 100}).notice == ""
    assert AuditReport((), meta={"n_records": None}).notice == ""


FORMAT_1 = {
    "findings": [
        {
            "quantity": "success",
            "value": 0.61234,
            "kind": "lower bound",
            "unit": "share",
            "source": "net",
            "on": "Z",
            "attribute": "job",
            "interval": [0.56543, 0.65765],
            "confidence": 0.95,
            "n_samples": 303,
            "seed": 7,
            "threat_model": "Sees codes.",
            "notes": "",
        },
        {
            "quantity": "worst-class success",
            "value": 1.0,
            "kind": "lower bound",
            "unit": "share",
            "source": "net",
            "on": "Z",
            "attribute": "job",
            "interval": [0.4, 1.0],
            "confidence": 0.95,
            "n_samples": 303,
            "seed": 7,
            "threat_model": "Sees codes.",
            "notes": "Class spy.",
        },
        {
            "quantity": "psnr",
            "value": "inf",
            "kind": "estimate",
            "unit": "dB",
            "on": "X_hat",
            "source": "reconstruction",
            "attribute": "",
            "interval": None,
            "confidence": 0.95,
            "n_samples": 303,
            "seed": 7,
            "threat_model": "",
            "notes": "",
        },
    ],
    "tables": [
        {
            "source": "net",
            "on": "Z",
            "attribute": "job",
            "confidence": 0.95,
            "classes": ["cook", "miner", "spy"],
            "cells": [[0, 0, 1, 2], [0, 1, 1, 2], [100, 57, 143, 3]],
        }
    ],
    "meta": {
        "name": "old",
        "mechanism": "Encoder(n=2, random_state=7712)",
        "n_records": 303,
        "attributes": [
            {"name": "job", "kind": "classes", "n_classes": 3, "classes": ["cook", "miner", "spy"]}
        ],
        "tasks": [],
        "fingerprint": {"Z": "sha256:aa", "private": "sha256:bb", "X": "sha256:cc"},
        "audited": ["303 records, private: job.", "Released by: Encoder(n=2, random_state=7712)"],
        "not_audited": ["Several releases of one record, unless many_draws was set."],
        "run": {"seconds": 1.0, "n_jobs": 1},
    },
    "figures_data": {"umap": {"rows": [4, 5], "labels": ["spy", "cook"], "Z": [[0.0, 1.0], [1.0, 0.0]]}},
}


def save_format_1(path, **changes):
    header = {"format": "privacyfunnel", "kind": "audit-report", "version": 1}
    path.write_text(json.dumps(header | {"payload": FORMAT_1 | changes}))


def test_audits_of_format_1_are_read_without_what_they_tell_about_people(tmp_path):
    save_format_1(tmp_path / "old.json")
    with pytest.warns(PrivacyFunnelWarning, match=r"old\.json: .* figures, counts and hashes were left out"):
        report = pf.load(tmp_path / "old.json")
    (success,) = report.find("success")
    assert (success.value, success.interval, success.source) == (0.612, (0.565, 0.658), "net")
    assert report.find("psnr")[0].value == math.inf
    (table,) = report.tables
    assert table.classes == ("cook", "miner")
    assert table.guessed.tolist() == [[0.64, 0.36], [0.0, 1.0]]
    assert report.figures_data == {}
    assert report.meta["fingerprint"] == {"Z": "sha256:aa"}
    told = report.to_json()
    for private in ("spy", "7712", "sha256:bb", "sha256:cc", "143", "rows", "0.61234"):
        assert private not in told
    report.save(tmp_path / "new.json")
    assert pf.load(tmp_path / "new.json").to_json() == told


def test_a_gate_on_an_audit_of_format_1_counts_its_rare_classes(tmp_path):
    save_format_1(tmp_path / "old.json")
    with pytest.warns(PrivacyFunnelWarning):
        report = pf.load(tmp_path / "old.json")
    assert report.find("unmeasured success")[0].value >= 3 / 303
    (verdict,) = report.gate(max_success=0.66)
    assert verdict.sentence.startswith("Failed: not measured: 1 class has fewer than 10 records")


def test_bins_of_format_1_do_not_tell_their_edges(tmp_path):
    edges = ["−∞ … 41234.56", "41234.56 … ∞"]
    table = {**FORMAT_1["tables"][0], "classes": edges, "cells": [[0, 1], [0, 1], [150, 150]]}
    wage = {"name": "job", "kind": "numbers", "n_classes": 2, "classes": edges}
    save_format_1(tmp_path / "old.json", tables=[table], meta=FORMAT_1["meta"] | {"attributes": [wage]})
    with pytest.warns(PrivacyFunnelWarning):
        report = pf.load(tmp_path / "old.json")
    assert report.tables[0].classes == ("bin 1 of 2", "bin 2 of 2")
    assert "41234" not in report.to_json()


@pytest.mark.parametrize("changes", [{"tables": [{}]}, {"findings": [{}]}, {"meta": {"attributes": [{}]}}])
def test_a_damaged_audit_of_format_1_is_refused(tmp_path, changes):
    save_format_1(tmp_path / "old.json", **changes)
    with pytest.raises(FileFormatError, match="damaged"):
        pf.load(tmp_path / "old.json")


def test_numbers_and_tables_are_found():
    assert REPORT.find("leakage", kind="upper bound")[0].value == 1.0
    assert REPORT.strongest is REPORT.findings[0]
    assert REPORT.table("net") is TABLE
    with pytest.raises(InvalidInputError, match="it has 'net' on Z"):
        REPORT.table("trees")
    assert "net guesses 50.0%" in repr(REPORT)


def test_comparison_says_what_differs():
    other = AuditReport(
        (success(0.8, 0.7, 0.9), success(0.5, 0.4, 0.6, source="trees")), meta={"name": "two"}
    )
    frame = REPORT.compare([other, REPORT])
    assert list(frame["quantity"])[:2] == ["success", "psnr"]
    assert next(iter(frame["two: differs"]))
    assert next(iter(frame["two: value"])) == 0.8
    assert not next(iter(frame["one (2): differs"]))
    assert list(frame["two: differs"])[1] is None


def test_the_gate_judges_by_the_pessimistic_end():
    verdicts = {one.name: one for one in REPORT.gate(max_success=0.55, max_leakage=0.2, min_psnr=19)}
    assert not verdicts["max_success"].passed  # 0.5 is within, 0.6 is not
    assert verdicts["max_success"].value == 0.6
    assert verdicts["max_leakage"].passed
    assert not verdicts["max_leakage"].proved
    assert "another may find more" in verdicts["max_leakage"].sentence
    assert verdicts["min_psnr"].passed
    assert not REPORT.gate(min_psnr=21)[0].passed
    assert json.dumps(verdicts["max_success"].to_dict())


@pytest.mark.parametrize(
    ("low", "limit", "passed", "words"),
    [
        (30.41, 30, True, "the smallest group is at least 30 records where 30 was asked for"),
        (30.41, 31, False, "the smallest group may be as low as 30 records where 31 was asked for"),
        (1.9, 2, False, "as low as 1 record where"),
        (0.2, 1, False, "as low as 0 records where"),
        (12345.6, 10, True, "at least 12,345 records where"),
    ],
)
def test_the_gate_counts_whole_records(low, limit, passed, words):
    """The size of a group over releases is an estimate, and people come whole: the smaller number holds."""
    group = Finding("group size", low + 5, "estimate", "records", "symbols", interval=(low, low + 9))
    (verdict,) = AuditReport((group,)).gate(min_group=limit)
    assert (verdict.passed, verdict.value) == (passed, low)
    assert words in verdict.sentence


@pytest.mark.parametrize(
    ("name", "limit", "words"),
    [
        ("max_success", 90, "a share between 0 and 1, such as 0.9; it is 90"),
        ("max_success", -0.1, "at least 0; it is -0.1"),
        ("max_success", "0.9", "must be a finite number"),
        ("max_success", math.nan, "must be a finite number"),
        ("max_leakage", -1, "at least 0; it is -1"),
        ("max_leakage", "1", "must be a finite number"),
        ("max_lift", math.inf, "must be a finite number"),
        ("max_lift", [1], "must be a finite number"),
        ("min_group", True, "must be a finite number"),
        ("min_psnr", "20", "must be a finite number"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused(name, limit, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        REPORT.gate(**{name: limit})
    assert error.value.names == (name,)
    assert "\n" not in str(error.value)


def test_limits_may_be_numbers_of_numpy_and_psnr_below_zero():
    assert REPORT.gate(max_success=np.float32(1))[0].passed
    assert REPORT.gate(min_psnr=-5)[0].passed


def test_an_upper_bound_within_the_limit_proves_it():
    bound = Finding("leakage", 0.3, "upper bound", "bits", "certificate", interval=(0.0, 0.3))
    verdict = AuditReport((*REPORT.findings, bound)).gate(max_leakage=0.4)[0]
    assert verdict.passed
    assert verdict.proved
    assert "every adversary" in verdict.sentence


def test_all_there_is_to_know_was_counted_and_proves_nothing():
    """Somebody may have a private value that none of the records has."""
    verdict = REPORT.gate(max_leakage=1.2)[0]
    assert verdict.passed
    assert not verdict.proved
    assert "Values that none of them has are not counted" in verdict.sentence


def test_an_exact_value_overrides_the_noise_of_adversaries():
    exact = Finding("success", 0.55, "exact", "share", "Bayes adversary")
    assert AuditReport((*REPORT.findings, exact)).gate(max_success=0.56)[0].passed
    assert not AuditReport((*REPORT.findings, exact)).gate(max_success=0.54)[0].passed


def test_an_exact_value_says_nothing_about_another_attribute():
    exact = Finding("success", 0.1, "exact", "share", "Bayes adversary", attribute="age")
    verdict = AuditReport((*REPORT.findings, exact)).gate(max_success=0.55)[0]
    assert not verdict.passed
    assert verdict.finding.attribute == "private"


def test_what_was_not_measured_does_not_pass():
    for verdict in AuditReport(()).gate(max_success=1, max_leakage=99, min_psnr=0):
        assert not verdict.passed
        assert "not measured" in verdict.sentence


def test_raw_records_do_not_decide():
    report = AuditReport((success(0.3, 0.2, 0.4), success(0.99, 0.9, 1.0, on="X")))
    assert report.gate(max_success=0.5)[0].passed
