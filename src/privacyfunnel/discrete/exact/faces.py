"""Certified pricing for any private alphabet: branch and bound over posteriors on a few letters.

The reduced value of a posterior q with Tq = P(Y|z) is G(q) = H(Tq) − β H(q) − λ·q. Fix t = Tq: G is convex in
q on the polytope {q ≥ 0, Tq = t}, so it is largest at a vertex, which has at most rank(T) nonzero entries.
The search therefore covers every face of the simplex with at most rank(T) letters, each on its own.

Bounds, two, both affine on a sub-simplex, so that their largest value is at a vertex. (1) H(Tq) ≤ −Σ_y
(Tq)_y log c_y for any distribution c (Gibbs; c is the centroid's), and −β H(q) is convex, so below its linear
interpolation. (2) H(Y|z) ≤ H(X|z) + H(Y|X,z), so G ≤ (1−β) H(q) + Σ q_k (H(Y|k) − λ_k), and H(q) is below the
cross-entropy to the centroid. The first is tight where H(Tq) bends, the second where letters have few values
of Y in common. The largest value of (2) over the whole simplex has a closed form (`free_bound`).

Dropping what cannot hold a maximum. A maximiser lies in the interior of the face of its support, where the
Hessian must be negative semi-definite along the face. In direction e_i − e_j that reads

    β (1/q_i + 1/q_j) ≤ Σ_y (T_yi − T_yj)² / (Tq)_y .

and in other directions d likewise, β Σ d²/q ≤ Σ_y (Td)²/(Tq)_y: those that move Tq least fail first. It fails
near the boundary of a face, where the bound converges slowly, so each face is searched in its interior only
and its boundary once, as the smaller faces: the work is shared. Scaling shows that a pair of letters for
which it fails on the pair's own face, wherever q lies, fails in every face that holds both
(`compatible_pairs`).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...arrays import FloatArray
from .listing import HAIR

MAX_DEPTH = 600  # open sub-simplices of one face
EASY = 30  # nodes that a face may take before more directions are prepared for it
LOOK_UP = 1024  # nodes between two looks at the caller's request to stop


def free_bound(channel: FloatArray, prices: FloatArray, beta: float) -> float:
    """(1−β) log Σ_k exp((H(Y|k) − λ_k) / (1−β)) ≥ G(q) for every posterior q, for β < 1; no search needed."""
    positive = np.where(channel > 0.0, channel, 1.0)
    own = -(positive * np.log(positive)).sum(axis=1) - prices
    largest = float(own.max())
    return largest + (1.0 - beta) * float(np.log(np.exp((own - largest) / (1.0 - beta)).sum()))


@njit(nogil=True, cache=True)
def reduced_value(q: FloatArray, t: FloatArray, linear: float, beta: float) -> float:
    """H(t) − β H(q) − linear"""
    value = -linear
    for y in range(t.size):
        if t[y] > 0.0:
            value -= t[y] * np.log(t[y])
    for k in range(q.size):
        if q[k] > 0.0:
            value += beta * q[k] * np.log(q[k])
    return value


@njit(nogil=True, cache=True)
def climb(channel: FloatArray, prices: FloatArray, beta: float, q: FloatArray, n_steps: int) -> float:
    """Raise G from q in place by q ∝ q^{1+β} exp(−Σ_y T_y log t_y − λ), which never lowers it; G at the end.

    `channel` (k, n_y) and `prices` (k,) are those of the face's letters.
    """
    size, n_y = channel.shape
    t = np.empty(n_y)
    log_t = np.empty(n_y)
    exponent = np.empty(size)
    for _ in range(n_steps):
        for y in range(n_y):
            t[y] = 0.0
            for k in range(size):
                t[y] += q[k] * channel[k, y]
            log_t[y] = np.log(t[y]) if t[y] > 0.0 else 0.0
        top = -np.inf
        for k in range(size):
            exponent[k] = -np.inf
            if q[k] > 0.0:
                exponent[k] = (1.0 + beta) * np.log(q[k]) - prices[k]
                for y in range(n_y):
                    exponent[k] -= channel[k, y] * log_t[y]
                top = max(top, exponent[k])
        total = 0.0
        moved = 0.0
        for k in range(size):
            exponent[k] = np.exp(exponent[k] - top)
            total += exponent[k]
        for k in range(size):
            new = exponent[k] / total
            if new < 1e-12:
                new = 0.0
            moved = max(moved, abs(new - q[k]))
            q[k] = new
        if moved < 1e-9:
            break
    total = q.sum()
    for k in range(size):
        q[k] /= total
    for y in range(n_y):
        t[y] = 0.0
        for k in range(size):
            t[y] += q[k] * channel[k, y]
    return reduced_value(q, t, np.dot(q, prices), beta)


@njit(nogil=True, cache=True)
def sample_faces(
    faces: NDArray[np.int32],
    channel: FloatArray,
    prices: FloatArray,
    beta: float,
    points: FloatArray,
    value: FloatArray,
    which: NDArray[np.intp],
) -> None:
    """For each face, the largest G at the given points (n_points, size) of the simplex, and which point it
    was."""
    size = faces.shape[1]
    n_y = channel.shape[1]
    n_points = points.shape[0]
    t = np.empty(n_y)
    constant = np.zeros(n_points)
    for s in range(n_points):
        for k in range(size):
            if points[s, k] > 0.0:
                constant[s] += beta * points[s, k] * np.log(points[s, k])
    for f in range(faces.shape[0]):
        value[f] = -np.inf
        for s in range(n_points):
            g = constant[s]
            for k in range(size):
                g -= points[s, k] * prices[faces[f, k]]
            for y in range(n_y):
                t[y] = 0.0
                for k in range(size):
                    t[y] += points[s, k] * channel[faces[f, k], y]
                if t[y] > 0.0:
                    g -= t[y] * np.log(t[y])
            if g > value[f]:
                value[f] = g
                which[f] = s


@njit(nogil=True, cache=True)
def flat_directions(face_channel: FloatArray) -> FloatArray:
    """Orthonormal directions along a face (size − 1 rows that sum to 0), those that move Tq least first."""
    size, n_y = face_channel.shape
    scaled = np.empty((size, n_y))
    for y in range(n_y):
        mean = face_channel[:, y].sum() / size
        for k in range(size):
            scaled[k, y] = (face_channel[k, y] - mean) / np.sqrt(mean) if mean > 0.0 else 0.0
    gram = np.dot(scaled, scaled.T)
    # (1, …, 1) leads out of the face. It is a null vector; as the largest eigenvector it comes last, apart
    # from all others, even where the face is degenerate.
    largest = 1.0 + 2.0 * np.trace(gram)
    for i in range(size):
        for j in range(size):
            gram[i, j] += largest / size
    _, vectors = np.linalg.eigh(gram)
    directions = np.empty((size - 1, size))
    for d in range(size - 1):
        mean = vectors[:, d].sum() / size  # 0 up to rounding
        for k in range(size):
            directions[d, k] = vectors[k, d] - mean
    return directions


@njit(nogil=True, cache=True)
def _fails_second_order(
    direction: FloatArray, moved: FloatArray, largest_q: FloatArray, smallest_t: FloatArray, beta: float
) -> bool:
    """Whether β Σ d²/q > Σ_y (Td)²/(Tq)_y wherever q ≤ largest_q and Tq ≥ smallest_t."""
    available = 0.0
    for y in range(moved.size):
        if moved[y] != 0.0:
            if smallest_t[y] <= 0.0:
                return False
            available += moved[y] * moved[y] / smallest_t[y]
    boxed, total = 0.0, 0.0
    for k in range(direction.size):
        total += abs(direction[k])
        boxed += direction[k] * direction[k] / largest_q[k]
    # Σ d²/q ≥ (Σ|d|)² because Σ q = 1.
    return beta * max(boxed, total * total) > available * (1.0 + HAIR)


@njit(nogil=True, cache=True)
def _cannot_hold_maximum(
    q: FloatArray,
    t: FloatArray,
    face_channel: FloatArray,
    directions: FloatArray,
    n_directions: int,
    beta: float,
) -> bool:
    """Whether the second-order condition fails in some direction everywhere in the sub-simplex (q, t: by
    vertex)."""
    size, n_y = face_channel.shape
    largest_q = np.empty(size)
    smallest_t = np.empty(n_y)
    for k in range(size):
        largest_q[k] = q[:, k].max()
    for y in range(n_y):
        smallest_t[y] = t[:, y].min()
    moved = np.empty(n_y)
    for d in range(n_directions):
        for y in range(n_y):
            moved[y] = 0.0
            for k in range(size):
                moved[y] += directions[d, k] * face_channel[k, y]
        if _fails_second_order(directions[d], moved, largest_q, smallest_t, beta):
            return True
    pair = np.zeros(size)
    for i in range(size):
        for j in range(i + 1, size):
            pair[i], pair[j] = 1.0, -1.0
            for y in range(n_y):
                moved[y] = face_channel[i, y] - face_channel[j, y]
            if _fails_second_order(pair, moved, largest_q, smallest_t, beta):
                return True
            pair[i], pair[j] = 0.0, 0.0
    return False


@njit(nogil=True, cache=True)
def _second_bound(q: FloatArray, own: FloatArray, beta: float, slope: FloatArray) -> float:
    """The largest (1−β) Σ_k q_k (−log c_k) + Σ_k q_k own_k at the vertices q of a sub-simplex, c its
    centroid."""
    size = own.size
    for k in range(size):
        slope[k] = own[k]
        c = 0.0
        for v in range(size):
            c += q[v, k]
        if c > 0.0:
            slope[k] -= (1.0 - beta) * np.log(c / size)
    above = -np.inf
    for v in range(size):
        value = 0.0
        for k in range(size):
            value += q[v, k] * slope[k]
        above = max(above, value)
    return above


@njit(nogil=True, cache=True)
def search_faces(
    faces: NDArray[np.int32],
    channel: FloatArray,
    all_prices: FloatArray,
    beta: float,
    threshold: float,
    max_nodes: int,
    max_total: int,
    stop: NDArray[np.int8],
    state: NDArray[np.int8],
    found: FloatArray,
) -> tuple[float, int]:
    """Search faces (n_faces, size) for G > threshold; an upper bound on G over the faces that are done, and
    nodes.

    state[f] becomes 1 where every maximiser is proved to have G ≤ threshold, 2 where a larger G was found
    (the posterior is in found[f]), 3 where a limit stopped the search: max_nodes for a face, max_total for
    all, or another thread setting stop[0]. The bound covers faces in state 1 and 3; each is looked at once
    whatever the limits are.
    """
    n_faces, size = faces.shape
    n_y = channel.shape[1]
    q = np.empty((MAX_DEPTH, size, size))
    t = np.empty((MAX_DEPTH, size, n_y))
    convex = np.empty((MAX_DEPTH, size))  # −β H(q) − λ·q at the vertices
    upper = np.empty(MAX_DEPTH)
    face_channel = np.empty((size, n_y))
    directions = np.empty((size - 1, size))
    log_c = np.empty(n_y)
    own = np.empty(size)  # H(Y|k) − λ_k
    slope = np.empty(size)
    bound = -np.inf
    nodes = 0
    next_look = 0
    stopped = False
    for f in range(n_faces):
        for i in range(size):
            for j in range(size):
                q[0, i, j] = 1.0 if i == j else 0.0
            for y in range(n_y):
                t[0, i, y] = face_channel[i, y] = channel[faces[f, i], y]
            convex[0, i] = own[i] = -all_prices[faces[f, i]]
            for y in range(n_y):
                if face_channel[i, y] > 0.0:
                    own[i] -= face_channel[i, y] * np.log(face_channel[i, y])
        upper[0] = np.inf
        depth = 1
        state[f] = 1
        budget = min(max_nodes, max(max_total - nodes, 1))
        given = budget
        n_directions = 0
        while depth > 0:
            top = depth - 1
            nodes += 1
            budget -= 1
            if nodes > next_look:
                stopped = stop[0] != 0
                next_look = nodes + LOOK_UP
            # The bound: cross-entropy to the centroid plus interpolation, at each vertex.
            for y in range(n_y):
                c = 0.0
                for v in range(size):
                    c += t[top, v, y]
                log_c[y] = np.log(c / size) if c > 0.0 else 0.0
            above = -np.inf
            for v in range(size):
                value = convex[top, v]
                for y in range(n_y):
                    value -= t[top, v, y] * log_c[y]
                above = max(above, value)
            if above > threshold:
                above = min(above, _second_bound(q[top], own, beta, slope))
            if above <= threshold:
                bound = max(bound, above)
                depth -= 1
                continue
            if n_directions == 0 and size > 2 and given - budget > EASY:
                directions = flat_directions(face_channel)
                n_directions = size - 1
            if _cannot_hold_maximum(q[top], t[top], face_channel, directions, n_directions, beta):
                depth -= 1
                continue
            upper[top] = above
            if budget <= 0 or depth == MAX_DEPTH or stopped:
                state[f] = 3
                # Sub-simplices not looked at yet are inside one that was: its bound is in `upper`.
                for open_at in range(depth):
                    bound = max(bound, upper[open_at])
                break
            # Bisect the edge along which both entropies bend most.
            longest, a, b = -1.0, 0, 1
            for i in range(size):
                for j in range(i + 1, size):
                    length = 0.0
                    for k in range(size):
                        total = q[top, i, k] + q[top, j, k]
                        if total > 0.0:
                            length += beta * (q[top, i, k] - q[top, j, k]) ** 2 / total
                    for y in range(n_y):
                        total = t[top, i, y] + t[top, j, y]
                        if total > 0.0:
                            length += (t[top, i, y] - t[top, j, y]) ** 2 / total
                    if length > longest:
                        longest, a, b = length, i, j
            for v in range(size):
                convex[depth, v] = convex[top, v]
                for k in range(size):
                    q[depth, v, k] = q[top, v, k]
                for y in range(n_y):
                    t[depth, v, y] = t[top, v, y]
            value = 0.0
            linear = 0.0
            for k in range(size):
                middle = 0.5 * (q[top, a, k] + q[top, b, k])
                q[top, a, k] = q[depth, b, k] = middle
                linear += middle * all_prices[faces[f, k]]
                if middle > 0.0:
                    value += beta * middle * np.log(middle)
            convex[top, a] = convex[depth, b] = value - linear
            value -= linear
            for y in range(n_y):
                middle = 0.5 * (t[top, a, y] + t[top, b, y])
                t[top, a, y] = t[depth, b, y] = middle
                if middle > 0.0:
                    value -= middle * np.log(middle)
            upper[depth] = above
            depth += 1
            if value > threshold:
                state[f] = 2
                for k in range(size):
                    found[f, k] = q[top, a, k]
                break
    return bound, nodes
