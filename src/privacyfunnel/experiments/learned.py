"""What the learned experiments share: means over seeds, and trade-offs compared along their lines."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray
from .base import Claim, Record, by_setting

SETTINGS = ("n_components", "epochs", "alpha", "beta", "gamma", "leakage_weight", "share")
N_LEVELS = 9
#: A statement "less" is refuted where the difference is smaller than this, by its error.
MARGIN = 0.03
#: "No more" bits: by no more than this share of all that could be told.
MARGIN_OF_BITS = 0.02
OURS = "ours"
#: `Funnel()` with nothing set: one point beside the curve over the weights.
ALONE = "ours, Funnel() as it is"
ERASURE = "random erasure"
#: How often a code is released rather than nothing.
SHARES = [k / 40 for k in range(41)]
SHARED = "ours, time sharing"
#: Shares of records among the values, and what says of how many.
SIZES = {"clustering": "n_clustered", "success_with_labels": "n_judged"}
BITS = ("leakage", "leakage_low", "leakage_high")
CONFIDENCE = 0.95
#: How verdicts are made, for the notes.
RULE = (
    f"Curves are compared at {N_LEVELS} levels that both reach, seed by seed: those of the paper's "
    "statements along the lines through all settings, ours through those that no other setting beats. ± "
    "is the standard error: seeds, whose variance is pooled over the levels, and the records that were "
    "judged. Few seeds tell little, so a difference counts beyond Student's 95 % quantile of it, rather "
    "than two of it; both are told, as *errors of*. "
    f"*Less* is refuted where the difference is smaller than {MARGIN} by that, and no "
    "further than one error below 0. *No more*: at no level more by a fiftieth of what raw records or an "
    "autoencoder's codes tell, by that, with the level's own error, but for seeds no smaller a share of "
    "the cost than at all of them; *clearly less somewhere*: by the quantile for as many looks; refuted "
    "where it is clearly more somewhere. All else is not decided, as are single seeds. Where a range is "
    "named, ours costs below its first setting what that setting does, and has won nothing if it ends "
    "within the range, before its rival. Bits are what the strongest adversary found, an estimate of a "
    "lower bound. These rules were revised after tables had been seen: what counts as no more, errors of "
    "levels, the lines, what is refuted, and how rivals go on below their settings. Runs come from several "
    "machines, whose last digits differ; training amplifies that, so that a setting and seed computed again "
    "gives other digits."
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
        bad = [r["values"] for r in group.records if _ran_away(r["values"])]
        if bad:
            names = zip(SETTINGS[2:], group.settings[2:], strict=True)
            setting = ", ".join(f"{name} {value:g}" for name, value in names if value is not None)
            data = [r["run"]["data"] or {} for r in group.records]
            of = {one["private"] for one in data if "private" in one}
            about = "".join(f", {name} private" for name in sorted(of))
            best = [str(one["best_epoch"]) for one in bad if "best_epoch" in one]
            epochs = f", best after epoch {', '.join(best)}" if best else ""
            told.append(
                f"{group.curve} with {setting}{about} ({len(bad)} of {len(group.records)} seeds{epochs})"
            )
    if not told:
        return []
    return [
        "Training ran away, to reconstructions worse than the mean record, and these settings are on no "
        f"line: {'; '.join(told)}."
    ]


def _ran_away(values: Mapping[str, Any]) -> bool:
    """Worse than the mean record by more than a code that keeps nothing is on new records."""
    return bool(values.get("mse", 0.0) > 1.05 * values.get("mse_nothing", math.inf))


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


def joined(found: Sequence[Group], gain: str, cost: str) -> list[Group]:
    """The settings that have both, by rising gain, without those whose training ran away."""
    there = [
        group
        for group in found
        if group.values(gain)
        and group.values(cost)
        and not any(_ran_away(record["values"]) for record in group.records)
    ]
    return sorted(there, key=lambda group: (group.mean(gain), -group.mean(cost)))


def undominated(found: Sequence[Group], gain: str, cost: str) -> list[Group]:
    """The settings that no other beats in both means, by rising gain."""
    best: list[Group] = []
    for group in reversed(joined(found, gain, cost)):
        if not best or group.mean(cost) < best[-1].mean(cost):
            best.append(group)
    return best[::-1]


def lines(through: Sequence[Group], gain: str, cost: str, levels: FloatArray) -> FloatArray:
    """The cost at each level along the line through some settings, a row for each seed."""
    by_seed: dict[int, list[tuple[float, float]]] = {}
    for group in through:
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

    `error` is the standard error of the mean; None where one of the curves has a single seed. `freedom` says
    how well it is known, `margin` what counts as no more. `at` has the difference at each level, `errors` its
    error there. `whole` is False where a range of gains was named and the first curve ends within it, before
    the second.
    """

    mean: float
    error: float | None
    freedom: float
    margin: float
    at: Sequence[tuple[float, float]]
    errors: Sequence[float] = ()
    whole: bool = True

    def __str__(self) -> str:
        spread = "one seed" if self.error is None else f"± {self.error:.3f}"
        if self.error:
            spread += f", {abs(self.mean) / self.error:.1f} errors of {self._beyond_chance():.1f}"
        if not self.at:
            return f"{self.mean:+.3f} ({spread})"
        low, high = (pick(difference for _, difference in self.at) for pick in (min, max))
        where = f"at {self.at[0][0]:.4g}"
        if len(self.at) > 1:
            where = f"{low:+.3f} to {high:+.3f}, levels {self.at[0][0]:.4g} to {self.at[-1][0]:.4g}"
        return f"{self.mean:+.3f} ({spread}; {where})"

    def _beyond_chance(self, looks: int = 1) -> float:
        """How many errors chance makes in 95 of 100 cases, in any of so many looks."""
        from scipy.stats import t

        return float(t.ppf(1 - (1 - CONFIDENCE) / 2 / looks, self.freedom))

    @property
    def less(self) -> bool | None:
        """Whether the first costs less than the second; None where the seeds cannot tell."""
        if self.error is None:
            return None
        allowed = self.error * self._beyond_chance()
        if self.mean < -allowed:
            return True
        return False if self.mean - allowed > -self.margin and self.mean > -self.error else None

    @property
    def remark(self) -> str:
        """For the page, where a difference can be told from none and is small all the same."""
        small = self.error is not None and self.mean - self.error * self._beyond_chance() > -self.margin
        return f" The difference is there, and smaller than {self.margin:.2g}." if small and self.less else ""

    @property
    def clearly(self) -> str:
        """For the page, at which levels it costs more or less than chance makes at any of them."""
        told = ""
        for word, sign in (("less", -1), ("more", 1)):
            beyond = [self.at[number] for number in self._where(sign)]
            if beyond:
                where = " to ".join(f"{level:.4g}" for level in dict.fromkeys([beyond[0][0], beyond[-1][0]]))
                most = max(abs(difference) for _, difference in beyond)
                levels = f"{len(beyond)} of {len(self.at)} levels, {where}"
                told += f" Clearly {word} at {levels}, by up to {most:.3f}."
        return told

    @property
    def left_open(self) -> str:
        """For the page, where nothing is decided: at which levels more than the margin may be told."""
        if self.error is None or self.nowhere_more is not None:
            return ""
        one_look = self._beyond_chance()
        rows = [
            (level, difference, error)
            for (level, difference), error in zip(self.at, self.errors, strict=True)
            if difference + one_look * error > self.margin
        ]
        if not rows:
            return ""
        where = " to ".join(f"{level:.4g}" for level in dict.fromkeys([rows[0][0], rows[-1][0]]))
        level, difference, error = max(rows, key=lambda row: row[1] + one_look * row[2])
        return (
            f" Left open at {len(rows)} of {len(self.at)} levels, {where}: at {level:.4g} it is "
            f"{difference:+.3f} ± {error:.3f}, and no more than {self.margin:.2g} is allowed."
        )

    @property
    def nowhere_more(self) -> bool | None:
        """Whether it costs more at no level, but for the margin, and clearly less at some.

        None where the seeds cannot tell, or the first does not reach all gains that were named.
        """
        if self.error is None:
            return None
        if self._where(1):
            return False
        one_look = self._beyond_chance()
        no_more = all(
            difference + one_look * error <= self.margin
            for (_, difference), error in zip(self.at, self.errors, strict=True)
        )
        return True if no_more and self._where(-1) and self.whole else None

    def _where(self, sign: int) -> list[int]:
        """The levels at which it clearly costs more (1) or less (−1)."""
        if self.error is None:
            return []
        most = self._beyond_chance(len(self.at))
        pairs = zip(self.at, self.errors, strict=True)
        return [n for n, ((_, difference), error) in enumerate(pairs) if sign * difference > most * error]


