"""Figures of one report: who guesses how often, leakage in bits, confusion, embedding, reconstructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import IntArray
from ..auditing import AuditReport, ClassTable, Finding
from ..auditing.findings import guessed, released
from ..errors import InvalidInputError
from ..plotting import (
    CLASS_COLOURS,
    COLOURS,
    FAINT,
    INK,
    import_figure,
    label_line,
    new_figure,
    plain,
    printable,
    tidy,
)
from .wording import SIGNS, chance, confusion_pair, interval, signed, view, who

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Up to so many classes the cells of a confusion carry numbers, and centres and axes carry names.
FEW, SOME = 12, 30
#: What the rounded shares of a cell do not tell: its colour, and its number among the classes.
UNTOLD, NOT_TOLD = "#e8eaee", -1
#: How the gid of a mark begins that says something when it is pointed at.
TIP = "tip:"
#: Raw records beside the release, and numbers on the blue cells of a confusion, which stay in the dark too.
_RAW, _ON_BLUE = "#a6a6a6", "#08306b"
_KINDS = dict(zip(SIGNS, (INK, *COLOURS[:3]), strict=True))
_MARKS = {"exact": "D", "lower bound": ">", "upper bound": "<", "estimate": "o"}

#: A line of a dot plot: its name, and numbers with their colours and marks.
_Row = tuple[str, list[tuple[Finding, str, str]]]


def success_found(report: AuditReport, attribute: str) -> list[tuple[Finding, Finding | None]]:
    """Success of each adversary on what is released, the highest first, and that of the same one on X."""
    found = [one for one in report.find("success") if one.attribute == attribute]
    raw = {one.source: one for one in found if one.on == "X"}
    after = sorted(guessed(found), key=lambda one: -one.value)
    return [(one, raw.get(one.source)) for one in after]


def plot_success(report: AuditReport, attribute: str) -> Figure:
    """Draw how often each adversary guesses an attribute, from the release and from raw records."""
    found = success_found(report, attribute)
    if not found:
        raise InvalidInputError(f"plot_success: the report has no success about {attribute!r}.")
    rows: list[_Row] = [
        (who(one), ([] if raw is None else [(raw, _RAW, "o")]) + [(one, COLOURS[0], "o")])
        for one, raw in found
    ]
    exact = all(one.kind == "exact" for one, _ in found)
    kind = "" if exact else "\n(a lower bound on what the best adversary would)"
    figure, ax = _dot_plot(rows, f"share of records whose class is guessed{kind}")
    shown = [("release", {"color": COLOURS[0], "marker": "o"})]
    if any(raw is not None for _, raw in found):
        shown.append(("raw records X", {"color": _RAW, "marker": "o"}))
    nothing = chance(report, attribute)
    if nothing is not None:
        # A tick on each line: a line across all would run through their names.
        tick: dict[str, Any] = {"color": INK, "marker": "|", "linestyle": "none"}
        ax.plot([nothing.value] * len(rows), range(len(rows)), markersize=7, zorder=1, **tick)
        shown.append((f"chance {signed(nothing)}", tick))
    ax.set_xlim(0, 1.02)
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    _row_legend(figure, shown)
    return figure


def leakage_found(report: AuditReport, attribute: str) -> list[Finding]:
    """What each source says about I(Z;Y) of one attribute, and what it says of nothing; the most first."""
    found = [*released(report.find("leakage")), *report.find("leakage null")]
    own = dict.fromkeys(one for one in found if one.attribute == attribute)
    return sorted(own, key=lambda one: -one.value)


def plot_leakage(report: AuditReport, attribute: str) -> Figure:
    """Draw what each source says about I(Z;Y), by kind."""
    found = leakage_found(report, attribute)
    if not found:
        raise InvalidInputError(f"plot_leakage: the report has no leakage about {attribute!r}.")
    rows: list[_Row] = [
        (
            who(one) + (" – null" if one.quantity.endswith("null") else ""),
            [(one, _KINDS[one.kind], _MARKS[one.kind])],
        )
        for one in found
    ]
    figure, ax = _dot_plot(rows, "I(Z;Y) in bits")
    ax.set_xlim(left=min(0.0, ax.get_xlim()[0]) if any(one.value < 0 for one in found) else 0.0)
    kinds = [kind for kind in SIGNS if any(one.kind == kind for one in found)]
    _row_legend(
        figure,
        [(f"{SIGNS[kind]} {kind}", {"color": _KINDS[kind], "marker": _MARKS[kind]}) for kind in kinds],
    )
    return figure


def _dot_plot(rows: Sequence[_Row], label: str) -> tuple[Figure, Axes]:
    """A line for each row under its name, which may be long; bars are intervals."""
    figure, (ax,) = new_figure((4.3, 0.95 + 0.37 * len(rows)))
    for y, (name, marks) in enumerate(rows):
        ax.axhline(y, color=FAINT, alpha=0.35, linewidth=0.6, zorder=0)
        label_line(ax, _short(name, 62), y, (0, 5.5), fontsize=8.5, color=INK)
        for one, colour, mark in marks:
            if one.interval is not None:
                ax.plot(one.interval, [y, y], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
            (dot,) = ax.plot([one.value], [y], mark, color=colour, markersize=5.5, zorder=3, clip_on=False)
            _tip(dot, f"{name}, {view(one.on)}: {signed(one)} ({one.kind}; {interval(one)})")
    tidy(ax, label, "")
    ax.set_ylim(len(rows) - 0.6, -0.9)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    return figure, ax


def _row_legend(figure: Figure, shown: Sequence[tuple[str, dict[str, Any]]]) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], label=name, **{"linewidth": 1.6, "markersize": 5.5, **look}) for name, look in shown
    ]
    _legend(figure, marks, ncols=4)


def _legend(figure: Figure, handles: Sequence[Artist], **options: Any) -> None:
    """Below the axes, without a frame."""
    look: dict[str, Any] = {"fontsize": 8, "frameon": False, "labelcolor": INK}
    figure.legend(handles=handles, loc="outside lower center", **look, **options)


def plot_confusion(
    report: AuditReport,
    source: str | None = None,
    *,
    views: Sequence[str] = ("X", "Z"),
    most: int | None = None,
    size: tuple[float, float] | None = None,
) -> Figure:
    """Draw which classes an adversary takes for which, on raw records X and on the release Z.

    Parameters
    ----------
    report : AuditReport
    source : str, optional
        The adversary; by default the one that guesses most on Z.
    views : sequence of {"X", "Z"}
        Which of the two, side by side.
    most : int, optional
        Of more classes only so many, those guessed best from Z.
    size : (width, height), optional
        In inches.
    """
    raw, after = confusion_pair(report, source)
    shown = [one for one in (raw, after) if one is not None and one.on in views]
    figure, axes = new_figure(size or (3.5 * len(shown) + 0.2, 3.6), len(shown), sharey=True)
    rows = np.sort(np.argsort(-after.success, kind="stable")[:most])
    for ax, table in zip(axes, shown, strict=True):
        image = _draw_confusion(ax, table, rows)
    if len(rows) > FEW:
        bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label("share of the true class", fontsize=8.5, color=INK)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, color=FAINT, labelcolor=INK, width=0.7, length=3)
    axes[0].set_ylabel(f"true {_named(after)}", fontsize=9.5, color=INK)
    return figure


def _draw_confusion(ax: Axes, table: ClassTable, rows: IntArray) -> Any:
    shares = table.guessed[np.ix_(rows, rows)]
    n = len(shares)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    title = f"{_short(table.source, 26)} on {table.on}: {100 * table.right:.1f} % right"
    ax.set_title(title, fontsize=9, loc="left", color=INK)
    tidy(ax, f"guessed {_named(table)}", "")
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    if n <= SOME:
        names = [_short(table.classes[i]) for i in rows]
        turned = 90 if max(map(len, names)) > 3 else 0
        ax.set_xticks(range(n), names, rotation=turned, fontsize=8)
        ax.set_yticks(range(n), names, fontsize=8)
    else:
        ax.set(xticks=[], yticks=[])
    if n <= FEW:
        for (i, j), share in np.ndenumerate(shares):
            if share >= 0.005:
                ink = "white" if share > 0.55 else _ON_BLUE
                ax.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=7, color=ink)
    return image


def _named(table: ClassTable) -> str:
    """The attribute on an axis; an unnamed one is called private by the audit."""
    return "class" if table.attribute == "private" else _short(table.attribute, 30)


def plot_embedding(
    report: AuditReport,
    *,
    views: Sequence[str] = ("X", "Z"),
    names: bool = True,
    size: tuple[float, float] = (7.2, 4.3),
) -> Figure:
    """Draw where records lie in UMAP embeddings of X and Z, side by side, with the shares of the classes.

    Needs a report made with `figures=True`, and is as private as the data. A square stands for ten records
    or more in one place: its area for how many, its stripes for their classes (in fifths; grey is what is not
    told). Distances between islands mean little; whether a class has an island of its own is what to look at.

    Parameters
    ----------
    report : AuditReport
    views : sequence of {"X", "Z"}
        Which of the two, side by side.
    names : bool
        Whether a legend names the classes.
    size : (width, height)
        Of both views, in inches.
    """
    data = report.figures_data.get("density")
    if data is None:
        raise InvalidInputError(
            "plot_embedding: the report has no embedding; audit with figures=True.", names=("figures",)
        )
    views = [on for on in ("X", "Z") if on in data and on in views]
    figure, axes = new_figure((size[0] * len(views) / 2, size[1]), len(views))
    for ax, on in zip(axes, views, strict=True):
        _draw_cells(ax, data[on], data["side"], data["classes"])
        ax.set_title(f"UMAP of the {view(on)}", fontsize=9.5, loc="left", color=INK)
        left_out = f"{100 * data[on]['not_shown']:.0f} % of the records, in smaller groups, not shown"
        ax.set_xlabel(left_out, fontsize=7.5, color=INK)
    if names and len(data["classes"]) <= SOME:
        _class_legend(figure, data["classes"])
    return figure


def _draw_cells(ax: Axes, drawn: Mapping[str, Any], side: int, classes: Sequence[str]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    most = max(drawn["records"], default=1)
    stripes: dict[int, list[Path]] = {}
    for (column, row), records, shares in zip(drawn["cells"], drawn["records"], drawn["shares"], strict=True):
        edge = 0.94 * np.sqrt(records / most)
        left, bottom = column + 0.5 - edge / 2, row + 0.5 - edge / 2
        for i, begin, width in _stripes(shares):
            corner, opposite = (left + begin * edge, bottom), (left + (begin + width) * edge, bottom + edge)
            corners = [corner, (opposite[0], corner[1]), opposite, (corner[0], opposite[1]), corner]
            stripes.setdefault(i, []).append(Path(corners, closed=True))
    # One shape a class, however many stripes it has: an SVG stays small, and tells which class they are.
    for i, paths in sorted(stripes.items()):
        shape = PathPatch(Path.make_compound_path(*paths), facecolor=class_colour(i), linewidth=0)
        _tip(ax.add_patch(shape), "not told" if i == NOT_TOLD else classes[i])
    ax.set(xlim=(-0.5, side + 0.5), ylim=(-0.5, side + 0.5), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for spine in ax.spines.values():
        spine.set_color(FAINT)
        spine.set_linewidth(0.7)


def _stripes(shares: Sequence[float]) -> Iterator[tuple[int, float, float]]:
    """Class, begin and width of the stripes of a cell, and of what its rounded shares leave open."""
    whole, begin = max(sum(shares), 1.0), 0.0
    for i, share in enumerate(shares):
        if share:
            yield i, begin, share / whole
            begin += share / whole
    if begin < 0.999:
        yield NOT_TOLD, begin, 1 - begin


def _class_legend(figure: Figure, classes: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    shown = class_key(classes)
    short = max(len(name) for name, _ in shown[:-1]) <= 3
    _legend(
        figure,
        [Patch(color=colour, label=_short(name)) for name, colour in shown],
        ncols=min(len(shown), 11 if short else 5),
        handlelength=0.9,
        handleheight=0.9,
        columnspacing=1.2,
    )


def class_key(classes: Sequence[str]) -> list[tuple[str, str]]:
    """Names and colours of the classes, and of what is not told."""
    return [*((name, class_colour(i)) for i, name in enumerate(classes)), ("not told", UNTOLD)]


def class_colour(i: int) -> str:
    """A colour for the i-th class."""
    if i == NOT_TOLD:
        return UNTOLD
    base = CLASS_COLOURS[i % len(CLASS_COLOURS)]
    rgb = [int(base[j : j + 2], 16) for j in (1, 3, 5)]
    turn = (i // len(CLASS_COLOURS)) % 3
    return "#" + "".join(f"{round(part + (255 - part) * 0.22 * turn):02x}" for part in rgb)


def plot_samples(report: AuditReport, n_columns: int = 10, *, width: float = 7.2) -> Figure:
    """Draw records and beneath each its reconstruction; classes are written above.

    Needs a report of images made with `show_records=True`, and is as private as the data.
    """
    data = report.figures_data.get("images")
    if data is None:
        raise InvalidInputError(
            "plot_samples: the report has no images; audit images (n, height, width) with show_records=True.",
            names=("show_records",),
        )
    shape = tuple(data["shape"])
    originals, copies = (
        np.asarray(data[key], dtype=np.float64).reshape(-1, *shape) for key in ("X", "X_hat")
    )
    n = len(originals)
    n_columns = min(int(n_columns), n)
    n_blocks = -(-n // n_columns)
    side = width / (n_columns + 0.6)
    height = n_blocks * 2 * side * originals.shape[1] / originals.shape[2] + 0.25 * n_blocks
    figure: Figure = import_figure()(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.01, h_pad=0.01, wspace=0.02, hspace=0.02)
    axes = figure.subplots(2 * n_blocks, n_columns, squeeze=False)
    for ax in axes.ravel():
        ax.set_axis_off()
    for k in range(n):
        block, column = divmod(k, n_columns)
        for row, images in ((0, originals), (1, copies)):
            axes[2 * block + row, column].imshow(
                images[k], cmap="gray", vmin=originals.min(), vmax=originals.max(), interpolation="nearest"
            )
    for block in range(n_blocks):
        for row, text in ((0, "$X$"), (1, r"$\hat{X}$")):
            axes[2 * block + row, 0].text(
                -0.12, 0.5, text, transform=axes[2 * block + row, 0].transAxes, ha="right", va="center"
            )
    return figure


def _tip(mark: Artist, text: str) -> None:
    """What a mark says when it is pointed at on a page; matplotlib has no place for it but the id."""
    mark.set_gid(TIP + printable(text))


def _short(label: object, most: int = 14) -> str:
    """A name that fits on an axis."""
    text = str(label)
    return plain(text if len(text) <= most else f"{text[: most - 1]}…")
