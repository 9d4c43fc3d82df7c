"""Sweeps that are killed, shared and spread over a cluster end with the same table, byte for byte."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sweep_functions import ClosedGate, begun, wait_until

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.sweep import Store, grid_runs, read_spec, retry_failed, sweep

HERE = Path(__file__).parent
PFUNNEL = [sys.executable, "-c", "from privacyfunnel.cli import main; main()"]
PATHS = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
SPEC = """
[[runs]]
method = "sweep_functions:held"
settings = { hold_from = 6 }
grid = { seed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11] }

[[runs]]
method = "dca"
data = "paper"
settings = { n_starts = 1 }
grid = { beta = { geometric = [0.1, 0.8, 4] } }
"""


def folder_with_spec(path: Path) -> Path:
    path.mkdir()
    (path / "spec.toml").write_text(SPEC)
    return path


def start(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    """`pfunnel sweep` in a folder, as the leader of a process group."""
    return subprocess.Popen(
        [*PFUNNEL, "sweep", "spec.toml", "--store", "runs", *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": PATHS},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes]) -> None:
    error = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 0, error


def table(folder: Path) -> bytes:
    Store(folder / "runs").export(folder / "table.csv")
    return (folder / "table.csv").read_bytes()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table of a sweep that nothing happened to."""
    folder = folder_with_spec(tmp_path_factory.mktemp("plain") / "sweep")
    finish(start(folder, "--n-jobs", "1"))
    found = table(folder)
    assert found.count(b"\n") == 17
    return found


def test_killed_sweep_goes_on_where_it_was(tmp_path: Path, expected: bytes) -> None:
    folder = folder_with_spec(tmp_path / "sweep")
    with ClosedGate(folder):
        process = start(folder, "--n-jobs", "2")
        # Both workers wait in a run, and all results but theirs have arrived.
        wait_until(lambda: len(begun(folder)) == 7)
        wait_until(lambda: sum(1 for _ in (folder / "runs" / "runs").glob("[!.]*.json")) >= 5)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    kept = {r["run"]["seed"] for r in Store(folder / "runs").records() if ":" in r["run"]["method"]}
    finish(start(folder, "--n-jobs", "2"))
    assert table(folder) == expected
    times = [seed for seed, _ in begun(folder)]
    assert {seed for seed in times if times.count(seed) > 1} == set(times[:7]) - kept  # those under way only
    assert len(times) == 12 + 7 - len(kept)


def test_local_sweep_that_loses_a_worker(tmp_path: Path, expected: bytes) -> None:
    """As the cluster's below: who was under way is computed again, and nobody has failed."""
    folder = folder_with_spec(tmp_path / "sweep")
    with ClosedGate(folder) as gate:
        process = start(folder, "--n-jobs", "2")
        wait_until(lambda: len(begun(folder)) == 7)
        victim = begun(folder)[6][1]
        assert victim != process.pid
        os.kill(victim, signal.SIGKILL)
        gate.open()
        finish(process)
    assert Store(folder / "runs").failures() == []
    assert len(begun(folder)) > 12
    assert table(folder) == expected


def test_interrupted_sweep_ends_at_once_with_its_workers(tmp_path: Path) -> None:
    folder = folder_with_spec(tmp_path / "sweep")
    with ClosedGate(folder):
        process = start(folder, "--n-jobs", "2")
        wait_until(lambda: len(begun(folder)) == 7)
        os.kill(process.pid, signal.SIGINT)  # to the sweep alone: its workers still wait at the gate
        error = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 130
        assert "Traceback" not in error
        wait_until(lambda: not any(alive(worker) for _, worker in begun(folder)))