def compare(
    first: Sequence[Group],
    second: Sequence[Group],
    gain: str,
    cost: str,
    within: tuple[float, float] = (-math.inf, math.inf),
    same: float = 0.0,
    *,
    through: Callable[[Sequence[Group], str, str], list[Group]] = undominated,
    most: float | None = None,
) -> Comparison | None:
    """Cost of the first minus cost of the second over the gains that both reach; None if there are none.

    Curves that end no further than `same` from one another are compared between their ends. `within` names
    a range of gains: at those below its first setting the first curve costs what that setting does, which
    has more. `through` picks the settings that the lines go through, `most` is what the margin is a share of.

    Between settings it follows the straight lines of the figure: the least cost of a setting with at least a
    gain would punish the curve whose settings happen to lie further apart.
    """
    best = [through(part, gain, cost) for part in (first, second)]
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
    rows = [lines(part, gain, cost, levels) for part in best]
    differences = rows[0].mean(axis=0) - rows[1].mean(axis=0)
    error, errors, freedom = None, np.zeros(0), math.nan
    if min(map(len, rows)) > 1:
        own = [found.var(axis=0, ddof=1) / len(found) for found in rows]
        pooled = [float(part.mean()) for part in own]
        known = [
            _n_between(part, gain, low, high) * (len(found) - 1)
            for part, found in zip(best, rows, strict=True)
        ]
        records = sum(_sampling(part, gain, cost, levels) for part in best)
        variance = sum(pooled) + float(np.mean(records))
        error, freedom = math.sqrt(variance), _freedom(variance, pooled, known)
        errors = np.sqrt(sum(_local(found) for found in rows) + records)
    return Comparison(
        float(differences.mean()),
        error,
        freedom,
        MARGIN_OF_BITS * most if most is not None else MARGIN,
        [(float(level), float(difference)) for level, difference in zip(levels, differences, strict=True)],
        [float(value) for value in errors],
        whole=not named or ends[0][-1] >= min(within[1], ends[1][-1]),
    )


