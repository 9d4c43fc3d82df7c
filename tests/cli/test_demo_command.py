"""pfunnel demo: every method of the library is in the table and in the figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_tables import Run

from privacyfunnel.discrete.methods import METHODS


def test_two_methods(pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {method: METHODS[method] for method in ("auto", "submodular", "greedy")}
    monkeypatch.setattr("privacyfunnel.discrete.methods.METHODS", rows)
    ended = pfunnel("demo", "--output", tmp_path / "new" / "folder", "--n-jobs", 1)
    assert ended.code == 0, ended.err
    figure = tmp_path / "new" / "folder" / "information-plane.png"
    assert str(figure) in ended.out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in figure.parent.iterdir()] == [figure.name]
    shown = {line.split()[0]: line.split()[1:] for line in ended.out.splitlines() if line.strip()}
    # Time sharing between the partitions (0, 0), (0.9183, 0.2334) and (1.5850, 0.6551).
    for method in ("submodular", "greedy"):
        assert shown[method][:3] == ["0.12706", "0.28505", "0.60138"]
    assert shown["known"][1:] == ["0.09137", "0.28280", "0.60089"]
    assert "does not prove" in " ".join(ended.out.split())


def test_folder_that_cannot_be_made(pfunnel: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = pfunnel("demo", "--output", tmp_path / "file" / "folder")
    assert ended.code == 2
    assert "cannot make the folder" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.full
def test_every_method_in_processes(pfunnel: Run, tmp_path: Path) -> None:
    ended = pfunnel("demo", "--output", tmp_path, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    assert [row["method"] for row in values["methods"]] == [m for m in METHODS if m != "auto"]
    for row in values["methods"]:
        for leakage, optimum in zip(row["leakage"], values["optimum"], strict=True):
            assert leakage >= optimum - 1e-5
    best = {row["method"]: row["leakage"] for row in values["methods"]}
    assert best["dca"] == pytest.approx(values["optimum"], abs=1e-4)
