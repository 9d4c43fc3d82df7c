"""Records that need not fit in memory: cells are made from a sample, everything else is counted on the way.

The table is read twice. Which part a record belongs to, and whether it is in the sample, is drawn by its
place alone: from random numbers of the seed, and not from its values, so that the two parts are independent
where records are. The first reading finds types, private classes and the sample, the second one counts. What
can be read only once is put into a temporary file first, so that both readings have the same records in the
same order.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..alphabet import as_names, factorise
from ..arrays import BoolArray, FloatArray, IntArray
from ..attributes import Attribute, read_attributes
from ..errors import DataFileError, InvalidInputError, shortened
from ..files import TableFile
from ..files.typed import guessed_types, typed
from ..progress import progress_bar
from ..sources import Source, is_streamed
from ..streams import StreamTable, can_read_again, open_any
from .material import Material
from .readers import Reader
from .reading import LEAST_IN_CLASS, MOST_SHAPING, SOLVING_SHARE, Private, Read, copies_of, read_task

#: Places whose random numbers are drawn together.
BLOCK = 1 << 16
#: Combinations of private values and tasks that are counted, at most.
MOST_COMBINATIONS = 10_000


def comes_in_batches(X: Any) -> bool:
    """Whether these are records to be read batch by batch: a file, a dataset, a lazy frame, a reader …"""
    return isinstance(X, (str, os.PathLike, TableFile)) or is_streamed(X)


class Places:
    """For the place of a record, which part it is in and how early it is taken into the sample."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._seed = int(rng.integers(2**63))

    def __call__(self, start: int, n: int) -> tuple[BoolArray, FloatArray]:
        """Whether each of n records from this place on certifies, and its rank in [0, 1)."""
        first, last = start // BLOCK, (start + n - 1) // BLOCK
        blocks = [np.random.default_rng((self._seed, i)).random((2, BLOCK)) for i in range(first, last + 1)]
        part, rank = np.hstack(blocks)[:, start - first * BLOCK :][:, :n]
        return part >= SOLVING_SHARE, rank


@dataclass(frozen=True, eq=False)
class Coder:
    """The class of each record of some columns, as classes were numbered when all records were seen."""

    names: tuple[str, ...]
    numbers: tuple[dict[Hashable, int], ...]  # of the values of each column
    classes: dict[tuple[int, ...], int]  # of their combinations

    @classmethod
    def of(cls, names: Sequence[str], seen: Any, y: IntArray) -> Coder:
        """From a table with every combination and the class of each of its rows."""
        numbers, codes = [], []
        for name in names:
            values, code = factorise(seen[name])
            numbers.append({value: i for i, value in enumerate(values)})
            codes.append(code.tolist())
        return cls(tuple(names), tuple(numbers), dict(zip(zip(*codes, strict=True), y.tolist(), strict=True)))

    def values(self, batch: Any) -> list[IntArray]:
        """For each column the number of each record's value."""
        found = []
        for name, numbers in zip(self.names, self.numbers, strict=True):
            values, codes = factorise(batch[name])
            found.append(np.array([numbers.get(value, -1) for value in values], dtype=np.intp)[codes])
            if found[-1].min() < 0:
                raise InvalidInputError(
                    f"fit: column {shortened(name)} has other values at the second reading than at the "
                    "first; pass records that do not change meanwhile."
                )
        return found

    def __call__(self, batch: Any) -> IntArray:
        columns = np.stack(self.values(batch), axis=1)
        rows, at = np.unique(columns, axis=0, return_inverse=True)
        kinds = [self.classes[tuple(row)] for row in rows.tolist()]
        return np.array(kinds, dtype=np.intp)[at.ravel()]


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedRead(Read):
    """A sample of the records that solve as `Read`; the others, and those that certify, come in `parts`.

    Attributes
    ----------
    table : TableFile
    types : by column
        Of a CSV file.
    draws : Places
    places : (n,) array
        Of the records of the sample in the table.
    n_certify : int
    classes : (n_y,) array
        Records that solve, by private class.
    coders : of the private class, and of the task
    files : what is to be closed
    """

    table: TableFile
    types: dict[str, Any]
    draws: Places
    places: IntArray
    n_certify: int
    classes: IntArray
    coders: tuple[Coder, ...]
    files: ExitStack

    @classmethod
    def of(cls, X: Any, private: Any, task: Any, groups: Any, rng: np.random.Generator) -> StreamedRead:
        if groups is not None:
            raise InvalidInputError(
                "fit: groups= needs all records in memory; pass a frame, or one record of each person.",
                names=("groups",),
            )
        named = (_named(private, "private"), _named(task, "task") if task is not None else ())
        if len(named[1]) > 1 or set(named[0]) & set(named[1]):
            raise InvalidInputError(
                "fit: the task is one column, and none of the private ones.", names=("private", "task")
            )
        with ExitStack() as files:
            table = _readable_twice(open_any(X, "fit"), files)
            table.require([*named[0], *named[1]])
            return _First(table, named, Places(rng)).read(files)

    def close(self) -> None:
        self.files.close()

    @property
    def n_certifying(self) -> int:
        return self.n_certify

    @property
    def solving_counts(self) -> IntArray:
        return self.classes

    def shaping(self, rng: np.random.Generator) -> IntArray:
        return np.arange(self.n)

    def parts(self, reader: Reader, shaping: IntArray) -> Iterator[tuple[Material, bool]]:
        n = 0
        with progress_bar(f"Counting {os.path.basename(self.table.path)}") as report:
            for batch in _batches(self.table, report):
                some = typed(batch, self.table, self.types)
                certifies, _ = self.draws(n, len(some))
                known = np.isin(np.arange(n, n + len(some)), self.places, assume_unique=True)
                n += len(some)
                for mine, last in ((~certifies & ~known, False), (certifies, True)):
                    if mine.any():
                        rows = some.filter(mine)
                        codes = [coder(rows) for coder in self.coders]
                        t = codes[1] if len(codes) > 1 else None
                        yield Material(reader.points(rows), codes[0], t), last
        if n != self.n_certify + int(self.classes.sum()):
            raise InvalidInputError(
                "fit: the table has another number of records at the second reading; pass records that do "
                "not change meanwhile."
            )


