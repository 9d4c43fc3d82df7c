"""From guesses to findings: success, advantage, the worst class, each with its interval."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .class_tables import UNSEEN, ClassTable
from .context import Context
from .findings import Finding
from .inputs import Attribute
from .intervals import clipped, mean_interval, permutation_test, repeated_interval, wilson_interval
from .rounding import LEAST_RECORDS, in_steps, step_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

N_PERMUTATIONS = 999


def guess_findings(
    context: Context,
    attribute: Attribute,
    guesses: IntArray,
    source: str,
    threat_model: str,
    on: str,
    notes: str = "",
) -> tuple[list[Finding], ClassTable]:
    """Success and what follows from it, for guesses (repeats, n) of records not learnt from."""
    y, n_classes, confidence = attribute.y, attribute.n_classes, context.confidence
    hits = (guesses == y).astype(np.float64)
    success = float(hits.mean())
    if len(guesses) == 1:
        low, high = wilson_interval(hits.sum(), len(y), confidence)
        interval = float(low), float(high)
    else:
        interval = clipped(repeated_interval(hits, confidence), success, 0.0, 1.0)
    majority = (y == np.bincount(y).argmax()).astype(np.float64)
    advantage = success - float(majority.mean())
    # The same records on both sides: what they have in common drops out.
    gain = clipped(repeated_interval(hits - majority, confidence), advantage, -1.0, 1.0)
    confusion = np.zeros((n_classes, n_classes), dtype=np.intp)
    np.add.at(confusion, (y, guesses[0]), 1)
    table = ClassTable.of_counts(source, on, attribute.name, attribute.classes, confusion, confidence)
    more: dict[str, Any] = {"threat_model": threat_model, "notes": notes}
    found = [
        context.finding("success", success, "lower bound", "share", source, attribute, on, interval, **more),
        context.finding("advantage", advantage, "lower bound", "share", source, attribute, on, gain, **more),
        *_worst_class(context, attribute, confusion, hits, source, threat_model, on),
    ]
    if on != "X":
        found += _lift(context, attribute, confusion, source, threat_model, on)
        rng = np.random.default_rng([context.seed, 7])
        p, null = permutation_test(guesses[0], y, N_PERMUTATIONS, rng)
        told = (
            f"By chance alone: {null.mean():.2f} on average, {np.quantile(null, 0.95):.2f} in one case of 20."
        )
        found.append(
            context.finding(
                "p-value",
                p,
                "estimate",
                "",
                source,
                attribute,
                on,
                threat_model=threat_model,
                notes=f"{N_PERMUTATIONS} reorderings of the classes. {told}",
            )
        )
    return found, table


def _worst_class(
    context: Context,
    attribute: Attribute,
    confusion: IntArray,
    hits: FloatArray,
    source: str,
    threat_model: str,
    on: str,
) -> list[Finding]:
    """The class that is guessed best, and the one that is told from the others best.

    Only classes of ten records or more, in steps worth two records of the class: a finding about fewer would
    point at people. Intervals hold for all classes at once (Bonferroni), as the class was picked for its
    value.
    """
    n_classes, counts, right = attribute.n_classes, confusion.sum(axis=1), np.diag(confusion)
    seen = np.flatnonzero(counts >= LEAST_RECORDS)
    if not len(seen):
        return []
    level = 1 - (1 - context.confidence) / n_classes
    success, others = right / np.maximum(counts, 1), counts.sum() - counts
    right_low, right_high = wilson_interval(right, counts, level)
    if len(hits) == 1:
        share, low, high = success, right_low, right_high
    else:
        parts = [hits[:, attribute.y == label] for label in range(n_classes)]
        share = np.array([float(part.mean()) for part in parts])
        ends = [clipped(repeated_interval(part, level), float(part.mean()), 0.0, 1.0) for part in parts]
        low, high = np.array(ends).T
    guessed = confusion.sum(axis=0) - right
    wrong = guessed / np.maximum(others, 1)
    wrong_low, wrong_high = wilson_interval(guessed, others, level)
    gain = success - wrong
    # Newcombe's interval for a difference of two shares.
    gain_low = gain - np.hypot(success - right_low, wrong_high - wrong)
    gain_high = gain + np.hypot(right_high - success, wrong - wrong_low)

    def finding(quantity: str, values: FloatArray, lows: FloatArray, highs: FloatArray) -> Finding:
        worst = int(seen[values[seen].argmax()])
        step = step_for(int(counts[worst]), UNSEEN, 0.001)
        return context.finding(
            quantity,
            float(in_steps(values[worst], step, "below")),
            "lower bound",
            "share",
            source,
            attribute,
            on,
            (
                float(in_steps(min(lows[seen].max(), values[worst]), step, "below")),
                min(float(in_steps(highs[seen].max(), step, "above")), 1.0),
            ),
            threat_model=threat_model,
            notes=f"Class {attribute.classes[worst]}.",
        )

    return [
        finding("worst-class success", share, low, high),
        finding("worst-class advantage", gain, np.maximum(gain_low, -1.0), gain_high),
    ]


def _lift(
    context: Context, attribute: Attribute, confusion: IntArray, source: str, threat_model: str, on: str
) -> list[Finding]:
    """How much likelier a class is among those whom the adversary takes for it, if these are not too few.

    The interval holds for all classes at once (Bonferroni), as the class was picked for its value.
    """
    guessed, counts, right = confusion.sum(axis=0), confusion.sum(axis=1), np.diag(confusion)
    judged = (guessed >= LEAST_RECORDS) & (counts >= LEAST_RECORDS)
    if not judged.any() or attribute.n_classes < 2:
        return []
    level = 1 - (1 - context.confidence) / int(judged.sum())
    low, high = wilson_interval(right[judged], guessed[judged], level)
    base = counts[judged] / counts.sum()
    with np.errstate(divide="ignore"):
        shares = right[judged] / guessed[judged]
        value, *ends = (max(float(np.log2(part / base).max()), 0.0) for part in (shares, low, high))
    return [
        context.finding(
            "lift",
            value,
            "lower bound",
            "bits",
            source,
            attribute,
            on,
            clipped((ends[0], ends[1]), value, 0.0, math.inf),
            threat_model=threat_model,
            notes="Of the class for which it is the largest, among those whom the adversary takes for it.",
        )
    ]


def difference_finding(
    context: Context,
    attribute: Attribute,
    many: IntArray,
    one: IntArray,
    source: str,
    on: str,
    threat_model: str,
) -> Finding:
    """Success from many codes of a record minus success from one, on the same records."""
    y = attribute.y
    gain = (many == y).astype(np.float64) - (one == y)
    value = float(gain.mean())
    interval = clipped(mean_interval(gain, context.confidence), value, -1.0, 1.0)
    return context.finding(
        "many-draws difference",
        value,
        "estimate",
        "share",
        source,
        attribute,
        on,
        interval,
        threat_model=threat_model,
    )
