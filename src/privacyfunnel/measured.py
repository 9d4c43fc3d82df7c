"""Measured and Interval: a number that says what it is, and where the true value is likely to be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["exact", "lower bound", "upper bound", "estimate"]


def rounded_up(value: float, decimals: int | None = None) -> float:
    """The least number of so many decimals, by default of four digits, that is not below the value.

    A bound that nobody exceeds, told to the nearest digit, could be exceeded. The value's own rounding does
    not count: 0.57 in per cent is 57, and not 57.1.
    """
    if not 0.0 < value < math.inf:
        return value
    if decimals is None:
        decimals = 3 - math.floor(math.log10(value))
    unit = 10.0 ** min(decimals, 300)
    return math.ceil(value * unit * (1.0 - 1e-12)) / unit


@dataclass(frozen=True)
class Interval:
    """A confidence interval, in bits; unpacks as (low, high).

    Attributes
    ----------
    low, high : float
    level : float
        How often such intervals are meant to hold the true value.
    method : str
        "exact": the joint is known, so there is nothing to be uncertain about. "in-sample": the mechanism
        may have been chosen on the same records. "held-out": it was chosen without them.
    n_draws : int
        Resampled joints behind each end.
    """

    low: float
    high: float
    level: float
    method: str
    n_draws: int

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


class Number:
    """What `Measured`, the bound of an adversary and the finding of an audit say about themselves."""

    value: float
    kind: str
    interval: Interval | tuple[float, float] | None

    @property
    def certain(self) -> bool:
        """Whether the value has no interval because there is nothing uncertain about it."""
        return self.interval is None and self.kind in ("exact", "upper bound")

    @property
    def low(self) -> float | None:
        """The lower end of the interval; the value where it is certain, None where nobody knows."""
        return self._ends[0]

    @property
    def high(self) -> float | None:
        """The upper end of the interval; the value where it is certain, None where nobody knows."""
        return self._ends[1]

    @property
    def _ends(self) -> tuple[float, float] | tuple[None, None]:
        if self.interval is None:
            return (self.value, self.value) if self.certain else (None, None)
        low, high = self.interval
        return low, high

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Measured(Number):
    """A number, in bits unless `unit` says otherwise, that says what it is.

    Attributes
    ----------
    value : float
        An estimate is corrected for the bias of the plug-in estimate.
    kind : {"exact", "lower bound", "upper bound", "estimate"}
        "exact" is up to floating-point rounding.
    note : str
        How it was found, or for whom it holds.
    interval : Interval, optional
        Of the value; for an upper bound that holds with some confidence, from 0 to the value. None where
        nothing is uncertain.
    n_samples : int, optional
        How many records it comes from; None for a known joint.
    unit : str
        "bit", or nothing for a share of people.

    >>> print(Measured(0.05, "upper bound", "for every adversary", Interval(0.0, 0.05, 0.95, "held-out", 0)))
    upper bound 0.05 bit, for every adversary, 95 %
    """

    value: float
    kind: Kind
    note: str = ""
    interval: Interval | None = None
    n_samples: int | None = None
    unit: str = "bit"

    @property
    def confidence(self) -> float | None:
        """How often such intervals are meant to hold the true value; None where nothing is uncertain."""
        return None if self.interval is None else self.interval.level

    def __str__(self) -> str:
        value = rounded_up(self.value) if self.kind == "upper bound" else self.value
        said = [f"{self.kind} {value:.4g} {self.unit}".rstrip(), self.note]
        if self.interval is not None:
            low, high = self.interval
            if self.kind == "estimate":
                said.append(f"{low:.4g} to {high:.4g}")
            said.append(f"{100 * self.interval.level:g} %")
        return ", ".join(filter(None, said))


@dataclass(frozen=True)
class Estimate(Measured):
    """A number estimated from records: it always has an interval."""

    interval: Interval = field(kw_only=True)
