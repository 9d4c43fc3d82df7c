"""Attributes: what a private attribute, or a task, is for fit, audit, sweep and command alike.

Numbers that are not all whole, and those that are named in `numeric`, are numbers; all else is classes: whole
numbers (floats too), booleans, texts (007 stays what it is), dates, times, categories and mixtures. Decimals
go by their places. A missing value is nobody's class: it is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .alphabet import canonical_label
from .arrays import FloatArray, IntArray, from_tensor
from .errors import InvalidInputError, shortened
from .frames import column_names

#: Classes that a numeric attribute is cut into, of equal size, for success and bits.
N_BINS = 8
#: Fewer records than this are no group: nothing is published about them by themselves.
LEAST_RECORDS = 10
#: Largest number that every adversary can square, some in float32; 64-bit ids are below it.
LARGEST = 1e19
#: Above this, float64 has no whole numbers of its own any more.
MOST_WHOLE = 2**53


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

    @property
    def is_numeric(self) -> bool:
        return self.values is not None

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


def read_attributes(
    given: Any,
    n: int | None = None,
    *,
    numeric: Sequence[str] | None = (),
    classes: Any = None,
    like: Sequence[Attribute] = (),
    known: Sequence[Attribute] = (),
    name: str = "y",
    what: str = "private",
) -> tuple[Attribute, ...]:
    """The attributes in a column, a mapping, a frame of any library, or a table of columns.

    Parameters
    ----------
    given : column, mapping, frame, tensor or table of columns
    n : int, optional
        How many records there are.
    numeric : names, optional
        Attributes of whole numbers that are numbers and no classes; None for those that `known` says.
    classes : labels, or a mapping from attribute to labels, optional
        All classes, where some may not occur. By default those that do.
    like : attributes of an earlier fit
        What these must agree with in names, kinds and classes; columns without names go by position.
    known : attributes of the mechanism
        What is known of attributes of these names, and the names of columns that have none.
    name : str
        Of a column without a name; of several, with their numbers behind it.
    what : str
        What messages call them.
    """
    if given is None:
        return ()
    columns = _columns(given, what)
    if like:
        columns = _in_order(columns, like, what)
    elif len(known) == len(columns) and all(key is None for key, _ in columns):
        columns = [(one.name, values) for one, (_, values) in zip(known, columns, strict=True)]
    named = [(_name(key, i, len(columns), name), values) for i, (key, values) in enumerate(columns)]
    read = {key: _cleaned(_called(what, key), values, n) for key, values in named}
    if numeric is None:
        numbers = {one.name for one in known if one.is_numeric}
        numeric = [key for key, values in read.items() if key in numbers and _are_numbers(values)]
    listed = _classes_by_name(classes, list(read), what)
    for one in like:
        if one.name in listed and (one.is_numeric or {*listed[one.name]} != {*one.classes}):
            raise InvalidInputError(
                f"classes of {_called(what, one.name)} are not those of the first call; leave them out, or "
                "fit anew."
            )
    _check_numeric(read, listed, numeric, what)
    first = {one.name: one for one in like}
    return tuple(
        _attribute(key, values, key in numeric, listed.get(key), first.get(key), what)
        for key, values in read.items()
    )


def _name(key: Any, i: int, n: int, name: str) -> str:
    if key is not None:
        return str(key)
    return name if n == 1 else f"{name}{i}"


def _called(what: str, name: str) -> str:
    """How messages call an attribute; one without a name of its own is called what it is."""
    return name if name == what else f"{what} {name}"


def _columns(given: Any, what: str) -> list[tuple[Any, NDArray[Any]]]:
    """The columns and their names; None for a column that has none."""
    given = from_tensor(given)
    if isinstance(given, Mapping):
        return [(key, _as_column(values)) for key, values in given.items()]
    names = column_names(given, what)
    if names is not None:
        repeated = [one for one in names if names.count(one) > 1]
        if repeated or not names:
            found = f"has the column {repeated[0]!r} twice" if repeated else "has no columns"
            raise InvalidInputError(f"{what} {found}; pass one column for each attribute.")
        return [(one, _as_column(given[one])) for one in names]
    table = _as_column(given)
    if table.ndim == 1:
        own = getattr(given, "name", None)
        return [(None if own is None or own == "" or callable(own) else own, table)]
    if table.ndim != 2 or not table.shape[1]:
        raise InvalidInputError(f"{what} must be one column or a table of them; its shape is {table.shape}.")
    return [(None, table[:, i]) for i in range(table.shape[1])]


def _as_column(values: Any) -> NDArray[Any]:
    """An array; of objects where the values are no plain numbers, so that none changes its type."""
    if isinstance(values, np.ndarray):
        return values
    if isinstance(values, (list, tuple, range)):
        return np.asarray(values, dtype=object)
    import narwhals as nw

    series = nw.from_native(values, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series):
        plain = series.dtype == nw.Boolean or (series.dtype.is_numeric() and series.dtype != nw.Decimal)
        if plain and not series.null_count():
            return np.asarray(series.to_numpy())
        return _objects(series.to_list())
    if hasattr(values, "to_pylist"):
        return _objects(values.to_pylist())
    return np.asarray(values)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """A column of whatever these are: NumPy would take lists for a second dimension."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _in_order(
    columns: list[tuple[Any, NDArray[Any]]], like: Sequence[Attribute], what: str
) -> list[tuple[Any, NDArray[Any]]]:
    """The columns under the names, and in the order, of the first fit."""
    names = [one.name for one in like]
    keys = [str(key) for key, _ in columns]
    if {*keys} == {*names}:
        columns = sorted(columns, key=lambda column: names.index(str(column[0])))
    elif len(names) > 1 and all(key is not None for key, _ in columns):
        raise InvalidInputError(
            f"{what} has the columns {', '.join(keys)}; the first fit saw {', '.join(names)}, pass the same."
        )
    if len(columns) != len(names):
        raise InvalidInputError(
            f"{what} has {len(columns)} columns; the first fit saw {len(names)} ({', '.join(names)}), pass "
            "the same."
        )
    return [(key, values) for key, (_, values) in zip(names, columns, strict=True)]


