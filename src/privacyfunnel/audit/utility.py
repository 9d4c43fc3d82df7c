"""What the release keeps: reconstruction, and tasks that the user names."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .adversaries.crossfit import cross_calibrated
from .adversaries.numeric import cross_shrunk, default_numeric_adversaries
from .adversaries.supervised import default_adversaries
from .attack import Attack, Outcome, View
from .context import Context
from .findings import Finding
from .given import Given
from .inputs import Attribute, Table
from .intervals import clipped, repeated_interval, wilson_interval
from .numbers import explained_variance
from .reconstruction import peak_of, psnr, squared_errors, structural_similarity
from .work import class_pieces, class_result, number_piece

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def reconstruction_findings(
    context: Context, given: Given, draws: list[Table], outcome: Outcome, not_audited: list[str]
) -> list[Finding]:
    """Error, PSNR and, for images, SSIM of the reconstructions; keeps those of the first draw."""
    X, decode = given.X, given.release.decode
    if given.X_hat is not None:
        shape = (given.n, *(X.shape if X is not None and X.shape else given.X_hat.shape))
        copies = [given.X_hat.codes.reshape(shape)]
    elif decode is not None:
        copies = [np.asarray(decode(draw.codes), dtype=np.float64) for draw in draws]
    else:
        if X is None or X.symbols is None:
            not_audited.append("Reconstruction: there is no decoder that works from Z alone, and no X_hat.")
        return []
    outcome.reconstructed = copies[0]
    if X is None:
        not_audited.append("Reconstruction error: the records X were not given.")
        return []
    records = X.codes.reshape(copies[0].shape)
    peak = peak_of(records)
    errors = np.stack([squared_errors(records, copy) for copy in copies])
    mse = float(errors.mean())
    low, high = clipped(repeated_interval(errors, context.confidence), mse, 0.0, math.inf)
    shared: dict[str, Any] = {
        "kind": "estimate",
        "source": "reconstruction",
        "on": "X_hat",
        "attribute": "",
        "confidence": context.confidence,
        "n_samples": given.n,
        "seed": context.seed,
    }
    drawn = f"{len(copies)} draws of each code." if len(copies) > 1 else "One reconstruction of each record."
    found = [
        Finding("mse", mse, unit="", interval=(low, high), notes=drawn, **shared),
        Finding(
            "psnr",
            psnr(mse, peak),
            unit="dB",
            interval=(psnr(high, peak), psnr(low, peak)),
            notes=f"Peak value {peak:g}. {drawn}",
            **shared,
        ),
    ]
    if records.ndim in (3, 4) and min(records.shape[1:3]) > 1:
        values = np.stack([structural_similarity(records, copy, peak) for copy in copies])
        value = float(values.mean())
        interval = clipped(repeated_interval(values, context.confidence), value, -1.0, 1.0)
        found.append(Finding("ssim", value, unit="", interval=interval, notes=drawn, **shared))
    return found


def task_attack(
    context: Context, outcome: Outcome, view: View, task: Attribute, folds: IntArray, seed: int
) -> Attack:
    """How well trees do a task on one view: before (X) and after (Z)."""
    key: tuple[Hashable, ...] = ("task", task.name, view.on, "trees")
    if task.values is None:
        trees = next(one for one in default_adversaries(seed, task.n_classes) if "trees" in one.name)
        pieces = class_pieces(key, trees, view.codes[0], task.y, folds, task.n_classes, seed)
        name = trees.name
    else:
        regressor = next(one for one in default_numeric_adversaries(seed) if "trees" in one.name)
        name = regressor.name
        pieces = [number_piece(key, regressor, view.codes[0], task.values, folds, seed, f"task on {view.on}")]

    def read(results: dict[Hashable, Any]) -> None:
        if task.values is None:
            q = cross_calibrated(class_result(results, key, folds), task.y, folds)[0]
            hits = int((q.argmax(axis=1) == task.y).sum())
            low, high = wilson_interval(hits, len(task.y), context.confidence)
            quantity, value, interval = "task accuracy", hits / len(task.y), (float(low), float(high))
        else:
            values = cross_shrunk(results[key], task.values, folds)
            quantity = "task explained variance"
            value, interval = explained_variance(task.values, values, context.confidence)
        outcome.findings.append(
            context.finding(
                quantity, value, "lower bound", "share", name, task, view.on, interval, notes=view.notes
            )
        )

    return Attack(pieces, read)
