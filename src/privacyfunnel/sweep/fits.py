"""Learned runs: train on one part of the records, and keep the model, so that it can be judged again.

Training takes minutes to hours, judging minutes, and what a judge does changes more often than what is
trained. A model is kept under the key of its training alone: class, settings, seed and training records.

    models/<key>/model/        the whole model, for the owner of the records
    models/<key>/checkpoint/   of a training under way: one that was killed goes on from it
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, FileFormatError
from ..estimators import estimator
from ..persistence import load
from .data import Records, training_mark
from .judging import JUDGING, judged
from .runs import canonical, plain

# Of an estimator: what does not change the weights that it learns, and the seed, which is named apart.
_NOT_TRAINED = ("checkpoint", "device", "progress", "random_state", "release_state")
_MODELS: ContextVar[Path | None] = ContextVar("models", default=None)


@contextmanager
def models_kept_in(folder: Path | None) -> Iterator[None]:
    """Keep the models that are trained meanwhile in this folder, and take from it those that are there."""
    before = _MODELS.set(folder)
    try:
        yield
    finally:
        _MODELS.reset(before)


def fit_and_judge(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> dict[str, Any]:
    """Train a learned funnel on the training part; judge its releases of the other part."""
    model = fit(method, {k: v for k, v in settings.items() if k not in JUDGING}, seed, records)
    judging = {k: v for k, v in settings.items() if k in (*JUDGING, "numeric")}
    return {
        "status": model.status_.name,
        "n_parameters": sum(p.numel() for p in model.modules_.parameters()),
        "n_trained": len(records.x_train),
        # Where training ran away, the page says when.
        "best_epoch": 1 + int(np.argmin(np.asarray(model.history_["reconstruction"]))),
        **_budget(model),
        **judged(model, records, seed, **judging),
    }


def _budget(model: Any) -> dict[str, Any]:
    """What budget mode says of itself, where it was asked for."""
    if (budget := getattr(model, "budget_", None)) is None:
        return {}
    return {
        "budget_status": budget.status.name,
        "budget_upper": budget.upper,
        "budget_leakage_weight": budget.leakage_weight,
    }


def fit(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> Any:
    """The estimator of that name, fitted on the training part or read from where it is kept."""
    folder = _MODELS.get()
    if folder is None:
        return _trained(method, settings, seed, records)
    from ..learned.training import locked

    place = folder / training_key(method, settings, seed, records)
    try:
        place.mkdir(parents=True, exist_ok=True)
        handle = os.open(place / "training.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataFileError(
            f"{place}: the model cannot be kept here ({error.strerror or error}); choose a store that may be "
            "written."
        ) from None
    try:
        # Two runs that differ in their judges alone share a training: the second waits for the first.
        locked(handle, wait=True)
        model = _kept(place / "model", seed)
        if model is None:
            checkpoint = place / "checkpoint"
            model = _trained(method, {**settings, "checkpoint": str(checkpoint)}, seed, records)
            model.save(place / "model")
            shutil.rmtree(checkpoint, ignore_errors=True)
    finally:
        os.close(handle)
    return model


def training_key(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> str:
    """The hash of all that the weights depend on; a setting and its default written out are one."""
    from .execute import installed_version

    asked = _asked(method, settings)
    chosen = {k: v for k, v in asked.get_params(deep=False).items() if k not in _NOT_TRAINED}
    identity = {
        "version": installed_version(),
        "class": type(asked).__name__,
        "settings": plain(chosen, "settings"),
        "seed": seed,
        "records": training_mark(records),
    }
    return hashlib.sha256(canonical(identity).encode()).hexdigest()


def _asked(method: str, settings: Mapping[str, Any], **more: Any) -> Any:
    given = {name: tuple(value) if name == "hidden" else value for name, value in settings.items()}
    return estimator(method)(**given, **more)


def _trained(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> Any:
    model = _asked(method, settings, random_state=seed, release_state=seed, device="cpu", progress=False)
    model.fit(records.x_train, {records.name: records.y_train})
    refuse_interrupted(model.status_)
    return model


def _kept(folder: Path, seed: int) -> Any | None:
    """The model that was saved here; None where there is none, or it is damaged."""
    try:
        model = load(folder)
    except (DataFileError, FileFormatError):
        return None
    return model.set_params(release_state=seed, device="cpu", progress=False)


def refuse_interrupted(status: Any) -> None:
    """Ctrl-C makes solvers return the best so far; that is no result of the run."""
    if status.name == "INTERRUPTED":
        raise KeyboardInterrupt
