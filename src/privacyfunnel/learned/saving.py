"""Fitted models as folders: weights in safetensors, everything else in manifest.json. Nothing is executed.

The weights' file is named by the hash of its content and the manifest, which names it, is replaced last, so
whatever happens on the way leaves the old model or the new one whole. Optimisers are not saved: `partial_fit`
after loading continues from the weights with new ones. Nor are the settings of a session (SESSION): above
all, a seeded `release_state` in a folder would make every release from it predictable.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
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
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..alphabet import label_array
from ..errors import DataFileError, FileFormatError, InvalidInputError
from ..keys import checked_key
from ..persistence import (
    FORMAT,
    VERSIONS,
    Path_,
    decode_labels,
    encode_labels,
    is_unfinished,
    load_json,
    made_folder,
    require,
    save_json,
    write_atomic,
)
from .aligned import refuse_aligned
from .base import LearnedFunnel, Trained
from .budget import Budget
from .encoder import FunnelEncoder, Releasing
from .funnel import Funnel
from .inputs import Marks, check_settings, pick_device
from .networks import Scaling
from .objectives import PrivateAttributes, PrivateColumn
from .training import Progress, TrainingStatus, encode_result, locked, read_result
from .verdict import Verdict, not_measured

KIND, ENCODER_KIND = "learned-funnel", "learned-encoder"
MANIFEST = "manifest.json"
# Seconds after which another process must have written its manifest, where folders cannot be locked.
UNLOCKED_AGE = 3600.0

# Written by this module and by nobody else, so they may be removed once no manifest names them.
_WEIGHTS = re.compile(r"weights-[0-9a-f]{64}\.safetensors")

ENCODER_SETTINGS = ("n_components", "hidden", "architecture", "latent")
ABOUT_MODEL = (
    "The whole model, for its owner alone: it tells how many records have each private value. To hand on "
    "what releases codes, use save(folder, part='encoder')."
)
ABOUT_ENCODER = "What releases codes and nothing else; privacyfunnel.load reads it, pfunnel encode uses it."
# Settings that belong to a session and not to the model: loading gives their defaults.
SESSION = ("release_state", "checkpoint", "device", "progress")

# Settings with other defaults than what was done before they existed.
LACKING = {"scale": "none", "validation_fraction": 0.0}

# Of classes that no array of plain numbers or texts holds: each is written with its type.
OBJECTS = "objects"
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U[1-9][0-9]{0,5})")


def save_model(estimator: LearnedFunnel, path: Path_) -> None:
    """Write a fitted estimator into a folder, which is created if needed; an older model there is replaced.

    Raises
    ------
    DataFileError
        The folder cannot be written, or holds another program's manifest.json. An older model is still whole.
    """
    check_is_fitted(estimator)
    tensors = estimator.modules_.state_dict()
    data, digest = weights_file(KIND, tensors)
    manifest = _describe(estimator, tensors, digest)
    _require_loadable(estimator, manifest, tensors)
    write_model(Path(path), KIND, data, digest, manifest)


def save_encoder(estimator: Releasing, path: Path_) -> None:
    """Write what releases codes, and nothing else, into a folder of its own.

    Raises
    ------
    DataFileError
        The folder cannot be written, or holds anything but an older encoder.
    InvalidInputError
        The encoder tells of Y: that of a funnel with `align`.
    """
    check_is_fitted(estimator)
    refuse_aligned(estimator.modules_["encoder"])
    tensors = {
        name: tensor
        for name, tensor in estimator.modules_.state_dict().items()
        if name.startswith("encoder.") or name in ("scaling.shift", "scaling.width")
    }
    data, digest = weights_file(ENCODER_KIND, tensors)
    settings = {name: estimator.get_params(deep=False)[name] for name in ENCODER_SETTINGS}
    manifest = {
        "about": ABOUT_ENCODER,
        "class": FunnelEncoder.__name__,
        "settings": {name: encode_value(value, name) for name, value in settings.items()},
        "code_names": str(estimator.get_feature_names_out()[0])[:-1],
        **_describe_records(estimator),
        **_describe_weights(tensors, digest),
        "versions": {"privacyfunnel": _versions()["privacyfunnel"]},
    }
    write_model(Path(path), ENCODER_KIND, data, digest, manifest)


def load_model(path: Path_) -> Releasing:
    """What `save_model` or `save_encoder` wrote: an estimator, ready to release, to reconstruct and to be
    trained further, or an encoder that releases.

    Raises
    ------
    DataFileError
        The folder cannot be read.
    FileFormatError
        It is damaged, not of this library, or of a newer version of it.
    """
    folder = Path(path)
    before = None
    while True:
        manifest = read_manifest(folder, [*_classes(), FunnelEncoder.__name__])
        try:
            tensors = read_weights(folder, manifest)
            break
        except FileNotFoundError:
            # Another process may have saved a new model in between: then there is a new manifest too.
            if before is not None and manifest.weights == before:
                raise FileFormatError(
                    f"{folder}: the weights weights-{manifest.weights}.safetensors are missing; save the "
                    "model again."
                ) from None
            before = manifest.weights
    try:
        return (_restore if manifest.kind == KIND else _restore_encoder)(manifest, tensors)
    except UnknownSettingError as error:
        raise FileFormatError(f"{folder / MANIFEST}: {error}") from None
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileFormatError(f"{folder / MANIFEST}: the file is damaged: {reason} Save it again.") from None


def _describe(estimator: LearnedFunnel, tensors: Mapping[str, Tensor], digest: str) -> dict[str, Any]:
    """The manifest's payload."""
    progress: Progress = estimator.progress_
    settings = estimator.get_params(deep=False)
    return {
        "about": ABOUT_MODEL,
        "class": type(estimator).__name__,
        "settings": {
            name: encode_value(value, name) for name, value in settings.items() if name not in SESSION
        },
        **_describe_records(estimator),
        **_describe_private(estimator.private_),
        **_describe_weights(tensors, digest),
        "seed": estimator.seed_,
        "fingerprint": estimator.fingerprint_,
        "n_records": int(estimator.n_records_),
        **_describe_marks(estimator.marks_),
        "training": {
            "status": progress.status.name,
            "epoch": progress.epoch,
            "unit": "bit",
            "final": progress.history[-1] if progress.history else {},
            "history": progress.history,
        },
        "verdict": encode_result(getattr(estimator, "verdict_", None)),
        "budget": encode_result(getattr(estimator, "budget_", None)),
        "versions": _versions(),
    }


