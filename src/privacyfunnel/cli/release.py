"""pfunnel release: apply a mechanism to a table, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .checks import (
    check_delimiter,
    check_outputs,
    check_spreadsheet_safe,
    check_table_name,
    is_csv,
    written_delimiter,
)
from .options import Option, columns, file, flag
from .running import note, warn, warn_of_seed

if TYPE_CHECKING:
    from ..files import TableFile
    from ..mechanism import TableMechanism


KEEPING = {
    "public": columns(
        "The public columns, where DATA has other names for them. Repeat for several.",
        "as in the mechanism file",
    ),
    "keep": columns("Hand out this column too, unchanged. Repeat for several.", "none"),
    "keep_all": flag("Hand out all columns but the public and the private ones."),
    "keep_public": flag("Keep the public columns beside the released one."),
    "keep_private": flag("Keep the private columns that the mechanism file names."),
    "unknown": Option(
        "What becomes of records whose letter the mechanism does not know: an error that counts them, a "
        "symbol drawn from P(Z), which tells nothing about the letter, or no record.",
        kind=str,
        choices=("error", "draw", "drop"),
        value="error",
    ),
    "key": file(
        "Draw with this key ('pfunnel key new'): with --id, a person gets the same symbol, or by a rule the "
        "same row, in every release of this mechanism or rule, so that releasing again tells nothing more.",
        default="the operating system's entropy",
    ),
    "id": Option("The column that tells persons apart, for --key.", "none", str, metavar="COLUMN"),
    "values": Option(
        "What stands for a symbol: itself, its most probable letter, or a letter drawn from P(X|z). Letters "
        "stand in the public columns; they are made from the symbol alone and leak no more than it.",
        kind=str,
        choices=("symbol", "typical", "draw"),
        default="symbol; with --rule draw",
    ),
    "rule": Option(
        "Instead of --mechanism: the folder that 'pfunnel protect --rule' wrote. Whole rows of the same "
        "columns come out, with the guarantee of the rule.",
        default="none",
        kind=str,
        metavar="FOLDER",
    ),
    "missing_text": options.MISSING_TEXT,
    "n_jobs": Option("Threads; -1 is one a core. With --seed there is one.", kind=int, value=-1, least=None),
    "codebook": Option(
        "Write here what each symbol stands for: a table of symbols, their shares and letters.",
        default="not written",
        kind=str,
        metavar="FILE",
    ),
}


@options.with_options(KEEPING, before="shuffle")
def release(
    data: options.Data,
    output: Annotated[
        str,
        options.output(
            "Where the table goes: .csv, .tsv (both also .gz), .parquet or .arrow; - is CSV on stdout. "
            "For DATA in parts, a name without ending is a new folder of parts."
        ),
    ],
    mechanism: Annotated[
        str | None,
        typer.Option("--mechanism", "-m", metavar="FILE", help="What 'pfunnel solve --output' wrote."),
    ] = None,
    column: Annotated[str, typer.Option(metavar="NAME", help="Name of the column of symbols.")] = "z",
    shuffle: options.Shuffle = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    seed: options.UnsafeSeed = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Release a symbol for each record of DATA, or a letter in its place, and nothing but that.

    DATA may be in parts: a folder of Parquet files, or a pattern in quotes such as 'data/*.parquet'. Nothing
    is written before all unknown letters are counted, and the output appears whole or not at all.

    Other columns leave only if they are named with --keep. The mechanism does not protect what they tell;
    'pfunnel solve' and 'pfunnel audit' measure it, with --keep too.

    Release once and hand out the result: a second release of the same records tells more, unless both are
    drawn with the same --key.
    """
    from ..columns import codebook as codebook_columns
    from ..files import STDOUT, PartsFile, is_parts, open_table, open_writer
    from ..keys import read_key
    from ..streams import check_sink, is_folder, write_folder, written
    from .output import plural, print_facts, print_json

    begun = time.perf_counter()
    to_stdout = output == STDOUT
    if to_stdout and as_json:
        raise InvalidInputError("stdout cannot hold both the table and --json; name a file as --output.")
    if (mechanism is None) == (given["rule"] is None):
        raise InvalidInputError(
            "pass either mechanism (of 'pfunnel solve') or rule (of 'pfunnel protect').",
            names=("mechanism", "rule"),
        )
    key, person = given["key"], given["id"]
    if (key is None) != (person is None):
        raise InvalidInputError("--key and --id, whom it draws for, go together; pass both, or neither.")
    if key is not None and seed is not None:
        raise InvalidInputError("--seed and --key both say where the numbers come from; leave one out.")
    if mechanism is None:
        _by_rule(data, output, column, shuffle, spreadsheet_safe, seed, delimiter, as_json, given)
        return
    given["values"] = given["values"] or "symbol"
    keep, keep_all, unknown, codebook = (given[name] for name in ("keep", "keep_all", "unknown", "codebook"))
    if keep and keep_all:
        raise InvalidInputError("--keep-all keeps every column that --keep can name; leave one of them out.")
    to_folder = is_parts(data) and is_folder(output) and not to_stdout
    files = [None if to_stdout or to_folder else output, codebook]
    check_outputs(files, [data, mechanism, *([key] if key else [])])
    for name in filter(None, files):
        check_table_name(name)
    check_spreadsheet_safe(spreadsheet_safe, output + ".parquet" if to_folder else output)
    check_delimiter(delimiter, [data, output])
    table_mechanism = load_mechanism(mechanism)
    table = open_table(data, delimiter=delimiter if is_csv(data) else None, gaps=given["missing_text"] or ())
    if not to_stdout:
        check_sink(table, output, shuffle)
    names = _public(table_mechanism, given["public"])
    generator = _generator(seed)
    how = {name: given[name] for name in ("values", "keep_public", "keep_private", "unknown")}
    how |= {"output": column, "keep": "all" if keep_all else tuple(keep or ()), "rng": generator}
    how |= {"key": None if key is None else read_key(key), "id": person}
    releasing = _releasing(table, table_mechanism, names, how, given["n_jobs"])
    released = [column] if given["values"] == "symbol" else list(names)
    kept = [name for name in releasing.header if name not in released]
    book = None if codebook is None else codebook_columns(table_mechanism)
    _warn(kept, names if given["keep_public"] else (), table_mechanism.private_names, keep_all, seed)
    strangers = releasing.count_strangers()
    order = None if generator is None else generator.spawn(1)[0]
    settings: dict[str, Any] = {
        "delimiter": written_delimiter(delimiter, data, output),
        "spreadsheet_safe": spreadsheet_safe,
        "shuffle": shuffle,
    }

    def write_book() -> None:  # if it cannot be written, there is no table either
        if book is not None:
            _write_codebook(codebook, book, spreadsheet_safe and is_csv(codebook))

    if to_folder and isinstance(table, PartsFile):
        n_records = write_folder(table, output, releasing.tables, releasing.n_jobs, write_book)
    else:
        with open_writer(output, rng=order, **settings) as writer:
            n_records = written(writer, releasing.tables())
            write_book()
    from ..alphabet import shown_name

    left_out = [name for name in table.columns if name not in kept and name not in names]
    values: dict[str, Any] = {
        "command": "release",
        "data": data,
        "mechanism": mechanism,
        "output": output,
        "n_records": n_records,
        "replaced": list(names),
        "column": column if given["values"] == "symbol" else None,
        "values": given["values"],
        "codebook": codebook,
        "n_z": table_mechanism.n_z,
        "kept": kept,
        "left_out": left_out,
        "unknown": {"records": strangers.n_unknown, "action": unknown},
        "shuffled": shuffle,
        "seeded": seed is not None,
        "keyed": key is not None,
        "seconds": time.perf_counter() - begun,
    }
    if strangers.n_unknown:
        done = {"draw": "they got a symbol drawn from P(Z)", "drop": "they are left out"}[unknown]
        warn(f"{data}: {strangers.describe()}; {done}.")
    if as_json:
        print_json(values)
    elif to_stdout:
        note(f"left out: {', '.join(map(shown_name, left_out)) or 'nothing'}.")
    else:
        n_symbols = plural(table_mechanism.n_z, "symbol")
        how_made = {
            "symbol": f"{n_symbols}, in place of {', '.join(names)}",
            "typical": f"most probable letters of {n_symbols}; not distributed like the data",
            "draw": f"letters drawn for {n_symbols}; distributed like the data",
        }
        facts = [
            ("Released", ", ".join(released), how_made[given["values"]]),
            ("Kept", ", ".join(kept) or "nothing else", "not protected" if kept else ""),
            ("Left out", ", ".join(map(shown_name, left_out)) or "nothing", ""),
            ("Drawn", "with the key" if key else "anew", f"one symbol for each {person}" if key else ""),
            ("Order", "random" if shuffle else "that of the records", ""),
            ("Saved", output, f"{plural(n_records, 'record')} in {values['seconds']:.1f} s"),
        ]
        facts += [("Codebook", codebook, f"what {n_symbols} stand for")] if codebook else []
        print_facts(f"{data}: {plural(n_records, 'record')} released.", facts)


