"""The release card: what was released, what was measured about it, and what nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from ..audit import AuditReport, Finding, Verdict
from ..errors import InvalidInputError
from ..persistence import write_atomic
from .beside import kept_found, kept_sentences
from .summary import (
    before,
    bracket,
    chance,
    first,
    first_lines,
    largest_lift,
    smallest_group,
    strongest,
    unmeasured,
)
from .wording import attributes, basis, interval, signed, view

CARD_VERSION = 2


def release_card(report: AuditReport, verdicts: Sequence[Verdict] = ()) -> dict[str, Any]:
    """The card of an audited release as JSON types.

    Parameters
    ----------
    report : AuditReport
    verdicts : sequence of Verdict
        What `report.gate` gave, where limits were set.
    """
    report = report.published()
    meta = report.meta
    return {
        "summary": first_lines(report),
        "card_version": CARD_VERSION,
        "name": str(meta.get("name", "release")),
        "data": {
            "of": basis(report),
            "n_records": meta.get("n_records"),
            "fingerprint": dict(meta.get("fingerprint", {})),
            "private": attributes(report),
            "kept": [str(name) for name in meta.get("kept", ())],
        },
        "mechanism": str(meta.get("mechanism", "")),
        "settings": dict(meta.get("settings", {})),
        "versions": dict(meta.get("versions", {})),
        "beside": kept_sentences(report),
        "numbers": [one.to_dict() for one in _headline(report)],
        "verdicts": [one.to_dict() for one in verdicts],
        "audited": list(meta.get("audited", ())),
        "not_audited": list(meta.get("not_audited", ())),
        "limits": limits(report),
    }


def _headline(report: AuditReport) -> list[Finding]:
    """The numbers a reader needs first, for each attribute."""
    found: list[Finding | None] = []
    for name in attributes(report):
        best = strongest(report, name)
        found += [best, chance(report, name), None if best is None else before(report, best)]
        found += bracket(report, "leakage", name).findings
        found += [largest_lift(report, name), smallest_group(report, name), *unmeasured(report, name)]
    found += [*bracket(report, "utility").findings, first(report, "psnr"), first(report, "ssim")]
    found += [one for one in report.findings if one.quantity.startswith("task") and one.on == "Z"]
    found += kept_found(report)
    # The strongest adversary of all may see kept columns, and is then there twice.
    return list(dict.fromkeys(one for one in found if one is not None))


def limits(report: AuditReport) -> dict[str, str]:
    """What the numbers do not cover, in plain words."""
    tried = [str(name) for name in report.meta.get("settings", {}).get("adversaries", ())]
    many = report.find("many-draws difference")
    if many:
        most = max(many, key=lambda one: one.value)
        repeated = (
            f"With {view(most.on)}, {most.source} guesses {signed(most)} more than with one. Still more "
            "releases tell still more."
        )
    else:
        repeated = (
            "Everything here holds for one release of each record. A second release of the same record, even "
            "with new noise, tells more, and many may tell all."
        )
    exact = any(one.kind == "exact" for one in report.findings)
    kept = ", ".join(map(str, report.meta.get("kept", ())))
    listed = f" Tried were: {', '.join(tried)}." if tried else ""
    return {
        "Columns beside the release": (
            f"What these columns tell beside the release was measured: {kept}. Any other column that is "
            "handed out tells more than is said here."
            if kept
            else "The numbers are about the release alone. A file that hands out other columns beside it "
            "tells more; audit it with the columns that are kept."
        ),
        "Repeated releases": repeated,
        "Auxiliary knowledge": (
            "The adversaries know the release and the private attribute of other people. Somebody who also "
            "knows other things about a person, such as columns of another table, can combine them."
        ),
        "Distribution shift": (
            "The numbers are about the joint distribution that was given and about no other."
            if exact and report.meta.get("n_records") is None
            else "The numbers are about people like those in the audited records. For others, and in later "
            "years, they can be worse."
        ),
        "Adversaries not tried": (
            "The numbers are exact and hold for every adversary who sees one release."
            if exact and report.meta.get("n_records") is None
            else "Exact values and upper bounds hold for every adversary who sees one release. A success "
            "or a lower bound says only what the adversaries tried reached: one with more records, more time "
            f"or a better idea may reach more.{listed}"
        ),
        "Records the mechanism was made from": (
            "On the records that a mechanism was trained on, leakage looks smaller than on new ones. The "
            "audit cannot see which they were."
        ),
    }


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card as a page of Markdown."""
    lines = [part for one in card["summary"] for part in (_text(one), "")]
    lines += [f"# Release card: {_text(card['name'])}", ""]
    lines += [f"**Mechanism.** {_text(card['mechanism'])}", ""]
    if card["verdicts"]:
        lines += ["## Verdict", ""]
        lines += [f"- {_text(one['sentence'])}" for one in card["verdicts"]]
        lines += [""]
    if card["beside"]:
        lines += ["## What is handed out beside the release", ""]
        lines += [f"- {_text(one)}" for one in card["beside"]]
        lines += [""]
    lines += ["## Numbers", ""]
    lines += [
        "= exact, ≥ lower bound (another adversary may reach more), ≤ upper bound, ≈ estimate.",
        "",
        "| quantity | of | found by | on | value | interval | n | seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for values in card["numbers"]:
        one = Finding.from_dict(values)
        size = "–" if one.n_samples is None else f"{one.n_samples:,}"
        cells = [one.quantity, one.attribute, one.source, view(one.on), signed(one), _level(one), size]
        lines.append("| " + " | ".join(map(_text, [*cells, "–" if one.seed is None else one.seed])) + " |")
    data = card["data"]
    lines += ["", "## Data", ""]
    lines.append(f"- {data['of']}; private: {_text(', '.join(data['private']) or 'not named')}")
    lines += [f"- fingerprint of {_text(name)}: `{digest}`" for name, digest in data["fingerprint"].items()]
    for title, sentences in (
        ("What was audited", card["audited"]),
        ("What was not audited", card["not_audited"]),
    ):
        lines += ["", f"## {title}", "", *(f"- {_text(one)}" for one in sentences)]
    lines += ["", "## Limits", ""]
    lines += [f"- **{name}.** {_text(words)}" for name, words in card["limits"].items()]
    lines += ["", "## Settings", ""]
    for name, value in {**card["settings"], **card["versions"]}.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        lines.append(f"- {_text(name)}: {_text(shown)}")
    return "\n".join(lines) + "\n"


def save_card(
    report: AuditReport, path: str | PathLike[str], verdicts: Sequence[Verdict] = ()
) -> tuple[str, str]:
    """Write the card as Markdown and, beside it under the same name, as JSON; the two names.

    Parameters
    ----------
    report : AuditReport
    path : str or path
        Ends in .md.
    verdicts : sequence of Verdict
    """
    page, twin = card_names(path)
    card = release_card(report, verdicts)
    write_atomic(page, card_markdown(card))
    write_atomic(twin, json.dumps(card, ensure_ascii=False, allow_nan=False, indent=2) + "\n")
    return page, twin


def card_names(path: str | PathLike[str]) -> tuple[str, str]:
    """The names of the two files of a card."""
    page = fspath(path)
    if not page.lower().endswith(".md"):
        raise InvalidInputError(f"{page}: the name of a card must end in .md; its JSON goes beside it.")
    return page, page[:-3] + ".json"


def _level(finding: Finding) -> str:
    return f"{interval(finding)} ({100 * finding.confidence:g} %)" if finding.interval is not None else "–"


def _text(value: object) -> str:
    """A value as plain text in Markdown: nothing in it is taken for markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(str(value).split()))
