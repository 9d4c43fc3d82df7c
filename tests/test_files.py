"""Tables in files: whatever is written is read back, in bounded batches, as Python's own csv reads it."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.files import base, csv_files, open_table, open_writer, read_joint

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
