"""Columns as they are in a file, made into numbers or labels; what cannot be used is told by its record."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np

from ..errors import InvalidInputError, shortened

_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
# Not with zeros in front, which a code has and a number has not; what is not finite is refused later.
_NUMBER = re.compile(
    r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|nan|inf|infinity)\s*",
    re.ASCII | re.IGNORECASE,
)


def numbers(path: str, name: str, column: Any, done: int) -> Any:
    """A pyarrow column as float32, or a sentence about the first record that is no finite number.

    Texts with zeros in front, such as 007, are codes and no numbers, as they are in a private column.
    """
    import pyarrow as pa

    if (at := _first_code(column)) is not None:
        raise InvalidInputError(
            f"{path}: column {shortened(name)} holds codes rather than numbers (record {done + at + 1:,} has "
            f"{shortened(column[at].as_py())}, with a zero in front); encode it as one column a category, or "
            f"leave it out with drop {name}.",
            names=("drop",),
        )
    try:
        values = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        at, value = _first_text(column)
        raise InvalidInputError(
            f"{path}: column {shortened(name)} does not hold numbers (record {done + at + 1:,} has "
            f"{shortened(value)}); encode it as numbers first (for example one column a category), or leave "
            f"it out with drop {name}.",
            names=("drop",),
        ) from None
    with np.errstate(over="ignore"):
        found = values.to_numpy(zero_copy_only=False).astype(np.float32)
    finite = np.isfinite(found)
    if not finite.all():
        at = int(np.argmin(finite))
        what = "no value" if column[at].as_py() is None else shortened(column[at].as_py())
        raise InvalidInputError(
            f"{path}: record {done + at + 1:,} has {what} in column {shortened(name)}; fill it in, or drop "
            "the record."
        )
    return found


def _first_code(column: Any) -> int | None:
    """Where a column of texts has its first numeral with zeros in front."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    at = pc.index(pc.match_substring_regex(column, r"^\s*[+-]?0[0-9]"), pa.scalar(True)).as_py()
    return None if at < 0 else int(at)


def _first_text(column: Any) -> tuple[int, Any]:
    for at, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return at, value
    return 0, column[0].as_py()


def finite_array(path: str, name: str, x: Any, *, as_written: bool = False) -> Any:
    """An array of records as 32-bit numbers, as models take them; `as_written` where every digit counts."""
    if x.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{path}: the array {shortened(name)} does not hold numbers; encode it as numbers first."
        )
    if x.ndim < 2 or not x.size:
        raise InvalidInputError(
            f"{path}: the array {shortened(name)} must have a row for each record; its shape is {x.shape}."
        )
    with np.errstate(over="ignore"):
        found = x if as_written else x.astype(np.float32)
    finite = np.isfinite(found).reshape(len(x), -1).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"{path}: record {int(np.argmin(finite)) + 1:,} of the array {shortened(name)} holds a value "
            "that is no finite number; fill it in, or drop the record."
        )
    return found


def labels(path: str, name: str, values: Any) -> Any:
    """A private column: whole numbers or numbers where every value is written as one, else texts."""
    values = single_values(path, name, values)
    if values.dtype.kind != "O":
        return values
    distinct = set(values.tolist())
    if all(isinstance(value, Decimal) for value in distinct):
        if any(value.as_tuple().exponent < 0 for value in distinct):
            return values.astype(np.float64)
        # Without decimal places they may be long identifiers, which a float64 would round.
        values = np.array([f"{value:f}" for value in values], dtype=object)
        distinct = set(values.tolist())
    if not all(isinstance(value, str) for value in distinct):
        return values.astype(str)
    if all(map(_WHOLE.fullmatch, distinct)):
        return values.astype(np.int64 if all(map(_is_int64, distinct)) else str)
    return values.astype(np.float64 if all(map(_NUMBER.fullmatch, distinct)) else str)


def single_values(path: str, name: str, values: Any, done: int = 0) -> Any:
    """A private column in which every record has one value; bytes are the text that they hold."""
    for at, value in enumerate(values):
        if isinstance(value, (list, dict, np.ndarray)):
            raise InvalidInputError(
                f"{path}: record {done + at + 1:,} has several values in the private column "
                f"{shortened(name)}; write each of them into a column of its own."
            )
        if value is None or value != value:
            raise InvalidInputError(
                f"{path}: record {done + at + 1:,} has no value in the private column {shortened(name)}; "
                "give it a class of its own, or drop the record."
            )
    if not len(values) or not isinstance(values[0], bytes):
        return values
    try:
        return np.array([value.decode() for value in values], dtype=object)
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{path}: the private column {shortened(name)} holds bytes that are no text; encode it as "
            "texts or numbers first."
        ) from None


def _is_int64(text: str) -> bool:
    """Whether a whole number is written as Python would, so that nothing is lost as int64: not 007 or +7."""
    return len(text) <= 20 and str(int(text)) == text and -(2**63) <= int(text) < 2**63
