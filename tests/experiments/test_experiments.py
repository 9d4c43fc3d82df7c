"""Experiments at smoke scale: what is asked for, what is written, and the statements about it."""

from __future__ import annotations

import csv
import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.experiments import EXPERIMENTS, SCALES, estimated_hours, experiment, known, reproduce
from privacyfunnel.experiments.appendix import PAPER_CODES
from privacyfunnel.experiments.base import spread
from privacyfunnel.experiments.learned import compare, groups, undominated
from privacyfunnel.sweep.execute import prepare

PFUNNEL = [sys.executable, "-c", "from privacyfunnel.cli import main; main()"]


def read(path: Path) -> dict[str, list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_runs_are_distinct_and_their_cost_is_told(name: str, scale: str) -> None:
    runs = EXPERIMENTS[name].runs(scale)
    assert len({run.canonical() for run in runs}) == len(runs) > 0
    assert 0 < estimated_hours(name, scale) < math.inf
    assert estimated_hours(name, "smoke") <= estimated_hours(name, "paper")


def test_all_small_experiments_fit_into_ninety_minutes_of_two_cores() -> None:
    assert sum(estimated_hours(name, "small") for name in EXPERIMENTS) < 3.0


def test_paper_scale_is_the_papers() -> None:
    runs = [run for run in EXPERIMENTS["known"].runs("paper") if run.method == "dca-sparse"]
    assert len(runs) == 3 * 16 * 16 * 10
    alphas = sorted({run.settings["alpha"] for run in runs})
    assert len(alphas) == 16
    assert (alphas[0], alphas[-1]) == (0.1, 10)
    assert {run.settings["n_z"] for run in runs} == {2, 3, 4}
    learned = [run for run in EXPERIMENTS["mnist"].runs("paper") if run.method == "written"]
    linear = [run for run in learned if "classifier" not in run.settings]
    assert {run.settings["n_components"] for run in linear} == {32, 64, 128, 256}
    assert {run.seed for run in linear} == {0, 1, 2}
    assert {run.settings["epochs"] for run in linear} == {100}
    assert min(run.settings["alpha"] for run in linear) == pytest.approx(5e-4)
    assert max(run.settings["beta"] for run in linear) == pytest.approx(5e-2)
    assert linear[0].data == {"name": "mnist"}


@pytest.mark.parametrize("name", ["known", "pictures"])
def test_runs_could_begin(name: str) -> None:
    pytest.importorskip("torch")
    for run in EXPERIMENTS[name].runs("smoke"):
        prepare(run)


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
            if name not in ("utility", "proved: at least"):
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


def record(method: str, values: dict[str, float], seed: int = 0, **settings: Any) -> dict[str, Any]:
    run = {"method": method, "settings": settings, "seed": seed, "data": None}
    return {"key": "k", "run": run, "values": values, "seconds": 1.0}


def test_comparison_at_equal_gain() -> None:
    first = [record("a", {"g": g, "c": 0.1 * g}, beta=g) for g in (1.0, 2.0, 3.0)]
    second = [record("b", {"g": g, "c": 0.1 * g + 0.2}, beta=g) for g in (1.0, 2.0, 3.0)]
    one, two = (groups({"x": part}) for part in (first, second))
    found = compare(one, two, "g", "c")
    assert found is not None
    assert (found.mean, found.lowest, found.highest) == pytest.approx((-0.2, -0.2, -0.2))
    assert (found.from_level, found.to_level) == (1.0, 3.0)
    apart = groups({"x": [record("c", {"g": 9.0, "c": 0.0}), record("c", {"g": 8.0, "c": 0}, beta=2)]})
    assert compare(one, apart, "g", "c") is None


def test_curves_are_compared_along_their_undominated_lines() -> None:
    points = {1.0: 0.0, 2.0: 0.4, 2.5: 0.5, 3.0: 0.3, 4.0: 0.9}  # 2.0 and 2.5 cost more than 3.0
    (curve,) = [groups({"x": [record("a", {"g": g, "c": c}, beta=g) for g, c in points.items()]})]
    assert [group.mean("g") for group in undominated(curve, "g", "c")] == [1.0, 3.0, 4.0]
    # The same line with settings elsewhere on it is neither better nor worse.
    same = {1.0: 0.0, 1.5: 0.075, 3.0: 0.3, 3.5: 0.6}
    other = groups({"x": [record("b", {"g": g, "c": c}, beta=g) for g, c in same.items()]})
    found = compare(curve, other, "g", "c")
    assert found is not None
    assert (found.lowest, found.highest) == pytest.approx((0.0, 0.0), abs=1e-12)
    assert (found.from_level, found.to_level) == (1.0, 3.5)


def test_seeds_are_put_together() -> None:
    parts = [record("a", {"c": v}, seed, beta=1) for seed, v in enumerate((1.0, 2.0, 6.0))]
    (group,) = groups({"x": parts})
    assert group.mean("c") == 3.0
    assert group.deviation("c") == pytest.approx(math.sqrt(7))
    assert spread([1.0, 2.0, 6.0]) == "3 ± 2.6"
    assert spread([1.5]) == "1.5"


def test_claims_can_fail() -> None:
    """Sparse points that cover submodular and lie below it make the first claim hold; without them, not."""
    solved = pf.datasets.paper_joint()
    base = []
    for method in ("dca-ridge", "dca", "greedy", "splitting", "exact", "dca-sparse", "submodular"):
        values = {"utility": 0.5, "leakage": 0.1271, "lower_bound": 0.0, "status": "CONVERGED", "n_steps": 5}
        base.append(record(method, values, beta=0.2))
    proved = dict.fromkeys(known.UTILITIES, 0.0)

    def first(records: list[dict[str, Any]]) -> bool | None:
        return known.claims(records, known.frontiers(records), proved)[0].holds

    assert solved.entropy_x > 0.5
    assert first(base) is False
    better = {"utility": 0.5, "leakage": 0.1, "lower_bound": None, "status": "CONVERGED", "n_steps": 5}
    assert first([*base, record("dca-sparse", better, beta=0.3)]) is True


def test_learned_experiment_at_smoke_scale(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    reproduce("code-length", "smoke", output=tmp_path / "out", store=tmp_path / "runs", n_jobs=2)
    table = read(tmp_path / "out" / "code-length.csv")
    assert set(table["method"]) == {"d = 4", "d = 8"}
    assert all(0 <= float(value) <= 1 for value in table["clustering"])
    assert (tmp_path / "out" / "code-length.png").exists()
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "- `audit` judged releases of 200 test records: logistic regression, KMeans." in page


@pytest.mark.full
@pytest.mark.parametrize("name", ["mnist", "pictures", "adult", "occupation"])
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


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="No experiment is called 'mnits'; did you mean 'mnist'"):
        experiment("mnits")
    with pytest.raises(InvalidInputError, match="scale must be one of smoke, small, paper"):
        reproduce("known", "huge", output=tmp_path, store=tmp_path / "runs")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFileError, match="cannot make the folder"):
        reproduce("known", "smoke", output=tmp_path / "file" / "x", store=tmp_path / "runs")


def test_failed_run_stops_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

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
