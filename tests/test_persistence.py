"""Files: exact round trips, whole files or none, and one clear sentence for every damaged one."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import channels

from privacyfunnel import persistence
from privacyfunnel.errors import DataFileError, FileFormatError, InvalidInputError
from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.persistence import atomic_stream, load, load_json, save_json, write_atomic

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)


@pytest.fixture
def mechanism() -> TableMechanism:
    return TableMechanism([[0.1, 0.9], [1 / 3, 2 / 3]], x_labels=["a", None], x_names=["job"])


def assert_same(a: TableMechanism, b: TableMechanism) -> None:
    assert a.p_z_given_x.tobytes() == b.p_z_given_x.tobytes()
    assert (repr(a.x_labels), repr(a.z_labels)) == (repr(b.x_labels), repr(b.z_labels))
    assert (a.x_names, a.private_names) == (b.x_names, b.private_names)


@settings(max_examples=40)
@given(st.data())
def test_mechanisms_survive_to_the_last_bit(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = data.draw(channels(data.draw(st.integers(1, 4)), 4))
    labels = st.one_of(scalars, st.tuples(scalars, scalars), st.tuples(st.tuples(scalars)))
    x_labels, z_labels = (
        data.draw(st.lists(labels, min_size=n, max_size=n, unique=True)) for n in table.shape
    )
    pairs = all(isinstance(label, tuple) and len(label) == 2 for label in x_labels)
    x_names = ["ü", "b"] if pairs else ["ü"]
    mechanism = TableMechanism(
        table, x_labels=x_labels, z_labels=z_labels, x_names=x_names, private_names=["y"]
    )
    path = tmp_path_factory.getbasetemp() / "mechanism.json"
    mechanism.save(path)
    assert_same(load(path), mechanism)


def test_extreme_numbers_and_large_integers_survive(tmp_path: Path) -> None:
    table = [[1 - 1e-16, 1e-300, 5e-324], [0.1 + 0.2, 0.7 - 4e-17, 0]]
    mechanism = TableMechanism(table, x_labels=[2**100, -0.0], z_labels=["", "\n\u2028", 1e300])
    mechanism.save(tmp_path / "m.json")
    assert_same(load(tmp_path / "m.json"), mechanism)


def typed_columns() -> dict[str, Any]:
    """Columns of three letters each, as people have them in frames."""
    days = [date(2024, 5, 17), date(2024, 5, 18), date(2024, 12, 31)]
    times = pd.Series(pd.to_datetime(days))
    return {
        "dates": pd.Series(days),
        "timestamps": times,
        "timestamps of a zone": times.dt.tz_localize("Europe/Oslo"),
        "nanoseconds": times + pd.Timedelta(1, "ns"),
        "lengths of time": pd.Series(pd.to_timedelta([1, 2, 3], unit="h")),
        "times of day": pd.Series([time(8), time(9, 30), time(17)]),
        "periods": pd.Series(pd.PeriodIndex(times, freq="M")).drop(1).reset_index(drop=True),
        "decimals": pd.Series([Decimal("0.10"), Decimal("1E+2"), Decimal(3)]),
        "bytes": pd.Series([b"a", b"\xff", b""]),
        "cut": pd.cut(pd.Series([0.1, 1.7, 2.9]), 3),
        "cut times": pd.cut(times, 2),
        "polars dates": pl.Series(days),
        "polars times of a zone": pl.Series([datetime(2024, 5, d) for d in (1, 2, 3)]).dt.replace_time_zone(
            "Asia/Tokyo"
        ),
    }


@pytest.mark.parametrize("name", typed_columns())
def test_dates_times_and_intervals_survive_and_release_after_loading(name: str, tmp_path: Path) -> None:
    column = typed_columns()[name]
    frame = {"x": column, "y": [0, 1] * (len(column) // 2) + [0] * (len(column) % 2)}
    table = pl.DataFrame(frame) if isinstance(column, pl.Series) else pd.DataFrame(frame)
    joint = Joint.from_frame(table, public="x", private="y")
    assert joint.n_x == len(set(column.to_list()))
    TableMechanism.for_joint(joint, np.eye(joint.n_x)).save(tmp_path / "m.json")
    loaded = load(tmp_path / "m.json")
    assert loaded.x_labels == joint.x_labels
    assert [type(label) for label in loaded.x_labels] == [type(label) for label in joint.x_labels]
    rows = [loaded.x_labels.index(value) for value in column.to_list()]
    assert loaded.release_frame(table, rng=0)["z"].to_list() == rows
    assert loaded.release(column, rng=0).to_list() == rows
    assert loaded.release(column.to_list(), rng=0) == rows


@pytest.mark.parametrize(
    "label",
    [{"date": "soon"}, {"timedelta": "1"}, {"decimal": "x"}, {"interval": [1, 0, "right"]}, {"bytes": 3}],
)
def test_damaged_typed_labels_are_refused(label: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(_document(payload=_payload(x_labels=["a", label])))
    with pytest.raises(FileFormatError, match="damaged"):
        load(path)


def test_file_is_readable_json(mechanism: TableMechanism, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    mechanism.relabel([("a", 1), ("b", 2)]).save(str(path))
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "format": "privacyfunnel",
        "kind": "table-mechanism",
        "version": 2,
        "payload": {
            "x_names": ["job"],
            "private_names": [],
            "x_labels": ["a", None],
            "z_labels": [{"tuple": ["a", 1]}, {"tuple": ["b", 2]}],
            "row_starts": [0, 2, 4],
            "symbols": [0, 1, 0, 1],
            "probabilities": [0.1, 0.9, 1 / 3, 2 / 3],
        },
    }


@pytest.mark.parametrize("label", [float("inf"), frozenset({1}), (1, 2j), Decimal("NaN")])
def test_labels_that_json_cannot_hold(label: object, tmp_path: Path) -> None:
    mechanism = TableMechanism([[1.0]], x_labels=[label])  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match=r"in x_labels is a .* which a file cannot hold; use texts"):
        mechanism.save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="not valid Unicode"):
        TableMechanism([[1.0]], x_labels=["\ud800"]).save(tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


# Damaged and foreign files


def test_every_truncation_is_noticed(mechanism: TableMechanism, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    mechanism.save(path)
    whole = path.read_bytes().rstrip()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"m\.json"):
            load(path)


def _payload(**changes: object) -> dict:
    payload = {"x_names": ["x"], "x_labels": ["a", "b"], "z_labels": [0, 1], "p_z_given_x": [[1, 0], [0, 1]]}
    return {**payload, **changes}


def _document(**changes: object) -> str:
    document = {"format": "privacyfunnel", "kind": "table-mechanism", "version": 1, "payload": _payload()}
    return json.dumps({**document, **changes})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        (" \n", "the file is empty"),
        ("hello", "damaged or was not saved by this library"),
        (b"\xff\xfe\x00", "damaged or was not saved by this library"),
        (b"\x80\x04\x95", "damaged or was not saved by this library"),
        ("[" * 100_000, "damaged or was not saved by this library"),
        ("[]", "was not saved by this library"),
        ("{}", "was not saved by this library"),
        (_document(format="other"), "was not saved by this library"),
        (_document(kind=7), "header of the file is damaged"),
        (_document(version="1"), "header of the file is damaged"),
        (_document(version=True), "header of the file is damaged"),
        (_document(version=0), "header of the file is damaged"),
        (_document(payload=[]), "header of the file is damaged"),
        (_document(version=3), "format version 3 and this library reads up to 2; install a newer one"),
        (_document(kind="hologram"), "cannot read a 'hologram'; install a newer one"),
        (_document(payload={}), "'z_labels' is missing"),
        (_document(payload={"z_labels": []}), "'p_z_given_x' is missing"),
        (_document(payload=_payload(x_labels="ab")), "'x_labels' is missing or not a list"),
        (_document(payload=_payload(x_labels=["a"])), "x_labels must have 2 entries"),
        (_document(payload=_payload(x_labels=["a", ["b"]])), "neither a value nor a tuple"),
        (_document(payload=_payload(x_labels=["a", {"list": []}])), "neither a value nor a tuple"),
        (_document(payload=_payload(z_labels=[1, 1])), "must be distinct"),
        (_document(payload=_payload(p_z_given_x=[[1, 0], [0, 0.9]])), "row 1 sums to 0.9"),
        (_document(payload=_payload(p_z_given_x=[[2, -1], [0, 1]])), "not negative"),
        (_document(payload=_payload(p_z_given_x=[[1], [0, 1]])), "table of numbers"),
        (_document(payload=_payload(p_z_given_x=[[float("nan"), 0], [0, 1]])), "NaN is not allowed"),
        (_document(payload=_payload(p_z_given_x=[["a", 0], [0, 1]])), "table of numbers"),
        (_document(payload=_payload(p_z_given_x=[[10**400, 0], [0, 1]])), "damaged"),
        (_document(payload=_payload(x_names=7)), "'x_names' is missing or not a list"),
        (_document(payload=_payload(private_names="sex")), "'private_names' is missing or not a list"),
        (_document(kind="frontier", payload={}), "damaged"),
        (_document(payload=_payload(p_x=[0.5, 0.5], p_z=[0.9, 0.1])), "contradicts p_x and the table"),
        (_document(payload=_payload(x_names=["a", "b"])), r"one name for each column of a letter \(1\)"),
        (_document(payload=_payload(x_names=[])), "x_names|name"),
    ],
)
def test_bad_files_give_one_sentence(content: str | bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad file.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    folders = [tmp_path] if find_spec("torch") else []  # a folder is read as a model
    for path in (tmp_path / "absent.json", *folders):
        with pytest.raises(DataFileError, match="cannot read the file") as caught:
            load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(OSError, match="cannot read"):
        load_json(tmp_path / "absent.json")


# Writing


def test_writing_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    write_atomic(path, "a long first version")
    write_atomic(path, "zweite, kürzer")
    assert path.read_bytes() == "zweite, kürzer".encode()
    write_atomic(str(path), b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()]
)
@pytest.mark.parametrize("step", ["fsync", "replace", "open"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    failure: BaseException, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(persistence.os, step, fail)
    expected = DataFileError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected) as caught:
        write_atomic(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]
    if isinstance(failure, OSError):
        assert "No space left on device" in str(caught.value)
        assert str(path) in str(caught.value)


def test_stream_replaces_or_leaves(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with suppress(ZeroDivisionError), atomic_stream(path) as file:
        file.write(b"new")
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with atomic_stream(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(DataFileError, match="cannot write the file"), atomic_stream(tmp_path / "none" / "t"):
        pass


def test_unwritable_places(mechanism: TableMechanism, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (
        tmp_path / "absent" / "m.json",
        tmp_path / "file" / "m.json",
        tmp_path,
        tmp_path / ("n" * 300),
    ):
        with pytest.raises(DataFileError):
            mechanism.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_permissions_and_links_are_respected(tmp_path: Path) -> None:
    path, link = tmp_path / "file.txt", tmp_path / "link.txt"
    reference = tmp_path / "reference.txt"
    reference.write_text("")
    write_atomic(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(reference.stat().st_mode)
    os.chmod(path, 0o640)
    link.symlink_to(path)
    write_atomic(link, "through the link")
    assert link.is_symlink()
    assert path.read_text() == "through the link"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_not_a_number_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        save_json(tmp_path / "f.json", "frontier", 1, {"value": np.inf})
    assert not list(tmp_path.iterdir())


def test_header_round_trip(tmp_path: Path) -> None:
    save_json(tmp_path / "f.json", "anything", 3, {"a": [1, None, "ü"]})
    assert load_json(tmp_path / "f.json") == ("anything", 3, {"a": [1, None, "ü"]})
