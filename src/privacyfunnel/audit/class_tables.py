"""Which classes an adversary takes for which, told without counting anybody."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..persistence import decode_labels, encode_labels
from .intervals import wilson_interval
from .rounding import FINE, LEAST_RECORDS, in_steps, size_step, step_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: The name of all classes with fewer than `LEAST_RECORDS` records, together.
RARE = "rare classes"
#: Records of its class that a step of a share is worth: a single one does not show.
UNSEEN = 2


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
        right = float(in_steps(np.trace(confusion) / max(n, 1), min(size_step(n), FINE)))
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
            right,
            confidence,
        )

    @property
    def success(self) -> FloatArray:
        """Share of each class that is guessed."""
        result: FloatArray = np.diag(self.guessed)
        return result

    def to_dict(self) -> dict[str, Any]:
        """The table as JSON types; only the cells that are not 0."""
        rows, columns = np.nonzero(self.guessed)
        return {
            "source": self.source,
            "on": self.on,
            "attribute": self.attribute,
            "classes": encode_labels(self.classes, "classes"),
            "sizes": self.sizes.tolist(),
            "guessed": [rows.tolist(), columns.tolist(), self.guessed[rows, columns].tolist()],
            "false_guesses": self.false_guesses.tolist(),
            "intervals": self.intervals.tolist(),
            "right": self.right,
            "confidence": self.confidence,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ClassTable:
        """The table of `to_dict`."""
        classes = tuple(decode_labels(values["classes"]))
        rows, columns = (np.asarray(part, dtype=np.intp) for part in values["guessed"][:2])
        guessed = np.zeros((len(classes), len(classes)))
        guessed[rows, columns] = np.asarray(values["guessed"][2], dtype=np.float64)
        sizes, wrong = (
            np.asarray(values[name], dtype=np.float64).reshape(len(classes))
            for name in ("sizes", "false_guesses")
        )
        intervals = np.asarray(values["intervals"], dtype=np.float64).reshape(len(classes), 2)
        return cls(
            str(values["source"]),
            str(values["on"]),
            str(values["attribute"]),
            classes,
            sizes,
            guessed,
            wrong,
            intervals,
            float(values["right"]),
            float(values["confidence"]),
        )


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
