"""pfunnel app: the page for people, on this machine alone."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..errors import MissingDependencyError
from . import options


def open_app(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]",
            show_default="chosen on the page",
            help="The table: .csv, .tsv (both also .gz) or .parquet.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            show_default="that of TABLE, else the current one",
            help="Tables are opened and releases are written in this folder only.",
        ),
    ] = None,
    port: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=0, max=65535, show_default="a free one", help="The port."),
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address and open no browser.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Open a page on which you look at a table, choose what is private, move a slider and take a safe file.

    The page is served by this machine to itself (127.0.0.1) and asks no other for anything. Its address has a
    token, new at each start: whoever does not know it is refused. Nothing is written outside the folder, but
    for copies that are uploaded, which are removed at the end. Ctrl+C ends it.
    """
    try:
        from ..app import serve
    except ImportError as error:
        raise MissingDependencyError(
            "The app needs starlette, uvicorn and jinja2. Install them with: pip install 'privacyfunnel[app]'"
        ) from error
    from ..files import open_table
    from .output import print_json

    if data is not None:
        data = os.path.realpath(data)
        open_table(data)  # what cannot be opened is said here
    where = folder or (os.path.dirname(data) if data else os.getcwd())

    def announce(address: str) -> None:
        if as_json:
            print_json({"command": "app", "address": address, "folder": os.path.realpath(where)})
        else:
            typer.echo(f"The page is at {address}\nOnly this machine reaches it. Ctrl+C ends it.")

    serve(data, where, port=port, browser=not no_browser, announce=announce)
