"""TableMechanism: construction, release of values and frames, posteriors, composition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from strategies import channels, joints, mechanisms_on_joints, random_joint

from privacyfunnel import arrays
from privacyfunnel.alphabet import canonical_label
from privacyfunnel.errors import InvalidInputError, UnknownLetterError
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import Mechanism, TableMechanism

NAN = float("nan")


@pytest.fixture
def coder() -> TableMechanism:
    """A deterministic mechanism with a letter for missing values, so that what comes out is known."""
    return TableMechanism(
        np.eye(3), x_labels=["a", "b", None], z_labels=["A", "B", "missing"], x_names=["job"]
    )


@pytest.fixture
def pair_coder() -> TableMechanism:
    letters = [("a", 1), ("a", 2), ("b", 1), ("b", None)]
    return TableMechanism(np.eye(4), x_labels=letters, x_names=["job", "age"])


def assert_frequencies(symbols: np.ndarray, p: np.ndarray) -> None:
    """Symbols 0, 1, … occur as often as p says; a correct mechanism fails once in 10⁹ runs."""
    counts = np.bincount(symbols, minlength=p.size)
    assert counts[p == 0].sum() == 0
    assert chisquare(counts[p > 0], p[p > 0] * symbols.size).pvalue > 1e-9


def test_assert_frequencies_can_fail() -> None:
    wrong = np.repeat([0, 1], [5400, 4600])
    with pytest.raises(AssertionError):
        assert_frequencies(wrong, np.array([0.5, 0.5]))
    with pytest.raises(AssertionError):
        assert_frequencies(np.array([0, 1]), np.array([1.0, 0.0]))


# Construction


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.4]], r"row 0 sums to 0\.9"),
        ([[1, 0], [0.5, 0.5 + 1e-8]], "row 1 sums"),
        ([[1.5, -0.5]], r"entry \[0, 1\] is -0\.5"),
        ([[1, 0], [NAN, 1]], r"entry \[1, 0\] is nan"),
        ([[math.inf, 0]], r"entry \[0, 0\] is inf"),
        ([0.5, 0.5], r"shape is \(2,\)"),
        ([[]], "non-empty"),
        ([["a"]], "table of numbers"),
        ([[1], [1, 0]], "table of numbers"),
    ],
)
def test_bad_tables_are_refused(table: list, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TableMechanism(table)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"x_labels": ["a"]}, "x_labels must have 2 entries"),
        ({"z_labels": ["a", "a"]}, "z_labels must be distinct"),
        ({"x_labels": [None, NAN]}, "x_labels must be distinct"),
        ({"x_labels": [["a"], "b"]}, "hashable"),
    ],
)
def test_bad_labels_are_refused(labels: dict, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        TableMechanism(np.eye(2), **labels)


def test_table_is_a_read_only_copy() -> None:
    table = np.eye(2)
    mechanism = TableMechanism(table)
    table[0, 0] = 7
    assert mechanism.p_z_given_x[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        mechanism.p_z_given_x[0, 0] = 0
    with pytest.raises(AttributeError):
        mechanism.x_names = ("other",)  # type: ignore[misc]


def test_labels_become_plain_python_values() -> None:
    labels = [np.int64(3), np.str_("a"), np.float64("nan"), (np.bool_(True), pd.NA), pd.NaT]
    assert [canonical_label(label) for label in labels] == [3, "a", None, (True, None), None]
    assert [type(canonical_label(label)) for label in labels[:2]] == [int, str]


def test_identity_and_constant_are_the_two_ends() -> None:
    joint = Joint([[0.3, 0.1], [0.2, 0.4]], x_labels=["a", "b"], x_names=["job"])
    identity, constant = TableMechanism.identity(joint), TableMechanism.constant(joint)
    assert identity.release(["a", "b", "a"]) == ["a", "b", "a"]
    assert constant.release(["a", "b"]) == [0, 0]
    both = utility_and_leakage(joint.p_xy, identity.p_z_given_x)
    assert both == pytest.approx((joint.entropy_x, joint.mutual_information), abs=1e-15)
    assert utility_and_leakage(joint.p_xy, constant.p_z_given_x) == (0, 0)
    assert isinstance(identity, Mechanism)
    assert repr(identity) == "TableMechanism(job: 2 letters → 2 symbols)"


# Random numbers and inverse distribution functions


@pytest.mark.parametrize("byte", [b"\x00", b"\xff"])
def test_impossible_symbols_are_never_drawn_at_either_end(
    byte: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays.os, "urandom", lambda n: byte * n)
    short = [0.0, 0.1, 0.2, 0.7 - 9e-10, 0.0]  # sums to a little less than 1
    long = [0.0, 0.1, 0.2, 0.7 + 9e-10, 0.0]
    tenths = [*[0.1] * 10, 0.0]  # their running sum ends at 0.9999999999999999
    for row in (short, long, tenths, [1e-300, 1, 0], [0, 1, 1e-300], [5e-324, 1.0]):
        symbol = TableMechanism([row]).release(0)
        assert row[symbol] > 0


@pytest.mark.parametrize("n_x", [1, 3, 700, 9000])
def test_sixteen_bits_that_tell_a_symbol_are_those_of_a_whole_number(
    n_x: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the other 37 bits, the symbol is that of the number; where it is not, they are drawn."""
    rng = np.random.default_rng(n_x)
    table = TableMechanism(rng.dirichlet(np.full(5, 0.2), size=n_x)).sparse
    rows, given = rng.integers(n_x, size=40_000), []

    def entropy(n: int) -> bytes:
        given.append(rng.bytes(n))
        return given[-1]

    monkeypatch.setattr(arrays.os, "urandom", entropy)
    drawn = table.draw_anew(rows)
    if n_x == 9000:  # too many letters for a table of parts
        u = (np.frombuffer(given[0], np.uint64) >> np.uint64(11)) * 2.0**-53
        assert np.array_equal(drawn, table.draw(rows, u))
        return
    heads, tails = np.frombuffer(given[0], np.uint16).astype(np.int64), np.frombuffer(given[1], np.uint64)
    lowest, highest = heads * 2.0**-16, (heads * 2**37 + 2**37 - 1) * 2.0**-53
    low, high = table.draw(rows, lowest), table.draw(rows, highest)
    assert np.all((low <= drawn) & (drawn <= high))
    n_parts, _, more = table._guide
    several = more[rows * n_parts + heads * n_parts // 2**16] > 0
    assert 0 < several.sum() == tails.size < rows.size / 2 or n_x == 1
    assert np.array_equal(low[~several], drawn[~several])
    assert np.array_equal(low[~several], high[~several])
    u = lowest.copy()
    u[several] += (tails >> np.uint64(27)) * 2.0**-53
    assert np.array_equal(drawn, table.draw(rows, u))


def test_operating_system_entropy_is_the_default() -> None:
    mechanism = TableMechanism([[0.2, 0.3, 0.0, 0.5]])
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (mechanism.release(np.zeros(20_000, dtype=int)) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002
    assert_frequencies(first, mechanism.p_z_given_x[0])
    assert_frequencies(second, mechanism.p_z_given_x[0])


def test_uniform_numbers_from_bytes() -> None:
    u = arrays.uniform(50_000, None)
    assert u.dtype == np.float64
    assert 0 <= u.min() < u.max() < 1
    assert np.array_equal(u * 2.0**53, np.rint(u * 2.0**53))
    assert chisquare(np.bincount((u * 64).astype(int), minlength=64)).pvalue > 1e-9
    low_bits = (u * 2.0**53).astype(np.uint64) & np.uint64(63)
    assert chisquare(np.bincount(low_bits.astype(int), minlength=64)).pvalue > 1e-9


def test_seeds_reproduce_and_generators_move_on() -> None:
    mechanism = TableMechanism([[0.5, 0.5], [0.1, 0.9]])
    x = np.arange(1000) % 2
    assert np.array_equal(mechanism.release(x, rng=7), mechanism.release(x, rng=7))
    generator = np.random.default_rng(7)
    assert np.array_equal(mechanism.release(x, rng=generator), mechanism.release(x, rng=7))
    assert not np.array_equal(mechanism.release(x, rng=generator), mechanism.release(x, rng=7))
    for row in range(2):
        assert_frequencies(mechanism.release(np.full(9000, row), rng=1), mechanism.p_z_given_x[row])


@pytest.mark.parametrize("rng", ["seed", 1.5, -1, True, np.random.RandomState(0)])
def test_other_sources_of_randomness_are_refused(rng: object) -> None:
    with pytest.raises(InvalidInputError, match="rng must be None, a whole number"):
        TableMechanism([[1.0]]).release(0, rng=rng)  # type: ignore[arg-type]


# Release of values and arrays


def test_single_values_give_single_symbols(coder: TableMechanism, pair_coder: TableMechanism) -> None:
    assert coder.release("a") == "A"
    assert coder.release(np.str_("b")) == "B"
    assert coder.release(np.array("b")) == "B"
    for missing in (None, NAN, np.nan, pd.NA, pd.NaT):
        assert coder.release(missing) == "missing"
    assert pair_coder.release(("b", 1)) == 2
    assert pair_coder.release(("b", NAN)) == 3


def test_sequences_give_the_same_kind(coder: TableMechanism, pair_coder: TableMechanism) -> None:
    assert coder.release(["a", NAN, "b"]) == ["A", "missing", "B"]
    assert coder.release(("a", "b")) == ["A", "B"]
    assert coder.release([]) == []
    array = coder.release(np.array([["a", "b"], ["b", "b"]]))
    assert array.tolist() == [["A", "B"], ["B", "B"]]
    assert coder.release(np.array(["a", None, NAN], dtype=object)).tolist() == ["A", "missing", "missing"]
    assert coder.release(pd.Index(["b", "a"])).tolist() == ["B", "A"]
    assert pair_coder.release([("a", 2), ("b", None)]) == [1, 3]
    assert pair_coder.release(np.array([["a", 2], ["b", None]], dtype=object)).tolist() == [1, 3]
    assert coder.release(np.array([])).shape == (0,)


@pytest.mark.parametrize("dtype", ["i1", "u8", ">i4", "f2", "f4", "f8", ">f8", "g", "O"])
def test_numbers_of_any_width_are_letters(dtype: str) -> None:
    mechanism = TableMechanism(np.eye(3), x_labels=[5, 7, 11], z_labels=[50, 70, 110])
    released = mechanism.release(np.array([11, 5, 5, 7]).astype(dtype))
    assert released.tolist() == [110, 50, 50, 70]
    assert released.dtype == np.int64


def test_large_whole_numbers_are_not_rounded() -> None:
    mechanism = TableMechanism(np.eye(2), x_labels=[2**53, 2**53 + 1])
    assert mechanism.release(np.array([2**53 + 1, 2**53])).tolist() == [1, 0]


def test_dates_are_letters() -> None:
    days = np.array(["2020-01-01", "2021-02-03"], dtype="datetime64[ns]")
    labels = days.astype("datetime64[us]").tolist()
    assert TableMechanism(np.eye(2), x_labels=labels).release(days).tolist() == [0, 1]


def test_symbols_of_mixed_types_come_out_as_they_are() -> None:
    mechanism = TableMechanism(np.eye(4), z_labels=[1, "one", None, (1, 2)])
    assert mechanism.release(np.arange(4)).tolist() == [1, "one", None, (1, 2)]
    assert mechanism.release([3, 2]) == [(1, 2), None]
    # A fixed-width array would cut the trailing zero characters off.
    assert TableMechanism(np.eye(2), z_labels=["a\0", "a"]).release(np.arange(2)).tolist() == ["a\0", "a"]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ("c", r"'c' is not one of the 3 letters of 'job'; drop or recode"),
        (["a", "c"], "'c' in row 1 is not"),
        (np.array(["a", "b", "zz"]), "'zz' in row 2 is not"),
        (np.array(["a", 1], dtype=object), "1 in row 1 is not"),
        ([["a"]], r"\['a'\] in row 0 is not"),
        (pd.Series(["a", "q"]), "'q' in row 1 is not"),
        (pd.Series(["a", 5]), "5 in row 1 is not"),
        (pl.Series(["a", "b", "q"]), "'q' in row 2 is not"),
        ({}, "{} is not"),
    ],
)
def test_unknown_letters_are_named(coder: TableMechanism, x: object, message: str) -> None:
    with pytest.raises(UnknownLetterError, match=message):
        coder.release(x)


