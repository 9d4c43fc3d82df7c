"""What columns tell: against joints that are known, slow twins, and tables that are hard to read."""

import math

import numpy as np
import pandas as pd
import pytest

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.inspection.estimates import advice_for, guess_rate, told_bits


def people(n=4_000, seed=0):
    """A table with columns that give sex away, tell something, and tell nothing."""
    rng = np.random.default_rng(seed)
    sex = rng.random(n) < 0.4
    return pd.DataFrame(
        {
            "sex": np.where(sex, "w", "m"),
            "title": np.where(sex, "Ms", "Mr"),
            "job": np.where(rng.random(n) < np.where(sex, 0.6, 0.3), "a", "b"),
            "age": rng.integers(18, 90, n),
            "height": rng.normal(170 - 8 * sex, 7, n),
            "id": rng.permutation(10 * n)[:n],
            "name": [f"person {i}" for i in range(n)],
            "member": rng.random(n) < 0.5,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )


@pytest.fixture(scope="module")
def found():
    return pf.inspect(people(), private="sex")


def column(found, name):
    return next(one for one in found.columns if one.name == name)


def test_advice_and_sentence(found):
    assert set(found.advised("drop")) == {"title", "id", "name"}
    assert {"job", "height"} <= set(found.advised("protect"))
    assert column(found, "title").certain == 1.0
    first = found.summary
    assert first.startswith("Somebody who sees title alone is right about sex 100.0 % of the time; without")
    assert str(found) == first
    assert "bit" not in first


def test_types_and_counts(found):
    kinds = {one.name: one.kind for one in found.columns}
    assert kinds == {
        "title": "text",
        "job": "text",
        "age": "whole number",
        "height": "number",
        "id": "whole number",
        "name": "text",
        "member": "yes/no",
        "since": "date",
    }
    assert column(found, "height").bins == 32
    assert column(found, "since").bins is not None
    assert column(found, "age").bins is None
    assert (column(found, "age").n_values, column(found, "age").n_missing) == (72, 0)
    assert column(found, "name").bits is None  # all begin alike; not measured is no number
    number = column(found, "id")
    assert (number.part, number.bits.kind) == ("its size in 32 bins", "lower bound")
    assert number.bits.interval.high == found.entropy  # the numbers themselves may tell all
    assert column(found, "height").rare == 1.0


def test_bits_and_guesses_are_those_of_the_joint(found):
    truth = np.array([[0.4 * 0.6, 0.6 * 0.3], [0.4 * 0.4, 0.6 * 0.7]])
    job = column(found, "job")
    assert job.bits.interval.low < pf.mutual_information(truth) < job.bits.interval.high
    assert job.guessed.value == pytest.approx(truth.max(axis=1).sum(), abs=0.03)
    assert column(found, "member").bits.interval.low == 0.0
    assert found.entropy == pytest.approx(pf.entropy([0.4, 0.6]), abs=0.02)
    assert found.chance == pytest.approx(0.6, abs=0.03)
    assert found.pairs[0].bits.value == max(one.bits.value for one in found.pairs)
    assert "title" in found.pairs[0].columns


@pytest.mark.parametrize(
    "p",
    [
        np.outer(np.full(8, 1 / 8), [0.3, 0.7]),
        np.array([[0.24, 0.18], [0.16, 0.42]]),
        np.random.default_rng(1).dirichlet(np.ones(30)).reshape(10, 3),
        np.diag([0.3, 0.7]),
    ],
    ids=["independent", "two by two", "ten by three", "equal"],
)
@pytest.mark.parametrize("n", [200, 5_000])
def test_intervals_hold_as_often_as_they_say(p, n):
    rng = np.random.default_rng(3)
    truth, repeats, held = pf.mutual_information(p), 200, 0
    for _ in range(repeats):
        bits = told_bits(rng.multinomial(n, p.ravel()).reshape(p.shape), 0.95)
        held += bits.interval.low - 1e-9 <= truth <= bits.interval.high + 1e-9
    # H(Y) caps the high end at that of the records, which is all there is to say of equal columns.
    least = 0.9 if truth < 0.8 else 0.4
    assert held >= least * repeats, held


def test_guesses_are_those_of_leaving_one_out():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, 60), rng.integers(0, 3, 60)
    table = np.zeros((9, 3), dtype=int)
    np.add.at(table, (x, y), 1)
    table = table[table.sum(axis=1) > 0]
    hits = 0
    for i in range(60):  # a slow twin
        others = np.arange(60) != i
        seen = np.bincount(y[others & (x == x[i])], minlength=3)
        shares = np.bincount(y, minlength=3) / 60
        best = max(range(3), key=lambda label: (seen[label], shares[label]))
        hits += best == y[i]
    assert guess_rate(table, 0.95).value == pytest.approx(hits / 60, abs=0.02)  # equal shares may tie


