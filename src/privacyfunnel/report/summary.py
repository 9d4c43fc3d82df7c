"""The few numbers of a report that people ask for first, picked from its findings."""

from __future__ import annotations

from dataclasses import dataclass

from ..audit import AuditReport, Finding
from ..audit.findings import is_kept_view
from .wording import attributes, number, released, view


@dataclass(frozen=True)
class Bracket:
    """Where a quantity lies: the largest lower bound, the smallest upper bound, the value or estimate."""

    lower: Finding | None = None
    upper: Finding | None = None
    middle: Finding | None = None

    @property
    def low(self) -> float | None:
        """The lower end, with the uncertainty of the number that says so."""
        found = self.lower or self.middle
        return None if found is None else found.low

    @property
    def high(self) -> float | None:
        """The upper end, with the uncertainty of the number that says so."""
        found = self.upper or self.middle
        return None if found is None else found.high

    @property
    def findings(self) -> list[Finding]:
        """What the bracket consists of, from below."""
        return [one for one in (self.lower, self.middle, self.upper) if one is not None]


def bracket(report: AuditReport, quantity: str, attribute: str | None = None) -> Bracket:
    """The bracket of a quantity of the release; an exact value, where there is one, is all of it."""
    found = [one for one in released(report.find(quantity)) if not is_kept_view(one.on)]
    if attribute is not None:
        found = [one for one in found if one.attribute == attribute]
    exact = next((one for one in found if one.kind == "exact"), None)
    if exact is not None:
        return Bracket(middle=exact)
    below = [one for one in found if one.kind == "lower bound"]
    above = [one for one in found if one.kind == "upper bound"]
    lower = max(below, key=lambda one: one.value, default=None)
    upper = min(above, key=lambda one: one.value, default=None)
    # The most pessimistic estimate, but none that an upper bound contradicts if there is another.
    estimates = sorted((one for one in found if one.kind == "estimate"), key=lambda one: one.value)
    possible = [one for one in estimates if upper is None or one.value <= upper.value]
    middle = possible[-1] if possible else next(iter(estimates), None)
    return Bracket(lower, upper, middle)


def strongest(report: AuditReport, attribute: str | None = None, source: str | None = None) -> Finding | None:
    """The highest success on what is released, of one attribute or adversary where they are named."""
    found = [
        one
        for one in released(report.find("success"))
        if attribute in (None, one.attribute) and source in (None, one.source)
    ]
    return max(found, key=lambda one: one.value, default=None)


def chance(report: AuditReport, attribute: str | None = None) -> Finding | None:
    """The success of somebody who sees nothing."""
    found = report.find("chance")
    return next((one for one in found if attribute in (None, one.attribute)), None)


def before(report: AuditReport, finding: Finding) -> Finding | None:
    """The same number of the same adversary on raw records.

    The decoder-aware adversary has no namesake there: it is set against the best one on X.
    """
    found = report.find(finding.quantity, on="X", attribute=finding.attribute)
    own = next((one for one in found if one.source == finding.source), None)
    return own or max(found, key=lambda one: one.value, default=None)


#: Who is right so often, by what the number is.
_ATTACKERS = {"exact": "The best attacker", "lower bound": "The strongest attacker tried"}


def first_lines(report: AuditReport) -> list[str]:
    """What stands first on everything about a report: whether to keep it, and what attackers reach."""
    sentences = [sentence(report, name) for name in attributes(report)]
    return [one for one in (report.notice, *sentences) if one]


def sentence(report: AuditReport, attribute: str) -> str:
    """How often an attacker is right with the release, without it, and with the raw records."""
    best = strongest(report, attribute)
    if best is None:
        return f"How often an attacker is right about {attribute} was not measured."
    who = _ATTACKERS.get(best.kind, "An attacker who knows the mechanism")
    seen = "" if best.on in ("Z", "X_hat") else f" from {view(best.on)}"
    others = [
        f"{word} {'it was not measured' if one is None else number(one.value, 'share')}"
        for word, one in (
            ("without the release", chance(report, attribute)),
            ("with the raw records", before(report, best)),
        )
    ]
    share = number(best.value, "share")
    return f"{who} is right about {attribute} {share} of the time{seen}; {', '.join(others)}."


def first(report: AuditReport, quantity: str) -> Finding | None:
    """The first finding of a quantity, such as "psnr", which a report has once."""
    return next(iter(report.find(quantity)), None)
