"""Small joints whose optimal trade-off is known, as a yardstick for solvers.

For every joint and every release, leakage ≥ 0 and leakage ≥ utility − H(X|Y), because
I(Z;X) − I(Z;Y) = I(Z;X|Y) ≤ H(X|Y). Several joints below reach these two bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InvalidInputError
from ..information import entropy
from ..joint import Joint


@dataclass(frozen=True)
class KnownJoint:
    """A joint with points of its optimal trade-off.

    Attributes
    ----------
    name : str
    joint : Joint
    points : tuple of (utility, leakage)
        Bits; the leakage is the least possible for at least that utility.
    free_utility : float
        The most utility possible at zero leakage, in bits.
    tolerance : float
        How exact the points are, in bits.
    """

    name: str
    joint: Joint
    points: tuple[tuple[float, float], ...]
    free_utility: float
    tolerance: float = 1e-12


# Least leakage for utility ≥ 0.1, 0.2, …, 1.5 bits: a linear programme over 115,921 posteriors.
_PAPER_LEAKAGE = (
    0.01751, 0.03589, 0.05434, 0.07283, 0.09137, 0.10997, 0.13291, 0.17814,
    0.22471, 0.28280, 0.34548, 0.40933, 0.47318, 0.53703, 0.60089,
)  # fmt: skip


def paper_joint() -> Joint:
    """The 3 × 3 example of the paper (`eq:syn_discrete`), X uniform.

    H(X) = 1.584963, H(Y) = 1.531081, I(X;Y) = 0.655136 bits. P(Y|X) is invertible, so nothing can be
    released at zero leakage. The paper writes P(y_i|x_j) with the condition as column; a row here is an x.
    """
    p_y_given_x = [[0.90, 0.025, 0.075], [0.08, 0.82, 0.10], [0.40, 0.05, 0.55]]
    labels = [f"x{i}" for i in range(3)], [f"y{i}" for i in range(3)]
    return Joint.from_channel(p_y_given_x, np.full(3, 1 / 3), x_labels=labels[0], y_labels=labels[1])


def symmetric(crossover: float = 0.1) -> Joint:
    """A fair bit X and Y = X flipped with probability `crossover`.

    Least leakage for utility u: u · (1 − h(crossover)), a straight line: H(Y|Z=z) is a convex function of
    H(X|Z=z) (Mrs Gerber's lemma), so mixing "release X" and "release nothing" is optimal.
    """
    _check_probability(crossover, "crossover")
    channel = [[1 - crossover, crossover], [crossover, 1 - crossover]]
    return Joint.from_channel(channel, [0.5, 0.5])


def erasure(probability: float = 0.25, p: Sequence[float] = (0.5, 0.5), *, erased: str = "private") -> Joint:
    """A letter of distribution `p`, and the same letter erased with some probability.

    Parameters
    ----------
    probability : float
        How often the letter is erased; the erased letter is labelled "erased".
    p : sequence of float
        Distribution of the letter before erasure.
    erased : {"private", "public"}
        "private": Y is X or erased. Every release has leakage = (1 − probability) · utility.
        "public": X is Y or erased. Whether X is erased can be released at zero leakage, which is worth
        h(probability) = H(X|Y); the least leakage for utility u is max(0, u − h(probability)).
    """
    _check_probability(probability, "probability")
    if erased not in ("private", "public"):
        raise InvalidInputError(f'erasure: erased must be "private" or "public"; it is {erased!r}.')
    n = len(p)
    whole = list(range(n))
    to_erased = np.hstack([np.eye(n) * (1 - probability), np.full((n, 1), probability)])
    table = np.asarray(p, dtype=np.float64)[:, None] * to_erased
    if erased == "private":
        return Joint(table, x_labels=whole, y_labels=[*whole, "erased"])
    return Joint(table.T, x_labels=[*whole, "erased"], y_labels=whole)


def independent(p_x: Sequence[float] = (0.5, 0.3, 0.2), p_y: Sequence[float] = (0.6, 0.4)) -> Joint:
    """Independent X and Y: everything, H(X), can be released at zero leakage."""
    return Joint.from_channel(np.tile(np.asarray(p_y, dtype=np.float64), (len(p_x), 1)), p_x)


def deterministic(groups: Sequence[int] = (0, 0, 1, 1, 1), p_x: Sequence[float] | None = None) -> Joint:
    """Y = groups[X], with X uniform unless `p_x` is given.

    Least leakage for utility u: max(0, u − H(X|Y)). By the functional representation lemma there is a Z
    independent of Y that together with Y determines X; as Y is a function of X, Z can be drawn from X
    alone, so utility H(X|Y) is free, and mixing with "release X" reaches the rest of the bound.
    """
    n_x = len(groups)
    weights = np.full(n_x, 1 / n_x) if p_x is None else p_x
    return Joint.from_channel(np.eye(max(groups) + 1)[list(groups)], weights)


def perfect_privacy() -> Joint:
    """Four equally likely letters x with P(Y=1|x) = 0, 1/3, 2/3, 1: free utility that needs randomness.

    The most utility at zero leakage is 5/3 − (2/3) h(1/4) = 1.125815 bits, reached with three symbols:
    {x0, x2} with posterior (1/4, 3/4), {x1, x3} with (3/4, 1/4) and {x0, x3} with (1/2, 1/2), each of
    probability 1/3. The best deterministic release at zero leakage is {x0, x3}, {x1, x2}: 1 bit.

    Proof: zero leakage means P(Y=1|z) = 1/2, and a posterior of least entropy under one such equation has
    two letters: the three above or {x1, x2}. The duals λ = (1, μ, μ, 1), μ = (4 h(1/4) − 1)/3, satisfy
    λ·q ≤ H(q) for all four, so H(X|Z) ≥ λ·p_X, with equality for the release above.
    """
    likelihood = np.array([0, 1 / 3, 2 / 3, 1])
    return Joint.from_channel(np.column_stack([1 - likelihood, likelihood]), np.full(4, 0.25))


def known_joints() -> tuple[KnownJoint, ...]:
    """Every joint of this module with points of its optimal trade-off."""
    paper = tuple((round(0.1 * k, 1), leakage) for k, leakage in enumerate(_PAPER_LEAKAGE, start=1))
    flip, lost = symmetric(), erasure(erased="private")
    free = 5 / 3 - 2 / 3 * entropy([0.25, 0.75])
    return (
        KnownJoint("paper", paper_joint(), paper, free_utility=0.0, tolerance=1e-5),
        _with_points("symmetric", flip, lambda u: u * flip.mutual_information, free_utility=0.0),
        _with_points("erased private", lost, lambda u: 0.75 * u, free_utility=0.0),
        _at_the_bound("erased public", erasure(erased="public")),
        _at_the_bound("independent", independent()),
        _at_the_bound("deterministic", deterministic()),
        _at_the_bound("identical", deterministic((0, 1, 2), (0.5, 0.3, 0.2))),
        KnownJoint("perfect privacy", perfect_privacy(), ((free / 2, 0.0), (free, 0.0)), free),
    )


def _at_the_bound(name: str, joint: Joint) -> KnownJoint:
    """A joint whose least leakage is max(0, utility − H(X|Y))."""
    free = joint.entropy_x - joint.mutual_information
    return _with_points(name, joint, lambda u: max(0.0, u - free), free_utility=free)


def _with_points(
    name: str, joint: Joint, leakage: Callable[[float], float], *, free_utility: float
) -> KnownJoint:
    utilities = sorted({free_utility, *(k / 4 * joint.entropy_x for k in range(5))})
    return KnownJoint(name, joint, tuple((u, leakage(u)) for u in utilities), free_utility)


def _check_probability(value: float, name: str) -> None:
    if not 0 <= value <= 1:
        raise InvalidInputError(f"{name} must be a probability between 0 and 1; it is {value}.")
