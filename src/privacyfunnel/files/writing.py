"""Tables written to CSV and Parquet files batch by batch; a file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from ..errors import DataFileError, PrivacyFunnelError
from ..persistence import atomic_stream
from .base import DELIMITERS, STDOUT, Path_, TableWriter, file_kind
from .csv_files import CsvWriter
from .parquet_files import ParquetWriter
from .shuffling import Shuffler

if TYPE_CHECKING:
    import numpy as np


@contextmanager
def open_writer(
    path: Path_,
    *,
    delimiter: str | None = None,
    spreadsheet_safe: bool = False,
    shuffle: bool = False,
    rng: np.random.Generator | None = None,
) -> Iterator[TableWriter]:
    """A writer of CSV or Parquet, by the ending of the name; "-" is CSV on standard output.

    The records go to a new file in the same folder, which takes the place of `path` when the block ends well.
    After an exception or an interrupt nothing is left of it.

    Parameters
    ----------
    path : str or path
    delimiter : str, optional
        What separates the fields of a CSV file; by default a comma, in .tsv a tab.
    spreadsheet_safe : bool
        Whether texts of a CSV file that spreadsheets would execute get a ' in front.
    shuffle : bool
        Whether the records are written in random order, all of them at the end of the block.
    rng : Generator, optional
        What the order is drawn from, for tests; the operating system's entropy by default.
    """
    with _open_in_order(path, delimiter, spreadsheet_safe) as writer:
        if not shuffle:
            yield writer
            return
        folder = None if path == STDOUT else os.path.dirname(os.path.realpath(path))
        shuffled = _ShuffledWriter(Shuffler(folder, rng))
        yield shuffled
        for table in shuffled.tables():
            writer.write(table)


class _ShuffledWriter:
    """Keeps what is written, to give it back in random order; at least its header."""

    def __init__(self, shuffler: Shuffler) -> None:
        self._shuffler = shuffler
        self._schema: Any = None

    def write(self, table: Any) -> None:
        self._schema = table.schema
        self._shuffler.add(table)

    def tables(self) -> Iterator[Any]:
        if self._schema is not None:
            yield self._schema.empty_table()
        yield from self._shuffler.tables()


@contextmanager
def _open_in_order(path: Path_, delimiter: str | None, spreadsheet_safe: bool) -> Iterator[TableWriter]:
    kind, compressed = (".csv", False) if path == STDOUT else file_kind(path)

    def csv_writer(file: Any) -> CsvWriter:
        separator = delimiter or DELIMITERS[kind]
        return CsvWriter(file, os.fspath(path), separator, spreadsheet_safe=spreadsheet_safe)

    with _stdout() if path == STDOUT else atomic_stream(path) as file:
        if kind == ".parquet":
            columns = ParquetWriter(file)
            try:
                yield columns
                columns.flush()
            finally:
                columns.close()
        elif compressed:
            # Neither name nor time in the header: the same records give the same bytes.
            packed: Any = gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0)
            with packed:
                yield csv_writer(packed)
        else:
            yield csv_writer(file)


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    if sys.__stdout__ is None:  # the process was started without one
        raise DataFileError("standard output: it is closed; write to a file.")
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError as error:
        if isinstance(error, PrivacyFunnelError):
            raise
        raise stdout_failure(error) from None


def stdout_failure(error: OSError) -> DataFileError:
    """What to say when standard output does not take what is written to it."""
    if isinstance(error, BrokenPipeError):
        return DataFileError(
            "standard output: its reader went away before everything was written; let it read to the end, or "
            "write to a file."
        )
    return DataFileError(f"standard output: cannot write ({error.strerror or error}); write to a file.")
