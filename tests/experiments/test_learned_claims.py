"""Statements about codes: made-up runs that make each of them hold, and others that refute it."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from privacyfunnel.experiments import adult, appendix, images
from privacyfunnel.experiments.learned import (
    ERASURE,
    Comparison,
    Group,
    begun_by_erasure,
    compare,
    groups,
    joined,
    undominated,
)
from privacyfunnel.experiments.pictures import plot_tradeoff

#: Fresh PSNR of the settings of each method, and bits found there.
GAINS = (12.0, 14.0, 16.0, 18.5)


def run_of(method: str, gain: float, seed: int, more: float, **values: float) -> dict[str, Any]:
    """A run whose cost grows with its gain, and `more` beside it; the seeds differ by a little."""
    bits = 0.3 * (gain - 11.5) + more + 0.004 * (seed - 0.5)
    success = min(0.1 + bits / 4, 1.0)
    found = {
        "psnr_fresh": gain,
        "psnr": gain - 0.3,
        "mse": 0.01,
        "mse_fresh": 10 ** (-gain / 10),
        "mse_nothing": 0.067,
        "leakage": bits,
        "leakage_low": bits - 0.01,
        "leakage_high": bits + 0.01,
        "leakage_most": 3.32,
        "success_with_labels": success,
        "clustering": success - 0.05,
        "chance": 0.11,
        "n_judged": 30_000,
        "n_clustered": 10_000,
        "n_parameters": 1e6,
        "judged_by": "x",
        **values,
    }
    settings = {"n_components": 64, "alpha": 0.5, "beta": gain}
    run = {"method": method, "settings": settings, "seed": seed, "data": {"name": "mnist"}}
    return {"key": "k", "run": run, "values": found, "seconds": 1.0}


def verdicts(**more: float) -> dict[tuple[str, str], bool | None]:
    """What the page says where the methods cost so much more than their gain asks for."""
    found = images.find_tradeoff(
        [
            run_of(method, gain, seed, extra)
            for method, extra in more.items()
            for gain in GAINS
            for seed in (0, 1)
        ],
        "small",
        name="mnist",
        figure="figure 2a",
    )
    return {(claim.source, claim.says): claim.holds for claim in found.claims}


def told(found: dict[tuple[str, str], bool | None], source: str, *words: str) -> bool | None:
    """The verdict of the one statement that has these words."""
    ((_, verdict),) = [
        (says, holds)
        for (where, says), holds in found.items()
        if where == source and all(w in says for w in words) and " dB on " not in says
    ]
    return verdict


@pytest.mark.parametrize(("dca", "holds"), [(-0.4, True), (0.4, False)])
@pytest.mark.parametrize("source", ["figure 2a, published", "figure 2a, published, with labels"])
def test_dca_against_a_rival(dca: float, holds: bool, source: str) -> None:
    found = verdicts(published=dca, conditional=0.0, **{"deep-variational": 0.0})
    for rival in ("CPF", "DVPF"):
        assert told(found, source, f"against {rival}") is holds


@pytest.mark.parametrize(("ours", "holds"), [(-0.4, True), (0.4, False), (0.0, None)])
def test_ours_against_each_rival(ours: float, holds: bool | None) -> None:
    rivals = ("conditional", "deep-variational", "autoencoder", "published", "written")
    found = verdicts(funnel=ours, **dict.fromkeys(rivals, 0.0))
    for name in ("CPF", "DVPF", "VAE", "DCA (published)", "DCA (written)"):
        assert told(found, "ours, mnist", f"in {name},") is holds


@pytest.mark.parametrize(
    ("extra", "words"), [(0.4, "Clearly more at 3 of 9 levels, 16.62 to 18, by up to 0.320."), (-0.4, None)]
)
def test_the_page_says_where_ours_leaks_more(extra: float, words: str | None) -> None:
    ours = [run_of("funnel", gain, seed, extra * (gain > 17)) for gain in GAINS for seed in (0, 1)]
    theirs = [run_of("conditional", gain, seed, 0.0) for gain in GAINS for seed in (0, 1)]
    claims = images.find_tradeoff([*ours, *theirs], "small", name="mnist", figure="figure 2a").claims
    (claim,) = [claim for claim in claims if "in CPF," in claim.says and claim.source == "ours, mnist"]
    assert words in claim.measured if words else "Clearly more" not in claim.measured


def test_a_rival_goes_on_below_its_settings_by_erasing_its_codes() -> None:
    runs = [run_of("written", gain, seed, 0.0) for gain in (18.2, 19) for seed in (0, 1)]
    found = begun_by_erasure(groups({"x": runs}), "psnr_fresh")
    first = 10 ** (-18.2 / 10)
    # What the settings do is left as it is.
    assert [g.mean("psnr_fresh") for g in found if g.settings[-1] is None] == pytest.approx([18.2, 19])
    at = {group.settings[-1]: group for group in found}
    for share in (0.0, 0.5, 0.975):
        error = (1 - share) * 0.067 + share * first
        assert at[share].mean("psnr_fresh") == pytest.approx(-10 * math.log10(error))
        assert at[share].mean("leakage") == pytest.approx(share * 0.3 * (18.2 - 11.5))


@pytest.mark.parametrize(("ours", "holds"), [(-0.2, True), (2.5, False)])
def test_ours_against_a_rival_without_private_settings(ours: float, holds: bool) -> None:
    runs = [run_of("funnel", gain, seed, ours) for gain in GAINS for seed in (0, 1)]
    runs += [run_of("deep-variational", 18.2, seed, 0.0) for seed in (0, 1)]
    claims = images.find_tradeoff(runs, "small", name="mnist", figure="figure 2a").claims
    (claim,) = [claim for claim in claims if "in DVPF," in claim.says and claim.source == "ours, mnist"]
    assert claim.holds is holds
    assert "in DVPF, below its settings erased at random, and clearly" in claim.says
    assert claim.measured.endswith("Its settings begin at 18.2.")


def test_the_page_says_when_the_printed_formula_runs_away() -> None:
    runs = [run_of("published", gain, seed, 0.0) for gain in GAINS for seed in (0, 1)]
    found = images.find_tradeoff(runs, "small", name="mnist", figure="figure 2a")
    assert not [note for note in found.notes if "runs away" in note]
    values = {"ran_away_in_epoch": 1, "leakage_nats": -23.4, "residual_nats": 14.3, "psnr": 10.8}
    values |= {"psnr_nothing": 11.7, "n_epochs": 2}
    away = run_of("published", 20, 0, 0.0)
    away = {**away, "run": {**away["run"], "method": images.UNCLAMPED}, "values": values}
    (note,) = [
        note
        for note in images.find_tradeoff([*runs, away], "small", name="mnist", figure="figure 2a").notes
        if "literal twin" in note
    ]
    assert "runs away in epoch 1, where Î(Z;Y) is -23.4 nats on average" in note
    assert "R 14.3. The PSNR of training records in epoch 2 is 10.8 dB; the mean record has 11.7 dB." in note


def test_the_printed_formula_runs_away_without_its_clamp() -> None:
    """On digits, with an R as large as that of MNIST at the paper's weights."""
    pytest.importorskip("torch")
    from privacyfunnel.experiments.unclamped import printed

    settings: dict[str, Any] = {"alpha": 0.01, "n_components": 16, "epochs": 2, "batch_size": 16}
    data = {"name": "digits", "n_train": 1300, "n_test": 300}
    found = printed(seed=0, data=data, beta=0.05 * 784 / 64, **settings)
    assert found["ran_away_in_epoch"] in (1, 2)
    assert found["lowest_leakage_nats"] < -5
    assert found["psnr"] < found["psnr_nothing"] + 1


