"""Does the order of the records tell the private attribute? Neighbours that agree more often than chance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .alphabet import canonical_label, factorise
from .errors import PrivacyFunnelWarning

#: Standard deviations above chance that are no accident: once in 3.5 million random orders.
LEAST_DEVIATIONS = 5.0
#: Share of the way from chance to full agreement that counts as far more than chance.
LEAST_SHARE = 0.05


class NeighbourCounter:
    """Counts how often consecutive records agree, over any number of batches in order."""

    def __init__(self) -> None:
        self.agreeing = 0
        self._last: tuple[Any, ...] | None = None

    def update(self, values: Sequence[Any]) -> None:
        """Count a batch, given as a list of labels."""
        labels = [canonical_label(value) for value in values]
        if labels:
            self._join(
                *(label if isinstance(label, tuple) else (label,) for label in (labels[0], labels[-1]))
            )
            self.agreeing += sum(a == b for a, b in pairwise(labels))

    def update_columns(self, columns: Sequence[Any]) -> None:
        """Count a batch, given as pyarrow columns that must all agree."""
        if not len(columns[0]):
            return
        self._join(*(tuple(canonical_label(column[at].as_py()) for column in columns) for at in (0, -1)))
        same = np.ones(len(columns[0]) - 1, dtype=bool)
        for column in columns:
            codes = factorise(column)[1]
            same &= codes[1:] == codes[:-1]
        self.agreeing += int(same.sum())

    def _join(self, first: tuple[Any, ...], last: tuple[Any, ...]) -> None:
        """Compare the first record of a batch with the last of the one before."""
        self.agreeing += first == self._last
        self._last = last


def agreement_by_chance(counts: ArrayLike) -> tuple[float, float]:
    """Mean and standard deviation of the number of agreeing neighbours in a random order.

    Parameters
    ----------
    counts : records of each class

    Notes
    -----
    The number of runs is the number of records minus that of agreeing neighbours, and its moments over all
    orders are known (Wald and Wolfowitz for two classes, Barton and David for more).
    """
    sizes = np.asarray(counts, dtype=np.float64)
    n, squares, cubes = float(sizes.sum()), float((sizes**2).sum()), float((sizes**3).sum())
    if n < 2:
        return 0.0, 0.0
    variance = (squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3) / (n**2 * (n - 1))
    return (squares - n) / n, math.sqrt(max(variance, 0.0))


def warn_of_order(agreeing: int, counts: ArrayLike, name: str) -> None:
    """Warn where neighbours agree far more often than in a random order, with the remedy."""
    sizes = np.asarray(counts, dtype=np.float64)
    pairs = float(sizes.sum()) - 1
    expected, deviation = agreement_by_chance(sizes)
    surplus = agreeing - expected
    if surplus <= LEAST_DEVIATIONS * deviation or surplus < LEAST_SHARE * (pairs - expected) or surplus < 1:
        return
    warnings.warn(
        PrivacyFunnelWarning(
            f"neighbours among the records agree in {name} {100 * agreeing / pairs:.1f} % of the time, "
            f"{100 * expected / pairs:.1f} % by chance: their order tells it, and a release in the same "
            "order does too; release them with shuffle=True.",
            names=("shuffle",),
        ),
        stacklevel=2,
    )
