"""Clustering over the epochs after the last: what is measured, and what statements make of it."""

from __future__ import annotations

from typing import Any

import pytest

from privacyfunnel.experiments import EXPERIMENTS
from privacyfunnel.experiments.appendix import LATER, find_setting
from privacyfunnel.sweep import Run

EXPERIMENT = EXPERIMENTS["appendix-f"]


def test_later_epochs_begin_with_the_model_itself() -> None:
    pytest.importorskip("torch")
    from privacyfunnel.experiments.later import later_epochs
    from privacyfunnel.sweep.data import load_records
    from privacyfunnel.sweep.fits import fit
    from privacyfunnel.sweep.judging import audit_codes, release

    data = {"name": "digits", "n_train": 300, "n_test": 200}
    settings = {"epochs": 2, "batch_size": 64, "hidden": [16], "n_components": 6}
    options: dict[str, Any] = {"n_more": 2, "adversary": "KMeans", "n_repeats": 1}
    found = later_epochs(seed=3, data=data, method="published", settings=settings, **options)
    assert found["epoch"] == [2, 3, 4]
    assert len(set(found["psnr"])) == 3  # training went on
    records = load_records(data)
    codes, _ = release(fit("published", settings, 3, records), records)
    twin = audit_codes(codes, records, 3, ["KMeans"], "default", 1)
    assert found["clustering"][0] == twin["clustering"]
    assert all(0 < success <= 1 for success in found["clustering"])


def record(run: Run, success: list[float]) -> dict[str, Any]:
    """What a run of appendix F found; the last epoch's success is the first of several."""
    if run.method == LATER:
        values: dict[str, Any] = {
            "epoch": [100, 101, 102],
            "psnr": [24.0, 24.1, 23.9],
            "clustering": success,
        }
    else:
        values = {
            "psnr": 24.0,
            "psnr_fresh": 24.1,
            "clustering": success[0],
            "success_with_labels": 0.9,
            "leakage": 3.0,
            "n_judged": 10_000,
            "judged_by": "x",
        }
    return {"key": "k", "run": run.to_dict(), "values": values, "seconds": 1.0}


def test_a_number_that_moves_with_the_epoch_is_compared_over_epochs() -> None:
    """At the last epoch 0.5 in every seed, later 0.6: seeds that agree by chance decide nothing."""
    runs = [run for run in EXPERIMENT.runs("paper") if run.method != "deep-variational"]
    published = [0.5, 0.6, 0.56]
    mean = sum(published) / 3
    records = [record(run, published if "published" in run.canonical() else [mean] * 3) for run in runs]
    found = find_setting(records, "paper")
    claims = {claim.says: EXPERIMENT.decided(claim, "paper", records) for claim in found.claims}
    point = claims["There the clustering adversary's success is 0.57."]
    assert point.holds is True
    assert "0.500 to 0.600 in single epochs, 0.553 ± 0.04" in point.measured
    versus = next(claim for says, claim in claims.items() if "clustering adversary has less" in says)
    assert versus.holds is False  # the same, although the last epochs have 0.5 and 0.55
    rows = found.tables["appendix-f-epochs"]
    assert rows["epoch"][:3] == [100, 101, 102]
    assert rows["clustering"][:3] == published
    assert len(rows["seed"]) == 36
    assert found.tables["appendix-f"]["clustering"][0] == 0.5  # a row is what was judged

    last = [one for one in records if one["run"]["method"] != LATER]
    told = [EXPERIMENT.decided(claim, "paper", last) for claim in find_setting(last, "paper").claims]
    waiting = [claim for claim in told if "clustering" in claim.says]
    assert {claim.holds for claim in waiting} == {None}
    assert all("DCA (published), later epochs 0 of 3" in claim.measured for claim in waiting)
