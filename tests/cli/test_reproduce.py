"""`pfunnel reproduce`: what it prints, and one sentence for whatever is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_tables import Run

from privacyfunnel.experiments import EXPERIMENTS


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The known experiment without the paper's two long sweeps."""
    whole = EXPERIMENTS["known"]

    def runs(scale: str) -> list:
        kept = {"dca-sparse": 3, "dca-ridge": 3}
        found = []
        for run in whole.runs(scale):
            left = kept.get(run.method, 99)
            kept[run.method] = left - 1
            found += [run] * (left > 0)
        return found

    monkeypatch.setitem(EXPERIMENTS, "known", replace(whole, runs=runs))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("short")
def test_writes_and_says_so(pfunnel: Run) -> None:
    pytest.importorskip("matplotlib")
    ended = pfunnel("reproduce", "known", "--scale", "smoke", "--n-jobs", 1)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("About ")
    assert "on one core" in ended.out
    assert Path("results/README.md").exists()
    ended = pfunnel("reproduce", "known", "--scale", "smoke", "--n-jobs", 1, "--json")
    (one,) = json.loads(ended.out)["experiments"]
    assert one["name"] == "known"
    assert one["n_computed"] == 0
    assert one["n_reused"] == one["n_runs"]
    assert all(Path(name).exists() for name in one["written"])
    ended = pfunnel("reproduce", "known", "--scale", "smoke", "--finished")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("known: 0 runs computed")
    ended = pfunnel("reproduce", "known", "--scale", "smoke", "--finished", "--store", "none")
    assert ended.code == 2
    assert "none of its" in ended.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("figure-9",), "No experiment is called 'figure-9'; there are known, occupation"),
        (("knwon",), "did you mean 'known'?"),
        (("known", "--scale", "huge"), "--scale must be one of smoke, small, paper; it is 'huge'."),
        (("known", "--scale", "smoke", "-o", "file/x"), "file/x: cannot make the folder"),
        (
            ("known", "--scale", "smoke", "--store", "file"),
            "file: this is a file; name a folder for the runs",
        ),
    ],
)
def test_bad_input(
    pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("text")
    ended = pfunnel("reproduce", *args)
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert message in ended.err
