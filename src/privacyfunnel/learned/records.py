"""Records as the learned estimators take them: arrays, frames, tensors, stacks of images, as one table."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from ..errors import InvalidInputError
from .families import Likelihood
from .inputs import as_array, column_names


def read_records(estimator: Any, X: Any, *, reset: bool) -> Tensor:
    """X as a float32 tensor with a row a record; with `reset` the estimator takes its features from it."""
    X = as_array(X)
    if isinstance(X, np.ndarray) and X.ndim > 2:
        if reset:
            estimator.record_shape_ = X.shape[1:]
        elif estimator.record_shape_ and X.shape[1:] != tuple(estimator.record_shape_):
            raise InvalidInputError(
                f"a record of X has the shape {X.shape[1:]}; fit saw {tuple(estimator.record_shape_)}, pass "
                "such records."
            )
        X = X.reshape(len(X), -1)
    elif reset:
        estimator.record_shape_ = None
    _require_numbers(X)
    try:
        table = validate_data(
            estimator, X, dtype=np.float32, reset=reset, ensure_min_samples=2 if reset else 1
        )
    except ValueError as error:
        raise (_where(X) or error) from None
    return as_tensor(table)


def as_tensor(table: NDArray[np.float32]) -> Tensor:
    """The same memory, unless it is read-only (pandas' often is): torch has no such tensors."""
    return torch.from_numpy(np.require(table, requirements=["C", "W"]))


def check_range(x: Tensor, family: Likelihood) -> None:
    """Refuse records that the likelihood has no density for."""
    low, high = float(x.min()), float(x.max())
    if low < family.lowest or high > family.highest:
        raise InvalidInputError(
            f"X must lie between {family.lowest:g} and {family.highest:g} for "
            f"likelihood={family.name!r}; it lies between {low:g} and {high:g}. "
            "Scale it, or choose another likelihood."
        )


def check_square(shape: tuple[int, ...] | None) -> None:
    """Refuse images, where their shape is known, that a convolution over squares in grey would scramble."""
    sides = [n for n in shape or () if n != 1]
    if shape is not None and (len(sides) != 2 or sides[0] != sides[1]):
        raise InvalidInputError(
            f"architecture='conv' needs square single-channel images; a record has the shape {tuple(shape)}. "
            "Use architecture='mlp'."
        )


def _require_numbers(X: Any) -> None:
    """Refuse a frame's column of texts, categories or dates by its name."""
    for name, column in _columns(X):
        kind = column.dtype.kind
        texts = kind == "O" and any(isinstance(value, str) for value in column)
        if texts or kind not in "biufO":
            what = "texts" if texts or kind in "UT" else f"values of type {column.dtype}"
            raise InvalidInputError(
                f"X: could not convert column {name!r} to numbers, it holds {what}; encode it first, as "
                "datasets.adult_records shows, or leave it out."
            )


def _where(X: Any) -> InvalidInputError | None:
    """The first value that is missing or infinite, by row and column."""
    names = [name for name, _ in _columns(X)]
    try:
        table = np.column_stack([column for _, column in _columns(X)]) if names else np.asarray(X)
        table = table if table.dtype.kind == "c" else table.astype(np.float64)
    except (TypeError, ValueError):
        return None
    if table.dtype.kind == "c" or table.ndim != 2 or np.isfinite(table).all():
        return None
    row, column = (int(at) for at in np.argwhere(~np.isfinite(table))[0])
    what = "NaN (a missing value)" if np.isnan(table[row, column]) else "infinity"
    place = repr(names[column]) if names else str(column)
    return InvalidInputError(
        f"Input X contains {what} in row {row}, column {place}; fill it in, or drop the record."
    )


def _columns(X: Any) -> list[tuple[Any, NDArray[Any]]]:
    """A frame's columns by name; none of anything else."""
    return [(name, np.asarray(X[name])) for name in column_names(X, "X") or []]
