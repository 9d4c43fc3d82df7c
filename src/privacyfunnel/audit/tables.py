"""Table mechanisms: exact numbers on a known joint, and what records say about the rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..information import bayes_success, maximal_leakage, measure
from ..joint import Joint
from ..mechanism import TableMechanism
from ..uncertainty import held_out_leakage, leakage_interval, rows_for, utility_interval
from .bits import most_bits
from .context import Context
from .findings import Finding
from .inputs import Attribute
from .intervals import clipped, mean_interval, wilson_interval
from .unmeasured import class_gaps
from .worst_off import SYMBOLS, Groups, group_findings

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

BAYES = "Bayes adversary"
KNOWS_ALL = (
    "Sees one release of each record, knows the mechanism and the joint distribution of records and private "
    "attribute, and guesses the likeliest class."
)
KNOWS_RECORDS = (
    "Sees one release of each record, knows the mechanism and the records and private attribute of everybody "
    "in the joint, and guesses the likeliest class."
)
BEFORE = "The same adversary before anything is released: it sees the record itself."
KNOWS_TABLE = (
    "Sees one release of each record, knows the mechanism and the records and classes of other people, and "
    "guesses the likeliest class."
)


def exact_findings(mechanism: TableMechanism, joint: Joint, *, confidence: float, seed: int) -> list[Finding]:
    """Every number of a table on a joint: exact for a known one, with intervals for an empirical one."""
    profile = measure(mechanism, joint)
    n = joint.n_samples
    name = ", ".join(joint.y_names)
    kind: Any = "exact" if n is None else "estimate"
    options: dict[str, Any] = {"attribute": name, "n_samples": n, "confidence": confidence, "seed": seed}
    leakage, utility = profile.leakage, profile.utility
    intervals: dict[str, tuple[float, float] | None] = {"leakage": None, "utility": None}
    if n is not None:
        for key, function in (("leakage", leakage_interval), ("utility", utility_interval)):
            interval = function(mechanism, joint, level=confidence, rng=np.random.default_rng(seed))
            intervals[key] = interval.low, interval.high
    notes = "" if n is None else f"Of the joint of {n} records, which is not that of all people."

    def finding(quantity: str, value: float, source: str, on: str = "Z", **more: Any) -> Finding:
        unit = "share" if quantity in ("success", "chance", "advantage") else "bits"
        return Finding(
            quantity, value, more.pop("kind", kind), unit, source, on, **{"notes": notes, **options, **more}
        )

    def share(quantity: str, value: float, source: str, on: str, **more: Any) -> Finding:
        ends = None if n is None else tuple(map(float, wilson_interval(value * n, n, confidence)))
        return finding(quantity, value, source, on, interval=ends, **more)

    guess = {"threat_model": KNOWS_ALL if n is None else KNOWS_RECORDS}
    whole = "all joint probabilities"
    return [
        share("success", profile.guess_after, BAYES, "Z", **guess),
        share("success", bayes_success(joint.p_xy.T), BAYES, "X", threat_model=BEFORE),
        share("chance", profile.guess_before, "largest class", ""),
        finding("advantage", max(0.0, profile.guess_after - profile.guess_before), BAYES, **guess),
        finding("leakage", leakage, whole, interval=_around(intervals["leakage"], leakage)),
        finding("leakage", joint.mutual_information, whole, "X"),
        finding("min-entropy leakage", profile.min_entropy_leakage, BAYES, **guess),
        finding("maximal leakage", profile.maximal_leakage, "all functions of the private attribute"),
        finding(
            "utility",
            utility,
            whole,
            attribute=", ".join(joint.x_names),
            interval=_around(intervals["utility"], utility),
        ),
        table_ceiling(mechanism, options),
        *_worst_off(mechanism, joint, profile.largest_pointwise_leakage, finding, Context(confidence, seed)),
    ]


def _worst_off(
    mechanism: TableMechanism, joint: Joint, lift: float, finding: Any, context: Context
) -> list[Finding]:
    """The worst-off symbol, exact on a known joint; on records, their rare classes too."""
    if joint.n_samples is None:
        return [finding("lift", lift, SYMBOLS)]
    counts = np.rint(joint.p_xy * joint.n_samples)
    y = np.repeat(np.arange(joint.n_y), counts.sum(axis=0).astype(np.intp))
    attribute = Attribute(", ".join(joint.y_names), tuple(joint.y_labels), y)
    table = rows_for(mechanism, joint)
    groups = Groups.of_table(table, counts)
    return group_findings(context, attribute, groups) + class_gaps(context, attribute)


def table_ceiling(mechanism: TableMechanism, options: dict[str, Any]) -> Finding:
    """Maximal leakage of X: of the table alone, whatever the distribution of the records is."""
    value = maximal_leakage(mechanism.p_z_given_x, np.ones(mechanism.n_x))
    return Finding(
        "maximal leakage of X",
        value,
        "upper bound",
        "bits",
        "all functions of the record",
        **{**options, "n_samples": None},
        notes="Exact if every letter occurs; bounds I(Z;Y) and log2 of any guess's gain from above.",
    )


def record_findings(
    mechanism: TableMechanism,
    letters: IntArray,
    attribute: Attribute,
    folds: IntArray,
    *,
    confidence: float,
    seed: int,
) -> list[Finding]:
    """What records that the mechanism was not chosen on say about it; no draw of Z is needed."""
    counts = np.zeros((mechanism.n_x, attribute.n_classes))
    np.add.at(counts, (letters, attribute.y), 1)
    joint = Joint.from_counts(counts, x_labels=mechanism.x_labels)
    estimate = held_out_leakage(mechanism, joint, level=confidence, rng=np.random.default_rng(seed))
    kept = utility_interval(mechanism, joint, level=confidence, rng=np.random.default_rng(seed))
    utility = measure(mechanism, joint).utility
    hits = bayes_hits(mechanism.p_z_given_x, letters, attribute.y, folds, attribute.n_classes)
    success = float(hits.mean())
    options: dict[str, Any] = {
        "attribute": attribute.name,
        "n_samples": len(letters),
        "confidence": confidence,
        "seed": seed,
    }
    bits: dict[str, Any] = {"unit": "bits", "kind": "estimate", "source": "known table", **options}
    return [
        Finding(
            "success",
            success,
            "lower bound",
            "share",
            BAYES,
            interval=clipped(mean_interval(hits, confidence), success, 0.0, 1.0),
            threat_model=KNOWS_TABLE,
            notes="Over all releases of each record.",
            **options,
        ),
        Finding(
            "leakage",
            estimate.value,
            interval=clipped(
                (estimate.interval.low, estimate.interval.high),
                estimate.value,
                0.0,
                most_bits(attribute, confidence),
            ),
            notes="P(z|x) is known, P(x, y) is that of the records, corrected for its bias.",
            **bits,
        ),
        Finding(
            "utility",
            utility,
            interval=_around((kept.low, kept.high), utility),
            notes="P(z|x) is known, P(x) is that of the records.",
            **{**bits, "attribute": ", ".join(mechanism.x_names)},
        ),
        Finding(
            "maximal leakage",
            # Rows of classes: mixtures of the rows of the table, so the table's own value is above it.
            min(
                maximal_leakage(mechanism.p_z_given_x, np.ones(mechanism.n_x)),
                math.log2(attribute.n_classes),
            ),
            "upper bound",
            "bits",
            "known table",
            notes="From the table and the number of classes.",
            **{**options, "n_samples": None},
        ),
        table_ceiling(mechanism, options),
        *group_findings(Context(confidence, seed), attribute, Groups.of_table(mechanism.p_z_given_x, counts)),
    ]


def bayes_hits(
    p_z_given_x: FloatArray, letters: IntArray, y: IntArray, folds: IntArray, n_classes: int
) -> FloatArray:
    """P(guess right) of each record, over releases, for guesses learnt from the records of other folds."""
    hits = np.empty(len(y))
    for fold in np.unique(folds):
        held = folds == fold
        counts = np.zeros((len(p_z_given_x), n_classes))
        np.add.at(counts, (letters[~held], y[~held]), 1)
        guess = (counts.T @ p_z_given_x).argmax(axis=0)
        hits[held] = (p_z_given_x[letters[held]] * (guess[None, :] == y[held][:, None])).sum(axis=1)
    return hits


def _around(interval: tuple[float, float] | None, value: float) -> tuple[float, float] | None:
    """The interval, stretched to hold the plug-in value, which its bias can put outside."""
    return None if interval is None else (min(interval[0], value), max(interval[1], value))