def test_unknown_letters_say_the_remedy(pair_coder: TableMechanism) -> None:
    numbers = TableMechanism(np.eye(2), x_labels=[1, 2])
    with pytest.raises(UnknownLetterError, match="type int and the value of type str: convert"):
        numbers.release("1")
    with pytest.raises(UnknownLetterError, match=r"None in row 1 .* missing='letter'"):
        numbers.release(np.array([1, NAN]))
    with pytest.raises(UnknownLetterError, match=r"\('a', 7\) in row 1 .* 'job', 'age'"):
        pair_coder.release([("a", 1), ("a", 7)])


# Release of columns and frames

FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_a_missing_text_is_no_empty_one(kind: pa.DataType, coder: TableMechanism) -> None:
    table = pa.table({"job": pa.array(["b", None, "a"], kind)})
    assert coder.release_frame(table).to_pydict() == {"z": ["B", "missing", "A"]}
    with pytest.raises(UnknownLetterError, match="''"):
        coder.release_frame(pa.table({"job": pa.array(["b", None, ""], kind)}))


def as_lists(frame: object) -> dict[str, list]:
    if isinstance(frame, pd.DataFrame):
        return {name: frame[name].tolist() for name in frame}
    return frame.to_pydict() if isinstance(frame, pa.Table) else frame.to_dict(as_series=False)  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_lose_the_public_column(kind: str, coder: TableMechanism) -> None:
    frame = FRAMES[kind]({"key": [1, 2, 3], "job": ["b", None, "a"], "sex": ["f", "m", "f"]})
    assert as_lists(coder.release_frame(frame)) == {"z": ["B", "missing", "A"]}
    released = coder.release_frame(frame, keep="all")
    assert type(released) is type(frame)
    assert list(as_lists(released)) == ["key", "z", "sex"]
    assert as_lists(released)["z"] == ["B", "missing", "A"]
    assert as_lists(released)["sex"] == ["f", "m", "f"]
    assert as_lists(frame)["key"] == [1, 2, 3]
    assert "job" in as_lists(frame)
    kept = coder.release_frame(frame, keep=["sex", "key"], keep_public=True, output="job released")
    assert list(as_lists(kept)) == ["key", "job", "job released", "sex"]
    assert as_lists(coder.release_frame(frame, output="job"))["job"] == ["B", "missing", "A"]
    empty = coder.release_frame(frame[:0] if kind != "pyarrow" else frame.slice(0, 0))
    assert as_lists(empty) == {"z": []}


