"""Known distribution: the paper's 3 × 3 example (figures 1a and 1b), with the certified optimum beside it.

Two readings of the paper's solvers stand side by side: as the authors' program computes them ("published",
`experiments/published.py`), and as the paper's equations say ("corrected", what users call). Both are drawn
as the paper draws them, single releases; beside them the plane with time sharing and what is proved.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..datasets import paper_joint
from ..discrete.methods import METHODS
from ..discrete.problem import NATS_PER_BIT
from ..sweep import Run, grid_runs
from ..tradeoff import Frontier, TradeoffPoint
from .base import Claim, Experiment, Findings, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UTILITIES = tuple(round(0.1 * k, 1) for k in range(1, 16))  # bits
PAPER_METHODS = ("dca-sparse", "dca-ridge")
SOLVERS = ("ridge", "sparse")
ADDED = ("exact", "dca", "greedy", "splitting")
# Differences below this many bits are of no interest to anybody.
TOLERANCE = 1e-4
# Where the paper says that ridge finds a better point.
RIDGE_POINT = (1.0, 0.3)
# An average difference below this many bits decides nothing, unless one solver is better at so large a share
# of the utilities.
DEAD_ZONE, CLEARLY_MOST = 0.005, 0.75
# Within this many bits of the authors' program a twin is close to it.
CLOSE = 0.01
# A release that is further from stationary, in bits, is no stationary point.
STATIONARY = 0.01
# What the authors' public prototype reached, measured with it: the least leakage of one release with at least
# that utility, in bits to four digits, over so many runs of each solver (ridge as a quadratic programme).
AUTHORS_RUNS = 5_376
AUTHORS_AT = (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5)
AUTHORS = {
    name: dict(zip(AUTHORS_AT, reached, strict=True))
    for name, reached in (
        ("ridge", (0.0259, 0.0760, 0.1233, 0.1629, 0.2334, 0.3420, 0.5057, 0.6228)),
        ("sparse", (0.0239, 0.0680, 0.1281, 0.1412, 0.2334, 0.6551, 0.6551, 0.6551)),
    )
}
PUBLISHED = "privacyfunnel.experiments.published:solves"
# The paper's figures show the least leakage for every utility, rounded to so many bits.
BIN = 0.01 / NATS_PER_BIT

Points = FloatArray  # (n, 2), utility and leakage of single releases in bits


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
        table[f"{name}, one release"] = [least_leakage(front, u) for u in UTILITIES]
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


def readings(records: Sequence[Record]) -> dict[str, dict[str, Points]]:
    """The single releases of submodular and of both solvers of the paper, by reading."""
    ours = {
        name: np.array(
            [
                (r["values"]["utility"], r["values"]["leakage"])
                for r in records
                if r["run"]["method"] == method
            ]
        )
        for name, method in (("sparse", "dca-sparse"), ("ridge", "dca-ridge"), ("submodular", "submodular"))
    }
    published = {"submodular": ours["submodular"]}
    for name in SOLVERS:
        mine = [values for values, _ in published_values(records, name)]
        pairs = [pair for one in mine for pair in zip(one["utility"], one["leakage"], strict=True)]
        published[name] = np.array(pairs).reshape(-1, 2)
    return {"published": published, "corrected": ours}


def published_values(records: Sequence[Record], solver: str) -> list[tuple[dict[str, Any], float]]:
    """What each run of a published solver has, and its seconds: a run is a start for every β and α."""
    return [
        (record["values"], record["seconds"])
        for record in records
        if record["run"]["method"] == PUBLISHED and record["run"]["settings"]["solver"] == solver
    ]


def differences(published: dict[str, Points], solver: str) -> dict[float, float]:
    """The least leakage of the published solver's twin minus what the authors' program reached."""
    return {u: least(published[solver], u) - reached for u, reached in AUTHORS[solver].items()}


def least(points: Points, utility: float) -> float:
    """The least leakage of a release found with at least that utility; infinite where there is none."""
    enough = points[points[:, 0] >= utility - TOLERANCE, 1]
    return float(enough.min()) if enough.size else math.inf


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


def least_leakage(front: Frontier, utility: float) -> float:
    """The least leakage of a single release with at least that utility, Z = X among them."""
    return min(p.leakage for p in front.points if p.utility >= utility - TOLERANCE)


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


def paper_claims(reading: str, solvers: dict[str, Points]) -> list[Claim]:
    """What section IV-A says of figures 1a and 1b, judged by single releases as the paper draws them."""
    sparse, ridge, sub = (solvers[name] for name in ("sparse", "ridge", "submodular"))
    # Many values of β end at the same release.
    partitions = np.unique(np.round(sub[sub[:, 0] > TOLERANCE], 6), axis=0)
    covered = [bool(least(sparse, u) <= leak + TOLERANCE) for u, leak in partitions]
    point = RIDGE_POINT[0]
    reached = {name: np.array([least(solvers[name], u) for u in UTILITIES]) for name in solvers}
    below = np.array(UTILITIES) < point
    ridge_point, sparse_point = least(ridge, point), least(sparse, point)
    return [
        Claim(
            f"figure 1a, {reading}",
            "The sparse solver covers the solutions of submodular.",
            f"{sum(covered)} of {len(covered)} releases of submodular are covered.",
            all(covered),
        ),
        ridge_is_worse(
            f"figure 1b, {reading}",
            f"Ridge characterises the trade-off worse than sparse, but for a point near {point:g} bit.",
            f"below {point:g} bit",
            reached["ridge"][below],
            reached["sparse"][below],
            f" From {point:g} bit on, which the statement leaves out: {told_apart(reached, ~below)}."
            + (_with_the_authors(point) if reading == "published" else ""),
        ),
        Claim(
            f"figure 1b, {reading}",
            f"Ridge has a better point near I(Z;X) = {point:g}, I(Z;Y) = {RIDGE_POINT[1]:g} bit.",
            f"Least leakage of one release with at least {point:g} bit: ridge {ridge_point:.4f}, sparse "
            f"{sparse_point:.4f} bit.",
            ridge_point < sparse_point - TOLERANCE,
        ),
        both_outperform(f"section IV-A, {reading}", reached),
    ]


def _with_the_authors(point: float) -> str:
    """What the authors' own numbers say of the same, where they were measured."""
    leads = {u: AUTHORS["ridge"][u] - AUTHORS["sparse"][u] for u in AUTHORS_AT if u < point}
    better = sum(lead > TOLERANCE for lead in leads.values())
    return (
        f" With the numbers of the authors' program, at the {len(leads)} of these utilities where it was "
        f"measured: {statistics.fmean(leads.values()):+.4f} bit on average, sparse better at {better}."
    )


