"""Perfect privacy: the most utility at zero leakage.

Zero leakage means that every posterior satisfies Tq = P(Y). Those q form a polytope, utility is convex on it,
so its vertices suffice: posteriors on linearly independent letters, at most rank(T) of them. They are all
listed once, and the best mixture of them is one linear programme. Its duals prove it: u ≤ H(X) + λ·p + M with
M ≥ −H(q) − λ·q at every vertex.
"""

from __future__ import annotations

from itertools import combinations, islice

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from ...errors import InvalidInputError
from ..problem import FloatArray
from .master import ROUNDING
from .pricing import n_faces
from .reduction import Posterior, Reduction, entropy_nats

MAX_SUBSETS = 5_000_000
BATCH = 100_000
DEPENDENT = 1e-12  # smallest singular value, relative, of letters that count as independent


def perfect_release(reduction: Reduction) -> tuple[FloatArray, float]:
    """The channel (n_x, n_z) on the problem's letters, and an upper bound on the utility at leakage 0
    (nats)."""
    vertices = private_vertices(reduction)
    spread = np.array([entropy_nats(vertex.shares) for vertex in vertices])
    rows = np.concatenate([vertex.letters for vertex in vertices])
    columns = np.repeat(np.arange(len(vertices)), [vertex.letters.size for vertex in vertices])
    shares = np.concatenate([vertex.shares for vertex in vertices])
    table = coo_matrix((shares, (rows, columns)), shape=(reduction.n, len(vertices))).tocsc()
    result = linprog(
        spread,
        A_eq=table,
        b_eq=reduction.p,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.status != 0:
        # The constant release is a mixture of the vertices, so only rounding can make this happen.
        return np.ones((reduction.problem.n_x, 1)), reduction.entropy_x
    prices = -result.eqlin.marginals
    largest = float((-spread - table.T @ prices).max())
    terms = reduction.entropy_x + float(np.abs(prices) @ reduction.p) + abs(largest) + 1.0
    most = reduction.entropy_x + float(prices @ reduction.p) + largest + ROUNDING * terms
    used = np.flatnonzero(result.x > 1e-13)
    channel = reduction.expand([vertices[j] for j in used], result.x[used])
    return channel, reduction.mass * max(most, 0.0) + reduction.slack


def private_vertices(reduction: Reduction) -> list[Posterior]:
    """All vertices of {q ≥ 0, Tq = P(Y)}. Nearly dependent letters are given the benefit of the doubt."""
    n, rank = reduction.n, reduction.rank
    count = n_faces(n, rank) - n_faces(n, rank - 1) if rank > 1 else n
    if count > MAX_SUBSETS:
        raise InvalidInputError(
            f"perfect_privacy: {n} distinct letters of X and rank {rank} of P(Y|X) give {count:,} sets "
            f"of letters to look at (limit {MAX_SUBSETS:,}). Merge letters of X or Y first."
        )
    # In the row space of T a set of `rank` independent letters is a square system.
    basis = np.linalg.svd(reduction.channel, full_matrices=False)[2][:rank]
    letters_in_basis = reduction.channel @ basis.T
    wanted = (reduction.p @ reduction.channel) @ basis.T
    vertices: dict[tuple[float, ...], Posterior] = {}
    subsets = combinations(range(n), rank)
    while batch := list(islice(subsets, BATCH)):
        chosen = np.array(batch)
        systems = np.swapaxes(letters_in_basis[chosen], 1, 2)
        singular = np.linalg.svd(systems, compute_uv=False)
        smallest = singular[:, -1]
        regular = smallest > DEPENDENT * singular[:, 0]
        chosen, systems, smallest = chosen[regular], systems[regular], smallest[regular]
        if not len(chosen):
            continue
        shares = np.linalg.solve(systems, np.broadcast_to(wanted[:, None], (len(chosen), rank, 1)))[:, :, 0]
        feasible = np.all(shares >= -(1e-12 + 1e-15 / smallest)[:, None], axis=1)
        for letters, q in zip(chosen[feasible], shares[feasible], strict=True):
            there = q > 1e-13
            key = (*letters[there].tolist(),)
            vertices.setdefault(key, Posterior(letters[there], q[there] / q[there].sum()))
    return list(vertices.values())
