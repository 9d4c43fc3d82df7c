"""Letters and symbols: labels in one canonical form, the row number of a value, and names of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .arrays import IntArray
from .errors import InvalidInputError, UnknownLetterError, shortened

_PLAIN = (int, str, bool, type(None))
# Entries looked up at a time: few enough for what is in between to stay in the cache.
_CHUNK = 1 << 16


def is_missing(value: Any) -> bool:
    """Whether `value` is None, NaN, NaT or a library's own missing value."""
    if value is None:
        return True
    if isinstance(value, (str, int, tuple)):
        return False
    if type(value).__name__ in ("NAType", "NaTType"):  # pandas.NA is neither true nor false when compared
        return True
    return isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)) and bool(value != value)


def canonical_label(value: Any) -> Hashable:
    """The label as a plain Python value; every kind of missing value becomes None."""
    if type(value) in _PLAIN:
        return value  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        return tuple(canonical_label(part) for part in value)
    if is_missing(value):
        return None
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()  # type: ignore[no-any-return]
    if isinstance(value, (datetime, timedelta)):
        return _without_pandas(value)
    if not isinstance(value, Hashable):
        raise InvalidInputError(
            f"A label must be hashable, such as a text or a number; {shortened(value)} is not."
        )
    return value


def _without_pandas(value: datetime | timedelta) -> datetime | timedelta:
    """A point or length of time of pandas as Python's, which it equals; nanoseconds only pandas can hold."""
    convert = getattr(value, "to_pydatetime", None) or getattr(value, "to_pytimedelta", None)
    finer = getattr(value, "nanosecond", None) or getattr(value, "nanoseconds", None)
    if convert is None or finer:
        return value
    return convert()  # type: ignore[no-any-return]


def as_labels(
    labels: Iterable[Any] | None, n: int, name: str, error: type[InvalidInputError] = InvalidInputError
) -> tuple[Hashable, ...]:
    """`labels` as a tuple of n distinct canonical labels; 0, 1, … for None."""
    if labels is None:
        return tuple(range(n))
    result = tuple(canonical_label(label) for label in labels)
    if len(result) != n:
        raise error(f"{name} must have {n} entries, one a label; it has {len(result)}.")
    if len(set(result)) != n:
        twice = next(label for label, times in Counter(result).items() if times > 1)
        raise error(
            f"{name} must be distinct; {shortened(twice)} is there twice: merge the two, or rename one."
        )
    return result


