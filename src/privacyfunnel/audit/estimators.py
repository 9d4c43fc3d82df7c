"""Nearest-neighbour estimates of I(Z;Y) for codes of which nothing but the values is known.

Estimates, not bounds: they are consistent, but in many dimensions they fall short of the truth unless there
are very many records. The null, the same estimate with y reordered, shows their noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .graph import scaled, without_ties

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Neighbours: more mean less noise and more bias.
K = 5
#: Most records: the table of distances grows with the square.
MOST_RECORDS = 2000


def code_distances(Z: FloatArray) -> FloatArray:
    """Euclidean distances of scaled codes, (n, n); a code is infinitely far from itself."""
    codes = without_ties(scaled(Z))
    squares = (codes**2).sum(axis=1)
    table = squares[:, None] + squares[None, :] - 2 * codes @ codes.T
    result: FloatArray = np.sqrt(np.maximum(table, 0.0))
    np.fill_diagonal(result, np.inf)
    return result


def class_terms(distances: FloatArray, y: IntArray) -> FloatArray:
    """Terms whose mean estimates I(Z;Y) in bits for classes y (Ross 2014).

    With d_i the distance to the k-th neighbour of the same class and m_i the codes of any class as near,

        Î = ψ(N) − ⟨ψ(N_y)⟩ + ⟨ψ(k)⟩ − ⟨ψ(m)⟩.

    Records that are alone in their class are left out.
    """
    from scipy.special import digamma

    counts = np.bincount(y)
    rows = np.flatnonzero(counts[y] > 1)
    if len(rows) < 2:
        return np.zeros(len(rows))
    table, classes = distances[np.ix_(rows, rows)], y[rows]
    k = np.minimum(K, counts[classes] - 1)
    radius = np.empty(len(rows))
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        nearest = int(k[members[0]])
        inside = table[np.ix_(members, members)]
        radius[members] = np.partition(inside, nearest - 1, axis=1)[:, nearest - 1]
    # The k-th neighbour itself is counted, as in the derivation.
    near = (table <= radius[:, None]).sum(axis=1)
    terms = digamma(len(rows)) - digamma(counts[classes]) + digamma(k) - digamma(near)
    result: FloatArray = terms / math.log(2)
    return result


def number_terms(distances: FloatArray, y: FloatArray) -> FloatArray:
    """Terms whose mean estimates I(Z;Y) in bits for numbers y (Kraskov, Stögbauer & Grassberger 2004, 1).

    Î = ψ(k) + ψ(N) − ⟨ψ(n_z + 1) + ψ(n_y + 1)⟩
    """
    from scipy.special import digamma

    n = len(y)
    if n < 3:
        return np.zeros(n)
    values = without_ties(scaled(y[:, None]))[:, 0]
    gaps = np.abs(values[:, None] - values[None, :])
    np.fill_diagonal(gaps, np.inf)
    k = min(K, n - 1)
    radius = np.partition(np.maximum(distances, gaps), k - 1, axis=1)[:, [k - 1]]
    n_z, n_y = (distances < radius).sum(axis=1), (gaps < radius).sum(axis=1)
    terms = digamma(k) + digamma(n) - digamma(n_z + 1) - digamma(n_y + 1)
    result: FloatArray = terms / math.log(2)
    return result
