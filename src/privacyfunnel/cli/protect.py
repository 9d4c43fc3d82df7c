"""pfunnel protect: a table in, a table of the same columns out, with a limit that no adversary exceeds."""

from __future__ import annotations

import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError, shortened
from ..progress import say_first, status_line
from . import options
from .budget import share
from .checks import (
    as_text_file,
    check_delimiter,
    check_new_folder,
    check_outputs,
    check_spreadsheet_safe,
    check_table_name,
    written_delimiter,
)
from .options import Option, columns
from .protect_inputs import large_table, read_table, warn_of_others, warn_of_texts, without_gaps, written_in
from .running import warn

if TYPE_CHECKING:
    from ..certified import CertifiedFunnel


#: What making a rule takes on a core, as measured with Adult; beyond these records it takes little more.
SECONDS_AT_LEAST, SECONDS_PER_RECORD, MOST_SHAPING = 2.0, 6e-4, 50_000
#: From so many seconds on it is said beforehand.
SECONDS_SAID = 10.0


def _less_than_all(value: str | None) -> float | None:
    """A share of what there is to know: neither nothing, which limits nothing, nor all."""
    found = share(value)
    if found is not None and not 0 < found < 1:
        raise typer.BadParameter(
            f"it is more than 0% and less than 100%, such as 95%, and is {value}; nothing but saying nothing "
            "removes all"
        )
    return found


