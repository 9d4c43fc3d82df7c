"""Tables in files: whatever is written is read back, in bounded batches, as Python's own csv reads it."""

from __future__ import annotations

import csv
import gzip
import io
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.files import (
    CsvFile,
    base,
    csv_files,
    open_records,
    open_table,
    open_writer,
    read_joint,
    write_table,
    writing,
)
from privacyfunnel.files.typed import read_typed
from privacyfunnel.sweep.data import load_records

VALUES = st.text(st.sampled_from('ab0,;"\n\r\t é'), max_size=4)
TABLES = st.integers(1, 3).flatmap(lambda n: st.lists(st.lists(VALUES, min_size=n, max_size=n), max_size=6))


def records(path: Path, **options: object) -> list[list[str | None]]:
    table = open_table(path, **options)  # type: ignore[arg-type]
    return [list(row.values()) for batch in table.batches() for row in batch.to_pylist()]


def as_table(rows: list[list[str]]) -> pa.Table:
    n = len(rows[0]) if rows else 1
    return pa.table({f"c{i}": pa.array([row[i] for row in rows], pa.string()) for i in range(n)})


@given(rows=TABLES)
def test_csv_is_read_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    n = len(rows[0]) if rows else 1
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([[f"c{i}" for i in range(n)], *rows])
    assert records(path) == [[value or None if n > 1 else value for value in row] for row in rows]


@given(rows=TABLES)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_csv_is_written_as_python_reads_it(
    tmp_path_factory: pytest.TempPathFactory, name: str, rows: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("csv") / name
    table = as_table(rows)
    with open_writer(path) as writer:
        writer.write(table.slice(0, 2))
        writer.write(table.slice(2))
    content = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    text = io.StringIO(content.decode("utf-8"), newline="")
    found = list(csv.reader(text, delimiter="\t" if name == "t.tsv" else ",", strict=True))
    assert found == [table.column_names, *rows]
    assert records(path) == rows  # an empty text is in quotes, so it is not taken for a missing value


def test_missing_and_empty_stay_apart(tmp_path: Path) -> None:
    path, copy = tmp_path / "t.csv", tmp_path / "u.csv"
    path.write_text('a,b\n,""\n"",x\n\n1,\n')
    assert records(path) == [[None, ""], ["", "x"], ["1", None]]
    with open_writer(copy) as writer:
        for batch in open_table(path).batches():
            writer.write(pa.Table.from_batches([batch]))
    assert copy.read_text() == 'a,b\n,""\n"",x\n1,\n'
    batch = next(open_table(path).batches(["b", "a"], letters=["a"]))
    assert batch.to_pydict() == {"b": ["", "x", None], "a": [None, None, "1"]}


def test_one_column_keeps_its_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\nx\n\ny\n")
    assert records(path) == [["x"], [None], ["y"]]
    with open_writer(path) as writer:
        writer.write(pa.table({"a": ["x", None]}))
    assert path.read_text() == 'a\nx\n""\n'


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_batches_are_bounded_and_complete(tmp_path: Path, kind: str) -> None:
    n = 300_000
    path = tmp_path / f"t.{kind}"
    table = pa.table({"a": [str(i % 7) for i in range(n)], "b": [str(i % 3) for i in range(n)]})
    if kind == "csv":
        lines = "".join(f"{i % 7},{i % 3}\n" for i in range(n))
        path.write_text("a,b\n" + lines)
    else:
        pq.write_table(table, path)
    calls: list[tuple[int, int]] = []
    sizes, parts = [], []
    for batch in open_table(path).batches(report=lambda done, total: calls.append((done, total))):
        sizes.append(batch.num_rows)
        parts.append(batch)
    assert max(sizes) <= base.BATCH_ROWS
    assert pa.Table.from_batches(parts).equals(table)
    assert calls
    assert calls[-1][0] == calls[-1][1]


def test_blocks_are_small_pieces_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 1 << 12)
    path = tmp_path / "t.csv.gz"
    lines = "".join(f'{i},"two\nlines, {i}"\n' for i in range(5_000))
    path.write_bytes(gzip.compress(f"a,b\n{lines}".encode()))
    batches = list(open_table(path).batches())
    assert len(batches) > 20
    whole = pa.Table.from_batches(batches)
    assert whole.column("a").to_pylist() == [str(i) for i in range(5_000)]
    assert whole.column("b").to_pylist() == [f"two\nlines, {i}" for i in range(5_000)]


