"""What a notebook shows of a result: the same sentences, bars and pictures as the app and the report."""

from __future__ import annotations

from typing import Any

from ..auditing import AuditReport
from ..columns import codebook
from ..comparison import Comparison
from ..information import measure
from ..joint import Joint
from ..mechanism import TableMechanism
from ..solution import Solution
from ..tradeoff import Frontier
from . import wording
from .html import render
from .plane import plane_chart, proved_points

#: Symbols that are shown, and of how many at most they are looked up.
SHOWN_SYMBOLS, MOST_SYMBOLS = 12, 2_000


def html_of(value: Any) -> str | None:
    """A part of a page; None, so that a notebook shows the `repr`, where jinja2 is not installed."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        return None
    values: dict[str, Any] = dict.fromkeys(("bar", "chart", "here"))
    values |= {"lines": [], "facts": [], "middle": "", "symbols": [], "n_symbols": 0}
    for kind, found in _KINDS.items():
        if isinstance(value, kind):
            return render("notebook.html", **{**values, **found(value)})
    return None


def symbols_of(mechanism: TableMechanism) -> list[tuple[float, str]]:
    """What symbols stand for, the commonest first; nothing where P(X) is not known or they are too many."""
    if mechanism.p_x is None or mechanism.n_z > MOST_SYMBOLS:
        return []
    book = codebook(mechanism)
    return sorted(zip(book["share"].tolist(), book["stands_for"], strict=True), key=lambda row: -row[0])


def _joint(joint: Joint) -> dict[str, Any]:
    chance, raw = float(joint.p_y.max()), float(joint.p_xy.max(axis=1).sum())
    x, y = " × ".join(joint.x_names), " × ".join(joint.y_names)
    seen = "known distribution" if joint.n_samples is None else f"{joint.n_samples:,} records"
    return {
        "lines": [
            f"Whoever sees {x} is right about {y} {wording.number(raw, 'share')} of the time; without seeing "
            f"anything {wording.number(chance, 'share')}."
        ],
        "bar": (chance, raw, None),
        "middle": f"with {x}",
        "facts": [
            ("Letters", f"{joint.n_x:,} of {x}, {joint.n_y:,} of {y}"),
            ("From", seen),
            ("There is to keep", f"= {wording.number(joint.entropy_x, 'bits')}, H(X)"),
            ("They tell", f"= {wording.number(joint.mutual_information, 'bits')}, I(X;Y)"),
        ],
    }


def _solution(solution: Solution) -> dict[str, Any]:
    joint, scale = solution.joint, solution.measures.scale
    found = measure(solution.mechanism, joint)
    raw = float(joint.p_xy.max(axis=1).sum())
    seen = "" if joint.n_samples is None else " on these records"
    gap = [] if solution.gap is None else [("Proved", f"{solution.gap:.2g} from the optimum at most")]
    return {
        "lines": [
            f"An attacker is right about {' × '.join(joint.y_names)} "
            f"{wording.number(found.guess_after, 'share')} of the time{seen}; without the release "
            f"{wording.number(found.guess_before, 'share')}, with the raw "
            f"{'columns' if len(joint.x_names) > 1 else 'column'} {wording.number(raw, 'share')}."
        ],
        "bar": (found.guess_before, found.guess_after, raw),
        "middle": "with the release",
        "facts": [
            ("Kept", scale.with_utility(solution.utility)),
            ("Told", scale.with_leakage(solution.leakage)),
            *gap,
            ("Status", solution.status.value),
            *[("Note", note) for note in solution.notes],
        ],
        **_merged(solution.mechanism),
    }


def _frontier(front: Frontier) -> dict[str, Any]:
    corners = front.envelope()
    whole = front.max_utility or 1.0
    told = [(one.utility / whole, one.leakage) for one in corners]
    scale = front.scale
    words = (
        f"{len(corners)} corners from {scale.with_leakage(corners[0].leakage)} where nothing is kept to "
        f"{scale.with_leakage(corners[-1].leakage)} where {scale.with_utility(front.max_utility)} is kept."
    )
    half = scale.with_leakage(front.leakage_at(whole / 2))
    return {
        "lines": [f"To keep half of all, {half}; to keep all of it, {scale.with_leakage(told[-1][1])}."],
        "chart": plane_chart(told, [], proved_points(front), scale.leakage, words, "what was found, exact"),
    }


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "lines": [comparison.summary],
        "facts": [
            (
                name,
                f"above what is proved by at most {comparison.largest_gap(name)[0]:.5f} bit; "
                f"{comparison.seconds[name]:.2f} CPU s; {comparison.settings[name]}",
            )
            for name in comparison.methods
        ],
    }


def _mechanism(mechanism: TableMechanism) -> dict[str, Any]:
    x = " × ".join(mechanism.x_names)
    lines = [f"{mechanism.n_x:,} values of {x} are released as {mechanism.n_z:,} symbols."]
    return {"lines": lines, **_merged(mechanism)}


def _merged(mechanism: TableMechanism) -> dict[str, Any]:
    return {"symbols": symbols_of(mechanism)[:SHOWN_SYMBOLS], "n_symbols": mechanism.n_z}


def _report(report: AuditReport) -> dict[str, Any]:
    report = report.published()
    found = wording.first_seconds(report)
    return {
        "lines": [*wording.first_lines(report), *found["lines"]],
        "bar": found["bar"],
        "middle": "with the release",
        "facts": [
            (f"{one.quantity} of {one.attribute}" if one.attribute else one.quantity, wording.signed(one))
            for name in wording.attributes(report)
            for one in wording.told(report, name).leaked.findings
        ],
    }


_KINDS: dict[type, Any] = {
    Joint: _joint,
    Solution: _solution,
    Frontier: _frontier,
    Comparison: _comparison,
    TableMechanism: _mechanism,
    AuditReport: _report,
}
