"""Learned runs keep what they trained: judging again trains nothing, and a killed training goes on."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.sweep import Run, Store, sweep
from privacyfunnel.sweep.data import Records, load_records
from privacyfunnel.sweep.execute import execute, prepare

pytest.importorskip("torch")

from privacyfunnel.learned import Autoencoder
from privacyfunnel.sweep.fits import fit, models_kept_in, training_key
from privacyfunnel.sweep.judging import audit_codes, judged

DATA = {"name": "digits", "n_train": 200, "n_test": 160}
SETTINGS: dict[str, Any] = {"n_components": 3, "hidden": [8], "epochs": 2}
LINE = {"adversaries": ["logistic regression"]}


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often an autoencoder was trained."""
    calls: list[int] = []

    def counted(self: Any, *given: Any, original: Any = Autoencoder.fit, **more: Any) -> Any:
        calls.append(1)
        return original(self, *given, **more)

    monkeypatch.setattr(Autoencoder, "fit", counted)
    return calls


def numbers(run: Run, store: Path) -> dict[str, Any]:
    outcome = execute(replace(prepare(run), models=str(Store(store, create=True).models)), 1)
    assert outcome.values is not None, outcome.details
    return outcome.values


def test_another_judge_trains_nothing_and_finds_the_same(tmp_path: Path, fits: list[int]) -> None:
    first = numbers(Run("autoencoder", DATA, {**SETTINGS, **LINE}, 4), tmp_path / "s")
    more = {**SETTINGS, "adversaries": ["logistic regression", "KMeans"], "decoder_steps": 20}
    second = numbers(Run("autoencoder", DATA, more, 4), tmp_path / "s")
    assert len(fits) == 1
    assert {name: second[name] for name in ("psnr", "success_logistic_regression", "n_parameters")} == {
        name: first[name] for name in ("psnr", "success_logistic_regression", "n_parameters")
    }
    assert second["psnr_fresh"] == pytest.approx(-10 * np.log10(second["mse_fresh"]))
    (folder,) = (tmp_path / "s" / "models").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["model", "training.lock"]
    assert pf.load(folder / "model").release_state is None
    # Another test part is judged anew, and nothing is trained.
    numbers(Run("autoencoder", {**DATA, "n_test": 120}, {**SETTINGS, **LINE}, 4), tmp_path / "s")
    assert len(fits) == 1
    numbers(Run("autoencoder", {**DATA, "n_train": 199}, {**SETTINGS, **LINE}, 4), tmp_path / "s")
    assert len(fits) == 2


def test_sweep_keeps_models_and_damaged_ones_are_trained_again(tmp_path: Path, fits: list[int]) -> None:
    run = Run("autoencoder", DATA, {**SETTINGS, **LINE}, 4)
    sweep([run], tmp_path / "s", n_jobs=1)
    (folder,) = (tmp_path / "s" / "models").iterdir()
    (folder / "model" / "manifest.json").write_text("{")
    (record,) = Store(tmp_path / "s").records()
    assert numbers(run, tmp_path / "s") == record["values"]
    assert len(fits) == 2


def test_a_default_that_is_written_out_is_the_same_training() -> None:
    records = load_records(DATA)
    key = training_key("autoencoder", SETTINGS, 1, records)
    assert key == training_key("autoencoder", {**SETTINGS, "alpha": 0.01, "batch_size": 256}, 1, records)
    assert key != training_key("autoencoder", {**SETTINGS, "alpha": 0.02}, 1, records)
    assert key != training_key("autoencoder", SETTINGS, 2, records)
    assert key != training_key("autoencoder", SETTINGS, 1, replace(records, y_train=records.y_train[::-1]))
    assert key == training_key("autoencoder", SETTINGS, 1, replace(records, y_test=records.y_test[::-1]))
    mended = training_key("written-mended", {}, 1, records)
    assert mended == training_key(
        "written",
        {"schedule": "simultaneous", "likelihood": "bernoulli", "leakage_weight": 0.2},
        1,
        records,
    )


def test_killed_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second epoch is the first one after the kill, and the weights are those of an undisturbed run."""
    from privacyfunnel.learned import training

    records, epochs = load_records(DATA), []

    def dies(path: Path, *rest: Any, original: Any = training.write_checkpoint) -> None:
        original(path, *rest)
        epochs.append(1)
        if len(epochs) == 1:
            raise SystemExit

    monkeypatch.setattr(training, "write_checkpoint", dies)
    with models_kept_in(tmp_path / "models"):
        with pytest.raises(SystemExit):
            fit("autoencoder", SETTINGS, 3, records)
        assert [path.name for path in (tmp_path / "models").glob("*/*")].count("checkpoint") == 1
        continued = fit("autoencoder", SETTINGS, 3, records)
    assert len(epochs) == 2
    whole = fit("autoencoder", SETTINGS, 3, records)
    for one, two in zip(continued.modules_.parameters(), whole.modules_.parameters(), strict=True):
        assert bool((one == two).all())


def test_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("")
    with models_kept_in(tmp_path / "models"), pytest.raises(pf.errors.DataFileError, match="cannot be kept"):
        fit("autoencoder", SETTINGS, 3, load_records(DATA))


def test_worker_that_does_not_see_the_store_trains_without_it(tmp_path: Path) -> None:
    task = replace(prepare(Run("autoencoder", DATA, {**SETTINGS, **LINE})), models=str(tmp_path / "no" / "m"))
    assert execute(task, 1).values is not None
    assert os.listdir(tmp_path) == []


def test_more_test_records_than_there_are_come_from_what_training_left() -> None:
    whole = load_records({"name": "digits"})
    n = len(whole.y_test)
    part = load_records({"name": "digits", "n_train": 500, "n_test": n + 30})
    assert len(part.y_train) == 500
    assert np.array_equal(part.x_test[:n], whole.x_test)
    assert np.array_equal(part.x_test[n:], whole.x_train[500:530])
    assert np.array_equal(part.y_test[n:], whole.y_train[500:530])
    assert len(load_records({"name": "digits", "n_test": n + 30}).y_test) == n


def test_clusters_are_of_the_first_records_and_others_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacyfunnel.sweep import judging

    monkeypatch.setattr(judging, "MOST_CLUSTERED", 100)
    whole = load_records({"name": "digits"})
    x, y = whole.x_test[:240].reshape(240, -1).astype(np.float64), whole.y_test[:240]
    found = audit_codes(x, Records(x, y, x, y), 0, ["logistic regression", "KMeans"], "default", 2)
    assert (found["n_judged"], found["n_clustered"]) == (240, 100)
    assert found["judged_by"] == "logistic regression, KMeans"
    alone = pf.audit(
        Z=x[:100],
        private=y[:100],
        adversaries=["KMeans"],
        n_repeats=2,
        random_state=0,
        n_jobs=1,
        progress=False,
    ).summary()
    assert found["clustering"] == alone["clustering"]


def test_network_with_fresh_noise_is_that_of_an_audit() -> None:
    records = load_records(DATA)
    model = fit("autoencoder", SETTINGS, 3, records)
    found = judged(model, records, 3, adversaries=["network with fresh noise"], effort="default")
    encoded = (*model.encode(records.x_test), "normal")
    adversary = pf.auditing.RedrawingAdversary(*encoded, random_state=3)
    codes = model.set_params(release_state=3).transform(records.x_test)
    alone = pf.audit(
        Z=codes, private=records.y_test, adversaries=[adversary], random_state=3, n_jobs=1, progress=False
    ).summary()
    name = "success_network_with_fresh_noise"
    assert found[name] == alone[name]
    assert found["leakage"] == alone["leakage"]
