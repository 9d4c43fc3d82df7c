"""A table mechanism as SQL: the release of Z inside a database, for SQLite, DuckDB and PostgreSQL.

A row draws one number u, in a materialised step, and is then joined with the mechanism: a table of letters,
symbols and the interval [lo, hi) of numbers that draws each. A row's work does not grow with the letters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

from .alphabet import column_values
from .columns import kept_columns, public_columns
from .errors import InvalidInputError, shortened
from .keys import hmac_pads, keyed_uniform
from .sparse import SparseChannel
from .unknown import Unknown, check_unknown

if TYPE_CHECKING:
    from .mechanism import TableMechanism

Dialect = Literal["sqlite", "duckdb", "postgres"]

# SQLite's random() is a 64-bit integer; its lowest 53 bits are a number of [0, 1) without rounding, and
# without abs(), which fails for the most negative one.
_RANDOM = {
    "sqlite": "(random() & 9007199254740991) / 9007199254740992.0",
    "duckdb": "random()",
    "postgres": "random()",
}
# A letter is what the mechanism says it is, whatever a column's own rules take for equal.
_EXACTLY = {"sqlite": " COLLATE BINARY", "duckdb": "", "postgres": ' COLLATE "C"'}
_TEXT = {"sqlite": "TEXT", "duckdb": "VARCHAR", "postgres": "TEXT"}
_BLOB = {"sqlite": "BLOB", "duckdb": "BLOB", "postgres": "BYTEA"}
#: What SQLite, which has no SHA-256, calls for keyed numbers; see `register_key`.
SQLITE_FUNCTION = "privacyfunnel_number"
# Rows of one INSERT, and from how many people on it is no chance that all have the same number.
_ROWS, _MANY = 1000, 10


@dataclass(frozen=True)
class _Kind:
    """What a column of letters or symbols holds: its type, and a value that stands for a missing one."""

    name: str
    fill: Any


_KINDS: dict[frozenset[type], _Kind] = {
    frozenset({int}): _Kind("BIGINT", 0),
    frozenset({float}): _Kind("DOUBLE PRECISION", 0.0),
    frozenset({int, float}): _Kind("DOUBLE PRECISION", 0.0),
    frozenset({bool}): _Kind("BOOLEAN", False),
    frozenset({str}): _Kind("TEXT", ""),
    frozenset({date}): _Kind("DATE", date(2000, 1, 1)),
    frozenset({datetime}): _Kind("TIMESTAMP", datetime(2000, 1, 1)),
    frozenset(): _Kind("TEXT", ""),
}


def select(
    mechanism: TableMechanism,
    table: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    *,
    dialect: Dialect,
    output: str = "z",
    keep: str | Sequence[str] = (),
    random: str | None = None,
    id: str | None = None,
    unknown: Unknown = "error",
    shuffle: bool = False,
    mechanism_table: str | Sequence[str] | None = None,
    key_table: str | Sequence[str] = "release_key",
) -> str:
    """A SELECT that releases Z for each row of a table.

    The public columns are read and not selected. The random number is drawn once a row, in a materialised
    common table expression: an optimiser that merges a plain subquery would draw it anew in every comparison,
    which gives wrong probabilities (SQLite does).

    Parameters
    ----------
    table : str or (schema, table)
        Quoted as identifiers.
    columns : column names, optional
        The public columns; `x_names` by default.
    dialect : {"sqlite", "duckdb", "postgres"}
        SQLite 3.35 or newer, PostgreSQL 12 or newer.
    output : str
        Name of the column of symbols.
    keep : column name or names
        Other columns to hand out beside the symbol, such as a key; neither public nor private ones.
    random : str, optional
        An SQL expression, used as it is, for a number that is uniform on [0, 1) and new for each row; the
        database's own random() by default. One that gives many rows the same number stops the query.
    id : column name, optional
        One stable draw for each person, by the key in `key_table`, instead of random numbers: the symbols
        that `TableMechanism.release` draws with the key. See docs/keys.md.
    unknown : {"error", "draw", "drop"}
        What a row does whose value is no letter: stop the query, get a symbol drawn from P(Z), or not come
        out.
    shuffle : bool
        Whether the rows come out in random order, by the database's own random(). Without it a database may
        hand them out as they were stored, which tells what they were sorted by.
    mechanism_table : str or (schema, table), optional
        Where `create_table` put the mechanism; without it the statement holds all of it.
    key_table : str or (schema, table)
        A temporary table with one row, `inner_pad` and `outer_pad`, which `keys.hmac_pads` makes of the key;
        for SQLite there is none, and `register_key` teaches it the key.

    Notes
    -----
    Store the result (CREATE TABLE … AS). A view would draw again at each query, and repeated
    releases of the same row tell more than one. The random() of DuckDB and PostgreSQL is not
    cryptographic: somebody who can reconstruct its state can undo the release. Where that matters draw by a
    key, pass an expression of your own, or use `TableMechanism.release`.
    """
    _check_dialect(dialect)
    check_unknown(unknown, "to_sql")
    if random is not None and id is not None:
        raise InvalidInputError("to_sql: random and id both say where numbers come from; leave one out.")
    public = public_columns(mechanism, columns)
    keep = kept_columns(keep, None, public, mechanism.private_names, "to_sql")
    if output in keep or len(set(keep)) < len(keep):
        raise InvalidInputError("to_sql: output and the names in keep must differ from each other.")
    written = _Written(mechanism, len(public), dialect, unknown == "draw")
    people, stored = (quoted_name(one, dialect) for one in (table, mechanism_table or "mechanism"))
    taken = {
        name.lower() for name in (*public, *keep, *_parts(table), *_parts(mechanism_table or ()), output)
    }
    u, drawn, source, m, other, secret = (
        _unused(name, taken) for name in ("random_number", "drawn", "source", "mechanism", "other", "secret")
    )
    read = [f"{source}.{_identifier(name, dialect)}" for name in dict.fromkeys([*keep, *public])]
    number = _RANDOM[dialect] if random is None else f"CAST({random} AS DOUBLE PRECISION)"
    origin = f"{people} AS {source}"
    if id is not None:
        number = _keyed(f"{source}.{_identifier(id, dialect)}", secret, mechanism.fingerprint, dialect)
        origin += "" if dialect == "sqlite" else f" CROSS JOIN {quoted_name(key_table, dialect)} AS {secret}"
    steps = [
        f"{drawn} AS MATERIALIZED (\n  SELECT {', '.join([*read, number])} AS {u}\n  FROM {origin}\n)",
    ]
    if mechanism_table is None:
        stored = m
        steps.insert(0, f"{m} ({', '.join(written.names)}) AS (VALUES\n  {written.values()}\n)")
    letters = [f"{drawn}.{_identifier(name, dialect)}" for name in public]
    number = f"{drawn}.{u}"
    within = f"{number} >= {m}.lo AND {number} < {m}.hi"
    joined = [f"LEFT JOIN {stored} AS {m} ON {written.matches(letters, m)} AND {m}.known AND {within}"]
    symbol, more = f"{m}.symbol", ""
    if unknown == "draw":
        drawing = within.replace(f"{m}.", f"{other}.")
        joined.append(f"LEFT JOIN {stored} AS {other} ON {m}.lo IS NULL AND NOT {other}.known AND {drawing}")
        symbol = f"CASE WHEN {m}.lo IS NULL THEN {other}.symbol ELSE {m}.symbol END"
    # Errors are conditions, not values: they need no type in common with the symbols.
    usable = f"COALESCE({number} >= 0 AND {number} < 1, FALSE)"
    wrong = [f"WHEN NOT {usable} THEN {_raise('release: random number outside [0, 1): ', [number], dialect)}"]
    if id is not None and dialect != "sqlite":
        # Two keys would release everybody twice.
        n_keys = f"(SELECT count(*) FROM {quoted_name(key_table, dialect)})"
        wrong.append(f"WHEN {n_keys} > 1 THEN {_raise('release: more than one key: ', [n_keys], dialect)}")
    if random is not None:
        same = f"(SELECT count(*) >= {_MANY} AND min({u}) = max({u}) FROM {drawn})"
        wrong.append(
            f"WHEN {same} THEN {_raise('release: every row has the random number ', [number], dialect)}"
        )
    if unknown == "error":
        wrong.append(f"WHEN {m}.lo IS NULL THEN {_raise('release: unknown letter: ', letters, dialect)}")
    if unknown == "drop":
        more = f"\nWHERE {m}.lo IS NOT NULL OR NOT {usable}"
    # Not by u: how large it was tells which symbol it can have drawn from which letter.
    more += f"\nORDER BY {_RANDOM[dialect]}" if shuffle else ""
    handed = "".join(f"{drawn}.{_identifier(name, dialect)}, " for name in keep)
    value = f"CASE WHEN CASE {' '.join(wrong)} ELSE FALSE END THEN NULL ELSE {symbol} END"
    return (
        f"WITH {', '.join(steps)}\n"
        f"SELECT {handed}{value} AS {_identifier(output, dialect)}\n"
        f"FROM {drawn}\n" + "\n".join(joined) + more
    )


def create_table(
    mechanism: TableMechanism, name: str | Sequence[str] = "mechanism", *, dialect: Dialect
) -> list[str]:
    """Statements that put the mechanism into a new table, for `select(mechanism_table=…)`.

    A row is a letter (its columns, and for a missing value a mark), a symbol, and the numbers from `lo` up to
    but not with `hi` that draw it. Rows that are not `known` are P(Z), for letters that the mechanism does
    not know; a mechanism without P(Z) has none.
    """
    _check_dialect(dialect)
    written = _Written(mechanism, mechanism.n_parts, dialect, mechanism.marginal is not None)
    table = quoted_name(name, dialect)
    declared = ", ".join(f"{one} {kind}" for one, kind in zip(written.names, written.types, strict=True))
    rows = list(written.rows())
    return [
        f"CREATE TABLE {table} ({declared})",
        *(
            f"INSERT INTO {table} VALUES\n  " + ",\n  ".join(rows[begin : begin + _ROWS])
            for begin in range(0, len(rows), _ROWS)
        ),
    ]


def register_key(connection: Any, key: bytes) -> None:
    """Teach a connection of `sqlite3` the numbers of a key, for `select(dialect="sqlite", id=…)`."""
    hmac_pads(key)

    def number(fingerprint: str, person: str | None) -> float | None:
        return None if person is None else float(keyed_uniform([person], key, fingerprint)[0])

    connection.create_function(SQLITE_FUNCTION, 2, number, deterministic=True)


class _Written:
    """The rows of a mechanism as SQL: letters, whether they are known, lo, hi and symbol."""

    def __init__(
        self, mechanism: TableMechanism, n_columns: int, dialect: Dialect, with_unknown: bool
    ) -> None:
        self.dialect = dialect
        self.table = mechanism.sparse
        self.marginal = mechanism.require_marginal("to_sql") if with_unknown else None
        self.letters = [_letter_parts(mechanism, label, n_columns) for label in mechanism.x_labels]
        self.kinds = [_kind_of(part, dialect) for part in zip(*self.letters, strict=True)]
        self.gaps = [None in part for part in zip(*self.letters, strict=True)]
        self.symbols = column_values(mechanism.z_labels)
        self.symbol_kind = _kind_of(self.symbols, dialect)

    @property
    def names(self) -> list[str]:
        places = range(1, len(self.kinds) + 1)
        marks = [f"missing_{place}" for place, gap in zip(places, self.gaps, strict=True) if gap]
        return [*(f"letter_{place}" for place in places), *marks, "known", "lo", "hi", "symbol"]

    @property
    def types(self) -> list[str]:
        text = _TEXT[self.dialect]
        kinds = [kind.name.replace("TEXT", text) for kind in self.kinds]
        symbol = self.symbol_kind.name.replace("TEXT", text)
        return [*kinds, *["BOOLEAN"] * sum(self.gaps), "BOOLEAN", *["DOUBLE PRECISION"] * 2, symbol]

    def matches(self, columns: Sequence[str], m: str) -> str:
        """That columns hold the letter of a row of the mechanism, by equalities, which engines can hash."""
        found, marks = [], [name for name in self.names if name.startswith("missing_")]
        for place, (column, kind, gap) in enumerate(
            zip(columns, self.kinds, self.gaps, strict=True), start=1
        ):
            value, exactly = column, ""
            if kind.name == "TEXT":
                value, exactly = f"CAST({column} AS {_TEXT[self.dialect]})", _EXACTLY[self.dialect]
            if gap:
                value = f"COALESCE({value}, {_literal(kind.fill, self.dialect)})"
                found.append(f"({column} IS NULL) = {m}.{marks.pop(0)}")
            found.append(f"{value}{exactly} = {m}.letter_{place}")
        return " AND ".join(found)

    def values(self) -> str:
        """The rows of VALUES; the first one says the types, but in SQLite, which has none."""
        first, *others = self.rows()
        if self.dialect != "sqlite":
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
        return [_literal(cell, self.dialect) for cell in cells]


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


def _kind_of(values: Sequence[Any], dialect: Dialect) -> _Kind:
    """The one type of a column's values."""
    for value in values:
        _literal(value, dialect)  # what has none is told by itself
    types = frozenset(type(value) for value in values if value is not None)
    if types not in _KINDS:
        names = ", ".join(sorted(one.__name__ for one in types))
        raise InvalidInputError(
            f"to_sql: the letters of one column are of several types ({names}), and a column of a database "
            "has one; solve on data in which they have one type."
        )
    return _KINDS[types]


