"""What the learned experiments share: means over seeds, trade-offs to compare, and their figures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .base import Record, by_setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A clustering adversary varies by about this much with the draw of its embedding: less is no difference.
NOISE = 0.03
SETTINGS = ("n_components", "alpha", "beta", "gamma")
N_LEVELS = 9


@dataclass(frozen=True)
class Group:
    """Runs of one setting that differ in their seed, and one curve's name for them."""

    curve: str
    settings: tuple[Any, ...]
    records: Sequence[Record]

    def values(self, name: str) -> list[float]:
        return [record["values"][name] for record in self.records if name in record["values"]]

    def mean(self, name: str) -> float:
        return statistics.fmean(self.values(name))

    def deviation(self, name: str) -> float | None:
        """Over seeds; None for a single one."""
        values = self.values(name)
        return statistics.stdev(values) if len(values) > 1 else None


def groups(curves: Mapping[str, Sequence[Record]]) -> list[Group]:
    """The settings of every curve, with their seeds put together."""
    return [
        Group(curve, place, members)
        for curve, mine in curves.items()
        for place, members in by_setting(mine, *SETTINGS).items()
    ]


def judges(records: Sequence[Record]) -> str:
    """Who judged the releases of these runs, and on how many records."""
    found = [r["values"] for r in records]
    names = dict.fromkeys(name for values in found for name in values["judged_by"].split(", "))
    sizes = sorted({values["n_judged"] for values in found})
    n = " or ".join(f"{size:,}" for size in sizes)
    return (
        f"`audit` judged releases of {n} test records: {', '.join(names)}. "
        "Each learns from two thirds of them and is judged on the other third, in turn; clusters are named "
        "after all of them, as in the paper."
    )


def means_table(found: Sequence[Group], names: Sequence[str]) -> dict[str, list[Any]]:
    """A row for each setting: the means of the named values over seeds, and their standard deviations."""
    table: dict[str, list[Any]] = {"method": [group.curve for group in found]}
    for number, name in enumerate(SETTINGS):
        column = [group.settings[number] for group in found]
        if any(value is not None for value in column):
            table[name] = [None if value is None else float(value) for value in column]
    table["seeds"] = [len(group.records) for group in found]
    for name in names:
        if any(group.values(name) for group in found):
            table[name] = [group.mean(name) if group.values(name) else None for group in found]
            table[f"{name} ±"] = [group.deviation(name) if group.values(name) else None for group in found]
    return table


def undominated(found: Sequence[Group], gain: str, cost: str) -> list[Group]:
    """The settings that no other beats in both means, by rising gain."""
    best: list[Group] = []
    for group in sorted(found, key=lambda g: (g.mean(gain), -g.mean(cost)), reverse=True):
        if not best or group.mean(cost) < best[-1].mean(cost):
            best.append(group)
    return best[::-1]


@dataclass(frozen=True)
class Comparison:
    """How much more one curve costs than another for the same gain; negative is better."""

    mean: float
    lowest: float
    highest: float
    from_level: float
    to_level: float

    def __str__(self) -> str:
        return (
            f"{self.mean:+.3f} on average (between {self.lowest:+.3f} and {self.highest:+.3f}, levels "
            f"{self.from_level:.1f} to {self.to_level:.1f})"
        )


def compare(first: Sequence[Group], second: Sequence[Group], gain: str, cost: str) -> Comparison | None:
    """Cost of the first minus cost of the second over the gains that both reach; None if there are none.

    Between settings it follows the straight lines of the figure: the least cost of a setting with at least a
    gain would punish the curve whose settings happen to lie further apart.
    """
    lines = [
        np.array([(group.mean(gain), group.mean(cost)) for group in undominated(part, gain, cost)]).T
        for part in (first, second)
    ]
    low, high = max(line[0, 0] for line in lines), min(line[0, -1] for line in lines)
    if not low < high:
        return None
    levels = np.linspace(low, high, N_LEVELS)
    ours, theirs = (np.interp(levels, *line) for line in lines)
    found = (ours - theirs).tolist()
    return Comparison(statistics.fmean(found), min(found), max(found), float(low), float(high))


def plot_tradeoff(
    found: Sequence[Group], gain: str, costs: Mapping[str, str], labels: tuple[str, str], title: str
) -> Figure:
    """Cost against gain for every setting, a panel for each kind of cost; lines join the undominated."""
    from ..plotting import COLOURS, MARKERS, import_figure

    figure: Figure = import_figure()(figsize=(4.6 * len(costs), 3.8), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(costs), sharex=True))
    curves = list(dict.fromkeys(group.curve for group in found))
    for ax, (cost, name) in zip(axes, costs.items(), strict=True):
        for number, curve in enumerate(curves):
            mine = [group for group in found if group.curve == curve and group.values(cost)]
            if not mine:
                continue
            style: dict[str, Any] = {"color": COLOURS[number % len(COLOURS)]}
            ax.errorbar(
                [group.mean(gain) for group in mine],
                [group.mean(cost) for group in mine],
                xerr=[group.deviation(gain) or 0.0 for group in mine],
                yerr=[group.deviation(cost) or 0.0 for group in mine],
                linestyle="none",
                marker=MARKERS[number % len(MARKERS)],
                markersize=5,
                elinewidth=0.7,
                label=curve,
                **style,
            )
            best = undominated(mine, gain, cost)
            ax.plot([g.mean(gain) for g in best], [g.mean(cost) for g in best], linewidth=1.1, **style)
        ax.set_title(name, fontsize=9.5, loc="left")
        ax.set_xlabel(labels[0], fontsize=9)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(labels[1], fontsize=9)
    axes[0].legend(fontsize=7.5, frameon=False)
    figure.suptitle(title, fontsize=10)
    return figure


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
    from ..plotting import import_figure

    figure: Figure = import_figure()(figsize=(4.2 * len(points), 4.0), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(points)))
    y = np.asarray(classes)
    for ax, (name, embedded) in zip(axes, points.items(), strict=True):
        plane = np.asarray(embedded)
        ax.scatter(plane[:, 0], plane[:, 1], c=y, cmap="tab10", s=3, linewidth=0, alpha=0.7)
        for label in np.unique(y):
            centre = plane[y == label].mean(axis=0)
            ax.annotate(str(label), centre, fontsize=9, weight="bold", ha="center", va="center")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_title(name, fontsize=9.5, loc="left")
    figure.suptitle(title, fontsize=10)
    return figure