def _n_between(through: Sequence[Group], gain: str, low: float, high: float) -> int:
    """How many settings the line between two levels goes through, its ends included; mixtures count once."""
    gains = [group.mean(gain) for group in through]
    before = max(sum(one <= low for one in gains) - 1, 0)
    after = max(sum(one < high for one in gains), before)
    return len({group.settings[:-1] for group in through[before : after + 1]})


def no_more(
    source: str,
    mine: tuple[str, Sequence[Group]],
    theirs: tuple[str, Sequence[Group]],
    gain: str,
    within: tuple[float, float],
    kept: str,
    rests_on: Sequence[str],
    whole: Sequence[Group] = (),
    *,
    erase: bool = False,
) -> Claim:
    """The statement that one curve lets no more be found than another over a range of what is kept.

    `whole` is what tells most: the raw records, or an autoencoder. With `erase` the other curve goes on below
    its first setting by random erasure of that setting's codes.
    """
    rival, name = theirs[1], theirs[0]
    if erase and reached(rival, gain, within[0]):
        rival, name = begun_by_erasure(rival, gain), f"{name}, below its settings erased at random"
    found = compare(mine[1], rival, gain, "leakage", within, most=most_told(whole))
    return Claim(
        source,
        f"From {within[0]:g} to {within[1]:g} {kept} adversaries find no more in {mine[0]} than in "
        f"{name}, and clearly less somewhere.",
        f"Bits found there, {mine[0]} minus {theirs[0]}: {found or 'not measured, or nothing in common'}."
        f"{found.clearly + found.left_open if found else ''}{reached(theirs[1], gain, within[0])}",
        None if found is None else found.nowhere_more,
        rests_on,
    )


