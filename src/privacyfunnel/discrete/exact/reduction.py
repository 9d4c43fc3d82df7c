"""The problem that is really solved: letters that matter, with equal ones merged.

Two letters with the same P(Y|x) are one class here. That is exact. Leakage depends on the classes alone, and
a symbol whose posterior has shares q_c on some classes can be split into symbols that name one member of each
class, with the same shares: no more leakage, and H(posterior) stays H(q). So the least L of the letters is
the least L of the classes minus β H(X|class), and `expand` performs the split. For other utilities than
information every letter is a class of its own: they tell such letters apart.

Letters of a total mass δ that is negligible are left out. With B = 1{X is one of them}, both I(Z;Y) and
I(Z;X) differ from (1−δ) times their value given B = 0 by at most H(B) + δ log n. A joint may sum to 1 ± 1e-9;
what it says is then scaled by its sum, and its logarithms are off by that of the sum. `slack` states both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...measures import Distance, Task
from ..problem import Problem
from .shares import COST, DISTANCE, ENTROPY, INFORMATION, KINKED, TASK

NEGLIGIBLE = 1e-14  # probability of a letter, and difference between equal rows of P(Y|X)


@dataclass(frozen=True, eq=False)
class Posterior:
    """A column of the linear programme: a distribution on a few classes."""

    letters: NDArray[np.intp]
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Reduction:
    """Classes of letters with distinct P(Y|x), sorted by it."""

    problem: Problem
    letters: NDArray[np.intp]  # of the problem's X, class by class
    starts: NDArray[np.intp]  # where each class begins among them
    p: FloatArray  # (n,) probability of each class, sums to 1
    channel: FloatArray  # (n, n_y) P(Y|class)
    mass: float  # probability of the letters kept, of 1
    dropped: float  # probability of the others, summed from them: 1 − mass has lost its digits
    rank: int

    @property
    def n(self) -> int:
        return int(self.p.size)

    @cached_property
    def members(self) -> tuple[NDArray[np.intp], ...]:
        """Letters of the problem's X, by class."""
        return tuple(np.split(self.letters, self.starts[1:]))

    @cached_property
    def class_of(self) -> NDArray[np.intp]:
        """The class of each of `letters`."""
        return np.repeat(np.arange(self.n), np.diff(self.starts, append=self.letters.size))

    @cached_property
    def noise(self) -> float:
        """What nothing released leaves open of Y, given that a letter is kept: H(Y) in nats."""
        return self.noise_of(self.p @ self.channel)

    @cached_property
    def loss(self) -> float:
        """The loss V(p) of nothing released, given that a letter is kept: H(X) in nats, of classes and
        members; a distance or cost in units of the whole."""
        if self.problem.measures.utility == "information":
            kept = self.problem.p_x[self.letters]
            return entropy_nats(kept / kept.sum())
        return self.loss_of(Posterior(np.arange(self.n), self.p))

    @cached_property
    def slack(self) -> float:
        """Nats by which I(Z;X), and I(Z;Y), can differ from what the classes say; or other inner units."""
        dropped, joint, utility = self.dropped, self.problem.joint, self.problem.measures.utility
        n_t = self.pair_table.shape[1] if isinstance(utility, Task) else 2
        largest = float(np.log(max(joint.n_x, joint.n_y, n_t)))
        # An allowance: rows count as equal, and singular values as zero, up to NEGLIGIBLE.
        blur = NEGLIGIBLE * joint.n_y * np.sqrt(joint.n_x) * (largest - np.log(NEGLIGIBLE))
        blur += 2.0 * abs(float(self.problem.p_x.sum()) - 1.0) * (largest + 1.0)
        if self.problem.measures.leakage != "information":
            # A share of a class moves by twice the mass left out over that of the class.
            largest += 2.0 / float((self.p @ self.channel).min())
        return float(blur + (dropped * (largest + 1.0 - np.log(dropped)) if dropped > 0.0 else 0.0))

    def noise_of(self, t: FloatArray) -> float:
        """What a posterior t on Y leaves open: its entropy in nats, or minus the leakage of a share."""
        leakage = self.problem.measures.leakage
        if leakage == "information":
            return entropy_nats(t)
        kink, weight = self.kink
        return -weight * abs(float(t[1]) - kink) if t.size == 2 else 0.0

    @cached_property
    def kink(self) -> tuple[float, float]:
        """Where the leakage of a posterior (1−t, t) on a binary Y bends, and its slope there.

        Success is ½ + |t − ½|, and parity |t − P(y₁)| / (2 P(y₀) P(y₁)).
        """
        if self.problem.measures.leakage != "parity":
            return 0.5, 1.0
        rest, at = (self.p @ self.channel).tolist()
        return at, 0.5 / (at * rest)

    @property
    def leakage_kind(self) -> int:
        return ENTROPY if self.problem.measures.leakage == "information" else KINKED

    @property
    def pair_kind(self) -> int:
        kinds = {"information": INFORMATION, "distance": DISTANCE, "cost": COST, "task": TASK}
        return kinds[self.problem.measures.scale.utility]

    @cached_property
    def pair_table(self) -> FloatArray:
        """What the loss of pairs is made of: squared distances or costs, in units of the whole, or P(T|x)."""
        utility = self.problem.measures.utility
        letters = self.letters[self.starts]
        if isinstance(utility, Task):
            assert utility.p_t_given_x is not None
            return np.ascontiguousarray(utility.p_t_given_x[letters])
        if not isinstance(utility, Distance):
            return np.zeros((1, 1))
        table = utility.table[letters]
        if utility.kind == "points":
            from scipy.spatial.distance import cdist  # by differences: relative errors stay small

            table = cdist(table, table, "sqeuclidean")
        else:
            table = table - table.min(axis=1, keepdims=True)  # the rest no release can take away
        return np.ascontiguousarray(table * self.problem.utility_unit)

    def loss_of(self, column: Posterior) -> float:
        """The loss V of a posterior: H(class|z) in nats, variance or cost left, or H(T|z) in nats."""
        utility, q = self.problem.measures.utility, column.shares
        if isinstance(utility, Task):
            return entropy_nats(q @ self.pair_table[column.letters])
        if not isinstance(utility, Distance):
            return entropy_nats(q)
        if utility.kind == "costs":
            return float((q @ self.pair_table[column.letters]).min())
        return 0.5 * float(q @ self.pair_table[np.ix_(column.letters, column.letters)] @ q)

    def measure(self, column: Posterior) -> tuple[float, float]:
        """What a posterior leaves open of Y, and its loss: H(Y|z) and H(class|z) in nats for information."""
        return self.noise_of(column.shares @ self.channel[column.letters]), self.loss_of(column)

    @cached_property
    def t_limits(self) -> tuple[float, float]:
        """Between which P(y₁|z) must stay for no symbol to tell more than the limit on lift allows, and with
        `same_guess` for the best guess to stay the same."""
        lift, (low, high) = self.problem.measures.max_lift, (0.0, 1.0)
        if self.channel.shape[1] != 2:
            return low, high
        rest, at = (self.p @ self.channel).tolist()
        if lift is not None:
            most = 2.0 ** min(lift, 1000.0)
            low, high = max(at / most, 1.0 - rest * most), min(at * most, 1.0 - rest / most)
        if self.problem.same_guess:
            low, high = (max(low, 0.5), high) if at >= rest else (low, min(high, 0.5))
        return low, high

    def posteriors(self, p_z_given_x: FloatArray) -> list[Posterior]:
        """The posteriors on classes of a channel (n_x, n_z) of the problem, without negligible shares."""
        masses = np.array([self.problem.p_x[group] @ p_z_given_x[group] for group in self.members])
        columns = []
        for column in masses.T:
            letters = np.flatnonzero(column > 1e-9 * column.sum())
            if letters.size:
                columns.append(Posterior(letters, column[letters] / column[letters].sum()))
        return columns

    def _allot_members(
        self, posteriors: list[Posterior], weights: FloatArray
    ) -> dict[tuple[int, int], dict[int, float]]:
        """Which members of a class a posterior names, with their shares, by (posterior, class).

        A class's members are dealt out along its posteriors, so that each member goes to few of them: the
        number of symbols stays near the number of letters.
        """
        using: dict[int, list[tuple[int, float]]] = {}
        for z, (posterior, weight) in enumerate(zip(posteriors, weights, strict=True)):
            for c, share in zip(posterior.letters.tolist(), posterior.shares.tolist(), strict=True):
                using.setdefault(c, []).append((z, weight * share))
        allotted: dict[tuple[int, int], dict[int, float]] = {}
        for c, uses in using.items():
            members = self.members[c]
            masses = np.array([mass for _, mass in uses])
            dealt = coupling(
                [self.problem.p_x[members] / self.problem.p_x[members].sum(), masses / masses.sum()]
            )
            for (member, use), share in dealt:
                group = allotted.setdefault((uses[use][0], c), {})
                group[int(members[member])] = share
            for z, _ in uses:
                # Rounding can leave a posterior of tiny weight without any member.
                group = allotted.setdefault((z, c), {int(members[0]): 1.0})
                total = sum(group.values())
                for member in group:
                    group[member] /= total
        return allotted

    def expand(self, posteriors: list[Posterior], weights: FloatArray) -> FloatArray:
        """The channel (n_x, n_z) on the problem's letters whose symbols are the posteriors, members split."""
        allotted = self._allot_members(posteriors, weights)
        rows, symbols, masses = [], [], []
        n_z = 0
        for z, (posterior, weight) in enumerate(zip(posteriors, weights, strict=True)):
            groups = [allotted[z, c] for c in posterior.letters.tolist()]
            for chosen, share in coupling([np.array(list(group.values())) for group in groups]):
                for group, k, q in zip(groups, chosen, posterior.shares, strict=True):
                    rows.append(list(group)[k])
                    symbols.append(n_z)
                    masses.append(weight * share * q)
                n_z += 1
        table = np.zeros((self.problem.n_x, n_z))
        table[rows, symbols] = masses
        totals, p_z = table.sum(axis=1), table.sum(axis=0)
        seen = totals > 0.0
        table[seen] /= totals[seen, None]
        table[~seen] = p_z / p_z.sum()  # left out as negligible: a draw that tells nothing
        return table


