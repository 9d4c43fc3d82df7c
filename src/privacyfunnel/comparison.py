"""Comparison: several methods on one joint, each with what it was given, what it found and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

from .joint import Joint
from .tradeoff import TRIVIAL_METHODS, Frontier, TradeoffPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Bits below which there is nothing, and releases are as useful as others.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods beside each other on one joint, and what is proved; made by `privacyfunnel.compare`.

    Attributes
    ----------
    joint : Joint
        What they were asked about.
    fronts : dict of method to Frontier
        What each found, ``exact`` first; every one carries the proved lines of ``exact``.
    settings : dict of method to str
        What each was given, in words.
    seconds : dict of method to float
        CPU seconds of each, of all its threads, without compilation.
    utilities : tuple of float
        Where the table compares, in bits.
    starts : dict of method to int
        Random starts of each setting, of the methods that have some: more of them find no more leakage.
    """

    joint: Joint
    fronts: Mapping[str, Frontier]
    settings: Mapping[str, str]
    seconds: Mapping[str, float]
    utilities: tuple[float, ...]
    starts: Mapping[str, int] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order of the table."""
        return tuple(self.fronts)

    def largest_gap(self, method: str) -> tuple[float, float]:
        """How far above the proved bound a method stays at most, in bits, and the utility where that is."""
        front = self.fronts[method]
        # Where exact had nothing to prove, what holds anyhow: no leakage is negative.
        corners = front.proved() or [(0.0, 0.0), (front.max_utility, 0.0)]
        # A convex curve above one that is straight between its corners is furthest away at a corner.
        gaps = [(front.leakage_at(utility) - bound, utility) for utility, bound in corners]
        return max(gaps, key=lambda one: one[0])

    def rows(self) -> list[dict[str, Any]]:
        """The table: a row for each method and utility, plain values.

        ``leakage`` is that of the best mixture of two releases (time sharing), ``leakage_one_release`` of the
        best single one that has this utility or more, which is what the paper draws. Both are exact for the
        joint. ``lower_bound`` is proved for every release, and ``gap`` is what ``leakage`` has above it.
        """
        rows = []
        for method, front in self.fronts.items():
            runs = _runs(front)
            early = sum(point.status is not None and not point.status.ok for point in runs)
            for utility in self.utilities:
                leakage, bound = front.leakage_at(utility), front.lower_bound_at(utility) or 0.0
                rows.append(
                    {
                        "method": method,
                        "settings": self.settings[method],
                        "utility": utility,
                        "leakage": leakage,
                        "leakage_one_release": one_release(front, utility),
                        "lower_bound": bound,
                        "gap": leakage - bound,
                        "largest_gap": self.largest_gap(method)[0],
                        "runs": len(runs),
                        "stopped_early": early,
                        "cpu_seconds": self.seconds[method],
                    }
                )
        return rows

    def to_frame(self) -> Any:
        """The rows as a data frame."""
        from .frames import make_frame

        rows = self.rows()
        return make_frame({name: [row[name] for row in rows] for name in rows[0]})

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the rows as CSV; the file appears whole or not at all."""
        from .files import write_table

        rows = self.rows()
        write_table(path, {name: [row[name] for row in rows] for name in rows[0]}, kind=".csv")

    @property
    def summary(self) -> str:
        """What the comparison says, in a sentence without letters."""
        joint, exact = self.joint, self.fronts["exact"]
        x, y = " × ".join(joint.x_names), " × ".join(joint.y_names)
        where = "" if joint.n_samples is None else " on these records"
        whole = joint.mutual_information
        if whole <= _ROUNDING:
            return f"{x} tells nothing about {y}{where}: it can be released as it is, without any method."
        half = 0.5 * joint.entropy_x
        told = {name: front.leakage_at(half) / whole for name, front in self.fronts.items()}
        least = (exact.lower_bound_at(half) or 0.0) / whole
        others = sorted((name for name in told if name != "exact"), key=told.__getitem__)
        found = f"exact gives away {_percent(told['exact'])}"
        if others:
            found += f", {others[0]} {_percent(told[others[0]])}"
        if len(others) > 1 and told[others[-1]] > told[others[0]]:
            # Which one it is depends on the draw of its starts, where these are few.
            n = self.starts.get(others[-1])
            at = "" if n is None else f" at {n} random start{'s' * (n != 1)} a setting"
            found += f" and {others[-1]}, the furthest from it{at}, {_percent(told[others[-1]])}"
        return (
            f"A release that keeps half of {x} must give away at least {_percent(least)} of what {x} tells "
            f"about {y}{where}, which is proved; {found}."
        )

    def plot(self, ax: Axes | None = None, **options: Any) -> Figure:
        """Draw every method in one plane, with what is proved impossible in grey; see `plot_frontier`."""
        from .plotting import plot_frontier

        return plot_frontier(self.fronts, ax=ax, **options)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the comparison as one page of HTML: sentence, figure, table, settings."""
        from .report.methods import compare

        compare(self, path)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the mechanisms are in `fronts`."""
        return {
            "summary": self.summary,
            "entropy_x": self.joint.entropy_x,
            "mutual_information": self.joint.mutual_information,
            "utilities": list(self.utilities),
            "methods": {
                name: {
                    "settings": self.settings[name],
                    "cpu_seconds": self.seconds[name],
                    "largest_gap": gap,
                    "largest_gap_at": at,
                }
                for name in self.methods
                for gap, at in [self.largest_gap(name)]
            },
            "rows": self.rows(),
            "support_lines": [
                {"beta": beta, "value": value} for beta, value in self.fronts["exact"].support_lines
            ],
        }

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.methods)}; {self.summary})"

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from .report.notebook import html_of

        return html_of(self)


def _runs(front: Frontier) -> list[TradeoffPoint]:
    return [point for point in front.points if point.method not in TRIVIAL_METHODS]


def one_release(front: Frontier, utility: float, tolerance: float = _ROUNDING) -> float:
    """The least leakage of a single release with this utility or more; Z = X always is one."""
    return min(point.leakage for point in front.points if point.utility >= utility - tolerance)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
