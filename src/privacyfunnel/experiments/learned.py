"""What the learned experiments share: means over seeds, and trade-offs compared along their lines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from .base import Record, by_setting

SETTINGS = ("n_components", "epochs", "alpha", "beta", "gamma", "leakage_weight", "share")
N_LEVELS = 9
#: A statement "less" is refuted where the difference is smaller than this, by two standard errors.
MARGIN = 0.03
ERASURE = "random erasure"
#: Shares of records among the values, and what says of how many.
SIZES = {"clustering": "n_clustered", "success_with_labels": "n_judged"}
#: How verdicts are made, for the notes.
RULE = (
    "Curves are compared along the lines through their undominated settings, seed by seed; ± is the standard "
    "error over seeds and, of success, over records. A statement holds where the difference is more than two "
    f"standard errors, does not hold where it is less than {MARGIN} by two standard errors, and is not "
    "decided elsewhere, or with one seed. Below the levels of its settings a curve has the cost of the least "
    "of them, where a range of levels is named; a curve that ends within the range, before its rival does, "
    "has won nothing."
)


@dataclass(frozen=True)
class Group:
    """Runs of one setting that differ in their seed, and one curve's name for them."""

    curve: str
    settings: tuple[Any, ...]
    records: Sequence[Record]

    def values(self, name: str) -> list[float]:
        return [record["values"][name] for record in self.records if name in record["values"]]

    def mean(self, name: str) -> float:
        return statistics.fmean(self.values(name))

    def deviation(self, name: str) -> float | None:
        """Over seeds; None for a single one."""
        values = self.values(name)
        return statistics.stdev(values) if len(values) > 1 else None


def groups(curves: Mapping[str, Sequence[Record]]) -> list[Group]:
    """The settings of every curve, with their seeds put together."""
    return [
        Group(curve, place, members)
        for curve, mine in curves.items()
        for place, members in by_setting(mine, *SETTINGS).items()
    ]


def judges(records: Sequence[Record]) -> str:
    """Who judged the releases of these runs, and on how many records."""
    found = [r["values"] for r in records if "judged_by" in r["values"]]
    names = dict.fromkeys(name for values in found for name in values["judged_by"].split(", "))
    sizes = sorted({values["n_judged"] for values in found})
    n = " or ".join(f"{size:,}" for size in sizes)
    clustered = sorted({values["n_clustered"] for values in found if "n_clustered" in values})
    first = f" (clusters: the first {clustered[-1]:,})" if clustered else ""
    return (
        f"`audit` judged releases of {n} records that no training saw{first}: {', '.join(names)}. "
        "Each learns from two thirds of them and is judged on the other third, in turn"
        + ("; clusters are named after all of them, as in the paper." if "KMeans" in str(names) else ".")
    )


def means_table(found: Sequence[Group], names: Sequence[str]) -> dict[str, list[Any]]:
    """A row for each setting: the means of the named values over seeds, and their standard deviations."""
    table: dict[str, list[Any]] = {"method": [group.curve for group in found]}
    for number, name in enumerate(SETTINGS):
        column = [group.settings[number] for group in found]
        if any(value is not None for value in column):
            table[name] = [None if value is None else float(value) for value in column]
    table["seeds"] = [len(group.records) for group in found]
    for name in names:
        if any(group.values(name) for group in found):
            table[name] = [group.mean(name) if group.values(name) else None for group in found]
            table[f"{name} ±"] = [group.deviation(name) if group.values(name) else None for group in found]
    return table


def undominated(found: Sequence[Group], gain: str, cost: str) -> list[Group]:
    """The settings that no other beats in both means, by rising gain; those without both are left out."""
    there = [group for group in found if group.values(gain) and group.values(cost)]
    best: list[Group] = []
    for group in sorted(there, key=lambda g: (g.mean(gain), -g.mean(cost)), reverse=True):
        if not best or group.mean(cost) < best[-1].mean(cost):
            best.append(group)
    return best[::-1]


def lines(found: Sequence[Group], gain: str, cost: str, levels: FloatArray) -> FloatArray:
    """The cost at each level along the line through the undominated settings, a row for each seed."""
    best = undominated(found, gain, cost)
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for group in best:
        for record in group.records:
            values = record["values"]
            if gain in values and cost in values:
                by_seed.setdefault(record["run"]["seed"], []).append((values[gain], values[cost]))
    # A seed that lacks a setting would follow another line.
    most = max(map(len, by_seed.values()), default=0)
    whole = [np.array(sorted(points)).T for points in by_seed.values() if len(points) == most]
    return np.array([np.interp(levels, *points) for points in whole])


