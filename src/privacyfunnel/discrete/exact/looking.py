"""Posteriors with a positive reduced value, found quickly and without a proof.

They are begun at chains of letters from many pairs, and at known posteriors of which one letter is swapped;
then raised by steps, and given further letters (climbing.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from .climbing import begin, grow, sample_chains, swap_letters
from .master import Duals
from .reduction import Posterior, Reduction

MOST_SAMPLED = 1000  # pairs that a look begins at, drawn where there are more
POINTS = 6  # shares at which they are sampled, and portions of further letters
CLIMBS = 150  # begun at the best posteriors of each size; so many in all are gone on with:
GROWN = 150
CHUNK = 256  # climbs that a worker takes at a time


class Starts(NamedTuple):
    """Posteriors by row: letters (count, width), −1 where there are no more, and their shares."""

    letters: NDArray[np.int32]
    shares: FloatArray


def stacked(parts: Sequence[Starts], width: int) -> Starts:
    """One below the other, at least so wide."""
    count, width = (
        sum(len(part.letters) for part in parts),
        max([width, *(p.letters.shape[1] for p in parts)]),
    )
    all_of = Starts(np.full((count, width), -1, dtype=np.int32), np.zeros((count, width)))
    row = 0
    for part in parts:
        rows, columns = slice(row, row + len(part.letters)), slice(part.letters.shape[1])
        all_of.letters[rows, columns], all_of.shares[rows, columns] = part
        row += len(part.letters)
    return all_of


def as_starts(posteriors: Sequence[tuple[NDArray[np.integer], FloatArray]]) -> Starts:
    """Letters and shares, where these are positive."""
    width = max((len(letters) for letters, _ in posteriors), default=1)
    starts = Starts(np.full((len(posteriors), width), -1, dtype=np.int32), np.zeros((len(posteriors), width)))
    for row, (letters, shares) in enumerate(posteriors):
        there = shares > 0.0
        count = int(there.sum())
        starts.letters[row, :count] = letters[there]
        starts.shares[row, :count] = shares[there] / shares.sum()
    return starts


class Looker:
    """Looks for posteriors of one reduced problem."""

    def __init__(self, reduction: Reduction, pool: ThreadPoolExecutor, seed: np.random.SeedSequence) -> None:
        self.reduction, self.pool = reduction, pool
        self.rng = np.random.default_rng(seed)
        # Sums of these tell sets of letters apart.
        self.marks = np.random.default_rng(0).integers(0, 2**63, reduction.n, dtype=np.uint64)

    def look(
        self, duals: Duals, possible: NDArray[np.bool_], known: Sequence[Posterior], effort: int = 1
    ) -> tuple[FloatArray, Starts]:
        """Reduced values and posteriors that were reached: from chains of letters that are `possible` by two,
        from `known` posteriors and their neighbours, and with more effort from the neighbours of
        what was reached, as long as that pays."""
        starts = as_starts([(one.letters, one.shares) for one in known])
        parts = [*self._sample(duals, possible, effort), *self._swapped(duals, starts), starts]
        value, reached = self.grown(duals, parts, effort)
        for _ in range(effort - 1):
            best = float(value.max(initial=-np.inf))
            more = self.grown(duals, self._swapped(duals, reached), effort)
            if not more[0].max(initial=-np.inf) > best:
                break
            value, reached = more
        return value, reached

    def _in_chunks(self, count: int, one: Callable[[slice], None]) -> None:
        list(self.pool.map(lambda first: one(slice(first, first + CHUNK)), range(0, count, CHUNK)))

    def _swapped(self, duals: Duals, known: Starts) -> list[Starts]:
        """The known posteriors with each letter in turn swapped for the best other one."""
        rows, width = known.letters.shape
        if not rows:
            return []
        letters = np.full((rows, width), -1, dtype=np.int32)
        r = self.reduction

        def one(part: slice) -> None:
            swap_letters(known.letters[part], known.shares[part], r.channel, duals.prices, letters[part])

        self._in_chunks(rows, one)
        found = []
        for k in range(width):
            there = letters[:, k] >= 0
            swapped = known.letters[there]
            swapped[:, k] = letters[there, k]
            found.append(Starts(swapped, known.shares[there]))
        return found

    def _sample(self, duals: Duals, possible: NDArray[np.bool_], effort: int) -> list[Starts]:
        """The best posteriors of each size that chains of letters from each pair come across."""
        r = self.reduction
        pairs = np.argwhere(np.triu(possible, 1)).astype(np.int32)
        if not len(pairs):
            return []
        if len(pairs) > effort * MOST_SAMPLED:
            pairs = pairs[self.rng.choice(len(pairs), effort * MOST_SAMPLED, replace=False)]
        shape = len(pairs), r.rank
        letters, portion, value = np.zeros(shape, dtype=np.int32), np.zeros(shape), np.zeros(shape)
        shares, portions = self.rng.random(POINTS), 0.05 + self.rng.random(POINTS) * 0.4

        def one(part: slice) -> None:
            to = letters[part], portion[part], value[part]
            sample_chains(pairs[part], possible, r.channel, duals.prices, duals.beta, shares, portions, *to)

        self._in_chunks(len(pairs), one)
        found = []
        for size in range(2, r.rank + 1):
            falling = np.argsort(-value[:, size - 1], kind="stable")
            falling = falling[np.isfinite(value[falling, size - 1])]
            first = [np.unique(letters[falling, k], return_index=True)[1] for k in range(size)]
            chosen = np.unique(np.concatenate([np.arange(min(effort * CLIMBS, falling.size)), *first]))
            rows = falling[chosen]
            sets = self.marks[letters[rows, :size]].sum(axis=1)
            rows = rows[np.sort(np.unique(sets, return_index=True)[1])]
            a = portion[rows, :size]
            kept = np.ones_like(a)
            kept[:, :-1] = np.cumprod(1.0 - a[:, :0:-1], axis=1)[:, ::-1]
            found.append(Starts(letters[rows, :size], a * kept))
        return found

    def grown(self, duals: Duals, parts: Sequence[Starts], effort: int = 1) -> tuple[FloatArray, Starts]:
        """What climbing, and adding letters, reaches from these posteriors."""
        r = self.reduction
        letters, shares = stacked(parts, r.rank + 1)
        value = np.empty(len(letters))

        def try_out(part: slice) -> None:
            begin(letters[part], shares[part], r.channel, duals.prices, duals.beta, value[part])

        self._in_chunks(value.size, try_out)
        top = np.argsort(-value, kind="stable")[: effort * GROWN]
        letters, shares, value = letters[top], shares[top], value[top]

        def one(part: slice) -> None:
            grow(letters[part], shares[part], r.channel, duals.prices, duals.beta, r.rank, value[part])

        self._in_chunks(value.size, one)
        return value, Starts(letters, shares)
