"""Symbols, and letters, that say the same are one: smaller tables with the same information."""

from __future__ import annotations

from itertools import pairwise
from typing import overload

import numpy as np
from numpy.typing import NDArray

from .arrays import FloatArray, IntArray
from .sparse import Channel, SparseChannel

# Two symbols whose columns agree to this relative accuracy have the same posterior for every purpose:
# merging them changes a mutual information by about its square.
MERGE_TOLERANCE = 1e-12


@overload
def merge_symbols(table: FloatArray, tolerance: float = ...) -> FloatArray: ...


@overload
def merge_symbols(table: SparseChannel, tolerance: float = ...) -> SparseChannel: ...


@overload
def merge_symbols(table: Channel, tolerance: float = ...) -> Channel: ...


def merge_symbols(table: Channel, tolerance: float = MERGE_TOLERANCE) -> Channel:
    """`merged`, of an array an array."""
    if isinstance(table, SparseChannel):
        return merged(table, tolerance)
    before = SparseChannel.from_dense(table)
    after = merged(before, tolerance)
    return table if after is before else after.dense()


def merged(channel: SparseChannel, tolerance: float = MERGE_TOLERANCE) -> SparseChannel:
    """The channel without its zero columns and with proportional columns added up.

    Proportional columns have the same posterior P(X|z), so nothing is lost or gained, whatever X
    is drawn from and however often the same x is released. Zeros must agree exactly. Symbols stay in the
    order of their first column.
    """
    n_x, n_z = channel.shape
    order = np.argsort(channel.symbols, kind="stable")  # column by column, rows rising
    rows, columns = channel.rows[order], channel.symbols[order]
    shapes = channel.probabilities[order] / channel.max()[columns]
    starts = np.searchsorted(columns, np.arange(n_z + 1))
    # Columns that agree entry by entry to a relative ε agree in every positive combination too, so only
    # neighbours in the order of one such number have to be compared.
    keys = np.bincount(columns, np.sqrt(2.0 + rows) * shapes, n_z)
    possible = np.flatnonzero(np.diff(starts))
    ranked = possible[np.argsort(keys[possible], kind="stable")]
    near = 4 * tolerance + n_x * np.finfo(np.float64).eps
    breaks = np.flatnonzero(np.diff(keys[ranked]) > near * keys[ranked][1:]) + 1
    target = np.arange(n_z)
    edges = np.concatenate([[0], breaks, [ranked.size]])
    for at in np.flatnonzero(np.diff(edges) > 1).tolist():
        _join_equal(starts, rows, shapes, np.sort(ranked[edges[at] : edges[at + 1]]), target, tolerance)
    firsts, new = np.unique(target[possible], return_inverse=True)
    if firsts.size == n_z:
        return channel
    number = np.zeros(n_z, dtype=np.intp)
    number[possible] = new
    shape = n_x, int(firsts.size)
    return SparseChannel.from_entries(channel.rows, number[channel.symbols], channel.probabilities, shape)


def _join_equal(
    starts: IntArray,
    rows: IntArray,
    shapes: FloatArray,
    columns: NDArray[np.intp],
    target: NDArray[np.intp],
    tolerance: float,
) -> None:
    """Point each of `columns` at the first one with the same shape, in place."""
    parts = {c: slice(*starts[c : c + 2].tolist()) for c in columns.tolist()}
    while columns.size > 1:
        first, rest = columns[0], columns[1:]
        same = np.array([_alike(parts[first], parts[c], rows, shapes, tolerance) for c in rest.tolist()])
        target[rest[same]] = first
        columns = rest[~same]


def _alike(one: slice, other: slice, rows: IntArray, shapes: FloatArray, tolerance: float) -> bool:
    if not np.array_equal(rows[one], rows[other]):
        return False
    here, there = shapes[one], shapes[other]
    return bool(np.all(np.abs(there - here) <= tolerance * np.maximum(there, here)))


def merge_equal_rows(p_xy: FloatArray, channel: Channel) -> tuple[FloatArray, Channel]:
    """The same leakage with fewer letters: those that are released alike are as good as one."""
    if not isinstance(channel, SparseChannel):
        rows, group = np.unique(channel, axis=0, return_inverse=True)
        result = np.zeros((len(rows), p_xy.shape[1]))
        np.add.at(result, group.ravel(), p_xy)
        return result, rows
    number_of: dict[tuple[bytes, bytes], int] = {}
    bounds = channel.indptr.tolist()
    groups = np.array(
        [
            number_of.setdefault(
                (channel.symbols[a:b].tobytes(), channel.probabilities[a:b].tobytes()), len(number_of)
            )
            for a, b in pairwise(bounds)
        ]
    )
    _, firsts = np.unique(groups, return_index=True)
    sums = [np.bincount(groups, column, len(number_of)) for column in p_xy.T]
    return np.ascontiguousarray(np.array(sums).T), channel[firsts]