class _First:
    """The first reading: types, combinations of classes, and a sample of the records that solve."""

    def __init__(
        self, table: TableFile, named: tuple[tuple[str, ...], tuple[str, ...]], draws: Places
    ) -> None:
        self.table, self.named, self.draws = table, named, draws
        self.types: dict[str, Any] = {}
        self.counts: dict[tuple[Any, ...], IntArray] = {}  # of combinations: all, and those that solve
        self.rows: list[Any] = []
        self.ranks, self.places = np.zeros(0), np.zeros(0, dtype=np.intp)
        self.n = self.n_certify = 0

    def read(self, files: ExitStack) -> StreamedRead:
        import pyarrow as pa

        with progress_bar(f"Reading {os.path.basename(self.table.path)}") as report:
            for batch in _batches(self.table, report):
                self._take(batch)
        if not self.n:
            raise InvalidInputError("fit: there are no records; pass a table with at least one row.")
        if self.n_certify in (0, self.n):
            raise InvalidInputError(
                f"fit: {self.n} records cannot be split into a part to solve on and one to certify; use more."
            )
        sample = typed(pa.concat_tables(self.rows), self.table, self.types)
        return self._as_read(sample, files)

    def _take(self, batch: Any) -> None:
        certifies, rank = self.draws(self.n, len(batch))
        places = np.arange(self.n, self.n + len(batch))
        guessed_types(batch, self.table, self.types)
        self._count(batch, ~certifies)
        self.n += len(batch)
        self.n_certify += int(certifies.sum())
        most = np.inf if len(self.ranks) < MOST_SHAPING else self.ranks.max()
        mine = np.flatnonzero(~certifies & (rank < most))
        if not len(mine):
            return
        import pyarrow as pa

        self.rows.append(batch.take(mine))
        self.ranks = np.concatenate([self.ranks, rank[mine]])
        self.places = np.concatenate([self.places, places[mine]])
        if len(self.ranks) > MOST_SHAPING:
            kept = np.sort(np.argpartition(self.ranks, MOST_SHAPING)[:MOST_SHAPING])
            self.rows = [pa.concat_tables(self.rows).take(kept)]
            self.ranks, self.places = self.ranks[kept], self.places[kept]

    def _count(self, batch: Any, solves: BoolArray) -> None:
        columns = [factorise(batch[name]) for names in self.named for name in names]
        codes = np.stack([code for _, code in columns], axis=1)
        found, at = np.unique(codes, axis=0, return_inverse=True)
        both = np.stack([np.bincount(at.ravel(), weight, len(found)) for weight in (None, solves)], axis=1)
        for row, n in zip(found.tolist(), both.astype(np.intp), strict=True):
            key = tuple(values[i] for (values, _), i in zip(columns, row, strict=True))
            self.counts[key] = self.counts.get(key, 0) + n
        if len(self.counts) > MOST_COMBINATIONS:
            names = " and ".join(shortened(name) for names in self.named for name in names)
            raise InvalidInputError(
                f"fit: {names} have more than {MOST_COMBINATIONS:,} different values; of records that come "
                "in batches, group private values and tasks into classes first.",
                names=("private", "task"),
            )

    def _as_read(self, sample: Any, files: ExitStack) -> StreamedRead:
        seen, times = self._seen()
        names = [name for part in self.named for name in part]
        for name in names:
            if seen[name].null_count:
                raise InvalidInputError(
                    f"fit: column {shortened(name)} has missing values; fill them in, or leave these records "
                    "out.",
                    names=("private", "task"),
                )
        rows, nobody = np.arange(len(seen)), np.zeros(0, dtype=np.intp)
        of_private = {name: seen[name] for name in self.named[0]}
        for one in read_attributes(of_private, len(seen), name="private"):
            _refuse_numbers(one, "private")
        private = Private.read(of_private, len(seen), rows, nobody)
        coders = [Coder.of(self.named[0], seen, private.y)]
        target = None
        if self.named[1]:
            target = read_task({name: seen[name] for name in self.named[1]}, len(seen), rows)
            assert target is not None
            _refuse_numbers(target, "task")
            coders.append(Coder.of(self.named[1], seen, target.y))
            target = Attribute(target.name, target.classes, coders[1](sample))
        classes = np.rint(np.bincount(private.y, times, private.n_classes)).astype(np.intp)
        mine = Private(
            private.names, private.labels, coders[0](sample), private.notes, tuple(coders[0].values(sample))
        )
        everybody = np.arange(len(sample))
        same = copies_of(sample, mine, everybody, names)
        return StreamedRead(
            X=sample,
            n=len(sample),
            private=mine,
            task=target,
            solving=everybody,
            certifying=nobody,
            hidden=(*self.named[0], *same),
            target=self.named[1],
            copies=same,
            table=self.table,
            types=self.types,
            draws=self.draws,
            places=self.places,
            n_certify=self.n_certify,
            classes=classes,
            coders=tuple(coders),
            files=files.pop_all(),
        )

    def _seen(self) -> tuple[Any, FloatArray]:
        """A table with every combination, at most ten times, and by how many records that solve it stands.

        A class of fewer records than ten is refused, and how many more there are does not matter.
        """
        import pyarrow as pa

        names = [name for part in self.named for name in part]
        times = np.array([min(int(n[0]), LEAST_IN_CLASS) for n in self.counts.values()])
        solves = np.array([int(n[1]) for n in self.counts.values()]) / times
        rows = np.repeat(np.arange(len(times)), times)
        kinds = {name: self.table.schema([name]).field(name).type for name in names}
        columns = {}
        for i, name in enumerate(names):
            kind = kinds[name].value_type if pa.types.is_dictionary(kinds[name]) else kinds[name]
            columns[name] = pa.array([key[i] for key in self.counts], type=kind)
        seen = typed(pa.table(columns), self.table, self.types)
        return seen.take(rows), solves[rows]


