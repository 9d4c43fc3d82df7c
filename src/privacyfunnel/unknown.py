"""Values that are no letters of a mechanism: counted all, and told in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from .alphabet import Letters, canonical_label, is_missing
from .errors import InvalidInputError, UnknownLetterError

#: What is done with records whose letter the mechanism does not know.
Unknown = Literal["error", "draw", "drop"]

# Values that are told apart: beyond this many they are hardly letters, and would fill the memory.
_MOST_VALUES = 10_000
_SHOWN = 5
_LONGEST = 40


def check_unknown(unknown: str, where: str) -> None:
    """InvalidInputError for a word that is none of `Unknown`."""
    if unknown not in get_args(Unknown):
        raise InvalidInputError(
            f"{where}: unknown must be one of {', '.join(map(repr, get_args(Unknown)))}; it is {unknown!r}.",
            names=("unknown",),
        )


class UnknownLetters:
    """The values of any number of batches that a mechanism has no letter for."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self.n_records = self.n_unknown = 0
        self.ended = False  # whether there may be more records than were counted
        self.counts: Counter[Hashable] = Counter()

    def add(self, found: NDArray[np.intp], columns: Sequence[Any]) -> None:
        """Count a batch: `found` is −1 where the values of the narwhals columns are no letter."""
        rows = np.flatnonzero(found < 0)
        self.n_records += len(found)
        self.n_unknown += len(rows)
        if not len(rows):
            return
        parts = [column[rows].to_list() for column in columns]
        values = zip(*parts, strict=True) if self._letters.are_tuples else parts[0]
        for value, n in Counter(map(_hashable, values)).items():
            if value in self.counts or len(self.counts) < _MOST_VALUES:
                self.counts[value] += n

    def describe(self) -> str:
        """How many records and which values, the most frequent first."""
        shown = [f"{_short(value)} ({n:,})" for value, n in self.counts.most_common(_SHOWN)]
        more = len(self.counts) - len(shown)
        least = "at least " if len(self.counts) == _MOST_VALUES else ""
        shown += [f"{least}{more:,} others"] if more else []
        noun = "record" if self.n_records == 1 else "records"
        of = "of the first" if self.ended else "of"
        have = f"{noun} {'has' if self.n_unknown == 1 else 'have'}"
        names = ", ".join(map(repr, self._letters.names))
        return (
            f"{self.n_unknown:,} {of} {self.n_records:,} {have} a value of {names} that is none of the "
            f"mechanism's {len(self._letters.labels):,} letters: {', '.join(shown)}"
        )

    def error(self, where: str) -> UnknownLetterError:
        """The error for them, with the remedy for the most frequent one."""
        return UnknownLetterError(
            f"{where}: {self.describe()}; {self._remedy()}.", names=("missing", "unknown")
        )

    def _remedy(self) -> str:
        value = self.counts.most_common(1)[0][0]
        parts = value if isinstance(value, tuple) else (value,)
        letters = self._letters.labels
        if any(map(is_missing, parts)):
            return "solve with missing='letter', or fill missing values first"
        if any(str(value) == str(letter) for letter in letters):
            return "the mechanism has it as another type: convert the values, or solve on data of this kind"
        if any(isinstance(letter, tuple) and set(letter) == set(parts) for letter in letters):
            return f"name the public columns in the order of {', '.join(self._letters.names)}"
        return (
            "solve again on data that has it, recode such records, or choose what becomes of them with "
            "unknown='draw' or unknown='drop'"
        )


def _hashable(value: Any) -> Hashable:
    try:
        return canonical_label(value)
    except InvalidInputError:
        return repr(value)


def _short(value: Hashable) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
