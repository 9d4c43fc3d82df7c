"""Adversaries for a numeric private attribute: they predict its value."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidInputError
from .protocol import FloatArray, IntArray, NumericAdversary
from .supervised import BOOSTING, NETWORK, EstimatorAdversary


class RegressorAdversary(EstimatorAdversary):
    """Any scikit-learn regressor as an adversary for numbers."""

    def fit(self, Z: FloatArray, y: FloatArray) -> RegressorAdversary:
        self._fitted = self._fit(Z, y, len(y), 1)
        return self

    def predict(self, Z: FloatArray) -> ArrayLike:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            values: ArrayLike = self._fitted.predict(Z)
        return values


def default_numeric_adversaries(random_state: int = 0) -> tuple[RegressorAdversary, ...]:
    """A line, a network, trees and neighbours."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import RidgeCV
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = TransformedTargetRegressor(
        MLPRegressor(hidden_layer_sizes=(128,), random_state=random_state, **NETWORK),
        transformer=StandardScaler(),
    )
    return (
        RegressorAdversary(
            "ridge regression", make_pipeline(StandardScaler(), RidgeCV(np.geomspace(0.1, 1e4, 11)))
        ),
        RegressorAdversary("neural network regression", make_pipeline(StandardScaler(), network)),
        RegressorAdversary(
            "boosted regression trees",
            HistGradientBoostingRegressor(random_state=random_state, **BOOSTING),
        ),
        RegressorAdversary(
            "nearest-neighbour regression",
            make_pipeline(StandardScaler(), KNeighborsRegressor(n_neighbors=15)),
        ),
    )


def predict_values(
    adversary: NumericAdversary, Z: FloatArray, y: FloatArray, Z_test: FloatArray
) -> FloatArray:
    """The values that an adversary trained on (Z, y) predicts for other codes."""
    adversary.fit(Z, y)
    values = np.asarray(adversary.predict(Z_test), dtype=np.float64)
    if values.shape != (len(Z_test),) or not np.isfinite(values).all():
        raise InvalidInputError(
            f"Adversary {adversary.name!r}: predict must give one finite number a code, shape "
            f"({len(Z_test)},); it gave {values.shape}."
        )
    return values


def cross_shrunk(values: FloatArray, y: FloatArray, folds: IntArray) -> FloatArray:
    """Cross-fitted predictions, each fold drawn towards the mean as far as does best on the others.

    Without it an adversary that found nothing would do worse than the mean, which everybody knows.
    """
    result = np.empty_like(values)
    for fold in np.unique(folds):
        held = folds == fold
        known_mean, spread = y[~held].mean(), values[~held] - values[~held].mean()
        square = float(spread @ spread)
        slope = float(spread @ (y[~held] - known_mean)) / square if square > 0 else 0.0
        result[held] = known_mean + min(max(slope, 0.0), 1.0) * (values[held] - values[~held].mean())
    return result