def told_apart(reached: dict[str, FloatArray], where: NDArray[np.bool_]) -> str:
    """How far ridge lies from sparse at some of the utilities."""
    both = where & np.isfinite(reached["ridge"]) & np.isfinite(reached["sparse"])
    lead = reached["ridge"][both] - reached["sparse"][both]
    return f"{lead.min():+.4f} to {lead.max():+.4f} bit" if lead.size else "not reached by both"


def ridge_is_worse(
    source: str, says: str, where: str, ridge: FloatArray, sparse: FloatArray, remark: str = ""
) -> Claim:
    """By the leakage of both at several utilities; it is infinite where one does not come so far."""
    won = {
        "sparse": int((ridge > sparse + TOLERANCE).sum()),
        "ridge": int((sparse > ridge + TOLERANCE).sum()),
    }
    both = np.isfinite(ridge) & np.isfinite(sparse)
    lead = ridge[both] - sparse[both]
    if not lead.size:
        return Claim(source, says, f"No utility {where} is reached by both.", None)
    verdicts = {name == "sparse" for name in won if won[name] >= CLEARLY_MOST * ridge.size}
    if abs(lead.mean()) >= DEAD_ZONE:
        verdicts.add(bool(lead.mean() > 0))
    return Claim(
        source,
        says,
        f"Least leakage of ridge minus that of sparse {where}: {lead.min():+.4f} to {lead.max():+.4f} bit, "
        f"{lead.mean():+.4f} on average; sparse is better at {won['sparse']} of {ridge.size} utilities, "
        f"ridge at {won['ridge']}. Decided by an average of at least {DEAD_ZONE:g} bit or by "
        f"{CLEARLY_MOST:.0%} of the utilities, and not where these disagree.{remark}",
        verdicts.pop() if len(verdicts) == 1 else None,
    )