def _refuse_numbers(one: Attribute, what: str) -> None:
    if one.is_numeric:
        raise InvalidInputError(
            f"fit: {what} {one.name} is a number that is not whole; of records that come in batches, cut it "
            "into classes first.",
            names=(what,),
        )


def _named(given: Any, what: str) -> tuple[str, ...]:
    texts = as_names(given) if isinstance(given, (str, list, tuple)) else ()
    if not texts or not all(isinstance(one, str) for one in texts):
        raise InvalidInputError(
            f"fit: of records that come in batches, {what} must be the name of a column, or of several.",
            names=(what,),
        )
    return tuple(dict.fromkeys(texts))


def _batches(table: TableFile, report: Any) -> Iterator[Any]:
    import pyarrow as pa

    names = list(table.columns)
    for batch in table.batches(names, letters=names, report=report):
        if batch.num_rows:
            yield pa.Table.from_batches([batch])


def _readable_twice(table: TableFile, files: ExitStack) -> TableFile:
    """The table, or where it can be read only once a copy in a temporary file.

    It has no name, so that nothing is left of it when the process ends, however it ends.
    """
    if can_read_again(table):
        return table
    import pyarrow as pa

    schema, file = table.schema(), tempfile.TemporaryFile()  # noqa: SIM115
    files.callback(file.close)
    try:
        # A stream, and not a file of Arrow: batches may come with dictionaries of their own.
        with pa.ipc.new_stream(file, schema) as writer:
            for batch in table.batches():
                writer.write_batch(batch)
        file.flush()
    except OSError as error:
        raise DataFileError(
            "fit: these records can be read only once, and there is no room for a copy of them in "
            f"{tempfile.gettempdir()} ({error.strerror or error}); set TMPDIR to another folder, or pass a "
            "file."
        ) from None

    def read(names: Sequence[str]) -> Iterator[Any]:
        file.seek(0)
        with pa.ipc.open_stream(file) as reader:
            yield from reader

    return StreamTable(Source(table.path, schema, read, again=True))
