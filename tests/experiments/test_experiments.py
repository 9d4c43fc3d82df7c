"""Experiments at smoke scale: what is asked for, what is written, and the statements about it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.experiments import (
    EXPERIMENTS,
    SCALES,
    experiment,
    reproduce,
)
from privacyfunnel.experiments.appendix import PAPER_CODES
from privacyfunnel.experiments.base import Claim
from privacyfunnel.sweep.execute import prepare

PFUNNEL = [sys.executable, "-c", "from privacyfunnel.cli import main; main()"]


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


@pytest.fixture(scope="module")
def known_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("known")
    summary, written = reproduce("known", "smoke", output=folder / "out", store=folder / "runs", n_jobs=1)
    assert summary.n_failed == 0
    assert summary.n_computed == summary.n_runs
    assert all(os.path.exists(name) for name in written)
    return folder


def test_known_table_is_true(known_results: Path) -> None:
    """The proved column is the known optimum, and nothing in the table lies below it."""
    table = read(known_results / "out" / "known-leakage.csv")
    optimum = dict(next(one.points for one in pf.datasets.known_joints() if one.name == "paper"))
    for row, utility in enumerate(map(float, table["utility"])):
        proved = float(table["proved: at least"][row])
        assert proved == pytest.approx(optimum[utility], abs=2e-5)
        for name in table:
            if name not in ("utility", "proved: at least") and "minus" not in name and table[name][row]:
                assert float(table[name][row]) >= proved - 1e-6, name
    assert float(table["exact, time sharing"][4]) == pytest.approx(optimum[0.5], abs=2e-5)


def test_nothing_is_decided_at_smoke_scale_and_reproducing_again_computes_nothing(
    known_results: Path,
) -> None:
    findings = json.loads((known_results / "out" / "known.json").read_text())["payload"]
    assert {claim["holds"] for claim in findings["claims"]} == {None}
    before = {path: path.read_bytes() for path in (known_results / "out").glob("*.[cp]*")}
    summary, _ = reproduce(
        "known", "smoke", output=known_results / "out", store=known_results / "runs", n_jobs=1
    )
    assert (summary.n_computed, summary.n_reused) == (0, summary.n_runs)
    assert before == {path: path.read_bytes() for path in (known_results / "out").glob("*.[cp]*")}


def test_page_has_statements_figures_and_commands(known_results: Path) -> None:
    page = (known_results / "out" / "README.md").read_text(encoding="utf-8")
    assert "`pfunnel reproduce known --scale smoke`" in page
    for name in ("figure-1a", "figure-1b", "known-all"):
        assert f"![{name}]({name}.png)" in page
        assert (known_results / "out" / f"{name}.png").stat().st_size < 150_000
    assert "| figure 1a, published |" in page
    assert f"privacyfunnel {pf.__version__}" in page


@pytest.mark.parametrize("name", [name for name, one in EXPERIMENTS.items() if one.curve_of is not None])
@pytest.mark.parametrize("scale", SCALES)
def test_claims_rest_on_curves_that_have_runs(name: str, scale: str) -> None:
    """A verdict waits for every run of its curves."""
    one = EXPERIMENTS[name]
    assert one.curve_of is not None
    runs = one.runs(scale)
    curve = next(found for run in runs if (found := one.curve_of({"run": run.to_dict()})))
    claim = Claim("x", "y", "z.", True, (curve,))
    everything = [{"run": run.to_dict()} for run in runs]
    assert one.decided(claim, scale, everything) == claim
    first = next(record for record in everything if one.curve_of(record) == curve)
    lacking = one.decided(claim, scale, [record for record in everything if record is not first])
    assert lacking.holds is None
    assert f"Runs so far: {curve} " in lacking.measured


def test_learned_experiment_at_smoke_scale(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    reproduce("code-length", "smoke", output=tmp_path / "out", store=tmp_path / "runs", n_jobs=1)
    table = read(tmp_path / "out" / "code-length.csv")
    assert set(table["method"]) == {"d = 4", "d = 8"}
    assert all(0 <= float(value) <= 1 for value in table["clustering"])
    assert (tmp_path / "out" / "code-length.png").exists()
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    judges = "logistic regression, network with fresh noise, KMeans"
    assert f"- `audit` judged releases of 200 records that no training saw: {judges}." in page
    assert all(float(value) > 0 for value in table["psnr_fresh"])
    assert not (tmp_path / "out" / "runs").exists()  # nothing of this scale is worth keeping


def finished(name: str, scale: str, n: int, store: Path) -> list[Any]:
    """A store that has some runs of an experiment, with made-up numbers."""
    from privacyfunnel.sweep import Store

    runs = [run for run in EXPERIMENTS[name].runs(scale) if run.method == "published"][:n]
    for number, run in enumerate(runs):
        values = {
            "psnr": 24.0 + number / 10,
            "psnr_fresh": 24.2,
            "clustering": 0.55,
            "n_judged": 100,
            "success_with_labels": 0.88,
            "leakage": 2.5,
            "n_parameters": 9,
            "judged_by": "x",
        }
        Store(store, create=True).write(prepare(run).key, run, values, 1.0)
    return runs


def test_page_about_the_runs_that_are_there_and_goes_on_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without computing: finished runs make the tables, the page says how many are missing, and what is
    kept beside it is taken into another store."""
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")

    from privacyfunnel.sweep import Run, Store

    def smoke(run: Run) -> Run:  # the same runs on data that need not be read
        return replace(run, data={"name": "digits", "n_train": 300, "n_test": 200})

    found = replace(
        EXPERIMENTS["appendix-f"],
        runs=lambda scale, runs=EXPERIMENTS["appendix-f"].runs: [smoke(run) for run in runs(scale)],
    )
    monkeypatch.setitem(EXPERIMENTS, "appendix-f", found)
    n, out = len(found.runs("paper")), tmp_path / "out"
    with pytest.raises(InvalidInputError, match=rf"none of its {n} runs at scale paper is there"):
        reproduce("appendix-f", "paper", output=out, store=tmp_path / "none", compute=False)
    finished("appendix-f", "paper", 2, tmp_path / "runs")
    summary, _ = reproduce("appendix-f", "paper", output=out, store=tmp_path / "runs", compute=False)
    assert (summary.n_runs, summary.n_reused, summary.n_computed) == (n, 2, 0)
    table = read(out / "appendix-f.csv")
    assert table["method"] == ["DCA (published)"] * 2
    assert table["seed"] == ["0", "1"]
    assert [float(value) for value in table["psnr"]] == [24.0, 24.1]
    page = (out / "README.md").read_text(encoding="utf-8")
    assert f"{n} runs. Of them 2 are computed" in page
    assert "without a verdict: known," in page
    claim = json.loads((out / "appendix-f.json").read_text())["payload"]["claims"][0]
    assert (claim["source"], claim["holds"]) == ("appendix F, published", None)
    assert claim["measured"].endswith("Runs so far: DCA (published) 2 of 3.")
    runs = finished("appendix-f", "paper", 3, tmp_path / "runs")
    reproduce("appendix-f", "paper", output=out, store=tmp_path / "runs", compute=False)
    claim = json.loads((out / "appendix-f.json").read_text())["payload"]["claims"][0]
    assert (claim["source"], claim["holds"]) == ("appendix F, published", True)
    assert "so far" not in claim["measured"]
    # A clone of the folder has the runs: another store begins with them.
    reproduce("appendix-f", "paper", output=out, store=tmp_path / "other", compute=False)
    assert Store(tmp_path / "other").keys() == {prepare(run).key for run in runs}


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["mnist", "appendix-f", "pictures", "adult", "occupation", "search", "budget"]
)
def test_other_experiments_at_smoke_scale(tmp_path: Path, name: str, data_folder: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    summary, _ = reproduce(name, "smoke", output=tmp_path / "out", store=tmp_path / "runs", n_jobs=2)
    assert summary.n_failed == 0
    if name == "pictures":
        table = read(tmp_path / "out" / "parameters.csv")
        assert [int(n) for n in table["parameters, here"]] == list(PAPER_CODES.values())


@pytest.mark.parametrize("n_classes", [2, 4])
def test_erased_records_tell_a_linear_adversary_nothing(tmp_path: Path, n_classes: int) -> None:
    pytest.importorskip("concept_erasure")
    import numpy as np

    from privacyfunnel.experiments.functions import raw_records

    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=3000)
    x = rng.normal(size=(3000, 6))
    x[:, 0] += 2 * y
    x[:, 1] += 3 * (y == 1)
    x[:, 4] = rng.random(3000) < 0.0005  # a rare category
    x[:, 5] = 1.0
    np.savez(tmp_path / "r.npz", x=x, y=y)
    ask: dict[str, Any] = {"seed": 0, "effort": "quick", "data": {"file": str(tmp_path / "r.npz")}}
    before = raw_records(**ask, adversaries=["logistic regression"])
    after = raw_records(**ask, adversaries=["logistic regression"], erase=True)
    assert before["leakage"] > 0.5
    assert after["leakage"] < 0.03
    assert before["mse"] == 0 < after["mse"]


