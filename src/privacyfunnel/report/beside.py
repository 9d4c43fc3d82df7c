"""What columns that are handed out beside the release tell, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from ..audit import AuditReport, Finding
from ..audit.findings import is_kept_view, kept_view
from .summary import chance
from .wording import attributes, number


def kept_found(report: AuditReport) -> list[Finding]:
    """All findings about kept columns."""
    return [one for one in report.findings if is_kept_view(one.on)]


def kept_sentences(report: AuditReport) -> list[str]:
    """One sentence for each attribute and kept column, and one for all columns together."""
    names = [str(name) for name in report.meta.get("kept", ())]
    groups = [[name] for name in names] + ([names] if len(names) > 1 else [])
    return [_sentence(report, attribute, group) for attribute in attributes(report) for group in groups]


def _sentence(report: AuditReport, attribute: str, columns: Sequence[str]) -> str:
    alone = _success(report, attribute, kept_view(columns, False)) if len(columns) == 1 else None
    together = _success(report, attribute, kept_view(columns, True))
    least = chance(report, attribute)
    if together is None:
        return (
            f"{' and '.join(columns)}: there is nothing to guess about {attribute}, which is always the same."
        )
    return told_by_kept(
        columns,
        attribute,
        None if alone is None else alone.value,
        together.value,
        None if least is None else least.value,
    )


def told_by_kept(
    columns: Sequence[str], attribute: str, alone: float | None, together: float, chance: float | None
) -> str:
    """How often somebody who sees the columns guesses the private attribute."""
    names = " and ".join(columns)
    without = "" if chance is None else f"; {number(chance, 'share')} without either"
    if alone is None:
        share = number(together, "share")
        return f"{names} together with z let an attacker guess {attribute} {share} of the time{without}."
    let = "lets" if len(columns) == 1 else "let"
    return (
        f"{names} alone {let} an attacker guess {attribute} {number(alone, 'share')} of the time, together "
        f"with z {number(together, 'share')}{without}."
    )


def _success(report: AuditReport, attribute: str, on: str) -> Finding | None:
    found = report.find("success", on=on, attribute=attribute)
    return max(found, key=lambda one: one.value, default=None)