def test_record_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 1 << 12)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 3000 + '1,"' + "x\n" * 10_000)
    with pytest.raises(InvalidInputError, match=r"begins in line 3002 cannot be read .*not closed"):
        records(path)


def test_joint_is_that_of_the_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 10)
    rows = [(f"x{i % 5}", f"w{i % 2}", f"y{(i * i) % 3}") for i in range(99)]
    path = tmp_path / "t.csv"
    path.write_text("x,w,y\n" + "".join(",".join(row) + "\n" for row in rows))
    joint = read_joint(path, public=["x", "w"], private="y")
    twin = pf.Joint.from_samples([row[:2] for row in rows], [row[2] for row in rows])
    assert (joint.x_labels, joint.y_labels, joint.n_samples) == (twin.x_labels, twin.y_labels, 99)
    assert (joint.p_xy == twin.p_xy).all()
    assert joint.x_names == ("x", "w")


def test_joint_of_parquet_keeps_types(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [3, 1, None, 3], "y": [True, False, True, True]}), path)
    joint = read_joint(path, public="x", private="y", missing="letter")
    assert joint.x_labels == (1, 3, None)
    assert joint.y_labels == (False, True)


def test_parquet_is_written_in_large_groups(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    part = pa.table({"a": range(1000)})
    with open_writer(path) as writer:
        for _ in range(20):
            writer.write(part)
    assert pq.ParquetFile(path).num_row_groups == 1
    assert pq.read_table(path).column("a").to_pylist() == list(range(1000)) * 20


def test_types_become_text_in_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = pa.table(
        {
            "float": [0.1, None],
            "bool": [True, False],
            "day": pa.array([0, 1], pa.date32()),
            "word": pa.array(["a,b", None]).dictionary_encode(),
        }
    )
    with open_writer(path) as writer:
        writer.write(table)
    assert path.read_text() == 'float,bool,day,word\n0.1,true,1970-01-01,"a,b"\n,false,1970-01-02,\n'


@pytest.mark.parametrize("delimiter", [";", "|", "^", "-", "]", "\\"])
def test_any_delimiter(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    table = pa.table({"a-b": [f"x{delimiter}y", "-1"], "n": [-1, 2]})
    with open_writer(path, delimiter=delimiter) as writer:
        writer.write(table)
    assert records(path, delimiter=delimiter) == [[f"x{delimiter}y", "-1"], ["-1", "2"]]
    assert open_table(path, delimiter=delimiter).columns == ("a-b", "n")


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "-"]
HARMLESS = ["-5", "+1.5e-3", "-.5", "12", "a=b", "", " =1", "'=1"]


def test_formulas_are_defused_on_request_and_numbers_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    texts = [*FORMULAS, *HARMLESS, None]
    numbers = [-1.5] * len(texts)
    table = pa.table({"=name": texts, "n": numbers, "d": pa.array(texts).dictionary_encode()})
    with open_writer(path, spreadsheet_safe=True) as writer:
        writer.write(table)
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=name", "n", "d"]
    expected = [f"'{text}" for text in FORMULAS] + [*HARMLESS, ""]
    assert [row[0] for row in rows] == [row[2] for row in rows] == expected
    assert {row[1] for row in rows} == {"-1.5"}
    with open_writer(path) as writer:
        writer.write(table)
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert [header[0], *(row[0] for row in rows)] == ["=name", *FORMULAS, *HARMLESS, ""]


def test_empty_lines_before_the_header(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text("\n\nname\na\n")
    with pytest.raises(
        InvalidInputError, match=r"one\.csv: an empty line comes before the header.*remove it"
    ):
        open_table(one)
    two.write_text("\n\nname,b\na,1\n")
    assert records(two) == [["a", "1"]]


def shuffled(tables: list[pa.Table], path: Path, seed: int | None = 0) -> pa.Table:
    rng = None if seed is None else np.random.default_rng(seed)
    with open_writer(path, shuffle=True, rng=rng) as writer:
        for table in tables:
            writer.write(table)
    return pq.read_table(path)


@pytest.mark.parametrize("most_bytes", [1 << 27, 4096, 200])
def test_records_in_random_order_are_the_same_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_bytes: int
) -> None:
    """In memory, with heaps on the disk, and with heaps of heaps; nothing is left beside the file."""
    monkeypatch.setattr(writing, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(writing, "N_HEAPS", 4)
    words = pa.array([f"w{i % 7}" for i in range(500)])
    table = pa.table({"n": range(500), "word": words, "kind": words.dictionary_encode(), "list": [[1]] * 500})
    parts = [table.slice(start, 50) for start in range(0, 500, 50)]
    result = shuffled(parts, tmp_path / "t.parquet", None)
    order = result.column("n").to_pylist()
    assert sorted(order) == list(range(500))
    assert order != list(range(500))  # equal with probability 1/500!
    assert result.column("word").to_pylist() == [f"w{i % 7}" for i in order]
    assert result.column("kind").to_pylist() == [f"w{i % 7}" for i in order]
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_every_order_on_heaps_is_as_likely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_BYTES", 1)
    monkeypatch.setattr(writing, "N_HEAPS", 2)
    rng = np.random.default_rng(0)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(1200):
        shuffler = writing.Shuffler(str(tmp_path), rng)
        shuffler.write(pa.table({"n": range(3)}))
        counts[tuple(n for part in shuffler.tables() for n in part.column("n").to_pylist())] += 1
    assert len(counts) == 6
    assert chisquare(list(counts.values())).pvalue > 1e-6


def test_nothing_in_random_order_is_a_header(tmp_path: Path) -> None:
    assert shuffled([pa.table({"n": pa.array([], pa.int8())})], tmp_path / "t.parquet").column_names == ["n"]


def test_a_zero_byte_in_csv_is_refused(tmp_path: Path) -> None:
    """Many programs end a text there: 'a' and 'a' followed by a zero byte would be one letter to them."""
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,x\n1,x\0y\n")
    with pytest.raises(InvalidInputError, match=r"record 2 has a zero byte \(NUL\) in column 'b'"):
        records(path)
    table = open_table(path)
    assert [batch.num_rows for batch in table.batches(["a"])] == [2]  # of what is read
    path.write_bytes(b"a,b\0\n1,x\n")
    with pytest.raises(InvalidInputError, match="the header has a zero byte"):
        open_table(path)


def test_the_record_of_a_zero_byte_is_counted_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 64)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,xxxx\n" * 40 + b"1,\0\n")
    with pytest.raises(InvalidInputError, match="record 41 has a zero byte"):
        records(path)


def test_a_delimiter_is_for_csv(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(InvalidInputError, match="delimiter belongs to CSV files; leave it out"):
        open_table(tmp_path / "t.parquet", delimiter=";")
    with pytest.raises(InvalidInputError, match="delimiter belongs to CSV files; leave it out"):
        read_joint(tmp_path / "t.parquet", public="a", private="b", delimiter=";")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "plain.txt"])