def _some_bits(value: float | None) -> float | None:
    """Refused here, where the option is known that was typed: the funnel calls every limit max_leakage."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"it must be a finite number, more than 0, and is {value:g}")
    return value


def _some_share(value: str | None) -> float | None:
    """As `_some_bits`; in one sentence with what is no share at all."""
    try:
        found = share(value)
    except typer.BadParameter:
        found = 0.0
    if found == 0:
        raise typer.BadParameter(f"it is a share of more than 0%, such as 70% or 0.7, and is {value}")
    return found


LIMITS = {
    "max_leakage": Option(
        "Limit: bits that anybody can learn about the private column.", metavar="BITS", check=_some_bits
    ),
    "max_success": Option(
        "Limit: how often anybody can be right about it, such as 70%.",
        kind=str,
        metavar="SHARE",
        check=_some_share,
    ),
    "max_advantage": Option(
        "Limit: the same, as what the release may add to the share of right guesses without it, such as 5%.",
        kind=str,
        metavar="SHARE",
        check=_some_share,
    ),
    "remove": Option(
        "Limit: how much of all there is to know about it stays unknown to everybody, such as 95%; the rest "
        "is a limit in bits.",
        kind=str,
        metavar="SHARE",
        check=_less_than_all,
    ),
    "max_parity": Option(
        "Limit: how differently any decision made from the release can treat two groups, such as 10%.",
        kind=str,
        metavar="SHARE",
        check=_some_share,
    ),
    "keep_variance": Option(
        "Instead: the least telling release that keeps this share of the variance, such as 50%.",
        kind=str,
        metavar="SHARE",
        check=share,
    ),
}
MORE = {
    "task": Option("The column that the release is to be useful for.", "none", str, metavar="COLUMN"),
    "groups": Option(
        "The column that says who a record belongs to, where people have several.",
        "each record is somebody else's",
        str,
        metavar="COLUMN",
    ),
    "drop": columns("Leave this column out altogether. Repeat for several.", "none"),
    "keep": columns(
        "Hand this column out as it is, beside the others: what it tells, alone and with the release, is "
        "measured. It is no part of what is protected. Repeat for several.",
        "none",
    ),
    "missing": Option(
        "What a missing private value or task (in CSV an empty field) is: an error, or a value of its own.",
        kind=str,
        choices=("error", "letter"),
        value="error",
    ),
    "missing_text": options.MISSING_TEXT,
    "records": Option(
        "What stands for a symbol: each column drawn from what is usual for it, its average or commonest "
        "values, or its number.",
        kind=str,
        choices=("columns", "typical", "symbol"),
        value="columns",
    ),
    "n_cells": Option("How many kinds of records are told apart.", "as many as the records pay for", int),
    "confidence": Option("Of the guarantee; one-sided.", value=0.95),
    "rule": Option(
        "Save what releases in this folder, for new records: 'pfunnel release NEW.csv --rule FOLDER'.",
        "not saved",
        str,
        metavar="FOLDER",
    ),
    "card": options.file("Write what was released and what is guaranteed here.", default="not written"),
    "seed": Option(
        "Makes the split of the records and the rule repeatable; what is drawn for people is not.",
        kind=int,
        least=0,
    ),
}


@options.with_options({**LIMITS, **MORE}, before="spreadsheet_safe")
def protect(
    data: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="The table: .csv, .tsv (both also .gz), .parquet or .arrow, or a folder of Parquet files.",
        ),
    ],
    private: options.Private,
    output: Annotated[
        str,
        options.output(
            "Where the table goes: .csv, .tsv (both also .gz) or .parquet. Its codebook lies beside it."
        ),
    ],
    spreadsheet_safe: options.SpreadsheetSafe = False,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
    **given: Any,
) -> None:
    """Replace a table by one of the same columns that tells little about the private ones, guaranteed.

    Two thirds of the records make the rule, the others certify it: of a new person's row nobody learns more
    than the limit, whatever he knows and however he computes, with 95 % confidence. Every row is made anew
    from a symbol that many people share; no record is copied, and the private column is left out.

    Without a limit the knee of the certified trade-off is taken. Rows come in random order. Protect a table
    once and hand out the result: a second release of the same people tells more. Large files, and folders of
    Parquet files, are read batch by batch and need not fit in memory.
    """
    from ..certified.categories import shares_in_tens
    from .output import print_json
    from .protect_told import before_and_after, guessed_inside, kept_columns, rounded
    from .protected import card_of, print_protected

    begun = time.perf_counter()
    named = [name for name in LIMITS if given[name] is not None]
    if len(named) > 1:
        raise InvalidInputError(f"pass one of {', '.join(LIMITS)}; got {' and '.join(named)}.", names=LIMITS)
    keep = tuple(dict.fromkeys(given["keep"] or ()))
    _check_names(private, given, keep)
    book = _beside(output)
    check_outputs([output, book, given["card"]], [data])
    if given["rule"] is not None:
        check_new_folder(given["rule"], [data, output, book])
    if os.path.exists(output):
        warn(
            f"{output} is there and will be replaced; if it was handed out, hand out no other release of the "
            "same people: two tell more than one."
        )
    check_table_name(output)
    check_spreadsheet_safe(spreadsheet_safe, output)
    check_delimiter(delimiter, [data, output])
    told_of = [*private, *([given["task"]] if given["task"] else [])]
    large = large_table(data, delimiter, told_of, given)
    if large is None:
        frame = read_table(data, delimiter, [*told_of, given["groups"], *keep], given)
        frame = without_gaps(data, frame, told_of, given)
        records = frame.drop_columns([name for name in keep if name != given["task"]])
    else:
        records = large
    try:
        with _watched(data, None if large is not None else len(frame)):
            funnel = _fitted(records, private, named, given)
    except InvalidInputError as error:
        message = _as_typed(str(error).removeprefix("fit: "), named, given)  # nobody has typed fit
        raise type(error)(f"{data}: {message}", names=error.names) from None
    if large is not None:
        assert funnel.people_ is not None
        frame = funnel.people_.frame  # a sample
        warn_of_texts(data, frame)
    assert funnel.rule_.tables is not None
    warn_of_others(funnel.rule_.tables.schema.columns)
    told = before_and_after(funnel, frame, private)
    if keep:
        warn(f"the guarantee is not about what these columns tell: {', '.join(keep)}.")
    if given["rule"] is not None:
        funnel.save(given["rule"], part="release")
    if large is None:
        released = _released(funnel, frame, given["records"], keep)
    else:
        released = _streamed(funnel, large, given["records"])
    how = {
        "delimiter": written_delimiter(delimiter, data, output),
        "spreadsheet_safe": spreadsheet_safe,
        "forms": written_in(data, delimiter, given["missing_text"]),
    }
    n_records = _write(funnel, released, output, book, how)
    joint, certified = funnel.made_.problem.joint, funnel.made_.problem.n_held_out
    values = {
        "command": "protect",
        "data": data,
        "private": list(private),
        "task": given["task"],
        "verdict": str(funnel.verdict_),
        "limit": named[0] if named else "knee",
        "certificate": {name: one.value for name, one in funnel.certificates_.items()},
        "leakage": funnel.leakage,
        "confidence": given["confidence"],
        "n_certifying": funnel.certificate_.n_samples,
        "n_cells": funnel.rule_.cells.n_cells,
        "n_symbols": funnel.rule_.n_symbols,
        "told": told,
        "variance_kept": round(funnel.verdict_.variance, 2),
        "kept_by_column": {name: round(kept, 2) for name, kept in funnel.kept_by_column().items()},
        "task_score": rounded(funnel.verdict_.score),
        "task_score_before": rounded(funnel.verdict_.score_before),
        "guessed_inside": {} if large is not None else guessed_inside(funnel, frame, private),
        "keep": list(keep),
        "kept": kept_columns(funnel, frame, private, keep),
        "chance": float(shares_in_tens(joint.p_y * (joint.n_samples or 0)).max()),
        "records": given["records"],
        "n_records_read": len(frame) if large is None else (joint.n_samples or 0) + certified,
        "n_records": n_records,
        "left_out": _left_out(funnel, private, given),
        "output": output,
        "sha256": _sha256(output),
        "codebook": book,
        "rule": given["rule"],
        "card": given["card"],
        "notes": list(funnel.notes_),
        "seconds": time.perf_counter() - begun,
    }
    if given["card"] is not None:
        from ..persistence import write_atomic

        write_atomic(given["card"], card_of(values))
    if as_json:
        print_json(values)
    else:
        print_protected(values, as_text_file(delimiter, given["missing_text"]))


@contextmanager
def _watched(data: str, n_records: int | None) -> Iterator[None]:
    """Show that a rule is being made, and roughly for how long; what comes in batches has bars of its own."""
    if n_records is None:
        yield
        return
    seconds = SECONDS_AT_LEAST + SECONDS_PER_RECORD * min(n_records, MOST_SHAPING)
    if seconds >= SECONDS_SAID:
        say_first(f"Protecting {data}: about {round(seconds, -1):.0f} s of computing (a rough guess).")
    with status_line("Protecting") as show:
        show(f"making and certifying a rule from {n_records:,} records")
        yield


def _sha256(path: str) -> str:
    """What ties the card to the file that was handed out."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_names(private: Sequence[str], given: dict[str, Any], keep: Sequence[str]) -> None:
    """Refuse columns that are dropped or kept and cannot be."""
    for name in given["drop"] or ():
        if name in [*private, given["task"], given["groups"], *keep]:
            raise InvalidInputError(
                f"drop names {shortened(name)}, which is needed; the private column, the task and the groups "
                "are left out of what is released without it.",
                names=("drop",),
            )
    if hidden := [name for name in keep if name in private]:
        raise InvalidInputError(
            f"keep names {shortened(hidden[0])}, which is private; leave it out.", names=("keep",)
        )


