"""What experiments would compute: their runs, scales and costs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from privacyfunnel.experiments import (
    EXPERIMENTS,
    SCALES,
    estimated_hours,
    images,
)
from privacyfunnel.experiments.unclamped import METHOD as UNCLAMPED
from privacyfunnel.sweep.execute import prepare


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
