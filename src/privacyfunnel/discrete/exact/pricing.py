"""Pricing: posteriors with a positive reduced value, and proofs that there are none.

Two ways. For a binary private attribute every call is exact (pairs.py). Otherwise `look` samples all faces
and climbs from the best points, which is quick and proves nothing, and `prove` searches them by branch and
bound (faces.py). Where there are more faces than memory should hold, the small ones are sampled and only the
bound in closed form is left as a proof.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from .faces import climb, free_bound, sample_faces, search_faces
from .listing import compatible_pairs, next_faces
from .master import Duals
from .pairs import ENDS, price_pairs
from .reduction import Posterior, Reduction
from .shares import ROUND_OFF, price_shares

POINTS = 6  # at which `look` samples each face
MOST_SAMPLED = 200_000  # faces of each size, drawn where there are more
CLIMBS = 300  # from the best faces of each size
MOST_COLUMNS = 400  # added by one call
WORTHWHILE = 1e-11  # nats; smaller reduced values do not matter, unless the caller's unit is smaller still
MOST_LISTED = 5_000_000  # faces; a search of more would take longer than anyone waits
CHUNK = 512
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
        self._listed: tuple[float, list[NDArray[np.int32]], bool] = (np.nan, [], True)

    def look(self, duals: Duals, worthwhile: float = WORTHWHILE) -> Priced:
        """Find posteriors that improve the mixture by more than `worthwhile` per unit of weight; a proof
        comes with it where pricing is exact."""
        values = self._letter_values(duals)
        if self._only_letters(duals.beta):
            candidates = self._letters(values)
            return Priced(_best(candidates, worthwhile), float(values.max()), float(values.max()))
        if self.in_pairs:
            return self._pairs(duals, values, worthwhile)
        candidates = self._climb(duals, self._sample(duals))
        largest = max([value for value, _ in candidates], default=-np.inf)
        return Priced(_best(candidates, worthwhile), max(largest, float(values.max())), np.inf)

    def prove(self, duals: Duals, threshold: float, deadline: float, per_face: int, total: float) -> Priced:
        """Prove that no reduced value exceeds `threshold`, or find posteriors that do.

        Without columns, `bound` is proved: at most the threshold, or more where a limit stopped the search:
        the deadline (of time.perf_counter), nodes for one face, or nodes in total.
        """
        values = self._letter_values(duals)
        if self._only_letters(duals.beta) or self.in_pairs:
            priced = self.look(duals, min(WORTHWHILE, threshold))
            return priced if priced.bound > threshold else Priced([], priced.largest, priced.bound)
        free = free_bound(self.reduction.channel, duals.prices, duals.beta)
        levels, complete = self.faces(duals.beta)
        if free <= threshold or not complete:
            return Priced([], free, free, limited=free > threshold)
        bound, nodes, limited = float(values.max()), 0, False
        starts: list[tuple[NDArray[np.int32], FloatArray]] = []
        stop = np.zeros(1, dtype=np.int8)

        def search(chunk: NDArray[np.int32]) -> Any:
            state, found = np.zeros(len(chunk), dtype=np.int8), np.zeros(chunk.shape)
            # Whoever searches at the same time may take as much.
            left = int(min(max((total - nodes) / self.n_workers, 1), 2**62))
            channel, prices, beta = self.reduction.channel, duals.prices, duals.beta
            searched = search_faces(
                chunk, channel, prices, beta, threshold, per_face, left, stop, state, found
            )
            return chunk, state, found, *searched

        with _alarm(stop, deadline):
            for faces in levels:
                size = max(4, CHUNK >> (faces.shape[1] - 2))  # large faces take long
                for chunk, state, found, above, count in self._map(search, faces, size):
                    bound, nodes = max(bound, above), nodes + count
                    limited = limited or bool((state == 3).any())
                    starts += [(chunk[f], found[f]) for f in np.flatnonzero(state == 2)]
        if not starts:
            return Priced([], bound, min(bound, free), nodes, limited)
        candidates = self._climb(duals, starts)
        largest = max(value for value, _ in candidates)
        return Priced(_best(candidates, min(WORTHWHILE, threshold)), largest, free, nodes)

    def faces(self, beta: float) -> tuple[list[NDArray[np.int32]], bool]:
        """The faces of 2 … rank letters that can hold a maximum at this β, by size, and whether these are all
        of them."""
        if self._listed[0] != beta:
            allowed = compatible_pairs(self.reduction.channel, beta)
            level = np.arange(self.reduction.n, dtype=np.int32)[:, None]
            levels: list[NDArray[np.int32]] = []
            left = MOST_LISTED
            for _ in range(2, self.reduction.rank + 1):
                level, count = next_faces(level, allowed, left)
                left -= count
                if left < 0:
                    break
                levels.append(level)
            self._listed = (beta, levels, left >= 0)
        return self._listed[1], self._listed[2]

    @property
    def complete(self) -> bool:
        """Whether all faces were listed when this was last asked for."""
        return self._listed[2]

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

    def _sample(self, duals: Duals) -> list[tuple[NDArray[np.int32], FloatArray]]:
        starts = []
        for faces in self.faces(duals.beta)[0]:
            if not len(faces):
                continue
            if len(faces) > MOST_SAMPLED:
                faces = faces[self.rng.choice(len(faces), MOST_SAMPLED, replace=False)]
            points = self.rng.dirichlet(np.ones(faces.shape[1]), size=POINTS)

            def sample(chunk: NDArray[np.int32], points: FloatArray = points) -> Any:
                value, which = np.empty(len(chunk)), np.empty(len(chunk), dtype=np.intp)
                sample_faces(chunk, self.reduction.channel, duals.prices, duals.beta, points, value, which)
                return value, which

            sampled = list(self._map(sample, faces, 16 * CHUNK))
            value = np.concatenate([part[0] for part in sampled])
            which = np.concatenate([part[1] for part in sampled])
            most = min(CLIMBS, len(faces))
            top = np.argpartition(-value, most - 1)[:most]
            starts += [(faces[f], points[which[f]]) for f in top[np.argsort(-value[top], kind="stable")]]
        return starts

    def _climb(
        self, duals: Duals, starts: list[tuple[NDArray[np.int32], FloatArray]]
    ) -> list[tuple[float, Posterior]]:
        reached = []
        for letters, start in starts:
            q = start.copy()
            value = climb(self.reduction.channel[letters], duals.prices[letters], duals.beta, q, 200)
            there = q > 0
            reached.append((value, Posterior(letters[there].astype(np.intp), q[there] / q[there].sum())))
        return reached

    def _map(self, function: Callable[..., Any], faces: NDArray[np.int32], size: int) -> Any:
        return self.pool.map(function, [faces[i : i + size] for i in range(0, len(faces), size)])


def letter_posterior(x: int) -> Posterior:
    return Posterior(np.array([x], dtype=np.intp), np.ones(1))


def n_faces(n: int, rank: int) -> int:
    """How many faces of 2 … rank letters there are, before any is ruled out."""
    return sum(comb(n, size) for size in range(2, rank + 1))


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