def begun_by_erasure(found: Sequence[Group], gain: str) -> list[Group]:
    """The settings of a curve, with releases of its first one's codes with a probability, else nothing.

    Anybody can do that with any release: a curve does not end where its settings do.
    """
    return [
        *found,
        *(group for first in undominated(found, gain, "leakage")[:1] for group in _erased_group(first)),
    ]


def _erased_group(whole: Group) -> list[Group]:
    return groups({whole.curve: erased(whole.records, SHARES[:-1])})


def most_told(whole: Sequence[Group]) -> float | None:
    """The bits found where most are, which a margin is a share of."""
    return max((group.mean("leakage") for group in whole), default=None)


def reached(found: Sequence[Group], gain: str, least: float) -> str:
    """For the page, where a rival's settings begin within the range that is compared."""
    gains = [group.mean(gain) for group in found if group.values(gain)]
    return f" Its settings begin at {min(gains):.4g}." if gains and min(gains) > least else ""


def _local(found: FloatArray) -> FloatArray:
    """The variance over seeds of the mean at each level: its own, or that of all as a share, if larger.

    Three seeds agree by chance at one level or another; and what is large varies by more than what is small.
    """
    own: FloatArray = found.var(axis=0, ddof=1) / len(found)
    squares = found.mean(axis=0) ** 2
    share = float((own / np.where(squares > 0, squares, np.inf)).mean())
    return np.asarray(np.maximum(own, share * squares))


def _sampling(through: Sequence[Group], gain: str, cost: str, levels: FloatArray) -> FloatArray:
    """The variance that judged records add, which all seeds have in common: they are judged on the same."""
    found = [_of_records(group, cost) for group in through]
    return np.interp(levels, [group.mean(gain) for group in through], found)


def _of_records(group: Group, cost: str) -> float:
    """The variance that judged records add to a cost of one setting."""
    values = [record["values"] for record in group.records if cost in record["values"]]
    if cost in SIZES:
        judged = [(one[cost], one.get(SIZES[cost], one["n_judged"])) for one in values if "n_judged" in one]
        each = [share * (1 - share) / n for share, n in judged]
    else:  # the ends of an interval of 95 %
        ends = [one[f"{cost}_high"] - one[f"{cost}_low"] for one in values if f"{cost}_high" in one]
        each = [(width / 3.92) ** 2 for width in ends]
    return statistics.fmean(each) if each else 0.0


def compare_settings(first: Group, second: Group, cost: str) -> Comparison | None:
    """Cost of the first setting minus cost of the second, whatever they keep; None if one has none."""
    values = first.values(cost), second.values(cost)
    if not all(values):
        return None
    difference = statistics.fmean(values[0]) - statistics.fmean(values[1])
    error, freedom = None, math.nan
    if min(map(len, values)) > 1:
        own = [statistics.variance(part) / len(part) for part in values]
        variance = sum(own) + _of_records(first, cost) + _of_records(second, cost)
        error, freedom = math.sqrt(variance), _freedom(variance, own, [len(part) - 1 for part in values])
    return Comparison(difference, error, freedom, MARGIN, [])


