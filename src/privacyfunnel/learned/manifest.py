"""A model's folder: its manifest and its weights, and what both say of settings and private attributes.

The weights' file is named by the hash of its content and the manifest, which names it, is replaced last, so
whatever happens on the way leaves the old model or the new one whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..alphabet import label_array
from ..errors import DataFileError, FileFormatError, InvalidInputError
from ..persistence import (
    FORMAT,
    VERSIONS,
    decode_labels,
    encode_labels,
    is_unfinished,
    load_json,
    made_folder,
    require,
    save_json,
    write_atomic,
)
from .encoder import Releasing
from .objectives import PrivateAttributes, PrivateColumn
from .training import locked

KIND, ENCODER_KIND = "learned-funnel", "learned-encoder"
MANIFEST = "manifest.json"
# Seconds after which another process must have written its manifest, where folders cannot be locked.
UNLOCKED_AGE = 3600.0

# Written by this module and by nobody else, so they may be removed once no manifest names them.
_WEIGHTS = re.compile(r"weights-[0-9a-f]{64}\.safetensors")

# Settings that belong to a session and not to the model: loading gives their defaults.
SESSION = ("release_state", "checkpoint", "device", "progress")

# Settings with other defaults than what was done before they existed.
LACKING = {"scale": "none", "validation_fraction": 0.0}

# Of classes that no array of plain numbers or texts holds: each is written with its type.
OBJECTS = "objects"
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


def describe_private(private: PrivateAttributes | None) -> dict[str, Any]:
    """The private attributes, and records by combination of classes where the classifier guesses these."""
    columns = None if private is None else [_describe_column(column) for column in private.columns]
    counts = None if private is None else private.together
    return {"private": columns, "combinations": None if counts is None else [int(one) for one in counts]}


def _describe_column(column: PrivateColumn) -> dict[str, Any]:
    """One of them; its entropy in bits."""
    described: dict[str, Any] = {"name": column.name, "entropy_bits": column.entropy / math.log(2)}
    if column.classes is None:
        return {**described, "mean": column.mean, "scale": column.scale, "moments": column.seen.tolist()}
    dtype, classes = column.classes.dtype.str, column.classes.tolist()
    if not _DTYPE.fullmatch(dtype):  # dates and the like, and mixtures
        dtype, classes = OBJECTS, encode_labels(classes, f"private {column.name}")
    return {
        **described,
        "dtype": dtype,
        "classes": classes,
        "counts": [int(count) for count in column.seen],
    }


def read_private(payload: dict[str, Any]) -> PrivateAttributes | None:
    """The attributes of `describe_private`, checked."""
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
        if dtype != OBJECTS and not _DTYPE.fullmatch(dtype):
            raise wrong
        listed = require(described, "classes", list)
        classes = label_array(decode_labels(listed)) if dtype == OBJECTS else np.array(listed, dtype=dtype)
        column = PrivateColumn(name, classes, _numbers(described, "counts"))
        if classes.ndim != 1 or len(classes) < 2 or column.seen.shape != classes.shape:
            raise wrong
        ordered = len({*classes.tolist()}) == len(classes) if dtype == OBJECTS else classes[1:] > classes[:-1]
        if not np.all(ordered) or not column.seen.sum() > 0 or column.seen.min() < 0:
            raise wrong
    if not abs(column.entropy / math.log(2) - bits) < 1e-9:
        raise wrong
    return column


def _numbers(described: dict[str, Any], key: str) -> NDArray[np.float64]:
    return np.array(require(described, key, list), dtype=np.float64)


def write_model(folder: Path, kind: str, data: bytes, digest: str, manifest: dict[str, Any]) -> None:
    """Write weights and manifest of a model or an encoder; an older one there is replaced."""
    with made_folder(folder), saving_lock(folder) as alone:
        refuse_foreign(folder, kind)
        write_atomic(folder / f"weights-{digest}.safetensors", data)
        save_json(folder / MANIFEST, kind, VERSIONS[kind], {**manifest, "checksum": checksum(manifest)})
        clean(folder, digest, 0.0 if alone else UNLOCKED_AGE)


def weights_file(kind: str, tensors: Mapping[str, Tensor]) -> tuple[bytes, str]:
    """The bytes of a file of weights, and the hash that it is named by."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    data: bytes = save_tensors(plain, {"format": FORMAT, "kind": kind})
    return data, hashlib.sha256(data).hexdigest()


