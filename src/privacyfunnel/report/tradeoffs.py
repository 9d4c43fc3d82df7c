"""Figures of several reports: success against PSNR, and the information plane with brackets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..auditing import AuditReport, Finding
from ..auditing.findings import Bracket
from ..errors import InvalidInputError
from ..plotting import (
    COLOURS,
    FAINT,
    MARKERS,
    WHITE_EDGE,
    figure_of,
    label_line,
    legend,
    new_figure,
    plain,
    plot_frontier,
    tidy,
)
from ..tradeoff import Frontier
from .wording import before, bracket, chance, first, reach, strongest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Reports = AuditReport | Sequence[AuditReport] | Mapping[str, Sequence[AuditReport]]


def grouped(reports: Reports) -> dict[str, list[AuditReport]]:
    """The reports by method: as the mapping says, else those of one name together."""
    if isinstance(reports, Mapping):
        return {name: list(group) for name, group in reports.items()}
    groups: dict[str, list[AuditReport]] = {}
    for report in [reports] if isinstance(reports, AuditReport) else reports:
        groups.setdefault(str(report.meta.get("name", "release")), []).append(report)
    return groups


def frontier_points(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of points (PSNR, success) those that no other beats in both, by rising PSNR."""
    best: list[tuple[float, float]] = []
    for point in sorted(points, key=lambda one: (-one[0], one[1])):
        if not best or point[1] < best[-1][1]:
            best.append(point)
    return best[::-1]


def success_psnr(
    reports: Sequence[AuditReport], adversary: str | None = None, attribute: str | None = None
) -> list[tuple[Finding, Finding]]:
    """(PSNR, success) of the reports that have both; a perfect reconstruction has no place on the axis."""
    pairs = [(first(one, "psnr"), strongest(one, attribute, adversary)) for one in reports]
    return [
        (psnr, success)
        for psnr, success in pairs
        if psnr is not None and success is not None and math.isfinite(psnr.value + reach(psnr)[1])
    ]


def plot_success_psnr(
    reports: Reports,
    ax: Axes | None = None,
    *,
    adversary: str | None = None,
    attribute: str | None = None,
    size: tuple[float, float] = (5.2, 3.9),
) -> Figure:
    """Draw how often the private class is guessed against how good the reconstruction is.

    Lower and further right is better. Each method's line is the staircase of its points that no other of its
    points beats in both; bars are the intervals. Success is what an adversary reached: a lower bound on what
    the best one would.

    Parameters
    ----------
    reports : AuditReport, sequence of them, or mapping of method to reports
        In a sequence the reports of one name are one method.
    ax : matplotlib Axes, optional
    adversary : str, optional
        Only this one's success; by default the strongest of each report.
    attribute : str, optional
        The private attribute; by default the one that comes off worst.
    size : (width, height)
        Of a new figure, in inches.
    """
    groups = grouped(reports)
    drawn = {name: success_psnr(group, adversary, attribute) for name, group in groups.items()}
    if not any(drawn.values()):
        raise InvalidInputError(
            "plot_success_psnr: no report has both PSNR and success; audit with X and a decoder or X_hat."
        )
    if ax is None:
        ax = new_figure(size)[1][0]
    for i, (name, pairs) in enumerate(drawn.items()):
        _draw_method(ax, name, pairs, i)
    best = [(one, strongest(one, attribute, adversary)) for group in groups.values() for one in group]
    _draw_references(ax, [(one, found) for one, found in best if found is not None])
    who = adversary or "the strongest adversary"
    tidy(ax, "quality of the reconstruction, PSNR  [dB]", f"{plain(who)} is right  (lower bound)")
    _as_percent(ax)
    ax.margins(x=0.08, y=0.08)
    ax.set_ylim(bottom=0)
    legend(ax, loc="best")
    return figure_of(ax)


def _draw_method(ax: Axes, name: str, pairs: list[tuple[Finding, Finding]], i: int) -> None:
    if not pairs:
        return
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    for psnr, success in pairs:
        xerr, yerr = ([[end] for end in reach(one)] for one in (psnr, success))
        look: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.9, "alpha": 0.6}
        ax.errorbar(psnr.value, success.value, xerr=xerr, yerr=yerr, zorder=2, **look)
    best = frontier_points([(psnr.value, success.value) for psnr, success in pairs])
    ax.step([p for p, _ in best], [s for _, s in best], where="pre", color=colour, linewidth=1.4, zorder=3)
    x, y = ([one.value for one in side] for side in zip(*pairs, strict=True))
    marks: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": 6, **WHITE_EDGE}
    ax.plot(x, y, color=colour, label=plain(name), zorder=4, **marks)


