"""Local sweeps: what is computed, what is kept, and what happens when something breaks."""

from __future__ import annotations

import errno
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError, FileFormatError, InvalidInputError
from privacyfunnel.sweep import Run, Store, Summary, grid_runs, retry_failed, sweep
from privacyfunnel.sweep import engine as engine_module
from privacyfunnel.sweep.data import load_records
from privacyfunnel.sweep.execute import Task, prepare

SQUARES = grid_runs("sweep_functions:square", grid={"seed": range(6)})


def counts(summary: Summary) -> tuple[int, int, int, int]:
    return summary.n_runs, summary.n_reused, summary.n_computed, summary.n_failed


def test_solves_are_those_of_solve(tmp_path: Path) -> None:
    settings = {"n_starts": 2, "n_z": 3}
    runs = grid_runs("dca", "paper", settings=settings, grid={"beta": [0.2, 0.5], "seed": [0, 1]})
    assert counts(sweep(runs, tmp_path / "s", n_jobs=1)) == (4, 0, 4, 0)
    records = Store(tmp_path / "s").records()
    assert len(records) == 4
    for record in records:
        run, values = record["run"], record["values"]
        twin = pf.solve(pf.datasets.paper_joint(), method="dca", rng=run["seed"], n_jobs=1, **run["settings"])
        assert (values["utility"], values["leakage"]) == (twin.utility, twin.leakage)
        assert values["status"] == twin.status.name
        assert values["lower_bound"] is None
        assert values["leakage_up_to"] is None


