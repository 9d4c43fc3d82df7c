"""Parquet files, whose columns keep their types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from ..errors import InvalidInputError
from ..progress import Report
from . import base
from .base import TableFile

# A row group is written when it has one of these.
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 1 << 26
#: From how many places of a file some records are taken.
_PLACES = 20


class ParquetFile(TableFile):
    """A Parquet file; every column keeps its type."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._reading() as file:
            self._schema, self.n_records = file.schema_arrow, file.metadata.num_rows
        self.columns = self._distinct(self._schema.names)

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        # Without the metadata: it may tell of columns that are left out.
        return pa.schema([self._schema.field(name).remove_metadata() for name in columns or self.columns])

    def some(self, n: int) -> Any:
        """At most n records from up to twenty places all over the file, as a pyarrow Table."""
        import pyarrow as pa

        with self._reading() as file:
            groups = file.metadata.num_row_groups
            places = sorted({i * groups // _PLACES for i in range(_PLACES)}) if groups else []
            each = max(1, n // max(1, len(places)))
            found = [next(file.iter_batches(each, row_groups=[place]), None) for place in places]
            return pa.Table.from_batches([one for one in found if one is not None], file.schema_arrow)

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        import pyarrow as pa

        schema = self.schema(columns)
        done = 0
        with self._reading() as file:
            for block in file.iter_batches(batch_size=base.BATCH_ROWS, columns=columns):
                arrays = [block.column(name) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
                done += block.num_rows
                report(done, file.metadata.num_rows)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        from pyarrow import parquet

        with damage_told(self.path, "a Parquet file"), parquet.ParquetFile(self.path) as file:
            yield file


@contextmanager
def damage_told(path: str, kind: str) -> Iterator[None]:
    """Errors of pyarrow while a file is read, in a sentence."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, pa.ArrowCancelled):  # an interrupt
            raise
        reason = str(error).splitlines()[0].rstrip(".")
        raise InvalidInputError(
            f"{path}: this is not {kind}, or a damaged one ({reason}); check its name, or write it again."
        ) from None


class ParquetWriter:
    """Writes Parquet in row groups of up to 2²⁰ records."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None
        self._waiting: list[Any] = []
        self._rows = self._bytes = 0

    def write(self, table: Any) -> None:
        from pyarrow import parquet

        if self._writer is None:
            self._writer = parquet.ParquetWriter(self._file, table.schema)
        self._waiting.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._rows >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting as a row group."""
        import pyarrow as pa

        if self._rows:
            self._writer.write_table(pa.concat_tables(self._waiting))
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