def read_manifest(folder: Path, classes: Collection[str]) -> Manifest:
    """The manifest, after a check of its header and checksum; it must name one of the classes."""
    file = folder / MANIFEST
    if not folder.is_dir():
        raise DataFileError(f"{folder}: there is no such folder; name one that a model was saved into.")
    if not file.exists():
        raise DataFileError(
            f"{folder}: cannot read the file {MANIFEST} (there is none); name a folder that a model was "
            "saved into."
        )
    kind, version, payload = load_json(file)
    if kind not in (KIND, ENCODER_KIND):
        raise FileFormatError(f"{file}: this is a {kind!r} and no learned model; name another folder.")
    if version > VERSIONS[kind]:
        raise FileFormatError(
            f"{file}: this {kind} has format version {version} and this library reads up to "
            f"{VERSIONS[kind]}; install a newer one."
        )
    content = {key: value for key, value in payload.items() if key != "checksum"}
    if payload.get("checksum") != checksum(content):
        raise FileFormatError(
            f"{file}: the file is damaged or was changed by hand (its checksum is wrong); save the model "
            "again."
        )
    name, weights = payload.get("class"), payload.get("weights")
    digest = weights.get("sha256") if isinstance(weights, dict) else None
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise FileFormatError(f"{file}: the file is damaged: it names no weights; save the model again.")
    if not isinstance(name, str) or name not in classes:
        raise FileFormatError(
            f"{file}: this version of the library has no estimator {name!r}; install a newer one."
        )
    return Manifest(kind, name, digest, content)


def read_weights(folder: Path, manifest: Manifest) -> dict[str, Tensor]:
    """The tensors, after a check of their hash. FileNotFoundError is left to the caller."""
    file = folder / f"weights-{manifest.weights}.safetensors"
    try:
        data = file.read_bytes()
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise DataFileError(f"{file}: cannot read the file ({error.strerror or error}).") from None
    damaged = FileFormatError(f"{file}: the weights are damaged or cut short; save the model again.")
    if hashlib.sha256(data).hexdigest() != manifest.weights:
        raise damaged
    try:
        tensors: dict[str, Tensor] = load_tensors(data)
    except (SafetensorError, ValueError, KeyError):
        raise damaged from None
    if not all(tensor.dtype == torch.float32 for tensor in tensors.values()):
        raise damaged
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise FileFormatError(f"{file}: the weights are not finite; fit the model again.")
    return tensors


def checksum(content: Mapping[str, Any]) -> str:
    """Of a manifest's content, however its keys are ordered."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def refuse_foreign(folder: Path, kind: str) -> None:
    """Do not replace a manifest.json that is another program's; a damaged one may be replaced.

    An encoder is handed on with its folder, so there must be nothing else in it.
    """
    what = "model" if kind == KIND else "encoder"
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        document = {"format": FORMAT, "kind": kind}
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("kind") != kind:
        raise DataFileError(
            f"{folder / MANIFEST}: this file belongs to something else; choose another folder for the {what}."
        )
    if kind == ENCODER_KIND and folder.is_dir():
        there = sorted(os.listdir(folder))
        ours = (entry == MANIFEST or is_unfinished(entry) or _WEIGHTS.fullmatch(entry) for entry in there)
        if others := [entry for entry, own in zip(there, ours, strict=True) if not own]:
            raise DataFileError(
                f"{folder}: an encoder is handed on with its folder, and this one also holds {others[0]}; "
                "choose an empty folder."
            )


def clean(folder: Path, digest: str, age: float) -> None:
    """Remove weights that no manifest names any more.

    Files younger than `age` seconds stay: another process may be about to write the manifest that names them.
    """
    for file in folder.iterdir():
        if _WEIGHTS.fullmatch(file.name) and file.name != f"weights-{digest}.safetensors":
            with suppress(OSError):
                if age == 0 or time.time() - file.stat().st_mtime > age:
                    file.unlink()


@contextmanager
def saving_lock(folder: Path) -> Iterator[bool]:
    """One process saves into a folder at a time; False where the system or the disk has no such locks."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        yield False
        return
    try:
        yield locked(handle, wait=True) is True
    finally:
        os.close(handle)  # and with it the lock, also when the process is killed
