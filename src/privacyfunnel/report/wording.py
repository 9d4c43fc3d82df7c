"""How findings are written: a sign for the kind, digits that fit the unit, intervals, who sees what."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ..audit import AuditReport, Finding
from ..audit.findings import is_kept_view

#: The sign before a number says what it is, wherever it is printed.
SIGNS = {"exact": "=", "lower bound": "≥", "upper bound": "≤", "estimate": "≈"}

#: What each sign means, for people who meet it for the first time.
MEANINGS = {
    "exact": "computed from a known distribution; there is nothing uncertain about it.",
    "lower bound": "this much was reached; another adversary may reach more.",
    "upper bound": "no adversary can reach more.",
    "estimate": "may lie on either side of the truth.",
}

#: What an adversary looks at.
VIEWS = {
    "Z": "release Z",
    "X": "raw records X",
    "X_hat": "reconstruction X̂",
    "order": "order of rows",
    "": "nothing",
}

#: What a release keeps; everything else is about the private attribute.
KEPT = ("utility", "psnr", "mse", "ssim", "task accuracy", "task explained variance")


def view(on: str) -> str:
    """What was looked at, in words."""
    if is_kept_view(on):
        return (
            f"release Z with {on.removeprefix('Z + ')}"
            if on.startswith("Z + ")
            else f"column {on.removeprefix('column ')}"
        )
    return VIEWS.get(on) or f"{on.removeprefix('Z × ')} releases of each record"


def who(finding: Finding) -> str:
    """The adversary or estimator, with what it sees where that is not one release."""
    return finding.source if finding.on == "Z" else f"{finding.source} ({view(finding.on)})"


def number(value: float, unit: str) -> str:
    """A value with digits and unit as people write them: shares in per cent."""
    if math.isinf(value):
        text = "∞" if value > 0 else "−∞"
        return f"{text} {unit}".strip() if unit != "share" else text
    if unit == "share":
        return f"{round(100 * value, 1) + 0.0:.1f} %".replace("-", "−")
    if unit == "records":
        text = f"{value:.4g}" if value < 1000 else f"{value:,.0f}"
        return f"{text} record" if value == 1 else f"{text} records"
    digits = {"bits": 3, "dB": 2}.get(unit)
    # A tiny amount is not 0; 1e-12 is what rounding leaves of an exact 0.
    tiny = digits is not None and 1e-12 < abs(value) < 0.5 * 10**-digits
    text = (
        f"{value:.1e}"
        if tiny
        else f"{value:.4g}"
        if digits is None
        else f"{round(value, digits) + 0.0:.{digits}f}"
    )
    return f"{text} {'bit' if unit == 'bits' else unit}".strip().replace("-", "−")


def signed(finding: Finding) -> str:
    """The value with the sign of its kind: "≥ 67.9 %"."""
    return f"{SIGNS[finding.kind]} {number(finding.value, finding.unit)}"


def interval(finding: Finding) -> str:
    """The ends of the interval, unit once: "64.9 to 70.7 %"; a dash where there is none."""
    return ends(*finding.interval, finding.unit) if finding.interval is not None else "–"


def reach(finding: Finding) -> tuple[float, float]:
    """How far the interval reaches below and above the value, for bars; none where there is no interval."""
    low, high = finding.interval or (finding.value, finding.value)
    return finding.value - low, high - finding.value


def ends(low: float, high: float, unit: str) -> str:
    """Two ends of a range, with the unit behind the second."""
    first, second = number(low, unit), number(high, unit)
    tail = second.rpartition(" ")[2]
    units = ("%", "bit", "dB", "records")
    return f"{first.removesuffix(tail).rstrip() if tail in units else first} to {second}"


def basis(report: AuditReport) -> str:
    """What the numbers are of; a joint that was counted in records is not a known one."""
    n = report.meta.get("n_records")
    if n is None:
        return "a known distribution"
    return f"a distribution counted in {n:,} records" if report.meta.get("from_joint") else f"{n:,} records"


def attributes(report: AuditReport) -> list[str]:
    """The private attributes of a report, in its order."""
    tasks = {one["name"] for one in report.meta.get("tasks", ())}
    named = [one.attribute for one in report.findings if one.attribute and one.quantity not in KEPT]
    return [name for name in dict.fromkeys(named) if name not in tasks]


def released(findings: Iterable[Finding]) -> list[Finding]:
    """Those found on what is released: not on raw records, and not by somebody who sees nothing."""
    return [one for one in findings if one.on not in ("X", "")]


def common(findings: Iterable[Finding]) -> str:
    """What all these numbers share: sample size, seed and confidence, as far as it is one for all."""
    rows = list(findings)
    sizes = {one.n_samples for one in rows if one.interval is not None or one.n_samples is not None}
    seeds = {one.seed for one in rows}
    levels = {one.confidence for one in rows if one.interval is not None}
    parts = []
    if len(sizes) == 1 and (size := next(iter(sizes))) is not None:
        parts.append(f"n = {size:,}")
    if len(seeds) == 1 and (seed := next(iter(seeds))) is not None:
        parts.append(f"seed {seed}")
    if len(levels) == 1:
        parts.append(f"{100 * next(iter(levels)):g} % intervals, each by itself")
    return ", ".join(parts)
