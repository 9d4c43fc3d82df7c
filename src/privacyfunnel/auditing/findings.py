"""Finding: one number of an audit, with what it is and how sure it is; how they are made and picked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partialmethod
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import BoolArray, FloatArray, IntArray
from ..attributes import Attribute
from ..errors import InvalidInputError
from ..measured import Kind, Number

#: The source of H(Y), which bounds every leakage, whatever is looked at, and tells the sizes of the classes.
ENTROPY = "entropy of the attribute"
#: The source of what nobody can exceed who sees one release; see `privacyfunnel.certificate`.
CERTIFICATE = "certificate"

#: What the numbers are about, by name; `Finding.quantity` is one of these.
QUANTITIES: dict[str, str] = {
    "success": "Share of records whose private class the adversary guesses.",
    "chance": "Share of the largest private class: the success of somebody who sees nothing.",
    "advantage": "Success minus chance.",
    "worst-class success": "Success on the class that is guessed best.",
    "worst-class advantage": (
        "The largest difference, over classes, between how often the adversary guesses a class for records "
        "of that class and for the others."
    ),
    "matched success": (
        "Success of clusters that are given their names by the audited records' own classes, as in the "
        "literature; flatters the adversary."
    ),
    "many-draws difference": "Success from many codes of each record minus success from one.",
    "p-value": "Share of random reorderings of the classes that the adversary guesses as well.",
    "leakage": "I(Z;Y), what the release tells about the private attribute.",
    "unmeasured success": (
        "Share of records that no adversary could be judged on; the gate counts them as guessed."
    ),
    "unmeasured leakage": (
        "What could leak through classes or symbols of too few records to judge; the gate counts it as "
        "leaked."
    ),
    "lift": (
        "log2 of the factor by which the release makes a private class likelier for those whom it tells "
        "most: the worst-off symbol or region."
    ),
    "group size": "Records of the smallest group that the release sets apart: a symbol or region.",
    "leakage null": "What the same estimator finds when the classes are reordered at random: its noise.",
    "min-entropy leakage": "log2 of the factor by which the release raises the best guess's success.",
    "maximal leakage": "log2 of the largest such factor for any function of the private attribute.",
    "maximal leakage of X": "log2 of the largest such factor for any function of the record.",
    "explained variance": "Share of the variance of a numeric private attribute that is predicted (R²).",
    "rmse": "Root of the mean squared error of the predicted private attribute.",
    "utility": "I(Z;X), what the release keeps of the record.",
    "mse": "Mean squared error of the reconstruction, per pixel or feature.",
    "psnr": "Peak signal to noise ratio of the reconstruction, from the error per pixel.",
    "ssim": "Structural similarity of the images and their reconstructions.",
    "task accuracy": "Accuracy of boosted trees on a task that the user named.",
    "task auc": (
        "Probability that boosted trees rank a record of the second of two classes above one of the first."
    ),
    "task explained variance": "The same for a numeric task (R²).",
}

#: What a release keeps; everything else is about the private attribute.
KEPT = ("utility", "psnr", "mse", "ssim", "task accuracy", "task auc", "task explained variance")
#: The unit of every quantity that is no share.
UNITS = {
    **dict.fromkeys(("leakage", "unmeasured leakage", "leakage null", "lift", "utility"), "bits"),
    **dict.fromkeys(("min-entropy leakage", "maximal leakage", "maximal leakage of X"), "bits"),
    **dict.fromkeys(("p-value", "rmse", "mse", "ssim"), ""),
    "group size": "records",
    "psnr": "dB",
}

#: What an adversary looks at, by name; any other view is of columns that are handed out beside Z.
_OWN_VIEWS = ("Z", "X", "X_hat", "order", "")


def kept_view(names: Sequence[str], with_z: bool) -> str:
    """What `Finding.on` calls kept columns, alone or together with Z: "age", "Z + age", "Z + age + job"."""
    if with_z:
        return " + ".join(["Z", *names])
    alone = " + ".join(names)
    return alone if is_kept_view(alone) and not alone.startswith("Z + ") else f"column {alone}"


def is_kept_view(on: str) -> bool:
    """Whether this is a view of columns that are handed out beside Z."""
    return on not in _OWN_VIEWS and not on.startswith("Z × ")


@dataclass(frozen=True)
class Finding(Number):
    """One number of an audit.

    Attributes
    ----------
    quantity : str
        One of `QUANTITIES`.
    value : float
    kind : {"exact", "lower bound", "upper bound", "estimate"}
        What the value is of the quantity as the best adversary would have it. The success of one adversary
        is a lower bound: another may do better.
    unit : str
        "share", "bits", "dB", "records", or "" for the data's own.
    source : str
        The adversary or estimator.
    on : str
        What it was found on: "Z" the release, "X" the raw records (what there was to find before), "X_hat"
        the reconstructions, "Z × 16" sixteen releases of each record, "order" the order of the rows, ""
        where nothing is looked at. "age" is a column that is handed out beside the release, "Z + age" both
        together.
    attribute : str
        The private attribute or the task.
    interval : (low, high), optional
        Confidence interval of the value; for a bound, of what this bound would be on infinitely many
        records. None where there is nothing uncertain (exact values), or where it is not known.
    confidence : float
        How often such intervals are meant to hold.
    n_samples : int, optional
        Records behind the value; None for a known distribution.
    seed : int, optional
        Of every draw behind it.
    threat_model : str
        One sentence: what the adversary sees and knows.
    notes : str
        How it was found, where that is not plain.
    """

    quantity: str
    value: float
    kind: Kind
    unit: str
    source: str
    on: str = "Z"
    attribute: str = "private"
    interval: tuple[float, float] | None = None
    confidence: float = 0.95
    n_samples: int | None = None
    seed: int | None = None
    threat_model: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise InvalidInputError(f"Finding: {self.quantity!r} is no quantity of QUANTITIES.")
        if self.kind not in get_args(Kind):
            raise InvalidInputError(f"Finding: kind must be one of {get_args(Kind)}; it is {self.kind!r}.")
        object.__setattr__(self, "value", float(self.value))
        ends = None if self.interval is None else (float(self.interval[0]), float(self.interval[1]))
        object.__setattr__(self, "interval", ends)
        if math.isnan(self.value) or (ends is not None and not ends[0] <= self.value <= ends[1]):
            raise InvalidInputError(
                f"Finding: {self.quantity} = {self.value} does not lie in its interval {ends}."
            )

    @property
    def meaning(self) -> str:
        """What the quantity is, in one sentence."""
        return QUANTITIES[self.quantity]

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON types; an infinity becomes the text "inf" or "-inf"."""
        values = dict(vars(self))
        values["value"] = _to_json(self.value)
        values["interval"] = None if self.interval is None else [_to_json(end) for end in self.interval]
        values["confidence"] = None if self.interval is None else self.confidence
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """The finding of `to_dict`."""
        ends = values["interval"]
        interval = None if ends is None else (float(ends[0]), float(ends[1]))
        fields = {**values, "value": float(values["value"]), "interval": interval}
        if interval is None:
            del fields["confidence"]
        return cls(**fields)