def _cleaned(where: str, values: NDArray[Any], n: int | None) -> NDArray[Any] | list[Any]:
    """A column without gaps: an array of booleans or numbers, or a list of labels."""
    if values.ndim != 1:
        raise InvalidInputError(f"{where} must hold one value a record; its shape is {values.shape}.")
    if (n is not None and len(values) != n) or not len(values):
        raise InvalidInputError(
            f"{where} has {len(values)} values for {'no' if n is None else n} records; pass one for each "
            "record."
        )
    kind = values.dtype.kind
    if kind in "biu":
        return values
    if kind == "f":
        return _finite(where, values)
    if kind in "Mm":  # finer units would come out as whole numbers
        values = values.astype(f"{kind}8[us]") if np.datetime_data(values.dtype)[0] in _FINE else values
    elif kind not in "OUTS":
        raise InvalidInputError(
            f"{where} holds values of type {values.dtype}; pass numbers, texts, booleans or dates."
        )
    try:
        labels: list[Any] = [canonical_label(value) for value in values.tolist()]
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}") from None
    if None in labels:
        raise _missing(where, labels.index(None))
    return _of_one_kind(where, labels)


_FINE = ("ns", "ps", "fs", "as")


def _missing(where: str, row: int) -> InvalidInputError:
    return InvalidInputError(
        f"{where}: row {row} is missing; give it a class of its own, or drop the record."
    )


def _finite(where: str, values: NDArray[Any]) -> NDArray[Any]:
    """Numbers that are there and that every adversary can square."""
    if (gaps := np.isnan(values)).any():
        raise _missing(where, int(np.argmax(gaps)))
    large = np.abs(values) > LARGEST
    if large.any():
        row = int(np.argmax(large))
        what = f"a value beyond ±{LARGEST:g}" if np.isfinite(values[row]) else "an infinite value"
        raise InvalidInputError(f"{where}: row {row} has {what}; use another unit, or drop the record.")
    return values.astype(np.float64)


def _of_one_kind(where: str, labels: list[Any]) -> NDArray[Any] | list[Any]:
    """Objects as what they all are: booleans, numbers, texts; a mixture as it is."""
    kinds = {type(label) for label in labels}
    if kinds == {bool}:
        return np.array(labels)
    if kinds == {bytes}:
        try:
            return [label.decode() for label in labels]
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"{where} holds bytes that are no text; encode it as texts or numbers first."
            ) from None
    if bool in kinds or not all(issubclass(kind, (Real, Decimal)) for kind in kinds):
        return labels
    if Decimal in kinds:
        gaps = [label.is_nan() if isinstance(label, Decimal) else False for label in labels]
        if any(gaps):
            raise _missing(where, gaps.index(True))
    # Whole ones may be long identifiers, which a float64 would round.
    if all(kind is int or (kind is Decimal) for kind in kinds) and all(map(_is_written_whole, labels)):
        whole = [int(label) for label in labels]
        small = all(-(2**63) <= label < 2**63 for label in whole)
        return np.array(whole, dtype=np.int64) if small else whole
    return _finite(where, np.array([float(label) for label in labels]))


def _is_written_whole(label: int | Decimal) -> bool:
    """Without decimal places: 1.00 has some, and is a number as 1.25 is."""
    return isinstance(label, int) or (label.is_finite() and int(label.as_tuple().exponent) >= 0)