def test_values_of_few_records_are_not_measured_but_counted_at_the_high_end():
    table = np.array([[500, 0], [0, 500], *[[1, 0], [0, 1]] * 200])
    bits = told_bits(table, 0.95)
    told = told_bits(np.array([[500, 0], [0, 500], [200, 200]]), 0.95)
    assert bits.value == pytest.approx(told.value)
    assert bits.interval.high == 1.0  # the 400 others may tell all


@pytest.mark.parametrize("engine", ["polars", "lazy", "duckdb", "pyarrow"])
def test_every_frame_is_counted_alike(engine, found):
    frame = people()
    pl = pytest.importorskip("polars")
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        other = duckdb.connect().from_df(frame)
    else:
        table = pl.from_pandas(frame)
        other = {"polars": table, "lazy": table.lazy(), "pyarrow": table.to_arrow()}[engine]
    again = pf.inspect(other, private="sex")
    assert again.summary == found.summary
    for one in again.columns:
        if one.bits is not None:
            assert one.bits.value == pytest.approx(column(found, one.name).bits.value, abs=0.01)


def test_a_lazy_frame_with_many_values_is_not_listed():
    """Beyond the records that are looked at first, numbers are cut in the engine and texts are left."""
    pl = pytest.importorskip("polars")
    n = 60_000
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    frame = pl.LazyFrame(
        {
            "y": y,
            "size": rng.normal(y, 1.0),
            "id": np.arange(n),
            "name": [f"n{i}" for i in range(n)],
            "gap": np.where(np.arange(n) % 3, rng.normal(size=n), np.nan),
        }
    )
    found = pf.inspect(frame, private="y")
    size = column(found, "size")
    assert (size.n_values, size.bins) == (None, 32)
    assert size.bits.value == pytest.approx(
        column(pf.inspect(frame.collect(), private="y"), "size").bits.value, abs=0.01
    )
    assert set(found.advised("drop")) == {"id", "name"}
    assert column(found, "gap").bits.value < 0.001


def test_without_a_private_column_everything_is_set_against_everything():
    found = pf.inspect(people().drop(columns="since"))
    assert found.pairs[0].columns == ("sex", "title")
    assert found.summary.startswith("Of 8 columns in 4,000 records, sex and title tell most about each other")
    assert len(found.to_frame()) == 15  # six columns that can be counted
    assert any("name" in one and "id" in one for one in found.notes)
    assert found.private == ()


def test_results_as_frame_and_json(found):
    import json

    frame = found.to_frame()
    assert list(frame["name"]) == [one.name for one in found.columns]
    assert {"bits_low", "bits_high", "guessed", "advice"} <= set(frame.columns)
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["columns"][0]["name"] == found.columns[0].name
    for name in people()["name"][:50]:
        assert f'"{name}"' not in text  # no value of a record


def test_several_private_columns_are_one_attribute():
    found = pf.inspect(people(), private=["sex", "member"])
    assert found.private == ("sex", "member")
    assert found.entropy == pytest.approx(pf.entropy([0.4, 0.6]) + 1, abs=0.02)
    assert "sex × member" in found.summary


def test_a_private_number_is_cut_into_classes():
    found = pf.inspect(people(), private="height")
    assert "height was cut into 8 classes of about equal size." in found.notes
    assert column(found, "sex").bits.value > 0.1


