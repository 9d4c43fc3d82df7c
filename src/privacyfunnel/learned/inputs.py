"""What the learned estimators accept: settings, seeds and devices; records, and the marks to know them by."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import Tensor

from ..arrays import from_tensor
from ..errors import InvalidInputError
from ..frames import column_names
from ..keys import KEY_BYTES
from ..spark import is_spark
from .families import Likelihood

# Records of a training whose marks are kept, and bytes of a mark.
N_MARKS, MARK_BYTES = 1024, 8

COUNTS = ("n_components", "batch_size", "classifier_steps")
WEIGHTS = ("alpha", "beta", "gamma", "leakage_weight", "adversarial_rate")
CHOICES = {
    "architecture": ("mlp", "conv"),
    "classifier": ("mlp", "linear"),
    "objective": ("dca", "lagrangian"),
    "schedule": ("alternating", "simultaneous"),
    "scale": ("auto", "columns", "common", "none"),
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that no training can use; those that an estimator lacks are not looked at."""
    for name in COUNTS:
        if name in settings and not _is_count(settings[name]):
            raise InvalidInputError(
                f"{name} must be a whole number from 1 on; it is {settings[name]!r}.", names=(name,)
            )
    # Those with a choice of objective find a price of code themselves.
    open_price = "objective" in settings and settings["alpha"] is None
    for name in WEIGHTS[1:] if open_price else WEIGHTS:
        if name in settings and not (_is_finite(settings[name]) and settings[name] >= 0):
            raise InvalidInputError(
                f"{name} must be a finite number from 0 on; it is {settings[name]!r}.", names=(name,)
            )
    epochs, share = settings["epochs"], settings.get("validation_fraction", 0.0)
    if epochs is not None and not _is_count(epochs):
        raise InvalidInputError(
            f"epochs must be a whole number from 1 on, or None; it is {epochs!r}.", names=("epochs",)
        )
    if not (_is_finite(share) and 0 <= share <= 0.5):
        raise InvalidInputError(
            f"validation_fraction must lie between 0 and 0.5; it is {share!r}.",
            names=("validation_fraction",),
        )
    budget = settings.get("max_leakage")
    if budget is not None and not (_is_finite(budget) and budget > 0):
        raise InvalidInputError(
            f"max_leakage must be a positive number of bits; it is {budget!r}.", names=("max_leakage",)
        )
    if not _is_finite(settings.get("offset", 0.0)):
        raise InvalidInputError(
            f"offset must be a finite number; it is {settings['offset']!r}.", names=("offset",)
        )
    rate = settings["learning_rate"]
    if not (_is_finite(rate) and rate > 0):
        raise InvalidInputError(
            f"learning_rate must be a finite number above 0; it is {rate!r}.", names=("learning_rate",)
        )
    hidden = settings["hidden"]
    if not isinstance(hidden, Iterable) or isinstance(hidden, str) or not all(map(_is_count, hidden)):
        raise InvalidInputError(
            f"hidden must be a sequence of layer sizes, such as (500, 500); it is {hidden!r}.",
            names=("hidden",),
        )
    if not isinstance(settings.get("align", False), bool):
        raise InvalidInputError(
            f"align must be True or False; it is {settings['align']!r}.", names=("align",)
        )
    for name, allowed in CHOICES.items():
        if name in settings and settings[name] not in allowed:
            listed = " or ".join(repr(choice) for choice in allowed)
            raise InvalidInputError(f"{name} must be {listed}; it is {settings[name]!r}.", names=(name,))
    if settings["likelihood"] == "exponential" and settings.get("objective") == "dca":
        raise InvalidInputError(
            "likelihood='exponential' needs objective='lagrangian': its −log P(X|Z) can be negative, and the "
            "square of 'dca' would be lowest where nothing is kept.",
            names=("likelihood", "objective"),
        )
    folder, state, numeric = (settings[name] for name in ("checkpoint", "release_state", "numeric"))
    if not isinstance(folder, (str, os.PathLike, type(None))):
        raise InvalidInputError(
            f"checkpoint must be a folder's name or None; it is {folder!r}.", names=("checkpoint",)
        )
    if state is not None and not isinstance(state, np.random.Generator) and not _is_seed(state):
        raise InvalidInputError(
            f"release_state must be None, a whole number from 0 on or a numpy Generator; it is {state!r}.",
            names=("release_state",),
        )
    if isinstance(numeric, str) or not isinstance(numeric, Iterable):
        raise InvalidInputError(
            f"numeric must be a list of names, such as ['income']; it is {numeric!r}.", names=("numeric",)
        )


