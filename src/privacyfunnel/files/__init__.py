"""Tables in CSV, Parquet and Arrow files, read and written in batches, so that a file need not fit in memory.

A CSV file is text: every value stays the text it is ("007" stays "007") and an empty field is a missing
value. Parquet and Arrow files keep their types. The ending of the name says which of them a file is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..counting import MAX_LETTERS, PairCounter
from ..errors import DataFileError, InvalidInputError, shortened
from ..joint import Joint
from ..progress import progress_bar
from .base import DELIMITERS, STDOUT, TYPED, Path_, TableFile, TableWriter, file_kind
from .csv_files import CsvFile
from .ipc_files import IpcFile
from .parquet_files import ParquetFile
from .parts import PartsFile, is_parts
from .records import RecordFile, Records, open_records
from .writing import open_writer, stdout_failure, write_records, write_table

__all__ = [
    "STDOUT",
    "CsvFile",
    "IpcFile",
    "ParquetFile",
    "PartsFile",
    "RecordFile",
    "Records",
    "TableFile",
    "TableWriter",
    "file_kind",
    "is_parts",
    "open_records",
    "open_table",
    "open_writer",
    "read_joint",
    "stdout_failure",
    "write_records",
    "write_table",
]

FEW = 5_000  # records of a batch that are counted without importing what groups millions


def open_table(path: Path_, *, delimiter: str | None = None, gaps: Sequence[str] = ()) -> TableFile:
    """A table file, by the ending of its name, with its columns known and no record read yet.

    A folder of Parquet files, or a pattern such as data/*.parquet, is one table in parts. The `delimiter` of
    a CSV file is found where the first records leave no doubt. `gaps` are texts of it that mean a missing
    value, besides the empty one.
    """
    name = os.fspath(path)
    parts = is_parts(name)
    kind = ".parquet" if parts else file_kind(name)[0]
    if delimiter is not None and kind in TYPED:
        raise InvalidInputError(
            f"{name}: delimiter belongs to CSV files; leave it out.", names=("delimiter",)
        )
    if gaps and kind in TYPED:
        raise InvalidInputError(
            f"{name}: missing_text belongs to CSV files; leave it out.", names=("missing_text",)
        )
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise InvalidInputError(
            f"The delimiter must be a single character, such as ';'; it is {shortened(delimiter)}.",
            names=("delimiter",),
        )
    if parts:
        return PartsFile(name)
    try:
        with open(name, "rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise DataFileError(
            f"{name}: cannot read the file ({error.strerror or error}); check the name and its permissions."
        ) from None
    if empty:
        raise InvalidInputError(f"{name}: the file is empty; pass a table with a header and records.")
    if kind in TYPED:
        return ParquetFile(name) if kind == ".parquet" else IpcFile(name)
    table = CsvFile(name, delimiter or DELIMITERS[kind], gaps)
    if delimiter is None and (found := table.other_delimiter()):
        return CsvFile(name, found, gaps)
    return table


def read_joint(
    path: Path_,
    *,
    public: str | Sequence[str],
    private: str | Sequence[str],
    task: str | Sequence[str] = (),
    missing: str = "error",
    max_letters: int = MAX_LETTERS,
    delimiter: str | None = None,
    progress: bool | None = None,
) -> Joint:
    """The empirical joint of columns of a file, which is read once and in batches.

    Parameters
    ----------
    path : CSV, Parquet or Arrow file, or a folder or pattern of Parquet files
    public, private, task, missing, max_letters
        As for `Joint.from_frame`. In a CSV file letters are text and an empty field is missing.
    delimiter : str, optional
        What separates the fields of a CSV file; by default a comma, in .tsv a tab.
    progress : bool, optional
        Show a progress bar; by default when stderr is a terminal, and a line a minute when it is none.
    """
    import pyarrow as pa

    counter = PairCounter(public, private, task=task, missing=missing, max_letters=max_letters)
    columns = list(dict.fromkeys([*counter.public, *counter.private, *counter.task]))
    table = open_table(path, delimiter=delimiter)
    try:
        with progress_bar(f"Reading {os.path.basename(table.path)}", progress) as report:
            for batch in table.batches(columns, letters=columns, report=report):
                if isinstance(table, CsvFile) and batch.num_rows <= FEW:
                    counter.update_texts({name: batch.column(name).to_pylist() for name in columns})
                else:
                    counter.update_frame(pa.Table.from_batches([batch]))
        return counter.to_joint()
    except InvalidInputError as error:
        if str(error).startswith(table.path):
            raise
        raise error.at(table.path, without="Joint: ") from None
