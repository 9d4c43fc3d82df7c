"""All statements of a release in a database, in order: what `pfunnel sql` prints and the app writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .dialects import Dialect
from .statements import key_table_statement, quoted_name

if TYPE_CHECKING:
    from ..mechanism import TableMechanism

_FILLING = "-- Fill it with privacyfunnel.keys.hmac_pads(key), never as text: {how}."
_KEY = {
    "sqlite": "-- SQLite has no SHA-256: before this, in Python, sql.register_key(connection, key).",
    "duckdb": _FILLING.format(how="by bind parameters"),
    "postgres": _FILLING.format(how="by COPY, which no log of statements and parameters holds"),
    "mariadb": _FILLING.format(how="by bind parameters, with the general log off, which holds them"),
    "spark": "-- Before this, in Python, a temporary view of the key, with pads = keys.hmac_pads(key):\n"
    '-- spark.createDataFrame([pads], "inner_pad BINARY, outer_pad BINARY")'
    '.createOrReplaceTempView("release_key")',
}


def release_script(
    mechanism: TableMechanism,
    table: Sequence[str],
    columns: Sequence[str] | None = None,
    *,
    dialect: Dialect,
    released: Sequence[str] = ("released",),
    output: str = "z",
    id: str | None = None,
    **how: Any,
) -> tuple[str, list[str]]:
    """A comment for the head, and the statements: the mechanism as a table, the key, the release, a check.

    Parameters
    ----------
    table, columns, dialect, output, id, **how
        As for `TableMechanism.to_sql`; rows come in random order.
    released : name of the new table, with its schema
    """
    name = f"mechanism_{mechanism.fingerprint[:12]}"
    select = mechanism.to_sql(
        table, columns, dialect=dialect, output=output, id=id, shuffle=True, mechanism_table=name, **how
    )
    into, symbol, stored = (quoted_name(one, dialect) for one in (released, output, name))
    statements = [
        *(f"{one};" for one in mechanism.to_sql_table(name, dialect=dialect)),
        *([] if id is None else [_key(dialect, key_table_statement(dialect))]),
        f"CREATE TABLE {into} AS\n{select};",
        _check(into, symbol, stored, mechanism.marginal is not None),
    ]
    return _head(id, dialect), statements


def _check(released: str, symbol: str, stored: str, known: bool) -> str:
    """The query that shows whether symbols were drawn as they should be, as far as P(Z) is known."""
    counted = f"SELECT {symbol} AS released_symbol, count(*) AS n FROM {released} GROUP BY {symbol}"
    share = f"SELECT r.released_symbol, r.n * 1.0 / (SELECT count(*) FROM {released}) AS share"
    if not known:
        told, joined = "How often each symbol occurs", ""
    else:
        told, share = "Each share must be near the expected one", f"{share}, m.expected"
        expected = f"SELECT symbol, sum(hi - lo) AS expected FROM {stored} WHERE NOT known GROUP BY symbol"
        joined = f"\nLEFT JOIN ({expected}) AS m ON m.symbol = r.released_symbol"
    return f"-- {told}:\n{share}\nFROM ({counted}) AS r{joined}\nORDER BY r.released_symbol;"


def _key(dialect: str, making: str | None) -> str:
    return _KEY[dialect] if making is None else f"{_KEY[dialect]}\n{making};"


def _head(person: str | None, dialect: str) -> str:
    told = (
        "-- Numbers come from the key: a person gets the same symbol whenever this mechanism releases."
        if person is not None
        else f"-- Numbers come from {dialect} itself, which is no entropy of the operating system:\n"
        "-- who can reconstruct its state can undo the release. Draw by a key where that matters.\n"
        "-- If it gave all rows the same number, the statement would stop."
    )
    return f"-- A release of one table. Run it once and hand out the result.\n{told}"
