"""Tables P(Z|x) by their nonzeros: rows of symbols with probabilities, for letters by the 100,000."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import FloatArray, IntArray, uniform
from .channels import SUM_TOLERANCE, as_channel, conditional
from .checks import memory_size
from .errors import InvalidInputError

# P(Z) and P(X) that are further apart than this are not of the same records.
CONTRADICTION = 1e-6
# Rows of at most this many nonzeros are added up together, entry by entry; longer ones one at a time.
_SHORT = 32
# Rows drawn at a time: small enough for the temporaries to stay in the cache.
_CHUNK = 1 << 16
# Entries that a table of what is drawn in which part of [0, 1) may have: it has to stay in the cache.
_GUIDE = 1 << 17
# Below this many entries a table is quicker to compute with as an array, and so is one of few zeros.
_SMALL, _FULL = 1 << 18, 0.2
# Entries that rows of P(Z), for letters that do not occur, may take: 80 MB.
_FILLED = 5_000_000


class SparseChannel:
    """A table (n_x, n_z) of which only the nonzeros are stored, row after row.

    Row x holds the entries `indptr[x]` to `indptr[x + 1]` of `symbols`, which rise inside it, and
    `probabilities`, none of which is 0. Arrays may be multiplied from the left: `p_x @ channel` is P(Z).
    """

    __array_ufunc__ = None  # a product with an array is ours to compute

    def __init__(self, indptr: IntArray, symbols: IntArray, probabilities: FloatArray, n_z: int) -> None:
        self.indptr, self.symbols, self.probabilities = indptr, symbols, probabilities
        self.n_z = int(n_z)
        for array in (indptr, symbols, probabilities):
            array.setflags(write=False)

    @classmethod
    def from_dense(cls, table: FloatArray) -> SparseChannel:
        """The nonzeros of an array (n_x, n_z)."""
        rows, symbols = np.nonzero(table)
        return cls(_starts(rows, table.shape[0]), symbols, table[rows, symbols], table.shape[1])

    @classmethod
    def identity(cls, n: int) -> SparseChannel:
        """Z = X."""
        return cls(np.arange(n + 1), np.arange(n), np.ones(n), n)

    @classmethod
    def from_entries(
        cls, rows: IntArray, symbols: IntArray, values: FloatArray, shape: tuple[int, int]
    ) -> SparseChannel:
        """Entries in any order; those of one place are added up, and zeros left out."""
        keys = rows.astype(np.int64) * shape[1] + symbols
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
        first = np.concatenate([[True], keys[1:] != keys[:-1]]) if keys.size else np.zeros(0, dtype=bool)
        if not first.all():
            values, keys = np.add.reduceat(values, np.flatnonzero(first)), keys[first]
        keys, values = keys[values != 0.0], values[values != 0.0]
        rows, symbols = np.divmod(keys, shape[1])
        return cls(_starts(rows, shape[0]), symbols.astype(np.intp), values, shape[1])

    @classmethod
    def checked(
        cls, indptr: ArrayLike, symbols: ArrayLike, probabilities: ArrayLike, n_z: int
    ) -> SparseChannel:
        """The channel of arrays from outside, or InvalidInputError where they are none."""
        try:
            starts, columns = (np.array(values, dtype=np.float64) for values in (indptr, symbols))
            values = np.array(probabilities, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InvalidInputError("rows, symbols and probabilities must be lists of numbers.") from None
        if not (starts.ndim == columns.ndim == values.ndim == 1 and columns.size == values.size):
            raise InvalidInputError("there must be one probability for each symbol.")
        whole = all(np.array_equal(array, np.rint(array)) for array in (starts, columns))
        if starts.size < 2 or not whole or starts[0] != 0 or starts[-1] != columns.size:
            raise InvalidInputError("the starts of the rows must be whole numbers from 0 to the entries.")
        if np.any(np.diff(starts) < 0) or not (columns.min() >= 0 and columns.max() < n_z):
            raise InvalidInputError(f"rows must follow each other and symbols be from 0 to {n_z - 1}.")
        if not (values.min() >= 0.0 and values.max() < np.inf):
            raise InvalidInputError("probabilities must be finite and not negative.")
        rows = np.repeat(np.arange(starts.size - 1), np.diff(starts).astype(np.intp))
        if np.any(np.diff(rows * float(n_z) + columns) <= 0):
            raise InvalidInputError("the symbols of a row must rise.")
        channel = cls.from_entries(rows, columns.astype(np.intp), values, (starts.size - 1, n_z))
        sums = channel.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1.0)))
        if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
            raise InvalidInputError(
                f"each row must sum to 1 (tolerance {SUM_TOLERANCE:g}); row {worst} sums to "
                f"{sums[worst]:.6g}."
            )
        return channel

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.indptr.size - 1), self.n_z

    def __len__(self) -> int:
        return self.shape[0]

    @cached_property
    def counts(self) -> IntArray:
        """How many symbols each row has."""
        return np.diff(self.indptr)

    @cached_property
    def rows(self) -> IntArray:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def thin(self) -> bool:
        """Whether computing with the nonzeros is worth it."""
        entries = self.shape[0] * self.n_z
        return entries > _SMALL and self.symbols.size < _FULL * entries

    def dense(self) -> FloatArray:
        """The whole table; InvalidInputError where memory cannot hold it."""
        require_room(*self.shape)
        table = np.zeros(self.shape)
        table[self.rows, self.symbols] = self.probabilities
        return table

    def with_values(self, values: FloatArray) -> SparseChannel:
        """Other numbers, none 0, in the same places."""
        return SparseChannel(self.indptr, self.symbols, values, self.n_z)

    def __getitem__(self, rows: Any) -> SparseChannel:
        """The table of these rows: their numbers, or which of all."""
        chosen = np.arange(len(self))[rows]
        counts = self.counts[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(starts[-1]) + np.repeat(self.indptr[chosen] - starts[:-1], counts)
        return SparseChannel(starts, self.symbols[entries], self.probabilities[entries], self.n_z)

    def __rmatmul__(self, left: FloatArray) -> FloatArray:
        if left.ndim == 1:
            return _added(self.symbols, left[self.rows] * self.probabilities, self.n_z)
        return np.array([row @ self for row in left])

    def __matmul__(self, right: FloatArray) -> FloatArray:
        if right.ndim == 1:
            return _added(self.rows, right[self.symbols] * self.probabilities, len(self))
        return np.array([self @ column for column in right.T]).T

    def __pow__(self, exponent: int) -> SparseChannel:
        values = self.probabilities**exponent
        if values.all():
            return self.with_values(values)
        return SparseChannel.from_entries(self.rows, self.symbols, values, self.shape)  # underflow

    def sum(self, axis: int) -> FloatArray:
        """Of each row (axis 1) or column (axis 0)."""
        at, size = (self.rows, len(self)) if axis else (self.symbols, self.n_z)
        return _added(at, self.probabilities, size)

    def max(self, axis: int = 0) -> FloatArray:
        """The largest entry of each column; 0 where there is none."""
        largest = np.zeros(self.n_z)
        np.maximum.at(largest, self.symbols, self.probabilities)
        return largest

    @cached_property
    def cumulative(self) -> FloatArray:
        """The distribution function of each row at its entries, exactly 1 at the last.

        Entry j is drawn for c[j−1] ≤ u < c[j], so equal neighbours mean never. Dividing by the row's own last
        sum makes that one exactly 1: rounding at the upper end cannot draw an impossible symbol, or none.
        """
        starts, counts = self.indptr[:-1], self.counts
        sums = self.probabilities.copy()
        # One after the other, as a table with its zeros is added up: to the last bit the same numbers.
        by_length = np.argsort(-counts, kind="stable")
        lengths = counts[by_length]
        for place in range(1, min(_SHORT, int(counts.max(initial=0)))):
            at = starts[by_length[: np.searchsorted(-lengths, -place, side="left")]] + place
            sums[at] += sums[at - 1]
        for row in by_length[: np.searchsorted(-lengths, -_SHORT, side="left")].tolist():
            part = slice(self.indptr[row], self.indptr[row + 1])
            sums[part] = np.cumsum(self.probabilities[part])
        last = sums[self.indptr[1:] - 1]
        return np.asarray(sums / np.repeat(last, counts))

    @cached_property
    def _guide(self) -> tuple[int, NDArray[np.int32], NDArray[np.int32]]:
        """Equal parts of [0, 1): how many; for each row and part the first entry drawn, and how many more.

        There are 2ᵏ parts, so that the part of a number is found without rounding.
        """
        n_parts = min(1024, 1 << (_GUIDE // len(self)).bit_length() - 1)
        edges = np.arange(n_parts + 1) / n_parts
        rows = np.repeat(np.arange(len(self)), n_parts)
        first = self._entries(rows, np.tile(edges[:-1], len(self)))
        last = self._entries(rows, np.tile(np.nextafter(edges[1:], 0.0), len(self)))
        return n_parts, first.astype(np.int32), (last - first).astype(np.int32)

    def draw(self, rows: IntArray, u: FloatArray) -> IntArray:
        """The symbols that the numbers `u` draw from these rows: the entry before which all are ≤ u."""
        result = np.empty(rows.size, dtype=np.intp)
        guided = self._has_guide(rows)
        for start in range(0, rows.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            entries = (self._guided if guided else self._entries)(rows[part], u[part])
            np.take(self.symbols, entries, out=result[part])
        return result

    def draw_anew(self, rows: IntArray) -> IntArray:
        """Symbols drawn from these rows by the operating system's entropy.

        The law is that of `draw` with numbers of 53 random bits. The first 16 tell most symbols; the other 37
        are drawn only where they do not.
        """
        result = np.empty(rows.size, dtype=np.intp)
        few = self._has_guide(rows) and np.count_nonzero(self._guide[2]) < self._guide[2].size // 2
        for start in range(0, rows.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            some = rows[part]
            if not few:
                result[part] = self.draw(some, uniform(some.size, None))
                continue
            heads = np.frombuffer(os.urandom(2 * some.size), dtype=np.uint16)
            np.take(self.symbols, self._guided_by(some, heads), out=result[part])
        return result

    def _has_guide(self, rows: IntArray) -> bool:
        return rows.size >= _GUIDE // 8 and len(self) <= _GUIDE // 16

    def _guided(self, rows: IntArray, u: FloatArray) -> NDArray[Any]:
        n_parts, first, more = self._guide
        at = rows * n_parts + (u * n_parts).astype(np.intp)
        entries, left = first[at], more[at]
        several = np.flatnonzero(left)
        entries[several] += _found(self.cumulative, entries[several], left[several] + 1, u[several])
        return entries

    def _guided_by(self, rows: IntArray, heads: NDArray[np.uint16]) -> NDArray[Any]:
        """As `_guided` by numbers of which the first 16 bits are drawn; the others are drawn where needed."""
        n_parts, first, more = self._guide
        at = rows * n_parts + (heads >> np.uint16(17 - n_parts.bit_length()))
        entries, left = first[at], more[at]
        several = np.flatnonzero(left)
        tails = np.frombuffer(os.urandom(8 * several.size), dtype=np.uint64) >> np.uint64(27)
        u = (heads[several].astype(np.uint64) << np.uint64(37) | tails).astype(np.float64) * 2.0**-53
        entries[several] += _found(self.cumulative, entries[several], left[several] + 1, u)
        return entries

    def _entries(self, rows: IntArray, u: FloatArray) -> IntArray:
        entries = self.indptr[rows]
        several = np.flatnonzero(self.counts[rows] > 1)
        counts = self.counts[rows[several]]
        entries[several] += _found(self.cumulative, entries[several], counts, u[several])
        return entries


def as_sparse(table: ArrayLike | SparseChannel) -> SparseChannel:
    """The nonzeros of a table P(Z|x), checked if it is an array."""
    if isinstance(table, SparseChannel):  # made by this library, or checked by it
        return table
    return SparseChannel.from_dense(as_channel(table, "TableMechanism: p_z_given_x"))


def require_same_records(p_x: FloatArray, table: SparseChannel, p_z: FloatArray) -> None:
    """InvalidInputError where P(Z) does not follow from P(X) and the table."""
    off = float(np.abs(p_x @ table - p_z).max())
    if off > CONTRADICTION:
        raise InvalidInputError(
            f"TableMechanism: the marginal P(Z) contradicts p_x and the table by {off:.2g}; leave one of "
            "them out."
        )


def _found(cdf: FloatArray, base: NDArray[Any], counts: NDArray[Any], u: FloatArray) -> NDArray[Any]:
    """How many of so many entries from `base` on are ≤ u, where the last is not: bisection of all at once."""
    found = np.zeros_like(base)
    step = 1 << (int(counts.max(initial=1)) - 1).bit_length() >> 1
    while step:
        probe = found + step
        # A probe cut off at the last entry never advances.
        ahead = cdf[base + np.minimum(probe, counts) - 1] <= u
        found = np.where(ahead, probe, found)
        step >>= 1
    return found


def _added(at: IntArray, values: FloatArray, size: int) -> FloatArray:
    """The sum of the values of each place."""
    return np.bincount(at, values, size).astype(np.float64, copy=False)


def _starts(rows: IntArray, n_x: int) -> IntArray:
    """Where each row begins, of entries sorted by row."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_x))]).astype(np.intp)