def pick_device(name: Any) -> torch.device:
    """The device to train on; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInputError(
            f"device must be 'auto' or a device of torch, such as 'cpu' or 'cuda:0'; it is {name!r}.",
            names=("device",),
        ) from None
    try:
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError):
        raise InvalidInputError(
            f"device {name!r} is not there, or not in this build of torch; use 'cpu' or 'auto'.",
            names=("device",),
        ) from None
    return device


def draw_seed(state: Any) -> int:
    """A number that seeds a whole training; from the operating system for None."""
    if state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(state, np.random.Generator):
        return int(state.integers(2**63))
    if isinstance(state, np.random.RandomState):
        return int(state.randint(2**31 - 1))
    if _is_seed(state):
        return int(state)
    raise InvalidInputError(
        f"random_state must be None, a whole number from 0 on or a numpy Generator; it is {state!r}.",
        names=("random_state",),
    )


def fingerprint_of(tensors: Sequence[Tensor], after: str = "") -> str:
    """A hash of the training data: records and private attributes, and those behind an earlier hash."""
    digest = hashlib.sha256(after.encode())
    for tensor in tensors:
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(np.ascontiguousarray(tensor.numpy()).ravel().view(np.uint8).data)
    return digest.hexdigest()


def _is_seed(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def read_records(estimator: Any, X: Any, *, reset: bool) -> Tensor:
    """X as a float32 tensor with a row a record; with `reset` the estimator takes its features from it."""
    X = from_tensor(X)
    if is_spark(X):
        raise InvalidInputError(
            "X is a frame of Spark; release it there with release_frame, or pass X.toPandas()."
        )
    if isinstance(X, np.ndarray) and X.ndim > 2:
        if reset:
            estimator.record_shape_ = X.shape[1:]
        elif estimator.record_shape_ and X.shape[1:] != tuple(estimator.record_shape_):
            raise InvalidInputError(
                f"a record of X has the shape {X.shape[1:]}; fit saw {tuple(estimator.record_shape_)}, pass "
                "such records."
            )
        X = X.reshape(len(X), -1)
    elif reset:
        estimator.record_shape_ = None
    _require_numbers(X)
    try:
        table = validate_data(
            estimator, X, dtype=np.float32, reset=reset, ensure_min_samples=2 if reset else 1
        )
    except ValueError as error:
        raise (_where(X) or error) from None
    return as_tensor(table)


def as_tensor(table: NDArray[np.float32]) -> Tensor:
    """The same memory, unless it is read-only (pandas' often is): torch has no such tensors."""
    return torch.from_numpy(np.require(table, requirements=["C", "W"]))


def check_range(x: Tensor, family: Likelihood) -> None:
    """Refuse records that the likelihood has no density for."""
    low, high = float(x.min()), float(x.max())
    if low < family.lowest or high > family.highest:
        raise InvalidInputError(
            f"X must lie between {family.lowest:g} and {family.highest:g} for "
            f"likelihood={family.name!r}; it lies between {low:g} and {high:g}. "
            "Scale it, or choose another likelihood.",
            names=("likelihood",),
        )


def check_square(shape: tuple[int, ...] | None) -> None:
    """Refuse images, where their shape is known, that a convolution over squares in grey would scramble."""
    sides = [n for n in shape or () if n != 1]
    if shape is not None and (len(sides) != 2 or sides[0] != sides[1]):
        raise InvalidInputError(
            f"architecture='conv' needs square single-channel images; a record has the shape {tuple(shape)}. "
            "Use architecture='mlp'.",
            names=("architecture",),
        )


def _require_numbers(X: Any) -> None:
    """Refuse a frame's column of texts, categories or dates by its name."""
    for name, column in _columns(X):
        kind = column.dtype.kind
        texts = kind == "O" and any(isinstance(value, str) for value in column)
        if texts or kind not in "biufO":
            what = "texts" if texts or kind in "UT" else f"values of type {column.dtype}"
            raise InvalidInputError(
                f"X: could not convert column {name!r} to numbers, it holds {what}; encode it first, as "
                "datasets.adult_records shows, or leave it out."
            )


def _where(X: Any) -> InvalidInputError | None:
    """The first value that is missing or infinite, by row and column."""
    names = [name for name, _ in _columns(X)]
    try:
        table = np.column_stack([column for _, column in _columns(X)]) if names else np.asarray(X)
        table = table if table.dtype.kind == "c" else table.astype(np.float64)
    except (TypeError, ValueError):
        return None
    if table.dtype.kind == "c" or table.ndim != 2 or np.isfinite(table).all():
        return None
    row, column = (int(at) for at in np.argwhere(~np.isfinite(table))[0])
    what = "NaN (a missing value)" if np.isnan(table[row, column]) else "infinity"
    place = repr(names[column]) if names else str(column)
    return InvalidInputError(
        f"Input X contains {what} in row {row}, column {place}; fill it in, or drop the record."
    )


def _columns(X: Any) -> list[tuple[Any, NDArray[Any]]]:
    """A frame's columns by name; none of anything else."""
    return [(name, np.asarray(X[name])) for name in column_names(X, "X") or []]


@dataclass(frozen=True, eq=False)
class Marks:
    """Keyed marks of a training's records, so that its owner notices them when they come again.

    A mark is a keyed BLAKE2b of a record. The smallest are kept: whatever part of the training comes again,
    in whatever order, those of its records that have small marks are found. Records that occur twice in one
    part say little about who they are, and are left out.

    Attributes
    ----------
    key : bytes
        From the system's entropy, for this training alone. It stays with the marks, and both with the owner:
        with the key anybody could try which records were there.
    marks : (at most N_MARKS,) array
        In ascending order.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(KEY_BYTES))
    marks: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    def after(self, records: NDArray[Any]) -> Marks:
        """Those of these records, one a row, as well."""
        found = np.union1d(self.marks, self._of(records))
        return Marks(self.key, found[:N_MARKS])

    def share(self, records: NDArray[Any]) -> float | None:
        """An estimate of the share of these records that was marked; None where there is nothing to go by."""
        found = self._of(records)
        if len(self.marks) == N_MARKS:
            found = found[found <= self.marks[-1]]
        return float(np.isin(found, self.marks).mean()) if len(found) and len(self.marks) else None

    def _of(self, records: NDArray[Any]) -> NDArray[np.uint64]:
        rows = np.ascontiguousarray(records).reshape(len(records), -1)
        digests = b"".join(
            hashlib.blake2b(row.data, digest_size=MARK_BYTES, key=self.key).digest() for row in rows
        )
        marks, times = np.unique(np.frombuffer(digests, dtype="<u8").astype(np.uint64), return_counts=True)
        once: NDArray[np.uint64] = marks[times == 1]
        return once
