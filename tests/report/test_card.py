"""The release card says the same in Markdown and JSON, and what nobody knows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from report_samples import exact_report, finding, make_report

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.report import card_markdown, release_card, save_card


def test_the_two_files_hold_the_same(tmp_path):
    report = make_report()
    page, twin = save_card(report, tmp_path / "card.md", report.gate(max_success=0.6))
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert (page, twin) == (str(tmp_path / "card.md"), str(tmp_path / "card.json"))
    assert card_markdown(card) == (tmp_path / "card.md").read_text(encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"must end in \.md"):
        save_card(report, tmp_path / "card.txt")


def test_the_card_has_all_its_parts():
    report = make_report()
    text = card_markdown(release_card(report, report.gate(max_success=0.6)))
    for part in (
        "ab" * 32,
        "a \\<mechanism\\> & more",
        "seed: 7",
        "90 records.",
        "The weather.",
        "Failed: success",
    ):
        assert part in text
    for limit in ("Repeated releases", "Auxiliary knowledge", "Distribution shift", "Adversaries not tried"):
        assert f"**{limit}.**" in text
    assert "| success | colour | trees | release Z | ≥ 60.0 % | 55.0 to 65.0 % (95 %) | 90 | 7 |" in text
    assert "Tried were: trees, lines." in text


def test_markup_in_names_is_text():
    report = make_report(name="*x* | [y](z) <i>")
    text = card_markdown(release_card(report))
    assert "\n# Release card: \\*x\\* \\| \\[y\\](z) \\<i\\>\n" in text


def test_what_was_measured_about_repeats_is_said():
    report = make_report()
    more = finding("many-draws difference", 0.2, "lower bound", "trees", "Z × 16")
    repeated = replace(report, findings=(*report.findings, more))
    assert "16 releases of each record" in release_card(repeated)["limits"]["Repeated releases"]
    assert "one release of each record" in release_card(report)["limits"]["Repeated releases"]


def test_an_exact_report_speaks_of_its_distribution():
    card = release_card(exact_report())
    assert "joint distribution" in card["limits"]["Distribution shift"]
    assert "a known distribution" in card_markdown(card)
    assert "= 75.0 %" in card_markdown(card)
    assert "| success | colour | Bayes adversary | raw records X | = 90.0 % | – | – | 0 |" in card_markdown(
        card
    )
