"""The leakage that an adversary proves.

For every Q(y|z), whatever it was trained on,

    I(Z;Y) ≥ H(Y) − E[−log2 Q(Y|Z)],

so what an adversary finds on held-out records is a lower bound: a stronger one may find more, none can make
it less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import InvalidInputError
from ...information import log2_or_zero
from ...uncertainty import Interval
from ..intervals import mean_interval
from .crossfit import (
    Calibration,
    calibrated,
    calibration_of,
    check_probabilities,
    cross_calibrated,
    fold_numbers,
    predict,
)
from .protocol import Adversary, CrossPredictor, FloatArray, IntArray


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


def cross_fitted(
    adversary: Adversary, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int
) -> FloatArray:
    """P(y|z) for every record, from an adversary that was trained on the other folds."""
    if isinstance(adversary, CrossPredictor):
        q = adversary.cross_predict(Z, y, folds, n_classes)
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
    if not 0 < level < 1:
        raise InvalidInputError(f"level must be between 0 and 1, such as 0.95; it is {level}.")
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


#: Largest number that every adversary can square, some in float32; 64-bit ids are below it.
LARGEST = 1e19
#: Above this, float64 has no whole numbers of its own any more.
MOST_WHOLE = 2**53


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