def _draw_references(ax: Axes, shown: Sequence[tuple[AuditReport, Finding]]) -> None:
    """Chance and success on raw records, where all reports agree on them."""
    nothing = [one for report, found in shown if (one := chance(report, found.attribute)) is not None]
    raw = [one.value for report, found in shown if (one := before(report, found)) is not None]
    marks = []
    if nothing and max(one.value for one in nothing) - min(one.value for one in nothing) < 0.01:
        marks.append((nothing[0].value, "chance", (0, (5, 3))))
    if raw and max(raw) - min(raw) < 0.05:
        marks.append((sum(raw) / len(raw), "same adversary on the records themselves", (0, (1, 2))))
    for value, text, dashes in marks:
        ax.axhline(value, color=FAINT, linewidth=0.8, linestyle=dashes, zorder=1)
        label_line(ax, text, value, (4, 3))


def _as_percent(ax: Axes) -> None:
    from matplotlib.ticker import PercentFormatter

    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def plot_information_plane(
    reports: Reports,
    ax: Axes | None = None,
    *,
    frontier: Frontier | Sequence[Frontier] | Mapping[str, Frontier] | None = None,
    attribute: str | None = None,
    size: tuple[float, float] = (5.2, 3.9),
) -> Figure:
    """Draw audited releases in the information plane: utility I(Z;X) across, leakage I(Z;Y) up.

    A filled mark is an exact value. Otherwise a box spans what the bounds and their intervals leave open,
    with an open mark at the estimates where there are any, else in its middle.

    Parameters
    ----------
    reports : AuditReport, sequence of them, or mapping of method to reports
        In a sequence the reports of one name are one method.
    ax : matplotlib Axes, optional
    frontier : as for `plot_frontier`, optional
        What is drawn beneath.
    attribute : str, optional
        The private attribute; by default that of the report's first number.
    size : (width, height)
        Of a new figure, in inches.
    """
    groups = {name: _planes(group, attribute) for name, group in grouped(reports).items()}
    if not any(groups.values()):
        raise InvalidInputError(
            "plot_information_plane: no report has I(Z;X); audit a table or an encoder with a known density."
        )
    if ax is None:
        ax = new_figure(size)[1][0]
    if frontier is not None:
        plot_frontier(frontier, ax)
    beneath = ax.get_legend_handles_labels()[1]
    for i, (name, planes) in enumerate(groups.items()):
        for j, (utility, leakage) in enumerate(planes):
            _draw_bracket(ax, utility, leakage, plain(name) if j == 0 else None, i + len(beneath))
    tidy(ax, "utility  $I(Z;X)$  [bit]", "leakage  $I(Z;Y)$  [bit]")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    # Below the mark of I(X;Y), if there is one.
    legend(ax, beneath, loc="upper left", bbox_to_anchor=(0.01, 0.92 if beneath else 1.0))
    return figure_of(ax)


def _planes(reports: Sequence[AuditReport], attribute: str | None) -> list[tuple[Bracket, Bracket]]:
    pairs = [(bracket(one, "utility"), bracket(one, "leakage", attribute)) for one in reports]
    return [(utility, leakage) for utility, leakage in pairs if utility.findings and leakage.findings]


def _draw_bracket(ax: Axes, utility: Bracket, leakage: Bracket, label: str | None, i: int) -> None:
    from matplotlib.patches import Rectangle

    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    left, right, low, high = (
        0.0 if end is None else end for end in (utility.low, utility.high, leakage.low, leakage.high)
    )
    exact = all(one.middle is not None and one.middle.kind == "exact" for one in (utility, leakage))
    look: dict[str, Any] = {
        "marker": marker,
        "markersize": 6,
        "linestyle": "none",
        "color": colour,
        "markerfacecolor": colour if exact else "white",
        "markeredgecolor": "white" if exact else colour,
        "markeredgewidth": 0.6 if exact else 1.2,
        "label": label,
        "clip_on": False,
        "zorder": 6,
    }
    if not exact:
        box = Rectangle((left, low), right - left, high - low, facecolor=colour, alpha=0.15, linewidth=0)
        edge = Rectangle((left, low), right - left, high - low, fill=False, edgecolor=colour, linewidth=0.9)
        ax.add_patch(box)
        ax.add_patch(edge)
    x = utility.middle.value if utility.middle is not None else (left + right) / 2
    y = leakage.middle.value if leakage.middle is not None else (low + high) / 2
    # Estimates that contradict the bounds are not moved: the reader should see it.
    ax.plot([x], [y], **look)
    ax.autoscale_view()
