"""Releasing a frame of Spark: every partition by itself, in Arrow batches, where its records are."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import SecretNumbers, one_generator
from .errors import InvalidInputError

if TYPE_CHECKING:
    from .mechanism import Rng


def is_spark(frame: Any) -> bool:
    """Whether this is a frame of Spark; nothing of Spark is imported to tell."""
    return type(frame).__module__.startswith("pyspark.") and hasattr(frame, "mapInArrow")


def release_spark(
    what: Any,
    frame: Any,
    *args: Any,
    rng: Rng = None,
    key: bytes | None = None,
    id: str | None = None,
    shuffle: bool = False,
    **settings: Any,
) -> Any:
    """A Spark frame of released records; nothing is computed before somebody asks for it.

    Parameters
    ----------
    what : TableMechanism or CertifiedRule
        Sent to each worker once, as a broadcast variable.
    frame : pyspark.sql.DataFrame
    *args, **settings
        As for `TableMechanism.release_frame`, or for `CertifiedRule.release`.
    rng : None or int
        A seed gives the same symbols for the same partitions. With None they are drawn by a secret from the
        operating system's entropy that is made for this frame alone: a partition that Spark computes again,
        because a worker died or the frame is used twice, gets the same symbols if its records come in the
        same order.
    key, id : 32 bytes and a column name, optional
        One stable draw for each id, the same as everywhere: docs/keys.md.
    shuffle : bool
        Whether the records come out in random order.
    """
    _check(what, frame, rng, key)
    from pyspark.sql.functions import rand

    release = _Release(args, settings, rng, key, id)
    if rng is None and key is None and hasattr(what, "release_frame"):
        release = replace(release, key=secrets.token_bytes(32), id=_unused(frame.columns), by_place=True)
    elif rng is None and key is None:
        release = replace(release, secret=secrets.token_bytes(32))
    # Arguments that are wrong are told here and not by a worker.
    made = release.table(what, frame.limit(0).toArrow(), 0)
    out = _schema(made.schema, frame.schema, settings.get("output", "z"), release.id)
    session = frame.sparkSession
    columns = session.createDataFrame([], out).toArrow().schema
    shared = session.sparkContext.broadcast(what)

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        for table in release.tables(shared.value, batches, task.partitionId()):
            yield from table.select(columns.names).cast(columns).to_batches()

    released = frame.mapInArrow(run, out)
    return released.orderBy(rand()) if shuffle else released


@dataclass(frozen=True)
class _Release:
    """How a table is released, for workers."""

    args: Sequence[Any]
    settings: Mapping[str, Any]
    rng: Any
    key: bytes | None = field(repr=False)
    id: str | None
    by_place: bool = False  # whether an id is the place of a record in the frame
    secret: bytes | None = field(default=None, repr=False)  # of a rule without a key

    def tables(self, what: Any, batches: Iterator[Any], partition: int) -> Iterator[Any]:
        """The released tables of a partition, one a batch."""
        import pyarrow as pa

        one = self
        if self.rng is not None:
            one = replace(self, rng=np.random.default_rng([int(self.rng), partition]))
        elif self.secret is not None:
            one = replace(self, rng=SecretNumbers(self.secret, partition))
        begin = 0
        for batch in (some for some in batches if some.num_rows):
            yield one.table(what, pa.Table.from_batches([batch]), begin, partition)
            begin += batch.num_rows

    def table(self, what: Any, table: Any, begin: int, partition: int = 0) -> Any:
        """A released table; `begin` records of the partition came before."""
        import narwhals as nw
        import pyarrow as pa

        if not hasattr(what, "release_frame"):
            made = what.release(table, *self.args, rng=self.rng, key=self.key, id=self.id, **self.settings)
            return nw.from_native(made, eager_only=True).to_arrow()
        if self.by_place:
            places = pa.array([f"{partition} {begin + i}" for i in range(table.num_rows)], type=pa.string())
            table = table.append_column(self.id, places)
        return what.release_frame(table, *self.args, rng=self.rng, key=self.key, id=self.id, **self.settings)


def _check(what: Any, frame: Any, rng: Any, key: bytes | None) -> None:
    if ".connect." in type(frame).__module__:
        raise InvalidInputError(
            "release_frame: this is a frame of Spark Connect, whose server takes no mechanism; start Spark "
            "itself, or let the server draw with to_sql."
        )
    if isinstance(rng, np.random.Generator):
        raise InvalidInputError(
            "release_frame: partitions of Spark cannot share one Generator; pass a whole number.",
            names=("rng",),
        )
    one_generator(rng)  # refuses what is no seed


def _schema(made: Any, given: Any, symbol: str, person: str | None) -> Any:
    """The columns of the release in Spark's types: those that were there keep theirs."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    fields = []
    for column in made:
        there = column.name in given.names and column.name != symbol
        if there:
            fields.append(StructField(column.name, given[column.name].dataType))
        elif column.name != person:
            kind = StringType() if pa.types.is_null(column.type) else from_arrow_type(column.type)
            fields.append(StructField(column.name, kind))
    return StructType(fields)


def _unused(columns: Sequence[str]) -> str:
    name = "place"
    while name in columns:
        name += "_"
    return name
