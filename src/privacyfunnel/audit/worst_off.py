"""Who is worst off: the symbol or region whose people the release tells most, and how many they are.

Averages over all records hide them: 20 of 800 people told outright are 0.03 bit of leakage.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .adversaries.hidden import FEW_VALUES
from .adversaries.supervised import MANY_CLASSES
from .attack import Attack, Outcome, View
from .context import Context
from .findings import Finding
from .inputs import Attribute
from .intervals import clipped, normal_quantile, wilson_interval
from .rounding import LEAST_RECORDS
from .work import Piece

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Least records of a region of the tree that looks for the worst one, and the range of how many regions it
#: has: with many of them, on few records, the purest are pure by luck (800 records with 21 told outright in
#: 20 columns: a tree of 64 regions found a lift of log2 1.25 at the median, one of 8 found log2 1.71).
LEAST_REGION, REGIONS_RANGE = 5, (8, 64)
SYMBOLS, REGIONS = "worst-off symbol", "worst-off region"


@dataclass(frozen=True, eq=False)
class Groups:
    """Records by symbol and class, as they are or as a mechanism is expected to release them.

    Attributes
    ----------
    counts : (n_symbols, n_classes) array
    weights : (n_symbols,) array
        How many records each row of `counts` is worth: fewer than its sum where every record is in it a bit.
    spread : (n_symbols,) array
        Standard deviation of the size of each group over releases; 0 for symbols that were counted.
    """

    counts: FloatArray
    weights: FloatArray
    spread: FloatArray

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
        return cls(counts, counts.sum(axis=1), np.zeros(len(counts)))

    @classmethod
    def of_symbols(cls, symbols: IntArray, attribute: Attribute) -> Groups:
        """The groups of symbols that were released."""
        counts = np.zeros((int(symbols.max()) + 1, attribute.n_classes))
        np.add.at(counts, (symbols, attribute.y), 1)
        return cls(counts, counts.sum(axis=1), np.zeros(len(counts)))

    @classmethod
    def of_table(cls, p_z_given_x: FloatArray, counts: FloatArray) -> Groups:
        """The groups that a table makes on average of records counted by letter and class."""
        letters = counts.sum(axis=1)
        sizes, squares = letters @ p_z_given_x, letters @ p_z_given_x**2
        weights = sizes**2 / np.where(squares > 0, squares, 1.0)
        return cls(p_z_given_x.T @ counts, weights, np.sqrt(np.maximum(sizes - squares, 0.0)))


def group_findings(context: Context, attribute: Attribute, groups: Groups) -> list[Finding]:
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
    level = 1 - (1 - context.confidence) / counts.size
    ends = wilson_interval(shares * weights[:, None], np.broadcast_to(weights[:, None], shares.shape), level)
    with np.errstate(divide="ignore"):
        value, low, high = (float(np.log2(part / base).max()) for part in (shares, *ends))
    value = max(value, 0.0)
    least = int(sizes.argmin())
    size, half = float(sizes[least]), normal_quantile(context.confidence) * float(groups.spread[used][least])
    drawn = bool(groups.spread.any())
    lift = context.finding(
        "lift",
        value,
        "estimate",
        "bits",
        SYMBOLS,
        attribute,
        interval=clipped((low, high), value, 0.0, math.inf),
        notes=f"Of {len(sizes)} symbols and {counts.shape[1]} classes the pair with the largest.",
    )
    group = context.finding(
        "group size",
        size,
        "estimate" if drawn else "exact",
        "records",
        SYMBOLS,
        attribute,
        interval=(max(size - half, 0.0), size + half) if drawn else None,
        notes="Records of the rarest symbol" + (", over releases." if drawn else "."),
    )
    return [lift, group]


def region_attack(
    context: Context, outcome: Outcome, view: View, attribute: Attribute, folds: IntArray, seed: int
) -> Attack:
    """The region of codes that tells most: found by a tree on other folds, judged on the records held out."""
    key: tuple[Hashable, ...] = ("region", attribute.name, view.on)
    arguments = view.codes[0], attribute.y, folds, attribute.n_classes, seed
    pieces = [
        Piece((*key, fold), worst_region, (*arguments, fold), 2e-7 * view.codes[0].size, REGIONS)
        for fold in range(int(folds.max()) + 1)
    ]

    def read(results: dict[Hashable, Any]) -> None:
        parts = [results[piece.key] for piece in pieces]
        size, hits, expected = (sum(part[i] for part in parts) for i in range(3))
        outcome.findings += region_findings(context, attribute, size, hits, expected)

    return Attack(pieces, read)


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
    context: Context, attribute: Attribute, size: int, hits: int, expected: float
) -> list[Finding]:
    """The lift of the region, and its size if it tells more than chance does."""
    counts = np.bincount(attribute.y)
    smallest = int(counts[counts > 0].min())
    if size:
        low, high = (float(end) for end in wilson_interval(hits, size, context.confidence))
        value, *ends = (max(_log2(share * size / expected), 0.0) for share in (hits / size, low, high))
    else:  # nobody held out is like those whom the trees had found
        value, ends = 0.0, [0.0, math.log2(len(attribute.y) / smallest)]
    if smallest < LEAST_RECORDS:  # whoever is of a class that cannot be judged may be told outright
        ends[1] = math.log2(len(attribute.y) / smallest)
    told = size > 0 and ends[0] > 0
    lift = context.finding(
        "lift",
        value,
        "lower bound",
        "bits",
        REGIONS,
        attribute,
        interval=clipped((ends[0], ends[1]), value, 0.0, math.inf),
        notes="A region of codes that trees found on other records, judged on those held out.",
    )
    if smallest < LEAST_RECORDS and not told:
        return [lift]
    group = context.finding(
        "group size",
        float(size if told else len(attribute.y)),
        "upper bound",
        "records",
        REGIONS,
        attribute,
        notes="Held-out records of the region." if told else "No region tells more than chance does.",
    )
    return [lift, group]


def _log2(value: float) -> float:
    return math.log2(value) if value > 0 else -math.inf
