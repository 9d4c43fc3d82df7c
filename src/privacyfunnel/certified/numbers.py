"""Columns of numbers, and of points and lengths of time: points for cells, levels to release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..attributes import LARGEST, LEAST_RECORDS
from ..errors import FileFormatError, InvalidInputError, shortened
from ..frames import is_time, parse_type
from ..persistence import require, require_number
from .categories import block_scale, in_tens, told_missing
from .held_out import coarse_moments
from .levels import Grid, find_levels, from_grid, grid_step, number_levels, to_grid

#: Whole numbers of which at least this share is different are keys, and not released.
KEY_SHARE = 0.99
#: Numbers with a larger skewness are put on a logarithmic scale, for distances.
SKEWED = 2.0
#: Microseconds of a day.
DAY = 86_400_000_000
#: Points farther away than this have no distances: their squares are too large.
FARTHEST = 1e100


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Numbers, or points or lengths of time in microseconds, on a grid.

    Attributes
    ----------
    step : float
        Of the grid.
    starts, stops : (n,) int arrays
        Levels in steps, the stop not included.
    missing : float
        Share of the missing values, to ten records; they are a level, the last one, if it is not 0.
    centre, spread : float, optional
        Of the signed logarithm that is taken for distances; None for none.
    mean, scale : float
        What makes points of average about 0 and variance about 1, to ten records; scale 0 for no points.
    """

    name: str
    arrow: str
    native: str
    step: float
    starts: Grid
    stops: Grid
    missing: float
    centre: float | None
    spread: float
    mean: float
    scale: float

    @property
    def n_values(self) -> int:
        """Levels but the missing one."""
        return self.starts.size

    @property
    def n_levels(self) -> int:
        return self.n_values + bool(self.missing)

    @property
    def width(self) -> int:
        return bool(self.scale) + bool(self.missing and self.n_values)

    @classmethod
    def read(cls, name: str, column: Any, native: str) -> NumberColumn | str:
        """The column of at least ten records, or why it is left out."""
        import pyarrow as pa

        values = _as_numbers(name, column, "TableSchema")
        there = values[~np.isnan(values)]
        n_missing = values.size - there.size
        told = float(in_tens(np.array([float(n_missing)]))[0])
        missing = min(told / values.size, 1.0) if n_missing >= LEAST_RECORDS else 0.0
        if there.size < LEAST_RECORDS:
            if not missing:
                return "fewer than 10 records have a value"
            nothing = np.zeros(0, dtype=np.int64)
            return cls(name, str(column.type), native, 1.0, nothing, nothing, 1.0, None, 1.0, 0.0, 0.0)
        whole = pa.types.is_integer(column.type)
        if whole and np.unique(there).size >= KEY_SHARE * there.size:
            return "nearly every record has another whole number, as in a key"
        time = is_time(column.type)
        accuracy = 1e-6 if column.type in (pa.float32(), pa.float16()) else 1e-12
        step = grid_step(there, time=time, accuracy=accuracy)
        if whole or pa.types.is_decimal(column.type):  # no finer than the type
            step = max(step, 1.0 if whole else 10.0**-column.type.scale)
        numbers = to_grid(there, step)
        starts, stops = number_levels(numbers)
        if pa.types.is_time(column.type):  # of the day, which has no round hour beyond its last
            starts, stops = np.maximum(starts, 0), np.minimum(stops, int(DAY / step))
        clipped = _clipped(there, starts, stops, step)
        centre, spread = _logarithm(clipped, step)
        scaled = _bent(clipped, centre, spread)
        deviation = float(scaled.std())
        flat = starts.size == 1 or deviation <= 1e-9 * float(np.abs(scaled).max())
        mean, told_deviation = coarse_moments(scaled)
        return cls(
            *(name, str(column.type), native, step, starts, stops, missing, centre, spread),
            mean=mean,
            scale=0.0 if flat else 1 / told_deviation,
        )

    def codes(self, column: Any, where: str) -> IntArray:
        """The level of each record; −1 where there is none."""
        values = _as_numbers(self.name, column, where)
        gaps = np.isnan(values)
        if not self.n_values:
            return np.where(gaps, 0, -1)
        found = find_levels(to_grid(np.where(gaps, 0.0, values), self.step), self.starts, self.stops)
        return np.where(gaps, self.n_values if self.missing else -1, found)

    def points(self, column: Any, where: str) -> FloatArray:
        """Numbers of average about 0, variance about 1, clipped to the levels, and where they are missing."""
        values = _as_numbers(self.name, column, where)
        gaps = np.isnan(values)
        parts = []
        if self.scale:
            clipped = _clipped(np.where(gaps, 0.0, values), self.starts, self.stops, self.step)
            scaled = (_bent(clipped, self.centre, self.spread) - self.mean) * self.scale
            parts.append(np.where(gaps, 0.0, scaled))
        if self.missing and self.n_values:
            parts.append((gaps - self.missing) * block_scale(np.array([self.missing, 1 - self.missing])))
        return np.stack(parts, axis=1) if parts else np.zeros((values.size, 0))

    def values(self, codes: IntArray, u: FloatArray) -> Any:
        """A column of Arrow: numbers at the place `u`, from 0 to 1, of these levels."""
        gaps = codes >= self.n_values
        if not self.n_values:
            return self._column(np.zeros(codes.size), gaps)
        level = np.where(gaps, 0, codes)
        wide = (self.stops - self.starts)[level]
        inside = np.minimum((u * wide).astype(np.int64), wide - 1)
        return self._column(self.starts[level] + inside, gaps)

    def typical(self, table: FloatArray) -> Any:
        """A column of Arrow: for each distribution over levels its average; missing where most are."""
        gaps = table[:, self.n_values :].sum(axis=1) > 0.5
        if not self.n_values:
            return self._column(np.zeros(len(table)), gaps | True)
        weights = table[:, : self.n_values]
        middles = self.starts / 2 + (self.stops - 1) / 2
        totals = weights.sum(axis=1)
        means = weights @ middles / np.where(totals > 0, totals, 1.0)
        return self._column(np.rint(means), gaps)

    def _column(self, numbers: Any, gaps: BoolArray) -> Any:
        """Numbers in steps as the type of the column."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = parse_type(self.arrow)
        mask = gaps if gaps.any() else None
        if pa.types.is_null(kind):
            return pa.nulls(len(gaps))
        if pa.types.is_decimal(kind):
            whole = pa.array(numbers.astype(np.int64), mask=mask).cast(pa.decimal128(19, 0))
            unit = Decimal(1).scaleb(round(np.log10(self.step)))
            return pc.multiply(whole, pa.scalar(unit)).cast(kind, safe=False)
        values = from_grid(numbers, self.step)
        if pa.types.is_floating(kind):
            return pa.array(values, mask=mask).cast(kind, safe=False)
        made = pa.array(np.rint(values).astype(np.int64), mask=mask)
        if not is_time(kind):
            return made.cast(kind, safe=False)
        return made.cast(_in_microseconds(kind)).cast(kind, safe=False)

    def labels(self) -> list[str]:
        """Each level in words: a value, or a range."""
        pairs = (self.bounds(level, level) for level in range(self.n_values))
        texts = [first if first == last else f"{first}–{last}" for first, last in pairs]
        return [*texts, "missing"] if self.missing else texts

    def bounds(self, low: int, high: int) -> tuple[str, str]:
        """The first number of a level and the last one of another, in words."""
        ends = np.array([self.starts[low], self.stops[high] - 1])
        first, last = self._column(ends, np.zeros(2, dtype=bool)).to_pylist()
        return str(first), str(last)

    @property
    def sentence(self) -> str:
        """What the column is, for people."""
        what = "times" if is_time(parse_type(self.arrow)) else "numbers"
        n_ranges = int(np.count_nonzero(self.stops - self.starts > 1))
        n_single = self.n_values - n_ranges
        if not self.n_values:
            return f"{self.name}: missing in every record that may be told of."
        if self.n_values == 1 and not n_ranges:
            return f"{self.name}: constant{told_missing(self.missing)}."
        how = [f"{n_single} values that 10 records share"] if n_single else []
        how += [f"{n_ranges} ranges of at least 10 records"] if n_ranges else []
        scale = "" if self.centre is None else ", skewed: on a logarithmic scale for distances"
        return f"{self.name}: {what}, released as {' and '.join(how)}{scale}{told_missing(self.missing)}."

    def to_dict(self) -> dict[str, Any]:
        """JSON types; the ends of levels lie half a step beside the grid, where nobody's number is."""
        return {
            "kind": "number",
            "name": self.name,
            "type": self.arrow,
            "native": self.native,
            "step": self.step,
            "starts": from_grid(self.starts - 0.5, self.step).tolist(),
            "stops": from_grid(self.stops - 0.5, self.step).tolist(),
            "missing": self.missing,
            "centre": self.centre,
            "spread": self.spread,
            "mean": self.mean,
            "scale": self.scale,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NumberColumn:
        """The column of `to_dict`."""
        step = require_number(data, "step")
        if not step > 0:
            raise FileFormatError("a step of numbers is not positive.")
        starts, stops = (
            np.rint(np.array(require(data, key, list), dtype=np.float64) / step + 0.5).astype(np.int64)
            for key in ("starts", "stops")
        )
        if starts.shape != stops.shape or np.any(stops <= starts):
            raise FileFormatError("the levels of numbers do not end after they start.")
        missing, spread, mean, scale = (
            require_number(data, key) for key in ("missing", "spread", "mean", "scale")
        )
        centre = None if data["centre"] is None else require_number(data, "centre")
        if not (0 <= missing <= 1 and spread > 0 and scale >= 0):
            raise FileFormatError("the scale of numbers is damaged.")
        if starts.size and scale:
            with np.errstate(over="ignore", invalid="ignore"):
                ends = np.array([starts[0], stops[-1]]) * step
                points = (_bent(ends, centre, spread) - mean) * scale
            if not np.all(np.abs(points) <= FARTHEST):
                raise FileFormatError("the scale of numbers does not fit their levels.")
        name, arrow, native = (require(data, key, str) for key in ("name", "type", "native"))
        parse_type(arrow)
        return cls(name, arrow, native, step, starts, stops, missing, centre, spread, mean, scale)


def _in_microseconds(kind: Any) -> Any:
    """The type of this kind of time that counts microseconds."""
    import pyarrow as pa

    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    return pa.timestamp("us", getattr(kind, "tz", None))


def _as_numbers(name: str, column: Any, where: str) -> FloatArray:
    """float64, NaN where a value is missing; InvalidInputError for infinite and very large numbers."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if is_time(column.type):
        column = column.cast(_in_microseconds(column.type), safe=False).cast(pa.int64())
    values = np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    large = np.abs(values) > LARGEST
    if n_large := int(np.count_nonzero(large)):
        what = "infinite" if np.isinf(values[large]).all() else f"infinite or beyond ±{LARGEST:g}"
        raise InvalidInputError(
            f"{where}: column {shortened(name)} is {what} in {n_large} of {values.size} records; make these "
            "missing, or drop the column."
        )
    return values


def _clipped(values: FloatArray, starts: Grid, stops: Grid, step: float) -> FloatArray:
    """Numbers no further out than the levels, half a step on either side."""
    ends = from_grid(np.array([starts.min(), stops.max()]) - 0.5, step)
    return np.clip(values, *ends)


def _logarithm(values: FloatArray, step: float) -> tuple[float | None, float]:
    """Centre and spread of the logarithmic scale for skewed numbers, rounded; (None, 1) for others."""
    deviation = float(values.std())
    # Where all but a few are equal, rounding would make the moments of nothing.
    if deviation <= 1e-9 * float(np.abs(values).max(initial=0.0)):
        return None, 1.0
    skewness = float(np.mean(((values - values.mean()) / deviation) ** 3))
    if abs(skewness) <= SKEWED:
        return None, 1.0
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = float(f"{(high - low) / 2:.1e}") or step
    # The median is somebody's number: on the grid of the spread it is nobody's.
    return float(np.rint(centre / spread) * spread), max(spread, step)


def _bent(values: FloatArray, centre: float | None, spread: float) -> FloatArray:
    if centre is None:
        return values
    away = (values - centre) / spread
    bent: FloatArray = np.sign(away) * np.log1p(np.abs(away))
    return bent
