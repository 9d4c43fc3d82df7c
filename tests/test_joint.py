"""Joint: probabilities, counts, samples and frames in; exact tables with labels out."""

from __future__ import annotations

import datetime
from collections import Counter
from itertools import product

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, joints, random_joint

from privacyfunnel import counting
from privacyfunnel.counting import PairCounter
from privacyfunnel.errors import InvalidInputError, InvalidJointError
from privacyfunnel.joint import Joint

RECORDS = {
    "city": ["Rome", "Oslo", "Rome", "Bonn", "Oslo", "Rome"],
    "rooms": [2, 1, 2, 3, 1, 1],
    "sex": ["f", "m", "m", "f", "m", "f"],
    "old": [True, False, True, True, False, False],
}

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
    "polars lazy": pl.LazyFrame,
    "duckdb": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
}

frame_makers = pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES.keys())


def assert_counts(joint: Joint, records: list[tuple]) -> None:
    """The joint is the relative frequency of the records, counted one by one."""
    counts = Counter(records)
    assert joint.n_samples == len(records)
    assert set(joint.x_labels) == {x for x, _ in records}
    assert set(joint.y_labels) == {y for _, y in records}
    for (i, x), (j, y) in product(enumerate(joint.x_labels), enumerate(joint.y_labels)):
        assert joint.p_xy[i, j] == pytest.approx(counts[x, y] / len(records), abs=1e-15)


def test_the_counting_check_fails_on_a_wrong_joint() -> None:
    records = list(zip(RECORDS["city"], RECORDS["sex"], strict=True))
    with pytest.raises(AssertionError):
        assert_counts(Joint.from_samples(RECORDS["city"], RECORDS["sex"][::-1]), records)


# Probabilities, counts, channels


def test_a_joint_knows_its_marginals_and_information() -> None:
    joint = Joint([[0.5, 0.0], [0.25, 0.25]])
    np.testing.assert_allclose(joint.p_x, [0.5, 0.5])
    np.testing.assert_allclose(joint.p_y, [0.75, 0.25])
    assert (joint.n_x, joint.n_y, joint.x_labels, joint.n_samples) == (2, 2, (0, 1), None)
    assert joint.entropy_x == pytest.approx(1)
    assert joint.entropy_y == pytest.approx(2 - 0.75 * np.log2(3))
    # I = H(Y) − H(Y|X), and Y is known for the first x, a fair coin for the second.
    assert joint.mutual_information == pytest.approx(joint.entropy_y - 0.5)
    assert repr(joint).startswith("Joint(2 × 2, known: H(X) = 1.0000")


@given(joints())
def test_information_satisfies_the_entropy_bounds(joint: Joint) -> None:
    assert 0 <= joint.mutual_information <= min(joint.entropy_x, joint.entropy_y) + 1e-12
    assert joint.entropy_x <= np.log2(joint.n_x) + 1e-12


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_random_joint_is_what_it_says(kind: str) -> None:
    p = random_joint(np.random.default_rng(5), 5, 4, kind).p_xy
    zero_rows, zero_columns = (p.sum(axis=1) == 0).sum(), (p.sum(axis=0) == 0).sum()
    assert ((p == 0).any(), zero_rows > 0) == {
        "zeros": (True, False),
        "zero-row": (True, True),
        "zero-column": (True, False),
        "deterministic": (True, False),
    }.get(kind, (False, False))
    assert zero_columns > 0 or kind != "zero-column"
    ranks = {"rank1": 1, "uniform": 1, "low-rank": 3, "duplicated": 3}
    if kind in ranks:
        assert np.linalg.matrix_rank(p) == ranks[kind]
    if kind == "tiny":
        assert 0 < p.min() < 1e-100


