"""Publication-quality figures of the information plane, in bits, and what all our figures have in common.

Figures are made without matplotlib's global state: they need no display and may be made in threads.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import InvalidInputError, MissingDependencyError
from .tradeoff import TRIVIAL_METHODS, Frontier, TradeoffPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart with every common colour blindness and by lightness in print; its
# yellow, too faint for a line on white, is replaced by wine. Markers repeat the distinction.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#882255", "#222222")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: For classes: ten are told apart, as digits are common.
CLASS_COLOURS = (*COLOURS, "#999933", "#9a9a9a")
# Each method has a colour and a marker of its own in every figure; other curves have those that are left.
METHOD_LOOKS = ("exact", "dca", "dca-ridge", "dca-sparse", "splitting", "em", "greedy", "submodular")
INK, FAINT = "#222222", "#8a8a8a"
WHITE_EDGE = {"markeredgecolor": "white", "markeredgewidth": 0.6}
_SHADE = "#ececec"
# Of the height of a figure: how near curves coincide; points of a line until the next of them takes its turn.
_LOOKS_EQUAL, _TURN = 0.01, 5.0
_BACKGROUND = ("X or nothing, at random", "proved impossible", "proved impossible with these answers")
# What the axes show, by the measures of a frontier.
_ACROSS = {
    "information": "utility  $I(Z;X)$  [bit]",
    "distance": "squared distance taken away",
    "cost": "cost taken away",
    "task": "told about the task  $I(Z;T)$  [bit]",
}
_UP = {
    "information": "leakage  $I(Z;Y)$  [bit]",
    "success": "share of people guessed right",
    "parity": "largest difference between two groups",
}
# matplotlib's parser of formulas is shared by all threads and keeps its state between calls.
_RENDERING = threading.Lock()
# Without these, two runs of one program would write different bytes (an SVG has random names in it, too).
_NO_DATE = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}


def plot_frontier(
    frontiers: Frontier | Sequence[Frontier] | Mapping[str, Frontier],
    ax: Axes | None = None,
    *,
    title: str | None = None,
    points: bool = True,
    size: tuple[float, float] = (5.2, 4.5),
) -> Figure:
    """Draw trade-offs in the information plane: utility I(Z;X) across, leakage I(Z;Y) up; or other measures.

    Lower and further right is better. Each curve is the best that time sharing makes of its points.
    The dashed diagonal is what anyone gets without a solver: releasing X sometimes and nothing otherwise.
    A grey area is drawn where a certified bound proves that no mechanism can be.

    Parameters
    ----------
    frontiers : Frontier, sequence of them, or mapping of names to them
        One curve for each method of each frontier; with a mapping one for each frontier, under its name.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
    points : bool
        Also draw, faintly, the points that are no corners of a curve.
    size : (width, height)
        Of a new figure, in inches.

    Returns
    -------
    matplotlib Figure
        `save_figure` writes it to a file.
    """
    import_figure()
    curves = list(_curves(frontiers))
    if not curves:
        raise InvalidInputError("plot_frontier: there is no frontier to draw; pass at least one.")
    if any(frontier.scale != curves[0][1].scale for _, frontier in curves):
        raise InvalidInputError(
            "plot_frontier: these frontiers are measured differently; draw one figure for each measure."
        )
    own = ax is None
    if ax is None:
        ax = new_figure(size)[1][0]
    shown = [frontier for _, frontier in curves]
    _draw_bound(ax, shown)
    _draw_limits(ax, shown)
    for number, ((name, frontier), place, look) in enumerate(
        zip(curves, _coinciding(shown), looks([name for name, _ in curves]), strict=True)
    ):
        _draw_curve(ax, name, frontier, number, len(curves), place, points, look)
    _finish(ax, title, shown[0], beneath=own)
    return figure_of(ax)


def looks(names: Sequence[str]) -> list[int]:
    """For each curve of a figure the number of its colour and marker: a method has its own everywhere.

    Numbers from `len(COLOURS)` on are of further curves, which have the same colours and broken lines.
    """
    own = {name: METHOD_LOOKS.index(name) for name in names if name in METHOD_LOOKS}
    taken = set(own.values())
    free = (number for number in count() if number not in taken)
    return [own.pop(name) if name in own else next(free) for name in names]


def mark_size(marker: str, size: float) -> float:
    """The size at which a mark looks as large as others: a star is mostly points."""
    return 1.5 * size if marker == "*" else size


def save_figure(figure: Figure, path: str | PathLike[str], *, dpi: float = 200) -> None:
    """Write a figure as PNG, PDF or SVG, by the ending of the name; it appears whole or not at all."""
    from .persistence import write_atomic

    kind = figure_kind(path)
    content = io.BytesIO()
    with _RENDERING:
        figure.savefig(content, format=kind, dpi=dpi, metadata=_NO_DATE[kind])
    write_atomic(path, content.getvalue())


def svg_source(figure: Figure) -> str:
    """A figure as SVG on no background, in which text is text and small images keep their pixels."""
    from matplotlib import rc_context

    for ax in figure.axes:
        for image in ax.images:
            if max(image.get_size()) <= 64:
                image.set_interpolation("none")
    content = io.StringIO()
    with _RENDERING, warnings.catch_warnings(), rc_context({"svg.fonttype": "none"}):
        # Letters that matplotlib has no shape for are drawn by whoever shows the text.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font")
        figure.savefig(content, format="svg", dpi=100, metadata=_NO_DATE["svg"], transparent=True)
    return content.getvalue()


def figure_kind(path: str | PathLike[str]) -> str:
    """What a figure file of this name holds: png, pdf or svg; InvalidInputError for anything else."""
    kind = PurePath(fspath(path)).suffix.lower().lstrip(".")
    if kind not in _NO_DATE:
        raise InvalidInputError(
            f"{fspath(path)}: the name of a figure must end in .png, .pdf or .svg, which says what to write; "
            "rename it."
        )
    return kind


def import_figure() -> Any:
    """matplotlib's Figure, or MissingDependencyError."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "Drawing needs matplotlib. Install it with: pip install 'privacyfunnel[plot]'"
        ) from error
    return Figure


