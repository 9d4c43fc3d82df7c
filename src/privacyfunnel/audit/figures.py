"""What figures of a report need beyond its findings: a sample of points and of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .attack import Outcome
from .given import Given

#: Most points of an embedding and images of a grid that a report keeps.
MOST_POINTS, MOST_IMAGES = 2000, 30


def figures_of(given: Given, outcome: Outcome, seed: int) -> dict[str, Any]:
    """The sample, in JSON types; see `AuditReport.figures_data`."""
    rng = np.random.default_rng([seed, 23])
    first = given.attributes[0]
    shown: dict[str, Any] = {}
    if outcome.points:
        places = np.sort(rng.permutation(len(outcome.rows))[:MOST_POINTS])
        rows = outcome.rows[places]
        points = {
            on: np.round(outcome.points[on][places], 4).tolist() for on in ("X", "Z") if on in outcome.points
        }
        shown["umap"] = {"rows": rows.tolist(), "labels": _labels(first, rows), **points}
    copies, X = outcome.reconstructed, given.X
    if copies is not None and X is not None and copies.ndim == 3:
        # As many of each class as there is room for, so that the grid shows all of them.
        order = rng.permutation(given.n)
        turn = np.zeros(given.n, dtype=np.intp)
        for label in range(first.n_classes):
            members = order[first.y[order] == label]
            turn[members] = np.arange(len(members))
        rows = order[np.argsort(turn[order], kind="stable")][:MOST_IMAGES]
        rows = rows[np.argsort(first.y[rows], kind="stable")]
        shown["images"] = {
            "shape": list(copies.shape[1:]),
            "rows": rows.tolist(),
            "labels": _labels(first, rows),
            "X": np.round(X.codes[rows], 4).tolist(),
            "X_hat": np.round(copies[rows].reshape(len(rows), -1), 4).tolist(),
        }
    return shown


def _labels(attribute: Any, rows: Any) -> list[str]:
    return [str(attribute.classes[i]) for i in attribute.y[rows].tolist()]
