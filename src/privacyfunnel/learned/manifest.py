"""What a saved model's manifest holds: settings and private attributes as JSON values, and back."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from ..errors import FileFormatError, InvalidInputError
from ..persistence import require
from .base import LearnedFunnel
from .private import PrivateAttributes, PrivateColumn

# Settings that belong to a session and not to the model: loading gives their defaults.
SESSION = ("release_state", "checkpoint", "device", "progress")

_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Manifest:
    """A manifest whose header and checksum are right: name of the class, hash of the weights, the content."""

    name: str
    weights: str
    payload: dict[str, Any]


def encode_value(value: Any, name: str) -> Any:
    """A setting or fitted attribute as JSON. Generators have no value that could be kept: None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (tuple, list, np.ndarray)):
        return [encode_value(part, name) for part in value]
    if isinstance(value, dict):
        return {str(key): encode_value(part, name) for key, part in value.items()}
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    raise InvalidInputError(
        f"save: {name} is {value!r}, which a manifest cannot hold; use a finite number, text, a list or None."
    )


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


def read_settings(payload: dict[str, Any], kind: type[LearnedFunnel]) -> dict[str, Any]:
    """Keyword arguments for the class; lists are tuples again."""
    settings = require(payload, "settings", dict)
    known = {*kind().get_params(deep=False)} - {*SESSION}
    if settings.keys() != known:
        wrong = sorted(settings.keys() ^ known)
        raise FileFormatError(f"the setting {wrong[0]!r} is unknown or missing.")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def describe_private(private: PrivateAttributes | None) -> list[dict[str, Any]] | None:
    """The private attributes; entropies in bits."""
    return None if private is None else [_describe_column(column) for column in private.columns]


def _describe_column(column: PrivateColumn) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "entropy_bits": column.entropy / math.log(2)}
    if column.classes is None:
        return {**described, "mean": column.mean, "scale": column.scale}
    if not _DTYPE.fullmatch(column.classes.dtype.str):
        raise InvalidInputError(
            f"save: the classes of private {column.name} are of type {column.classes.dtype}, which a "
            "manifest cannot hold; fit with numbers or texts."
        )
    assert column.frequencies is not None
    return {
        **described,
        "dtype": column.classes.dtype.str,
        "classes": column.classes.tolist(),
        "frequencies": column.frequencies.tolist(),
    }


def read_private(described: Any) -> PrivateAttributes | None:
    """The attributes of `describe_private`, checked."""
    if described is None:
        return None
    if not isinstance(described, list) or not described:
        raise FileFormatError("'private' is not a list of attributes.")
    return PrivateAttributes(tuple(_read_column(column) for column in described))


def _read_column(described: dict[str, Any]) -> PrivateColumn:
    name, bits = require(described, "name", str), require(described, "entropy_bits", float)
    wrong = FileFormatError(f"the private attribute {name!r} is inconsistent.")
    if "classes" not in described:
        mean, scale = require(described, "mean", float), require(described, "scale", float)
        if not scale > 0:
            raise wrong
        return PrivateColumn(name, None, 0.5 * float(np.log(2 * np.pi * np.e)), None, mean, scale)
    dtype = require(described, "dtype", str)
    if not _DTYPE.fullmatch(dtype):
        raise wrong
    classes = np.array(require(described, "classes", list), dtype=dtype)
    share = np.array(require(described, "frequencies", list), dtype=np.float64)
    if classes.ndim != 1 or len(classes) < 2 or share.shape != classes.shape:
        raise wrong
    if not (classes[1:] > classes[:-1]).all() or not (share > 0).all() or abs(share.sum() - 1) > 1e-9:
        raise wrong
    entropy = float(-(share * np.log(share)).sum())  # to the last bit what fitting computed
    if abs(entropy / math.log(2) - bits) > 1e-9:
        raise wrong
    return PrivateColumn(name, classes, entropy, share)