def require_room(n_x: int, n_z: int) -> None:
    """InvalidInputError where memory cannot hold a table (n_x, n_z) of all entries."""
    needed, there = 8 * n_x * n_z, memory_size()
    if needed > there // 2:
        raise InvalidInputError(
            f"p_z_given_x: the whole table of {n_x:,} letters and {n_z:,} symbols needs "
            f"{needed / 2**30:,.1f} GiB, and this computer has {there / 2**30:,.1f}; release, save and "
            "measure work without it, and mechanism.sparse has its nonzeros."
        )


Channel = FloatArray | SparseChannel


def weighted(channel: Channel, p_x: FloatArray) -> Channel:
    """P(x, z): the rows of the channel times p_x."""
    if isinstance(channel, SparseChannel):
        rows = channel.rows
        return SparseChannel.from_entries(
            rows, channel.symbols, p_x[rows] * channel.probabilities, channel.shape
        )
    return p_x[:, None] * channel


def with_rows_to_one(channel: SparseChannel) -> SparseChannel:
    """A product of valid channels with its row sums kept inside the tolerance.

    Sums that are each off by up to the tolerance multiply up to more than it. Rows that are good
    to rounding stay as they are, to the last bit.
    """
    sums = channel.sum(axis=1)
    if np.max(np.abs(sums - 1.0)) <= 1e-12:
        return channel
    return channel.with_values(channel.probabilities / sums[channel.rows])


