"""Frames of mixed columns, in every library, and the tables that are counted from them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from privacyfunnel.certified.tables import ColumnTables, TableSchema

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
N = 400


def people(kind: str = "pandas", n: int = N) -> Any:
    """A frame with a column of every ordinary kind."""
    rng = np.random.default_rng(3)
    jobs = np.array(["clerk", "farmer", "pilot", "nurse"])[rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])]
    return FRAMES[kind](
        {
            "job": jobs.tolist(),
            "age": rng.integers(18, 65, n).tolist(),
            "height": rng.normal(170, 10, n).tolist(),
            "member": [bool(x) for x in rng.random(n) < 0.3],
            "born": [date(1970, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 9000, n)],
            "wage": np.exp(rng.normal(8, 2, n)).round(2).tolist(),
        }
    )


def lists(frame: Any) -> dict[str, list[Any]]:
    return nw.from_native(frame, eager_only=True).to_arrow().to_pydict()


def tables_of(frame: Any, symbols: Any = None, **kwargs: Any) -> ColumnTables:
    n = len(nw.from_native(frame, eager_only=True))
    return ColumnTables.count(
        TableSchema.read(frame, **kwargs), frame, np.zeros(n, dtype=int) if symbols is None else symbols
    )


def dtypes(frame: Any) -> dict[str, Any]:
    if isinstance(frame, pa.Table):
        return {field.name: field.type for field in frame.schema}
    return dict(zip(frame.columns, frame.dtypes, strict=True))
