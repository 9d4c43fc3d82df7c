"""The look of the figures of a report: that of the information plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..plotting import INK, import_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def new_figure(size: tuple[float, float], n_axes: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with axes side by side, without matplotlib's global state."""
    figure: Figure = import_figure()(figsize=size, layout="constrained")
    return figure, list(figure.subplots(1, n_axes, squeeze=False, **options)[0])


def legend(ax: Axes, **options: Any) -> None:
    """A legend without a frame, if there is something to say."""
    if ax.get_legend_handles_labels()[0]:
        look: dict[str, Any] = {"fontsize": 8, "frameon": False, "labelcolor": INK, "labelspacing": 0.4}
        ax.legend(**{**look, **options})


def plain(text: object) -> str:
    """A label as matplotlib shall print it: a dollar sign is no formula."""
    return str(text).replace("$", r"\$")
