"""SparseChannel: what it computes from the nonzeros is what the whole table gives."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import sparse_twins
from hypothesis import given
from hypothesis import strategies as st
from strategies import channels, random_joint

import privacyfunnel as pf
from privacyfunnel import sparse
from privacyfunnel.combining import time_share
from privacyfunnel.errors import FileFormatError, InvalidInputError
from privacyfunnel.information import measure, mutual_information, pointwise_leakage, repeated_leakage
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.merging import merge_equal_rows, merge_symbols, merged
from privacyfunnel.sparse import SparseChannel
from privacyfunnel.uncertainty import held_out_leakage, highest_leakage, leakage_interval, utility_interval


def thin_table(rng: np.random.Generator, n_x: int, n_z: int, each: int = 3) -> np.ndarray:
    """A random channel with at most `each` nonzeros a row."""
    table = np.zeros((n_x, n_z))
    for row in table:
        at = rng.choice(n_z, rng.integers(1, each + 1), replace=False)
        row[at] = rng.dirichlet(np.ones(at.size))
    return table


@pytest.fixture
def always_thin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tables are computed with by their nonzeros too."""
    monkeypatch.setattr(sparse, "_SMALL", 0)
    monkeypatch.setattr(sparse, "_FULL", 2.0)


@given(st.data())
def test_sparse_products_are_those_of_the_table(data: st.DataObject) -> None:
    table = data.draw(channels(data.draw(st.integers(1, 6)), 7))
    channel = SparseChannel.from_dense(table)
    rng = np.random.default_rng(0)
    left, right = rng.random((3, len(table))), rng.random((table.shape[1], 2))
    assert np.array_equal(channel.dense(), table)
    assert channel.shape == table.shape
    assert left @ channel == pytest.approx(left @ table, abs=1e-14)
    assert left[0] @ channel == pytest.approx(left[0] @ table, abs=1e-14)
    assert channel @ right == pytest.approx(table @ right, abs=1e-14)
    assert np.array_equal((channel**2).dense(), table**2)
    assert np.array_equal(channel.max(), table.max(axis=0))
    assert channel.sum(axis=0) == pytest.approx(table.sum(axis=0), abs=1e-14)
    assert channel.sum(axis=1) == pytest.approx(table.sum(axis=1), abs=1e-14)
    some = rng.integers(len(table), size=5)
    assert np.array_equal(channel[some].dense(), table[some])
    assert np.array_equal(channel[1:].dense(), table[1:])


@given(st.data())
def test_sparse_draws_are_those_of_the_table(data: st.DataObject) -> None:
    table = data.draw(channels(data.draw(st.integers(1, 4)), 9))
    channel, cdf = SparseChannel.from_dense(table), sparse_twins.cumulative(table)
    edges = np.concatenate([cdf.ravel()[cdf.ravel() < 1], [0.0, 1 - 2**-53], np.linspace(0, 0.999, 30)])
    rows, u = np.repeat(np.arange(len(table)), edges.size), np.tile(edges, len(table))
    symbols = channel.draw(rows, u)
    assert np.array_equal(channel.cumulative, cdf[channel.rows, channel.symbols])
    assert np.array_equal(symbols, sparse_twins.draw(table, rows, u))
    assert np.all(table[rows, symbols] > 0)


def test_long_and_short_rows_are_drawn_alike() -> None:
    rng = np.random.default_rng(3)
    table = np.vstack([rng.dirichlet(np.full(1000, 0.05), size=7), thin_table(rng, 5, 1000)])
    table[0] = np.where(np.arange(1000) == 999, 1.0, 0.0)
    rows, u = rng.integers(12, size=200_001), rng.random(200_001)
    channel, cdf = SparseChannel.from_dense(table), sparse_twins.cumulative(table)
    assert np.array_equal(channel.cumulative, cdf[channel.rows, channel.symbols])
    expected = np.empty(rows.size, dtype=int)
    for row in range(12):
        expected[rows == row] = np.searchsorted(cdf[row], u[rows == row], side="right")
    assert np.array_equal(channel.draw(rows, u), expected)


