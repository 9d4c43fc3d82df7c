"""What a report may tell about people: rounded numbers, tables of classes, on request where records lie.

From shares to the last digit people can be counted, and looked for: somebody who knows all private values but
one, and how many people are in each class, knows the last one. And whoever has the released codes can embed
them too. So nobody can know which embedding was drawn: its seed, its turn and the records in it come from the
system's entropy and are kept nowhere. It is told as groups of ten records or more with rough shares of the
classes, never record by record.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS, Attribute
from ..persistence import decode_labels, encode_labels
from .adversaries.clustering import umap_embedding
from .findings import CERTIFICATE, ENTROPY, Finding, wilson_interval
from .inputs import Table

To = Literal["nearest", "below", "above"]

#: Records that a step of the size of a class is worth.
UNCOUNTED = 5
#: The step of other shares and bits, unless there are so many records that a smaller one hides five.
FINE = 0.001
#: What follows from the sizes of classes and so would tell them; an advantage is a success less a chance.
TELLS_SIZES = ("chance", "min-entropy leakage")
#: Of who names the largest class all the time these are its size, too: near chance they are rounded as it is,
#: and their lift with them.
GUESSED = ("success", "matched success")
#: What counts the records of rare classes.
COUNTS_RARE = ("unmeasured success", "unmeasured leakage")
#: The name of all classes with fewer than `LEAST_RECORDS` records, together.
RARE = "rare classes"
#: Records of its class that a step of a share is worth: a single one does not show.
UNSEEN = 2
#: Most records of an embedding, and the share of those there are: whether a record is in it nobody knows.
MOST_POINTS, SHARE_OF_POINTS = 5000, 0.75
#: Most cells along a side; with fewer records so many that there are about this many records a cell.
MOST_CELLS, RECORDS_A_CELL = 24, 12
#: Shares of classes in a cell are told in fifths, and never as all: a cell must not tell everybody's class.
SHARE_STEP, LARGEST_SHARE = 0.2, 0.8
#: Images of a sample.
MOST_IMAGES = 30


def step_for(n: int, records: float, finest: float = 1e-6) -> float:
    """1, 2 or 5 times a power of ten that is worth so many of n records or more; at most 0.2."""
    least = max(finest, records / max(n, 1))
    power = 10.0 ** math.floor(math.log10(least) + 1e-9)
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return min(step, 0.2)


def size_step(n: int) -> float:
    """The step of what tells the sizes of classes among n records.

    Never above 0.05: of fewer than a hundred records nothing could be said, and their report says itself
    that it is as private as they are.
    """
    return min(step_for(n, UNCOUNTED), 0.05)


def in_steps(values: ArrayLike, step: ArrayLike, to: To = "nearest") -> FloatArray:
    """The values as multiples of the step; rounding errors of a multiple itself do not move it."""
    count = np.asarray(values, dtype=np.float64) / np.asarray(step)
    moved = {
        "nearest": np.floor(count + 0.5 + 1e-6),
        "below": np.floor(count + 1e-6),
        "above": np.ceil(count - 1e-6),
    }[to]
    result: FloatArray = np.round(moved * np.asarray(step), 9) + 0.0
    return result


def published(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings as they may be published; bounds and ends of intervals move to the careful side.

    What is not of records has no people in it and stays as it is.
    """
    constant = _constant_guesses(findings)
    shown = [
        one
        if one.n_samples is None
        else _rounded(one, one.n_samples, (one.attribute, one.on, one.source) in constant)
        for one in findings
    ]
    chance = {one.attribute: one for one in shown if one.quantity == "chance"}
    success = {(one.attribute, one.on, one.source): one for one in shown if one.quantity == "success"}
    return tuple(
        _difference(one, success.get((one.attribute, one.on, one.source)), chance.get(one.attribute))
        if one.quantity == "advantage" and one.n_samples is not None
        else one
        for one in shown
    )


