"""First columns for a binary private attribute: pairs of letters that together tell nothing.

Letters on either side of P(y₁) are matched along an order, so that each pair has a posterior with exactly
P(y₁) and their mixture is P(X): a perfectly private release. Without it a master that only knows letters and
the constant has nothing to compare, and its prices mean nothing for dozens of rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays import FloatArray
from ...measures import Distance
from .reduction import Posterior, Reduction, coupling

ORDERS = 3  # main directions of what the utility is measured by, in which letters are matched


def matched_posteriors(reduction: Reduction) -> list[Posterior]:
    """The pairs of a few perfectly private releases, and the same pairs where leakage or a limit bends."""
    p, t = reduction.p, reduction.channel[:, 1]
    middle = float(p @ t)
    left, right = np.flatnonzero(t < middle), np.flatnonzero(t > middle)
    if not left.size or not right.size:
        return []
    least, most = reduction.t_limits
    places = [at for at in sorted({middle, reduction.kink[0], least, most}) if least <= at <= most]
    columns = []
    for scores in _orders(reduction):
        low, high = left[np.argsort(scores[left])], right[np.argsort(scores[right])]
        lacking, spare = p[low] * (middle - t[low]), p[high] * (t[high] - middle)
        if lacking.sum() <= 0.0 or spare.sum() <= 0.0:  # lost to rounding
            continue
        for (i, j), _ in coupling([lacking / lacking.sum(), spare / spare.sum()]):
            pair = np.array([low[i], high[j]], dtype=np.intp)
            for place in places:
                share = (place - t[pair[0]]) / (t[pair[1]] - t[pair[0]])
                if 0.0 < share < 1.0:
                    columns.append(Posterior(pair, np.array([1.0 - share, share])))
    return columns


def _orders(reduction: Reduction) -> Iterator[FloatArray]:
    """Scores of the letters along the main directions of points, costs or tasks; else by their number."""
    utility = reduction.problem.measures.utility
    if utility == "information":
        yield np.arange(reduction.n, dtype=np.float64)
        return
    table = reduction.pair_table
    if isinstance(utility, Distance) and utility.kind == "points":
        table = utility.table[reduction.letters[reduction.starts]]
    weighted = np.sqrt(reduction.p)[:, None] * (table - reduction.p @ table)
    for direction in np.linalg.svd(weighted, full_matrices=False)[2][:ORDERS]:
        yield table @ direction
