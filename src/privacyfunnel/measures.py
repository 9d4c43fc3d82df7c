"""What "useful" and "leaks" mean: information, distance, a task; information, success, parity, lift.

A release is a set of symbols z with probabilities w_z and posteriors q_z = P(X|z). Its utility is

    V(p) − Σ_z w_z V(q_z) ,

what seeing z takes off a loss V, concave in q: the entropy H(q), the least expected cost
min_a Σ_x q(x) d(x, a), or the entropy H(Sq) of a task T with S = P(T|X). Its leakage is Σ_z w_z Λ(Tq_z), of
the posteriors on Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .alphabet import as_names
from .arrays import FloatArray, IntArray
from .channels import as_channel, as_table
from .checks import finite_number, shown
from .errors import InfeasibleError, InvalidInputError, shortened
from .information import bayes_success, mutual_information, pointwise_leakage
from .sparse import Channel, weighted

if TYPE_CHECKING:
    from .joint import Joint

#: Names of utilities, with what they are in words.
UTILITIES = {
    "information": "bits that the release tells about the public letter",
    "distance": "squared distance to the record that the release takes away",
    "cost": "expected cost of the best answer that the release takes away",
    "task": "bits that the release tells about the task",
}
#: Names of leakages, with what they are in words.
LEAKAGES = {
    "information": "bits that the release tells about the private attribute",
    "success": "share of people whose private value the best guess from the release gets right",
    "parity": "largest difference, between two private values, of the share of people that any rule on the "
    "release selects",
}

#: Between points; squares of less, or of more than its inverse, leave the range of floating-point numbers.
LEAST_SPREAD = 1e-140


@dataclass(frozen=True, eq=False, init=False)
class Distance:
    """Usefulness as closeness: how much of the distance to the record a release takes away.

    With points c_x of the letters, the reader of z reconstructs the mean point, and the utility is the part
    of the variance of c_X that z explains, in squared units of the points. With costs d(x, a) of answering a
    when the letter is x, the reader takes the best answer, and the utility is what z takes off the expected
    cost.

    Parameters
    ----------
    points_or_costs : (n_x,) or (n_x, d) array, or (n_x, n_a) array
        One row a letter of X, in the joint's order. A square table with zeros on its diagonal is read as
        costs d(x, x') of answering one letter for another, any other as points.
    kind : "points" or "costs", optional
        Says which, where that reading is wrong.
    """

    table: FloatArray
    kind: str

    def __init__(self, points_or_costs: ArrayLike, *, kind: str | None = None) -> None:
        if kind not in (None, "points", "costs"):
            raise InvalidInputError(f"Distance: kind must be 'points' or 'costs'; it is {shortened(kind)}.")
        try:
            if np.iscomplexobj(points_or_costs):
                raise TypeError
            table = np.array(points_or_costs, dtype=np.float64, order="C")
        except (TypeError, ValueError, OverflowError):
            raise InvalidInputError("Distance: points must be numbers, one row a letter of X.") from None
        if table.ndim == 1:
            table = table[:, None]
        if table.ndim != 2 or table.size == 0:
            raise InvalidInputError(
                "Distance: points must be a table (n_x, d), one row a letter of X; its shape is "
                f"{table.shape}."
            )
        if not np.isfinite(table).all():
            row, column = np.argwhere(~np.isfinite(table))[0]
            raise InvalidInputError(
                f"Distance: entry [{row}, {column}] is {table[row, column]}; every number must be finite."
            )
        square = table.shape[0] == table.shape[1] > 1 and not np.diag(table).any()
        if kind is None and square and table.min() < 0.0:
            row, column = np.argwhere(table < 0.0)[0]
            raise InvalidInputError(
                "Distance: a square table with zeros on its diagonal is read as costs, and no cost is "
                f"negative; entry [{row}, {column}] is {table[row, column]:g}: correct it, or pass "
                "kind='points' if the rows are points.",
                names=("kind",),
            )
        kind = kind or ("costs" if square else "points")
        if kind == "costs":
            shape = "(n_x, n_a), one row a letter and one column an answer"
            table = as_table(table, "Distance: costs", shape)
        else:
            spread = float(np.ptp(table, axis=0).max())
            if spread > 1.0 / LEAST_SPREAD or 0.0 < spread < LEAST_SPREAD:
                raise InvalidInputError(
                    f"Distance: points are up to {spread:.3g} apart, and the square of that is no number to "
                    "compute with; measure them in another unit."
                )
        table.setflags(write=False)
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "kind", kind)

    def __repr__(self) -> str:
        rows, columns = self.table.shape
        return f"Distance({rows} letters, {columns} {'answers' if self.kind == 'costs' else 'dimensions'})"


@dataclass(frozen=True, eq=False, init=False)
class Task:
    """Usefulness for one purpose: how much a release tells about a task T, I(Z;T) in bits.

    Parameters
    ----------
    p_t_given_x : (n_x, n_t) array, or column name or names
        P(T|x), rows sum to 1; or the columns that `Joint.from_frame(…, task=…)` was given.
    """

    p_t_given_x: FloatArray | None
    names: tuple[str, ...]

    def __init__(self, p_t_given_x: Any) -> None:
        several = isinstance(p_t_given_x, (list, tuple)) and len(p_t_given_x) > 0
        channel: FloatArray | None = None
        names: tuple[str, ...] = ()
        if isinstance(p_t_given_x, str) or (several and all(isinstance(one, str) for one in p_t_given_x)):
            names = as_names(p_t_given_x)
        else:
            channel = as_channel(p_t_given_x, "Task: p_t_given_x", "xt")
            channel /= channel.sum(axis=1, keepdims=True)  # checked above, so this is rounding
            channel.setflags(write=False)
        object.__setattr__(self, "p_t_given_x", channel)
        object.__setattr__(self, "names", names)

    def __repr__(self) -> str:
        if self.p_t_given_x is None:
            return f"Task({', '.join(self.names)})"
        return f"Task({self.p_t_given_x.shape[1]} values)"


@dataclass(frozen=True)
class Scale:
    """The names of a utility and a leakage, and how their numbers are written.

    Attributes
    ----------
    utility : "information", "distance", "cost" or "task"
    leakage : "information", "success" or "parity"
    max_lift : float, optional
        Bits that any symbol may tell.
    budgets : bool
        Whether private columns have a budget each: the leakage is the largest share of one that is used.
    """

    utility: str = "information"
    leakage: str = "information"
    max_lift: float | None = None
    budgets: bool = False

    @property
    def plain(self) -> bool:
        """Whether both are information and no symbol has a limit: the privacy funnel of the literature."""
        return self == PLAIN

    @property
    def utility_unit(self) -> str:
        """What follows a utility: " bit", or nothing."""
        return " bit" if self.utility in ("information", "task") else ""

    @property
    def leakage_unit(self) -> str:
        return " bit" if self.leakage == "information" and not self.budgets else ""

    def objective_unit(self, kind: str) -> str:
        """What follows the number that is minimised for a target of this kind."""
        return self.utility_unit if kind == "max_leakage" else self.leakage_unit

    @property
    def leakage_word(self) -> str:
        """What a leakage of this scale is called before its number."""
        if self.budgets:
            return "share of the budgets used"
        return "leakage" if self.leakage == "information" else self.leakage

    def with_utility(self, value: float) -> str:
        """A utility with its word and unit."""
        word = "" if self.utility == "information" else f" ({self.utility})"
        unit = " bit" if self.utility == "task" else ""
        return f"utility {value:.4f}{unit}{word}"

    def with_leakage(self, value: float) -> str:
        """A leakage with its word and unit."""
        return f"{self.leakage_word} {value:.4f}{self.leakage_unit}"

    def to_dict(self) -> dict[str, Any]:
        values = {"utility": self.utility, "leakage": self.leakage, "max_lift": self.max_lift}
        return {**values, "budgets": True} if self.budgets else values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Scale:
        """The inverse of `to_dict`; a KeyError for a name that is not known."""
        utility, leakage, lift = (values[name] for name in ("utility", "leakage", "max_lift"))
        if utility not in UTILITIES or leakage not in LEAKAGES:
            raise KeyError(f"{utility} and {leakage}")
        return cls(
            utility, leakage, None if lift is None else float(lift), bool(values.get("budgets", False))
        )


#: The privacy funnel of the literature.
PLAIN = Scale()


@dataclass(frozen=True, eq=False)
class Budget:
    """How much one of several private columns may leak.

    Attributes
    ----------
    name : str
    limit : float
        In the leakage's unit.
    least : float
        The leakage of saying nothing.
    groups : (n_y,) array
        Which letters of Y have the same value of this column.
    """

    name: str
    limit: float
    least: float
    groups: IntArray

    @property
    def room(self) -> float:
        """What the limit leaves beyond the leakage of saying nothing."""
        return self.limit - self.least

    def of(self, p_y: FloatArray) -> FloatArray:
        """A table over all letters of Y (axis 0), as one over the values of this column."""
        table = np.zeros((int(self.groups.max()) + 1, *p_y.shape[1:]))
        np.add.at(table, self.groups, p_y)
        return table


@dataclass(frozen=True, eq=False)
class Measures:
    """What is asked of a release of one joint: a utility, a leakage, and how much any symbol may tell.

    Attributes
    ----------
    utility : "information", Distance or Task
    leakage : "information", "success" or "parity"
    max_lift : float, optional
        Bits: no symbol may make any private value more or less probable by a factor above 2 to this.
    budgets : of Budget
        Where private columns have a limit each; the leakage is then the largest share of a budget that is
        used, beyond what saying nothing leaks.
    """

    utility: str | Distance | Task = "information"
    leakage: str = "information"
    max_lift: float | None = None
    budgets: tuple[Budget, ...] = ()

    @classmethod
    def of(cls, joint: Joint, utility: Any, leakage: Any, max_lift: Any) -> Measures:
        """Checked against the joint; a task named by its column is looked up in it."""
        if isinstance(utility, (Distance, Task)):
            utility = _fitting(joint, utility)
        elif not isinstance(utility, str) or utility != "information":
            raise InvalidInputError(
                f"utility must be 'information', a Distance or a Task; it is {shown(utility)}.",
                names=("utility",),
            )
        if not isinstance(leakage, str) or leakage not in LEAKAGES:
            raise InvalidInputError(
                f"leakage must be one of {', '.join(map(repr, LEAKAGES))}; it is {shown(leakage)}.",
                names=("leakage",),
            )
        lift = None if max_lift is None else finite_number("max_lift", max_lift, 0.0)
        return cls(utility, leakage, lift)

    def with_budgets(self, joint: Joint, limits: Mapping[str, Any]) -> Measures:
        """The same measures with a limit for each of these private columns."""
        if not limits:
            raise InvalidInputError(
                "max_leakage names no private column; give one of them a limit.", names=("max_leakage",)
            )
        budgets = []
        for name, limit in limits.items():
            groups = joint.private_groups(name)
            value = finite_number(f"max_leakage of {shortened(name)}", limit, 0.0)
            column = Budget(name, value, 0.0, groups)
            least = replace(self, budgets=()).without_release(column.of(joint.p_y))
            if value <= least:
                raise InfeasibleError(
                    f"max_leakage of {shortened(name)} is {value:g}, and a limit for one of several columns "
                    f"must be more than {least:.6g}, the {self.leakage} without any release. Allow more.",
                    names=("max_leakage",),
                )
            budgets.append(replace(column, least=least))
        return replace(self, budgets=tuple(budgets))

    @property
    def scale(self) -> Scale:
        """The names, without the tables."""
        name = "information"
        if isinstance(self.utility, Distance):
            name = "cost" if self.utility.kind == "costs" else "distance"
        elif isinstance(self.utility, Task):
            name = "task"
        return Scale(name, self.leakage, self.max_lift, bool(self.budgets))

    @property
    def plain(self) -> bool:
        """Whether this is the privacy funnel of the literature."""
        return self.scale.plain

    def utility_of(self, p_x: FloatArray, p_z_given_x: Channel) -> float:
        """The utility of a channel (n_x, n_z), in its unit."""
        p_xz = weighted(p_z_given_x, p_x)
        if isinstance(self.utility, Distance):
            return _distance_removed(self.utility, p_xz)
        if isinstance(self.utility, Task):
            assert self.utility.p_t_given_x is not None
            return mutual_information(self.utility.p_t_given_x.T @ p_xz)
        return mutual_information(p_xz)

    def leakage_of(self, p_xy: FloatArray, p_z_given_x: Channel) -> float:
        """The leakage of a channel (n_x, n_z) on p_xy (n_x, n_y), in its unit."""
        p_yz = p_xy.T @ p_z_given_x
        if self.budgets:
            return max((self._told(one.of(p_yz)) - one.least) / one.room for one in self.budgets)
        return self._told(p_yz)

    def leakage_by_column(self, p_xy: FloatArray, p_z_given_x: FloatArray) -> dict[str, float]:
        """The leakage about each private column that has a budget, in its unit."""
        p_yz = p_xy.T @ p_z_given_x
        return {one.name: self._told(one.of(p_yz)) for one in self.budgets}

    def _told(self, p_yz: FloatArray) -> float:
        if self.leakage == "success":
            return bayes_success(p_yz)
        return parity_gap(p_yz) if self.leakage == "parity" else mutual_information(p_yz)

    def without_release(self, p_y: FloatArray) -> float:
        """The leakage of saying nothing: the best guess's success, else 0."""
        return float(p_y.max()) if self.leakage == "success" and not self.budgets else 0.0


def parity_gap(p_yz: FloatArray) -> float:
    """The largest total variation between P(Z|y) and P(Z|y') of two values y that occur.

    No rule that looks at z alone selects a share of one group that differs by more from that of another.
    """
    rows = p_yz[p_yz.sum(axis=1) > 0]
    rows = rows / rows.sum(axis=1, keepdims=True)
    return max(
        (0.5 * float(np.abs(rows[i + 1 :] - rows[i]).sum(axis=1).max()) for i in range(len(rows) - 1)),
        default=0.0,
    )


def largest_lift(p_xy: FloatArray, p_z_given_x: Channel) -> float:
    """max |log2 P(y|z)/P(y)| over all values and symbols that occur."""
    low, high = pointwise_leakage(p_xy, p_z_given_x)
    return max(-low, high, 0.0)


def _fitting(joint: Joint, utility: Distance | Task) -> Distance | Task:
    """The measure, if it has a row for each letter."""
    if isinstance(utility, Distance):
        rows, what = len(utility.table), "Distance: points"
    else:
        if utility.p_t_given_x is None:
            utility = Task(joint.task_channel(utility.names))
        assert utility.p_t_given_x is not None
        rows, what = len(utility.p_t_given_x), "Task: p_t_given_x"
    if rows != joint.n_x:
        raise InvalidInputError(
            f"{what} must have one row a letter of X; there are {rows} rows, and the joint has {joint.n_x} "
            "letters. Pass them in the order of joint.x_labels."
        )
    return utility


def _distance_removed(distance: Distance, p_xz: Channel) -> float:
    table = distance.table
    p_x, p_z = p_xz.sum(axis=1), p_xz.sum(axis=0)
    if distance.kind == "costs":
        return max(0.0, float((p_x @ table).min() - (table.T @ p_xz).min(axis=0).sum()))
    centred = table - table[0]  # zeros where all points are one
    centred = centred - p_x @ centred / p_x.sum()
    sums = (centred.T @ p_xz)[:, p_z > 0]
    return float((np.square(sums).sum(axis=0) / p_z[p_z > 0]).sum())
