"""What a report says in words: the numbers people ask for first, signs for their kind, digits, intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ..auditing import AuditReport, ClassTable, Finding, findings
from ..auditing.audit import TRAINED_ON
from ..auditing.findings import Bracket, Told, attribute_names, is_kept_view, kept_view
from ..errors import InvalidInputError

#: The sign before a number says what it is, wherever it is printed.
SIGNS = {"exact": "=", "lower bound": "≥", "upper bound": "≤", "estimate": "≈"}

#: What each sign means, for people who meet it for the first time.
MEANINGS = {
    "exact": "computed from a known distribution; there is nothing uncertain about it.",
    "lower bound": "this much was reached; another adversary may reach more.",
    "upper bound": "no adversary can reach more; with the confidence beside it where records were counted.",
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
        # An estimate of a number of people is no whole number, but people are.
        return f"{value:,.0f} record{'s' * (round(value) != 1)}"
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


def of_upper(finding: Finding | None) -> str:
    """Whose bound it is, in a few words: a certificate holds for everybody, H(Y) says little."""
    if finding is None or finding.source not in (findings.CERTIFICATE, findings.ENTROPY):
        return ""
    if finding.source == findings.ENTROPY:
        return "≤ is all there is to know"
    return f"≤ for every adversary, {100 * finding.confidence:g} %"


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
    return attribute_names(report.findings, [one["name"] for one in report.meta.get("tasks", ())])


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
    is_open = TRAINED_ON in report.meta.get("not_audited", ())
    unseen = " The audit cannot see which they were." if is_open else ""
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
            f"On the records that a mechanism was trained on, leakage looks smaller than on new ones.{unseen}"
        ),
    }


def bracket(report: AuditReport, quantity: str, attribute: str | None = None) -> Bracket:
    """The bracket of a quantity of one release; an exact value, where there is one, is all of it."""
    return Bracket.of((one for one in report.findings if attribute in (None, one.attribute)), quantity)


def strongest(report: AuditReport, attribute: str | None = None, source: str | None = None) -> Finding | None:
    """The highest success on what is released, of one attribute or adversary where they are named."""
    found = [
        one
        for one in findings.guessed(report.findings)
        if attribute in (None, one.attribute) and source in (None, one.source)
    ]
    return findings.highest(found)


def chance(report: AuditReport, attribute: str | None = None) -> Finding | None:
    """The success of somebody who sees nothing."""
    found = report.find("chance")
    return next((one for one in found if attribute in (None, one.attribute)), None)


def before(report: AuditReport, finding: Finding) -> Finding | None:
    """The same number of the same adversary on raw records, or of the best one on them."""
    return findings.before(report.findings, finding)


#: Who is right so often, by what the number is.
_ATTACKERS = {"exact": "The best attacker", "lower bound": "The strongest attacker tried"}


def first_lines(report: AuditReport) -> list[str]:
    """What stands first on everything about a report: whether to keep it, and what attackers reach."""
    sentences = [sentence(report, name) for name in attributes(report)]
    return [one for one in (report.notice, *sentences) if one]


def sentence(report: AuditReport, attribute: str) -> str:
    """How often an attacker is right with the release, without it, and with the raw records.

    What the order of the rows tells can be undone, and is said beside what is handed out.
    """
    found = told(report, attribute)
    best, raw, order = found.best, found.raw, ""
    if best is not None and best.on == "order":
        own = [one for one in report.findings if one.attribute == attribute]
        released = findings.highest(one for one in findings.guessed(own) if one.on != "order")
        if released is not None:
            order = f" From the order of the rows alone {number(best.value, 'share')}: shuffle them."
            best, raw = released, findings.before(own, released)
    if best is None:
        return f"How often an attacker is right about {attribute} was not measured."
    who = _ATTACKERS.get(best.kind, "An attacker who knows the mechanism")
    seen = "" if best.on in ("Z", "X_hat") else f" from {view(best.on)}"
    others = [
        f"{word} {'it was not measured' if one is None else number(one.value, 'share')}"
        for word, one in (("without the release", found.chance), ("with the raw records", raw))
    ]
    share = number(best.value, "share")
    said = f"{who} is right about {attribute} {share} of the time{seen}; {', '.join(others)}."
    if found.most is None or found.most.value >= 1:
        return said + order
    most, sure = number(found.most.value, "share"), f"{100 * found.most.confidence:g} % confidence"
    said += f" Nobody who sees one release and nothing else is right more often than {most} ({sure})."
    return said + order


def told(report: AuditReport, attribute: str | None = None) -> Told:
    """What people ask first about a private attribute; of all of them where none is named."""
    return Told.of([one for one in report.findings if attribute in (None, one.attribute)])


def worst_off(report: AuditReport, attribute: str | None = None) -> str | None:
    """One sentence about the people whom the release tells most about; None where nobody looked."""
    found = told(report, attribute)
    lift, group = found.lift, found.group
    if lift is None:
        return None
    times = f"{2**lift.value:.3g}"
    size = "" if group is None else f"; the smallest group set apart: {signed(group)}"
    return f"The release makes a class of {lift.attribute} {times} times as likely for those worst off{size}."


def first_seconds(report: AuditReport) -> dict[str, Any]:
    """What stands below the first sentence: a bar from chance to raw records, and who is worst off."""
    bar = None
    lines = []
    for name in attributes(report):
        found = told(report, name)
        if bar is None and found.best is not None and found.chance is not None:
            bar = (found.chance.value, found.best.value, None if found.raw is None else found.raw.value)
        lines += [line for line in (column_that_tells(report, name), worst_off(report, name)) if line]
    return {"bar": bar, "lines": lines}


def column_that_tells(report: AuditReport, attribute: str) -> str | None:
    """Of the columns that are handed out beside the release the one that tells most; None without any."""
    names = [str(name) for name in report.meta.get("kept", ())]
    alone = [(name, _success(report, attribute, kept_view([name], False))) for name in names]
    found = [(name, one) for name, one in alone if one is not None]
    if not found:
        return None
    name, most = max(found, key=lambda pair: pair[1].value)
    return (
        f"Of the columns beside it, {name} tells most about {attribute}: seen alone, {signed(most)} are "
        "guessed right."
    )


def first(report: AuditReport, quantity: str) -> Finding | None:
    """The first finding of a quantity, such as "psnr", which a report has once."""
    return next(iter(report.find(quantity)), None)


def has_confusion(report: AuditReport) -> bool:
    """Whether there is a confusion of classes on the release."""
    return any(one.on == "Z" and one.classes for one in report.tables)


def confusion_pair(report: AuditReport, source: str | None = None) -> tuple[ClassTable | None, ClassTable]:
    """The tables of one adversary on X (where there is one) and on Z.

    By default the adversary that guesses most on Z, among those that were tried on X too if any was.
    """
    after = [one for one in report.tables if one.on == "Z" and one.classes and source in (None, one.source)]
    if not after:
        named = "of any adversary" if source is None else f"of {source!r}"
        raise InvalidInputError(f"The report has no confusion {named} on the release Z.")
    raw = {(one.source, one.attribute): one for one in report.tables if one.on == "X"}
    both = [one for one in after if (one.source, one.attribute) in raw]
    best = max(both or after, key=lambda one: one.right)
    return raw.get((best.source, best.attribute)), best


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
