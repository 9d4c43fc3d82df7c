"""pfunnel release: what leaves is z and the columns that were named, and those stay as they are."""

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


def test_only_z_and_what_is_named_leaves(pfunnel: Run, people: Path, mechanism: Path) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "--mechanism", mechanism, "--output", out)
    assert (ended.code, ended.err) == (0, "")
    header, rows = read_csv(out)
    assert header == ["z"]
    assert len(rows) == 60
    assert "Left out id, sex, note" in " ".join(ended.out.split())
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, "--keep", "note", "--keep", "id")
    header, rows = read_csv(out)
    assert header == ["id", "z", "note"]
    assert [(row[0], row[2]) for row in rows] == [(row[0], row[3]) for row in make_records()]
    table = pf.load(mechanism)
    for row, (_, city, _, _) in zip(rows, make_records(), strict=True):
        symbol = [str(label) for label in table.z_labels].index(row[1])
        assert table.p_z_given_x[table.x_labels.index(city), symbol] > 0
    assert b'"000"' not in out.read_bytes()  # quotes only where they are needed
    assert ended.err == (
        "warning: the mechanism does not protect what these columns tell: id, note; measure it with "
        "'pfunnel audit --keep COLUMN'.\n"
    )
    assert "Left out sex" in " ".join(ended.out.split())


def test_keep_all_is_all_but_public_and_private(
    pfunnel: Run, people: Path, mechanism: Path, doubling: Path
) -> None:
    out = people.with_name("out.csv")
    assert pfunnel("release", people, "-m", mechanism, "-o", out, "--keep-all").code == 0
    assert read_csv(out)[0] == ["id", "z", "note"]
    ended = pfunnel("release", people, "-m", doubling, "-o", out, "--keep-all")
    assert read_csv(out)[0] == ["id", "z", "sex", "note"]
    assert "the private column may be among them" in ended.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--keep", "sex"], "people.csv: column 'sex' is private, and handing it out undoes the release"),
        (["--keep", "city"], "people.csv: column 'city' is public, and handing it out undoes the release"),
        (["--keep", "notes"], "people.csv: there is no column 'notes'; the closest is 'note'"),
        (["--keep", "id", "--keep-all"], "--keep-all keeps every column that --keep can name"),
        (["--keep", "id", "--column", "id"], "already has a column 'id'; choose another --column"),
        (["--drop", "id"], "No such option: --drop"),
        (["--unknown", "null"], "'null' is unknown; choose one of error, draw, drop"),
    ],
)
def test_what_cannot_be_kept(
    pfunnel: Run, people: Path, mechanism: Path, args: list[str], message: str
) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, *args)
    assert ended.code == 2
    assert message in ended.err
    assert not out.exists()


def test_keeping_columns_is_warned_of(pfunnel: Run, people: Path, mechanism: Path) -> None:
    out = people.with_name("out.csv")
    ask = ("release", people, "-m", mechanism, "-o", out, "--column", "city_z", "--json")
    ended = pfunnel(*ask, "--keep-public", "--keep-private")
    assert read_csv(out)[0] == ["city", "city_z", "sex"]
    assert [row[0] for row in read_csv(out)[1]] == [row[1] for row in make_records()]
    assert ended.err.count("keep this table to yourself") == 2
    values = json.loads(ended.out)
    assert values["kept"] == ["city", "sex"]
    assert values["left_out"] == ["id", "note"]
    assert values["n_records"] == 60
    assert values["unknown"] == {"records": 0, "action": "error"}


def test_seed_repeats_the_library_and_is_warned_of(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "-m", doubling, "-o", out, "--seed", 5)
    assert "warning: --seed" in ended.err
    cities = [row[1] for row in make_records()]
    expected = pf.load(doubling).release(cities, rng=np.random.default_rng(5))
    assert [int(row[0]) for row in read_csv(out)[1]] == expected


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
    ended = pfunnel("release", data, "-m", doubling, "-o", out, "--keep-all")
    assert ended.code == 0, ended.err
    result = pq.read_table(out)
    assert result.column_names == ["when", "z", "value", "list"]
    for name in ("when", "value", "list"):
        assert result.column(name).equals(table.column(name))
    assert result.schema.field("z").type == pa.int64()
    assert b"Bonn" not in out.read_bytes()


