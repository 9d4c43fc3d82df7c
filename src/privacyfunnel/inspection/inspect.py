"""inspect(): which column of a table tells what about the private one, before anything is solved."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..alphabet import as_names, require_columns
from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS
from ..checks import confidence_level
from ..errors import InvalidInputError, shortened
from ..information import entropy
from .estimates import above, advice_for, at_least, guess_rate, told_bits
from .results import InspectedColumn, InspectedPair, Inspection
from .tallies import Key, Tallies

#: Different numbers above which a column is cut into bins of about equal size, and how many bins.
MOST_VALUES, N_BINS = 100, 32
#: Different numbers above which a private column is cut into classes, and how many classes.
MOST_PRIVATE, N_CLASSES = 20, 8
#: Values of a private column that is no number.
MOST_CLASSES = 100
#: Columns whose pairs are looked at: those that tell most alone.
PAIRED = 6
#: Kinds of columns that can be cut into bins wherever they lie.
NUMBERS = ("number", "whole number")
TIMES = ("date", "time")


def inspect(
    frame: Any, private: str | Sequence[str] | None = None, *, confidence: float = 0.95
) -> Inspection:
    """Which column of a table tells what about a private one: types, bits, guesses, and what to do.

    >>> found = pf.inspect(people, private="sex")        # doctest: +SKIP
    >>> print(found.summary)                             # doctest: +SKIP
    >>> found.to_frame()                                 # doctest: +SKIP

    Parameters
    ----------
    frame : pandas, polars, pyarrow or DuckDB table, or any other that narwhals reads
        Of a lazy one (polars LazyFrame, DuckDB relation) only grouped counts reach memory.
    private : column name or names, optional
        Several are one attribute, their combination. Numbers of more than 20 different values are cut into
        eight classes. Left out: every column is set against every other.
    confidence : float
        Of the intervals, each by itself.

    Returns
    -------
    Inspection

    Notes
    -----
    All numbers are estimates from counts. Bits are corrected for their bias; the interval is that of the
    normal approximation, with the spread that independence leaves. A value that fewer than ten records have
    cannot be measured: such values are taken for one, and the high end counts what they could tell at most.
    How often the private value is guessed is found by leaving each record out of its own count. Numbers and
    dates of more than 100 different values are cut into 32 bins. Nothing here is a guarantee: an attacker
    sees columns together, and the audit of a release is for that. It is for the owner of the table alone:
    no value is told, but numbers of missing and rare ones are exact, and may be about a single person.
    """
    return inspect_tallies(Tallies.of_frame(frame, "inspect"), private, confidence)


def inspect_tallies(
    tallies: Tallies, private: str | Sequence[str] | None = None, confidence: float = 0.95
) -> Inspection:
    """The same of records that are counted elsewhere, such as in a file."""
    confidence_level("confidence", confidence)
    names = () if private is None else as_names(private)
    require_columns(names, tallies.schema, "inspect")
    n = tallies.n_records()
    if n < 2:
        raise InvalidInputError(f"inspect: there must be two records or more; there is {n}.")
    others = [name for name in tallies.schema if name not in names]
    if len(others) < (1 if names else 2):
        raise InvalidInputError(
            "inspect: there is no other column to look at; pass a table with more columns."
        )
    looked, notes = _profiled(tallies, list(tallies.schema), n)
    if not names:
        return _of_each_other(tallies, [looked[name] for name in others], n, confidence, notes)
    y = [_private_key(tallies, looked[name], n, notes) for name in names]
    label = " × ".join(names)
    told = _counted(tallies, [y])[0]
    classes = {value: i for i, value in enumerate(told)}
    if len(classes) < 2:
        raise InvalidInputError(
            f"inspect: all {n:,} records have the same {label}, so there is nothing to tell; name another "
            "private column."
        )
    sizes = np.array(list(told.values()), dtype=np.float64)
    counter = _Counter(tallies, y, classes, confidence, entropy(sizes / n))
    found = counter.measured([looked[name] for name in others])
    found.sort(key=lambda one: -_value(one))
    strongest = [looked[one.name] for one in found if one.guessed is not None and not one.part][:PAIRED]
    pairs = counter.pairs(list(combinations(strongest, 2)), {one.name: one for one in found})
    return Inspection(
        n,
        names,
        tuple(found),
        tuple(sorted(pairs, key=lambda one: -one.bits.value)),
        float(sizes.max()) / n,
        counter.entropy,
        (*notes, *_notes(found), *_notes_of_pairs(pairs)),
    )


@dataclass(frozen=True)
class _Looked:
    """What is known of a column before it is counted against others; no key where it cannot be."""

    column: InspectedColumn
    key: Key | None
    values: Counter[Hashable] | None = None


@dataclass(frozen=True, eq=False)
class _Counter:
    """Counts columns against the private one."""

    tallies: Tallies
    y: list[Key]
    classes: dict[tuple[Hashable, ...], int]
    confidence: float
    entropy: float

    def tables(self, groups: Sequence[Sequence[Key]]) -> list[IntArray]:
        """Records by value (of the keys) and class; missing is a value of its own."""
        counted = _counted(self.tallies, [[*keys, *self.y] for keys in groups])
        return [
            _table(
                ((found[: len(keys)], self.classes[found[len(keys) :]], n) for found, n in counts.items()),
                len(self.classes),
            )
            for keys, counts in zip(groups, counted, strict=True)
        ]

    def measured(self, looked: Sequence[_Looked]) -> list[InspectedColumn]:
        """The columns with what they tell."""
        counted = {one.column.name: one.key for one in looked if one.key is not None}
        tables = dict(zip(counted, self.tables([[key] for key in counted.values()]), strict=True))
        return [
            self._told(one.column, tables[one.column.name])
            if one.column.name in tables
            else self._untold(one.column)
            for one in looked
        ]

    def pairs(
        self, looked: Sequence[tuple[_Looked, _Looked]], alone: dict[str, InspectedColumn]
    ) -> list[InspectedPair]:
        """What two columns tell together, which is no less than one of them does."""
        tables = self.tables([[one.key for one in pair if one.key is not None] for pair in looked])
        found = []
        for (first, second), table in zip(looked, tables, strict=True):
            names = first.column.name, second.column.name
            both = [alone[name] for name in names]
            bits = at_least(told_bits(table, self.confidence), [one.bits for one in both if one.bits])
            rates = [one.guessed for one in both if one.guessed]
            found.append(InspectedPair(names, bits, at_least(guess_rate(table, self.confidence), rates)))
        return found

    def _told(self, column: InspectedColumn, table: IntArray) -> InspectedColumn:
        bits = told_bits(table, self.confidence)
        advice, reason, certain = advice_for(table, bits, self.entropy)
        if column.kind in ("number", *TIMES, "text") and column.rare is not None and column.rare > 0.5:
            advice = "protect" if advice == "keep" else advice
            reason += "; its exact values may point to people"
        guess = guess_rate(table, self.confidence)
        if column.part:
            advice, reason = "drop", f"measured by {column.part} only: its values may name people"
            bits, guess = above(bits, self.entropy), above(guess, 1.0)
        return replace(column, bits=bits, guessed=guess, certain=certain, advice=advice, reason=reason)

    def _untold(self, column: InspectedColumn) -> InspectedColumn:
        if column.kind == "empty":
            return replace(column, advice="keep", reason="all its values are missing")
        why = "its values cannot be counted" if column.kind == "other" else "its values may name people"
        return replace(column, advice="drop", reason=f"not measured: {why}")


def _counted(tallies: Tallies, groups: Sequence[Sequence[Key]]) -> list[Counter[tuple[Hashable, ...]]]:
    return [one for one in tallies.counts(groups) if one is not None]


def _profiled(tallies: Tallies, names: Sequence[str], n: int) -> tuple[dict[str, _Looked], list[str]]:
    """What each column is and how it is counted, and what must be said about some."""
    kinds = {name: _kind(tallies.schema[name]) for name in names}
    values = tallies.values([name for name in names if kinds[name] != "other"])
    unlisted = [name for name, found in values.items() if found is None and _has_size(name, tallies)]
    cuts = tallies.quantiles(unlisted, _shares(N_BINS))
    looked, notes = {}, []
    for name in names:
        found, kind = values.get(name), kinds[name]
        edges: tuple[Any, ...] | None
        if found is None:
            own = kind == "text" or (kind == "whole number" and tallies.seldom_repeats(name))
            column, edges = InspectedColumn(name, kind), _distinct(cuts[name]) if name in cuts else None
        else:
            missing = found.pop(None, 0)
            rare = sum(count for count in found.values() if count < LEAST_RECORDS) / n
            own = _names_people(kind, len(found), rare, n)
            column = InspectedColumn(name, kind if found else "empty", len(found), missing, rare)
            cut = kind in (*NUMBERS, *TIMES) and len(found) > MOST_VALUES
            edges = _edges(found, N_BINS) if cut else None
            if infinite := sum(found[end] for end in (math.inf, -math.inf) if end in found):
                notes.append(f"{name} has {infinite:,} infinite values: they are its largest and smallest.")
        if column.kind in ("empty", "other"):
            looked[name] = _Looked(column, None, found)
        elif kind == "text" and own:
            looked[name] = _first_characters(tallies, column, found)
        elif found is None and edges is None:
            looked[name] = _Looked(column, None, found)
        else:
            if own and edges is None and found is not None:
                edges = _edges(found, N_BINS)
            bins = None if edges is None else len(edges) + 1
            part = f"its size in {bins} bins" if own else ""
            key = Key(name, edges, tallies.schema[name].is_float(), found is None and kind == "date")
            looked[name] = _Looked(replace(column, bins=bins, part=part), key, found)
    return looked, notes


def _has_size(name: str, tallies: Tallies) -> bool:
    """Whether a column can be cut into bins without listing its values; not every engine counts seconds."""
    import narwhals as nw

    dtype = tallies.schema[name]
    return _kind(dtype) in NUMBERS or (isinstance(dtype, nw.Datetime) and not tallies.is_lazy)


def _first_characters(tallies: Tallies, column: InspectedColumn, found: Counter[Hashable] | None) -> _Looked:
    """Texts that nearly nobody shares by as many of their first characters as leave few values, if any do.

    A postcode tells a region so, and a name next to nothing.
    """
    keys = [Key(column.name, n_first=n) for n in (3, 2, 1)]
    for key, counts in zip(keys, tallies.counts([[key] for key in keys], MOST_VALUES), strict=True):
        if counts is not None and len(counts) > 1:
            n = key.n_first
            part = "its first character" if n == 1 else f"its first {n} characters"
            return _Looked(replace(column, part=part), key, found)
    return _Looked(column, None, found)


def _private_key(tallies: Tallies, looked: _Looked, n: int, notes: list[str]) -> Key:
    """How a private column is counted."""
    column, values = looked.column, looked.values
    name, numbers = column.name, column.kind in NUMBERS
    if column.kind in ("empty", "other"):
        what = "has no value at all" if column.kind == "empty" else "holds no single values"
        raise InvalidInputError(f"inspect: the private column {shortened(name)} {what}; name another.")
    if column.n_missing:
        notes.append(f"{column.n_missing:,} records have no {name}: that is a private value of its own here.")
    if values is not None and len(values) <= (MOST_PRIVATE if numbers else MOST_CLASSES):
        if len(values) > n / 2 and n > 2:
            raise _own_values(name, len(values), n)
        return Key(name)
    if values is not None and len(values) > n / 2 and column.kind != "number":
        raise _own_values(name, len(values), n)
    if not numbers:
        many = "too many" if values is None else f"{len(values):,}"
        raise InvalidInputError(
            f"inspect: the private column {shortened(name)} has {many} different values; group them into "
            f"{MOST_CLASSES} at most first."
        )
    shares = _shares(N_CLASSES)
    edges = (
        _distinct(tallies.quantiles([name], shares)[name]) if values is None else _edges(values, N_CLASSES)
    )
    notes.append(f"{name} was cut into {len(edges) + 1} classes of about equal size.")
    return Key(name, edges, tallies.schema[name].is_float())


def _own_values(name: str, n_values: int, n: int) -> InvalidInputError:
    return InvalidInputError(
        f"inspect: {shortened(name)} has {n_values:,} different values in {n:,} records: nearly every record "
        "has its own, and nothing can be counted; name a private column whose values people share."
    )


def _kind(dtype: Any) -> str:
    import narwhals as nw

    if dtype == nw.Boolean:
        return "yes/no"
    if dtype.is_integer():
        return "whole number"
    if dtype.is_float() or dtype.is_decimal():
        return "number"
    if dtype.is_temporal():
        return "time" if dtype == nw.Time else "date"
    if dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        return "text"
    return "other"


def _shares(n_bins: int) -> FloatArray:
    return np.linspace(0, 1, n_bins + 1)[1:-1]


def _edges(values: Counter[Hashable], n_bins: int) -> tuple[Any, ...]:
    """Values at the quantiles, each once and but the largest: a value above an edge is in the next bin."""
    ordered = sorted(values)  # type: ignore[type-var]
    ends = np.cumsum([values[value] for value in ordered])
    at = np.searchsorted(ends, _shares(n_bins) * ends[-1])
    return tuple(ordered[i] for i in dict.fromkeys(at.tolist()) if i < len(ordered) - 1)


def _distinct(edges: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(edges))


def _names_people(kind: str, n_values: int, rare: float, n: int) -> bool:
    """Whether nearly all records have a value that hardly anybody else has, and it tells no size."""
    if kind == "whole number":
        return n_values > max(n / 2, MOST_VALUES)
    return kind == "text" and rare > 0.5 and n_values > n / 2


def _of_each_other(
    tallies: Tallies, looked: Sequence[_Looked], n: int, confidence: float, notes: Sequence[str]
) -> Inspection:
    """Every column with every other."""
    usable = [one for one in looked if one.key is not None and not one.column.part]
    couples = list(combinations(usable, 2))
    counted = _counted(tallies, [[one.key for one in couple if one.key is not None] for couple in couples])
    pairs = []
    for (first, second), counts in zip(couples, counted, strict=True):
        numbers: dict[Hashable, int] = {}
        rows = [((x,), numbers.setdefault(y, len(numbers)), m) for (x, y), m in counts.items()]
        bits = told_bits(_table(rows, len(numbers)), confidence)
        pairs.append(InspectedPair((first.column.name, second.column.name), bits))
    columns = [one.column for one in looked]
    left = [one.column.name for one in looked if one not in usable and one.column.kind != "empty"]
    said = [f"Not measured, as their values may name people: {', '.join(left)}."] if left else []
    ranked = tuple(sorted(pairs, key=lambda one: -one.bits.value))
    return Inspection(n, (), tuple(columns), ranked, notes=(*notes, *said, *_notes(columns)))


def _table(found: Iterable[tuple[tuple[Hashable, ...], int, int]], n_classes: int) -> IntArray:
    """Counts by value and class."""
    cells = list(found)
    rows: dict[tuple[Hashable, ...], int] = {}
    at = [rows.setdefault(value, len(rows)) for value, _, _ in cells]
    table = np.zeros((len(rows), n_classes), dtype=np.intp)
    np.add.at(table, (at, [label for _, label, _ in cells]), [n for _, _, n in cells])
    return table


def _notes(columns: Sequence[InspectedColumn]) -> list[str]:
    """What was done to several columns, in a sentence each."""
    said = []
    if cut := [one.name for one in columns if one.bins is not None and not one.part]:
        said.append(f"Cut into bins, so that finer digits may tell more: {', '.join(cut)}.")
    if empty := [one.name for one in columns if one.kind == "empty"]:
        said.append(f"All values are missing in {', '.join(empty)}.")
    return said


def _notes_of_pairs(pairs: Sequence[InspectedPair]) -> list[str]:
    if not any("lower bound" in (one.bits.kind, one.guessed and one.guessed.kind) for one in pairs):
        return []
    return [
        "Where records are too few to see what two columns tell together, what one of them tells alone "
        "stands for it (≥)."
    ]


def _value(column: InspectedColumn) -> float:
    """What columns are sorted by; one that was not measured or in part, but for being empty, first."""
    if column.bits is not None and not column.part:
        return column.bits.value
    return -1.0 if column.kind == "empty" else math.inf
