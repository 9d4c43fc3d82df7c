"""pfunnel demo: a table protected; every method of the library is in the table and in the figure."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from cli_tables import Run

import privacyfunnel as pf
from privacyfunnel.cli.demo_table import protect_adult
from privacyfunnel.cli.output import own_command
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
    assert "is right more often than 68.1 % of the time" in told
    assert "Certificate: at most 0.05 bit about sex, for every adversary" in told
    assert f"pfunnel protect {tmp_path / 'adult.csv'} --private sex --task income-per-year" in told
    assert "--max-leakage 0.05 --n-cells 80 --seed 0 --output safe.csv" in told
    assert "% of the people that made the rule (inspect counts everybody)" in told
    assert ": the column alone tells more after than before" in told
    assert "those before and these are other people's; none goes with another" in told
    assert "TOMORROW.csv stands for tomorrow's records" in told
    with (tmp_path / "adult.csv").open(newline="") as before, (tmp_path / "adult-safe.csv").open() as after:
        rows, released = list(csv.reader(before)), list(csv.reader(after))
    assert len(rows) == len(released) == 32_562
    assert [name for name in rows[0] if name != "sex"] == released[0]
    assert sum(a[0] == b[0] for a, b in zip(rows[1:], released[1:], strict=True)) < 10_000  # ages
    assert not any("?" in row for row in rows)  # missing is missing: protect has nothing to warn of
    relationship = rows[0].index("relationship")
    husbands = [row[relationship] == "Husband" for row in rows[1:]]
    after = [row[released[0].index("relationship")] == "Husband" for row in released[1:]]
    kept = sum(a and b for a, b in zip(husbands, after, strict=True))
    # In random order: whose row it was says nothing.
    assert kept == pytest.approx(sum(husbands) * sum(after) / len(husbands), rel=0.05)


def test_the_demo_estimates_bits_as_inspect_does(tmp_path: Path) -> None:
    people = pf.datasets.load_adult().drop(columns="fnlwgt").replace("?", None)
    table = protect_adult(0, str(tmp_path))
    expected = {one.name: one.bits.value for one in pf.inspect(people, "sex").columns if one.bits}
    assert {name: before for name, (before, _) in table.told.items()} == pytest.approx(expected)
    # Plain counts of 119 values would make 0.016 before and 0.018 after of this.
    assert max(table.told["capital-gain"]) < 0.008
    assert table.told["relationship"][0] == pytest.approx(0.394, abs=1e-3)


def test_commands_are_told_as_they_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, another = tmp_path / ".venv" / "bin" / "pfunnel", tmp_path / "my tools" / "pfunnel"
    for path in (own, another):
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "argv", [".venv/bin/pfunnel", "demo"])
    assert own_command() == ".venv/bin/pfunnel"
    monkeypatch.setenv("PATH", str(another.parent))  # a pfunnel, and not this one
    assert own_command() == ".venv/bin/pfunnel"
    monkeypatch.setenv("PATH", str(own.parent))
    assert own_command() == "pfunnel"
    monkeypatch.setattr(sys, "argv", [str(another), "demo"])
    monkeypatch.chdir(own.parent)
    assert own_command() == f"'{another}'"
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py"), "demo"])  # python -m privacyfunnel
    monkeypatch.setattr(sys, "executable", str(own.with_name("python")))
    assert own_command() == "pfunnel"
    monkeypatch.setenv("PATH", "")
    assert own_command() == "./pfunnel"


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
