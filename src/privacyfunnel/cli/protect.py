"""pfunnel protect: a table in, a table of the same columns out, with a limit that no adversary exceeds."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError, shortened
from . import options
from .checks import check_delimiter, check_outputs, check_spreadsheet_safe, check_table_name, is_csv
from .options import Option, columns

if TYPE_CHECKING:
    from ..certified import CertifiedFunnel


def _share(value: Any) -> Any:
    """70% and .7 as 0.7."""
    if value is None:
        return None
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 < number <= 1:
        raise typer.BadParameter(f"it must be a share such as 70% or 0.7, and is {text}")
    return number


LIMITS = {
    "max_leakage": Option("Limit: bits that anybody can learn about the private column.", metavar="BITS"),
    "max_success": Option(
        "Limit: how often anybody can be right about it, such as 70%.",
        kind=str,
        metavar="SHARE",
        check=_share,
    ),
    "max_parity": Option(
        "Limit: how differently any decision made from the release can treat two groups, such as 10%.",
        kind=str,
        metavar="SHARE",
        check=_share,
    ),
    "keep_variance": Option(
        "Instead: the least telling release that keeps this share of the variance, such as 50%.",
        kind=str,
        metavar="SHARE",
        check=_share,
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
        str, typer.Argument(metavar="TABLE", help="The table: .csv, .tsv (both also .gz) or .parquet.")
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
    once and hand out the result: a second release of the same people tells more.
    """
    from .output import print_json

    begun = time.perf_counter()
    named = [name for name in LIMITS if given[name] is not None]
    if len(named) > 1:
        raise InvalidInputError(f"pass one of {', '.join(LIMITS)}; got {' and '.join(named)}.", names=LIMITS)
    for name in given["drop"] or ():
        if name in [*private, given["task"], given["groups"]]:
            raise InvalidInputError(
                f"drop names {shortened(name)}, which is needed; the private column, the task and the groups "
                "are left out of what is released without it.",
                names=("drop",),
            )
    book = f"{output.removesuffix('.gz').rpartition('.')[0]}-codebook.csv"
    check_outputs([output, book, given["card"]], [data])
    check_table_name(output)
    check_spreadsheet_safe(spreadsheet_safe, output)
    check_delimiter(delimiter, [data, output])
    frame = _read(data, delimiter, [*private, given["task"], given["groups"]], given["drop"] or ())
    try:
        funnel = _fitted(frame, private, named, given)
    except InvalidInputError as error:
        raise type(error)(f"{data}: {error}", names=error.names) from None
    told = _before_and_after(funnel, frame, private)
    if given["rule"] is not None:
        funnel.save(given["rule"], part="release")
    n_records = _write(funnel, frame, output, book, given["records"], delimiter, spreadsheet_safe)
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
        "variance_kept": funnel.verdict_.variance,
        "kept_by_column": funnel.kept_by_column(),
        "task_score": funnel.verdict_.score,
        "task_score_before": funnel.verdict_.score_before,
        "n_records": n_records,
        "output": output,
        "codebook": book,
        "rule": given["rule"],
        "card": given["card"],
        "notes": list(funnel.notes_),
        "seconds": time.perf_counter() - begun,
    }
    if given["card"] is not None:
        from ..persistence import write_atomic

        write_atomic(given["card"], _card(values))
    if as_json:
        print_json(values)
    else:
        _print(values)


def _read(data: str, delimiter: str | None, wanted: Sequence[str | None], drop: Sequence[str]) -> Any:
    from ..files import open_table
    from ..files.typed import read_typed

    table = open_table(data, delimiter=delimiter if is_csv(data) else None)
    table.require([*(name for name in wanted if name is not None), *drop])
    frame = read_typed(table)
    if not len(frame):
        raise InvalidInputError(f"{data}: there are no records; pass a table with at least one row.")
    return frame.drop_columns(list(drop)) if drop else frame


def _fitted(
    frame: Any, private: Sequence[str], named: Sequence[str], given: dict[str, Any]
) -> CertifiedFunnel:
    from ..certified import CertifiedFunnel

    limit = named[0] if named else None
    leakage = {"max_success": "success", "max_parity": "parity"}.get(limit or "", "information")
    by_variance = limit == "keep_variance"
    funnel = CertifiedFunnel(
        None if limit is None or by_variance else given[limit],
        leakage=leakage,
        n_cells=given["n_cells"] or "auto",
        utility="distance" if by_variance else None,
        confidence=given["confidence"],
        random_state=given["seed"],
    ).fit(frame, private=list(private), task=given["task"], groups=given["groups"])
    return funnel.choose(keep_variance=given["keep_variance"]) if by_variance else funnel


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
    return [{"column": schema.names[i], "before": before[i], "after": after[i]} for i in order.tolist()]


