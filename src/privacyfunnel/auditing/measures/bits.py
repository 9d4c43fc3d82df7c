"""What leaks, in bits: what there is to know, what probabilities prove, what counts and distances estimate.

Nearest-neighbour estimates are no bounds: they are consistent, but in many dimensions they fall short of the
truth unless there are very many records. The null, the same estimate with y reordered, shows their noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IntArray
from ...attributes import LEAST_RECORDS, Attribute
from ...information import entropy
from ...joint import Joint
from ...mechanism import TableMechanism
from ...uncertainty import held_out_leakage
from ..adversaries.bounds import Calibration, bound_of
from ..adversaries.clustering import scaled, without_ties
from ..findings import ENTROPY, About, Finding, clipped, mean_interval, normal_quantile, wilson_interval
from ..inputs import Table

#: Reorderings of the nearest-neighbour estimate, each of which costs as much as the estimate.
N_NULL = 20
#: Neighbours of the estimate: more mean less noise and more bias.
K = 5
#: Most records of it: the table of distances grows with the square.
MOST_RECORDS = 2000
RARE = "too few records"


def attribute_findings(about: About, attribute: Attribute, judged: IntArray) -> list[Finding]:
    """What is known without the release: chance, the entropy that bounds all leakage, and rare classes.

    `judged` are the classes of the records that adversaries are tried on.
    """
    about = about.of(attribute)
    n, counts = len(attribute.y), np.bincount(attribute.y, minlength=attribute.n_classes)
    low, high = wilson_interval(counts.max(), n, about.confidence)
    notes = ""
    if attribute.n_classes < 2:
        notes = "All records are of one class: there is nothing to test."
    elif counts.max() >= LEAST_RECORDS:
        notes = f"The largest class is {attribute.classes[int(counts.argmax())]}."
    chance = about.of(source="largest class", on="", notes=notes)
    found = [chance.estimate("chance", float(counts.max() / n), (float(low), float(high)))]
    if attribute.n_classes < 2:
        return found
    if attribute.values is None:
        notes = (
            "H(Y): nothing can tell more about Y than there is to know; values that none of these records "
            "has are not counted."
        )
        whole = about.of(source=ENTROPY, notes=notes)
        found.append(whole.upper("leakage", *_entropy(counts, about.confidence)))
    return found + class_gaps(about, attribute, judged)


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
    about: About, attribute: Attribute, q: FloatArray, calibration: Calibration, n_train: int
) -> Finding:
    """The lower bound on I(Z;Y) that calibrated held-out probabilities prove."""
    bound = bound_of(about.source, q, attribute.y, about.confidence, n_train, calibration)
    cut = "" if attribute.values is None else f"Of the attribute cut into {attribute.n_classes} classes. "
    notes = (
        f"{cut}H(Y) − cross-entropy of P(y|z) learnt from {n_train} other records; "
        f"weight of the class frequencies {bound.shrinkage:.2g}, power {bound.power:.2g}."
    )
    # 0 is a lower bound too, and H(Y) one from above.
    within = 0.0, most_bits(attribute, about.confidence)
    ends = bound.interval.low, bound.interval.high
    return about.lower("leakage", max(0.0, bound.value), ends, within=within, notes=notes)


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


def class_gaps(about: About, attribute: Attribute, judged: IntArray | None = None) -> list[Finding]:
    """What rare classes add to H(Y), which may all leak, and their records, which may all be guessed.

    With Y' the attribute whose rare classes are one, I(Z;Y) = I(Z;Y') + I(Z;Y|Y') ≤ I(Z;Y') + H(Y) − H(Y').
    `judged` are the classes of the records that adversaries were tried on, where that was not all of them.
    """
    counts = np.bincount(attribute.y, minlength=attribute.n_classes)
    seen = counts if judged is None else np.bincount(judged, minlength=attribute.n_classes)
    rare = (counts > 0) & (seen < LEAST_RECORDS)
    if not rare.any() or (counts > 0).sum() < 2:
        return []
    bits = entropy(counts / counts.sum()) - entropy(merged(counts, rare) / counts.sum())
    return _gaps(about, attribute, int(counts[rare].sum()), bits, int(rare.sum()), "class", "classes")


def symbol_gaps(about: About, attribute: Attribute, symbols: IntArray) -> list[Finding]:
    """What rare symbols can tell: with all of them taken for one, their records could still be told apart.

    With Z' the release whose rare symbols are one, I(Z;Y) ≤ I(Z';Y) + P(rare) · H(Y|rare).
    """
    counts = np.bincount(symbols)
    rare = (counts > 0) & (counts < LEAST_RECORDS)
    classes = np.bincount(attribute.y[rare[symbols]], minlength=attribute.n_classes)
    records = int(classes.sum())
    if not records or attribute.n_classes < 2:
        return []
    bits = records / len(symbols) * entropy(classes / records)
    return _gaps(about, attribute, records, bits, int(rare.sum()), "symbol", "symbols")


def merged(counts: IntArray, rare: NDArray[np.bool_]) -> IntArray:
    """Class counts with the rare classes as one, and the next smallest too until that one can be judged."""
    one, rest = int(counts[rare].sum()), np.sort(counts[~rare & (counts > 0)])
    taken = 0
    while one < LEAST_RECORDS and taken < len(rest):
        one += int(rest[taken])
        taken += 1
    return np.array([one, *rest[taken:]], dtype=np.intp)


def _gaps(
    about: About, attribute: Attribute, records: int, bits: float, n: int, one: str, many: str
) -> list[Finding]:
    have = f"{n:,} {many} have" if n > 1 else f"{n} {one} has"
    # No count of their records: whoever knows all of them but one would know the last one.
    notes = f"{have} fewer than {LEAST_RECORDS} records, too few to judge."
    about = about.of(attribute, source=f"{RARE}: {many}", notes=notes)
    return [
        about.upper("unmeasured success", records / len(attribute.y)),
        about.upper("unmeasured leakage", max(bits, 0.0)),
    ]


def foreign_findings(about: About, codes: Table, attributes: Sequence[Attribute]) -> list[Finding]:
    """Estimates of I(Z;Y) from the values alone: counts for symbols, nearest neighbours for numbers."""
    usable = [one for one in attributes if one.n_classes > 1]
    if codes.symbols is not None:
        return [_counted(about, codes.symbols, attribute) for attribute in usable]
    if not usable or codes.n < 3:
        return []
    rows = np.random.default_rng([about.seed, 19]).permutation(codes.n)[:MOST_RECORDS]
    distances = code_distances(codes.codes[rows])
    return [one for each in usable for one in _neighbour_findings(about, each, distances, rows)]


def _counted(about: About, symbols: IntArray, attribute: Attribute) -> Finding:
    """The leakage of counted symbols and classes."""
    counts = np.zeros((int(symbols.max()) + 1, attribute.n_classes))
    np.add.at(counts, (symbols, attribute.y), 1)
    joint, rng = Joint.from_counts(counts), np.random.default_rng([about.seed, 17])
    estimate = held_out_leakage(TableMechanism.identity(joint), joint, level=about.confidence, rng=rng)
    most = most_bits(attribute, about.confidence)
    ends = estimate.interval.low, estimate.interval.high
    about = about.of(attribute, source="counts of symbols and classes", notes="Corrected for its bias.")
    return about.estimate("leakage", min(estimate.value, most), ends, within=(0.0, most))


def _neighbour_findings(
    about: About, attribute: Attribute, distances: FloatArray, rows: IntArray
) -> list[Finding]:
    """The nearest-neighbour estimate of I(Z;Y) on some records, and what it gives for reordered ones."""
    numeric = attribute.values is not None
    terms_of: Any = number_terms if numeric else class_terms
    target: Any = attribute.values[rows] if attribute.values is not None else attribute.y[rows]
    terms = terms_of(distances, target)
    if len(terms) < 2:
        return []
    most = math.inf if numeric else most_bits(attribute, about.confidence)
    value = min(max(0.0, float(terms.mean())), most)
    rng = np.random.default_rng([about.seed, 11])
    null = [float(terms_of(distances, rng.permutation(target)).mean()) for _ in range(N_NULL)]
    source = f"nearest neighbours ({'Kraskov' if numeric else 'Ross'})"
    about = about.of(attribute, source=source, n_samples=len(rows))
    ends = mean_interval(terms, about.confidence)
    short = "Falls short of the truth where codes have many components; compare its null."
    mean_of = f"Mean and range of {N_NULL} reorderings."
    return [
        about.estimate("leakage", value, ends, within=(0.0, most), notes=short),
        about.estimate("leakage null", float(np.mean(null)), (min(null), max(null)), notes=mean_of),
    ]


def code_distances(Z: FloatArray) -> FloatArray:
    """Euclidean distances of scaled codes, (n, n); a code is infinitely far from itself."""
    codes = without_ties(scaled(Z))
    squares = (codes**2).sum(axis=1)
    table = squares[:, None] + squares[None, :] - 2 * codes @ codes.T
    result: FloatArray = np.sqrt(np.maximum(table, 0.0))
    np.fill_diagonal(result, np.inf)
    return result


def class_terms(distances: FloatArray, y: IntArray) -> FloatArray:
    """Terms whose mean estimates I(Z;Y) in bits for classes y (Ross 2014).

    With d_i the distance to the k-th neighbour of the same class and m_i the codes of any class as near,

        Î = ψ(N) − ⟨ψ(N_y)⟩ + ⟨ψ(k)⟩ − ⟨ψ(m)⟩.

    Records that are alone in their class are left out.
    """
    from scipy.special import digamma

    counts = np.bincount(y)
    rows = np.flatnonzero(counts[y] > 1)
    if len(rows) < 2:
        return np.zeros(len(rows))
    # Copies of a large table are most of the time, and there are many reorderings.
    table = distances if len(rows) == len(y) else distances[np.ix_(rows, rows)]
    classes = y[rows]
    k = np.minimum(K, counts[classes] - 1)
    radius = np.empty(len(rows))
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        nearest = int(k[members[0]])
        inside = table[np.ix_(members, members)]
        radius[members] = np.partition(inside, nearest - 1, axis=1)[:, nearest - 1]
    # The k-th neighbour itself is counted, as in the derivation.
    near = (table <= radius[:, None]).sum(axis=1)
    terms = digamma(len(rows)) - digamma(counts[classes]) + digamma(k) - digamma(near)
    result: FloatArray = terms / math.log(2)
    return result


def number_terms(distances: FloatArray, y: FloatArray) -> FloatArray:
    """Terms whose mean estimates I(Z;Y) in bits for numbers y (Kraskov, Stögbauer & Grassberger 2004, 1).

    Î = ψ(k) + ψ(N) − ⟨ψ(n_z + 1) + ψ(n_y + 1)⟩
    """
    from scipy.special import digamma

    n = len(y)
    if n < 3:
        return np.zeros(n)
    values = without_ties(scaled(y[:, None]))[:, 0]
    gaps = np.abs(values[:, None] - values[None, :])
    np.fill_diagonal(gaps, np.inf)
    k = min(K, n - 1)
    radius = np.partition(np.maximum(distances, gaps), k - 1, axis=1)[:, [k - 1]]
    n_z, n_y = (distances < radius).sum(axis=1), (gaps < radius).sum(axis=1)
    terms = digamma(k) + digamma(n) - digamma(n_z + 1) - digamma(n_y + 1)
    result: FloatArray = terms / math.log(2)
    return result
