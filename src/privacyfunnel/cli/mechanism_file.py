"""Mechanism files of the command line: they also name the private columns, for `release` to drop."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidInputError
from ..mechanism import TableMechanism
from ..persistence import load, load_json, save_json

_PRIVATE = "private_names"


def save_mechanism(path: str, mechanism: TableMechanism, private: tuple[str, ...]) -> None:
    """Like `mechanism.save`, with the names of the private columns added; `privacyfunnel.load` reads it."""
    save_json(path, "table-mechanism", 1, mechanism.to_dict() | {_PRIVATE: list(private)})


def load_mechanism(path: str) -> tuple[TableMechanism, tuple[str, ...]]:
    """The mechanism, and the names of the private columns if the file has them."""
    mechanism: Any = load(path)
    if not isinstance(mechanism, TableMechanism):
        raise InvalidInputError(
            f"{path}: this is a {type(mechanism).__name__.lower()} and not a mechanism; use a file that "
            "'pfunnel solve --output' wrote."
        )
    names = load_json(path)[2].get(_PRIVATE, [])
    return mechanism, tuple(str(name) for name in names) if isinstance(names, list) else ()
