"""How the numbers, dates and times of a CSV file are written: found from texts, and written so again.

What differs from value to value within a form, such as 9:05 for 09:05, is part of it only where ten records
have it: the way in which a release is written must not tell how a single record was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from ..attributes import LEAST_RECORDS

_WHOLE = r"^([+]?0|[+-]?[1-9][0-9]{0,17})$"
_NUMBER = r"(?i)^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"
_COMMAS = r"^[+-]?(0|[1-9][0-9]*)(,[0-9]+)?$"
#: A comma that separates no thousands: 12,50 and 0,125 and 1234,567, but not 1,234.
_DECIMAL_COMMA = r"^[+-]?(0,|[0-9]{4,},|[0-9]+,([0-9]{1,2}|[0-9]{4,})$)"
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|(?P<dots>[0-9]{2}\.[0-9]{2}\.[0-9]{4}))?(?P<between>[ T])?"
    r"(?P<clock>[0-9]{1,2}:[0-9]{2}(?P<seconds>:[0-9]{2}(\.[0-9]{1,6})?)?(?P<half> ?(AM|PM|am|pm))?)?"
    r"(?P<zone>Z| UTC|(?P<offset> ?[+-][0-9]{2}(:?[0-9]{2})?))?"
)
_SHORT_HOUR = r"(^|[ T])([0-9]:)"

Rewrites = tuple[tuple[str, str], ...]

#: From a clock of twelve hours to one of twenty-four.
_FROM_HALVES: Rewrites = tuple(
    (rf"(?i)(^|[ T])0?{(hour - 1) % 12 + 1}(:[0-9:.]+) ?{'AM' if hour < 12 else 'PM'}", rf"\1{hour:02d}\2")
    for hour in range(24)
)


@dataclass(frozen=True)
class Form:
    """How the values of a column of a CSV file are written.

    Attributes
    ----------
    kind : type of Arrow
        That they have.
    rewrites : pairs of a pattern and what takes its place
        From how Arrow writes such values to how the file does.
    commas : bool
        Whether 12,5 is the number 12.5.
    decimals : int, optional
        Behind every comma, where all have as many.
    short_hours : bool
        Whether nine o'clock is 9:00 and not 09:00.
    offset : str
        Of the clock from UTC, such as +02:00, where times are written with one: the commonest, with which
        every instant is written. Values are instants and no longer have an offset of their own.
    """

    kind: Any
    rewrites: Rewrites = ()
    commas: bool = False
    decimals: int | None = None
    short_hours: bool = False
    offset: str = ""

    def read(self, texts: Any) -> Any:
        """The values of these texts; ArrowInvalid where one has none."""
        return as_kind(texts, self.kind, commas=self.commas)

    def write(self, values: Any) -> Any:
        """Values as texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts, rewrites = values, self.rewrites
        if self.commas:
            rewrites = ((r"\.", ","),)
        if self.decimals is not None:
            try:
                texts = values.cast(pa.decimal128(38, self.decimals), safe=False)
            except pa.ArrowInvalid:  # more digits than that
                texts = values
        if self.offset:
            shift = pa.scalar(60 * _minutes(self.offset), pa.duration("s"))
            texts = pc.add(values, shift).cast(pa.timestamp(self.kind.unit))
            rewrites = (*rewrites, ("$", self.offset))
        if self.short_hours:
            rewrites = (*rewrites, (r"(^|[ T])0([0-9]:)", r"\1\2"))
        return _rewritten(texts.cast(pa.large_string()), rewrites)

    def joined(self, other: Form) -> Form | None:
        """The form of a column of which one part has this form and one the other; None where it has none."""
        import pyarrow as pa

        if self == other:
            return self
        kinds = {str(self.kind), str(other.kind)}
        if kinds == {"int64", "double"}:
            return Form(pa.float64(), commas=self.commas or other.commas)
        if self.commas and other.commas:
            return replace(self, decimals=None)
        if self._clock() == other._clock():
            finer = min(self, other, key=lambda form: ("us", "ms", "s").index(form.kind.unit))
            return replace(finer, short_hours=self.short_hours or other.short_hours, offset=self.offset)
        return None

    def _clock(self) -> tuple[Any, ...]:
        """What must be alike in times of two parts of a column."""
        import pyarrow as pa

        if pa.types.is_time(self.kind):
            return ("time", self.rewrites)
        if pa.types.is_timestamp(self.kind):
            return ("timestamp", self.rewrites, self.kind.tz, bool(self.offset))
        return (self.kind, self)


