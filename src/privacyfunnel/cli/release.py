"""pfunnel release: apply a mechanism to a table, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError, UnknownLetterError, shortened
from . import options
from .running import warn

if TYPE_CHECKING:
    from ..files import TableFile
    from ..mechanism import Rng, TableMechanism


def release(
    data: options.Data,
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", metavar="FILE", help="What 'pfunnel solve --output' wrote.")
    ],
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the table goes: .csv, .tsv (both also .gz) or .parquet; - is CSV on stdout.",
        ),
    ],
    column: Annotated[str, typer.Option(metavar="NAME", help="Name of the released column.")] = "z",
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="The public columns, where DATA has other names for them. Repeat for several.",
            show_default="as in the mechanism file",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out too. Repeat for several."),
    ] = None,
    keep_public: Annotated[
        bool,
        typer.Option("--keep-public", help="Keep the public columns beside the released one."),
    ] = False,
    keep_private: Annotated[
        bool,
        typer.Option(
            "--keep-private",
            help="Keep the private columns that the mechanism file names; they are dropped by default.",
        ),
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            show_default="the operating system's entropy",
            help="Draw repeatably, for tests only.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Replace the public columns of DATA by the released one, drawn from the mechanism for each record.

    The private columns that the mechanism file names are dropped. All other columns pass through unchanged,
    and the mechanism does not protect what they tell: a warning lists them, --drop leaves them out.

    Release once and hand out the result: a second release of the same records tells more.
    """
    from ..files import STDOUT, open_table, open_writer
    from .output import plural, print_facts, print_json

    begun = time.perf_counter()
    to_stdout = output == STDOUT
    if to_stdout and as_json:
        raise InvalidInputError("stdout cannot hold both the table and --json; name a file as --output.")
    if not to_stdout:
        options.check_outputs([output], [data, mechanism])
        options.check_table_name(output)
    table_mechanism = _load(mechanism)
    table = open_table(data, delimiter=delimiter)
    names = tuple(public or table_mechanism.x_names)
    letter = table_mechanism.x_labels[0]
    n_parts = len(letter) if isinstance(letter, tuple) else 1
    if len(names) != n_parts:
        raise InvalidInputError(
            f"the mechanism is for {plural(n_parts, 'column')} ({', '.join(table_mechanism.x_names)}) and "
            f"{len(names)} {'is' if len(names) == 1 else 'are'} named; pass --public for each, in this order."
        )
    private = [name for name in table_mechanism.private_names if name in table.columns]
    dropped = tuple(dict.fromkeys([*([] if keep_private else private), *(drop or [])]))
    table.require([*names, *dropped])
    passed = [name for name in table.columns if name not in (*names, *dropped)]
    if column in passed or (keep_public and column in names):
        raise InvalidInputError(
            f"{data}: there already is a column {shortened(column)}; choose another --column."
        )
    _warn(passed, names if keep_public else (), table_mechanism.private_names, seed)

    n_records = 0
    with open_writer(output, delimiter=delimiter) as writer:
        parts = _released(table, table_mechanism, names, dropped, column, keep_public, _generator(seed))
        for part in parts:
            writer.write(part)
            n_records += part.num_rows
    values: dict[str, Any] = {
        "command": "release",
        "data": data,
        "mechanism": mechanism,
        "output": output,
        "n_records": n_records,
        "replaced": list(names),
        "column": column,
        "n_z": table_mechanism.n_z,
        "dropped": list(dropped),
        "passed_through": [*(names if keep_public else ()), *passed],
        "seeded": seed is not None,
        "seconds": time.perf_counter() - begun,
    }
    if as_json:
        print_json(values)
    elif not to_stdout:
        facts = [
            ("Released", column, f"{plural(table_mechanism.n_z, 'symbol')}, in place of {', '.join(names)}"),
            ("Dropped", ", ".join(dropped) or "nothing", ""),
            ("Unchanged", ", ".join(values["passed_through"]) or "nothing else", ""),
            ("Saved", output, f"{plural(n_records, 'record')} in {values['seconds']:.1f} s"),
        ]
        print_facts(f"{data}: {plural(n_records, 'record')} released.", facts)


