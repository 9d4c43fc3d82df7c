"""Frames of Dask: partitions released anywhere, as often as it takes, give one release."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from dask_parts import N_PARTS, N_ROWS, Counted, people, two_workers
from scipy.stats import chisquare

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError, UnknownLetterError
from privacyfunnel.mechanism import TableMechanism

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

KEY = bytes(range(32))
TABLE = [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]]
NAMES: dict[str, Any] = {"x_labels": list("abc"), "x_names": ("job",), "private_names": ("sex",)}
HOWS: dict[str, dict[str, Any]] = {"seed": {"rng": 5}, "key": {"key": KEY, "id": "person"}, "entropy": {}}


@pytest.fixture
def mechanism() -> TableMechanism:
    return TableMechanism(TABLE, z_labels=["u", "v"], **NAMES)


def in_parts(folder: Path | None = None) -> Any:
    where = None if folder is None else str(folder)
    return dd.from_map(people, range(N_PARTS), folder=where, meta=people(0).head(0))


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("how", HOWS.values(), ids=HOWS)
def test_a_release_is_the_same_however_often_it_is_computed(
    mechanism: TableMechanism, how: dict[str, Any]
) -> None:
    released = mechanism.release_frame(in_parts(), keep="person", **how)
    assert isinstance(released, dd.DataFrame)
    first = released.compute()
    pd.testing.assert_frame_equal(first, released.compute())
    pd.testing.assert_frame_equal(first.tail(5), released.tail(5))
    assert list(first.columns) == ["person", "z"]
    assert first["person"].tolist() == list(range(N_PARTS * N_ROWS))
    other = mechanism.release_frame(in_parts(), keep="person", **(how or {"rng": 5})).compute()
    assert first.equals(other) == bool(how)


def test_partitions_draw_independently_and_rightly(mechanism: TableMechanism) -> None:
    released = mechanism.release_frame(in_parts(), keep_public=True).compute()
    for letter, row in zip("abc", TABLE, strict=True):
        drawn = released["z"][released["job"] == letter]
        seen = [(drawn == symbol).sum() for symbol in "uv"]
        assert chisquare(seen, np.array(row) * len(drawn)).pvalue > 1e-6
    same = people(0)
    twice = mechanism.release_frame(dd.concat([dd.from_pandas(same, npartitions=1)] * 2)).compute()["z"]
    assert (twice.iloc[: len(same)].to_numpy() != twice.iloc[len(same) :].to_numpy()).mean() > 0.2


def test_a_key_gives_what_it_gives_in_memory(mechanism: TableMechanism) -> None:
    whole = pd.concat([people(number) for number in range(N_PARTS)])
    expected = mechanism.release_frame(whole, **HOWS["key"])["z"].tolist()
    assert mechanism.release_frame(in_parts(), **HOWS["key"]).compute()["z"].tolist() == expected


def test_what_is_secret_is_not_printed(mechanism: TableMechanism) -> None:
    released = mechanism.release_frame(in_parts(), **HOWS["key"])
    shown = repr(released) + repr(released.expr) + repr(dict(released.dask))
    assert repr(KEY)[2:-1] not in shown
    assert KEY.hex() not in shown


def test_bad_input_of_partitions(mechanism: TableMechanism) -> None:
    with pytest.raises(InvalidInputError, match="random order"):
        mechanism.release_frame(in_parts(), shuffle=True)
    with pytest.raises(InvalidInputError, match="there is no column 'work'"):
        mechanism.release_frame(in_parts(), "work")
    with pytest.raises(InvalidInputError, match="rng must be"):
        mechanism.release_frame(in_parts(), rng=-1)
    few = TableMechanism(TABLE[:2], **{**NAMES, "x_labels": ["a", "b"]})
    with pytest.raises(UnknownLetterError, match=r"'c' \("):
        few.release_frame(in_parts()).compute()
    assert len(few.release_frame(in_parts(), unknown="drop").compute()) < N_PARTS * N_ROWS


def test_joints_are_counted_by_partitions() -> None:
    whole = pd.concat([people(number) for number in range(N_PARTS)])
    counted = pf.Joint.from_frame(in_parts(), public="job", private="sex")
    assert np.array_equal(counted.p_xy, pf.Joint.from_frame(whole, public="job", private="sex").p_xy)


@pytest.mark.parametrize("records", ["columns", "typical", "symbol"])
def test_certified_rules_release_partitions(records: str) -> None:
    from privacyfunnel.certified import CertifiedFunnel

    table = pf.datasets.load_german_credit()[["housing", "employment", "age", "credit_amount", "sex"]]
    task = table["credit_amount"]
    fitted = CertifiedFunnel(0.3, n_cells=6, random_state=0).fit(
        table.drop(columns="credit_amount"), private="sex"
    )
    rule, how = fitted.rule_, {"records": records, "keep": "credit_amount"}
    given = table.drop(columns="sex")
    frame = dd.from_pandas(given, npartitions=3)
    released = rule.release(frame, rng=3, **how)
    parts = [frame.partitions[i].compute() for i in range(3)]
    expected = [rule.release(part, rng=np.random.default_rng([3, i]), **how) for i, part in enumerate(parts)]
    found = released.compute()
    assert found.to_dict("list") == pd.concat(expected).to_dict("list")
    assert found["credit_amount"].tolist() == task.tolist()
    assert dict(found.dtypes) == dict(released.dtypes)
    drawn = rule.release(frame, **how)
    pd.testing.assert_frame_equal(drawn.compute(), drawn.compute())
    with pytest.raises(InvalidInputError, match="there is no column"):
        rule.release(frame, records=records, keep="nothing")


def test_rules_that_no_file_holds_and_rules_for_arrays() -> None:
    from sklearn.cluster import KMeans

    from privacyfunnel.certified import CertifiedFunnel

    table = pf.datasets.load_german_credit()[["age", "housing", "sex"]]
    own = CertifiedFunnel(0.3, cells=KMeans(4, n_init=1), random_state=0).fit(table, private="sex").rule_
    frame = dd.from_pandas(table, npartitions=2)
    assert len(own.release(frame, rng=1).compute()) == len(table)
    x = np.random.default_rng(0).normal(size=(400, 2))
    plain = CertifiedFunnel(0.3, n_cells=4, random_state=0).fit(x, np.arange(400) % 2).rule_
    with pytest.raises(InvalidInputError, match="this rule is for arrays"):
        plain.release(frame)


def test_a_worker_that_is_killed_half_way_changes_nothing(mechanism: TableMechanism, tmp_path: Path) -> None:
    counted = Counted(TABLE, z_labels=["u", "v"], **NAMES)
    object.__setattr__(counted, "folder", str(tmp_path))
    releases = {name: counted.release_frame(in_parts(), keep="person", **how) for name, how in HOWS.items()}
    expected = {name: release.compute() for name, release in releases.items()}
    with two_workers() as client:
        workers = set(client.run(os.getpid).values())
        # The secret of this release is the same, and so are its symbols wherever they are drawn.
        pd.testing.assert_frame_equal(client.compute(releases["entropy"]).result(), expected["entropy"])
        pids = Counter(map(int, (tmp_path / "arrived").read_text().split()))
        assert max(pids[worker] for worker in workers) <= 1 < N_PARTS
        slow = counted.release_frame(in_parts(tmp_path), keep="person", **HOWS["seed"])
        future = client.compute(slow)
        while len(begun := sorted(tmp_path.glob("begun-*"))) < 2:
            assert future.status != "error"
        os.kill(int(begun[0].name.split("-")[-1]), signal.SIGKILL)
        (tmp_path / "gate").touch()
        pd.testing.assert_frame_equal(future.result(timeout=120), expected["seed"])
        later = {path.name.split("-")[-1] for path in tmp_path.glob("begun-*")}
        assert len(later) >= 2
        keyed = counted.release_frame(in_parts(), keep="person", **HOWS["key"])
        pd.testing.assert_frame_equal(client.compute(keyed).result(), expected["key"])


def test_kept_categories_are_those_of_the_records_and_not_known_before(mechanism: TableMechanism) -> None:
    frame = pd.DataFrame({"job": ["a", "b"] * 10, "town": pd.Categorical(["p"] * 5 + ["q"] * 15)})
    frame["town"] = frame["town"].cat.add_categories(["SOMEBODY"])
    released = mechanism.release_frame(dd.from_pandas(frame, npartitions=4), keep="town", rng=0)
    assert not released["town"].cat.known
    assert list(released.compute()["town"].cat.categories) == ["p", "q"]