def test_few_records_are_told_by_a_number_and_not_by_a_warning_a_run(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y\n" + "".join(f"{k % 5},{k * k % 3}\n" for k in range(40)))
    data = {"file": str(table), "public": ["x"], "private": ["y"]}
    sweep([Run("greedy", data, {"beta": 0.5})], tmp_path / "s", n_jobs=1)
    (record,) = Store(tmp_path / "s").records()
    joint = pf.Joint.from_samples([str(k % 5) for k in range(40)], [str(k * k % 3) for k in range(40)])
    with pytest.warns(pf.errors.FewRecordsWarning):
        twin = pf.solve(joint, beta=0.5, method="greedy")
    high = twin.leakage_interval(rng=1).high
    assert record["values"]["leakage_up_to"] == pytest.approx(high, rel=0.15)
    assert record["values"]["leakage_up_to"] > twin.leakage


def test_nothing_is_computed_twice_and_a_change_is_new(tmp_path: Path) -> None:
    assert counts(sweep(SQUARES, tmp_path, n_jobs=1)) == (6, 0, 6, 0)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").iterdir()}
    assert counts(sweep([*SQUARES, *SQUARES], tmp_path, n_jobs=1)) == (6, 6, 0, 0)
    changed = grid_runs("sweep_functions:square", settings={"scale": 2}, grid={"seed": range(6)})
    assert counts(sweep([*SQUARES, *changed], tmp_path, n_jobs=1)) == (12, 6, 6, 0)
    assert before.items() <= {p: p.stat().st_mtime_ns for p in (tmp_path / "runs").iterdir()}.items()
    assert len(Store(tmp_path).keys()) == 12


def test_table_does_not_depend_on_the_workers(tmp_path: Path) -> None:
    runs = [*SQUARES, *grid_runs("greedy", "paper", grid={"beta": [0.1, 0.4]})]
    tables = []
    for n_jobs in (1, 2):
        sweep(runs, tmp_path / str(n_jobs), n_jobs=n_jobs)
        for ending in ("csv", "parquet"):
            Store(tmp_path / str(n_jobs)).export(tmp_path / f"{n_jobs}.{ending}")
        tables.append([(tmp_path / f"{n_jobs}.{e}").read_bytes() for e in ("csv", "parquet")])
    assert tables[0] == tables[1]
    assert tables[0][0].count(b"\n") == 9


def test_table_has_settings_values_and_errors(tmp_path: Path) -> None:
    runs = [
        Run("sweep_functions:square", None, {"scale": 0.5}, 3),
        Run("sweep_functions:picky", None, {}, 1),
    ]
    sweep(runs, tmp_path, n_jobs=1)
    table = Store(tmp_path).to_frame(timings=True)
    assert list(table.columns) == [
        *("key", "method", "data", "seed", "scale", "label", "value", "error", "seconds")
    ]
    square, picky = (row for _, row in table.iterrows())
    assert (square["scale"], square["value"], square["label"]) == (0.5, 4.5, "run 3")
    assert picky["error"] == "ArithmeticError: seed 1 is odd"
    assert Store(tmp_path).records()[0]["values"]["parts"] == [3, 3]


def test_failed_runs_are_noted_and_tried_again_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = grid_runs("sweep_functions:picky", grid={"seed": range(5)})
    assert counts(sweep(runs, "s", n_jobs=1)) == (5, 0, 3, 2)
    failures = Store("s").failures()
    assert [record["error"] for record in failures] == [f"ArithmeticError: seed {n} is odd" for n in (1, 3)]
    assert "picky" in failures[0]["details"]
    assert counts(sweep(runs, "s", n_jobs=1)) == (5, 3, 0, 2)  # not tried again by itself
    Path("fixed").touch()
    assert counts(retry_failed("s", n_jobs=1)) == (2, 0, 2, 0)
    assert Store("s").failures() == []
    assert [record["values"]["value"] for record in Store("s").records()] == [0, 1, 2, 3, 4]


def test_value_that_is_no_number_is_a_failure(tmp_path: Path) -> None:
    sweep([Run("sweep_functions:not_finite")], tmp_path, n_jobs=1)
    assert "cannot be kept" in Store(tmp_path).failures()[0]["error"]


def test_bad_setting_fails_its_run_only(tmp_path: Path) -> None:
    runs = grid_runs("dca", "paper", settings={"n_starts": 1}, grid={"beta": [0.3, -1]})
    assert counts(sweep(runs, tmp_path, n_jobs=1)) == (2, 0, 1, 1)
    assert Store(tmp_path).failures()[0]["error"].startswith("beta must be a finite number")


def test_run_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    runs = grid_runs("sweep_functions:deadly", grid={"seed": range(8)})
    assert counts(sweep(runs, tmp_path, n_jobs=2)) == (8, 0, 7, 1)
    (failure,) = Store(tmp_path).failures()
    assert failure["run"]["seed"] == 3
    assert "the worker process ended" in failure["error"]


def test_threads_times_jobs_are_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("loky.cpu_count", lambda: 4)
    before = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    found = {}
    for n_jobs in (1, 2, 4):
        sweep([Run("sweep_functions:threads")], tmp_path / str(n_jobs), n_jobs=n_jobs)
        found[n_jobs] = Store(tmp_path / str(n_jobs)).records()[0]["values"]
    assert {n_jobs: values["blas"] for n_jobs, values in found.items()} == {1: 4, 2: 2, 4: 1}
    assert found[4]["torch"] == 1
    assert found[2]["torch"] <= 2  # torch itself takes no more than there are
    assert before == {name: os.environ.get(name) for name in before}


@pytest.mark.parametrize("method", ["funnel", "conditional", "deep-variational", "autoencoder"])
def test_learned_runs(tmp_path: Path, method: str) -> None:
    pytest.importorskip("torch")
    data = {"name": "digits", "n_train": 200, "n_test": 160}
    settings = {"n_components": 3, "hidden": [8], "epochs": 1, "adversaries": ["logistic regression"]}
    run = Run(method, data, settings, 2)
    sweep([run], tmp_path / "a", n_jobs=1)
    sweep([run], tmp_path / "b", n_jobs=1)
    (record,), (again,) = (Store(tmp_path / name).records() for name in "ab")
    values = record["values"]
    assert values == again["values"]
    assert values["psnr"] == pytest.approx(-10 * math.log10(values["mse"]), abs=1e-12)
    records = load_records(data)
    assert len(records.x_train) == 200
    spread = float(np.mean((records.x_test - records.x_train.mean(axis=0)) ** 2))
    assert spread / 3 < values["mse"] < 6 * spread
    assert values["leakage"] == values["leakage_logistic_regression"] <= math.log2(10)
    assert 0 <= values["success"] <= 1
    assert (values["judged_by"], values["n_judged"]) == ("logistic regression", 160)
    assert values["n_parameters"] > 64 * 8 * 2


TREES = ["boosted trees", "randomised trees"]
TRAINED = {"epochs": 20, "batch_size": 32, "learning_rate": 3e-3, "alpha": 1e-3}  # codes that tell something


def test_numbers_of_a_learned_run_are_those_of_an_audit(tmp_path: Path) -> None:
    """Somebody who has the codes gets each number again with `audit`, and nothing else judges."""
    pytest.importorskip("torch")
    from loky import cpu_count

    from privacyfunnel.auditing import ClusteringAdversary, boosted_trees, logistic_regression
    from privacyfunnel.estimators import estimator
    from privacyfunnel.sweep.execute import limited_threads

    data = {"name": "digits", "n_train": 400, "n_test": 300}
    settings = {"n_components": 4, "hidden": [16], **TRAINED}
    chosen = {"adversaries": ["logistic regression", "boosted trees", "KMeans"], "effort": "default"}
    sweep([Run("autoencoder", data, {**settings, **chosen}, 5)], tmp_path, n_jobs=1)
    (record,) = Store(tmp_path).records()
    values = record["values"]
    parts = load_records(data)
    options = {**settings, "hidden": (16,), "random_state": 5, "release_state": 5, "progress": False}
    with limited_threads(cpu_count()):  # the last digits depend on it
        model = estimator("autoencoder")(**options).fit(parts.x_train, parts.y_train)
        codes = model.transform(parts.x_test)
        restored = model.inverse_transform(codes)
    report = pf.audit(
        Z=codes,
        private=parts.y_test,
        adversaries=[logistic_regression(), boosted_trees(5), ClusteringAdversary(embed=False)],
        n_repeats=1,
        random_state=5,
        progress=False,
    )
    expected = {name: value for name, value in report.summary().items() if value is not None}
    own = {
        "status",
        "n_parameters",
        "n_trained",
        "best_epoch",
        "judged_by",
        "n_judged",
        "mse",
        "mse_nothing",
        "psnr",
    }
    assert set(values) - own == set(expected) - {"name", "seconds", "published"}
    assert {name: values[name] for name in set(values) - own} == {
        name: expected[name] for name in set(values) - own
    }
    assert values["success_with_labels"] > values["chance"] + 0.1
    kept = pf.audit(
        Z=codes,
        X=parts.x_test,
        X_hat=restored,
        private=parts.y_test,
        adversaries=[logistic_regression()],
        progress=False,
    ).summary()
    assert (values["mse"], values["psnr"]) == (kept["mse"], kept["psnr"])


def test_many_classes_are_judged_by_a_forest_and_numbers_by_regressors(tmp_path: Path) -> None:
    """Boosting grows a tree a class: with a hundred it would take minutes."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    settings = {"n_components": 3, "hidden": [16], **TRAINED}
    for name, y in (("classes", rng.integers(60, size=600)), ("numbers", x[:, 0] + 0.1)):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y)
        run = Run("autoencoder", {"file": str(tmp_path / f"{name}.npz")}, settings)
        sweep([run], tmp_path / name, n_jobs=1)
    (classes,), (numbers,) = (Store(tmp_path / name).records() for name in ("classes", "numbers"))
    assert classes["values"]["judged_by"] == "logistic regression, randomised trees"
    named = Run("autoencoder", {"file": str(tmp_path / "classes.npz")}, settings | {"adversaries": TREES})
    sweep([named], tmp_path / "named", n_jobs=1)
    (record,) = Store(tmp_path / "named").records()
    assert record["values"]["judged_by"] == "randomised trees"
    assert "explained_variance" not in classes["values"]
    assert "explained_variance_ridge_regression" in numbers["values"]
    assert numbers["values"]["explained_variance"] > 0.1


def test_whole_numbers_that_are_no_classes_are_judged_as_numbers(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    settings = {"n_components": 3, "hidden": [16], **TRAINED}
    np.savez(tmp_path / "ages.npz", x=x, y=np.rint(40 + 10 * x[:, 0]).astype(int))
    run = Run("autoencoder", {"file": str(tmp_path / "ages.npz")}, {**settings, "numeric": ["y"]})
    sweep([run], tmp_path / "s", n_jobs=1)
    (record,) = Store(tmp_path / "s").records()
    assert record["values"]["explained_variance"] > 0.1


def test_order_of_the_records_is_nothing_that_a_run_releases(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 3)), np.arange(300) // 150
    np.savez(tmp_path / "sorted.npz", x=x, y=y, x_test=x, y_test=y)
    run = Run("autoencoder", {"file": str(tmp_path / "sorted.npz")}, {"hidden": [4], "epochs": 1})
    sweep([run], tmp_path / "s", n_jobs=1)
    (record,) = Store(tmp_path / "s").records()
    assert record["values"]["success"] < 0.7
    assert "order" not in record["values"]["judged_by"]


def test_result_of_another_judge_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from privacyfunnel.sweep import execute

    learned, solved = Run("funnel", {"name": "digits", "n_train": 50}), Run("dca", "paper", {"beta": 0.5})
    before = [prepare(run).key for run in (learned, solved)]
    monkeypatch.setattr(execute, "JUDGE", "another")
    after = [prepare(run).key for run in (learned, solved)]
    assert [one == two for one, two in zip(before, after, strict=True)] == [False, True]


def test_unknown_adversary(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = {"n_components": 2, "hidden": [4], "epochs": 1, "adversaries": ["oracle"]}
    sweep([Run("funnel", {"name": "digits", "n_train": 50, "n_test": 40}, settings)], tmp_path, n_jobs=1)
    assert "there is no adversary 'oracle'" in Store(tmp_path).failures()[0]["error"]


def test_records_of_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 3)), rng.integers(2, size=40)
    np.savez(tmp_path / "a.npz", x=x, y=y)
    parts = load_records({"file": str(tmp_path / "a.npz")})
    assert (len(parts.x_train), len(parts.x_test)) == (28, 12)
    whole = np.concatenate([parts.x_train, parts.x_test])
    assert np.array_equal(np.sort(whole, axis=0), np.sort(x, axis=0))
    np.savez(tmp_path / "b.npz", x=x, y=y, x_test=x[:5], y_test=y[:5])
    assert np.array_equal(load_records({"file": str(tmp_path / "b.npz")}).x_test, x[:5])


def test_adult_records_hide_what_is_private(data_folder: Path) -> None:
    sex, race = (load_records({"name": "adult", "private": name, "n_train": 500}) for name in ("sex", "race"))
    assert set(sex.y_test) == {"Female", "Male"}
    assert len(set(race.y_test)) == 5
    assert race.x_test.shape[1] == sex.x_test.shape[1] - 5  # neither sex nor race is left
    assert sex.target_test is not None
    assert len(sex.x_train) == 500
    assert len(sex.target_test) == len(sex.x_test)


def full_disk(after: int) -> Any:
    """An fsync that works so many times and then finds no space."""
    left = [after]
    real = os.fsync

    def fsync(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    return fsync


def test_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk(after=10))
        with pytest.raises(DataFileError, match="No space left on device"):
            sweep(SQUARES, tmp_path, n_jobs=1)
    kept = Store(tmp_path).keys()
    assert 0 < len(kept) < 6
    assert counts(sweep(SQUARES, tmp_path, n_jobs=1)) == (6, len(kept), 6 - len(kept), 0)
    assert not list(tmp_path.rglob("*.tmp"))


def test_folders_that_are_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(DataFileError, match="this is a file"):
        sweep(SQUARES, tmp_path / "file")
    with pytest.raises(DataFileError, match="cannot make the folder"):
        sweep(SQUARES, tmp_path / "file" / "below")
    with pytest.raises(DataFileError, match="holds other things"):
        sweep(SQUARES, tmp_path)
    with pytest.raises(DataFileError, match="there is no sweep in this folder"):
        Store(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *args: False)
        with pytest.raises(DataFileError, match="may not be written"):
            sweep(SQUARES, tmp_path / "new")


def test_store_that_another_sweep_is_just_making(tmp_path: Path) -> None:
    """Its folders are there and its header is not yet; beside anything else they are somebody else's."""
    for name in ("ours", "other"):
        for part in ("runs", "failed"):
            (tmp_path / name / part).mkdir(parents=True)
    assert counts(sweep(SQUARES, tmp_path / "ours", n_jobs=1)) == (6, 0, 6, 0)
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(DataFileError, match="holds other things"):
        sweep(SQUARES, tmp_path / "other")


def test_store_of_a_newer_library(tmp_path: Path) -> None:
    sweep(SQUARES[:1], tmp_path, n_jobs=1)
    header = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps({**header, "version": 99}))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileFormatError, match="format version 99 and this library reads up to 1"):
        sweep(SQUARES, tmp_path, n_jobs=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_damaged_result_is_named(tmp_path: Path) -> None:
    sweep(SQUARES[:2], tmp_path, n_jobs=1)
    path = next((tmp_path / "runs").iterdir())
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(FileFormatError, match="this result is damaged; remove the file") as raised:
        Store(tmp_path).records()
    assert str(path) in str(raised.value)
    path.unlink()
    assert counts(sweep(SQUARES[:2], tmp_path, n_jobs=1)) == (2, 1, 1, 0)


def test_leftover_of_a_killed_writer_is_ignored(tmp_path: Path) -> None:
    sweep(SQUARES[:2], tmp_path, n_jobs=1)
    (tmp_path / "runs" / ".abc.json.0123.tmp").write_bytes(b"half a res")
    assert len(Store(tmp_path).records()) == 2


def test_another_sweep_finishing_meanwhile_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first run is computed, another sweep finishes all others."""
    keys = {prepare(run).key for run in SQUARES}
    store = Store(tmp_path, create=True)
    real, computed = engine_module.Store.write, []

    def write(self: Store, key: str, run: Run, values: Any, seconds: float) -> None:
        computed.append(key)
        real(self, key, run, values, seconds)
        for task in map(prepare, SQUARES):
            if not store.has(task.key):
                real(store, task.key, task.run, {"value": task.run.seed**2}, 0.0)

    monkeypatch.setattr(engine_module.Store, "write", write)
    assert counts(sweep(SQUARES, tmp_path, n_jobs=1)) == (6, 5, 1, 0)
    assert len(computed) == 1
    assert store.keys() == keys


def test_worker_with_other_data_refuses(tmp_path: Path) -> None:
    from privacyfunnel.sweep.execute import execute

    task = prepare(Run("greedy", "paper", {"beta": 0.5}))
    other = Task(task.key, task.run, {"name": "symmetric"}, task.fingerprint)
    assert "differ from those where the sweep was started" in (execute(other, 1).error or "")
    assert execute(task, 1).error is None


@pytest.mark.parametrize("n_jobs", [0, 1.5])
def test_bad_n_jobs(tmp_path: Path, n_jobs: Any) -> None:
    with pytest.raises(InvalidInputError, match="n_jobs must be a whole number"):
        sweep(SQUARES, tmp_path, n_jobs=n_jobs)


def test_a_private_column_has_its_name_in_a_sweep_too(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `learned` is not installed")
    rng = np.random.default_rng(0)
    ages = rng.integers(20, 60, 200)
    rows = [f"{age + rng.normal():.3f},{rng.normal():.3f},{age}" for age in ages]
    (tmp_path / "people.csv").write_text("\n".join(["a,b,age", *rows]) + "\n")
    data = {"file": str(tmp_path / "people.csv"), "private": "age"}
    settings = {"n_components": 2, "epochs": 1, "hidden": [4], "numeric": ["age"]}
    sweep([Run("funnel", data, settings)], tmp_path / "runs", n_jobs=1)
    (row,) = Store(tmp_path / "runs").records()
    assert row["values"]["attribute"] == "age"
    assert "explained_variance" in row["values"]


def test_columns_of_records_are_names_or_lists_of_names(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text("a,who,sex\n" + "".join(f"{k},name{k},{'mf'[k % 2]}\n" for k in range(20)))
    first = load_records({"file": str(table), "private": "sex", "drop": "who"})
    second = load_records({"file": str(table), "private": ["sex"], "drop": ["who"]})
    assert (first.name, first.x_train.shape, first.x_test.shape) == ("sex", (14, 1), (6, 1))
    for name in ("x_train", "y_train", "x_test", "y_test", "name"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("t.csv", {"private": ["sex", "a"]}, "private must be one column for a learned method; it is sex, a"),
        ("t.csv", {"private": 3}, "private must name columns, as texts; it is 3"),
        ("t.csv", {"private": [3]}, r"private must name columns, as texts; it is \[3\]"),
        ("t.csv", {"private": []}, "name the private column, as private"),
        ("t.csv", {"private": "sex", "drop": "b"}, "there is no column 'b'"),
        ("t.csv", {"private": "sex", "drop": "a"}, "no column is left for X; name fewer in private and drop"),
        ("t.npz", {"drop": "a"}, "drop belongs to CSV and Parquet files; leave it out"),
    ],
)
def test_columns_that_records_cannot_have(
    tmp_path: Path, name: str, more: dict[str, Any], message: str
) -> None:
    (tmp_path / "t.csv").write_text("a,sex\n1,m\n2,f\n")
    np.savez(tmp_path / "t.npz", x=np.eye(4), y=np.arange(4))
    with pytest.raises(InvalidInputError, match=message):
        load_records({"file": str(tmp_path / name), **more})


def test_nobody_is_told_that_a_worker_was_replaced() -> None:
    """Every learned run makes a worker grow; loky has a sentence about memory leaks for it."""
    import re

    import loky.process_executor

    from privacyfunnel.sweep.workers import workers

    source = Path(loky.process_executor.__file__).read_text(encoding="utf-8")
    told = re.findall(r'"(A worker \w[^"]* while some jobs[^"]*)"', source)
    assert told
    with workers(2, None):
        for sentence in told:
            warnings.warn(sentence, UserWarning, stacklevel=1)