def test_columns_of_any_values_are_written(tmp_path: Path, name: str) -> None:
    columns = {"a": [1, 2.5], "b": ["x", 1], "c": [None, None], "d": [None, 7], "e": [True, False]}
    write_table(tmp_path / name, columns, kind=".csv" if name == "plain.txt" else None)
    if name == "t.parquet":
        table = pq.read_table(tmp_path / name)
        assert table.to_pydict() == {**columns, "a": [1.0, 2.5], "b": ["x", "1"]}
        assert table.schema.field("c").type == pa.string()
    else:
        assert (tmp_path / name).read_text() == "a,b,c,d,e\n1,x,,,true\n2.5,1,,7,false\n"


def write_kinds(folder: Path) -> dict[str, Path]:
    """The same twelve records in every kind of file: two numbers and a private class."""
    x = np.arange(24, dtype=np.uint8).reshape(12, 2)
    y = np.arange(12) % 3
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": y})
    paths = {kind: folder / f"t.{kind}" for kind in ("npz", "csv", "tsv", "csv.gz", "parquet")}
    np.savez(paths["npz"], x=x, y=y, z=x / 3)
    for kind in ("csv", "tsv", "csv.gz", "parquet"):
        with open_writer(paths[kind]) as writer:
            writer.write(table)
    paths["idx"] = folder / "t-images-idx3-ubyte"
    paths["idx"].write_bytes(struct.pack(">HBB3I", 0, 8, 3, 12, 1, 2) + x.tobytes())
    (folder / "t-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, 12) + y.astype("u1").tobytes())
    return paths


KINDS = ["npz", "csv", "tsv", "csv.gz", "parquet", "idx"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_records(tmp_path: Path, kind: str) -> None:
    source = open_records(write_kinds(tmp_path)[kind])
    expected = np.arange(24, dtype=np.float32).reshape(12, 2)
    if kind == "idx":
        expected /= np.float32(255)  # images
    assert set(source.private) <= {"y"} <= {*source.columns}
    for found in (source.records(["y"]), next(source.parts("x", ["a", "b"], ["y"]))):
        assert len(found) == 12
        assert found.array.dtype == np.float32
        np.testing.assert_array_equal(found.array.reshape(12, 2), expected)
    assert source.records(["y"]).private["y"].tolist() == [i % 3 for i in range(12)]
    assert source.values(["y"])["y"].tolist() == [i % 3 for i in range(12)]
    np.testing.assert_array_equal(source.matrix("x", leave_out=["y"]).reshape(12, 2), expected)
    if source.private:  # where nobody says what is private
        assert source.records().private["y"].tolist() == [i % 3 for i in range(12)]
    else:
        assert source.records().private == {}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_says_what_it_lacks(tmp_path: Path, kind: str) -> None:
    paths = write_kinds(tmp_path)
    (tmp_path / "t-labels-idx1-ubyte").unlink()
    source = open_records(paths[kind])
    if kind == "idx":
        assert source.records().private == {}
    match = "there are no labels beside the images" if kind == "idx" else "there is no (column|array) 'w'"
    with pytest.raises(InvalidInputError, match=match):
        source.values(["w"])
    if source.table is None:
        with pytest.raises(InvalidInputError, match="keep belongs to CSV and Parquet files"):
            source.kept(["y"])


def test_digits_are_kept_where_they_count(tmp_path: Path) -> None:
    paths = write_kinds(tmp_path)
    z = np.arange(24).reshape(12, 2) / 3
    assert open_records(paths["npz"]).matrix("z").dtype == np.float32
    for how in ("released", "as_written"):
        np.testing.assert_array_equal(open_records(paths["npz"]).matrix("z", **{how: True}), z)
    assert open_records(paths["npz"]).records(as_written=True).x.dtype == np.uint8


def test_sweeps_read_every_kind_of_file(tmp_path: Path) -> None:
    first = None
    for kind, path in write_kinds(tmp_path).items():
        asked = {"file": str(path), "private": "y"} if kind[0] in "ctp" else {"file": str(path)}
        parts = load_records(asked)
        both = np.concatenate([parts.x_train.reshape(-1, 2), parts.x_test.reshape(-1, 2)])
        found = (both / (both.max() / 23)).round(3).tolist(), [*parts.y_train, *parts.y_test]
        first = found if first is None else first
        assert found == first, kind
        if kind == "csv":
            with pytest.raises(InvalidInputError, match="name the private column, as private"):
                load_records({"file": str(path)})


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", "0"], "int64"),
        (["1.5", "2", ".5", "3."], "double"),
        (["1e5", "-2E-3", "7"], "double"),
        (["1.5", "inf", "-Infinity", "NaN"], "double"),
        (["007", "8"], "string"),
        (["1", "x"], "string"),
        (["1e", "2"], "string"),
    ],
)
def test_numbers_of_a_csv_file_are_numbers(tmp_path: Path, texts: list[str], kind: str) -> None:
    """One infinite number among many would otherwise make texts of all of them, without a word."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"{text},x\n" for text in texts), encoding="utf-8")
    assert str(read_typed(open_table(path))["a"].type).removeprefix("large_") == kind


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a;b\n1,5;x\n2;y\n", ";"),
        ("a\tb\n1\tx\n", "\t"),
        ('a|b\n"1|2\n3"|x\n', "|"),
        ("a,b\n1,x\n", ","),
        ("a,b;c\n1,x;y\n", ","),
        ("a;b\nx\n", ","),  # a doubt: one column with a strange name
        ("a;b|c\n1;2|3\n", ","),
        ("a;b\n", ","),
        ("a\n1;2\n", ","),
    ],
)
def test_what_separates_the_fields_is_found(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    table = open_table(path)
    assert isinstance(table, CsvFile)
    assert table.delimiter == found
    assert isinstance(given := open_table(path, delimiter=","), CsvFile)
    assert given.delimiter == ","


def test_a_spreadsheet_is_to_be_saved_as_csv() -> None:
    with pytest.raises(
        InvalidInputError, match=r"people.xlsx: the name must end .*; save it as CSV \(UTF-8\)"
    ):
        open_table("people.xlsx")
    with pytest.raises(InvalidInputError, match="rename it"):
        open_table("people.txt")


def test_texts_that_mean_a_missing_value(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\nNA,1\n"NA",?\nx,3\n', encoding="utf-8")
    (batch,) = open_table(path, gaps=["NA", "?"]).batches()
    assert batch.to_pydict() == {"a": [None, None, "x"], "b": ["1", None, "3"]}
    with pytest.raises(InvalidInputError, match="missing_text belongs to CSV files"):
        open_table("t.parquet", gaps=["NA"])
