"""What guesses tell: success, the worst class, the people who are worst off, and predicted numbers.

Averages over all records hide the worst off: 20 of 800 people told outright are 0.03 bit of leakage.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IntArray
from ...attributes import LEAST_RECORDS, Attribute
from ...sparse import Channel
from ..adversaries.supervised import FEW_VALUES, MANY_CLASSES
from ..findings import (
    About,
    Finding,
    clipped,
    jackknife_interval,
    mean_interval,
    normal_quantile,
    permutation_test,
    repeated_interval,
    wilson_interval,
)
from ..published import UNSEEN, ClassTable, in_steps, step_for

N_PERMUTATIONS = 999
#: Least records of a region of the tree that looks for the worst one, and the range of how many regions it
#: has: with many of them, on few records, the purest are pure by luck (800 records with 21 told outright in
#: 20 columns: a tree of 64 regions found a lift of log2 1.25 at the median, one of 8 found log2 1.71).
LEAST_REGION, REGIONS_RANGE = 5, (8, 64)
SYMBOLS, REGIONS = "worst-off symbol", "worst-off region"


def guess_findings(
    about: About, attribute: Attribute, guesses: IntArray, raw: bool = False
) -> tuple[list[Finding], ClassTable]:
    """Success and what follows from it, for guesses (repeats, n) of records not learnt from.

    `raw` says that they are of raw records: what only a release can do is then left out.
    """
    y, n_classes, confidence = attribute.y, attribute.n_classes, about.confidence
    hits = (guesses == y).astype(np.float64)
    success = float(hits.mean())
    if len(guesses) == 1:
        low, high = wilson_interval(hits.sum(), len(y), confidence)
        interval = float(low), float(high)
    else:
        interval = clipped(repeated_interval(hits, confidence), success, 0.0, 1.0)
    majority = (y == np.bincount(y).argmax()).astype(np.float64)
    # The same records on both sides: what they have in common drops out.
    gain = repeated_interval(hits - majority, confidence)
    confusion = np.zeros((n_classes, n_classes), dtype=np.intp)
    np.add.at(confusion, (y, guesses[0]), 1)
    table = ClassTable.of_counts(
        about.source, about.on, attribute.name, attribute.classes, confusion, confidence
    )
    found = [
        about.lower("success", success, interval),
        about.lower("advantage", success - float(majority.mean()), gain, within=(-1.0, 1.0)),
        *_worst_class(about, attribute, confusion, hits),
    ]
    if not raw:
        found += _lift(about, attribute, confusion)
        p, null = permutation_test(guesses[0], y, N_PERMUTATIONS, np.random.default_rng([about.seed, 7]))
        told = (
            f"By chance alone: {null.mean():.2f} on average, {np.quantile(null, 0.95):.2f} in one case of 20."
        )
        notes = f"{N_PERMUTATIONS} reorderings of the classes. {told}"
        found.append(about.estimate("p-value", p, notes=notes))
    return found, table


def _worst_class(about: About, attribute: Attribute, confusion: IntArray, hits: FloatArray) -> list[Finding]:
    """The class that is guessed best, and the one that is told from the others best.

    Only classes of ten records or more, in steps worth two records of the class: a finding about fewer would
    point at people. Intervals hold for all classes at once (Bonferroni), as the class was picked for its
    value.
    """
    n_classes, counts, right = attribute.n_classes, confusion.sum(axis=1), np.diag(confusion)
    seen = np.flatnonzero(counts >= LEAST_RECORDS)
    if not len(seen):
        return []
    level = 1 - (1 - about.confidence) / n_classes
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
        low = float(in_steps(min(lows[seen].max(), values[worst]), step, "below"))
        high = min(float(in_steps(highs[seen].max(), step, "above")), 1.0)
        value = float(in_steps(values[worst], step, "below"))
        return about.lower(quantity, value, (low, high), notes=f"Class {attribute.classes[worst]}.")

    return [
        finding("worst-class success", share, low, high),
        finding("worst-class advantage", gain, np.maximum(gain_low, -1.0), gain_high),
    ]


def _lift(about: About, attribute: Attribute, confusion: IntArray) -> list[Finding]:
    """How much likelier a class is among those whom the adversary takes for it, if these are not too few.

    The interval holds for all classes at once (Bonferroni), as the class was picked for its value.
    """
    guessed, counts, right = confusion.sum(axis=0), confusion.sum(axis=1), np.diag(confusion)
    judged = (guessed >= LEAST_RECORDS) & (counts >= LEAST_RECORDS)
    if not judged.any() or attribute.n_classes < 2:
        return []
    level = 1 - (1 - about.confidence) / int(judged.sum())
    low, high = wilson_interval(right[judged], guessed[judged], level)
    base = counts[judged] / counts.sum()
    with np.errstate(divide="ignore"):
        shares = right[judged] / guessed[judged]
        value, *ends = (max(float(np.log2(part / base).max()), 0.0) for part in (shares, low, high))
    notes = "Of the class for which it is the largest, among those whom the adversary takes for it."
    return [about.lower("lift", value, (ends[0], ends[1]), within=(0.0, math.inf), notes=notes)]


def difference_finding(about: About, attribute: Attribute, many: IntArray, one: IntArray) -> Finding:
    """Success from many codes of a record minus success from one, on the same records."""
    gain = (many == attribute.y).astype(np.float64) - (one == attribute.y)
    ends = mean_interval(gain, about.confidence)
    return about.estimate("many-draws difference", float(gain.mean()), ends, within=(-1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Groups:
    """Records by symbol and class, as they are or as a mechanism is expected to release them."""

    counts: FloatArray  # (n_symbols, n_classes)
    weights: FloatArray  # records that each row is worth: fewer than its sum where all are in it a bit
    spread: FloatArray  # standard deviation of each size over releases; 0 for symbols that were counted
    in_part: bool = False  # whether something else is released beside, which sets smaller groups apart

    @classmethod
    def of_columns(cls, codes: FloatArray, attribute: Attribute) -> Groups | None:
        """The values of every column that has few, such as a text beside numbers; None if no column has."""
        found = [np.unique(column, return_inverse=True) for column in codes.T]
        parts = [
            cls.of_symbols(place.astype(np.intp), attribute).counts
            for values, place in found
            if 1 < len(values) <= FEW_VALUES
        ]
        if not parts:
            return None
        counts = np.vstack(parts)
        return cls(counts, counts.sum(axis=1), np.zeros(len(counts)), in_part=True)

    @classmethod
    def of_symbols(cls, symbols: IntArray, attribute: Attribute) -> Groups:
        """The groups of symbols that were released."""
        counts = np.zeros((int(symbols.max()) + 1, attribute.n_classes))
        np.add.at(counts, (symbols, attribute.y), 1)
        return cls(counts, counts.sum(axis=1), np.zeros(len(counts)))

    @classmethod
    def of_table(cls, p_z_given_x: Channel, counts: FloatArray) -> Groups:
        """The groups that a table makes on average of records counted by letter and class."""
        letters = counts.sum(axis=1)
        sizes, squares = letters @ p_z_given_x, letters @ p_z_given_x**2
        weights = sizes**2 / np.where(squares > 0, squares, 1.0)
        return cls((counts.T @ p_z_given_x).T, weights, np.sqrt(np.maximum(sizes - squares, 0.0)))


def group_findings(about: About, attribute: Attribute, groups: Groups) -> list[Finding]:
    """The largest lift over symbols and classes, and the size of the smallest group.

    Of a cell the lift is log2 P(y|z)/P(y). Its interval holds for all cells at once (Bonferroni), as the
    cell was picked for its value; the classes' own frequencies are taken as they are.
    """
    counts, sizes = groups.counts, groups.counts.sum(axis=1)
    there, used = counts.sum(axis=0) > 0, sizes > 0
    counts, sizes, weights = counts[used][:, there], sizes[used], groups.weights[used]
    if counts.shape[1] < 2:
        return []
    shares, base = counts / sizes[:, None], counts.sum(axis=0) / counts.sum()
    level = 1 - (1 - about.confidence) / counts.size
    ends = wilson_interval(shares * weights[:, None], np.broadcast_to(weights[:, None], shares.shape), level)
    with np.errstate(divide="ignore"):
        value, low, high = (float(np.log2(part / base).max()) for part in (shares, *ends))
    least = int(sizes.argmin())
    size, half = float(sizes[least]), normal_quantile(about.confidence) * float(groups.spread[used][least])
    about = about.of(attribute, source=SYMBOLS)
    notes = f"Of {len(sizes)} symbols and {counts.shape[1]} classes the pair with the largest."
    lift = about.estimate("lift", max(value, 0.0), (low, high), within=(0.0, math.inf), notes=notes)
    if groups.in_part:
        return [lift, about.upper("group size", size, notes="Records of the rarest value of a column.")]
    if not groups.spread.any():
        return [lift, about.exact("group size", size, notes="Records of the rarest symbol.")]
    around = max(size - half, 0.0), size + half
    notes = "Records of the rarest symbol, over releases."
    return [lift, about.estimate("group size", size, around, notes=notes)]


def worst_region(
    Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int, seed: int, fold: int
) -> tuple[int, int, float]:
    """Held-out records in the region that tells most, those of its class, and how many would be by chance."""
    from sklearn.tree import DecisionTreeClassifier

    held = folds == fold
    known, base = y[~held], np.bincount(y, minlength=n_classes) / len(y)
    tree = DecisionTreeClassifier(
        criterion="entropy",
        min_samples_leaf=LEAST_REGION,
        max_leaf_nodes=min(max(len(known) // 100, REGIONS_RANGE[0]), REGIONS_RANGE[1]),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
        leaves = tree.fit(Z[~held], known).apply(Z[~held])
    counts = np.zeros((tree.tree_.node_count, n_classes))
    np.add.at(counts, (leaves, known), 1)
    sizes = np.broadcast_to(counts.sum(axis=1, keepdims=True), counts.shape)
    # The lower end, so that a pure region of many records comes before one of five.
    low = wilson_interval(counts, sizes, 0.95)[0] / np.where(base > 0, base, 1.0)
    leaf, label = np.unravel_index(int(low.argmax()), low.shape)
    there = tree.apply(Z[held]) == leaf
    size = int(there.sum())
    return size, int((y[held][there] == label).sum()), float(size * base[label])


def region_findings(
    about: About, attribute: Attribute, size: int, hits: int, expected: float
) -> list[Finding]:
    """The lift of the region, and its size if it tells more than chance does."""
    counts = np.bincount(attribute.y)
    smallest = int(counts[counts > 0].min())
    if size:
        low, high = (float(end) for end in wilson_interval(hits, size, about.confidence))
        value, *ends = (max(_log2(share * size / expected), 0.0) for share in (hits / size, low, high))
    else:  # nobody held out is like those whom the trees had found
        value, ends = 0.0, [0.0, math.log2(len(attribute.y) / smallest)]
    if smallest < LEAST_RECORDS:  # whoever is of a class that cannot be judged may be told outright
        ends[1] = math.log2(len(attribute.y) / smallest)
    told = size > 0 and ends[0] > 0
    about = about.of(attribute, source=REGIONS)
    notes = "A region of codes that trees found on other records, judged on those held out."
    lift = about.lower("lift", value, (ends[0], ends[1]), within=(0.0, math.inf), notes=notes)
    if smallest < LEAST_RECORDS and not told:
        return [lift]
    notes = "Held-out records of the region." if told else "No region tells more than chance does."
    return [lift, about.upper("group size", float(size if told else len(attribute.y)), notes=notes)]


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf


def number_findings(about: About, truth: FloatArray, values: FloatArray) -> list[Finding]:
    """Explained variance and error of predicted values of a numeric attribute."""
    squares = (truth - values) ** 2
    low, high = mean_interval(squares, about.confidence)
    ends = math.sqrt(max(low, 0.0)), math.sqrt(high)
    return [
        about.lower("explained variance", *explained_variance(truth, values, about.confidence)),
        about.upper("rmse", math.sqrt(float(squares.mean())), ends),
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
