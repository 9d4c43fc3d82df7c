"""Leakage and utility from densities that are known, and estimates for codes of which nothing is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..joint import Joint
from ..mechanism import TableMechanism
from ..uncertainty import held_out_leakage
from . import density, estimators
from .adversaries.crossfit import fold_numbers
from .bits import density_findings, most_bits, neighbour_findings
from .context import Context
from .findings import Finding
from .inputs import Attribute, Table
from .intervals import clipped, mean_interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


def density_findings_of(
    context: Context,
    log_density: Callable[[FloatArray, IntArray], FloatArray],
    codes: Table,
    attributes: Sequence[Attribute],
) -> list[Finding]:
    """The brackets of I(Z;X) and of I(Z;Y) for every attribute with classes."""
    rows = np.random.default_rng([context.seed, 13]).permutation(codes.n)[: density.MOST_RECORDS]
    Z = codes.codes[rows]
    table = log_density(Z, rows)
    utility = density.mixture_utility(table, context.confidence)
    folds = fold_numbers(np.zeros(len(rows)), min(2, len(rows)), context.seed)
    terms = density.gaussian_utility_bound(np.diag(table), Z, folds)
    gaussian = float(terms.mean()), mean_interval(terms, context.confidence)
    if gaussian[1][1] < utility.upper[1][1]:
        utility = replace(utility, upper=gaussian)
    found = density_findings(context, "utility", utility, None, len(rows), math.inf)
    ceiling = found[-1]
    for attribute in attributes:
        if attribute.n_classes < 2:
            continue
        most = math.inf if attribute.values is not None else most_bits(attribute, context.confidence)
        if ceiling.value < most:
            found.append(
                replace(
                    ceiling,
                    quantity="leakage",
                    attribute=attribute.name,
                    interval=None
                    if ceiling.interval is None
                    else clipped(ceiling.interval, ceiling.value, 0.0, most),
                    source="data processing",
                    notes="I(Z;Y) ≤ I(Z;X), with its upper bound: what is not kept cannot leak.",
                )
            )
        if attribute.values is None:
            leakage = density.mixture_leakage(table, attribute.y[rows], context.confidence)
            found += density_findings(context, "leakage", leakage, attribute, len(rows), most)
    return found


def foreign_findings(context: Context, codes: Table, attributes: Sequence[Attribute]) -> list[Finding]:
    """Estimates of I(Z;Y) from the values alone: counts for symbols, nearest neighbours for numbers."""
    found: list[Finding] = []
    usable = [one for one in attributes if one.n_classes > 1]
    symbols = codes.symbols
    if symbols is not None:
        for attribute in usable:
            joint = Joint.from_counts(_counts(symbols, attribute))
            rng = np.random.default_rng([context.seed, 17])
            estimate = held_out_leakage(
                TableMechanism.identity(joint), joint, level=context.confidence, rng=rng
            )
            most = most_bits(attribute, context.confidence)
            value, interval = min(estimate.value, most), (estimate.interval.low, estimate.interval.high)
            found.append(
                context.finding(
                    "leakage",
                    value,
                    "estimate",
                    "bits",
                    "counts of symbols and classes",
                    attribute,
                    interval=clipped(interval, value, 0.0, most),
                    notes="Corrected for its bias.",
                )
            )
        return found
    if not usable or codes.n < 3:
        return found
    rows = np.random.default_rng([context.seed, 19]).permutation(codes.n)[: estimators.MOST_RECORDS]
    distances = estimators.code_distances(codes.codes[rows])
    for attribute in usable:
        found += neighbour_findings(context, attribute, distances, rows)
    return found


def _counts(symbols: IntArray, attribute: Attribute) -> FloatArray:
    counts = np.zeros((int(symbols.max()) + 1, attribute.n_classes))
    np.add.at(counts, (symbols, attribute.y), 1)
    return counts