def _load(path: str) -> TableMechanism:
    from ..mechanism import TableMechanism
    from ..persistence import load

    mechanism = load(path)
    if not isinstance(mechanism, TableMechanism):
        raise InvalidInputError(
            f"{path}: this is a {type(mechanism).__name__.lower()} and not a mechanism; use a file that "
            "'pfunnel solve --output' wrote."
        )
    return mechanism


def _released(
    table: TableFile,
    mechanism: TableMechanism,
    public: Sequence[str],
    dropped: Sequence[str],
    column: str,
    keep_public: bool,
    rng: Rng,
) -> Iterator[Any]:
    """The released table in parts; at least one, so that an empty table keeps its header."""
    import os

    import pyarrow as pa

    from ..files import CsvFile
    from ..progress import progress_bar

    if isinstance(table, CsvFile):
        mechanism = _of_texts(mechanism)
    wanted = [name for name in table.columns if name in public or name not in dropped]

    def released(part: Any) -> Any:
        result = mechanism.release_frame(
            part, public, output=column, keep_public=keep_public, keep_private=True, rng=rng
        )
        return result.select([name for name in result.column_names if name == column or name not in dropped])

    done = 0
    with progress_bar(f"Releasing {os.path.basename(table.path)}") as report:
        for batch in table.batches(wanted, letters=public, report=report):
            part = pa.Table.from_batches([batch])
            try:
                yield released(part)
            except UnknownLetterError:
                raise _unknown(table.path, part.select(public), mechanism, done) from None
            done += batch.num_rows
    if not done:
        yield released(table.schema(wanted).empty_table())


def _of_texts(mechanism: TableMechanism) -> TableMechanism:
    """The mechanism for a CSV file, whose values are text: the letter 7 is the text "7" there."""

    def text(letter: Any) -> Any:
        if isinstance(letter, tuple):
            return tuple(map(text, letter))
        return letter if letter is None else str(letter)

    return replace(mechanism, x_labels=tuple(text(letter) for letter in mechanism.x_labels))


def _unknown(path: str, part: Any, mechanism: TableMechanism, done: int) -> UnknownLetterError:
    """What to say about the first record of a batch that the mechanism has no letter for."""
    from ..labels import canonical_label

    letters = set(mechanism.x_labels)
    records = list(zip(*[values.to_pylist() for values in part.columns], strict=True))
    found = [canonical_label(record if len(record) > 1 else record[0]) for record in records]
    at = next(number for number, letter in enumerate(found) if letter not in letters)
    letter, record = found[at], records[at]
    shown = ", ".join(f"{n} = {shortened(v)}" for n, v in zip(part.column_names, record, strict=True))
    if None in record:
        remedy = "solve with --missing letter, or fill missing values first"
    elif any(str(letter) == str(known) for known in letters):
        remedy = "the mechanism has it as another type: solve on a file of this kind"
    elif any(isinstance(known, tuple) and set(known) == set(record) for known in letters):
        remedy = f"--public must name the columns in the order of {', '.join(mechanism.x_names)}"
    else:
        remedy = "solve again on data that has it, or recode or remove such records"
    return UnknownLetterError(
        f"{path}: record {done + at + 1:,} has {shown}, which is none of the mechanism's "
        f"{len(letters):,} letters; {remedy}."
    )


def _warn(passed: Sequence[str], kept: Sequence[str], private: Sequence[str], seed: int | None) -> None:
    if kept:
        warn(f"--keep-public: whoever sees {', '.join(kept)} needs no z; keep this table to yourself.")
    if there := [name for name in private if name in passed]:
        warn(f"--keep-private: the private {', '.join(there)} is in the output; keep this table to yourself.")
    if others := [name for name in passed if name not in private]:
        unnamed = "" if private else "drop the private column among them, if there is one; "
        warn(
            f"these columns pass through unchanged and the mechanism does not protect what they tell: "
            f"{', '.join(others)}; {unnamed}leave columns out with --drop COLUMN."
        )
    if seed is not None:
        warn("--seed: whoever knows or guesses the seed can undo the noise; use it for tests only.")


def _generator(seed: int | None) -> Rng:
    import numpy as np

    return None if seed is None else np.random.default_rng(seed)
