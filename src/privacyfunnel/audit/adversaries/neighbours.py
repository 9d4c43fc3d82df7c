"""The adversary that looks at the nearest codes whose class it knows."""

from __future__ import annotations

import numpy as np

from ..graph import NeighbourGraph, scaled, search, without_ties
from .protocol import FloatArray, IntArray

# Neighbours to look up for each one that is wanted from other folds: two thirds of them are, on average.
MARGIN = 3


class NeighbourAdversary:
    """The classes among the nearest known codes, on scaled components.

    One graph of neighbours serves all folds: for each record the nearest ones of other folds are picked
    from it, which are the same that a search among the other folds would find.
    """

    def __init__(self, name: str, threat_model: str, n_neighbors: int = 15) -> None:
        self.name = name
        self.threat_model = threat_model
        self.n_neighbors = n_neighbors

    def fit(self, Z: FloatArray, y: IntArray) -> NeighbourAdversary:
        self._raw = Z
        self._codes = without_ties(scaled(Z))
        self._classes, self._numbers = np.unique(y, return_inverse=True)
        return self

    def predict_proba(self, Z: FloatArray) -> FloatArray:
        k = min(self.n_neighbors, len(self._codes))
        nearest = search(self._codes, without_ties(scaled(Z, self._raw)), k)[1]
        return _shares(self._numbers[nearest], len(self._classes))

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        codes = without_ties(scaled(Z))
        graph = NeighbourGraph.of(codes, MARGIN * self.n_neighbors)
        result = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = np.flatnonzero(folds == fold)
            k = min(self.n_neighbors, len(Z) - len(held))
            known = folds[graph.indices[held]] != fold
            # Stable: known neighbours first, nearest first.
            order = np.argsort(~known, axis=1, kind="stable")[:, :k]
            nearest = np.take_along_axis(graph.indices[held], order, axis=1)
            short = held[known.sum(axis=1) < k]
            if len(short):
                rest = np.flatnonzero(folds != fold)
                found = rest[search(codes[rest], codes[short], k)[1]]
                nearest = np.pad(nearest, ((0, 0), (0, k - nearest.shape[1])))
                nearest[known.sum(axis=1) < k] = found
            result[held] = _shares(y[nearest], n_classes)
        return result

    def __repr__(self) -> str:
        return f"NeighbourAdversary({self.name!r})"


def vote_weights(k: int) -> FloatArray:
    """A vote for each neighbour, nearest first, that sum to 1: nearly equal, the nearer a little more.

    Of two classes with as many neighbours the nearer wins: with few records a class, ties are the rule.
    """
    weights = 1 + 1e-3 * np.arange(k - 1, -1, -1)
    result: FloatArray = weights / weights.sum()
    return result


def _shares(classes: IntArray, n_classes: int) -> FloatArray:
    """The share of each class in each row of class numbers, nearest first."""
    shares = np.zeros((len(classes), n_classes))
    np.add.at(shares, (np.arange(len(classes))[:, None], classes), vote_weights(classes.shape[1]))
    return shares
