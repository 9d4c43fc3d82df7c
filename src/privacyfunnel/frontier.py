"""Frontier: releases in the information plane and the best curve through them.

All numbers are bits. Using one of two mechanisms at random, and saying which, gives every point on the
segment between theirs, so what a set of releases can do is the lower convex hull of its points.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import FileFormatError, InfeasibleError, InvalidInputError
from .joint import Joint
from .mechanism import TableMechanism, time_share
from .tradeoff import ROUNDING, TradeoffPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]

#: The releases that every joint allows: nothing, and X itself.
TRIVIAL_METHODS = ("constant", "identity")
KIND, VERSION = "frontier", 1


@dataclass(frozen=True)
class FrontierComparison:
    """How far one frontier lies above another, over the utilities both reach, in bits.

    Attributes
    ----------
    area : float
        ∫ |difference| over utility (bits²), 0 only for equal curves.
    mean_difference : float
        Average of first − second; negative when the first leaks less.
    largest_difference : float
        The value of first − second where it is largest in size.
    at_utility : float
        Where that is.
    max_utility : float
        End of the common range, which begins at 0.
    """

    area: float
    mean_difference: float
    largest_difference: float
    at_utility: float
    max_utility: float


@dataclass(frozen=True, eq=False, repr=False)
class Frontier:
    """Releases for one joint, and the least leakage they give for each utility.

    `Frontier.for_joint` adds the two releases that every joint allows, a constant and X itself.

    Parameters
    ----------
    points : iterable of TradeoffPoint
        All releases, in any order; none is dropped.
    entropy_x, mutual_information : float, optional
        H(X) and I(X;Y) in bits, the largest utility and leakage; None where they are not known.
    support_lines : iterable of (beta, value)
        Proved bounds: leakage ≥ value + beta · utility for *every* mechanism. They make `lower_bound_at`.
    """

    points: tuple[TradeoffPoint, ...]
    entropy_x: float | None = None
    mutual_information: float | None = None
    support_lines: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        lines = tuple((float(beta), float(value)) for beta, value in self.support_lines)
        if not all(math.isfinite(beta) and math.isfinite(value) for beta, value in lines):
            raise InvalidInputError("Frontier: support_lines must be pairs (beta, value) of finite numbers.")
        object.__setattr__(self, "points", tuple(self.points))
        object.__setattr__(self, "support_lines", lines)
        if self.entropy_x is not None:
            for point in self.points:
                if point.utility > self.entropy_x + 1e-9:
                    raise InvalidInputError(
                        f"Frontier: a point of {point.method} has utility {point.utility:.6g}, more than "
                        f"H(X) = {self.entropy_x:.6g} bit. Use points of one joint only."
                    )

    @classmethod
    def for_joint(
        cls,
        joint: Joint,
        points: Iterable[TradeoffPoint] = (),
        support_lines: Iterable[tuple[float, float]] = (),
    ) -> Frontier:
        """The frontier of releases for a joint, with the constant release and Z = X added."""
        trivial = (
            TradeoffPoint(0.0, 0.0, "constant", TableMechanism.constant(joint)),
            TradeoffPoint(
                joint.entropy_x, joint.mutual_information, "identity", TableMechanism.identity(joint)
            ),
        )
        return cls(trivial + tuple(points), joint.entropy_x, joint.mutual_information, tuple(support_lines))

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that found points, in order of appearance, without the two trivial releases."""
        return tuple(dict.fromkeys(p.method for p in self.points if p.method not in TRIVIAL_METHODS))

    def select(self, method: str) -> Frontier:
        """The frontier of one method's points and the trivial releases."""
        if method not in self.methods:
            raise InvalidInputError(
                f"Frontier.select: no point was found by {method!r}; there are {', '.join(self.methods)}."
            )
        kept = tuple(p for p in self.points if p.method in (method, *TRIVIAL_METHODS))
        return Frontier(kept, self.entropy_x, self.mutual_information, self.support_lines)

    def merge(self, *others: Frontier) -> Frontier:
        """One frontier of the releases of several, which must be for the same joint."""
        points = self.points
        for other in others:
            for name in ("entropy_x", "mutual_information"):
                mine, theirs = getattr(self, name), getattr(other, name)
                if (mine is None) != (theirs is None) or (mine is not None and abs(mine - theirs) > 1e-9):
                    raise InvalidInputError(
                        f"Frontier.merge: {name} is {mine} here and {theirs} there. "
                        "Merge frontiers of one joint only."
                    )
            trivial = () if self.entropy_x is None else TRIVIAL_METHODS
            points += tuple(p for p in other.points if p.method not in trivial)
        lines = self.support_lines + tuple(line for other in others for line in other.support_lines)
        return Frontier(points, self.entropy_x, self.mutual_information, tuple(dict.fromkeys(lines)))

    def pareto(self) -> tuple[TradeoffPoint, ...]:
        """The points that no other point beats, by rising utility.

        A point is beaten by one with at least its utility and at most its leakage; of points that agree
        up to rounding the first is kept.
        """
        # The sort is stable: among equals the first that has a mechanism wins.
        order = sorted(
            (self._origin, *self.points), key=lambda p: (-p.utility, p.leakage, p.mechanism is None)
        )
        kept: list[TradeoffPoint] = []
        for point in order:
            if kept and point.leakage >= kept[-1].leakage - ROUNDING:
                continue
            if kept and point.utility >= kept[-1].utility - ROUNDING:
                kept.pop()
            kept.append(point)
        return tuple(reversed(kept))

    def envelope(self) -> tuple[TradeoffPoint, ...]:
        """The corners of the lower convex hull, from (0, 0) to the largest utility.

        Between two corners, time sharing of their mechanisms is the best these points allow.
        """
        return self._corners

    @cached_property
    def _origin(self) -> TradeoffPoint:
        """The constant release, which is always possible."""
        at_origin = (p for p in self.points if max(p.utility, p.leakage) <= ROUNDING and p.mechanism)
        return next(at_origin, TradeoffPoint(0.0, 0.0, "constant"))

    @cached_property
    def _corners(self) -> tuple[TradeoffPoint, ...]:
        # Where something is free, the Pareto points do not begin at the origin, but the hull does.
        hull = [self._origin]
        for point in self.pareto():
            if point.utility <= ROUNDING:
                continue
            while len(hull) >= 2 and _bend(hull[-2], hull[-1], point) <= ROUNDING:
                hull.pop()
            hull.append(point)
        return tuple(hull)

    @cached_property
    def _curve(self) -> tuple[FloatArray, FloatArray]:
        return (
            np.array([p.utility for p in self._corners]),
            np.array([p.leakage for p in self._corners]),
        )

    @property
    def max_utility(self) -> float:
        """The largest utility of the points, H(X) for a frontier made by `for_joint`."""
        return self._corners[-1].utility

    def leakage_at(self, utility: float) -> float:
        """The least leakage at which at least this utility is reached, with time sharing."""
        at = self._check_utility(utility, "leakage_at")
        return float(np.interp(at, *self._curve))

    def utility_at(self, leakage: float) -> float:
        """The largest utility at which at most this leakage is paid, with time sharing."""
        if not leakage >= 0:
            raise InfeasibleError(
                f"Frontier.utility_at: leakage must be 0 bit or more; it is {leakage}. "
                "Pass 0 for perfect privacy."
            )
        utilities, leakages = self._curve
        # With rounding, or a leakage of 1e-17 would turn a perfectly private release into a steep rise.
        last = int(np.searchsorted(leakages, leakage + ROUNDING, side="right")) - 1
        if last == len(leakages) - 1:
            return float(utilities[-1])
        rise = (leakage - leakages[last]) / (leakages[last + 1] - leakages[last])
        return float(utilities[last] + max(0.0, rise) * (utilities[last + 1] - utilities[last]))

    def mechanism_at(self, utility: float) -> TableMechanism:
        """The mechanism with this utility and the leakage `leakage_at` states: two corners, time-shared."""
        at = self._check_utility(utility, "mechanism_at")
        utilities, _ = self._curve
        right = min(int(np.searchsorted(utilities, at - ROUNDING)), len(utilities) - 1)
        if abs(utilities[right] - at) <= ROUNDING:
            return _mechanism_of(self._corners[right])
        share = (at - utilities[right - 1]) / (utilities[right] - utilities[right - 1])
        pair = [_mechanism_of(self._corners[right - 1]), _mechanism_of(self._corners[right])]
        return time_share(pair, [1 - share, share])

    def lower_bound_at(self, utility: float) -> float | None:
        """A proved lower bound on the leakage of every mechanism with this utility; None without one."""
        at = self._check_utility(utility, "lower_bound_at")
        if not self.support_lines:
            return None
        # A release with more utility than asked is allowed, so a falling line bounds by its lowest value.
        end = self.max_utility if self.entropy_x is None else self.entropy_x
        return max(0.0, *(value + min(beta * at, beta * end) for beta, value in self.support_lines))

    def compare(self, other: Frontier) -> FrontierComparison:
        """How far this frontier lies above another; exact, because both are piecewise linear."""
        end = min(self.max_utility, other.max_utility)
        knots = np.union1d(self._curve[0], other._curve[0])
        knots = np.append(knots[knots < end], end)
        difference = np.interp(knots, *self._curve) - np.interp(knots, *other._curve)
        left, right, width = difference[:-1], difference[1:], np.diff(knots)
        # Where the sign changes, the two triangles have heights |left| and |right|.
        size = np.abs(left) + np.abs(right)
        crossing = left * right < 0
        triangles = np.divide(left**2 + right**2, size, out=np.zeros_like(size), where=crossing)
        at = int(np.argmax(np.abs(difference)))
        return FrontierComparison(
            area=float((width * np.where(crossing, triangles, size)).sum() / 2),
            mean_difference=float((width * (left + right)).sum() / 2 / end) if end > 0 else 0.0,
            largest_difference=float(difference[at]),
            at_utility=float(knots[at]),
            max_utility=float(end),
        )

    def to_frame(self) -> Any:
        """A data frame with one row a point: utility, leakage (bits), method, settings, status."""
        from .frames import make_frame

        return make_frame(self._columns())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the rows of `to_frame` as CSV; the file appears whole or not at all."""
        from .persistence import write_atomic

        columns = self._columns()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
        write_atomic(path, text.getvalue())

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, mechanisms included, as versioned JSON; `privacyfunnel.load` reads it back."""
        from .persistence import save_json

        save_json(path, KIND, VERSION, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "entropy_x": self.entropy_x,
            "mutual_information": self.mutual_information,
            "support_lines": [list(line) for line in self.support_lines],
            "points": [point.to_dict() for point in self.points],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Frontier:
        """The inverse of `to_dict`."""
        try:
            return cls(
                tuple(TradeoffPoint.from_dict(point) for point in values["points"]),
                _optional_number(values["entropy_x"]),
                _optional_number(values["mutual_information"]),
                tuple((beta, value) for beta, value in values["support_lines"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                f"This is not a saved frontier ({type(error).__name__}: {error})."
            ) from None

    def plot(self, ax: Axes | None = None, **options: Any) -> Figure:
        """Draw the information plane; see `privacyfunnel.plotting.plot_frontier`."""
        from .plotting import plot_frontier

        return plot_frontier(self, ax=ax, **options)

    def __repr__(self) -> str:
        methods = ", ".join(self.methods) or "no method"
        return (
            f"Frontier({len(self.points)} points of {methods}; {len(self._corners)} corners up to "
            f"utility {self.max_utility:.4f} bit)"
        )

    def _columns(self) -> dict[str, list[Any]]:
        corners = {id(point) for point in self._corners}
        names = dict.fromkeys(name for point in self.points for name in point.settings)
        columns: dict[str, list[Any]] = {
            "utility": [p.utility for p in self.points],
            "leakage": [p.leakage for p in self.points],
            "method": [p.method for p in self.points],
        }
        columns |= {name: [p.settings.get(name) for p in self.points] for name in names}
        columns["status"] = [None if p.status is None else p.status.name for p in self.points]
        columns["corner"] = [id(p) in corners for p in self.points]
        return columns

    def _check_utility(self, utility: float, name: str) -> float:
        if math.isnan(utility) or utility > self.max_utility + ROUNDING:
            limit = "" if self.entropy_x is None else " = H(X)" * (self.max_utility >= self.entropy_x - 1e-9)
            raise InfeasibleError(
                f"Frontier.{name}: utility is {utility:.6g} bit, and these releases reach at most "
                f"{self.max_utility:.6g}{limit}. Ask for less."
            )
        return min(max(float(utility), 0.0), self.max_utility)


def _bend(left: TradeoffPoint, middle: TradeoffPoint, right: TradeoffPoint) -> float:
    """How many bits the middle point lies below the chord of its neighbours."""
    share = (middle.utility - left.utility) / (right.utility - left.utility)
    return (1 - share) * left.leakage + share * right.leakage - middle.leakage


def _mechanism_of(point: TradeoffPoint) -> TableMechanism:
    if point.mechanism is None:
        raise InvalidInputError(
            f"Frontier.mechanism_at: the point of {point.method} at utility {point.utility:.6g} bit has no "
            "mechanism. Build the frontier with Frontier.for_joint from points that carry theirs."
        )
    return point.mechanism


def _optional_number(value: Any) -> float | None:
    return None if value is None else float(value)