def _to_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


Ends = tuple[float, float] | None


@dataclass(frozen=True)
class About:
    """What a few findings are about, and share; makes them.

    Attributes as in `Finding`. `n_samples` and `attribute` come with `of`.
    """

    confidence: float
    seed: int
    source: str = ""
    attribute: str = ""
    on: str = "Z"
    n_samples: int | None = None
    threat_model: str = ""
    notes: str = ""

    def of(self, subject: Attribute | None = None, /, **changes: Any) -> About:
        """The same about an attribute on all its records, and with other things changed."""
        if subject is not None:
            changes = {"attribute": subject.name, "n_samples": len(subject.y), **changes}
        return replace(self, **changes)

    def _finding(
        self,
        kind: Kind,
        quantity: str,
        value: float,
        ends: Ends = None,
        *,
        within: tuple[float, float] | None = None,
        notes: str | None = None,
    ) -> Finding:
        """A finding; its interval is clipped to what is possible at all, where that is said."""
        if ends is not None and within is not None:
            ends = clipped(ends, value, *within)
        fields = vars(self) if notes is None else {**vars(self), "notes": notes}
        return Finding(quantity, value, kind, UNITS.get(quantity, "share"), interval=ends, **fields)

    exact = partialmethod(_finding, "exact")
    lower = partialmethod(_finding, "lower bound")
    upper = partialmethod(_finding, "upper bound")
    estimate = partialmethod(_finding, "estimate")


def attribute_names(findings: Iterable[Finding], tasks: Iterable[str] = ()) -> list[str]:
    """The private attributes, in the order of the findings; `tasks` are none of them."""
    named = [one.attribute for one in findings if one.attribute and one.quantity not in KEPT]
    return [name for name in dict.fromkeys(named) if name not in set(tasks)]


def released(findings: Iterable[Finding]) -> list[Finding]:
    """Those found on what is released: not on raw records, and not by somebody who sees nothing."""
    return [one for one in findings if one.on not in ("X", "")]


