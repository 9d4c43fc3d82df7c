"""Streams: what comes in batches is released as a whole table is, and files appear whole or not at all."""

from __future__ import annotations

import datetime
import decimal
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import privacyfunnel as pf
from privacyfunnel import persistence, sources
from privacyfunnel.errors import DataFileError, InvalidInputError, UnknownLetterError
from privacyfunnel.files import base, open_table
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.streams import Released

N = 3000
KEY = bytes(range(32))


@pytest.fixture
def mechanism() -> TableMechanism:
    return TableMechanism(
        [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0]],
        x_labels=["a", "b", None],
        z_labels=["u", "v"],
        x_names=("job",),
        private_names=("sex",),
        marginal=[0.61, 0.39],
        p_x=[0.3, 0.3, 0.4],
    )


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 170)
    monkeypatch.setattr(sources, "BATCH_ROWS", 170)


def people(n: int = N, letters: Any = ("a", "b", None)) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "person": pa.array(np.arange(n)),
            "job": pa.array([letters[i] for i in rng.integers(len(letters), size=n)], pa.string()),
            "sex": pa.array(rng.choice(["f", "m"], n)),
        }
    )


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Twenty parts, of which one has no records."""
    folder = tmp_path / "parts"
    folder.mkdir()
    whole = people()
    edges = [*range(0, 19 * 160, 160), 2880, N]
    for number, (start, end) in enumerate(pairwise(edges)):
        pq.write_table(whole.slice(start, end - start), folder / f"part-{number:02}.parquet")
    (folder / "_SUCCESS").touch()
    assert sum(pq.read_metadata(path).num_rows for path in folder.glob("*.parquet")) == N
    return folder


class CStream:
    """Nothing but the protocol."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "table": lambda parts: people(),
    "record batch": lambda parts: people().combine_chunks().to_batches()[0],
    "reader": lambda parts: people().to_reader(100),
    "protocol": lambda parts: CStream(people()),
    "dataset": lambda parts: ds.dataset(parts),
    "scanner": lambda parts: ds.dataset(parts).scanner(batch_size=77),
    "pandas": lambda parts: people().to_pandas(),
    "polars": lambda parts: pl.from_arrow(people()),
    "lazy polars": lambda parts: pl.scan_parquet(parts / "*.parquet"),
    "duckdb": lambda parts: duckdb.from_arrow(people()),
}
PATHS: dict[str, Callable[[Path], Any]] = {
    "folder": lambda parts: parts,
    "pattern": lambda parts: f"{parts}/part-*.parquet",
}


@pytest.mark.parametrize("kind", [*SOURCES, *PATHS])
def test_every_source_is_released_as_the_whole_table_is(
    kind: str, mechanism: TableMechanism, parts: Path
) -> None:
    source = {**SOURCES, **PATHS}[kind]
    expected = mechanism.release_frame(people(), keep="person", rng=3)
    reader = mechanism.release_stream(source(parts), keep="person", rng=3)
    assert isinstance(reader, pa.RecordBatchReader)
    found = reader.read_all()
    assert found.to_pydict() == expected.to_pydict()
    assert found.schema.metadata is None
    keyed = mechanism.release_stream(source(parts), key=KEY, id="person", n_jobs=2).read_all()
    assert keyed.to_pydict() == mechanism.release_frame(people(), key=KEY, id="person").to_pydict()


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_is_counted_as_the_whole_table_is(kind: str, parts: Path) -> None:
    how: dict[str, Any] = {"public": "job", "private": "sex", "missing": "letter"}
    joint = pf.Joint.from_frame(SOURCES[kind](parts), **how)
    expected = pf.Joint.from_frame(people(), **how)
    assert (joint.x_labels, joint.n_samples) == (expected.x_labels, N)
    assert np.array_equal(joint.p_xy, expected.p_xy)


