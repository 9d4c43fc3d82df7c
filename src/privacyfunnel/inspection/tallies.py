"""Counts of combinations of columns, made where the records are: in memory, in an engine, in a file.

Only the counts reach memory: a lazy frame is grouped by its engine, a file is read batch by batch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..alphabet import canonical_label
from ..arrays import FloatArray
from ..counting import run_lazily
from ..errors import InvalidInputError
from ..files import CsvFile, TableFile
from ..files.typed import guessed_types, typed
from ..progress import Report

#: Values of a column that are listed; a column with more is cut into bins, or not counted.
MOST_LISTED = 100_000
#: Records of a lazy frame that are looked at before its values are listed.
PROBED = 20_000
#: Numbers of each batch of a file that its quantiles are taken from.
SAMPLED = 4_096


@dataclass(frozen=True)
class Key:
    """A column as it is counted: by its values, numbers and dates by the bins between these edges, points of
    time by bins of microseconds, texts by their first characters."""

    name: str
    edges: tuple[Any, ...] | None = None
    is_float: bool = False
    in_microseconds: bool = False
    n_first: int | None = None

    def expression(self) -> Any:
        """The value or the number of the bin, in narwhals' words; missing stays missing."""
        import narwhals as nw

        column = nw.col(self.name)
        if self.n_first is not None:
            return column.cast(nw.String).str.slice(0, self.n_first)
        if self.in_microseconds:
            column = column.dt.timestamp("us")
        if self.edges is None:
            return column
        bins = nw.sum_horizontal(*[(column > edge).cast(nw.Int32) for edge in self.edges])
        missing = column.is_null() | column.is_nan() if self.is_float else column.is_null()
        return nw.when(~missing).then(bins)


