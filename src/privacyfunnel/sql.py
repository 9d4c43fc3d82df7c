"""A table mechanism as SQL: the release of Z inside a database, for SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .alphabet import column_values
from .columns import kept_columns, public_columns
from .errors import InvalidInputError, shortened
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


def select(
    mechanism: TableMechanism,
    table: str | Sequence[str],
    columns: str | Sequence[str] | None = None,
    *,
    dialect: Dialect,
    output: str = "z",
    keep: str | Sequence[str] = (),
    random: str | None = None,
    unknown: Unknown = "error",
    shuffle: bool = False,
) -> str:
    """A SELECT that releases Z for each row of a table.

    The public columns are read and not selected. The random number is drawn once a row, in a
    materialised common table expression: an optimiser that merges a plain subquery would draw it anew
    in every branch of the CASE, which gives wrong probabilities (SQLite does).

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
        database's own random() by default.
    unknown : {"error", "draw", "drop"}
        What a row does whose value is no letter: stop the query, get a symbol drawn from P(Z), or not come
        out.
    shuffle : bool
        Whether the rows come out in random order, by the database's own random(). Without it a database may
        hand them out as they were stored, which tells what they were sorted by.

    Notes
    -----
    Store the result (CREATE TABLE … AS). A view would draw again at each query, and repeated
    releases of the same row tell more than one. The random() of DuckDB and PostgreSQL is not
    cryptographic: somebody who can reconstruct its state can undo the release. Where that matters pass
    an expression of your own, or use `TableMechanism.release`.
    """
    _check_dialect(dialect)
    check_unknown(unknown, "to_sql")
    public = public_columns(mechanism, columns)
    keep = kept_columns(keep, None, public, mechanism.private_names, "to_sql")
    if output in keep or len(set(keep)) < len(keep):
        raise InvalidInputError("to_sql: output and the names in keep must differ from each other.")
    parts = (table,) if isinstance(table, str) else tuple(table)
    taken = {name.lower() for name in (*public, *keep, *parts, output)}
    u, drawn, source = (_unused(name, taken) for name in ("random_number", "drawn", "source"))
    quoted = {name: _identifier(name, dialect) for name in (*public, *keep, *parts, output)}
    read = ", ".join(f"{source}.{quoted[name]}" for name in dict.fromkeys([*keep, *public]))
    handed = "".join(f"{drawn}.{quoted[name]}, " for name in keep)
    letters = [f"{drawn}.{quoted[name]}" for name in public]
    case = _case(mechanism, letters, f"{drawn}.{u}", dialect, unknown)
    # Not by u: how large it was tells which symbol it can have drawn from which letter.
    last = f"\nORDER BY {_RANDOM[dialect]}" if shuffle else ""
    if unknown == "drop":
        known = " ".join(f"WHEN {match} THEN TRUE" for match in _matches(mechanism, letters, dialect))
        last = f"\nWHERE CASE {known} ELSE FALSE END{last}"
    return (
        f"WITH {drawn} AS MATERIALIZED (\n"
        f"  SELECT {read}, {random or _RANDOM[dialect]} AS {u}\n"
        f"  FROM {'.'.join(quoted[name] for name in parts)} AS {source}\n"
        f")\n"
        f"SELECT {handed}{case} AS {quoted[output]}\n"
        f"FROM {drawn}{last}"
    )


def case_expression(
    mechanism: TableMechanism,
    u: str = "u",
    columns: str | Sequence[str] | None = None,
    *,
    dialect: Dialect,
    unknown: Literal["error", "draw"] = "error",
) -> str:
    """A CASE expression that turns a letter and a random number into a symbol.

    It draws the same symbol as `TableMechanism.release` does for the same random number.

    Parameters
    ----------
    u : str
        Name of a stored column with a number uniform on [0, 1), drawn once a row. A column of a
        subquery will not do unless it is materialised; `select` takes care of that.
    columns, dialect, unknown
        As for `select`, but a CASE cannot leave a row out. A number outside [0, 1), or none, stops the query.
    """
    _check_dialect(dialect)
    if unknown not in ("error", "draw"):
        raise InvalidInputError(
            f"to_sql_case: unknown must be 'error' or 'draw'; it is {unknown!r}.", names=("unknown",)
        )
    public = [_identifier(name, dialect) for name in public_columns(mechanism, columns)]
    return _case(mechanism, public, _identifier(u, dialect), dialect, unknown)


def _check_dialect(dialect: str) -> None:
    if dialect not in _RANDOM:
        raise InvalidInputError(f"to_sql: dialect must be one of {', '.join(_RANDOM)}; it is {dialect!r}.")


def _case(mechanism: TableMechanism, columns: Sequence[str], u: str, dialect: Dialect, unknown: str) -> str:
    symbols = column_values(mechanism.z_labels)
    bad = _raise("release: random number outside [0, 1): ", [u], dialect)
    lines = [f"WHEN CASE WHEN {u} >= 0 AND {u} < 1 THEN FALSE ELSE {bad} END THEN NULL"]
    table = mechanism.sparse
    for row, match in enumerate(_matches(mechanism, columns, dialect)):
        lines.append(f"WHEN {match} THEN {_symbol(table, row, symbols, u, dialect)}")
    other = "NULL"
    if unknown == "draw":
        marginal = SparseChannel.from_dense(mechanism.require_marginal("to_sql")[None, :])
        other = _symbol(marginal, 0, symbols, u, dialect)
    elif unknown == "error":
        # As a condition, not as a value: it needs no type in common with the symbols.
        lines.append(f"WHEN {_raise('release: unknown letter: ', columns, dialect)} THEN NULL")
    return "CASE\n  " + "\n  ".join(lines) + f"\n  ELSE {other}\nEND"


def _matches(mechanism: TableMechanism, columns: Sequence[str], dialect: Dialect) -> Iterator[str]:
    """For each letter the condition that the columns hold it."""
    for label in mechanism.x_labels:
        parts = label if mechanism._letters.are_tuples else (label,)
        if not isinstance(parts, tuple) or len(parts) != len(columns):
            raise InvalidInputError(
                f"to_sql: {len(columns)} columns were given and a letter of this mechanism is "
                f"{shortened(label)}; name as many columns as a letter has parts."
            )
        yield " AND ".join(map(_equals, columns, parts, [dialect] * len(parts)))


def _symbol(table: SparseChannel, row: int, symbols: Sequence[Any], u: str, dialect: Dialect) -> str:
    """The symbol that u draws from one row; impossible ones do not occur."""
    steps, before = [], 0.0
    part = slice(table.indptr[row], table.indptr[row + 1])
    for bound, number in zip(table.cumulative[part].tolist(), table.symbols[part].tolist(), strict=True):
        if bound > before:
            steps.append((bound, _literal(symbols[number], dialect)))
            before = bound
    if len(steps) == 1:
        return steps[0][1]
    tests = " ".join(f"WHEN {u} < {_number(bound)} THEN {symbol}" for bound, symbol in steps[:-1])
    return f"CASE {tests} ELSE {steps[-1][1]} END"


def _raise(message: str, values: Sequence[str], dialect: Dialect) -> str:
    """A condition whose evaluation stops the query with the message and the values.

    It depends on the row, so that no optimiser evaluates it beforehand.
    """
    shown = " || ', ' || ".join(f"COALESCE(CAST({value} AS VARCHAR), 'NULL')" for value in values)
    text = f"'{message}' || {shown}"
    if dialect == "duckdb":
        return f"error({text}) IS NULL"
    if dialect == "sqlite":  # a JSON path must start with $; the error quotes what it got
        return f"json_extract('{{}}', {text}) IS NULL"
    return f"CAST({text} AS INTEGER) IS NULL"


def _equals(column: str, value: Any, dialect: Dialect) -> str:
    if value is None:
        return f"{column} IS NULL"
    # A column declared NOCASE would take 'a' for 'A', which may be another letter.
    exactly = " COLLATE BINARY" if dialect == "sqlite" and isinstance(value, str) else ""
    return f"{column} = {_literal(value, dialect)}{exactly}"


def _literal(value: Any, dialect: Dialect) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int) and -(2**63) < value < 2**63:
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return _number(value)
    if isinstance(value, str) and "\0" not in value:
        quoted = value.replace("'", "''")
        # Whether a plain PostgreSQL text reads a backslash as itself depends on a setting.
        if dialect == "postgres" and "\\" in value:
            return "E'" + quoted.replace("\\", "\\\\") + "'"
        return f"'{quoted}'"
    raise InvalidInputError(
        f"to_sql: the label {shortened(value)} has no SQL literal; use labels that are texts, finite "
        "numbers, booleans or None (relabel renames the symbols)."
    )


def _number(value: float) -> str:
    """The float as a literal that every dialect reads as double precision, not as a decimal."""
    text = repr(value)
    return text if "e" in text else text + "e0"


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
