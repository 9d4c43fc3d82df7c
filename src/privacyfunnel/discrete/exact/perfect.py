"""Perfect privacy: the most utility at zero leakage.

Zero leakage means that every posterior satisfies Tq = P(Y). Those q form a polytope, utility is convex on it,
so its vertices suffice: posteriors on linearly independent letters, at most rank(T) of them. They are all
listed once, and the best mixture of them is one linear programme. Its duals prove it: u ≤ H(X) + λ·p + M with
M ≥ −H(q) − λ·q at every vertex. For other utilities their loss stands in the place of H.

Rows of T that are dependent but for `DEPENDENT` count as dependent. That only widens the polytope, so the
bound holds, and what it admits leaks about the square of that: nothing that arithmetic can see. A vertex is
known to about 1e-16 over the smallest singular value of its letters, which the bound gives away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...errors import InvalidInputError
from ..linear import least_mixture
from .master import ROUNDING
from .pricing import n_faces
from .reduction import Posterior, Reduction

MAX_SUBSETS = 5_000_000
BATCH = 100_000
DEPENDENT = 1e-9  # singular value, relative to the largest, of T with columns scaled by 1/√P(y)
ACCURACY = 4e-16  # relative error of T


@dataclass(frozen=True, eq=False)
class Vertex:
    """A posterior that tells nothing about Y, and how far it can be from the exact one, Σ |q − q'|."""

    posterior: Posterior
    error: float


def perfect_release(reduction: Reduction) -> tuple[FloatArray, float]:
    """The channel (n_x, n_z) on the problem's letters, and an upper bound on the utility at leakage 0, in
    inner units."""
    return proved_release(reduction)[:2]


def proved_release(reduction: Reduction) -> tuple[FloatArray, float, FloatArray | None]:
    """The same, and the prices λ of the classes that prove the bound, if it took any."""
    # P(X) itself is one of them, and is there even when all others are lost to rounding.
    constant = Vertex(Posterior(np.arange(reduction.n), reduction.p), 0.0)
    vertices = [*private_vertices(reduction), constant]
    spread = np.array([reduction.loss_of(vertex.posterior) for vertex in vertices])
    columns = [(vertex.posterior.letters, vertex.posterior.shares) for vertex in vertices]
    result = least_mixture(spread, columns, reduction.p, reduction.p)
    if result is None:
        # The constant release is one of the columns, so only rounding can make this happen.
        return np.ones((reduction.problem.n_x, 1)), _given_away(reduction, reduction.loss, 0.0), None
    weights, prices = result[0], -result[1]
    errors = np.array([vertex.error for vertex in vertices])
    # |H(q) − H(q')| ≤ ε log(n/ε) + ε for an error ε in all.
    log_errors = np.log(np.maximum(errors, 1e-300))
    # A variance moves by at most ε times the largest squared distance, a cost by ε times the largest.
    sizes = [letters.size for letters, _ in columns]
    n, steepest = max(*sizes, reduction.pair_table.shape[1]), float(reduction.pair_table.max())
    uncertain = errors * (np.abs(prices).max() + np.log(n) + 1.0 - log_errors + steepest)
    paid = np.array([shares @ prices[letters] for letters, shares in columns])
    largest = float((-spread - paid + uncertain).max())
    most = reduction.loss + float(prices @ reduction.p) + largest
    used = np.flatnonzero(weights > 1e-13)
    channel = reduction.expand([vertices[j].posterior for j in used], weights[used])
    most = _given_away(reduction, most, float(np.abs(prices) @ reduction.p) + abs(largest))
    return channel, most, prices


def _given_away(reduction: Reduction, most: float, terms: float) -> float:
    """An upper bound on utility, with what rounding and the reduction may have hidden added."""
    most += ROUNDING * (reduction.loss + terms + 1.0)
    return reduction.mass * max(most, 0.0) + reduction.slack


def private_vertices(reduction: Reduction) -> list[Vertex]:
    """The vertices of {q ≥ 0, Tq = P(Y)}. Shares that may be 0 or positive are given the benefit of the
    doubt."""
    n = reduction.n
    p_y = reduction.p @ reduction.channel
    scaled = reduction.channel / np.sqrt(np.where(p_y > 0.0, p_y, 1.0))
    singular, directions = np.linalg.svd(scaled, full_matrices=False)[1:]
    rank = int((singular > DEPENDENT * singular[0]).sum())
    count = n_faces(n, rank) - n_faces(n, rank - 1) if rank > 1 else n
    if count > MAX_SUBSETS:
        raise InvalidInputError(
            f"perfect_privacy: {n} distinct letters of X and rank {rank} of P(Y|X) give {count:,} sets "
            f"of letters to look at (limit {MAX_SUBSETS:,}). Merge letters of X or Y first."
        )
    # In the row space of T a set of `rank` independent letters is a square system.
    letters_in_basis = scaled @ directions[:rank].T
    wanted = reduction.p @ letters_in_basis
    vertices: dict[tuple[int, ...], Vertex] = {}
    for chosen in _subsets(n, rank):
        systems = np.swapaxes(letters_in_basis[chosen], 1, 2)
        sizes = np.linalg.svd(systems, compute_uv=False)
        regular = sizes[:, -1] > 0.01 * DEPENDENT * sizes[:, 0]
        chosen, systems = chosen[regular], systems[regular]
        if not len(chosen):
            continue
        error = ACCURACY * rank * (singular[0] / sizes[regular, -1])
        shares = np.linalg.solve(systems, np.broadcast_to(wanted[:, None], (len(chosen), rank, 1)))[:, :, 0]
        feasible = np.all(shares >= -error[:, None], axis=1)
        for letters, q, off in zip(chosen[feasible], shares[feasible], error[feasible], strict=True):
            off = max(off, 1e-14)
            there = q > off
            if not there.any():
                continue
            posterior = Posterior(letters[there], q[there] / q[there].sum())
            key = (*letters[there].tolist(),)
            error_in_all = 3.0 * rank * float(off)  # solving, dropping, and scaling to 1
            if key not in vertices or error_in_all < vertices[key].error:
                vertices[key] = Vertex(posterior, error_in_all)
    return list(vertices.values())


def _subsets(n: int, size: int) -> Iterator[NDArray[np.intp]]:
    """All sets of `size` letters of n, in batches (count, size)."""
    subsets = combinations(range(n), size)
    while batch := list(islice(subsets, BATCH)):
        yield np.array(batch)