def test_formats_can_be_changed(pfunnel: Run, people: Path, doubling: Path) -> None:
    as_parquet, packed = people.with_name("out.parquet"), people.with_name("out.tsv.gz")
    keep = ("--keep-all", "--seed", 2)
    assert pfunnel("release", people, "-m", doubling, "-o", as_parquet, *keep).code == 0
    table = pq.read_table(as_parquet)
    assert table.column("id").to_pylist() == [row[0] for row in make_records()]
    assert table.column("note").to_pylist() == [row[3] or None for row in make_records()]
    ended = pfunnel("release", as_parquet, "-m", doubling, "--public", "note", "-o", packed)
    assert ended.code == 2  # notes are no cities
    assert not packed.exists()
    pq.write_table(table.append_column("city", pa.array([row[1] for row in make_records()])), as_parquet)
    assert pfunnel("release", as_parquet, "-m", doubling, "--column", "w", "-o", packed, *keep).code == 0
    lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
    assert lines[0] == "id\tz\tsex\tnote\tw"
    assert lines[2].split("\t")[:4] == ["001", str(table.column("z")[1]), make_records()[1][2], "a, b"]


def test_nested_column_cannot_become_text(pfunnel: Run, people: Path, doubling: Path) -> None:
    data, out = people.with_name("t.parquet"), people.with_name("out.csv")
    pq.write_table(pa.table({"city": ["Bonn"], "list": [[1, 2]]}), data)
    ended = pfunnel("release", data, "-m", doubling, "-o", out, "--keep", "list")
    assert ended.code == 2
    assert "column 'list'" in ended.err
    assert not out.exists()
    assert pfunnel("release", data, "-m", doubling, "-o", out).code == 0


@pytest.mark.parametrize("city", [["Bonn"], {"name": "Bonn"}])
def test_nested_public_column(pfunnel: Run, people: Path, doubling: Path, city: object) -> None:
    data, out = people.with_name("t.parquet"), people.with_name("out.csv")
    pq.write_table(pa.table({"city": [city]}), data)
    ended = pfunnel("release", data, "-m", doubling, "-o", out)
    assert ended.code == 2
    (error,) = ended.err.splitlines()
    assert error.startswith(f"error: {data}: column 'city' holds ")
    assert error.endswith("not single values; pick a field or an element.")
    assert not out.exists()


def test_empty_lines_before_the_header_of_one_column(pfunnel: Run, people: Path, doubling: Path) -> None:
    data, out = people.with_name("one.csv"), people.with_name("out.csv")
    data.write_text("\n\ncity\nBonn\n")
    ended = pfunnel("release", data, "-m", doubling, "-o", out)
    assert ended.code == 2
    (error,) = ended.err.splitlines()
    assert error.startswith(f"error: {data}: an empty line comes before the header")
    assert not out.exists()


def test_numbers_of_a_mechanism_match_text(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=[(1, None), (7, "a")], x_names=["n", "s"]).save(tmp_path / "m.json")
    data, out = write_csv(tmp_path / "t.csv", [["7", "a"], ["1", ""]], ["n", "s"]), tmp_path / "o.csv"
    assert pfunnel("release", data, "-m", tmp_path / "m.json", "-o", out).code == 0
    assert read_csv(out) == (["z"], [["1"], ["0"]])
    write_csv(data, [["007", "a"]], ["n", "s"])
    ended = pfunnel("release", data, "-m", tmp_path / "m.json", "-o", out)
    assert ended.code == 2
    assert "1 of 1 record has a value of 'n', 's' that is none of the mechanism's 2 letters" in ended.err
    assert "('007', 'a') (1)" in ended.err