def alive(process: int) -> bool:
    """Whether a process is there and no zombie that nobody has waited for."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


def test_script_needs_no_guard(tmp_path: Path) -> None:
    """Workers do not run the script that started them once more."""
    (tmp_path / "script.py").write_text(
        "from privacyfunnel.sweep import grid_runs, sweep\n"
        "runs = grid_runs('sweep_functions:square', grid={'seed': range(4)})\n"
        "print(sweep(runs, 'runs', n_jobs=2).n_computed)\n"
    )
    ended = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PATHS},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.stdout, ended.stderr) == ("4\n", "")


def test_two_sweeps_share_a_store(tmp_path: Path, expected: bytes) -> None:
    folder = folder_with_spec(tmp_path / "sweep")
    with ClosedGate(folder) as gate:
        both = [start(folder, "--n-jobs", "1"), start(folder, "--n-jobs", "1")]
        wait_until(lambda: len({process for _, process in begun(folder)}) == 2)
        gate.open()
    for process in both:
        finish(process)
    assert table(folder) == expected
    finish(start(folder))
    assert table(folder) == expected
    assert not list(folder.rglob("*.tmp"))


@contextmanager
def cluster(**options: Any) -> Iterator[Any]:
    """Two worker processes with a thread each."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", **options
    ) as started:
        yield started


quiet = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@quiet
def test_cluster_that_loses_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: bytes
) -> None:
    folder = folder_with_spec(tmp_path / "sweep")
    monkeypatch.chdir(folder)
    victims: list[int] = []

    def kill(gate: ClosedGate) -> None:
        """When both workers are in the middle of a run, one of them dies."""
        wait_until(lambda: len(begun(folder)) >= 7 and len({p for _, p in begun(folder)[5:]}) == 2)
        victims.append(begun(folder)[6][1])
        os.kill(victims[0], signal.SIGKILL)
        gate.open()

    with cluster() as started, ClosedGate(folder) as gate:
        killer = threading.Thread(target=kill, args=(gate,))
        killer.start()
        summary = sweep(read_spec("spec.toml"), "runs", scheduler=started.scheduler_address)
        killer.join()
    assert (summary.n_computed, summary.n_failed) == (16, 0)
    assert len(victims) == 1
    times = [seed for seed, _ in begun(folder)]
    assert len(times) > 12  # what the victim was at was computed again
    assert table(folder) == expected


@quiet
def test_cluster_and_a_run_that_kills_its_workers(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    runs = grid_runs("sweep_functions:deadly", grid={"seed": range(6)})
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), cluster() as started:
        summary = sweep(runs, tmp_path / "runs", scheduler=started.scheduler_address)
        assert (summary.n_computed, summary.n_failed) == (5, 1)
        (failure,) = Store(tmp_path / "runs").failures()
        assert failure["run"]["seed"] == 3
        assert "the worker process ended" in failure["error"]
        assert retry_failed(tmp_path / "runs", scheduler=started.scheduler_address).n_failed == 1


@quiet
def test_cluster_that_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_with_spec(tmp_path / "sweep")
    monkeypatch.chdir(folder)
    dask = pytest.importorskip("dask")
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        ClosedGate(folder),
        cluster() as started,
    ):

        def close() -> None:
            wait_until(lambda: len(begun(folder)) >= 7)
            started.scheduler.loop.add_callback(started.scheduler.close)

        closer = threading.Thread(target=close)
        closer.start()
        with pytest.raises(InvalidInputError, match="the connection was lost; finished runs are kept"):
            sweep(read_spec("spec.toml"), "runs", scheduler=started.scheduler_address)
        closer.join()
    assert len(Store("runs").keys()) >= 4


def test_nobody_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("privacyfunnel.sweep.workers.CONNECT_SECONDS", 0.3)
    runs = grid_runs("sweep_functions:square", grid={"seed": range(3)})
    with pytest.raises(InvalidInputError, match="no Dask scheduler answers"):
        sweep(runs, tmp_path / "runs", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(InvalidInputError, match="no Dask scheduler answers"):
        sweep(runs, tmp_path / "runs", scheduler="nonsense://x")
    assert Store(tmp_path / "runs").keys() == set()