def test_the_page_says_which_levels_are_left_open() -> None:
    def told(extra: float, seeds: float) -> str:
        runs = [
            run_of("autoencoder", gain, seed, extra + seeds * seed) for gain in (12, 19) for seed in (0, 1)
        ]
        both = groups({"ours": runs, "x": [run_of("written", g, s, 0.0) for g in (12, 19) for s in (0, 1)]})
        found = compare(both[:2], both[2:], "psnr_fresh", "leakage", (12.5, 18), most=1.0)
        assert found is not None
        assert (found.left_open == "") == (found.nowhere_more is not None)
        return found.left_open

    assert told(-0.5, 0.0) == ""
    assert told(0.5, 0.0) == ""
    assert " Left open at 9 of 9 levels, 12.5 to 18: at 18 it is +0.000 ± " in told(-0.1, 0.2)
    assert "and no more than 0.02 is allowed." in told(-0.1, 0.2)


def test_statements_compare_code_lengths_that_all_methods_have() -> None:
    def of_length(run: dict[str, Any], length: int) -> dict[str, Any]:
        settings = {**run["run"]["settings"], "n_components": length}
        return {**run, "run": {**run["run"], "settings": settings}}

    runs = [
        of_length(run_of(method, gain, seed, 0.0), 64)
        for method in ("published", "conditional")
        for gain in GAINS
        for seed in (0, 1)
    ]
    # One method alone, with longer codes that clusters tell nothing of.
    longer = [of_length(run_of("published", 17.0, seed, -3.0), 256) for seed in (0, 1)]

    def measured(records: list[dict[str, Any]]) -> str:
        found = images.find_tradeoff(records, "small", name="mnist", figure="figure 2a")
        return next(claim.measured for claim in found.claims if "against DCA than against CPF" in claim.says)

    assert measured([*runs, *longer]) == measured(runs)


