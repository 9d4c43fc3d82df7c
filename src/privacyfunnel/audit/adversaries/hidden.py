"""Adversaries on what nobody meant to release: last digits and bits of the codes, and the order of the rows.

Smooth adversaries scale codes first, so that a class written into the twelfth decimal, the last bit, the sign
of a zero or the parity of an id is invisible to them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .crossfit import predict
from .protocol import FloatArray, IntArray
from .supervised import MOST_BOOSTED_CLASSES, boosted_trees, randomised_trees

Mask = NDArray[np.bool_]

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
        trees = (boosted_trees if n_classes <= MOST_BOOSTED_CLASSES else randomised_trees)(self.random_state)
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
        trees = (boosted_trees if n_classes <= MOST_BOOSTED_CLASSES else randomised_trees)(self.random_state)
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


def _most_telling(features: FloatArray, y: IntArray, held: Mask, n_classes: int) -> FloatArray:
    """The features that tell most about the classes of the records that are not held out, each by itself."""
    if features.shape[1] <= MOST_FEATURES:
        return features
    known, classes = features[~held], y[~held]
    scores = [_told(column, classes, n_classes) for column in known.T]
    chosen = np.sort(np.argsort(scores)[::-1][:MOST_FEATURES])
    result: FloatArray = features[:, chosen]
    return result


def _told(column: FloatArray, y: IntArray, n_classes: int) -> float:
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


def _nearby(rows: FloatArray, y: IntArray, known: Mask) -> FloatArray:
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