@pytest.mark.parametrize(
    ("city", "remedy"), [("Roma", "solve again on data that has it"), ("", "solve with --missing letter")]
)
def test_all_unknown_letters_are_counted_before_anything_is_written(
    pfunnel: Run, people: Path, doubling: Path, monkeypatch: pytest.MonkeyPatch, city: str, remedy: str
) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 8)
    rows = make_records()
    rows[29][1] = rows[41][1] = city
    rows[17][1] = "Paris"
    write_csv(people, rows)
    for out in (people.with_name("out.csv"), "-"):
        ended = pfunnel("release", people, "-m", doubling, "-o", out)
        assert (ended.code, ended.out) == (2, "")
        (error,) = ended.err.splitlines()
        assert error.startswith(
            f"error: {people}: 3 of 60 records have a value of 'city' that is none of the mechanism's 4 "
            f"letters: {city or None!r} (2), 'Paris' (1); {remedy}"
        )
    assert [path.name for path in people.parent.iterdir()] == ["doubling.json", "people.csv"]


def test_unknown_letters_are_drawn_or_dropped(pfunnel: Run, people: Path, mechanism: Path) -> None:
    rows = make_records()
    rows[29][1] = "Paris"
    out = people.with_name("out.csv")
    ask = ("release", write_csv(people, rows), "-m", mechanism, "-o", out, "--keep", "id", "--json")
    ended = pfunnel(*ask, "--unknown", "drop")
    assert [row[0] for row in read_csv(out)[1]] == [row[0] for row in rows if row[1] != "Paris"]
    assert json.loads(ended.out)["unknown"] == {"records": 1, "action": "drop"}
    assert "'Paris' (1); they are left out." in ended.err
    ended = pfunnel(*ask, "--unknown", "draw")
    assert [row[0] for row in read_csv(out)[1]] == [row[0] for row in rows]
    assert {row[1] for row in read_csv(out)[1]} <= {str(label) for label in pf.load(mechanism).z_labels}
    assert "they got a symbol drawn from P(Z)." in ended.err


def test_drawing_needs_a_mechanism_that_knows_its_marginal(
    pfunnel: Run, people: Path, doubling: Path
) -> None:
    ended = pfunnel("release", people, "-m", doubling, "-o", people.with_name("o.csv"), "--unknown", "draw")
    assert ended.code == 2
    assert "this mechanism does not know P(Z), from which --unknown draw draws" in ended.err


