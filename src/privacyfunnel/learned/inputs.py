"""What the learned estimators accept: settings, checked before any work; seeds, devices, data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InvalidInputError

COUNTS = ("n_components", "epochs", "batch_size", "classifier_steps")
WEIGHTS = ("alpha", "beta", "gamma", "leakage_weight", "adversarial_rate")
CHOICES = {
    "architecture": ("mlp", "conv"),
    "classifier": ("mlp", "linear"),
    "objective": ("dca", "lagrangian"),
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that no training can use; those that an estimator lacks are not looked at."""
    for name in COUNTS:
        if name in settings and not _is_count(settings[name]):
            raise InvalidInputError(f"{name} must be a whole number from 1 on; it is {settings[name]!r}.")
    for name in WEIGHTS:
        if name in settings and not (_is_finite(settings[name]) and settings[name] >= 0):
            raise InvalidInputError(f"{name} must be a finite number from 0 on; it is {settings[name]!r}.")
    rate = settings["learning_rate"]
    if not (_is_finite(rate) and rate > 0):
        raise InvalidInputError(f"learning_rate must be a finite number above 0; it is {rate!r}.")
    hidden = settings["hidden"]
    if not isinstance(hidden, Iterable) or isinstance(hidden, str) or not all(map(_is_count, hidden)):
        raise InvalidInputError(
            f"hidden must be a sequence of layer sizes, such as (500, 500); it is {hidden!r}."
        )
    for name, allowed in CHOICES.items():
        if name in settings and settings[name] not in allowed:
            listed = " or ".join(repr(choice) for choice in allowed)
            raise InvalidInputError(f"{name} must be {listed}; it is {settings[name]!r}.")


def pick_device(name: Any) -> torch.device:
    """The device to train on; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInputError(
            f"device must be 'auto' or a device of torch, such as 'cpu' or 'cuda:0'; it is {name!r}."
        ) from None


def draw_seed(state: Any) -> int:
    """A number that seeds a whole training; from the operating system for None."""
    if state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**63))
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    if isinstance(state, Integral) and not isinstance(state, bool) and int(state) >= 0:
        return int(state)
    raise InvalidInputError(
        f"random_state must be None, a whole number from 0 on or a numpy Generator; it is {state!r}."
    )


def as_tensor(table: NDArray[np.float32]) -> Tensor:
    """The same memory, unless it is read-only (pandas' often is): torch has no such tensors."""
    return torch.from_numpy(np.require(table, requirements=["C", "W"]))


def fingerprint_of(tensors: Sequence[Tensor]) -> str:
    """A hash of the training data: records and private attributes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(np.ascontiguousarray(tensor.numpy()).ravel().view(np.uint8).data)
    return digest.hexdigest()


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