def guessed(findings: Iterable[Finding]) -> list[Finding]:
    """How often somebody was right, on what is released; a bound that nobody can exceed is no such thing."""
    return [one for one in released(findings) if one.quantity == "success" and one.kind != "upper bound"]


def highest(findings: Iterable[Finding]) -> Finding | None:
    """The first with the largest value."""
    return max(findings, key=lambda one: one.value, default=None)


def before(findings: Sequence[Finding], finding: Finding) -> Finding | None:
    """The same number of the same adversary on raw records.

    The decoder-aware adversary has no namesake there: it is set against the best one on X.
    """
    same = finding.quantity, finding.attribute, "X"
    found = [one for one in findings if (one.quantity, one.attribute, one.on) == same]
    own = next((one for one in found if one.source == finding.source), None)
    return own or highest(found)


@dataclass(frozen=True)
class Bracket:
    """Where a quantity lies: the largest lower bound, the smallest upper bound, the value or estimate."""

    lower: Finding | None = None
    upper: Finding | None = None
    middle: Finding | None = None

    @classmethod
    def of(cls, findings: Iterable[Finding], quantity: str) -> Bracket:
        """The bracket of a quantity of one release; an exact value, where there is one, is all of it."""
        # What the order of rows or many releases tell may lie above every bound on what one release tells.
        found = [one for one in findings if one.quantity == quantity and one.on in ("Z", "X_hat")]
        exact = next((one for one in found if one.kind == "exact"), None)
        if exact is not None:
            return cls(middle=exact)
        lower = highest(one for one in found if one.kind == "lower bound")
        above = (one for one in found if one.kind == "upper bound")
        upper = min(above, key=lambda one: one.value, default=None)
        # The most pessimistic estimate, but none that an upper bound contradicts if there is another, and
        # none that falls short of what a lower bound shows to be there.
        estimates = sorted(
            (one for one in found if one.kind == "estimate" and (lower is None or one.value >= lower.value)),
            key=lambda one: one.value,
        )
        possible = [one for one in estimates if upper is None or one.value <= upper.value]
        middle = possible[-1] if possible else next(iter(estimates), None)
        return cls(lower, upper, middle)

    @property
    def low(self) -> float | None:
        """The lower end, with the uncertainty of the number that says so."""
        found = self.lower or self.middle
        return None if found is None else (found.interval or (found.value,))[0]

    @property
    def high(self) -> float | None:
        """The upper end, with the uncertainty of the number that says so."""
        found = self.upper or self.middle
        return None if found is None else (found.interval or (found.value,))[-1]

    @property
    def findings(self) -> list[Finding]:
        """What the bracket consists of, from below."""
        return [one for one in (self.lower, self.middle, self.upper) if one is not None]


@dataclass(frozen=True)
class Told:
    """What people ask first about a private attribute."""

    best: Finding | None  # the highest success on what is released
    chance: Finding | None
    raw: Finding | None  # the success of the same adversary on raw records, or of the best one there
    leaked: Bracket
    lift: Finding | None  # of those about whom the release tells most
    group: Finding | None  # the smallest that the release sets apart
    unmeasured: list[Finding]  # what could not be judged, and what the gate therefore counts as told
    most: Finding | None = None  # the success that nobody can exceed who sees one release

    @classmethod
    def of(cls, own: Sequence[Finding]) -> Told:
        """From all findings about the attribute."""
        found: dict[str, list[Finding]] = {}
        for one in own:
            found.setdefault(one.quantity, []).append(one)
        best = highest(guessed(own))
        certified = [one for one in own if one.source == CERTIFICATE]
        # An exact lift says it for all symbols.
        lifts = released(found.get("lift", ()))
        exact = [one for one in lifts if (one.kind, one.on) == ("exact", "Z")]
        return cls(
            best,
            next(iter(found.get("chance", ())), None),
            None if best is None else before(own, best),
            Bracket.of(own, "leakage"),
            highest(exact or lifts),
            min(found.get("group size", ()), key=lambda one: one.value, default=None),
            # A certificate covers rare classes and symbols.
            [] if certified else found.get("unmeasured success", []) + found.get("unmeasured leakage", []),
            next((one for one in certified if one.quantity == "success"), None),
        )


