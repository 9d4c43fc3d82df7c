"""What a small solve imports and compiles: a command that people wait for takes no more than it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tables import make_records, write_csv

from privacyfunnel.counting import PairCounter
from privacyfunnel.files import read_joint

SOLVE = """
import sys
from privacyfunnel.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
print("IMPORTED", *sorted(sys.modules))
"""


def test_a_solve_on_a_csv_file_imports_and_compiles_little(tmp_path: Path) -> None:
    table = write_csv(tmp_path / "people.csv", make_records())
    ask = [
        "solve",
        str(table),
        "--public",
        "city",
        "--private",
        "sex",
        "--max-leakage",
        "0.01",
        "--seed",
        "0",
    ]
    cache = tmp_path / "compiled"
    done = subprocess.run(
        [sys.executable, "-c", SOLVE, *ask],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("IMPORTED")]
    imported = set(line.split())
    unwanted = {
        "pandas",
        "polars",
        "sklearn",
        "scipy.optimize",
        "scipy.stats",
        "torch",
        "matplotlib",
        "pyarrow.dataset",
        "privacyfunnel.auditing",
        "privacyfunnel.report",
    }
    assert not imported & unwanted
    # Pairs of letters are all that two private values and a limit on leakage need.
    assert {path.name.split(".")[0] for path in cache.rglob("*.nbi")} == {"pairs"}


def test_few_records_are_counted_like_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_records()
    rows[3][1] = ""
    table = write_csv(tmp_path / "t.csv", rows)
    asked = {"public": ["city", "note"], "private": ["sex", "id"], "task": "note", "missing": "letter"}
    few = read_joint(table, **asked)
    monkeypatch.setattr("privacyfunnel.files.FEW", 0)
    many = read_joint(table, **asked)
    assert few.x_labels == many.x_labels
    assert few.y_labels == many.y_labels
    assert (few.p_xy == many.p_xy).all()
    assert (few.p_t_given_x == many.p_t_given_x).all()


def test_neighbours_agree_across_batches_of_both_kinds() -> None:
    import pyarrow as pa

    counter = PairCounter("x", ["a", "b"])
    counter.update_texts({"x": ["1", "2"], "a": ["u", "v"], "b": ["w", "w"]})
    counter.update_frame(pa.table({"x": ["1", "2"], "a": ["v", "v"], "b": ["w", "w"]}))
    counter.update_texts({"x": ["1"], "a": ["v"], "b": ["w"]})
    assert counter._neighbours.agreeing == 3