def test_nothing_of_a_joint_can_be_overwritten() -> None:
    source = np.full((2, 2), 0.25)
    joint = Joint(source)
    source[0, 0] = 1
    assert joint.p_xy[0, 0] == 0.25
    for array in (joint.p_xy, joint.p_x, joint.p_y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_counts_become_frequencies_and_are_remembered() -> None:
    joint = Joint.from_counts([[3, 0], [1, 4]], x_labels=["a", "b"], x_names="city")
    np.testing.assert_array_equal(joint.p_xy, np.array([[3, 0], [1, 4]]) / 8)
    assert joint.n_samples == 8
    assert joint.x_names == ("city",)
    assert "estimated from 8 records" in repr(joint)


def test_a_channel_times_its_input_is_the_joint() -> None:
    joint = Joint.from_channel([[0.9, 0.1], [0.2, 0.8]], [0.25, 0.75])
    np.testing.assert_allclose(joint.p_xy, [[0.225, 0.025], [0.15, 0.6]])


def test_zero_probability_letters_are_allowed() -> None:
    joint = Joint([[0.5, 0, 0.5], [0, 0, 0]])
    assert joint.p_x[1] == 0
    assert joint.mutual_information == 0


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ([[0.5, -0.1], [0.3, 0.3]], r"entry \[0, 1\] is -0.1: correct it"),
        ([[0.5, 0.5], [np.nan, 0]], r"entry \[1, 0\] is nan"),
        ([[0.5, np.inf]], r"entry \[0, 1\] is inf"),
        ([[0.5, 0.47]], r"sums to 0.97\. Use Joint.from_counts"),
        ([[3, 4], [5, 6]], r"sums to 18\. Use Joint.from_counts"),
        ([[1e308, 1e308]], "sums to inf"),
        ([0.5, 0.5], r"one row a public letter.*shape is \(2,\)"),
        (np.ones((1, 1, 1)), r"shape is \(1, 1, 1\)"),
        ([], r"non-empty.*shape is \(0,\)"),
        (np.empty((0, 3)), r"non-empty.*shape is \(0, 3\)"),
        ([[0.5], [0.25, 0.25]], "table of numbers"),
        ([["a", "b"]], "table of numbers"),
        (None, r"shape is \(\)"),
    ],
)
def test_what_is_no_joint_is_refused(table: object, says: str) -> None:
    with pytest.raises(InvalidJointError, match=says):
        Joint(table)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ({"x_labels": ["a"]}, "x_labels must have 2 entries"),
        ({"y_labels": ["a", "a"]}, "y_labels must be distinct"),
        ({"y_labels": [1, True]}, "y_labels must be distinct"),
        ({"x_labels": [["a"], ["b"]]}, "must be hashable"),
        ({"x_labels": ["a", "b"], "x_names": ("city", "rooms")}, "tuples with a value for each of"),
        ({"x_names": ()}, "x_names is empty"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: dict, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Joint(np.full((2, 2), 0.25), **labels)


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ([[0, 0]], "every count is 0"),
        ([[0.5, 0.5]], "whole numbers"),
        ([[-1, 2]], "not negative"),
        ([[1e300, 1]], "beyond the whole numbers"),
        ([[1e308, 1e308]], "beyond the whole numbers"),
    ],
)
def test_what_is_no_count_is_refused(counts: list, says: str) -> None:
    with pytest.raises(InvalidJointError, match=says):
        Joint.from_counts(counts)


@pytest.mark.parametrize(
    ("channel", "p_x", "says"),
    [
        ([[0.9, 0.2], [0.5, 0.5]], [0.5, 0.5], "row 0 sums to 1.1. Pass P\\(Y|x\\) as rows"),
        ([[0.5, 0.5]], [0.5, 0.5], "one entry a row"),
        ([[0.5, 0.5]], ["a"], "numbers that sum to 1"),
        ([[0.5, 0.5]], [0.9], "sums to 0.9"),
    ],
)
def test_what_is_no_channel_is_refused(channel: list, p_x: list, says: str) -> None:
    with pytest.raises(InvalidJointError, match=says):
        Joint.from_channel(channel, p_x)


# Samples


labels = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3)), min_size=1, max_size=40)


@given(labels)
def test_samples_are_counted(records: list[tuple[str, int]]) -> None:
    x, y = zip(*records, strict=True)
    joint = Joint.from_samples(x, y)
    assert_counts(joint, records)
    assert list(joint.x_labels) == sorted(set(x))


@given(labels, st.integers(1, 5))
def test_batches_give_the_same_joint_as_one_pass(records: list[tuple[str, int]], size: int) -> None:
    x, y = zip(*records, strict=True)
    counter = PairCounter()
    for start in range(0, len(records), size):
        counter.update(x[start : start + size], y[start : start + size])
    whole, streamed = Joint.from_samples(x, y), counter.to_joint()
    np.testing.assert_array_equal(streamed.p_xy, whole.p_xy)
    assert (streamed.x_labels, streamed.y_labels) == (whole.x_labels, whole.y_labels)
    assert streamed.n_samples == counter.n_samples == len(records)