def _describe_records(estimator: Releasing) -> dict[str, Any]:
    """What records must look like."""
    names = getattr(estimator, "feature_names_in_", None)
    shape = estimator.record_shape_
    return {
        "n_features_in": int(estimator.n_features_in_),
        "feature_names_in": None if names is None else [str(name) for name in names],
        "record_shape": None if shape is None else [int(n) for n in shape],
    }


def _describe_weights(tensors: Mapping[str, Tensor], digest: str) -> dict[str, Any]:
    return {
        "weights": {"sha256": digest, "shapes": {name: list(tensors[name].shape) for name in sorted(tensors)}}
    }


def _require_loadable(
    estimator: LearnedFunnel, manifest: dict[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Refuse to save what could not be loaded."""
    name = type(estimator).__name__
    if _classes().get(name) is not type(estimator):
        raise InvalidInputError(
            f"save: only the estimators of this library can be loaded again, and {name} is none of them."
        )
    try:
        _restore(Manifest(KIND, name, "", json.loads(json.dumps(manifest))), dict(tensors))
    except FileFormatError as error:
        raise InvalidInputError(
            f"save: the settings no longer fit the trained networks: {error} Set them back, or fit again."
        ) from None


def _restore(manifest: Manifest, tensors: dict[str, Tensor]) -> LearnedFunnel:
    """A fitted estimator. Networks are built without memory first: sizes are checked before they count."""
    payload = manifest.payload
    estimator = _classes()[manifest.name](**read_settings(payload, _classes()[manifest.name]))
    check_settings(estimator.get_params(deep=False))
    n_features = require(payload, "n_features_in", int)
    private = read_private(payload)
    if (private is None) == estimator.needs_private:
        raise FileFormatError("the private attributes do not fit the class.")
    with torch.device("meta"):
        modules = estimator._modules(n_features, private)
    device = pick_device(estimator.device)
    modules = _filled(modules, _with_scaling(tensors, n_features)).to(device)
    training = require(payload, "training", dict)
    if training.get("unit") != "bit":
        raise FileFormatError(f"the history is in {training.get('unit')!r} and not in bits.")
    epoch, history = require(training, "epoch", int), require(training, "history", list)
    seed = require(payload, "seed", int)
    # For partial_fit: other batches and noise than in the epochs before.
    state = np.random.SeedSequence([seed, epoch]).generate_state(1)
    generator = torch.Generator().manual_seed(int(state[0]))
    trained = Trained(
        modules,
        estimator._step(modules, private, generator),
        generator,
        Progress(epoch, history, TrainingStatus[training["status"]], seed),
        device,
        require(payload, "fingerprint", str),
        require(payload, "n_records", int),
        _read_marks(payload.get("marks")),
        read_result(Verdict | None, payload.get("verdict")),
        read_result(Budget | None, payload["budget"]),
    )
    if isinstance(estimator, Funnel) and trained.verdict is None:
        trained.verdict = not_measured("the model was saved without a verdict")
    estimator._take(trained, private, _shape(payload))
    return estimator


def _describe_marks(marks: Marks | None) -> dict[str, Any]:
    return {} if marks is None else {"marks": {"key": marks.key.hex(), "records": marks.marks.tolist()}}


def _read_marks(described: Any) -> Marks | None:
    """Those of a training; None where they were not kept yet."""
    if described is None:
        return None
    marks = np.array(require(described, "records", list), dtype=np.uint64)
    return Marks(checked_key(bytes.fromhex(require(described, "key", str))), marks)


def _restore_encoder(manifest: Manifest, tensors: dict[str, Tensor]) -> FunnelEncoder:
    """An encoder that was handed on."""
    payload = manifest.payload
    encoder = FunnelEncoder(**read_settings(payload, FunnelEncoder))
    encoder.prefix_ = require(payload, "code_names", str)
    n_features = require(payload, "n_features_in", int)
    with torch.device("meta"):
        modules = encoder._modules(n_features)
    encoder.device_ = pick_device(encoder.device)
    encoder.modules_ = _filled(modules, _with_scaling(tensors, n_features)).to(encoder.device_)
    for name, value in _shape(payload).items():
        setattr(encoder, name, value)
    return encoder


def _with_scaling(tensors: dict[str, Tensor], n_features: int) -> dict[str, Tensor]:
    """Encoders have a part of the scaling, older models as well, or none where records came as they were."""
    return {f"scaling.{key}": t for key, t in Scaling(n_features).state_dict().items()} | tensors


def _filled(modules: nn.ModuleDict, tensors: dict[str, Tensor]) -> nn.ModuleDict:
    """Networks with their weights, after a look at their sizes."""
    expected = {name: tuple(tensor.shape) for name, tensor in modules.state_dict().items()}
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if expected != found:
        wrong = sorted(name for name in {*expected, *found} if expected.get(name) != found.get(name))
        raise FileFormatError(
            f"the weights {wrong[0]!r} have shape {found.get(wrong[0])} where the settings ask for "
            f"{expected.get(wrong[0])}."
        )
    modules.load_state_dict(tensors, assign=True)
    return modules


def _shape(payload: dict[str, Any]) -> dict[str, Any]:
    """What records must look like."""
    n_features, shape = require(payload, "n_features_in", int), payload["record_shape"]
    if shape is not None and (not shape or int(np.prod(shape)) != n_features):
        raise FileFormatError(f"records of shape {shape} do not have {n_features} values.")
    found: dict[str, Any] = {
        "n_features_in_": n_features,
        "record_shape_": None if shape is None else tuple(shape),
    }
    if (names := payload["feature_names_in"]) is not None:
        if len(names) != n_features:
            raise FileFormatError(f"{len(names)} names are given for {n_features} features.")
        found["feature_names_in_"] = np.array(names, dtype=object)
    return found


def _classes() -> dict[str, type[LearnedFunnel]]:
    """The estimators that may be named in a manifest: those of this package, by name."""
    from .. import learned

    named = {name: getattr(learned, name) for name in learned.__all__}
    return {name: c for name, c in named.items() if isinstance(c, type) and issubclass(c, LearnedFunnel)}


def _versions() -> dict[str, str]:
    import safetensors
    import sklearn

    from .. import __version__

    return {
        "privacyfunnel": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "safetensors": safetensors.__version__,
    }


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


def _describe_private(private: PrivateAttributes | None) -> dict[str, Any]:
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
    """The attributes of `_describe_private`, checked."""
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
