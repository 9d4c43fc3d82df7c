"""Whole tables in memory, with the numbers of a CSV file as numbers and its dates as dates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import islice
from typing import Any

from ..errors import InvalidInputError, shortened
from ..progress import progress_bar
from .base import TableFile
from .csv_files import CsvFile
from .forms import Form, as_kind, doubtful_number, form_of

#: Texts by which programs write that a value is missing.
GAPS = ("NA", "N/A", "n/a", "NULL", "null", "NaN", "?")


def read_typed(table: TableFile) -> Any:
    """All records as a pyarrow Table. Columns of a CSV file whose texts are all numbers become numbers.

    Those whose texts are all dates such as 2024-02-29 or 29.02.2024, or times such as 23:59, 9:05 PM or
    2024-02-29T23:59:59+02:00, become that, and numbers with decimal commas become numbers. A writer that
    has `written_forms` writes them in the same way again.
    """
    import pyarrow as pa

    names = list(table.columns)
    with progress_bar(f"Reading {os.path.basename(table.path)}") as report:
        batches = list(table.batches(names, letters=names, report=report))
    found = pa.Table.from_batches(batches, schema=table.schema(names))
    return typed(found, table)


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


def doubtful_numbers(frame: Any) -> dict[str, str]:
    """By column of texts one with a comma, where all look like numbers: decimals, or thousands?"""
    import pyarrow as pa

    found = {
        name: doubtful_number(frame[name])
        for name in frame.column_names
        if pa.types.is_string(frame[name].type) or pa.types.is_large_string(frame[name].type)
    }
    return {name: text for name, text in found.items() if text is not None}


def written_forms(table: TableFile) -> dict[str, Form]:
    """By column how numbers, dates and times of a CSV file are written, from its first records."""
    import pyarrow as pa

    if not isinstance(table, CsvFile):
        return {}
    names = list(table.columns)
    batches = list(islice(table.batches(names, letters=names), 1))
    first = pa.Table.from_batches(batches, table.schema(names))
    found = {name: form_of(first[name]) for name in names}
    return {name: form for name, form in found.items() if form is not None}


def typed(found: Any, table: TableFile, types: Mapping[str, Any] | None = None) -> Any:
    """Some records of a file with numbers as numbers and dates as dates.

    `types` are those of Arrow, or a `Form`.
    """
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
    """Note by column the form that the texts of a CSV file have in this batch and in those before.

    Where they have none, it is the type of texts.
    """
    if not isinstance(table, CsvFile):
        return
    for name in batch.schema.names:
        column = batch.column(name)
        before = types.get(name)
        if column.null_count == len(column) or (name in types and not isinstance(before, Form)):
            continue
        form = form_of(column)
        if form is not None and before is not None:
            form = before.joined(form)
        types[name] = column.type if form is None else form


def _guessed(column: Any) -> Any:
    """Whole numbers, other numbers (infinite ones too, which are refused where they matter), dates, times, or
    the texts as they are."""
    form = form_of(column)
    return column if form is None else form.read(column)


def _cast(column: Any, wanted: Any, path: str, name: str) -> Any:
    import pyarrow as pa

    form = wanted if isinstance(wanted, Form) else None
    kind = wanted if form is None else form.kind
    try:
        if form is None and pa.types.is_floating(kind):
            form = form_of(column)  # which knows commas
        return as_kind(column, kind, commas=form is not None and form.commas)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        meant = gaps_in(pa.table({name: column})).get(name)
        remedy = "" if meant is None else f", or pass missing_text={meant} if that means a missing value"
        raise InvalidInputError(
            f"{path}: column {shortened(name)} held {kind} when the rule was made and holds other texts "
            f"now; correct it{remedy}.",
            names=("missing_text",),
        ) from None