def _constant_guesses(findings: Sequence[Finding]) -> set[tuple[str, str, str]]:
    """Attribute, view and source of who may have named the largest class all the time."""
    chance = {one.attribute: one.value for one in findings if one.quantity == "chance"}
    return {
        (one.attribute, one.on, one.source)
        for one in findings
        if one.quantity in GUESSED
        and one.n_samples is not None
        and one.attribute in chance
        and _is_near(one.value, chance[one.attribute], one.n_samples)
    }


def _rounded(finding: Finding, n: int, constant: bool = False) -> Finding:
    if finding.source == CERTIFICATE:
        return _raised(finding, size_step(n))
    guessed = constant and finding.quantity in GUESSED
    if guessed or finding.quantity in TELLS_SIZES or finding.source == ENTROPY:
        return _blurred(finding, size_step(n))
    if finding.quantity in COUNTS_RARE or (constant and finding.quantity == "lift"):
        step = size_step(n)
    elif finding.unit in ("share", "bits"):
        step = min(size_step(n), FINE)
    else:  # in the data's own unit: four digits
        largest = abs(finding.value)
        step = 10.0 ** (math.floor(math.log10(largest)) - 3) if 0 < largest < math.inf else 1e-9
    to: dict[str, To] = {"lower bound": "below", "upper bound": "above"}
    value = _moved(finding.value, step, to.get(finding.kind, "nearest"))
    if finding.interval is None:
        return replace(finding, value=value)
    low, high = finding.interval
    ends = _moved(low, step, "below"), _moved(high, step, "above")
    return replace(finding, value=value, interval=ends)


def _is_near(success: float, chance: float, n: int) -> bool:
    """Whether a success may be that of naming the largest class; asked of the chance that is published, so
    that the answer tells nothing about the other."""
    step = size_step(n)
    return abs(success - float(in_steps(chance, step))) < step


def _blurred(finding: Finding, step: float) -> Finding:
    """What tells the sizes of classes: ends rounded by themselves would tell more than the value.

    A success, too, goes to the nearest step, as the chance beside it does: two ways to round would tell more.
    """
    low, high = finding.interval or (finding.value, finding.value)
    # Bits of k classes are at most log2 k, and k is whole.
    most = 1.0 if finding.unit == "share" else math.log2(max(math.ceil(2**high - 1e-9), 1))
    value = min(_moved(finding.value, step, "above" if finding.kind == "upper bound" else "nearest"), most)
    if finding.interval is None:
        return replace(finding, value=value)
    # With what the rounding of the value took, in wide steps.
    half = _moved(max(finding.value - low, high - finding.value) + step, 2 * step, "above")
    low, high = max(value - half, 0.0), min(value + half, most)
    return replace(finding, value=value, interval=(min(round(low, 9), value), max(round(high, 9), value)))


def _raised(finding: Finding, step: float) -> Finding:
    """A certificate: of a release that tells nothing its success is the size of the largest class."""
    if finding.unit == "share":
        value = min(_moved(finding.value, step, "above"), 1.0)
    else:
        value = _moved(finding.value, min(step, FINE), "above")
    return replace(finding, value=value, interval=(0.0, value))


def _difference(finding: Finding, success: Finding | None, chance: Finding | None) -> Finding:
    """An advantage as the difference of the two numbers beside it, so that it tells no more than they do."""
    if success is None or chance is None:
        return _rounded(finding, finding.n_samples or 0)
    value = round(success.value - chance.value, 9)
    if finding.interval is None:
        return replace(finding, value=value)
    ends = [one.interval or (one.value, one.value) for one in (success, chance)]
    low, high = round(ends[0][0] - ends[1][1], 9), round(ends[0][1] - ends[1][0], 9)
    return replace(finding, value=value, interval=(min(low, value), max(high, value)))


def _moved(value: float, step: float, to: To) -> float:
    return float(in_steps(value, step, to)) if math.isfinite(value) else value


