"""Releasing what does not fit in memory: batch after batch, to a reader or to a file that appears whole.

What comes in: files, folders and patterns of Parquet parts, and all that `sources` opens. What comes out: a
RecordBatchReader, a file (CSV, Parquet, Arrow), or of a table in parts a folder of parts of the same names.

Files are read twice: first their public columns, so that all unknown letters are counted before anything is
written. What can be read only once ends at the batch that has one, and then nothing is written either.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from .alphabet import as_text
from .arrays import one_generator
from .columns import public_columns, search_table
from .errors import InvalidInputError, UnknownLetterError
from .files import STDOUT, CsvFile, PartsFile, TableFile, TableWriter, file_kind, open_table, open_writer
from .files.base import Path_
from .parallel import in_order
from .persistence import atomic_folder
from .progress import Report, progress_bar
from .sources import open_source
from .unknown import UnknownLetters

if TYPE_CHECKING:
    from .mechanism import TableMechanism
    from .sources import Source


@dataclass(frozen=True)
class Released:
    """What was written: where, and how many records."""

    path: str
    n_records: int


class StreamTable(TableFile):
    """A source in the form of a file."""

    def __init__(self, source: Source) -> None:
        self.path, self.columns, self.source = source.kind, source.columns, source
        self.dataset = source.origin

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        return self.source.schema(columns)

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        return self.source.batches(columns)


def open_any(source: Any, where: str) -> TableFile:
    """A table file, a table in parts, or a source, as a table; InvalidInputError for what is none."""
    if isinstance(source, TableFile):
        return source
    if isinstance(source, (str, PathLike)):
        return open_table(source)
    found = open_source(source, where)
    if found is None:
        raise InvalidInputError(
            f"{where}: a {type(source).__name__} does not come in batches of Arrow; pass a file, a folder of "
            "Parquet files, a reader or dataset of pyarrow, a lazy frame of polars, a relation of DuckDB, or "
            "anything with __arrow_c_stream__."
        )
    return StreamTable(found)


def can_read_again(table: TableFile) -> bool:
    """Whether a table may be read a second time."""
    return table.source.again if isinstance(table, StreamTable) else True


@dataclass
class TableRelease:
    """A table on its way out through a mechanism; `how` is what `release_frame` takes."""

    table: TableFile
    mechanism: TableMechanism
    public: tuple[str, ...]
    how: dict[str, Any]
    n_jobs: int = -1

    def __post_init__(self) -> None:
        """Refuse, before any record is read, what cannot be released."""
        table = self.table
        if isinstance(table, CsvFile):  # its values are texts, so that the letter 7 is "7" there
            texts = tuple(map(as_text, self.mechanism.x_labels))
            self.mechanism = self.mechanism._with(x_labels=texts)
        table.require(self.public)
        parts: list[Any] = [*table.parts] if isinstance(table, PartsFile) else [table]
        try:
            self.header: list[str] = self._released(parts[0].schema().empty_table()).column_names
            needed = {*self.public, *self.header, self.how["id"]}
            self.wanted = [name for name in table.columns if name in needed]
            self.schema = self._released(table.schema(self.wanted).empty_table()).schema
        except InvalidInputError as error:
            told = str(error).removeprefix("release_frame: ")
            located = told.startswith(tuple(part.path for part in parts))
            raise InvalidInputError(told if located else f"{table.path}: {told}", names=error.names) from None
        # Numbers of a generator come in the order of the records.
        self.n_jobs = self.n_jobs if self.how["rng"] is None else 1

    def count_strangers(self) -> UnknownLetters:
        """The values of all records that are no letters; an error unless the user said what to do."""
        import pyarrow as pa

        letters, public = self.mechanism._letters, list(self.public)
        found = UnknownLetters(letters)

        def searched(batch: Any) -> tuple[Any, list[Any]]:
            return search_table(letters, pa.Table.from_batches([batch]), public)

        with progress_bar(f"Checking {os.path.basename(self.table.path)}") as report:
            batches = self.table.batches(public, letters=public, report=report)
            for rows, columns in in_order(searched, batches, self.n_jobs):
                found.add(rows, columns)
        if found.n_unknown and self.how["unknown"] == "error":
            raise found.error(self.table.path)
        return found

    def tables(self, part: TableFile | None = None) -> Iterator[Any]:
        """What is released, table after table; at least one, so that no records keep their header.

        Of one part of the table alone it is made by the thread that asks.
        """
        yield self.schema.empty_table()
        if part is not None:
            yield from map(self._one, self._numbered(part.batches(self.wanted, letters=self.public)))
            return
        with progress_bar(f"Releasing {os.path.basename(self.table.path)}") as report:
            batches = self.table.batches(self.wanted, letters=self.public, report=report)
            yield from in_order(self._one, self._numbered(batches), self.n_jobs)

    def _numbered(self, batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """Each batch with the number of records before it."""
        before = 0
        for batch in batches:
            yield before, batch
            before += batch.num_rows

    def _one(self, numbered: tuple[int, Any]) -> Any:
        import pyarrow as pa

        before, batch = numbered
        part = pa.Table.from_batches([batch])
        try:
            return self._released(part).cast(self.schema)
        except UnknownLetterError:
            raise self._ended(before, part) from None
        except InvalidInputError as error:  # about a record, which has another number in the batch
            where = f"{self.table.path}, counted from record {before + 1:,} on" if before else self.table.path
            raise error.at(where, without="release_frame: ") from None

    def _ended(self, before: int, part: Any) -> UnknownLetterError:
        """The error of a batch, with the records before it counted."""
        found = UnknownLetters(self.mechanism._letters)
        found.n_records, found.ended = before, True
        found.add(*search_table(self.mechanism._letters, part, self.public))
        return found.error(self.table.path)

    def _released(self, part: Any, **other: Any) -> Any:
        return self.mechanism.release_frame(part, self.public, **{**self.how, **other})


def release_stream(
    mechanism: TableMechanism,
    source: Any,
    sink: Path_ | None,
    columns: str | Sequence[str] | None,
    *,
    shuffle: bool,
    n_jobs: int,
    **how: Any,
) -> Any:
    """See `TableMechanism.release_stream`."""
    table = open_any(source, "release_stream")
    # An int would start the same numbers again for every batch.
    generator = how["rng"] = one_generator(how["rng"])
    release = TableRelease(table, mechanism, public_columns(mechanism, columns), how, n_jobs)
    check_sink(table, sink, shuffle)
    if how["unknown"] == "error" and can_read_again(table):
        release.count_strangers()
    order = None if generator is None else generator.spawn(1)[0]
    return write_stream(
        table, sink, release.tables, release.schema, shuffle=shuffle, rng=order, n_jobs=release.n_jobs
    )


def write_stream(
    table: TableFile,
    sink: Path_ | None,
    tables: Callable[..., Iterator[Any]],
    schema: Any,
    *,
    shuffle: bool = False,
    rng: Any = None,
    n_jobs: int | None = None,
    forms: Any = None,
) -> Any:
    """What is made of a table, as a reader, or in a file or folder that appears whole: `Released`.

    `tables()` makes all of it. With `n_jobs` it may be written as a folder by so many threads: `tables(part)`
    makes what comes of one part of a table in parts. `forms` are those of `open_writer`.
    """
    import pyarrow as pa

    if sink is None:
        check_sink(table, sink, shuffle)
        made = (batch for part in tables() for batch in part.to_batches())
        return pa.RecordBatchReader.from_batches(schema, made)
    if n_jobs is None:
        file_kind(sink)
    check_sink(table, sink, shuffle)
    if isinstance(table, PartsFile) and is_folder(sink) and n_jobs is not None:
        return Released(os.fspath(sink), write_folder(table, sink, tables, n_jobs))
    delimiter = delimiter_for(sink, table)
    with open_writer(sink, delimiter=delimiter, shuffle=shuffle, rng=rng, forms=forms) as writer:
        return Released(os.fspath(sink), written(writer, tables()))


def delimiter_for(sink: Path_, table: TableFile) -> str | None:
    """What separates the fields of a CSV file that is made of another; None where its name says it."""
    kind = ".csv" if sink == STDOUT else file_kind(sink)[0]
    return table.delimiter if isinstance(table, CsvFile) and kind == file_kind(table.path)[0] else None


def written(writer: TableWriter, tables: Iterator[Any]) -> int:
    """Write them all; how many records there were."""
    n_records = 0
    for part in tables:
        writer.write(part)
        n_records += part.num_rows
    return n_records


def write_folder(
    table: PartsFile,
    sink: Path_,
    tables: Callable[..., Iterator[Any]],
    n_jobs: int,
    finish: Callable[[], Any] = lambda: None,
) -> int:
    """A new folder with a part for each part of the table, and how many records that are.

    `finish` is called before it appears.
    """
    n_records = 0
    with atomic_folder(sink) as folder, progress_bar(f"Releasing {os.path.basename(table.path)}") as report:

        def write(part: TableFile) -> int:
            with open_writer(folder / os.path.basename(part.path)) as writer:
                return written(writer, tables(part))

        for done, n in enumerate(in_order(write, table.parts, n_jobs), start=1):
            n_records += n
            report(done, len(table.parts))
        finish()
    return n_records


def is_folder(sink: Path_) -> bool:
    """Whether a name has no ending: then it is that of a folder of parts."""
    return not os.path.splitext(os.fspath(sink))[1]


def check_sink(table: TableFile, sink: Path_ | None, shuffle: bool = False) -> None:
    """Refuse, before any work, a place where the records cannot go or that is read itself."""
    whole = sink is not None and not (isinstance(table, PartsFile) and is_folder(sink))
    if shuffle and not whole:
        raise InvalidInputError(
            "release: records in random order must all be there first; write them to one file, or leave "
            "shuffle out.",
            names=("sink", "shuffle"),
        )
    if sink is None:
        return
    name = os.fspath(sink)
    if whole:
        file_kind(name)
    parts = table.parts if isinstance(table, PartsFile) else [table]
    read = {os.path.realpath(part.path) for part in parts} | {os.path.realpath(table.path)}
    read |= set(map(os.path.realpath, getattr(getattr(table, "dataset", None), "files", ())))
    real = os.path.realpath(name)
    if real in read:
        raise InvalidInputError(f"{name}: this is what is read; give the output another name.")
    if isinstance(table, StreamTable) and table.source.lazy and os.path.lexists(name):
        raise InvalidInputError(
            f"{name}: this file exists, and a {table.path.rpartition(' ')[2]} does not tell whether it reads "
            "it; give the output another name, or remove the file."
        )
    if isinstance(table, PartsFile):
        if os.path.dirname(real) in {os.path.dirname(path) for path in read if path.endswith(".parquet")}:
            raise InvalidInputError(
                f"{name}: the folder is read, and would have one more part; write to another folder."
            )
        names = [os.path.basename(part.path) for part in parts]
        if not whole and (twice := [one for one in names if names.count(one) > 1]):
            raise InvalidInputError(
                f"{table.path}: two parts are named {twice[0]}; write them to one file, or rename one."
            )