@pytest.mark.parametrize("kind", FRAMES)
def test_several_public_columns(kind: str, pair_coder: TableMechanism) -> None:
    columns = {"age": [2, 1, None], "key": [7, 8, 9], "job": ["a", "b", "b"]}
    released = as_lists(pair_coder.release_frame(FRAMES[kind](columns), keep="key"))
    assert released == {"key": [7, 8, 9], "z": [1, 2, 3]}
    renamed = FRAMES[kind]({"AGE": columns["age"], "JOB": columns["job"]})
    assert as_lists(pair_coder.release_frame(renamed, ["JOB", "AGE"]))["z"] == [1, 2, 3]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", None, "a"], index=[5, 5, 2]),
        pd.Series(["b", None, "a"], dtype="category"),
        pd.Series(["b", None, "a"], dtype=object, name="job"),
        pl.Series("job", ["b", None, "a"]),
        pl.Series("job", ["b", None, "a"], dtype=pl.Categorical),
        pl.Series("job", ["b", None, "a"], dtype=pl.Enum(["z", "a", "b"])),
        pa.chunked_array([["b", None], ["a"]]),
    ],
)
def test_columns_of_any_kind(column: object, coder: TableMechanism) -> None:
    released = coder.release(column)
    assert type(released) is type(column)
    assert (released.to_pylist() if isinstance(released, pa.ChunkedArray) else list(released)) == [
        "B",
        "missing",
        "A",
    ]
    if isinstance(column, pd.Series):
        assert released.index.equals(column.index)
        assert released.name == column.name


