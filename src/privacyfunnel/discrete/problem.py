"""Problem: what is solved. The funnel of a joint, restricted to the letters that occur."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..joint import Joint
from ..measures import Distance, Measures, Task, largest_lift
from ..mechanism import TableMechanism
from ..solution import Target
from ..sparse import Channel, SparseChannel, with_other_rows

_Number = TypeVar("_Number", float, FloatArray)
NATS_PER_BIT = float(np.log(2.0))
ROUND_OFF = 1e-12  # by which a success is that of saying nothing


@dataclass(frozen=True, eq=False)
class Part:
    """One of the leakages of which the largest counts, as finite actions see it.

    `members` (n_y, n_k) says which letters of Y are one value; the rows of `forms` (j, n_y) have the largest
    product with the masses of Y that a symbol has, 0 among them unless `least` is more: its part of the
    leakage, `least` of which saying nothing has, in units of `scale`.
    """

    members: FloatArray
    forms: FloatArray
    scale: float
    least: float


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise L = I(Z;Y) − β I(Z;X) over channels P(Z|X), for a fixed joint and any β.

    Or another leakage minus β times another utility, where `asked` says so. With `same_guess` no symbol may
    change the best guess of Y: the success of saying nothing.

    Letters of probability 0 are left out, so that every conditional below exists; `embed` puts
    them back. Arrays are contiguous and in the order that the compiled kernels read them.
    """

    joint: Joint
    asked: Measures = field(default_factory=Measures)
    same_guess: bool = False

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Indices of the letters of X that occur."""
        return np.flatnonzero(self.joint.p_x > 0)

    @cached_property
    def p_xy(self) -> FloatArray:
        columns = np.flatnonzero(self.joint.p_y > 0)
        return np.ascontiguousarray(self.joint.p_xy[np.ix_(self.rows, columns)])

    @cached_property
    def p_x(self) -> FloatArray:
        return np.asarray(self.p_xy.sum(axis=1))

    @cached_property
    def p_y(self) -> FloatArray:
        return np.asarray(self.p_xy.sum(axis=0))

    @cached_property
    def p_y_given_x(self) -> FloatArray:
        """(n_x, n_y)"""
        return np.ascontiguousarray(self.p_xy / self.p_x[:, None])

    @cached_property
    def p_x_given_y(self) -> FloatArray:
        """(n_y, n_x)"""
        return np.ascontiguousarray((self.p_xy / self.p_y).T)

    @cached_property
    def pseudo_inverse(self) -> FloatArray:
        """Of the operator log p(z|y) ↦ Σ_y P(y|x) log p(z|y): (n_y, n_x)"""
        return np.ascontiguousarray(np.linalg.pinv(self.p_y_given_x), dtype=np.float64)

    @property
    def n_x(self) -> int:
        return int(self.p_xy.shape[0])

    @property
    def n_y(self) -> int:
        return int(self.p_xy.shape[1])

    @cached_property
    def rank(self) -> int:
        """Rank of P(Y|X)."""
        return int(np.linalg.matrix_rank(self.p_y_given_x))

    def embed(self, p_z_given_x: Channel) -> Channel:
        """The channel on the full alphabet of X.

        A letter that never occurs is released as a draw from P(Z), which tells nothing about it.
        """
        if isinstance(p_z_given_x, SparseChannel):
            return with_other_rows(p_z_given_x, self.rows, self.p_x, self.joint.n_x)
        if self.n_x == self.joint.n_x:
            return p_z_given_x
        p_z = self.p_x @ p_z_given_x
        full = np.tile(p_z / p_z.sum(), (self.joint.n_x, 1))
        full[self.rows] = p_z_given_x
        return full

    @cached_property
    def measures(self) -> Measures:
        """What is asked for, on the letters that occur."""
        utility = self.asked.utility
        if isinstance(utility, Distance):
            utility = Distance(utility.table[self.rows], kind=utility.kind)
        elif isinstance(utility, Task):
            assert utility.p_t_given_x is not None
            utility = Task(utility.p_t_given_x[self.rows])
        columns = self.joint.p_y > 0
        budgets = tuple(replace(one, groups=one.groups[columns]) for one in self.asked.budgets)
        return replace(self.asked, utility=utility, budgets=budgets)

    @cached_property
    def utility_unit(self) -> float:
        """Inner units in one unit of the utility: nats, or for a distance the share of what there is."""
        if not isinstance(self.measures.utility, Distance):
            return NATS_PER_BIT
        whole = self.measures.utility_of(self.p_x, np.eye(self.n_x))
        return 1.0 / whole if whole > 0.0 else 1.0

    @property
    def leakage_unit(self) -> float:
        """Inner units in one unit of the leakage: nats, or 1 for a share."""
        plain = self.measures.leakage == "information" and not self.measures.budgets
        return NATS_PER_BIT if plain else 1.0

    @property
    def finite(self) -> bool:
        """Whether it is solved over finite actions: other measures, unless there are two private values."""
        return not self.measures.plain and (self.n_y > 2 or bool(self.measures.budgets))

    @property
    def smooth(self) -> bool:
        """Whether over finite actions it is a convex problem and no linear one."""
        return self.measures.leakage == "information" and self.measures.max_lift is None

    @property
    def may_release_all(self) -> bool:
        """Whether no letter tells more than the limit on lift allows."""
        lift = self.measures.max_lift
        return lift is None or largest_lift(self.p_xy, np.eye(self.n_x)) <= lift

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The leakages of which the largest counts: one a budget, and of parity one a pair of values."""
        measures, n_y = self.measures, self.n_y
        whole = [(np.arange(n_y), 1.0, measures.without_release(self.p_y))]
        asked = [(one.groups, one.room, one.least) for one in measures.budgets] or whole
        parts = []
        for groups, room, least in asked:
            members = np.eye(int(groups.max()) + 1)[groups]
            here = members.sum(axis=0) > 0
            members = members[:, here]
            if measures.leakage == "information":
                scale = room * NATS_PER_BIT if measures.budgets else 1.0
                parts.append(Part(members, np.empty((0, n_y)), scale, 0.0))
            elif measures.leakage == "success":
                parts.append(Part(members, members.T, room, least))
            else:
                rates = (members / (self.p_y @ members)).T
                for i, j in combinations(range(len(rates)), 2):
                    parts.append(Part(members, (rates[i] - rates[j])[None], room, 0.0))
        return tuple(parts)

    @cached_property
    def cone(self) -> FloatArray:
        """(c, n_y): c with c·v ≤ 0 for the masses v of Y that a symbol under a limit on lift may have."""
        lift, identity = self.measures.max_lift, np.eye(self.n_y)
        if lift is None:
            return np.empty((0, self.n_y))
        most, total = 2.0 ** min(lift, 1000.0), np.ones(self.n_y)
        above = identity - most * np.outer(self.p_y, total)
        below = np.outer(self.p_y, total) / most - identity
        return np.vstack([above, below])

    @property
    def exchange(self) -> float:
        """The inner β of a β of 1; 1 where both are information, to the last bit."""
        return self.leakage_unit / self.utility_unit

    def evaluate(self, p_z_given_x: Channel) -> tuple[float, float]:
        """Utility of a channel, and its leakage beyond that of saying nothing, in inner units."""
        utility = self.measures.utility_of(self.p_x, p_z_given_x)
        leakage = self.measures.leakage_of(self.p_xy, p_z_given_x) - self.measures.without_release(self.p_y)
        return utility * self.utility_unit, max(leakage, 0.0) * self.leakage_unit

    def inner(self, asked: Target) -> Target:
        """A target in inner units; a leakage counts beyond that of saying nothing."""
        if asked.kind == "beta":
            return replace(asked, value=asked.value * self.exchange)
        if asked.kind == "min_utility":
            return replace(asked, value=asked.value * self.utility_unit)
        beyond = asked.value - self.measures.without_release(self.p_y)
        if self.measures.leakage == "success" and beyond < ROUND_OFF:
            beyond = 0.0
        return replace(asked, value=beyond * self.leakage_unit)

    def outer(self, kind: str, value: _Number) -> _Number:
        """What is minimised for a target of this kind, from inner units to its own."""
        if kind == "max_leakage":
            return value / self.utility_unit
        return value / self.leakage_unit + self.measures.without_release(self.p_y)

    def outer_line(self, beta: float, value: float) -> tuple[float, float]:
        """(β, value) of the line leakage ≥ value + β · utility, from inner units to their own."""
        return beta / self.exchange, self.outer("beta", value)

    def tol_unit(self, kind: str) -> float:
        """Inner units in one unit of a tolerance on what is minimised; of a distance, of its whole."""
        if kind != "max_leakage":
            return self.leakage_unit
        return 1.0 if isinstance(self.measures.utility, Distance) else self.utility_unit

    def mechanism(self, p_z_given_x: Channel) -> TableMechanism:
        """What releases through this channel, for the full alphabet of the joint."""
        return TableMechanism.for_joint(self.joint, self.embed(p_z_given_x))

    def gradient(self, p_z_given_x: FloatArray, beta: float) -> FloatArray:
        """∂L/∂p(z|x) in bits: p(x) [ Σ_y P(y|x) log p(z|y) − log p(z) − β log( p(z|x)/p(z) ) ].

        +∞ where p(z|x) = 0 < p(z): the slope of −β I(Z;X) there. 0 for symbols that never occur.
        """
        p_z = self.p_x @ p_z_given_x
        with np.errstate(divide="ignore"):
            log_p, log_pz = np.log2(p_z_given_x), np.log2(p_z)
            log_pzy = np.log2(self.p_x_given_y @ p_z_given_x)
        log_pz[p_z == 0] = 0.0
        mixed = self.p_y_given_x @ np.where(np.isfinite(log_pzy), log_pzy, 0.0)
        inner = mixed - log_pz - beta * (log_p - log_pz)
        if beta == 0:
            inner = mixed - log_pz
        # A zero entry whose neighbours p(z|y) vanish too: β log p(z|x) is outweighed or not by P(y|x);
        # such entries cannot be re-entered by any local step, so they count as closed.
        inner[p_z_given_x == 0] = np.inf
        inner[:, p_z == 0] = 0.0
        return self.p_x[:, None] * inner

    def stationarity_gap(self, p_z_given_x: FloatArray, beta: float) -> float:
        """First-order residual in bits, on the support: Σ ∂L·p − Σ_x min_z ∂L; 0 exactly if stationary."""
        gradient = self.gradient(p_z_given_x, beta)
        gradient[p_z_given_x == 0] = np.inf
        weighted = np.where(p_z_given_x > 0, gradient, 0.0) * p_z_given_x
        return float(weighted.sum() - gradient.min(axis=1).sum())
