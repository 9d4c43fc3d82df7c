"""CertifiedFunnel on frames: columns by name, frames of the same schema, saved rules."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import privacyfunnel as pf
from privacyfunnel.certified import CertifiedFunnel, CertifiedRule
from privacyfunnel.errors import FileFormatError, InvalidInputError
from privacyfunnel.spark import _Release

N = 6_000


def people(n=N, seed=0):
    """A job tells sex and pay; a town tells nothing."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["nurse", "miner", "clerk", "cook"], n, p=[0.2, 0.2, 0.4, 0.2])
    man = (
        rng.random(n)
        < pd.Series(job).map({"nurse": 0.2, "miner": 0.8, "clerk": 0.5, "cook": 0.45}).to_numpy()
    )
    hours = np.round(rng.normal(38, 6, n) + 3 * man).astype(int)
    rich = (
        rng.random(n) < pd.Series(job).map({"nurse": 0.3, "miner": 0.5, "clerk": 0.2, "cook": 0.1}).to_numpy()
    )
    town = rng.choice(["A", "B", None], n, p=[0.5, 0.4, 0.1])
    sex = np.where(man, "male", "female")
    born = pd.to_datetime("1960-01-01") + pd.to_timedelta(rng.integers(0, 15_000, n), unit="D")
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(n)],
            "job": job,
            "hours": hours,
            "sex": sex,
            "rich": rich,
            "town": town,
            "born": born,
        }
    )


@pytest.fixture(scope="module")
def funnel():
    return CertifiedFunnel(0.08, random_state=0).fit(people(), private="sex", task="rich")


@pytest.mark.parametrize("records", ["columns", "typical", "symbol"])
def test_a_kept_column_has_no_categories_of_people_who_were_taken_out(funnel, records):
    frame = people(50, 1)
    frame["name"] = pd.Categorical(["p"] * 49 + ["SOMEBODY"], categories=["SOMEBODY", "p", "q"])
    part = frame.iloc[:49]
    released = funnel.release(part, records=records, keep="name")
    assert list(released["name"].cat.categories) == ["p"]
    assert "SOMEBODY" in part["name"].cat.categories  # what was given stays as it was


@pytest.mark.parametrize("records", ["columns", "typical", "symbol"])
def test_nothing_written_beside_the_records_is_released(funnel, records):
    frame = people(50, 1)
    frame.attrs = {"made by": "Alice"}
    table = pa.Table.from_pandas(frame)
    for keep in ((), ("name",)):
        assert funnel.release(frame, records=records, keep=keep).attrs == {}
        released = funnel.release(table, records=records, keep=keep)
        if isinstance(released, pa.Table):
            assert released.schema.metadata is None
        else:
            assert released.attrs == {}


def test_a_frame_of_the_same_schema_comes_back(funnel):
    frame = people(500, 1)
    released = funnel.release(frame)
    assert list(released.columns) == ["job", "hours", "rich", "town", "born"]  # no sex, and no key
    assert (released.dtypes == frame.dtypes[released.columns]).all()
    assert len(released) == 500
    assert set(released["job"]) <= set(frame["job"])
    assert released["rich"].dtype == bool
    assert "name" in " ".join(funnel.notes_)
    assert "sex right more often than" in str(funnel.verdict_)
    assert "tells rich with an AUC of" in str(funnel.verdict_)
    # Neither the private column nor the task is needed.
    again = funnel.release(frame.drop(columns=["sex", "rich", "name"]), rng=0)
    pd.testing.assert_frame_equal(again, funnel.release(frame, rng=0))