def both_outperform(source: str, reached: dict[str, FloatArray]) -> Claim:
    """By the least leakage of sparse, ridge and submodular at UTILITIES."""
    less = {name: int((reached[name] < reached["submodular"] - TOLERANCE).sum()) for name in SOLVERS}
    more = {name: int((reached[name] > reached["submodular"] + TOLERANCE).sum()) for name in SOLVERS}
    told = "; ".join(f"{name} less at {less[name]}, more at {more[name]}" for name in reversed(SOLVERS))
    return Claim(
        source,
        "Both solvers outperform submodular.",
        f"Leakage beside that of submodular at {len(UTILITIES)} utilities: {told}.",
        all(less.values()) and not any(more.values()),
    )


def ridge_is_faster(
    reading: str, n_steps: dict[str, list[int]], seconds: dict[str, list[float]], remark: str
) -> Claim:
    """By the median time of a start: a step of one solver is not a step of the other."""
    steps = {name: float(np.median(n_steps[name])) for name in SOLVERS}
    times = {name: float(np.median(seconds[name])) for name in SOLVERS}
    # A run is partly starting: only a clear difference says something about the solvers.
    ratio = times["ridge"] / times["sparse"]
    return Claim(
        f"section IV-A, {reading}",
        "The ridge solver converges faster.",
        f"Median steps of a start: ridge {steps['ridge']:.0f}, sparse {steps['sparse']:.0f}; median time "
        f"{times['ridge'] * 1e3:.2g} and {times['sparse'] * 1e3:.2g} ms with our kernels, {remark}. The time "
        "decides, where one is at least a quarter longer.",
        None if 0.8 < ratio < 1.25 else ratio < 1,
    )


def claims(records: Sequence[Record], fronts: dict[str, Frontier], proved: dict[float, float]) -> list[Claim]:
    """The same with time sharing, speed, the theorem, and how far from the optimum everything is."""
    read = readings(records)
    shared = {
        name: np.array([fronts[method].leakage_at(u) for u in UTILITIES])
        for name, method in (("sparse", "dca-sparse"), ("ridge", "dca-ridge"), ("submodular", "submodular"))
    }
    mine = {name: [r for r in records if r["run"]["method"] == f"dca-{name}"] for name in SOLVERS}
    ended = {name: [r["values"]["status"] == "CONVERGED" for r in mine[name]] for name in SOLVERS}
    short = {name: max(front.leakage_at(u) - proved[u] for u in UTILITIES) for name, front in fronts.items()}
    return [
        *(
            new_points(reading, read[reading]["sparse"], fronts["submodular"])
            for reading in ("corrected", "published")
        ),
        ridge_is_worse(
            "figure 1b, corrected, time sharing",
            "Ridge characterises the trade-off worse than sparse.",
            f"up to {UTILITIES[-1]:g} bit",
            shared["ridge"],
            shared["sparse"],
        ),
        both_outperform("section IV-A, corrected, time sharing", shared),
        ridge_is_faster(
            "corrected",
            {name: [r["values"]["n_steps"] for r in mine[name]] for name in SOLVERS},
            {name: [r["seconds"] for r in mine[name]] for name in SOLVERS},
            "starting a run included",
        ),
        Claim(
            "theorem 1, corrected",
            "Both solvers converge to a stationary point.",
            "Starts that met the stop rule: "
            + ", ".join(f"{name} {np.mean(e):.1%} of {len(e):,}" for name, e in ended.items())
            + "; the others went round in a cycle, or met the step limit or numbers that are not finite. The "
            "stop rule looks at the loss alone: meeting it proves no stationarity.",
            None if all(all(e) for e in ended.values()) else False,
        ),
        Claim(
            "ours",
            "How far above what is proved possible each method stays, with time sharing.",
            "Largest distance in bits: "
            + ", ".join(f"{name} {max(0.0, value):.4f}" for name, value in short.items())
            + ".",
            None,
        ),
    ]


def new_points(reading: str, sparse: Points, submodular: Frontier) -> Claim:
    """Beside submodular with time sharing: it has so few releases that nearly any other is new."""
    lead = np.array(
        [submodular.leakage_at(min(u, submodular.max_utility)) - leak for u, leak in sparse], dtype=float
    )
    below = int((lead > TOLERANCE).sum())
    return Claim(
        f"figure 1a, {reading}, time sharing",
        "The sparse solver finds points that submodular does not reach.",
        f"{below:,} of {len(sparse):,} releases of sparse leak less than submodular with time sharing, by up "
        f"to {lead.max(initial=0.0):.4f} bit.",
        below > 0,
    )


