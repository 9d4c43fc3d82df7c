"""Spark frames: the symbols that Python draws, partition by partition, and nothing that tells the key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_mechanisms import odd_mechanisms
from scipy.stats import chisquare

import privacyfunnel as pf
from privacyfunnel import TableMechanism
from privacyfunnel.alphabet import column_values
from privacyfunnel.errors import InvalidInputError, UnknownLetterError
from privacyfunnel.keys import hmac_pads
from privacyfunnel.spark import is_spark

KEY = bytes(range(200, 232))
LETTERS = ["a", "A", None, "ü'"]
ROWS = [[0.5, 0.25, 0.25, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0], [1 / 3, 0.0, 1 / 3, 1 / 3]]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "spark.md"


def mechanism(**more: Any) -> TableMechanism:
    settings = {"z_labels": ["p", "q", None, "s"], "x_names": ["job"], "private_names": ["sex"], **more}
    return TableMechanism(ROWS, x_labels=LETTERS, **settings)


def records(n: int) -> list[tuple[int, str | None, str]]:
    return [(i, LETTERS[i % 4], "f") for i in range(n)]


def people(spark: Any, n: int = 400, partitions: int = 3) -> Any:
    frame = spark.createDataFrame(records(n), "person BIGINT, job STRING, sex STRING")
    return frame.coalesce(1) if partitions == 1 else frame.repartition(partitions, "person")


def test_a_key_draws_what_it_draws_everywhere(spark_server: Any) -> None:
    """In a released frame and in Spark SQL."""
    one, frame = mechanism(), people(spark_server)
    expected = one.release([job for _, job, _ in records(400)], key=KEY, id=list(range(400)))
    released = one.release_frame(frame, key=KEY, id="person", keep="person")
    assert released.columns == ["person", "z"]
    assert dict(map(tuple, released.collect())) == dict(enumerate(expected))
    frame.createOrReplaceTempView("people")
    pads = spark_server.createDataFrame([hmac_pads(KEY)], "inner_pad BINARY, outer_pad BINARY")
    pads.createOrReplaceTempView("release_key")
    found = spark_server.sql(one.to_sql("people", dialect="spark", keep="person", id="person")).collect()
    assert dict(map(tuple, found)) == dict(enumerate(expected))


@pytest.mark.full
def test_odd_mechanisms_draw_what_they_draw_everywhere(spark_server: Any) -> None:
    import pyarrow as pa

    for one in odd_mechanisms():
        letters = [one.x_labels[i % one.n_x] for i in range(60)]
        parts = zip(*(x if isinstance(x, tuple) else (x,) for x in letters), strict=True)
        table = pa.table({name: list(part) for name, part in zip(one.x_names, parts, strict=True)})
        table = table.append_column("person", pa.array(range(60)))
        if pa.types.is_null(table.schema[0].type):
            table = table.set_column(0, one.x_names[0], pa.nulls(60, pa.string()))
        frame = spark_server.createDataFrame(table)
        if (
            dict(frame.dtypes)[one.x_names[0]] == "timestamp"
        ):  # a point of time without a zone, as the letters
            frame = frame.withColumn(one.x_names[0], frame[one.x_names[0]].cast("timestamp_ntz"))
        released = one.release_frame(frame, key=KEY, id="person", keep="person").collect()
        symbols = dict(zip(one.z_labels, column_values(one.z_labels), strict=True))
        drawn = [symbols[z] for z in one.release(letters, key=KEY, id=list(range(60)))]
        assert [row["z"] for row in sorted(released, key=lambda row: row["person"])] == drawn, one.x_labels


@pytest.mark.full
def test_the_same_seed_and_partitions_give_the_same_symbols(spark_server: Any) -> None:
    one, frame = mechanism(), people(spark_server)

    def drawn(**more: Any) -> dict[int, Any]:
        return dict(map(tuple, one.release_frame(frame, keep="person", **more).collect()))

    first = drawn(rng=7)
    assert first == drawn(rng=7)
    assert first != drawn(rng=8)
    before = spark_server.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark_server.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "17")
    try:
        assert first == drawn(rng=7)
    finally:
        spark_server.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", before)
    # Partitions must not draw by the same numbers: equal letters at equal places would get equal symbols.
    only = TableMechanism([[1 / 64] * 64], x_labels=["a"], x_names=["job"])
    same = spark_server.createDataFrame([("a",)] * 200, "job STRING").repartition(2)
    for rng in (7, None):
        parts = only.release_frame(same, rng=rng).rdd.glom().collect()
        assert len(parts) == 2
        assert parts[0][:50] != parts[1][:50]


@pytest.mark.full
def test_a_frame_that_is_used_twice_draws_once(spark_server: Any) -> None:
    """Two draws of the same records tell more than one; another release is another draw."""
    one, frame = mechanism(), people(spark_server)
    released = one.release_frame(frame, keep="person")
    assert sorted(released.collect()) == sorted(released.collect())
    assert sorted(released.collect()) != sorted(one.release_frame(frame, keep="person").collect())


@pytest.mark.full
@pytest.mark.parametrize("draws", [{}, {"rng": 0}, {"key": KEY, "id": "person"}], ids=["os", "seed", "key"])
def test_frequencies_match_the_table(spark_server: Any, draws: dict) -> None:
    one, frame = mechanism(), people(spark_server, 40_000)
    released = one.release_frame(frame, keep="person", **draws)
    counts = released.selectExpr("person % 4 AS row", "z").groupBy("row", "z").count().collect()
    found = {(row["row"], row["z"]): row["count"] for row in counts}
    for row, p in enumerate(one.p_z_given_x):
        here = np.array([found.pop((row, symbol), 0) for symbol in one.z_labels])
        assert here.sum() == 10_000
        assert here[p == 0].sum() == 0
        if (p > 0).sum() > 1:
            assert chisquare(here[p > 0], p[p > 0] * 10_000).pvalue > 1e-9
    assert not found


@pytest.mark.full
def test_settings_mean_what_they_mean_elsewhere(spark_server: Any) -> None:
    frame = people(spark_server, 40, partitions=1)
    strangers = spark_server.createDataFrame([(1, "zz", "f"), (2, "a", "f")], frame.schema)
    assert mechanism().release_frame(frame, output="new", keep="all").columns == ["person", "new"]
    assert mechanism().release_frame(frame, keep_public=True).columns == ["job", "z"]
    kept = mechanism().release_frame(strangers, keep="person", unknown="drop").collect()
    assert [row["person"] for row in kept] == [2]
    knowing = mechanism(marginal=[0.0, 0.0, 0.0, 1.0])
    drawn = knowing.release_frame(strangers, keep="person", unknown="draw").collect()
    assert {row["person"]: row["z"] for row in drawn}[1] == "s"
    letters = mechanism(p_x=[0.25] * 4).release_frame(frame, values="draw")
    assert letters.schema["job"].dataType == frame.schema["job"].dataType
    assert {row["job"] for row in letters.collect()} <= set(LETTERS)
    order = [row["person"] for row in knowing.release_frame(frame, keep="person", shuffle=True).collect()]
    assert sorted(order) == list(range(40))
    assert order != sorted(order)
    for settings, told in (
        ({"columns": "jobs"}, "no column 'jobs'"),
        ({"keep": "sex"}, "'sex' is private"),
        ({"key": KEY, "id": "persons"}, "no column 'persons'"),
        ({"key": b"short", "id": "person"}, "must be 32 bytes"),
        ({"key": KEY}, "go together"),
        ({"unknown": "maybe"}, "unknown must be one of"),
        ({"rng": np.random.default_rng(0)}, "pass a whole number"),
        ({"rng": -1}, "rng must be"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            mechanism().release_frame(frame, **settings)


@pytest.mark.full
def test_unknown_letters_and_ids_are_told_in_one_sentence_before_anything_is_released(
    spark_server: Any, tmp_path: Path
) -> None:
    frame = people(spark_server)
    strange = frame.selectExpr("person", "CASE WHEN person % 100 = 7 THEN 'zz' ELSE job END AS job", "sex")
    with pytest.raises(UnknownLetterError) as told:
        mechanism().release_frame(strange).write.parquet(str(tmp_path / "released"))
    assert str(told.value).startswith(
        "release_frame: 4 of 400 records have a value of 'job' that is none of the mechanism's 4 letters: "
        "'zz' (4); solve again"
    )
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == []
    numbers = TableMechanism([[1.0]], x_labels=[7], x_names=["job"])
    texts = spark_server.createDataFrame([("7",)], "job STRING")
    with pytest.raises(UnknownLetterError, match="as another type"):
        numbers.release_frame(texts)
    pairs = TableMechanism([[1.0]], x_labels=[("a", 1)], x_names=["a.job", "day`s"])
    two = spark_server.createDataFrame([("a", 1), ("b", 1), (None, 2)], "`a.job` STRING, `day``s` INT")
    with pytest.raises(UnknownLetterError, match=r"2 of 3 records .*\('b', 1\) \(1\)"):
        pairs.release_frame(two)
    assert pairs.release_frame(two.limit(1), keep_public=True).columns == ["a.job", "z", "day`s"]
    assert pairs.release_frame(two.limit(1)).collect()[0]["z"] == 0
    wrong = frame.selectExpr("CAST(person AS DOUBLE) AS person", "job")
    with pytest.raises(InvalidInputError, match="are of the type double; they must be texts"):
        mechanism().release_frame(wrong, key=KEY, id="person")
    nobody = frame.selectExpr("CASE WHEN person > 397 THEN NULL ELSE person END AS person", "job")
    with pytest.raises(InvalidInputError, match="2 of 400 records have no id in 'person'"):
        mechanism().release_frame(nobody, key=KEY, id="person")


@pytest.mark.full
def test_no_plan_and_no_file_has_the_key(spark_server: Any) -> None:
    """The mechanism is in a file of Spark's, which is what broadcast variables become."""
    marked = mechanism(z_labels=["p", "q", "a symbol to be found", "s"])
    released = marked.release_frame(people(spark_server), key=KEY, id="person", keep="person")
    assert released.count() == 400
    plan = released._jdf.queryExecution().toString()
    folder = Path(spark_server.conf.get("spark.local.dir"))
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert any(b"a symbol to be found" in content for content in files)
    for secret in (KEY, KEY.hex().encode(), *hmac_pads(KEY)):
        assert not any(secret in content for content in [*files, plan.encode()])