@pytest.mark.parametrize("n_x", [1, 3, 500])
def test_many_numbers_are_drawn_as_few_are(n_x: int) -> None:
    """Also at the ends of the parts of [0, 1) that are looked up, and at those of the symbols."""
    rng = np.random.default_rng(n_x)
    channel = SparseChannel.from_dense(rng.dirichlet(np.full(40, 0.1), size=n_x))
    some = np.concatenate([np.arange(1024) / 1024, channel.cumulative[channel.cumulative < 1]])
    u = np.concatenate([some, np.nextafter(some, 0.0), np.nextafter(some, 1.0), rng.random(30_000)])
    u = np.clip(u, 0.0, 1 - 2**-53)
    rows = rng.integers(n_x, size=u.size)
    few = [channel.draw(rows[at : at + 1000], u[at : at + 1000]) for at in range(0, u.size, 1000)]
    assert np.array_equal(channel.draw(rows, u), np.concatenate(few))


def test_a_seed_gives_the_symbols_it_always_gave() -> None:
    """Of the table with its zeros; numbers written down before tables were stored by their nonzeros."""
    table = np.array([[0.2, 0.0, 0.3, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4, 0.0]])
    released = TableMechanism(table).release([0, 1, 2] * 8, rng=7)
    assert released == [4, 1, 3, 2, 1, 3, 0, 1, 3, 2, 1, 1, 2, 1, 2, 4, 1, 3, 4, 1, 1, 0, 1, 0]


@pytest.mark.parametrize("tolerance", [1e-12, 1e-4])
def test_merging_is_that_of_the_table(tolerance: float) -> None:
    rng = np.random.default_rng(5)
    for n_x, n_z in ((1, 4), (3, 5), (8, 30), (40, 60)):
        table = thin_table(rng, n_x, n_z, 4)
        table[:, rng.integers(n_z)] = 0.0
        doubled = np.hstack([0.25 * table, 0.5 * table * (1.0 + 1e-6 * rng.random(table.shape)), table])
        expected = sparse_twins.merged(doubled, tolerance)
        assert merge_symbols(doubled, tolerance) == pytest.approx(expected, abs=1e-15)
        assert merged(SparseChannel.from_dense(doubled), tolerance).shape == expected.shape


def test_nothing_to_merge_changes_nothing() -> None:
    table = thin_table(np.random.default_rng(0), 30, 10)
    table = table[:, table.any(axis=0)]
    assert merge_symbols(table) is table