def test_all_of_them_leave_what_is_there_at_a_larger_scale(tmp_path: Path) -> None:
    from privacyfunnel.experiments import all_but_larger
    from privacyfunnel.persistence import save_json

    for name, scale in (("appendix-f", "paper"), ("known", "small"), ("mnist", "smoke")):
        save_json(tmp_path / f"{name}.json", "experiment-findings", 1, {"scale": scale})
    assert all_but_larger(tmp_path, "small") == [name for name in EXPERIMENTS if name != "appendix-f"]
    assert all_but_larger(tmp_path, "paper") == list(EXPERIMENTS)
    assert {"appendix-f", "known"}.isdisjoint(all_but_larger(tmp_path, "smoke"))
    assert all_but_larger(tmp_path / "none", "smoke") == list(EXPERIMENTS)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No experiment is called 'mnits'; did you mean 'mnist'"):
        experiment("mnits")
    with pytest.raises(InvalidInputError, match="scale must be one of smoke, small, paper"):
        reproduce("known", "huge", output=tmp_path, store=tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match="cannot make the folder"):
        reproduce("known", "smoke", output=tmp_path / "file" / "x", store=tmp_path / "runs")


def test_failed_run_stops_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    from privacyfunnel.sweep import Run

    bad = replace(EXPERIMENTS["known"], runs=lambda scale: [Run("dca", "paper", {"beta": -1})])
    monkeypatch.setitem(EXPERIMENTS, "known", bad)
    with pytest.raises(InvalidInputError, match="1 of 1 runs failed, the first with: beta must be"):
        reproduce("known", "smoke", output=tmp_path / "out", store=tmp_path / "runs", n_jobs=1)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.full
def test_three_kills_change_no_byte_of_the_tables(tmp_path: Path, known_results: Path) -> None:
    command = [*PFUNNEL, "reproduce", "known", "--scale", "smoke", "--store", "runs", "-o", "out"]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    def kept() -> int:
        return sum(1 for _ in (tmp_path / "runs" / "runs").glob("[!.]*.json"))

    for number in (20, 60, 100):
        process = start()
        while kept() < number and process.poll() is None:
            os.sched_yield()
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert number <= kept() < 138
    process = start()
    assert process.communicate(timeout=300)[1] == b""
    assert process.returncode == 0
    for name in ("known-leakage.csv", "known-endings.csv", "figure-1a.png"):
        assert (tmp_path / "out" / name).read_bytes() == (known_results / "out" / name).read_bytes()
