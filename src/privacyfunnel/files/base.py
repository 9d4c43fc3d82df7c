"""What the kinds of table files have in common."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import Any, Protocol

from ..alphabet import require_columns
from ..errors import InvalidInputError, shortened
from ..progress import Report

Path_ = str | PathLike[str]

STDOUT = "-"
BATCH_ROWS = 1 << 16  # the most records in memory at a time
DELIMITERS = {".csv": ",", ".tsv": "\t"}
_SPREADSHEETS = (".xlsx", ".xls", ".ods")
TYPED = (".parquet", ".arrow")  # kinds of files that keep the types of columns


def file_kind(path: Path_) -> tuple[str, bool]:
    """The kind of a table file (".csv", ".tsv", ".parquet", ".arrow"), and whether it is gzipped."""
    name = os.fspath(path).lower()
    compressed = name.endswith(".gz")
    kind = os.path.splitext(name.removesuffix(".gz"))[1]
    if kind not in (*DELIMITERS, *TYPED) or (compressed and kind in TYPED):
        remedy = "save it as CSV (UTF-8) there" if kind in _SPREADSHEETS else "rename it"
        raise InvalidInputError(
            f"{os.fspath(path)}: the name must end in .csv, .csv.gz, .tsv, .tsv.gz, .parquet or .arrow, "
            f"which says what the file is; {remedy}."
        )
    return kind, compressed


class TableFile:
    """A table in a file: the names of its columns, and its records in batches."""

    path: str
    columns: tuple[str, ...]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        letters: Sequence[str] = (),
        report: Report | None = None,
    ) -> Iterator[Any]:
        """The records as pyarrow RecordBatches of at most BATCH_ROWS, in order; of all columns or of some.

        In `letters`, columns of a CSV file, an empty text is missing even if it is in quotes. `report` is
        called with (done, total) after each batch.
        """
        wanted = list(self.columns if columns is None else columns)
        self.require(wanted)
        yield from self._batches(wanted, letters, report or (lambda done, total: None))

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        raise NotImplementedError

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        """The pyarrow Schema of `batches`."""
        raise NotImplementedError

    def require(self, columns: Sequence[str]) -> None:
        """InvalidInputError if one of the columns is not in the file; it suggests the closest names."""
        require_columns(columns, self.columns, self.path)

    def _distinct(self, names: Sequence[str]) -> tuple[str, ...]:
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise InvalidInputError(
                    f"{self.path}: two columns are named {shortened(name)}; rename one of them."
                )
            seen.add(name)
        return tuple(names)


class TableWriter(Protocol):
    """Takes tables of one schema, in order."""

    def write(self, table: Any) -> None:
        """Append the records of a pyarrow Table."""
        ...
