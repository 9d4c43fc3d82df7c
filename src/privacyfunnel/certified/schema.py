"""TableSchema: what the columns of a mixed frame are, as points to make cells of, and as levels to release.

Every column is read once: numbers (points and lengths of time are numbers too), or categories (texts,
booleans, declared categories). Its *levels* are the values, and the ranges of numbers, that at least ten
records share; see `levels`. A schema holds levels, averages over all records and names, and so no value of
fewer than ten records, extremes included. Which values are common enough is itself something about the
records: this is a threshold, as in k-anonymity, and no differential privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..alphabet import as_names, require_columns, shown_name
from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS, MOST_WHOLE
from ..errors import FileFormatError, InvalidInputError, shortened
from ..frames import (
    BACKENDS,
    arrow_column,
    check_native,
    is_number,
    is_time,
    native_type,
    parse_type,
    read_frame,
)
from ..persistence import require
from .categories import CategoryColumn
from .numbers import NumberColumn

Column = NumberColumn | CategoryColumn


@dataclass(frozen=True, eq=False, repr=False)
class TableSchema:
    """What the columns of a frame are.

    Attributes
    ----------
    kind : str
        The library of the frame: "pandas", "polars" or "pyarrow".
    columns : tuple of columns
        Those that are released, in the order of the frame.
    dropped : mapping of name to reason
        Those that are not.
    """

    kind: str
    columns: tuple[Column, ...]
    dropped: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, frame: Any, drop: str | Sequence[str] | Mapping[str, str] = ()) -> TableSchema:
        """The schema of a frame without some columns, such as the private ones.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame
        drop : names of columns, or a mapping from them to why
            To be left out.

        Raises
        ------
        InvalidInputError
            The frame has fewer than ten records, an infinite number, or no column that can be released.
        """
        data = read_frame(frame, "TableSchema")
        reasons = drop if isinstance(drop, Mapping) else dict.fromkeys(as_names(drop), "as asked")
        require_columns(tuple(reasons), data.columns, "TableSchema")
        if len(data) < LEAST_RECORDS:
            raise InvalidInputError(
                f"TableSchema: the frame has {len(data)} records and values are released that at least "
                f"{LEAST_RECORDS} share; pass more records."
            )
        columns: list[Column] = []
        dropped: dict[str, str] = {}
        for name in data.columns:
            found = reasons[name] if name in reasons else _read_column(name, data[name])
            if isinstance(found, str):
                dropped[name] = found
            else:
                columns.append(found)
        if not columns:
            told = "; ".join(f"{name}: {why}" for name, why in dropped.items()) or "it has none"
            raise InvalidInputError(f"TableSchema: no column of the frame can be released ({told}).")
        return cls(data.implementation.value, tuple(columns), dropped)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns that are released."""
        return tuple(column.name for column in self.columns)

    @property
    def report(self) -> tuple[str, ...]:
        """One sentence a column: what it is, or why it is left out."""
        return (
            *(column.sentence for column in self.columns),
            *(f"{shown_name(name)}: left out, {reason}." for name, reason in self.dropped.items()),
        )

    @property
    def point_columns(self) -> tuple[str, ...]:
        """For each coordinate of the points the column that it belongs to."""
        return tuple(column.name for column in self.columns for _ in range(column.width))

    def to_points(self, frame: Any) -> FloatArray:
        """The records as points (n, d), float64, every column with variance about 1, whatever its kind.

        Numbers are clipped to the levels. A missing value lies at the average, and where there are many has a
        coordinate of its own. A value that the schema does not know is one of the rest, or the average.
        """
        columns = self._arrow_columns(frame, "to_points")
        points = np.empty((len(columns[0]), sum(one.width for one in self.columns)))
        at = 0
        for one, column in zip(self.columns, columns, strict=True):  # one after the other: they may be large
            points[:, at : at + one.width] = one.points(column, "to_points")
            at += one.width
        return points

    def to_codes(self, frame: Any) -> list[IntArray]:
        """For each column the level of each record; −1 for what has none."""
        columns = self._arrow_columns(frame, "to_codes")
        return [one.codes(column, "to_codes") for one, column in zip(self.columns, columns, strict=True)]

    def _arrow_columns(self, frame: Any, where: str) -> list[Any]:
        """The columns of another frame in Arrow, each of the kind it had."""
        data = read_frame(frame, where)
        require_columns(self.names, data.columns, where)
        return [_alike(one, arrow_column(data[one.name]), where) for one in self.columns]

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "frame": self.kind,
            "columns": [column.to_dict() for column in self.columns],
            "dropped": dict(self.dropped),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableSchema:
        """The schema of `to_dict`; FileFormatError if it is none."""
        kind = require(data, "frame", str)
        written = require(data, "columns", list)
        if kind not in BACKENDS or not written or not all(isinstance(one, dict) for one in written):
            raise FileFormatError("the schema of a table is damaged.")
        try:
            columns = tuple(_KINDS[one["kind"]].from_dict(one) for one in written)
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"a column of the schema is damaged ({error}).") from None
        for column in columns:
            check_native(kind, column.arrow, column.native)
        dropped = {str(name): str(why) for name, why in require(data, "dropped", dict).items()}
        return cls(kind, columns, dropped)

    def __repr__(self) -> str:
        return f"TableSchema({self.kind}: {', '.join(self.names)})"


_KINDS: dict[str, type[NumberColumn] | type[CategoryColumn]] = {
    "number": NumberColumn,
    "category": CategoryColumn,
}


def _read_column(name: str, series: Any) -> Column | str:
    column = arrow_column(series)
    if column is None:
        return "its values are not single numbers, texts, times or categories of one type"
    reader = NumberColumn if is_number(column.type) and not _are_codes(column) else CategoryColumn
    return reader.read(name, column, native_type(series))


def _are_codes(column: Any) -> bool:
    """Whether these are whole numbers so large that float64 rounds them: hardly a quantity."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_integer(column.type) or column.null_count == len(column):
        return False
    ends = pc.min_max(column).as_py()
    return bool(max(-ends["min"], ends["max"]) > MOST_WHOLE)


def _alike(one: Column, column: Any, where: str) -> Any:
    """A column of another frame, refused if it is of another kind than the schema's."""
    import pyarrow as pa

    wanted = parse_type(one.arrow)
    if column is not None:
        if pa.types.is_null(column.type) and not pa.types.is_null(wanted):  # nothing in it has a type
            return pa.nulls(len(column), wanted.value_type if pa.types.is_dictionary(wanted) else wanted)
        if pa.types.is_null(wanted):
            return column if pa.types.is_null(column.type) else pa.nulls(len(column))
        same = is_number(column.type) == is_number(wanted)
        if same and is_time(column.type) == is_time(wanted):
            return column
    found = "values without a type" if column is None else str(column.type)
    raise InvalidInputError(
        f"{where}: column {shortened(one.name)} held {one.arrow} when the schema was read and holds {found} "
        "now; convert it."
    )
