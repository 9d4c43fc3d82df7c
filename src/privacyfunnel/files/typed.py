"""Whole tables in memory, with the numbers of a CSV file as numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidInputError, shortened
from ..progress import progress_bar
from .base import TableFile
from .csv_files import CsvFile

_NUMBER = r"(?i)^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"


def read_typed(
    table: TableFile, types: Mapping[str, Any] | None = None, *, progress: bool | None = None
) -> Any:
    """All records as a pyarrow Table. Columns of a CSV file whose texts are all numbers become numbers.

    Parameters
    ----------
    table : TableFile
    types : mapping from column to the type of Arrow it must have, optional
        Of a CSV file: those of other columns are found from their texts.
    """
    import pyarrow as pa

    names = list(table.columns)
    with progress_bar(f"Reading {os.path.basename(table.path)}", progress) as report:
        batches = list(table.batches(names, letters=names, report=report))
    found = pa.Table.from_batches(batches, schema=table.schema(names))
    return typed(found, table, types)


def typed(found: Any, table: TableFile, types: Mapping[str, Any] | None = None) -> Any:
    """Some records of a file with numbers as numbers."""
    import pyarrow as pa

    if not isinstance(table, CsvFile):
        return found
    columns = {}
    for name in found.column_names:
        column = found[name]
        wanted = (types or {}).get(name)
        columns[name] = _guessed(column) if wanted is None else _cast(column, wanted, table.path, name)
    return pa.table(columns)


def _guessed(column: Any) -> Any:
    """Whole numbers, other numbers (infinite ones too, which are refused where they matter), or the texts as
    they are: 007 stays what it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return column
    for kind, form in (
        (pa.int64(), r"^(0|-?[1-9][0-9]{0,17})$"),
        (pa.float64(), _NUMBER),
    ):
        if pc.all(pc.match_substring_regex(column, form), skip_nulls=True).as_py():
            return column.cast(kind)
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
