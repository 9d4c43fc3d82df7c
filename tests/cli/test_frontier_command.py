"""pfunnel frontier: the table, the files and the JSON tell the same curve."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from cli_tables import Run

import privacyfunnel as pf

ASK = ("--public", "city", "--private", "sex", "--method", "greedy", "--seed", 0)


def test_files_and_json_agree(pfunnel: Run, people: Path, tmp_path: Path) -> None:
    saved, table, figure = (tmp_path / name for name in ("f.json", "f.csv", "f.png"))
    ended = pfunnel(
        "frontier",
        people,
        *ASK,
        "--output",
        saved,
        "--csv",
        table,
        "--plot",
        figure,
        "--n-points",
        5,
        "--json",
    )
    assert ended.code == 0
    assert ended.err.startswith("warning: 60 records for 4 letters of city (15.0 a letter) are few")
    values = json.loads(ended.out)
    front = pf.load(saved)
    assert [row["share_of_entropy_x"] for row in values["table"]] == [k / 10 for k in range(1, 11)]
    for row in values["table"]:
        assert row["leakage"] == {"greedy": front.leakage_at(row["utility"])}
        assert row["lower_bound"] is None
    assert [(c["utility"], c["leakage"]) for c in values["corners"]] == [
        (p.utility, p.leakage) for p in front.envelope()
    ]
    assert values["written"] == [str(saved), str(table), str(figure)]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == values["n_points"] == len(front.points)
    assert figure.read_bytes().startswith(b"\x89PNG")
    joint = pf.Joint.from_frame(_frame(people), public="city", private="sex")
    assert front.max_utility == pytest.approx(joint.entropy_x, abs=1e-12)
    for point in front.envelope():
        solution = pf.Solution(joint, point.mechanism, "check", pf.Status.FINISHED)
        assert (solution.utility, solution.leakage) == pytest.approx(
            (point.utility, point.leakage), abs=1e-12
        )


def test_table_has_a_column_a_method(pfunnel: Run, people: Path) -> None:
    ended = pfunnel("frontier", people, *ASK, "--method", "submodular", "--n-points", 4)
    assert ended.code == 0, ended.err
    header = next(line for line in ended.out.splitlines() if "utility" in line and "of H(X)" in line)
    assert header.split()[-3:] == ["greedy", "submodular", "nothing"]
    last = next(line for line in ended.out.splitlines() if "100 %" in line).split()
    assert last[3] == last[4] == last[5]  # at H(X) everything is released, whatever the method


def test_bound_is_below_every_method(pfunnel: Run, people: Path) -> None:
    ask = (*ASK, "--method", "exact", "--n-points", 3)
    ended = pfunnel("frontier", people, *ask, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    for row in values["table"]:
        lines = [line["value"] + line["beta"] * row["utility"] for line in values["support_lines"]]
        assert row["lower_bound"] == pytest.approx(max(0.0, *lines), abs=1e-12)
        assert row["lower_bound"] <= min(row["leakage"].values()) + 1e-9
    first, above, header = (pfunnel("frontier", people, *ask).out.splitlines()[k] for k in (0, 3, 4))
    middle = values["table"][4]["leakage"]
    told = re.fullmatch(
        r"On these records a release that keeps half of the public information leaks ([\d.e-]+) bit about "
        r"sex; all of it [\d.]+\.",
        first,
    )
    assert told is not None
    assert float(told[1]) == pytest.approx(min(middle.values()), abs=1e-5)
    assert "at least" in above
    assert "(proved)" in header


def test_setting_goes_to_the_method_that_has_it(pfunnel: Run, people: Path) -> None:
    symbols = ("--method", "exact", "--method", "dca", "--n-z", 2, "--n-points", 1, "--n-starts", 1)
    assert pfunnel("frontier", people, *ASK[:4], *symbols).code == 0
    more = ("--alpha", 0.5, "--n-points", 2, "--n-starts", 1)
    assert pfunnel("frontier", people, *ASK, "--method", "dca-ridge", *more).code == 0
    ended = pfunnel("frontier", people, *ASK, *more)
    assert ended.code == 2
    assert ended.err == "error: --alpha belongs to dca-ridge and dca-sparse; leave it out for greedy.\n"


def _frame(path: Path) -> object:
    import pandas

    return pandas.read_csv(path)
