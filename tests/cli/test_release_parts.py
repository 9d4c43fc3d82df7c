"""pfunnel release on tables in parts: folders and patterns of Parquet files, to a folder or to one file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_tables import Run

import privacyfunnel as pf


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for number in range(20):
        cities = ["Bonn", "Rome", None] * (number % 3)
        columns = {"id": pa.array(range(len(cities))), "city": pa.array(cities, pa.string())}
        pq.write_table(pa.table(columns), folder / f"{number:02}.parquet")
    return folder


@pytest.fixture
def known(tmp_path: Path) -> Path:
    path = tmp_path / "known.json"
    letters = ["Bonn", "Rome", None]
    pf.TableMechanism([[1, 0], [0, 1], [0, 1]], x_labels=letters, x_names=["city"]).save(path)
    return path


def cities(path: Path) -> list[int]:
    return [z for file in sorted(path.glob("*.parquet")) for z in pq.read_table(file)["z"].to_pylist()]


@pytest.mark.parametrize("n_jobs", ["1", "2"])
def test_a_folder_becomes_a_folder(pfunnel: Run, parts: Path, known: Path, n_jobs: str) -> None:
    out = parts.with_name("released")
    ended = pfunnel("release", parts, "-m", known, "-o", out, "--n-jobs", n_jobs)
    assert (ended.code, ended.err) == (0, "")
    assert f"{parts}: 57 records released." in " ".join(ended.out.split())
    assert sorted(os.listdir(out)) == sorted(os.listdir(parts))
    assert cities(out) == [0, 1, 1] * 19
    assert pfunnel("release", parts, "-m", known, "-o", out).code == 2


def test_a_pattern_becomes_a_file(pfunnel: Run, parts: Path, known: Path) -> None:
    out = parts.with_name("out.arrow")
    ended = pfunnel("release", parts / "1*.parquet", "-m", known, "-o", out, "--keep", "id", "--json")
    assert json.loads(ended.out)["n_records"] == 3 * (1 + 2 + 0 + 1 + 2 + 0 + 1 + 2 + 0 + 1)
    table = pa.ipc.open_file(out).read_all()
    assert table.column_names == ["id", "z"]
    assert table["z"].to_pylist() == [0, 1, 1] * 10
    shuffled = parts.with_name("out.csv")
    assert pfunnel("release", parts, "-m", known, "-o", shuffled, "--shuffle").code == 0
    assert sorted(shuffled.read_text().split()) == ["0"] * 19 + ["1"] * 38 + ["z"]


def test_what_is_wrong_with_parts_is_one_sentence(pfunnel: Run, parts: Path, known: Path) -> None:
    out = parts.with_name("released")

    def refused(message: str, *more: str, data: Path = parts, output: Path = out) -> None:
        ended = pfunnel("release", data, "-m", known, "-o", output, *more)
        assert ended.code == 2
        assert ended.err.count("\n") == 1
        assert message in ended.err
        assert not out.exists()

    refused("this is what is read", output=parts)
    refused("would have one more part", output=parts / "20.parquet")
    refused("random order", "--shuffle")
    refused("no file has such a name", data=parts / "none*.parquet")
    refused("--spreadsheet-safe belongs to CSV files", "--spreadsheet-safe")
    refused("--n-jobs must be a positive number", "--n-jobs", "0")
    pq.write_table(pa.table({"id": [1], "city": ["Paris"]}), parts / "16.parquet")
    refused("1 of 55 records has a value of 'city'")
    pq.write_table(pa.table({"id": [1], "town": ["Bonn"]}), parts / "16.parquet")
    refused("16.parquet: there is no column 'city'; ")
    pq.write_table(pa.table({"id": ["1"], "city": ["Bonn"]}), parts / "16.parquet")
    refused("16.parquet: column 'id' is string here and int64 in", "--keep", "id")
    assert pfunnel("release", parts, "-m", known, "-o", out).code == 0


def test_parts_are_counted_for_a_joint(pfunnel: Run, parts: Path) -> None:
    columns = ("--public", "city", "--private", "id", "--missing", "letter")
    ended = pfunnel("solve", parts, *columns, "--beta", "0.5", "--json")
    assert json.loads(ended.out)["n_records"] == 57
