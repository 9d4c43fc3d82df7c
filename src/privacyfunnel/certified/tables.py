"""ColumnTables: for each symbol and column a distribution of values; frames of the same schema drawn from it.

**Why drawing leaks no more than the symbol.** A row is drawn from its symbol alone, column by column and
independently, never from the person's own record or cell: the row is a function of Z and of fresh noise, so
that whatever bounds I(Z;Y) bounds what the row tells about Y (data processing). No record is copied: a row
that equals somebody's is a coincidence of columns.

**What the tables tell about the people they were counted from.** Let n(z,v) be the records with value v that
symbol z stands for, each by its probability P(z|record). Only numbers of at least ten records enter:

- A value, or range of numbers, is in the schema only if ten records share it.
- In a symbol, neighbouring levels of numbers are put together until ten records are in them. What is rarer,
  and every value of a category with fewer than ten, goes to the rest of the symbol; a rest of fewer than ten
  takes the smallest other group with it.
- Inside a group levels have the proportions of all records, inside a rest those of the rests of all symbols,
  where these have ten. A symbol of fewer than ten records is all rest.
- The proportions inside groups are then raised or lowered, the same for all symbols, so that the tables of
  all symbols together are again those of all records: for levels of which groups and rests hold ten records.
  Of other levels, the difference to the symbols that tell them by themselves would tell fewer than ten.

So what a reader learns about a value is shared by ten records, extremes included. It is a threshold, as in
k-anonymity: it keeps single people's unusual values out, and is no differential privacy. A symbol's own share
of records is told as it was counted; a `CertifiedRule` tells it to ten records a cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import FloatArray, IntArray, one_generator, uniform
from ..attributes import LEAST_RECORDS
from ..channels import as_channel
from ..errors import FileFormatError, InvalidInputError
from ..frames import make_native
from ..persistence import require
from ..sparse import SparseChannel
from .numbers import NumberColumn
from .schema import Column, TableSchema

__all__ = ["ColumnTables", "TableSchema"]

Rng = int | np.random.Generator | None

# Rounds of making the tables of all symbols together those of all records; more change little.
_ROUNDS = 100
# A count of soft weights may miss ten by rounding.
_ENOUGH = LEAST_RECORDS - 1e-9
# What a label of a symbol says: columns, values of a column, and the share of records that these cover.
_TOLD_COLUMNS, _TOLD_VALUES, _TOLD_SHARE = 3, 3, 0.8


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTables:
    """P(level | symbol) for each column of a schema.

    Attributes
    ----------
    schema : TableSchema
    shares : (n_symbols,) array
        P(z).
    tables : tuple of (n_symbols, n_levels) arrays
        One a column; rows are distributions.
    """

    schema: TableSchema
    shares: FloatArray
    tables: tuple[FloatArray, ...]

    @classmethod
    def count(
        cls, schema: TableSchema, frame: Any, weights: Any, n_symbols: int | None = None
    ) -> ColumnTables:
        """The tables of these records.

        Parameters
        ----------
        schema : TableSchema
        frame : frame with the columns of the schema
        weights : (n,) ints, (n, n_symbols) array, sparse matrix or SparseChannel
            The symbol of each record, or better P(z|record): the table of a mechanism at the record's cell;
            for many records `mechanism.sparse[cells]`.
        n_symbols : int, optional
            Where `weights` are symbols, of which some may not occur.
        """
        codes = schema.to_codes(frame)
        matrix = _as_weights(weights, codes[0].size, n_symbols)
        shares = np.asarray(matrix.sum(axis=0), dtype=np.float64).ravel()
        tables = tuple(
            _merged(_counted(matrix, code, column.n_levels), column)
            for code, column in zip(codes, schema.columns, strict=True)
        )
        return cls(schema, shares / shares.sum(), tables)

    @property
    def n_symbols(self) -> int:
        return self.shares.size

    def draw(self, symbols: ArrayLike, rng: Rng = None) -> Any:
        """A frame like the schema's: a row for each symbol, each column drawn from the symbol alone.

        Parameters
        ----------
        symbols : (n,) ints
        rng : None, int or Generator
            None takes each random number from the operating system's entropy.
        """
        at = self._as_symbols(symbols, "draw")
        # An int would start the same numbers again for every column.
        generator = one_generator(rng)
        made = {}
        for column, channel in zip(self.schema.columns, self._channels, strict=True):
            codes = channel.draw(at, uniform(at.size, generator))
            inside = uniform(at.size, generator) if isinstance(column, NumberColumn) else np.zeros(0)
            made[column.name] = column.values(codes, inside)
        return self._as_frame(made)

    def typical(self, symbols: ArrayLike) -> Any:
        """A frame like the schema's: of each symbol the average number, on its grid, or the mode."""
        at = self._as_symbols(symbols, "typical")
        columns = zip(self.schema.columns, self.tables, strict=True)
        return self._as_frame({column.name: column.typical(table).take(at) for column, table in columns})

    def labels(self) -> list[str]:
        """Each symbol in words: the columns by which it differs most from all records, and their values."""
        overall = [self.shares @ table for table in self.tables]
        apart = np.array(
            [np.abs(table - all_).sum(axis=1) for table, all_ in zip(self.tables, overall, strict=True)]
        )
        words = [_in_words(*both) for both in zip(self.schema.columns, self.tables, strict=True)]
        names = self.schema.names
        found = []
        for symbol in range(self.n_symbols):
            order = np.argsort(-apart[:, symbol], kind="stable")[:_TOLD_COLUMNS]
            told = [f"{names[i]}: {words[i][symbol]}" for i in order.tolist() if apart[i, symbol] > 0.1]
            found.append("; ".join(told) or "like all records")
        return found

    def codebook(self) -> Any:
        """A frame of the symbols: number, share, and what each stands for."""
        import pyarrow as pa

        columns = {
            "symbol": pa.array(np.arange(self.n_symbols)),
            "share": pa.array(self.shares),
            "stands_for": pa.array(self.labels(), pa.large_string()),
        }
        return make_native(
            self.schema.kind, columns, {"symbol": "int64", "share": "float64", "stands_for": "str"}
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "schema": self.schema.to_dict(),
            "shares": self.shares.tolist(),
            "tables": [table.tolist() for table in self.tables],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnTables:
        """The tables of `to_dict`; FileFormatError if they are none."""
        schema = TableSchema.from_dict(require(data, "schema", dict))
        written = require(data, "tables", list)
        try:
            shares = as_channel([require(data, "shares", list)], "shares")[0]
            tables = tuple(as_channel(table, "a table") for table in written)
        except InvalidInputError as error:
            raise FileFormatError(f"the tables of the columns are damaged: {error}") from None
        wanted = [(shares.size, column.n_levels) for column in schema.columns]
        if [table.shape for table in tables] != wanted:
            raise FileFormatError("the tables of the columns do not fit the schema.")
        return cls(schema, shares, tables)

    @cached_property
    def _channels(self) -> tuple[SparseChannel, ...]:
        return tuple(SparseChannel.from_dense(table) for table in self.tables)

    def _as_frame(self, columns: Mapping[str, Any]) -> Any:
        natives = {column.name: column.native for column in self.schema.columns}
        return make_native(self.schema.kind, columns, natives)

    def _as_symbols(self, symbols: ArrayLike, where: str) -> IntArray:
        at = np.asarray(symbols)
        whole = at.dtype.kind in "iu" or at.size == 0
        if at.ndim != 1 or not whole or (at.size and not (at.min() >= 0 and at.max() < self.n_symbols)):
            raise InvalidInputError(
                f"{where}: symbols must be a column of whole numbers from 0 to {self.n_symbols - 1}."
            )
        return at.astype(np.intp)

    def __repr__(self) -> str:
        return f"ColumnTables({self.n_symbols} symbols: {', '.join(self.schema.names)})"


def _as_weights(weights: Any, n: int, n_symbols: int | None) -> Any:
    """P(z|record) as a sparse matrix (n, n_symbols)."""
    from scipy.sparse import csr_array, issparse

    if isinstance(weights, SparseChannel):
        parts = (weights.probabilities, weights.symbols, weights.indptr)
        weights = csr_array(parts, shape=weights.shape)
    given = weights if issparse(weights) else np.asarray(weights)
    if given.ndim == 1 and given.dtype.kind in "iu" and given.shape == (n,) and n and given.min() >= 0:
        size = int(given.max()) + 1 if n_symbols is None else n_symbols
        if given.max() < size:
            return csr_array((np.ones(n), given, np.arange(n + 1)), shape=(n, size))
    elif given.ndim == 2 and given.shape[0] == n and n and given.shape[1] == (n_symbols or given.shape[1]):
        matrix = csr_array(given, dtype=np.float64)
        sums = np.asarray(matrix.sum(axis=1)).ravel()
        if matrix.data.min(initial=0.0) >= 0 and np.allclose(sums, 1.0, atol=1e-9, rtol=0.0):
            return matrix
    raise InvalidInputError(
        f"ColumnTables: weights must be a symbol (0, 1, …) or a row of probabilities for each of the {n} "
        f"records; their shape is {given.shape}.",
        names=("weights",),
    )


def _counted(matrix: Any, codes: IntArray, n_levels: int) -> FloatArray:
    """n(z, level), records counted by their weights; those without a level are left out."""
    from scipy.sparse import csr_array

    known = codes >= 0
    starts = np.concatenate([[0], np.cumsum(known)])
    levels = csr_array((np.ones(int(starts[-1])), codes[known], starts), shape=(codes.size, n_levels))
    table: FloatArray = (matrix.T @ levels).toarray()
    return table


def _merged(counts: FloatArray, column: Column) -> FloatArray:
    """P(level|z) of which only numbers of at least ten records are told; see the top of the file."""
    n_ordered = column.n_values if isinstance(column, NumberColumn) else 0
    # These may be fewer records than the schema was read from.
    overall = counts.sum(axis=0)
    overall = np.where(overall >= _ENOUGH, overall, 0.0)
    if not overall.any():
        return np.full(counts.shape, 1.0 / counts.shape[1])
    groups = _grouped(counts, n_ordered)
    n_z, n_levels = counts.shape
    keys = groups + (np.arange(n_z) * (2 * n_levels + 1))[:, None]

    def in_groups(table: FloatArray) -> FloatArray:
        """The sum over the group of each entry."""
        sums = np.bincount(keys.ravel(), weights=table.ravel(), minlength=n_z * (2 * n_levels + 1))
        return np.asarray(sums[keys])

    # What the rests of all symbols have of each level is told where it is ten records.
    is_rest = groups == 2 * n_levels
    pooled = np.where(is_rest, counts, 0.0).sum(axis=0)
    inside = np.where(is_rest, np.where(pooled >= _ENOUGH, pooled, 0.0), overall)
    for fallback in (overall, np.ones(n_levels)):
        inside = np.where(in_groups(inside) > 0, inside, fallback)
    inner = np.where((groups >= n_levels) & ~is_rest, 0.0, counts).sum(axis=0)
    masses, raised = in_groups(counts), np.ones(n_levels)
    for _ in range(_ROUNDS):
        table = masses * inside * raised / in_groups(inside * raised)
        made = table.sum(axis=0)
        fit = (made > 0) & (overall > 0) & (inner >= _ENOUGH)
        raised = raised * np.divide(overall, made, out=np.ones_like(made), where=fit)
    totals = table.sum(axis=1, keepdims=True)
    return np.where(totals > 0, table / np.where(totals > 0, totals, 1.0), overall / overall.sum())


def _grouped(counts: FloatArray, n_ordered: int) -> IntArray:
    """The group of each level in each symbol; the group 2 · n_levels is the rest.

    The first `n_ordered` levels are in order, and rare ones are put together with their next rare neighbours.
    """
    n_z, n_levels = counts.shape
    rest = 2 * n_levels
    own = counts >= _ENOUGH
    groups = np.where(own, n_levels + np.arange(n_levels), rest)
    number, mass = np.zeros(n_z, dtype=np.intp), np.zeros(n_z)
    runs = np.full((n_z, n_levels), rest)
    for level in range(n_ordered):
        rare = ~own[:, level]
        runs[rare, level] = number[rare]
        mass[rare] += counts[rare, level]
        full = mass >= _ENOUGH
        number[full] += 1
        mass[full] = 0.0
    # The last run, which did not come to ten, stays in the rest.
    groups = np.where(runs < number[:, None], runs, groups)
    left = np.where(groups == rest, counts, 0.0).sum(axis=1)
    few = (left > 0) & (left < _ENOUGH) & (groups != rest).any(axis=1)
    for symbol in np.flatnonzero(few).tolist():
        row = groups[symbol]
        sums = np.bincount(row, weights=counts[symbol], minlength=rest + 1)[:rest]
        smallest = int(np.argmin(np.where(sums > 0, sums, np.inf)))
        row[row == smallest] = rest
    return groups.astype(np.intp)


def _in_words(column: Column, table: FloatArray) -> list[str]:
    """Each distribution in words: the middle of numbers as a range, or the commonest values."""
    labels = np.array(column.labels(), dtype=object)
    if isinstance(column, NumberColumn) and column.n_values > 2:
        n = column.n_values
        sums = np.cumsum(table[:, :n], axis=1)
        totals = np.where(sums[:, -1:] > 0, sums[:, -1:], 1.0)
        side = (1 - _TOLD_SHARE) / 2
        low = np.minimum((sums / totals <= side).sum(axis=1), n - 1)
        high = np.minimum((sums / totals < 1 - side - 1e-12).sum(axis=1), n - 1)
        return [_range(column, *ends) for ends in zip(low.tolist(), high.tolist(), strict=True)]
    order = np.argsort(-table, axis=1, kind="stable")
    found = []
    for row, places in zip(table, order, strict=True):
        n_told = min(int(np.searchsorted(np.cumsum(row[places]), _TOLD_SHARE)) + 1, _TOLD_VALUES)
        told = [str(label) for label, i in zip(labels[places[:n_told]], places, strict=False) if row[i] > 0]
        found.append(" / ".join(told))
    return found


def _range(column: NumberColumn, low: int, high: int) -> str:
    first, last = column.bounds(low, high)
    return first if first == last else f"{first}–{last}"
