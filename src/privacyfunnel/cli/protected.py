"""What 'pfunnel protect' says: the summary and the card of a release."""

from __future__ import annotations

import os
import shlex
from typing import Any

from ..measured import rounded_up


def print_protected(values: dict[str, Any], again: str = "") -> None:
    """The summary; `again` are options that new records need too."""
    from .output import plural, print_facts
    from .problem import kept_facts

    limits = ", ".join(f"{name} ≤ {_limit(values, value)}" for name, value in values["certificate"].items())
    words = {
        "information": "the most that any adversary learns",
        "success": "the most often that any adversary guesses right",
        "parity": "the most that any decision made from it treats two groups apart",
    }
    chosen = {
        "knee": "no limit was set: the knee of the certified trade-off was taken; for everybody",
        "keep_variance": "the least telling of the certified trade-off that keeps so much; for everybody",
    }.get(values["limit"], words[values["leakage"]])
    facts = [
        (
            "Guaranteed",
            limits,
            f"{chosen}, with {100 * values['confidence']:g} % confidence, from "
            f"{plural(values['n_certifying'], 'record')} that had no part in it. It is about new "
            "people; those of this table made or certified the rule",
        )
    ]
    if inside := values["guessed_inside"]:
        facts.append(
            (
                "In this table",
                ", ".join(f"{name} = {100 * share:.1f} %" for name, share in inside.items()),
                "how often the best guess from a row's symbol is right about these people, computed exactly; "
                "for you alone, as exact numbers can tell what single people have",
            )
        )
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
            f"{100 * max(0, values['variance_kept']):.0f} % of the variance",
            "; ".join(f"{name} {100 * max(0, share):.0f} %" for name, share in kept),
        ),
        *[
            fact
            for one in values["kept"]
            for fact in kept_facts([one], " × ".join(values["private"]), one["chance"])
        ],
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
                f"pfunnel release NEW.csv --rule {shlex.quote(values['rule'])}{again} --output "
                f"{shlex.quote(_another(values['output']))}",
            )
        )
    facts += [("Card", values["card"], "")] if values["card"] else []
    facts.append(("Time", f"{values['seconds']:.1f} s", ""))
    print_facts(values["verdict"], facts)


def _another(output: str) -> str:
    """A name of the same kind in the same folder: new rows are not to go over those just released."""
    folder, name = os.path.split(output)
    stem, ending = os.path.splitext(name)
    if ending.lower() == ".gz":
        stem, before = os.path.splitext(stem)
        ending = before + ending
    return os.path.join(folder, ("more-2" if stem == "more" else "more") + ending)


def _limit(values: dict[str, Any], value: float) -> str:
    """A limit with its unit: bits, or a share of people."""
    bits = values["leakage"] == "information"
    return f"{rounded_up(value):.4g} bit" if bits else f"{rounded_up(100 * value):.4g} %"


def card_of(values: dict[str, Any]) -> str:
    """A release card in Markdown, in which no name of a column is taken for markup."""
    from ..report.card import plain

    what = {
        "information": "nobody learns more than {} about it",
        "success": "nobody guesses it right more often than {} of the time",
        "parity": "no decision treats two of its groups more than {} apart",
    }[values["leakage"]]
    guaranteed = [
        f"- {plain(name)}: {what.format(_limit(values, value))}"
        for name, value in values["certificate"].items()
    ]
    lines = [
        f"# Release card: {plain(os.path.basename(values['output']))}",
        "",
        plain(values["verdict"]),
        "",
        f"Guaranteed with {100 * values['confidence']:g} % confidence, against every adversary, by "
        f"{values['n_certifying']:,} records that had no part in making the rule:",
        "",
        *guaranteed,
        "",
        "This and the sentence above hold with this confidence each, not together. "
        "It is about one release of a new person's row from the same population, averaged over people. It is "
        "not about the people whose rows are in this table: their records made or certified the rule. Nor is "
        "it about a second release of the same people, about other populations, about columns handed out "
        "beside the table, or about attributes that nobody named. Texts, and ranges that numbers and dates "
        "were drawn from, are shared by 10 records or more.",
        "",
        *(
            [f"Handed out as they are, without any guarantee: {', '.join(map(plain, values['keep']))}.", ""]
            if values["keep"]
            else []
        ),
        "| what was released | |",
        "|---|---|",
        *[f"| {name} | {value} |" for name, value in _released(values)],
        "",
        "| column | variance kept |",
        "|---|---|",
        *[
            f"| {plain(name)} | {100 * max(0, share):.0f} % |"
            for name, share in values["kept_by_column"].items()
        ],
        "",
    ]
    return "\n".join(lines)


def _released(values: dict[str, Any]) -> list[tuple[str, str]]:
    """What a reader of the card asks first. Not the seed, which tells the split, nor how many have what."""
    from datetime import date

    from .. import __version__
    from ..report.card import plain

    rows = {
        "columns": "each column drawn from what is usual for the symbol of its record",
        "typical": "the typical record of the symbol of its record",
        "symbol": "the number of the symbol of its record",
    }
    left_out = [f"{plain(name)} ({plain(why)})" for name, why in values["left_out"].items()]
    return [
        ("rows", f"{values['n_records_read']:,} in, {values['n_records']:,} out, in random order"),
        ("SHA-256 of the file", values["sha256"]),
        ("a row", rows[values["records"]]),
        ("private", ", ".join(map(plain, values["private"]))),
        ("task", plain(values["task"]) if values["task"] else "none"),
        ("columns left out", ", ".join(left_out) or "none"),
        ("made by", f"privacyfunnel {__version__}, {date.today().isoformat()}"),
    ]
