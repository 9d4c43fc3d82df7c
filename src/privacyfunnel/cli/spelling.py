"""Whether the numbers of a column are all there is in it: how each one is written can tell people apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: Significant digits that programs write by default or on request: C, 32-bit and 64-bit numbers, R.
DIGITS = (6, 7, 9, 10, 15, 17)


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
