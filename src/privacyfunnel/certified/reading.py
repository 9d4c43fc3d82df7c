"""Records of any kind as points, and points as records again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray, IntArray
from ..attributes import Attribute, read_attributes
from ..errors import InvalidInputError, shortened
from .material import Material

#: Private classes of fewer records cannot be spoken of.
LEAST_IN_CLASS = 10
#: Private classes, at most.
MOST_CLASSES = 100


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
    def from_dict(cls, values: Any) -> ArrayReader:
        dtype = np.dtype(str(values["dtype"]))
        if dtype.kind not in "iuf":
            raise ValueError("the type of the records is no number.")
        return cls(tuple(int(n) for n in values["shape"]), dtype)


def _as_array(X: Any) -> NDArray[Any]:
    if hasattr(X, "detach"):
        X = X.detach().cpu().numpy()
    values = np.asarray(X)
    if values.dtype.kind not in "biuf" or values.ndim < 2 or not values.size:
        raise InvalidInputError(
            "X must be a frame, or an array of numbers with one row a record; it is an array of "
            f"{values.dtype} of shape {values.shape}."
        )
    return values


def is_frame(X: Any) -> bool:
    """Whether X has named columns."""
    return not isinstance(X, np.ndarray) and (
        hasattr(X, "column_names") or (hasattr(X, "columns") and not callable(X.columns))
    )


def n_records(X: Any) -> int:
    if is_frame(X):
        import narwhals as nw

        return len(nw.from_native(X, eager_only=True))
    return len(_as_array(X))


def taken(X: Any, rows: IntArray) -> Any:
    """Some of the records, of the same kind."""
    if is_frame(X):
        import narwhals as nw

        return nw.from_native(X, eager_only=True)[rows].to_native()
    return _as_array(X)[rows]


@dataclass(frozen=True, eq=False)
class Private:
    """What is to be protected: one attribute, or the combination of several.

    Attributes
    ----------
    names : of the attributes
    labels : of the combinations that occur; tuples where there are several attributes
    y : (n,) array
        The combination of each record.
    notes : what was done to numbers
    """

    names: tuple[str, ...]
    labels: tuple[Hashable, ...]
    y: IntArray
    notes: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    @classmethod
    def read(cls, given: Any, n: int) -> Private:
        attributes = read_attributes(given, n, name="private")
        if not attributes:
            raise InvalidInputError(
                "fit: name what is private: private='column' of a frame, or a value for each record.",
                names=("private",),
            )
        for one in attributes:
            _check_classes(one)
        names = tuple(one.name for one in attributes)
        notes = tuple(_said(one, "private") for one in attributes if one.is_numeric)
        if len(attributes) == 1:
            return cls(names, attributes[0].classes, attributes[0].y, notes)
        code = np.zeros(n, dtype=np.int64)
        for one in attributes:
            code = code * one.n_classes + one.y
        found, y = np.unique(code, return_inverse=True)
        labels = []
        for value in found.tolist():
            parts: list[Hashable] = []
            for one in reversed(attributes):
                value, number = divmod(value, one.n_classes)
                parts.append(one.classes[number])
            labels.append(tuple(reversed(parts)))
        combined = cls(names, tuple(labels), y.astype(np.intp), notes)
        _check_rare(" × ".join(names), combined.labels, combined.y)
        return combined


def read_task(given: Any, n: int) -> Attribute | None:
    """The task, if there is one: classes, or numbers cut into classes of equal size."""
    found = read_attributes(given, n, name="task", what="task")
    if len(found) > 1:
        raise InvalidInputError(
            f"task must be one column; it has {', '.join(one.name for one in found)}. Combine them first.",
            names=("task",),
        )
    if not found:
        return None
    if found[0].n_classes < 2 or found[0].n_classes > MOST_CLASSES:
        raise InvalidInputError(
            f"task {found[0].name} has {found[0].n_classes:,} different values; a task has 2 to "
            f"{MOST_CLASSES} classes, or numbers that are not all whole.",
            names=("task",),
        )
    return found[0]


def _said(one: Attribute, what: str) -> str:
    return (
        f"{what} {one.name} is a number: what is protected is which of {one.n_classes} classes of equal size "
        f"it is in ({', '.join(map(str, one.classes))}), not finer differences."
    )


def _check_classes(one: Attribute) -> None:
    if one.n_classes < 2:
        raise InvalidInputError(
            f"private {one.name} is the same for every record ({shortened(one.classes[0])}); there is "
            "nothing to protect.",
            names=("private",),
        )
    if one.n_classes == len(one.y):
        raise InvalidInputError(
            f"private {one.name} is different for every record, like a name or a number of a person; leave "
            "such a column out of the release, or name a property that people share.",
            names=("private",),
        )
    _check_rare(one.name, one.classes, one.y)


def _check_rare(name: str, labels: Sequence[Hashable], y: IntArray) -> None:
    counts = np.bincount(y, minlength=len(labels))
    if len(labels) > MOST_CLASSES:
        raise InvalidInputError(
            f"private {name} has {len(labels):,} different values; at most {MOST_CLASSES} can be protected, "
            "so group them.",
            names=("private",),
        )
    rare = int(counts.argmin())
    fewest = int(counts[rare])
    if fewest < LEAST_IN_CLASS:
        raise InvalidInputError(
            f"private {name}: the value {shortened(labels[rare])} has {fewest} record"
            f"{'s' * (fewest != 1)}, too few to say anything about; group private values so that each "
            f"has {LEAST_IN_CLASS} or more.",
            names=("private",),
        )


@dataclass(frozen=True, eq=False)
class Read:
    """What fit was given, read and checked.

    Attributes
    ----------
    X : array or frame
    private : Private
    task : Attribute, optional
    groups : (n,) array, optional
        Who a record belongs to.
    dropped : names of the columns of X that are private, the task or the groups
    """

    X: Any
    n: int
    private: Private
    task: Attribute | None
    groups: IntArray | None
    dropped: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, private: Any, task: Any, groups: Any) -> Read:
        n = n_records(X)
        owner = read_attributes(groups, n, name="groups", what="groups") if groups is not None else ()
        return cls(X, n, Private.read(private, n), read_task(task, n), owner[0].y if owner else None)

    @property
    def notes(self) -> tuple[str, ...]:
        if self.task is None or not self.task.is_numeric:
            return self.private.notes
        return (*self.private.notes, f"task {self.task.name} is a number, cut into classes of equal size.")

    def reader(self, rows: IntArray) -> ArrayReader:
        """How records become points; what depends on the data is learned from these rows."""
        return ArrayReader.of(self.X)

    def material(self, reader: ArrayReader, rows: IntArray) -> Material:
        t = None if self.task is None else self.task.y[rows]
        return Material(reader.points(taken(self.X, rows)), self.private.y[rows], t)
