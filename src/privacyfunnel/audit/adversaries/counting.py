"""The Bayes adversary of a finite alphabet: counts of symbols and classes are all there is to learn."""

from __future__ import annotations

import numpy as np

from .crossfit import frequencies
from .protocol import FloatArray, IntArray


class CountingAdversary:
    """P(y|symbol) as the shares of the classes among the known records with the same symbol."""

    name = "counts of symbols"
    threat_model = (
        "Sees the released symbols, knows the private attribute of other people whose symbols it also has, "
        "and guesses the class that is the most frequent with a symbol."
    )

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        """P(y|z); `Z` holds the number of the symbol in its only column."""
        symbols = Z[:, 0].astype(np.intp)
        q = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = folds == fold
            counts = np.zeros((int(symbols.max()) + 1, n_classes))
            np.add.at(counts, (symbols[~held], y[~held]), 1)
            # One record more, of all classes as they are frequent: for symbols that were never seen.
            shares = (counts + frequencies(y[~held], n_classes)) / (counts.sum(axis=1, keepdims=True) + 1)
            q[held] = shares[symbols[held]]
        return q

    def __repr__(self) -> str:
        return "CountingAdversary()"
