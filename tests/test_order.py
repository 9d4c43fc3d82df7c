"""Records whose order tells the private attribute are noticed, in batches too, and others are not."""

from __future__ import annotations

import warnings
from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privacyfunnel as pf
from privacyfunnel.counting import PairCounter
from privacyfunnel.errors import PrivacyFunnelWarning
from privacyfunnel.order import NeighbourCounter, agreement_by_chance

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("labels", ["aab", "aabb", "aaabbc", "abcd", "aaaa", "aabbccd", "ab", "a"])
def test_chance_is_the_average_over_all_orders(labels: str) -> None:
    agreeing = [sum(a == b for a, b in pairwise(order)) for order in permutations(labels)]
    mean, deviation = agreement_by_chance(list(Counter(labels).values()))
    assert mean == pytest.approx(np.mean(agreeing))
    assert deviation == pytest.approx(np.std(agreeing), abs=1e-7)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_batches_count_as_one(size: int) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=100).tolist(), [None if i % 5 else "x" for i in range(100)]
    pairs = list(zip(first, second, strict=True))
    expected = sum(a == b for a, b in pairwise(pairs))
    by_column, by_value = NeighbourCounter(), NeighbourCounter()
    for start in range(0, 100, size):
        part = slice(start, start + size)
        by_column.update_columns([pa.array(first[part]), pa.array(second[part])])
        by_value.update(pairs[part])
    by_column.update_columns([pa.array([]), pa.array([])])
    assert by_column.agreeing == by_value.agreeing == expected


@pytest.mark.parametrize("kind", FRAMES)
def test_sorted_records_are_warned_of(kind: str) -> None:
    columns = {"job": ["a", "b"] * 100, "sex": ["f"] * 80 + ["m"] * 120}
    with pytest.warns(PrivacyFunnelWarning) as caught:
        pf.Joint.from_frame(FRAMES[kind](columns), public="job", private="sex")
    assert str(caught[0].message) == (
        "neighbours among the records agree in sex 99.5 % of the time, 51.8 % by chance: their order tells "
        "it, and a release in the same order does too; release them with shuffle=True."
    )
    with pytest.warns(PrivacyFunnelWarning, match="agree in y"):
        pf.Joint.from_samples(columns["job"], columns["sex"])


def test_random_order_lazy_frames_and_few_records_are_not() -> None:
    rng = np.random.default_rng(1)
    sex = np.repeat(["f", "m"], [80, 120])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(50):
            pf.Joint.from_samples(range(200), rng.permutation(sex))
        for n in range(1, 12):
            pf.Joint.from_samples(range(2 * n), ["f"] * n + ["m"] * n)
        pf.Joint.from_samples(range(50), ["f"] * 50)  # nothing to tell
        pf.Joint.from_samples(range(50), range(50))
        lazy = pl.LazyFrame({"job": range(200), "sex": sex.tolist()})
        pf.Joint.from_frame(lazy, public="job", private="sex")


def test_slight_agreement_of_very_many_records_is_not_far_more_than_chance() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=200_000)
    y[1::50] = y[::50]  # one pair in a hundred: beyond chance, and far from telling anybody's value
    counter = PairCounter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counter.update(np.zeros(200_000, dtype=int), y)
        counter.to_joint()
