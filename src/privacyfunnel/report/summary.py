"""The few numbers of a report that people ask for first, picked from its findings."""

from __future__ import annotations

from dataclasses import dataclass

from ..audit import AuditReport, Finding
from .wording import attributes, number, reach, released, signed, view


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
        return None if found is None else found.value - reach(found)[0]

    @property
    def high(self) -> float | None:
        """The upper end, with the uncertainty of the number that says so."""
        found = self.upper or self.middle
        return None if found is None else found.value + reach(found)[1]

    @property
    def findings(self) -> list[Finding]:
        """What the bracket consists of, from below."""
        return [one for one in (self.lower, self.middle, self.upper) if one is not None]


def bracket(report: AuditReport, quantity: str, attribute: str | None = None) -> Bracket:
    """The bracket of a quantity of one release; an exact value, where there is one, is all of it."""
    # What the order of rows or many releases tell may lie above every bound on what one release tells.
    found = [one for one in report.find(quantity) if one.on in ("Z", "X_hat")]
    if attribute is not None:
        found = [one for one in found if one.attribute == attribute]
    exact = next((one for one in found if one.kind == "exact"), None)
    if exact is not None:
        return Bracket(middle=exact)
    below = [one for one in found if one.kind == "lower bound"]
    above = [one for one in found if one.kind == "upper bound"]
    lower = max(below, key=lambda one: one.value, default=None)
    upper = min(above, key=lambda one: one.value, default=None)
    # The most pessimistic estimate, but none that an upper bound contradicts if there is another, and none
    # that falls short of what a lower bound shows to be there.
    estimates = sorted(
        (one for one in found if one.kind == "estimate" and (lower is None or one.value >= lower.value)),
        key=lambda one: one.value,
    )
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


def largest_lift(report: AuditReport, attribute: str | None = None) -> Finding | None:
    """The lift of those about whom the release tells most; an exact one says it for all symbols."""
    found = [one for one in released(report.find("lift")) if attribute in (None, one.attribute)]
    return max(found, key=lambda one: (one.kind == "exact" and one.on == "Z", one.value), default=None)


def smallest_group(report: AuditReport, attribute: str | None = None) -> Finding | None:
    """The size of the smallest group that the release sets apart."""
    found = [one for one in report.find("group size") if attribute in (None, one.attribute)]
    return min(found, key=lambda one: one.value, default=None)


def worst_off(report: AuditReport, attribute: str | None = None) -> str | None:
    """One sentence about the people whom the release tells most about; None where nobody looked."""
    lift, group = largest_lift(report, attribute), smallest_group(report, attribute)
    if lift is None:
        return None
    times = f"{2**lift.value:.3g}"
    size = "" if group is None else f"; the smallest group set apart: {signed(group)}"
    return f"The release makes a class of {lift.attribute} {times} times as likely for those worst off{size}."


def unmeasured(report: AuditReport, attribute: str | None = None) -> list[Finding]:
    """What could not be judged, and what the gate therefore counts as told."""
    found = [*report.find("unmeasured success"), *report.find("unmeasured leakage")]
    return [one for one in found if attribute in (None, one.attribute)]


def first(report: AuditReport, quantity: str) -> Finding | None:
    """The first finding of a quantity, such as "psnr", which a report has once."""
    return next(iter(report.find(quantity)), None)
