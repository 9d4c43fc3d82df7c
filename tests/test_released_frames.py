"""Released frames: strangers among the letters, the order of the records, and P(Z) that mechanisms carry."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import privacyfunnel as pf
from privacyfunnel.arrays import random_order
from privacyfunnel.combining import time_share
from privacyfunnel.errors import FileFormatError, InvalidInputError, UnknownLetterError
from privacyfunnel.mechanism import TableMechanism

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture
def joint() -> pf.Joint:
    return pf.Joint([[0.3, 0.1], [0.1, 0.2], [0.1, 0.2]], x_names="job", y_names=["sex"], x_labels="abc")


def values(frame: object, name: str = "z") -> list[object]:
    return (
        pa.table(frame).column(name).to_pylist() if not isinstance(frame, pd.DataFrame) else list(frame[name])
    )


def test_all_strangers_are_counted_and_the_most_frequent_named_first() -> None:
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "b"], x_names=["job"])
    jobs = ["a", "q", "q", "b", "x" * 100, *(f"s{i}" for i in range(5))]
    with pytest.raises(UnknownLetterError) as caught:
        mechanism.release_frame(pl.DataFrame({"job": jobs}))
    assert str(caught.value) == (
        "release_frame: 8 of 10 records have a value of 'job' that is none of the mechanism's 2 letters: "
        f"'q' (2), '{'x' * 38}… (1), 's0' (1), 's1' (1), 's2' (1), 2 others; solve again on data that has "
        "it, recode such records, or choose what becomes of them with unknown='draw' or unknown='drop'."
    )


@pytest.mark.parametrize(
    ("labels", "frame", "remedy"),
    [
        (["a", "b"], {"job": ["a", None]}, "solve with missing='letter'"),
        ([1, 2], {"job": ["1"]}, "the mechanism has it as another type: convert the values"),
        ([("a", 1)], {"job": [1], "age": ["a"]}, "name the public columns in the order of job, age"),
        (["a"], {"job": [1, "a"]}, r"1 \(1\); solve again"),  # a pandas column of mixed objects
    ],
)
def test_remedy_for_the_most_frequent_stranger(labels: list, frame: dict, remedy: str) -> None:
    names = ["job", "age"][: len(frame)]
    mechanism = TableMechanism(np.ones((len(labels), 1)), x_labels=labels, x_names=names)
    with pytest.raises(UnknownLetterError, match=remedy):
        mechanism.release_frame(pd.DataFrame(frame))


@pytest.mark.parametrize("kind", FRAMES)
def test_strangers_are_dropped_on_request(kind: str) -> None:
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "b"], x_names=["job"])
    frame = FRAMES[kind]({"job": ["b", "q", None, "a"], "key": [0, 1, 2, 3]})
    released = mechanism.release_frame(frame, keep="key", unknown="drop")
    assert (values(released), values(released, "key")) == ([1, 0], [0, 3])


@pytest.mark.parametrize("kind", FRAMES)
def test_strangers_are_drawn_from_the_marginal(kind: str) -> None:
    p_z = np.array([0.2, 0.7, 0.1])
    mechanism = TableMechanism([[0, 0, 1]], x_labels=["a"], x_names=["job"], marginal=p_z)
    frame = FRAMES[kind]({"job": ["a", "q"] * 5000})
    released = values(mechanism.release_frame(frame, unknown="draw", rng=0))
    assert set(released[::2]) == {2}
    counts = Counter(released[1::2])
    assert chisquare([counts[z] for z in range(3)], 5000 * p_z).pvalue > 1e-6


@pytest.mark.parametrize("keep", ["all", "key", ()])
def test_nothing_written_beside_the_records_is_released(keep: str) -> None:
    people = pd.DataFrame({"job": ["a", "b"] * 5, "illness": ["f", "m"] * 5, "key": range(10)})
    people.attrs = {"made by": "Alice"}
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "b"], x_names=["job"], private_names=["illness"])
    table = pa.Table.from_pandas(people)
    noted = table.schema.set(2, table.schema.field("key").with_metadata({"of": "Alice"}))
    table = table.cast(noted)
    assert b"illness" in table.schema.metadata[b"pandas"]
    for shuffle in (False, True):
        released = mechanism.release_frame(table, keep=keep, shuffle=shuffle)
        assert released.schema.metadata is None
        assert all(field.metadata is None for field in released.schema)
        assert released.num_rows == 10
        frame = mechanism.release_frame(people, keep=keep, shuffle=shuffle)
        assert frame.attrs == {}
        assert len(frame) == 10
    assert people.attrs == {"made by": "Alice"}


def test_drawing_needs_the_marginal() -> None:
    mechanism = TableMechanism(np.eye(2))
    with pytest.raises(InvalidInputError, match=r"does not know P\(Z\), .* build it with marginal="):
        mechanism.release_frame(pl.DataFrame({"x": [0]}), unknown="draw")
    with pytest.raises(InvalidInputError, match="unknown must be one of 'error', 'draw', 'drop'; it is 'no'"):
        mechanism.release_frame(pl.DataFrame({"x": [0]}), unknown="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", FRAMES)
def test_order_of_the_records_is_not_handed_out(kind: str) -> None:
    frame = FRAMES[kind]({"x": [i % 3 for i in range(60)], "key": list(range(60))})
    mechanism = TableMechanism(np.eye(3))
    orders = []
    for rng in (None, None, 3, 3):
        released = mechanism.release_frame(frame, keep="key", shuffle=True, rng=rng)
        orders.append(values(released, "key"))
        assert sorted(orders[-1]) == list(range(60))
        assert values(released) == [key % 3 for key in orders[-1]]  # records stay whole
        if kind == "pandas":
            assert list(released.index) == list(range(60))
    assert orders[0] != list(range(60)) != orders[1] != orders[0]
    assert orders[2] == orders[3]


def test_seeded_order_does_not_repeat_the_numbers_of_the_symbols() -> None:
    """Records sorted by the very numbers that drew their symbols would come out sorted by symbol."""
    frame = pl.DataFrame({"x": [0] * 200})
    for seed in (1, np.int64(1)):
        released = values(TableMechanism([[0.5, 0.5]]).release_frame(frame, shuffle=True, rng=seed))
        assert sum(a != b for a, b in pairwise(released)) > 50


def test_every_order_is_as_likely() -> None:
    for rng in (None, np.random.default_rng(0)):
        counts = Counter(tuple(random_order(3, rng).tolist()) for _ in range(6000))
        assert len(counts) == 6
        assert chisquare(list(counts.values())).pvalue > 1e-9


def test_index_is_a_column_that_nobody_named() -> None:
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "b"], x_names=["job"])
    frame = pd.DataFrame({"job": ["b", "a"]}, index=["Anna", "Bert"])
    assert list(mechanism.release_frame(frame).index) == [0, 1]
    assert list(mechanism.release_frame(frame, keep="all").index) == ["Anna", "Bert"]
    assert list(mechanism.release_frame(frame, keep="all", shuffle=True).index) == [0, 1]


def test_solvers_know_the_marginal_and_files_keep_it(joint: pf.Joint, tmp_path: Path) -> None:
    for mechanism in (
        pf.solve(joint, beta=0.3, method="greedy").mechanism,
        TableMechanism.identity(joint),
        pf.frontier(joint, method="greedy", n_points=3, rng=0).mechanism_at(0.6),
    ):
        assert mechanism.marginal == pytest.approx(mechanism.p_z(joint.p_x), abs=1e-12)
        mechanism.save(tmp_path / "m.json")
        assert pf.load(tmp_path / "m.json").marginal.tolist() == mechanism.marginal.tolist()
    values = mechanism.to_dict()
    with pytest.raises(FileFormatError, match="marginal must have"):
        TableMechanism.from_dict({**values, "p_z": [1.0]})
    with pytest.raises(FileFormatError, match="marginal"):
        TableMechanism.from_dict({**values, "p_z": [2.0, *([0.0] * (mechanism.n_z - 1))]})
    assert TableMechanism.from_dict({key: values[key] for key in values if key != "p_z"}).marginal is None


def test_derived_mechanisms_have_the_marginal_where_it_is_known(joint: pf.Joint) -> None:
    first = TableMechanism.for_joint(joint, [[1, 0], [0.5, 0.5], [0, 1]])
    second = TableMechanism([[0.9, 0.1], [0.2, 0.8]])
    for derived in (
        first.relabel(["left", "right"]),
        first.compose(second),
        time_share([first, TableMechanism.constant(joint)], [0.5, 0.5]),
        time_share([first, first], [0.5, 0.5]),
        first.repeat(1),
    ):
        assert derived.marginal == pytest.approx(derived.p_z(joint.p_x), abs=1e-12)
    assert first.repeat(2).marginal is None
    assert (
        time_share([first, TableMechanism(np.eye(3), x_labels="abc", x_names=["job"])], [0.5, 0.5]).marginal
        is None
    )


def test_solvers_know_the_letters_and_files_keep_them(joint: pf.Joint, tmp_path: Path) -> None:
    first = TableMechanism.for_joint(joint, [[1, 0], [0.5, 0.5], [0, 1]])
    for mechanism in (
        first,
        pf.solve(joint, beta=0.3, method="greedy").mechanism,
        first.relabel(["left", "right"]),
        first.compose(TableMechanism([[0.9, 0.1], [0.2, 0.8]])),
        first.repeat(2),
        time_share([first, TableMechanism.constant(joint)], [0.5, 0.5]),
    ):
        assert mechanism.p_x is not None
        assert mechanism.p_x.tolist() == joint.p_x.tolist()
        mechanism.save(tmp_path / "m.json")
        assert pf.load(tmp_path / "m.json").p_x.tolist() == joint.p_x.tolist()
    stranger = TableMechanism(np.eye(3), x_labels="abc", x_names=["job"])
    assert time_share([first, stranger], [0.5, 0.5]).p_x is None
    written = first.to_dict()
    with pytest.raises(FileFormatError, match="p_x must have 3 entries, one a letter; it has 1"):
        TableMechanism.from_dict({**written, "p_x": [1.0]})
    old = TableMechanism.from_dict({key: written[key] for key in written if key != "p_x"})
    for asked in (old.codebook, lambda: old.release_frame(pl.DataFrame({"job": ["a"]}), values="draw")):
        with pytest.raises(
            InvalidInputError, match=r"does not know P\(X\), .* solve again, or build it with p_x"
        ):
            asked()


@pytest.mark.parametrize("kind", FRAMES)
def test_drawn_letters_keep_name_type_and_distribution(kind: str, joint: pf.Joint) -> None:
    mechanism = TableMechanism.for_joint(joint, [[1, 0], [0.5, 0.5], [0, 1]])
    jobs = np.array(list("abc"))[np.random.default_rng(12).choice(3, 20_000, p=joint.p_x)]
    frame = FRAMES[kind]({"key": list(range(20_000)), "job": jobs.tolist(), "sex": ["f", "m"] * 10_000})
    drawn = mechanism.release_frame(frame, values="draw", keep="key", rng=0)
    assert type(drawn) is type(frame)
    assert values(drawn, "key") == list(range(20_000))
    counts = Counter(values(drawn, "job"))
    assert chisquare([counts[letter] for letter in "abc"], 20_000 * joint.p_x).pvalue > 1e-6
    # P(x̂|x) = Σ_z P(z|x) P(x̂|z): from the symbol alone, and not from the letter.
    exact = mechanism.p_z_given_x @ mechanism.p_x_given_z(joint.p_x)
    pairs = Counter(zip(jobs.tolist(), values(drawn, "job"), strict=True))
    for i, x in enumerate("abc"):
        found = [pairs[x, other] for other in "abc"]
        at = exact[i] > 0
        assert not any(n for n, there in zip(found, at, strict=True) if not there)
        assert chisquare(np.array(found)[at], sum(found) * exact[i][at]).pvalue > 1e-6
    typical = mechanism.release_frame(frame, values="typical", rng=0)
    likeliest = [joint.x_labels[i] for i in mechanism.p_x_given_z(joint.p_x).argmax(axis=1)]
    symbols = values(mechanism.release_frame(frame, rng=0))
    assert values(typical, "job") == [likeliest[symbol] for symbol in symbols]
    if kind != "pyarrow":
        assert typical["job"].dtype == drawn["job"].dtype == frame["job"].dtype
    else:
        assert typical.schema.field("job").type == frame.schema.field("job").type


@pytest.mark.parametrize("kind", FRAMES)
def test_letters_of_several_columns_come_back_in_their_places(kind: str) -> None:
    frame = FRAMES[kind](
        {
            "age": [30, 40] * 50,
            "key": list(range(100)),
            "job": ["x", "y", "z", "x"] * 25,
            "sex": ["f", "m"] * 50,
        }
    )
    joint = pf.Joint.from_frame(frame, public=["job", "age"], private="sex")
    mechanism = TableMechanism.identity(joint)
    for how in ("draw", "typical"):
        released = mechanism.release_frame(frame, values=how, keep="key")
        table = pa.table(released) if kind != "pandas" else pa.Table.from_pandas(released)
        assert table.column_names == ["age", "key", "job"]
        for name in table.column_names:
            assert table[name].to_pylist() == values(frame, name)


def test_types_of_letters_are_those_of_the_frame() -> None:
    level = pd.Categorical(["lo", "hi", None] * 20, categories=["none", "hi", "lo"], ordered=True)
    frame = pd.DataFrame(
        {
            "level": level,
            "count": pd.array([1, 2, None] * 20, dtype="Int64"),
            "small": np.array([1, 2, 3] * 20, dtype="int8"),
            "day": pd.to_datetime(["2024-01-01", "2024-01-02", None] * 20),
            "sex": ["f", "m"] * 30,
        },
        index=range(100, 160),
    )
    for name in frame.columns[:-1]:
        joint = pf.Joint.from_frame(frame, public=name, private="sex", missing="letter")
        released = TableMechanism.identity(joint).release_frame(frame, values="typical", keep="all")[name]
        assert list(released.index) == list(frame.index)
        if name == "level":  # a category that is no letter is not handed out
            assert released.dtype == pd.CategoricalDtype(["hi", "lo"], ordered=True)
        else:
            assert released.dtype == frame[name].dtype
        assert released.astype(str).tolist() == frame[name].astype(str).tolist()
    enum = pl.DataFrame({"x": pl.Series(["a", "b"] * 9, dtype=pl.Enum(["b", "a"])), "y": [0, 1, 1] * 6})
    joint = pf.Joint.from_frame(enum, public="x", private="y")
    assert TableMechanism.identity(joint).release_frame(enum, values="typical")["x"].equals(enum["x"])
    mixed = pd.DataFrame({"x": [1, "a"] * 9, "y": [0, 1, 1] * 6})
    joint = pf.Joint.from_frame(mixed, public="x", private="y")
    assert (
        TableMechanism.identity(joint).release_frame(mixed, values="typical")["x"].tolist() == ["1", "a"] * 9
    )


def test_letters_that_never_occur_still_have_a_symbol() -> None:
    joint = pf.Joint([[0.5, 0.5], [0, 0]], x_labels="ab", x_names="x", y_names="y")
    mechanism = TableMechanism.for_joint(joint, [[1, 0, 0], [0, 1, 0]])
    frame = pl.DataFrame({"x": ["a", "b"]})
    for how in ("draw", "typical"):
        assert values(mechanism.release_frame(frame, values=how), "x") == ["a", "b"]


def test_what_letters_cannot_be_asked_for(joint: pf.Joint) -> None:
    mechanism, frame = TableMechanism.identity(joint), pl.DataFrame({"job": ["a"]})
    for how, words in (
        ({"values": "mean"}, "values must be one of 'symbol', 'typical', 'draw'; it is 'mean'"),
        ({"values": "draw", "keep_public": True}, "leave out keep_public"),
        ({"values": "draw", "output": "w"}, "output names the column of symbols"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            mechanism.release_frame(frame, **how)


def test_a_seeded_draw_does_not_repeat_the_numbers_of_the_symbols() -> None:
    """The number that drew the symbol would draw the same letter again for each of its rows."""
    joint = pf.Joint(np.full((2, 2), 0.25))
    mechanism = TableMechanism.for_joint(joint, [[0.5, 0.5], [0.5, 0.5]])
    frame = pl.DataFrame({"x": [0] * 2000})
    drawn = values(mechanism.release_frame(frame, values="draw", rng=5), "x")
    symbols = values(mechanism.release_frame(frame, rng=5))
    assert 800 < sum(a == b for a, b in zip(drawn, symbols, strict=True)) < 1200


def test_codebook_of_a_mechanism(joint: pf.Joint) -> None:
    table = [[1, 0], [0.5, 0.5], [0, 1]]
    book = TableMechanism.for_joint(joint, table, ["l", "r"]).codebook()
    assert book["symbol"].tolist() == ["l", "r"]
    assert book["share"].tolist() == pytest.approx([0.55, 0.45])
    assert book["stands_for"].tolist() == ["a / b", "c / b"]
    many = pf.Joint(np.full((10, 2), 0.05), x_labels=[(i, None) for i in range(10)], x_names=["i", "j"])
    told = TableMechanism.constant(many).codebook()["stands_for"].tolist()
    assert told == ["0, missing / 1, missing / 2, missing and 7 others"]
