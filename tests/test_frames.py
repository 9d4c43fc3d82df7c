"""make_frame: the same table in whichever library is there."""

from __future__ import annotations

import sys

import narwhals as nw
import numpy as np
import pytest

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.frames import make_frame

HIDDEN = {"pandas": (), "polars": ("pandas",), "pyarrow": ("pandas", "polars")}


@pytest.fixture(params=HIDDEN)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The library that make_frame has to find because those before it are not installed."""
    for name in HIDDEN[request.param]:
        monkeypatch.setitem(sys.modules, name, None)
    return request.param


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b", "c"],
        [1, 2, 3],
        [0.5, 1.0, 2.5],
        [True, False, True],
        [1, None, 3],
        ["a", None, "c"],
    ],
)
def test_values_come_back_as_they_went_in(library: str, values: list) -> None:
    frame = nw.from_native(make_frame({"column": values, "other": [7, 8, 9]}), eager_only=True)
    assert frame.implementation.name.lower() == library
    assert frame.columns == ["column", "other"]
    back = [None if value != value else value for value in frame["column"].to_list()]
    assert back == values
    assert [type(value) for value in back] == [type(value) for value in values]


def test_arrays_and_missing_floats_are_columns(library: str) -> None:
    frame = nw.from_native(make_frame({"a": np.array([1, 2]), "b": (0.5, None)}), eager_only=True)
    assert frame["a"].to_list() == [1, 2]
    assert frame["b"].is_null().to_list() == [False, True]


def test_values_of_several_kinds_are_kept_or_become_text(library: str) -> None:
    mixed, tuples = ["a", 1, None], [("a", 1), ("b", 2), ("c", 3)]
    frame = nw.from_native(make_frame({"mixed": mixed, "numbers": [1, 2.5, 3]}), eager_only=True)
    expected = mixed if library == "pandas" else ["a", "1", None]
    assert [None if v != v else v for v in frame["mixed"].to_list()] == expected
    assert frame["numbers"].to_list() == [1.0, 2.5, 3.0]
    if library == "pandas":
        assert make_frame({"pair": tuples})["pair"].tolist() == tuples


def test_a_table_may_have_no_rows(library: str) -> None:
    assert nw.from_native(make_frame({"a": [], "b": []}), eager_only=True).shape == (0, 2)


def test_columns_of_different_length_are_refused(library: str) -> None:
    with pytest.raises(InvalidInputError, match="one length; 'a' has 1, 'b' has 2"):
        make_frame({"a": [1], "b": [1, 2]})