def _beside(output: str) -> str:
    """The name of the codebook: that of the table with its own ending, so that no two tables share one."""
    stem, dot, ending = output.rpartition(".")
    if ending.lower() == "gz":
        stem, dot, ending = stem.rpartition(".")
    return f"{stem}-codebook{dot}{ending}"


def _fitted(
    frame: Any, private: Sequence[str], named: Sequence[str], given: dict[str, Any]
) -> CertifiedFunnel:
    from ..certified import CertifiedFunnel

    limit = named[0] if named else None
    shares = {"max_success": "success", "max_advantage": "success", "max_parity": "parity"}
    leakage = shares.get(limit or "", "information")
    by_variance = limit == "keep_variance"
    most = None if limit is None or by_variance else given[limit]
    ways: dict[str | None, Callable[[Any], Any]] = {"max_advantage": _above_chance, "remove": _left_untold}
    if limit in ways:
        most = ways[limit](most)
    funnel = CertifiedFunnel(
        most,
        leakage=leakage,
        n_cells=given["n_cells"] or "auto",
        utility="distance" if by_variance else None,
        confidence=given["confidence"],
        random_state=given["seed"],
    ).fit(frame, private=list(private), task=given["task"], groups=given["groups"])
    return funnel.choose(keep_variance=given["keep_variance"]) if by_variance else funnel


def _as_typed(message: str, named: Sequence[str], given: dict[str, Any]) -> str:
    """A message about a limit with the limit as it was asked for: 90 % and not only the bits it comes to."""
    if not named:
        return message
    limit, value = named[0], given[named[0]]
    option = f"--{limit.replace('_', '-')}"
    if limit == "max_leakage":
        return re.sub(r"^A limit of ", f"{option} ", message)
    became = {"max_advantage": r", in all \1", "remove": r" (\1)"}.get(limit, "")
    return re.sub(r"^A limit of (\S+ (?:bit|%))", f"{option} {100 * value:g}%{became}", message)


def _above_chance(advantage: Any) -> Callable[[Any], float]:
    return lambda shares: min(float(shares.max()) + advantage, 1.0)


def _left_untold(removed: float) -> Callable[[Any], float]:
    from ..information import entropy

    return lambda shares: (1 - removed) * entropy(shares)


def _left_out(funnel: CertifiedFunnel, private: Sequence[str], given: dict[str, Any]) -> dict[str, str]:
    """Why columns of the table are not in the release, by their names."""
    assert funnel.rule_.tables is not None
    known = dict.fromkeys(private, "private") | dict.fromkeys(given["drop"] or (), "as asked")
    if given["groups"] is not None:
        known[given["groups"]] = "it says whose record a row is"
    return {**known, **{k: why for k, why in funnel.rule_.tables.schema.dropped.items() if k not in known}}


def _released(funnel: CertifiedFunnel, frame: Any, records: str, keep: Sequence[str]) -> Iterator[Any]:
    from ..files.base import BATCH_ROWS

    for start in range(0, len(frame), BATCH_ROWS):
        yield funnel.release(frame.slice(start, BATCH_ROWS), records=records, keep=keep)


def _streamed(funnel: CertifiedFunnel, table: Any, records: str) -> Iterator[Any]:
    from ..certified.streaming import RuleRelease

    return RuleRelease(table, funnel.rule_, records, (), None).tables()


def _write(
    funnel: CertifiedFunnel, released: Iterator[Any], output: str, book: str, how: dict[str, Any]
) -> int:
    """The released table in random order, and the codebook beside it; how many records there are."""
    from ..files import open_writer
    from ..streams import written

    with open_writer(output, shuffle=True, **how) as writer:
        n_records = written(writer, released)
    with open_writer(book, spreadsheet_safe=how["spreadsheet_safe"]) as writer:
        writer.write(funnel.describe())
    return n_records