def published_claims(records: Sequence[Record]) -> list[Claim]:
    """Speed and the theorem for the published solvers, and whether the twins are what they should be."""
    from .published import MOST_STEPS

    mine = {name: published_values(records, name) for name in SOLVERS}
    n_steps = {name: [n for values, _ in mine[name] for n in values["n_steps"]] for name in SOLVERS}
    ended = {name: [n < MOST_STEPS for n in n_steps[name]] for name in SOLVERS}
    gaps = {name: np.array([gap for values, _ in mine[name] for gap in values["gap"]]) for name in SOLVERS}
    near = {name: gaps[name] <= STATIONARY for name in SOLVERS}
    return [
        ridge_is_faster(
            "published",
            n_steps,
            {name: [seconds / len(values["n_steps"]) for values, seconds in mine[name]] for name in SOLVERS},
            "of a start for each of many β and α",
        ),
        Claim(
            "theorem 1, published",
            "Both solvers converge to a stationary point.",
            "; ".join(
                f"{name}: {np.mean(ended[name]):.1%} of {len(ended[name]):,} starts met the stop rule, "
                f"{np.mean(near[name]):.1%} ended within {STATIONARY:g} bit of stationary (to first order), "
                f"the median at {np.median(gaps[name]):.2g} bit"
                for name in SOLVERS
            )
            + ".",
            all(all(e) for e in ended.values()) and all(n.all() for n in near.values()),
        ),
        twins_are_close({name: starts_of(records, name) for name in SOLVERS}),
    ]


def starts_of(records: Sequence[Record], solver: str) -> list[Points]:
    """The releases of a published solver's twin, by the seed of their starts."""
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        if record["run"]["method"] == PUBLISHED and record["run"]["settings"]["solver"] == solver:
            values = record["values"]
            by_seed.setdefault(record["run"]["seed"], []).extend(
                zip(values["utility"], values["leakage"], strict=True)
            )
    return [np.array(pairs) for _, pairs in sorted(by_seed.items())]


def expected_least(starts: Sequence[Points], utility: float, n: int) -> float:
    """The least leakage with at least a utility in n of the starts, the mean over which they are."""
    n = min(n, len(starts))
    each = sorted(least(points, utility) for points in starts)
    shares = [math.comb(len(each) - 1 - k, n - 1) / math.comb(len(each), n) for k in range(len(each))]
    return sum(value * share for value, share in zip(each, shares, strict=True) if share)


def twins_are_close(starts: Mapping[str, Sequence[Points]]) -> Claim:
    """By the least leakage of one release beside what the authors' program reached in as many runs."""
    every = {name: np.concatenate(parts) for name, parts in starts.items()}
    n = {name: max(round(AUTHORS_RUNS / len(parts[0])), 1) for name, parts in starts.items()}
    apart = {
        name: {u: expected_least(starts[name], u, n[name]) - reached for u, reached in AUTHORS[name].items()}
        for name in SOLVERS
    }
    far = []
    for name in SOLVERS:
        points = every[name]
        for u, by in apart[name].items():
            below = (points[:, 0] >= u - TOLERANCE) & (points[:, 1] < AUTHORS[name][u] - CLOSE)
            told = "more" if by > 0 else f"less, in {below.sum():,} of its runs"
            if abs(by) > CLOSE:
                far.append(f"{name} at {u:g} bit, {by:+.4f} (the twin leaks {told})")
    ranges = "; ".join(
        f"{name} {min(found.values()):+.4f} to {max(found.values()):+.4f} bit, in all of its "
        f"{len(every[name]):,} runs {_range(differences(every, name))}"
        for name, found in apart.items()
    )
    most, fewest = (pick(by for found in apart.values() for by in found.values()) for pick in (max, min))
    return Claim(
        "ours, published",
        f"The literal twins reach what the authors' program reaches, within {CLOSE:g} bit.",
        f"Least leakage of a twin minus that of the program, which had {AUTHORS_RUNS:,} runs of each solver, "
        f"at {len(AUTHORS_AT)} utilities, in as many runs of the twin (the mean over which of its starts): "
        f"{ranges}. Further apart than {CLOSE:g} bit: {'; '.join(far) or 'none'}. A twin that leaks more by "
        "that much refutes this. One that leaks less leaves it open.",
        False if most > CLOSE else None if fewest < -CLOSE else True,
    )


def _range(found: Mapping[float, float]) -> str:
    return f"{min(found.values()):+.4f} to {max(found.values()):+.4f}"


EXPERIMENT = Experiment(
    "known", "Known distribution: figures 1a and 1b, and the certified optimum", runs, find, seconds
)
