"""Arguments that must be numbers, refused with one sentence before any work; and how much memory there is."""

from __future__ import annotations

import math
import os
from numbers import Real
from typing import Any

import numpy as np

from .errors import InvalidInputError, shortened

# More symbols, steps or points than this are a mistake, and would only fail later.
LARGEST_WHOLE = 10**9
# Taken for the size of memory where the system does not tell it.
USUAL_MEMORY = 16 * 2**30


def finite_number(name: str, value: Any, least: float, *, strict: bool = False) -> float:
    """`value` as a float, at least `least` (or more, if `strict`). Texts and booleans are no numbers."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
    if not (math.isfinite(number) and (number > least if strict else number >= least)):
        bound = "more than" if strict else "at least"
        raise InvalidInputError(
            f"{name} must be a finite number, {bound} {least:g}; it is {shown(value)}.", names=(name,)
        ) from None
    return number


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """`value` as an int from `least` to 10⁹."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer))
        or not least <= value <= LARGEST_WHOLE
    ):
        raise InvalidInputError(
            f"{name} must be a whole number, at least {least} and at most {LARGEST_WHOLE:,}; it is "
            f"{shown(value)}.",
            names=(name,),
        )
    return int(value)


def confidence_level(name: str, value: float) -> float:
    """`value`, strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InvalidInputError(
            f"{name} must be between 0 and 1, such as 0.95; it is {value!r}.", names=(name,)
        )
    return value


def shown(value: Any) -> str:
    """The value as a message shows it, on one line; NumPy's numbers like Python's."""
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    return shortened(value.item() if isinstance(value, np.generic) else value)


def memory_size() -> int:
    """Bytes of memory of this computer."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return USUAL_MEMORY