def _freedom(variance: float, own: Sequence[float], known: Sequence[int]) -> float:
    """How well an error is known, by Welch: each part of its variance by its degrees, the rest exactly."""
    spent = sum(part**2 / n for part, n in zip(own, known, strict=True))
    return variance**2 / spent if spent > 0 else math.inf


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
        inside = [low <= level <= high for level in levels]
        there = np.array(levels)[inside]
        rows = lines(best, gain, cost, there)
        table[curve] = _placed(rows.mean(axis=0), inside)
        if len(rows) > 1:  # errors as verdicts have them
            table[f"{curve} ±"] = _placed(
                np.sqrt(_local(rows) + _sampling(best, gain, cost, there)) if there.size else there, inside
            )
    return table


def _placed(values: FloatArray, inside: Sequence[bool]) -> list[float | None]:
    """The values where a curve is, nothing elsewhere."""
    left = iter(values.tolist())
    return [next(left) if here else None for here in inside]


def erased(records: Sequence[Record], shares: Sequence[float]) -> list[Record]:
    """Releases of a code with probability t, else nothing: what its runs make of each share.

    Whoever gets nothing guesses the mean record and the most frequent class.
    """
    found: list[Record] = []
    for record in records:
        values = record["values"]
        if not {*_MIXED, "mse_nothing"} <= values.keys():
            continue
        nothing = {"mse_fresh": values["mse_nothing"], **dict.fromkeys(BITS, 0.0)}
        nothing |= {name: values["chance"] for name in COSTS if name in values}
        for share in shares:
            run = {**record["run"], "settings": {**record["run"]["settings"], "share": share}}
            found.append({**record, "run": run, "values": _mixed(values, nothing, share)})
    return found


def shared(records: Sequence[Record], levels: Sequence[float]) -> list[Record]:
    """The least of each cost at levels of fresh PSNR, of releases by one of two runs of a seed at random."""
    by_seed: dict[int, list[Record]] = {}
    found: list[Record] = []
    for record in records:
        if record["values"].keys() >= _MIXED:
            by_seed.setdefault(record["run"]["seed"], []).append(record)
    for mine in by_seed.values():
        mine.sort(key=lambda record: record["values"]["psnr_fresh"])
        for level in levels:
            mixtures = [
                _mixed(more["values"], less["values"], share)
                for number, more in enumerate(mine)
                for less in mine[:number]
                if (share := _share(more["values"], less["values"], level)) is not None
            ]
            if not mixtures:
                continue
            values: dict[str, Any] = {"psnr_fresh": level}
            for cost in ("leakage", *COSTS):
                best = min(
                    (one for one in mixtures if cost in one), key=lambda one: float(one[cost]), default={}
                )
                values |= {name: value for name, value in best.items() if name.startswith(cost)}
            run = {**mine[0]["run"], "settings": {"share": level}}
            found.append({**mine[0], "run": run, "values": values})
    return found


COSTS = ("clustering", "success_with_labels")
_MIXED = {"mse_fresh", "psnr_fresh", "leakage"}


def _share(more: Mapping[str, Any], less: Mapping[str, Any], level: float) -> float | None:
    """How often the better of two releases reaches a fresh PSNR together with the other."""
    if not less["psnr_fresh"] < more["psnr_fresh"] or not less["psnr_fresh"] <= level <= more["psnr_fresh"]:
        return None
    error = more["mse_fresh"] * 10 ** ((more["psnr_fresh"] - level) / 10)
    return float((less["mse_fresh"] - error) / (less["mse_fresh"] - more["mse_fresh"]))


def _mixed(one: Mapping[str, Any], other: Mapping[str, Any], share: float) -> dict[str, Any]:
    """What one release with probability `share`, else the other, keeps and tells.

    Everybody sees which, so that bits, shares of right guesses and squared errors are means of the two.
    """
    found = {
        name: share * one[name] + (1 - share) * other[name]
        for name in ("mse_fresh", *BITS, *COSTS)
        if name in one and name in other
    }
    return found | {"psnr_fresh": one["psnr_fresh"] + 10 * math.log10(one["mse_fresh"] / found["mse_fresh"])}
