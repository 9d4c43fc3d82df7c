"""The files of a saved model: what may be read, what may be replaced and what may be removed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from ..errors import DataFileError, FileFormatError
from ..persistence import FORMAT, VERSIONS, load_json, save_json, write_atomic
from ..unfinished import is_unfinished
from .folders import made_folder, saving_lock
from .manifest import Manifest

KIND, ENCODER_KIND = "learned-funnel", "learned-encoder"
MANIFEST = "manifest.json"
# Seconds after which another process must have written its manifest, where folders cannot be locked.
UNLOCKED_AGE = 3600.0

# Written by this module and by nobody else, so they may be removed once no manifest names them.
_WEIGHTS = re.compile(r"weights-[0-9a-f]{64}\.safetensors")


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
    except FileNotFoundError:
        raise
    except OSError as error:
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
        others = [entry for entry in sorted(os.listdir(folder)) if not _is_ours(entry)]
        if others:
            raise DataFileError(
                f"{folder}: an encoder is handed on with its folder, and this one also holds {others[0]}; "
                "choose an empty folder."
            )


def _is_ours(entry: str) -> bool:
    return entry == MANIFEST or is_unfinished(entry) or bool(_WEIGHTS.fullmatch(entry))


def clean(folder: Path, digest: str, age: float) -> None:
    """Remove weights that no manifest names any more.

    Files younger than `age` seconds stay: another process may be about to write the manifest that names them.
    """
    now = time.time()
    for entry in os.listdir(folder):
        stale = _WEIGHTS.fullmatch(entry) and entry != f"weights-{digest}.safetensors"
        if stale:
            with suppress(OSError):
                if age == 0 or now - os.stat(folder / entry).st_mtime > age:
                    os.unlink(folder / entry)
