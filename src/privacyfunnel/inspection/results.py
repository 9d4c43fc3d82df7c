"""What an inspection found: columns, pairs, and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..alphabet import shown_name
from ..frames import make_frame
from ..measured import Estimate
from .estimates import HARMLESS


@dataclass(frozen=True)
class InspectedColumn:
    """What a column is, and what it tells about the private one.

    Attributes
    ----------
    name : str
    kind : {"number", "whole number", "text", "yes/no", "date", "time", "empty", "other"}
    n_values : int, optional
        Different values without missing ones; None where they are more than can be listed.
    n_missing : int, optional
        None where the values were not listed.
    rare : float, optional
        Share of the records with a value that fewer than ten have: it may point to a person.
    bins : int, optional
        How many bins numbers or dates were cut into; finer digits may tell more.
    part : str
        What of the values was measured, where nearly every record has its own: their size, or their first
        characters. The values themselves may tell everything; bits and guesses are lower bounds then.
    bits : Estimate, optional
        What the column tells about the private one. None where it was not measured.
    guessed : Estimate, optional
        How often the private value is guessed from this column alone, by who knows all other records.
    certain : float, optional
        Share of the records whose value goes with one private value in 99 of 100 records or more, and in so
        many more than usual: other private values are a fiftieth as frequent as among all records.
    advice : {"drop", "protect", "keep", ""}
    reason : str
        Why, in a few words.
    """

    name: str
    kind: str
    n_values: int | None = None
    n_missing: int | None = None
    rare: float | None = None
    bins: int | None = None
    part: str = ""
    bits: Estimate | None = None
    guessed: Estimate | None = None
    certain: float | None = None
    advice: str = ""
    reason: str = ""


@dataclass(frozen=True)
class InspectedPair:
    """What two columns tell: together about the private one, or where none is named about each other.

    Its kind is "lower bound" where one of the two was found to tell more alone: that stands for both.
    """

    columns: tuple[str, str]
    bits: Estimate
    guessed: Estimate | None = None


@dataclass(frozen=True)
class Inspection:
    """What the columns of a table tell about a private one, or about each other.

    Attributes
    ----------
    n_records : int
    private : tuple of str
        The private column; several are one attribute, their combination. Empty where none was named.
    columns : tuple of InspectedColumn
        Those that tell most first.
    pairs : tuple of InspectedPair
        The strongest first. Without a private column: every column with every other.
    chance : float, optional
        How often the private value is guessed without seeing anything.
    entropy : float, optional
        H(Y): all there is to know about the private one, in bits.
    notes : tuple of str
        What was done to the columns, and what was not measured.
    """

    n_records: int
    private: tuple[str, ...]
    columns: tuple[InspectedColumn, ...]
    pairs: tuple[InspectedPair, ...]
    chance: float | None = None
    entropy: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The inspection in a sentence or two that need no information theory."""
        return _summary(self)

    @property
    def has_too_few_records(self) -> bool:
        """Whether no column surely tells anything, and not all surely tell next to nothing."""
        bits = [one.bits for one in self.columns if one.bits is not None and not one.part]
        most = HARMLESS * (self.entropy or 0.0)
        return bool(
            self.private
            and bits
            and all(one.interval.low <= 0 for one in bits)
            and any(one.interval.high > most for one in bits)
        )

    @property
    def not_measured(self) -> list[str]:
        """The names of the columns that may tell more than was measured: all, or nothing."""
        return [one.name for one in self.columns if one.kind != "empty" and (one.bits is None or one.part)]

    def advised(self, advice: str) -> list[str]:
        """The names of the columns with this advice."""
        return [one.name for one in self.columns if one.advice == advice]

    def to_frame(self) -> Any:
        """One row a column; without a private column one row a pair."""
        if not self.private:
            return make_frame(
                {
                    "first": [one.columns[0] for one in self.pairs],
                    "second": [one.columns[1] for one in self.pairs],
                    **_number_columns("bits", [one.bits for one in self.pairs]),
                }
            )
        names = ("name", "kind", "n_values", "n_missing", "rare", "bins")
        return make_frame(
            {
                **{name: [getattr(one, name) for one in self.columns] for name in names},
                **_number_columns("bits", [one.bits for one in self.columns]),
                **_number_columns("guessed", [one.guessed for one in self.columns]),
                **{
                    name: [getattr(one, name) for one in self.columns]
                    for name in ("certain", "advice", "reason")
                },
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "summary": self.summary,
            "n_records": self.n_records,
            "private": list(self.private),
            "chance": self.chance,
            "entropy": self.entropy,
            "columns": [
                {**vars(one), "bits": _json(one.bits), "guessed": _json(one.guessed)} for one in self.columns
            ],
            "pairs": [
                {"columns": list(one.columns), "bits": _json(one.bits), "guessed": _json(one.guessed)}
                for one in self.pairs
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return self.summary


def _summary(found: Inspection) -> str:
    if not found.private:
        if not found.pairs:
            return "No two columns could be compared."
        most = found.pairs[0]
        both = " and ".join(map(shown_name, most.columns))
        return (
            f"Of {len(found.columns)} columns in {found.n_records:,} records, {both} tell most about each "
            f"other: {most.bits.value:.3f} bit."
        )
    label = " × ".join(found.private)
    sure = HARMLESS * (found.entropy or 0.0)
    best = max(
        (one for one in found.columns if one.guessed and (not one.part or _surely_told(one) > sure)),
        key=lambda one: one.guessed.value if one.guessed else 0.0,
        default=None,
    )
    assert found.chance is not None
    said = []
    if best is not None and best.guessed is not None and best.guessed.value > found.chance:
        few = f"; the difference may be chance, for {found.n_records:,} records are too few to tell"
        more = " or more" if best.part else ""
        said.append(
            f"Somebody who sees {shown_name(best.name)} alone is right about {label} "
            f"{100 * best.guessed.value:.1f} % of the time{more}; without seeing anything "
            f"{100 * found.chance:.1f} %{few if _surely_told(best) <= 0 else ''}."
        )
    else:
        said.append(
            f"No column alone helps to guess {label}: somebody who sees nothing is right "
            f"{100 * found.chance:.1f} % of the time, and nobody was found to do better."
        )
        telling = max((one for one in found.columns if one.bits), key=_surely_told, default=None)
        if telling is not None and found.entropy and _surely_told(telling) > sure:
            assert telling.bits is not None
            said[0] = (
                f"Seeing one column alone changes no guess of {label}, which is right "
                f"{100 * found.chance:.1f} % of the time anyway, but {shown_name(telling.name)} tells about "
                f"{100 * telling.bits.value / found.entropy:.0f} % of all there is to know about it."
            )
        elif found.has_too_few_records:
            said[0] = f"{said[0][:-1]}; but {found.n_records:,} records are too few to tell."
    if (best is None or _surely_told(best) <= sure) and (hidden := found.not_measured):
        several = "tells" if len(hidden) == 1 else "tell"
        said[0] = (
            f"What {', '.join(map(shown_name, hidden))} {several} about {label} could not be measured, or "
            "only in part, as nearly every record has a value of its own; apart from that, "
            f"{said[0][0].lower()}{said[0][1:]}"
        )
    for advice, words in (("drop", "Drop"), ("protect", "Protect"), ("keep", "Keep")):
        if names := found.advised(advice):
            said.append(f"{words}: {', '.join(map(shown_name, names))}.")
    return " ".join(said)


def _surely_told(column: InspectedColumn) -> float:
    return -1.0 if column.bits is None else column.bits.interval.low


def _number_columns(name: str, numbers: Sequence[Estimate | None]) -> dict[str, list[float | None]]:
    return {
        name: [None if one is None else one.value for one in numbers],
        f"{name}_low": [None if one is None else one.interval.low for one in numbers],
        f"{name}_high": [None if one is None else one.interval.high for one in numbers],
    }


def _json(number: Estimate | None) -> dict[str, Any] | None:
    if number is None:
        return None
    low, high = number.interval
    return {
        "value": number.value,
        "kind": number.kind,
        "low": low,
        "high": high,
        "confidence": number.confidence,
    }