def test_what_a_released_frame_may_hold(funnel):
    frame = people(300, 2)
    typical = funnel.release(frame, records="typical", rng=0)
    assert typical.drop_duplicates().shape[0] <= funnel.rule_.n_symbols
    symbols = funnel.release(frame, records="symbol", rng=0)
    assert list(symbols.columns) == ["z"]
    assert np.array_equal(symbols["z"], funnel.transform(frame, rng=np.random.default_rng(0)))
    kept = funnel.release(frame, keep="rich", rng=0)
    assert (kept["rich"].to_numpy() == frame["rich"].to_numpy()).all()
    with pytest.raises(InvalidInputError, match="is private"):
        funnel.release(frame, keep="sex")
    for records in ("columns", "symbol"):
        with pytest.raises(InvalidInputError, match="'job' is what the symbols are made from"):
            funnel.release(frame, records=records, keep=["job"])
    with pytest.raises(InvalidInputError, match="'z' is the name of the column of symbols"):
        funnel.release(frame.assign(z=1), records="symbol", keep="z")
    assert funnel.release(frame, records="symbol", keep="name", rng=0).columns.tolist() == ["z", "name"]
    with pytest.raises(InvalidInputError, match="records must be one of"):
        funnel.release(frame, records="whole")
    pd.testing.assert_frame_equal(funnel.inverse_transform(symbols["z"]), typical)
    described = funnel.describe()
    assert len(described) == funnel.rule_.n_symbols
    assert "job" in " ".join(described["stands_for"])


def test_every_column_is_made_from_the_symbol_alone(funnel):
    """Among records of one symbol, what is released has nothing to do with what they were."""
    frame = people(20_000, 3)
    rng = np.random.default_rng(0)
    symbols = funnel.rule_.transform(frame, rng)
    released = funnel.rule_.tables.draw(symbols, rng)
    common = np.bincount(symbols).argmax()
    rows = symbols == common
    table = pd.crosstab(frame["job"][rows], released["job"][rows])
    from scipy.stats import chi2_contingency

    assert chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("seed", [5, np.int64(5)])
def test_a_seed_does_not_draw_columns_with_the_numbers_of_the_symbols(funnel, seed):
    """Else a value would tell the number that drew the symbol, and with it the cell."""
    frame = people(300, 3)
    symbols = funnel.rule_.transform(frame, np.random.default_rng(5))
    again = funnel.rule_.tables.draw(symbols, np.random.default_rng(5))
    released = funnel.release(frame, rng=seed)
    assert not released.equals(again)
    pd.testing.assert_frame_equal(released, funnel.release(frame, rng=5))
    rng = np.random.default_rng(5)
    drawn = funnel.rule_.tables.draw(symbols, seed)
    pd.testing.assert_frame_equal(drawn, funnel.rule_.tables.draw(symbols, rng))


def test_ten_records_of_one_person_are_not_ten_people():
    frame = people(2_400)
    frame["person"] = [f"p{i // 2}" for i in range(2_400)]
    frame.loc[:29, ["person", "town"]] = ["p0", "Atlantis"]
    for seed in range(3):
        funnel = CertifiedFunnel(0.3, n_cells=6, random_state=seed).fit(frame, private="sex", groups="person")
        told = json.dumps(funnel.rule_.tables.to_dict()) + json.dumps(funnel.rule_.reader.to_dict())
        assert "Atlantis" not in told


def test_rows_are_nobodys_more_often_than_by_chance(funnel):
    made_from, others = people(), people(N, 9)
    columns = ["job", "hours", "rich", "town", "born"]
    released = funnel.release(people(4_000, 4), rng=0)[columns].itertuples(index=False)
    rows = [str(row) for row in released]
    seen, unseen = (
        {str(row) for row in frame[columns].itertuples(index=False)} for frame in (made_from, others)
    )
    assert sum(row in seen for row in rows) <= sum(row in unseen for row in rows) + 20


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "pyarrow"])
def test_other_libraries(kind):
    frame = kind(people(3_000).drop(columns="name"))
    funnel = CertifiedFunnel(0.2, random_state=0).fit(frame, private=["sex"])
    released = funnel.release(frame, rng=0)
    assert type(released) is type(frame)
    names = released.columns if isinstance(frame, pl.DataFrame) else released.column_names
    assert list(names) == ["job", "hours", "rich", "town", "born"]
    assert len(released) == 3_000


