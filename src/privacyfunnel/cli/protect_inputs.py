"""The table that 'pfunnel protect' reads, and what is missing in it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from ..alphabet import shown_name
from ..errors import InvalidInputError, shortened
from .checks import is_csv
from .running import warn

#: Bytes of files beyond which a table is read batch by batch; texts take more of them than packed columns.
LARGE_TEXT, LARGE_PACKED = 1 << 28, 1 << 26
#: Share of a column above which it is said that its values became one.
MOST_OTHERS = 0.2


def large_table(data: str, delimiter: str | None, wanted: Sequence[str], given: dict[str, Any]) -> Any:
    """The table, if it is to be read batch by batch; None if it goes into memory.

    What looks at all records at once, such as people with several of them, needs them there.
    """
    from ..files import PartsFile, open_table

    if given["missing"] != "error" or any(given[name] for name in ("drop", "keep", "groups")):
        return None
    table = open_table(data, delimiter=delimiter if is_csv(data) else None, gaps=given["missing_text"] or ())
    parts = [part.path for part in table.parts] if isinstance(table, PartsFile) else [table.path]
    packed = not is_csv(data) or data.lower().endswith(".gz")
    if sum(map(os.path.getsize, parts)) <= (LARGE_PACKED if packed else LARGE_TEXT):
        return None
    table.require(wanted)
    return table


def read_table(data: str, delimiter: str | None, wanted: Sequence[str | None], given: dict[str, Any]) -> Any:
    from ..files import open_table
    from ..files.typed import read_typed

    drop = given["drop"] or ()
    table = open_table(data, delimiter=delimiter if is_csv(data) else None, gaps=given["missing_text"] or ())
    table.require([*(name for name in wanted if name is not None), *drop])
    frame = read_typed(table)
    if not len(frame):
        raise InvalidInputError(f"{data}: there are no records; pass a table with at least one row.")
    frame = frame.drop_columns(list(drop)) if drop else frame
    warn_of_texts(data, frame)
    return frame


def written_in(data: str, delimiter: str | None, gaps: Sequence[str] | None) -> dict[str, Any]:
    """How numbers and times of the table are written, so that the release has them in the same way."""
    from ..files import open_table
    from ..files.typed import written_forms

    return written_forms(open_table(data, delimiter=delimiter, gaps=gaps or ())) if is_csv(data) else {}


def warn_of_others(columns: Iterable[Any]) -> None:
    """Say where a release lost much of a column to the value that stands for all rare ones."""
    shares = {column.name: getattr(column, "rest_share", 0.0) for column in columns}
    if many := {name: share for name, share in shares.items() if share > MOST_OTHERS}:
        listed = ", ".join(f"{shown_name(name)} ({share:.0%})" for name, share in many.items())
        warn(
            f"values that fewer than ten records share become one, which is much of {listed}; put such "
            "values into groups, or write numbers and times in one form, to keep more."
        )


def warn_of_texts(data: str, frame: Any) -> None:
    """Say which texts of a CSV file may mean a missing value, or a number."""
    from ..files.typed import doubtful_numbers, gaps_in

    if is_csv(data) and (numbers := doubtful_numbers(frame)):
        listed = ", ".join(map(shown_name, numbers))
        warn(
            f"{data}: numbers with commas are taken for texts in {listed}, as a comma may separate decimals "
            "or thousands; write them with a decimal point and nothing else."
        )
    if is_csv(data) and (meant := gaps_in(frame)):
        listed = ", ".join(f"{shown_name(name)} ({text})" for name, text in list(meant.items())[:5])
        warn(
            f"{data}: texts that often mean a missing value are taken for values: {listed}"
            f"{' and others' * (len(meant) > 5)}; if they do, pass --missing-text "
            f"{shlex.quote(next(iter(meant.values())))}."
        )


def without_gaps(data: str, frame: Any, names: Sequence[str], given: dict[str, Any]) -> Any:
    """The table whose private values and task are all there: a missing one is refused, or is a value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in names:
        column = frame[name]
        gaps = pc.is_null(column, nan_is_null=True)
        n_gaps = pc.sum(gaps).as_py()
        if n_gaps and given["missing"] == "error":
            first = gaps.index(True).as_py() + 1
            raise InvalidInputError(
                f"{data}: column {shortened(name)} is missing in {n_gaps:,} of {len(frame):,} records, the "
                f"first of which is record {first:,}; pass missing='letter', which makes that a value of its "
                "own, or leave these records out.",
                names=("missing",),
            )
        if n_gaps:
            texts = pc.cast(column, pa.string())
            label = "(missing)"
            while pc.any(pc.equal(texts, label)).as_py():
                label = f"({label})"
            filled = pc.if_else(gaps, label, texts)
            frame = frame.set_column(frame.column_names.index(name), name, filled)
    return frame
