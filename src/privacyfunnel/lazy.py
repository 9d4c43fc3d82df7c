"""Releasing frames that are not in memory: lazy ones of polars, partitions of Dask, and what streams."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import SecretNumbers, one_generator, uniform
from .errors import InvalidInputError
from .shipping import opened, packed
from .sources import polars_batches
from .spark import is_spark, release_spark
from .streams import release_stream

if TYPE_CHECKING:
    from .mechanism import TableMechanism


def release_lazy(
    mechanism: TableMechanism, frame: Any, columns: str | Sequence[str] | None, how: dict[str, Any]
) -> Any:
    """What `release_frame` gives for a frame that `sources.is_streamed`."""
    import narwhals as nw

    native = nw.to_native(frame, pass_through=True)
    library = type(native).__module__.split(".")[0]
    if how["shuffle"] and library in ("polars", "dask"):
        raise InvalidInputError(
            "release_frame: a lazy frame has no rows to put in random order; leave shuffle out, or write a "
            "file with release_stream.",
            names=("shuffle",),
        )
    if library == "polars":
        return _of_polars(mechanism, native, columns, how)
    if library == "dask":
        return release_dask(mechanism, native, columns, **how)
    return release_stream(mechanism, native, None, columns, n_jobs=-1, **how)


def _of_polars(
    mechanism: TableMechanism, frame: Any, columns: str | Sequence[str] | None, how: dict[str, Any]
) -> Any:
    """A lazy frame that can be collected once: a second time would draw anew, and tell more."""
    import polars as pl
    from polars.io.plugins import register_io_source

    empty = mechanism.release_frame(pl.DataFrame(schema=frame.collect_schema()), columns, **how)
    return register_io_source(
        _PolarsRelease(mechanism, frame, columns, how), schema=empty.schema, validate_schema=True
    )


class _PolarsRelease:
    """What polars asks for the records of a release."""

    def __init__(self, mechanism: TableMechanism, frame: Any, columns: Any, how: dict[str, Any]) -> None:
        self.mechanism, self.frame, self.columns, self.how = mechanism, frame, columns, how
        # Whether it gives the same symbols again.
        self.again = how["key"] is not None or isinstance(how["rng"], (int, np.integer))
        self.begun = False

    def __reduce__(self) -> Any:
        raise InvalidInputError(
            "release_frame: a release that is still lazy cannot be saved: the file would hold the key, and a "
            "copy would draw again; collect it first."
        )

    def __call__(
        self, wanted: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        if self.begun and not self.again:
            raise InvalidInputError(
                "release_frame: this release was collected already, and drawing again would tell more; keep "
                "the first result, or release with a key."
            )
        self.begun = True
        numbers = {**self.how, "rng": one_generator(self.how["rng"])}
        left = n_rows
        for part in polars_batches(self.frame):
            made = self.mechanism.release_frame(part, self.columns, **numbers)
            made = made if left is None else made.head(left)
            left = None if left is None else left - len(made)
            made = made if predicate is None else made.filter(predicate)
            yield made if wanted is None else made.select(wanted)
            if left == 0:
                return


def is_dask(frame: Any) -> bool:
    """Whether this is a frame of Dask; nothing of Dask is imported to tell."""
    return type(frame).__module__.split(".")[0] == "dask" and hasattr(frame, "map_partitions")


def release_on_cluster(frame: Any) -> Callable[..., Any] | None:
    """What releases a frame of Spark or Dask where its records are; None for any other."""
    return release_spark if is_spark(frame) else release_dask if is_dask(frame) else None


class _Sent:
    """What goes to the workers of a cluster beside what releases; what is secret in it is never printed."""

    def __init__(self, args: Sequence[Any], settings: dict[str, Any], seed: int | bytes | None) -> None:
        self.args, self.settings, self.seed = args, settings, seed

    def __repr__(self) -> str:
        return "<how to release>"

    def release(self, part: Any, what: Any, number: int) -> Any:
        """The release of one partition: the same however often, and wherever, it is computed."""
        rng: Any = None
        if isinstance(self.seed, bytes):
            rng = SecretNumbers(self.seed, number)
        elif self.seed is not None:
            rng = np.random.default_rng([self.seed, number])
        return self.made(part, what, rng)

    def made(self, part: Any, what: Any, rng: Any) -> Any:
        """A released frame of pandas."""
        import narwhals as nw

        release = getattr(what, "release_frame", None) or what.release
        made = release(part, *self.args, **self.settings, rng=rng)
        return nw.from_native(made, eager_only=True).to_pandas()


def release_dask(what: Any, frame: Any, *args: Any, rng: Any = None, **settings: Any) -> Any:
    """A frame of Dask whose partitions are released by whoever computes them.

    Parameters
    ----------
    what : TableMechanism, CertifiedRule or encoder
        A worker gets it once.
    *args, **settings
        As for its `release_frame`, or `release`.
    rng : None, int or Generator
        A seed gives the same symbols for the same partitions; with None a secret does, which is drawn here.
    """
    import dask.dataframe as dd
    from dask.dataframe import utils
    from dask.delayed import delayed

    if settings.get("key") is not None:
        seed: int | bytes | None = None
    elif rng is None:
        seed = secrets.token_bytes(32)
    elif isinstance(rng, np.random.Generator):
        seed = int(rng.integers(2**62))
    else:
        seed = rng
    uniform(0, rng)  # refuses what is no seed
    sent = _Sent(args, settings, seed if seed is None or isinstance(seed, bytes) else int(seed))
    meta = sent.made(frame._meta, what, rng)
    # What has no records has no categories in use: that they are not known is another thing than none.
    empty = [name for name, kind in meta.dtypes.items() if kind == "category" and not len(kind.categories)]
    forget: Any = utils.clear_known_categories
    meta = forget(meta, empty)
    carried = packed(what)
    try:
        mark = getattr(carried, "digest", None) or carried.fingerprint
    except InvalidInputError:  # a rule whose cells are somebody else's
        mark = secrets.token_hex(32)
    # A node of the graph, so that a worker gets it once and not with each partition.
    shipped = delayed(carried, name=f"release-{mark}", pure=True)
    # Dask's own number of a partition is another one where only some partitions are computed.
    from_map: Any = dd.from_map
    numbers = from_map(_number, range(frame.npartitions), meta=_number(0))
    return frame.map_partitions(
        _partition, numbers, shipped, sent, meta=meta, clear_divisions=True, align_dataframes=False
    )


def _number(number: int) -> Any:
    import pandas as pd

    return pd.Series([number], name="number")


def _partition(part: Any, numbers: Any, carried: Any, sent: _Sent) -> Any:
    return sent.release(part, opened(carried), int(numbers.iloc[0]))
