"""Records that look like several of one person each; certificates allow for that only with groups=."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..alphabet import factorise
from ..arrays import IntArray
from ..errors import RepeatedRecordsWarning
from ..frames import arrow_column, read_frame
from .readers import is_frame

#: Share of the records with an identical twin from which on there is something to say.
MANY = 0.5
#: The same where columns are shuffled: of more than this share, chance explains the twins.
BY_CHANCE = 0.1
#: Fewer different records than this are kinds, not people.
LEAST_DIFFERENT = 100


def warn_of_twins(X: Any, private: Sequence[IntArray]) -> None:
    """Warn, to the caller of fit, where most records have an identical twin and chance is no reason."""
    own = _columns(X)
    if own is None:
        return
    share = share_of_twins([*own, *(partial(np.asarray, values) for values in private)])
    if share > 0:
        warnings.warn(
            RepeatedRecordsWarning(
                f"fit: {share:.0%} of the records have an identical twin, as where people have several; the "
                "certificate holds for one record a person, so pass groups= with a column that tells who a "
                "record belongs to, or keep one row of each person.".replace("%", " %", 1),
                names=("groups",),
            ),
            stacklevel=4,
        )


def share_of_twins(columns: Sequence[Callable[[], IntArray]]) -> float:
    """The share of rows that are there twice or more; 0 where it is small, or no sign of repeated people.

    A table of a few coarse columns repeats by itself: it does so as well when each column is shuffled. Where
    some values are very common, as in sparse records, many different rows are still there once alone.
    Each column is a function that numbers its values: of wide records few are needed.
    """
    rng = np.random.default_rng(0)
    # In any order the rows come out the same; in a random one, wide records are told apart soon.
    columns = [columns[i] for i in rng.permutation(len(columns))]
    times = _times(columns, MANY)
    if times is None or len(times) < LEAST_DIFFERENT or np.mean(times == 1) > MANY:
        return 0.0
    if _times(columns, BY_CHANCE, rng) is not None:
        return 0.0
    return float(times[times > 1].sum() / times.sum())


def _times(
    columns: Sequence[Callable[[], IntArray]], least: float, rng: np.random.Generator | None = None
) -> IntArray | None:
    """How often each different row is there; None where at most this share of them has a twin.

    With `rng` columns are shuffled, each by itself.
    """
    rows = np.zeros(1, dtype=np.int64)
    times: IntArray = np.zeros(0, dtype=np.intp)
    for numbered in columns:
        column = numbered() if rng is None else rng.permutation(numbered())
        both = rows * (int(column.max()) + 1) + column
        _, rows, times = np.unique(both, return_inverse=True, return_counts=True)
        if times[times > 1].sum() <= least * len(rows):
            return None
    return times


def _columns(X: Any) -> list[Callable[[], IntArray]] | None:
    """What numbers the values of each column; None where those of one cannot be compared."""
    if not is_frame(X):
        values = np.asarray(X.detach().cpu() if hasattr(X, "detach") else X)
        flat = values.reshape(len(values), -1)
        return [partial(_numbered, flat[:, i]) for i in range(flat.shape[1])]
    frame = read_frame(X, "fit")
    columns = [arrow_column(frame[name]) for name in frame.columns]
    if any(column is None for column in columns):
        return None
    return [partial(_codes, column) for column in columns]


def _codes(column: Any) -> IntArray:
    return factorise(column)[1].astype(np.intp)


def _numbered(values: Any) -> IntArray:
    return np.unique(values, return_inverse=True)[1].astype(np.intp)