def test_random_order_of_whole_records(
    pfunnel: Run, people: Path, doubling: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records sorted by sex: in their own order the file tells it, in random order it does not."""
    monkeypatch.setattr(base, "BATCH_ROWS", 7)
    rows = sorted(make_records(), key=lambda row: row[2])
    out = people.with_name("out.csv")
    ask = ("release", write_csv(people, rows), "-m", doubling, "-o", out, "--keep", "id", "--seed", 1)
    pfunnel(*ask)
    in_order = read_csv(out)[1]
    assert [row[0] for row in in_order] == [row[0] for row in rows]
    orders = []
    for more in ([], [], ["--seed", "1"], ["--seed", "1"]):
        ended = pfunnel(*ask[:-2], "--shuffle", *more)
        assert "Order random" in " ".join(ended.out.split())
        orders.append(read_csv(out)[1])
    assert sorted(orders[2]) == sorted(in_order)  # the same draws, and whole records
    assert orders[2] == orders[3] != in_order
    assert orders[0] != orders[1]
    assert [row[0] for row in orders[0]] != [row[0] for row in rows]
    ended = pfunnel(*ask[:4], "-o", "-", "--shuffle", "--keep", "id")
    assert sorted(line.split(",")[0] for line in ended.out.splitlines()[1:]) == sorted(r[0] for r in rows)


def test_formulas_are_defused_on_request(pfunnel: Run, people: Path, doubling: Path) -> None:
    rows = make_records()
    rows[0][3], rows[1][3] = "=cmd|' /C calc'!A0", "-12"
    out = people.with_name("out.csv")
    ask = ("release", write_csv(people, rows), "-m", doubling, "--keep", "note")
    for more, shown in (([], rows[0][3]), (["--spreadsheet-safe"], f"'{rows[0][3]}")):
        assert pfunnel(*ask, "-o", out, *more).code == 0
        assert [row[1] for row in read_csv(out)[1]][:2] == [shown, "-12"]
    ended = pfunnel(*ask, "-o", people.with_name("out.parquet"), "--spreadsheet-safe")
    assert ended.code == 2
    assert "--spreadsheet-safe belongs to CSV files" in ended.err


def test_public_columns_in_another_order(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=[("a", "1"), ("b", "2")], x_names=["s", "n"]).save(
        tmp_path / "m.json"
    )
    data = write_csv(tmp_path / "t.csv", [["1", "a"], ["2", "b"]], ["N", "S"])
    ask = ("release", data, "-m", tmp_path / "m.json", "-o", tmp_path / "o.csv")
    ended = pfunnel(*ask, "--public", "N", "--public", "S")
    assert ended.code == 2
    assert "name the public columns in the order of s, n." in ended.err
    assert pfunnel(*ask, "--public", "S", "--public", "N").code == 0
    assert read_csv(tmp_path / "o.csv") == (["z"], [["0"], ["1"]])


def test_wrong_type_is_said(pfunnel: Run, tmp_path: Path) -> None:
    pf.TableMechanism(np.eye(2), x_labels=["1", "2"], x_names=["n"]).save(tmp_path / "m.json")
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "t.parquet")
    ended = pfunnel("release", tmp_path / "t.parquet", "-m", tmp_path / "m.json", "-o", tmp_path / "o.csv")
    assert ended.code == 2
    assert "letters: 1 (1), 2 (1); the mechanism has it as another type" in ended.err


def test_empty_table_keeps_its_header(pfunnel: Run, people: Path, mechanism: Path) -> None:
    empty, out = write_csv(people.with_name("empty.csv"), []), people.with_name("out.csv")
    assert pfunnel("release", empty, "-m", mechanism, "-o", out).code == 0
    assert out.read_text() == "z\n"
    pq.write_table(
        pa.table({name: pa.array([], pa.string()) for name in HEADER}), people.with_name("e.parquet")
    )
    out = people.with_name("out.parquet")
    assert (
        pfunnel("release", people.with_name("e.parquet"), "-m", mechanism, "-o", out, "--keep-all").code == 0
    )
    assert pq.read_table(out).column_names == ["id", "z", "note"]


def test_stdout_gets_csv_and_nothing_else(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    pfunnel("release", people, "-m", doubling, "-o", out, "--seed", 3)
    ended = pfunnel("release", people, "-m", doubling, "-o", "-", "--seed", 3)
    assert ended.code == 0
    assert ended.out == out.read_text()
    assert ended.err.splitlines()[-1] == "note: left out: id, sex, note."


def test_with_a_key_every_release_is_the_same(
    pfunnel: Run, people: Path, mechanism: Path, tmp_path: Path
) -> None:
    key, out = tmp_path / "owner.key", tmp_path / "out.csv"
    made = pfunnel("key", "new", key)
    assert (made.code, made.out.splitlines()[0]) == (0, f"{key}: a new key, readable by you alone.")
    header, *rows = [HEADER, *make_records()]
    pq.write_table(
        pa.table(dict(zip(header, zip(*rows, strict=True), strict=True))), tmp_path / "people.parquet"
    )
    found = []
    for source in (people, people, tmp_path / "people.parquet"):
        ended = pfunnel("release", source, "-m", mechanism, "-o", out, "--key", key, "--id", "id")
        assert (ended.code, ended.err) == (0, "")
        assert "one symbol for each id" in ended.out
        assert key.read_text().strip() not in ended.out + ended.err
        found.append(read_csv(out))
    assert found[0] == found[1] == found[2]
    assert found[0][0] == ["z"]
    pfunnel(
        "release", people, "-m", mechanism, "-o", out, "--key", key, "--id", "id", "--keep", "id", "--shuffle"
    )
    by_id = dict(read_csv(out)[1])
    assert [by_id[row[0]] for row in rows] == [row[0] for row in found[0][1]]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--key", "owner.key"), "--key and --id, whom it draws for, go together"),
        (("--id", "id"), "go together"),
        (("--key", "owner.key", "--id", "nobody"), "there is no column 'nobody'"),
        (("--key", "none.key", "--id", "id"), "there is no such key file"),
        (("--key", "owner.key", "--id", "id", "--seed", "1"), "leave one out"),
        (("--key", "owner.key", "--id", "note"), "has no id"),
    ],
)
def test_keys_that_cannot_draw(
    pfunnel: Run,
    people: Path,
    mechanism: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pfunnel("key", "new", "owner.key").code == 0
    ended = pfunnel("release", people, "-m", mechanism, "-o", "out.csv", *arguments)
    assert ended.code == 2
    assert told in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert not Path("out.csv").exists()
    again = pfunnel("key", "new", "owner.key", "--json")
    assert again.code == 2
    assert "never replaced" in again.err


@pytest.mark.parametrize("how", ["draw", "typical"])
def test_letters_stand_in_the_public_columns(pfunnel: Run, people: Path, mechanism: Path, how: str) -> None:
    out = people.with_name("out.csv")
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, "--values", how, "--keep", "id", "--json")
    assert ended.code == 0
    header, rows = read_csv(out)
    assert header == ["id", "city"]
    assert {row[1] for row in rows} <= {"Bonn", "Lima", "Oslo", "Rome"}
    told = json.loads(ended.out)
    assert (told["values"], told["column"], told["kept"]) == (how, None, ["id"])
    assert told["left_out"] == ["sex", "note"]
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, "--values", how)
    assert "Released city" in " ".join(ended.out.split())


def test_codebook_is_written_beside_the_table(pfunnel: Run, people: Path, mechanism: Path) -> None:
    out, book = people.with_name("out.csv"), people.with_name("book.csv")
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, "--codebook", book)
    assert ended.code == 0
    assert "Codebook" in ended.out
    header, rows = read_csv(book)
    assert header == ["symbol", "share", "stands_for"]
    table = pf.load(mechanism)
    assert [row[0] for row in rows] == [str(label) for label in table.z_labels]
    assert sum(float(row[1]) for row in rows) == pytest.approx(1)
    assert {part for row in rows for part in row[2].split(" / ")} == {"Bonn", "Lima", "Oslo", "Rome"}


@pytest.mark.parametrize("shuffle", [[], ["--shuffle"]])
def test_drawn_letters_keep_the_types_of_parquet(
    pfunnel: Run, people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shuffle: list[str]
) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 7)
    n = 60
    table = pa.table(
        {
            "city": pa.array(["Rome", "Oslo", None] * 20).dictionary_encode(),
            "floor": pa.array([1, 2, 3, 1, 2, None] * 10, pa.int8()),
            "sex": ["f", "m"] * (n // 2),
        }
    )
    source, made, out = (tmp_path / name for name in ("in.parquet", "m.json", "out.parquet"))
    pq.write_table(table, source)
    joint = pf.Joint.from_frame(table, public=["city", "floor"], private="sex", missing="letter")
    pf.TableMechanism.identity(joint).save(made)
    assert pfunnel("release", source, "-m", made, "-o", out, "--values", "draw", *shuffle).code == 0
    released = pq.read_table(out)
    assert released.schema.types == table.schema.types[:2]
    rows = [tuple(row.values()) for row in table.drop_columns("sex").to_pylist()]
    found = [tuple(row.values()) for row in released.to_pylist()]
    assert sorted(map(str, found)) == sorted(map(str, rows))
    assert shuffle or found == rows


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--values", "mean"], "'mean' is unknown; choose one of symbol, typical, draw"),
        (
            ["--values", "draw", "--column", "w"],
            "--column names the column of symbols, and --values draw releases none",
        ),
        (["--values", "draw", "--keep-public"], "leave out --keep-public"),
        (["--codebook", "out.csv"], "is another output too"),
        (["--codebook", "book.txt"], "book.txt"),
    ],
)
def test_values_that_cannot_be_written(
    pfunnel: Run, people: Path, mechanism: Path, args: list[str], message: str
) -> None:
    out = people.with_name("out.csv")
    named = [str(out.with_name(arg)) if arg.endswith((".csv", ".txt")) else arg for arg in args]
    ended = pfunnel("release", people, "-m", mechanism, "-o", out, *named)
    assert ended.code == 2
    assert message in ended.err
    assert not out.exists()


def test_letters_need_a_mechanism_that_knows_them(pfunnel: Run, people: Path, doubling: Path) -> None:
    out = people.with_name("out.csv")
    for args in (["--values", "draw"], ["--codebook", out.with_name("book.csv")]):
        ended = pfunnel("release", people, "-m", doubling, "-o", out, *args)
        assert ended.code == 2
        assert "does not know P(X)" in ended.err
        assert not out.exists()
