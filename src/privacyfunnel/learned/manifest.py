"""What a saved model's manifest holds: settings and private attributes as JSON values, and back."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileFormatError, InvalidInputError
from ..persistence import require
from .private import PrivateAttributes, PrivateColumn
from .releasing import Releasing

# Settings that belong to a session and not to the model: loading gives their defaults.
SESSION = ("release_state", "checkpoint", "device", "progress")

# Settings with other defaults than what was done before they existed.
LACKING = {"scale": "none", "validation_fraction": 0.0}

_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5})")


class UnknownSettingError(FileFormatError):
    """A whole file of another version of the library."""


@dataclass(frozen=True)
class Manifest:
    """A manifest whose header and checksum are right: kind of model, name of the class, hash of the weights,
    the content."""

    kind: str
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


def read_settings(payload: dict[str, Any], kind: type[Releasing]) -> dict[str, Any]:
    """Keyword arguments for the class; lists are tuples again.

    A setting that the file lacks, because it is older than the setting, is what older versions did (LACKING),
    else the default. One that the class lacks might change what the model does, so the file is refused.
    """
    known = {*kind().get_params(deep=False)} - {*SESSION}
    settings = {name: LACKING[name] for name in LACKING if name in known} | require(payload, "settings", dict)
    if unknown := sorted(settings.keys() - known):
        from .. import __version__

        versions = payload.get("versions")
        written = versions.get("privacyfunnel") if isinstance(versions, dict) else None
        raise UnknownSettingError(
            f"this version of the library ({__version__}) does not know the setting {unknown[0]!r} of "
            f"{kind.__name__}; the model was saved by version {written}, load it with that or a newer one."
        )
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}


def describe_private(private: PrivateAttributes | None) -> list[dict[str, Any]] | None:
    """The private attributes; entropies in bits."""
    return None if private is None else [_describe_column(column) for column in private.columns]


def describe_combinations(private: PrivateAttributes | None) -> list[int] | None:
    """Records by combination of private classes, where the classifier guesses these."""
    counts = None if private is None else private.together
    return None if counts is None else [int(count) for count in counts]


def _describe_column(column: PrivateColumn) -> dict[str, Any]:
    described: dict[str, Any] = {"name": column.name, "entropy_bits": column.entropy / math.log(2)}
    if column.classes is None:
        return {**described, "mean": column.mean, "scale": column.scale, "moments": column.seen.tolist()}
    if not _DTYPE.fullmatch(column.classes.dtype.str):
        raise InvalidInputError(
            f"save: the classes of private {column.name} are of type {column.classes.dtype}, which a "
            "manifest cannot hold; fit with numbers or texts."
        )
    return {
        **described,
        "dtype": column.classes.dtype.str,
        "classes": column.classes.tolist(),
        "counts": [int(count) for count in column.seen],
    }


def read_private(payload: dict[str, Any]) -> PrivateAttributes | None:
    """The attributes of `describe_private` and `describe_combinations`, checked."""
    described, combinations = payload.get("private"), payload.get("combinations")
    if described is None:
        return None
    if not isinstance(described, list) or not described:
        raise FileFormatError("'private' is not a list of attributes.")
    columns = tuple(_read_column(column) for column in described)
    if combinations is None:
        return PrivateAttributes(columns)
    together = _numbers(payload, "combinations")
    sizes = [len(column.classes) for column in columns if column.classes is not None]
    if together.shape != (math.prod(sizes),) or together.min() < 0 or not together.sum() > 0:
        raise FileFormatError("the counts of combinations of private classes are inconsistent.")
    return PrivateAttributes(columns, together)


def _read_column(described: dict[str, Any]) -> PrivateColumn:
    name, bits = require(described, "name", str), require(described, "entropy_bits", float)
    wrong = FileFormatError(f"the private attribute {name!r} is inconsistent.")
    if "classes" not in described:
        mean, scale = require(described, "mean", float), require(described, "scale", float)
        column = PrivateColumn(name, None, _numbers(described, "moments"), mean, scale)
        if not scale > 0 or column.seen.shape != (3,) or not column.seen[0] > 0:
            raise wrong
    else:
        dtype = require(described, "dtype", str)
        if not _DTYPE.fullmatch(dtype):
            raise wrong
        classes = np.array(require(described, "classes", list), dtype=dtype)
        column = PrivateColumn(name, classes, _numbers(described, "counts"))
        if classes.ndim != 1 or len(classes) < 2 or column.seen.shape != classes.shape:
            raise wrong
        if not (classes[1:] > classes[:-1]).all() or not column.seen.sum() > 0 or column.seen.min() < 0:
            raise wrong
    if not abs(column.entropy / math.log(2) - bits) < 1e-9:
        raise wrong
    return column


def _numbers(described: dict[str, Any], key: str) -> NDArray[np.float64]:
    return np.array(require(described, key, list), dtype=np.float64)
