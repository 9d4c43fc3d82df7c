"""Known distribution: the paper's 3 × 3 example (figures 1a and 1b), with the certified optimum beside it.

Two readings of the paper's solvers stand side by side: as the authors' program computes them ("published",
`experiments/published.py`), and as the paper's equations say ("corrected", what users call). Both are drawn
as the paper draws them, single releases; beside them the plane with time sharing and what is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparison import one_release
from ..datasets import paper_joint
from ..discrete.methods import METHODS
from ..discrete.problem import NATS_PER_BIT
from ..sweep import Run, grid_runs
from ..tradeoff import Frontier, TradeoffPoint
from .base import Experiment, Findings, Record
from .known_claims import (
    AUTHORS,
    AUTHORS_RUNS,
    PUBLISHED,
    SOLVERS,
    TOLERANCE,
    UTILITIES,
    Points,
    claims,
    differences,
    least,
    paper_claims,
    published_claims,
    readings,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER_METHODS = ("dca-sparse", "dca-ridge")
ADDED = ("exact", "dca", "greedy", "splitting")
# The paper's figures show the least leakage for every utility, rounded to so many bits.
BIN = 0.01 / NATS_PER_BIT


def runs(scale: str) -> list[Run]:
    """The paper's sweep for its two solvers, a β grid for the others. A seed is a start."""
    points, starts = {"smoke": (4, 1), "small": (16, 10), "paper": (16, 10)}[scale]
    grid: dict[str, Any] = {
        "beta": {"geometric": [0.1, 10, points]},
        "alpha": {"geometric": [0.1, 10, points]},
        "n_z": [2, 3, 4],
        "seed": range(starts),
    }
    n_betas = 6 if scale == "smoke" else 40
    betas = {"beta": {"geometric": [0.01, 0.99, n_betas]}}
    few = {"beta": {"geometric": [0.02, 0.9, n_betas // 2]}}
    slow = {"n_starts": 2 if scale == "smoke" else 16, "max_steps": 500}
    found: list[Run] = []
    for method in PAPER_METHODS:
        found += grid_runs(method, "paper", settings={"n_starts": 1}, grid=grid)
    spaced = np.geomspace(0.1, 10, points).tolist()
    found += grid_runs(
        PUBLISHED,
        settings={"betas": spaced, "alphas": spaced},
        grid={"solver": ["sparse", "ridge"], "n_z": [2, 3, 4], "seed": range(starts)},
    )
    for method in ("exact", "submodular", "greedy"):
        found += grid_runs(method, "paper", grid=betas)
    found += grid_runs("exact", "paper", grid={"min_utility": UTILITIES})
    found += grid_runs("dca", "paper", settings={"n_starts": 20}, grid=betas)
    return found + grid_runs("splitting", "paper", settings=slow, grid=few)


def seconds(run: Run) -> float:
    """Measured on one core: a start of the paper's solvers takes milliseconds, as the store does."""
    if run.method == PUBLISHED:  # a start for each of 256 settings
        return 2.0 if run.settings["solver"] == "sparse" else 0.1
    return METHODS[run.method].seconds


def find(records: Sequence[Record], scale: str) -> Findings:
    """The planes, the leakage at 15 utilities, and the paper's claims about them."""
    fronts, read = frontiers(records), readings(records)
    table: dict[str, list[Any]] = {"utility": list(UTILITIES)}
    for name, front in fronts.items():
        table[f"{name}, time sharing"] = [front.leakage_at(u) for u in UTILITIES]
        table[f"{name}, one release"] = [one_release(front, u, TOLERANCE) for u in UTILITIES]
    for name in SOLVERS:
        apart = differences(read["published"], name)
        table |= {
            f"{name} (corrected), one release": [least(read["corrected"][name], u) for u in UTILITIES],
            f"{name} (published), one release": [least(read["published"][name], u) for u in UTILITIES],
            f"{name} (authors' program), one release": [AUTHORS[name].get(u) for u in UTILITIES],
            f"{name}, published minus authors' program": [apart.get(u) for u in UTILITIES],
        }
    proved = least_possible(records)
    table["proved: at least"] = [proved[u] for u in UTILITIES]
    ends: dict[str, list[Any]] = {"method": [], "ended": [], "runs": []}
    for method in fronts:
        mine = [r["values"]["status"] for r in records if r["run"]["method"] == method]
        for status in sorted(set(mine)):
            for column, value in zip(ends.values(), (method, status, mine.count(status)), strict=True):
                column.append(value)
    return Findings(
        {"known-leakage": table, "known-endings": ends},
        [
            *(one for name in read for one in paper_claims(name, read[name])),
            *published_claims(records),
            *claims(records, fronts, proved),
        ],
        figures(fronts, read),
        (
            "The paper draws, for every utility, the least leakage of one release, and joins no points. "
            'Statements about its figures are judged like that, for each reading: "published" is what the '
            'authors\' program computes, described from its behaviour, with its faults; "corrected" is what '
            "the paper's equations say, and what users call.",
            f"Authors' program: what their public prototype reached in {AUTHORS_RUNS:,} runs of each solver, "
            "measured with it, to four digits.",
            "Each seed is one start of a solver. A release is a point; time sharing between two releases "
            "adds the line between them, which is what the curves show.",
            "greedy, dca, splitting and the certified optimum are ours to add; the paper shows the two DCA "
            "solvers and submodular.",
        ),
    )


def frontiers(records: Sequence[Record]) -> dict[str, Frontier]:
    """The points of each method; those of exact with the lines that it proves."""
    joint = paper_joint()
    fronts = {}
    for method in (*PAPER_METHODS, "submodular", *ADDED):
        mine = [record for record in records if record["run"]["method"] == method]
        points = [
            TradeoffPoint(
                record["values"]["utility"],
                record["values"]["leakage"],
                method,
                settings={"beta": record["run"]["settings"].get("beta")},
            )
            for record in mine
        ]
        lines = [
            (float(record["run"]["settings"]["beta"]), float(record["values"]["lower_bound"]))
            for record in mine
            if method == "exact" and "beta" in record["run"]["settings"]
        ]
        fronts[method] = Frontier.for_joint(joint, points, lines)
    return fronts


def lowest(points: Points) -> Points:
    """What the paper draws: of each utility, rounded, the release that leaks least."""
    places = np.rint(points[:, 0] / BIN).astype(np.int64)
    order = np.lexsort((points[:, 1], places))
    return points[order][np.unique(places[order], return_index=True)[1]]


def least_possible(records: Sequence[Record]) -> dict[float, float]:
    """The leakage that no release can have less than, by its utility: proved, not found."""
    return {
        record["run"]["settings"]["min_utility"]: record["values"]["lower_bound"]
        for record in records
        if "min_utility" in record["run"]["settings"]
    }


def figures(fronts: dict[str, Frontier], read: dict[str, dict[str, Points]]) -> dict[str, Figure]:
    """Figures 1a and 1b the paper's way for both readings, and with time sharing; all methods in a plane."""
    from ..plotting import COLOURS, INK, MARKERS, legend, looks, mark_size, new_figure, plot_frontier, tidy

    proved = fronts["exact"].support_lines
    seen = {
        name: Frontier(front.points, front.entropy_x, front.mutual_information, proved)
        for name, front in fronts.items()
    }

    names = {"sparse": "dca-sparse", "ridge": "dca-ridge", "submodular": "submodular"}

    def drawn(title: str, first: str, second: str) -> Figure:
        ours = looks([names[first], names[second]])
        figure, axes = new_figure((11.5, 4.0), 3)
        for ax, (reading, solvers) in zip(axes, read.items(), strict=False):
            for number, name in enumerate((first, second)):
                shown = lowest(solvers[name])
                marker, colour = MARKERS[ours[number]], COLOURS[ours[number]]
                # Hollow, so that what lies beneath is seen.
                style: dict[str, Any] = {
                    "marker": marker,
                    "markersize": mark_size(marker, 4 + 2 * number),
                    "markerfacecolor": "none",
                }
                ax.plot(*shown.T, linestyle="none", color=colour, label=names[name], **style)
            ax.set_title(f"{reading}: single releases", fontsize=9.5, loc="left", color=INK)
            tidy(ax, "utility  $I(Z;X)$  [bit]", "leakage  $I(Z;Y)$  [bit]")
            legend(ax)
        plot_frontier({names[name]: seen[names[name]] for name in (first, second)}, axes[2])
        axes[2].set_title("corrected, with time sharing", fontsize=9.5, loc="left", color=INK)
        for ax in axes[:2]:
            ax.set(xlim=axes[2].get_xlim(), ylim=axes[2].get_ylim())
        figure.suptitle(title, fontsize=10.5, color=INK)
        return figure

    return {
        "figure-1a": drawn("Figure 1a: sparse against submodular", "sparse", "submodular"),
        "figure-1b": drawn("Figure 1b: sparse against ridge", "sparse", "ridge"),
        "known-all": plot_frontier(seen, title="All methods and the certified optimum"),
    }


EXPERIMENT = Experiment(
    "known", "Known distribution: figures 1a and 1b, and the certified optimum", runs, find, seconds
)
