"""The results page says what the runs beside it say: nothing was typed, and nothing is of other runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from privacyfunnel.experiments import EXPERIMENTS, adult, appendix, images
from privacyfunnel.persistence import load_json
from privacyfunnel.sweep import Store
from privacyfunnel.sweep.execute import prepare

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"


@pytest.mark.usefixtures("data_folder")
def test_every_run_that_is_kept_is_one_of_a_plan() -> None:
    """What a run is known by depends on its data, settings and code: changed, its results would be lost."""
    pytest.importorskip("concept_erasure")  # without it there is no LEACE in the plan
    plans = [("appendix-f", "paper"), *((name, "small") for name, one in EXPERIMENTS.items() if one.kept)]
    planned = {prepare(run).key for name, scale in plans for run in EXPERIMENTS[name].runs(scale)}
    kept = Store(RESULTS / "runs").keys()
    assert kept
    assert kept <= planned


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.kept])
def test_the_page_is_what_its_runs_say(name: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (adult, appendix, images):  # pictures are for eyes
        monkeypatch.setattr(module, "plot_tradeoff", lambda *given, **more: None)
    chosen, told = EXPERIMENTS[name], load_json(RESULTS / f"{name}.json")[2]
    keys = {prepare(run).key for run in chosen.runs(told["scale"])}
    records = Store(RESULTS / "runs").records(keys)
    assert (told["n_runs"], told["n_there"]) == (len(keys), len(records))
    found = chosen.find(records, told["scale"])
    assert told["notes"] == list(found.notes)
    claims = [chosen.decided(claim, told["scale"], records) for claim in found.claims]
    page = (RESULTS / (f"{name}.md" if chosen.own_page else "README.md")).read_text(encoding="utf-8")
    for claim, written in zip(claims, told["claims"], strict=True):
        assert {part: getattr(claim, part) for part in written} == written
        assert claim.measured.replace("|", "\\|") in page
    assert told["tables"] == list(found.tables)
    for table, columns in found.tables.items():
        with (RESULTS / f"{table}.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header == list(columns)
        for column, cells in zip(columns.values(), zip(*rows, strict=True), strict=True):
            for value, cell in zip(column, cells, strict=True):
                assert _same(value, cell), (table, value, cell)


def _same(value: Any, cell: str) -> bool:
    """Whether a cell of a table has this value, but for the last digits of a machine."""
    if isinstance(value, float):
        return float(cell) == pytest.approx(value, rel=1e-6, abs=1e-12)
    return cell == ("" if value is None else str(value))
