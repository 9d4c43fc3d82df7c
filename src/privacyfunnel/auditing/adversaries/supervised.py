"""Adversaries with labels: they learn classes or numbers from codes of other people's records.

Trees belong in every set of them: on codes that were trained against a neural network they find up to ninety
times the bits that another network finds. Two look at what nobody meant to release: last digits and bits of
the codes, and the order of the rows. The others scale codes first, so that a class written into the twelfth
decimal, the last bit, the sign of a zero or the parity of an id is invisible to them.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import BoolArray, FloatArray, IntArray
from ...errors import InvalidInputError
from ...parallel import library_threads
from .bounds import frequencies, predict
from .clustering import NeighbourAdversary
from .protocol import SUPERVISED, NumericAdversary

#: What scikit-learn says of classes of one or two records; the report says it better.
MANY_CLASSES = "The number of unique classes is greater than 50%"
# Boosting grows one tree a class and round; above this many classes a forest does in seconds what would
# take it minutes.
MOST_BOOSTED_CLASSES = 30
# What the classifier and the regressor of a kind have in common.
NETWORK: dict[str, Any] = {
    "alpha": 1e-3,
    "learning_rate_init": 2e-3,
    "max_iter": 100,
    "early_stopping": True,
    "n_iter_no_change": 10,
}
BOOSTING: dict[str, Any] = {
    "max_iter": 150,
    "max_leaf_nodes": 15,
    "early_stopping": True,
    "n_iter_no_change": 8,
}
#: Remainders of the value, and of the value in units of its last decimal.
MODULI = (2, 3, 4, 5, 7, 8, 10)
#: Decimals beyond which float64 has none left.
MOST_DECIMALS = 17
#: Bits of the mantissa that are looked at: the last ones of float64, float32 and float16.
BITS = (0, 1, 29, 30, 42, 43)
#: Features that the trees get: those that tell most by themselves about the classes learnt from.
MOST_FEATURES = 24
#: Up to so many different values a column is left to the other adversaries, but for the signs of its zeros.
FEW_VALUES = 32
#: Columns read at a time: each gives some twenty features.
COLUMNS = 64


class EstimatorAdversary:
    """What adversaries made of a scikit-learn estimator share: a fit that starts anew, on one thread."""

    def __init__(self, name: str, estimator: Any, threat_model: str | None = None) -> None:
        self.name = name
        self.estimator = estimator
        self.threat_model = threat_model or SUPERVISED.format(how=name)

    def _fit(self, Z: FloatArray, y: Any, smallest_group: int, n_groups: int) -> Any:
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning

        changes: dict[str, Any] = {}
        for key, value in self.estimator.get_params().items():
            # Early stopping holds a tenth of the records out, by class; k neighbours must exist.
            if key.endswith("early_stopping") and (smallest_group < 2 or len(y) < 10 * n_groups):
                changes[key] = False
            if key.endswith("n_neighbors"):
                changes[key] = min(value, len(y))
        fitted = clone(self.estimator).set_params(**changes)
        # Threads that wait for each other on busy cores make small fits tens of times slower.
        with library_threads(1), warnings.catch_warnings():
            # An adversary that stops early still proves a bound, a weaker one.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
            return fitted.fit(Z, y)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ClassifierAdversary(EstimatorAdversary):
    """Any scikit-learn classifier with `predict_proba` as an adversary.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> ClassifierAdversary("forest", RandomForestClassifier(random_state=0)).name
    'forest'
    """

    def fit(self, Z: FloatArray, y: IntArray) -> ClassifierAdversary:
        counts = np.unique(y, return_counts=True)[1]
        # One class: nothing to learn.
        self._fitted: Any = self._fit(Z, y, int(counts.min()), len(counts)) if len(counts) > 1 else None
        return self

    def predict_proba(self, Z: FloatArray) -> ArrayLike:
        if self._fitted is None:
            return np.ones((len(Z), 1))
        with library_threads(1):
            probabilities: ArrayLike = self._fitted.predict_proba(Z)
        return probabilities


def logistic_regression() -> ClassifierAdversary:
    """A linear adversary: finds what a hyperplane separates."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return ClassifierAdversary(
        "logistic regression", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    )


