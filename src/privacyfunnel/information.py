"""Entropy, divergence, mutual information and leakage, in bits.

Zeros are exact: a probability of 0 contributes 0, nothing is clipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf, isinf, log2
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .alphabet import canonical_label
from .arrays import FloatArray
from .channels import conditional
from .errors import InvalidInputError
from .measured import Measured
from .merging import merge_equal_rows, merge_symbols
from .sparse import Channel, SparseChannel, weighted

if TYPE_CHECKING:
    from .joint import Joint
    from .mechanism import TableMechanism


def entropy(p: ArrayLike) -> float:
    """H(p) = − Σ p log2 p, in bits, over all entries of p."""
    values = np.asarray(p, dtype=np.float64).ravel()
    positive = values[values > 0]
    return abs(float(-(positive * np.log2(positive)).sum()))


def kl_divergence(p: ArrayLike, q: ArrayLike) -> float:
    """D(p‖q) = Σ p log2(p/q), in bits; infinite where q is 0 and p is not."""
    p_values = np.asarray(p, dtype=np.float64).ravel()
    q_values = np.asarray(q, dtype=np.float64).ravel()
    at = p_values > 0
    if np.any(q_values[at] == 0):
        return float("inf")
    # log p − log q, not log(p/q): the ratio of subnormal numbers overflows.
    return max(0.0, float((p_values[at] * (np.log2(p_values[at]) - np.log2(q_values[at]))).sum()))


def mutual_information(p_ab: ArrayLike | SparseChannel) -> float:
    """I(A;B) in bits of the joint distribution p_ab (n_a, n_b)."""
    if isinstance(p_ab, SparseChannel):
        logs = [log2_or_zero(p_ab.sum(axis=axis)) for axis in (1, 0)]
        values = p_ab.probabilities
        return max(
            0.0, float((values * (np.log2(values) - logs[0][p_ab.rows] - logs[1][p_ab.symbols])).sum())
        )
    table = np.asarray(p_ab, dtype=np.float64)
    log_a, log_b = log2_or_zero(table.sum(axis=1)), log2_or_zero(table.sum(axis=0))
    terms = table * (log2_or_zero(table) - log_a[:, None] - log_b[None, :])
    return max(0.0, float(terms.sum()))


def utility_and_leakage(p_xy: ArrayLike, p_z_given_x: ArrayLike | SparseChannel) -> tuple[float, float]:
    """I(Z;X) and I(Z;Y) in bits of the channel p_z_given_x (n_x, n_z) on p_xy (n_x, n_y)."""
    joint, channel = np.asarray(p_xy, dtype=np.float64), as_computed(p_z_given_x)
    p_xz = weighted(channel, joint.sum(axis=1))
    return mutual_information(p_xz), mutual_information(joint.T @ channel)


def as_computed(channel: ArrayLike | SparseChannel) -> Channel:
    """The channel itself, or an array of numbers."""
    return channel if isinstance(channel, SparseChannel) else np.asarray(channel, dtype=np.float64)


def bayes_success(p_yz: ArrayLike) -> float:
    """The probability that the best guess of y is right for somebody who sees z: Σ_z max_y P(y,z).

    Axis 0 is guessed from axis 1. Somebody who sees nothing succeeds with probability max P(y).
    """
    return float(np.asarray(p_yz, dtype=np.float64).max(axis=0).sum())


def min_entropy_leakage(p_yz: ArrayLike) -> float:
    """log2 of the factor by which seeing z raises the best guess's probability of being right."""
    table = np.asarray(p_yz, dtype=np.float64)
    return max(0.0, log2(bayes_success(table) / float(table.sum(axis=1).max())))


def maximal_leakage(p_z_given_y: ArrayLike | SparseChannel, p_y: ArrayLike) -> float:
    """log2 Σ_z max_y P(z|y) over the y of positive probability: Sibson's information of order ∞.

    The most bits by which seeing z can raise, in log2, anybody's probability of guessing any randomised
    function of y, whatever the probabilities of the possible y are (Issa, Wagner & Kamath 2020).
    """
    rows = as_computed(p_z_given_y)[np.asarray(p_y) > 0]
    return max(0.0, log2(float(rows.max(axis=0).sum())))


