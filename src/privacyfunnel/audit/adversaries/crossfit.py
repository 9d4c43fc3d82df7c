"""Cross-fitting: every record is judged by an adversary that has not seen its class."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InvalidInputError
from ...information import log2_or_zero
from .protocol import Adversary, FloatArray, IntArray

# Weights of the class frequencies that calibration chooses from; 1 means that z is not looked at. The least
# one bounds what a single record can cost an adversary that was certain and wrong.
SHRINKAGES = np.geomspace(1e-4, 1.0, 41)
# Powers of the probabilities to choose from: above 1 for an adversary that is too timid.
POWERS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)

Calibration = tuple[float, float]  # weight of the class frequencies, power


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
