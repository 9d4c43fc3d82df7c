"""pfunnel protect: a table in, a table of the same columns out, with a limit that no adversary exceeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError, shortened
from . import options
from .budget import share
from .checks import (
    check_delimiter,
    check_new_folder,
    check_outputs,
    check_spreadsheet_safe,
    check_table_name,
    is_csv,
)
from .options import Option, columns
from .protect_inputs import large_table, read_table, warn_of_others, warn_of_texts, without_gaps, written_in
from .running import warn

if TYPE_CHECKING:
    from ..certified import CertifiedFunnel


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
    "missing_text": Option(
        "A text that means a missing value in the CSV file, such as NA. Repeat for several.",
        "none",
        str,
        metavar="TEXT",
        several=True,
    ),
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
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Where the table goes: .csv, .tsv (both also .gz) or .parquet. Its codebook lies beside it.",
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
        funnel = _fitted(records, private, named, given)
    except InvalidInputError as error:
        message = str(error).removeprefix("fit: ")  # nobody has typed that
        raise type(error)(f"{data}: {message}", names=error.names) from None
    if large is not None:
        assert funnel.people_ is not None
        frame = funnel.people_.frame  # a sample
        warn_of_texts(data, frame)
    assert funnel.rule_.tables is not None
    warn_of_others(funnel.rule_.tables.schema.columns)
    told = _before_and_after(funnel, frame, private)
    if keep:
        warn(f"the guarantee is not about what these columns tell: {', '.join(keep)}.")
    if given["rule"] is not None:
        funnel.save(given["rule"], part="release")
    if large is None:
        released = _released(funnel, frame, given["records"], keep)
    else:
        released = _streamed(funnel, large, given["records"])
    how = {
        "delimiter": delimiter if is_csv(output) else None,
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
        "task_score": _rounded(funnel.verdict_.score),
        "task_score_before": _rounded(funnel.verdict_.score_before),
        "keep": list(keep),
        "kept": _kept(funnel, frame, private, keep),
        "chance": float(shares_in_tens(joint.p_y * (joint.n_samples or 0)).max()),
        "records": given["records"],
        "n_records_read": len(frame) if large is None else (joint.n_samples or 0) + certified,
        "n_records": n_records,
        "left_out": _left_out(funnel, private, given),
        "output": output,
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
        print_protected(values)


def _rounded(value: Any, digits: int = 3) -> Any:
    """As the page rounds it: exact figures of two tables that differ in a person tell what is theirs."""
    return round(value, digits) if isinstance(value, float) else value


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


def _kept(
    funnel: CertifiedFunnel, frame: Any, private: Sequence[str], keep: Sequence[str]
) -> list[dict[str, Any]]:
    """What each kept column, and all of them together, tell alone and beside the symbol, on these records."""
    if not keep:
        return []
    from ..joint import Joint
    from .problem import measured_kept

    rule = funnel.rule_
    cell = "cell"
    while cell in frame.column_names:
        cell += "_"
    cells = frame.select([*private, *keep]).append_column(cell, [rule.cells_of(frame)])
    groups = [(name,) for name in keep] + ([tuple(keep)] if len(keep) > 1 else [])
    joints = {}
    for names in groups:
        try:
            joints[names] = Joint.from_frame(
                cells, public=[cell, *names], private=list(private), missing="letter", max_letters=1_000_000
            )
        except InvalidInputError as error:
            warn(f"what {' and '.join(names)} tells beside the release was not measured: {error}")
    found = measured_kept(rule.mechanism, joints)
    return [
        {name: _rounded(value, 4 if "leak" in name else 3) for name, value in one.items()}
        | {"chance": round(float(joints[tuple(one["columns"])].p_y.max()), 3)}  # of the same records
        for one in found
    ]


def _before_and_after(funnel: CertifiedFunnel, frame: Any, private: Sequence[str]) -> list[dict[str, Any]]:
    """What the three columns that told most tell, each by itself, in the table and in the release: bits."""
    import numpy as np

    from ..attributes import read_attributes
    from ..information import mutual_information

    most = 50_000
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:most])
    some = frame.take(rows)
    read = read_attributes({name: some[name] for name in private}, len(some))
    y = np.zeros(len(some), dtype=np.intp)
    for one in read:
        y = y * one.n_classes + one.y
    y = np.unique(y, return_inverse=True)[1]
    assert funnel.rule_.tables is not None
    schema = funnel.rule_.tables.schema

    def told(table: Any) -> list[float]:
        found = []
        for codes in schema.to_codes(table):
            levels = np.unique(codes, return_inverse=True)[1]
            counts = np.zeros((levels.max() + 1, y.max() + 1))
            np.add.at(counts, (levels, y), 1)
            # What chance adds to a count's bits, taken off again.
            chance = (counts.shape[0] - 1) * (counts.shape[1] - 1) / (2 * len(y) * np.log(2))
            found.append(max(mutual_information(counts / counts.sum()) - chance, 0.0))
        return found

    before, after = told(some), told(funnel.release(some))
    order = np.argsort(before)[::-1][:3]
    return [
        {"column": schema.names[i], "before": round(before[i], 4), "after": round(after[i], 4)}
        for i in order.tolist()
    ]


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
