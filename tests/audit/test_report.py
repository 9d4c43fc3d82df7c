"""Findings, reports and the gate: what they refuse, keep, compare and judge."""

import json
import math

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.audit import AuditReport, ClassTable, Finding
from privacyfunnel.errors import FileFormatError, InvalidInputError


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


def test_reports_of_older_versions_are_not_read(tmp_path):
    REPORT.save(tmp_path / "audit.json")
    text = (tmp_path / "audit.json").read_text().replace('"version":2', '"version":1', 1)
    (tmp_path / "audit.json").write_text(text)
    with pytest.raises(FileFormatError, match="read no longer; make it again"):
        pf.load(tmp_path / "audit.json")


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


def test_an_upper_bound_within_the_limit_proves_it():
    verdict = REPORT.gate(max_leakage=1.2)[0]
    assert verdict.passed
    assert verdict.proved
    assert "every adversary" in verdict.sentence


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