@pytest.mark.parametrize(
    "make",
    [list, iter, np.array, pd.Series, pl.Series, pa.array, lambda v: [np.int32(e) for e in v]],
    ids=["list", "iterator", "numpy", "pandas", "polars", "pyarrow", "numpy scalars"],
)
def test_labels_become_python_scalars(make) -> None:
    joint = Joint.from_samples(make([10, 9, 10]), make([1, 0, 1]))
    assert joint.x_labels == (9, 10)
    assert [type(label) for label in joint.x_labels + joint.y_labels] == [int] * 4


def test_letters_that_do_not_compare_have_a_fixed_order() -> None:
    x = ["b", 2, ("t", 1), 1, "a", None]
    orders = {
        Joint.from_samples(order, order, missing="letter", x_names="x").x_labels for order in (x, x[::-1])
    }
    assert orders == {(1, 2, "a", "b", ("t", 1), None)}


def test_dates_keep_their_meaning() -> None:
    days = np.array(["2024-02-29", "2024-03-01"], dtype="datetime64[ns]")
    assert Joint.from_samples(days, [0, 1]).x_labels == (
        datetime.datetime(2024, 2, 29),
        datetime.datetime(2024, 3, 1),
    )


@pytest.mark.parametrize(
    "nothing", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]
)
def test_missing_labels_are_an_error_or_one_letter(nothing: object) -> None:
    x = ["a", nothing, "a", None]
    with pytest.raises(InvalidInputError, match=r"'x' \(2\) among the 4 records.*missing=\"letter\""):
        Joint.from_samples(x, [0, 0, 1, 1])
    joint = Joint.from_samples(x, [0, 0, 1, 1], missing="letter")
    assert joint.x_labels == ("a", None)
    np.testing.assert_array_equal(joint.p_xy, np.full((2, 2), 0.25))


@pytest.mark.parametrize(
    ("x", "y", "options", "says"),
    [
        ([1, 2], [1], {}, "x has 2 and y 1"),
        ([], [], {}, "no records"),
        ("abc", [1, 2, 3], {}, "x must be a sequence"),
        (5, [1], {}, "x must be a sequence of labels, not int"),
        ([1], np.ones((1, 2)), {}, "y must be a sequence.*pass tuples"),
        (pd.DataFrame({"a": [1]}), [1], {}, "x must be a sequence.*Joint.from_frame"),
        ([[1], [2]], [1, 2], {}, "hashable"),
        ([1], [1], {"missing": "drop"}, '"error" or "letter"; it is \'drop\''),
        ([1], [1], {"max_letters": 0}, "at least 1; it is 0"),
        ([1], [1], {"max_letters": "many"}, "whole number"),
        ([1], [1], {"x_names": ("a", "b")}, "tuples with a value for each of"),
        (range(20_000), [0] * 20_000, {}, "'x' has more than 10,000 distinct letters.*raise max_letters"),
        ([1, 2, 3], [0, 1, 2], {"max_letters": 2}, "'x' has more than 2"),
    ],
)
def test_samples_that_cannot_be_counted_are_refused(x, y, options: dict, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Joint.from_samples(x, y, **options)


# Frames


@frame_makers
@pytest.mark.parametrize(
    ("public", "private"),
    [(["city"], ["sex"]), ("city", "sex"), (["rooms"], ["old"]), (["city", "rooms"], ["sex", "old"])],
)
def test_frames_are_counted(make, public, private) -> None:
    joint = Joint.from_frame(make(RECORDS), public=public, private=private)
    sides = []
    for names in (public, private):
        columns = [RECORDS[name] for name in ([names] if isinstance(names, str) else names)]
        sides.append(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))
    assert_counts(joint, list(zip(*sides, strict=True)))
    assert list(joint.x_labels) == sorted(set(sides[0]))
    assert joint.x_names == ((public,) if isinstance(public, str) else tuple(public))
    types = {type(part) for label in joint.x_labels for part in (label if len(public) == 2 else (label,))}
    assert types <= {str, int, bool, tuple}


@frame_makers
def test_only_observed_combinations_become_letters(make) -> None:
    joint = Joint.from_frame(make(RECORDS), public=["city", "rooms"], private="sex")
    assert joint.x_labels == (("Bonn", 3), ("Oslo", 1), ("Rome", 1), ("Rome", 2))


HOLES = {"a": ["u", None, "v", None], "b": [0.5, float("nan"), 1.5, None], "y": [1, 1, 0, 0]}