def test_mixtures_of_one_setting_count_as_one_for_how_well_errors_are_known() -> None:
    def freedom(theirs: list[dict[str, Any]]) -> float:
        ours = groups({"ours": [run_of("funnel", gain, seed, 0.0) for gain in (12, 19) for seed in (0, 1)]})
        rival = begun_by_erasure(groups({"x": theirs}), "psnr_fresh")
        found = compare(ours, rival, "psnr_fresh", "leakage", (12.5, 18))
        assert found is not None
        return found.freedom

    # Two settings of ours, and one of the rival with 40 shares of it, whose seeds differ by more.
    assert freedom([run_of("written", 18.2, seed, 0.5 * seed) for seed in (0, 1)]) < 1.5


@pytest.mark.parametrize(("codes", "holds"), [(0.4, True), (0.8, False), (0.74, None)])
def test_codes_are_more_ambiguous_than_images(codes: float, holds: bool | None) -> None:
    runs = []
    for seed in range(3):
        for method, level in (("published", codes), (images.RAW, 0.78)):
            settings = {"alpha": 0.01, "beta": 0.05, "n_components": 256, "epochs": 100}
            run = run_of(method, 24.0, seed, 0.0)
            run["run"]["settings"] = settings if method == "published" else {}
            run["values"] |= {"clustering": level + 0.02 * seed, "success_with_labels": level + 0.02 * seed}
            runs.append(run)
    found = appendix.find_setting(runs, "paper")
    claims = [claim for claim in found.claims if "more ambiguous in the codes" in claim.says]
    assert [claim.holds for claim in claims] == [holds, holds]
    assert found.tables["appendix-f"]["method"] == ["DCA (published)"] * 3 + ["images themselves"] * 3
    assert {name for claim in claims for name in claim.rests_on} == {
        "DCA (published)",
        "DCA (published), later epochs",
        "images themselves",
    }


@pytest.mark.parametrize(("aligned", "holds"), [(-0.4, True), (0.4, False)])
def test_aligned_records_against_others(aligned: float, holds: bool) -> None:
    runs = [run_of("funnel", gain, seed, 0.0) for gain in GAINS for seed in (0, 1)]
    moved = [run_of("funnel", gain, seed, aligned) for gain in GAINS for seed in (0, 1)]
    for run in moved:
        run["run"]["settings"]["align"] = True
    claims = images.find_tradeoff([*runs, *moved], "small", name="mnist", figure="figure 2a").claims
    (claim,) = [claim for claim in claims if "in ours, aligned than" in claim.says]
    assert claim.holds is holds


@pytest.mark.parametrize(("default", "holds"), [(-0.4, True), (0.4, False)])
def test_funnel_as_it_is_against_rivals(default: float, holds: bool) -> None:
    """Where nothing is set: beside CPF, and beside an autoencoder's codes that are erased at random."""
    runs = [run_of("conditional", gain, seed, 0.0) for gain in GAINS for seed in (0, 1)]
    runs += [run_of("funnel", GAINS[1], seed, default) for seed in (0, 1)]
    for run in runs[-2:]:
        del run["run"]["settings"]["alpha"], run["run"]["settings"]["beta"]
    (claim,) = [
        claim
        for claim in images.find_tradeoff(runs, "small", name="mnist", figure="figure 2a").claims
        if "Funnel() as it is" in claim.says
    ]
    assert claim.says.endswith("than in CPF.")
    assert claim.holds is holds
    assert claim.rests_on == (images.ALONE, images.CPF)


@pytest.mark.parametrize(("sizes", "holds"), [((1e6, 2e6), True), ((2e6, 1e6), False)])
def test_numbers_of_parameters(sizes: tuple[float, float], holds: bool) -> None:
    runs = [
        run_of(method, gain, seed, 0.0, n_parameters=size)
        for method, size in zip(("published", "deep-variational"), sizes, strict=True)
        for gain in GAINS
        for seed in (0, 1)
    ]
    (claim,) = [
        claim
        for claim in images.find_tradeoff(runs, "small", name="mnist", figure="figure 2a").claims
        if claim.source == "section IV-B, mnist"
    ]
    assert claim.holds is holds


