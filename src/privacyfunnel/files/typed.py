"""Whole tables in memory, with the numbers of a CSV file as numbers and its dates as dates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidInputError, shortened
from ..progress import progress_bar
from .base import TableFile
from .csv_files import CsvFile

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_NUMBER = r"(?i)^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"


#: Texts by which programs write that a value is missing.
GAPS = ("NA", "N/A", "n/a", "NULL", "null", "NaN", "?")


def read_typed(
    table: TableFile,
    types: Mapping[str, Any] | None = None,
    *,
    gaps: Sequence[str] = (),
    progress: bool | None = None,
) -> Any:
    """All records as a pyarrow Table. Columns of a CSV file whose texts are all numbers become numbers.

    Those whose texts are all dates such as 2024-02-29, or times such as 2024-02-29 23:59:59, become that;
    they are written in the same way again.

    Parameters
    ----------
    table : TableFile
    types : mapping from column to the type of Arrow it must have, optional
        Of a CSV file: those of other columns are found from their texts.
    gaps : texts of a CSV file that mean a missing value, besides the empty one
    """
    import pyarrow as pa

    names = list(table.columns)
    with progress_bar(f"Reading {os.path.basename(table.path)}", progress) as report:
        batches = list(table.batches(names, letters=names, report=report))
    found = pa.Table.from_batches(batches, schema=table.schema(names))
    return typed(_with_gaps(found, gaps) if gaps and isinstance(table, CsvFile) else found, table, types)


def gaps_in(frame: Any) -> dict[str, str]:
    """By column a text that often means a missing value, where a column of texts has one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {}
    for name in frame.column_names:
        if pa.types.is_string(frame[name].type) or pa.types.is_large_string(frame[name].type):
            there = pc.unique(frame[name].filter(pc.is_in(frame[name], pa.array(GAPS, frame[name].type))))
            if len(there):
                found[name] = there[0].as_py()
    return found


def _with_gaps(frame: Any, gaps: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for name in frame.column_names:
        column = frame[name]
        meant = pc.is_in(column, pa.array(gaps, column.type))
        columns[name] = pc.if_else(meant, pa.scalar(None, column.type), column)
    return pa.table(columns)


def typed(found: Any, table: TableFile, types: Mapping[str, Any] | None = None) -> Any:
    """Some records of a file with numbers as numbers and dates as dates."""
    import pyarrow as pa

    if not isinstance(table, CsvFile):
        return found
    columns = {}
    for name in found.column_names:
        column = found[name]
        wanted = (types or {}).get(name)
        columns[name] = _guessed(column) if wanted is None else _cast(column, wanted, table.path, name)
    return pa.table(columns)


def guessed_types(batch: Any, table: TableFile, types: dict[str, Any]) -> None:
    """Note by column the type that the texts of a CSV file have in this batch and in those before."""
    import pyarrow as pa

    if not isinstance(table, CsvFile):
        return
    for name in batch.column_names:
        column = batch[name]
        if column.null_count == len(column):
            continue
        kind, before = _guessed(column).type, types.get(name)
        if before in (None, kind):
            types[name] = kind
        else:
            both = {str(kind), str(before)} == {"int64", "double"}
            types[name] = pa.float64() if both else column.type


def _guessed(column: Any) -> Any:
    """Whole numbers, other numbers (infinite ones too, which are refused where they matter), dates, times, or
    the texts as they are: 007 stays what it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    for kind, form in (
        (pa.int64(), r"^(0|-?[1-9][0-9]{0,17})$"),
        (pa.float64(), _NUMBER),
        (pa.date32(), f"{_DATE}$"),
        (pa.timestamp("s"), f"{_DATE} [0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}$"),
    ):
        if pc.all(pc.match_substring_regex(column, form), skip_nulls=True).as_py():
            try:
                return column.cast(kind)
            except pa.ArrowInvalid:  # there is no 30th of February
                return column
    return column


def _cast(column: Any, wanted: Any, path: str, name: str) -> Any:
    import pyarrow as pa

    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InvalidInputError(
            f"{path}: column {shortened(name)} held {wanted} when the rule was made and holds other texts "
            "now; correct it."
        ) from None
