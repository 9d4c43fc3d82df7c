"""What an experiment is: the runs of each scale, and what is made of their results."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..sweep import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("smoke", "small", "paper")

Record = Mapping[str, Any]  # of Store.records: key, run, values, seconds


@dataclass(frozen=True)
class Claim:
    """A statement, what was measured, and whether it holds.

    Attributes
    ----------
    source : str
        Where it is made, such as "figure 1a"; "ours" for what the paper does not say.
    says : str
    measured : str
        With numbers and their spread.
    holds : bool or None
        None where the scale is too small to tell.
    rests_on : sequence of str
        The curves that it is about: while a run of one of them is missing, nothing is decided.
    """

    source: str
    says: str
    measured: str
    holds: bool | None
    rests_on: Sequence[str] = ()


@dataclass(frozen=True)
class Findings:
    """What an experiment makes of its results.

    Attributes
    ----------
    tables : mapping of names to columns
    claims : sequence of Claim
    figures : mapping of names to matplotlib figures
    notes : sequence of str
        What a reader must know: what differs from the paper, and why.
    """

    tables: Mapping[str, Mapping[str, Sequence[Any]]]
    claims: Sequence[Claim]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Experiment:
    """A named experiment.

    Attributes
    ----------
    name, title : str
    runs : callable
        The runs of a scale.
    find : callable
        Findings from the records of these runs and the scale. Nothing in its tables may depend on time.
    seconds : callable
        About how long a run takes on one core: a guess for the estimate that is printed before a long sweep.
    kept : bool
        Whether finished runs are kept beside the findings: they took hours, and are small.
    curve_of : callable, optional
        The name of the curve that a record belongs to, as claims rest on them.
    fetch : callable, optional
        Gets what the runs of a scale read, before any of them begins.
    needs : callable, optional
        One sentence on what it gets, from where and how much; empty where there is nothing to get.
    own_page : bool
        Whether it has a page NAME.md of its own; README.md links to it then.
    """

    name: str
    title: str
    runs: Callable[[str], list[Run]]
    find: Callable[[Sequence[Record], str], Findings]
    seconds: Callable[[Run], float]
    kept: bool = False
    curve_of: Callable[[Record], str | None] | None = None
    fetch: Callable[[str], None] | None = None
    needs: Callable[[str], str] | None = None
    own_page: bool = False

    def decided(self, claim: Claim, scale: str, records: Sequence[Record]) -> Claim:
        """The claim, without its verdict where runs that it rests on are missing, which it says then."""
        if self.curve_of is None or not claim.rests_on:
            return claim
        planned = Counter(self.curve_of({"run": run.to_dict()}) for run in self.runs(scale))
        there = Counter(self.curve_of(record) for record in records)
        short = [curve for curve in claim.rests_on if there[curve] < planned[curve]]
        if not short:
            return claim
        told = ", ".join(f"{curve} {there[curve]} of {planned[curve]}" for curve in short)
        return replace(claim, measured=f"{claim.measured} Runs so far: {told}.", holds=None)


def spread(values: Sequence[float]) -> str:
    """Mean and, for several values, their standard deviation."""
    if not values:
        return "nothing"
    mean = statistics.fmean(values)
    return f"{mean:.3g}" if len(values) == 1 else f"{mean:.3g} ± {statistics.stdev(values):.2g}"


def half_width(values: Sequence[float]) -> float:
    """Of Student's 95 % interval for the mean; infinite for a single value."""
    if len(values) < 2:
        return math.inf
    from scipy.stats import t

    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))


def by_setting(records: Iterable[Record], *names: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records that differ in their seed alone, by the values of the named settings, in order."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        place = tuple(record["run"]["settings"].get(name) for name in names)
        groups.setdefault(place, []).append(record)
    return dict(sorted(groups.items(), key=lambda item: tuple(str(part) for part in item[0])))
