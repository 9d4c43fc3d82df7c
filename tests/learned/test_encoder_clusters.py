"""Encoders in Dask and Spark: sent once as bytes, releasing what they release here."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask_parts import two_workers

from privacyfunnel import shipping
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.learned import Funnel, FunnelEncoder

N = 200


@pytest.fixture(scope="module")
def records() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 3))
    return pd.DataFrame({"person": range(N), **{name: x[:, j] for j, name in enumerate("abc")}})


@pytest.fixture(scope="module")
def funnel(records: pd.DataFrame) -> Funnel:
    y = np.arange(N) % 2
    return Funnel(n_components=2, hidden=(8,), epochs=1, random_state=0).fit(records[["a", "b", "c"]], y)


def by_parts(funnel: Funnel, parts: list[Any], seed: int) -> pd.DataFrame:
    """What each partition gives here."""
    made = [
        funnel.release_frame(part, keep="person", rng=np.random.default_rng([seed, number]))
        for number, part in enumerate(parts)
    ]
    return pd.concat(made, ignore_index=True)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table.from_pandas])
def test_frames_in_memory(funnel: Funnel, records: pd.DataFrame, kind: Any) -> None:
    frame = kind(records)
    made = funnel.release_frame(frame, keep="person", rng=5)
    assert isinstance(made, type(frame))
    found = made if isinstance(made, pd.DataFrame) else made.to_pandas()
    assert list(found) == [*funnel.get_feature_names_out(), "person"]
    seeded = Funnel(**{**funnel.get_params(), "release_state": 5})
    seeded.__dict__.update({k: v for k, v in vars(funnel).items() if k.endswith("_")})
    expected = seeded.transform(records[["a", "b", "c"]])
    assert np.array_equal(found[list(funnel.get_feature_names_out())].to_numpy(), expected)
    assert found["person"].tolist() == list(range(N))
    assert len(funnel.release_frame(frame[:0])) == 0
    assert list(funnel.release_frame(records.iloc[::-1]).index) == list(range(N))


def test_a_model_without_names(records: pd.DataFrame) -> None:
    x = records[["a", "b", "c"]].to_numpy()
    funnel = Funnel(2, hidden=(4,), epochs=1, random_state=0).fit(x, np.arange(N) % 2)
    assert len(funnel.release_frame(records, keep="person")) == N
    with pytest.raises(InvalidInputError, match="there are 4 columns and the model"):
        funnel.release_frame(records)


def test_what_is_refused(funnel: Funnel, records: pd.DataFrame) -> None:
    for keep, told in (("a", "undoes the release"), ("d", "there is no column 'd'")):
        with pytest.raises(InvalidInputError, match=told):
            funnel.release_frame(records, keep=keep)
    code = str(funnel.get_feature_names_out()[0])
    with pytest.raises(InvalidInputError, match="the name of a column of codes"):
        funnel.release_frame(records.rename(columns={"person": code}), keep=code)
    with pytest.raises(InvalidInputError, match="there is no column 'b'"):
        funnel.release_frame(records.drop(columns="b"))
    with pytest.raises(InvalidInputError, match="lazy"):
        funnel.release_frame(pl.from_pandas(records).lazy())


def test_what_is_sent_is_the_encoder_alone_and_opened_once(funnel: Funnel, records: pd.DataFrame) -> None:
    sent = shipping.packed(funnel)
    manifest, weights = (name for name, _ in sent.files)
    assert (manifest, weights[-12:]) == ("manifest.json", ".safetensors")
    assert b'"kind":"learned-encoder"' in sent.files[0][1]
    found = shipping.opened(pickle.loads(pickle.dumps(sent)))
    assert isinstance(found, FunnelEncoder)
    assert found is shipping.opened(sent)
    assert repr(sent).startswith("Shipped(digest=")
    x = records[["a", "b", "c"]]
    assert np.array_equal(found.encode(x), funnel.encode(x))
    aligned = Funnel(2, hidden=(4,), epochs=1, align=True, random_state=0).fit(x, np.arange(N) % 2)
    with pytest.raises(InvalidInputError, match="align"):
        shipping.packed(aligned)


def test_a_process_keeps_the_latest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shipping, "load", lambda folder: (Path(folder) / "inner" / "name").read_text())
    monkeypatch.setattr(shipping, "_OPENED", {})

    def save(name: str, folder: Path) -> None:
        (folder / "inner").mkdir(parents=True)
        (folder / "inner" / "name").write_text(name)

    sent = [shipping.Shipped.of(lambda folder, name=name: save(name, folder)) for name in "abcdef"]
    assert [shipping.opened(one) for one in sent] == list("abcdef")
    assert list(shipping._OPENED.values()) == list("cdef")
    assert shipping.opened(sent[0]) == "a"


def test_partitions_of_dask(funnel: Funnel, records: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    import dask

    frame = dd.from_pandas(records, npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        parts = [frame.partitions[i].compute() for i in range(3)]
        expected = by_parts(funnel, parts, 7)
        released = funnel.release_frame(frame, keep="person", rng=7)
        pd.testing.assert_frame_equal(released.compute().reset_index(drop=True), expected)
        entropy = funnel.release_frame(frame)
        pd.testing.assert_frame_equal(entropy.compute(), entropy.compute())
        assert not entropy.compute().equals(funnel.release_frame(frame).compute())
        with pytest.raises(InvalidInputError, match="rng must be"):
            funnel.release_frame(frame, rng=-1)
        holes = dd.from_pandas(records.assign(a=np.nan), npartitions=2)
        with pytest.raises(InvalidInputError, match="column 'a'"):
            funnel.release_frame(holes).compute()


@pytest.mark.full
def test_a_cluster_of_dask_gets_it_once(funnel: Funnel, records: pd.DataFrame) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(records, npartitions=4)
    expected = by_parts(funnel, [frame.partitions[i].compute() for i in range(4)], 7)
    with two_workers() as client:
        released = funnel.release_frame(frame, keep="person", rng=7)
        found = client.compute(released).result().reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected)
        kept = client.run(lambda: (os.getpid(), len(shipping._OPENED)))
        assert all(pid != os.getpid() and n <= 1 for pid, n in kept.values())
        assert sum(n for _, n in kept.values()) >= 1


@pytest.mark.full
def test_partitions_of_spark(spark_server: Any, funnel: Funnel, records: pd.DataFrame) -> None:
    frame = spark_server.createDataFrame(records).repartition(2, "person").cache()
    parts = [pd.DataFrame(rows, columns=list(records)) for rows in frame.rdd.glom().collect()]
    expected = by_parts(funnel, parts, 7)
    released = funnel.release_frame(frame, keep="person", rng=7)
    assert released.columns == [*funnel.get_feature_names_out(), "person"]
    assert [kind for _, kind in released.dtypes] == ["float", "float", "bigint"]
    found = released.toArrow().to_pandas()
    pd.testing.assert_frame_equal(found, expected, check_exact=False, atol=1e-6)
    assert released.collect() == released.collect()
    drawn = funnel.release_frame(frame)  # a second use of the frame is no second release
    assert drawn.collect() == drawn.collect() != funnel.release_frame(frame).collect()
    assert funnel.release_frame(frame.limit(0)).count() == 0
    encoder = shipping.opened(shipping.packed(funnel))
    assert encoder.release_frame(frame, keep="person", rng=7).collect() == released.collect()
    with pytest.raises(InvalidInputError, match="there is no column 'b'"):
        funnel.release_frame(frame.drop("b"))
    with pytest.raises(InvalidInputError, match="release it there with release_frame"):
        funnel.transform(frame)
    # The files are what a worker reads, and no pickled network: that is in no file of Spark's.
    folder = Path(spark_server.conf.get("spark.local.dir"))
    held = [path.read_bytes() for path in folder.rglob("broadcast*") if path.is_file()]
    assert not any(b"torch._utils" in content for content in held)
