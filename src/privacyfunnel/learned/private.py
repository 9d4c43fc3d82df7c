"""Private attributes as the learned funnel sees them: columns of classes or of numbers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..errors import InvalidInputError, shortened
from .inputs import clean_labels

MANY = 20  # classes of a number, from which on they may be too many
# Combinations of classes up to which one head guesses them all; with more, records by combination are few.
MOST_TOGETHER = 256


@dataclass(frozen=True, eq=False)
class PrivateColumn:
    """One attribute: its classes, or what standardises a numeric one; and what was seen of it so far.

    Attributes
    ----------
    name : str
    classes : array or None
        In ascending order; None for a numeric attribute.
    seen : array
        Records by class; for a numeric attribute n, Σu and Σu² of its standardised values u.
    mean, scale : float
        u = (value − mean) / scale, fixed by the first records.
    """

    name: str
    classes: NDArray[Any] | None
    seen: NDArray[np.float64]
    mean: float = 0.0
    scale: float = 1.0

    @cached_property
    def entropy(self) -> float:
        """H(Y) in nats over all records seen: the empirical one of the classes; for numbers, standardised,
        that of the Gaussian with their variance."""
        if self.classes is None:
            n, total, squares = self.seen
            return 0.5 * float(np.log(2 * np.pi * math.e * (squares / n - (total / n) ** 2)))
        share = self.seen[self.seen > 0] / self.seen.sum()
        return float(-(share * np.log(share)).sum())

    def after(self, target: Tensor) -> PrivateColumn:
        """The same attribute with these records, encoded, seen as well."""
        values = target.cpu().numpy()
        if self.classes is None:
            numbers = values.astype(np.float64)
            new = np.array([len(numbers), numbers.sum(), np.square(numbers).sum()])
        else:
            new = np.bincount(values, minlength=len(self.classes)).astype(np.float64)
        return replace(self, seen=self.seen + new)

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
                f"private {self.name}: the value {shortened(values[row].item())} in row {row} was not "
                "among the classes at the first fit; name all of them there (partial_fit takes classes=), or "
                "the attribute in numeric if these are numbers, or fit anew."
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
    """All private attributes of a fit.

    Attributes
    ----------
    columns : tuple of PrivateColumn
    together : array or None
        Records by combination of classes. Given, the classifier guesses combinations: a code may tell
        whether two attributes are equal, and nothing about either of them.
    """

    columns: tuple[PrivateColumn, ...]
    together: NDArray[np.float64] | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def heads(self) -> tuple[PrivateColumn, ...]:
        """What the classifier guesses: combinations of classes, then numbers; or each attribute by itself."""
        if self.together is None:
            return self.columns
        name = " × ".join(column.name for column in self.columns if column.classes is not None)
        numeric = (column for column in self.columns if column.classes is None)
        return (PrivateColumn(name, np.arange(len(self.together)), self.together), *numeric)

    @property
    def n_outputs(self) -> int:
        return sum(head.n_outputs for head in self.heads)

    @property
    def entropy(self) -> float:
        """H(Y) in nats, the sum over heads."""
        return sum(head.entropy for head in self.heads)

    def after(self, targets: Sequence[Tensor]) -> PrivateAttributes:
        """The same attributes with these records seen as well."""
        pairs = zip(self.columns, targets, strict=True)
        together = None
        if self.together is not None:
            found = self._aims(targets)[0].cpu().numpy()
            together = self.together + np.bincount(found, minlength=len(self.together))
        return PrivateAttributes(tuple(column.after(target) for column, target in pairs), together)

    def encode(self, values: Sequence[NDArray[Any]]) -> list[Tensor]:
        return [column.encode(one) for column, one in zip(self.columns, values, strict=True)]

    def losses(self, output: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        """−log Q(y|z) by record for each head, from one classifier's concatenated outputs."""
        parts = output.split([head.n_outputs for head in self.heads], dim=1)
        triples = zip(self.heads, parts, self._aims(targets), strict=True)
        return [head.loss(part, target) for head, part, target in triples]

    def _aims(self, targets: Sequence[Tensor]) -> Sequence[Tensor]:
        """What each head has to guess."""
        if self.together is None:
            return targets
        numbers, numeric = None, []
        for column, target in zip(self.columns, targets, strict=True):
            if column.classes is None:
                numeric.append(target)
            else:
                numbers = target if numbers is None else numbers * len(column.classes) + target
        assert numbers is not None
        return [numbers, *numeric]

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