def test_missing_infinite_and_mixed_values():
    frame = people(400)
    frame["empty"] = None
    frame.loc[:99, "job"] = None
    frame.loc[:9, "height"] = np.inf
    frame.loc[10:19, "height"] = np.nan
    frame["mixed"] = [1, "a"] * 200
    found = pf.inspect(frame, private="sex")
    empty = column(found, "empty")
    assert (empty.kind, empty.advice, empty.n_missing, empty.bits) == ("empty", "keep", 400, None)
    assert column(found, "job").n_missing == 100
    assert column(found, "height").n_missing == 10
    assert any("10 infinite values" in one for one in found.notes)
    assert any("empty" in one for one in found.notes)
    assert column(found, "mixed").n_values == 2
    gaps = frame.assign(sex=frame["sex"].where(np.arange(400) > 30))
    assert "31 records have no sex" in " ".join(pf.inspect(gaps, private="sex").notes)


def test_few_records_keep_nothing():
    """Fifty rows cannot show that a column tells nothing."""
    found = pf.inspect(people(50).drop(columns=["id", "name"]), private="sex")
    assert found.advised("keep") == []
    assert "too few records" in column(found, "member").reason


def test_ten_records_claim_nothing():
    """The sentence says that ten records are too few, and that of many records does not."""
    ten = pd.DataFrame({"city": list("abababbaab"), "sex": list("mfmfmfmfmf")})
    found = pf.inspect(ten, private="sex")
    assert found.has_too_few_records
    first = found.summary.split(". Protect")[0]
    assert first.endswith("the difference may be chance, for 10 records are too few to tell")
    assert not pf.inspect(people(600), private="sex").has_too_few_records
    unrelated = pd.DataFrame({"city": ["a", "b"] * 5_000, "sex": ["m", "m", "f", "f"] * 2_500})
    assert not pf.inspect(unrelated, private="sex").has_too_few_records  # enough to say that it tells nothing


def test_a_rare_value_is_no_reason_to_drop():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3_000) < 0.99, "a", "b")  # nearly all are of one class
    found = pf.inspect(pd.DataFrame({"y": y, "x": rng.integers(0, 5, 3_000)}), private="y")
    assert column(found, "x").advice != "drop"
    assert found.summary.startswith("No column alone helps to guess y")


@pytest.mark.parametrize(
    ("change", "private", "words"),
    [
        ({}, "sexx", "no column 'sexx'.*'sex'"),
        ({"sex": "w"}, "sex", "all 50 records have the same sex"),
        ({}, "name", "50 different values in 50 records"),
        ({}, "id", "50 different values in 50 records"),
        ({"sex": None}, "sex", "has no value at all"),
    ],
)
def test_bad_input_is_one_sentence(change, private, words):
    with pytest.raises(InvalidInputError, match=words) as error:
        pf.inspect(people(50).assign(**change), private=private)
    assert str(error.value).count(". ") == 0


def test_what_is_no_table():
    with pytest.raises(InvalidInputError, match="no data frame"):
        pf.inspect([1, 2, 3], private="sex")
    with pytest.raises(InvalidInputError, match="no other column"):
        pf.inspect(people(50)[["sex"]], private="sex")
    with pytest.raises(InvalidInputError, match="two records or more; there is 1"):
        pf.inspect(people(50).head(1), private="sex")
    with pytest.raises(InvalidInputError, match="confidence"):
        pf.inspect(people(50), private="sex", confidence=95)
    many = pd.DataFrame({"town": [f"t{i % 300}" for i in range(3_000)], "x": range(3_000)})
    with pytest.raises(InvalidInputError, match="300 different values; group them"):
        pf.inspect(many, private="town")
    nested = people(50).assign(both=[[1, 2]] * 50)
    found = pf.inspect(nested, private="sex")
    assert "cannot be counted" in column(found, "both").reason
    strange = people(50).assign(span=pd.cut(people(50)["height"], 3), day=pd.period_range("2020", periods=50))
    kinds = {one.name: one.kind for one in pf.inspect(strange, private="sex").columns}
    assert (kinds["span"], kinds["day"]) == ("text", "text")
    with pytest.raises(InvalidInputError, match="names of columns must be texts"):
        pf.inspect(pd.DataFrame({0: [1, 2], 1: [1, 2]}))
    assert math.isfinite(column(found, "job").bits.value)


def test_a_column_without_a_name_is_shown_as_such():
    table = people(500).rename(columns={"id": ""})
    said = pf.inspect(table, private="sex").summary
    assert "(no name)" in said
    assert ": ," not in said


