"""Findings about columns that are handed out beside the release: what they tell alone, and with Z."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..labels import canonical_label
from .adversaries.hidden import ResidueAdversary
from .adversaries.supervised import boosted_trees
from .attack import Outcome, View, class_attack
from .context import Context
from .findings import Finding, kept_view
from .inputs import Attribute, Table
from .intervals import clipped, mean_interval
from .kept_counts import FEWEST, Cells, bits, corrected_bits, nothing_released
from .tables import BAYES
from .work import run_pieces

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Different numbers above which a numeric column is cut into bins, and the most bins.
MOST_VALUES, MOST_BINS = 100, 32
#: Joints drawn around that of the records for the interval of the bits.
N_DRAWS = 200
KNOWS = (
    "Sees {0}, knows the mechanism and the records and classes of other people, and guesses the likeliest "
    "class."
)


@dataclass(frozen=True, eq=False)
class KeptColumn:
    """A column that is handed out as it is.

    Attributes
    ----------
    name : str
    values : (n,) int array
        The number of each record's value, or of the bin that a number lies in.
    features : (n, d) array
        The same for adversaries that learn from numbers.
    notes : str
        What was done to the values.
    """

    name: str
    values: IntArray
    features: FloatArray
    notes: str = ""


def as_kept(given: Any, n: int) -> tuple[KeptColumn, ...]:
    """The columns of a mapping or a frame, one value a record."""
    if isinstance(given, Mapping):
        columns = {str(name): np.asarray(values) for name, values in given.items()}
    elif hasattr(given, "columns") and not callable(given.columns):
        names = getattr(given, "column_names", None) or given.columns
        columns = {str(name): np.asarray(given[name]) for name in names}
    else:
        raise InvalidInputError("audit: keep must be a frame, or a mapping from names to columns.")
    for name, values in columns.items():
        if values.shape != (n,):
            raise InvalidInputError(
                f"audit: the kept column {name!r} must hold one value for each of the {n} records; its shape "
                f"is {values.shape}."
            )
    return tuple(_kept_column(name, values) for name, values in columns.items())


def _kept_column(name: str, values: NDArray[Any]) -> KeptColumn:
    if values.dtype.kind in "iuf" and np.isfinite(values).all():
        numbers = values.astype(np.float64)
        n_different = len(np.unique(numbers))
        # Whole numbers that most people have for themselves name them, and parts of a name may tell anything.
        identifiers = np.array_equal(numbers, np.rint(numbers)) and n_different > len(numbers) / 2
        if n_different > MOST_VALUES and not identifiers:
            n_bins = int(np.clip(len(numbers) // 100, 2, MOST_BINS))
            edges = np.unique(np.quantile(numbers, np.linspace(0, 1, n_bins + 1)[1:-1]))
            bins = np.searchsorted(edges, numbers, side="right")
            notes = f"{name} cut into {len(edges) + 1} bins."
            return KeptColumn(name, np.unique(bins, return_inverse=True)[1], numbers[:, None], notes)
    number_of: dict[Any, int] = {}
    labels = [canonical_label(value) for value in values.tolist()]
    codes = np.array([number_of.setdefault(label, len(number_of)) for label in labels], dtype=np.intp)
    common = np.argsort(-np.bincount(codes), kind="stable")[:MOST_VALUES]
    return KeptColumn(name, codes, (codes[:, None] == common).astype(np.float64))


def kept_findings(
    context: Context,
    attribute: Attribute,
    folds: IntArray,
    kept: Sequence[KeptColumn],
    codes: Table,
    letters: IntArray | None = None,
    table: FloatArray | None = None,
) -> list[Finding]:
    """Success and bits of each kept column, alone and with Z, and of all of them with Z.

    Parameters
    ----------
    codes : Table
        One release of each record.
    letters, table : arrays, optional
        The letter of each record and P(z|x), where they are known: then every release counts, not one.
    """
    if attribute.n_classes < 2:
        return []  # there is nothing to tell
    if table is None and codes.symbols is not None:
        letters, table = codes.symbols, np.eye(int(codes.symbols.max()) + 1)
    groups: list[Sequence[KeptColumn]] = [[one] for one in kept]
    found: list[Finding] = []
    for group in groups:
        found += _counted(context, attribute, folds, group, None, None)
        if group[0].notes:  # bins hide what the last digits tell
            last_digits = ResidueAdversary(context.seed % 2**31)
            view = View(_on(group, False), [group[0].features])
            found += _attacked(context, attribute, folds, last_digits, view)
    for group in [*groups, *([kept] if len(kept) > 1 else [])]:
        if table is not None and letters is not None:
            found += _counted(context, attribute, folds, group, letters, table)
        if table is None or len(group) > 1:
            # Combinations of several columns are seen too rarely to be counted.
            found += _learned(context, attribute, folds, group, codes)
    return found


def _on(group: Sequence[KeptColumn], with_z: bool) -> str:
    return kept_view([one.name for one in group], with_z)


def _counted(
    context: Context,
    attribute: Attribute,
    folds: IntArray,
    group: Sequence[KeptColumn],
    letters: IntArray | None,
    table: FloatArray | None,
) -> list[Finding]:
    """What the likeliest class of each value (and symbol) tells; at the high end rare values tell all."""
    with_z = table is not None
    if letters is None or table is None:
        letters, table = np.zeros(len(attribute.y), dtype=np.intp), nothing_released(1)
    values, rare = _combined(group)
    hits = _hits(letters, values, attribute, folds, table)
    success = float(hits.mean())
    low = mean_interval(hits, context.confidence)[0]
    high = mean_interval(np.where(rare, 1.0, hits), context.confidence)[1]
    told, bounds = _bits(context, letters, values, attribute, table)
    most = math.log2(attribute.n_classes)
    # I(K;Y) is at most that of K with its rare values made one, plus all there is to know of their records.
    bounds = bounds[0], bounds[1] + float(rare.mean()) * most
    sees = " and ".join([*(one.name for one in group), *(["one release of each record"] if with_z else [])])
    notes = " ".join(one.notes for one in group if one.notes)
    if rare.any():
        notes += (
            f" {int(rare.sum()):,} records have a value that fewer than {FEWEST} share: what it tells is not "
            "measured, and the high end takes it for everything."
        )
    more: dict[str, Any] = {"threat_model": KNOWS.format(sees), "notes": notes.strip()}
    on = _on(group, with_z)
    ends = clipped((low, high), success, 0.0, 1.0)
    value = min(max(told, 0.0), most)
    return [
        context.finding("success", success, "lower bound", "share", BAYES, attribute, on, ends, **more),
        context.finding(
            "leakage",
            value,
            "estimate",
            "bits",
            BAYES,
            attribute,
            on,
            clipped(bounds, value, 0.0, most),
            **{**more, "notes": f"From counts, corrected for its bias. {more['notes']}".strip()},
        ),
    ]


def _combined(group: Sequence[KeptColumn]) -> tuple[IntArray, NDArray[np.bool_]]:
    """The number of each record's combination of values, the rare ones as one, and which records have one."""
    values = group[0].values
    for one in group[1:]:
        values = np.unique(values * (int(one.values.max()) + 1) + one.values, return_inverse=True)[1]
    rare = np.bincount(values)[values] < FEWEST
    merged = np.where(rare, int(values.max()) + 1, values)
    return np.unique(merged, return_inverse=True)[1].astype(np.intp), rare


