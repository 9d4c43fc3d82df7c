"""Private attributes as the learned funnel sees them: columns of classes or of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..errors import InvalidInputError


@dataclass(frozen=True, eq=False)
class PrivateColumn:
    """One attribute: its classes, or the mean and scale of a numeric one; and H(Y) in nats.

    The entropy is the empirical one of the classes; for numbers that of the Gaussian with their variance,
    after standardising.
    """

    name: str
    classes: NDArray[Any] | None
    entropy: float
    frequencies: NDArray[np.float64] | None = None
    mean: float = 0.0
    scale: float = 1.0

    @property
    def n_outputs(self) -> int:
        """How many numbers the classifier gives for it: logits, or mean and log-scale."""
        return 2 if self.classes is None else len(self.classes)

    def encode(self, values: NDArray[Any]) -> Tensor:
        """Class numbers or standardised values."""
        words = values.dtype.kind == "U"
        if self.classes is None:
            if words:
                raise InvalidInputError(
                    f"private {self.name} was numeric at the first fit and holds strings now; pass numbers."
                )
            return torch.from_numpy(((values.astype(np.float64) - self.mean) / self.scale).astype(np.float32))
        if words == (self.classes.dtype.kind == "U"):
            at = np.minimum(np.searchsorted(self.classes, values), len(self.classes) - 1)
            unknown = self.classes[at] != values
        else:  # strings among numbers or numbers among strings cannot even be compared
            at, unknown = np.zeros(len(values), dtype=np.intp), np.ones(len(values), dtype=bool)
        if unknown.any():
            row = int(np.argmax(unknown))
            raise InvalidInputError(
                f"private {self.name}: the value {values[row].item()!r} in row {row} was not among the "
                "classes at the first fit; pass every class there, or fit anew."
            )
        return torch.from_numpy(at.astype(np.int64))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """−log Q(y|z) by record, in nats."""
        if self.classes is not None:
            return functional.cross_entropy(output, target, reduction="none")
        mean, log_scale = output[:, 0], output[:, 1].clamp(-5.0, 5.0)
        half_log = 0.5 * float(np.log(2 * np.pi))
        return 0.5 * ((target - mean) / log_scale.exp()).square() + log_scale + half_log


@dataclass(frozen=True, eq=False)
class PrivateAttributes:
    """All private attributes of a fit."""

    columns: tuple[PrivateColumn, ...]

    @property
    def n_outputs(self) -> int:
        return sum(column.n_outputs for column in self.columns)

    @property
    def entropy(self) -> float:
        """Σ H(Y_j) in nats."""
        return sum(column.entropy for column in self.columns)

    def encode(self, values: Sequence[NDArray[Any]]) -> list[Tensor]:
        return [column.encode(one) for column, one in zip(self.columns, values, strict=True)]

    def losses(self, output: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        """−log Q(y|z) by record for each attribute, from one classifier's concatenated outputs."""
        parts = output.split([column.n_outputs for column in self.columns], dim=1)
        triples = zip(self.columns, parts, targets, strict=True)
        return [column.loss(part, target) for column, part, target in triples]

    def one_hot(self, targets: Sequence[Tensor]) -> Tensor:
        """The attributes as inputs of a network: one-hot classes, standardised numbers."""
        parts = []
        for column, target in zip(self.columns, targets, strict=True):
            if column.classes is None:
                parts.append(target[:, None].float())
            else:
                parts.append(functional.one_hot(target, len(column.classes)).float())
        return torch.cat(parts, dim=1)

    @property
    def n_one_hot(self) -> int:
        return sum(1 if column.classes is None else len(column.classes) for column in self.columns)


def split_columns(private: Any, n_rows: int) -> list[tuple[str, NDArray[Any]]]:
    """The columns of an array, a frame, a series, a tensor or a sequence of labels, by name."""
    if isinstance(private, Tensor):
        private = private.detach().cpu().numpy()
    # pyarrow's tables name their columns elsewhere than pandas and polars.
    named = getattr(private, "column_names", getattr(private, "columns", None))
    if named is not None and not isinstance(private, np.ndarray):
        columns = [(str(name), np.asarray(private[name])) for name in named]
    else:
        table = np.asarray(private)
        if table.ndim == 1:
            name = getattr(private, "name", None)
            columns = [("y" if name is None else str(name), table)]
        elif table.ndim == 2 and table.shape[1] >= 1:
            columns = [(f"y{j}", table[:, j]) for j in range(table.shape[1])]
        else:
            raise InvalidInputError(
                f"private must be one column or a table of them; its shape is {table.shape}."
            )
    for name, values in columns:
        if len(values) != n_rows:
            raise InvalidInputError(
                f"private {name} has {len(values)} rows and X has {n_rows}; pass one private value for "
                "each record."
            )
    return [(name, _clean(name, values)) for name, values in columns]


def _clean(name: str, values: NDArray[Any]) -> NDArray[Any]:
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


def describe(columns: Sequence[tuple[str, NDArray[Any]]]) -> PrivateAttributes:
    """Classes, frequencies and entropies. Floats that are not all whole are numeric, everything else is
    classes."""
    described = []
    for name, values in columns:
        if values.dtype.kind == "f" and not np.array_equal(values, np.rint(values)):
            scale = float(values.std())
            if scale == 0.0:
                raise InvalidInputError(
                    f"private {name} has the same value in every record; nothing to protect."
                )
            entropy = 0.5 * float(np.log(2 * np.pi * np.e))
            described.append(PrivateColumn(name, None, entropy, None, float(values.mean()), scale))
            continue
        classes, counts = np.unique(values, return_counts=True)
        if len(classes) < 2:
            raise InvalidInputError(
                f"private {name} has one class only ({classes[0].item()!r}); there is nothing to protect."
            )
        share = counts / counts.sum()
        described.append(PrivateColumn(name, classes, float(-(share * np.log(share)).sum()), share))
    return PrivateAttributes(tuple(described))