def _write(
    funnel: CertifiedFunnel,
    frame: Any,
    output: str,
    book: str,
    records: str,
    delimiter: str | None,
    spreadsheet_safe: bool,
) -> int:
    """The released table in random order, and the codebook beside it."""
    from ..files import open_writer
    from ..files.base import BATCH_ROWS

    with open_writer(
        output,
        delimiter=delimiter if is_csv(output) else None,
        spreadsheet_safe=spreadsheet_safe,
        shuffle=True,
    ) as writer:
        for start in range(0, len(frame), BATCH_ROWS):
            writer.write(funnel.release(frame.slice(start, BATCH_ROWS), records=records))
    with open_writer(book, spreadsheet_safe=spreadsheet_safe) as writer:
        writer.write(funnel.describe())
    return len(frame)


def _print(values: dict[str, Any]) -> None:
    from .output import plural, print_facts

    unit = " bit" if values["leakage"] == "information" else ""
    limits = ", ".join(f"{name} ≤ {value:.4g}{unit}" for name, value in values["certificate"].items())
    words = {
        "information": "bits learned",
        "success": "share guessed right",
        "parity": "difference of groups",
    }
    chosen = {
        "knee": "no limit was set: the knee of the certified trade-off was taken",
        "keep_variance": "the least telling of the certified trade-off that keeps so much",
    }.get(values["limit"], words[values["leakage"]])
    facts = [
        (
            "Guaranteed",
            limits,
            f"{chosen}; for every adversary, {100 * values['confidence']:g} %, by "
            f"{plural(values['n_certifying'], 'record')} that had no part in it",
        )
    ]
    for i, one in enumerate(values["told"]):
        facts.append(
            (
                "Told" if i == 0 else "",
                f"{one['column']}: ≈ {one['before']:.4f} → ≈ {one['after']:.4f} bit",
                "by itself about " + " × ".join(values["private"]) + ", estimated on these records"
                if i == 0
                else "",
            )
        )
    kept = sorted(values["kept_by_column"].items(), key=lambda item: -item[1])
    facts += [
        (
            "Kept",
            f"{100 * values['variance_kept']:.0f} % of the variance",
            "; ".join(f"{name} {100 * max(share, 0):.0f} %" for name, share in kept),
        ),
        (
            "Rule",
            f"{plural(values['n_cells'], 'kind')} of records → {plural(values['n_symbols'], 'symbol')}",
            "",
        ),
        *[("Column", note, "") for note in values["notes"] if "left out" in note or "number:" in note],
        ("Saved", values["output"], f"{plural(values['n_records'], 'row')} in random order"),
        ("Codebook", values["codebook"], "what each symbol stands for"),
    ]
    if values["rule"]:
        facts.append(
            (
                "Rule for new",
                values["rule"],
                f"pfunnel release NEW.csv --rule {values['rule']} --output safe.csv",
            )
        )
    facts += [("Card", values["card"], "")] if values["card"] else []
    facts.append(("Time", f"{values['seconds']:.1f} s", ""))
    print_facts(values["verdict"], facts)


def _card(values: dict[str, Any]) -> str:
    unit = " bit" if values["leakage"] == "information" else ""
    guaranteed = [f"- {name}: at most {value:.4g}{unit}" for name, value in values["certificate"].items()]
    lines = [
        f"# Release card: {os.path.basename(values['output'])}",
        "",
        values["verdict"],
        "",
        f"Guaranteed with {100 * values['confidence']:g} % confidence, against every adversary, by "
        f"{values['n_certifying']:,} records that had no part in making the rule:",
        "",
        *guaranteed,
        "",
        "This and the sentence above hold with this confidence each, not together. "
        "It is about one release of a new person's row from the same population, averaged over people. It is "
        "not about a second release of the same people, about other populations, about columns handed out "
        "beside the table, or about attributes that nobody named. Texts, and ranges that numbers and dates "
        "were drawn from, are shared by 10 records or more.",
        "",
        "| column | variance kept |",
        "|---|---|",
        *[f"| {name} | {100 * max(share, 0):.0f} % |" for name, share in values["kept_by_column"].items()],
        "",
    ]
    return "\n".join(lines)
