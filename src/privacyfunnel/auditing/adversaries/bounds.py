"""The leakage that an adversary proves.

For every Q(y|z), whatever it was trained on,

    I(Z;Y) ≥ H(Y) − E[−log2 Q(Y|Z)],

so what an adversary finds on held-out records is a lower bound: a stronger one may find more, none can make
it less.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...arrays import FloatArray, IntArray
from ...attributes import LARGEST, MOST_WHOLE, Attribute
from ...checks import confidence_level
from ...errors import InvalidInputError
from ...information import log2_or_zero
from ...measured import Interval, Number
from ..findings import mean_interval
from .protocol import Adversary, CrossPredictor

# Weights of the class frequencies that calibration chooses from; 1 means that z is not looked at. The least
# one bounds what a single record can cost an adversary that was certain and wrong.
SHRINKAGES = np.geomspace(1e-4, 1.0, 41)
# Powers of the probabilities to choose from: above 1 for an adversary that is too timid.
POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)

Calibration = tuple[float, float]  # weight of the class frequencies, power
#: Records that the check of honesty uses at most, and how unlikely its finding must be.
MOST_RECORDS, RARE = 600, 1e-6
#: Standard errors of a one-sided 95 % end.
ONE_SIDED = 1.64
#: Fresh records that are enough to learn from alone.
MANY_FRESH = 1_500


@dataclass(frozen=True)
class LeakageBound(Number):
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

    def upper_end(self, z: float = ONE_SIDED) -> float:
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
    Z_fit, Z_held = as_codes(Z_train, "Z_train"), as_codes(Z_test, "Z_test")
    if Z_fit.shape[1] != Z_held.shape[1]:
        raise InvalidInputError(
            f"Z_train has {Z_fit.shape[1]} components and Z_test {Z_held.shape[1]}; both must come from one "
            "encoder."
        )
    first, second = as_labels(y_train, len(Z_fit), "y_train"), as_labels(y_test, len(Z_held), "y_test")
    classes, y = np.unique(np.concatenate([first, second]), return_inverse=True)
    y_fit, y_held = y[: len(first)], y[len(first) :]
    calibration = (1.0, 1.0)
    if len(y_fit) >= 2 * n_folds:
        folds = fold_numbers(y_fit, n_folds, random_state)
        calibration = calibration_of(cross_fitted(adversary, Z_fit, y_fit, folds, len(classes)), y_fit)
    q = calibrated(predict(adversary, Z_fit, y_fit, Z_held, len(classes)), y_fit, calibration)
    return bound_of(adversary.name, q, y_held, level, len(Z_fit), calibration)


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
    codes = as_codes(Z, "Z")
    if n_folds < 2 or len(codes) < n_folds:
        raise InvalidInputError(
            f"n_folds must be at least 2 and at most the number of records; it is {n_folds} for "
            f"{len(codes)} records."
        )
    classes, numbers = np.unique(as_labels(y, len(codes), "y"), return_inverse=True)
    folds = fold_numbers(numbers, n_folds, random_state)
    q, calibration = cross_calibrated(
        cross_fitted(adversary, codes, numbers, folds, len(classes)), numbers, folds
    )
    n_train = len(codes) - math.ceil(len(codes) / n_folds)
    return bound_of(adversary.name, q, numbers, level, n_train, calibration)


def strongest_bound(
    adversaries: Iterable[Adversary],
    known: tuple[ArrayLike, ArrayLike],
    fresh: tuple[ArrayLike, ArrayLike],
    apart: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    z: float = ONE_SIDED,
    n_folds: int = 2,
) -> LeakageBound:
    """What the strongest of some adversaries proves about new codes: the bound with the highest upper end.

    They learn from the codes of the `known` records, those that trained the encoder among them: a few hundred
    records alone teach so little that an adversary finds a tenth of what is there. Where the fresh records
    are many, each also learns from records like these alone, because codes of those that trained the encoder
    tell less: from `apart` where it is given, else by cross-fitting.

    Parameters
    ----------
    adversaries : of the `Adversary` protocol
    known, fresh, apart : pairs of codes (n, d) and classes (n,)
        Every bound is measured on the fresh records.
    z : float
        Standard errors of the upper end: 1.64 for a one-sided 95 %.
    """
    many = len(np.asarray(fresh[1])) >= MANY_FRESH
    bounds = []
    for one in adversaries:
        bounds.append(leakage_lower_bound(one, *known, *fresh, n_folds=n_folds))
        if many and apart is None:
            bounds.append(cross_fitted_bound(one, *fresh, n_folds=n_folds))
        elif many and apart is not None:
            bounds.append(leakage_lower_bound(one, *apart, *fresh, n_folds=n_folds))
    return max(bounds, key=lambda bound: bound.upper_end(z))


def cross_fitted(
    adversary: Adversary, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int
) -> FloatArray:
    """P(y|z) for every record, from an adversary that was trained on the other folds."""
    if isinstance(adversary, CrossPredictor):
        q = np.asarray(adversary.cross_predict(Z, y, folds, n_classes), dtype=np.float64)
        check_probabilities(adversary, q, (len(Z), n_classes))
        return q
    q = np.empty((len(Z), n_classes))
    for fold in np.unique(folds):
        held = folds == fold
        q[held] = predict(adversary, Z[~held], y[~held], Z[held], n_classes)
    return q


def bound_of(
    name: str,
    q: FloatArray,
    y: IntArray,
    level: float,
    n_train: int,
    calibration: Calibration,
) -> LeakageBound:
    """The bound that calibrated held-out probabilities q (n, n_classes) of classes y prove."""
    confidence_level("level", level)
    n = len(y)
    shares = np.bincount(y, minlength=q.shape[1]) / n
    # Their mean is H(Y) − cross-entropy, their spread that of both together.
    terms = log2_or_zero(q[np.arange(n), y]) - log2_or_zero(shares[y])
    value = float(terms.mean())
    error = float(terms.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return LeakageBound(
        value,
        error,
        Interval(*mean_interval(terms, level), level, "held-out", 0),
        n,
        n_train,
        name,
        float((q.argmax(axis=1) == y).mean()),
        float(shares.max()),
        *calibration,
    )


def as_codes(Z: ArrayLike, name: str) -> FloatArray:
    """Codes as a table of finite numbers, one row a record."""
    given = np.asarray(Z)
    codes = np.asarray(given, dtype=np.float64)
    if codes.ndim != 2 or not len(codes):
        raise InvalidInputError(
            f"{name} must be a table of codes, one row a record; its shape is {codes.shape}."
        )
    finite = np.isfinite(codes).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"{name}: row {int(np.argmin(finite))} holds a value that is not finite; mend or drop the record."
        )
    large = np.abs(codes) > LARGEST
    if large.any():
        row, column = (int(part[0]) for part in np.nonzero(large))
        raise InvalidInputError(
            f"{name}: row {row}, column {column} holds {codes[row, column]:g}, beyond ±{LARGEST:g}; release "
            "the column in another unit."
        )
    if given.itemsize > 8 or (given.dtype.kind in "iu" and np.abs(codes).max(initial=0) >= MOST_WHOLE):
        _check_same(codes, given, name)
    return codes


def _check_same(codes: FloatArray, given: NDArray[Any], name: str) -> None:
    """Digits that 64-bit numbers cannot hold would be released and seen by no adversary."""
    # Python compares a float with a whole number exactly; NumPy rounds the whole number first.
    exact = object if given.dtype.kind in "iu" else given.dtype
    same = np.asarray(codes.astype(exact) == given.astype(exact), dtype=bool)
    if not same.all():
        row, column = (int(part[0]) for part in np.nonzero(~same))
        raise InvalidInputError(
            f"{name}: row {row}, column {column} holds {given[row, column]}, which has more digits than a "
            "64-bit number; release fewer digits, or symbols."
        )


def as_labels(y: Sequence[Any] | ArrayLike, n: int, name: str) -> NDArray[Any]:
    """Classes as an array that can be sorted, one a record."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise InvalidInputError(
            f"{name} must hold one class for each of the {n} codes; its shape is {labels.shape}."
        )
    return labels.astype(str) if labels.dtype.kind == "O" else labels


