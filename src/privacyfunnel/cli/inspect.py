"""pfunnel inspect: which column of a table tells what."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .checks import as_text_file, check_delimiter

if TYPE_CHECKING:
    from ..inspection import InspectedColumn, Inspection
    from ..measured import Estimate

#: Pairs that are printed.
SHOWN_PAIRS = 5
#: Where no column is private there is nothing but pairs.
SHOWN_ALONE = 20


@options.with_options({"missing_text": options.MISSING_TEXT}, before="as_json")
def inspect(
    data: options.Data,
    private: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            show_default="every column against every other",
            help="The column that must not be learned (Y). Repeat for several: their combination counts.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Say which column tells what about a private one, and which to drop, protect or keep.

    Of each column: its type, different, rare and missing values, how often the private value is guessed from
    it alone, and the bits it tells, with a 95 % interval. In a CSV file a column whose values all look like
    numbers, dates or times is taken for these. Prints no value of any record, but exact numbers of them: keep
    it with the data.
    """
    check_delimiter(delimiter, [data])
    import pyarrow as pa

    from ..files import open_table
    from ..files.typed import typed
    from ..inspection import inspect_tallies
    from ..inspection.tallies import file_tallies
    from ..progress import progress_bar
    from .output import print_json
    from .protect_inputs import warn_of_texts

    gaps = given["missing_text"] or ()
    table = open_table(data, delimiter=delimiter, gaps=gaps)
    table.require(private or ())
    with progress_bar(f"Reading {os.path.basename(data)}", None) as report:
        found = inspect_tallies(file_tallies(table, report), private or None)
    if as_json:
        print_json({"command": "inspect", "data": data, **found.to_dict()})
    else:
        first = next(table.batches(letters=table.columns))
        warn_of_texts(data, typed(pa.Table.from_batches([first]), table))
        _print(data, found, as_text_file(delimiter), as_text_file(delimiter, gaps))


def _print(data: str, found: Inspection, separated: str, again: str) -> None:
    """The inspection. Proposed commands get the options of the file, without or with its missing texts."""
    from ..alphabet import shown_name
    from .output import NumberTable, plural, show

    label = " × ".join(found.private)
    head = f"{data}: {plural(found.n_records, 'record')}, {plural(len(found.columns), 'column')}"
    parts: list[Any] = [found.summary, f"{head}{f' beside {label}' if label else ''}."]
    if found.private:
        columns = ["column", "type", "values", "rare", "missing", "guessed", "bits", "interval", "advice"]
        table = NumberTable(columns, n_text=2)
        for one in found.columns:
            table.add_row(*_cells(one))
        parts += [
            "",
            table,
            "rare: records with a value that fewer than ten have. "
            f"guessed: how often {label} is guessed from the column alone, against "
            f"{100 * (found.chance or 0):.1f} % without it. bits: what it tells, of {found.entropy:.3f}.",
        ]
        parts += [f"{shown_name(one.name)}: {one.reason}." for one in found.columns if one.advice == "drop"]
    if found.pairs:
        table = NumberTable(
            ["two columns", "guessed", "bits", "interval"] if label else ["two columns", "bits", "interval"]
        )
        for pair in found.pairs[: SHOWN_PAIRS if label else SHOWN_ALONE]:
            cells = [" and ".join(map(shown_name, pair.columns))]
            cells += [_share(pair.guessed)] if label else []
            table.add_row(*cells, *_bits(pair.bits))
        parts += ["", f"Together about {label}:" if label else "About each other:", table]
    parts += [*found.notes, "Estimates from counts; intervals hold in 95 of 100 cases, each by itself."]
    if found.has_too_few_records:
        parts.append("Next: more records, before anything is made from these.")
    elif found.private and (names := found.advised("protect")):
        named = "".join(f" --private {quote(name)}" for name in found.private)
        whole = f"the whole table: pfunnel protect {quote(data)}{named}{again} --output safe.csv"
        # What would be refused, for missing values or too many different ones, is not proposed.
        ready = [
            one.name for one in found.columns if one.name in names and not one.bins and not one.n_missing
        ]
        if ready:
            first = quote(ready[0])
            parts.append(
                f"Next: pfunnel solve {quote(data)} --public {first}{named}{separated} --max-leakage 0.01"
            )
            parts += [f"Or {whole}"] if len(names) > 1 else []
        else:
            parts.append(f"Next, {whole}")
    show(*parts)


def _cells(one: InspectedColumn) -> list[str]:
    from ..alphabet import shown_name

    values = "many" if one.n_values is None else f"{one.n_values:,}"
    missing = "–" if one.n_missing is None else f"{one.n_missing:,}"
    rare = "–" if one.rare is None else f"{100 * one.rare:.1f} %"
    return [
        shown_name(one.name),
        one.kind,
        values,
        rare,
        missing,
        _share(one.guessed),
        *_bits(one.bits),
        one.advice,
    ]


def _share(number: Estimate | None) -> str:
    if number is None:
        return "–"
    return f"{'≥ ' if number.kind == 'lower bound' else ''}{100 * number.value:.1f} %"


def _bits(number: Estimate | None) -> list[str]:
    if number is None:
        return ["not measured", "–"]
    low, high = number.interval
    sign = "≥" if number.kind == "lower bound" else "≈"
    return [f"{sign} {number.value:.4f}", f"{low:.4f}–{high:.4f}"]