def test_columns_are_named_or_given():
    frame = people(3_000)
    with pytest.raises(InvalidInputError, match="no column 'sexe'; the closest is 'sex'"):
        CertifiedFunnel().fit(frame, private="sexe")
    with pytest.raises(InvalidInputError, match="both private and the task"):
        CertifiedFunnel().fit(frame, private="sex", task="sex")
    with pytest.raises(InvalidInputError, match="different for every record"):
        CertifiedFunnel().fit(frame, private="name")
    with pytest.raises(InvalidInputError, match="X is no frame"):
        CertifiedFunnel().fit(np.zeros((30, 2)), private="sex")
    given = CertifiedFunnel(0.2, random_state=0).fit(frame.drop(columns="sex"), private=frame["sex"])
    named = CertifiedFunnel(0.2, random_state=0).fit(frame, private="sex")
    assert given.verdict_.variance == named.verdict_.variance
    broken = frame.assign(hours=np.where(np.arange(3_000) == 5, np.inf, 1.0))
    with pytest.raises(InvalidInputError, match=r"hours.*infinite|infinite.*hours"):
        CertifiedFunnel(0.2, random_state=0).fit(broken, private="sex")
    empty = frame.assign(void=None)
    assert "void" in CertifiedFunnel(0.2, random_state=0).fit(empty, private="sex").release(empty).columns