def fold_numbers(y: ArrayLike, n_folds: int, random_state: int | np.random.Generator = 0) -> IntArray:
    """A fold for each record, at random, each class spread evenly, however few its records are."""
    classes = np.asarray(y)
    shuffled = np.random.default_rng(random_state).permutation(len(classes))
    order = shuffled[np.argsort(classes[shuffled], kind="stable")]
    folds = np.empty(len(classes), dtype=np.intp)
    folds[order] = np.arange(len(classes)) % n_folds
    return folds


def predict(
    adversary: Adversary, Z: FloatArray, y: IntArray, Z_test: FloatArray, n_classes: int
) -> FloatArray:
    """P(y|z) by class number, 0 for classes that were not in the training records."""
    adversary.fit(Z, y)
    part = np.asarray(adversary.predict_proba(Z_test), dtype=np.float64)
    seen = np.unique(y)
    check_probabilities(adversary, part, (len(Z_test), len(seen)))
    q = np.zeros((len(Z_test), n_classes))
    q[:, seen] = part
    return q


def check_probabilities(adversary: Any, q: FloatArray, shape: tuple[int, int]) -> None:
    """That an adversary's answer is one distribution a code, or InvalidInputError."""
    if q.shape != shape:
        raise InvalidInputError(
            f"Adversary {adversary.name!r}: predict_proba must give one row a code and one column a class, "
            f"{shape}; it gave {q.shape}."
        )
    if not ((q >= 0).all() and np.allclose(q.sum(axis=1), 1, atol=1e-6)):
        raise InvalidInputError(
            f"Adversary {adversary.name!r}: the rows of predict_proba must be probabilities that sum to 1."
        )


