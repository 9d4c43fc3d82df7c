"""Column names: as tuples, and the closest ones to a name that is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from .errors import InvalidInputError, shortened


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """The names as a tuple; a bare string is one name, not a sequence of characters."""
    return (names,) if isinstance(names, str) else tuple(names)


def require_columns(names: Iterable[str], columns: Iterable[str], where: str, remedy: str = "") -> None:
    """InvalidInputError for the first of `names` that is not in `columns`, with what it may have meant."""
    there = list(columns)
    for name in names:
        if name not in there:
            more = f"; {remedy}" if remedy else ""
            raise InvalidInputError(
                f"{where}: there is no column {shortened(name)}; {_suggestion(name, there)}{more}."
            )


def require_single_values(names: Iterable[str], schema: Mapping[str, Any], where: str) -> None:
    """InvalidInputError for the first of `names` whose type (in narwhals' words) is a list or a structure."""
    for name in names:
        if schema[name].is_nested():
            raise InvalidInputError(
                f"{where}: column {name!r} holds {schema[name]}, not single values; pick a field or an "
                "element."
            )


def _suggestion(name: object, columns: Sequence[str]) -> str:
    parts = [part.strip() for part in str(name).split(",")]
    if len(parts) > 1 and all(part in columns for part in parts):
        return "name the columns " + " and ".join(map(repr, parts)) + " one by one"
    by_lower = {str(column).lower(): column for column in columns}
    close = get_close_matches(str(name).lower(), by_lower, n=3, cutoff=0.5)
    if close:
        return "the closest are " + ", ".join(shortened(by_lower[key]) for key in close)
    shown = ", ".join(map(shortened, columns[:8])) or "none"
    return f"the columns are {shown}" + (f" and {len(columns) - 8} more" if len(columns) > 8 else "")
