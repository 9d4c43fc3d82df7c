"""What figures of a report need beyond its findings, on request: where records lie, and a few of them.

Whoever has the released codes can embed them too. So nobody can know which embedding was drawn: its seed, its
turn and the records in it come from the system's entropy and are kept nowhere. It is told as groups of ten
records or more with rough shares of the classes, never record by record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .adversaries.clustering import umap_embedding
from .class_tables import RARE
from .inputs import Attribute, Table
from .rounding import LEAST_RECORDS, UNCOUNTED, in_steps

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Most records of an embedding, and the share of those there are: whether a record is in it nobody knows.
MOST_POINTS, SHARE_OF_POINTS = 5000, 0.75
#: Most cells along a side; with fewer records so many that there are about this many records a cell.
MOST_CELLS, RECORDS_A_CELL = 24, 12
#: Shares of classes in a cell are told in fifths, and never as all: a cell must not tell everybody's class.
SHARE_STEP, LARGEST_SHARE = 0.2, 0.8
#: Images of a sample.
MOST_IMAGES = 30


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
