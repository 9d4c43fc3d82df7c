"""Letters and symbols: labels in one canonical form, and the row number of a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError, UnknownLetterError, shortened

IntArray = NDArray[np.intp]

_PLAIN = (int, str, bool, type(None))


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

        Each column is first reduced to its distinct values, so Python looks at those only.
        """
        parts = [label if self.are_tuples else (label,) for label in self.labels]
        if any(len(part) != len(columns) for part in parts):  # type: ignore[arg-type]
            raise InvalidInputError(
                f"release: {len(columns)} columns were given and a letter of this mechanism is "
                f"{shortened(self.labels[0])}; name as many columns as a letter has parts."
            )
        # Column by column: which labels (and which rows) agree in all columns so far.
        of_labels = np.zeros(len(parts), dtype=np.int64)
        of_rows = np.zeros(len(columns[0]), dtype=np.int64)
        for number, column in enumerate(columns):
            code_of, codes = factorise(column)
            width = len(code_of) + 1  # one more, for parts of labels that the data never have
            own = [code_of.get(part[number], width - 1) for part in parts]  # type: ignore[index]
            n_keys = (int(of_labels.max()) + 1) * width
            prefixes, firsts, of_labels = np.unique(
                of_labels * width + np.array(own), return_index=True, return_inverse=True
            )
            lost = of_rows < 0
            of_rows = _positions(prefixes, np.where(lost, 0, of_rows * width + codes), n_keys)
            of_rows[lost] = -1
        # Labels share a class only where the data lack a part of them, and no row is in such a class.
        return np.where(of_rows < 0, -1, firsts[of_rows])

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


def _positions(keys: NDArray[np.int64], wanted: NDArray[np.int64], n_keys: int) -> NDArray[np.int64]:
    """Where each of `wanted` (below n_keys) is in the sorted `keys`; −1 if it is not there."""
    if n_keys <= 1 << 20:  # a table is several times faster than bisection, while it fits the cache
        table = np.full(n_keys, -1, dtype=np.int64)
        table[keys] = np.arange(keys.size)
        return table[wanted]
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, at, -1)


def factorise(column: Any) -> tuple[dict[Hashable, int], NDArray[np.int64]]:
    """The distinct canonical values of a pyarrow array, numbered, and the number of each entry."""
    import pyarrow as pa

    chunks = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if pa.types.is_dictionary(chunks.type):
        chunks = chunks.cast(chunks.type.value_type)
    if len(chunks) == 0:
        return {}, np.zeros(0, dtype=np.int64)
    encoded = chunks.dictionary_encode(null_encoding="encode").unify_dictionaries()
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks])
    code_of: dict[Hashable, int] = {}
    # Null and NaN are two entries of the dictionary and one letter.
    values = encoded.chunk(0).dictionary.to_pylist()
    numbers = [code_of.setdefault(canonical_label(value), len(code_of)) for value in values]
    return code_of, np.array(numbers, dtype=np.int64)[codes]