def posterior_of(p_x: FloatArray, table: SparseChannel) -> SparseChannel:
    """P(X|z) as rows (n_z, n_x); of a symbol that the letters of `p_x` never give, by P(z|x) alone."""
    n_x, n_z = table.shape
    never = (p_x @ table == 0.0)[table.symbols]
    weights = np.where(never, 1.0, p_x[table.rows]) * table.probabilities
    # A symbol that is no letter's at all has no row; it is never released either.
    idle = np.flatnonzero(np.bincount(table.symbols, minlength=n_z) == 0)
    symbols, letters = np.concatenate([table.symbols, idle]), np.concatenate([table.rows, 0 * idle])
    weights = np.concatenate([weights, np.ones(idle.size)])
    totals = np.bincount(symbols, weights=weights, minlength=n_z)
    return SparseChannel.from_entries(symbols, letters, weights / totals[symbols], (n_z, n_x))


def told_by(p_xy: FloatArray, table: SparseChannel) -> FloatArray:
    """P(Y|z) as rows (n_z, n_y)."""
    # Scaled first, symbol by symbol, so that products of small probabilities do not underflow.
    scaled = table.with_values(table.probabilities / table.max()[table.symbols])
    return conditional(np.ascontiguousarray((p_xy.T @ scaled).T))


