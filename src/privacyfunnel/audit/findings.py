"""Finding: one number of an audit, with what it is and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import InvalidInputError

Kind = Literal["exact", "lower bound", "upper bound", "estimate"]

#: The source of H(Y), which bounds every leakage, whatever is looked at, and tells the sizes of the classes.
ENTROPY = "entropy of the attribute"

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
    "task explained variance": "The same for a numeric task (R²).",
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
class Finding:
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
    def certain(self) -> bool:
        """Whether the value has no interval because there is nothing uncertain about it."""
        return self.interval is None and self.kind in ("exact", "upper bound")

    @property
    def low(self) -> float | None:
        """The lower end of the interval; the value where it is certain, None where nobody knows."""
        return self.interval[0] if self.interval is not None else self.value if self.certain else None

    @property
    def high(self) -> float | None:
        """The upper end of the interval; the value where it is certain, None where nobody knows."""
        return self.interval[1] if self.interval is not None else self.value if self.certain else None

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