def test_datasets_are_counted_by_the_codes_of_their_files(parts: Path, tmp_path: Path) -> None:
    """Filters, row groups and other types of the same column count as they do without codes."""
    how: dict[str, Any] = {"public": "job", "private": "sex", "missing": "letter"}
    whole, dataset = people(), ds.dataset(parts)
    seen = {
        str(batch.schema.field("job").type)
        for batch in sources._with_codes(dataset, ["job", "sex"]).to_batches()
    }
    assert seen == {"dictionary<values=string, indices=int32, ordered=0>"}

    def same(source: Any, expected: pa.Table) -> None:
        joint, right = (pf.Joint.from_frame(one, **how) for one in (source, expected))
        assert (joint.x_labels, joint.y_labels, joint.n_samples) == (
            right.x_labels,
            right.y_labels,
            right.n_samples,
        )
        assert np.array_equal(joint.p_xy, right.p_xy)

    same(dataset, whole)
    few = pa.compute.field("person") < 700
    same(dataset.filter(few), whole.filter(few))
    everybody = TableMechanism([[1.0]] * 3, x_labels=["a", "b", None], x_names=["job"])
    assert everybody.release_stream(dataset.filter(few)).read_all().num_rows == 700
    pq.write_table(whole.drop_columns("job"), tmp_path / "lacking.parquet")
    lacking = ds.dataset([tmp_path / "lacking.parquet"], schema=whole.schema)
    for one in (lacking, lacking.filter(few)):
        with pytest.raises(InvalidInputError, match=r"lacking\.parquet: there is no column 'job'"):
            everybody.release_stream(one)
    pq.write_table(whole, tmp_path / "groups.parquet", row_group_size=500)
    (fragment,) = ds.dataset(tmp_path / "groups.parquet").get_fragments()
    some = fragment.subset(row_group_ids=[1, 3])
    groups = ds.FileSystemDataset([some], whole.schema, some.format, some.filesystem)
    same(groups, pa.concat_tables([whole.slice(500, 500), whole.slice(1500, 500)]))
    other = tmp_path / "large"
    other.mkdir()
    pq.write_table(whole.slice(0, 90), other / "a.parquet")
    large = whole.slice(90).set_column(1, "job", whole["job"].slice(90).cast(pa.large_string()))
    pq.write_table(large, other / "b.parquet")
    assert sources._with_codes(ds.dataset(other), ["job"]) is None
    same(ds.dataset(other), whole)