def texts_of(value):
    """All keys and texts inside JSON."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
    elif isinstance(value, str):
        yield value


def test_a_rule_is_saved_for_whoever_releases_and_tells_no_private_value(funnel, tmp_path):
    funnel.save(tmp_path / "rule", part="release")
    rule = pf.load(tmp_path / "rule")
    assert isinstance(rule, CertifiedRule)
    frame = people(200, 5).drop(columns=["sex", "rich"])
    pd.testing.assert_frame_equal(rule.release(frame, rng=3), funnel.release(frame, rng=3))
    assert rule.certificate == funnel.certificate_
    document = json.loads((tmp_path / "rule" / "rule.json").read_text())
    texts = set(texts_of(document))
    assert not {"male", "female"} & texts
    assert not {"counts", "p_xy", "y_labels", "guesses"} & texts


def test_the_whole_funnel_is_saved_for_its_owner(funnel, tmp_path):
    funnel.save(tmp_path / "mine")
    again = pf.load(tmp_path / "mine")
    assert str(again.verdict_) == str(funnel.verdict_)
    assert again.certificates_ == funnel.certificates_
    frame = people(200, 5)
    assert np.array_equal(again.transform(frame, rng=1), funnel.transform(frame, rng=1))
    assert again.get_params()["max_leakage"] == 0.08
    first, second = again.frontier_.to_frame(), funnel.frontier_.to_frame()
    np.testing.assert_allclose(first.to_numpy(), second.to_numpy(), rtol=1e-9, atol=1e-9)
    with pytest.raises(InvalidInputError, match="which no file holds"):
        again.choose(max_leakage=0.2)
    with pytest.raises(InvalidInputError, match="name another"):
        funnel.save(tmp_path / "mine", part="release")
    with pytest.raises(InvalidInputError, match="part must be"):
        funnel.save(tmp_path / "mine", part="some")


def test_arrays_are_saved_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3)).astype(np.float32)
    y = rng.random(3_000) < 0.3 + 0.4 * (X[:, 0] > 0)
    for cells in ("kmeans", "tree"):
        funnel = CertifiedFunnel(0.2, cells=cells, random_state=0).fit(X, private=y, task=X[:, 1] > 0)
        funnel.save(tmp_path / cells)
        again = pf.load(tmp_path / cells)
        assert np.array_equal(again.release(X[:50], rng=0), funnel.release(X[:50], rng=0))
        assert again.choose(max_leakage=0.3).certificate_ == funnel.choose(max_leakage=0.3).certificate_
    from sklearn.decomposition import PCA

    other = CertifiedFunnel(0.2, cells=PCA(2), random_state=0).fit(X, private=y)
    with pytest.raises(InvalidInputError, match="cells made by a PCA cannot be written"):
        other.save(tmp_path / "pca")
    assert not (tmp_path / "pca").exists()


def column_of(document, kind, part):
    columns = document["payload"][part]["schema"]["columns"]
    return next(one for one in columns if one["kind"] == kind)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["payload"].pop("cells"),
        lambda data: data["payload"]["cells"]["centres"]["values"].pop(),
        lambda data: data["payload"]["cells"]["centres"].update(shape=[1, -1]),
        lambda data: data["payload"]["cell_points"].update(shape=[-1, 1]),
        lambda data: data["payload"]["p_cells"]["values"].pop(),
        lambda data: data["payload"]["mechanism"]["probabilities"].__setitem__(0, 2.0),
        lambda data: data.update(version=99),
        lambda data: data.update(kind="frontier"),
        lambda data: column_of(data, "number", "tables").update(native="evil"),
        lambda data: column_of(data, "category", "reader").update(native="evil"),
        lambda data: column_of(data, "number", "reader").update(scale=1e308),
        lambda data: column_of(data, "number", "reader").update(scale=-1.0),
        lambda data: column_of(data, "number", "reader").update(spread=0),
        lambda data: column_of(data, "number", "reader").update(spread="nan"),
        lambda data: column_of(data, "number", "reader").update(mean="inf"),
        lambda data: column_of(data, "number", "reader").update(missing=2),
        lambda data: column_of(data, "category", "reader")["shares"].__setitem__(0, "nan"),
        lambda data: data["payload"]["certificate"].update(value="nan"),
        lambda data: data["payload"]["certificate"].update(value=True),
        lambda data: data["payload"]["certificate"].update(kind="proof"),
        lambda data: data["payload"]["certificate"].update(unit=3),
        lambda data: data["payload"]["certificate"]["interval"].update(level="nan"),
        lambda data: data["payload"]["mechanism"]["p_z"].reverse(),
    ],
)
def test_a_damaged_rule_is_refused(funnel, tmp_path, change):
    funnel.save(tmp_path / "rule", part="release")
    path = tmp_path / "rule" / "rule.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(FileFormatError, match=r"rule\.json") as error:
        pf.load(tmp_path / "rule")
    assert "\n" not in str(error.value)


def test_a_tree_that_leads_nowhere_is_refused(tmp_path):
    """A child that comes before its parent would go round in circles."""
    frame, path = people(1_500), tmp_path / "rule" / "rule.json"
    tree = CertifiedFunnel(0.3, cells="tree", random_state=0).fit(frame, private="sex", task="rich")
    tree.save(tmp_path / "rule", part="release")
    assert np.array_equal(pf.load(tmp_path / "rule").cells_of(frame), tree.rule_.cells_of(frame))
    written = path.read_text()
    for column, value in [(0, 99), (0, -1), (2, 0), (2, 9_999), (3, -1), (3, 1.5), (4, 9_999), (4, -2)]:
        document = json.loads(written)
        document["payload"]["cells"]["nodes"]["values"][column] = value
        path.write_text(json.dumps(document))
        with pytest.raises(FileFormatError, match="the nodes of the tree are damaged"):
            pf.load(tmp_path / "rule")


def test_batches_are_released_as_frames_are(funnel, tmp_path):
    table = pa.Table.from_pandas(people(900, 2), preserve_index=False)
    reader = funnel.release_stream(table.to_reader(400), keep="name")
    made = reader.read_all()
    assert made.column_names == ["job", "hours", "rich", "town", "born", "name"]
    assert made["name"].to_pylist() == table["name"].to_pylist()
    written = funnel.rule_.release_stream(table.to_reader(400), tmp_path / "out.parquet", records="symbol")
    assert written.n_records == 900
    symbols = pf.files.open_table(tmp_path / "out.parquet")
    assert symbols.columns == ("z",)
    whole = funnel.release(people(900, 2), records="symbol", rng=3)["z"].tolist()
    found = funnel.release_stream(table.to_reader(400), records="symbol", rng=3).read_all()["z"].to_pylist()
    assert found == whole


def test_what_a_rule_cannot_stream(funnel, tmp_path):
    table = pa.Table.from_pandas(people(10, 2), preserve_index=False)
    for source, sink, message in [
        (table, tmp_path / "out.xlsx", "the name must end in"),
        (table, tmp_path / "out", "the name must end in"),
        (table.drop_columns("job"), tmp_path / "out.csv", "there is no column 'job'"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            funnel.release_stream(source, sink)
    with pytest.raises(InvalidInputError, match="'sex' is private"):
        funnel.release_stream(table, keep="sex")
    assert list(tmp_path.iterdir()) == []


def test_the_private_column_is_not_released_under_another_name():
    frame = people()
    frame["gender"] = frame["sex"].map({"male": 1, "female": 2})
    for given in ("sex", frame["sex"], frame["sex"].tolist()):
        funnel = CertifiedFunnel(0.08, random_state=0).fit(frame, private=given)
        released = funnel.release(frame.head(50))
        assert not {"sex", "gender"} & set(released.columns)
        assert not {"sex", "gender"} & set(funnel.rule_.reader.names())
        assert "gender: left out, it is the private column itself, or tells the same." in funnel.notes_
    age = frame["hours"] + np.random.default_rng(0).random(len(frame))  # a number goes by its values
    funnel = CertifiedFunnel(0.3, random_state=0).fit(frame.assign(age=age, twice=2 * age), private=age)
    assert not {"age", "twice"} & set(funnel.release(frame.assign(age=age, twice=age).head(9)).columns)


def test_rare_private_values_are_counted_by_people():
    frame = people(600)
    frame["who"] = np.arange(600) // 2
    frame.loc[frame["who"] < 8, "sex"] = "other"  # sixteen records of eight people
    with pytest.raises(InvalidInputError, match="has 8 people, too few to say anything about"):
        CertifiedFunnel(0.5, random_state=0).fit(frame, private="sex", groups="who")


def test_a_private_value_that_all_share_is_not_printed():
    with pytest.raises(InvalidInputError, match=r"the same for every record; there") as caught:
        CertifiedFunnel().fit(people(200).assign(sex="secret"), private="sex")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("records", ["columns", "typical", "symbol"])
def test_no_records_give_the_columns_alone(funnel, records, tmp_path):
    frame = people(50, 1)
    rule = funnel.rule_
    for make in (lambda x: x, pl.from_pandas, pa.Table.from_pandas):
        some, none = (rule.release(make(part), records=records) for part in (frame, frame[:0]))
        assert len(none) == 0
        assert type(none) is type(some)
        assert list(map(str, none.schema if hasattr(none, "schema") else none.dtypes)) == list(
            map(str, some.schema if hasattr(some, "schema") else some.dtypes)
        )
    frame[:0].to_parquet(tmp_path / "none.parquet")
    written = rule.release_stream(tmp_path / "none.parquet", tmp_path / "out.parquet", records=records)
    assert written.n_records == 0
    assert pa.parquet.read_schema(tmp_path / "out.parquet").names == list(
        rule.release(frame, records=records)
    )
    reader = rule.release_stream(frame[:0], records=records)
    assert (
        reader.schema.remove_metadata()
        == rule.release_stream(frame, records=records).schema.remove_metadata()
    )


def test_a_partition_of_spark_that_is_computed_again_draws_the_same(funnel):
    release = _Release((), {"records": "columns", "keep": ()}, None, None, None, secret=b"secret" * 6)
    batches = pa.Table.from_pandas(people(400, 1)).to_batches(100)
    first, again, other = (
        pa.concat_tables(release.tables(funnel.rule_, iter(batches), partition)) for partition in (3, 3, 4)
    )
    assert first == again
    assert first != other
    assert "secret" not in repr(release).replace("secret=", "")


def test_records_of_which_none_is_like_another_are_refused():
    few = pd.DataFrame({"a": ["x"] * 30, "b": [*"xy" * 14, "z", "z"], "y": [*"mf" * 15]})
    with pytest.raises(InvalidInputError, match="no column tells records apart"):
        CertifiedFunnel(0.5, random_state=0).fit(few.assign(b="x"), private="y")
