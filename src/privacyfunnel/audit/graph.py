"""The nearest neighbours of each code: computed once, used by several adversaries and estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    """The nearest neighbours of each of n codes among the others, nearest first.

    Attributes
    ----------
    indices : (n, k) int array
    distances : (n, k) array
        Euclidean.
    """

    indices: IntArray
    distances: FloatArray

    @classmethod
    def of(cls, Z: FloatArray, k: int) -> NeighbourGraph:
        """The exact graph; fewer neighbours where there are not k others."""
        k = min(k, len(Z) - 1)
        if k < 1:
            return cls(np.zeros((len(Z), 0), dtype=np.intp), np.zeros((len(Z), 0)))
        distances, indices = search(Z, None, k)
        return cls(indices, distances)

    @property
    def k(self) -> int:
        return int(self.indices.shape[1])


def search(Z: FloatArray, queries: FloatArray | None, k: int) -> tuple[FloatArray, IntArray]:
    """Distances and numbers of the k codes of Z nearest to each query; of Z itself, each without itself."""
    from sklearn.neighbors import NearestNeighbors
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        distances, indices = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(queries)
    return distances.astype(np.float64), indices.astype(np.intp)


def scaled(Z: FloatArray, reference: FloatArray | None = None) -> FloatArray:
    """Components with mean 0 and spread 1 (in the reference); constant ones stay constant."""
    known = Z if reference is None else reference
    centre, spread = known.mean(axis=0), known.std(axis=0)
    # A spread that is rounding of the values themselves is none: dividing by it would invent a component.
    noise = 1e-12 * np.abs(known).max(axis=0, initial=0.0)
    result: FloatArray = (Z - centre) / np.where(spread > noise, spread, 1.0)
    return result


def without_ties(Z: FloatArray) -> FloatArray:
    """Codes moved a little at random: of many equal ones, not always the same few must be the nearest."""
    return Z + 1e-5 * np.random.default_rng(0).standard_normal(Z.shape)