class Tallies:
    """A table whose combinations of values are counted.

    Parameters
    ----------
    parts : function
        The records, anew at each call: frames of narwhals with the same columns. One may be lazy.
    where : str
        What messages begin with.
    """

    def __init__(self, parts: Callable[[], Iterable[Any]], where: str) -> None:
        self._parts = parts
        first = next(iter(parts()), None)
        if first is None:
            raise InvalidInputError(f"{where}: there are no records; pass a table with at least one row.")
        self.schema: dict[str, Any] = dict(first.collect_schema())
        self.is_lazy = hasattr(first, "collect")

    @classmethod
    def of_frame(cls, frame: Any, where: str) -> Tallies:
        """Of a data frame that narwhals reads; one in memory is counted by pyarrow."""
        import narwhals as nw

        try:
            data = nw.from_native(frame)
            names = list(data.collect_schema())
        except nw.exceptions.DuplicateError:
            raise InvalidInputError(f"{where}: two columns have the same name; rename one of them.") from None
        except TypeError:
            raise InvalidInputError(
                f"{where}: a {type(frame).__name__} is no data frame; pass a pandas, polars, pyarrow or "
                "DuckDB table."
            ) from None
        if not all(isinstance(name, str) for name in names):
            raise InvalidInputError(
                f"{where}: the names of columns must be texts; rename those that are numbers or tuples."
            )
        if isinstance(data, nw.DataFrame):
            data = nw.from_native(_arrow(data))
        return cls(lambda: [data], where)

    def n_records(self) -> int:
        """How many there are."""
        import narwhals as nw

        return sum(
            int(run_lazily(part.select(n=nw.len()))["n"][0]) if self.is_lazy else len(part)
            for part in self._parts()
        )

    def counts(
        self, groups: Sequence[Sequence[Key]], most: int | None = None
    ) -> list[Counter[tuple[Hashable, ...]] | None]:
        """For each group of columns how many records have each combination of values, in one pass.

        None where a group has more than `most` combinations.
        """
        totals: list[Counter[tuple[Hashable, ...]] | None] = [Counter() for _ in groups]
        for part in self._parts():
            for i, (keys, total) in enumerate(zip(groups, totals, strict=True)):
                if total is None:
                    continue
                for combination, n in self._grouped(part, keys, most):
                    total[combination] += n
                if most is not None and len(total) > most:
                    totals[i] = None
        return totals

    def _grouped(
        self, part: Any, keys: Sequence[Key], most: int | None
    ) -> Iterable[tuple[tuple[Hashable, ...], int]]:
        import narwhals as nw

        names = [f"k{i}" for i in range(len(keys))]
        chosen = part.select(**{name: key.expression() for name, key in zip(names, keys, strict=True)})
        grouped = chosen.group_by(*names).agg(nw.len().alias("n"))
        if self.is_lazy:
            grouped = run_lazily(grouped if most is None else grouped.head(most + 1))
        columns = [_plain(grouped[name]) for name in names]
        return zip(zip(*columns, strict=True), map(int, grouped["n"].to_list()), strict=True)

    def values(self, names: Sequence[str]) -> dict[str, Counter[Hashable] | None]:
        """For each column how many records have each value; None where there are too many to be listed."""
        listed = [name for name in names if not (self.is_lazy and self.seldom_repeats(name))]
        found = self.counts([[Key(name)] for name in listed], MOST_LISTED)
        result: dict[str, Counter[Hashable] | None] = dict.fromkeys(names)
        for name, one in zip(listed, found, strict=True):
            result[name] = None if one is None else Counter({value: n for (value,), n in one.items()})
        return result

    def quantiles(self, names: Sequence[str], shares: FloatArray) -> dict[str, list[float]]:
        """Of the finite numbers of columns, or microseconds; of a file roughly, from some of a batch."""
        import narwhals as nw

        pooled: dict[str, list[FloatArray]] = {name: [] for name in names}
        for part in self._parts() if names else ():
            for name in names:
                column = nw.col(name)
                if self.schema[name].is_temporal():
                    column = column.dt.timestamp("us")
                finite = part.select(v=column.cast(nw.Float64)).filter(nw.col("v").is_finite())
                if self.is_lazy:
                    asked = [nw.col("v").quantile(q, "linear").alias(f"q{i}") for i, q in enumerate(shares)]
                    row = run_lazily(finite.select(*asked))
                    pooled[name] = [np.array([float(row[q][0]) for q in row.columns])]
                    continue
                values = finite["v"].to_numpy()
                pooled[name].append(values[:: max(1, len(values) // SAMPLED)])
        if self.is_lazy:
            return {name: parts[0].tolist() for name, parts in pooled.items()}
        return {name: np.quantile(np.concatenate(parts), shares).tolist() for name, parts in pooled.items()}

    def seldom_repeats(self, name: str) -> bool:
        """Whether the first records have so many different values that listing all would be vain."""
        import narwhals as nw

        first = next(iter(self._parts())).select(k=nw.col(name)).head(PROBED)
        seen = (run_lazily(first) if self.is_lazy else first)["k"]
        return len(seen) == PROBED and int(seen.n_unique()) > PROBED / 2


def _plain(column: Any) -> list[Hashable]:
    """Values that compare as people expect; None for every missing one."""
    import narwhals as nw

    values: list[Hashable] = column.to_list()
    if column.dtype.is_integer() or column.dtype in (nw.String, nw.Boolean):  # which they are already
        return values
    return [canonical_label(value) for value in values]


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _arrow(data: Any) -> Any:
    """A frame in memory as a pyarrow table; mixed objects, intervals and periods as texts."""
    import pyarrow as pa

    columns = {}
    for name in data.columns:
        try:
            column = data[name].to_arrow()
            inner = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            strange = isinstance(inner, pa.BaseExtensionType)
        except (pa.ArrowException, TypeError, ValueError):
            strange = True
        if strange:
            column = pa.array([None if _is_missing(one) else str(one) for one in data[name].to_list()])
        columns[name] = column
    return _plain_table(pa.table(columns))


def _plain_table(table: Any) -> Any:
    """A pyarrow table that can be grouped: dictionaries in common, and nothing without a type."""
    import pyarrow as pa

    for i, name in enumerate(table.schema.names):
        if pa.types.is_null(table.schema.field(i).type):
            table = table.set_column(i, name, table.column(i).cast(pa.string()))
    return table.unify_dictionaries()


def file_tallies(table: TableFile, report: Report | None = None) -> Tallies:
    """Of a CSV or Parquet file, which is read batch by batch, a few times.

    Columns of a CSV file that hold nothing but numbers, dates or times have these types, as where it is
    protected. `report` is called with what was read and what there is, at each reading anew.
    """
    import narwhals as nw
    import pyarrow as pa

    types: dict[str, Any] = {}
    if isinstance(table, CsvFile):
        for batch in table.batches(letters=table.columns, report=report):
            guessed_types(batch, table, types)
        # A batch in which all values are missing shows no type; nor does a column without any.
        types = {name: types.get(name, pa.string()) for name in table.columns}

    def parts() -> Iterable[Any]:
        for batch in table.batches(letters=table.columns, report=report):
            yield nw.from_native(_plain_table(typed(pa.Table.from_batches([batch]), table, types)))

    return Tallies(parts, table.path)
