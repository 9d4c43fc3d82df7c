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
    output: Annotated[str, options.output("Where the statements go; - is stdout.")] = "-",
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Write the statements that release a table inside its database.

    They put the mechanism into a table, draw one number for each row, join the two, and store what leaves in
    a new table. Say where numbers come from: --id COLUMN with your key, or --engine-random. Store the release
    and hand that out: a view would draw again at each query, and repeated releases tell more.
    """
    from ..persistence import write_atomic
    from ..sql.script import release_script
    from .output import print_facts, print_json

    if (given["id"] is None) == (not given["engine_random"]):
        raise InvalidInputError(
            "say where the numbers come from: --id COLUMN to draw by your key, or --engine-random for the "
            "database's own, which somebody who can reconstruct its state can undo."
        )
    if output != "-":
        check_outputs([output], [mechanism])
    head, statements = release_script(
        load_mechanism(mechanism),
        table.split("."),
        tuple(given["public"] or ()) or None,
        dialect=cast("Dialect", dialect),
        released=released.split("."),
        output=column,
        keep=tuple(given["keep"] or ()),
        id=given["id"],
        unknown=given["unknown"],
    )
    text = "\n\n".join([head, *statements]) + "\n"
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
