"""The funnel on cells: solved on some records, certified on others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import FloatArray, IntArray
from ..certificate import Certifier, note_of, success_bound
from ..discrete.population import keep_limit, limit_words, nothing_left, refusal
from ..discrete.solve import solve
from ..errors import ConvergenceWarning, FewRecordsWarning, InfeasibleError
from ..information import entropy
from ..joint import Joint
from ..measured import Interval, Measured
from ..measures import Distance, Measures, Task
from ..solution import Solution
from .categories import shares_in_tens

#: Candidates, as shares of the room that the limit leaves above saying nothing.
SHARES = tuple(round(0.3 + 0.05 * i, 2) for i in range(15))
#: Those of a rehearsal.
FEW_SHARES = (0.3, 0.45, 0.6, 0.8, 1.0)
#: How closely a candidate is solved: bits, or a share of the variance. Certificates do not depend on it.
TOLERANCE, ROUGH_TOLERANCE = 1e-4, 1e-3
#: Seconds for one candidate, where the optimum is hard to prove.
SECONDS = 5.0

Limits = float | Mapping[str, float]


@dataclass(frozen=True, eq=False)
class CellProblem:
    """P(cell, Y) of the records that solve, and the counts of those that certify.

    Attributes
    ----------
    joint : Joint
        Of cell and private class; `n_samples` records.
    utility : "information", Distance or Task
    leakage : "information", "success" or "parity"
    held_out : (n_cells, n_y) array
        Counts of other records.
    confidence : float
        One-sided, of everything that is certified together.
    """

    joint: Joint
    utility: str | Distance | Task
    leakage: str
    held_out: FloatArray
    confidence: float

    @cached_property
    def measures(self) -> Measures:
        return Measures.of(self.joint, self.utility, self.leakage, None)

    @property
    def reference(self) -> FloatArray:
        """A guess of P(Y) from the records that solve, with one pseudo-record a class."""
        counts = self.joint.p_y * (self.joint.n_samples or 0) + 1.0
        shares: FloatArray = counts / counts.sum()
        return shares

    def least(self, name: str | None = None) -> float:
        """The leakage of saying nothing, about one attribute or their combination."""
        groups = self._groups(name)
        return self.measures.without_release(_grouped(self.joint.p_y, groups))

    def most(self, name: str | None = None) -> float:
        """The leakage of telling all, about one attribute or their combination."""
        if self.leakage != "information":
            return 1.0
        return entropy(_grouped(self.joint.p_y, self._groups(name)))

    def solve(self, limits: Limits) -> Solution:
        """The most useful release that keeps the limits on the records that solve."""
        plain = isinstance(self.utility, str)
        with warnings.catch_warnings():
            # What new people lose is certified, and how near the optimum a candidate is does not matter.
            warnings.simplefilter("ignore", FewRecordsWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            return solve(
                self.joint,
                max_leakage=limits,
                utility=self.utility,
                leakage=self.leakage,
                method="exact" if plain and self.joint.n_y <= 2 else "auto",
                tol=ROUGH_TOLERANCE if plain or self.joint.n_y > 2 else TOLERANCE,
                time_limit=SECONDS,
                n_starts=3,
                rng=0,
                n_jobs=1,
                progress=False,
            )

    def certifier(self, n_tests: int = 1, name: str | None = None) -> Certifier:
        """What bounds the leakage; where `n_tests` bounds are to hold together, each at its share."""
        groups = self._groups(name)
        level = 1 - (1 - self.confidence) / n_tests
        counts = _grouped(self.held_out.T, groups).T
        return Certifier(counts, _grouped(self.reference, groups), self.leakage, level)

    def keep(self, limits: Limits, shares: Sequence[float] = SHARES) -> Solution:
        """The most daring release whose certificate keeps the limits; InfeasibleError where none does.

        Several limits are certified together: a release passes where each of them does, at its share of the
        level.
        """
        named = limits.items() if isinstance(limits, Mapping) else [(None, limits)]
        for name, limit in named:
            if limit >= self.most(name):
                raise self._unlimited(name, limit)
        if not isinstance(limits, Mapping):
            least, certifier = self.least(), self.certifier()
            found = keep_limit(
                self.solve,
                lambda one: certifier.bound(one.mechanism.p_z_given_x),
                limits,
                least,
                shares,
                self.leakage,
            )
            if found is None:
                raise self._refused(
                    limits, least, certifier, self.solve(least + shares[0] * (limits - least))
                )
            return found[0]
        leasts = {name: self.least(name) for name in limits}
        certifiers = {name: self.certifier(len(limits), name) for name in limits}

        def solve_at(share: float) -> Solution:
            return self.solve({name: leasts[name] + share * (limits[name] - leasts[name]) for name in limits})

        def used(one: Solution) -> Measured:
            bounds = {name: c.bound(one.mechanism.p_z_given_x) for name, c in certifiers.items()}
            shares = [(b.value - leasts[k]) / (limits[k] - leasts[k]) for k, b in bounds.items()]
            return Measured(max(shares), "upper bound", n_samples=self.n_held_out, unit="")

        for name in limits:
            if limits[name] <= leasts[name]:
                raise nothing_left(limits[name], leasts[name], self.leakage, name)
        found = keep_limit(solve_at, used, 1.0, 0.0, shares)
        if found is None:
            hard = max(limits, key=lambda name: -limits[name])
            raise self._refused(limits[hard], leasts[hard], certifiers[hard], solve_at(shares[0]), hard)
        return found[0]

    def bound(self, limit: float, n_tests: int = 1) -> Measured:
        """That a release keeps a limit, said as a certificate."""
        level = 1 - (1 - self.confidence) / n_tests
        return Measured(
            limit,
            "upper bound",
            note_of(self.leakage),
            Interval(0.0, limit, level, "held-out", 0),
            n_samples=self.n_held_out,
            unit="bit" if self.leakage == "information" else "",
        )

    def guess_bounds(self, p_z_given_cell: FloatArray, n_tests: int) -> dict[str, float]:
        """How often anybody can be right about each attribute; all together with the confidence."""
        names: list[str | None] = [None] if len(self.joint.y_names) == 1 else [*self.joint.y_names]
        level = 1 - (1 - self.confidence) / (n_tests * len(names))
        soft = self.held_out.T @ p_z_given_cell
        return {
            name or self.joint.y_names[0]: success_bound(_grouped(soft, self._groups(name)).T, level)
            for name in names
        }

    def commonest(self) -> dict[str, float]:
        """The share of the commonest value of each attribute among the records that solve, told to ten.

        Not of all records: a limit such as "5 % more than by chance" can only be made from these, and the two
        are read side by side. That it is of a part drawn at random also hides single people. Who prints it
        says "about".
        """
        names: list[str | None] = [None] if len(self.joint.y_names) == 1 else [*self.joint.y_names]
        counts = self.joint.p_y * (self.joint.n_samples or 0)
        return {
            name or self.joint.y_names[0]: float(shares_in_tens(_grouped(counts, self._groups(name))).max())
            for name in names
        }

    @property
    def n_held_out(self) -> int:
        return round(float(self.held_out.sum()))

    def _groups(self, name: str | None) -> IntArray:
        if name is None:
            return np.arange(self.joint.n_y)
        return self.joint.private_groups(name)

    def _unlimited(self, name: str | None, limit: float) -> InfeasibleError:
        """A certificate that every release has would hide that this one may tell everything."""
        bits = self.leakage == "information"
        what = name or " × ".join(self.joint.y_names)
        return InfeasibleError(
            f"A limit of {limit_words(limit, self.leakage)} is none for {what}: whoever tells all of it "
            f"tells {limit_words(self.most(name), self.leakage)}. Allow less"
            f"{', or limit how differently groups are treated (parity)' * bits}.",
            names=("max_leakage",),
        )

    def _refused(
        self, limit: float, least: float, certifier: Certifier, first: Solution, name: str | None = None
    ) -> InfeasibleError:
        p_zy = _grouped(self.joint.p_xy.T @ first.mechanism.p_z_given_x, self._groups(name)).T
        return refusal(self.leakage, limit, least, certifier, p_zy)


def cell_joint(counts: FloatArray, labels: Sequence[Hashable], names: tuple[str, ...]) -> Joint:
    """P(cell, Y) of counts, where each cell has one more record that has all classes in their usual shares.

    A cell with one class alone would be taken to tell it for certain.
    """
    sizes = counts.sum(axis=1, keepdims=True)
    p_y = counts.sum(axis=0) / counts.sum()
    p_xy = sizes / counts.sum() * (counts + p_y) / (sizes + 1.0)
    return Joint(
        p_xy / p_xy.sum(),
        y_labels=labels,
        y_names=names,
        x_names=("cell",),
        n_samples=round(float(counts.sum())),
    )


def rough_bits(leakage: str, limit: float, p_y: FloatArray) -> float:
    """About how many bits a limit in this measure is worth, for choosing how many cells there are."""
    if leakage == "information":
        return limit
    if leakage == "parity":
        rare = float(p_y.min())
        return 2 / math.log(2) * rare * (1 - rare) * limit**2
    wrong = max(1.0 - limit, 0.0)
    # Somebody who is wrong about the commonest class has the usual shares of the others before him.
    others = np.delete(p_y, int(p_y.argmax()))
    among = entropy(others / others.sum()) if others.sum() > 0 else 0.0
    left = entropy(np.array([wrong, 1 - wrong])) + wrong * among
    return max(entropy(p_y) - left, 0.0)


def _grouped(table: FloatArray, groups: IntArray) -> FloatArray:
    """A table over all combinations (axis 0), as one over the values of an attribute."""
    result = np.zeros((int(groups.max()) + 1, *table.shape[1:]))
    np.add.at(result, groups, table)
    return result
