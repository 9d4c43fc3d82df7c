"""The table that 'pfunnel protect' reads, and what is missing in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..alphabet import shown_name
from ..errors import InvalidInputError, shortened
from .checks import is_csv
from .running import warn


def read_table(data: str, delimiter: str | None, wanted: Sequence[str | None], given: dict[str, Any]) -> Any:
    from ..files import open_table
    from ..files.typed import gaps_in, read_typed

    drop, gaps = given["drop"] or (), given["missing_text"] or ()
    if gaps and not is_csv(data):
        raise InvalidInputError("missing_text belongs to CSV files; leave it out.", names=("missing_text",))
    table = open_table(data, delimiter=delimiter if is_csv(data) else None)
    table.require([*(name for name in wanted if name is not None), *drop])
    frame = read_typed(table, gaps=gaps)
    if not len(frame):
        raise InvalidInputError(f"{data}: there are no records; pass a table with at least one row.")
    frame = frame.drop_columns(list(drop)) if drop else frame
    if is_csv(data) and (meant := gaps_in(frame)):
        listed = ", ".join(f"{shown_name(name)} ({text})" for name, text in list(meant.items())[:5])
        warn(
            f"{data}: texts that often mean a missing value are taken for values: {listed}"
            f"{' and others' * (len(meant) > 5)}; if they do, pass --missing-text "
            f"{next(iter(meant.values()))}."
        )
    return frame


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
