"""Pricing: posteriors with a positive reduced value, and proofs that there are none.

Two ways. For a binary private attribute every call is exact (pairs.py). Otherwise `look` samples chains of
letters and climbs from the best ones, which is quick and proves nothing (climbing.py), and `prove` searches
all supports by branch and bound (supports.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from .climbing import begin, free_bound, grow, sample_chains
from .master import Duals
from .pairs import ENDS, price_pairs
from .ratios import share_ratios
from .reduction import Posterior, Reduction
from .shares import ROUND_OFF, price_shares
from .supports import Nodes, empty_nodes, joined, search, taken

MOST_SAMPLED = 2000  # pairs that a look begins at, drawn where there are more
POINTS = 6  # shares at which they are sampled, and portions of further letters
CLIMBS = 150  # begun at the best posteriors of each size; so many in all are gone on with:
GROWN = 150
THOROUGH = 6  # times the effort of a look, before a proof
MOST_COLUMNS = 400  # added by one call
MOST_FOUND = 100  # posteriors by one chunk of a proof
WORTHWHILE = 1e-11  # nats; smaller reduced values do not matter, unless the caller's unit is smaller still
CHUNK = 256  # nodes or climbs that a worker takes at a time
MOST_LEAVES = 8192  # of a chunk, and of all of them:
MOST_WAITING = 400_000
RUNG = 0.5  # of the way to the threshold that a round of a proof goes
STRIPS = 8  # of pairs, for the workers; fixed, so that their number changes nothing


@dataclass(frozen=True, eq=False)
class Priced:
    """What a call found: posteriors with positive reduced value (best first), and what it proved."""

    columns: list[Posterior]
    largest: float  # largest reduced value seen, nats
    bound: float  # proved upper bound on every reduced value; +∞ if none was proved
    nodes: int = 0
    limited: bool = False  # whether a limit kept the bound from being better


class Pricing:
    """Pricing for one reduced problem."""

    def __init__(self, reduction: Reduction, n_workers: int, seed: np.random.SeedSequence) -> None:
        self.reduction = reduction
        self.n_workers = n_workers
        self.pool = ThreadPoolExecutor(n_workers)
        self.rng = np.random.default_rng(seed)
        letters = [reduction.measure(letter_posterior(x)) for x in range(reduction.n)]
        self.noise, self.loss = np.array(letters).T  # H(Y|class) and 0, for information
        # Letters that may be released as they are.
        low, high = reduction.t_limits
        self.allowed = (reduction.channel[:, -1] >= low) & (reduction.channel[:, -1] <= high)
        self.in_pairs = reduction.channel.shape[1] == 2
        self._ratios = (np.nan, np.empty(0), np.empty(0))

    def look(self, duals: Duals, worthwhile: float = WORTHWHILE, known: Sequence[Posterior] = ()) -> Priced:
        """Find posteriors that improve the mixture by more than `worthwhile` per unit of weight; a proof
        comes with it where pricing is exact. The search begins at `known` ones, too."""
        values = self._letter_values(duals)
        if self._only_letters(duals.beta):
            candidates = self._letters(values)
            return Priced(_best(candidates, worthwhile), float(values.max()), float(values.max()))
        if self.in_pairs:
            return self._pairs(duals, values, worthwhile)
        few = 2 * self.reduction.rank
        small = [(one.letters.astype(np.int32), one.shares) for one in known if one.letters.size <= few]
        starts = self._sample(duals) + small
        candidates = self._letters(values) + self._grow(duals, starts)
        largest = max(value for value, _ in candidates)
        return Priced(_best(candidates, worthwhile), largest, np.inf)

    def prove(self, duals: Duals, threshold: float, deadline: float, total: float) -> Priced:
        """Prove that no reduced value exceeds `threshold`, or find posteriors that do.

        Without columns, `bound` is proved: at most the threshold, or more where a limit stopped the search:
        the deadline (of time.perf_counter), or nodes in total. The worst supports are looked at first, round
        by round, so that the bound falls while the search goes on.
        """
        values = self._letter_values(duals)
        if self._only_letters(duals.beta) or self.in_pairs:
            priced = self.look(duals, min(WORTHWHILE, threshold))
            return priced if priced.bound > threshold else Priced([], priced.largest, priced.bound)
        free = free_bound(self.reduction.channel, duals.prices, duals.beta)
        letters = float(values.max())
        if free <= threshold:
            return Priced([], letters, free)
        if letters > threshold:
            return Priced(_best(self._letters(values), min(WORTHWHILE, threshold)), letters, free)
        # A proof that fails is dear: first a thorough look for what would make it fail.
        candidates = self._grow(duals, self._sample(duals, THOROUGH), THOROUGH)
        largest = max([value for value, _ in candidates], default=letters)
        if largest > threshold:
            return Priced(_best(candidates, min(WORTHWHILE, threshold)), largest, free)
        done, nodes, limited = letters, 0, False
        waiting = self._first_nodes(duals.beta)
        stop = np.zeros(1, dtype=np.int8)
        found: list[tuple[NDArray[np.int32], FloatArray]] = []
        rung = np.inf
        with _alarm(stop, deadline):
            while waiting.upper.size and not found and not limited:
                order = np.argsort(-waiting.upper, kind="stable")
                waiting = taken(waiting, order)
                now = int(np.count_nonzero(waiting.upper > rung)) if rung < np.inf else waiting.upper.size
                parts = [taken(waiting, slice(now, None))]
                room = MOST_LEAVES if waiting.upper.size < MOST_WAITING else 0
                for part in self._search(waiting, now, duals, threshold, rung, room, total - nodes, stop):
                    above, count, leaves, columns, short = part
                    done, nodes, limited = max(done, above), nodes + count, limited or short
                    parts.append(leaves)
                    found += columns
                waiting = joined(parts)
                highest = float(waiting.upper.max(initial=threshold))
                rung = threshold + RUNG * (highest - threshold)
                if rung < 1.5 * threshold:
                    rung = threshold
        bound = max(done, float(waiting.upper.max(initial=-np.inf)))
        if not found:
            return Priced([], bound, min(bound, free), nodes, limited)
        # What was not refuted yet may hold others.
        for at in np.argsort(-waiting.upper, kind="stable")[:MOST_COLUMNS]:
            chosen = slice(0, waiting.size[at])
            shares = 0.5 * (waiting.low[at, chosen] + waiting.high[at, chosen])
            found.append((waiting.letters[at, chosen], shares))
        candidates = self._grow(duals, found)
        largest = max(value for value, _ in candidates)
        return Priced(_best(candidates, min(WORTHWHILE, threshold)), largest, min(bound, free), nodes)

    def _first_nodes(self, beta: float) -> Nodes:
        """One node for each letter that may be the largest of a support."""
        r = self.reduction
        letters = np.flatnonzero(self.ratios(beta)[0].min(axis=1) <= 1.0)
        nodes = empty_nodes(letters.size, r.rank, r.channel.shape[1])
        nodes.letters[:, 0], nodes.low[:, 0], nodes.high[:, 0] = letters, 1.0 / r.rank - 1e-12, 1.0
        nodes.centre[:] = r.p @ r.channel
        nodes.size[:] = 1
        return nodes

    def _search(
        self,
        roots: Nodes,
        count: int,
        duals: Duals,
        threshold: float,
        rung: float,
        room: int,
        total: float,
        stop: NDArray[np.int8],
    ) -> Iterator[tuple[float, int, Nodes, list[tuple[NDArray[np.int32], FloatArray]], bool]]:
        """Search the first `count` nodes, in chunks for the workers: bound, nodes, leaves, posteriors found,
        and whether a limit stopped it."""
        r = self.reduction
        least, most = self.ratios(duals.beta)
        left = int(min(max(total / self.n_workers, 1), 2**62))

        def one(first: int) -> Any:
            leaves = empty_nodes(room, r.rank, r.channel.shape[1])
            shares = np.zeros((MOST_FOUND, r.rank + 4))
            letters = np.full(shares.shape, -1, dtype=np.int32)
            above, nodes, n_leaves, n_found, short = search(
                roots,
                first,
                min(first + CHUNK, count),
                r.channel,
                duals.prices,
                duals.beta,
                r.rank,
                least,
                most,
                threshold,
                rung,
                left,
                stop,
                leaves,
                shares,
                letters,
            )
            columns = [(letters[k], shares[k]) for k in range(n_found)]
            return above, nodes, taken(leaves, slice(n_leaves)), columns, short

        yield from self.pool.map(one, range(0, count, CHUNK))

    def ratios(self, beta: float) -> tuple[FloatArray, FloatArray]:
        """Between which ratios the shares of two letters are in a maximiser at this β."""
        if self._ratios[0] != beta:
            self._ratios = (beta, *share_ratios(self.reduction.channel, beta))
        return self._ratios[1:]

    def _letter_values(self, duals: Duals) -> FloatArray:
        """The reduced values of single letters; −∞ of those that may not be released."""
        return np.where(self.allowed, self.noise - duals.beta * self.loss - duals.prices, -np.inf)

    def _only_letters(self, beta: float) -> bool:
        # For β ≥ 1, H(Tq) − β H(q) is convex: H(Y|z) + H(X|y,z) ≥ H(X|z). With rank 1 so is −β H(q).
        return (beta >= 1.0 and self.reduction.problem.measures.plain) or self.reduction.rank == 1

    def _letters(self, values: FloatArray) -> list[tuple[float, Posterior]]:
        return [(value, letter_posterior(x)) for x, value in enumerate(values.tolist())]

    def _pairs(self, duals: Duals, values: FloatArray, worthwhile: float) -> Priced:
        n = self.reduction.n
        rest, t = (np.ascontiguousarray(column) for column in self.reduction.channel.T)

        r, beta, prices = self.reduction, duals.beta, duals.prices

        def price(first: int) -> Any:
            best, partner, share = np.full(n, -np.inf), np.zeros(n, dtype=np.intp), np.zeros(n)
            found = best, partner, share
            if r.problem.measures.plain:
                return price_pairs(first, n, STRIPS, t, rest, prices, beta, worthwhile, *found), *found
            letters, limits = (self.noise, self.loss, prices, beta), (*r.kink, *r.t_limits)
            asked = r.pair_kind, r.leakage_kind, t, rest, r.pair_table, *letters, *limits
            return price_shares(first, STRIPS, *asked, worthwhile, worthwhile, *found), *found

        rounding = 0.0 if r.problem.measures.plain else ROUND_OFF * (np.abs(prices) + beta * self.loss)
        bound = float((values + rounding).max()) + ENDS
        candidates = self._letters(values)
        for above, best, partner, share in self.pool.map(price, range(STRIPS)):
            bound = max(bound, above)
            for i in np.flatnonzero(best > worthwhile):
                letters = np.array([i, partner[i]], dtype=np.intp)
                candidates.append((float(best[i]), Posterior(letters, np.array([1 - share[i], share[i]]))))
        largest = max(value for value, _ in candidates)
        return Priced(_best(candidates, worthwhile, most=n), largest, bound)

    def _sample(self, duals: Duals, effort: int = 1) -> list[tuple[NDArray[np.int32], FloatArray]]:
        """The best posteriors of each size that chains of letters from each pair come across."""
        r = self.reduction
        possible = self.ratios(duals.beta)[1] > 0.0
        possible |= possible.T
        pairs = np.argwhere(np.triu(possible, 1)).astype(np.int32)
        if not len(pairs):
            return []
        if len(pairs) > effort * MOST_SAMPLED:
            pairs = pairs[self.rng.choice(len(pairs), effort * MOST_SAMPLED, replace=False)]
        shape = len(pairs), r.rank
        letters, portion, value = np.zeros(shape, dtype=np.int32), np.zeros(shape), np.zeros(shape)

        shares, portions = self.rng.random(POINTS), 0.05 + self.rng.random(POINTS) * 0.4

        def one(first: int) -> None:
            part = slice(first, first + CHUNK)
            to = letters[part], portion[part], value[part]
            sample_chains(pairs[part], possible, r.channel, duals.prices, duals.beta, shares, portions, *to)

        list(self.pool.map(one, range(0, len(pairs), CHUNK)))
        starts = []
        for size in range(2, r.rank + 1):
            falling = np.argsort(-value[:, size - 1], kind="stable")
            falling = falling[np.isfinite(value[falling, size - 1])]
            first = [np.unique(letters[falling, k], return_index=True)[1] for k in range(size)]
            chosen = np.unique(np.concatenate([np.arange(min(effort * CLIMBS, falling.size)), *first]))
            seen = set()
            for f in falling[chosen]:
                key = frozenset(letters[f, :size].tolist())
                if key not in seen:
                    seen.add(key)
                    a = portion[f, :size]
                    kept = np.append(np.cumprod(1.0 - a[:0:-1])[::-1], 1.0)
                    starts.append((letters[f, :size], a * kept))
        return starts

    def _grow(
        self, duals: Duals, starts: list[tuple[NDArray[np.int32], FloatArray]], effort: int = 1
    ) -> list[tuple[float, Posterior]]:
        """What climbing, and adding letters, reaches from these posteriors."""
        r = self.reduction
        width = max(r.rank + 1, *(len(letters) for letters, _ in starts)) if starts else 1
        letters, shares = np.full((len(starts), width), -1, dtype=np.int32), np.zeros((len(starts), width))
        for row, (chosen, q) in enumerate(starts):
            there = q > 0.0
            count = int(there.sum())
            letters[row, :count], shares[row, :count] = chosen[there], q[there] / q.sum()
        value = np.empty(len(starts))

        def try_out(first: int) -> None:
            part = slice(first, first + CHUNK)
            begin(letters[part], shares[part], r.channel, duals.prices, duals.beta, value[part])

        list(self.pool.map(try_out, range(0, len(starts), CHUNK)))
        top = np.argsort(-value, kind="stable")[: effort * GROWN]
        letters, shares, value = letters[top], shares[top], value[top]

        def one(first: int) -> None:
            part = slice(first, first + CHUNK)
            grow(letters[part], shares[part], r.channel, duals.prices, duals.beta, r.rank, value[part])

        list(self.pool.map(one, range(0, len(starts), CHUNK)))
        reached = []
        for row in range(len(value)):
            there = letters[row] >= 0
            q = shares[row, there]
            reached.append((float(value[row]), Posterior(letters[row, there].astype(np.intp), q / q.sum())))
        return reached


def letter_posterior(x: int) -> Posterior:
    return Posterior(np.array([x], dtype=np.intp), np.ones(1))


@contextmanager
def _alarm(stop: NDArray[np.int8], deadline: float) -> Iterator[None]:
    """Sets stop[0] at the deadline, or when the block is left early: threads in compiled code see that."""

    def ring() -> None:
        stop[0] = 1

    left = deadline - time.perf_counter()
    timer = threading.Timer(left, ring)
    timer.daemon = True
    if left <= 0.0:
        ring()
    elif left < threading.TIMEOUT_MAX:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        ring()


def _best(
    candidates: list[tuple[float, Posterior]], worthwhile: float, most: int = MOST_COLUMNS
) -> list[Posterior]:
    """The candidates of more than this value, best first, without repetitions."""
    seen = set()
    kept: list[Posterior] = []
    for value, column in sorted(candidates, key=lambda candidate: -candidate[0]):
        order = np.argsort(column.letters)
        key = (*column.letters[order].tolist(), *np.round(column.shares[order], 4).tolist())
        if value <= worthwhile or len(kept) == most:
            break
        if key not in seen:
            seen.add(key)
            kept.append(column)
    return kept
