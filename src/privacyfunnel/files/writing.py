"""Tables written to CSV and Parquet files batch by batch; a file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from ..errors import DataFileError, PrivacyFunnelError
from ..persistence import atomic_stream
from .base import DELIMITERS, STDOUT, Path_, TableWriter, file_kind
from .csv_files import CsvWriter
from .parquet_files import ParquetWriter


@contextmanager
def open_writer(path: Path_, *, delimiter: str | None = None) -> Iterator[TableWriter]:
    """A writer of CSV or Parquet, by the ending of the name; "-" is CSV on standard output.

    The records go to a new file in the same folder, which takes the place of `path` when the block ends well.
    After an exception or an interrupt nothing is left of it.
    """
    kind, compressed = (".csv", False) if path == STDOUT else file_kind(path)
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
                yield CsvWriter(packed, os.fspath(path), delimiter or DELIMITERS[kind])
        else:
            yield CsvWriter(file, os.fspath(path), delimiter or DELIMITERS[kind])


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
