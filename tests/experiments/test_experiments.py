"""Experiments at smoke scale: what is asked for, what is written, and the statements about it."""

from __future__ import annotations

import csv
import json
import math
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
    estimated_hours,
    experiment,
    images,
    known,
    reproduce,
)
from privacyfunnel.experiments.appendix import PAPER_CODES, _has, _one_more
from privacyfunnel.experiments.base import Claim, spread
from privacyfunnel.experiments.learned import compare, erased, groups, levels_table, shared, undominated
from privacyfunnel.experiments.unclamped import METHOD as UNCLAMPED
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
    assert 0 < estimated_hours(name, scale=scale) < math.inf
    assert estimated_hours(name, scale="smoke") <= estimated_hours(name, scale="paper")
    assert estimated_hours(name, name, scale=scale) == estimated_hours(name, scale=scale)


def test_two_seeds_of_all_learned_experiments_fit_into_five_hours_of_two_cores() -> None:
    exact = {"known", "occupation", "certified"}
    learned = [one for name, one in EXPERIMENTS.items() if name not in exact]
    each = {
        run.canonical(): one.seconds(run) for one in learned for run in one.runs("small") if run.seed != 2
    }
    assert sum(each.values()) / 3600 < 10.0
    assert estimated_hours(*EXPERIMENTS, scale="small") < 11.25  # with the seeds that were added


@pytest.mark.parametrize("name", ["mnist", "fashion", "code-length", "appendix-f"])
def test_small_scale_is_large_enough_to_show_what_the_paper_shows(name: str) -> None:
    runs = [run for run in EXPERIMENTS[name].runs("small") if "epochs" in run.settings]
    runs = [run for run in runs if run.method != UNCLAMPED]  # shown for an epoch or two
    for run in runs:
        assert run.data is not None
        settings = run.settings
        assert run.data["n_train"] >= 30_000
        assert run.data["n_test"] >= 20_000
        assert settings["batch_size"] == 256
        assert settings["epochs"] * (run.data["n_train"] // 256) >= 5000
        assert settings.get("learning_rate", 3e-4) == 3e-4
        assert "learning_rate" in settings or run.method == "funnel"  # ours has its own
    assert {run.seed for run in runs} >= {0, 1}


def test_funnel_is_judged_as_it_is_too() -> None:
    for name in ("mnist", "fashion", "adult"):
        (settings,) = {
            tuple(run.settings)
            for run in EXPERIMENTS[name].runs("small")
            if run.method == "funnel" and "alpha" not in run.settings
        }
        assert {*settings} <= {"adversaries", "effort", "decoder_steps", "n_components"}


def test_what_is_seen_again_is_in_the_plan_with_the_first_seeds_too() -> None:
    runs = [run for run in EXPERIMENTS["mnist"].runs("small") if run.seed < images.MORE_SEED]
    again = [run for run in EXPERIMENTS["mnist"].runs("small") if run.seed == images.MORE_SEED]
    assert len(again) == sum(map(len, images.SEEN_AGAIN.values()))
    first = {run.canonical() for run in runs}
    assert all(replace(run, seed=seed).canonical() in first for run in again for seed in (0, 1))


def test_appendix_f_is_the_papers_setting_three_times() -> None:
    runs = [run for run in EXPERIMENTS["appendix-f"].runs("paper") if run.method == "published"]
    assert [run.seed for run in runs] == [0, 1, 2]
    for run in runs:
        chosen = {name: run.settings[name] for name in ("alpha", "beta", "n_components", "epochs")}
        assert chosen == {"alpha": 0.01, "beta": 0.05, "n_components": 256, "epochs": 100}
        assert (run.settings["batch_size"], run.settings["learning_rate"]) == (256, 3e-4)
        assert run.data == {"name": "mnist"}


def test_paper_scale_is_the_papers() -> None:
    runs = [run for run in EXPERIMENTS["known"].runs("paper") if run.method == "dca-sparse"]
    assert len(runs) == 3 * 16 * 16 * 10
    alphas = sorted({run.settings["alpha"] for run in runs})
    assert len(alphas) == 16
    assert (alphas[0], alphas[-1]) == (0.1, 10)
    assert {run.settings["n_z"] for run in runs} == {2, 3, 4}
    linear = [run for run in EXPERIMENTS["mnist"].runs("paper") if run.method == "published"]
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


def record(method: str, values: dict[str, float], seed: int = 0, **settings: Any) -> dict[str, Any]:
    run = {"method": method, "settings": settings, "seed": seed, "data": None}
    return {"key": "k", "run": run, "values": values, "seconds": 1.0}


def test_comparison_at_equal_gain() -> None:
    first = [record("a", {"g": g, "c": 0.1 * g}, beta=g) for g in (1.0, 2.0, 3.0)]
    second = [record("b", {"g": g, "c": 0.1 * g + 0.2}, beta=g) for g in (1.0, 2.0, 3.0)]
    one, two = (groups({"x": part}) for part in (first, second))
    found = compare(one, two, "g", "c")
    assert found is not None
    assert found.mean == pytest.approx(-0.2)
    assert [difference for _, difference in found.at] == pytest.approx([-0.2] * 9)
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.0]
    assert (found.error, found.less, found.nowhere_more) == (None, None, None)  # of one seed
    apart = groups({"x": [record("c", {"g": 9.0, "c": 0.0}), record("c", {"g": 8.0, "c": 0}, beta=2)]})
    assert compare(one, apart, "g", "c") is None
    near = compare(one, apart, "g", "c", same=6.0)
    assert near is not None
    assert [*near.at[0], near.mean] == pytest.approx([6.0, 0.3, 0.3])


