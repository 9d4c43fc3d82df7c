"""pfunnel release: only the public and private columns change, and everything else stays as it is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_tables import HEADER, Run, make_records, read_csv, write_csv

import privacyfunnel as pf
from privacyfunnel.files import base


@pytest.fixture
def doubling(tmp_path: Path) -> Path:
    """A mechanism saved from Python, so without private names: each city has two symbols of its own."""
    table = np.kron(np.eye(4), [[0.5, 0.5]])
    path = tmp_path / "doubling.json"
    pf.TableMechanism(table, x_labels=["Bonn", "Lima", "Oslo", "Rome"], x_names=["city"]).save(path)
    return path


def test_public_is_replaced_private_dropped_and_the_rest_untouched(
    pfunnel: Run, people: Path, mechanism: Path
) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "--mechanism", mechanism, "--output", out)
    assert ended.code == 0, ended.err
    header, rows = read_csv(out)
    assert header == ["id", "z", "note"]
    assert [(row[0], row[2]) for row in rows] == [(row[0], row[3]) for row in make_records()]
    table = pf.load(mechanism)
    for row, (_, city, _, _) in zip(rows, make_records(), strict=True):
        symbol = [str(label) for label in table.z_labels].index(row[1])
        assert table.p_z_given_x[table.x_labels.index(city), symbol] > 0
    assert b'"000"' not in out.read_bytes()  # quotes only where they are needed
    warning, *more = ended.err.splitlines()
    assert more == []
    assert warning.startswith("warning: these columns pass through unchanged")
    assert "id, note" in warning
    assert "--drop" in warning


def test_mechanism_without_private_names_asks_to_drop(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "-m", doubling, "-o", out)
    assert "drop the private column" in ended.err
    assert read_csv(out)[0] == ["id", "z", "sex", "note"]
    ended = pfunnel(
        "release", people, "-m", doubling, "-o", out, "--drop", "sex", "--drop", "id", "--drop", "note"
    )
    assert ended.err == ""
    assert read_csv(out)[0] == ["z"]


def test_keeping_columns_is_warned_of(pfunnel: Run, people: Path, mechanism: Path) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel(
        "release",
        people,
        "-m",
        mechanism,
        "-o",
        out,
        "--keep-public",
        "--keep-private",
        "--column",
        "city_z",
        "--json",
    )
    assert read_csv(out)[0] == ["id", "city", "city_z", "sex", "note"]
    assert [row[1] for row in read_csv(out)[1]] == [row[1] for row in make_records()]
    assert ended.err.count("keep this table to yourself") == 2
    values = json.loads(ended.out)
    assert values["passed_through"] == ["city", "id", "sex", "note"]
    assert values["n_records"] == 60


def test_seed_repeats_the_library_and_is_warned_of(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "-m", doubling, "-o", out, "--seed", 5)
    assert "warning: --seed" in ended.err
    cities = [row[1] for row in make_records()]
    expected = pf.load(doubling).release(cities, rng=np.random.default_rng(5))
    assert [int(row[1]) for row in read_csv(out)[1]] == expected


def test_without_seed_two_releases_differ(pfunnel: Run, people: Path, doubling: Path) -> None:
    outs = [people.with_name(name) for name in ("a.csv", "b.csv")]
    for out in outs:
        assert pfunnel("release", people, "-m", doubling, "-o", out).code == 0
    assert outs[0].read_bytes() != outs[1].read_bytes()  # equal with probability 2^-60


def test_batches_do_not_change_a_seeded_release(
    pfunnel: Run, people: Path, doubling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts = people.with_name("a.csv"), people.with_name("b.csv")
    pfunnel("release", people, "-m", doubling, "-o", whole, "--seed", 1)
    monkeypatch.setattr(base, "BATCH_ROWS", 7)
    pfunnel("release", people, "-m", doubling, "-o", parts, "--seed", 1)
    assert whole.read_bytes() == parts.read_bytes()


def test_parquet_keeps_types(pfunnel: Run, people: Path, doubling: Path) -> None:
    rows = make_records()
    table = pa.table(
        {
            "when": pa.array(range(60), pa.timestamp("ms")),
            "city": pa.array([row[1] for row in rows]).dictionary_encode(),
            "value": pa.array([None if i % 7 == 0 else i for i in range(60)], pa.int16()),
            "list": pa.array([[i, i + 1] for i in range(60)]),
        }
    )
    data, out = people.with_name("t.parquet"), people.with_name("out.parquet")
    pq.write_table(table.replace_schema_metadata({"secret": "city: Bonn"}), data)
    ended = pfunnel("release", data, "-m", doubling, "-o", out)
    assert ended.code == 0, ended.err
    result = pq.read_table(out)
    assert result.column_names == ["when", "z", "value", "list"]
    for name in ("when", "value", "list"):
        assert result.column(name).equals(table.column(name))
    assert result.schema.field("z").type == pa.int64()
    assert b"Bonn" not in out.read_bytes()


def test_formats_can_be_changed(pfunnel: Run, people: Path, doubling: Path) -> None:
    as_parquet, packed = people.with_name("out.parquet"), people.with_name("out.tsv.gz")
    assert pfunnel("release", people, "-m", doubling, "-o", as_parquet, "--seed", 2).code == 0
    table = pq.read_table(as_parquet)
    assert table.column("id").to_pylist() == [row[0] for row in make_records()]
    assert table.column("note").to_pylist() == [row[3] or None for row in make_records()]
    ended = pfunnel("release", as_parquet, "-m", doubling, "--public", "note", "-o", packed)
    assert ended.code == 2  # notes are no cities
    assert not packed.exists()
    pq.write_table(table.append_column("city", pa.array([row[1] for row in make_records()])), as_parquet)
    assert (
        pfunnel("release", as_parquet, "-m", doubling, "--column", "w", "-o", packed, "--seed", 2).code == 0
    )
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    assert lines[0] == "id\tz\tsex\tnote\tw"
    assert lines[2].split("\t")[:4] == ["001", str(table.column("z")[1]), make_records()[1][2], "a, b"]


def test_nested_column_cannot_become_text(pfunnel: Run, people: Path, doubling: Path) -> None:
    data, out = people.with_name("t.parquet"), people.with_name("out.csv")
    pq.write_table(pa.table({"city": ["Bonn"], "list": [[1, 2]]}), data)
    ended = pfunnel("release", data, "-m", doubling, "-o", out)
    assert ended.code == 2
    assert "column 'list'" in ended.err
    assert not out.exists()
    assert pfunnel("release", data, "-m", doubling, "-o", out, "--drop", "list").code == 0


def test_numbers_of_a_mechanism_match_text(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=[(1, None), (7, "a")], x_names=["n", "s"]).save(tmp_path / "m.json")
    data, out = write_csv(tmp_path / "t.csv", [["7", "a"], ["1", ""]], ["n", "s"]), tmp_path / "o.csv"
    assert pfunnel("release", data, "-m", tmp_path / "m.json", "-o", out).code == 0
    assert read_csv(out) == (["z"], [["1"], ["0"]])
    write_csv(data, [["007", "a"]], ["n", "s"])
    ended = pfunnel("release", data, "-m", tmp_path / "m.json", "-o", out)
    assert ended.code == 2
    assert "record 1 has n = '007', s = 'a'" in ended.err


@pytest.mark.parametrize(
    ("city", "remedy"), [("Roma", "solve again on data that has it"), ("", "solve with --missing letter")]
)
def test_unknown_letter_names_the_record(
    pfunnel: Run, people: Path, doubling: Path, monkeypatch: pytest.MonkeyPatch, city: str, remedy: str
) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 8)
    rows = make_records()
    rows[29][1] = rows[41][1] = city
    out = people.with_name("out.csv")
    ended = pfunnel("release", write_csv(people, rows), "-m", doubling, "-o", out)
    assert ended.code == 2
    error = ended.err.splitlines()[-1]
    assert error.startswith(f"error: {people}: record 30 has city = {city or None!r}")
    assert remedy in error
    assert [path.name for path in people.parent.iterdir()] == ["doubling.json", "people.csv"]


def test_public_columns_in_another_order(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=[("a", "1"), ("b", "2")], x_names=["s", "n"]).save(
        tmp_path / "m.json"
    )
    data = write_csv(tmp_path / "t.csv", [["1", "a"], ["2", "b"]], ["N", "S"])
    ask = ("release", data, "-m", tmp_path / "m.json", "-o", tmp_path / "o.csv")
    ended = pfunnel(*ask, "--public", "N", "--public", "S")
    assert ended.code == 2
    assert "--public must name the columns in the order of s, n." in ended.err
    assert pfunnel(*ask, "--public", "S", "--public", "N").code == 0
    assert read_csv(tmp_path / "o.csv") == (["z"], [["0"], ["1"]])


def test_wrong_type_is_said(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=["1", "2"], x_names=["n"]).save(tmp_path / "m.json")
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    ended = pfunnel("release", tmp_path / "t.parquet", "-m", tmp_path / "m.json", "-o", tmp_path / "o.csv")
    assert ended.code == 2
    assert "n = 1" in ended.err
    assert "another type: solve on a file of this kind" in ended.err


def test_empty_table_keeps_its_header(pfunnel: Run, people: Path, mechanism: Path) -> None:
    empty, out = write_csv(people.with_name("empty.csv"), []), people.with_name("out.csv")
    assert pfunnel("release", empty, "-m", mechanism, "-o", out).code == 0
    assert out.read_text() == "id,z,note\n"
    pq.write_table(
        pa.table({name: pa.array([], pa.string()) for name in HEADER}), people.with_name("e.parquet")
    )
    out = people.with_name("out.parquet")
    assert pfunnel("release", people.with_name("e.parquet"), "-m", mechanism, "-o", out).code == 0
    assert pq.read_table(out).column_names == ["id", "z", "note"]


def test_stdout_gets_csv_and_nothing_else(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    pfunnel("release", people, "-m", doubling, "-o", out, "--seed", 3)
    ended = pfunnel("release", people, "-m", doubling, "-o", "-", "--seed", 3)
    assert ended.code == 0
    assert ended.out == out.read_text()
