"""Adversaries that guess a private attribute from released codes, and the leakage they prove.

An adversary with labels is trained on codes of other people's records and then asked for P(y|z) on records
it has not seen. For every Q(y|z), whatever it was trained on,

    I(Z;Y) ≥ H(Y) − E[−log2 Q(Y|Z)],

so what it finds on held-out records is a lower bound: a stronger adversary may find more, none can make it
less. Trees belong in every set of adversaries: on codes that were trained against a neural network they find
up to ninety times the bits that another network finds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidInputError
from ..information import log2_or_zero
from ..uncertainty import Interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SUPERVISED = (
    "Sees the released codes alone, knows the private attribute of other people whose codes it also has, "
    "and learns from those {how}."
)

# Weights of the class frequencies that calibration chooses from; 1 means that z is not looked at. The least
# one bounds what a single record can cost an adversary that was certain and wrong.
SHRINKAGES = np.geomspace(1e-4, 1.0, 41)
# Powers of the probabilities to choose from: above 1 for an adversary that is too timid.
POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)


class Adversary(Protocol):
    """Somebody who guesses y from z. `fit` starts anew each time it is called."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def threat_model(self) -> str:
        """One sentence: what it sees and what it knows."""

    def fit(self, Z: FloatArray, y: IntArray) -> Any:
        """Learn from codes (n, d) and class numbers (n,)."""

    def predict_proba(self, Z: FloatArray) -> ArrayLike:
        """P(y|z): a column for each class that `fit` saw, in ascending order."""


class ClassifierAdversary:
    """Any scikit-learn classifier with `predict_proba` as an adversary.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> ClassifierAdversary("forest", RandomForestClassifier(random_state=0)).name
    'forest'
    """

    def __init__(self, name: str, classifier: Any, threat_model: str | None = None) -> None:
        self.name = name
        self.classifier = classifier
        self.threat_model = threat_model or SUPERVISED.format(how=f"with {name}")

    def fit(self, Z: FloatArray, y: IntArray) -> ClassifierAdversary:
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        counts = np.unique(y, return_counts=True)[1]
        self._fitted: Any = None  # one class: nothing to learn
        if len(counts) == 1:
            return self
        settings = self.classifier.get_params()
        changes: dict[str, Any] = {}
        for key, value in settings.items():
            # Early stopping holds a tenth of the records out, by class; k neighbours must exist.
            if key.endswith("early_stopping") and (counts.min() < 2 or len(y) < 10 * len(counts)):
                changes[key] = False
            if key.endswith("n_neighbors"):
                changes[key] = min(value, len(y))
        fitted = clone(self.classifier).set_params(**changes)
        # Threads that wait for each other on busy cores make small fits tens of times slower.
        with threadpool_limits(1), warnings.catch_warnings():
            # An adversary that stops early still proves a bound, a weaker one.
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._fitted = fitted.fit(Z, y)
        return self

    def predict_proba(self, Z: FloatArray) -> ArrayLike:
        if self._fitted is None:
            return np.ones((len(Z), 1))
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            probabilities: ArrayLike = self._fitted.predict_proba(Z)
        return probabilities

    def __repr__(self) -> str:
        return f"ClassifierAdversary({self.name!r})"


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

    network = MLPClassifier(
        (128,),
        alpha=1e-3,
        learning_rate_init=2e-3,
        max_iter=100,
        early_stopping=True,
        n_iter_no_change=10,
        random_state=random_state,
    )
    return ClassifierAdversary("neural network", make_pipeline(StandardScaler(), network))


def boosted_trees(random_state: int = 0) -> ClassifierAdversary:
    """Histogram gradient boosting: finds thresholds and interactions that smooth adversaries miss."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return ClassifierAdversary(
        "boosted trees",
        HistGradientBoostingClassifier(
            max_iter=150,
            max_leaf_nodes=15,
            early_stopping=True,
            n_iter_no_change=8,
            random_state=random_state,
        ),
    )


def nearest_neighbours() -> ClassifierAdversary:
    """The classes among the 15 nearest codes, on scaled components."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    return ClassifierAdversary(
        "nearest neighbours",
        make_pipeline(
            StandardScaler(), FunctionTransformer(_break_ties), KNeighborsClassifier(n_neighbors=15)
        ),
    )


def _break_ties(Z: FloatArray) -> FloatArray:
    """Codes moved a little at random: of many equal ones, not always the same few must be the nearest."""
    return Z + 1e-5 * np.random.default_rng(0).standard_normal(Z.shape)


