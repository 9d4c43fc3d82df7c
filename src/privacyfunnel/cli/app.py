"""The commands of `pfunnel`, put together."""

from __future__ import annotations

from functools import cache
from inspect import cleandoc
from typing import Annotated, Any

import typer

from .audit import audit
from .compare import compare
from .decode import decode
from .demo import demo
from .encode import encode
from .fit import fit
from .frontier import frontier
from .inspect import inspect
from .key import key
from .open_app import open_app
from .protect import protect
from .release import release
from .reproduce import reproduce
from .solve import solve
from .sql import sql
from .sweep import sweep

app = typer.Typer(
    name="pfunnel",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would take a third of its time
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _paragraphs(text: str | None) -> str:
    """A docstring with each paragraph on one line, so that the terminal's width breaks it."""
    return "\n\n".join(" ".join(part.split()) for part in cleandoc(text or "").split("\n\n"))


for function, summary in (
    (demo, "Protect a table with a guarantee, and solve the paper's example."),
    (inspect, "Say which column tells what."),
    (protect, "Replace a table by one that tells little, guaranteed."),
    (solve, "Find the best release for one target."),
    (frontier, "Trace the whole trade-off."),
    (compare, "Compare all methods with the proved optimum."),
    (release, "Apply a mechanism to a table."),
    (sql, "Write a mechanism as SQL."),
    (fit, "Learn a release from samples."),
    (encode, "Release codes with a learned model."),
    (decode, "Reconstruct records from codes."),
    (audit, "Attack a release and judge it."),
    (sweep, "Compute many runs, each once."),
    (reproduce, "Reproduce the paper's figures and tables."),
):
    app.command(help=_paragraphs(function.__doc__), short_help=summary)(function)


app.command(name="app", help=_paragraphs(open_app.__doc__), short_help="Open a page for all of this.")(
    open_app
)
app.add_typer(key, name="key", short_help="Make a key.")


def _print_version(value: bool) -> None:
    if value:
        from .. import __version__

        typer.echo(f"pfunnel {__version__}")
        raise typer.Exit


@app.callback()
def pfunnel(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Release data that stays useful and tells as little as possible about a private attribute.

    Useful means how much of the public values is kept, telling how much is said about the private one. Both
    are in bits: utility is I(Z;X), leakage is I(Z;Y), for public X, private Y, released Z.
    """


@cache
def command() -> Any:
    """The click command of the whole line."""
    return typer.main.get_command(app)
