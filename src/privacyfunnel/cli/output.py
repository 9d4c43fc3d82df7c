"""Printing: tables and facts for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.table import Table
    from rich.text import Text

    from ..comparison import Comparison
    from ..joint import Joint
    from ..tradeoff import Frontier

_LEAST_TEXT, _BETWEEN = 12, 3  # characters of a table's column of text, and between two columns


def show(*parts: Any) -> None:
    """Print text and tables. A file or a pipe gets wide lines without blanks at their ends."""
    from rich.console import Console

    seen = sys.stdout.isatty()
    width = None if seen or "COLUMNS" in os.environ else 140
    console = Console(width=width, highlight=False, markup=False)
    with console.capture() as captured:
        for part in parts:
            if isinstance(part, str):
                console.print(_wrapped(part, console.width) if seen else part, soft_wrap=True)
            else:
                console.print(part)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def _wrapped(text: str, width: int) -> str:
    """Lines that end between words; a path that is longer than the line stays whole, to be copied."""
    return "\n".join(
        fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n")
    )


def own_command() -> str:
    """How somebody types the `pfunnel` that runs: with its path, where the shell finds none or another."""
    here = sys.argv[0]
    if os.path.basename(here).partition(".")[0] != "pfunnel":  # python -m privacyfunnel
        here = os.path.join(os.path.dirname(sys.executable), "pfunnel")
    found = shutil.which("pfunnel")
    if not os.path.isfile(here) or (found is not None and os.path.samefile(found, here)):
        return "pfunnel"
    here = os.path.abspath(here)
    below = os.path.relpath(here) if here.startswith(os.path.join(os.getcwd(), "")) else here
    return shlex.quote(below if os.sep in below else os.path.join(".", below))


def print_json(values: Mapping[str, Any]) -> None:
    """One JSON object on stdout."""
    whole = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(values, ensure_ascii=not whole, allow_nan=False, indent=2))


def write_curves(
    found: Frontier | Comparison, output: str | None, csv: str | None, plot: str | None
) -> list[str]:
    """Save what was found, its table and its figure under the names that were given; returns these names."""
    from ..plotting import save_figure

    if output is not None:
        found.save(output)
    if csv is not None:
        found.to_csv(csv)
    if plot is not None:
        save_figure(found.plot(), plot)
    return [name for name in (output, csv, plot) if name is not None]


def print_facts(title: str, facts: Iterable[tuple[str, str, str]]) -> None:
    """A title and lines of name, value and remark; empty ones are left out."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold cyan", no_wrap=True, max_width=24)
    grid.add_column(overflow="fold")
    for name, value, remark in facts:
        text = Text(value)
        if remark:
            text.append(f"{'  ' if value else ''}{remark}", style="dim")
        grid.add_row(Text(name), text)
    show(title, Padding(grid, (1, 0, 0, 2)))


@dataclass
class NumberTable:
    """A table on the terminal that cuts no number, however narrow the terminal is.

    The first `n_text` columns are text: it wraps, and a long word in it is shortened. The others hold
    numbers: those that do not fit beside the rest follow in a table below, with the text repeated.
    """

    headings: Sequence[str]
    n_text: int = 1
    _rows: list[tuple[Sequence[str | Text], str | None] | None] = field(default_factory=list)

    def add_row(self, *cells: str | Text, style: str | None = None) -> None:
        self._rows.append((cells, style))

    def add_section(self) -> None:
        """An empty line between the rows before and after."""
        self._rows.append(None)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        room = options.max_width - 2 + _BETWEEN
        room -= sum(min(self._width(i), _LEAST_TEXT) + _BETWEEN for i in range(self.n_text))
        part: list[int] = []
        for i in range(self.n_text, len(self.headings)):
            if part and sum(self._width(j) + _BETWEEN for j in [*part, i]) > room:
                yield self._part(part, options.max_width)
                part = []
            part.append(i)
        yield self._part(part, options.max_width)

    def _part(self, numbers: Sequence[int], width: int) -> Table:
        """The text and some columns of numbers."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, padding=(0, 1))
        for i in range(self.n_text):
            table.add_column(self.headings[i], overflow="ellipsis")
        for i in numbers:
            whole = self._width(i) + _LEAST_TEXT < width  # else it is folded
            table.add_column(self.headings[i], justify="right", no_wrap=whole, overflow="fold")
        chosen = [*range(self.n_text), *numbers]
        for row in self._rows:
            if row is None:
                table.add_section()
            else:
                cells, style = row
                if len(cells) > numbers[0]:  # nothing is known of it here otherwise
                    table.add_row(*[cells[i] if i < len(cells) else "" for i in chosen], style=style)
        return table

    def _width(self, i: int) -> int:
        """The longest line of the column."""
        from rich.cells import cell_len

        cells = [self.headings[i], *(str(row[0][i]) for row in self._rows if row and i < len(row[0]))]
        return max(cell_len(line) for cell in cells for line in cell.split("\n"))


def describe_joint(data: str, joint: Joint) -> str:
    """What was read, as a sentence."""
    records = f"{plural(joint.n_samples, 'record')}; " if joint.n_samples is not None else ""
    return (
        f"{data}: {records}{' × '.join(joint.x_names)} ({plural(joint.n_x, 'letter')}) is public, "
        f"{' × '.join(joint.y_names)} ({plural(joint.n_y, 'letter')}) is private."
    )


def joint_values(data: str, joint: Joint) -> dict[str, Any]:
    """What was read, for JSON."""
    sides = {"public": list(joint.x_names), "private": list(joint.y_names)}
    names = ("n_x", "n_y", "entropy_x", "entropy_y", "mutual_information")
    numbers = {name: getattr(joint, name) for name in names}
    return {"data": data, "n_records": joint.n_samples, **sides, **numbers}


def bits(value: float) -> str:
    """A number of bits; small ones keep two digits, unless they are mere rounding."""
    return f"{value:.1e}" if 1e-12 < abs(value) < 1e-5 else f"{value + 0.0:.5f}"


def plural(n: int, word: str) -> str:
    return f"{n:,} {word}" + "s" * (n != 1)


def percent(part: float, whole: float) -> str:
    """The share in per cent, to three digits."""
    return f"{100 * part / whole:.3g} %" if whole > 0 else "all"