def describe(
    columns: Sequence[tuple[str, NDArray[Any]]], classes: Any = None, numeric: Sequence[str] = ()
) -> PrivateAttributes:
    """The attributes, and what is seen of them in these records.

    Where neither `classes` nor `numeric` says otherwise, floats that are not all whole are numeric and
    everything else is classes, those that occur.
    """
    known = _by_name(columns, classes)
    _check_numeric(columns, known, numeric)
    blank = tuple(_blank(name, values, known.get(name), name in numeric) for name, values in columns)
    unseen = PrivateAttributes(blank, _none_together(blank))
    return unseen.after(unseen.encode([values for _, values in columns]))


def _none_together(columns: Sequence[PrivateColumn]) -> NDArray[np.float64] | None:
    """Combinations of classes of which nothing was seen yet; None where one attribute, or too many of them,
    has classes."""
    sizes = [len(column.classes) for column in columns if column.classes is not None]
    return np.zeros(math.prod(sizes)) if len(sizes) > 1 and math.prod(sizes) <= MOST_TOGETHER else None


def _check_numeric(
    columns: Sequence[tuple[str, NDArray[Any]]], known: Mapping[str, Any], numeric: Sequence[str]
) -> None:
    values_of = dict(columns)
    for name in numeric:
        if name not in values_of:
            raise InvalidInputError(
                f"numeric names {shortened(name)}, which is no private attribute; they are "
                f"{', '.join(values_of)}."
            )
        if name in known or values_of[name].dtype.kind not in "iuf":
            what = "has named classes" if name in known else "does not hold numbers"
            raise InvalidInputError(
                f"numeric names {shortened(name)}, which {what}; leave one of the two out."
            )


def _blank(
    name: str, values: NDArray[Any], classes: NDArray[Any] | None, numeric: bool = False
) -> PrivateColumn:
    """An attribute of which nothing was seen yet."""
    broken = values.dtype.kind == "f" and not np.array_equal(values, np.rint(values))
    if numeric or (classes is None and broken):
        if values.min() == values.max():  # their standard deviation may be a rounding error above 0
            raise InvalidInputError(f"private {name} has the same value in every record; nothing to protect.")
        return PrivateColumn(name, None, np.zeros(3), float(values.mean()), float(values.std()))
    found = np.unique(values if classes is None else classes)
    if len(found) < 2:
        listed = f"one class only ({shortened(found[0].item())})" if len(found) else "no class"
        raise InvalidInputError(f"private {name} has {listed}; there is nothing to protect.")
    if classes is None and values.dtype.kind in "iuf" and len(found) > max(MANY, len(values) // 2):
        warnings.warn(
            f"private {name} has {len(found)} classes in {len(values)} records, too many to be learnt; name "
            "it in numeric, or put its values into bins.",
            UserWarning,
            stacklevel=2,
        )
    return PrivateColumn(name, found, np.zeros(len(found)))


def same_classes(
    private: PrivateAttributes, columns: Sequence[tuple[str, NDArray[Any]]], classes: Any
) -> None:
    """Refuse classes, given again after the first call, that are not those of the first."""
    known = _by_name(columns, classes)
    for column in private.columns:
        given = known.get(column.name)
        if given is None:
            continue
        if column.classes is None or not np.array_equal(np.unique(given), column.classes):
            raise InvalidInputError(
                f"classes of private {column.name} are not those of the first call; leave them out, or fit "
                "anew."
            )


def _by_name(columns: Sequence[tuple[str, NDArray[Any]]], classes: Any) -> dict[str, NDArray[Any]]:
    """The classes that a caller named, by attribute."""
    names = [name for name, _ in columns]
    if classes is None:
        return {}
    if not isinstance(classes, Mapping):
        if len(names) > 1:
            raise InvalidInputError(
                f"classes must be a mapping from attribute to its classes where several are private; the "
                f"attributes are {', '.join(names)}."
            )
        classes = {names[0]: classes}
    for name in classes:
        if name not in names:
            raise InvalidInputError(
                f"classes names {shortened(name)}, which is no private attribute; they are "
                f"{', '.join(names)}."
            )
    return {name: clean_labels(name, np.asarray(values).ravel()) for name, values in classes.items()}
