"""What the audit is given, as arrays: records, codes, private attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..labels import canonical_label
from .adversaries.bounds import LARGEST, MOST_WHOLE, as_codes
from .rounding import LEAST_RECORDS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: More symbols than this are taken for numbers, and so are numbers that seldom come again: at least this
#: share of the records must have one that occurs so many times.
MOST_SYMBOLS = 1000
REPEATED_SHARE, REPEATED_TIMES = 0.99, 10
#: Wider records are attacked through this many principal components.
WIDE, COMPONENTS = 256, 64
#: Classes that a numeric attribute is cut into, of equal size, for success and bits.
N_BINS = 8


@dataclass(frozen=True, eq=False)
class Attribute:
    """A private attribute, or a task: its classes, or its numbers and the bins they are cut into.

    Attributes
    ----------
    name : str
    classes : tuple of labels
        Of a numeric attribute the bins, as text.
    y : (n,) int array
        The class number of each record.
    values : (n,) array, optional
        The numbers of a numeric attribute.
    """

    name: str
    classes: tuple[Hashable, ...]
    y: IntArray
    values: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    def taken(self, rows: IntArray) -> Attribute:
        """Of some of the records."""
        return replace(self, y=self.y[rows], values=None if self.values is None else self.values[rows])

    def describe(self) -> dict[str, Any]:
        """JSON types, for the report."""
        kind = "classes" if self.values is None else "numbers"
        counts = np.bincount(self.y, minlength=self.n_classes)
        # That somebody has a rare value is for the report not to tell.
        common = [str(label) for label, n in zip(self.classes, counts, strict=True) if n >= LEAST_RECORDS]
        return {
            "name": self.name,
            "kind": kind,
            "n_classes": self.n_classes,
            "classes": common[:50],
            "n_rare": self.n_classes - len(common),
        }


def as_attributes(given: Any, n: int | None, name: str) -> tuple[Attribute, ...]:
    """The attributes in a column, a mapping, a frame or a table of columns."""
    if given is None:
        return ()
    if isinstance(given, Mapping):
        columns = [(str(key), np.asarray(values)) for key, values in given.items()]
    elif hasattr(given, "columns") and not callable(given.columns):
        columns = [(str(key), np.asarray(given[key])) for key in given.columns]
    else:
        table = np.asarray(given)
        single = getattr(given, "name", None)
        if table.ndim == 1:
            columns = [(str(single) if isinstance(single, str) else name, table)]
        elif table.ndim == 2:
            columns = [(f"{name} {i}", table[:, i]) for i in range(table.shape[1])]
        else:
            raise InvalidInputError(f"{name} must be one column or several; its shape is {table.shape}.")
    return tuple(_attribute(key, values, n) for key, values in columns)


def _attribute(name: str, values: NDArray[Any], n: int | None) -> Attribute:
    if values.ndim != 1 or (n is not None and len(values) != n) or not len(values):
        raise InvalidInputError(
            f"{name} must hold one value for each of the {n} records; its shape is {values.shape}."
        )
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        if not finite.all():
            raise InvalidInputError(
                f"{name}: record {int(np.argmin(finite))} has no finite value; mend or drop the record."
            )
        small = np.abs(values) <= LARGEST
        if not small.all():
            raise InvalidInputError(
                f"{name}: record {int(np.argmin(small))} has a value beyond ±{LARGEST:g}; use another unit."
            )
        if not np.array_equal(values, np.rint(values)) or np.abs(values).max() > MOST_WHOLE:
            return _binned(name, values.astype(np.float64))
        values = values.astype(np.int64)
    labels: list[Any] = [canonical_label(value) for value in values.tolist()]
    if None in labels:
        raise InvalidInputError(f"{name}: record {labels.index(None)} has no value; mend or drop the record.")
    try:
        classes = sorted(set(labels))
    except TypeError:  # several types: sorted by what they look like
        classes = sorted(set(labels), key=lambda label: (type(label).__name__, str(label)))
    number = {label: i for i, label in enumerate(classes)}
    return Attribute(name, tuple(classes), np.array([number[label] for label in labels], dtype=np.intp))


def _binned(name: str, values: FloatArray) -> Attribute:
    """A numeric attribute: any function of it leaks at most what it leaks, its bins too."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, N_BINS + 1)[1:-1]))
    used, y = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)
    # The edges are values of people: no more digits than tell them apart.
    texts = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(2, 18))
    bounds = ["−∞", *next(one for one in texts if len(set(one)) == len(one)), "∞"]
    classes = tuple(f"{bounds[i]} … {bounds[i + 1]}" for i in used.tolist())
    return Attribute(name, classes, y.astype(np.intp), values)