def new_figure(size: tuple[float, float], n_axes: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with axes side by side, without matplotlib's global state."""
    figure: Figure = import_figure()(figsize=size, layout="constrained")
    return figure, list(figure.subplots(1, n_axes, squeeze=False, **options)[0])


def legend(ax: Axes, last: Sequence[str] = (), **options: Any) -> None:
    """A legend without a frame, if there is something to say; what others are seen against comes `last`."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        order = sorted(range(len(labels)), key=lambda i: labels[i] in last)
        look: dict[str, Any] = {"fontsize": 8, "frameon": False, "labelcolor": INK, "labelspacing": 0.4}
        ax.legend([handles[i] for i in order], [labels[i] for i in order], **{**look, **options})


def label_line(
    ax: Axes, text: str, at: float, offset: tuple[float, float], *, up: bool = False, **look: Any
) -> None:
    """Write where a line across (or one that goes up) begins, a few points from it."""
    look = {"fontsize": 7.5, "color": FAINT, **look}
    place, axes = ((at, 0), ("data", "axes fraction")) if up else ((0, at), ("axes fraction", "data"))
    ax.annotate(text, place, xycoords=axes, xytext=offset, textcoords="offset points", **look)


def figure_of(ax: Axes) -> Figure:
    """The figure that axes are part of."""
    figure: Figure = ax.get_figure(root=True)  # type: ignore[assignment]
    return figure


def printable(text: object) -> str:
    """A label on one line, without characters that no document may hold."""
    return "".join(one if one.isprintable() else "\ufffd" for one in " ".join(str(text).split()))


def plain(text: object) -> str:
    """A label as matplotlib shall print it, on one line: a dollar sign is no formula."""
    return printable(text).replace("$", r"\$")


def _curves(
    frontiers: Frontier | Sequence[Frontier] | Mapping[str, Frontier],
) -> Iterator[tuple[str, Frontier]]:
    """The curves to draw, with their names."""
    if isinstance(frontiers, Mapping):
        yield from frontiers.items()
        return
    for frontier in [frontiers] if isinstance(frontiers, Frontier) else frontiers:
        for method in frontier.methods:
            yield method, frontier.select(method)
        if not frontier.methods:
            yield "", frontier


def _coinciding(frontiers: Sequence[Frontier]) -> list[tuple[int, int]]:
    """For each curve which of those that look the same it is, and how many they are."""
    groups: list[list[int]] = []
    drawn = [_places(frontier.envelope()) for frontier in frontiers]
    highest = max((max(up) - min(up) for _, up in drawn), default=0.0)
    for number, (across, up) in enumerate(drawn):
        for group in groups:
            first_across, first_up = drawn[group[0]]
            at = np.linspace(0.0, max(across[-1], first_across[-1]), 257)
            apart = np.abs(np.interp(at, across, up) - np.interp(at, first_across, first_up)).max()
            if apart <= _LOOKS_EQUAL * highest:
                group.append(number)
                break
        else:
            groups.append([number])
    places = {number: (i, len(group)) for group in groups for i, number in enumerate(group)}
    return [places[number] for number in range(len(frontiers))]


def _draw_curve(
    ax: Axes,
    name: str,
    frontier: Frontier,
    number: int,
    n_curves: int,
    place: tuple[int, int],
    points: bool,
    look: int,
) -> None:
    colour, marker = COLOURS[look % len(COLOURS)], MARKERS[look % len(MARKERS)]
    corners = frontier.envelope()
    found = [p for p in corners[1:] if not _is_identity(p, frontier)]
    # Earlier curves are wider and have larger marks, and all marks lie above all lines, so that what a later
    # curve covers still shows.
    earlier = (n_curves - 1 - number) / max(n_curves - 1, 3)
    width, mark = 1.3 + 1.3 * earlier, 4.6 + 2.4 * earlier
    order = number / n_curves
    own: Any = "-" if look < len(COLOURS) else (0, (4, 1.5))
    dashes = own
    edge: dict[str, Any] = dict(WHITE_EDGE)
    which, same = place
    if same > 1:
        # Curves that coincide take turns along the line, and have rings around the marks of the first.
        width, mark = 1.8, 4.6 + which * min(2.0, 6 / (same - 1))
        if which:
            turn = _TURN / width  # matplotlib counts in widths
            dashes = ((same - which) * turn, (turn, (same - 1) * turn))
            edge = {"markerfacecolor": "none", "markeredgecolor": colour, "markeredgewidth": 1.2}
    if points:
        ids = {id(p) for p in corners}
        others = [p for p in frontier.points if id(p) not in ids and p.method not in TRIVIAL_METHODS]
        faint: dict[str, Any] = {"facecolor": colour, "edgecolor": "none", "alpha": 0.3, "zorder": 2}
        ax.scatter(*_places(others), s=8, marker=marker, rasterized=len(others) > 500, **faint)
    line: dict[str, Any] = {"color": colour, "linewidth": width, "linestyle": dashes}
    ax.plot(*_places(corners), solid_joinstyle="round", clip_on=False, zorder=3 + order, **line)
    marks: dict[str, Any] = {"marker": marker, "markersize": mark_size(marker, mark), **edge}
    ax.plot(
        *_places(found),
        color=colour,
        linestyle="none",
        # A mark on each of many corners would be a thick line: then one every so often, from another start
        # on each curve so that the marks of equal curves do not hide each other.
        markevery=None if len(found) <= 12 else (0.02 * (number % 5), 0.1),
        clip_on=False,
        zorder=4 + order,
        **marks,
    )
    if name and len(corners) > 1:  # where X has one value there is no curve to tell apart
        ax.plot([], [], label=name, **{**line, "linestyle": own}, **marks)


def _places(points: Sequence[TradeoffPoint]) -> tuple[list[float], list[float]]:
    return [p.utility for p in points], [p.leakage for p in points]


def _is_identity(point: TradeoffPoint, frontier: Frontier) -> bool:
    """Whether the point is Z = X, which has a mark of its own."""
    return frontier.entropy_x is not None and point.utility >= frontier.entropy_x - 1e-9


def _draw_limits(ax: Axes, frontiers: Sequence[Frontier]) -> None:
    """H(X), I(X;Y) and the diagonal, where all frontiers agree on them."""
    first = frontiers[0]
    top, right = first.mutual_information, first.entropy_x
    if top is None or right is None:
        return
    for other in frontiers:
        if other.entropy_x is None or other.mutual_information is None:
            return
        if max(abs(other.entropy_x - right), abs(other.mutual_information - top)) > 1e-9:
            return
    thin: dict[str, Any] = {"color": FAINT, "linewidth": 0.7, "zorder": 1.0}
    if right <= 0:
        ax.plot([0], [top], marker="o", markersize=4, color=INK, linestyle="none", zorder=5, clip_on=False)
        label_line(ax, "X has one value: there is nothing to keep", top, (8, 4), va="bottom", ha="left")
        ax.set(xlim=(0, 1.0), ylim=(top, top + 1.0))
        return
    ax.axvline(right, linestyle=(0, (1, 2)), **thin)
    ax.axhline(top, linestyle=(0, (1, 2)), **thin)
    least = first.least_leakage
    ax.plot([0, right], [least, top], linestyle=(0, (5, 3)), label=_BACKGROUND[0], **thin)
    ax.plot([right], [top], marker="o", markersize=4, color=INK, linestyle="none", zorder=5, clip_on=False)
    upright: dict[str, Any] = {"up": True, "rotation": 90}
    scale = first.scale
    most = "$H(X)$" if scale.utility == "information" else "of $X$ itself"
    told = "$I(X;Y)$" if scale.leakage == "information" and not scale.budgets else "from $X$ itself"
    label_line(ax, f"{most} = {right:.4g}", right, (3, 4), va="bottom", ha="left", zorder=6, **upright)
    label_line(ax, f"{told} = {top:.4g}", top, (4, 3), va="bottom", ha="left", zorder=6)
    ax.set_xlim(0, right * 1.06)
    room = top - least
    ax.set_ylim(max(least - 0.1 * room, 0.0), top + 0.10 * room if room > 0 else top + 1.0)


def _draw_bound(ax: Axes, frontiers: Sequence[Frontier]) -> None:
    """Shade what the certified bounds rule out; they hold for every mechanism, so one area is enough."""
    bounded = [f for f in frontiers if f.support_lines]
    if not bounded:
        return
    frontier = max(bounded, key=lambda f: len(f.support_lines))
    end = frontier.max_utility if frontier.entropy_x is None else frontier.entropy_x
    if end <= 0:
        return
    at = np.linspace(0, end, 513)
    floor = [frontier.lower_bound_at(min(u, frontier.max_utility)) or 0.0 for u in at]
    label = _BACKGROUND[2 if frontier.scope else 1]
    ax.fill_between(at, floor, color=_SHADE, linewidth=0, zorder=0, label=label)


def tidy(ax: Axes, x: str, y: str) -> None:
    """Labels, thin spines on two sides, small ticks."""
    ax.set_xlabel(x, fontsize=9.5, color=INK)
    ax.set_ylabel(y, fontsize=9.5, color=INK)
    ax.tick_params(labelsize=8.5, color=FAINT, labelcolor=INK, width=0.7, length=3)
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
        ax.spines[side].set_linewidth(0.7)


def _finish(ax: Axes, title: str | None, frontier: Frontier, *, beneath: bool) -> None:
    scale = frontier.scale
    tidy(ax, _ACROSS[scale.utility], scale.leakage_word if scale.budgets else _UP[scale.leakage])
    ax.set_xlim(left=0)
    if not frontier.least_leakage:
        ax.set_ylim(bottom=0)
    if title:
        ax.set_title(title, fontsize=10, loc="left", color=INK)
    # In a figure of our own below the axes, where no point can lie; else above the diagonal, where the best
    # points never are.
    columns = min(3, max(1, int(figure_of(ax).get_figwidth() / 1.7)))  # as many as the figure is wide for
    place: dict[str, Any] = (
        {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 5, "ncols": columns}
        if beneath
        else {"loc": "upper left", "bbox_to_anchor": (0.01, 0.92)}
    )
    legend(ax, _BACKGROUND, handlelength=2.2, labelspacing=0.35, **place)
