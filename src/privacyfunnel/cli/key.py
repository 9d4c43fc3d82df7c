"""pfunnel key: the owner's key."""

from __future__ import annotations

from typing import Annotated

import typer

from . import options

key = typer.Typer(help="Make the key for stable draws and fingerprints.", no_args_is_help=True)


@key.command("new")
def new(
    output: Annotated[str, typer.Argument(metavar="FILE", help="Where the key goes; it must not exist.")],
    as_json: options.Json = False,
) -> None:
    """Make a key from the operating system's entropy, in a file that only you may read.

    Keep it with the private data. It draws one stable symbol for each person ('pfunnel release --key') and
    keys the fingerprints of audits. Who has it can draw the same symbols; without it nobody can.
    """
    from ..keys import new_key
    from .output import print_facts, print_json

    new_key(output)
    if as_json:
        print_json({"command": "key new", "output": output})
    else:
        print_facts(f"{output}: a new key, readable by you alone.", [("Keep", "with the private data", "")])
