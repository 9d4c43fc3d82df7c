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
#: A statement "less" is refuted where the difference is smaller than this, by its error.
MARGIN = 0.03
#: "No more" bits: by no more than this share of all that could be told.
MARGIN_OF_BITS = 0.02
ERASURE = "random erasure"
#: Shares of records among the values, and what says of how many.
SIZES = {"clustering": "n_clustered", "success_with_labels": "n_judged"}
BITS = ("leakage", "leakage_low", "leakage_high")
CONFIDENCE = 0.95
#: How verdicts are made, for the notes.
RULE = (
    "Curves are compared along the lines through their undominated settings, at nine levels that both reach, "
    "seed by seed. ± is the standard error: seeds, whose variance is pooled over the levels, and the records "
    "that were judged. Few seeds tell little, so a difference counts beyond Student's 95 % quantile of it, "
    f"rather than two of it. *Less* is refuted where the difference is smaller than {MARGIN} by that. *No "
    "more*: at no level a fiftieth of what could be told more, by that; *clearly less somewhere*: by the "
    "quantile for nine looks; refuted where it is clearly more somewhere. All else is not decided, as are "
    "single seeds. Where a range is named, ours costs below its first setting what that setting does, and "
    "has won nothing if it ends within the range, before its rival."
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


def worse_than_nothing(found: Sequence[Group]) -> list[str]:
    """Which settings restore records worse than the mean record would: their training ran away."""
    told = []
    for group in found:
        bad = [
            r["values"]
            for r in group.records
            if r["values"].get("mse", 0.0) > r["values"].get("mse_nothing", math.inf)
        ]
        if bad:
            names = zip(SETTINGS[2:], group.settings[2:], strict=True)
            setting = ", ".join(f"{name} {value:g}" for name, value in names if value is not None)
            told.append(f"{group.curve} with {setting} ({len(bad)} of {len(group.records)} seeds)")
    if not told:
        return []
    return [f"Training ran away, to reconstructions worse than the mean record: {'; '.join(told)}."]


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

    `error` is the standard error at each level; None where one of the curves has a single seed. `freedom`
    says how well it is known, `margin` what counts as no more. `at` has the difference at each level.
    `whole` is False where a range of gains was named and the first curve ends within it, before the second.
    """

    mean: float
    error: float | None
    freedom: float
    margin: float
    at: Sequence[tuple[float, float]]
    whole: bool = True

    def __str__(self) -> str:
        low, high = (pick(difference for _, difference in self.at) for pick in (min, max))
        spread = "one seed" if self.error is None else f"± {self.error:.3f}"
        where = f"at {self.at[0][0]:.4g}"
        if len(self.at) > 1:
            where = f"{low:+.3f} to {high:+.3f}, levels {self.at[0][0]:.4g} to {self.at[-1][0]:.4g}"
        return f"{self.mean:+.3f} ({spread}; {where})"

    def allowed(self, looks: int = 1) -> float:
        """The largest difference that chance makes in 95 of 100 cases, in any of so many looks."""
        from scipy.stats import t

        assert self.error is not None
        return float(self.error * t.ppf(1 - (1 - CONFIDENCE) / 2 / looks, self.freedom))

    @property
    def less(self) -> bool | None:
        """Whether the first costs less than the second; None where the seeds cannot tell."""
        if self.error is None:
            return None
        if self.mean < -self.allowed():
            return True
        return False if self.mean - self.allowed() > -self.margin else None

    @property
    def remark(self) -> str:
        """For the page, where a difference can be told from none and is small all the same."""
        small = self.error is not None and self.mean - self.allowed() > -self.margin
        return f" The difference is there, and smaller than {self.margin:.2g}." if small and self.less else ""

    @property
    def nowhere_more(self) -> bool | None:
        """Whether it costs more at no level, but for the margin, and clearly less at some.

        None where the seeds cannot tell, or the first does not reach all gains that were named.
        """
        if self.error is None:
            return None
        differences = [difference for _, difference in self.at]
        if max(differences) > self.allowed(len(differences)):
            return False
        no_more = max(differences) + self.allowed() <= self.margin
        clearly_less = min(differences) < -self.allowed(len(differences))
        return True if no_more and clearly_less and self.whole else None


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
    a range of gains: at those below its first setting the first curve costs what that setting does, which
    has more.

    Between settings it follows the straight lines of the figure: the least cost of a setting with at least a
    gain would punish the curve whose settings happen to lie further apart.
    """
    best = [undominated(part, gain, cost) for part in (first, second)]
    ends = [[group.mean(gain) for group in part] for part in best]
    if not all(ends):
        return None
    named = math.isfinite(within[0])
    low = max(within[0], ends[1][0]) if named else max(gains[0] for gains in ends)
    high = min(within[1], *(gains[-1] for gains in ends))
    if high < low <= high + same:
        low = high = (low + high) / 2
    if low > high:
        return None
    levels = np.linspace(low, high, N_LEVELS if low < high else 1)
    rows = [lines(part, gain, cost, levels) for part in (first, second)]
    differences = rows[0].mean(axis=0) - rows[1].mean(axis=0)
    error, freedom = None, math.nan
    if min(map(len, rows)) > 1:
        parts = [float(found.var(axis=0, ddof=1).mean()) / len(found) for found in rows]
        known = [
            _n_between(gains, low, high) * (len(found) - 1) for gains, found in zip(ends, rows, strict=True)
        ]
        variance = sum(parts) + _sampling(first, cost) + _sampling(second, cost)
        # Welch's, with what records add known.
        spent = sum(part**2 / n for part, n in zip(parts, known, strict=True))
        error, freedom = math.sqrt(variance), variance**2 / spent if spent > 0 else math.inf
    return Comparison(
        float(differences.mean()),
        error,
        freedom,
        _margin([*first, *second], cost),
        [(float(level), float(difference)) for level, difference in zip(levels, differences, strict=True)],
        whole=not named or ends[0][-1] >= min(within[1], ends[1][-1]),
    )


def _n_between(gains: Sequence[float], low: float, high: float) -> int:
    """How many settings the line between two levels goes through, its ends included."""
    before = sum(one <= low for one in gains) - 1
    after = sum(one < high for one in gains)
    return min(after, len(gains) - 1) - max(before, 0) + 1


def reached(found: Sequence[Group], gain: str, least: float, unit: str = "") -> str:
    """For the page, where a rival's settings begin within the range that is compared."""
    gains = [group.mean(gain) for group in found if group.values(gain)]
    if not gains or min(gains) <= least:
        return ""
    return f" Its settings begin at {min(gains):.4g}{' ' * bool(unit)}{unit}."


def _margin(found: Sequence[Group], cost: str) -> float:
    most = [most for group in found for most in group.values("leakage_most")]
    return MARGIN_OF_BITS * max(most) if cost == "leakage" and most else MARGIN


def _sampling(found: Sequence[Group], cost: str) -> float:
    """The variance that judged records add, which all seeds have in common: they are judged on the same."""
    values = [record["values"] for group in found for record in group.records if cost in record["values"]]
    if cost in SIZES:
        judged = [(one[cost], one.get(SIZES[cost], one["n_judged"])) for one in values if "n_judged" in one]
        return statistics.fmean(share * (1 - share) / n for share, n in judged) if judged else 0.0
    # The ends of an interval of 95 %.
    ends = [one[f"{cost}_high"] - one[f"{cost}_low"] for one in values if f"{cost}_high" in one]
    return statistics.fmean((width / 3.92) ** 2 for width in ends) if ends else 0.0


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
            told = {name: share * values[name] for name in BITS if name in values}
            kept = {"mse_fresh": mse, "psnr_fresh": psnr, **told, **mixed}
            found.append({**record, "run": run, "values": kept})
    return found
