"""From probabilities, distances and densities to findings in bits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..information import entropy
from .adversaries.bounds import bound_of
from .adversaries.crossfit import Calibration
from .context import Context
from .density import Bracketed, Sandwich
from .estimators import class_terms, number_terms
from .findings import ENTROPY, Finding, Kind
from .inputs import Attribute
from .intervals import clipped, mean_interval, normal_quantile, wilson_interval
from .rounding import LEAST_RECORDS
from .unmeasured import class_gaps

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Reorderings of the nearest-neighbour estimate, each of which costs as much as the estimate.
N_NULL = 20
#: Bits between the bounds above which halfway between them is no estimate.
WIDEST = 0.5


def attribute_findings(context: Context, attribute: Attribute, judged: IntArray) -> list[Finding]:
    """What is known without the release: chance, the entropy that bounds all leakage, and rare classes.

    `judged` are the classes of the records that adversaries are tried on.
    """
    n, counts = len(attribute.y), np.bincount(attribute.y, minlength=attribute.n_classes)
    low, high = wilson_interval(counts.max(), n, context.confidence)
    largest = attribute.classes[int(counts.argmax())]
    chance = float(counts.max() / n)
    found = [
        context.finding(
            "chance",
            chance,
            "estimate",
            "share",
            "largest class",
            attribute,
            "",
            (float(low), float(high)),
            notes="All records are of one class: there is nothing to test."
            if attribute.n_classes < 2
            else f"The largest class is {largest}."
            if counts.max() >= LEAST_RECORDS
            else "",
        )
    ]
    if attribute.n_classes < 2:
        return found
    if attribute.values is None:
        value, interval = _entropy(counts, context.confidence)
        found.append(
            context.finding(
                "leakage",
                value,
                "upper bound",
                "bits",
                ENTROPY,
                attribute,
                interval=interval,
                notes="H(Y): nothing can tell more about Y than there is to know.",
            )
        )
    return found + class_gaps(context, attribute, judged)


def most_bits(attribute: Attribute, confidence: float) -> float:
    """The upper end of H(Y) of an attribute with classes: no interval of what leaks reaches beyond it."""
    if attribute.n_classes < 2:
        return 0.0
    counts = np.bincount(attribute.y, minlength=attribute.n_classes)
    return _entropy(counts, confidence)[1][1]


def _entropy(counts: IntArray, confidence: float) -> tuple[float, tuple[float, float]]:
    """H(Y) in bits with Miller and Madow's correction, at most log2 of the number of classes."""
    n, shares = int(counts.sum()), counts / counts.sum()
    most = math.log2(len(counts))
    value = min(entropy(shares) + (len(counts) - 1) / (2 * n * math.log(2)), most)
    seen = shares > 0
    surprise = -np.log2(shares[seen])
    variance = float((shares[seen] * surprise**2).sum()) - float((shares[seen] * surprise).sum()) ** 2
    half = normal_quantile(confidence) * math.sqrt(max(variance, 0.0) / n)
    return value, clipped((value - half, value + half), value, 0.0, most)


def bits_finding(
    context: Context,
    attribute: Attribute,
    q: FloatArray,
    calibration: Calibration,
    n_train: int,
    source: str,
    threat_model: str,
    on: str,
) -> Finding:
    """The lower bound on I(Z;Y) that calibrated held-out probabilities prove."""
    bound = bound_of(source, q, attribute.y, context.confidence, n_train, calibration)
    # 0 is a lower bound too, and H(Y) one from above.
    value = max(0.0, bound.value)
    ends, most = (bound.interval.low, bound.interval.high), most_bits(attribute, context.confidence)
    interval = clipped(ends, value, 0.0, most)
    cut = "" if attribute.values is None else f"Of the attribute cut into {attribute.n_classes} classes. "
    notes = (
        f"{cut}H(Y) − cross-entropy of P(y|z) learnt from {n_train} other records; "
        f"weight of the class frequencies {bound.shrinkage:.2g}, power {bound.power:.2g}."
    )
    return context.finding(
        "leakage",
        value,
        "lower bound",
        "bits",
        source,
        attribute,
        on,
        interval,
        threat_model=threat_model,
        notes=notes,
    )


def marked_short(findings: list[Finding]) -> list[Finding]:
    """The findings, with a word at every estimate of what leaks that a lower bound shows to fall short."""
    reached: dict[tuple[str, str], float] = {}
    for one in findings:
        if one.quantity == "leakage" and one.kind == "lower bound":
            key = one.attribute, one.on
            reached[key] = max(one.value, reached.get(key, 0.0))
    return [
        replace(one, notes=f"Falls short here: a lower bound is above it. {one.notes}")
        if one.quantity == "leakage"
        and one.kind == "estimate"
        and one.value < reached.get((one.attribute, one.on), 0.0)
        else one
        for one in findings
    ]


def neighbour_findings(
    context: Context, attribute: Attribute, distances: FloatArray, rows: IntArray
) -> list[Finding]:
    """The nearest-neighbour estimate of I(Z;Y) on some records, and what it gives for reordered ones."""
    numeric = attribute.values is not None
    terms_of: Any = number_terms if numeric else class_terms
    target: Any = attribute.values[rows] if attribute.values is not None else attribute.y[rows]
    source = f"nearest neighbours ({'Kraskov' if numeric else 'Ross'})"
    terms = terms_of(distances, target)
    if len(terms) < 2:
        return []
    most = math.inf if numeric else most_bits(attribute, context.confidence)
    value = min(max(0.0, float(terms.mean())), most)
    rng = np.random.default_rng([context.seed, 11])
    null = [float(terms_of(distances, rng.permutation(target)).mean()) for _ in range(N_NULL)]
    middle = float(np.mean(null))
    return [
        context.finding(
            "leakage",
            value,
            "estimate",
            "bits",
            source,
            attribute,
            interval=clipped(mean_interval(terms, context.confidence), value, 0.0, most),
            n_samples=len(rows),
            notes="Falls short of the truth where codes have many components; compare its null.",
        ),
        context.finding(
            "leakage null",
            middle,
            "estimate",
            "bits",
            source,
            attribute,
            interval=(min(null), max(null)),
            n_samples=len(rows),
            notes=f"Mean and range of {N_NULL} reorderings.",
        ),
    ]


def density_findings(
    context: Context,
    quantity: str,
    sandwich: Sandwich,
    attribute: Attribute | None,
    n: int,
    most: float,
) -> list[Finding]:
    """The bracket of a mixture estimate; halfway between its bounds only where they are close."""
    source = "mixture of known densities"
    named = {"attribute": "" if attribute is None else attribute.name}

    def finding(kind: Kind, part: Bracketed, notes: str) -> Finding:
        value = min(max(part[0], 0.0), most)
        return Finding(
            quantity,
            value,
            kind,
            "bits",
            source,
            interval=clipped(part[1], value, 0.0, most),
            confidence=context.confidence,
            n_samples=n,
            seed=context.seed,
            notes=notes,
            **named,
        )

    found = [
        finding("lower bound", sandwich.lower, "In expectation, from the encoder's own density."),
        finding("upper bound", sandwich.upper, "In expectation, from the encoder's own density."),
    ]
    if found[1].value - found[0].value <= WIDEST:
        found.insert(1, finding("estimate", sandwich.estimate, "Halfway between the bounds."))
    return found