def label_array(labels: Sequence[Hashable]) -> NDArray[Any]:
    """The labels as an array: of a type that holds them if they share one, of objects otherwise."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        array = np.array(labels)
        # Very large integers have no type, and text loses NUL characters at its end.
        if array.dtype != object and array.tolist() == list(labels):
            return array
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def column_values(labels: Sequence[Hashable]) -> list[Any]:
    """The labels as values of one column: as they are if of one kind, as text otherwise.

    Columns of data frames, files and databases hold one type, so a mixture and tuples become text.
    """
    kinds = {type(label) for label in labels if label is not None}
    if kinds == {int, float}:
        return [None if label is None else float(label) for label in labels]  # type: ignore[arg-type]
    if len(kinds) <= 1 and tuple not in kinds:
        return list(labels)
    texts = [None if label is None else str(label) for label in labels]
    if len(set(texts)) != len(set(labels)):
        raise InvalidInputError(
            "Two labels of different types read the same as text; use relabel to give them one type."
        )
    return texts


def as_text(label: Hashable) -> Hashable:
    """A label as a CSV file has it, where all but a missing value is text."""
    if isinstance(label, tuple):
        return tuple(map(as_text, label))
    return label if label is None else str(label)


class Letters:
    """The alphabet of a mechanism: finds the row number of values, sequences and columns.

    A letter of several columns is a tuple. Missing values of any kind are the letter None.
    """

    def __init__(self, labels: Sequence[Hashable], names: Sequence[str]) -> None:
        self.labels = tuple(labels)
        self.names = tuple(names)
        self.rows = {label: row for row, label in enumerate(self.labels)}
        self.are_tuples = all(isinstance(label, tuple) for label in self.labels)

    def find(self, value: Any, at: int | None = None) -> int:
        """The row of one value; `at` is its place in a sequence, for the message."""
        row = self._row(value)
        if row < 0:
            self._unknown(value, at)
        return row

    def _row(self, value: Any) -> int:
        try:
            return self.rows.get(canonical_label(value), -1)
        except (TypeError, InvalidInputError):  # not hashable
            return -1

    def find_all(self, values: Sequence[Any]) -> IntArray:
        """The rows of a sequence of values."""
        found = self.search_all(values)
        for at in np.flatnonzero(found < 0).tolist():
            self._unknown(values[at], at)
        return found

    def search_all(self, values: Sequence[Any]) -> IntArray:
        """The rows of a sequence of values; −1 for what is no letter."""
        get = self.rows.get
        try:
            found = np.array([get(value, -1) for value in values], dtype=np.intp)
        except TypeError:  # not hashable
            return np.array([self._row(value) for value in values], dtype=np.intp)
        # NaN and its like are not keys of the dictionary: only canonical_label knows them.
        for at in np.flatnonzero(found < 0).tolist():
            found[at] = self._row(values[at])
        return found

    def find_array(self, values: NDArray[Any]) -> IntArray:
        """The rows of an array of letters, in its shape; tuples lie along the last axis."""
        if self.are_tuples and values.ndim > 1:
            flat = values.reshape(-1, values.shape[-1])
            return self.find_all([tuple(row) for row in flat.tolist()]).reshape(values.shape[:-1])
        if values.dtype.kind in "iufbU" and not self.are_tuples:
            import pyarrow as pa

            # Byte-swapped and very wide or narrow numbers, and broken Unicode, take the slow way below.
            with suppress(pa.ArrowException, UnicodeError):
                return self.find_columns([pa.array(values.ravel())]).reshape(values.shape)
        if values.dtype.kind in "Mm":  # finer units would come out as whole numbers
            values = values.astype(f"{values.dtype.kind}8[us]")
        return self.find_all(values.ravel().tolist()).reshape(values.shape)

    def find_columns(self, columns: Sequence[Any]) -> IntArray:
        """The rows of letters given as one pyarrow array a column."""
        found = self.search_columns(columns)
        for at in np.flatnonzero(found < 0).tolist():
            value = tuple(canonical_label(column[at].as_py()) for column in columns)
            self._unknown(value if self.are_tuples else value[0], at)
        return found

    def search_columns(self, columns: Sequence[Any]) -> IntArray:
        """The rows of letters given as one pyarrow array a column; −1 for what is no letter.

        Each column is first reduced to its distinct values, so Python looks at those only, and at the letters
        once for all calls.
        """
        if len(columns) != len(self._levels):
            raise InvalidInputError(
                f"release: {len(columns)} columns were given and a letter of this mechanism is "
                f"{shortened(self.labels[0])}; name as many columns as a letter has parts."
            )
        coded = [_coded(column) for column in columns]
        own = [level.codes(values) for level, (values, _) in zip(self._levels, coded, strict=True)]
        first, last = self._levels[0], self._levels[-1]
        # Where letters have one part, each value's row is known here.
        of_values = first.find(own[0]) if first is not last else first.firsts[first.find(own[0])]
        found = np.empty(len(columns[0]), dtype=np.intp)
        for start in range(0, found.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            of_rows = of_values[coded[0][1][part]]
            for level, numbers, (_, codes) in zip(self._levels[1:], own[1:], coded[1:], strict=True):
                of_rows = level.find(of_rows * level.width + numbers[codes[part]])
            found[part] = of_rows if first is last else last.firsts[of_rows]
        return found

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        """Column by column: which labels agree in all columns so far. Empty if their lengths differ."""
        parts = [label if self.are_tuples else (label,) for label in self.labels]
        if len({len(part) for part in parts}) != 1:  # type: ignore[arg-type]
            return ()
        levels = []
        of_labels = np.zeros(len(parts), dtype=np.int64)
        for number in range(len(parts[0])):  # type: ignore[arg-type]
            code_of: dict[Hashable, int] = {}
            own = [code_of.setdefault(part[number], len(code_of)) for part in parts]  # type: ignore[index]
            before = int(of_labels.max()) + 1
            # One more value and one more prefix stand for what is none: they are never among the keys.
            keys, firsts, of_labels = np.unique(
                of_labels * (len(code_of) + 1) + np.array(own), return_index=True, return_inverse=True
            )
            levels.append(_Level(code_of, keys, np.append(firsts, -1), (before + 1) * (len(code_of) + 1)))
        return tuple(levels)

    def _unknown(self, value: Any, at: int | None) -> NoReturn:
        where = "" if at is None else f" in row {at}"
        alike = [label for label in self.labels if str(label) == str(value)]
        if is_missing(value):
            hint = "build the joint with missing='letter' to give missing values a letter of their own."
        elif alike:
            hint = (
                f"the letter is of type {type(alike[0]).__name__} and the value of type "
                f"{type(value).__name__}: convert the values."
            )
        else:
            hint = "drop or recode such values, or solve again for a joint that has this letter."
        raise UnknownLetterError(
            f"release: {shortened(value)}{where} is not one of the {len(self.labels)} letters of "
            f"{', '.join(map(shortened, self.names))}; {hint}"
        )


@dataclass(frozen=True, eq=False)
class _Level:
    """What is known of letters after one more column: its values, numbered, and which prefixes there are."""

    code_of: dict[Hashable, int]
    keys: NDArray[np.int64]  # of prefixes: number of the one before · width + number of the value; sorted
    firsts: IntArray  # the first label of each, and −1
    n_keys: int

    @property
    def width(self) -> int:
        return len(self.code_of) + 1

    def codes(self, values: Sequence[Hashable]) -> NDArray[np.int64]:
        """The number of each value, the last one for what is none."""
        return np.array([self.code_of.get(value, len(self.code_of)) for value in values], dtype=np.int64)

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        table = np.full(self.n_keys, self.keys.size, dtype=np.int64)
        table[self.keys] = np.arange(self.keys.size)
        return table

    def find(self, wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number of each prefix; one more than the last if it is not there."""
        if self.n_keys <= 1 << 20:  # a table is several times faster than bisection, while it fits the cache
            return self._table[wanted]
        at = np.minimum(np.searchsorted(self.keys, wanted), self.keys.size - 1)
        return np.where(self.keys[at] == wanted, at, self.keys.size)


