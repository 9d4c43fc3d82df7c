"""Releasing a frame of Spark: every partition by itself, in Arrow batches, where its records are."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .alphabet import as_names, require_columns
from .arrays import SecretNumbers, one_generator
from .columns import search_table
from .errors import InvalidInputError, shortened
from .frames import without_views
from .persistence import decode_labels, encode_labels
from .shipping import opened, packed
from .unknown import UnknownLetters

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
    """A Spark frame of released records. They are drawn when somebody asks for them.

    With unknown="error" the public columns are read once before, so that all values that are no letters are
    counted before anything is released.

    Parameters
    ----------
    what : TableMechanism, CertifiedRule or encoder
        Sent to each worker once, as a broadcast variable; rules and encoders as the bytes of their files.
    frame : pyspark.sql.DataFrame
    *args, **settings
        As for `release_frame` of a mechanism or encoder, or for `CertifiedRule.release`.
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
    if id is not None:
        _check_ids(frame, id)
    from pyspark.sql.functions import rand

    release = _Release(args, settings, rng, key, id)
    if rng is None and key is None and _is_mechanism(what):
        release = replace(release, key=secrets.token_bytes(32), id=_unused(frame.columns), by_place=True)
    elif rng is None and key is None:
        release = replace(release, secret=secrets.token_bytes(32))
    # Arguments that are wrong are told here and not by a worker.
    made = release.table(what, frame.limit(0).toArrow(), 0)
    out = _schema(made.schema, frame.schema, settings.get("output", "z"), release.id)
    session = frame.sparkSession
    columns = session.createDataFrame([], out).toArrow().schema
    shared = session.sparkContext.broadcast(packed(what))
    if settings.get("unknown") == "error":
        _refuse_strangers(what, frame, args[0], id, shared)

    names = frame.columns

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        task = TaskContext.get()
        assert task is not None
        named = (batch.rename_columns(names) for batch in batches)
        for table in release.tables(opened(shared.value), named, task.partitionId()):
            yield from table.select(columns.names).cast(columns).to_batches()

    released = _numbered(frame).mapInArrow(run, out)
    return released.orderBy(rand()) if shuffle else released


def _is_mechanism(what: Any) -> bool:
    """Whether this is a mechanism, and no rule or encoder."""
    return hasattr(what, "release_frame") and hasattr(what, "fingerprint")


def _refuse_strangers(mechanism: Any, frame: Any, columns: Any, person: str | None, shared: Any) -> None:
    """Count, before anything is released, the values that are no letters and the records without an id.

    What a worker raises reaches the user inside two tracebacks, and after other workers have written.
    """
    public = list(mechanism.x_names if columns is None else as_names(columns))
    wanted = list(dict.fromkeys([*public, *([] if person is None else [person])]))

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        found, anonymous = UnknownLetters(shared.value._letters), 0
        for batch in (some.rename_columns(wanted) for some in batches):
            table = pa.Table.from_batches([batch])
            plain = table.cast(without_views(table.schema))
            found.add(*search_table(shared.value._letters, plain, public))
            anonymous += 0 if person is None else batch.column(wanted.index(person)).null_count
        yield _told(found, anonymous)

    few = _numbered(frame).select(*(f"c{frame.columns.index(name)}" for name in wanted))
    everywhere, n_anonymous = UnknownLetters(mechanism._letters), 0
    for row in few.mapInArrow(run, "n BIGINT, strangers BIGINT, anonymous BIGINT, found STRING").collect():
        everywhere.n_records += row["n"]
        everywhere.n_unknown += row["strangers"]
        n_anonymous += row["anonymous"]
        for value, n in json.loads(row["found"]):
            everywhere.counts[decode_labels([value])[0]] += n
    if everywhere.n_unknown:
        raise everywhere.error("release_frame")
    if n_anonymous:
        raise InvalidInputError(
            f"release_frame: {n_anonymous:,} of {everywhere.n_records:,} records have no id in "
            f"{shortened(person)}; give each record one, or leave these out.",
            names=("id",),
        )


def _numbered(frame: Any) -> Any:
    """The frame with c0, c1, … for names: `mapInArrow` takes no name with a dot or a backtick in it."""
    return frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))


def _check_ids(frame: Any, person: str) -> None:
    """Refuse ids of a type that does not read the same everywhere."""
    require_columns((person,), frame.columns, "release_frame")
    kind = frame.schema[person].dataType.simpleString()
    if kind not in ("string", "tinyint", "smallint", "int", "bigint", "date") and "char(" not in kind:
        raise InvalidInputError(
            f"release_frame: the ids in {shortened(person)} are of the type {kind}; they must be texts, "
            "whole numbers or dates, which read the same everywhere: turn them into text.",
            names=("id",),
        )


def _told(found: UnknownLetters, anonymous: int) -> Any:
    """What a partition has found, as one record."""
    import pyarrow as pa

    values = []
    for value, n in found.counts.items():
        try:
            values.append((encode_labels([value], "values")[0], n))
        except InvalidInputError:  # of a kind that only its text can be told of
            values.append((repr(value), n))
    return pa.record_batch(
        {
            "n": pa.array([found.n_records], pa.int64()),
            "strangers": pa.array([found.n_unknown], pa.int64()),
            "anonymous": pa.array([anonymous], pa.int64()),
            "found": [json.dumps(values)],
        }
    )


@dataclass(frozen=True)
class _Release:
    """How a table is released, for workers."""

    args: Sequence[Any]
    settings: Mapping[str, Any]
    rng: Any
    key: bytes | None = field(repr=False)
    id: str | None
    by_place: bool = False  # whether an id is the place of a record in the frame
    secret: bytes | None = field(default=None, repr=False)  # of a rule or encoder without a key

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

        if not _is_mechanism(what):
            release = getattr(what, "release_frame", None)
            if release is None:  # a rule; an encoder takes no key
                release = partial(what.release, key=self.key, id=self.id)
            made = release(table, *self.args, rng=self.rng, **self.settings)
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
    if key is not None and hasattr(what, "release_frame") and not _is_mechanism(what):
        raise InvalidInputError(
            "release: an encoder draws anew each time; leave key and id out.", names=("key", "id")
        )


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
