"""Mixed frames as points and levels, and frames of the same schema drawn from symbols."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mixed_frames import FRAMES, N, dtypes, lists, people, tables_of
from scipy.sparse import csr_array

from privacyfunnel.certified.tables import ColumnTables, TableSchema, _grouped, _merged
from privacyfunnel.datasets import load_adult
from privacyfunnel.errors import FileFormatError, InvalidInputError
from privacyfunnel.sparse import SparseChannel


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_comes_back_with_its_columns_types_and_kind(kind: str) -> None:
    frame = people(kind)
    tables = tables_of(frame, np.arange(N) % 3, drop="member")
    wanted = {name: dtype for name, dtype in dtypes(frame).items() if name != "member"}
    for released in (tables.draw([0, 1, 2] * 50, 0), tables.typical([0, 1, 2])):
        assert type(released) is type(frame)
        assert dtypes(released) == wanted
        assert list(dtypes(released)) == list(wanted)
    assert len(tables.draw([], 0)) == 0
    assert dtypes(tables.draw([], 0)) == wanted


@pytest.mark.parametrize("kind", FRAMES)
def test_a_saved_rule_draws_the_same(kind: str) -> None:
    tables = tables_of(people(kind), np.arange(N) % 3)
    again = ColumnTables.from_dict(json.loads(json.dumps(tables.to_dict(), allow_nan=False)))
    symbols = np.arange(300) % 3
    assert lists(again.draw(symbols, 5)) == lists(tables.draw(symbols, 5))
    assert lists(again.codebook()) == lists(tables.codebook())
    assert again.schema.report == tables.schema.report
    np.testing.assert_array_equal(again.schema.to_points(people()), tables.schema.to_points(people()))


def test_points_give_every_column_the_same_weight() -> None:
    schema = TableSchema.read(people())
    points = schema.to_points(people())
    assert points.dtype == np.float64
    assert points.shape == (N, len(schema.point_columns))
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=0.2)  # all is told to ten records
    of_columns = Counter[str]()
    for name, variance in zip(schema.point_columns, points.var(axis=0).tolist(), strict=True):
        of_columns[name] += variance
    assert list(of_columns) == list(schema.names)
    np.testing.assert_allclose(list(of_columns.values()), 1, atol=0.25)


def test_skewed_numbers_are_on_a_logarithmic_scale() -> None:
    schema = TableSchema.read(people())
    column = schema.columns[schema.names.index("wage")]
    assert "logarithmic" in column.sentence
    points = schema.to_points(people())[:, schema.point_columns.index("wage")]
    assert np.abs(points).max() < 4
    wages = np.array(lists(people())["wage"])
    assert (np.diff(points[np.argsort(wages)]) >= 0).all()


# What a release may tell.


def rare_frame() -> pd.DataFrame:
    """Values of one to nine records in every column, beside common ones."""
    rng = np.random.default_rng(1)
    n = 1000
    names = np.array(["common", "usual"])[rng.integers(0, 2, n)].astype(object)
    names[:9] = "NINE-PEOPLE"
    names[9:20] = [f"SINGLE-{i}" for i in range(11)]
    whole = rng.choice([10, 20, 30], n)
    whole[:40] = 12345 + 77 * np.arange(40)
    numbers = rng.normal(0, 1, n)
    numbers[0], numbers[1] = 987654.321, -987654.321
    days = np.array([datetime(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 5, n)])
    days[0] = datetime(1931, 5, 17)
    levels = ["a"] * 991 + ["LEVEL-RARE"] * 8 + ["b"]
    level = pd.Categorical(levels, categories=["b", "LEVEL-RARE", "a", "UNUSED"])
    return pd.DataFrame({"text": names, "whole": whole, "number": numbers, "day": days, "level": level})


def rare_values(frame: pd.DataFrame) -> dict[str, set[Any]]:
    return {name: {v for v, n in Counter(frame[name].tolist()).items() if n < 10} for name in frame.columns}


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in leaves(one)]
    return [leaf for one in value for leaf in leaves(one)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("symbols", [np.zeros(1000, dtype=int), np.arange(1000) % 7])
def test_no_rare_value_is_saved(symbols: Any) -> None:
    frame = rare_frame()
    saved = tables_of(frame, symbols).to_dict()
    text = json.dumps(saved)
    for needle in ("NINE", "SINGLE", "LEVEL-RARE", "UNUSED"):
        assert needle not in text
    found = {leaf for leaf in leaves(saved) if isinstance(leaf, (int, float))}
    rare = rare_values(frame)
    days = {value.timestamp() * 1e6 for value in rare["day"]}
    assert not found & {float(v) for v in rare["whole"]}
    assert not found & rare["number"]
    assert not found & days
    # The extremes are clipped: no end of a level is near the largest number.
    ends = [
        end
        for column in saved["schema"]["columns"]
        if column["kind"] == "number"
        for end in column["starts"] + column["stops"]
        if column["name"] == "number"
    ]
    assert max(map(abs, ends)) < 4


def test_moments_of_a_schema_fit_several_counts() -> None:
    """From average and deviation of a column of zeros and ones its count would follow to the last record."""
    told = []
    for count in range(20, 60):
        ill = pa.table({"ill": [1] * count + [0] * (2_000 - count)})
        column = TableSchema.read(ill).to_dict()["columns"][0]
        told.append((column["mean"], column["scale"]))
    _, fitting = np.unique(told, axis=0, return_counts=True)
    assert fitting[1:-1].min() >= 2
    assert len(fitting) <= 6
    ages = np.random.default_rng(0).integers(18, 90, 1_000)
    mean = TableSchema.read(pa.table({"age": ages})).to_dict()["columns"][0]["mean"]
    assert abs(mean * 1_000 - ages[:-1].sum() - ages[-1]) > 10
    for last in (18, 89):  # whoever the last is, as far as the mean tells
        again = TableSchema.read(pa.table({"age": [*ages[:-1], last]})).to_dict()["columns"][0]["mean"]
        assert again == mean


def test_no_rare_value_is_released() -> None:
    frame = rare_frame()
    released = tables_of(frame, np.arange(1000) % 3).draw(np.arange(3000) % 3, 0)
    assert set(released["text"]) == {"common", "usual", "other"}
    assert set(released["level"].cat.categories) == {"a"}
    assert released["number"].abs().max() < 4
    assert released["day"].min() >= datetime(2020, 1, 1)
    # Of the 40 unusual whole numbers ranges are released, without the outermost ten on either side.
    unusual = released["whole"][~released["whole"].isin([10, 20, 30])]
    assert unusual.between(12345 + 77 * 9, 12345 + 77 * 31).all()
    assert 0.02 < len(unusual) / 3000 < 0.06


def test_groups_of_a_symbol_are_never_of_fewer_than_ten() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        counts = rng.poisson(rng.choice([0.3, 3, 12], size=(5, 1)), size=(5, 12)).astype(float)
        n_ordered = int(rng.choice([0, 11, 12]))
        groups = _grouped(counts, n_ordered)
        for row, found in zip(counts, groups, strict=True):
            sums = {g: row[found == g].sum() for g in set(found.tolist())}
            rest = sums.pop(24, 0)
            assert all(total >= 10 for total in sums.values())
            assert rest == 0 or rest >= 10 or not sums
            for group in sums:
                members = np.flatnonzero(found == group)
                if members.size > 1:  # neighbours, but for levels that are large enough by themselves
                    between = np.arange(members[0], members[-1] + 1)
                    assert members[-1] < n_ordered
                    assert all(found[i] == group or row[i] >= 10 for i in between)


def test_all_symbols_together_are_all_records() -> None:
    rng = np.random.default_rng(0)
    schema = TableSchema.read(people())
    for column in schema.columns:
        shape = (60, column.n_levels)
        counts = rng.poisson(4, size=shape) + 10.0 * (rng.random(shape) < 0.3)
        table = _merged(counts, column)
        np.testing.assert_allclose(table.sum(axis=1), 1)
        shares = counts.sum(axis=1) / counts.sum()
        assert np.abs(shares @ table - counts.sum(axis=0) / counts.sum()).sum() / 2 < 0.005
        large = counts >= 10
        own = counts / counts.sum(axis=1, keepdims=True)
        if column.name == "job":
            kept = _grouped(counts, 0) != 2 * column.n_levels
            np.testing.assert_allclose(table[kept & large], own[kept & large])


def test_fewer_records_than_the_schema_was_read_from_are_still_no_secret() -> None:
    """A level of ten records in the schema may be one of three among those that are counted."""
    frame = pd.DataFrame(
        {"a": ["x"] * 100 + ["y"] * 100 + ["rare"] * 12, "n": [1] * 100 + [2] * 100 + [3] * 12}
    )
    schema = TableSchema.read(frame)
    assert [column.n_levels for column in schema.columns] == [3, 3]
    tables = ColumnTables.count(schema, frame[:203], np.arange(203) % 2)
    assert "rare" not in set(tables.draw(np.arange(4000) % 2, 0)["a"])
    assert 3 not in set(tables.draw(np.arange(4000) % 2, 0)["n"])
    few = ColumnTables.count(schema, frame[:3], np.zeros(3, dtype=int))
    for table in few.tables:
        np.testing.assert_allclose(table, 1 / 3)


def test_the_difference_of_two_tables_does_not_tell_few_records() -> None:
    """What all records have of a level, less what one symbol tells, would be three people of the other."""
    words = ["x"] * 100 + ["y"] * 50 + ["w"] * 30 + ["x"] * 60 + ["y"] * 40 + ["w"] * 3
    steps = [1] * 100 + [2] * 50 + [3] * 30 + [1] * 60 + [2] * 40 + [3] * 3
    near = [1] * 120 + [2] * 20 + [3] * 40 + [1] * 92 + [2] * 8 + [3] * 3
    frame = pd.DataFrame({"words": words, "steps": steps, "near": near})
    tables = tables_of(frame, np.array([0] * 180 + [1] * 103))
    for column, table in zip(tables.schema.columns, tables.tables, strict=True):
        few = list(column.labels()).index("w" if column.name == "words" else "3")
        n_z = 283 * tables.shares
        all_ = n_z @ table
        assert abs(all_[few] - n_z[0] * table[0, few] - 3) > 1, column.name
        if column.name == "words":
            assert abs(283 * column.shares[few] - n_z[0] * table[0, few] - 3) > 1


def test_soft_counts_are_told_from_ten_on() -> None:
    frame = pd.DataFrame({"a": ["x"] * 500 + ["y"] * 500})
    weights = np.zeros((1000, 2))
    weights[:, 0], weights[:, 1] = 0.99, 0.01
    weights[500:] = [0.01, 0.99]
    table = tables_of(frame, weights).tables[0]
    # Five soft records of the other value are no ten: both values of a symbol are one rest, as overall.
    np.testing.assert_allclose(table, 0.5, atol=1e-9)
    weights[:500], weights[500:] = [0.9, 0.1], [0.1, 0.9]
    np.testing.assert_allclose(tables_of(frame, weights).tables[0], [[0.9, 0.1], [0.1, 0.9]])


def test_a_symbol_of_few_records_draws_like_the_others() -> None:
    frame = pd.DataFrame({"a": ["x"] * 300 + ["y"] * 305})
    symbols = np.array([0] * 600 + [1] * 5)
    tables = tables_of(frame, symbols)
    assert tables.tables[0][1].min() > 0.0 or tables.tables[0][1].max() == 1.0
    assert tables.shares[1] == pytest.approx(5 / 605)


def test_weights_count_as_symbols_do() -> None:
    frame, schema = people(), TableSchema.read(people())
    symbols = np.arange(N) % 3
    dense = np.eye(3)[symbols]
    channel = SparseChannel.identity(3)[symbols]
    made = [ColumnTables.count(schema, frame, w) for w in (symbols, dense, csr_array(dense), channel)]
    for other in made[1:]:
        for a, b in zip(made[0].tables, other.tables, strict=True):
            np.testing.assert_allclose(a, b)
    soft = ColumnTables.count(schema, frame, np.full((N, 2), 0.5))
    for table in soft.tables:
        np.testing.assert_allclose(table[0], table[1])
    assert ColumnTables.count(schema, frame, symbols, n_symbols=5).n_symbols == 5


@pytest.mark.parametrize(
    "weights",
    [np.zeros(3, dtype=int), np.full((N, 2), 0.6), np.zeros(N), -np.ones(N, dtype=int), np.eye(N)[:5]],
)
def test_weights_that_are_none(weights: Any) -> None:
    with pytest.raises(InvalidInputError, match="weights must be a symbol"):
        ColumnTables.count(TableSchema.read(people()), people(), weights)


def test_symbols_that_are_none() -> None:
    tables = tables_of(people())
    for symbols in ([1], [-1], [0.5], [[0]]):
        with pytest.raises(InvalidInputError, match="whole numbers from 0 to 0"):
            tables.draw(symbols)


def test_columns_are_drawn_independently_and_from_entropy() -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "y"] * 200})
    tables = tables_of(frame)
    for rng in (None, 3, np.random.default_rng(0)):
        drawn = tables.draw(np.zeros(4000, dtype=int), rng)
        assert abs((drawn["a"] == drawn["b"]).mean() - 0.5) < 0.05
    assert not tables.draw(np.zeros(400, dtype=int)).equals(tables.draw(np.zeros(400, dtype=int)))
    assert tables.draw(np.zeros(400, dtype=int), 1).equals(tables.draw(np.zeros(400, dtype=int), 1))


def test_other_frames_must_have_the_columns() -> None:
    schema = TableSchema.read(people())
    with pytest.raises(InvalidInputError, match="to_points: there is no column 'job'"):
        schema.to_points(people().drop(columns="job"))
    with pytest.raises(InvalidInputError, match=r"'age' held int64 .* and holds large_string now; convert"):
        schema.to_points(people().astype({"age": str}))
    with pytest.raises(InvalidInputError, match="there is no column 'sexx'"):
        TableSchema.read(people(), drop="sexx")


def test_damaged_files_are_refused() -> None:
    good = tables_of(people(), np.arange(N) % 2).to_dict()
    for path, value in [
        (("shares",), [0.5]),
        (("tables",), []),
        (("tables",), good["tables"][:-1]),
        (("schema", "frame"), "spark"),
        (("schema", "columns"), [{"kind": "number"}]),
        (("schema", "columns"), [{"kind": "what"}]),
    ]:
        bad = json.loads(json.dumps(good))
        at = bad
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        with pytest.raises(FileFormatError):
            ColumnTables.from_dict(bad)


def test_codebook_says_what_a_symbol_stands_for() -> None:
    rng = np.random.default_rng(0)
    symbols = np.arange(600) % 2
    jobs = np.where(
        symbols == 1, np.array(["Farming-fishing", "Adm-clerical"])[rng.integers(0, 2, 600)], "Sales"
    )
    ages = np.where(symbols == 1, rng.integers(20, 30, 600), rng.integers(50, 60, 600))
    tables = tables_of(pd.DataFrame({"job": jobs, "age": ages}), symbols)
    book = tables.codebook()
    assert list(book.columns) == ["symbol", "share", "stands_for"]
    assert book["share"].tolist() == [0.5, 0.5]
    assert "job: Sales" in book["stands_for"][0]
    assert "Farming-fishing" in book["stands_for"][1]
    assert " / " in book["stands_for"][1]
    assert "age: 21–28" in book["stands_for"][1] or "age: 20–2" in book["stands_for"][1]
    alike = tables_of(people(), np.arange(N) % 2).codebook()["stands_for"].tolist()
    assert len(alike) == 2


# Adult.


@pytest.fixture(scope="module")
def adult() -> tuple[Any, Any]:
    """Adult without sex, and cells of it."""
    from sklearn.cluster import MiniBatchKMeans

    if not (Path(os.environ.get("PRIVACYFUNNEL_DATA", "")) / "adult" / "adult.csv.gz").is_file():
        pytest.skip("needs Adult: set PRIVACYFUNNEL_DATA to the folder that holds adult/adult.csv.gz")

    frame = load_adult()
    points = TableSchema.read(frame, drop="sex").to_points(frame)
    cells = MiniBatchKMeans(100, random_state=0, n_init=1).fit(points[:8000]).predict(points)
    return frame, cells


def test_distributions_of_adult_are_kept(adult: tuple[Any, Any]) -> None:
    frame, cells = adult
    tables = tables_of(frame, cells, drop="sex")
    drawn = tables.draw(cells, 0)
    assert list(drawn.columns) == [name for name in frame.columns if name != "sex"]
    codes, again = tables.schema.to_codes(frame), tables.schema.to_codes(drawn)
    for column, table, own, new in zip(tables.schema.columns, tables.tables, codes, again, strict=True):
        raw = np.bincount(own[own >= 0], minlength=column.n_levels) / (own >= 0).sum()
        assert np.abs(tables.shares @ table - raw).sum() / 2 < 0.01, column.name
        # Draws vary: by about the square root of the levels over the records.
        made = np.bincount(new, minlength=column.n_levels) / len(new)
        assert np.abs(made - raw).sum() / 2 < 0.01 + 0.5 * np.sqrt(column.n_levels / len(new)), column.name
    # And inside a symbol: ages of a cell are still those of the cell.
    means = frame.groupby(cells)["age"].mean()
    assert np.corrcoef(means, drawn.groupby(cells)["age"].mean())[0, 1] > 0.99


def test_records_of_adult_are_not_copied(adult: tuple[Any, Any]) -> None:
    """Drawn rows equal records that the tables were counted from no more often than fresh ones."""
    frame, cells = adult
    frame = frame.drop(columns=["sex", "fnlwgt"])
    half = np.arange(len(frame)) % 2 == 0
    tables = tables_of(frame[half], cells[half])
    drawn = set(map(tuple, tables.draw(np.repeat(cells[half], 2), 0).to_numpy().tolist()))
    counted, fresh = (list(map(tuple, frame[which].to_numpy().tolist())) for which in (half, ~half))
    hits, chance = (sum(record in drawn for record in records) for records in (counted, fresh))
    spread = 4 * np.sqrt(hits + chance)
    assert hits <= chance + spread
    assert hits < 0.15 * len(counted)
    # With the weights of the survey, which nearly tell a person, there is hardly any.
    whole = tables_of(adult[0], cells, drop="sex")
    rows = set(map(tuple, whole.draw(cells, 0).to_numpy().tolist()))
    assert sum(record in rows for record in map(tuple, adult[0].drop(columns="sex").to_numpy().tolist())) < 30