def product_of(first: SparseChannel, second: SparseChannel) -> SparseChannel:
    """The channel of two, one after the other."""
    from scipy.sparse import csr_array

    one, two = (
        csr_array((part.probabilities, part.symbols, part.indptr), shape=part.shape)
        for part in (first, second)
    )
    both = (one @ two).tocoo()
    return SparseChannel.from_entries(both.row, both.col, both.data, both.shape)


def repeated(channel: SparseChannel, k: int) -> SparseChannel:
    """The channel (n_x, n_z**k) of k independent uses of a channel, the last use fastest."""
    rows, symbols, values = channel.rows, channel.symbols, channel.probabilities
    for _ in range(k - 1):
        counts = channel.counts[rows]
        ends = np.cumsum(counts)
        entries = np.arange(ends[-1]) + np.repeat(channel.indptr[rows] - (ends - counts), counts)
        symbols = np.repeat(symbols, counts) * channel.n_z + channel.symbols[entries]
        values = np.repeat(values, counts) * channel.probabilities[entries]
        rows = np.repeat(rows, counts)
    return SparseChannel.from_entries(rows, symbols, values, (len(channel), channel.n_z**k))


def beside(channels: list[SparseChannel]) -> SparseChannel:
    """The table of several with as many rows, side by side: each has symbols of its own."""
    offsets = np.concatenate([[0], np.cumsum([one.n_z for one in channels])])
    return SparseChannel.from_entries(
        np.concatenate([one.rows for one in channels]),
        np.concatenate([one.symbols + offset for one, offset in zip(channels, offsets, strict=False)]),
        np.concatenate([one.probabilities for one in channels]),
        (len(channels[0]), int(offsets[-1])),
    )


def below(channel: SparseChannel, row: FloatArray) -> SparseChannel:
    """The table with one more row."""
    there = np.flatnonzero(row)
    indptr = np.concatenate([channel.indptr, [channel.indptr[-1] + there.size]])
    symbols, values = (
        np.concatenate([channel.symbols, there]),
        np.concatenate([channel.probabilities, row[there]]),
    )
    return SparseChannel(indptr, symbols, values, channel.n_z)


def with_other_rows(channel: SparseChannel, rows: IntArray, p_rows: FloatArray, n_x: int) -> SparseChannel:
    """The table of n_x rows of which `rows`, of probabilities `p_rows`, are those of the channel.

    The others, for letters that do not occur, are P(Z), which tells nothing about them; where that would be
    more than `_FILLED` entries, the row of the most probable letter.
    """
    if rows.size == n_x and np.array_equal(rows, np.arange(n_x)):
        return channel
    p_z = p_rows @ channel
    whole = below(channel, p_z / p_z.sum())
    missing = n_x - rows.size
    other = len(channel) if missing * channel.n_z <= _FILLED else int(np.argmax(p_rows))
    place = np.full(n_x, other)
    place[rows] = np.arange(rows.size)
    return whole[place]