def wilson_interval(hits: ArrayLike, n: ArrayLike, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Low and high ends for a probability of which `hits` of `n` were seen; (0, 1) where n is 0.

    Wilson's score interval keeps its confidence near 0 and 1, where mean ± spread has no width.
    """
    seen = np.asarray(n, dtype=np.float64) > 0
    count = np.maximum(np.asarray(n, dtype=np.float64), 1)
    share = np.asarray(hits, dtype=np.float64) / count
    z2 = normal_quantile(confidence) ** 2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = np.sqrt(z2 * (share * (1 - share) + z2 / (4 * count)) / count) / (1 + z2 / count)
    # At 0 and n hits the ends are exactly the value; rounding must not put them beyond it.
    low = np.where(seen, np.clip(centre - spread, 0.0, share), 0.0)
    high = np.where(seen, np.clip(centre + spread, share, 1.0), 1.0)
    return low, high


def ranking(scores: FloatArray, positive: BoolArray, confidence: float) -> tuple[float, tuple[float, float]]:
    """P(a positive record has the higher score), half of it where they are equal, with its interval.

    DeLong's: each record's share of the other class that it is ranked right of, and the spread of these.
    """
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    above = 0.5 * (np.searchsorted(low, high) + np.searchsorted(low, high, side="right")) / len(low)
    below = 1.0 - 0.5 * (np.searchsorted(high, low) + np.searchsorted(high, low, side="right")) / len(high)
    area = float(above.mean())
    if min(len(high), len(low)) < 2:
        return area, (0.0, 1.0)
    half = normal_quantile(confidence) * math.sqrt(
        float(above.var(ddof=1)) / len(high) + float(below.var(ddof=1)) / len(low)
    )
    return area, clipped((area - half, area + half), area, 0.0, 1.0)


def mean_interval(terms: ArrayLike, confidence: float) -> tuple[float, float]:
    """Student's interval for the mean of independent terms; without ends for a single one."""
    values = np.asarray(terms, dtype=np.float64)
    mean, n = float(values.mean()), len(values)
    if n < 2:
        return -math.inf, math.inf
    half = student_quantile(n - 1, confidence) * float(values.std(ddof=1)) / math.sqrt(n)
    return mean - half, mean + half


def repeated_interval(table: ArrayLike, confidence: float) -> tuple[float, float]:
    """Interval for the mean of `table` (repeats, records): records and repeats are both samples.

    The errors of the records of one repeat belong together (one embedding, one clustering), so more records
    do not make the noise of repeats smaller. The square of the half-width is

        t²(n−1) s²(record means)/n + t²(R−1) s²(repeat means)/R,

    each variance with its own quantile of Student's (Banerjee 1960: never below the confidence, where
    Welch's degrees of freedom fall short for few repeats). The part that belongs to neither is counted
    twice, on the careful side. One repeat: what repeats would add is not known and left out.
    """
    values = np.atleast_2d(np.asarray(table, dtype=np.float64))
    repeats, n = values.shape
    mean = float(values.mean())
    if n < 2:
        return -math.inf, math.inf
    square = student_quantile(n - 1, confidence) ** 2 * float(values.mean(axis=0).var(ddof=1)) / n
    if repeats > 1:
        spread = float(values.mean(axis=1).var(ddof=1))
        square += student_quantile(repeats - 1, confidence) ** 2 * spread / repeats
    return mean - math.sqrt(square), mean + math.sqrt(square)


def jackknife_interval(value: float, without: ArrayLike, confidence: float) -> tuple[float, float]:
    """Interval for a statistic from its values with one group of records left out at a time."""
    parts = np.asarray(without, dtype=np.float64)
    n_groups = len(parts)
    error = math.sqrt((n_groups - 1) / n_groups * float(((parts - parts.mean()) ** 2).sum()))
    half = student_quantile(n_groups - 1, confidence) * error
    return value - half, value + half


def clipped(interval: tuple[float, float], value: float, low: float, high: float) -> tuple[float, float]:
    """The interval within what is possible at all, with the value inside."""
    return min(max(interval[0], low), value), max(min(interval[1], high), value)


def permutation_test(
    guesses: IntArray, y: IntArray, n_permutations: int, rng: np.random.Generator
) -> tuple[float, FloatArray]:
    """p-value of the success of these guesses, and the successes under random reorderings of y.

    The guesses must come from records other than those they are judged on. Reordering then leaves everything
    but the connection, and (1 + number as good)/(1 + number tried) is a valid p-value.
    """
    hits = int((guesses == y).sum())
    null = np.array([(guesses == rng.permutation(y)).sum() for _ in range(n_permutations)])
    return (1 + int((null >= hits).sum())) / (1 + n_permutations), null / max(len(y), 1)


def normal_quantile(confidence: float) -> float:
    """z with P(|N(0,1)| ≤ z) = confidence."""
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


def student_quantile(freedom: float, confidence: float) -> float:
    """t with P(|T| ≤ t) = confidence."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))
