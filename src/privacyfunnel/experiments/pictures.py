"""Figures of the learned experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .learned import ALONE, ERASURE, OURS, SHARED, Group, undominated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_tradeoff(
    found: Sequence[Group],
    gain: str,
    costs: Mapping[str, tuple[str, str, str]],
    label: str,
    title: str,
    bound: float | None = None,
    order: Sequence[str] = (),
    left: float | None = None,
) -> Figure:
    """Cost against gain for every setting, a panel for each kind of cost; lines join the undominated.

    `costs` has a title, a label and a scale ("linear", "log" or "logit") for each; `bound` is the most gain
    of a release without leakage, a vertical line; `order` has all curves there may be, so that each keeps its
    colour while some are missing. Settings below the gain `left` are left out, else there is room for all.
    """
    from ..plotting import COLOURS, INK, MARKERS, mark_size, new_figure, tidy

    figure, axes = new_figure((4.6 * len(costs), 4.0), len(costs), sharex=True)
    curves = list(dict.fromkeys([*order, *(group.curve for group in found)]))
    looks = [curve for curve in curves if curve != ALONE]
    gains = [g.mean(gain) for g in found if g.curve not in (ERASURE, SHARED) and g.values(gain)]
    lengths = [group.settings[0] for group in found if group.curve not in (ERASURE, SHARED)]
    usual = max(set(lengths), key=lengths.count, default=None)
    ends = -np.inf, np.inf
    if gains:
        least, most = min(gains) if left is None else left, max(gains)
        room = 0.04 * (most - least) or 1.0
        ends = least - room, most + room
    for ax, (cost, (name, unit, scale)) in zip(axes, costs.items(), strict=True):
        if bound is not None:
            ax.axvline(
                bound, color="0.6", linewidth=0.9, linestyle=":", label="no leakage: at most (estimated)"
            )
        for curve in curves:
            mine = [g for g in found if g.curve == curve and g.values(cost) and g.values(gain)]
            best = undominated(mine, gain, cost)
            points = [g.mean(gain) for g in best], [g.mean(cost) for g in best]
            if curve == ERASURE:
                ax.plot(*_between(*points, *ends), linewidth=1.1, color="0.4", linestyle="--", label=curve)
                continue
            if curve == SHARED:
                colour = COLOURS[looks.index(OURS) % len(COLOURS)]
                ax.plot(*points, linewidth=1.1, color=colour, linestyle=":", label=curve)
                continue
            if not mine:
                continue
            number = looks.index(OURS if curve == ALONE else curve)
            style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)]}
            ax.errorbar(
                [group.mean(gain) for group in mine],
                [group.mean(cost) for group in mine],
                xerr=[group.deviation(gain) or 0.0 for group in mine],
                yerr=[group.deviation(cost) or 0.0 for group in mine],
                linestyle="none",
                marker=MARKERS[number % len(MARKERS)],
                markersize=mark_size(MARKERS[number % len(MARKERS)], 5),
                markerfacecolor=None if number < len(COLOURS) and curve != ALONE else "none",
                elinewidth=0.7,
                label=curve,
                **style,
            )
            ax.plot(*points, linewidth=1.1, **style)
            for group in mine:
                if ax is axes[0] and curve in order and group.settings[0] not in (usual, None):
                    place = group.mean(gain), group.mean(cost)
                    ax.annotate(
                        f"d = {group.settings[0]:g}",
                        place,
                        xytext=(4, -9),
                        textcoords="offset points",
                        fontsize=6.5,
                    )
        _scale(ax, scale)
        inside = [g.mean(cost) for g in found if left is not None and _reaches(g, gain, cost, left)]
        if scale == "log" and inside:
            ax.set_ylim(bottom=0.7 * min(inside))
        ax.set_title(name, fontsize=9.5, loc="left", color=INK)
        tidy(ax, label, unit)
    if gains:
        axes[0].set_xlim(*ends)
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=7.5, frameon=False
    )
    figure.suptitle(f"{title}. Bars: standard deviation over seeds", fontsize=10, color=INK)
    return figure


def _between(
    across: Sequence[float], up: Sequence[float], least: float, most: float
) -> tuple[list[float], list[float]]:
    """The part of a line that is drawn, so that axes are as high as what they show."""
    if not across or across[0] > most or across[-1] < least:
        return [], []
    inside = [at for at in across if least < at < most]
    at = sorted({*inside, max(least, across[0]), min(most, across[-1])})
    return at, np.interp(at, across, up).tolist()


def _reaches(group: Group, gain: str, cost: str, least: float) -> bool:
    return bool(group.values(gain) and group.values(cost)) and group.mean(gain) >= least


def _scale(ax: Axes, scale: str) -> None:
    """A scale of numbers that people read: shares near 1 are told apart by "logit"."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    ax.set_yscale(scale)
    ticks = {
        "logit": (0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99),
        "log": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5),
    }.get(scale)
    if ticks is not None:
        ax.yaxis.set_major_locator(FixedLocator(ticks))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_minor_formatter(NullFormatter())


def plot_images(images: Sequence[Any], title: str) -> Figure:
    """Images (n, height, width) of bytes as one square."""
    from ..plotting import import_figure

    stack = np.asarray(images, dtype=np.uint8)
    side = int(np.sqrt(len(stack)))
    height, width = stack.shape[1:]
    whole = stack[: side * side].reshape(side, side, height, width).swapaxes(1, 2)
    figure: Figure = import_figure()(figsize=(3.2, 3.4), layout="constrained")
    ax = figure.subplots()
    ax.imshow(whole.reshape(side * height, side * width), cmap="gray_r", vmin=0, vmax=255)
    ax.set_axis_off()
    ax.set_title(title, fontsize=9.5, loc="left")
    return figure


def plot_embeddings(points: Mapping[str, Any], classes: Sequence[int], title: str) -> Figure:
    """Points in the plane by class, a panel for each embedding; the centre of each class has its name."""
    from matplotlib.patheffects import withStroke

    from ..plotting import CLASS_COLOURS, FAINT, INK, new_figure

    figure, axes = new_figure((4.2 * len(points), 4.0), len(points))
    y = np.asarray(classes)
    colours = [CLASS_COLOURS[label % len(CLASS_COLOURS)] for label in y]
    name_of_class: dict[str, Any] = {"fontsize": 10, "weight": "bold", "ha": "center", "va": "center"}
    for ax, (name, embedded) in zip(axes, points.items(), strict=True):
        plane = np.asarray(embedded)
        ax.scatter(plane[:, 0], plane[:, 1], c=colours, s=4, linewidth=0, alpha=0.7)
        for label in np.unique(y):
            centre = plane[y == label].mean(axis=0)
            text = ax.annotate(str(label), centre, color=INK, **name_of_class)
            text.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set_color(FAINT)
        ax.set_title(name, fontsize=9.5, loc="left", color=INK)
    figure.suptitle(title, fontsize=10, color=INK)
    return figure
