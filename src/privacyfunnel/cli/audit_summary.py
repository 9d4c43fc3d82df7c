"""What `pfunnel audit` prints: the numbers that matter, each with what it is, within 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .output import NumberTable, print_facts, show

if TYPE_CHECKING:
    from ..audit import AuditReport, Finding, Verdict


def print_report(
    report: AuditReport, verdicts: Sequence[Verdict], release: str, written: Sequence[str], seconds: float
) -> None:
    """Facts, one table an attribute, the meaning of the signs, and the verdicts last."""
    from ..report.beside import kept_sentences
    from ..report.summary import first_lines
    from ..report.wording import SIGNS, attributes, basis

    report = report.published()
    names = ", ".join(attributes(report))
    show(*first_lines(report))
    print_facts(f"{release}: {basis(report)}; private: {names}.", _facts(report))
    for name in attributes(report):
        _print_adversaries(report, name)
    if sentences := kept_sentences(report):
        show("", *sentences)
    show(", ".join(f"{sign} {kind}" for kind, sign in SIGNS.items()) + ". Intervals hold each by itself.")
    if written:
        show(f"Saved {', '.join(written)} in {seconds:.1f} s.")
    if verdicts:
        show("", *(one.sentence for one in verdicts))


def _facts(report: AuditReport) -> list[tuple[str, str, str]]:
    from ..report.summary import (
        before,
        bracket,
        chance,
        first,
        largest_lift,
        strongest,
        unmeasured,
        worst_off,
    )
    from ..report.wording import attributes, interval, signed, who

    facts: list[tuple[str, str, str]] = []
    for name in attributes(report):
        best = strongest(report, name)
        if best is not None:
            beside = [
                f"{word} {signed(one)}"
                for word, one in (("by chance", chance(report, name)), ("from raw X", before(report, best)))
                if one is not None
            ]
            facts.append((f"{name} guessed", signed(best), "; ".join([who(best), *beside])))
        leaked = bracket(report, "leakage", name).findings
        facts.append(("I(Z;Y)", ", ".join(signed(one) for one in leaked), "") if leaked else ("", "", ""))
        lift = largest_lift(report, name)
        if lift is not None:
            facts.append(("Worst off", f"{signed(lift)} of lift", worst_off(report, name) or ""))
        facts += [
            ("Not measured", signed(one), one.notes)
            for one in unmeasured(report, name)
            if one.quantity == "unmeasured leakage"
        ]
    kept = bracket(report, "utility").findings
    if kept:
        facts.append(("I(Z;X)", ", ".join(signed(one) for one in kept), ""))
    for quantity in ("psnr", "ssim"):
        one = first(report, quantity)
        if one is not None:
            facts.append((quantity.upper(), signed(one), interval(one)))
    for one in report.findings:
        if one.quantity.startswith("task"):
            facts.append((f"{one.attribute} from {one.on}", signed(one), f"{one.quantity}, {interval(one)}"))
    return [fact for fact in facts if fact[0]]


def _print_adversaries(report: AuditReport, name: str) -> None:
    """Success and bits of each adversary, the strongest first."""
    from rich.text import Text

    from ..report.pages import adversary_rows
    from ..report.wording import signed

    rows = adversary_rows(report, name)
    if not rows:
        return
    numeric = any("explained variance" in row["found"] for row in rows)
    columns = ["adversary", "sees", "success and interval", "from X", "I(Z;Y)"]
    table = NumberTable([*columns, "R²"] if numeric else columns, n_text=2)
    for row in rows:
        found: dict[str, Any] = row["found"]
        raw = row["raw"].get("success")
        success, bits = found.get("success"), found.get("leakage")
        cells = [
            row["source"],
            row["on"],
            "–" if success is None else f"{signed(success)} ({_bare(success)})",
            "–" if raw is None else signed(raw),
            "–" if bits is None else signed(bits),
        ]
        if numeric:
            explained = found.get("explained variance")
            cells.append("–" if explained is None else signed(explained))
        table.add_row(*map(Text, cells))
    show("", f"Who guesses {name}:", table)


def _bare(finding: Finding) -> str:
    """The interval without its unit, which stands before it."""
    from ..report.wording import interval

    return interval(finding).removesuffix(" %").replace(" to ", "–")
