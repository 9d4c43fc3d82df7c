"""Tables written to CSV and Parquet files batch by batch; a file appears whole or not at all."""

from __future__ import annotations

import gzip
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ..errors import DataFileError, PrivacyFunnelError
from ..persistence import _mode, _remove, _sync_folder
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
def atomic_stream(path: Path_) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes otherwise."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        mode = _mode(target)
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and not isinstance(error, PrivacyFunnelError):
            raise DataFileError(
                f"{os.fspath(path)}: cannot write the file ({error.strerror or error}); choose a folder that "
                "exists, may be written and has space."
            ) from None
        raise


@contextmanager
def _stdout() -> Iterator[IO[bytes]]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except OSError as error:
        # A reader that has seen enough is no error of ours; the caller ends quietly.
        if isinstance(error, (BrokenPipeError, PrivacyFunnelError)):
            raise
        raise DataFileError(
            f"standard output: cannot write ({error.strerror or error}); name a file as the output."
        ) from None