@pytest.mark.filterwarnings("ignore:fetch_:DeprecationWarning")  # of DuckDB, which Ibis calls so
@pytest.mark.parametrize("backend", ["duckdb", "polars", "memory"])
def test_ibis_tables(backend: str, mechanism: TableMechanism, parts: Path, tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed: pip install 'ibis-framework[duckdb]'")
    if backend == "duckdb":
        base = ibis.duckdb.connect()
        base.raw_sql("SET threads = 1")  # in the order of the files
        table = base.read_parquet(str(parts / "*.parquet"))
    elif backend == "memory":
        table = ibis.memtable(people())
    else:
        table = ibis.polars.connect({"people": pl.from_arrow(people())}).table("people")
    expected = mechanism.release_frame(people(), keep="person", rng=3).to_pydict()
    assert mechanism.release_stream(table, keep="person", rng=3).read_all().to_pydict() == expected
    assert mechanism.release_frame(table, keep="person", rng=3).read_all().to_pydict() == expected
    sink = tmp_path / "released.parquet"
    assert mechanism.release_stream(table, sink, keep="person", rng=3).n_records == N
    assert pq.read_table(sink).to_pydict() == expected
    joint = pf.Joint.from_frame(table, public="job", private="sex", missing="letter")
    whole = pf.Joint.from_frame(people(), public="job", private="sex", missing="letter")
    assert (joint.x_labels, joint.n_samples) == (whole.x_labels, N)
    assert np.array_equal(joint.p_xy, whole.p_xy)
    few = TableMechanism([[1.0]], x_labels=["nobody"], x_names=["job"])
    with pytest.raises(UnknownLetterError, match="is none of the mechanism's 1 letters"):
        few.release_stream(table, tmp_path / "none.csv")
    assert sorted(path.name for path in tmp_path.iterdir() if "none" in path.name) == []


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.tsv", "out.csv.gz", "out.arrow"])
@pytest.mark.parametrize("kind", ["reader", "lazy polars", "folder"])
def test_files_are_written_batch_by_batch(
    kind: str, name: str, mechanism: TableMechanism, parts: Path, tmp_path: Path
) -> None:
    source = {**SOURCES, **PATHS}[kind](parts)
    sink = tmp_path / name
    assert mechanism.release_stream(source, sink, keep="person", rng=3) == Released(str(sink), N)
    expected = mechanism.release_frame(people(), keep="person", rng=3).to_pydict()
    rows = [batch.to_pydict() for batch in open_table(sink).batches()]
    found = {column: [value for row in rows for value in row[column]] for column in expected}
    assert {**found, "person": list(map(int, found["person"]))} == expected
    assert {path.name for path in tmp_path.iterdir()} == {"parts", name}


def test_a_folder_of_parts_becomes_one(mechanism: TableMechanism, parts: Path, tmp_path: Path) -> None:
    for n_jobs in (1, 3):
        sink = tmp_path / f"released{n_jobs}"
        assert mechanism.release_stream(parts, sink, key=KEY, id="person", n_jobs=n_jobs).n_records == N
        assert sorted(os.listdir(sink)) == sorted(set(os.listdir(parts)) - {"_SUCCESS"})
        found = pa.concat_tables(pq.read_table(path) for path in sorted(sink.iterdir()))
        assert found.to_pydict() == mechanism.release_frame(people(), key=KEY, id="person").to_pydict()
    seeded = mechanism.release_stream(parts, tmp_path / "seeded", rng=3)
    found = pa.concat_tables(pq.read_table(path) for path in sorted(Path(seeded.path).iterdir()))
    assert found.to_pydict() == mechanism.release_frame(people(), rng=3).to_pydict()


def test_no_records_have_a_header(mechanism: TableMechanism, tmp_path: Path) -> None:
    empty = people(0)
    assert mechanism.release_stream(empty).read_all().column_names == ["z"]
    for name in ("none.csv", "none.parquet", "none.arrow"):
        assert mechanism.release_stream(empty.to_reader(), tmp_path / name).n_records == 0
        assert open_table(tmp_path / name).columns == ("z",)


def test_lazy_frames_of_polars_stay_lazy(mechanism: TableMechanism) -> None:
    frame = pl.from_arrow(people()).lazy()
    expected = mechanism.release_frame(people(), keep="person", rng=3)
    seeded = mechanism.release_frame(frame, keep="person", rng=3)
    assert isinstance(seeded, pl.LazyFrame)
    for _ in range(2):
        assert seeded.collect().to_dict(as_series=False) == expected.to_pydict()
    assert seeded.head(2).collect().to_dict(as_series=False) == expected.slice(0, 2).to_pydict()
    some = seeded.filter(pl.col("person") % 7 == 0, pl.col("z") == "u").select("person").collect()
    both = zip(expected["person"].to_pylist(), expected["z"].to_pylist(), strict=True)
    assert some["person"].to_list() == [person for person, z in both if person % 7 == 0 and z == "u"]


def test_a_lazy_release_is_drawn_once(mechanism: TableMechanism) -> None:
    released = mechanism.release_frame(pl.from_arrow(people()).lazy())
    assert len(released.collect()) == N
    with pytest.raises(InvalidInputError, match="drawing again would tell more"):
        released.collect()
    keyed = mechanism.release_frame(pl.from_arrow(people()).lazy(), key=KEY, id="person")
    assert keyed.collect().equals(keyed.collect())


def test_categories_of_lazy_frames_keep_their_type() -> None:
    mechanism = TableMechanism([[1.0], [1.0]], x_labels=["a", "b"], x_names=("job",), p_x=[0.5, 0.5])
    kind = pl.Enum(["b", "a"])
    columns = {"job": ["a", "b"], "more": ["x", "y"]}
    frame = pl.LazyFrame(columns, schema={"job": kind, "more": pl.Categorical})
    released = mechanism.release_frame(frame, values="draw", keep="all")
    assert dict(released.collect_schema()) == {"job": kind, "more": pl.Categorical}
    assert dict(released.collect().schema) == {"job": kind, "more": pl.Categorical}


VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "large text": (["a", "b"], pa.large_string()),
    "view": (["a", "b"], pa.string_view()),
    "dictionary": (["a", "b"], pa.dictionary(pa.int8(), pa.string())),
    "decimal": ([decimal.Decimal("1.50"), decimal.Decimal("2.00")], pa.decimal128(9, 2)),
    "zoned": (
        [datetime.datetime(2020, 1, day, tzinfo=datetime.UTC) for day in (1, 2)],
        pa.timestamp("us", "UTC"),
    ),
    "date": ([datetime.date(2020, 1, 1), datetime.date(2020, 2, 29)], pa.date32()),
    "bool": ([True, False], pa.bool_()),
    "small": ([1, 2], pa.int8()),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", ["out.parquet", "out.arrow"])
def test_types_of_columns(kind: str, name: str, tmp_path: Path) -> None:
    letters, type_ = VALUES[kind]
    mechanism = TableMechanism(np.eye(3), x_labels=[*letters, None], x_names=("x",), p_x=np.full(3, 1 / 3))
    chunks = [pa.array(part, type_) for part in ([letters[1], None], [], [letters[0], letters[1], None])]
    table = pa.table({"x": pa.chunked_array(chunks), "k": pa.chunked_array(chunks)})
    released = mechanism.release_stream(CStream(table), keep="k").read_all()
    assert released["z"].to_pylist() == [1, 2, 0, 1, 2]
    assert released["k"].to_pylist() == table["k"].to_pylist()
    # Batches with dictionaries of their own, too.
    mechanism.release_stream(table.to_reader(2), tmp_path / name, values="draw", keep="k")
    found = pa.Table.from_batches(list(open_table(tmp_path / name).batches()))
    assert found.to_pydict() == table.to_pydict()


def test_columns_without_any_value() -> None:
    mechanism = TableMechanism([[1.0], [1.0]], x_labels=["a", None], x_names=("x",))
    table = pa.table({"x": pa.nulls(4), "k": pa.nulls(4)})
    assert mechanism.release_stream(table, keep="k").read_all().to_pydict() == {"z": [0] * 4, "k": [None] * 4}


def test_private_and_public_columns_do_not_pass(mechanism: TableMechanism) -> None:
    assert mechanism.release_stream(people(), keep="all").schema.names == ["person", "z"]
    for name, kind in (("sex", "private"), ("job", "public")):
        with pytest.raises(InvalidInputError, match=f"'{name}' is {kind}"):
            mechanism.release_stream(people(), keep=name)


def strange(n: int = N, at: int = 1500) -> pa.Table:
    jobs = people(n)["job"].to_pylist()
    jobs[at] = jobs[at + 1] = "pilot"
    return people(n).set_column(1, "job", pa.array(jobs))


def test_unknown_letters_of_files_are_all_counted_first(
    mechanism: TableMechanism, tmp_path: Path, parts: Path
) -> None:
    pq.write_table(strange(), tmp_path / "people.parquet")
    for source in (tmp_path / "people.parquet", ds.dataset(tmp_path / "people.parquet")):
        with pytest.raises(UnknownLetterError, match=r": 2 of 3,000 records have .*'pilot' \(2\)"):
            mechanism.release_stream(source, tmp_path / "out.parquet")
    pq.write_table(strange(200, 5), parts / "part-17.parquet")
    with pytest.raises(UnknownLetterError, match="2 of 3,040 records"):
        mechanism.release_stream(parts, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"people.parquet", "parts"}
    assert mechanism.release_stream(parts, tmp_path / "out.csv", unknown="drop").n_records == 3038
    assert mechanism.release_stream(parts, tmp_path / "out.csv", unknown="draw").n_records == 3040


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_unknown_letters_of_streams_end_the_release(
    n_jobs: int, mechanism: TableMechanism, tmp_path: Path
) -> None:
    for source in (strange().to_reader(100), pl.from_arrow(strange()).lazy()):
        with pytest.raises(UnknownLetterError, match=r"2 of the first 1,(530|600) records have .*'pilot'"):
            mechanism.release_stream(source, tmp_path / "out.parquet", n_jobs=n_jobs)
    reader = mechanism.release_stream(strange().to_reader(100), n_jobs=n_jobs)
    with pytest.raises(UnknownLetterError, match="of the first 1,600 records"):
        reader.read_all()
    assert list(tmp_path.iterdir()) == []


def test_parts_that_differ(mechanism: TableMechanism, tmp_path: Path, parts: Path) -> None:
    seventeenth, whole = parts / "part-17.parquet", people(50)

    def message(**how: Any) -> str:
        with pytest.raises(InvalidInputError) as error:
            mechanism.release_stream(parts, tmp_path / "out.csv", **how)
        assert "\n" not in str(error.value)
        return str(error.value)

    pq.write_table(whole.drop_columns("job"), seventeenth)
    assert message().startswith(f"{seventeenth}: there is no column 'job'")
    with pytest.raises(InvalidInputError, match=r"part-17.parquet: there is no column 'job'"):
        mechanism.release_stream(ds.dataset(parts), tmp_path / "out.csv")
    pq.write_table(whole.set_column(0, "person", pa.array(["7"] * 50)), seventeenth)
    told = f"{seventeenth}: column 'person' is string here and int64 in {parts / 'part-00.parquet'}; "
    assert message(keep="person").startswith(told)
    with pytest.raises(InvalidInputError, match=f"^{re.escape(told)}"):
        mechanism.release_stream(f"{parts}/*.parquet", keep="person")
    assert mechanism.release_stream(parts, tmp_path / "out.csv").n_records == N - 160 + 50
    pq.write_table(whole.set_column(1, "job", pa.nulls(50)), seventeenth)
    assert mechanism.release_stream(parts, tmp_path / "nulls", keep="person").n_records == N - 160 + 50
    seventeenth.write_bytes(b"PAR1 and no more")
    assert message().startswith(f"{seventeenth}: this is not a Parquet file, or a damaged one")


def test_a_source_that_breaks(mechanism: TableMechanism, tmp_path: Path) -> None:
    def batches() -> Any:
        yield from people(500).to_batches()
        raise ConnectionError("the server went away.")

    reader = pa.RecordBatchReader.from_batches(people(0).schema, batches())
    with pytest.raises(InvalidInputError, match=r"cannot be read to the end \(.*the server went away\)"):
        mechanism.release_stream(reader, tmp_path / "out.parquet")
    with pytest.raises(InvalidInputError, match=r"cannot be read to the end \(No such file"):
        mechanism.release_stream(pl.scan_parquet(tmp_path / "none.parquet"))
    used = people().to_reader()
    mechanism.release_stream(used, tmp_path / "out.parquet")
    assert os.listdir(tmp_path) == ["out.parquet"]
    broken = duckdb.sql("SELECT CASE WHEN range > 5 THEN error('no') ELSE 'a' END AS job FROM range(9)")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        mechanism.release_stream(broken, tmp_path / "more.parquet")
    assert os.listdir(tmp_path) == ["out.parquet"]


@pytest.mark.parametrize("source", [[1, 2], 7, None, {"job": ["a"]}])
def test_what_does_not_stream(source: Any, mechanism: TableMechanism) -> None:
    with pytest.raises(InvalidInputError, match="does not come in batches"):
        mechanism.release_stream(source)


def test_outputs_that_are_refused(mechanism: TableMechanism, parts: Path, tmp_path: Path) -> None:
    def refused(message: str, source: Any, sink: Any, **how: Any) -> None:
        with pytest.raises((InvalidInputError, DataFileError), match=message):
            mechanism.release_stream(source, sink, **how)

    first = parts / "part-00.parquet"
    before = first.read_bytes()
    link = tmp_path / "link.parquet"
    link.symlink_to(first)
    for source, sink in ((first, first), (link, first), (first, link), (parts, first), (parts, parts)):
        refused("this is what is read", source, sink)
    refused("this is what is read", ds.dataset(parts), first)
    refused("would have one more part", parts, parts / "out.parquet")
    refused("would have one more part", f"{parts}/*.parquet", parts / "out")
    refused("the name must end in", people(), tmp_path / "out.xlsx")
    refused("the name must end in", people(), tmp_path / "out")
    refused("random order", parts, tmp_path / "out", shuffle=True)
    refused("random order", people(), None, shuffle=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    refused("not empty", parts, tmp_path / "full")
    refused("there is a file of this name", parts, tmp_path / "full" / "file")
    refused("cannot write", parts, tmp_path / "none" / "out")
    refused("cannot write", parts, tmp_path / "none" / "out.csv")
    assert first.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "full", "link.parquet"}


def test_files_are_replaced_whole(mechanism: TableMechanism, tmp_path: Path) -> None:
    sink = tmp_path / "out.csv"
    sink.write_text("what was there\n")
    with pytest.raises(UnknownLetterError):
        mechanism.release_stream(strange().to_reader(100), sink)
    assert sink.read_text() == "what was there\n"
    mechanism.release_stream(people().to_reader(100), sink)
    assert sink.read_text().startswith("z\n")
    shuffled = mechanism.release_stream(people(), sink, keep="person", shuffle=True)
    persons = pd.read_csv(sink)["person"].tolist()
    assert shuffled.n_records == N
    assert persons != sorted(persons) == list(range(N))


HALF_WAY = """
import os, sys
import pyarrow as pa
from privacyfunnel.mechanism import TableMechanism
mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=("job",))
batch = pa.record_batch({"job": ["a"] * 100_000})
def batches():
    for number in range(40):
        yield batch
    print("half", flush=True)
    sys.stdin.readline()
    yield batch
sink, more = sys.argv[1:]
if sink.endswith("folder"):
    from privacyfunnel.persistence import atomic_folder
    with atomic_folder(sink) as folder:
        reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
        mechanism.release_stream(reader, folder / "part.parquet")
else:
    mechanism.release_stream(pa.RecordBatchReader.from_batches(batch.schema, batches()), sink)
"""


def half_way(sink: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HALF_WAY, str(sink), ""],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "half\n"
    return process


@pytest.mark.parametrize("name", ["out.parquet", "folder"])
def test_killed_and_interrupted_processes(
    name: str, mechanism: TableMechanism, tmp_path: Path, parts: Path
) -> None:
    sink = tmp_path / name
    process = half_way(sink)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"parts"}
    process = half_way(sink)
    process.kill()
    process.communicate()
    assert not sink.exists()
    persistence._seen.clear()
    mechanism.release_stream(parts, sink)  # removes what the killed one left
    assert {path.name for path in tmp_path.iterdir()} == {"parts", name}


