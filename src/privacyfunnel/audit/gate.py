"""The gate: does a release keep stated limits, judged by the pessimistic end of each interval?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .findings import Finding, is_kept_view


@dataclass(frozen=True)
class Verdict:
    """Whether one limit is kept.

    Attributes
    ----------
    name : {"max_success", "max_leakage", "min_psnr"}
    limit : float
    value : float, optional
        The pessimistic end of the interval that decided; None where nothing was measured.
    passed : bool
    proved : bool
        Whether no adversary whatever can do better than the limit: decided by an exact value or an upper
        bound. False where only the adversaries tried kept within it.
    sentence : str
        The verdict in words.
    finding : Finding, optional
        The number that decided.
    """

    name: str
    limit: float
    value: float | None
    passed: bool
    proved: bool
    sentence: str
    finding: Finding | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {**vars(self), "finding": None if self.finding is None else self.finding.to_dict()}


def judge(
    findings: Sequence[Finding],
    *,
    max_success: float | None = None,
    max_leakage: float | None = None,
    min_psnr: float | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for each limit that is given; see `AuditReport.gate`."""
    verdicts = []
    if max_success is not None:
        verdicts.append(_worst(findings, "success", max_success))
    if max_leakage is not None:
        verdicts.append(_worst(findings, "leakage", max_leakage))
    if min_psnr is not None:
        verdicts.append(_at_least(findings, "psnr", min_psnr))
    return tuple(verdicts)


def _worst(findings: Sequence[Finding], quantity: str, limit: float) -> Verdict:
    """The verdict on the private attribute that comes off worst."""
    released = [one for one in findings if one.quantity == quantity and one.on not in ("X", "")]
    # A bound for Z says nothing about a column that is handed out beside it.
    groups: dict[tuple[str, str], list[Finding]] = {}
    for one in released:
        groups.setdefault((one.attribute, one.on if is_kept_view(one.on) else "Z"), []).append(one)
    if not groups:
        return _not_measured(f"max_{quantity}", quantity, limit)
    verdicts = [_at_most(group, quantity, limit) for group in groups.values()]
    return max(verdicts, key=lambda one: (not one.passed, not one.proved, one.value))


def _at_most(released: Sequence[Finding], quantity: str, limit: float) -> Verdict:
    """An exact value or upper bound within the limit decides, else the highest end of what was found."""
    name = f"max_{quantity}"
    ceilings = [one for one in released if one.kind in ("exact", "upper bound")]
    exact = [one for one in released if one.kind == "exact"]
    found = exact or [one for one in released if one.kind != "upper bound"] or ceilings
    ceiling = min(ceilings, key=_high, default=None)
    proved = ceiling is not None and ceiling.high <= limit
    deciding = ceiling if ceiling is not None and proved else max(found, key=_high)
    passed = deciding.high <= limit
    where = f"{deciding.high:.4g} {_unit(deciding)}({deciding.source} on {deciding.on})"
    if not passed:
        sentence = f"Failed: {quantity} may be as high as {where}, above {limit:g}."
    elif proved:
        sentence = f"Passed: {quantity} is at most {where}, within {limit:g}, for every adversary."
    else:
        sentence = (
            f"Passed: {quantity} is at most {where}, within {limit:g}, for the adversaries tried; "
            "another may find more."
        )
    return Verdict(name, limit, deciding.high, passed, proved, sentence, deciding)


def _at_least(findings: Sequence[Finding], quantity: str, limit: float) -> Verdict:
    name = f"min_{quantity}"
    measured = [one for one in findings if one.quantity == quantity]
    deciding = min(measured, key=lambda one: one.low, default=None)
    if deciding is None:
        return _not_measured(name, quantity, limit)
    passed = deciding.low >= limit
    verdict = f"Passed: {quantity} is at least" if passed else f"Failed: {quantity} may be as low as"
    sentence = f"{verdict} {deciding.low:.4g} {_unit(deciding)}where {limit:g} was asked for."
    return Verdict(name, limit, deciding.low, passed, False, sentence, deciding)


def _not_measured(name: str, quantity: str, limit: float) -> Verdict:
    sentence = f"Failed: {quantity} was not measured, so nothing says that it keeps {limit:g}."
    return Verdict(name, limit, None, False, False, sentence)


def _unit(finding: Finding) -> str:
    return f"{finding.unit} " if finding.unit in ("bits", "dB") else ""


def _high(finding: Finding) -> float:
    return finding.high
