"""pfunnel demo: a table protected; every method of the library is in the table and in the figure."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_tables import Run

from privacyfunnel.discrete.methods import METHODS


def test_two_methods(pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {method: METHODS[method] for method in ("auto", "submodular", "greedy")}
    monkeypatch.setattr("privacyfunnel.discrete.methods.METHODS", rows)
    ended = pfunnel("demo", "--every-method", "--output", tmp_path / "new" / "folder", "--n-jobs", 1)
    assert ended.code == 0, ended.err
    figure = tmp_path / "new" / "folder" / "information-plane.png"
    assert str(figure) in ended.out
    assert figure.read_bytes().startswith(b"\x89PNG")
    written = {"adult.csv", "adult-safe.csv", "adult.png", figure.name}
    assert {path.name for path in figure.parent.iterdir()} == written
    shown = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines() if line.strip()}
    # Time sharing between the partitions (0, 0), (0.9183, 0.2334) and (1.5850, 0.6551).
    for method in ("submodular", "greedy"):
        assert shown[method][:3] == ["0.12706", "0.28505", "0.60138"]
    assert shown["known"][1:] == ["0.09137", "0.28280", "0.60089"]
    assert "does not prove" in " ".join(ended.out.split())


def test_a_table_is_protected_first_and_its_commands_are_told(
    pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacyfunnel.discrete.methods.METHODS", {"submodular": METHODS["submodular"]})
    ended = pfunnel("demo", "--output", tmp_path, "--n-jobs", 1)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("A table protected. 32,561 people of a census (Adult), 13 columns besides")
    told = " ".join(ended.out.split())
    assert "is right more often than 68.0 % of the time" in told
    assert "Certificate: at most 0.05 bit about sex, for every adversary" in told
    assert f"pfunnel protect {tmp_path / 'adult.csv'} --private sex --task income-per-year" in told
    with (tmp_path / "adult.csv").open(newline="") as before, (tmp_path / "adult-safe.csv").open() as after:
        rows, released = list(csv.reader(before)), list(csv.reader(after))
    assert len(rows) == len(released) == 32_562
    assert [name for name in rows[0] if name != "sex"] == released[0]
    assert sum(a[0] == b[0] for a, b in zip(rows[1:], released[1:], strict=True)) < 10_000  # ages


def test_folder_that_cannot_be_made(pfunnel: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = pfunnel("demo", "--output", tmp_path / "file" / "folder")
    assert ended.code == 2
    assert "cannot make the folder" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.full
def test_every_method_in_processes(pfunnel: Run, tmp_path: Path) -> None:
    ended = pfunnel("demo", "--every-method", "--output", tmp_path, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert values["certified"]["success_at_most"] == pytest.approx(0.68, abs=0.005)
    assert values["certified"]["column_bits"]["relationship"][0] == pytest.approx(0.394, abs=1e-3)
    assert [row["method"] for row in values["methods"]] == [m for m in METHODS if m != "auto"]
    for row in values["methods"]:
        for leakage, optimum in zip(row["leakage"], values["optimum"], strict=True):
            assert leakage >= optimum - 1e-5
    best = {row["method"]: row["leakage"] for row in values["methods"]}
    assert best["dca"] == pytest.approx(values["optimum"], abs=1e-4)