@dataclass(frozen=True)
class Comparison:
    """How much more one curve costs than another for the same gain; negative is better.

    `error` is the standard error of the mean over seeds, with what the judged records add to that of a share
    of them; None where one of them has a single seed; `at` has
    the differences level by level, with theirs. `whole` is False where a range of gains was named and the
    first curve ends within it, before the second does.
    """

    mean: float
    error: float | None
    from_level: float
    to_level: float
    at: Sequence[tuple[float, float, float | None]]
    whole: bool = True

    def __str__(self) -> str:
        low, high = (pick(difference for _, difference, _ in self.at) for pick in (min, max))
        spread = "one seed" if self.error is None else f"± {self.error:.3f}"
        where = f"at {self.from_level:.4g}"
        if self.to_level > self.from_level:
            where = f"{low:+.3f} to {high:+.3f}, levels {self.from_level:.4g} to {self.to_level:.4g}"
        return f"{self.mean:+.3f} ({spread}; {where})"

    @property
    def less(self) -> bool | None:
        """Whether the first costs less than the second; None where the seeds cannot tell."""
        if self.error is None:
            return None
        if self.mean < -2 * self.error:
            return True
        return False if self.mean - 2 * self.error > -MARGIN else None

    @property
    def remark(self) -> str:
        """For the page, where a difference can be told from none and is small all the same."""
        small = self.error is not None and self.mean - 2 * self.error > -MARGIN
        return f" The difference is there, and smaller than {MARGIN}." if small and self.less else ""

    @property
    def nowhere_more(self) -> bool | None:
        """Whether it costs more at no level and clearly less at some.

        None where the seeds cannot tell, or the first does not reach all gains that were named.
        """
        told = [(difference, error) for _, difference, error in self.at if error is not None]
        if len(told) < len(self.at):
            return None
        if any(difference > 2 * error for difference, error in told):
            return False
        clearly = any(difference < -2 * error for difference, error in told)
        return True if clearly and self.whole else None


def compare(
    first: Sequence[Group],
    second: Sequence[Group],
    gain: str,
    cost: str,
    within: tuple[float, float] = (-math.inf, math.inf),
    same: float = 0.0,
) -> Comparison | None:
    """Cost of the first minus cost of the second over the gains that both reach; None if there are none.

    Curves that end no further than `same` from one another are compared between their ends. `within` names
    a range of gains: at those below its first setting a curve costs what that setting does, which has more.

    Between settings it follows the straight lines of the figure: the least cost of a setting with at least a
    gain would punish the curve whose settings happen to lie further apart.
    """
    ends = [[group.mean(gain) for group in undominated(part, gain, cost)] for part in (first, second)]
    if not all(ends):
        return None
    low = within[0] if math.isfinite(within[0]) else max(gains[0] for gains in ends)
    high = min(within[1], *(gains[-1] for gains in ends))
    if high < low <= high + same:
        low = high = (low + high) / 2
    if low > high:
        return None
    levels = np.linspace(low, high, N_LEVELS if low < high else 1)
    ours, theirs = (lines(part, gain, cost, levels) for part in (first, second))
    differences = ours.mean(axis=0) - theirs.mean(axis=0)
    several = min(len(ours), len(theirs)) > 1
    more = _sampling(first, cost) + _sampling(second, cost)
    errors = [_error(one, two, more) if several else None for one, two in zip(ours.T, theirs.T, strict=True)]
    return Comparison(
        float(differences.mean()),
        _error(ours.mean(axis=1), theirs.mean(axis=1), more) if several else None,
        float(low),
        float(high),
        [(float(a), float(b), c) for a, b, c in zip(levels, differences, errors, strict=True)],
        whole=not math.isfinite(within[1]) or ends[0][-1] >= min(within[1], ends[1][-1]),
    )


def _error(first: FloatArray, second: FloatArray, more: float) -> float:
    """Standard error of the difference of two means over seeds, with the variance that records add."""
    return math.sqrt(more + sum(float(np.var(part, ddof=1)) / len(part) for part in (first, second)))


def _sampling(found: Sequence[Group], cost: str) -> float:
    """The variance of a share of records, which all seeds have in common: they are judged on the same."""
    if cost not in SIZES:
        return 0.0
    judged = [
        (values[cost], values.get(SIZES[cost], values["n_judged"]))
        for group in found
        for record in group.records
        if cost in (values := record["values"]) and "n_judged" in values
    ]
    return statistics.fmean(share * (1 - share) / n for share, n in judged) if judged else 0.0


def levels_table(
    found: Mapping[str, Sequence[Group]], gain: str, cost: str, levels: Sequence[float]
) -> dict[str, list[Any]]:
    """The cost of every curve at given levels along its line, with standard errors; empty where it ends."""
    table: dict[str, list[Any]] = {gain: list(levels)}
    for curve, mine in found.items():
        best = undominated(mine, gain, cost)
        if not best:
            continue
        low, high = best[0].mean(gain), best[-1].mean(gain)
        rows = lines(mine, gain, cost, np.array(levels))
        inside = [low <= level <= high for level in levels]
        table[curve] = [float(v) if ok else None for v, ok in zip(rows.mean(axis=0), inside, strict=True)]
        if len(rows) > 1:
            errors = rows.std(axis=0, ddof=1) / math.sqrt(len(rows))
            table[f"{curve} ±"] = [float(v) if ok else None for v, ok in zip(errors, inside, strict=True)]
    return table


def erased(records: Sequence[Record], shares: Sequence[float]) -> list[Record]:
    """Releases of an autoencoder's code with probability t, else nothing: what its runs make of each share.

    Whoever gets nothing guesses the mean record and the most frequent class. Everybody sees whether there is
    a code, so that bits and squared errors are means of the two.
    """
    found: list[Record] = []
    for record in records:
        values = record["values"]
        if not {"mse_fresh", "mse_nothing", "leakage"} <= set(values):
            continue
        for share in shares:
            mse = share * values["mse_fresh"] + (1 - share) * values["mse_nothing"]
            mixed = {
                name: share * values[name] + (1 - share) * values["chance"]
                for name in ("clustering", "success_with_labels")
                if name in values
            }
            psnr = values["psnr_fresh"] + 10 * math.log10(values["mse_fresh"] / mse)
            run = {**record["run"], "settings": {"share": share}}
            kept = {"mse_fresh": mse, "psnr_fresh": psnr, "leakage": share * values["leakage"], **mixed}
            found.append({**record, "run": run, "values": kept})
    return found
