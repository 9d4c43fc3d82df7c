"""Releasing frames in memory, of every kind: what `streams` runs for this tree, and for an older one.

It imports nothing of the other benchmarks, so that it runs with the package of another tree on the path.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

N_LETTERS, N_SYMBOLS, N_TOWNS = 15, 8, 3


def main(n: int) -> None:
    """Print the CPU and wall seconds of each kind, by number of public columns, as JSON."""
    print(json.dumps({f"{kind}, {k}": _clocks(n, kind, k) for k in (1, 2) for kind in ("bare work", *KINDS)}))


def _clocks(n: int, kind: str, n_columns: int) -> tuple[float, float]:
    table = _table(n, n_columns)
    if kind == "bare work":
        return _least(_bare(table, n_columns))
    mechanism, frame = _mechanism(n_columns), KINDS[kind](table, _public(n_columns))
    mechanism.release_frame(frame[:1000])
    return _least(lambda: mechanism.release_frame(frame, keep="person"))


def _least(function: Callable[[], Any], repeat: int = 3) -> tuple[float, float]:
    cpu = wall = float("inf")
    for _ in range(repeat):
        begun = time.process_time(), time.perf_counter()
        function()
        cpu = min(cpu, time.process_time() - begun[0])
        wall = min(wall, time.perf_counter() - begun[1])
    return cpu, wall


def _bare(table: Any, n_columns: int) -> Callable[[], Any]:
    """What no release of texts can do without: codes, random bits, symbols."""
    import pyarrow as pa

    symbols = pa.array([f"group {j}" for j in range(N_SYMBOLS)])

    def work() -> Any:
        codes = [table[name].chunk(0).dictionary_encode().indices for name in _public(n_columns)]
        os.urandom(2 * len(table))
        return symbols.take(pa.array(codes[0].to_numpy() % N_SYMBOLS))

    return work


def _public(n_columns: int) -> list[str]:
    return ["job", "town"][:n_columns]


def _letters(n_columns: int) -> list[tuple[str, ...]]:
    if n_columns == 1:
        return [(f"occupation {i}",) for i in range(N_LETTERS)]
    return [(f"occupation {i // N_TOWNS}", f"town {i % N_TOWNS}") for i in range(N_LETTERS)]


def _mechanism(n_columns: int) -> Any:
    from privacyfunnel.mechanism import TableMechanism

    letters = _letters(n_columns)
    return TableMechanism(
        np.random.default_rng(1).dirichlet(np.full(N_SYMBOLS, 0.5), size=N_LETTERS),
        x_labels=letters if n_columns > 1 else [letter for (letter,) in letters],
        z_labels=[f"group {j}" for j in range(N_SYMBOLS)],
        x_names=_public(n_columns),
    )


def _table(n: int, n_columns: int) -> Any:
    import pyarrow as pa

    at = pa.array(np.random.default_rng(0).integers(N_LETTERS, size=n))
    parts = zip(*_letters(n_columns), strict=True)
    columns = {name: pa.array(part).take(at) for name, part in zip(_public(n_columns), parts, strict=True)}
    return pa.table({"person": pa.array(np.arange(n)), **columns})


def _dictionary(table: Any, public: list[str]) -> Any:
    for name in public:
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


def _polars(table: Any, public: list[str]) -> Any:
    import polars as pl

    return pl.from_arrow(table)


def _categorical(table: Any, public: list[str]) -> Any:
    import polars as pl

    return pl.from_arrow(table).with_columns(pl.col(public).cast(pl.Categorical))


def _pandas(kind: Any) -> Callable[[Any, list[str]], Any]:
    return lambda table, public: table.to_pandas().astype(dict.fromkeys(public, kind))


def _pandas_arrow(table: Any, public: list[str]) -> Any:
    import pandas as pd

    return table.to_pandas(types_mapper=pd.ArrowDtype)


KINDS: dict[str, Callable[[Any, list[str]], Any]] = {
    "pyarrow, texts": lambda table, public: table,
    "pyarrow, dictionary": _dictionary,
    "polars, texts": _polars,
    "polars, categorical": _categorical,
    "pandas, texts": _pandas("str"),
    "pandas, objects": _pandas(object),
    "pandas, category": _pandas("category"),
    "pandas, Arrow's texts": _pandas_arrow,
}


def rows(measured: list[dict[str, Any]], before: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of a table: the least of several measurements of this tree, and of those of an older one."""
    now, old = _best(measured), _best(before)
    for k in (1, 2):
        bare = now[f"bare work, {k}"][0]
        for kind in KINDS:
            cpu, wall = now[f"{kind}, {k}"]
            row = {
                "frame": kind,
                "public columns": k,
                "CPU (s)": cpu,
                "wall (s)": wall,
                "bare work (CPU s)": bare,
            }
            if old:
                row |= {
                    "before (CPU s)": old[f"{kind}, {k}"][0],
                    "times faster": old[f"{kind}, {k}"][0] / cpu,
                }
            yield row


def _best(measured: list[dict[str, Any]]) -> dict[str, list[float]]:
    names = measured[0] if measured else ()
    return {name: [min(one[name][i] for one in measured) for i in (0, 1)] for name in names}


if __name__ == "__main__":
    main(int(sys.argv[1]))
