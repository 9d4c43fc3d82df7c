"""Arrow's own files (IPC), whose columns keep their types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from ..frames import without_views
from ..progress import Report
from . import base
from .base import TableFile
from .parquet_files import damage_told


class IpcFile(TableFile):
    """A file of Arrow; every column keeps its type."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._reading() as file:
            self._schema = without_views(file.schema)
        self.columns = self._distinct(self._schema.names)

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        # Without the metadata: it may tell of columns that are left out.
        return pa.schema([self._schema.field(name).remove_metadata() for name in columns or self.columns])

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        schema = self.schema(columns)
        with self._reading() as file:
            for number in range(file.num_record_batches):
                whole = file.get_batch(number).select(columns).cast(schema)
                for start in range(0, whole.num_rows, base.BATCH_ROWS):
                    yield whole.slice(start, base.BATCH_ROWS)
                report(number + 1, file.num_record_batches)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        import pyarrow as pa

        told = damage_told(self.path, "a file of Arrow")
        with told, pa.OSFile(self.path) as source, pa.ipc.open_file(source) as file:
            yield file


class IpcWriter:
    """Writes a file of Arrow, a batch after the other."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._writer: Any = None

    def write(self, table: Any) -> None:
        import pyarrow as pa

        # A file has one dictionary a column, and each batch may come with its own.
        for at, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                values = table.column(at).cast(field.type.value_type)
                table = table.set_column(at, field.with_type(field.type.value_type), values)
        if self._writer is None:
            self._writer = pa.ipc.new_file(self._file, table.schema)
        self._writer.write_table(table)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
