"""`pfunnel sweep`: computing, going on, status, the table, and one sentence for whatever is wrong."""

from __future__ import annotations

import csv
import errno
import json
import os
import sys
from pathlib import Path

import pytest
from cli_tables import Run

SPEC = """
[[runs]]
method = "greedy"
data = {{ file = "people.csv", public = ["city"], private = ["sex"] }}
grid = {{ beta = {betas} }}
"""


@pytest.fixture
def folder(people: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with people.csv and spec.toml, four runs."""
    monkeypatch.chdir(people.parent)
    Path("spec.toml").write_text(SPEC.format(betas=[0.1, 0.2, 0.3, 0.4]))
    return people.parent


def ask(*more: object) -> tuple[object, ...]:
    return ("sweep", "spec.toml", "--store", "runs", "--n-jobs", 1, *more)


def test_compute_then_reuse_then_add(pfunnel: Run, folder: Path) -> None:
    ended = pfunnel(*ask("--json"))
    assert ended.code == 0
    values = json.loads(ended.out)
    assert (values["n_runs"], values["n_reused"], values["n_computed"], values["n_failed"]) == (4, 0, 4, 0)
    Path("spec.toml").write_text(SPEC.format(betas=[0.4, 0.5]))
    values = json.loads(pfunnel(*ask("--json")).out)
    assert (values["n_runs"], values["n_reused"], values["n_computed"]) == (2, 1, 1)
    ended = pfunnel(*ask())
    assert ended.code == 0
    assert "runs: 2 runs asked for." in ended.out
    assert ended.err == ""


def test_status_tells_what_is_left(pfunnel: Run, folder: Path) -> None:
    pfunnel(*ask())
    for path in list(Path("runs/runs").iterdir())[:1]:
        path.unlink()
    ended = pfunnel("sweep", "status", "--store", "runs", "--json")
    (plan,) = json.loads(ended.out)["sweeps"]
    assert plan == {"name": "spec", "n_runs": 4, "n_done": 3, "n_failed": 0, "n_left": 1}
    ended = pfunnel("sweep", "status", "--store", "runs")
    assert "runs: 3 runs done, 0 failed." in ended.out


def test_failures_are_told_and_retried(pfunnel: Run, folder: Path) -> None:
    Path("spec.toml").write_text(SPEC.format(betas=[0.1, -1]))
    ended = pfunnel(*ask())
    assert ended.code == 1
    assert "beta must be a finite number" in ended.out
    values = json.loads(pfunnel("sweep", "status", "--store", "runs", "--json").out)
    assert (values["n_done"], values["n_failed"], values["errors"][0]["count"]) == (1, 1, 1)
    ended = pfunnel("sweep", "retry-failed", "--store", "runs", "--n-jobs", 1, "--json")
    assert ended.code == 1
    assert json.loads(ended.out)["n_failed"] == 1


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.tsv.gz"])
def test_export(pfunnel: Run, folder: Path, name: str) -> None:
    import pyarrow.parquet

    pfunnel(*ask())
    ended = pfunnel("sweep", "export", "--store", "runs", "--output", name, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["n_runs"] == 4
    if name == "t.csv":
        with open(name, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert [float(row["beta"]) for row in rows] == [0.1, 0.2, 0.3, 0.4]
        assert all(float(row["leakage"]) >= 0 and row["error"] == "" for row in rows)
        assert "seconds" not in rows[0]
    if name == "t.parquet":
        table = pyarrow.parquet.read_table(name)
        assert table.column("utility").type == "double"
        assert table.num_rows == 4
    pfunnel("sweep", "export", "--store", "runs", "--output", "seconds.csv", "--timings")
    assert "seconds" in Path("seconds.csv").read_text().splitlines()[0]


def check(pfunnel: Run, args: tuple[object, ...], message: str) -> None:
    ended = pfunnel(*args)
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("sweep", "none.toml", "--store", "runs"), "none.toml: cannot read the file"),
        (
            ("sweep", "stats", "--store", "runs"),
            "'stats' is neither a .toml or .json file of runs nor one of",
        ),
        (("sweep", "status", "--store", "none"), "none: there is no sweep in this folder"),
        (("sweep", "spec.toml", "--store", "people.csv"), "people.csv: this is a file; name a folder"),
        (("sweep", "spec.toml", "--store", "."), "this folder holds other things and no sweep"),
        (("sweep", "spec.toml", "--store", "r", "-o", "t.csv"), "--output and --timings belong to export"),
        (("sweep", "spec.toml", "--store", "r", "--n-jobs", 0), "--n-jobs must be a whole number"),
        (("sweep", "retry-failed", "--store", "none"), "there is no sweep in this folder"),
        (("sweep", "spec.toml"), "--store"),
    ],
)
def test_bad_arguments(pfunnel: Run, folder: Path, args: tuple[object, ...], message: str) -> None:
    check(pfunnel, args, message)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "export needs --output"),
        (("-o", "t.xlsx"), "t.xlsx: the name must end in"),
        (("-o", "no/t.csv"), "there is no folder 'no'"),
    ],
)
def test_bad_export(pfunnel: Run, folder: Path, args: tuple[object, ...], message: str) -> None:
    pfunnel(*ask())
    check(pfunnel, ("sweep", "export", "--store", "runs", *args), message)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"method": "..:function"}, "method '..:function' cannot be imported"),
        ({"method": "broken:function"}, "method 'broken:function' cannot be imported"),
        (
            {"method": "greedy", "data": {"file": "people\0.csv", "public": "city", "private": "sex"}},
            "cannot read the file (embedded null byte)",
        ),
    ],
)
def test_bad_run(pfunnel: Run, folder: Path, spec: dict[str, object], message: str) -> None:
    Path("broken.py").write_text("def function(:\n")
    Path("spec.json").write_text(json.dumps({"runs": [spec]}))
    check(pfunnel, ("sweep", "spec.json", "--store", "runs", "--n-jobs", 1), message)


def test_what_a_file_of_runs_holds_is_spelt_as_there(pfunnel: Run, folder: Path) -> None:
    """The command has no --drop; the data of a run have drop, which helps."""
    pytest.importorskip("torch")
    run = {"method": "funnel", "data": {"file": "people.csv", "private": ["sex"], "drop": ["id"]}}
    Path("spec.json").write_text(json.dumps({"runs": [run]}))
    ended = pfunnel("sweep", "spec.json", "--store", "learned", "--n-jobs", 1)
    assert (ended.code, ended.out) == (2, "")
    assert "people.csv: column 'city' does not hold numbers" in ended.err
    assert "leave it out with drop city" in ended.err
    assert "--drop" not in ended.err


def test_unwritable_store(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pfunnel(*ask())
    monkeypatch.setattr(os, "access", lambda *args: False)  # the superuser is refused nothing
    check(pfunnel, ask(), "runs: the folder may not be written")


def test_newer_store(pfunnel: Run, folder: Path) -> None:
    pfunnel(*ask())
    header = json.loads(Path("runs/sweep.json").read_text())
    Path("runs/sweep.json").write_text(json.dumps({**header, "version": 2}))
    for args in (ask(), ("sweep", "status", "--store", "runs")):
        check(pfunnel, args, "format version 2 and this library reads up to 1; install a newer one")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_full_disk(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, n_jobs: int) -> None:
    pfunnel(*ask())
    more = [0.1, *(0.5 + k / 100 for k in range(9))]
    Path("spec.toml").write_text(SPEC.format(betas=more))
    again = ("sweep", "spec.toml", "--store", "runs", "--n-jobs", n_jobs)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        check(pfunnel, again, "cannot write the file (No space left on device)")
    assert json.loads(pfunnel("sweep", "status", "--store", "runs", "--json").out)["n_done"] == 4
    # Now there is space for the plan and two results.
    real = os.fsync
    left = [2 * 3]

    def nearly_full(handle: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            full(handle)
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", nearly_full)
        check(pfunnel, again, "cannot write the file (No space left on device)")
    done = json.loads(pfunnel("sweep", "status", "--store", "runs", "--json").out)["n_done"]
    assert 4 < done < 13
    assert json.loads(pfunnel(*again, "--json").out)["n_computed"] == 13 - done


def test_unreachable_scheduler(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("privacyfunnel.sweep.workers.CONNECT_SECONDS", 0.3)
    check(pfunnel, ask("--scheduler", "tcp://127.0.0.1:9"), "no Dask scheduler answers")


@pytest.mark.parametrize("address", ["ray", "ray://head:10001", "tcp://head", "tcp://head:many", ""])
def test_address_of_no_dask_scheduler(pfunnel: Run, folder: Path, address: str) -> None:
    pytest.importorskip("distributed")
    told = f"scheduler {address!r}: no Dask scheduler answers (an address is written tcp://host:8786)"
    check(pfunnel, ask("--scheduler", address), told)


def test_dask_that_is_not_installed(pfunnel: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    check(pfunnel, ask("--scheduler", "tcp://head:8786"), "pip install 'privacyfunnel[distributed]'")