@dataclass(frozen=True, eq=False)
class Table:
    """Records or codes as the adversaries see them.

    Attributes
    ----------
    codes : (n, d) array
        Numbers as they were given; a column of symbols as one column each, 0 or 1.
    symbols : (n,) int array, optional
        The symbol number of each record, where there are few different records: a finite alphabet.
    shape : tuple of int
        Of a record as it was given.
    """

    codes: FloatArray
    symbols: IntArray | None = None
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, given: Any, name: str) -> Table:
        """A table of numbers (n, …), or a column of symbols (texts or whole numbers)."""
        values = np.asarray(given)
        if values.ndim == 1 and values.dtype.kind in "iubUSO":
            if values.dtype.kind == "O":  # 1 and "1", None and "None" are different symbols
                values = np.array([repr(value) for value in values.tolist()])
            found, numbers = np.unique(values, return_inverse=True)
            texts = values.dtype.kind in "USO"
            if len(found) <= MOST_SYMBOLS and (texts or _come_again(numbers)):
                return cls.of_symbols(numbers.astype(np.intp), len(found))
        if values.dtype.kind not in "iubf":
            raise InvalidInputError(
                f"{name} must be numbers, one row a record, or one column of symbols; it is an array of "
                f"{values.dtype} of shape {values.shape}. Encode its columns as numbers."
            )
        if values.ndim == 0:
            raise InvalidInputError(f"{name} must hold one row a record; it is a single number.")
        flat = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
        codes = as_codes(flat, name)
        return cls(codes, _symbols_of(codes), values.shape[1:])

    @classmethod
    def of_symbols(cls, numbers: IntArray, n_symbols: int) -> Table:
        """Symbol numbers, one column a symbol."""
        return cls(np.eye(n_symbols)[numbers], numbers)

    @property
    def n(self) -> int:
        return len(self.codes)

    def taken(self, rows: IntArray) -> Table:
        """Some of the records."""
        symbols = None if self.symbols is None else self.symbols[rows]
        return Table(self.codes[rows], symbols, self.shape)

    def narrowed(self) -> FloatArray:
        """The codes, or their leading principal components where they are very wide."""
        if self.codes.shape[1] <= WIDE or self.n <= COMPONENTS:
            return self.codes
        from sklearn.decomposition import PCA
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            solver = PCA(COMPONENTS, svd_solver="covariance_eigh")
            return np.asarray(solver.fit_transform(self.codes), dtype=np.float64)


def _symbols_of(codes: FloatArray) -> IntArray | None:
    """A number for each different row, bit by bit, where there are few that come again and again."""
    rows = np.ascontiguousarray(codes).view(np.dtype((np.void, codes.itemsize * codes.shape[1])))[:, 0]
    if len(np.unique(rows[: 4 * MOST_SYMBOLS])) > MOST_SYMBOLS:  # saves sorting all of a large table
        return None
    found, numbers = np.unique(rows, return_inverse=True)
    few = len(found) <= MOST_SYMBOLS and _come_again(numbers)
    return numbers.astype(np.intp) if few else None


def _come_again(numbers: IntArray) -> bool:
    """Whether nearly all records have a symbol that many others have too."""
    counts = np.bincount(numbers)
    return bool(counts[counts >= REPEATED_TIMES].sum() >= REPEATED_SHARE * len(numbers))
