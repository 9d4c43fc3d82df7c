"""Records of any kind as points, and symbols as records again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray, from_tensor
from ..errors import InvalidInputError
from ..frames import read_frame
from .categories import CategoryColumn, block_scale
from .tables import TableSchema


@dataclass(frozen=True, eq=False)
class ArrayReader:
    """Arrays of numbers: rows, or images of any shape.

    Attributes
    ----------
    shape : of a record
    dtype : of what comes out
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, X: Any) -> ArrayReader:
        values = _as_array(X)
        dtype = values.dtype if values.dtype.kind in "iuf" else np.dtype(np.float64)
        return cls(values.shape[1:], dtype)

    @property
    def n_features(self) -> int:
        return int(np.prod(self.shape))

    def points(self, X: Any) -> FloatArray:
        """(n, d) floats."""
        values = _as_array(X)
        if values.shape[1:] != self.shape:
            raise InvalidInputError(
                f"X has records of shape {values.shape[1:]}; the funnel was fitted on records of shape "
                f"{self.shape}, pass the same."
            )
        flat: FloatArray = values.reshape(len(values), -1).astype(np.float64)
        if not np.isfinite(flat).all():
            row, column = np.argwhere(~np.isfinite(flat))[0]
            raise InvalidInputError(
                f"X: row {row} has {'a missing' if np.isnan(flat[row, column]) else 'an infinite'} number in "
                f"column {column}; fill it in, or drop the record."
            )
        return flat

    def records(self, points: FloatArray) -> NDArray[Any]:
        """Points in the shape and type of the records."""
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            points = np.clip(np.rint(points), limits.min, limits.max)
        return points.reshape(len(points), *self.shape).astype(self.dtype)

    def names(self) -> list[str]:
        return [f"x{i}" for i in range(self.n_features)]

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "array", "shape": list(self.shape), "dtype": self.dtype.str}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ArrayReader:
        dtype = np.dtype(str(values["dtype"]))
        if dtype.kind not in "iuf":
            raise ValueError("the type of the records is no number.")
        return cls(tuple(int(n) for n in values["shape"]), dtype)


@dataclass(frozen=True, eq=False)
class FrameReader:
    """Frames of pandas, polars or pyarrow, with columns of any kind.

    Attributes
    ----------
    schema : TableSchema
        Of the columns that make points.
    """

    schema: TableSchema

    @property
    def n_features(self) -> int:
        return len(self.schema.point_columns)

    def points(self, X: Any) -> FloatArray:
        """(n, d) floats: numbers with variance about 1, and categories as 0 and 1.

        A category that is nearly always the same then counts less than one that divides people.
        """
        return self.schema.to_points(X) * self._weights

    @cached_property
    def _weights(self) -> FloatArray:
        scales = [
            1 / block_scale(column.shares) if isinstance(column, CategoryColumn) else 1.0
            for column in self.schema.columns
        ]
        return np.repeat(scales, [column.width for column in self.schema.columns])

    def names(self) -> list[str]:
        return list(self.schema.point_columns)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "frame", "schema": self.schema.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FrameReader:
        return cls(TableSchema.from_dict(values["schema"]))


Reader = ArrayReader | FrameReader


def _as_array(X: Any) -> NDArray[Any]:
    X = from_tensor(X)
    if hasattr(X, "toarray"):
        raise InvalidInputError("X is a sparse matrix, and sparse input is not supported; pass X.toarray().")
    values = np.asarray(X)
    if values.dtype.kind not in "biuf" or values.ndim < 2 or not values.size:
        raise InvalidInputError(
            "X must be a frame, or an array of numbers with one row a record; it is an array of "
            f"{values.dtype} of shape {values.shape}."
        )
    return values


def is_frame(X: Any) -> bool:
    """Whether X has named columns."""
    if isinstance(X, np.ndarray) or hasattr(X, "collect_schema"):
        return not isinstance(X, np.ndarray)  # asking a lazy frame for its columns would warn
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    return columns is not None and not callable(columns)


def n_records(X: Any) -> int:
    return len(read_frame(X, "X")) if is_frame(X) else len(_as_array(X))


def taken(X: Any, rows: IntArray) -> Any:
    """Some of the records, of the same kind."""
    return read_frame(X, "X")[rows].to_native() if is_frame(X) else _as_array(X)[rows]
