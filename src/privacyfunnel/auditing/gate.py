"""The gate: does a release keep stated limits, judged by the pessimistic end of each interval?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..checks import finite_number, shown
from ..errors import InvalidInputError
from .findings import ENTROPY, Finding

#: What sentences call a quantity, where not by its name.
WORDS = {"group size": "the smallest group"}


@dataclass(frozen=True)
class Verdict:
    """Whether one limit is kept.

    Attributes
    ----------
    name : {"max_success", "max_leakage", "min_psnr", "max_lift", "min_group"}
    limit : float
    value : float, optional
        The pessimistic end that decided, with what was not measured counted as told; None where nothing was
        measured.
    passed : bool
    proved : bool
        Whether no adversary whatever can do better than the limit: decided by an exact value or an upper
        bound, such as a certificate. False where only the adversaries tried kept within it. It is about what
        is handed out, in any order: what the order of the rows tells is tried only, and the sentence says so.
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


def judge(findings: Sequence[Finding], **limits: float | None) -> tuple[Verdict, ...]:
    """A verdict for each limit that is given; see `AuditReport.gate`."""
    kept = {name: _checked(name, limit) for name, limit in limits.items() if limit is not None}
    verdicts = [
        _worst(findings, quantity, kept[f"max_{quantity}"])
        for quantity in ("success", "leakage", "lift")
        if f"max_{quantity}" in kept
    ]
    verdicts += [
        _at_least(findings, quantity, name, kept[name])
        for name, quantity in (("min_psnr", "psnr"), ("min_group", "group size"))
        if name in kept
    ]
    return tuple(verdicts)


def _checked(name: str, limit: Any) -> float:
    """The limit as a number that it can be: a share of 90 would pass whatever was found."""
    if name == "max_success":
        number = finite_number(name, limit, 0)
        if number > 1:
            raise InvalidInputError(
                f"{name} is a share between 0 and 1, such as 0.9; it is {shown(limit)}.", names=(name,)
            )
        return number
    return finite_number(name, limit, -1000 if name == "min_psnr" else 0)


def _worst(findings: Sequence[Finding], quantity: str, limit: float) -> Verdict:
    """The verdict on the private attribute that comes off worst."""
    # Every attribute has a chance: one without the quantity was not measured, whatever others have.
    names = dict.fromkeys(one.attribute for one in findings if one.quantity in ("chance", quantity))
    if not names:
        return _not_measured(f"max_{quantity}", limit, f"{quantity} was not measured")
    verdicts = []
    for name in names:
        own = [one for one in findings if one.attribute == name]
        released = [one for one in own if one.quantity == quantity and one.on not in ("X", "")]
        gaps = [one for one in own if one.quantity == f"unmeasured {quantity}" and one.value > 0]
        # A bound on what Z tells says nothing about Z with another column, the order or many releases; H(Y)
        # bounds them all.
        views = dict.fromkeys(map(_view, released))
        whole = [one for one in released if one.source == ENTROPY]
        by_view = {
            view: _at_most(
                [one for one in released if _view(one) == view or one in whole], gaps, quantity, limit
            )
            for view in views
        }
        order = by_view.get("order")
        if order is not None and all(one.passed and (one.proved or one is order) for one in by_view.values()):
            del by_view["order"]
            by_view = {view: _in_any_order(one, order) for view, one in by_view.items()} or {"order": order}
        verdicts += list(by_view.values()) or [
            _not_measured(f"max_{quantity}", limit, _why_nothing(own, quantity))
        ]
    return max(verdicts, key=_badness)


def _in_any_order(verdict: Verdict, order: Verdict) -> Verdict:
    """A proof is about what is handed out; the order of the rows can be changed, and is tried beside it."""
    assert order.value is not None
    assert order.finding is not None
    unit = f" {order.finding.unit}" if order.finding.unit == "bits" else ""
    said = f"Not covered: the order of the rows, where those tried reach {order.value:.4g}{unit} at most."
    return replace(verdict, sentence=f"{verdict.sentence} {said}")


def _view(finding: Finding) -> str:
    """What bounds are about: reconstructions are made from Z, so that its bounds hold for them too."""
    return "Z" if finding.on == "X_hat" else finding.on


def _badness(verdict: Verdict) -> tuple[bool, bool, bool, float]:
    """Failed before passed, not measured before measured, for those tried before proved."""
    value = verdict.value
    return not verdict.passed, value is None, not verdict.proved, 0.0 if value is None else value


