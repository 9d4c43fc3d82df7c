"""Numbers as levels: ranges of ten records, round values, the step of a grid."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from privacyfunnel.certified.levels import find_levels, grid_step, number_levels, roundest, to_grid

RNG = np.random.default_rng(7)


def test_ranges_hold_ten_records_and_clip_ten_on_either_side() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 400))
        numbers = np.sort((rng.normal(0, 10 ** rng.uniform(0, 5), n) * rng.choice([1, 30])).astype(np.int64))
        starts, stops = number_levels(numbers)
        assert starts.size or n < 10 or np.unique(numbers, return_counts=True)[1].max() < 10
        if not starts.size:
            continue
        assert (stops > starts).all()
        counts = np.bincount(find_levels(numbers, starts, stops), minlength=starts.size)
        assert counts.sum() == n
        wide = stops - starts > 1
        assert (counts[~wide] >= 0).all()
        assert counts[wide].min(initial=10) >= 9  # the nearest range takes in what a single point leaves
        rare = np.array([v for v, c in Counter(numbers.tolist()).items() for _ in range(c) if c < 10])
        if rare.size >= 20:
            ranges = [(a, b) for a, b in zip(starts, stops, strict=True) if b - a > 1]
            if ranges:
                rare.sort()
                assert min(a for a, _ in ranges) > rare[9] or rare[9] == rare[10]
                assert max(b for _, b in ranges) <= rare[-10]


def test_roundest() -> None:
    assert [
        roundest(36, 41),
        roundest(101, 199),
        roundest(7, 8),
        roundest(-25, -12),
        roundest(999, 1001),
    ] == [*(40, 190, 8, -20, 1000)]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (np.arange(100) * 500.0, 100.0),
        (np.arange(100) / 100, 0.01),
        (RNG.normal(size=500), 1e-3),
        (RNG.normal(size=500) * 1e-7, 1e-10),
        (np.array([*np.arange(1000.0), 0.5]), 1.0),
    ],
)
def test_step_of_a_grid(values: Any, step: float) -> None:
    assert grid_step(values, time=False, accuracy=1e-12) == pytest.approx(step)
    assert to_grid(values, step).dtype == np.int64
