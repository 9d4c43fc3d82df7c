"""Records in batches, whatever they come from: readers, datasets, lazy frames, relations, Arrow streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

from .alphabet import require_columns
from .errors import InvalidInputError, PrivacyFunnelError, shortened
from .frames import without_views

#: Records asked for at a time, where the source lets us ask.
BATCH_ROWS = 1 << 17

# Readers that were read here: a second time they would have no records, and not say why.
_READ: WeakSet[Any] = WeakSet()


class Source:
    """Batches of Arrow of one schema, to be read once, or again where that gives the same records.

    Parameters
    ----------
    schema : of all columns
    read : function of some column names
        Gives their batches, of these columns or of more, in any type that casts to the schema's.
    again : bool
        Whether it may be read twice.
    origin : object, optional
        What knows the files that are read.
    lazy : bool
        Whether files may be read that nobody can ask for.
    coded : function of some column names, optional
        Gives their batches with texts as codes of a dictionary, where that is less work.
    """

    def __init__(
        self,
        kind: str,
        schema: Any,
        read: Any,
        *,
        again: bool = False,
        origin: Any = None,
        lazy: bool = False,
        coded: Any = None,
    ) -> None:
        self.kind, self._read, self.again, self.origin, self.lazy = kind, read, again, origin, lazy
        self._coded = coded
        # Without the metadata: it may tell of columns that are left out.
        self._schema = without_views(schema).remove_metadata()
        self.columns = tuple(self._schema.names)
        self._used = False
        if twice := [name for name in self.columns if self.columns.count(name) > 1]:
            raise InvalidInputError(
                f"{kind}: two columns are named {shortened(twice[0])}; rename one of them."
            )

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        """The schema of these columns."""
        import pyarrow as pa

        names = self.columns if columns is None else columns
        return pa.schema([self._schema.field(name).remove_metadata() for name in names])

    def batches(self, columns: Sequence[str] | None = None, *, coded: bool = False) -> Iterator[Any]:
        """The records of these columns; `coded` ones may have texts as codes of a dictionary."""
        names = list(self.columns if columns is None else columns)
        require_columns(names, self.columns, self.kind)
        if self._used and not self.again:
            raise InvalidInputError(f"{self.kind}: this stream was read already; open it again.")
        self._used = True
        schema = self.schema(names)
        with _telling(self.kind):
            if coded and self._coded is not None:
                yield from self._coded(names)
                return
            for batch in self._read(names):
                yield batch.select(names).cast(schema)


@contextmanager
def _telling(kind: str) -> Iterator[None]:
    """Errors of the libraries behind a source, in one sentence."""
    import pyarrow as pa

    try:
        yield
    except PrivacyFunnelError:
        raise
    except Exception as error:
        if isinstance(error, pa.ArrowCancelled):  # an interrupt
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        reason = reason.partition(". Detail:")[0].rstrip(".")
        raise InvalidInputError(
            f"{kind}: the records cannot be read to the end ({reason}); correct the source."
        ) from error


def open_source(source: Any, where: str) -> Source | None:
    """The batches of what streams; None for what does not, such as a list or a lazy frame of Spark.

    Readers, scanners and datasets of pyarrow, lazy frames of polars, relations of DuckDB, tables of Ibis, and
    whatever has `__arrow_c_stream__`, frames in memory among them.
    """
    if type(source).__module__.startswith("narwhals.") and hasattr(source, "to_native"):
        source = source.to_native()
    kind = f"{where}: {type(source).__name__}"
    with _telling(kind):
        return _opened(source, kind, type(source).__module__.split(".")[0])


def _opened(source: Any, kind: str, library: str) -> Source | None:
    import pyarrow as pa

    if library == "pyarrow" and hasattr(source, "scanner"):
        return _of_dataset(source, kind)
    if library == "pyarrow" and hasattr(source, "projected_schema"):
        return Source(kind, source.projected_schema, lambda names: source.to_reader())
    if isinstance(source, pa.RecordBatch):
        return Source(kind, source.schema, lambda names: [source], again=True)
    if library == "polars" and hasattr(source, "collect_schema") and not hasattr(source, "rows"):
        return _of_polars(source, kind)
    if library == "duckdb" and hasattr(source, "limit"):
        return _of_duckdb(source, kind)
    if library == "ibis" and hasattr(source, "to_pyarrow_batches"):
        return _of_ibis(source, kind)
    if isinstance(source, pa.RecordBatchReader):
        return _of_reader(source, kind)
    if hasattr(source, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(source)
        return Source(kind, reader.schema, lambda names: reader, lazy=library == "pyspark")
    return None


def _of_reader(reader: Any, kind: str) -> Source:
    if reader in _READ:
        raise InvalidInputError(f"{kind}: this stream was read already; open it again.")

    def read(names: Sequence[str]) -> Any:
        _READ.add(reader)
        return reader

    return Source(kind, reader.schema, read)


def _of_dataset(dataset: Any, kind: str) -> Source:
    def scanned(records: Any, names: Sequence[str]) -> Any:
        # Without reading far ahead, which would hold hundreds of megabytes.
        scanner = records.scanner(
            columns=list(names), batch_size=BATCH_ROWS, batch_readahead=4, fragment_readahead=1
        )
        return scanner.to_reader()

    def read(names: Sequence[str]) -> Iterable[Any]:
        _check_fragments(dataset, names, kind)
        return scanned(dataset, names)  # type: ignore[no-any-return]

    def coded(names: Sequence[str]) -> Iterable[Any]:
        _check_fragments(dataset, names, kind)
        with_codes = _with_codes(dataset, names)
        if with_codes is not None:
            return scanned(with_codes, names)  # type: ignore[no-any-return]
        schema = source.schema(names)
        return (batch.cast(schema) for batch in scanned(dataset, names))

    source = Source(kind, dataset.schema, read, again=True, origin=dataset, coded=coded)
    return source


def _with_codes(dataset: Any, names: Sequence[str]) -> Any:
    """The dataset with texts as the codes that Parquet files have for them; None where it is not so plain."""
    import pyarrow as pa
    from pyarrow import dataset as datasets

    plain = datasets.ParquetFileFormat()
    is_plain = type(dataset) is datasets.FileSystemDataset and dataset.format == plain
    if not is_plain or getattr(dataset, "_scan_options", True):  # or there is a filter, which must stay
        return None
    schema = dataset.schema
    texts = [name for name in names if schema.field(name).type == pa.string()]
    old = list(dataset.get_fragments())
    same = all(
        one.path and name in one.physical_schema.names and one.physical_schema.field(name).type == pa.string()
        for one in old
        for name in texts
    )
    if not texts or not same:
        return None
    kind = datasets.ParquetFileFormat(dictionary_columns=texts)
    parts = [
        kind.make_fragment(
            one.path,
            one.filesystem,
            one.partition_expression,
            row_groups=[group.id for group in one.row_groups],
        )
        for one in old
    ]
    for name in texts:
        field = schema.field(name).with_type(pa.dictionary(pa.int32(), pa.string()))
        schema = schema.set(schema.get_field_index(name), field)
    return datasets.FileSystemDataset(parts, schema, kind, dataset.filesystem)


def _check_fragments(dataset: Any, names: Sequence[str], kind: str) -> None:
    """Refuse a file without one of the columns: a dataset would fill it with missing values."""
    from pyarrow import dataset as datasets

    if not isinstance(dataset, datasets.FileSystemDataset):
        return
    if getattr(dataset, "_scan_options", None):  # a filtered one does not tell its fragments
        keys = [] if dataset.partitioning is None else dataset.partitioning.schema.names
        for path in dataset.files:
            there = dataset.format.inspect(path, dataset.filesystem).names
            require_columns(names, [*there, *keys], f"{kind}: {path}")
        return
    for fragment in dataset.get_fragments():
        keys = datasets.get_partition_keys(fragment.partition_expression)
        require_columns(names, [*fragment.physical_schema.names, *keys], f"{kind}: {fragment.path}")


def _of_polars(frame: Any, kind: str) -> Source:
    import polars as pl

    schema = pl.DataFrame(schema=frame.collect_schema()).to_arrow().schema

    def read(names: Sequence[str]) -> Iterator[Any]:
        for part in polars_batches(frame.select(names)):
            yield from part.to_arrow().to_batches()

    return Source(kind, schema, read, lazy=True)


def polars_batches(frame: Any) -> Iterator[Any]:
    """The records of a lazy frame of polars, in order, as frames of it."""
    if hasattr(frame, "collect_batches"):
        return iter(frame.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True))
    return frame.collect().iter_slices(BATCH_ROWS)  # type: ignore[no-any-return]  # older versions


def _of_duckdb(relation: Any, kind: str) -> Source:
    import duckdb
    import pyarrow as pa

    def read(names: Sequence[str]) -> Any:
        few = relation.select(*map(duckdb.ColumnExpression, names))
        # Older versions have another name for it.
        return (getattr(few, "to_arrow_reader", None) or few.fetch_record_batch)(BATCH_ROWS)

    return Source(kind, pa.RecordBatchReader.from_stream(relation.limit(0)).schema, read, lazy=True)


def _of_ibis(table: Any, kind: str) -> Source:
    backend = table.get_backend()
    if backend.name != "duckdb":
        schema = table.schema().to_pyarrow()
        return Source(kind, schema, lambda names: table.select(*names).to_pyarrow_batches(), lazy=True)
    import duckdb

    try:  # the relation behind it: Ibis asks for batches by a name that DuckDB 2 has not
        return _of_duckdb(backend.con.sql(backend.compile(table)), kind)
    except duckdb.Error:  # a table of Python's own memory, which DuckDB is told of when Ibis asks for it
        whole = table.to_pyarrow()
        return Source(kind, whole.schema, lambda names: whole.to_batches(), again=True)


def is_streamed(frame: Any) -> bool:
    """Whether this is no frame in memory but comes in batches, or in partitions of Dask."""
    import narwhals as nw

    try:
        data = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        return False
    if isinstance(data, nw.DataFrame):
        return False
    if isinstance(data, nw.LazyFrame):
        return data.implementation.value in ("polars", "duckdb", "ibis", "dask")
    return hasattr(frame, "__arrow_c_stream__") or type(frame).__module__ == "pyarrow._dataset"