def cross_calibrated(q: FloatArray, y: IntArray, folds: IntArray) -> tuple[FloatArray, Calibration]:
    """Cross-fitted P(y|z), each fold calibrated on the others; the mean calibration.

    A certain and wrong adversary has an infinite cross-entropy, which would hide what it knows; a timid one
    says less than it knows. Its probabilities are raised to a power and mixed with the class frequencies;
    power and weight are those that do best on the other folds, whose predictions are held-out ones too.
    """
    result = np.empty_like(q)
    chosen = []
    likelihoods = _likelihoods(q, y)
    for fold in np.unique(folds):
        held = folds == fold
        calibration = best_calibration(likelihoods[:, ~held], y[~held], q.shape[1])
        result[held] = calibrated(q[held], y[~held], calibration)
        chosen.append(calibration)
    weight, power = np.mean(chosen, axis=0)
    return result, (float(weight), float(power))


def calibration_of(q: FloatArray, y: IntArray) -> Calibration:
    """The calibration that does best for held-out predictions q of y."""
    return best_calibration(_likelihoods(q, y), y, q.shape[1])


def best_calibration(likelihoods: FloatArray, y: IntArray, n_classes: int) -> Calibration:
    """The weight and power that do best, from Q(y_i|z_i) raised to each of POWERS (rows)."""
    if not len(y):
        return 1.0, 1.0
    prior = frequencies(y, n_classes)[y][:, None]
    best, weight, power = -math.inf, 1.0, 1.0
    for candidate, likelihood in zip(POWERS, likelihoods, strict=True):
        mixed = (1 - SHRINKAGES) * likelihood[:, None] + SHRINKAGES * prior
        scores = log2_or_zero(mixed).mean(axis=0)
        if scores.max() > best:
            best, weight, power = float(scores.max()), float(SHRINKAGES[scores.argmax()]), candidate
    return weight, power


def calibrated(q: FloatArray, y_known: IntArray, calibration: Calibration) -> FloatArray:
    """q raised to the power and mixed with the class frequencies of the known records."""
    weight, power = calibration
    return (1 - weight) * _raised(q, power) + weight * frequencies(y_known, q.shape[1])


def frequencies(y: IntArray, n_classes: int) -> FloatArray:
    """Class frequencies with half a record more of each class: a missing one must not cost an infinity."""
    counts = np.bincount(y, minlength=n_classes) + 0.5
    result: FloatArray = counts / counts.sum()
    return result


def _raised(q: FloatArray, power: float) -> FloatArray:
    """q to a power, by rows scaled back to probabilities."""
    raised = (q / q.max(axis=1, keepdims=True)) ** power
    result: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return result


def _likelihoods(q: FloatArray, y: IntArray) -> FloatArray:
    """Q(y_i|z_i) after each of POWERS, (powers, n)."""
    rows = np.arange(len(y))
    return np.stack([_raised(q, power)[rows, y] for power in POWERS])


def reseeded(adversary: Any, seed: int) -> Any:
    """A copy to fit, whose estimator, if it is unseeded, takes this seed."""
    fresh = copy.deepcopy(adversary)
    estimator = getattr(fresh, "estimator", None)
    if estimator is not None:
        unseeded = {
            key: seed
            for key, value in estimator.get_params().items()
            if key.split("__")[-1] == "random_state" and value is None
        }
        estimator.set_params(**unseeded)
    return fresh


def check_honest(adversary: Any, Z: FloatArray, attribute: Attribute, seed: int) -> None:
    """Refuse an adversary that guesses classes which were dealt out at random, or that ignores its training.

    It is trained on codes with reordered classes. Whoever then guesses the reordered class of held-out
    records has looked at them; whoever guesses their true class knew it beforehand.
    """
    from scipy.stats import binom

    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(len(Z))[:MOST_RECORDS]
    truth = np.unique(attribute.y[rows], return_inverse=True)[1].astype(np.intp)
    if len(rows) < 20 or truth.max() == 0:
        return
    dealt = rng.permutation(truth)
    folds = fold_numbers(dealt, 2, rng)
    n_classes = int(truth.max()) + 1
    guesses = cross_fitted(reseeded(adversary, seed % 2**31), Z[rows], dealt, folds, n_classes).argmax(axis=1)
    chance = float(np.bincount(truth).max()) / len(rows)
    for classes, what in (
        (dealt, "guesses classes that were dealt out at random, so it has seen the records it is judged on"),
        (truth, "guesses true classes after training on random ones, so it knew these records beforehand"),
    ):
        hits = int((guesses == classes).sum())
        if binom.sf(hits - 1, len(rows), chance) < RARE:
            raise InvalidInputError(
                f"Adversary {adversary.name!r} {what}: {hits} of {len(rows)} right, {chance:.0%} by chance. "
                "Let fit start anew, from what it is given alone."
            )