def reduce(problem: Problem) -> Reduction:
    """Drop what is negligible, merge what is equal, and sort the classes by P(Y|x)."""
    # However rare a letter is, it can be far away.
    rare = 0.0 if isinstance(problem.measures.utility, Distance) else NEGLIGIBLE
    kept = np.flatnonzero(problem.p_x >= rare)
    order = kept[np.lexsort(problem.p_y_given_x[kept].T)]
    merging = problem.measures.utility == "information"
    starts = _class_starts(problem.p_y_given_x[order]) if merging else np.arange(order.size)
    total = float(problem.p_x.sum())
    dropped = float(problem.p_x[problem.p_x < rare].sum()) / total
    p = np.add.reduceat(problem.p_x[order], starts)
    channel = np.add.reduceat(problem.p_xy[order], starts, axis=0) / p[:, None]
    singular = np.linalg.svd(channel, compute_uv=False)
    rank = int((singular > NEGLIGIBLE * singular[0]).sum())
    channel = np.ascontiguousarray(channel)
    return Reduction(problem, order, starts, p / p.sum(), channel, 1.0 - dropped, dropped, rank)


def _class_starts(rows: FloatArray) -> NDArray[np.intp]:
    """Where classes begin among sorted rows: each row equals the first of its class."""
    apart = np.abs(np.diff(rows, axis=0)).max(axis=1, initial=0.0) > NEGLIGIBLE
    runs = np.concatenate([[0], np.flatnonzero(apart) + 1, [len(rows)]])
    firsts = rows[np.repeat(runs[:-1], np.diff(runs))]
    drifted = np.add.reduceat(np.abs(rows - firsts).max(axis=1) > NEGLIGIBLE, runs[:-1]) > 0
    starts = runs[:-1].tolist()
    for run in np.flatnonzero(drifted).tolist():
        # Neighbours that are equal but for rounding can drift apart along a run.
        first = int(runs[run])
        for at in range(first + 1, int(runs[run + 1])):
            if np.any(np.abs(rows[at] - rows[first]) > NEGLIGIBLE):
                starts.append(first := at)
    return np.sort(np.array(starts, dtype=np.intp))


def entropy_nats(p: FloatArray) -> float:
    positive = p[p > 0]
    return max(0.0, float(-(positive * np.log(positive)).sum()))


def coupling(marginals: list[FloatArray]) -> list[tuple[list[int], float]]:
    """A joint distribution with these marginals and few atoms: walk along all of them at once."""
    at = [0] * len(marginals)
    left = [float(marginal[0]) for marginal in marginals]
    atoms = []
    while True:
        share = min(left)
        atoms.append((list(at), share))
        left = [rest - share for rest in left]
        for i, marginal in enumerate(marginals):
            if left[i] <= 1e-16:
                if at[i] == marginal.size - 1:
                    return atoms
                at[i] += 1
                left[i] = float(marginal[at[i]])
