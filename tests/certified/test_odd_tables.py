"""Columns and frames that are out of the ordinary: they come back, are left out, or are refused."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from mixed_frames import FRAMES, dtypes, lists, people, tables_of

from privacyfunnel.certified.tables import ColumnTables, TableSchema
from privacyfunnel.errors import InvalidInputError


def odd_columns() -> dict[str, Any]:
    """Native columns of pandas of 60 records."""
    n = 60
    rome = ZoneInfo("Europe/Rome")
    return {
        "missing": pd.Series([None] * n, dtype=object),
        "missing numbers": pd.Series([np.nan] * n),
        "größe ✓": pd.Series(np.arange(n) % 3),
        "maybe": pd.Series([True, False, None] * (n // 3), dtype=object),
        "nullable flag": pd.array([True, False, None] * (n // 3), dtype="boolean"),
        "level": pd.Categorical(["lo", "hi"] * (n // 2), categories=["none", "lo", "hi"], ordered=True),
        "zone": pd.Series([datetime(2024, 3, 1 + i % 2, 12, tzinfo=rome) for i in range(n)]),
        "money": pd.Series([Decimal("1.25"), Decimal("2.50")] * (n // 2), dtype=object),
        "count": pd.array([1, 2, None] * (n // 3), dtype="Int64"),
        "round money": pd.Series([Decimal("1000.00"), Decimal("250000.00")] * (n // 2), dtype=object),
        "fine money": pd.Series([Decimal("-0.0000000001"), Decimal("0.0000000003")] * (n // 2), dtype=object),
        "clock": pd.Series([time(8, 30), time(9, 0)] * (n // 2), dtype=object),
        "length": pd.Series([timedelta(hours=1), timedelta(hours=2)] * (n // 2)),
        "arrow": pd.array([1, 2] * (n // 2), dtype="int8[pyarrow]"),
        "small": pd.Series([0.1, 0.2] * (n // 2), dtype="float32"),
        "same": pd.Series(["one"] * n),
        "codes": pd.Series([2**62 + 1, 2**62 + 3] * (n // 2)),
        "python texts": pd.Series(["a", "b"] * (n // 2), dtype="string[python]"),
        "arrow texts": pd.Series(["a", "b"] * (n // 2), dtype=pd.ArrowDtype(pa.string())),
        "large codes": pd.Series([2**63 + 1, 2**63 + 3] * (n // 2), dtype="uint64"),
        "numbered": pd.Categorical([2, 1] * (n // 2)),
    }


@pytest.mark.parametrize("name", odd_columns())
@pytest.mark.parametrize("kind", FRAMES)
def test_odd_columns_come_back(name: str, kind: str) -> None:
    native = pd.DataFrame({name: odd_columns()[name]})
    table = nw.from_native(native, eager_only=True).to_arrow()
    frame = {"pandas": native, "polars": pl.from_arrow(table), "pyarrow": table}[kind]
    tables = tables_of(frame)
    again = ColumnTables.from_dict(json.loads(json.dumps(tables.to_dict())))
    released = again.draw(np.zeros(200, dtype=int), 0)
    if name == "level":
        assert list(again.schema.columns[0].labels()) == ["lo", "hi"]
        if kind == "pandas":
            assert released[name].cat.ordered
    else:
        assert dtypes(released) == dtypes(frame)
    assert Counter(map(str, lists(released)[name])).keys() == Counter(map(str, lists(frame)[name])).keys()
    assert again.schema.to_points(frame).shape == (60, len(again.schema.point_columns))


def test_enums_of_polars_stay_enums() -> None:
    frame = pl.DataFrame({"e": pl.Series(["lo", "hi"] * 20, dtype=pl.Enum(["none", "lo", "hi"]))})
    assert tables_of(frame).draw([0] * 9, 0)["e"].dtype == pl.Enum(["lo", "hi"])
    frame = pl.DataFrame({"e": pl.Series(["lo", "hi"] * 20, dtype=pl.Categorical)})
    assert tables_of(frame).draw([0] * 9, 0)["e"].dtype == pl.Categorical


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ([f"name{i}" for i in range(60)], "as in a key or a name"),
        (list(range(60)), "as in a key"),
        ([1, "a"] * 30, "not single numbers"),
        ([[1]] * 60, "not single numbers"),
        ([b"x"] * 60, "not single numbers"),
        (["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] * 5, "no value is shared"),
        ([1.5] * 9 + [None] * 3 + [2.5] * 0, "fewer than 10 records"),
    ],
)
def test_columns_that_are_left_out(column: list[Any], reason: str) -> None:
    n = len(column)
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object), "y": ["a"] * n})
    schema = TableSchema.read(frame)
    assert reason in schema.dropped["x"]
    assert schema.names == ("y",)
    assert any(line.startswith("x: left out") for line in schema.report)
    assert len(schema.report) == 2


def test_many_values_are_the_common_ones_and_the_rest() -> None:
    towns = ["Rome"] * 200 + ["Oslo"] * 100 + [f"village {i // 2}" for i in range(100)]
    frame = pd.DataFrame({"town": towns})
    schema = TableSchema.read(frame)
    assert schema.columns[0].labels() == ["Oslo", "Rome", "other"]
    assert "rarer ones become 'other'" in schema.report[0]
    shares = tables_of(frame).draw(np.zeros(8000, dtype=int), 0)["town"].value_counts(normalize=True)
    assert shares["other"] == pytest.approx(0.25, abs=0.02)
    many = TableSchema.read(pd.DataFrame({"town": [f"t{i % 300}" for i in range(6000)]}))
    assert many.columns[0].n_levels == 129


def test_the_name_of_the_rest_does_not_tell_that_somebody_has_it() -> None:
    towns = ["Rome"] * 200 + [f"village {i // 2}" for i in range(99)]
    for more, rest in ((["other"], "other"), (["other"] * 10, "(other)")):
        schema = TableSchema.read(pd.DataFrame({"town": [*towns, *more]}))
        assert schema.columns[0].labels()[-1] == rest
        level = schema.columns[0].members.index(rest)
        assert schema.to_codes(pd.DataFrame({"town": ["village 3"]}))[0].tolist() == [level]


def test_unseen_and_missing_values_have_a_place() -> None:
    schema = TableSchema.read(people())
    other = people().head(5).astype({"age": "Int64", "job": object})
    other.loc[0, "job"], other.loc[1, "job"] = "astronaut", None
    other.loc[2, "age"], other.loc[3, "height"] = pd.NA, np.nan
    other.loc[4, "age"] = 10**9
    points = schema.to_points(other)
    assert np.isfinite(points).all()
    jobs = [i for i, name in enumerate(schema.point_columns) if name == "job"]
    assert not points[:2, jobs].any()
    assert points[2, schema.point_columns.index("age")] == 0
    assert abs(points[4, schema.point_columns.index("age")]) < 3
    assert schema.to_codes(other)[0][:2].tolist() == [-1, -1]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("n", [0, 1])
def test_few_rows(kind: str, n: int) -> None:
    few = nw.from_native(people(kind), eager_only=True).head(n).to_native()
    schema = TableSchema.read(people(kind))
    assert schema.to_points(few).shape == (n, len(schema.point_columns))
    with pytest.raises(InvalidInputError, match=f"the frame has {n} records"):
        TableSchema.read(few)


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (lambda: pd.DataFrame({"x": [np.inf] + [1.0] * 30}), "'x' is infinite in 1 of 31 records"),
        (lambda: pd.DataFrame({"x": [1e200, np.inf] + [1.0] * 30}), "infinite or beyond ±1e+19 in 2 of 32"),
        (lambda: pd.DataFrame([[1, 2]] * 30, columns=["a", "a"]), "two columns have the same name"),
        (lambda: pa.table([[1] * 30, [2] * 30], names=["a", "a"]), "two columns have the same name"),
        (lambda: pd.DataFrame([[1, 2]] * 30), "names of columns must be texts; 0 is a int"),
        (lambda: pl.LazyFrame({"a": [1]}), "this frame is lazy"),
        (lambda: [[1]], "a frame of pandas, polars or pyarrow is needed; this is a list"),
        (lambda: pd.DataFrame({"k": [f"u{i}" for i in range(30)]}), "no column of the frame can be released"),
    ],
)
def test_bad_frames_are_one_sentence(frame: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match="TableSchema: ") as caught:
        TableSchema.read(frame())
    assert words in str(caught.value)
    assert str(caught.value).count(". ") == 0
