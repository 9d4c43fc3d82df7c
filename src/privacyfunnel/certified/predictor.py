"""What a record says about a task: an additive logistic model, small enough to be stored with a rule.

The task is a target, not an input: cells know it through this prediction, and releasing needs no task. Each
column acts by itself, numbers through steps at their quantiles, so that the model is a table of coefficients
which a file can hold and a reader can check.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS
from .stored import numbers_from, numbers_to

#: Steps of a column of numbers, at most.
N_STEPS = 15
#: Columns of more than so many values have steps; more columns of that kind have none: images, embeddings.
FEW_VALUES, MOST_STEPPED = 4, 64
#: What the places of steps are rounded to, in units of the spread of their column.
ROUNDED = 0.01
#: Folds whose records are predicted by a model of the others.
N_FOLDS = 3


@dataclass(frozen=True, eq=False)
class Predictor:
    """P(task | record), from points.

    Attributes
    ----------
    centre, width : (d,) arrays
        What the points are scaled by.
    steps : (k, 2) array
        Column and place of each step: 1 above it, else 0.
    weights, intercept : (d + k, n_t) and (n_t,) arrays
        Of the logarithms of the shares.
    """

    centre: FloatArray
    width: FloatArray
    steps: FloatArray
    weights: FloatArray
    intercept: FloatArray

    @property
    def n_classes(self) -> int:
        return len(self.intercept)

    def __call__(self, points: FloatArray) -> FloatArray:
        """(n, n_t) probabilities."""
        score = self._inputs(points) @ self.weights + self.intercept
        score = np.exp(score - score.max(axis=1, keepdims=True))
        shares: FloatArray = score / score.sum(axis=1, keepdims=True)
        return shares

    def _inputs(self, points: FloatArray) -> FloatArray:
        columns = self.steps[:, 0].astype(np.intp)
        above = points[:, columns] > self.steps[:, 1]
        return np.hstack([(points - self.centre) / self.width, above])

    @classmethod
    def fit(cls, points: FloatArray, classes: IntArray, n_classes: int) -> Predictor:
        """The model of these records."""
        from sklearn.linear_model import LogisticRegression

        width = rounded_spread(points)
        blank = cls(
            np.rint(points.mean(axis=0) / (ROUNDED * width)) * (ROUNDED * width),
            width,
            _steps(points),
            np.empty((0, n_classes)),
            np.log((np.bincount(classes, minlength=n_classes) + 1.0) / (len(classes) + n_classes)),
        )
        n_inputs = points.shape[1] + len(blank.steps)
        weights, intercept = np.zeros((n_inputs, n_classes)), blank.intercept.copy()
        found = np.unique(classes)
        if len(found) > 1:
            model = LogisticRegression(max_iter=300, tol=1e-3).fit(blank._inputs(points), classes)
            if len(found) == 2:  # one column of weights: of the second class against the first
                weights[:, found[1]], intercept[found] = model.coef_[0], (0.0, model.intercept_[0])
            else:
                weights[:, found], intercept[found] = model.coef_.T, model.intercept_
            missing = np.setdiff1d(np.arange(n_classes), found)
            intercept[missing] = intercept[found].min() - 20.0  # a class of other folds only
        return cls(blank.centre, blank.width, blank.steps, weights, intercept)

    @classmethod
    def cross_fit(
        cls, points: FloatArray, classes: IntArray, n_classes: int, rng: np.random.Generator
    ) -> tuple[Predictor, FloatArray]:
        """The model of all records, and for each record what a model of other records predicts."""
        fold = rng.permutation(len(points)) % N_FOLDS
        predicted = np.empty((len(points), n_classes))
        for one in range(N_FOLDS):
            mine = fold == one
            if mine.any():
                predicted[mine] = cls.fit(points[~mine], classes[~mine], n_classes)(points[mine])
        return cls.fit(points, classes, n_classes), predicted

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        names = ("centre", "width", "steps", "weights", "intercept")
        return {name: numbers_to(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Predictor:
        """The inverse of `to_dict`."""
        found = cls(**{name: numbers_from(values, name) for name in cls.__dataclass_fields__})
        d, (k, two) = len(found.centre), found.steps.shape
        if two != 2 or found.weights.shape != (d + k, found.n_classes) or found.width.shape != (d,):
            raise ValueError("the arrays of the predictor do not fit each other.")
        if k and not (0 <= found.steps[:, 0].min() <= found.steps[:, 0].max() < d):
            raise ValueError("a step of the predictor is in a column that is not there.")
        return found


def rounded_spread(points: FloatArray) -> FloatArray:
    """The deviation of each coordinate to two digits, 1 where it is 0: a rule holds it and its multiples."""
    width = points.std(axis=0)
    width = np.where(width > 1e-100, width, 1.0)
    unit = 10.0 ** (np.floor(np.log10(width)) - 1)
    found: FloatArray = np.rint(width / unit) * unit
    return found


def _steps(points: FloatArray) -> FloatArray:
    """Column and place of each step; columns of few values, such as those of categories, need none."""
    found: list[tuple[float, float]] = []
    if points.shape[1] <= 4 * MOST_STEPPED:
        different = [np.unique(points[:, column]) for column in range(points.shape[1])]
        many = [column for column, values in enumerate(different) if len(values) > FEW_VALUES]
        for column in many if len(many) <= MOST_STEPPED else ():
            low, high = different[column][[0, -1]]
            found += [(float(column), place) for place in _places(points[:, column]) if low <= place < high]
    return np.array(found).reshape(-1, 2)


def _places(values: FloatArray) -> list[float]:
    """Quantiles with at least ten records between two of them, rounded: what a rule holds is nobody's."""
    places = _quantiles(values)
    if len(places) < N_STEPS // 2:  # most people have one value: quantiles of the others
        different, counts = np.unique(values, return_counts=True)
        places = _quantiles(values[values != different[counts.argmax()]])
    unit = ROUNDED * float(rounded_spread(values[:, None])[0])
    return [float(place) for place in np.unique(np.rint(places / unit) * unit)]


def _quantiles(values: FloatArray) -> FloatArray:
    n_steps = min(N_STEPS, len(values) // LEAST_RECORDS - 1)
    if n_steps < 1:
        return np.zeros(0)
    return np.unique(np.quantile(values, np.linspace(0, 1, n_steps + 2)[1:-1]))