def holes(name: str):
    if name == "pandas":
        # pandas has one missing value for both; the object column keeps None and NaN apart.
        return pd.DataFrame({**HOLES, "b": pd.Series(HOLES["b"], dtype=object)})
    return FRAMES[name](HOLES)


@pytest.mark.parametrize("name", FRAMES)
def test_missing_values_are_an_error_that_counts_them(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"'a' \(2\), 'b' \(2\) among the 4 records"):
        Joint.from_frame(holes(name), public=["a", "b"], private="y")
    with pytest.raises(InvalidInputError, match=r"column 'b' \(2\)"):
        Joint.from_frame(holes(name), public="y", private="b")


@pytest.mark.parametrize("name", FRAMES)
def test_null_and_nan_can_be_one_letter(name: str) -> None:
    joint = Joint.from_frame(holes(name), public="b", private="y", missing="letter")
    assert joint.x_labels == (0.5, 1.5, None)
    np.testing.assert_array_equal(joint.p_xy, [[0, 0.25], [0.25, 0], [0.25, 0.25]])
    joint = Joint.from_frame(holes(name), public=["a", "b"], private="y", missing="letter")
    assert joint.x_labels == (("u", 0.5), ("v", 1.5), (None, None))
    assert joint.n_samples == 4


DICTIONARIES = [pa.array(values).dictionary_encode() for values in (["b"], ["a", "b"])]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"x": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"]), "y": [0, 1, 0]}),
        pd.DataFrame(
            {"x": pd.array(["b", "a", "b"], dtype="string"), "y": pd.array([0, 1, 0], dtype="Int64")}
        ),
        pl.DataFrame({"x": pl.Series(["b", "a", "b"], dtype=pl.Categorical), "y": [0, 1, 0]}),
        pl.DataFrame({"x": pl.Series(["b", "a", "b"], dtype=pl.Enum(["c", "b", "a"])), "y": [0, 1, 0]}),
        pa.table({"x": pa.array(["b", "a", "b"]).dictionary_encode(), "y": [0, 1, 0]}),
        pa.table({"x": pa.chunked_array([DICTIONARIES[0], DICTIONARIES[1]]), "y": [0, 1, 0]}),
    ],
    ids=[
        "pandas categorical",
        "pandas nullable",
        "polars categorical",
        "polars enum",
        "pyarrow dictionary",
        "pyarrow dictionaries",
    ],
)
def test_categories_are_letters_only_where_they_occur(frame) -> None:
    joint = Joint.from_frame(frame, public="x", private="y")
    assert (joint.x_labels, joint.y_labels) == (("a", "b"), (0, 1))
    np.testing.assert_allclose(joint.p_xy, [[0, 1 / 3], [2 / 3, 0]])


def test_a_column_may_have_the_name_of_the_count() -> None:
    joint = Joint.from_frame(pl.DataFrame({"n": [1, 2], "n_": [3, 3]}), public="n", private="n_")
    assert (joint.x_labels, joint.n_samples) == ((1, 2), 2)


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, dict]]:
    """Rows and options of every lazy frame that is brought into memory."""
    seen: list[tuple[int, dict]] = []
    original = nw.LazyFrame.collect

    def collect(self, *args, **options):
        frame = original(self, *args, **options)
        seen.append((len(frame), options))
        return frame

    monkeypatch.setattr(nw.LazyFrame, "collect", collect)
    return seen


def lazy_records(name: str, n: int):
    """n lazy records with three public letters and two private ones."""
    if name == "polars":
        row = pl.int_range(n, dtype=pl.Int64)
        return pl.LazyFrame().select(a=row % 3, b=row % 2, unique=row)
    return duckdb.connect().sql(f'SELECT range % 3 AS a, range % 2 AS b, range AS "unique" FROM range({n})')


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_only_the_grouped_counts_of_a_lazy_frame_reach_memory(name: str, collected: list) -> None:
    joint = Joint.from_frame(lazy_records(name, 600_000), public="a", private="b")
    np.testing.assert_allclose(joint.p_xy, np.full((3, 2), 1 / 6))
    assert joint.n_samples == 600_000
    assert [rows for rows, _ in collected] == [6]
    if name == "polars":
        assert collected[0][1] == {"engine": "streaming"}