def _at_most(released: Sequence[Finding], gaps: Sequence[Finding], quantity: str, limit: float) -> Verdict:
    """The verdict on one attribute and view.

    An exact value or upper bound within the limit decides, else the highest end of what was found, with what
    could not be measured on top.
    """
    name = f"max_{quantity}"
    proofs = _ends([one for one in released if one.kind in ("exact", "upper bound")])
    least = min(proofs, key=_end, default=None)
    if least is not None and least[0] <= limit and least[1].source == ENTROPY:
        # Counted in these records: the population may have values that none of them has.
        sentence = (
            f"Passed: {quantity} is at most {_shown(*least)}, within {limit:g}: all there is to know of the "
            "private values that these records have. Values that none of them has are not counted."
        )
        return Verdict(name, limit, least[0], True, False, sentence, least[1])
    if least is not None and least[0] <= limit:
        sure = "" if least[1].interval is None else f", with {100 * least[1].confidence:g} % confidence"
        sentence = (
            f"Passed: {quantity} is at most {_shown(*least)}, within {limit:g}, for every adversary{sure}."
        )
        return Verdict(name, limit, least[0], True, True, sentence, least[1])
    exact = [one for one in released if one.kind == "exact"]
    found = exact or [one for one in released if one.kind != "upper bound"] or list(released)
    ends = _ends(found)
    if len(ends) < len(found):
        return _not_measured(
            name, limit, f"nobody knows how far off {_vague(found)} is, as it has no interval"
        )
    high, deciding = max(ends, key=_end)
    counted = [] if exact else list(gaps)
    # Nobody guesses more than all, and nothing is above an upper bound.
    most = least[0] if least is not None else 1.0 if quantity == "success" else math.inf
    total = max(high, min(high + sum(one.value for one in counted), most))
    sentence = _sentence(quantity, limit, high, total, deciding, counted)
    return Verdict(name, limit, total, total <= limit, False, sentence, deciding)


def _sentence(
    quantity: str, limit: float, high: float, total: float, deciding: Finding, gaps: Sequence[Finding]
) -> str:
    shown, unknown = _shown(total, deciding), " ".join(one.notes for one in gaps).rstrip(".")
    if total <= limit:
        counted = f", counting as told what was not measured ({unknown})" if gaps else ""
        return (
            f"Passed: {quantity} is at most {shown}, within {limit:g}{counted}, for the adversaries tried; "
            "another may find more."
        )
    if high <= limit:
        return f"Failed: not measured: {unknown}. So {quantity} may be as high as {shown}, above {limit:g}."
    return f"Failed: {quantity} may be as high as {shown}, above {limit:g}."


def _at_least(findings: Sequence[Finding], quantity: str, name: str, limit: float) -> Verdict:
    measured = [one for one in findings if one.quantity == quantity]
    what = WORDS.get(quantity, quantity)
    lows = [(one.low, i) for i, one in enumerate(measured) if one.low is not None]
    # Reconstructions are of records; groups are set apart for each private attribute.
    private = {one.attribute for one in findings if one.quantity == "chance" and quantity == "group size"}
    if not measured or len(lows) < len(measured) or private - {one.attribute for one in measured}:
        return _not_measured(name, limit, f"{what} was not measured")
    low, i = min(lows)
    passed = low >= limit
    if passed and any(one.kind == "upper bound" for one in measured):
        # The smallest of all is no larger than the smallest that somebody found, and may be much smaller.
        return _not_measured(
            name, limit, f"{what} was not measured, only the regions and values that were tried"
        )
    verdict = f"Passed: {what} is at least" if passed else f"Failed: {what} may be as low as"
    sentence = f"{verdict} {_least(low, measured[i])} where {limit:g} was asked for."
    return Verdict(name, limit, low, passed, False, sentence, measured[i])


def _not_measured(name: str, limit: float, why: str) -> Verdict:
    sentence = f"Failed: {why}, so nothing says that it keeps {limit:g}."
    return Verdict(name, limit, None, False, False, sentence)


def _why_nothing(own: Sequence[Finding], quantity: str) -> str:
    same = next((one for one in own if one.quantity == "chance" and one.value == 1), None)
    if same is None:
        return f"{quantity} was not measured"
    return f"nothing to test: all records have the same {same.attribute}; {quantity} was not measured"


def _ends(findings: Sequence[Finding]) -> list[tuple[float, Finding]]:
    """The pessimistic ends of the findings that have one."""
    return [(one.high, one) for one in findings if one.high is not None]


def _end(pair: tuple[float, Finding]) -> float:
    return pair[0]


def _vague(findings: Sequence[Finding]) -> str:
    one = next(one for one in findings if one.high is None)
    return f"{one.quantity} = {one.value:.4g} ({one.source} on {one.on})"


def _shown(end: float, finding: Finding) -> str:
    unit = f"{finding.unit} " if finding.unit in ("bits", "dB") else ""
    return f"{end:.4g} {unit}({finding.source} on {finding.on})"


def _least(low: float, finding: Finding) -> str:
    """The low end with its unit. That of a number of records lies between two whole ones: the smaller."""
    if finding.unit != "records":
        return f"{low:.4g} {finding.unit}"
    return f"{math.floor(low):,} record{'s' * (math.floor(low) != 1)}"