def test_a_named_range_is_compared_from_its_begin() -> None:
    """A curve that begins later costs at lower gains what its first setting costs: it loses there."""
    whole = [record("a", {"g": g, "c": g}, beta=g) for g in (1.0, 2.0, 3.0)]
    late = [record("b", {"g": g, "c": g - 0.5}, beta=g) for g in (2.0, 3.0)]
    one, two = (groups({"x": part}) for part in (late, whole))
    found = compare(one, two, "g", "c", (1.0, 4.0))
    assert found is not None
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.0]
    assert found.at[0][1] == pytest.approx(0.5)
    assert found.at[-1][1] == pytest.approx(-0.5)
    assert compare(one, two, "g", "c", (3.5, 4.0)) is None


def test_a_curve_that_ends_before_its_rival_within_a_named_range_has_won_nothing() -> None:
    cheap = line({0: -0.5, 1: -0.4})
    rival = line({0: 0.0, 1: 0.001})
    for most, won in ((3.0, True), (2.5, True), (4.0, True)):  # the rival ends at 3, too
        found = compare(cheap, rival, "g", "c", (1.0, most))
        assert found is not None
        assert found.nowhere_more is won
    found = compare([group for group in cheap if group.mean("g") < 3], rival, "g", "c", (1.0, 3.0))
    assert found is not None
    assert (found.at[-1][0], found.nowhere_more) == (2.0, None)


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        ([[0.55, 0.6, 0.58], [0.58, 0.57, 0.6], [0.6, 0.57, 0.56]], True),
        ([[0.31, 0.32, 0.3], [0.3, 0.31, 0.32], [0.31, 0.3, 0.3]], False),
        ([[0.41, 0.5, 0.56], [0.42, 0.45, 0.5], [0.34, 0.35, 0.4]], None),  # too few to tell
        ([[0.3, 0.31]], None),  # of one model
        ([], None),
    ],
)
def test_the_papers_single_number_is_compared_with_single_models(
    seeds: list[list[float]], verdict: bool | None
) -> None:
    assert _has(_one_more(seeds), 0.6) is verdict


