"""Table mechanisms: exact numbers on a known joint, and what records say about the rest."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import FloatArray, IntArray
from ...attributes import Attribute
from ...information import bayes_success, maximal_leakage, measure
from ...joint import Joint
from ...mechanism import TableMechanism
from ...sparse import Channel
from ...uncertainty import held_out_leakage, leakage_interval, rows_for, utility_interval
from ..findings import About, Ends, Finding, mean_interval, wilson_interval
from .bits import class_gaps, most_bits
from .guesses import SYMBOLS, Groups, group_findings

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


def exact_findings(about: About, mechanism: TableMechanism, joint: Joint) -> list[Finding]:
    """Every number of a table on a joint: exact for a known one, with intervals for an empirical one."""
    profile, n = measure(mechanism, joint), joint.n_samples
    notes = "" if n is None else f"Of the joint of {n} records, which is not that of all people."
    about = about.of(attribute=", ".join(joint.y_names), n_samples=n, notes=notes)
    whole = about.of(source="all joint probabilities")
    guess = about.of(source=BAYES, threat_model=KNOWS_ALL if n is None else KNOWS_RECORDS)

    def finding(one: About, quantity: str, value: float, ends: Ends = None) -> Finding:
        return (one.exact if n is None else one.estimate)(quantity, value, ends)

    def share(one: About, quantity: str, value: float) -> Finding:
        if n is None:
            return finding(one, quantity, value)
        low, high = wilson_interval(value * n, n, about.confidence)
        return finding(one, quantity, value, (float(low), float(high)))

    def bits(one: About, quantity: str, value: float) -> Finding:
        if n is None:
            return finding(one, quantity, value)
        function = leakage_interval if quantity == "leakage" else utility_interval
        interval = function(mechanism, joint, level=about.confidence, rng=np.random.default_rng(about.seed))
        return finding(one, quantity, value, _around((interval.low, interval.high), value))

    gain = max(0.0, profile.guess_after - profile.guess_before)
    every = about.of(source="all functions of the private attribute")
    return [
        share(guess, "success", profile.guess_after),
        share(guess.of(on="X", threat_model=BEFORE), "success", bayes_success(joint.p_xy.T)),
        share(about.of(source="largest class", on=""), "chance", profile.guess_before),
        finding(guess, "advantage", gain),
        bits(whole, "leakage", profile.leakage),
        finding(whole.of(on="X"), "leakage", joint.mutual_information),
        finding(guess, "min-entropy leakage", profile.min_entropy_leakage),
        finding(every, "maximal leakage", profile.maximal_leakage),
        bits(whole.of(attribute=", ".join(joint.x_names)), "utility", profile.utility),
        _ceiling(about, mechanism),
        *_worst_off(about, mechanism, joint, profile.largest_pointwise_leakage),
    ]


def _worst_off(about: About, mechanism: TableMechanism, joint: Joint, lift: float) -> list[Finding]:
    """The worst-off symbol, exact on a known joint; on records, their rare classes too."""
    if joint.n_samples is None:
        return [about.of(source=SYMBOLS).exact("lift", lift)]
    counts = np.rint(joint.p_xy * joint.n_samples)
    y = np.repeat(np.arange(joint.n_y), counts.sum(axis=0).astype(np.intp))
    attribute = Attribute(about.attribute, tuple(joint.y_labels), y)
    groups = Groups.of_table(rows_for(mechanism, joint), counts)
    return group_findings(about, attribute, groups) + class_gaps(about, attribute)


def _ceiling(about: About, mechanism: TableMechanism) -> Finding:
    """Maximal leakage of X: of the table alone, whatever the distribution of the records is."""
    notes = "Exact if every letter occurs; bounds I(Z;Y) and log2 of any guess's gain from above."
    about = about.of(source="all functions of the record", n_samples=None, notes=notes)
    return about.upper("maximal leakage of X", maximal_leakage(mechanism.channel, np.ones(mechanism.n_x)))


def record_findings(
    about: About, mechanism: TableMechanism, letters: IntArray, attribute: Attribute, folds: IntArray
) -> list[Finding]:
    """What records that the mechanism was not chosen on say about it; no draw of Z is needed."""
    counts = np.zeros((mechanism.n_x, attribute.n_classes))
    np.add.at(counts, (letters, attribute.y), 1)
    joint = Joint.from_counts(counts, x_labels=mechanism.x_labels)
    level, seed = about.confidence, about.seed
    estimate = held_out_leakage(mechanism, joint, level=level, rng=np.random.default_rng(seed))
    kept = utility_interval(mechanism, joint, level=level, rng=np.random.default_rng(seed))
    utility = measure(mechanism, joint).utility
    hits = bayes_hits(mechanism.channel, letters, attribute.y, folds, attribute.n_classes)
    about = about.of(attribute)
    guess = about.of(source=BAYES, threat_model=KNOWS_TABLE, notes="Over all releases of each record.")
    table, within = about.of(source="known table"), (0.0, most_bits(attribute, level))
    leakage = table.of(notes="P(z|x) is known, P(x, y) is that of the records, corrected for its bias.")
    records = table.of(
        attribute=", ".join(mechanism.x_names), notes="P(z|x) is known, P(x) is that of the records."
    )
    ceiling = _ceiling(about, mechanism)
    # Rows of classes: mixtures of the rows of the table, so the table's own value is above it.
    most = min(ceiling.value, math.log2(attribute.n_classes))
    classes = table.of(n_samples=None, notes="From the table and the number of classes.")
    return [
        guess.lower("success", float(hits.mean()), mean_interval(hits, level), within=(0.0, 1.0)),
        leakage.estimate(
            "leakage", estimate.value, (estimate.interval.low, estimate.interval.high), within=within
        ),
        records.estimate("utility", utility, _around((kept.low, kept.high), utility)),
        classes.upper("maximal leakage", most),
        ceiling,
        *group_findings(about, attribute, Groups.of_table(mechanism.channel, counts)),
    ]


def bayes_hits(
    p_z_given_x: Channel, letters: IntArray, y: IntArray, folds: IntArray, n_classes: int
) -> FloatArray:
    """P(guess right) of each record, over releases, for guesses learnt from the records of other folds."""
    hits = np.empty(len(y))
    for fold in np.unique(folds):
        held = folds == fold
        counts = np.zeros((len(p_z_given_x), n_classes))
        np.add.at(counts, (letters[~held], y[~held]), 1)
        guess = (counts.T @ p_z_given_x).argmax(axis=0)
        # P(the symbol's guess is class c | letter), then each record's own class.
        right = p_z_given_x @ (guess[:, None] == np.arange(n_classes)).astype(np.float64)
        hits[held] = right[letters[held], y[held]]
    return hits


def _around(interval: tuple[float, float], value: float) -> tuple[float, float]:
    """The interval, stretched to hold the plug-in value, which its bias can put outside."""
    return min(interval[0], value), max(interval[1], value)
