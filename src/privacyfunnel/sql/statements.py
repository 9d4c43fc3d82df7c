"""Statements: the release of a table, the mechanism in a table, and where the key goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..columns import kept_columns, public_columns
from ..errors import InvalidInputError
from ..keys import hmac_pads, keyed_uniform, require_person
from ..unknown import Unknown, check_unknown
from .dialects import SQLITE_FUNCTION, Dialect, Language, language
from .rows import MechanismRows

if TYPE_CHECKING:
    from ..mechanism import TableMechanism

# Rows of one INSERT; from how many people on it is no chance that all have the same number; bytes of a pad.
_ROWS, _MANY, _PAD = 1000, 10, 64


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

    The public columns are read and not selected. The random number is drawn once a row, in a common table
    expression that is materialised: an optimiser that merges a plain subquery would draw it anew in every
    comparison, which gives wrong probabilities (SQLite does).

    Parameters
    ----------
    table : str or (schema, table)
        Quoted as identifiers.
    columns : column names, optional
        The public columns; `x_names` by default.
    dialect : {"sqlite", "duckdb", "postgres", "mariadb", "spark"}
        SQLite 3.35, PostgreSQL 12, MariaDB 10.11, Spark 4 or newer.
    output : str
        Name of the column of symbols.
    keep : column name or names
        Other columns to hand out beside the symbol, such as a key; neither public nor private ones.
    random : str, optional
        An SQL expression, used as it is, for a number that is uniform on [0, 1) and new for each row; the
        database's own by default. One that gives ten rows or more the same number stops the query.
    id : column name, optional
        One stable draw for each person, by the key in `key_table`, instead of random numbers: the symbols
        that `TableMechanism.release` draws with the key. A column of texts, whole numbers, dates or UUIDs;
        others, and a row without an id, stop the query. See docs/keys.md.
    unknown : {"error", "draw", "drop"}
        What a row does whose value is no letter: stop the query, get a symbol drawn from P(Z), or not come
        out.
    shuffle : bool
        Whether the rows come out in random order, by the database's own random(). Without it a database may
        hand them out as they were stored, which tells what they were sorted by.
    mechanism_table : str or (schema, table), optional
        Where `create_table` put the mechanism; without it the statement holds all of it.
    key_table : str or (schema, table)
        A temporary table (`key_table_statement`) with one row, `inner_pad` and `outer_pad`, which
        `keys.hmac_pads` makes of the key; for SQLite there is none, and `register_key` teaches it the key.

    Notes
    -----
    Store the result (CREATE TABLE … AS). A view would draw again at each query, and repeated
    releases of the same row tell more than one. The random() of DuckDB, PostgreSQL and Spark is not
    cryptographic: somebody who can reconstruct its state can undo the release. Where that matters draw by a
    key, pass an expression of your own, or use `TableMechanism.release`.
    """
    speak = language(dialect)
    check_unknown(unknown, "to_sql")
    if random is not None and id is not None:
        raise InvalidInputError("to_sql: random and id both say where numbers come from; leave one out.")
    public = public_columns(mechanism, columns)
    require_person(id, (*public, *mechanism.private_names), "to_sql")
    keep = kept_columns(keep, None, public, mechanism.private_names, "to_sql")
    if output in keep or len(set(keep)) < len(keep):
        raise InvalidInputError("to_sql: output and the names in keep must differ from each other.")
    rows = MechanismRows(mechanism, len(public), speak, unknown == "draw")
    stored = quoted_name(mechanism_table or "mechanism", dialect)
    taken = {
        name.lower() for name in (*public, *keep, *_parts(table), *_parts(mechanism_table or ()), output)
    }
    u, drawn, source, m, other, secret, letter = (
        _unused(name, taken)
        for name in ("random_number", "drawn", "source", "mechanism", "other", "secret", "letter")
    )
    columns_of = [f"{source}.{speak.identifier(name)}" for name in public]
    letters = [_unused(f"{letter}_{place}", taken) for place in range(1, len(public) + 1)]
    read = [f"{source}.{speak.identifier(name)}" for name in keep]
    read += [f"{value} AS {name}" for value, name in zip(rows.read(columns_of), letters, strict=True)]
    origin = f"{quoted_name(table, dialect)} AS {source}"
    number = speak.random if random is None else f"CAST({random} AS {speak.types['double']})"
    if id is not None:
        number = _keyed_number(id, table, f"{source}.{speak.identifier(id)}", secret, mechanism, speak)
        # An empty table of keys must not release an empty table.
        if dialect != "sqlite":
            origin += f" LEFT JOIN {quoted_name(key_table, dialect)} AS {secret} ON 1 = 1"
    steps = [
        f"{drawn} {speak.materialised} (\n  SELECT {', '.join([*read, number])} AS {u}\n"
        f"  FROM {origin}{speak.end}\n)",
    ]
    if mechanism_table is None:
        stored = m
        steps.insert(0, f"{m} ({', '.join(rows.names)}) AS (VALUES\n  {rows.values()}\n)")
    values, number = [f"{drawn}.{name}" for name in letters], f"{drawn}.{u}"
    within = f"{number} >= {m}.lo AND {number} < {m}.hi"
    joined = [f"LEFT JOIN {stored} AS {m} ON {rows.matches(values, m)} AND {m}.known AND {within}"]
    symbol, more = f"{m}.symbol", ""
    if unknown == "draw":
        drawing = within.replace(f"{m}.", f"{other}.")
        joined.append(f"LEFT JOIN {stored} AS {other} ON {m}.lo IS NULL AND NOT {other}.known AND {drawing}")
        symbol = f"CASE WHEN {m}.lo IS NULL THEN {other}.symbol ELSE {m}.symbol END"
    usable = f"COALESCE({number} >= 0 AND {number} < 1, FALSE)"
    wrong = [(f"NOT {usable}", "release: random number outside [0, 1): ", [number])]
    if id is not None and dialect != "sqlite":
        # Two keys would release everybody twice, and a key in place of its pads draws other numbers.
        where = quoted_name(key_table, dialect)
        sizes = " AND ".join(f"min(octet_length({pad})) = {_PAD}" for pad in ("inner_pad", "outer_pad"))
        one_key = f"(SELECT COALESCE(count(*) = 1 AND {sizes}, FALSE) FROM {where})"
        n_keys = f"(SELECT count(*) FROM {where})"
        wrong.insert(
            0, (f"NOT {one_key}", "release: one key is needed, as two pads; rows of the key: ", [n_keys])
        )
    if id is None:
        same = f"(SELECT count(*) >= {_MANY} AND min({u}) = max({u}) FROM {drawn})"
        wrong.append((same, "release: every row has the random number ", [number]))
    if unknown == "error":
        wrong.append((f"{m}.lo IS NULL", "release: unknown letter: ", values))
    if unknown == "drop":
        more = f"\nWHERE {m}.lo IS NOT NULL OR NOT {usable}"
    # Not by u: how large it was tells which symbol it can have drawn from which letter.
    more += f"\nORDER BY {speak.shuffling}" if shuffle else ""
    handed = "".join(f"{drawn}.{speak.identifier(name)}, " for name in keep)
    return (
        f"WITH {', '.join(steps)}\n"
        f"SELECT {handed}{_unless(wrong, symbol, speak)} AS {speak.identifier(output)}\n"
        f"FROM {drawn}\n" + "\n".join(joined) + more
    )