def default_adversaries(random_state: int = 0) -> tuple[ClassifierAdversary, ...]:
    """One of each kind; always with trees."""
    return (
        logistic_regression(),
        neural_network(random_state),
        boosted_trees(random_state),
        nearest_neighbours(),
    )


@dataclass(frozen=True)
class LeakageBound:
    """What one adversary proves about I(Z;Y), from records it was not trained on.

    Attributes
    ----------
    value : float
        H(Y) − cross-entropy in bits. Below 0 where the adversary does worse than the class frequencies.
    standard_error : float
        Of `value`, from the spread over records; infinite for a single record.
    interval : Interval
        For the bound that this adversary would prove on infinitely many records. I(Z;Y) may be above it.
    n, n_train : int
        Held-out records behind the value; records that the adversary learnt from (in each fold).
    adversary : str
    success, chance : float
        Share of held-out records whose class it guesses, and the share of their largest class.
    shrinkage, power : float
        Weight of the class frequencies in its probabilities, and the power these are raised to before; both
        chosen on its training records (the means over folds).
    kind : str
        Always "lower bound".
    """

    value: float
    standard_error: float
    interval: Interval
    n: int
    n_train: int
    adversary: str
    success: float
    chance: float
    shrinkage: float
    power: float
    kind: str = "lower bound"

    def upper_end(self, z: float = 1.64) -> float:
        """`value` plus z standard errors: the pessimistic end of a one-sided interval (95 % for 1.64)."""
        return self.value + z * self.standard_error


def leakage_lower_bound(
    adversary: Adversary,
    Z_train: ArrayLike,
    y_train: ArrayLike,
    Z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    level: float = 0.95,
    n_folds: int = 3,
    random_state: int = 0,
) -> LeakageBound:
    """Train an adversary on some records and bound I(Z;Y) in bits from below on others.

    H(Y) is that of the held-out records, which is low by (n_y − 1)/(2 n ln 2) bits on average: the bound
    stays on its side.

    Parameters
    ----------
    adversary : Adversary
    Z_train, y_train, Z_test, y_test
        Codes (n, d) and classes of two disjoint sets of records. Neither should have trained the encoder:
        on those, leakage looks smaller than it is.
    level : float
    n_folds : int
        Folds of the training records on which the weight of the class frequencies is chosen.
    random_state : int
        Seeds the folds.
    """
    Z_fit, Z_held = _codes(Z_train, "Z_train"), _codes(Z_test, "Z_test")
    if Z_fit.shape[1] != Z_held.shape[1]:
        raise InvalidInputError(
            f"Z_train has {Z_fit.shape[1]} components and Z_test {Z_held.shape[1]}; both must come from one "
            "encoder."
        )
    first, second = _labels(y_train, len(Z_fit), "y_train"), _labels(y_test, len(Z_held), "y_test")
    classes, y = np.unique(np.concatenate([first, second]), return_inverse=True)
    y_fit, y_held = y[: len(first)], y[len(first) :]
    q, calibration = _attack(adversary, Z_fit, y_fit, Z_held, len(classes), n_folds, random_state)
    return _summary(adversary, q, y_held, level, len(Z_fit), calibration)


def cross_fitted_bound(
    adversary: Adversary,
    Z: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.95,
    n_folds: int = 3,
    random_state: int = 0,
) -> LeakageBound:
    """The same from one set of records: each fold is attacked by an adversary trained on the others.

    No adversary sees a record that it is judged on, and every record counts as a held-out one.
    """
    codes = _codes(Z, "Z")
    if n_folds < 2 or len(codes) < n_folds:
        raise InvalidInputError(
            f"n_folds must be at least 2 and at most the number of records; it is {n_folds} for "
            f"{len(codes)} records."
        )
    classes, numbers = np.unique(_labels(y, len(codes), "y"), return_inverse=True)
    folds = fold_numbers(numbers, n_folds, random_state)
    q = np.empty((len(codes), len(classes)))
    calibrations = []
    for fold in range(n_folds):
        held = folds == fold
        q[held], calibration = _attack(
            adversary, codes[~held], numbers[~held], codes[held], len(classes), n_folds, random_state
        )
        calibrations.append(calibration)
    n_train = len(codes) - math.ceil(len(codes) / n_folds)
    mean = np.mean(calibrations, axis=0)
    return _summary(adversary, q, numbers, level, n_train, (float(mean[0]), float(mean[1])))


def fold_numbers(y: ArrayLike, n_folds: int, random_state: int | np.random.Generator = 0) -> IntArray:
    """A fold for each record, at random, each class spread evenly, however few its records are."""
    classes = np.asarray(y)
    shuffled = np.random.default_rng(random_state).permutation(len(classes))
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    folds = np.empty(len(classes), dtype=np.intp)
    folds[order] = np.arange(len(classes)) % n_folds
    return folds