def _hits(
    letters: IntArray, values: IntArray, attribute: Attribute, folds: IntArray, table: FloatArray
) -> FloatArray:
    """P(guess right) of each record, over releases, for guesses learnt from the records of other folds."""
    y, n_classes = attribute.y, attribute.n_classes
    hits = np.empty(len(y))
    for fold in np.unique(folds):
        held = folds == fold
        rest = Cells.of_records(letters[~held], values[~held], y[~held], n_classes).released(table)
        by_value = rest.sum(axis=1)
        usual = np.where(by_value.sum(axis=1) > 0, by_value.argmax(axis=1), by_value.sum(axis=0).argmax())
        guess = np.where(rest.sum(axis=2) > 0, rest.argmax(axis=2), usual[:, None])
        # Values that only the held records have: the likeliest class of all.
        absent = max(0, int(values.max()) + 1 - len(guess))
        guess = np.vstack([guess, np.full((absent, guess.shape[1]), by_value.sum(axis=0).argmax())])
        right = guess[values[held]] == y[held][:, None]
        hits[held] = (table[letters[held]] * right).sum(axis=1)
    return hits


def _bits(
    context: Context, letters: IntArray, values: IntArray, attribute: Attribute, table: FloatArray
) -> tuple[float, tuple[float, float]]:
    """I(Z, K; Y) with the spread of the Dirichlet posterior around it, as `leakage_interval` has it."""
    cells = Cells.of_records(letters, values, attribute.y, attribute.n_classes)
    rng = np.random.default_rng([context.seed, 23])
    draws = [
        bits(replace(cells, counts=rng.standard_gamma(cells.counts)).released(table)) for _ in range(N_DRAWS)
    ]
    tail = (1 - context.confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail]).tolist()
    value, middle = corrected_bits(cells, table), float(np.mean(draws))
    return value, (value + low - middle, max(value, 0.0) + high - middle)


def _learned(
    context: Context, attribute: Attribute, folds: IntArray, group: Sequence[KeptColumn], codes: Table
) -> list[Finding]:
    """What boosted trees find in one release of each record and the kept columns."""
    view = View(_on(group, True), [np.column_stack([codes.narrowed(), *(one.features for one in group)])])
    return _attacked(context, attribute, folds, boosted_trees(context.seed % 2**31), view)


def _attacked(
    context: Context, attribute: Attribute, folds: IntArray, adversary: Any, view: View
) -> list[Finding]:
    """Success and bits of one adversary on one view."""
    outcome = Outcome()
    attack = class_attack(context, outcome, adversary, view, attribute, folds, context.seed % 2**31)
    attack.read(run_pieces(attack.pieces, 1, lambda *done: None))
    return [one for one in outcome.findings if one.quantity in ("success", "leakage")]