@given(st.data())
def test_columns_are_looked_up_like_tuples(data: st.DataObject) -> None:
    """The column-wise look-up against a dictionary, with letters the data lack and parts in common."""
    part = st.one_of(st.none(), st.integers(0, 3))
    letters = data.draw(st.lists(st.tuples(part, part, part), min_size=1, max_size=12, unique=True))
    rows = data.draw(st.lists(st.sampled_from(letters), max_size=20))
    mechanism = TableMechanism(np.eye(len(letters)), x_labels=letters, x_names=["a", "b", "c"])
    columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("abc")}
    released = mechanism.release_frame(pa.table(columns))["z"].to_pylist()
    assert released == [letters.index(row) for row in rows]
    stranger = data.draw(st.tuples(part, part, part))
    if stranger not in letters:
        rows = [*rows, stranger]
        columns = {name: pa.array([row[i] for row in rows], pa.int64()) for i, name in enumerate("abc")}
        with pytest.raises(UnknownLetterError, match=f"^release_frame: 1 of {len(rows)} record"):
            mechanism.release_frame(pa.table(columns))
        left = mechanism.release_frame(pa.table(columns), unknown="drop")["z"].to_pylist()
        assert left == released


def test_alphabets_too_large_for_a_table_are_found_by_bisection() -> None:
    rng = np.random.default_rng(0)
    letters = list(dict.fromkeys(map(tuple, rng.integers(5000, size=(3000, 2)).tolist())))
    channel = np.full((len(letters), 1), 1.0)
    mechanism = TableMechanism(channel, x_labels=letters, x_names=["a", "b"])
    rows = [letters[i] for i in rng.permutation(len(letters))]
    arrays = [pa.array([row[i] for row in rows]) for i in range(2)]
    found = mechanism._letters.find_columns(arrays)
    assert [letters[i] for i in found] == rows
    known = set(letters)
    stranger = next((a, b) for a, _ in letters for _, b in letters if (a, b) not in known)
    with pytest.raises(UnknownLetterError, match=f"{stranger[0]}, {stranger[1]}"):
        mechanism._letters.find_columns(
            [pa.array([*(row[i] for row in rows), stranger[i]]) for i in range(2)]
        )


