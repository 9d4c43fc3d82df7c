"""Figures of one report: before and after as confusion, embedding and reconstructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..audit import AuditReport, ClassTable
from ..errors import InvalidInputError
from ..plotting import COLOURS, FAINT, INK, import_figure, tidy
from .style import new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: One for each class: ten are told apart, as digits are common; more repeat them lighter.
CLASS_COLOURS = (*COLOURS, "#999933", "#9a9a9a")
#: Up to so many classes the cells of a confusion carry numbers, and centres and axes carry names.
FEW, SOME = 12, 30
#: What the rounded shares of a cell do not tell.
UNTOLD = "#e8eaee"


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


def plot_confusion(
    report: AuditReport, source: str | None = None, *, size: tuple[float, float] | None = None
) -> Figure:
    """Draw which classes an adversary takes for which, on raw records X and on the release Z.

    Parameters
    ----------
    report : AuditReport
    source : str, optional
        The adversary; by default the one that guesses most on Z.
    size : (width, height), optional
        In inches.
    """
    raw, after = confusion_pair(report, source)
    shown = [one for one in (raw, after) if one is not None]
    figure, axes = new_figure(size or (3.5 * len(shown) + 0.7, 3.6), len(shown), sharey=True)
    for ax, table in zip(axes, shown, strict=True):
        image = _draw_confusion(ax, table)
    bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label("share of the true class", fontsize=8.5, color=INK)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, color=FAINT, labelcolor=INK, width=0.7, length=3)
    axes[0].set_ylabel(f"true {_named(after)}", fontsize=9.5, color=INK)
    return figure


def _draw_confusion(ax: Axes, table: ClassTable) -> Any:
    shares = table.guessed
    n = len(shares)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    title = f"{plain(table.source)} on ${table.on}$: {100 * table.right:.1f} % right"
    ax.set_title(title, fontsize=9, loc="left", color=INK)
    tidy(ax, f"guessed {_named(table)}", "")
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)
    if n <= SOME:
        names = [_short(label) for label in table.classes]
        turned = 90 if max(map(len, names)) > 3 else 0
        ax.set_xticks(range(n), names, rotation=turned, fontsize=8)
        ax.set_yticks(range(n), names, fontsize=8)
    if n <= FEW:
        for (i, j), share in np.ndenumerate(shares):
            if share >= 0.005:
                ink = "white" if share > 0.55 else INK
                ax.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=6.5, color=ink)
    return image


def _named(table: ClassTable) -> str:
    """The attribute on an axis; an unnamed one is called private by the audit."""
    return "class" if table.attribute == "private" else plain(table.attribute)


def plot_embedding(report: AuditReport, *, size: tuple[float, float] = (7.2, 4.3)) -> Figure:
    """Draw where records lie in UMAP embeddings of X and Z, side by side, with the shares of the classes.

    Needs a report made with `figures=True`, and is as private as the data. A square stands for ten records
    or more in one place: its area for how many, its stripes for their classes (in fifths; grey is what is not
    told). Distances between islands mean little; whether a class has an island of its own is what to look at.
    """
    data = report.figures_data.get("density")
    if data is None:
        raise InvalidInputError("plot_embedding: the report has no embedding; audit with figures=True.")
    views = [on for on in ("X", "Z") if on in data]
    figure, axes = new_figure((size[0] * len(views) / 2, size[1]), len(views))
    for ax, on in zip(axes, views, strict=True):
        _draw_cells(ax, data[on], data["side"])
        name = "raw records X" if on == "X" else "release Z"
        ax.set_title(f"UMAP of the {name}", fontsize=9.5, loc="left", color=INK)
        left_out = f"{100 * data[on]['not_shown']:.0f} % of the records, in smaller groups, not shown"
        ax.set_xlabel(left_out, fontsize=7.5, color=INK)
    if len(data["classes"]) <= SOME:
        _class_legend(figure, data["classes"])
    return figure


def _draw_cells(ax: Axes, view: Mapping[str, Any], side: int) -> None:
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    most = max(view["records"], default=1)
    stripes, colours = [], []
    for (column, row), records, shares in zip(view["cells"], view["records"], view["shares"], strict=True):
        edge = 0.94 * np.sqrt(records / most)
        left, bottom = column + 0.5 - edge / 2, row + 0.5 - edge / 2
        for colour, begin, width in _stripes(shares):
            stripes.append(Rectangle((left + begin * edge, bottom), width * edge, edge))
            colours.append(colour)
    ax.add_collection(PatchCollection(stripes, facecolors=colours, linewidths=0))
    ax.set(xlim=(-0.5, side + 0.5), ylim=(-0.5, side + 0.5), xticks=[], yticks=[])
    ax.set_aspect("equal")
    for spine in ax.spines.values():
        spine.set_color(FAINT)
        spine.set_linewidth(0.7)


def _stripes(shares: Sequence[float]) -> Iterator[tuple[str, float, float]]:
    """Colour, begin and width of the classes of a cell, and of what its rounded shares leave open."""
    whole, begin = max(sum(shares), 1.0), 0.0
    for i, share in enumerate(shares):
        if share:
            yield class_colour(i), begin, share / whole
            begin += share / whole
    if begin < 0.999:
        yield UNTOLD, begin, 1 - begin


def _class_legend(figure: Figure, classes: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    names = [*map(_short, classes), "not told"]
    colours = [*(class_colour(i) for i in range(len(classes))), UNTOLD]
    figure.legend(
        handles=[Patch(color=colour, label=name) for colour, name in zip(colours, names, strict=True)],
        loc="outside lower center",
        ncols=min(len(names), 11),
        fontsize=8,
        frameon=False,
        labelcolor=INK,
        handlelength=0.9,
        handleheight=0.9,
        columnspacing=1.2,
    )


def class_colour(i: int, *, dark: bool = False) -> str:
    """A colour for the i-th class; darker for text."""
    base = CLASS_COLOURS[i % len(CLASS_COLOURS)]
    rgb = [int(base[j : j + 2], 16) for j in (1, 3, 5)]
    turn = (i // len(CLASS_COLOURS)) % 3
    mixed = [round(part + (255 - part) * 0.22 * turn) for part in rgb]
    if dark:
        mixed = [round(part * 0.62) for part in mixed]
    return "#" + "".join(f"{part:02x}" for part in mixed)


def plot_samples(report: AuditReport, n_columns: int = 10, *, width: float = 7.2) -> Figure:
    """Draw records and beneath each its reconstruction; classes are written above.

    Needs a report of images made with `show_records=True`, and is as private as the data.
    """
    data = report.figures_data.get("images")
    if data is None:
        raise InvalidInputError(
            "plot_samples: the report has no images; audit images (n, height, width) with show_records=True."
        )
    originals, copies = sample_images(data)
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


def sample_images(data: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Originals and reconstructions as stacks of images."""
    shape = tuple(data["shape"])
    originals, copies = (np.asarray(data[key], dtype=np.float64) for key in ("X", "X_hat"))
    return originals.reshape(-1, *shape), copies.reshape(-1, *shape)


def _short(label: object) -> str:
    """A class name that fits on an axis."""
    text = str(label)
    return plain(text if len(text) <= 14 else f"{text[:13]}…")
