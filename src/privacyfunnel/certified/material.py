"""Some records as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from ..arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Material:
    """Some records: their points, private classes and, where there is one, task."""

    points: FloatArray
    y: IntArray
    t: IntArray | None

    def taken(self, rows: IntArray) -> Material:
        return Material(self.points[rows], self.y[rows], None if self.t is None else self.t[rows])
