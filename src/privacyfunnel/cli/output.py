"""Printing: tables and facts for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from ..joint import Joint


def show(*parts: Any) -> None:
    """Print text and tables. A file or a pipe gets wide lines without blanks at their ends."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 140
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, soft_wrap=isinstance(part, str))
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    whole = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(values, ensure_ascii=not whole, allow_nan=False, indent=2))


def print_facts(title: str, facts: Iterable[tuple[str, str, str]]) -> None:
    """A title and lines of name, value and remark; empty ones are left out."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value, remark in facts:
        text = Text(value)
        if remark:
            text.append(f"{'  ' if value else ''}{remark}", style="dim")
        grid.add_row(Text(name), text)
    show(title, Padding(grid, (1, 0, 0, 2)))


def new_table(columns: Sequence[str]) -> Table:
    """A table of numbers: the first column is text, the others are aligned to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1))
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def describe_joint(data: str, joint: Joint) -> str:
    """What was read, as a sentence."""
    records = f"{plural(joint.n_samples, 'record')}; " if joint.n_samples is not None else ""
    return (
        f"{data}: {records}{' × '.join(joint.x_names)} ({plural(joint.n_x, 'letter')}) is public, "
        f"{' × '.join(joint.y_names)} ({plural(joint.n_y, 'letter')}) is private."
    )


def joint_values(data: str, joint: Joint) -> dict[str, Any]:
    """What was read, for JSON."""
    return {
        "data": data,
        "n_records": joint.n_samples,
        "public": list(joint.x_names),
        "private": list(joint.y_names),
        "n_x": joint.n_x,
        "n_y": joint.n_y,
        "entropy_x": joint.entropy_x,
        "entropy_y": joint.entropy_y,
        "mutual_information": joint.mutual_information,
    }


def bits(value: float) -> str:
    """A number of bits; small ones keep two digits, unless they are mere rounding."""
    return f"{value:.1e}" if 1e-12 < abs(value) < 1e-5 else f"{value + 0.0:.5f}"


def plural(n: int, word: str) -> str:
    return f"{n:,} {word}" + "s" * (n != 1)


def percent(part: float, whole: float) -> str:
    """The share in per cent, to three digits."""
    return f"{100 * part / whole:.3g} %" if whole > 0 else "all"
