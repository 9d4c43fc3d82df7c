"""Tables P(Z|x) as plain arrays: validation, posteriors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray
from .errors import InvalidInputError

SUM_TOLERANCE = 1e-9


def as_table(
    values: ArrayLike, name: str, shape: str, error: type[InvalidInputError] = InvalidInputError
) -> FloatArray:
    """A copy of `values` as a table of finite numbers, none negative; `shape` says in words what it is."""
    try:
        table = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise error(f"{name} must be a table of numbers {shape}.") from None
    if table.ndim != 2 or table.size == 0:
        raise error(f"{name} must be a non-empty table {shape}; its shape is {table.shape}.")
    # min() and max() see NaN and infinities without a temporary table.
    if not (table.min() >= 0 and table.max() < np.inf):
        row, column = np.argwhere(~np.isfinite(table) | (table < 0))[0]
        raise error(
            f"{name} must be finite and not negative; entry [{row}, {column}] is {table[row, column]}: "
            "correct it, or pass 0 for what cannot occur."
        )
    return table


def as_channel(
    values: ArrayLike, name: str, letters: str = "xz", error: type[InvalidInputError] = InvalidInputError
) -> FloatArray:
    """A copy of `values` as a table whose rows are distributions: for "xz" it is P(Z|x), (n_x, n_z)."""
    given, drawn = letters[0], letters[1]
    table = as_table(values, name, f"(n_{given}, n_{drawn})", error)
    sums = table.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1.0)))
    if abs(sums[worst] - 1.0) > SUM_TOLERANCE:
        raise error(
            f"Each row of {name} must sum to 1 (tolerance {SUM_TOLERANCE:g}); row {worst} sums to "
            f"{sums[worst]:.6g}. Pass P({drawn.upper()}|{given}) as rows (axis 0 is the condition)."
        )
    return table


def posterior(p_x: FloatArray, p_z_given_x: FloatArray) -> FloatArray:
    """P(X|z) as rows (n_z, n_x); a row of zeros for a symbol that is never released.

    Column by column scaling keeps the ratios of probabilities whose products would underflow.
    """
    rows = p_z_given_x.T * (p_x > 0)
    rows = rows / _divisor(rows.max(axis=1, keepdims=True))
    rows = rows * p_x
    rows = rows / _divisor(rows.max(axis=1, keepdims=True))
    result: FloatArray = rows / _divisor(rows.sum(axis=1, keepdims=True))
    return result


def conditional(p_ab: FloatArray) -> FloatArray:
    """P(B|a) as rows (n_a, n_b); a row of zeros for an a of probability 0."""
    rows = p_ab / _divisor(p_ab.max(axis=1, keepdims=True))
    result: FloatArray = rows / _divisor(rows.sum(axis=1, keepdims=True))
    return result


def _divisor(values: FloatArray) -> FloatArray:
    """The values with 1 for 0, to divide rows of zeros by."""
    return np.where(values > 0, values, 1.0)


def to_one(p_z: FloatArray) -> FloatArray:
    """A product of distributions with its sum kept inside the tolerance."""
    total = float(p_z.sum())
    return p_z if abs(total - 1.0) <= 1e-12 else p_z / total


def as_distribution(values: ArrayLike | None, n: int, name: str, of: str) -> FloatArray | None:
    """The n probabilities as an array, checked; None stays None."""
    if values is None:
        return None
    table = as_channel(np.asarray(values)[None], f"TableMechanism: {name}")
    if table.shape[1] != n:
        raise InvalidInputError(
            f"TableMechanism: {name} must have {n} entries, one a {of}; it has {table.shape[1]}."
        )
    table.setflags(write=False)
    result: FloatArray = table[0]
    return result


def as_p_x(values: ArrayLike, n_x: int, name: str) -> FloatArray:
    """P(X) of a caller as an array, checked."""
    p_x = np.asarray(values, dtype=np.float64)
    if p_x.shape != (n_x,):
        raise InvalidInputError(
            f"{name}: p_x must have {n_x} entries, one a letter; its shape is {p_x.shape}."
        )
    if not (np.all(p_x >= 0) and abs(float(p_x.sum()) - 1.0) <= SUM_TOLERANCE):
        raise InvalidInputError(f"{name}: p_x must be 0 or more and sum to 1; use joint.p_x.")
    return p_x