@pytest.mark.parametrize("name", ["polars", "duckdb"])
def test_too_many_letters_of_a_lazy_frame_are_never_fetched(name, collected, monkeypatch) -> None:
    monkeypatch.setattr(counting, "_UNCHECKED_GROUPS", 100)
    with pytest.raises(InvalidInputError, match="'unique' has more than 10,000 distinct letters"):
        Joint.from_frame(lazy_records(name, 20_000), public="unique", private="b")
    assert sum(rows for rows, _ in collected) <= 102
    joint = Joint.from_frame(lazy_records(name, 200), public="unique", private="b")
    assert (joint.n_x, joint.n_samples) == (200, 200)


@pytest.mark.parametrize("name", ["pandas", "polars lazy", "duckdb"])
def test_a_million_letters_are_refused(name: str) -> None:
    frame = FRAMES[name]({"id": np.arange(10**6), "y": np.zeros(10**6, dtype=int)})
    with pytest.raises(InvalidInputError, match="'id' has more than 10,000 distinct letters; group or round"):
        Joint.from_frame(frame, public="id", private="y")


@frame_makers
def test_a_frame_without_rows_is_refused(make) -> None:
    empty = make({"a": np.array([], dtype=int), "y": np.array([], dtype=int)})
    with pytest.raises(InvalidJointError, match="no records; pass a table with at least one row"):
        Joint.from_frame(empty, public="a", private="y")


@frame_makers
@pytest.mark.parametrize(
    ("public", "private", "says"),
    [
        ("City", "sex", "no column 'City'; the closest is 'city'"),
        ("city", "salary", "no column 'salary'; the columns are 'city', 'rooms', 'sex', 'old'"),
        (["city", "sex"], ["sex"], "'sex' is both public and private"),
        ([], ["sex"], "no public column"),
        (["city"], [], "no private column"),
        (["city", "city"], ["sex"], "listed twice"),
        ([0], ["sex"], "by name, as text"),
        (0, "sex", "by name, as text"),
    ],
)
def test_columns_that_do_not_fit_are_refused(make, public, private, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Joint.from_frame(make(RECORDS), public=public, private=private)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        ({"x": [1], "y": [1]}, "a dict is no data frame.*Joint.from_samples"),
        (pl.DataFrame({"x": [[1], [2]], "y": [0, 1]}), "column 'x' holds List"),
        (pl.LazyFrame({"x": [{"a": 1}], "y": [0]}), "column 'x' holds Struct"),
        (pd.DataFrame({"x": [[1], [2]], "y": [0, 1]}), "not hashable"),
        (pd.DataFrame([[1, 2, 3]], columns=["x", "x", "y"]), "two columns have the same name; rename"),
    ],
)
def test_frames_of_the_wrong_kind_are_refused(frame, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Joint.from_frame(frame, public="x", private="y")


# Drawing records


@given(joints(max_x=4, max_y=4), st.integers(0, 2**32 - 1))
def test_records_are_drawn_from_the_joint(joint: Joint, seed: int) -> None:
    n = 4000
    x, y = joint.sample(n, rng=seed)
    counts = np.zeros((joint.n_x, joint.n_y))
    np.add.at(counts, (x, y), 1)
    assert counts[joint.p_xy == 0].sum() == 0
    # Ten standard deviations and a little for rare cells: fails for a wrong joint, never by chance.
    deviation = np.sqrt(joint.p_xy * (1 - joint.p_xy) / n)
    assert np.all(np.abs(counts / n - joint.p_xy) <= 10 * deviation + 10 / n)


def test_the_same_seed_draws_the_same_records_and_none_draws_others() -> None:
    joint = random_joint(np.random.default_rng(0), 6, 6)
    first, again, other = joint.sample(50, rng=7), joint.sample(50, rng=7), joint.sample(50)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_records_carry_the_labels_they_were_counted_from() -> None:
    records = [(("Oslo", 1), "f"), (("Rome", 2), None), (("Rome", None), "m")]
    x, y = zip(*records, strict=True)
    joint = Joint.from_samples(x, y, x_names=("city", "rooms"), missing="letter")
    drawn = joint.sample(200, rng=1)
    assert set(zip(*(part.tolist() for part in drawn), strict=True)) == set(records)
    assert Joint.from_samples(*drawn, x_names=("city", "rooms"), missing="letter").x_labels == joint.x_labels
    assert joint.sample(0)[0].shape == (0,)
    with pytest.raises(InvalidInputError, match="must not be negative"):
        joint.sample(-1)