def form_of(column: Any) -> Form | None:
    """The form that all texts of a column have; None where they are but texts: 007 stays what it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(column.drop_null())
    if not len(texts):
        return None
    for form, pattern in _candidates(texts[0].as_py()):
        if pc.all(pc.match_substring_regex(texts, pattern)).as_py() and (found := _exactly(form, texts)):
            try:
                found.read(texts)
            except pa.ArrowInvalid:  # there is no 30th of February
                continue
            return found
    return None


def doubtful_number(column: Any) -> str | None:
    """A text with a comma, of a column whose texts all look like numbers; nobody knows what it separates."""
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(column.drop_null())
    if not len(texts) or not pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]+([.,][0-9]+)*$")).as_py():
        return None
    with_one = texts.filter(pc.match_substring(texts, ","))
    return str(with_one[0].as_py()) if len(with_one) else None


def as_kind(texts: Any, kind: Any, *, commas: bool = False) -> Any:
    """Texts as values of a type of Arrow, in whatever form they are; ArrowInvalid where one is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_time(kind):
        return as_kind(_rewritten(texts, (("^ *", "1970-01-01T"),)), pa.timestamp("us")).cast(kind)
    try:
        return texts.cast(kind)  # as most are written
    except pa.ArrowInvalid:
        if not (pa.types.is_temporal(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise
    trimmed = pc.utf8_trim_whitespace(texts)
    if not pa.types.is_temporal(kind):
        return _rewritten(trimmed, ((r"^\+", ""), *(((",", "."),) if commas else ()))).cast(kind)
    halves = pc.any(pc.match_substring_regex(trimmed, "(?i)[ap]m")).as_py()
    rewrites = (
        (r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})", r"\3-\2-\1"),
        *(_FROM_HALVES if halves else ()),
        (_SHORT_HOUR, r"\10\2"),  # the first group, a zero, the second
        (" UTC$", "Z"),
        (r" ([+-][0-9:]+)$", r"\1"),
    )
    return _rewritten(trimmed, rewrites).cast(kind)


def _candidates(first: str) -> Iterator[tuple[Form, str]]:
    """Forms that this text has, each with the pattern of all of its texts."""
    import pyarrow as pa

    # In columns of whole numbers and others the first may be whole: every form is tried on all texts.
    if re.match(r"[+-]?[.0-9]|(?i:[+-]?(inf|nan))", first):
        yield Form(pa.int64()), _WHOLE
        yield Form(pa.float64()), _NUMBER
        yield Form(pa.float64(), commas=True), _COMMAS
    found = _TIME.fullmatch(first)
    if found is None or not (found["date"] or found["clock"]):
        return
    if bool(found["between"]) != bool(found["date"] and found["clock"]):
        return
    if found["zone"] and not found["between"]:
        return
    day = r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}" if found["dots"] else "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    clock = "[0-9]{1,2}:[0-9]{2}" + (r":[0-9]{2}(\.[0-9]{1,6})?" if found["seconds"] else "")
    zone, between, half = found["zone"] or "", found["between"] or "", found["half"] or ""
    rewrites: list[tuple[str, str]] = []
    if found["clock"] and not found["seconds"]:
        rewrites.append((r":[0-9]{2}(Z?)$", r"\1"))
    if between == "T":
        rewrites.append((" ", "T"))
    if half:
        rewrites += _to_halves(half)
        clock += f"(?i:{half[:-2]}[ap]m)"
    if zone == " UTC":
        rewrites.append(("Z$", zone))
    if found["dots"]:
        rewrites.append((r"^([0-9]{4})-([0-9]{2})-([0-9]{2})", r"\3.\2.\1"))
    if not found["clock"]:
        kind, pattern = pa.date32(), day
    elif not found["date"]:
        kind, pattern = pa.time32("s"), clock
    else:
        kind, pattern = pa.timestamp("s", "UTC" if zone else None), day + between + clock
    offset = re.sub("[0-9]", "0", found["offset"] or "").replace("-", "+")
    ending = re.sub("0", "[0-9]", offset.replace("+", "[+-]")) if offset else zone
    yield Form(kind, tuple(rewrites), offset=offset), f"^{pattern}{ending}$"


def _to_halves(half: str) -> Iterator[tuple[str, str]]:
    """From a clock of twenty-four hours to one of twelve, whose halves are written like this one."""
    for hour in range(24):
        written = half[:-2] + ("am" if hour < 12 else "pm")
        written = written.upper() if half.isupper() else written
        yield rf"(^|[ T]){hour:02d}(:[0-9:.]+)(Z?)$", rf"\1{(hour - 1) % 12 + 1:02d}\2{written}\3"


def _minutes(offset: str) -> int:
    """An offset such as +02:00, -0330 or +01 in minutes."""
    sign, hours, minutes = re.fullmatch(r" ?([+-])([0-9]{2}):?([0-9]{2})?", offset).groups()  # type: ignore[union-attr]
    return int(sign + "1") * (60 * int(hours) + int(minutes or 0))


def _exactly(form: Form, texts: Any) -> Form | None:
    """The form with its decimals, or the unit of its fractions; None where commas may separate thousands."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if form.commas:
        if not pc.any(pc.match_substring_regex(texts, _DECIMAL_COMMA)).as_py():
            return None
        behind = pc.subtract(pc.binary_length(texts), pc.find_substring(texts, ","))
        ends = pc.min_max(behind).as_py()
        one = ends["min"] == ends["max"] and pc.all(pc.match_substring(texts, ",")).as_py()
        return replace(form, decimals=ends["min"] - 1 if one and len(texts) >= LEAST_RECORDS else None)
    if pa.types.is_date(form.kind) or not pa.types.is_temporal(form.kind):
        return form
    n_short = pc.sum(pc.match_substring_regex(texts, _SHORT_HOUR)).as_py()
    form = replace(form, short_hours=n_short >= LEAST_RECORDS)
    if form.offset:
        found = pc.extract_regex(texts, "(?P<offset> ?[+-][0-9]{2}:?(?:[0-9]{2})?)$")
        counts = pc.value_counts(pc.struct_field(found, "offset")).to_pylist()
        commonest = max(counts, key=lambda one: one["counts"])
        if commonest["counts"] >= LEAST_RECORDS:
            form = replace(form, offset=commonest["values"])
    if not pc.any(pc.match_substring_regex(texts, r":[0-9]{2}\.[0-9]")).as_py():
        return form
    fine = pc.any(pc.match_substring_regex(texts, r":[0-9]{2}\.[0-9]{4,6}")).as_py()
    unit = "us" if fine else "ms"
    if pa.types.is_time(form.kind):
        return replace(form, kind=pa.time64("us") if fine else pa.time32("ms"))
    return replace(form, kind=pa.timestamp(unit, form.kind.tz))


def _rewritten(texts: Any, rewrites: Rewrites) -> Any:
    import pyarrow.compute as pc

    return reduce(lambda found, one: pc.replace_substring_regex(found, *one), rewrites, texts)
