"""The private columns: a mechanism knows them from its joint, keeps them, and does not hand them out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privacyfunnel as pf
from privacyfunnel.combining import time_share
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.mechanism import TableMechanism

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture
def coder() -> TableMechanism:
    return TableMechanism(
        np.eye(2), x_labels=["a", "b"], z_labels=["A", "B"], x_names=["job"], private_names=["sex", "age"]
    )


def test_none_by_default_and_a_text_is_one_name() -> None:
    assert TableMechanism(np.eye(2)).private_names == ()
    assert TableMechanism(np.eye(2), private_names="sex").private_names == ("sex",)


def test_derived_mechanisms_protect_the_same(coder: TableMechanism) -> None:
    second = TableMechanism(np.eye(2), x_labels=["A", "B"], private_names=["age", "race"])
    assert coder.relabel(["left", "right"]).private_names == ("sex", "age")
    assert coder.repeat(2).private_names == ("sex", "age")
    assert coder.compose(second).private_names == ("sex", "age", "race")
    other = TableMechanism(np.eye(2), x_labels=["a", "b"], x_names=["job"], private_names=["race"])
    assert time_share([coder, other], [0.5, 0.5]).private_names == ("sex", "age", "race")
    # Also of one that is never used: leaving a column out by mistake harms nobody.
    assert time_share([coder, other], [1, 0]).private_names == ("sex", "age", "race")


@pytest.mark.parametrize("method", ["exact", "dca", "greedy"])
@pytest.mark.parametrize("target", [{"beta": 0.4}, {"min_utility": 0.5}])
def test_solvers_take_them_from_the_joint(method: str, target: dict[str, float]) -> None:
    joint = pf.Joint([[0.3, 0.1], [0.1, 0.2], [0.1, 0.2]], x_names="job", y_names=["sex"])
    solution = pf.solve(joint, method=method, n_starts=1, rng=0, **target)
    assert solution.mechanism.x_names == ("job",)
    assert solution.mechanism.private_names == ("sex",)


def test_every_mechanism_of_a_frontier_has_them(tmp_path: Path) -> None:
    joint = pf.Joint([[0.3, 0.1], [0.1, 0.5]], y_names=["sex", "age"], y_labels=[("f", 1), ("m", 1)])
    front = pf.frontier(joint, method="greedy", n_points=2, rng=0)
    front.save(tmp_path / "f.json")
    for known in (front, pf.load(tmp_path / "f.json")):
        names = {point.mechanism.private_names for point in known.points if point.mechanism is not None}
        assert names == {("sex", "age")}
        assert known.mechanism_at(0.3).private_names == ("sex", "age")
    assert pf.perfect_privacy(joint).mechanism.private_names == ("sex", "age")


def test_files_without_them_are_read(coder: TableMechanism) -> None:
    values = coder.to_dict()
    assert TableMechanism.from_dict(values).private_names == ("sex", "age")
    del values["private_names"]
    assert TableMechanism.from_dict(values).private_names == ()


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_lose_the_private_columns(kind: str, coder: TableMechanism) -> None:
    frame = FRAMES[kind]({"sex": ["f", "m"], "key": [1, 2], "job": ["b", "a"]})  # and no age

    def columns(**options: object) -> list[str]:
        released = coder.release_frame(frame, **options)  # type: ignore[arg-type]
        return list(released.column_names if kind == "pyarrow" else released.columns)

    assert columns() == ["z"]
    assert columns(keep="all") == ["key", "z"]
    assert columns(output="sex") == ["sex"]
    assert columns(keep_public=True) == ["job", "z"]
    assert columns(keep_private=True) == ["sex", "z"]
    assert columns(keep="key", keep_private=True) == ["sex", "key", "z"]
    with pytest.raises(InvalidInputError, match="already has a column 'sex'"):
        columns(keep_private=True, output="sex")
    with pytest.raises(InvalidInputError, match="column 'sex' is private"):
        columns(keep=["key", "sex"])
    with pytest.raises(InvalidInputError, match="column 'job' is public"):
        columns(keep="job")
    with pytest.raises(InvalidInputError, match="no column 'kee'; the closest is 'key'"):
        columns(keep=["kee"])


def test_public_column_that_has_the_name_of_a_private_one_is_replaced(coder: TableMechanism) -> None:
    frame = pd.DataFrame({"age": ["a", "b"], "key": [1, 2]})
    assert list(coder.release_frame(frame, "age", keep="all")) == ["z", "key"]