def pointwise_leakage(p_xy: ArrayLike, p_z_given_x: ArrayLike | SparseChannel) -> tuple[float, float]:
    """The smallest and the largest of log2 P(y|z)/P(y) over all possible y and z.

    The largest is the most that one symbol can raise an adversary's belief in one y. The smallest
    is −∞ as soon as some symbol rules some y out.
    """
    joint = np.asarray(p_xy, dtype=np.float64)
    possible = joint.sum(axis=1) > 0
    joint, given = joint[possible], as_computed(p_z_given_x)[possible]
    joint = joint[:, joint.sum(axis=0) > 0]
    occurring = given.max(axis=0) > 0
    # P(y|z)/P(y) = P(z|y)/P(z) does not change when P(z|·) is scaled, and then P(z) cannot underflow.
    channel: Channel
    support: Channel
    if isinstance(given, SparseChannel):
        channel = given.with_values(given.probabilities / given.max()[given.symbols])
        support = channel.with_values(np.ones(channel.symbols.size))
    else:
        scaled = given / np.where(occurring, given.max(axis=0), 1.0)
        channel, support = scaled, np.where(scaled > 0, 1.0, 0.0)
    p_x_given_y = conditional(np.ascontiguousarray(joint.T))
    p_z_given_y, p_z = p_x_given_y @ channel, joint.sum(axis=1) @ channel
    ratios = log2_or_zero(p_z_given_y) - log2_or_zero(p_z)
    # Either impossible or underflowed; the support tells, and logarithms give the value.
    reached = (p_x_given_y > 0).astype(np.float64) @ support > 0
    ratios[~reached] = -inf
    for y, z in np.argwhere((p_z_given_y == 0) & reached):
        column = np.arange(channel.shape[1]) == z
        entries = channel @ column.astype(np.float64)
        at = (p_x_given_y[y] > 0) & (entries > 0)
        terms = log2_or_zero(p_x_given_y[y, at]) + log2_or_zero(entries[at])
        ratios[y, z] = np.logaddexp2.reduce(terms) - log2(p_z[z])
    ratios = ratios[:, occurring]
    return float(ratios.min()), float(ratios.max())


@dataclass(frozen=True)
class LeakageProfile:
    """What a mechanism keeps and leaks on a joint, each number exact; bits, except the two probabilities.

    Attributes
    ----------
    utility, leakage : float
        I(Z;X) and I(Z;Y).
    guess_before, guess_after : float
        Probability that an adversary's best guess of y is right, before and after seeing z.
    min_entropy_leakage : float
        log2(guess_after / guess_before).
    maximal_leakage : float
        From Y to Z: log2 Σ_z max_y P(z|y), over possible y; holds for any function of y.
    maximal_leakage_x : float
        From X to Z: log2 Σ_z max_x P(z|x), over possible x; holds for any function of x, and so for
        private attributes nobody thought of.
    largest_pointwise_leakage, smallest_pointwise_leakage : float
        Extremes of log2 P(y|z)/P(y); the smallest is −∞ if some symbol rules out some y.
    """

    utility: float
    leakage: float
    guess_before: float
    guess_after: float
    min_entropy_leakage: float
    maximal_leakage: float
    maximal_leakage_x: float
    largest_pointwise_leakage: float
    smallest_pointwise_leakage: float

    def to_dict(self) -> dict[str, float | None]:
        """The numbers as JSON types; −∞, which JSON lacks, becomes None."""
        return {name: None if isinf(value) else value for name, value in vars(self).items()}


def measure(mechanism: TableMechanism, joint: Joint) -> LeakageProfile:
    """Everything this library measures about a mechanism on a joint, exactly."""
    channel, p_xy = _matching_channel(mechanism, joint, "measure"), joint.p_xy
    utility, leakage = utility_and_leakage(p_xy, channel)
    p_yz = p_xy.T @ channel
    smallest, largest = pointwise_leakage(p_xy, channel)
    return LeakageProfile(
        utility=utility,
        leakage=leakage,
        guess_before=float(joint.p_y.max()),
        guess_after=bayes_success(p_yz),
        min_entropy_leakage=min_entropy_leakage(p_yz),
        maximal_leakage=maximal_leakage(conditional(np.ascontiguousarray(p_xy.T)) @ channel, joint.p_y),
        maximal_leakage_x=maximal_leakage(channel, joint.p_x),
        largest_pointwise_leakage=largest,
        smallest_pointwise_leakage=smallest,
    )


def repeated_leakage(
    mechanism: TableMechanism, joint: Joint, k: int, *, max_entries: int = 10_000_000
) -> Measured:
    """I(Z₁…Z_k;Y) in bits: the leakage of k independent releases of the same x.

    Which symbols came and how often is all that k releases tell, so the exact value needs the
    C(k+n_z−1, k) such counts and not all n_z^k sequences. Where even those are too many, the result is an
    upper bound and says so.

    Parameters
    ----------
    max_entries : int
        The largest table to use for the exact value; 10⁷ entries are 80 MB.
    """
    channel = _matching_channel(mechanism, joint, "repeated_leakage")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"repeated_leakage: k must be a whole number ≥ 1; it is {k!r}.")
    # Symbols with one posterior, and letters with one row, act as one, however often x is released.
    possible = joint.p_x > 0
    p_cy, channel = merge_equal_rows(joint.p_xy[possible], merge_symbols(channel[possible]))
    n_c, n_z = channel.shape
    n_types = comb(int(k) + n_z - 1, n_z - 1)
    if n_types * (n_c + joint.n_y + n_z) > max_entries:
        return Measured(_repeated_bound(p_cy, channel, int(k)), "upper bound", _BOUND_NOTE)
    note = f"{n_types:,} possible counts of the symbols"
    table = channel.dense() if isinstance(channel, SparseChannel) else channel
    return Measured(mutual_information(p_cy.T @ _counts_channel(table, int(k))), "exact", note)