def _attack(
    adversary: Adversary,
    Z: FloatArray,
    y: IntArray,
    Z_test: FloatArray,
    n_classes: int,
    n_folds: int,
    seed: int,
) -> tuple[FloatArray, tuple[float, float]]:
    """Calibrated P(y|z) for the test codes; the weight of the class frequencies in it and the power.

    A certain and wrong adversary has an infinite cross-entropy, which would hide what it knows; a timid one
    says less than it knows. Its probabilities are raised to a power and mixed with the class frequencies;
    power and weight are those that do best on folds of the training records.
    """
    # Half a record more of each class: one that is missing in training must not cost an infinity.
    counts = np.bincount(y, minlength=n_classes) + 0.5
    frequencies = counts / counts.sum()
    power = weight = 1.0
    if len(y) >= 2 * n_folds:
        folds = fold_numbers(y, n_folds, seed)
        q = np.empty((len(y), n_classes))
        for fold in range(n_folds):
            held = folds == fold
            q[held] = _predict(adversary, Z[~held], y[~held], Z[held], n_classes)
        best = -math.inf
        for candidate in POWERS:
            likelihood = _raise(q, candidate)[np.arange(len(y)), y]
            mixed = (1 - SHRINKAGES) * likelihood[:, None] + SHRINKAGES * frequencies[y][:, None]
            scores = log2_or_zero(mixed).mean(axis=0)
            if scores.max() > best:
                best, power, weight = scores.max(), candidate, float(SHRINKAGES[scores.argmax()])
    q = _predict(adversary, Z, y, Z_test, n_classes)
    return (1 - weight) * _raise(q, power) + weight * frequencies, (weight, power)


def _raise(q: FloatArray, power: float) -> FloatArray:
    """q to a power, by rows scaled back to probabilities."""
    raised = (q / q.max(axis=1, keepdims=True)) ** power
    result: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return result


def _predict(
    adversary: Adversary, Z: FloatArray, y: IntArray, Z_test: FloatArray, n_classes: int
) -> FloatArray:
    """P(y|z) by class number, 0 for classes that were not in the training records."""
    adversary.fit(Z, y)
    part = np.asarray(adversary.predict_proba(Z_test), dtype=np.float64)
    seen = np.unique(y)
    if part.shape != (len(Z_test), len(seen)):
        raise InvalidInputError(
            f"Adversary {adversary.name!r}: predict_proba must give one row a code and one column a class, "
            f"({len(Z_test)}, {len(seen)}); it gave {part.shape}."
        )
    if not ((part >= 0).all() and np.allclose(part.sum(axis=1), 1, atol=1e-6)):
        raise InvalidInputError(
            f"Adversary {adversary.name!r}: the rows of predict_proba must be probabilities that sum to 1."
        )
    q = np.zeros((len(Z_test), n_classes))
    q[:, seen] = part
    return q


def _summary(
    adversary: Adversary,
    q: FloatArray,
    y: IntArray,
    level: float,
    n_train: int,
    calibration: tuple[float, float],
) -> LeakageBound:
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, such as 0.95; it is {level}.")
    n = len(y)
    frequencies = np.bincount(y, minlength=q.shape[1]) / n
    # Their mean is H(Y) − cross-entropy, their spread that of both together.
    terms = log2_or_zero(q[np.arange(n), y]) - log2_or_zero(frequencies[y])
    value = float(terms.mean())
    error = float(terms.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    half = float(stdtrit(n - 1, (1 + level) / 2)) * error if n > 1 else math.inf
    return LeakageBound(
        value,
        error,
        Interval(value - half, value + half, level, "held-out", 0),
        n,
        n_train,
        adversary.name,
        float((q.argmax(axis=1) == y).mean()),
        float(frequencies.max()),
        *calibration,
    )


def _codes(Z: ArrayLike, name: str) -> FloatArray:
    codes = np.asarray(Z, dtype=np.float64)
    if codes.ndim != 2 or not len(codes):
        raise InvalidInputError(
            f"{name} must be a table of codes, one row a record; its shape is {codes.shape}."
        )
    finite = np.isfinite(codes).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"{name}: row {int(np.argmin(finite))} holds a value that is not finite; mend or drop the record."
        )
    return codes


def _labels(y: Sequence[Any] | ArrayLike, n: int, name: str) -> NDArray[Any]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"{name} must hold one class for each of the {n} codes; its shape is {labels.shape}."
        )
    return labels.astype(str) if labels.dtype.kind == "O" else labels
