"""pfunnel sql: a mechanism as statements for a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..errors import InvalidInputError
from ..sql import DIALECTS
from . import options
from .checks import check_outputs
from .options import Option, columns, flag
from .release import load_mechanism

if TYPE_CHECKING:
    from ..sql import Dialect

WRITING = {
    "public": columns(
        "The public columns, where the table has other names for them. Repeat for several.",
        "as in the mechanism file",
    ),
    "keep": columns("Hand out this column too, unchanged. Repeat for several.", "none"),
    "id": Option(
        "The column that tells persons apart: draw by a key, one stable symbol for each.",
        "none",
        str,
        metavar="COLUMN",
    ),
    "engine_random": flag("Draw by the database's own random numbers, which are not cryptographic."),
    "unknown": Option(
        "What becomes of rows whose letter the mechanism does not know: an error, a symbol drawn from P(Z), "
        "or no row.",
        kind=str,
        choices=("error", "draw", "drop"),
        value="error",
    ),
}

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


@options.with_options(WRITING, before="output")
def sql(
    mechanism: Annotated[
        str, typer.Argument(metavar="MECHANISM", help="What 'pfunnel solve --output' wrote.")
    ],
    table: Annotated[
        str, typer.Option(metavar="TABLE", help="The table to be released; schema.table names its schema.")
    ],
    dialect: Annotated[
        str,
        typer.Option(
            metavar="|".join(DIALECTS),
            callback=options.choice(*DIALECTS),
            help="The database.",
        ),
    ],
    released: Annotated[
        str, typer.Option(metavar="TABLE", help="The new table that the release goes into.")
    ] = "released",
    column: Annotated[str, typer.Option(metavar="NAME", help="Name of the released column.")] = "z",
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where the statements go; - is stdout.")
    ] = "-",
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Write the statements that release a table inside its database.

    They put the mechanism into a table, draw one number for each row, join the two, and store what leaves in
    a new table. Say where numbers come from: --id COLUMN with your key, or --engine-random. Store the release
    and hand that out: a view would draw again at each query, and repeated releases tell more.
    """
    from ..persistence import write_atomic
    from ..sql import key_table_statement, quoted_name
    from .output import print_facts, print_json

    if (given["id"] is None) == (not given["engine_random"]):
        raise InvalidInputError(
            "say where the numbers come from: --id COLUMN to draw by your key, or --engine-random for the "
            "database's own, which somebody who can reconstruct its state can undo."
        )
    if output != "-":
        check_outputs([output], [mechanism])
    found, place = load_mechanism(mechanism), table.split(".")
    name, engine = f"mechanism_{found.fingerprint[:12]}", cast("Dialect", dialect)
    create = found.to_sql_table(name, dialect=engine)
    select = found.to_sql(
        place,
        tuple(given["public"] or ()) or None,
        dialect=engine,
        output=column,
        keep=tuple(given["keep"] or ()),
        id=given["id"],
        unknown=given["unknown"],
        shuffle=True,
        mechanism_table=name,
    )
    into = quoted_name(released.split("."), engine)
    symbol = quoted_name(column, engine)
    statements = [
        *(f"{one};" for one in create),
        *([] if given["id"] is None else [_key(engine, key_table_statement(engine))]),
        f"CREATE TABLE {into} AS\n{select};",
        _check(into, symbol, quoted_name(name, engine), found.marginal is not None),
    ]
    text = "\n\n".join([_head(given["id"], dialect), *statements]) + "\n"
    if as_json:
        print_json({"command": "sql", "mechanism": mechanism, "dialect": dialect, "statements": statements})
    elif output == "-":
        typer.echo(text, nl=False)
    if output != "-":
        write_atomic(output, text)
        if not as_json:
            facts = [
                (
                    "Draws",
                    f"by the key, one for each {given['id']}" if given["id"] else "by the database",
                    "",
                ),
                ("Result", f"table {released}", f"column {column}, in random order"),
                ("Saved", output, f"{len(statements)} statements"),
            ]
            print_facts(f"{table}: statements that release it in {dialect}.", facts)


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