@pytest.mark.parametrize("kind", ["dense", "zeros", "zero-row", "zero-column", "tiny"])
def test_measuring_does_not_depend_on_the_form(
    kind: str, always_thin: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(11)
    joint = random_joint(rng, 12, 3, kind)
    thin = TableMechanism.for_joint(joint, thin_table(rng, 12, 9))
    assert isinstance(thin.channel, SparseChannel)
    profile, posteriors = measure(thin, joint), thin.p_y_given_z(joint)
    thrice = repeated_leakage(thin, joint, 3)
    bound = repeated_leakage(thin, joint, 3, max_entries=0)
    lifts = pointwise_leakage(joint.p_xy, thin.channel)
    monkeypatch.setattr(sparse, "_SMALL", 10**9)
    assert isinstance(thin.channel, np.ndarray)
    assert vars(profile) == pytest.approx(vars(measure(thin, joint)), abs=1e-12)
    assert posteriors == pytest.approx(thin.p_y_given_z(joint), abs=1e-12)
    assert thrice.value == pytest.approx(repeated_leakage(thin, joint, 3).value, abs=1e-12)
    assert bound.value == pytest.approx(repeated_leakage(thin, joint, 3, max_entries=0).value, abs=1e-12)
    assert lifts == pytest.approx(pointwise_leakage(joint.p_xy, thin.channel), abs=1e-12)


def test_intervals_do_not_depend_on_the_form(always_thin: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # The two forms merge equal rows in different orders, which the draws would follow.
    monkeypatch.setattr("privacyfunnel.uncertainty.merge_equal_rows", lambda p_xy, table: (p_xy, table))
    rng = np.random.default_rng(2)
    joint = pf.Joint.from_counts(rng.integers(0, 9, size=(15, 2)))
    mechanism = TableMechanism.for_joint(joint, thin_table(rng, 15, 10))

    def intervals() -> list[float]:
        found = [
            leakage_interval(mechanism, joint, n_draws=100, rng=0),
            leakage_interval(mechanism, joint, n_draws=100, rng=0, held_out=True),
            utility_interval(mechanism, joint, n_draws=100, rng=0),
        ]
        held = held_out_leakage(mechanism, joint, n_draws=100, rng=0).value
        high = highest_leakage(mechanism, joint)
        return [*(end for one in found for end in (one.low, one.high)), high, held]

    thin = intervals()
    monkeypatch.setattr(sparse, "_SMALL", 10**9)
    assert thin == pytest.approx(intervals(), abs=1e-12)


def test_equal_rows_are_merged() -> None:
    rng = np.random.default_rng(4)
    table = rng.dirichlet(np.ones(5), size=6)[[0, 1, 2, 0, 3, 4, 2, 5, 0]]
    table[:, 1] += table[:, 0]
    table[:, 0] = 0.0
    p_xy = rng.random((9, 3))
    merged_xy, few = merge_equal_rows(p_xy, SparseChannel.from_dense(table))
    dense_xy, rows = merge_equal_rows(p_xy, table)
    assert few.shape == rows.shape == (6, 5)
    assert merged_xy.T @ few == pytest.approx(p_xy.T @ table, abs=1e-14)
    assert merged_xy.T @ few**2 == pytest.approx(dense_xy.T @ rows**2, abs=1e-14)


def test_compose_repeat_and_share_by_the_nonzeros() -> None:
    rng = np.random.default_rng(8)
    first, second = thin_table(rng, 6, 5), thin_table(rng, 5, 4)
    one, two = TableMechanism(first), TableMechanism(second)
    assert one.compose(two).p_z_given_x == pytest.approx(first @ second, abs=1e-15)
    twice = (first[:, :, None] * first[:, None, :]).reshape(6, -1)
    assert np.array_equal(one.repeat(2).p_z_given_x, twice)
    shared = time_share([one, TableMechanism(first)], [0.25, 0.75])
    assert shared.p_z_given_x == pytest.approx(sparse_twins.merged(first, 1e-12), abs=1e-15)


# Files


def test_files_hold_the_nonzeros(tmp_path: Path) -> None:
    table = thin_table(np.random.default_rng(1), 200, 300)
    mechanism = TableMechanism(table, marginal=table.mean(axis=0))
    mechanism.save(tmp_path / "m.json")
    loaded = pf.load(tmp_path / "m.json")
    assert np.array_equal(loaded.p_z_given_x, table)
    assert np.array_equal(loaded.marginal, mechanism.marginal)
    payload = json.loads((tmp_path / "m.json").read_text())["payload"]
    assert len(payload["probabilities"]) == np.count_nonzero(table)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row_starts": [0, 1]}, "from 0 to the entries"),
        ({"row_starts": [1, 1, 3]}, "from 0 to the entries"),
        ({"row_starts": [0, 2.5, 3]}, "from 0 to the entries"),
        ({"row_starts": [0, 5, 3]}, "rows must follow"),
        ({"row_starts": "012"}, "'row_starts' is missing or not a list"),
        ({"symbols": [0, 1]}, "one probability for each symbol"),
        ({"symbols": [0, 0, 2]}, "symbols be from 0 to 1"),
        ({"symbols": [-1, 0, 1]}, "symbols be from 0 to 1"),
        ({"symbols": [1, 0, 1]}, "symbols of a row must rise"),
        ({"symbols": [0, 0, 1]}, "symbols of a row must rise"),
        ({"probabilities": [0.5, 0.6, 1]}, "row 0 sums to 1.1"),
        ({"probabilities": [1.5, -0.5, 1]}, "not negative"),
        ({"probabilities": ["a", 0.5, 1]}, "lists of numbers"),
        ({"probabilities": [10**400, 0.5, 1]}, "damaged"),
        ({"z_labels": [0]}, "symbols be from 0 to 0"),
        ({"x_labels": ["a"]}, "x_labels must have 2 entries"),
    ],
)
def test_bad_nonzeros_give_one_sentence(changes: dict, message: str, tmp_path: Path) -> None:
    payload = {"x_names": ["x"], "x_labels": ["a", "b"], "z_labels": [0, 1], "row_starts": [0, 2, 3]}
    payload |= {"symbols": [0, 1, 1], "probabilities": [0.5, 0.5, 1.0], **changes}
    document = {"format": "privacyfunnel", "kind": "table-mechanism", "version": 2, "payload": payload}
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match=message):
        pf.load(tmp_path / "m.json")


