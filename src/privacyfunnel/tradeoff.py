"""TradeoffPoint and Frontier: releases in the information plane and the best curve through them.

All numbers are bits, or the units of other measures. Using one of two mechanisms at random, and saying which,
gives every point on the segment between theirs, so what a set of releases can do is the lower convex hull of
its points.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import FloatArray
from .combining import time_share
from .errors import FileFormatError, InfeasibleError, InvalidInputError
from .joint import Joint
from .measures import PLAIN, Measures, Scale, largest_lift
from .mechanism import TableMechanism
from .solution import Solution, Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Differences below this many bits are rounding: such points are one point, such a bend is straight.
ROUNDING = 1e-12
#: The releases that every joint allows: nothing, and X itself.
TRIVIAL_METHODS = ("constant", "identity")
KIND, VERSION = "frontier", 2


@dataclass(frozen=True, eq=False)
class TradeoffPoint:
    """One release in the information plane.

    Parameters
    ----------
    utility, leakage : float
        I(Z;X) and I(Z;Y) in bits, or other measures.
    method : str
        What found it.
    mechanism : TableMechanism, optional
        What releases it; None where only the numbers are known.
    settings : mapping of names to numbers, strings or None
        How it was found (beta, alpha, n_z, …).
    status : Status, optional
        How the solver ended.
    """

    utility: float
    leakage: float
    method: str
    mechanism: TableMechanism | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: Status | None = None

    def __post_init__(self) -> None:
        for name in ("utility", "leakage"):
            value = float(getattr(self, name))
            if not (math.isfinite(value) and value >= -ROUNDING):
                raise InvalidInputError(
                    f"TradeoffPoint: {name} must be finite and not negative; it is {value} ({self.method})."
                )
            object.__setattr__(self, name, max(0.0, value))
        settings = {str(key): _plain(key, value) for key, value in self.settings.items()}
        object.__setattr__(self, "settings", settings)

    @classmethod
    def from_solution(cls, solution: Solution, **settings: Any) -> TradeoffPoint:
        """The point of a solution; its beta or constraint is added to `settings`."""
        asked = solution.target
        known = {asked.kind: asked.value} if math.isfinite(asked.value) else {}
        return cls(
            solution.utility,
            solution.leakage,
            solution.method,
            solution.mechanism,
            known | settings,
            solution.status,
        )

    @property
    def beta(self) -> float | None:
        """The β it was found with, if any."""
        return self.settings.get("beta")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "utility": self.utility,
            "leakage": self.leakage,
            "method": self.method,
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "settings": dict(self.settings),
            "status": None if self.status is None else self.status.name,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TradeoffPoint:
        """The inverse of `to_dict`."""
        mechanism, status = values["mechanism"], values["status"]
        return cls(
            values["utility"],
            values["leakage"],
            str(values["method"]),
            None if mechanism is None else TableMechanism.from_dict(mechanism),
            values["settings"],
            None if status is None else Status[status],
        )


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
        H(X) and I(X;Y) in bits, the largest utility and leakage; None where they are not known. For other
        measures than information the utility and leakage of releasing X itself, if that is allowed.
    support_lines : iterable of (beta, value)
        Proved bounds: leakage ≥ value + beta · utility for *every* mechanism. They make `lower_bound_at`.
    scale : Scale
        What utility and leakage are; information by default.
    least_leakage : float
        The leakage of saying nothing: 0, or the success of guessing without a release.
    scope : str
        For which mechanisms the proved bounds hold, where that is not every one.
    """

    points: tuple[TradeoffPoint, ...]
    entropy_x: float | None = None
    mutual_information: float | None = None
    support_lines: tuple[tuple[float, float], ...] = ()
    scale: Scale = PLAIN
    least_leakage: float = 0.0
    scope: str = ""

    def __post_init__(self) -> None:
        lines = tuple((float(beta), float(value)) for beta, value in self.support_lines)
        if not all(math.isfinite(beta) and math.isfinite(value) for beta, value in lines):
            raise InvalidInputError("Frontier: support_lines must be pairs (beta, value) of finite numbers.")
        object.__setattr__(self, "points", tuple(self.points))
        object.__setattr__(self, "support_lines", lines)
        if self.entropy_x is not None:
            for point in self.points:
                if point.utility > self.entropy_x + 1e-9 * max(1.0, self.entropy_x):
                    raise InvalidInputError(
                        f"Frontier: a point of {point.method} has utility {point.utility:.6g}, more than "
                        f"{self._whole} = {self.entropy_x:.6g}{self.scale.utility_unit}. Use points of one "
                        "joint only."
                    )

    @classmethod
    def for_joint(
        cls,
        joint: Joint,
        points: Iterable[TradeoffPoint] = (),
        support_lines: Iterable[tuple[float, float]] = (),
        *,
        measures: Measures | None = None,
    ) -> Frontier:
        """The frontier of releases for a joint, with the constant release and Z = X added."""
        if measures is not None and not measures.plain:
            return cls._for_measures(joint, tuple(points), tuple(support_lines), measures)
        trivial = (
            TradeoffPoint(0.0, 0.0, "constant", TableMechanism.constant(joint)),
            TradeoffPoint(
                joint.entropy_x, joint.mutual_information, "identity", TableMechanism.identity(joint)
            ),
        )
        return cls(trivial + tuple(points), joint.entropy_x, joint.mutual_information, tuple(support_lines))

    @classmethod
    def _for_measures(
        cls,
        joint: Joint,
        points: tuple[TradeoffPoint, ...],
        lines: tuple[tuple[float, float], ...],
        measures: Measures,
    ) -> Frontier:
        """Z = X is among the points if its symbols may tell what they tell."""
        least, identity = measures.without_release(joint.p_y), TableMechanism.identity(joint)
        trivial = [TradeoffPoint(0.0, least, "constant", TableMechanism.constant(joint))]
        most = top = None
        allowed = measures.max_lift  # of any symbol
        if allowed is None or largest_lift(joint.p_xy, identity.channel) <= allowed:
            most = measures.utility_of(joint.p_x, identity.channel)
            top = measures.leakage_of(joint.p_xy, identity.channel)
            trivial.append(TradeoffPoint(most, top, "identity", identity))
        return cls((*trivial, *points), most, top, lines, measures.scale, least)

    @property
    def _whole(self) -> str:
        return "H(X)" if self.scale.utility == "information" else "the utility of X itself"

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
        return replace(self, points=kept)

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
            if (self.scale, self.scope) != (other.scale, other.scope):
                raise InvalidInputError(
                    "Frontier.merge: utility and leakage are measured differently here and there. "
                    "Merge frontiers of one scale only."
                )
            trivial = () if self.entropy_x is None else TRIVIAL_METHODS
            points += tuple(p for p in other.points if p.method not in trivial)
        lines = self.support_lines + tuple(line for other in others for line in other.support_lines)
        return replace(self, points=points, support_lines=tuple(dict.fromkeys(lines)))

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
            if kept and point.utility >= kept[-1].utility - self._rounding:
                kept.pop()
            kept.append(point)
        return tuple(reversed(kept))

    def envelope(self) -> tuple[TradeoffPoint, ...]:
        """The corners of the lower convex hull, from saying nothing to the largest utility.

        Between two corners, time sharing of their mechanisms is the best these points allow.
        """
        return self._corners

    @cached_property
    def _origin(self) -> TradeoffPoint:
        """The constant release, which is always possible."""
        least = self.least_leakage
        for point in self.points:
            if point.utility <= self._rounding and point.leakage - least <= ROUNDING and point.mechanism:
                return point
        return TradeoffPoint(0.0, least, "constant")

    @cached_property
    def _rounding(self) -> float:
        """Differences of utilities below this are rounding; distances have a unit of their own."""
        if self.scale.utility_unit:
            return ROUNDING
        return ROUNDING * max((point.utility for point in self.points), default=1.0)

    @cached_property
    def _corners(self) -> tuple[TradeoffPoint, ...]:
        # Where something is free, the Pareto points do not begin at the origin, but the hull does.
        hull = [self._origin]
        for point in self.pareto():
            if point.utility <= self._rounding:
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
                f"Frontier.utility_at: the leakage must be 0{self.scale.leakage_unit} or more; it is "
                f"{leakage}. Pass 0 for perfect privacy."
            )
        if leakage < self.least_leakage - ROUNDING:
            raise InfeasibleError(
                f"Frontier.utility_at: {self.scale.leakage_word} is {leakage:.6g}, and without any release "
                f"it is {self.least_leakage:.6g}. Ask for that or more."
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
        right = min(int(np.searchsorted(utilities, at - self._rounding)), len(utilities) - 1)
        if abs(utilities[right] - at) <= self._rounding:
            return _mechanism_of(self._corners[right])
        share = (at - utilities[right - 1]) / (utilities[right] - utilities[right - 1])
        pair = [_mechanism_of(self._corners[right - 1]), _mechanism_of(self._corners[right])]
        return time_share(pair, [1 - share, share])

    def lower_bound_at(self, utility: float) -> float | None:
        """A proved lower bound on the leakage of every mechanism (of `scope`) with this utility; None without
        one."""
        at = self._check_utility(utility, "lower_bound_at")
        if not self._is_bounded:
            return None
        # A release with more utility than asked is allowed, so a falling line bounds by its lowest value.
        end = self.max_utility if self.entropy_x is None else self.entropy_x
        lines = (value + min(beta * at, beta * end) for beta, value in self.support_lines)
        return max([self.least_leakage, *lines])

    @property
    def _is_bounded(self) -> bool:
        """Whether something is proved: by lines, or because X itself tells no more than saying nothing."""
        whole = self.mutual_information
        return bool(self.support_lines) or (whole is not None and whole <= self.least_leakage + ROUNDING)

    def proved(self) -> list[tuple[float, float]]:
        """The corners (utility, leakage) of `lower_bound_at`, by rising utility; none without a proof.

        Between two of them a straight line is exactly what is proved.
        """
        if not self._is_bounded:
            return []
        most = self.max_utility
        end = most if self.entropy_x is None else self.entropy_x
        # A falling line bounds by its lowest value.
        lines = [(max(beta, 0.0), value + min(beta, 0.0) * end) for beta, value in self.support_lines]
        lines.append((0.0, self.least_leakage))
        corners = {at: self.lower_bound_at(at) or 0.0 for at in (0.0, most)}
        for (slope, value), (other, at_nothing) in combinations(lines, 2):
            if slope != other:
                at = (value - at_nothing) / (other - slope)
                # Only where no third line is above the two.
                if 0 < at < most and (self.lower_bound_at(at) or 0.0) <= value + slope * at + ROUNDING:
                    corners[at] = self.lower_bound_at(at) or 0.0
        return sorted(corners.items())

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
        """A data frame with one row a point: utility, leakage (bits), method, settings, status.

        For other measures than information two more columns name them."""
        from .frames import make_frame

        return make_frame(self._columns())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the rows of `to_frame` as CSV; the file appears whole or not at all."""
        from .files import write_table

        columns = self._columns()
        columns["corner"] = [str(corner) for corner in columns["corner"]]  # as Python writes it
        write_table(path, columns, kind=".csv")

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything, mechanisms included, as versioned JSON; `privacyfunnel.load` reads it back."""
        from .persistence import save_json

        save_json(path, KIND, VERSION, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        values: dict[str, Any] = {
            "entropy_x": self.entropy_x,
            "mutual_information": self.mutual_information,
            "support_lines": [list(line) for line in self.support_lines],
            "points": [point.to_dict() for point in self.points],
        }
        if not self.scale.plain:
            values |= {
                "scale": self.scale.to_dict(),
                "least_leakage": self.least_leakage,
                "scope": self.scope,
            }
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Frontier:
        """The inverse of `to_dict`."""
        try:
            return cls(
                tuple(TradeoffPoint.from_dict(point) for point in values["points"]),
                _optional_number(values["entropy_x"]),
                _optional_number(values["mutual_information"]),
                tuple((beta, value) for beta, value in values["support_lines"]),
                Scale.from_dict(values["scale"]) if "scale" in values else PLAIN,
                float(values.get("least_leakage", 0.0)),
                str(values.get("scope", "")),
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
            f"utility {self.max_utility:.4f}{self.scale.utility_unit}{self._measured})"
        )

    @property
    def _measured(self) -> str:
        told = self.scale.leakage_word if self.scale.budgets else self.scale.leakage
        return "" if self.scale.plain else f"; {self.scale.utility} against {told}"

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
        if not self.scale.plain:
            columns |= {f"{key}_measure": [value] * len(self.points) for key, value in self._names.items()}
        return columns

    @property
    def _names(self) -> dict[str, str]:
        return {"utility": self.scale.utility, "leakage": self.scale.leakage}

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from .report.notebook import html_of

        return html_of(self)

    def _check_utility(self, utility: float, name: str) -> float:
        if math.isnan(utility) or utility > self.max_utility + self._rounding:
            whole = self.entropy_x is not None and self.max_utility >= self.entropy_x - 1e-9
            limit = f" = {self._whole}" if whole else ""
            raise InfeasibleError(
                f"Frontier.{name}: utility is {utility:.6g}{self.scale.utility_unit}, and these releases "
                f"reach at most {self.max_utility:.6g}{limit}. Ask for less."
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


def _plain(name: str, value: Any) -> str | int | float | bool | None:
    """A setting as a JSON value."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, str | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise InvalidInputError(
        f"TradeoffPoint: setting {name!r} must be a finite number, a string or None; it is {value!r}."
    )
