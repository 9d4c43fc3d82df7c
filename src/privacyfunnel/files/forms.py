"""How the numbers, dates and times of a CSV file are written: found from texts, and written so again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

_WHOLE = r"^([+]?0|[+-]?[1-9][0-9]{0,17})$"
_NUMBER = r"(?i)^[+-]?(((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan)$"
_COMMAS = r"^[+-]?(0|[1-9][0-9]*)(,[0-9]+)?$"
#: A comma that separates no thousands: 12,50 and 0,125 and 1234,567, but not 1,234.
_DECIMAL_COMMA = r"^[+-]?(0,|[0-9]{4,},|[0-9]+,([0-9]{1,2}|[0-9]{4,})$)"
_TIME = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2}|(?P<dots>[0-9]{2}\.[0-9]{2}\.[0-9]{4}))?(?P<between>[ T])?"
    r"(?P<clock>[0-9]{2}:[0-9]{2}(?P<seconds>:[0-9]{2}(\.[0-9]{1,6})?)?)?(?P<zone>Z| UTC|\+00:00)?"
)

Rewrites = tuple[tuple[str, str], ...]


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
    """

    kind: Any
    rewrites: Rewrites = ()
    commas: bool = False
    decimals: int | None = None

    def read(self, texts: Any) -> Any:
        """The values of these texts; ArrowInvalid where one has none."""
        return as_kind(texts, self.kind, commas=self.commas)

    def write(self, values: Any) -> Any:
        """Values as texts."""
        import pyarrow as pa

        texts = values
        if self.decimals is not None:
            try:
                texts = values.cast(pa.decimal128(38, self.decimals), safe=False)
            except pa.ArrowInvalid:  # more digits than that
                texts = values
        return _rewritten(texts.cast(pa.large_string()), ((r"\.", ","),) if self.commas else self.rewrites)

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
        times = pa.types.is_timestamp(self.kind) and pa.types.is_timestamp(other.kind)
        if times and self.rewrites == other.rewrites and self.kind.tz == other.kind.tz:
            finer = min(self.kind.unit, other.kind.unit, key=("us", "ms", "s").index)
            return Form(pa.timestamp(finer, self.kind.tz), self.rewrites)
        return None


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

    rewrites: Rewrites = ()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        rewrites = ((r"^\+", ""), *(((",", "."),) if commas else ()))
    elif pa.types.is_time(kind):
        found = _rewritten(pc.utf8_trim_whitespace(texts), ((r"^(.*)$", r"1970-01-01T\1"),))
        return found.cast(pa.timestamp("us")).cast(kind)
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        rewrites = ((r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4})", r"\3-\2-\1"), (r"( UTC|\+00:00)$", "Z"))
    try:
        return texts.cast(kind)  # as most are written
    except pa.ArrowInvalid:
        if not rewrites:
            raise
        return _rewritten(pc.utf8_trim_whitespace(texts), rewrites).cast(kind)


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
    clock = "[0-9]{2}:[0-9]{2}" + (r":[0-9]{2}(\.[0-9]{1,6})?" if found["seconds"] else "")
    zone, between = found["zone"] or "", found["between"] or ""
    rewrites: list[tuple[str, str]] = []
    if found["clock"] and not found["seconds"]:
        rewrites.append((r":[0-9]{2}(Z?)$", r"\1"))
    if between == "T":
        rewrites.append((" ", "T"))
    if zone not in ("", "Z"):
        rewrites.append(("Z$", zone))
    if found["dots"]:
        rewrites.append((r"^([0-9]{4})-([0-9]{2})-([0-9]{2})", r"\3.\2.\1"))
    if not found["clock"]:
        kind, pattern = pa.date32(), day
    elif not found["date"]:
        kind, pattern = pa.time32("s"), clock
    else:
        kind, pattern = pa.timestamp("s", "UTC" if zone else None), day + between + clock
    yield Form(kind, tuple(rewrites)), f"^{pattern}{re.escape(zone)}$"


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
        return replace(form, decimals=ends["min"] - 1 if one else None)
    if pa.types.is_date(form.kind) or not pa.types.is_temporal(form.kind):
        return form
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
