"""The results of a store as one table, the same bytes for the same results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..files import file_kind, write_table
from ..persistence import Path_
from .runs import canonical

if TYPE_CHECKING:
    from .store import Store

_FIRST = ("key", "method", "data", "seed")
_LAST = ("error",)


def table(store: Store, *, timings: bool = False) -> dict[str, list[Any]]:
    """A column for each setting and each number: key, method, data, seed, settings, values, error.

    A value that has the name of another column is called result_<name>. Lists and tables among the values,
    such as images, are left out: `Store.records` has them.

    Parameters
    ----------
    timings : bool
        Also a column seconds. Without it, a table depends on what was computed alone and not on how.
    """
    records = [*store.records(), *store.failures()]
    settings = sorted({name for record in records for name in record["run"]["settings"]})
    rows = []
    for record in records:
        run = record["run"]
        row = {
            "key": record["key"],
            "method": run["method"],
            "data": _data_text(run["data"]),
            "seed": run["seed"],
            **{name: _cell(run["settings"].get(name)) for name in settings},
            "error": record.get("error"),
        }
        for name, value in record.get("values", {}).items():
            if not isinstance(value, (list, dict)):
                row[f"result_{name}" if name in row else name] = value
        if timings:
            row["seconds"] = record["seconds"]
        rows.append(row)
    last = (*_LAST, "seconds") if timings else _LAST
    values = sorted({name for row in rows for name in row} - {*_FIRST, *settings, *last})
    return {name: [row.get(name) for row in rows] for name in (*_FIRST, *settings, *values, *last)}


def export(store: Store, path: Path_, *, timings: bool = False) -> int:
    """Write the table as CSV or Parquet; how many runs there are."""
    file_kind(path)
    columns = table(store, timings=timings)
    write_table(path, columns)
    return len(columns["key"])


def _data_text(data: dict[str, Any] | None) -> str | None:
    """A data set by its name alone where it has no options, else as JSON."""
    if data is None or set(data) == {"name"}:
        return None if data is None else str(data["name"])
    return canonical(data)


def _cell(value: Any) -> Any:
    """A setting that is a list or a table as JSON text."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value