def neural_network(random_state: int = 0) -> ClassifierAdversary:
    """A network with one hidden layer, on scaled codes."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier((128,), random_state=random_state, **NETWORK)
    return ClassifierAdversary("neural network", make_pipeline(StandardScaler(), network))


def boosted_trees(random_state: int = 0) -> ClassifierAdversary:
    """Histogram gradient boosting: finds thresholds and interactions that smooth adversaries miss."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return ClassifierAdversary(
        "boosted trees", HistGradientBoostingClassifier(random_state=random_state, **BOOSTING)
    )


def randomised_trees(random_state: int = 0) -> ClassifierAdversary:
    """A forest of randomised trees: what trees find, for many classes."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ClassifierAdversary(
        "randomised trees", ExtraTreesClassifier(100, min_samples_leaf=2, random_state=random_state)
    )


def trees_for(n_classes: int, random_state: int = 0) -> ClassifierAdversary:
    """Boosted trees, or randomised ones where there are so many classes that boosting would take minutes."""
    return (boosted_trees if n_classes <= MOST_BOOSTED_CLASSES else randomised_trees)(random_state)


def nearest_neighbours() -> NeighbourAdversary:
    """The classes among the 15 nearest codes, on scaled components."""
    return NeighbourAdversary("nearest neighbours", SUPERVISED.format(how="nearest neighbours"))


def default_adversaries(
    random_state: int = 0, n_classes: int = 2
) -> tuple[ClassifierAdversary | NeighbourAdversary, ...]:
    """One of each kind; always with trees."""
    return (
        logistic_regression(),
        neural_network(random_state),
        trees_for(n_classes, random_state),
        nearest_neighbours(),
    )


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


class RegressorAdversary(EstimatorAdversary):
    """Any scikit-learn regressor as an adversary for numbers."""

    def fit(self, Z: FloatArray, y: FloatArray) -> RegressorAdversary:
        self._fitted = self._fit(Z, y, len(y), 1)
        return self

    def predict(self, Z: FloatArray) -> ArrayLike:
        with library_threads(1):
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


class ResidueAdversary:
    """Trees on residues of the codes: what is left of a number when its size is taken away."""

    name = "residues of the codes"
    threat_model = (
        "Looks at nothing but the last digits and bits of the released numbers, their remainders, the signs "
        "of zeros and which numbers come twice, and knows the private attribute of other people in the file."
    )

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        trees = trees_for(n_classes, self.random_state)
        parts = [residues(Z[:, i : i + COLUMNS]) for i in range(0, Z.shape[1], COLUMNS)]
        if not sum(part.shape[1] for part in parts):
            parts = [np.zeros((len(Z), 1))]
        q = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = folds == fold
            features = np.column_stack([_most_telling(part, y, held, n_classes) for part in parts])
            best = _most_telling(features, y, held, n_classes)
            q[held] = predict(trees, best[~held], y[~held], best[held], n_classes)
        return q

    def __repr__(self) -> str:
        return "ResidueAdversary()"


class OrderAdversary:
    """Trees on the row number and on the classes of known rows nearby; the codes are not looked at."""

    name = "order of the rows"
    threat_model = (
        "Sees no code, only the place of each record in the released file, and knows the private attribute "
        "of other rows of it. Of a file in random order it learns nothing."
    )

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        """P(y|row number); `Z` holds the row numbers in its only column."""
        trees = trees_for(n_classes, self.random_state)
        rows = Z[:, 0]
        places = np.column_stack([rows, *(rows % m for m in MODULI)])
        q = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = folds == fold
            features = np.column_stack([places, _nearby(rows, y, ~held)])
            q[held] = predict(trees, features[~held], y[~held], features[held], n_classes)
        return q

    def __repr__(self) -> str:
        return "OrderAdversary()"


def residues(Z: FloatArray) -> FloatArray:
    """What numbers show besides their size, about twenty features a column; constant ones are left out."""
    found = [np.asarray(np.signbit(Z) & (Z == 0), dtype=np.float64)]
    # Of few values every remainder is a function that trees on the values find by themselves.
    many = Z[:, [len(np.unique(column)) > FEW_VALUES for column in Z.T]]
    if many.shape[1]:
        size = np.abs(many)
        decimals = decimal_places(size)
        bits = np.ascontiguousarray(many).view(np.uint64)
        found += [decimals, _times(many)]
        # In units of its own last decimal, and of the finest decimal of the column.
        for places in (decimals, decimals.max(axis=0)):
            whole = np.rint(size * 10.0**places)
            found += [np.fmod(whole, m) for m in MODULI]
        found += [((bits >> np.uint64(bit)) & np.uint64(1)).astype(np.float64) for bit in BITS]
    features = np.column_stack(found)
    result: FloatArray = features[:, np.ptp(features, axis=0) > 0]
    return result


def decimal_places(size: FloatArray) -> FloatArray:
    """How many decimals each number has, up to those that float64 can hold."""
    places = np.full(size.shape, float(MOST_DECIMALS))
    for k in range(MOST_DECIMALS - 1, -1, -1):
        with np.errstate(over="ignore", invalid="ignore"):  # 10^k times a number that has no decimals left
            places[np.round(size, k) == size] = k
    return places


def _times(Z: FloatArray) -> FloatArray:
    """How often each value occurs in its column."""
    result = np.empty(Z.shape)
    for i, column in enumerate(Z.T):
        _, place, counts = np.unique(column, return_inverse=True, return_counts=True)
        result[:, i] = counts[place]
    return result


def _most_telling(features: FloatArray, y: IntArray, held: BoolArray, n_classes: int) -> FloatArray:
    """The features that tell most about the classes of the records that are not held out, each by itself."""
    if features.shape[1] <= MOST_FEATURES:
        return features
    known, classes = features[~held], y[~held]
    scores = [told_by(column, classes, n_classes) for column in known.T]
    chosen = np.sort(np.argsort(scores)[::-1][:MOST_FEATURES])
    result: FloatArray = features[:, chosen]
    return result


def told_by(column: FloatArray, y: IntArray, n_classes: int) -> float:
    """The likelihood ratio of a feature in bits, less what as many values would give by chance."""
    values, place = np.unique(column, return_inverse=True)
    if len(values) > 64:  # counts: cut into groups of equal size
        place = np.searchsorted(np.quantile(column, np.linspace(0, 1, 17)[1:-1]), column)
    table = np.zeros((int(place.max()) + 1, n_classes))
    np.add.at(table, (place, y), 1)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / len(y)
    there = table > 0
    gain = float((table[there] * np.log2(table[there] / expected[there])).sum())
    freedom = (len(table) - 1) * (int((table.sum(axis=0) > 0).sum()) - 1)
    return gain - freedom / (2 * math.log(2))


def _nearby(rows: FloatArray, y: IntArray, known: BoolArray) -> FloatArray:
    """Class and distance of the nearest known row before and after each; a row does not see itself."""
    order = np.argsort(rows, kind="stable")
    columns = []
    for line in (order, order[::-1]):
        # Of each place in the line, the last known one before it.
        place = np.where(known[line], np.arange(len(line)), -1)
        before = np.concatenate([[-1], np.maximum.accumulate(place)[:-1]]).astype(np.intp)
        label, gap = np.empty(len(line)), np.empty(len(line))
        label[line] = np.where(before >= 0, y[line[before]], -1)
        gap[line] = np.where(before >= 0, np.abs(rows[line] - rows[line[before]]), -1)
        columns += [label, gap]
    return np.column_stack([*columns, columns[0] == columns[2]])
