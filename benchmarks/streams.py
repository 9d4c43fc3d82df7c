"""Tables that do not fit in memory: counting and releasing 10⁸ records, and releasing 10⁷ of a frame.

The parts (20 Parquet files, 1 GB) are made once, in the folder for temporary files. CPU seconds are those of
all threads. With a folder for results, all tables are written into its streams.md.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import privacyfunnel as pf
from privacyfunnel.mechanism import TableMechanism

from . import frames
from .report import page, show

N_PARTS, N_ROWS = 20, 5_000_000
FOLDER = Path(tempfile.gettempdir()) / "privacyfunnel-streams"


def main(output: Path | None = None, before: Path | None = None, n_frame: int = 10_000_000) -> None:
    """Measure, print, and write the page of results; `before` is the folder of an older tree."""
    parts = _parts()
    tables = [_frame(n_frame, before), _counting(parts), _release(parts), _join()]
    if output is not None:
        page(output / "streams.md", "What streams and frames take", "streams", tables)


def both_clocks(function: Callable[[], Any], repeat: int = 1) -> tuple[float, float, Any]:
    """Least CPU and wall seconds of `repeat` calls, and the last result."""
    cpu = wall = float("inf")
    for _ in range(repeat):
        begun = time.process_time(), time.perf_counter()
        result = function()
        cpu = min(cpu, time.process_time() - begun[0])
        wall = min(wall, time.perf_counter() - begun[1])
    return cpu, wall, result


def random_mechanism(n_x: int, n_z: int = 8) -> TableMechanism:
    rng = np.random.default_rng(n_x)
    return TableMechanism(
        rng.dirichlet(np.full(n_z, 0.5), size=n_x),
        x_labels=[f"occupation {i}" for i in range(n_x)],
        z_labels=[f"group {j}" for j in range(n_z)],
        x_names=("job",),
        private_names=("sex",),
    )


def records(n: int, n_x: int, seed: int) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    jobs = pa.array([f"occupation {i}" for i in range(n_x)])
    return pa.table(
        {
            "person": pa.array(np.arange(seed * n, (seed + 1) * n)),
            "job": jobs.take(pa.array(rng.integers(n_x, size=n))),
            "sex": pa.array(["f", "m"]).take(pa.array(rng.integers(2, size=n))),
        }
    )


def _parts() -> Path:
    import pyarrow.parquet as pq

    FOLDER.mkdir(exist_ok=True)
    for number in range(N_PARTS):
        path = FOLDER / f"part-{number:02}.parquet"
        if not path.exists():
            pq.write_table(records(N_ROWS, 15, number), path.with_suffix(".new"))
            path.with_suffix(".new").rename(path)
    return FOLDER


def _frame(n: int, before: Path | None) -> str:
    """Frames in memory, against what no release can do without; this tree and the older one in turn."""
    here = Path(__file__).parents[1]
    trees = [tree for tree in (here, before) if tree is not None]
    told: dict[Path, list[dict[str, Any]]] = {tree: [] for tree in trees}
    for tree in trees * 2:
        command = [sys.executable, str(here / "benchmarks" / "frames.py"), str(n)]
        environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        told[tree].append(json.loads(done.stdout))
    rows = list(frames.rows(told[here], told[before] if before is not None else []))
    return show(f"release frame: {n:,} records in memory, 15 letters, 8 symbols", rows)


def _counting(parts: Path) -> str:
    import duckdb
    import pyarrow.dataset as ds

    duckdb.sql(f"SET threads = {len(os.sched_getaffinity(0))}")
    pattern = str(parts / "*.parquet")
    query = f"SELECT job, sex, count(*) AS n FROM '{pattern}' GROUP BY ALL"
    both = {"public": "job", "private": "sex"}
    calls = {
        "DuckDB's own group-by": lambda: duckdb.sql(query).fetchall(),
        "Joint.from_frame of a relation": lambda: pf.Joint.from_frame(duckdb.read_parquet(pattern), **both),
        "Joint.from_frame of a dataset": lambda: pf.Joint.from_frame(ds.dataset(parts), **both),
    }
    rows: list[dict[str, Any]] = []
    for name, call in calls.items():
        cpu, wall, _ = both_clocks(call, 3)
        rows.append({"how": name, "CPU (s)": cpu, "wall (s)": wall})
    for row in rows:
        row["times DuckDB (CPU)"] = row["CPU (s)"] / rows[0]["CPU (s)"]
    return show("counting parts: 10⁸ records in 20 Parquet files", rows)


def _release(parts: Path) -> str:
    """Each in a process of its own, whose memory is measured."""
    rows = []
    for what, sink in (("a folder of parts", "out"), ("one Parquet file", "out.parquet")):
        with tempfile.TemporaryDirectory(dir=parts.parent) as folder:
            command = [sys.executable, "-m", __name__, str(parts), f"{folder}/{sink}"]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        cpu, wall, memory = map(float, told.split())
        n = N_PARTS * N_ROWS
        rows.append(
            {
                "to": what,
                "CPU (s)": cpu,
                "wall (s)": wall,
                "records a second": n / wall,
                "on two whole cores": 2 * n / cpu,
                "peak memory (MB)": memory / 1e6,
                "minutes for 10⁹": wall * 1e9 / n / 60,
            }
        )
    return show("release parts: 10⁸ records, 20 Parquet files", rows)


def _release_here(source: str, sink: str) -> None:
    begun = time.perf_counter()
    released = random_mechanism(15).release_stream(source, sink, keep="person")
    assert released.n_records == N_PARTS * N_ROWS
    wall = time.perf_counter() - begun
    # Not ru_maxrss, which begins with the memory of the process that started this one.
    status = Path("/proc/self/status").read_text()
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(time.process_time(), wall, int(peak) * 1024)


def _join() -> str:
    """The SELECT in DuckDB against our own release of the same relation."""
    import duckdb

    n, rows = 2_000_000, []
    for n_x in (15, 1000, 5000):
        mechanism = random_mechanism(n_x)
        base = duckdb.connect()
        base.execute(f"SET threads = {len(os.sched_getaffinity(0))}")
        base.register("records", records(n, n_x, 0))
        base.execute("CREATE TABLE people AS SELECT * FROM records")
        for statement in mechanism.to_sql_table("mechanism", dialect="duckdb"):
            base.execute(statement)
        select = mechanism.to_sql("people", dialect="duckdb", keep="person", mechanism_table="mechanism")

        def join(base: Any = base, select: str = select) -> None:
            base.execute(f"CREATE OR REPLACE TABLE released AS {select}")

        def ours(base: Any = base, mechanism: TableMechanism = mechanism) -> None:
            reader = mechanism.release_frame(base.table("people"), keep="person")
            other = base.cursor()  # the relation is read through the first connection meanwhile
            other.register("stream", reader)
            other.execute("CREATE OR REPLACE TABLE released AS SELECT * FROM stream")

        in_base, wall, _ = both_clocks(join, 3)
        through_us, our_wall, _ = both_clocks(ours, 3)
        rows.append(
            {
                "letters": n_x,
                "JOIN (CPU s)": in_base,
                "JOIN (wall s)": wall,
                "release_frame (CPU s)": through_us,
                "release_frame (wall s)": our_wall,
                "ratio (CPU)": in_base / through_us,
            }
        )
    return show("join: 2 million rows of a table in DuckDB, released by SQL and by us", rows)


if __name__ == "__main__":
    _release_here(*sys.argv[1:])
