"""Arrays as JSON: shape and numbers, exact to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray


def numbers_to(array: FloatArray | IntArray) -> dict[str, Any]:
    """An array of finite numbers as JSON types."""
    return {"shape": list(array.shape), "values": np.asarray(array, dtype=np.float64).ravel().tolist()}


def numbers_from(data: Mapping[str, Any], name: str) -> FloatArray:
    """The array of that name; a ValueError where there is none."""
    try:
        given = data[name]
        array: FloatArray = np.array(given["values"], dtype=np.float64).reshape(
            [int(n) for n in given["shape"]]
        )
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{name!r} is no array of numbers.") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name!r} holds numbers that are not finite.")
    return array


def all_below(numbers: FloatArray, end: int) -> bool:
    """Whether these are whole numbers from 0 to end − 1."""
    return bool(np.all((numbers >= 0) & (numbers < end) & (numbers == np.rint(numbers))))