def test_one_more_model_lies_where_it_is_said_to() -> None:
    """Of models with a spread of their own, and of epochs within them: 95 of 100 lie inside."""
    import numpy as np

    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(300):
        models = 0.5 + 0.04 * rng.normal(size=4)
        epochs = models[:, None] + 0.02 * rng.normal(size=(4, 5))
        low, high = _one_more(epochs[:3].tolist()) or (0.0, 0.0)
        inside += bool(low <= epochs[3, 0] <= high)
    assert 0.92 <= inside / 300 <= 1.0


def test_curves_that_are_equal_are_seldom_told_apart() -> None:
    """Two equal curves with two seeds each, several hundred times: few verdicts either way."""
    import numpy as np

    rng = np.random.default_rng(0)

    def drawn(name: str) -> Any:
        values = [
            record(name, {"g": g, "leakage": g + 0.05 * rng.normal(), "leakage_most": 3.3}, seed, beta=g)
            for g in (1.0, 2.0, 3.0, 4.0, 5.0)
            for seed in (0, 1)
        ]
        return groups({name: values})

    found = [compare(drawn("a"), drawn("b"), "g", "leakage", (1.0, 5.0)) for _ in range(400)]
    told = [one.nowhere_more for one in found if one is not None]
    assert len(told) == 400
    assert told.count(True) <= 8
    assert told.count(False) <= 24
    assert [one.less for one in found if one is not None].count(True) <= 20


def line(costs: dict[int, float], name: str = "x") -> Any:
    """A curve of gains 1, 2, 3 whose cost is the gain's plus what its seed has more."""
    return groups(
        {
            name: [
                record("a", {"g": g, "c": g + more}, seed, beta=g)
                for seed, more in costs.items()
                for g in (1.0, 2.0, 3.0)
            ]
        }
    )


@pytest.mark.parametrize(
    ("first", "less", "nowhere_more"),
    [
        ({0: -0.5, 1: -0.4}, True, True),
        ({0: -0.5, 1: 0.4}, None, None),  # the seeds differ by more than the curves
        ({0: 0.5, 1: 0.6}, False, False),
        ({0: 0.001, 1: -0.001}, False, None),  # no difference to speak of
    ],
)
def test_a_verdict_needs_more_than_chance_makes(
    first: dict[int, float], less: bool | None, nowhere_more: bool | None
) -> None:
    found = compare(line(first), line({0: 0.0, 1: 0.001}), "g", "c")
    assert found is not None
    assert found.error is not None
    assert (found.less, found.nowhere_more) == (less, nowhere_more)
    twin = math.sqrt(((first[0] - first[1]) ** 2 / 2 + 0.001**2 / 2) / 2)
    assert found.error == pytest.approx(twin)
    assert f"± {found.error:.3f}" in str(found)


def test_a_small_difference_that_is_there_is_called_small() -> None:
    small = compare(line({0: -0.02, 1: -0.0201}), line({0: 0.0, 1: 0.0001}), "g", "c")
    large = compare(line({0: -0.5, 1: -0.4}), line({0: 0.0, 1: 0.001}), "g", "c")
    assert small is not None
    assert large is not None
    assert (small.less, large.less) == (True, True)
    assert small.remark == " The difference is there, and smaller than 0.03."
    assert large.remark == ""


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


def test_records_count_where_seeds_agree() -> None:
    """Two seeds on the same 400 records agree on 0.5: the difference of such shares is still not known."""

    def curve(share: float) -> Any:
        values = {"g": 1.0, "success_with_labels": share, "n_judged": 400}
        return groups({"x": [record("a", values, seed) for seed in (0, 1)]})

    found = compare(curve(0.46), curve(0.5), "g", "success_with_labels")
    assert found is not None
    assert found.error == pytest.approx(math.sqrt((0.46 * 0.54 + 0.25) / 400))
    assert found.less is None
    clear = compare(curve(0.2), curve(0.5), "g", "success_with_labels")
    assert clear is not None
    assert clear.less is True