def _unless(wrong: Sequence[tuple[str, str, Sequence[str]]], value: str, speak: Language) -> str:
    """A value that is reached if none of the conditions stops the query with its message and values.

    Errors are conditions, not values: they need no type in common with it.
    """
    cases = " ".join(f"WHEN {case} THEN {speak.raising(told, of)}" for case, told, of in wrong)
    return f"CASE WHEN CASE {cases} ELSE FALSE END THEN NULL ELSE {value} END"


def _keyed_number(
    column: str,
    table: str | Sequence[str],
    person: str,
    secret: str,
    mechanism: TableMechanism,
    speak: Language,
) -> str:
    """The number of a person, if the column of ids is one."""
    unfit, kind = speak.wrong_type(person, _parts(table), column)
    wrong = [
        (unfit, "release: ids must be text, whole numbers or dates, not ", [kind]),
        (f"{person} IS NULL", "release: a row without an id: ", [person]),
    ]
    return _unless(wrong, speak.keyed(person, secret, mechanism.fingerprint), speak)


def create_table(
    mechanism: TableMechanism, name: str | Sequence[str] = "mechanism", *, dialect: Dialect
) -> list[str]:
    """Statements that put the mechanism into a new table, for `select(mechanism_table=…)`.

    A row is a letter (its columns, and for a missing value a mark), a symbol, and the numbers from `lo` up to
    but not with `hi` that draw it. Rows that are not `known` are P(Z), for letters that the mechanism does
    not know; a mechanism without P(Z) has none.
    """
    written = MechanismRows(mechanism, mechanism.n_parts, language(dialect), mechanism.marginal is not None)
    table = quoted_name(name, dialect)
    declared = ", ".join(f"{one} {kind}" for one, kind in zip(written.names, written.types, strict=True))
    rows = list(written.rows())
    return [
        f"CREATE TABLE {table} ({declared}{written.indices})",
        *(
            f"INSERT INTO {table} VALUES\n  " + ",\n  ".join(rows[begin : begin + _ROWS])
            for begin in range(0, len(rows), _ROWS)
        ),
    ]


def key_table_statement(dialect: Dialect, name: str = "release_key") -> str | None:
    """The statement that makes the temporary table of the key, to be filled with `keys.hmac_pads`.

    None for SQLite, which `register_key` teaches the key, and for Spark, where it is a temporary view of a
    frame with the columns inner_pad and outer_pad.
    """
    kind = language(dialect).types["bytes"]
    if dialect in ("sqlite", "spark"):
        return None
    return f"CREATE TEMPORARY TABLE {quoted_name(name, dialect)} (inner_pad {kind}, outer_pad {kind})"


def register_key(connection: Any, key: bytes) -> None:
    """Teach a connection of `sqlite3` the numbers of a key, for `select(dialect="sqlite", id=…)`."""
    hmac_pads(key)

    def number(fingerprint: str, person: str | int | None) -> float | None:
        return None if person is None else float(keyed_uniform([person], key, fingerprint)[0])

    connection.create_function(SQLITE_FUNCTION, 2, number, deterministic=True)


def _parts(name: str | Sequence[str]) -> tuple[str, ...]:
    return (name,) if isinstance(name, str) else tuple(name)


def quoted_name(name: str | Sequence[str], dialect: Dialect) -> str:
    """A column, a table, or (schema, table), in the marks of the dialect."""
    speak = language(dialect)
    return ".".join(speak.identifier(part) for part in _parts(name))


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