def test_the_sentence_does_not_call_harmless_what_changes_no_guess():
    rng = np.random.default_rng(0)
    rare = rng.random(4_000) < 0.15
    clinic = np.where(rare, rng.random(4_000) < 0.8, rng.random(4_000) < 0.2)  # still mostly not rare
    said = pf.inspect(pd.DataFrame({"rare": rare, "clinic": clinic}), private="rare").summary
    assert said.startswith("Seeing one column alone changes no guess of rare")
    assert "but clinic tells about " in said
    nothing = pd.DataFrame({"rare": rare, "coin": rng.random(4_000) < 0.5})
    assert pf.inspect(nothing, private="rare").summary.startswith("No column alone helps to guess rare")


def test_dates_that_nearly_nobody_shares_are_not_kept():
    table = people(20_000)
    born = pd.Timestamp("1940-01-01") + pd.to_timedelta(
        np.random.default_rng(1).integers(0, 22_000, 20_000), unit="D"
    )
    one = column(pf.inspect(table[["sex"]].assign(born=born), private="sex"), "born")
    assert one.advice == "protect"
    assert "point to people" in one.reason


def test_what_nearly_everybody_is_gives_nobody_away():
    """Where nine of ten are healthy, a town in which 99 of 100 are is no secret told."""
    towns = np.array([[990, 10], [8_010, 990]])
    advice, _, certain = advice_for(towns, told_bits(towns, 0.95), 0.469)
    assert (advice, certain) == ("protect", 0.0)
    titles = np.array([[995, 5], [3_005, 5_995]])
    reason = "it gives the private value of 10% of the records away"
    assert advice_for(titles, told_bits(titles, 0.95), 0.971) == ("drop", reason, 0.1)


def test_what_was_not_measured_is_named_first():
    """A postcode that nobody shares tells by its first character; what has no such part is named."""
    rng = np.random.default_rng(0)
    ill = rng.random(3_000) < 0.5
    numbers = rng.permutation(3_000)
    table = pd.DataFrame(
        {
            "ill": ill,
            "coin": rng.random(3_000) < 0.5,
            "ticket": [f"ticket {i}" for i in numbers],
            "postcode": [f"{'A' if one else 'B'}{i:04d}" for one, i in zip(ill, numbers, strict=True)],
        }
    )
    found = pf.inspect(table, private="ill")
    code = column(found, "postcode")
    assert (code.part, code.advice, code.guessed.value) == ("its first 3 characters", "drop", 1.0)
    assert "measured by its first 3 characters only" in code.reason
    assert found.summary.startswith(
        "Somebody who sees postcode alone is right about ill 100.0 % of the time or more"
    )
    assert found.not_measured == ["ticket", "postcode"]
    said = pf.inspect(table.drop(columns="postcode"), private="ill").summary
    assert said.startswith(
        "What ticket tells about ill could not be measured, or only in part, as nearly every"
    )
    assert (
        "apart from that, no column alone helps" in said or "apart from that, somebody who sees coin" in said
    )


def test_two_columns_tell_no_less_than_one():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3_000)
    fine = rng.integers(0, 700, 3_000)
    table = pd.DataFrame({"y": y, "tells": y ^ (rng.random(3_000) < 0.1), "fine": [f"f{i}" for i in fine]})
    found = pf.inspect(table, private="y")
    (pair,) = found.pairs
    alone = column(found, "tells")
    assert (pair.bits.kind, pair.guessed.kind) == ("lower bound", "lower bound")
    assert (pair.bits.value, pair.guessed.value) == (alone.bits.value, alone.guessed.value)
    assert pair.bits.interval.high > alone.bits.interval.high  # both may tell all
    assert any("too few to see what two columns tell together" in one for one in found.notes)


def test_texts_that_nearly_nobody_shares_are_not_kept():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"y": rng.random(40_000) < 0.1, "name": [f"n{i}" for i in rng.integers(0, 9_000, 40_000)]}
    )
    one = column(pf.inspect(table, private="y"), "name")
    assert one.advice == "protect"
    assert "point to people" in one.reason


def test_many_points_of_time_are_cut_into_bins():
    rng = np.random.default_rng(0)
    n = 130_000
    seconds = rng.permutation(40 * n)[:n]
    table = pd.DataFrame(
        {"y": seconds > 20 * n, "at": pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, unit="s")}
    )
    at = column(pf.inspect(table, private="y"), "at")
    assert (at.n_values, at.bins) == (None, 32)
    assert at.guessed.value > 0.95
