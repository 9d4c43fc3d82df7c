"""What a record says about a task: an additive logistic model and trees, small enough to store with a rule.

The task is a target, not an input: cells know it through this prediction, and releasing needs no task. Each
column acts by itself, numbers through steps at their quantiles; where records of other folds are predicted
better so, boosted trees add what columns say together. The model is tables of numbers, which a file can hold
and a reader can check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS
from ..parallel import library_threads
from .boosting import MOST_WEIGHT, Trees, boosted, softmax, stops
from .stored import numbers_from, numbers_to

#: Steps of a column of numbers, at most.
N_STEPS = 15
#: Columns of more than so many values have steps; more columns of that kind have none: images, embeddings.
FEW_VALUES, MOST_STEPPED = 4, 64
#: What the places of steps are rounded to, in units of the spread of their column.
ROUNDED = 0.01
#: Folds whose records are predicted by a model of the others.
N_FOLDS = 3
#: Bits a record that trees must save on other folds, at least.
LEAST_SAVED = 1e-3


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
    trees : Trees, optional
        What is added to them.
    """

    centre: FloatArray
    width: FloatArray
    steps: FloatArray
    weights: FloatArray
    intercept: FloatArray
    trees: Trees | None = None

    @property
    def n_classes(self) -> int:
        return len(self.intercept)

    def __call__(self, points: FloatArray) -> FloatArray:
        """(n, n_t) probabilities."""
        return softmax(self.score(points))

    def score(self, points: FloatArray) -> FloatArray:
        """(n, n_t): their logarithms, up to a number for each record."""
        score: FloatArray = self._inputs(points) @ self.weights + self.intercept
        return score if self.trees is None else _raised(score, self.trees(points))

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
        """The model of all records, and for each record what a model of other records predicts.

        It has as many trees as predict the records of other folds best, and none where none are better.
        """
        fold = rng.permutation(len(points)) % N_FOLDS
        numbers = (0, *stops(n_classes))
        predicted = np.empty((len(numbers), len(points), n_classes))
        # In products as narrow as those of trees threads mostly wait for each other, and burn a core each.
        with library_threads(1, "blas"):
            for one in range(N_FOLDS):
                mine = fold == one
                if mine.any():
                    model = cls.fit(points[~mine], classes[~mine], n_classes)
                    model = model.with_trees(points[~mine], classes[~mine], rng)
                    predicted[:, mine] = model._after(points[mine], numbers)
            true = predicted[:, np.arange(len(points)), classes]
            bits = -np.log2(np.maximum(true, 1e-12)).mean(axis=1)
            best = int(bits.argmin())
            if bits[best] > bits[0] - LEAST_SAVED:
                best = 0
            model = cls.fit(points, classes, n_classes)
            if best:
                model = model.with_trees(points, classes, rng, numbers[best])
            return model, predicted[best]

    def with_trees(
        self, points: FloatArray, classes: IntArray, rng: np.random.Generator, n: int | None = None
    ) -> Predictor:
        """The same with trees of these records: so many, or as many as may be."""
        trees = boosted(points, self._questions(), classes, self.score(points), rng, n)
        return replace(self, trees=trees)

    def _questions(self) -> FloatArray:
        """Places that trees may ask at: the steps, and the rounded means of columns without."""
        plain = np.setdiff1d(np.arange(len(self.centre)), self.steps[:, 0].astype(np.intp))
        return np.vstack([self.steps, np.column_stack([plain, self.centre[plain]])])

    def _after(self, points: FloatArray, numbers: Sequence[int]) -> FloatArray:
        """(len(numbers), n, n_t): the probabilities after so many trees."""
        trees, plain = self.trees, replace(self, trees=None).score(points)
        if trees is None:
            return np.broadcast_to(softmax(plain), (len(numbers), *plain.shape))
        return np.stack([softmax(_raised(plain, trees.first(n)(points))) for n in numbers])

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        arrays = {name: numbers_to(getattr(self, name)) for name in ARRAYS}
        return {**arrays, "trees": None if self.trees is None else self.trees.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Predictor:
        """The inverse of `to_dict`; files of the first version have no trees."""
        centre, width, steps, weights, intercept = (numbers_from(values, name) for name in ARRAYS)
        found = cls(centre, width, steps, weights, intercept)
        d, (k, two) = len(found.centre), found.steps.shape
        if two != 2 or found.weights.shape != (d + k, found.n_classes) or found.width.shape != (d,):
            raise ValueError("the arrays of the predictor do not fit each other.")
        if k and not (0 <= found.steps[:, 0].min() <= found.steps[:, 0].max() < d):
            raise ValueError("a step of the predictor is in a column that is not there.")
        largest = max(np.abs(part).max(initial=0.0) for part in (weights, intercept))
        if not (np.all(width > 0) and largest < MOST_WEIGHT):
            raise ValueError("the numbers of the predictor make no probabilities.")
        trees = values.get("trees")
        return found if trees is None else replace(found, trees=Trees.from_dict(trees, d, found.n_classes))


ARRAYS = ("centre", "width", "steps", "weights", "intercept")


def _raised(score: FloatArray, more: FloatArray) -> FloatArray:
    """Scores of all classes with those of trees, which may be of the last class alone."""
    found = score.copy()
    found[:, -more.shape[1] :] += more
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
