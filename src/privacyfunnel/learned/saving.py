"""Fitted models as folders: weights in safetensors, everything else in manifest.json. Nothing is executed.

manifest.py has the files. Optimisers are not saved: `partial_fit` after loading continues from the weights
with new ones. Nor are the settings of a session (SESSION): above all, a seeded `release_state` in a folder
would make every release from it predictable.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from ..errors import FileFormatError, InvalidInputError
from ..keys import checked_key
from ..persistence import (
    Path_,
    require,
)
from .aligned import refuse_aligned
from .base import LearnedFunnel, Trained
from .budget import Budget
from .encoder import FunnelEncoder, Releasing
from .funnel import Funnel
from .inputs import Marks, check_settings, pick_device
from .manifest import (
    ENCODER_KIND,
    KIND,
    MANIFEST,
    SESSION,
    Manifest,
    UnknownSettingError,
    describe_private,
    encode_value,
    read_manifest,
    read_private,
    read_settings,
    read_weights,
    weights_file,
    write_model,
)
from .networks import Scaling
from .training import Progress, TrainingStatus, encode_result, read_result
from .verdict import Verdict, not_measured

ENCODER_SETTINGS = ("n_components", "hidden", "architecture", "latent")
ABOUT_MODEL = (
    "The whole model, for its owner alone: it tells how many records have each private value. To hand on "
    "what releases codes, use save(folder, part='encoder')."
)
ABOUT_ENCODER = "What releases codes and nothing else; privacyfunnel.load reads it, pfunnel encode uses it."


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
        **describe_private(estimator.private_),
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
    """Encoders have no scalars of the scaling, older models not all; or nothing where records came as they
    were."""
    own = {f"scaling.{key}": tensor for key, tensor in Scaling(n_features).state_dict().items()}
    if any(name in own for name in tensors):
        own = {name: tensor for name, tensor in own.items() if not tensor.ndim}
    return own | tensors


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