def test_frames_that_cannot_be_released(coder: TableMechanism, pair_coder: TableMechanism) -> None:
    frame = pd.DataFrame({"job": ["a"], "z": [1]})
    with pytest.raises(InvalidInputError, match="already has a column 'z'; pass another name as output"):
        coder.release_frame(frame, keep="z")
    with pytest.raises(InvalidInputError, match=r"no column 'job'; the columns are 'work'; pass columns="):
        coder.release_frame(pd.DataFrame({"work": ["a"]}))
    with pytest.raises(InvalidInputError, match="a lazy frame has no rows to put in random order"):
        coder.release_frame(pl.LazyFrame({"job": ["a"]}), shuffle=True)
    with pytest.raises(InvalidInputError, match=r"a data frame is needed.*this is a list"):
        coder.release_frame(["a"])
    for nested in (pl.DataFrame({"job": [["a"]]}), pa.table({"job": [{"b": "a"}]})):
        with pytest.raises(
            InvalidInputError, match=r"'job' holds \w+\(.*\), not single values; pick a field"
        ):
            coder.release_frame(nested)
    with pytest.raises(InvalidInputError, match="use release_frame"):
        coder.release(frame)
    with pytest.raises(InvalidInputError, match="as many columns as a letter has parts"):
        pair_coder.release_frame(frame, "job", output="symbol")


