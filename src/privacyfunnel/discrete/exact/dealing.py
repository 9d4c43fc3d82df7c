"""From a mixture of posteriors on clusters to one on their letters: masses dealt out along the order of t.

A symbol on two clusters becomes symbols on pairs of their members with the same two shares, so that what it
tells about X stays. Members of the lower cluster are taken in rising order of t and those of the upper one in
falling order, so that P(Y|z) stays nearly what it was: the loss is of second order in the clusters' width.
Each letter's mass is dealt out whole: the mixture is P(X) again, but for rounding, which dividing each row by
its sum removes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray
from ...sparse import SparseChannel

DUST = 1e-12  # share of a symbol that is rounding

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Mixture:
    """Masses on clusters: pairs (lower, upper) with a mass each, and clusters alone."""

    lower: Index
    upper: Index
    low_mass: FloatArray
    high_mass: FloatArray
    alone: Index
    mass: FloatArray

    @classmethod
    def of(cls, masses: FloatArray, t: FloatArray) -> Mixture:
        """The mixture of a table P(cluster, z), clusters sorted by t; symbols on more than two of them are
        split into pairs with the same P(Y|z)."""
        masses = np.where(masses > DUST * masses.sum(axis=0), masses, 0.0)
        counts = (masses > 0.0).sum(axis=0)
        pairs = np.flatnonzero(counts == 2)
        at, rows = np.nonzero(masses[:, pairs].T)
        low, high = rows[::2], rows[1::2]
        singles = np.flatnonzero(counts == 1)
        single_at = masses[:, singles].argmax(axis=0)
        more = [in_pairs(masses[:, z], t) for z in np.flatnonzero(counts > 2).tolist()]
        low_mass, high_mass = masses[low, pairs[at[::2]]], masses[high, pairs[at[::2]]]
        if more:
            low = np.concatenate([low, *(one.lower for one in more)])
            high = np.concatenate([high, *(one.upper for one in more)])
            low_mass = np.concatenate([low_mass, *(one.low_mass for one in more)])
            high_mass = np.concatenate([high_mass, *(one.high_mass for one in more)])
        alone = np.concatenate([single_at, *(one.alone for one in more)])
        mass = np.concatenate([masses[single_at, singles], *(one.mass for one in more)])
        return cls(low, high, low_mass, high_mass, alone, mass)


def in_pairs(masses: FloatArray, t: FloatArray) -> Mixture:
    """Pairs of clusters, each with the t of the whole, that add up to these masses."""
    middle = float(masses @ t) / float(masses.sum())
    there = masses > 0.0
    left, right = np.flatnonzero(there & (t < middle)), np.flatnonzero(there & (t > middle))
    lacking, spare = masses[left] * (middle - t[left]), masses[right] * (t[right] - middle)
    if not (left.size and right.size and lacking.sum() > 0.0 and spare.sum() > 0.0):
        alone = np.flatnonzero(there)
        none: FloatArray = np.empty(0)
        return Mixture(alone[:0], alone[:0], none, none, alone, masses[alone])
    one, other, shares = overlay(
        np.zeros(left.size, dtype=np.intp), lacking, np.zeros(right.size, dtype=np.intp), spare
    )
    low, high = left[one], right[other]
    alone = np.flatnonzero(there & (t == middle))
    low_mass = shares * lacking.sum() / (middle - t[low])
    high_mass = shares * spare.sum() / (t[high] - middle)
    return Mixture(low, high, low_mass, high_mass, alone, masses[alone])


def deal(mixture: Mixture, group: Index, p: FloatArray, t: FloatArray) -> SparseChannel:
    """The channel (n, n_z) of letters, sorted by t, in clusters `group`, whose probabilities p are dealt out
    along the mixture."""
    n_pairs, k = mixture.lower.size, t.size
    idle = np.setdiff1d(group, np.concatenate([mixture.lower, mixture.upper, mixture.alone]))
    alone = np.concatenate([mixture.alone, idle])
    # The uses of each cluster, in the order in which its letters, t rising, are dealt out: the lower part of
    # pairs, what is alone, the upper part; the higher the letter, the lower its partner.
    cluster = np.concatenate([mixture.lower, alone, mixture.upper])
    amount = np.concatenate([mixture.low_mass, mixture.mass, np.ones(idle.size), mixture.high_mass])
    kind = np.repeat([0, 1, 2], [n_pairs, alone.size, n_pairs])
    partner = np.concatenate([mixture.upper, np.zeros(alone.size, dtype=np.intp), mixture.lower])
    pair = np.concatenate([np.arange(n_pairs), np.full(alone.size, -1), np.arange(n_pairs)])
    order = np.lexsort((-partner, kind, cluster))
    letter, use, width = overlay(group, p, cluster[order], amount[order])
    use = order[use]
    total = np.bincount(group, p, k)
    mass, side, of_pair = width * total[group[letter]], kind[use], pair[use]
    # A side without any piece, lost to rounding, leaves the other one alone.
    both = np.intersect1d(of_pair[side == 0], of_pair[side == 2])
    paired = (side != 1) & np.isin(of_pair, both)
    lower, upper = np.flatnonzero(paired & (side == 0)), np.flatnonzero(paired & (side == 2))[::-1]
    lower = lower[np.argsort(of_pair[lower], kind="stable")]
    upper = upper[np.argsort(of_pair[upper], kind="stable")]
    one, other, share = overlay(of_pair[lower], mass[lower], of_pair[upper], mass[upper])
    low_total, high_total = (np.bincount(of_pair[rows], mass[rows], n_pairs) for rows in (lower, upper))
    here = of_pair[lower[one]]
    single = np.flatnonzero(~paired)
    number = np.arange(share.size)
    rows = np.concatenate([letter[lower[one]], letter[upper[other]], letter[single]])
    symbols = np.concatenate([number, number, share.size + np.arange(single.size)])
    values = np.concatenate([share * low_total[here], share * high_total[here], mass[single]])
    sums = np.bincount(rows, values, p.size)
    shape = p.size, int(share.size + single.size)
    return SparseChannel.from_entries(rows, symbols, values / sums[rows], shape)


def overlay(
    group_a: Index, mass_a: FloatArray, group_b: Index, mass_b: FloatArray
) -> tuple[Index, Index, FloatArray]:
    """Two ways to cut each group into pieces, laid over one another: piece of a, piece of b, share of the
    group. Both are sorted by group and have the same groups."""
    ends = np.concatenate([_ends(group_a, mass_a), _ends(group_b, mass_b)])
    groups = np.concatenate([group_a, group_b])
    of_a = np.arange(groups.size) < group_a.size
    order = np.lexsort((ends, groups))
    ends, groups, of_a = ends[order], groups[order], of_a[order]
    starts = np.concatenate([[0.0], ends])[:-1]
    starts[np.diff(groups, prepend=-1) != 0] = 0.0
    a: Index = np.cumsum(of_a) - of_a
    b: Index = np.cumsum(~of_a) - ~of_a
    there = np.flatnonzero(ends > starts)
    return a[there], b[there], ends[there] - starts[there]


def _ends(group: Index, mass: FloatArray) -> FloatArray:
    """Where the pieces of each group end, of 1."""
    if not mass.size:
        return np.empty(0)
    sums = np.cumsum(mass)
    last = np.flatnonzero(np.concatenate([group[1:] != group[:-1], [True]]))
    before = np.concatenate([[0.0], sums[last[:-1]]])
    sizes = np.diff(np.concatenate([[-1], last]))
    ends = (sums - np.repeat(before, sizes)) / np.repeat(sums[last] - before, sizes)
    ends[last] = 1.0
    return np.asarray(np.minimum(ends, 1.0))