@dataclass(frozen=True, eq=False)
class ClassTable:
    """Which classes an adversary takes for which, in shares; rare classes stand together.

    All shares are rounded: to steps that are worth two records of the class or more, and the sizes of the
    classes to steps of five records or more.

    Attributes
    ----------
    source, on, attribute : str
        As in `Finding`.
    classes : tuple of labels
        The last one is `RARE` where there are rare ones that are a group of ten records or more together;
        if they are not, nothing is told about them.
    sizes : (n_classes,) array
        Share of the records in each class.
    guessed : (n_classes, n_classes) array
        Share of each true class (axis 0) that is taken for each class (axis 1).
    false_guesses : (n_classes,) array
        Share of the records of other classes that are taken for each class.
    intervals : (n_classes, 2) array
        Wilson intervals of `success`, each at the confidence by itself.
    right : float
        Share of all records whose class is guessed.
    confidence : float
    """

    source: str
    on: str
    attribute: str
    classes: tuple[Hashable, ...]
    sizes: FloatArray
    guessed: FloatArray
    false_guesses: FloatArray
    intervals: FloatArray
    right: float
    confidence: float = 0.95

    @classmethod
    def of_counts(
        cls,
        source: str,
        on: str,
        attribute: str,
        classes: Sequence[Hashable],
        confusion: IntArray,
        confidence: float = 0.95,
    ) -> ClassTable:
        """From records by true class (axis 0) and guessed class (axis 1)."""
        n = int(confusion.sum())
        right, largest = (count / max(n, 1) for count in (np.trace(confusion), confusion.sum(axis=1).max()))
        step = size_step(n) if _is_near(right, largest, n) else min(size_step(n), FINE)
        names, table = without_rare(classes, confusion)
        counts = table.sum(axis=1)
        hits = np.diag(table)
        low, high = wilson_interval(hits, counts, confidence)
        others = n - counts
        wrong = (table.sum(axis=0) - hits) / np.maximum(others, 1)
        steps = np.array([step_for(int(count), UNSEEN, 0.01) for count in counts])
        ends = [in_steps(low, steps, "below"), np.minimum(in_steps(high, steps, "above"), 1.0)]
        return cls(
            source,
            on,
            attribute,
            names,
            in_steps(counts / max(n, 1), size_step(n)),
            in_steps(table / np.maximum(counts, 1)[:, None], steps[:, None]),
            in_steps(wrong, steps),
            np.column_stack(ends),
            float(in_steps(right, step)),
            confidence,
        )

    @property
    def success(self) -> FloatArray:
        """Share of each class that is guessed."""
        result: FloatArray = np.diag(self.guessed)
        return result

    @property
    def numbers(self) -> FloatArray:
        """Size, success, both ends of its interval and false guesses of each class, (n_classes, 5)."""
        return np.column_stack([self.sizes, self.success, self.intervals, self.false_guesses])

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON types; only the cells that are not 0."""
        rows, columns = np.nonzero(self.guessed)
        parts = vars(self).items()
        return {
            **{name: part.tolist() if isinstance(part, np.ndarray) else part for name, part in parts},
            "classes": encode_labels(self.classes, "classes"),
            "guessed": [rows.tolist(), columns.tolist(), self.guessed[rows, columns].tolist()],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ClassTable:
        """The table of `to_dict`."""
        classes = tuple(decode_labels(values["classes"]))
        n = len(classes)
        rows, columns = (np.asarray(part, dtype=np.intp) for part in values["guessed"][:2])
        guessed = np.zeros((n, n))
        guessed[rows, columns] = np.asarray(values["guessed"][2], dtype=np.float64)
        parts: dict[str, Any] = {name: str(values[name]) for name in ("source", "on", "attribute")}
        parts |= {name: float(values[name]) for name in ("right", "confidence")}
        for name, shape in (("sizes", (n,)), ("false_guesses", (n,)), ("intervals", (n, 2))):
            parts[name] = np.asarray(values[name], dtype=np.float64).reshape(shape)
        return cls(classes=classes, guessed=guessed, **parts)


def without_rare(
    classes: Sequence[Hashable], confusion: IntArray
) -> tuple[tuple[Hashable, ...], NDArray[np.intp]]:
    """The classes with ten records or more, and the others as one class if that has as many."""
    counts = confusion.sum(axis=1)
    common = np.flatnonzero(counts >= LEAST_RECORDS)
    rare = np.flatnonzero(counts < LEAST_RECORDS)
    names = tuple(classes[int(i)] for i in common)
    if counts[rare].sum() < LEAST_RECORDS:
        return names, confusion[np.ix_(common, common)]
    by_row = np.vstack([confusion[common], confusion[rare].sum(axis=0)])
    return (*names, RARE), np.column_stack([by_row[:, common], by_row[:, rare].sum(axis=1)])


def densities_of(views: Mapping[str, Table], attribute: Attribute) -> dict[str, Any]:
    """Embeddings of the views as cells of a grid, in JSON types; see `AuditReport.figures_data`."""
    drawn = {on: table for on, table in views.items() if table.symbols is None}
    if not drawn:  # of symbols there is no embedding
        return {}
    classes, y = _without_rare(attribute)
    secret = np.random.default_rng()
    n_points = min(MOST_POINTS, int(SHARE_OF_POINTS * len(y)))
    side = int(np.clip(np.sqrt(n_points / RECORDS_A_CELL), 4, MOST_CELLS))
    shown: dict[str, Any] = {"side": side, "least": LEAST_RECORDS, "classes": classes}
    for on, table in drawn.items():
        rows = secret.choice(len(y), n_points, replace=False)
        points = umap_embedding(table.narrowed()[rows], int(secret.integers(2**31)), start="random")
        shown[on] = cells_of(_turned(points, secret), y[rows], len(classes), side)
    return shown


def _without_rare(attribute: Attribute) -> tuple[list[str], IntArray]:
    """Class names, and numbers with all rare classes as one, the last; only a group of ten has a name."""
    counts = np.bincount(attribute.y, minlength=attribute.n_classes)
    common = np.flatnonzero(counts >= LEAST_RECORDS)
    number = np.full(attribute.n_classes, len(common), dtype=np.intp)
    number[common] = np.arange(len(common))
    names = [str(attribute.classes[int(i)]) for i in common]
    if len(attribute.y) - counts[common].sum() >= LEAST_RECORDS:
        names.append(RARE)
    return names, number[attribute.y]


def _turned(points: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The points turned by a random angle, and mirrored or not."""
    angle = rng.uniform(0, 2 * np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    result: FloatArray = points @ turn * [1.0, rng.choice([-1.0, 1.0])]
    return result


def cells_of(points: FloatArray, y: IntArray, n_classes: int, side: int) -> dict[str, Any]:
    """The cells with ten records or more: where they are, how many records about, and rough class shares."""
    # A few points far from all others would leave the rest in a corner.
    low, high = np.quantile(points, [0.01, 0.99], axis=0)
    width = np.maximum((high - low).max(), 1e-9)
    places = np.floor((points - (low + high - width) / 2) / width * side).astype(np.intp)
    inside = ((places >= 0) & (places < side)).all(axis=1)
    counts = np.zeros((side, side, n_classes + 1), dtype=np.intp)
    np.add.at(counts, (places[inside, 0], places[inside, 1], y[inside]), 1)
    total = counts.sum(axis=2)
    columns, rows = np.nonzero(total >= LEAST_RECORDS)
    sizes, members = total[columns, rows], counts[columns, rows, :n_classes]
    shares = np.minimum(in_steps(members / sizes[:, None], SHARE_STEP), LARGEST_SHARE)
    return {
        "cells": np.column_stack([columns, rows]).tolist(),
        "records": in_steps(sizes, UNCOUNTED).astype(int).tolist(),
        "shares": shares.tolist(),
        "not_shown": round(float(in_steps(1 - sizes.sum() / len(points), 0.05)), 2),
    }


def samples_of(X: FloatArray, copies: FloatArray) -> dict[str, Any]:
    """A few images and their reconstructions, in an order that tells nothing; in JSON types."""
    rows = np.random.default_rng().choice(len(copies), min(MOST_IMAGES, len(copies)), replace=False)
    return {
        "shape": list(copies.shape[1:]),
        "X": np.round(X[rows], 4).tolist(),
        "X_hat": np.round(copies[rows].reshape(len(rows), -1), 4).tolist(),
    }
