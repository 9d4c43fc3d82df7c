"""What columns tell that are handed out beside the release, alone and with Z: from counts of records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...alphabet import canonical_label
from ...arrays import FloatArray, IntArray
from ...attributes import Attribute
from ...errors import InvalidInputError
from ...information import mutual_information
from ...joint import Joint
from ...mechanism import TableMechanism
from ..findings import About, Finding, kept_view, mean_interval
from .tables import BAYES

#: Different numbers above which a numeric column is cut into bins, and the most bins.
MOST_VALUES, MOST_BINS = 100, 32
#: Joints drawn around that of the records for the interval of the bits.
N_DRAWS = 200
KNOWS = (
    "Sees {0}, knows the mechanism and the records and classes of other people, and guesses the likeliest "
    "class."
)
#: The most entries of the table of kept value, symbol and class: 400 MB.
MOST_ENTRIES = 50_000_000
#: A value that fewer records share tells about them more than counts can measure.
FEWEST = 10
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class KeptColumn:
    """A column that is handed out as it is."""

    name: str
    values: IntArray  # the number of each record's value, or of the bin that a number lies in
    features: FloatArray  # the same for adversaries that learn from numbers
    notes: str = ""  # what was done to the values


def as_kept(given: Any, n: int) -> tuple[KeptColumn, ...]:
    """The columns of a mapping or a frame, one value a record."""
    if isinstance(given, Mapping):
        columns = {str(name): np.asarray(values) for name, values in given.items()}
    elif hasattr(given, "columns") and not callable(given.columns):
        names = getattr(given, "column_names", None) or given.columns
        columns = {str(name): np.asarray(given[name]) for name in names}
    else:
        raise InvalidInputError(
            "audit: keep must be a frame, or a mapping from names to columns.", names=("keep",)
        )
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


def counted_findings(
    about: About,
    attribute: Attribute,
    folds: IntArray,
    group: Sequence[KeptColumn],
    letters: IntArray | None = None,
    table: FloatArray | None = None,
) -> list[Finding]:
    """What the likeliest class of each value (and symbol) tells; at the high end rare values tell all.

    `letters` and `table` are the letter of each record and P(z|x): with them the columns are seen together
    with Z, and every release counts, not one.
    """
    with_z = table is not None
    if letters is None or table is None:
        letters, table = np.zeros(len(attribute.y), dtype=np.intp), nothing_released(1)
    values, rare = _combined(group)
    hits = _hits(letters, values, attribute, folds, table)
    low = mean_interval(hits, about.confidence)[0]
    high = mean_interval(np.where(rare, 1.0, hits), about.confidence)[1]
    told, bounds = _bits(about, letters, values, attribute, table)
    most = math.log2(attribute.n_classes)
    # I(K;Y) is at most that of K with its rare values made one, plus all there is to know of their records.
    bounds = bounds[0], bounds[1] + float(rare.mean()) * most
    names = [one.name for one in group]
    sees = " and ".join([*names, *(["one release of each record"] if with_z else [])])
    notes = " ".join(one.notes for one in group if one.notes)
    if rare.any():
        notes += (
            f" {int(rare.sum()):,} records have a value that fewer than {FEWEST} share: what it tells is not "
            "measured, and the high end takes it for everything."
        )
    notes = notes.strip()
    about = about.of(attribute, source=BAYES, threat_model=KNOWS.format(sees), on=kept_view(names, with_z))
    value = min(max(told, 0.0), most)
    corrected = f"From counts, corrected for its bias. {notes}".strip()
    return [
        about.lower("success", float(hits.mean()), (low, high), within=(0.0, 1.0), notes=notes),
        about.estimate("leakage", value, bounds, within=(0.0, most), notes=corrected),
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
    about: About, letters: IntArray, values: IntArray, attribute: Attribute, table: FloatArray
) -> tuple[float, tuple[float, float]]:
    """I(Z, K; Y) with the spread of the Dirichlet posterior around it, as `leakage_interval` has it."""
    cells = Cells.of_records(letters, values, attribute.y, attribute.n_classes)
    rng = np.random.default_rng([about.seed, 23])
    draws = [
        bits(replace(cells, counts=rng.standard_gamma(cells.counts)).released(table)) for _ in range(N_DRAWS)
    ]
    tail = (1 - about.confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail]).tolist()
    value, middle = corrected_bits(cells, table), float(np.mean(draws))
    return value, (value + low - middle, max(value, 0.0) + high - middle)


@dataclass(frozen=True, eq=False)
class Cells:
    """Records by letter of X and value of the kept columns: m cells."""

    letters: IntArray  # (m,)
    kept: IntArray  # (m,), the number of the kept value
    counts: FloatArray  # (m, n_classes)
    n_kept: int

    @classmethod
    def of_records(cls, letters: IntArray, kept: IntArray, y: IntArray, n_classes: int) -> Cells:
        """The cells of records given by their numbers."""
        n_kept, n_letters = int(kept.max()) + 1, int(letters.max()) + 1
        keys, cell = np.unique(kept * n_letters + letters, return_inverse=True)
        counts = np.zeros((len(keys), n_classes))
        np.add.at(counts, (cell, y), 1)
        return cls(keys % n_letters, keys // n_letters, counts, n_kept)

    def released(self, table: FloatArray) -> FloatArray:
        """Expected records by kept value, symbol and class, (n_kept, n_z, n_classes), for a table P(z|x).

        With the square of the table the same sum is what the bias of the bits needs.
        """
        shape = self.n_kept, table.shape[1], self.counts.shape[1]
        if math.prod(shape) > MOST_ENTRIES:
            raise InvalidInputError(
                f"{self.n_kept:,} values of the kept columns with {table.shape[1]:,} symbols are too many to "
                "measure together; keep fewer columns, or group their values."
            )
        result = np.zeros(shape)
        step = max(1, _BLOCK // (shape[1] * shape[2]))
        for start in range(0, len(self.kept), step):
            part = slice(start, start + step)
            weights = table[self.letters[part]][:, :, None] * self.counts[part][:, None, :]
            np.add.at(result, self.kept[part], weights)
        return result


def nothing_released(n_letters: int) -> FloatArray:
    """The table of a Z that is constant, for what the kept columns tell alone."""
    return np.ones((n_letters, 1))


def guess_share(released: FloatArray) -> float:
    """How often the likeliest class of each kept value and symbol is right, on these very records."""
    return float(released.max(axis=2).sum() / released.sum())


def bits(released: FloatArray) -> float:
    """I(Z, K; Y) of these very records."""
    return mutual_information(released.reshape(-1, released.shape[2]) / released.sum())


def corrected_bits(cells: Cells, table: FloatArray) -> float:
    """The same, without the first-order bias of measuring on a sample; it can be negative.

    `resampling.leakage_bias` for the mechanism that takes (x, k) to (z, k).
    """
    released, squares = cells.released(table), cells.released(table**2)
    n = float(released.sum())
    seen = released > 0
    by_symbol, squares_by_symbol = released.sum(axis=2), squares.sum(axis=2)
    used = by_symbol > 0
    n_classes = int((released.sum(axis=(0, 1)) > 0).sum())
    terms = float((squares[seen] / released[seen]).sum())
    terms -= float((squares_by_symbol[used] / by_symbol[used]).sum())
    return bits(released) - (terms - n_classes + 1) / (2 * n * math.log(2))


@dataclass(frozen=True)
class KeptMeasure:
    """What kept columns tell about the private attribute, exact on the records that were counted."""

    columns: tuple[str, ...]
    guess: float  # how often the best guess is right from the columns alone
    guess_with_z: float
    leakage: float  # I(K;Y) in bits
    leakage_with_z: float  # I(Z,K;Y)
    rare_share: float  # share of the records whose kept value fewer than ten records have


def measure_kept(mechanism: TableMechanism, joint: Joint, columns: tuple[str, ...]) -> KeptMeasure:
    """What columns tell beside Z, on the joint whose letters are those of the mechanism and then theirs."""
    n_public = len(mechanism.x_names)
    letters: list[tuple[object, ...]] = list(joint.x_labels)  # type: ignore[arg-type]
    row_of = {
        label if isinstance(label, tuple) else (label,): i for i, label in enumerate(mechanism.x_labels)
    }
    number_of: dict[tuple[object, ...], int] = {}
    kept = [number_of.setdefault(letter[n_public:], len(number_of)) for letter in letters]
    cells = Cells(
        np.array([row_of[letter[:n_public]] for letter in letters], dtype=np.intp),
        np.array(kept, dtype=np.intp),
        joint.p_xy * (joint.n_samples or 1),
        len(number_of),
    )
    alone = cells.released(nothing_released(mechanism.n_x))
    together = cells.released(mechanism.p_z_given_x)
    sizes = alone.sum(axis=(1, 2))
    return KeptMeasure(
        columns,
        guess_share(alone),
        guess_share(together),
        bits(alone),
        bits(together),
        float(sizes[np.rint(sizes) < FEWEST].sum() / sizes.sum()),
    )
