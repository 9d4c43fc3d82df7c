"""What the learned estimators accept: settings, checked before any work; seeds, devices, data, labels."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InvalidInputError

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
            raise InvalidInputError(f"{name} must be a whole number from 1 on; it is {settings[name]!r}.")
    for name in WEIGHTS:
        if name in settings and not (_is_finite(settings[name]) and settings[name] >= 0):
            raise InvalidInputError(f"{name} must be a finite number from 0 on; it is {settings[name]!r}.")
    epochs, share = settings["epochs"], settings.get("validation_fraction", 0.0)
    if epochs is not None and not _is_count(epochs):
        raise InvalidInputError(f"epochs must be a whole number from 1 on, or None; it is {epochs!r}.")
    if not (_is_finite(share) and 0 <= share <= 0.5):
        raise InvalidInputError(f"validation_fraction must lie between 0 and 0.5; it is {share!r}.")
    budget = settings.get("max_leakage")
    if budget is not None and not (_is_finite(budget) and budget > 0):
        raise InvalidInputError(f"max_leakage must be a positive number of bits; it is {budget!r}.")
    if not _is_finite(settings.get("offset", 0.0)):
        raise InvalidInputError(f"offset must be a finite number; it is {settings['offset']!r}.")
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
    if settings["likelihood"] == "exponential" and settings.get("objective") == "dca":
        raise InvalidInputError(
            "likelihood='exponential' needs objective='lagrangian': its −log P(X|Z) can be negative, and the "
            "square of 'dca' would be lowest where nothing is kept."
        )
    folder, state, numeric = (settings[name] for name in ("checkpoint", "release_state", "numeric"))
    if not isinstance(folder, (str, os.PathLike, type(None))):
        raise InvalidInputError(f"checkpoint must be a folder's name or None; it is {folder!r}.")
    if state is not None and not isinstance(state, np.random.Generator) and not _is_seed(state):
        raise InvalidInputError(
            f"release_state must be None, a whole number from 0 on or a numpy Generator; it is {state!r}."
        )
    if isinstance(numeric, str) or not isinstance(numeric, Iterable):
        raise InvalidInputError(f"numeric must be a list of names, such as ['income']; it is {numeric!r}.")


def pick_device(name: Any) -> torch.device:
    """The device to train on; "auto" is a GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise InvalidInputError(
            f"device must be 'auto' or a device of torch, such as 'cpu' or 'cuda:0'; it is {name!r}."
        ) from None
    try:
        torch.zeros(1, device=device).cpu()
    except (AssertionError, NotImplementedError, RuntimeError):
        raise InvalidInputError(
            f"device {name!r} is not there, or not in this build of torch; use 'cpu' or 'auto'."
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
        f"random_state must be None, a whole number from 0 on or a numpy Generator; it is {state!r}."
    )


def as_array(values: Any) -> Any:
    """A tensor as an array, everything else as it is."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def column_names(values: Any, what: str) -> list[Any] | None:
    """The names of a frame's columns; None for what is no frame."""
    if hasattr(values, "collect_schema") and not hasattr(values, "shape"):
        raise InvalidInputError(f"{what} is a lazy frame, which has no rows yet; call its collect() first.")
    # pyarrow's tables name their columns elsewhere than pandas and polars.
    named = getattr(values, "column_names", getattr(values, "columns", None))
    return None if named is None or isinstance(values, np.ndarray) else list(named)


def fingerprint_of(tensors: Sequence[Tensor], after: str = "") -> str:
    """A hash of the training data: records and private attributes, and those behind an earlier hash."""
    digest = hashlib.sha256(after.encode())
    for tensor in tensors:
        digest.update(repr((tuple(tensor.shape), str(tensor.dtype))).encode())
        digest.update(np.ascontiguousarray(tensor.numpy()).ravel().view(np.uint8).data)
    return digest.hexdigest()


def split_columns(
    private: Any, n_rows: int, names: Sequence[str] | None = None
) -> list[tuple[str, NDArray[Any]]]:
    """The columns of an array, a frame, a series, a tensor or a sequence of labels, by name.

    Parameters
    ----------
    private : the attributes of each record
    n_rows : int
        How many records there are.
    names : sequence of str, optional
        The attributes of an earlier fit: a frame's columns are put into this order, others go by position.
    """
    private = as_array(private)
    named = column_names(private, "private")
    if named is not None:
        repeated = [name for name in named if named.count(name) > 1]
        if repeated or not named:
            found = f"has the column {repeated[0]!r} twice" if repeated else "has no columns"
            raise InvalidInputError(f"private {found}; pass one column for each attribute.")
        columns = [(str(name), np.asarray(private[name])) for name in named]
        if names is not None and {name for name, _ in columns} == {*names}:
            columns.sort(key=lambda column: names.index(column[0]))
        elif names is not None and len(names) > 1:
            raise InvalidInputError(
                f"private has the columns {', '.join(name for name, _ in columns)}; the first fit saw "
                f"{', '.join(names)}, pass the same."
            )
    else:
        table = np.asarray(private)
        if table.ndim == 1:
            name = getattr(private, "name", None)
            columns = [("y" if name is None or name == "" else str(name), table)]
        elif table.ndim == 2 and table.shape[1] >= 1:
            columns = [(f"y{j}", table[:, j]) for j in range(table.shape[1])]
        else:
            raise InvalidInputError(
                f"private must be one column or a table of them; its shape is {table.shape}."
            )
    if names is not None:
        if len(columns) != len(names):
            raise InvalidInputError(
                f"private has {len(columns)} columns; the first fit saw {len(names)} ({', '.join(names)}), "
                "pass the same."
            )
        columns = [(name, values) for name, (_, values) in zip(names, columns, strict=True)]
    for name, values in columns:
        if len(values) != n_rows:
            raise InvalidInputError(
                f"private {name} has {len(values)} rows and X has {n_rows}; pass one private value for "
                "each record."
            )
    return [(name, clean_labels(name, values)) for name, values in columns]


def clean_labels(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Booleans, numbers or strings without gaps; objects become what they all are."""
    if values.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in values])
        if missing.any():
            raise InvalidInputError(
                f"private {name}: row {int(np.argmax(missing))} is missing; give it a class of its own, or "
                "drop the record."
            )
        for types in ((str,), (bool, np.bool_), (Real,)):
            if all(isinstance(value, types) for value in values):
                values = np.array(values.tolist())
                break
    kind = values.dtype.kind
    if kind == "T":
        return values.astype(str)
    if kind not in "biufU":
        found = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
        raise InvalidInputError(
            f"Unknown label type: private {name} holds values of type {found}; pass all strings, or all "
            "numbers, or all booleans."
        )
    if kind == "f" and not np.isfinite(values).all():
        raise InvalidInputError(
            f"private {name}: row {int(np.argmin(np.isfinite(values)))} is missing or infinite; give it a "
            "value or drop the record."
        )
    return values


def _is_missing(value: Any) -> bool:
    # pandas' NA is neither equal nor unequal to itself, so it goes by its name.
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, float) and value != value)
    )


def _is_seed(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_finite(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