def test_frame_symbols_of_several_types_become_text(coder: TableMechanism) -> None:
    mixed = coder.relabel([1, "one", None])
    assert as_lists(mixed.release_frame(pl.DataFrame({"job": ["a", "b", None]})))["z"] == ["1", "one", None]
    numbers = coder.relabel([1, 0.5, 2])
    assert as_lists(numbers.release_frame(pl.DataFrame({"job": ["a", "b", None]})))["z"] == [1.0, 0.5, 2.0]
    with pytest.raises(InvalidInputError, match="read the same as text"):
        coder.relabel([1, "1", None]).release_frame(pl.DataFrame({"job": ["a"]}))


def test_frame_and_array_draw_the_same_symbols() -> None:
    mechanism = TableMechanism(random_joint(np.random.default_rng(0), 4, 3).p_xy * 0 + 1 / 3)
    x = np.arange(300) % 4
    frame = mechanism.release_frame(pl.DataFrame({"x": x}), rng=5)
    assert (
        frame["z"].to_list() == mechanism.release(x, rng=5).tolist() == mechanism.release(x.tolist(), rng=5)
    )


# Posteriors, composition, repetition, names


@given(mechanisms_on_joints())
def test_posteriors_are_bayes_rule(case: tuple[Joint, list[TableMechanism]]) -> None:
    joint, (mechanism,) = case
    p_z = mechanism.p_z(joint.p_x)
    p_x_given_z, p_y_given_z = mechanism.p_x_given_z(joint.p_x), mechanism.p_y_given_z(joint)
    for z in range(mechanism.n_z):
        channel = mechanism.p_z_given_x[:, z]
        total = math.fsum(joint.p_x * channel)
        assert p_z[z] == pytest.approx(total, rel=1e-12, abs=1e-15)
        if total == 0:
            assert not p_x_given_z[z].any()
            assert not p_y_given_z[z].any()
            continue
        for x in range(joint.n_x):
            assert p_x_given_z[z, x] == pytest.approx(
                joint.p_x[x] * channel[x] / total, rel=1e-12, abs=1e-300
            )
        for y in range(joint.n_y):
            expected = math.fsum(joint.p_xy[:, y] * channel) / total
            assert p_y_given_z[z, y] == pytest.approx(expected, rel=1e-10, abs=1e-300)


def test_posteriors_survive_underflow() -> None:
    mechanism = TableMechanism([[1 - 1e-200, 1e-200], [1, 3e-200], [1, 0]])
    p_x = np.array([1e-200, 1e-200, 1])
    assert mechanism.p_x_given_z(p_x)[1] == pytest.approx([0.25, 0.75, 0], rel=1e-14)


@pytest.mark.parametrize("p_x", [[1.0], [0.5, 0.6], [-0.5, 1.5], [NAN, 1]])
def test_posteriors_need_a_distribution(p_x: list) -> None:
    with pytest.raises(InvalidInputError, match="p_x must"):
        TableMechanism(np.eye(2)).p_z(p_x)