@pytest.mark.parametrize(("ours", "holds"), [(-0.1, True), (0.1, False), (0.0, None)])
def test_ours_on_adult_against_each_rival(ours: float, holds: bool | None) -> None:
    def of(method: str, more: float) -> list[dict[str, Any]]:
        found = []
        for area in (0.70, 0.78, 0.84, 0.89):
            for seed in (0, 1, 2):
                one = run_of(method, area, seed, 0.0)
                bits = 0.3 + 2 * (area - 0.75) + more + 0.001 * seed
                one["values"] |= {"task_auc": area, "leakage": bits, "leakage_most": 0.92}
                one["values"] |= {"leakage_low": bits - 0.004, "leakage_high": bits + 0.004}
                one["values"] |= {"leakage_logistic_regression": bits / 3}
                one["run"]["data"] = {"name": "adult", "private": "sex"}
                found.append(one)
        return found

    rivals = ("conditional", "deep-variational", "autoencoder", "written", adult.ERASED)
    records = [*of("funnel", ours), *(one for rival in rivals for one in of(rival, 0.0))]
    claims = {(claim.source, claim.says): claim.holds for claim in adult.find(records, "small").claims}
    for name in ("CPF", "DVPF", "VAE", "DCA (written)", "random erasure"):
        assert told(claims, "ours, sex", f"in {name},") is holds
    assert told(claims, "ours, sex", "hide from linear adversaries more than half") is True


@pytest.mark.parametrize(
    ("mean", "less"),
    [(-0.2, True), (-0.02, True), (-0.008, None), (-0.003, False), (0.0, False), (0.2, False)],
)
def test_less_is_refuted_only_where_nothing_speaks_for_it(mean: float, less: bool | None) -> None:
    assert Comparison(mean, 0.005, 8, 0.03, [(1.0, mean)], [0.005]).less is less


def test_the_levels_own_error_counts_where_it_is_larger() -> None:
    at = [(1.0, -0.5), (2.0, -0.01)]
    assert Comparison(-0.255, 0.005, 50, 0.03, at, [0.005, 0.005]).nowhere_more is True
    assert Comparison(-0.255, 0.005, 50, 0.03, at, [0.005, 0.1]).nowhere_more is None
    assert Comparison(-0.255, 0.005, 50, 0.03, at, [0.5, 0.005]).nowhere_more is None


def test_what_varies_with_the_cost_says_little_of_small_costs() -> None:
    def curve(method: str, times: float) -> list[dict[str, Any]]:
        runs = [run_of(method, gain, seed, 0.0) for gain in (12.0, 15.0, 18.5) for seed in (0, 1, 2)]
        for run in runs:
            bits = (0.01 if run["run"]["settings"]["beta"] == 12.0 else 1.0) * (1 + 0.1 * run["run"]["seed"])
            run["values"] |= {"leakage": bits * times, "leakage_low": bits, "leakage_high": bits}
        return runs

    found = compare(
        groups({"x": curve("a", 1.0)}),
        groups({"y": curve("b", 2.0)}),
        "psnr_fresh",
        "leakage",
        (12, 18),
        most=3.2,
    )
    assert found is not None
    assert found.errors[0] < 0.1 * found.errors[-1]
    assert found.nowhere_more is True


def test_a_training_that_ran_away_is_on_no_line() -> None:
    bad = [run_of("written", 15.0, seed, -1.0, mse=0.09) for seed in (0, 1)]
    good = [run_of("written", gain, seed, 0.0) for gain in (14.0, 18.5) for seed in (0, 1)]
    for through in (joined, undominated):
        assert [
            g.mean("psnr_fresh") for g in through(groups({"x": [*bad, *good]}), "psnr_fresh", "leakage")
        ] == [
            14.0,
            18.5,
        ]


def test_a_training_that_ran_away_is_told() -> None:
    bad = [run_of("written", 12.0, seed, 0.0, mse=0.09, best_epoch=3 + seed) for seed in (0, 1)]
    good = [run_of("conditional", 12.0, seed, 0.0) for seed in (0, 1)]
    notes = images.find_tradeoff([*bad, *good], "small", name="mnist", figure="figure 2a").notes
    (note,) = [note for note in notes if "ran away" in note]
    assert "DCA (written) with alpha 0.5, beta 12 (2 of 2 seeds, best after epoch 3, 4)" in note
    assert "CPF" not in note


def test_axes_are_as_high_as_what_is_drawn() -> None:
    """Random erasure is drawn where methods are; what lies elsewhere makes no room for itself."""
    erasure = [{"run": {"seed": 0}, "values": {"psnr": float(at), "bits": at / 10}} for at in range(31)]
    ours = [{"run": {"seed": 0}, "values": {"psnr": at, "bits": 3.0}} for at in (20.0, 22.0)]
    found = [Group(ERASURE, (k,), [one]) for k, one in enumerate(erasure)]
    found += [Group("ours", (64,), [one]) for one in ours]
    ax = plot_tradeoff(found, "psnr", {"bits": ("", "bits", "linear")}, "PSNR", "").axes[0]
    (line,) = [one for one in ax.get_lines() if one.get_label() == ERASURE]
    left, right = ax.get_xlim()
    assert line.get_xdata()[[0, -1]].tolist() == pytest.approx([left, right])
    assert line.get_ydata() == pytest.approx(line.get_xdata() / 10)
    assert ax.get_ylim()[0] > 1.8
