"""Results as JSON and back: frozen records of numbers, texts and statuses, checked field by field."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import FileFormatError


def encode_result(value: Any) -> Any:
    """A frozen dataclass of numbers, texts, enumerations, tuples and other such classes, as JSON."""
    if is_dataclass(value):
        return {part.name: encode_result(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple):
        return [encode_result(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def read_result(kind: Any, value: Any) -> Any:
    """The object of class `kind` that `encode_result` described; each field is checked for its type."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints, names = get_type_hints(kind), {part.name for part in fields(kind)}
        if not isinstance(value, dict) or value.keys() != names:
            raise FileFormatError(f"the {kind.__name__} has other fields than expected.")
        return kind(**{name: read_result(hints[name], value[name]) for name in names})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[value]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(read_result(get_args(kind)[0], part) for part in value)
    if kind is float and (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
        return float(value)
    if get_args(kind) and type(None) in get_args(kind):
        return None if value is None else read_result(get_args(kind)[0], value)
    if kind not in (int, str, bool) or type(value) is not kind:
        raise FileFormatError(f"{value!r} is not a {getattr(kind, '__name__', kind)}.")
    return value