def _are_numbers(values: NDArray[Any] | list[Any]) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iuf"


def _are_broken(values: NDArray[Any] | list[Any]) -> bool:
    """Whether these are numbers that are not all whole, or that float64 has no whole numbers for."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return False
    return not np.array_equal(values, np.rint(values)) or float(np.abs(values).max()) > MOST_WHOLE


def _check_numeric(
    read: Mapping[str, NDArray[Any] | list[Any]],
    classes: Mapping[str, Any],
    numeric: Sequence[str],
    what: str,
) -> None:
    for name in numeric:
        if name not in read:
            raise InvalidInputError(
                f"numeric names {shortened(name)}, which is no {what} attribute; they are {', '.join(read)}.",
                names=("numeric",),
            )
        if name in classes or not _are_numbers(read[name]):
            found = "has named classes" if name in classes else "does not hold numbers"
            raise InvalidInputError(
                f"numeric names {shortened(name)}, which {found}; leave one of the two out.",
                names=("numeric",),
            )


def _classes_by_name(classes: Any, names: Sequence[str], what: str) -> dict[str, list[Any]]:
    """The classes that a caller named, by attribute."""
    if classes is None:
        return {}
    if not isinstance(classes, Mapping):
        if len(names) > 1:
            raise InvalidInputError(
                f"classes must be a mapping from attribute to its classes where several are {what}; the "
                f"attributes are {', '.join(names)}."
            )
        classes = {names[0]: classes}
    for name in classes:
        if name not in names:
            raise InvalidInputError(
                f"classes names {shortened(name)}, which is no {what} attribute; they are {', '.join(names)}."
            )
    found = {}
    for name, values in classes.items():
        column = _as_column(values).ravel()
        found[name] = _labels(_cleaned(_called(what, name), column, len(column)))[0] if len(column) else []
        require_two(name, found[name], what)
    return found


def require_two(name: str, classes: Sequence[Hashable], what: str = "private") -> None:
    """Refuse classes that are no secret."""
    if len(classes) < 2:
        listed = f"one class only ({shortened(classes[0])})" if classes else "no class"
        raise InvalidInputError(f"{_called(what, name)} has {listed}; there is nothing to protect.")


def _labels(values: NDArray[Any] | list[Any]) -> tuple[list[Any], IntArray]:
    """The different labels in order, and the number of each record's."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind == "f" and not _are_broken(values):
            values = values.astype(np.int64)
        found, y = np.unique(values, return_inverse=True)
        return found.tolist(), y.astype(np.intp)
    try:
        classes = sorted(set(values))
    except TypeError:  # several types: sorted by what they look like
        classes = sorted(set(values), key=lambda label: (type(label).__name__, str(label)))
    number = {label: i for i, label in enumerate(classes)}
    return classes, np.array([number[label] for label in values], dtype=np.intp)


def _attribute(
    name: str,
    values: NDArray[Any] | list[Any],
    numeric: bool,
    classes: Iterable[Hashable] | None,
    like: Attribute | None,
    what: str,
) -> Attribute:
    if like is not None and like.is_numeric:
        if isinstance(values, list):
            raise InvalidInputError(
                f"{_called(what, name)} was numeric at the first fit and holds other values now; pass "
                "numbers."
            )
        numeric = True
    elif like is not None:
        classes = like.classes
    if numeric or (classes is None and _are_broken(values)):
        return _binned(name, np.asarray(values, dtype=np.float64))
    found, y = _labels(values)
    if classes is None:
        return Attribute(name, tuple(found), y)
    every = tuple(classes)
    number = {label: i for i, label in enumerate(every)}
    at = np.array([number.get(label, -1) for label in found], dtype=np.intp)[y]
    if (at < 0).any():
        row = int(np.argmax(at < 0))
        raise InvalidInputError(
            f"{_called(what, name)}: the value {shortened(found[y[row]])} in row {row} was not among the "
            "classes at the first fit; name all of them there (partial_fit takes classes=), or the attribute "
            "in numeric if these are numbers, or fit anew.",
            names=("numeric",),
        )
    return Attribute(name, every, at)


def _binned(name: str, values: FloatArray) -> Attribute:
    """A numeric attribute: any function of it leaks at most what it leaks, its bins too."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, N_BINS + 1)[1:-1]))
    used, y = np.unique(np.searchsorted(edges, values, side="right"), return_inverse=True)
    # The edges are values of people: no more digits than tell them apart.
    texts = ([f"{edge:.{digits}g}" for edge in edges] for digits in range(2, 18))
    bounds = ["−∞", *next(one for one in texts if len(set(one)) == len(one)), "∞"]
    classes = tuple(f"{bounds[i]} … {bounds[i + 1]}" for i in used.tolist())
    return Attribute(name, classes, y.astype(np.intp), values)