def _keyed(person: str, secret: str, fingerprint: str, dialect: Dialect) -> str:
    """The number of a person: 53 of the first 56 bits of HMAC-SHA-256, see `keys`."""
    text = f"CAST({person} AS {_TEXT[dialect]})"
    if dialect == "sqlite":
        return f"{SQLITE_FUNCTION}('{fingerprint}', {text})"
    if dialect == "duckdb":
        inner = f"unhex(sha256({secret}.inner_pad || encode('{fingerprint}' || {text})))"
        bits = f"CAST('0x' || substr(sha256({secret}.outer_pad || {inner}), 1, 14) AS BIGINT)"
    else:
        inner = f"sha256({secret}.inner_pad || convert_to('{fingerprint}' || {text}, 'UTF8'))"
        digest = f"encode(sha256({secret}.outer_pad || {inner}), 'hex')"
        bits = f"CAST(CAST('x' || substr({digest}, 1, 14) AS bit(56)) AS BIGINT)"
    return f"CAST({bits} >> 3 AS DOUBLE PRECISION) / 9007199254740992e0"


def _raise(message: str, values: Sequence[str], dialect: Dialect) -> str:
    """A condition whose evaluation stops the query with the message and the values.

    It depends on the row, so that no optimiser evaluates it beforehand.
    """
    shown = " || ', ' || ".join(f"COALESCE(CAST({value} AS {_TEXT[dialect]}), 'NULL')" for value in values)
    text = f"'{message}' || {shown}"
    if dialect == "duckdb":
        return f"error({text}) IS NULL"
    if dialect == "sqlite":  # a JSON path must start with $; the error quotes what it got
        return f"json_extract('{{}}', {text}) IS NULL"
    return f"CAST({text} AS INTEGER) IS NULL"