# Sizes


def test_a_hundred_thousand_letters_need_no_table(tmp_path: Path) -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    joint = pf.Joint.from_counts(rng.integers(1, 5, size=(n, 2)), x_names=["job"])
    pairs = SparseChannel.from_entries(
        np.repeat(np.arange(n), 2),
        (np.arange(2 * n) // 3),
        np.tile([0.25, 0.75], n),
        (n, 2 * n // 3 + 1),
    )
    tracemalloc.start()
    mechanism = TableMechanism.for_joint(joint, pairs)
    identity = TableMechanism.identity(joint)
    assert mutual_information(joint.p_xy) == pytest.approx(measure(identity, joint).leakage, abs=1e-12)
    profile = measure(mechanism, joint)
    assert 0 < profile.leakage < joint.mutual_information
    assert 0 < profile.utility < joint.entropy_x
    letters = rng.integers(n, size=1000)
    drawn = mechanism.release(letters, rng=1)
    assert np.all((drawn == 2 * letters // 3) | (drawn == (2 * letters + 1) // 3))
    mechanism.save(tmp_path / "m.json")
    assert np.array_equal(pf.load(tmp_path / "m.json").release(letters, rng=1), drawn)
    assert mechanism.compose(TableMechanism(np.ones((mechanism.n_z, 1)))).n_z == 1
    shared = time_share([mechanism, identity], [0.5, 0.5])
    average = 0.5 * profile.utility + 0.5 * joint.entropy_x
    assert measure(shared, joint).utility == pytest.approx(average, abs=1e-9)
    assert tracemalloc.get_traced_memory()[1] < 700e6
    tracemalloc.stop()
    with pytest.raises(InvalidInputError, match=r"100,000 letters and 66,667 symbols needs .* GiB"):
        _ = mechanism.p_z_given_x
    with pytest.raises(InvalidInputError, match="GiB"):
        mechanism.p_x_given_z(joint.p_x)


def test_columns_are_looked_up_by_their_codes() -> None:
    labels = [(f"a{i // 7}", None if i % 7 == 6 else i % 7) for i in range(700)]
    mechanism = TableMechanism(np.eye(700), x_labels=labels, x_names=["a", "b"])
    rng = np.random.default_rng(0)
    rows = rng.integers(700, size=5000)
    text = pa.array([labels[row][0] for row in rows])
    number = pa.array([labels[row][1] for row in rows])
    plain = pa.table({"a": text, "b": number})
    coded = pa.table({"a": text.dictionary_encode(), "b": number.dictionary_encode()})
    pieces = pa.concat_tables([coded.slice(0, 3000), coded.slice(3000)])
    for table in (plain, coded, pieces):
        assert mechanism.release_frame(table)["z"].to_pylist() == rows.tolist()
    strange = pa.table({"a": ["a1", "a1", "zz", None], "b": pa.array([1, 99, 1, 1])})
    letters = mechanism._letters.search_columns([strange["a"], strange["b"]])
    assert letters.tolist() == [8, -1, -1, -1]
