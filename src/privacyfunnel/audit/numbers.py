"""Findings about numeric attributes: how well their values are predicted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .context import Context
from .findings import Finding
from .inputs import Attribute
from .intervals import jackknife_interval, mean_interval

FloatArray = NDArray[np.float64]


def number_findings(
    context: Context,
    attribute: Attribute,
    values: FloatArray,
    source: str,
    threat_model: str,
    on: str,
) -> list[Finding]:
    """Explained variance and error of predicted values of a numeric attribute."""
    truth = attribute.values
    assert truth is not None
    more: dict[str, Any] = {"threat_model": threat_model}
    squares = (truth - values) ** 2
    mse = float(squares.mean())
    low, high = mean_interval(squares, context.confidence)
    explained, interval = explained_variance(truth, values, context.confidence)
    return [
        context.finding(
            "explained variance", explained, "lower bound", "share", source, attribute, on, interval, **more
        ),
        context.finding(
            "rmse",
            math.sqrt(mse),
            "upper bound",
            "",
            source,
            attribute,
            on,
            (math.sqrt(max(low, 0.0)), math.sqrt(high)),
            **more,
        ),
    ]


def explained_variance(
    truth: FloatArray, values: FloatArray, confidence: float
) -> tuple[float, tuple[float, float]]:
    """R² of predictions with a jackknife interval; 0 for a constant."""

    def share(keep: NDArray[np.bool_]) -> float:
        spread = float(((truth[keep] - truth[keep].mean()) ** 2).mean())
        return 1 - float(((truth[keep] - values[keep]) ** 2).mean()) / spread if spread > 0 else 0.0

    n_groups = min(20, len(truth))
    group = np.random.default_rng(0).permutation(len(truth)) % n_groups
    value = share(np.ones(len(truth), dtype=bool))
    interval = jackknife_interval(value, [share(group != one) for one in range(n_groups)], confidence)
    return value, (interval[0], max(min(interval[1], 1.0), value))
