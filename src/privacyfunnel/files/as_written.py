"""A table as adversaries see it: numbers where they are all there is in a column, else texts.

How a number is written can tell people apart: `1` beside `1.0` is more than the number 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..attributes import LARGEST, LEAST_RECORDS
from ..errors import InvalidInputError
from .base import TableFile

#: More different texts than this in a column are taken for names, not for categories; so are, in a release,
#: more than the second number that fewer than ten records share on average: what they tell is not learnt.
MOST_TEXTS, FEW_TEXTS = 1000, 32
#: Significant digits that programs write by default or on request: C, 32-bit and 64-bit numbers, R.
DIGITS = (6, 7, 9, 10, 15, 17)


def read_matrix(table: TableFile, leave_out: Sequence[str], *, released: bool) -> Any:
    """A table as numbers: texts become one column a category; a single column of symbols stays one.

    Of what is released, numbers that are written in several ways are texts.
    """
    names = [name for name in table.columns if name not in leave_out]
    if not names:
        raise InvalidInputError(
            f"{table.path}: no column is left; name fewer in private and drop.", names=("private", "drop")
        )
    whole = _whole(table, names)
    if not whole.num_rows:
        raise InvalidInputError(f"{table.path}: there are no records in this file.")
    columns = [_column(table.path, name, whole.column(name), released) for name in names]
    if len(columns) == 1 and _are_symbols(columns[0]):
        only = columns[0]
        return only if only.dtype.kind == "U" else only.astype(np.int64)
    most = min(MOST_TEXTS, max(FEW_TEXTS, whole.num_rows // LEAST_RECORDS)) if released else MOST_TEXTS
    return np.column_stack([_indicators(table.path, *one, most) for one in zip(names, columns, strict=True)])


def read_kept(table: TableFile, names: Sequence[str]) -> dict[str, Any]:
    """Columns as they are handed out beside a release: numbers where they say all, else texts."""
    import pyarrow as pa

    whole = _whole(table, names)
    columns: dict[str, Any] = {}
    for name in names:
        column = whole.column(name)
        if pa.types.is_nested(column.type):
            raise InvalidInputError(
                f"{table.path}: column {name!r} holds {column.type}, not single values; what it tells cannot "
                "be measured."
            )
        try:
            values = column.cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = np.array([np.nan])
        plain = np.isfinite(values).all() and not _has_negative_zero(values)
        columns[name] = values if plain and numbers_say_all(column, values) else _texts(column)
    return columns


def numbers_say_all(column: Any, values: Any) -> bool:
    """Whether nothing is lost when a column is read as these numbers.

    That is so where one way to write numbers gives every text of the column. `1` beside `1.0` or `01`, a
    trailing zero here and there, and digits that 64-bit numbers cannot hold are more than the numbers.
    """
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if not pa.types.is_decimal(column.type):
            return True
        column = column.cast(pa.string())
    texts = column.to_pylist()
    for kind in (pa.float64(), pa.float32()):
        if pa.array(values).cast(kind, safe=False).cast(pa.string()).to_pylist() == texts:
            return True
    numbers = values.tolist()
    return any(
        all(way(number) == text for number, text in zip(numbers, texts, strict=True))
        for way in _ways(texts[0])
    )


def _ways(text: str) -> Iterator[Callable[[float], str]]:
    """Ways to write numbers, with as many decimals as this one has where they are fixed."""
    decimals = len(text.partition("e")[0].partition(".")[2])
    yield repr
    yield lambda number: repr(number).removesuffix(".0")
    yield f"{{:.{decimals}f}}".format
    yield f"{{:.{decimals}e}}".format
    for digits in DIGITS:
        yield f"{{:.{digits}g}}".format


def _whole(table: TableFile, names: Sequence[str]) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches(list(table.batches(list(names))), schema=table.schema(names))


def _column(path: str, name: str, column: Any, released: bool) -> Any:
    """Finite numbers where all values are, else texts."""
    import pyarrow as pa

    try:
        values = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _texts(column)
    finite = np.isfinite(values)
    if not finite.all():
        raise InvalidInputError(
            f"{path}: record {int(np.argmin(finite)) + 1:,} has no finite number in column {name!r}; fill it "
            "in, or drop the record."
        )
    small = np.abs(values) <= LARGEST
    if not small.all():
        row = int(np.argmin(small))
        raise InvalidInputError(
            f"{path}: record {row + 1:,} has {values[row]:g} in column {name!r}, beyond ±{LARGEST:g}; "
            "release the column in another unit."
        )
    return _texts(column) if released and not numbers_say_all(column, values) else values


def _texts(column: Any) -> Any:
    """A text for each value, another one for every other: a missing one is not empty, a NUL is not lost."""
    return np.array([repr(value) for value in column.to_pylist()])


def _are_symbols(values: Any) -> bool:
    """Texts, or whole numbers that stay apart as such."""
    if values.dtype.kind == "U":
        return True
    return bool(np.array_equal(values, np.rint(values))) and not _has_negative_zero(values)


def _has_negative_zero(values: Any) -> bool:
    return bool((np.signbit(values) & (values == 0)).any())


def _indicators(path: str, name: str, values: Any, most: int) -> Any:
    if values.dtype.kind != "U":
        return values
    found, numbers = np.unique(values, return_inverse=True)
    if len(found) > most:
        raise InvalidInputError(
            f"{path}: column {name!r} has {len(found):,} different texts (or numbers that are written in "
            "several ways), which name people rather than describe them; if it is not released, leave it out "
            f"with drop {name}.",
            names=("drop",),
        )
    return np.eye(len(found))[numbers]
