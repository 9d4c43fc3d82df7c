"""Tables in files: whatever is written is read back, in bounded batches, as Python's own csv reads it."""

from __future__ import annotations

import csv
import gzip
import io
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
from privacyfunnel.files import base, csv_files, open_table, open_writer, read_joint, shuffling

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
    monkeypatch.setattr(shuffling, "MOST_BYTES", most_bytes)
    monkeypatch.setattr(shuffling, "N_HEAPS", 4)
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
    monkeypatch.setattr(shuffling, "MOST_BYTES", 1)
    monkeypatch.setattr(shuffling, "N_HEAPS", 2)
    rng = np.random.default_rng(0)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(1200):
        shuffler = shuffling.Shuffler(str(tmp_path), rng)
        shuffler.add(pa.table({"n": range(3)}))
        counts[tuple(n for part in shuffler.tables() for n in part.column("n").to_pylist())] += 1
    assert len(counts) == 6
    assert chisquare(list(counts.values())).pvalue > 1e-6


def test_nothing_in_random_order_is_a_header(tmp_path: Path) -> None:
    assert shuffled([pa.table({"n": pa.array([], pa.int8())})], tmp_path / "t.parquet").column_names == ["n"]
