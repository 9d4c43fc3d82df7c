"""What no adversary can be judged on: classes and symbols of a handful of records."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..information import entropy
from .context import Context
from .findings import Finding
from .inputs import Attribute
from .rounding import LEAST_RECORDS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

SOURCE = "too few records"


def class_gaps(context: Context, attribute: Attribute, judged: IntArray | None = None) -> list[Finding]:
    """What rare classes add to H(Y), which may all leak, and their records, which may all be guessed.

    With Y' the attribute whose rare classes are one, I(Z;Y) = I(Z;Y') + I(Z;Y|Y') ≤ I(Z;Y') + H(Y) − H(Y').
    `judged` are the classes of the records that adversaries were tried on, where that was not all of them.
    """
    counts = np.bincount(attribute.y, minlength=attribute.n_classes)
    seen = counts if judged is None else np.bincount(judged, minlength=attribute.n_classes)
    rare = (counts > 0) & (seen < LEAST_RECORDS)
    if not rare.any() or (counts > 0).sum() < 2:
        return []
    bits = entropy(counts / counts.sum()) - entropy(merged(counts, rare) / counts.sum())
    return _gaps(context, attribute, int(counts[rare].sum()), bits, int(rare.sum()), "class", "classes")


def symbol_gaps(context: Context, attribute: Attribute, symbols: IntArray) -> list[Finding]:
    """What rare symbols can tell: with all of them taken for one, their records could still be told apart.

    With Z' the release whose rare symbols are one, I(Z;Y) ≤ I(Z';Y) + P(rare) · H(Y|rare).
    """
    counts = np.bincount(symbols)
    rare = (counts > 0) & (counts < LEAST_RECORDS)
    classes = np.bincount(attribute.y[rare[symbols]], minlength=attribute.n_classes)
    records = int(classes.sum())
    if not records or attribute.n_classes < 2:
        return []
    bits = records / len(symbols) * entropy(classes / records)
    return _gaps(context, attribute, records, bits, int(rare.sum()), "symbol", "symbols")


def merged(counts: IntArray, rare: NDArray[np.bool_]) -> IntArray:
    """Class counts with the rare classes as one, and the next smallest too until that one can be judged."""
    one, rest = int(counts[rare].sum()), np.sort(counts[~rare & (counts > 0)])
    taken = 0
    while one < LEAST_RECORDS and taken < len(rest):
        one += int(rest[taken])
        taken += 1
    return np.array([one, *rest[taken:]], dtype=np.intp)


def _gaps(
    context: Context, attribute: Attribute, records: int, bits: float, n: int, one: str, many: str
) -> list[Finding]:
    total = len(attribute.y)
    have = f"{n:,} {many} have" if n > 1 else f"{n} {one} has"
    # No count of their records: whoever knows all of them but one would know the last one.
    notes = f"{have} fewer than {LEAST_RECORDS} records, too few to judge."
    values = ("unmeasured success", records / total, "share"), ("unmeasured leakage", max(bits, 0.0), "bits")
    return [
        context.finding(quantity, value, "upper bound", unit, f"{SOURCE}: {many}", attribute, notes=notes)
        for quantity, value, unit in values
    ]