def test_two_processes_that_write_the_same_output(
    mechanism: TableMechanism, tmp_path: Path, parts: Path
) -> None:
    sink = tmp_path / "folder"
    process = half_way(sink)
    mechanism.release_stream(parts, sink)  # leaves the other one's files alone
    error = process.communicate("\n")[1]
    assert "cannot write the folder" in error
    assert len(list(sink.iterdir())) == 20
    assert {path.name for path in tmp_path.iterdir()} == {"parts", "folder"}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow", "folder"])
def test_a_full_disk_leaves_nothing(
    name: str, mechanism: TableMechanism, tmp_path: Path, parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = partial(Path.open, Path("/dev/full"), "wb")
    monkeypatch.setattr(persistence.TemporaryFile, "open", lambda self: full())
    with pytest.raises(DataFileError, match=rf"^{re.escape(str(tmp_path / name))}.*: cannot .*No space left"):
        mechanism.release_stream(parts, tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"parts"}


def test_an_id_is_needed_with_a_key(mechanism: TableMechanism) -> None:
    holes = people().set_column(0, "person", pa.array([*range(2900), *[None] * 100]))
    with pytest.raises(InvalidInputError, match=r"counted from record 2,901 on: record 1 has no id"):
        mechanism.release_stream(holes.to_reader(100), key=KEY, id="person").read_all()
    with pytest.raises(InvalidInputError, match="go together"):
        mechanism.release_stream(people(), key=KEY)
    with pytest.raises(InvalidInputError, match="there is no column 'name'"):
        mechanism.release_stream(people(), key=KEY, id="name")


def test_a_reader_that_was_read_is_not_taken_for_an_empty_one(
    mechanism: TableMechanism, tmp_path: Path
) -> None:
    reader = people().to_reader()
    pf.Joint.from_frame(reader, public="job", private="sex", missing="letter")
    with pytest.raises(InvalidInputError, match="was read already; open it again"):
        mechanism.release_stream(reader, tmp_path / "out.csv")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("read", [pl.scan_parquet, lambda path: duckdb.read_parquet(str(path))])
def test_what_is_lazy_does_not_replace_what_it_may_read(
    read: Callable[..., Any], mechanism: TableMechanism, tmp_path: Path
) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(people(), path)
    with pytest.raises(InvalidInputError, match=r"exists, and a .* does not tell whether it reads it"):
        mechanism.release_stream(read(path), path)
    assert pq.read_table(path) == people()
    assert mechanism.release_stream(read(path), tmp_path / "new.parquet").n_records == N


def test_parts_that_cannot_be_read_are_not_left_out(mechanism: TableMechanism, parts: Path) -> None:
    link = parts / "part-99.parquet"
    link.symlink_to(parts / "gone")
    with pytest.raises(DataFileError, match=r"part-99.parquet: this link leads to no file"):
        mechanism.release_stream(parts)
    link.unlink()
    link.mkdir()
    with pytest.raises(DataFileError, match=r"part-99.parquet: this part is a folder"):
        mechanism.release_stream(parts)
    pq.write_table(people(5), link / "more.parquet")
    assert mechanism.release_stream(f"{parts}/**/*.parquet").read_all().num_rows == N + 5


@pytest.mark.parametrize("unknown", ["error", "drop"])
@pytest.mark.parametrize("ordered", [False, True])
def test_categories_of_records_left_out_stay_here(
    ordered: bool, unknown: str, mechanism: TableMechanism, tmp_path: Path
) -> None:
    """Left out by the release, or by the owner before: pandas and pyarrow keep the categories of a part."""
    numbers = pa.array([3, 1, None, 2])
    towns = pa.DictionaryArray.from_arrays(numbers, ["NOBODY", "p", "SOMEBODY", "q"], ordered=ordered)
    table = pa.table({"job": ["a", "b", "a", "new"], "town": towns})
    table = table if unknown == "drop" else table.slice(0, 3)
    path = tmp_path / "in.parquet"
    pq.write_table(table, path)
    for name in ("out.parquet", "out.arrow"):
        for source in (table, path):
            mechanism.release_stream(source, tmp_path / name, keep="town", unknown=unknown)
            assert not re.search(b"SOMEBODY|NOBODY", (tmp_path / name).read_bytes())
    for frame in (table, table.to_pandas()):
        made = pa.table(mechanism.release_frame(frame, keep="town", unknown=unknown))
        column = made["town"].combine_chunks()
        assert column.to_pylist() == ["q", "p", None]
        assert column.dictionary.to_pylist() == ["p", "q"]
        assert column.type.ordered == ordered


def test_parts_with_dictionaries_of_their_own_keep_the_order_of_categories(mechanism: TableMechanism) -> None:
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int8()), names)
        for numbers, names in (([1, 1], ["x", "p"]), ([0, None], ["q", "p"]), ([], ["z"]))
    ]
    table = pa.table({"job": ["a", "b", "a", "b"], "town": pa.chunked_array(parts)})
    column = mechanism.release_frame(table, keep="town")["town"]
    assert column.to_pylist() == ["p", "p", "q", None]
    assert column.unify_dictionaries().chunk(0).dictionary.to_pylist() == ["p", "q"]
    assert column.type == table["town"].type


def test_an_index_that_is_kept_has_no_categories_of_others(mechanism: TableMechanism) -> None:
    towns = pd.CategoricalIndex(["p", "q", "SOMEBODY"])
    both = pd.MultiIndex.from_arrays([["p", "q", "SOMEBODY"], [1, 2, 3]])
    for index in (towns, both):
        frame = pd.DataFrame({"job": ["a", "b", "a"]}, index=index).iloc[:2]
        made = mechanism.release_frame(frame, keep="all").index
        assert list(made) == list(frame.index)
        levels = made.categories if index is towns else made.levels[0]
        assert list(levels) == ["p", "q"]
        assert len(frame.index.categories if index is towns else frame.index.levels[0]) == 3  # as it was


def test_a_lazy_release_cannot_be_saved(mechanism: TableMechanism) -> None:
    released = mechanism.release_frame(pl.from_arrow(people()).lazy(), key=KEY, id="person")
    for save in (pickle.dumps, pl.LazyFrame.serialize):
        with pytest.raises(Exception, match="a release that is still lazy cannot be saved"):
            save(released)
    assert released.collect().height == N
