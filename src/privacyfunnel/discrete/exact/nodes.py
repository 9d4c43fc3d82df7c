"""Partial supports, the nodes of the search in `supports.py`, as rows of tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray


class Nodes(NamedTuple):
    """Partial supports, by row."""

    letters: NDArray[np.int32]  # (capacity, rank) in falling order of share
    low: FloatArray  # limits of these shares
    high: FloatArray
    centre: FloatArray  # (capacity, n_y) a good c of the node above
    upper: FloatArray  # (capacity,) proved bound on G
    size: NDArray[np.int32]  # letters chosen
    closed: NDArray[np.bool_]  # whether there are no others


@njit(nogil=True, cache=True)
def empty_nodes(capacity: int, rank: int, n_y: int) -> Nodes:
    return Nodes(
        np.zeros((capacity, rank), dtype=np.int32),
        np.zeros((capacity, rank)),
        np.zeros((capacity, rank)),
        np.zeros((capacity, n_y)),
        np.full(capacity, np.inf),
        np.zeros(capacity, dtype=np.int32),
        np.zeros(capacity, dtype=np.bool_),
    )


@njit(nogil=True, cache=True)
def put(
    nodes: Nodes,
    at: int,
    letters: NDArray[np.int32],
    low: FloatArray,
    high: FloatArray,
    centre: FloatArray,
    upper: float,
    size: int,
    closed: bool,
) -> None:
    """Make this the node in row `at`."""
    for j in range(letters.size):
        nodes.letters[at, j], nodes.low[at, j], nodes.high[at, j] = letters[j], low[j], high[j]
    for y in range(centre.size):
        nodes.centre[at, y] = centre[y]
    nodes.upper[at], nodes.size[at], nodes.closed[at] = upper, size, closed


def taken(nodes: Nodes, rows: Any) -> Nodes:
    """Some rows, as nodes of their own."""
    columns: list[Any] = [column[rows].copy() for column in nodes]
    return Nodes(*columns)


def joined(parts: list[Nodes]) -> Nodes:
    columns: list[Any] = [np.concatenate(same) for same in zip(*parts, strict=True)]
    return Nodes(*columns)