def factorise(column: Any) -> tuple[list[Hashable], NDArray[np.int64]]:
    """The distinct values of a pyarrow array in canonical form, and the number of each entry's.

    A dictionary-encoded column comes with its codes.
    """
    values, codes = _coded(column)
    number_of: dict[Hashable, int] = {}
    # Null and NaN are two values of the dictionary and one letter.
    numbers = [number_of.setdefault(value, len(number_of)) for value in values]
    return list(number_of), np.array(numbers, dtype=np.int64)[codes]


def _coded(column: Any) -> tuple[list[Hashable], NDArray[Any]]:
    """The dictionary of a pyarrow array, in canonical form and with None at its end, and its codes.

    A value may be in the dictionary more than once.
    """
    import pyarrow as pa

    chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if len(chunks) == 0:
        return [], np.zeros(0, dtype=np.int64)
    coded = pa.types.is_dictionary(chunks.type)
    kind = chunks.type.value_type if coded else chunks.type
    if coded and (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType)):
        chunks, coded = chunks.cast(kind), False  # refused, for the caller to take the values one by one
    if not coded:
        # Of views, pyarrow would encode what is missing as an empty text.
        chunks = chunks.dictionary_encode("mask" if str(kind).endswith("_view") else "encode")
    encoded = chunks.unify_dictionaries() if chunks.num_chunks > 1 else chunks
    values = [*map(canonical_label, encoded.chunk(0).dictionary.to_pylist()), None]
    codes = []
    for chunk in encoded.chunks:
        indices = chunk.indices
        if indices.null_count:  # so are missing entries of a column that came with codes
            indices = indices.cast("int64").fill_null(len(values) - 1)
        codes.append(indices.to_numpy())
    return values, codes[0] if len(codes) == 1 else np.concatenate(codes)


def shown_name(name: str) -> str:
    """A column's name as it is printed; many programs write row numbers into a column without one."""
    return name if name.strip() else "(no name)"


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple; a bare string is one name, not a sequence of characters."""
    return (names,) if isinstance(names, str) else tuple(names)


def require_columns(names: Iterable[str], columns: Iterable[str], where: str, remedy: str = "") -> None:
    """InvalidInputError for the first of `names` that is not in `columns`, with what it may have meant."""
    there = list(columns)
    for name in names:
        if name not in there:
            more = f"; {remedy}" if remedy else ""
            raise InvalidInputError(
                f"{where}: there is no column {shortened(name)}; {_suggestion(name, there)}{more}."
            )


def require_single_values(names: Iterable[str], schema: Mapping[str, Any], where: str) -> None:
    """InvalidInputError for the first of `names` whose type (in narwhals' words) is a list or a structure."""
    for name in names:
        if schema[name].is_nested():
            raise InvalidInputError(
                f"{where}: column {name!r} holds {schema[name]}, not single values; pick a field or an "
                "element."
            )


def _suggestion(name: object, columns: Sequence[str]) -> str:
    parts = [part.strip() for part in str(name).split(",")]
    if len(parts) > 1 and all(part in columns for part in parts):
        return "name the columns " + " and ".join(map(repr, parts)) + " one by one"
    by_lower = {str(column).lower(): column for column in columns}
    close = get_close_matches(str(name).lower(), by_lower, n=3, cutoff=0.5)
    if close:
        named = ", ".join(shortened(by_lower[key]) for key in close)
        return f"the closest {'is' if len(close) == 1 else 'are'} {named}"
    shown = ", ".join(map(shortened, columns[:8])) or "none"
    return f"the columns are {shown}" + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
