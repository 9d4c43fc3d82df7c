"""A mechanism as rows of a table: the parts of a letter, marks of missing ones, the interval, the symbol."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from ..alphabet import column_values
from ..errors import InvalidInputError, shortened
from ..sparse import SparseChannel
from .dialects import Language

if TYPE_CHECKING:
    from ..mechanism import TableMechanism


@dataclass(frozen=True)
class _Kind:
    """What a column of letters or symbols holds: its type, and a value that stands for a missing one."""

    name: str
    fill: Any


_KINDS: dict[frozenset[type], _Kind] = {
    frozenset({int}): _Kind("whole", 0),
    frozenset({float}): _Kind("double", 0.0),
    frozenset({int, float}): _Kind("double", 0.0),
    frozenset({bool}): _Kind("boolean", False),
    frozenset({str}): _Kind("text", ""),
    frozenset({date}): _Kind("date", date(2000, 1, 1)),
    frozenset({datetime}): _Kind("time", datetime(2000, 1, 1)),
    frozenset(): _Kind("text", ""),
}


class MechanismRows:
    """The rows of a mechanism as SQL: letters, whether they are known, lo, hi and symbol."""

    def __init__(
        self, mechanism: TableMechanism, n_columns: int, language: Language, with_unknown: bool
    ) -> None:
        self.language = language
        self.table = mechanism.sparse
        self.marginal = mechanism.require_marginal("to_sql") if with_unknown else None
        self.letters = [_letter_parts(mechanism, label, n_columns) for label in mechanism.x_labels]
        self.kinds = [_kind_of(part, language) for part in zip(*self.letters, strict=True)]
        self.gaps = [None in part for part in zip(*self.letters, strict=True)]
        self.symbols = column_values(mechanism.z_labels)
        self.symbol_kind = _kind_of(self.symbols, language)

    @property
    def names(self) -> list[str]:
        places = range(1, len(self.kinds) + 1)
        marks = [f"missing_{place}" for place, gap in zip(places, self.gaps, strict=True) if gap]
        return [*(f"letter_{place}" for place in places), *marks, "known", "lo", "hi", "symbol"]

    @property
    def types(self) -> list[str]:
        kinds = [*(kind.name for kind in self.kinds), *["boolean"] * (sum(self.gaps) + 1)]
        return [self.language.types[kind] for kind in (*kinds, "double", "double", self.symbol_kind.name)]

    @property
    def indices(self) -> str:
        """The index of a stored mechanism, for databases that join by one."""
        parts = (
            f"letter_{place}" + ("(100)" if kind.name == "text" else "")
            for place, kind in enumerate(self.kinds[:16], start=1)
        )
        return f", INDEX ({', '.join(parts)})" if self.language.indexed else ""

    def read(self, columns: Sequence[str]) -> list[str]:
        """The columns as they are compared: texts and numbers that do not depend on settings."""
        reading = {
            "text": self.language.text,
            "whole": self.language.numeric,
            "double": self.language.numeric,
        }
        return [reading.get(kind.name, str)(column) for column, kind in zip(columns, self.kinds, strict=True)]

    def matches(self, values: Sequence[str], m: str) -> str:
        """That values, as they were read, are the letter of a row of the mechanism.

        By equalities, which engines can hash.
        """
        found, marks = [], [name for name in self.names if name.startswith("missing_")]
        exactly, of_type = self.language.exactly, self.language.of_type
        for place, (value, kind, gap) in enumerate(zip(values, self.kinds, self.gaps, strict=True), start=1):
            letter = f"{m}.letter_{place}"
            if kind.name in ("whole", "double", "boolean") and (fits := of_type(value)):
                found.append(fits)
            if gap:
                found.append(f"({value} IS NULL) = {m}.{marks.pop(0)}")
                value = f"COALESCE({value}, {self.language.literal(kind.fill)})"
            if kind.name == "text":
                value, letter = exactly(value), self.language.letter(letter)
            found.append(f"{value} = {letter}")
        return " AND ".join(found)

    def values(self) -> str:
        """The rows of VALUES; the first one says the types, where there are any."""
        first, *others = self.rows()
        if self.language.typed_values:
            typed = zip(self._cells(next(self._entries())), self.types, strict=True)
            first = f"({', '.join(f'CAST({cell} AS {kind})' for cell, kind in typed)})"
        return ",\n  ".join([first, *others])

    def rows(self) -> Iterator[str]:
        return (f"({', '.join(self._cells(entry))})" for entry in self._entries())

    def _entries(self) -> Iterator[tuple[Any, ...]]:
        """Letter, symbol and interval; symbols of probability 0, or lost in rounding, do not occur."""
        for row, letter in enumerate(self.letters):
            yield from ((letter, *interval) for interval in _intervals(self.table, row))
        if self.marginal is not None:
            p_z = SparseChannel.from_dense(self.marginal[None, :])
            yield from ((None, *interval) for interval in _intervals(p_z, 0))

    def _cells(self, entry: tuple[Any, ...]) -> list[str]:
        letter, low, high, number = entry
        parts = [None] * len(self.kinds) if letter is None else letter
        filled = [kind.fill if part is None else part for part, kind in zip(parts, self.kinds, strict=True)]
        marks = [part is None for part, gap in zip(parts, self.gaps, strict=True) if gap]
        cells = [*filled, *marks, letter is not None, low, high, self.symbols[number]]
        return [self.language.literal(cell) for cell in cells]


def _intervals(table: SparseChannel, row: int) -> Iterator[tuple[float, float, int]]:
    """The numbers [lo, hi) that draw each symbol of a row."""
    part, before = slice(table.indptr[row], table.indptr[row + 1]), 0.0
    for bound, number in zip(table.cumulative[part].tolist(), table.symbols[part].tolist(), strict=True):
        if bound > before:
            yield before, bound, number
            before = bound


def _letter_parts(mechanism: TableMechanism, label: Hashable, n_columns: int) -> tuple[Any, ...]:
    parts = label if mechanism._letters.are_tuples else (label,)
    if not isinstance(parts, tuple) or len(parts) != n_columns:
        raise InvalidInputError(
            f"to_sql: {n_columns} columns were given and a letter of this mechanism is "
            f"{shortened(label)}; name as many columns as a letter has parts."
        )
    return parts


def _kind_of(values: Sequence[Any], language: Language) -> _Kind:
    """The one type of a column's values."""
    for value in values:
        language.literal(value)  # what has none is told by itself
    types = frozenset(type(value) for value in values if value is not None)
    if types not in _KINDS:
        names = ", ".join(sorted(one.__name__ for one in types))
        raise InvalidInputError(
            f"to_sql: the letters of one column are of several types ({names}), and a column of a database "
            "has one; solve on data in which they have one type."
        )
    return _KINDS[types]
