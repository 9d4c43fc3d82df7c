"""pfunnel compare: a sentence first, and table, files and JSON tell the same."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_tables import Run

ASK = ("--public", "city", "--private", "sex", "--seed", 0, "--n-points", 4, "--n-starts", 1)
FEW = ("--method", "greedy", "--method", "dca-ridge")


def test_a_sentence_a_table_and_what_each_was_given(pfunnel: Run, people: Path) -> None:
    ended = pfunnel("compare", people, *ASK, *FEW)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("A release that keeps half of city must give away at least ")
    rows = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines() if line.strip()}
    for name in ("exact", "greedy", "dca-ridge"):
        assert len(rows[name]) == 7
    assert rows["proved:"][:2] == ["at", "least"]
    assert "dca-ridge: 16 β × 16 α from 0.1 to 10" in ended.out
    assert "the paper's sweep has 10" in ended.out


def test_files_and_json_agree(pfunnel: Run, people: Path, tmp_path: Path) -> None:
    page, table, figure = (tmp_path / name for name in ("c.html", "c.csv", "c.svg"))
    files = ("--output", page, "--csv", table, "--plot", figure)
    ended = pfunnel("compare", people, *ASK, *FEW, *files, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert values["command"] == "compare"
    assert list(values["methods"]) == ["exact", "greedy", "dca-ridge"]
    assert values["written"] == [str(page), str(table), str(figure)]
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["leakage"]) for row in rows] == [row["leakage"] for row in values["rows"]]
    assert values["summary"] in page.read_text(encoding="utf-8")
    assert "<svg" in figure.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--method", "auto"), "--method auto is exact or dca"),
        (("--method", "gready"), "did you mean greedy?"),
        (("--output", "page.pdf"), "ends in .html"),
        (("--plot", "plane.gif"), ".png, .pdf or .svg"),
        (("--time-limit", "0"), "--time-limit must be"),
    ],
)
def test_bad_input_is_one_line(pfunnel: Run, people: Path, given: tuple[str, str], said: str) -> None:
    ended = pfunnel("compare", people, *ASK, *given)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.strip().count("\n") == 0


def test_a_key_is_no_public_column(pfunnel: Run, tmp_path: Path) -> None:
    path = tmp_path / "keys.csv"
    lines = [f"{i},{'ab'[i % 2]},{'mf'[i // 2 % 2]}" for i in range(40)]
    path.write_text("\n".join(["id,city,sex", *lines]), encoding="utf-8")
    ended = pfunnel("compare", path, "--public", "id", "--private", "sex")
    assert ended.code == 2
    assert "id has 40 different values in 40 records, as a key or a name has" in ended.err