_BOUND_NOTE = (
    "the smallest of I(X;Y), δ·k·I(Z;X) and δ·H(X), with δ the Dobrushin coefficient of P(Y|X) and letters "
    "with equal rows taken as one"
)


def _counts_channel(channel: FloatArray, k: int) -> FloatArray:
    """P(counts|x): the multinomial distributions of k draws from each row of the channel."""
    n_z = channel.shape[1]
    left = np.array([k])
    counts = np.zeros((1, 0), dtype=np.int64)
    for _ in range(n_z - 1):
        # Each start continues with 0, 1, …, left draws of the next symbol.
        sizes = left + 1
        ends = np.cumsum(sizes)
        here = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        counts = np.column_stack([np.repeat(counts, sizes, axis=0), here])
        left = np.repeat(left, sizes) - here
    counts = np.column_stack([counts, left])
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log2(np.arange(1, k + 1)))])
    log_p = log2_or_zero(channel) @ counts.T + (log_factorial[k] - log_factorial[counts].sum(axis=1))
    impossible = (channel == 0).astype(np.float64) @ counts.T > 0
    return np.where(impossible, 0.0, np.exp2(log_p))


def _repeated_bound(p_cy: FloatArray, channel: Channel, k: int) -> float:
    """An upper bound on I(Z₁…Z_k;Y), in bits, for letters c.

    Y → C → Z^k is a Markov chain, so I(Z^k;Y) ≤ I(C;Y) by data processing. The strong form of the same
    inequality says I(Z^k;Y) ≤ δ I(Z^k;C), with δ the largest total variation distance between two rows
    of P(Y|c) (Dobrushin's coefficient bounds the contraction of the divergence: Cohen et al. 1993;
    Polyanskiy & Wu 2017). Last, I(Z^k;C) ≤ H(C), and as the Z_i are independent given C,
    I(Z^k;C) = H(Z^k) − Σ H(Z_i|C) ≤ Σ H(Z_i) − Σ H(Z_i|C) = k I(Z;C).

    k·I(Z;Y) is no bound: the Z_i are not independent given Y, and two releases that tell nothing each
    can tell everything together.
    """
    p_c = p_cy.sum(axis=1)
    p_y_given_c = conditional(p_cy)
    if p_y_given_c.shape[1] == 2:
        delta = float(np.ptp(p_y_given_c, axis=0).max())
    else:
        rows = np.unique(p_y_given_c, axis=0)
        delta = max(0.5 * float(np.abs(rows - row).sum(axis=1).max()) for row in rows)
    through_c = min(k * mutual_information(weighted(channel, p_c)), entropy(p_c))
    return min(mutual_information(p_cy), min(delta, 1.0) * through_c)


def require_pair(mechanism: object, joint: object, name: str) -> None:
    """InvalidInputError for anything but a TableMechanism and a Joint, in this order."""
    from .joint import Joint
    from .mechanism import TableMechanism

    if isinstance(mechanism, Joint) and isinstance(joint, TableMechanism):
        raise InvalidInputError(f"{name}: the mechanism comes first; swap it with the joint.")
    for value, kind, place in ((mechanism, TableMechanism, "first"), (joint, Joint, "second")):
        if not isinstance(value, kind):
            raise InvalidInputError(
                f"{name}: the {place} argument must be a {kind.__name__}; it is a {type(value).__name__}."
            )


def _matching_channel(mechanism: TableMechanism, joint: Joint, name: str) -> Channel:
    """The mechanism's table, once its letters are known to be the joint's."""
    require_pair(mechanism, joint, name)
    if tuple(map(canonical_label, joint.x_labels)) != mechanism.x_labels:
        raise InvalidInputError(
            f"{name}: the mechanism's letters must be those of the joint, in the same order; build it with "
            "x_labels=joint.x_labels."
        )
    return mechanism.channel


def log2_or_zero(p: FloatArray) -> FloatArray:
    """log2 with log2 0 = 0, for terms that are multiplied by the same zero."""
    return np.log2(p, out=np.zeros_like(p), where=p > 0)