@given(st.data())
def test_composition_is_the_sum_over_the_middle(data: st.DataObject) -> None:
    joint = data.draw(joints(max_x=4, max_y=3))
    first = TableMechanism(data.draw(channels(joint.n_x, 4)), x_labels=[f"x{i}" for i in range(joint.n_x)])
    second = TableMechanism(data.draw(channels(first.n_z, 4)), x_labels=first.z_labels[::-1])
    both = first.compose(second)
    assert both.x_labels == first.x_labels
    assert both.z_labels == second.z_labels
    for x, z in itertools.product(range(first.n_x), range(second.n_z)):
        paths = (
            first.p_z_given_x[x, m] * second.p_z_given_x[second.x_labels.index(first.z_labels[m]), z]
            for m in range(first.n_z)
        )
        assert both.p_z_given_x[x, z] == pytest.approx(math.fsum(paths), abs=1e-14)
    before = utility_and_leakage(joint.p_xy, first.p_z_given_x)
    after = utility_and_leakage(joint.p_xy, both.p_z_given_x)
    assert after[0] <= before[0] + 1e-12
    assert after[1] <= before[1] + 1e-12


def test_composition_needs_matching_labels(coder: TableMechanism) -> None:
    with pytest.raises(InvalidInputError, match="the symbol 'A' is not a letter of the second mechanism"):
        coder.compose(coder)


def test_row_sums_stay_valid_through_products() -> None:
    loose = TableMechanism([[0.5, 0.5 + 9e-10], [0.25, 0.75 + 9e-10]])
    for derived in (loose.compose(loose), loose.repeat(5), loose.compose(loose).compose(loose)):
        assert np.abs(derived.p_z_given_x.sum(axis=1) - 1).max() < 1e-12


@given(st.data(), st.integers(1, 3))
def test_repetition_is_the_product(data: st.DataObject, k: int) -> None:
    mechanism = TableMechanism(data.draw(channels(data.draw(st.integers(1, 3)), 3)))
    several = mechanism.repeat(k)
    assert several.z_labels == tuple(itertools.product(mechanism.z_labels, repeat=k))
    for x, (at, symbols) in itertools.product(range(mechanism.n_x), enumerate(several.z_labels)):
        expected = math.prod(mechanism.p_z_given_x[x, z] for z in symbols)
        assert several.p_z_given_x[x, at] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_repetition_needs_a_whole_number(k: object) -> None:
    with pytest.raises(InvalidInputError, match="k must be a whole number"):
        TableMechanism(np.eye(2)).repeat(k)  # type: ignore[arg-type]


def test_repetition_refuses_huge_tables() -> None:
    with pytest.raises(InvalidInputError, match="repeated_leakage measures them without the table"):
        TableMechanism(np.eye(10)).repeat(8)


def test_symbols_can_be_named(coder: TableMechanism) -> None:
    assert coder.relabel(["low", "high", "none"]).release(["b", None]) == ["high", "none"]
    assert coder.relabel({"A": "first"}).z_labels == ("first", "B", "missing")
    with pytest.raises(InvalidInputError, match="'C' is not a symbol"):
        coder.relabel({"C": "third"})
    with pytest.raises(InvalidInputError, match="must be distinct"):
        coder.relabel({"A": "B"})


def test_to_frame_lists_every_probability(pair_coder: TableMechanism) -> None:
    mechanism = TableMechanism(
        [[0.25, 0.75], [1, 0]], x_labels=[("a", 1), ("b", None)], x_names=["job", "age"]
    )
    frame = mechanism.to_frame()
    assert as_lists(frame) == {
        "job": ["a", "a", "b", "b"],
        "age": [1, 1, None, None],
        "z": [0, 1, 0, 1],
        "probability": [0.25, 0.75, 1, 0],
    }
    with pytest.raises(InvalidInputError, match="different names"):
        TableMechanism([[1.0]], x_names=["z"]).to_frame()
    assert list(TableMechanism([[1.0]], x_names=["z"]).to_frame("symbol")) == ["z", "symbol", "probability"]