@pytest.mark.full
@pytest.mark.parametrize("records", ["columns", "typical", "symbol"])
def test_a_certified_rule_releases_frames(spark_server: Any, records: str) -> None:
    from privacyfunnel.certified import CertifiedFunnel

    table = pf.datasets.load_german_credit()[["housing", "employment", "age", "sex"]]
    rule = CertifiedFunnel(0.3, n_cells=6, random_state=0).fit(table, private="sex").rule_
    given = table.drop(columns="sex").assign(person=range(len(table)))
    frame = spark_server.createDataFrame(given).coalesce(1)
    found = rule.release(frame, records=records, rng=3).toArrow()
    here = rule.release(given, records=records, rng=np.random.default_rng([3, 0]))
    drawn_here = rule.release(given, records=records, key=KEY, id="person")
    assert found.to_pydict() == here.to_dict("list")
    drawn = rule.release(frame, records=records)
    assert drawn.toArrow() == drawn.toArrow()  # a second use of the frame is no second release
    assert rule.release(frame.limit(0), records=records).toArrow().num_rows == 0
    keyed = rule.release(frame, records=records, key=KEY, id="person").toArrow()
    assert keyed.to_pydict() == drawn_here.to_dict("list")


@pytest.mark.full
@pytest.mark.usefixtures("spark_server")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    # Spark runs where it was started, and not in this folder.
    exec(compile(code.replace('"released"', repr(str(tmp_path / "released"))), "spark.md", "exec"), {})
    assert capsys.readouterr().out == re.findall(r"# (\[.*\])\n", code)[0] + "\n"


def test_what_is_no_frame_of_spark_itself() -> None:
    class DataFrame:
        def mapInArrow(self) -> None: ...

    assert not is_spark(DataFrame())
    DataFrame.__module__ = "pyspark.sql.connect.dataframe"
    with pytest.raises(InvalidInputError, match=r"Spark Connect, .*; start Spark itself"):
        mechanism().release_frame(DataFrame())
