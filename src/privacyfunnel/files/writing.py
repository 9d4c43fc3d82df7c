"""Tables and records written to CSV, Parquet and .npz files, in random order where that is asked for.

A file appears whole or not at all.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np

from ..arrays import random_order, uniform
from ..errors import DataFileError, PrivacyFunnelError
from ..frames import uniform as of_one_kind
from ..persistence import atomic_stream, write_atomic
from .base import DELIMITERS, STDOUT, TYPED, Path_, TableWriter, file_kind
from .csv_files import CsvWriter
from .forms import Form
from .ipc_files import IpcWriter
from .parquet_files import ParquetWriter

#: Bytes that are held in memory before they go to the disk.
MOST_BYTES = 1 << 27
N_HEAPS = 64


@contextmanager
def open_writer(
    path: Path_,
    *,
    delimiter: str | None = None,
    spreadsheet_safe: bool = False,
    shuffle: bool = False,
    rng: np.random.Generator | None = None,
    forms: Mapping[str, Form] | None = None,
) -> Iterator[TableWriter]:
    """A writer of CSV, Parquet or Arrow, by the ending of the name; "-" is CSV on standard output.

    The records go to a new file in the same folder, which takes the place of `path` when the block ends well.
    After an exception or an interrupt nothing is left of it. With `spreadsheet_safe`, texts of a CSV file
    that spreadsheets would execute get a ' in front; columns of `forms` are written in these. With `shuffle`
    all records are written at the end of the block, in random order: from the operating system's entropy, or
    for tests from `rng`.
    """
    with _open_in_order(path, delimiter, spreadsheet_safe, forms=forms) as writer:
        if not shuffle:
            yield writer
            return
        folder = None if path == STDOUT else os.path.dirname(os.path.realpath(path))
        shuffler = Shuffler(folder, rng)
        yield shuffler
        if shuffler.schema is not None:
            writer.write(shuffler.schema.empty_table())  # at least the header
        for table in shuffler.tables():
            writer.write(table)


def write_table(path: Path_, columns: Mapping[str, Sequence[Any]], *, kind: str | None = None) -> None:
    """Write columns of Python values, None for missing ones, as a table of the kind that the name ends in.

    Values of several types in a column become texts, whole numbers beside others become numbers.
    """
    import pyarrow as pa

    lists = {name: of_one_kind(list(values)) for name, values in columns.items()}
    table = pa.table(
        {
            # A column without any value has a type too, that of texts.
            name: pa.array(values, None if any(value is not None for value in values) else pa.string())
            for name, values in lists.items()
        }
    )
    with _open_in_order(path, None, False, kind) as writer:
        writer.write(table)


def write_records(
    path: str,
    array: str,
    names: Sequence[str],
    parts: Iterable[Any],
    *,
    spreadsheet_safe: bool = False,
    shuffle: bool = False,
    rng: np.random.Generator | None = None,
) -> int:
    """Write arrays as one table or as one array of an .npz file; how many records there were.

    The last three are those of `open_writer`.
    """
    if path.lower().endswith(".npz"):
        return _write_npz(path, array, parts, shuffle, rng)
    import pyarrow as pa

    n_records = 0
    with open_writer(path, spreadsheet_safe=spreadsheet_safe, shuffle=shuffle, rng=rng) as writer:
        for part in parts:
            flat = part.reshape(len(part), -1)
            writer.write(pa.table({name: flat[:, j] for j, name in enumerate(names)}))
            n_records += len(part)
    return n_records


def _write_npz(
    path: str, array: str, parts: Iterable[Any], shuffle: bool, rng: np.random.Generator | None
) -> int:
    whole = np.concatenate(list(parts))
    if shuffle:
        whole = whole[random_order(len(whole), rng)]
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {array: whole}
    np.savez(buffer, **arrays)
    write_atomic(path, buffer.getvalue())
    return len(whole)


class Shuffler:
    """Takes tables of one schema and gives their records back in random order, each order as likely.

    Every record goes to one of many heaps at random, and each heap is put in random order by itself (Rao and
    Sandelius). A heap that is still too large is shuffled in the same way. Heaps are files without a name,
    so nothing is left of them when the process ends, however it ends; `folder` has room for them, by default
    the system's for temporary files. `rng` is for tests; None draws from the operating system's entropy.
    """

    def __init__(self, folder: str | None = None, rng: np.random.Generator | None = None) -> None:
        self._folder, self._rng = folder, rng
        self._waiting: list[Any] = []
        self._n_bytes = 0
        self.schema: Any = None
        self._heaps: list[tuple[IO[bytes], Any]] = []

    def write(self, table: Any) -> None:
        """Take the records of a pyarrow Table."""
        self.schema = table.schema
        self._waiting.append(table)
        self._n_bytes += table.nbytes
        # One record that is larger than all memory allowed cannot be put on heaps any further.
        if self._n_bytes > MOST_BYTES and sum(part.num_rows for part in self._waiting) > 1:
            self._spill()

    def tables(self) -> Iterator[Any]:
        """All records in random order, in parts; afterwards there are none left."""
        import pyarrow as pa

        if not self._heaps:
            if self._waiting:
                whole = pa.concat_tables(self._waiting)
                self._waiting = []
                yield whole.take(pa.array(random_order(whole.num_rows, self._rng)))
            return
        self._spill()
        heaps, self._heaps = self._heaps, []
        for file, writer in heaps:
            writer.close()
            file.seek(0)
            part = Shuffler(self._folder, self._rng)
            with file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    part.write(pa.Table.from_batches([batch]))
            yield from part.tables()

    def _spill(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            return
        whole = pa.concat_tables(self._waiting).unify_dictionaries()
        self._waiting, self._n_bytes = [], 0
        if not self._heaps:
            for _ in range(N_HEAPS):
                file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
                self._heaps.append((file, pa.ipc.new_stream(file, whole.schema)))
        heap = (uniform(whole.num_rows, self._rng) * N_HEAPS).astype(np.intp)
        for number, (_, writer) in enumerate(self._heaps):
            writer.write_table(whole.take(pa.array(np.flatnonzero(heap == number))).combine_chunks())


@contextmanager
def _open_in_order(
    path: Path_,
    delimiter: str | None,
    spreadsheet_safe: bool,
    kind: str | None = None,
    forms: Mapping[str, Form] | None = None,
) -> Iterator[TableWriter]:
    compressed = False
    if kind is None:
        kind, compressed = (".csv", False) if path == STDOUT else file_kind(path)

    def csv_writer(file: Any) -> CsvWriter:
        separator = delimiter or DELIMITERS[kind]
        return CsvWriter(file, os.fspath(path), separator, spreadsheet_safe=spreadsheet_safe, forms=forms)

    with _stdout() if path == STDOUT else atomic_stream(path) as file:
        if kind in TYPED:
            columns = ParquetWriter(file) if kind == ".parquet" else IpcWriter(file)
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