def _by_rule(
    data: str,
    output: str,
    column: str,
    shuffle: bool,
    spreadsheet_safe: bool,
    seed: int | None,
    delimiter: str | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    from .release_rule import release_by_rule

    others = ("public", "keep_all", "keep_public", "keep_private", "codebook")
    if meant := [name for name in others if given[name]]:
        raise InvalidInputError(
            f"{meant[0]} belongs to mechanism; leave it out with rule.", names=(*others, "mechanism", "rule")
        )
    if column != "z" or given["unknown"] != "error":
        raise InvalidInputError(
            "column and unknown belong to mechanism; a rule names its column z and takes every record.",
            names=("column", "unknown", "mechanism"),
        )
    release_by_rule(
        data,
        given["rule"],
        output,
        values=given["values"] or "draw",
        keep=tuple(given["keep"] or ()),
        shuffle=shuffle,
        spreadsheet_safe=spreadsheet_safe,
        seed=seed,
        key=given["key"],
        person=given["id"],
        gaps=given["missing_text"] or (),
        delimiter=delimiter,
        as_json=as_json,
    )


def _write_codebook(path: str, columns: dict[str, Any], spreadsheet_safe: bool) -> None:
    import pyarrow as pa

    from ..files import open_writer

    with open_writer(path, spreadsheet_safe=spreadsheet_safe) as writer:
        writer.write(pa.table(columns))


def load_mechanism(path: str) -> TableMechanism:
    from ..mechanism import TableMechanism
    from ..persistence import load

    mechanism = load(path)
    if not isinstance(mechanism, TableMechanism):
        raise InvalidInputError(
            f"{path}: this is a {type(mechanism).__name__.lower()} and not a mechanism; use a file that "
            "'pfunnel solve --output' wrote."
        )
    return mechanism


def _public(mechanism: TableMechanism, named: Sequence[str] | None) -> tuple[str, ...]:
    """The public columns of the table, as many as a letter has parts."""
    from .output import plural

    names = tuple(named or mechanism.x_names)
    letter = mechanism.x_labels[0]
    n_parts = len(letter) if isinstance(letter, tuple) else 1
    if len(names) != n_parts:
        raise InvalidInputError(
            f"the mechanism is for {plural(n_parts, 'column')} ({', '.join(mechanism.x_names)}) and "
            f"{len(names)} {'is' if len(names) == 1 else 'are'} named; pass --public for each, in this order."
        )
    return names


def _releasing(table: TableFile, mechanism: TableMechanism, public: Any, how: Any, n_jobs: int) -> Any:
    """The table on its way out, or what is wrong with it in the words of the command."""
    from ..streams import TableRelease

    try:
        return TableRelease(table, mechanism, public, how, n_jobs)
    except InvalidInputError as error:
        told = str(error).replace("pass another name as output", "choose another --column")
        raise InvalidInputError(told.replace("output names", "--column names"), names=error.names) from None


def _warn(
    kept: Sequence[str], public: Sequence[str], private: Sequence[str], keep_all: bool, seed: int | None
) -> None:
    if public:
        warn(f"--keep-public: whoever sees {', '.join(public)} needs no z; keep this table to yourself.")
    if there := [name for name in private if name in kept]:
        warn(f"--keep-private: the private {', '.join(there)} is in the output; keep this table to yourself.")
    if others := [name for name in kept if name not in (*private, *public)]:
        unnamed = "" if private or not keep_all else "the private column may be among them; "
        warn(
            f"the mechanism does not protect what these columns tell: {', '.join(others)}; {unnamed}measure "
            "it with 'pfunnel audit --keep COLUMN'."
        )
    if seed is not None:
        warn_of_seed()


def _generator(seed: int | None) -> Any:
    import numpy as np

    return None if seed is None else np.random.default_rng(seed)
