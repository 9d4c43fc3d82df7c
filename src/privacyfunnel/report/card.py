"""The release card: what was released, what was measured about it, and what nobody knows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

from ..auditing import AuditReport, Finding, Verdict
from ..errors import InvalidInputError
from ..persistence import write_atomic
from . import wording

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
        "summary": wording.first_lines(report),
        "card_version": CARD_VERSION,
        "name": str(meta.get("name", "release")),
        "data": {
            "of": wording.basis(report),
            "n_records": meta.get("n_records"),
            "fingerprint": dict(meta.get("fingerprint", {})),
            "private": wording.attributes(report),
            "kept": [str(name) for name in meta.get("kept", ())],
        },
        "mechanism": str(meta.get("mechanism", "")),
        "settings": dict(meta.get("settings", {})),
        "versions": dict(meta.get("versions", {})),
        "beside": wording.kept_sentences(report),
        "numbers": [one.to_dict() for one in _headline(report)],
        "verdicts": [one.to_dict() for one in verdicts],
        "audited": list(meta.get("audited", ())),
        "not_audited": list(meta.get("not_audited", ())),
        "limits": wording.limits(report),
    }


def _headline(report: AuditReport) -> list[Finding]:
    """The numbers a reader needs first, for each attribute."""
    found: list[Finding | None] = []
    for name in wording.attributes(report):
        one = wording.told(report, name)
        found += [one.best, one.most, one.chance, one.raw, *one.leaked.findings]
        found += [one.lift, one.group, *one.unmeasured]
    found += wording.bracket(report, "utility").findings
    found += [wording.first(report, quantity) for quantity in ("psnr", "ssim")]
    found += [one for one in report.findings if one.quantity.startswith("task") and one.on == "Z"]
    found += wording.kept_found(report)
    # The strongest adversary of all may see kept columns, and is then there twice.
    return list(dict.fromkeys(one for one in found if one is not None))


def card_markdown(card: Mapping[str, Any]) -> str:
    """The card as a page of Markdown."""
    lines = [part for one in card["summary"] for part in (plain(one), "")]
    lines += [f"# Release card: {plain(card['name'])}", ""]
    lines += [f"**Mechanism.** {plain(card['mechanism'])}"]
    if card["verdicts"]:
        lines += _section("Verdict", (plain(one["sentence"]) for one in card["verdicts"]))
    if card["beside"]:
        lines += _section("What is handed out beside the release", map(plain, card["beside"]))
    lines += _section("Numbers", ())
    lines += [
        "= exact, ≥ lower bound (another adversary may reach more), ≤ upper bound, ≈ estimate.",
        "",
        "| quantity | of | found by | on | value | interval | n | seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for values in card["numbers"]:
        one = Finding.from_dict(values)
        size = "–" if one.n_samples is None else f"{one.n_samples:,}"
        cells = [one.quantity, one.attribute, one.source, wording.view(one.on), wording.signed(one)]
        cells += [_level(one), size, "–" if one.seed is None else str(one.seed)]
        lines.append("| " + " | ".join(map(plain, cells)) + " |")
    data = card["data"]
    of = f"{data['of']}; private: {plain(', '.join(data['private']) or 'not named')}"
    prints = [f"fingerprint of {plain(name)}: `{digest}`" for name, digest in data["fingerprint"].items()]
    lines += _section("Data", [of, *prints])
    lines += _section("What was audited", map(plain, card["audited"]))
    lines += _section("What was not audited", map(plain, card["not_audited"]))
    lines += _section("Limits", (f"**{name}.** {plain(words)}" for name, words in card["limits"].items()))
    settings = {**card["settings"], **card["versions"]}
    shown = {
        name: ", ".join(map(str, one)) if isinstance(one, list) else one for name, one in settings.items()
    }
    lines += _section("Settings", (f"{plain(name)}: {plain(value)}" for name, value in shown.items()))
    return "\n".join(lines) + "\n"


def _section(title: str, items: Iterable[str]) -> list[str]:
    return ["", f"## {title}", "", *(f"- {one}" for one in items)]


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
    return (
        f"{wording.interval(finding)} ({100 * finding.confidence:g} %)"
        if finding.interval is not None
        else "–"
    )


def plain(value: object) -> str:
    """A value as plain text in Markdown: nothing in it is taken for markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(str(value).split()))
