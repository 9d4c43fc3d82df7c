"""Pricing: posteriors with a positive reduced value, and proofs that there are none.

Two ways. For a binary private attribute every call is exact (pairs.py). Otherwise `look` samples chains of
letters and climbs from the best ones, which is quick and proves nothing (looking.py), and `prove` searches
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
from .climbing import free_bound
from .looking import Looker, Starts, as_starts
from .master import Duals
from .nodes import Nodes, empty_nodes, joined, taken
from .pairs import ENDS, price_pairs
from .ratios import share_ratios
from .reduction import Posterior, Reduction
from .shares import ROUND_OFF, price_shares
from .supports import TINY, search

THOROUGH = 6  # times the effort of a look, before a proof
MOST_COLUMNS = 400  # added by one call
MOST_FOUND = 100  # posteriors by one chunk of a proof
WORTHWHILE = 1e-11  # nats; smaller reduced values do not matter, unless the caller's unit is smaller still
CHUNK = 256  # nodes that a worker takes at a time
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
        self.looker = Looker(reduction, self.pool, seed)
        letters = [reduction.measure(letter_posterior(x)) for x in range(reduction.n)]
        self.noise, self.loss = np.array(letters).T  # H(Y|class) and 0, for information
        # Letters that may be released as they are.
        low, high = reduction.t_limits
        self.allowed = (reduction.channel[:, -1] >= low) & (reduction.channel[:, -1] <= high)
        self.in_pairs = reduction.channel.shape[1] == 2
        self._ratios = np.nan, np.empty(0), np.empty(0), np.empty(0)

    def look(self, duals: Duals, worthwhile: float = WORTHWHILE, known: Sequence[Posterior] = ()) -> Priced:
        """Find posteriors that improve the mixture by more than `worthwhile` per unit of weight; a proof
        comes with it where pricing is exact. The search begins at `known` ones, too."""
        values = self._letter_values(duals)
        if self._only_letters(duals.beta):
            candidates = self._letters(values)
            return Priced(_best(candidates, worthwhile), float(values.max()), float(values.max()))
        if self.in_pairs:
            return self._pairs(duals, values, worthwhile)
        reached = self._look(duals, known)
        largest = max(float(values.max()), float(reached[0].max(initial=-np.inf)))
        candidates = self._letters(values) + _above(worthwhile, *reached)
        return Priced(_best(candidates, worthwhile), largest, np.inf)

    def prove(
        self,
        duals: Duals,
        threshold: float,
        deadline: float,
        total: float,
        known: Sequence[Posterior] = (),
    ) -> Priced:
        """Prove that no reduced value exceeds `threshold`, or find posteriors that do, beginning at `known`.

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
        worthwhile = min(WORTHWHILE, threshold)
        reached = self._look(duals, known, THOROUGH)
        if (largest := float(reached[0].max(initial=-np.inf))) > threshold:
            return Priced(_best(_above(worthwhile, *reached), worthwhile), largest, free)
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
                    above, count, leaves, posteriors, short = part
                    done, nodes, limited = max(done, above), nodes + count, limited or short
                    parts.append(leaves)
                    found += posteriors
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
        reached = self.looker.grown(duals, [as_starts(found)])
        columns = _best(_above(worthwhile, *reached), worthwhile)
        return Priced(columns, float(reached[0].max()), min(bound, free), nodes)

    def _look(self, duals: Duals, known: Sequence[Posterior], effort: int = 1) -> tuple[FloatArray, Starts]:
        possible = self.ratios(duals.beta)[1] > 0.0
        small = [one for one in known if one.letters.size <= 2 * self.reduction.rank]
        return self.looker.look(duals, possible | possible.T, small, effort)

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
        least, most, log_most = self.ratios(duals.beta)
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
                log_most,
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

    def ratios(self, beta: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Between which ratios the shares of two letters are in a maximiser at this β, and the larger one's
        logarithm."""
        if self._ratios[0] != beta:
            least, most = share_ratios(self.reduction.channel, beta)
            self._ratios = beta, least, most, np.log(np.maximum(most, TINY))
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


def _above(worthwhile: float, value: FloatArray, reached: Starts) -> list[tuple[float, Posterior]]:
    """Those of more than this value."""
    found = []
    for row in np.flatnonzero(value > worthwhile):
        there = reached.letters[row] >= 0
        q = reached.shares[row, there]
        letters = reached.letters[row, there].astype(np.intp)
        found.append((float(value[row]), Posterior(letters, q / q.sum())))
    return found


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