def test_levels_are_read_off_the_lines() -> None:
    table = levels_table({"x": line({0: 0.0, 1: 0.2})}, "g", "c", [0.5, 1.5, 2.0])
    assert table["g"] == [0.5, 1.5, 2.0]
    assert table["x"] == [None, pytest.approx(1.6), pytest.approx(2.1)]
    # What is large varies by more than what is small.
    share = (0.1 / 1.6) ** 2 / 2 + (0.1 / 2.1) ** 2 / 2
    assert table["x ±"] == [None, pytest.approx(0.1), pytest.approx(2.1 * share**0.5)]


def test_random_erasure_mixes_errors_and_bits() -> None:
    values = {
        "mse_fresh": 0.01,
        "mse_nothing": 0.09,
        "psnr_fresh": 20.0,
        "leakage": 2.0,
        "chance": 0.1,
        "clustering": 0.5,
        "success_with_labels": 0.9,
    }
    nothing, half, whole = erased([record("autoencoder", values)], [0.0, 0.5, 1.0])
    assert whole["values"]["psnr_fresh"] == pytest.approx(20.0)
    assert half["values"]["psnr_fresh"] == pytest.approx(-10 * math.log10(0.05))
    assert half["values"]["leakage"] == 1.0
    assert half["values"]["success_with_labels"] == pytest.approx(0.5)
    assert (nothing["values"]["leakage"], nothing["values"]["clustering"]) == (0.0, pytest.approx(0.1))
    assert [one["run"]["settings"]["share"] for one in (nothing, whole)] == [0.0, 1.0]


def test_time_sharing_finds_the_least_of_each_cost_between_two_runs_of_a_seed() -> None:
    def run(seed: int, mse: float, bits: float, success: float) -> dict[str, Any]:
        values = {"mse_fresh": mse, "psnr_fresh": -10 * math.log10(mse), "leakage": bits}
        return record("a", {**values, "leakage_low": bits - 0.1, "success_with_labels": success}, seed)

    level = -10 * math.log10(0.04)
    runs = [run(0, 0.05, 1.0, 0.3), run(0, 0.01, 3.0, 0.9), run(0, 0.03, 2.5, 0.4), run(1, 0.02, 1.0, 0.2)]
    (found,) = shared(runs, [level, 30.0])  # nothing lies beyond the best run, and seed 1 is alone
    values = found["values"]
    assert (found["run"]["seed"], values["psnr_fresh"]) == (0, level)
    # Bits: a quarter of the last beside the first; guesses: half of the middle one beside the first.
    assert values["leakage"] == pytest.approx(1.5)
    assert values["leakage_low"] == pytest.approx(1.4)
    assert values["success_with_labels"] == pytest.approx(0.35)


def test_curves_are_compared_along_their_undominated_lines() -> None:
    points = {1.0: 0.0, 2.0: 0.4, 2.5: 0.5, 3.0: 0.3, 4.0: 0.9}  # 2.0 and 2.5 cost more than 3.0
    (curve,) = [groups({"x": [record("a", {"g": g, "c": c}, beta=g) for g, c in points.items()]})]
    assert [group.mean("g") for group in undominated(curve, "g", "c")] == [1.0, 3.0, 4.0]
    # The same line with settings elsewhere on it is neither better nor worse.
    same = {1.0: 0.0, 1.5: 0.075, 3.0: 0.3, 3.5: 0.6}
    other = groups({"x": [record("b", {"g": g, "c": c}, beta=g) for g, c in same.items()]})
    found = compare(curve, other, "g", "c")
    assert found is not None
    assert [difference for _, difference in found.at] == pytest.approx([0.0] * 9, abs=1e-12)
    assert [found.at[0][0], found.at[-1][0]] == [1.0, 3.5]


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
    from dataclasses import replace

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
