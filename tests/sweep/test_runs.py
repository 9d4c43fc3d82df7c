"""Runs, grids and the files that list them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.sweep import Run, grid_runs, read_spec
from privacyfunnel.sweep.execute import prepare


def test_grid_is_every_combination() -> None:
    runs = grid_runs(
        data="paper",
        settings={"n_starts": 2},
        grid={"method": ["dca", "greedy"], "beta": {"geometric": [0.1, 10, 3]}, "seed": [0, 5]},
    )
    expected = {(m, b, s) for m in ("dca", "greedy") for b in (0.1, 1, 10) for s in (0, 5)}
    assert {(run.method, run.settings["beta"], run.seed) for run in runs} == expected
    assert len(runs) == 12
    assert all(run.settings["n_starts"] == 2 and run.data == {"name": "paper"} for run in runs)


def test_equal_runs_have_one_key_and_others_another() -> None:
    base = prepare(Run("dca", "paper", {"beta": 0.5, "n_z": 3}, 1)).key
    assert prepare(Run("dca", {"name": "paper"}, {"n_z": 3.0, "beta": np.float64(0.5)}, 1)).key == base
    others = [
        Run("dca", "paper", {"beta": 0.5, "n_z": 4}, 1),
        Run("dca", "paper", {"beta": 0.5, "n_z": 3}, 2),
        Run("dca", "paper", {"beta": 0.5, "n_z": 3, "n_starts": 20}, 1),
        Run("splitting", "paper", {"beta": 0.5, "n_z": 3}, 1),
        Run("dca", "symmetric", {"beta": 0.5, "n_z": 3}, 1),
    ]
    assert len({base, *(prepare(run).key for run in others)}) == 6


def test_key_is_of_the_content_not_of_the_place(tmp_path: Path) -> None:
    def key(name: str, lines: str) -> str:
        (tmp_path / name).write_text("a,b\n" + lines)
        data = {"file": str(tmp_path / name), "public": ["a"], "private": ["b"]}
        return prepare(Run("greedy", data, {"beta": 0.5})).key

    first = key("one.csv", "x,0\ny,1\n")
    assert key("two.csv", "x,0\ny,1\n") == first
    assert key("one.csv", "x,0\ny,1\ny,0\n") != first


def test_key_of_a_function_is_of_the_content_of_its_file(tmp_path: Path) -> None:
    def key(data: dict[str, str]) -> str:
        return prepare(Run("sweep_functions:square", data)).key

    file = tmp_path / "data.bin"
    keys = []
    for content in (b"one", b"two"):
        file.write_bytes(content)
        keys.append(key({"file": str(file)}))
    assert keys[0] != keys[1]
    assert prepare(Run("sweep_functions:square", {"name": "mine"})).fingerprint is None  # its own affair


def test_changed_function_is_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for body in ("seed", "seed + 1"):
        (tmp_path / "mine.py").write_text(f"def run(*, seed):\n    return {{'v': {body}}}\n")
        importlib.invalidate_caches()
        sys.modules.pop("mine", None)
        import linecache

        linecache.clearcache()
        keys.append(prepare(Run("mine:run")).key)
    assert keys[0] != keys[1]


def test_version_of_the_library_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prepare(Run("dca", "paper", {"beta": 0.5})).key
    monkeypatch.setattr("privacyfunnel.__version__", "99.0")
    assert prepare(Run("dca", "paper", {"beta": 0.5})).key != before


SPEC = """
[[runs]]
method = "dca-sparse"
data = "paper"
settings = { n_starts = 1 }
grid = { beta = { geometric = [0.1, 10, 2] }, seed = [0, 1] }

[[runs]]
method = "funnel"
data = { name = "digits", n_train = 100 }
settings = { hidden = [8], epochs = 1 }
seed = 4
"""


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    import tomllib

    (tmp_path / "s.toml").write_text(SPEC)
    (tmp_path / "s.json").write_text(json.dumps(tomllib.loads(SPEC)))
    runs = read_spec(tmp_path / "s.toml")
    assert runs == read_spec(tmp_path / "s.json")
    assert len(runs) == 5
    last = Run("funnel", {"name": "digits", "n_train": 100}, {"hidden": [8], "epochs": 1}, 4)
    assert runs[-1] == last


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing to run"),
        ("runs = 3", "nothing to run"),
        ("[[runs]\n", "no valid TOML"),
        ("[[runs]]\nmethod = 'dca'\n[other]\n", "'other' means nothing here"),
        ("[[runs]]\nmethod = 'dca'\nbeta = 1\n", "runs entry 1: 'beta' is none of"),
        ("[[runs]]\nmethod = 'dca'\ngrid = {beta = 1}\n", "grid.beta must be a list"),
        ("[[runs]]\nmethod = 'dca'\ngrid = {beta = []}\n", "grid.beta must be a list"),
        ("[[runs]]\nmethod = 'dca'\ngrid = {beta = {geometric = [0, 1, 3]}}\n", "geometric = [lowest"),
        ("[[runs]]\nmethod = 'dca'\ngrid = {beta = {linear = [0, 1, 3]}}\n", "geometric = [lowest"),
        ("[[runs]]\nmethod = 'dca'\nsettings = {beta = 1}\ngrid = {beta = [1]}\n", "both in settings and"),
        ("[[runs]]\nmethod = 'dca'\ngrid = {method = ['dca']}\n", "given twice"),
        ("[[runs]]\ndata = 'paper'\n", "method must be a name"),
        ("[[runs]]\nmethod = 'dca'\nseed = -1\n", "seed must be a whole number"),
        ("[[runs]]\nmethod = 'dca'\nsettings = {beta = nan}\n", "settings.beta: a setting must be"),
    ],
)
def test_bad_spec(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.toml"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"s\.toml") as raised:
        read_spec(path)
    assert message in str(raised.value)


def test_missing_spec(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot read the file"):
        read_spec(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (Run("dcaa", "paper"), "method 'dcaa' is unknown"),
        (Run("dca"), "needs data"),
        (Run("dca", "paper", {"gamma": 1}), "'gamma' is no setting of method 'dca'; there are beta"),
        (Run("dca", "paper", {"rng": 1}), "'rng' is no setting"),
        (Run("funnel", "digits", {"gamma": 1}), "'gamma' is no setting of method 'funnel'"),
        (Run("dca", "nothing"), "'nothing' is neither a file nor a data set"),
        (Run("dca", {"name": "paper", "public": "a"}), "'public' is no option of this data set"),
        (Run("dca", {"name": "german-credit"}), "name the public and private columns"),
        (Run("dca", "digits"), "digits is no table of letters"),
        (Run("funnel", "german-credit"), "german-credit is no set of records"),
        (Run("funnel", {"name": "digits", "n_train": 0}), "n_train must be a whole number"),
        (Run("dca", {}), "either a name or a file"),
        (Run("no_such_module:f"), "cannot be imported"),
        (Run("math:pi"), "is no function"),
        (Run("dca", {"file": "none.csv", "public": "a", "private": "b"}), "cannot read the file"),
    ],
)
def test_runs_that_could_not_begin(run: Run, message: str) -> None:
    with pytest.raises((InvalidInputError, DataFileError)) as raised:
        prepare(run)
    assert message in str(raised.value)
