"""Adult from end to end, as somebody new would: the card tells the truth about the file that leaves."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from cli_tables import Run, read_csv

import privacyfunnel as pf
from privacyfunnel.auditing import logistic_regression
from privacyfunnel.files import open_table
from privacyfunnel.report.card import release_card, save_card


def best_guess(seen: list[tuple[str, ...]], sex: list[str]) -> float:
    """How often the likeliest sex of each combination is right, counted in the file itself."""
    counts: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for values, label in zip(seen, sex, strict=True):
        counts[values][label] += 1
    return sum(max(own.values()) for own in counts.values()) / len(sex)


@pytest.fixture
def solved(pfunnel: Run, data_folder: Path, tmp_path: Path) -> dict:
    data, saved = data_folder / "adult" / "adult.csv.gz", tmp_path / "m.json"
    ended = pfunnel(
        *("solve", data, "--public", "occupation", "--private", "sex", "--max-leakage", 0.01, "--seed", 0),
        *("--keep", "relationship", "-o", saved, "--json"),
    )
    assert ended.code == 0, ended.err
    return {"data": data, "mechanism": saved, **json.loads(ended.out)}


def test_the_card_tells_the_truth_about_the_file(pfunnel: Run, solved: dict, tmp_path: Path) -> None:
    columns = ["occupation", "sex", "relationship"]
    table = open_table(solved["data"])
    batches = [batch.to_pydict() for batch in table.batches(columns)]
    occupation, sex, relationship = ([v for batch in batches for v in batch[name]] for name in columns)
    mechanism = pf.load(solved["mechanism"])
    (told,) = solved["kept"]
    assert told["leakage"] == pytest.approx(0.394, abs=5e-4)
    assert told["guess"] == pytest.approx(best_guess([(one,) for one in relationship], sex))

    options = {"adversaries": [logistic_regression()], "n_repeats": 1, "n_jobs": 1}
    for keep in ([], ["relationship"]):
        out = tmp_path / "released.csv"
        ended = pfunnel(
            "release",
            *(solved["data"], "-m", solved["mechanism"], "-o", out),
            *(part for name in keep for part in ("--keep", name)),
        )
        assert ended.code == 0, ended.err
        header, rows = read_csv(out)
        assert sorted(header) == sorted([*keep, "z"])
        from_file = best_guess([tuple(row) for row in rows], sex)
        report = pf.audit(
            mechanism,
            occupation,
            {"sex": sex},
            keep={"relationship": relationship} if keep else None,
            **options,
        )
        save_card(report, tmp_path / "card.md")
        numbers = release_card(report)["numbers"]
        found = [one for one in numbers if one["quantity"] == "success"]
        on_card = max(one["value"] for one in found if one["on"] != "X")
        assert any(one["on"] == "X" for one in found)  # what there was before
        # The file is one draw of the release, and its own likeliest guesses flatter it a little.
        assert on_card == pytest.approx(from_file, abs=0.006)
        page = (tmp_path / "card.md").read_text(encoding="utf-8")
        assert ("relationship alone lets an attacker guess sex" in page) == bool(keep)
        if keep:
            assert on_card > 0.77
            assert told["guess_with_z"] == pytest.approx(on_card, abs=0.006)
            assert not report.gate(max_success=0.7)[0].passed
        else:
            assert on_card < 0.68
            assert report.gate(max_success=0.7)[0].passed
