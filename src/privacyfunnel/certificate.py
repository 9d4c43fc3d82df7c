"""Upper bounds on what a discrete release tells, against every adversary, from a finite sample.

The records must be independent draws from the population that the bound is about, and must have had no part
in making the mechanism. Each bound then holds with the stated confidence, one-sided, whatever the
distribution is and however many symbols there are. The proofs are in docs/certificates.md; rounding is
included. Bits and parity are about the private values that occur among the records; success is about all.

`counts` is always (n_z, n_y): how many records have the symbol and the private class. Where the table P(z|x)
of the mechanism is known, soft counts Σ_i P(z|x_i) [y_i = y] say the same with less noise, and are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .alphabet import canonical_label
from .arrays import FloatArray
from .channels import SUM_TOLERANCE
from .checks import confidence_level
from .errors import InvalidInputError, UnknownLetterError, shortened
from .joint import Joint
from .measured import Interval, Measured
from .mechanism import TableMechanism
from .sparse import Channel

#: Exponents of Chernoff's bound that are tried; the bound holds for each, so the least of them does, too.
EXPONENTS = np.geomspace(0.002, 0.95, 40)
#: Up to so many classes the shares of all sets of classes are listed; more are covered by an interval.
MOST_LISTED = 8
#: Boxes after which the search for the worst posterior ends with the bound that it has.
MOST_BOXES = 300_000
#: Relative rounding of sums of counts and of the functions below, with room to spare.
ROUNDING = 1e-12
#: Absolute rounding of the divergence of two coins: with 10¹⁰ records and more it would matter.
COIN_ROUNDING = 1e-15


@dataclass(frozen=True, eq=False)
class Certifier:
    """Records that had no part in making a mechanism, counted by letter and private class.

    Attributes
    ----------
    counts : (n_x, n_y) array
        Held-out records by letter and private class.
    reference : (n_y,) array
        A guess of P(Y) from other records, for bits.
    measure : {"information", "success", "parity"}
    confidence : float
        One-sided.
    """

    counts: FloatArray
    reference: FloatArray
    measure: str = "information"
    confidence: float = 0.95

    def bound(self, p_z_given_x: FloatArray) -> Measured:
        """What the channel (n_x, n_z) tells at most, to every adversary."""
        soft = soft_counts(p_z_given_x, self.counts)
        if self.measure == "success":
            value = success_bound(soft, self.confidence)
        elif self.measure == "parity":
            value = parity_bound(soft, self.confidence)
        else:
            value = leakage_bound(soft, self.reference, self.confidence)
        return Measured(
            value,
            "upper bound",
            note_of(self.measure),
            Interval(0.0, value, self.confidence, "held-out", 0),
            n_samples=round(float(self.counts.sum())),
            unit="bit" if self.measure == "information" else "",
        )


def note_of(measure: str) -> str:
    """What a bound in this measure is of, where its unit does not say so, and whom it is about."""
    what = {"success": "the share guessed right, ", "parity": "the difference of two groups, "}
    return what.get(measure, "") + "for every adversary"


def held_out_certifier(
    mechanism: TableMechanism, joint: Joint, held_out: Any, measure: str, confidence: float
) -> tuple[Certifier, FloatArray]:
    """What certifies a mechanism made from `joint` with other records, and its channel on their letters.

    A letter that the mechanism has no row for counts as released from P(Z), as `unknown="draw"` does it.
    """
    other = _held_out_joint(joint, held_out)
    n = other.n_samples
    assert n is not None
    counts = other.p_xy * n
    table = np.zeros((other.n_x, joint.n_y))
    table[:, _class_numbers(joint, other)] = counts
    return Certifier(table, reference_of(joint, n), measure, confidence), _channel(mechanism, other)


def soft_counts(channel: Channel, counts: FloatArray) -> FloatArray:
    """(n_z, n_y): Σ_x P(z|x) · counts(x, y), for a channel (n_x, n_z) whose rows are drawn from.

    Rows sum to 1 to a tolerance only, and a release divides by their sums; so does this.
    """
    weighted = counts / channel.sum(axis=1)[:, None]
    result: FloatArray = (weighted.T @ channel).T
    return result


def reference_of(joint: Joint, n_samples: int) -> FloatArray:
    """A positive guess of P(Y): the shares of the joint, with one pseudo-record a class."""
    n = joint.n_samples or n_samples
    counts = joint.p_y * n + 1
    reference: FloatArray = counts / counts.sum()
    return reference


def records_needed(
    measure: str,
    p_zy: FloatArray,
    reference: ArrayLike,
    limit: float,
    confidence: float = 0.95,
    *,
    failed: int = 0,
) -> int | None:
    """About how many held-out records certify a limit for a release whose joint of symbol and class is this.

    The least n for which the bound of n such records keeps the limit, with what chance adds to their counts
    on average and a standard deviation; None where no number does. Where `failed` records did not, although
    they should have, chance was less kind: it is then allowed for twice as much, and so on.
    """
    for deviations in range(1, 6):
        needed = _needed(measure, p_zy, reference, limit, confidence, deviations)
        if needed is None or needed > failed:
            return needed
    return 2 * failed  # something else than chance; more records are what is left


def _needed(
    measure: str, p_zy: FloatArray, reference: ArrayLike, limit: float, confidence: float, deviations: int
) -> int | None:
    table, _ = _checked(p_zy)
    table = table / table.sum()
    q = _reference(reference, table.shape[1])

    def keeps(n: int) -> bool:
        return _expected_bound(measure, table, q, n, confidence, deviations) <= limit

    high = 16
    while not keeps(high):
        high *= 2
        if high > 10**10:
            return None
    low = high // 2
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def _expected_bound(
    measure: str, p_zy: FloatArray, q: FloatArray, n: int, confidence: float, deviations: int
) -> float:
    n_z, n_y = p_zy.shape
    if measure == "success":
        right = float(p_zy.max(axis=1).sum())
        by_chance = deviations * math.sqrt(right * (1 - min(right, 1.0)) / n)
        return success_bound_of(right + by_chance, n, confidence)
    if measure == "parity":
        sizes = np.maximum(n * p_zy.sum(axis=0), 1e-9)
        by_chance = (
            0.4 * deviations * math.sqrt(n_z * float((1 / np.sort(sizes)[:2]).sum())) if n_z > 1 else 0.0
        )
        return min(parity_bound(n * p_zy, confidence) + by_chance, 1.0)
    told = _plug_in(p_zy, q, 1.0)
    # What counts of n add on average, what a release made from twice as many tells more on others, and a
    # standard deviation: the density of information has a variance of about twice its mean.
    by_chance = 1.5 * (n_z - 1) * (n_y - 1) / (2 * n) + deviations * math.sqrt(2 * told / n)
    return bits_at(told + by_chance, q, _need(confidence) / n)


def _held_out_joint(joint: Joint, given: Any) -> Joint:
    other = given
    if not isinstance(other, Joint):
        gap = any(None in (label if isinstance(label, tuple) else (label,)) for label in joint.x_labels)
        other = Joint.from_frame(
            given, public=joint.x_names, private=joint.y_names, missing="letter" if gap else "error"
        )
    if other.n_samples is None:
        raise InvalidInputError(
            "certificate: held_out has probabilities and no counts, and a certificate is about a number of "
            "records; use Joint.from_counts, from_samples or from_frame, or pass the frame itself.",
            names=("held_out",),
        )
    same = other.n_samples == joint.n_samples and other.p_xy.shape == joint.p_xy.shape
    if other is joint or (same and np.array_equal(other.p_xy, joint.p_xy)):
        raise InvalidInputError(
            "certificate: held_out are the records that the mechanism was made from; pass others, such as "
            "the second part of split_joint.",
            names=("held_out",),
        )
    return other


def _class_numbers(joint: Joint, other: Joint) -> list[int]:
    """Where the classes of the held-out records stand in the joint that the reference comes from."""
    number = {canonical_label(label): i for i, label in enumerate(joint.y_labels)}
    labels = [canonical_label(label) for label in other.y_labels]
    strangers = [label for label in labels if label not in number]
    if strangers:
        raise UnknownLetterError(
            f"certificate: held_out has the private value {shortened(strangers[0])}, which no record that "
            "the mechanism was made from has; merge rare private values.",
            names=("held_out",),
        )
    return [number[label] for label in labels]


def _channel(mechanism: TableMechanism, other: Joint) -> FloatArray:
    """The rows of the mechanism for the letters of the held-out records."""
    row_of = {label: row for row, label in enumerate(mechanism.x_labels)}
    letters: Sequence[Hashable] = [canonical_label(label) for label in other.x_labels]
    rows = np.array([row_of.get(label, -1) for label in letters])
    table = mechanism.p_z_given_x
    if (rows < 0).all():
        raise InvalidInputError(
            "certificate: no letter of the held-out records is one of the mechanism's, such as "
            f"{shortened(letters[0])} beside {shortened(mechanism.x_labels[0])}; give them the same columns "
            "and types.",
            names=("held_out",),
        )
    unlike = {str(label): label for label in mechanism.x_labels}
    for label, row in zip(letters, rows, strict=True):
        if row < 0 and str(label) in unlike:
            raise InvalidInputError(
                f"certificate: the held-out letter {shortened(label)} has another type than the mechanism's "
                f"{shortened(unlike[str(label)])}; give both the same type.",
                names=("held_out",),
            )
    if (rows < 0).any():
        table = np.vstack([table, mechanism.require_marginal("certificate")])  # row −1
    channel: FloatArray = table[rows]
    return channel


def success_bound(counts: ArrayLike, confidence: float = 0.95) -> float:
    """The most often that anybody who sees Z can be right about Y.

    V = Σ_z max_y P(z, y) ≤ the largest q with n·kl(V̂ ‖ q) ≤ ln 1/δ, where V̂ is V of the counts: they rank the
    guesses in hindsight, so V̂ is at least the success of the best rule on these records, and the success of a
    fixed rule obeys Chernoff's bound.
    """
    table, n = _checked(counts)
    return success_bound_of(float(table.max(axis=1).sum()) / n, n, confidence)


def success_bound_of(right: float, n: float, confidence: float) -> float:
    """The same from the share that was right in hindsight."""
    found = min(right * (1 + ROUNDING), 1.0)
    need = _need(confidence) / n + COIN_ROUNDING
    low, high = found, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _binary_divergence(found, middle) <= need else (low, middle)
    return min(high * (1 + ROUNDING), 1.0)


def parity_bound(counts: ArrayLike, confidence: float = 0.95) -> float:
    """The largest total variation between P(Z|y) of two classes: no rule on Z treats them more differently.

    For two classes TV ≤ TV̂ + √((1/n₀ + 1/n₁) ln(1/δ) / 2) by Hoeffding's bound on the set where P(Z|0)
    exceeds P(Z|1); more classes share δ among their pairs. 1 where a class has no records;
    a class that is not among the columns is not spoken of.
    """
    table, _ = _checked(counts)
    sizes = table.sum(axis=0)
    if len(sizes) < 2:
        return 0.0
    if (sizes <= 0).any():
        return 1.0
    shares = table / sizes
    pairs = list(combinations(range(len(sizes)), 2))
    need = _need(confidence) + math.log(len(pairs))
    worst = max(
        float(np.abs(shares[:, i] - shares[:, j]).sum()) / 2
        + math.sqrt((1 / sizes[i] + 1 / sizes[j]) * need / 2)
        for i, j in pairs
    )
    return min(worst * (1 + ROUNDING), 1.0)


def leakage_bound(counts: ArrayLike, reference: ArrayLike, confidence: float = 0.95) -> float:
    """The most that Z tells about Y, in bits: an upper bound on I(Z;Y).

    Parameters
    ----------
    counts : (n_z, n_y) array
    reference : (n_y,) array
        A guess Q of P(Y), fixed without these records, positive for every class that Y can be. The bound
        holds for any; it is sharp where Q is near P(Y).
    confidence : float
        How often the bound is meant to hold; one-sided.

    Notes
    -----
    With the true posteriors r_z, L = log r_z(Y)/Q(Y) has mean J = I(Z;Y) + D(P_Y ‖ Q), and its mean over the
    records is at most x = Σ n(z,y)/n · log p̂(y|z)/Q(y), because counts maximise their own likelihood.
    Chernoff: J is excluded as soon as log E e^{−θL} ≤ −θx − ln(1/δ)/n =: log c for one θ in (0, 1). E e^{−θL}
    and J are averages over symbols of m(r) = Σ_y r(y)^{1−θ} Q(y)^θ and of D(r ‖ Q), so that for every θ and
    every price u ≥ 0

        I(Z;Y) ≤ J ≤ max over r of D(r ‖ Q) + u·(m(r) − c).

    The maximum is at an r that is proportional to Q on a set of classes and on its complement: two numbers.
    """
    table, n = _checked(counts)
    q = _reference(reference, table.shape[1])
    if len(q) == 1:
        return 0.0
    x = _plug_in(table, q, n) * (1 + ROUNDING) + ROUNDING
    return bits_at(x, q, _need(confidence) / n)


def bits_at(x: float, q: FloatArray, need: float) -> float:
    """The bound in bits where the plug-in is x nats and ln(1/δ)/n is `need`; it rises with both."""
    theta, price = _best_line(x, need, q)
    level = math.exp(-(theta * x + need)) * (1 - ROUNDING)
    bound = largest_excess(theta, price, q, 1e-4 * need) - price * level
    return min(bound * (1 + ROUNDING), math.log(len(q))) / math.log(2)


def largest_excess(theta: float, price: float, q: FloatArray, tolerance: float) -> float:
    """An upper bound on max over r of D(r ‖ Q) + u·m(r), hardly more than `tolerance` above it.

    Branch and bound over (t, π), the masses of r and of Q on a set of classes. m is concave in both, so it
    lies below its tangent plane at the middle of a box, and D is convex in both: the sum of the plane and D
    is largest at a corner.
    """
    boxes = _boxes(q)
    best = price  # r = Q
    ceiling = 0.0
    for _ in range(400):
        upper, middle = _box_bounds(boxes, theta, price)
        best = max(best, float(middle.max()))
        open_boxes = upper > best + tolerance
        ceiling = float(upper.max())
        if not open_boxes.any() or open_boxes.sum() > MOST_BOXES:
            break
        boxes = _halved(boxes[open_boxes])
    # Boxes that were left are below best + tolerance, the others below the ceiling of the last round.
    rounding = 1e-14 * (1 + price + math.log(1 / float(q.min())))
    return max(best + tolerance, ceiling) + rounding


def _shares(q: FloatArray) -> list[tuple[float, float]]:
    """Intervals that hold Q(S) or 1 − Q(S) for every set S of classes; by symmetry a half is the most."""
    if len(q) <= MOST_LISTED:
        sums = {sum(part) for size in range(1, len(q)) for part in combinations(q.tolist(), size)}
        return [(s * (1 - 1e-14), s * (1 + 1e-14)) for s in sorted(sums) if s <= 0.5 + 1e-12]
    edges = np.geomspace(float(q.min()) * (1 - 1e-14), 0.5, 33).tolist()
    return list(pairwise(edges))


def _boxes(q: FloatArray) -> FloatArray:
    """Boxes (t from, to, π from, to) that hold every pair of masses."""
    cuts = np.linspace(0, 1, 33).tolist()
    ends = list(pairwise(cuts))
    return np.array([(*end, *share) for share in _shares(q) for end in ends])


def _box_bounds(boxes: FloatArray, theta: float, price: float) -> tuple[FloatArray, FloatArray]:
    """For each box an upper bound of D + u·m, and the value at its middle."""
    t, p = (boxes[:, 0] + boxes[:, 1]) / 2, (boxes[:, 2] + boxes[:, 3]) / 2
    first, second = (t / p) ** -theta, ((1 - t) / (1 - p)) ** -theta
    value = t * first + (1 - t) * second
    # Derivatives of t^{1−θ}π^θ + (1−t)^{1−θ}(1−π)^θ.
    by_t = (1 - theta) * (first - second)
    by_p = theta * ((t / p) * first - ((1 - t) / (1 - p)) * second)
    upper = np.full(len(boxes), -np.inf)
    for i in (0, 1):
        for j in (2, 3):
            a, b = boxes[:, i], boxes[:, j]
            plane = value + by_t * (a - t) + by_p * (b - p)
            upper = np.maximum(upper, price * plane + _divergences(a, b))
    return upper, price * value + _divergences(t, p)


def _halved(boxes: FloatArray) -> FloatArray:
    """Each box cut in two across its longer side, as the functions see it."""
    scale = np.sqrt(boxes[:, 3])  # π near 0 matters on its own scale
    across_t = (boxes[:, 1] - boxes[:, 0]) >= (boxes[:, 3] - boxes[:, 2]) / scale
    low, high = boxes.copy(), boxes.copy()
    for axis, chosen in ((0, across_t), (2, ~across_t)):
        middle = (boxes[chosen, axis] + boxes[chosen, axis + 1]) / 2
        low[chosen, axis + 1] = middle
        high[chosen, axis] = middle
    return np.concatenate([low, high])


def _best_line(x: float, need: float, q: FloatArray) -> tuple[float, float]:
    """The θ and u that nearly give the least bound, found on a grid of posteriors; any pair is valid."""
    ends = np.geomspace(1e-9, 1e-3, 40)
    middle = np.linspace(1e-3, 0.999, 400)[1:-1]
    masses = np.concatenate([[0.0], ends, middle, 1 - ends[::-1], [1.0]])
    shares = np.array([high for _, high in _shares(q)])
    t, p = (part.ravel() for part in np.meshgrid(masses, shares))
    t, p = np.append(t, shares[0]), np.append(p, shares[0])  # r = Q
    divergence = _divergences(t, p)

    def at(i: int) -> tuple[float, float, float]:
        theta = float(EXPONENTS[i])
        above = t ** (1 - theta) * p**theta + (1 - t) ** (1 - theta) * (1 - p) ** theta
        above -= math.exp(-(theta * x + need))
        price = _best_price(divergence, above)
        return float((divergence + price * above).max()), theta, price

    # The bound falls and rises once along the exponents: every fourth first, then those beside the best.
    coarse = range(0, len(EXPONENTS), 4)
    middle_one = min(coarse, key=lambda i: at(i)[0])
    beside = range(max(middle_one - 3, 0), min(middle_one + 4, len(EXPONENTS)))
    return min(map(at, beside))[1:]


def _best_price(divergence: FloatArray, above: FloatArray) -> float:
    """The u ≥ 0 with the least max over r of D + u·above: a convex function, cut from two sides.

    `falling` and `rising` are the r that were worst to the left and to the right; the last one is r = Q.
    """
    falling, rising = int(divergence.argmax()), len(above) - 1
    price = 0.0
    if above[falling] >= 0:
        return price
    for _ in range(40):
        price = float((divergence[falling] - divergence[rising]) / (above[rising] - above[falling]))
        values = divergence + price * above
        worst = int(values.argmax())
        if values[worst] <= values[rising] + 1e-9 * abs(values[rising]):
            break
        falling, rising = (falling, worst) if above[worst] > 0 else (worst, rising)
    return price


def _divergences(t: FloatArray, p: FloatArray) -> FloatArray:
    """D((t, 1−t) ‖ (p, 1−p)) in nats."""
    from scipy.special import rel_entr

    result: FloatArray = rel_entr(t, p) + rel_entr(1 - t, 1 - p)
    return result


def _binary_divergence(found: float, q: float) -> float:
    if q >= 1:
        return 0.0 if found >= 1 else math.inf
    return float(_divergences(np.array(found), np.array(q)))


def _plug_in(table: FloatArray, q: FloatArray, n: float) -> float:
    """Σ n(z,y)/n · log p̂(y|z)/Q(y) in nats: at least the mean of L over the records."""
    from scipy.special import xlogy

    sizes = np.maximum(table.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return max(float(xlogy(table, table / sizes / q).sum()) / n, 0.0)


def _reference(given: ArrayLike, n_classes: int) -> FloatArray:
    q = np.asarray(given, dtype=np.float64)
    if q.shape != (n_classes,) or not (q > 0).all() or abs(float(q.sum()) - 1) > SUM_TOLERANCE:
        raise InvalidInputError(
            f"reference must be a positive share of each of the {n_classes} classes, summing to 1; its shape "
            f"is {q.shape}. Take the shares of other records, with one pseudo-record a class."
        )
    exact: FloatArray = q / q.sum()  # the proof wants more than the tolerance
    return exact


def _need(confidence: float) -> float:
    return -math.log1p(-confidence_level("confidence", confidence))


def _checked(counts: ArrayLike) -> tuple[FloatArray, float]:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
        raise InvalidInputError(
            "counts must be a table of records by symbol and private class, finite, 0 or more, not all 0; "
            f"its shape is {table.shape}."
        )
    return table, float(table.sum())