def _literal(value: Any, dialect: Dialect) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and -(2**63) < value < 2**63:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return _number(value)
    if type(value) is date or (type(value) is datetime and value.tzinfo is None):
        word = "" if dialect == "sqlite" else "DATE " if type(value) is date else "TIMESTAMP "
        return f"{word}'{value}'"
    if isinstance(value, str) and "\0" not in value:
        quoted = value.replace("'", "''")
        # Whether a plain PostgreSQL text reads a backslash as itself depends on a setting.
        if dialect == "postgres" and "\\" in value:
            return "E'" + quoted.replace("\\", "\\\\") + "'"
        return f"'{quoted}'"
    raise InvalidInputError(
        f"to_sql: the label {shortened(value)} has no SQL literal; use labels that are texts, finite "
        "numbers, booleans, dates or None (relabel renames the symbols)."
    )


def _number(value: float) -> str:
    """The float as a literal that reads as double precision; PostgreSQL reads a decimal, cast by VALUES."""
    text = repr(value)
    return text if "e" in text else text + "e0"


def _check_dialect(dialect: str) -> None:
    if dialect not in _RANDOM:
        raise InvalidInputError(
            f"to_sql: dialect must be one of {', '.join(_RANDOM)}; it is {dialect!r}.", names=("dialect",)
        )


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


def quoted_name(name: str | Sequence[str], dialect: Dialect) -> str:
    """A column, a table, or (schema, table), in the marks of the dialect."""
    return ".".join(_identifier(part, dialect) for part in _parts(name))


def _identifier(name: str, dialect: Dialect) -> str:
    if not name or "\0" in name:
        raise InvalidInputError(f"to_sql: {shortened(name)} is not a name of a table or column.")
    # SQLite reads "name" as a text where there is no such column, and `name` never.
    mark = "`" if dialect == "sqlite" else '"'
    return mark + name.replace(mark, mark + mark) + mark


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
