"""Columns of texts, booleans and declared categories: points for cells, levels to release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..alphabet import factorise
from ..arrays import FloatArray, IntArray
from ..attributes import LEAST_RECORDS
from ..errors import FileFormatError
from ..frames import parse_type
from ..persistence import decode_labels, encode_labels, require
from .levels import MOST_VALUES

#: Texts of which at least this share is different are keys or names, and not released.
KEY_SHARE = 0.9
#: No value of a category may be further from the others than this many times its plain distance.
LARGEST_SCALE = 2.0


@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """Texts, booleans or declared categories.

    Attributes
    ----------
    members : tuple of values
        That at least ten records have; the last is the one for all rarer values if `rest`.
    shares : (n_levels,) array
        Of the levels among all records that have one, to ten records.
    rest : bool
    missing : bool
        Whether missing values are a level, the last.
    """

    name: str
    arrow: str
    native: str
    members: tuple[Any, ...]
    shares: FloatArray
    rest: bool
    missing: bool

    @property
    def n_levels(self) -> int:
        return len(self.members) + self.missing

    @property
    def width(self) -> int:
        return self.n_levels if self.n_levels > 1 else 0

    @property
    def rest_share(self) -> float:
        """The share of the records with the value that stands for all rare ones, to ten records."""
        return float(self.shares[len(self.members) - 1]) if self.rest else 0.0

    @classmethod
    def read(cls, name: str, column: Any, native: str) -> CategoryColumn | str:
        """The column of at least ten records, or why it is left out."""
        import pyarrow as pa

        found, codes = factorise(column)
        counts = np.bincount(codes, minlength=len(found))
        n_of = {value: int(n) for value, n in zip(found, counts, strict=True) if n}
        n_missing = n_of.pop(None, 0)
        n_there = sum(n_of.values())
        coded = pa.types.is_dictionary(column.type)
        if not coded and n_there >= LEAST_RECORDS and len(n_of) >= KEY_SHARE * n_there:
            return "nearly every record has another value, as in a key or a name"
        common: list[Any] = [value for value, n in n_of.items() if n >= LEAST_RECORDS]
        common = sorted(common, key=lambda value: (-n_of[value], str(value)))[:MOST_VALUES]
        missing = n_missing >= LEAST_RECORDS
        if not common and not missing:
            return "no value is shared by 10 records"
        if coded:  # as they were declared
            place = {value: i for i, value in enumerate(column.dictionary.to_pylist())}
            common.sort(key=place.__getitem__)
        else:
            common.sort(key=lambda value: value)  # texts, or booleans
        n_rest = n_there - sum(n_of[value] for value in common)
        kind = column.type.value_type if coded else column.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        rest = n_rest >= LEAST_RECORDS and text and not (coded and column.type.ordered) and native != "enum"
        numbers = [n_of[value] for value in common]
        if rest:
            # Not of the rare values: a name that avoids one of them tells that somebody has it.
            common.append(_new_name("other", common))
            numbers.append(n_rest)
        weights = in_tens(np.array([*numbers, *([n_missing] if missing else [])], dtype=np.float64))
        return cls(name, str(column.type), native, tuple(common), weights / weights.sum(), rest, missing)

    def codes(self, column: Any, where: str) -> IntArray:
        """The level of each record; −1 where there is none."""
        found, codes = factorise(column)
        level = {value: i for i, value in enumerate(self.members)}
        others = len(self.members) - 1 if self.rest else -1
        gap = len(self.members) if self.missing else -1
        of_values = [gap if value is None else level.get(value, others) for value in found]
        return np.array([*of_values, -1], dtype=np.intp)[codes]

    def points(self, column: Any, where: str) -> FloatArray:
        """One column a level, of average 0, together of variance 1; the average where there is no level."""
        codes = self.codes(column, where)
        table = np.zeros((codes.size, self.width))
        if self.width:
            known = np.flatnonzero(codes >= 0)
            table[known] = -self.shares
            table[known, codes[known]] += 1.0
            table *= block_scale(self.shares)
        return table

    def values(self, codes: IntArray, u: FloatArray | None = None) -> Any:
        """A column of Arrow of the values of these levels."""
        import pyarrow as pa

        kind = parse_type(self.arrow)
        coded = pa.types.is_dictionary(kind)
        gaps = codes >= len(self.members)
        at = pa.array(codes, mask=gaps if gaps.any() else None)
        few = pa.array(self.members, type=kind.value_type if coded else kind)
        if not coded:
            return few.take(at) if len(few) else pa.nulls(codes.size, kind)
        indices = at.cast(kind.index_type) if len(few) else pa.nulls(codes.size, kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, few, ordered=kind.ordered)

    def typical(self, table: FloatArray) -> Any:
        """A column of Arrow: for each distribution over levels the most probable value."""
        return self.values(np.argmax(table, axis=1))

    def labels(self) -> list[str]:
        """Each level in words."""
        texts = [str(value) for value in self.members]
        return [*texts, "missing"] if self.missing else texts

    @property
    def sentence(self) -> str:
        """What the column is, for people."""
        n = len(self.members) - self.rest
        gaps = told_missing(float(self.shares[-1]) if self.missing else 0.0)
        if not self.members:
            return f"{self.name}: missing in every record that may be told of."
        if n == 1 and not self.rest:
            return f"{self.name}: constant{gaps}."
        rest = f"; rarer ones become {self.members[-1]!r}, {self.rest_share:.0%}" if self.rest else ""
        values = "1 value" if n == 1 else f"{n} values"
        return f"{self.name}: {values} that 10 records share{rest}{gaps}."

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {
            "kind": "category",
            "name": self.name,
            "type": self.arrow,
            "native": self.native,
            "labels": encode_labels(self.members, self.name),
            "shares": self.shares.tolist(),
            "rest": self.rest,
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CategoryColumn:
        """The column of `to_dict`."""
        name, arrow, native = (require(data, key, str) for key in ("name", "type", "native"))
        parse_type(arrow)
        labels = tuple(decode_labels(require(data, "labels", list)))
        shares = np.array(require(data, "shares", list), dtype=np.float64)
        rest, missing = require(data, "rest", bool), require(data, "missing", bool)
        if shares.shape != (len(labels) + missing,) or (rest and not labels):
            raise FileFormatError("there must be one share for each level of a column.")
        if not np.all((shares >= 0) & (shares <= 1)):
            raise FileFormatError("the shares of a column are no shares.")
        return cls(name, arrow, native, labels, shares, rest, missing)


def block_scale(shares: FloatArray) -> float:
    """What gives the columns of a category together a variance of 1, within reason."""
    return float(min(LARGEST_SCALE, 1 / np.sqrt(max(1.0 - float(shares @ shares), 1e-12))))


def in_tens(counts: FloatArray) -> FloatArray:
    """Numbers of records that are told to ten: exact ones, less those of single symbols, tell fewer."""
    tens: FloatArray = LEAST_RECORDS * np.maximum(np.rint(counts / LEAST_RECORDS), 1.0)
    return tens


def shares_in_tens(counts: FloatArray | IntArray) -> FloatArray:
    """Shares of so many records each, told to ten."""
    tens = in_tens(np.asarray(counts, dtype=np.float64))
    shares: FloatArray = tens / tens.sum()
    return shares


def told_missing(share: float) -> str:
    """The end of a sentence."""
    return f"; {share:.0%} missing" if share else ""


def _new_name(wanted: str, taken: Iterable[Any]) -> str:
    there, name = {*taken}, wanted
    while name in there:
        name = f"({name})"
    return name
