"""Numbers, dates and times of CSV files: read as what they are, and written as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from privacyfunnel.certified import CertifiedFunnel
from privacyfunnel.certified.categories import CategoryColumn
from privacyfunnel.certified.schema import TableSchema
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.files import base, open_table, open_writer
from privacyfunnel.files.forms import form_of
from privacyfunnel.files.typed import doubtful_numbers, guessed_types, read_typed, typed, written_forms


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["17:03", "00:00"], "time32[s]"),
        (["17:03:05", "23:59:59"], "time32[s]"),
        (["17:03:05.123"], "time32[ms]"),
        (["2024-02-29"], "date32[day]"),
        (["29.02.2024"], "date32[day]"),
        (["2024-03-28 12:30"], "timestamp[s]"),
        (["28.03.2024 12:30"], "timestamp[s]"),
        (["2024-03-28T12:30:01"], "timestamp[s]"),
        (["2023-01-17T20:28:00Z", "2023-01-18T00:28:00Z"], "timestamp[s, tz=UTC]"),
        (["2024-03-28 12:30:01 UTC"], "timestamp[s, tz=UTC]"),
        (["2024-03-28T12:30:01.500+00:00"], "timestamp[ms, tz=UTC]"),
        (["2024-03-28T09:05:00+02:00"], "timestamp[s, tz=UTC]"),
        (["2024-01-01 00:30-0530", "2023-12-31 23:59-0530"], "timestamp[s, tz=UTC]"),
        (["28.03.2024 9:05:01.250 +02"], "timestamp[ms, tz=UTC]"),
        (["9:05", "0:00", "17:03"], "time32[s]"),
        (["9:05:30"], "time32[s]"),
        (["2024-03-28 9:05", "2024-03-28 23:59"], "timestamp[s]"),
        (["2024-03-28T9:05:01Z"], "timestamp[s, tz=UTC]"),
        (["9:05 PM", "12:00 AM", "12:30 PM", "11:59 AM"], "time32[s]"),
        (["09:05:30pm", "01:00:00am"], "time32[s]"),
        (["2024-03-28 9:05 PM", "2024-03-28 12:05 AM"], "timestamp[s]"),
        (["28.03.2024 9:05:07 AM +02:00"], "timestamp[s, tz=UTC]"),
        (["12,50", "3,25", "-0,10"], "double"),
        (["12,5", "3", "0,125"], "double"),
    ],
)
def test_what_is_read_is_written_in_the_same_way(tmp_path: Path, texts: list[str], kind: str) -> None:
    path, again = tmp_path / "t.csv", tmp_path / "again.csv"
    texts = texts * 10  # so many show how a column is written
    path.write_text("a;b\n" + "".join(f"{text};x\n" for text in texts) + ";x\n", encoding="utf-8")
    table = open_table(path, delimiter=";")
    frame = read_typed(table)
    assert str(frame["a"].type) == kind
    with open_writer(again, delimiter=";", forms=written_forms(table)) as writer:
        writer.write(frame)
    assert again.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12:05 AM", "00:05"),
        ("1:05 am", "01:05"),
        ("12:05PM", "12:05"),
        ("11:59 PM", "23:59"),
        ("9:05", "09:05"),
        ("2024-03-28 9:05 PM", "2024-03-28 21:05"),
        ("2024-03-28T09:05:00+02:00", "2024-03-28T07:05:00Z"),
        ("2024-01-01 00:30 -0530", "2024-01-01T06:00:00Z"),
    ],
)
def test_what_times_mean(text: str, value: str) -> None:
    found, meant = (form_of(pa.array([one])) for one in (text, value))
    assert found is not None
    assert meant is not None
    assert found.read(pa.array([text])) == meant.read(pa.array([value]))


def test_instants_are_written_with_the_commonest_offset() -> None:
    texts = pa.array(["2024-01-28T09:05:00+01:00"] * 12 + ["2024-07-28T09:05:00+02:00"] * 3)
    form = form_of(texts)
    assert form is not None
    written = form.write(form.read(texts)).to_pylist()
    assert written == ["2024-01-28T09:05:00+01:00"] * 12 + ["2024-07-28T08:05:00+01:00"] * 3


@pytest.mark.parametrize(
    ("texts", "plain"),
    [
        (["9:05"] * 9 + ["17:03"], ["09:05"] * 9 + ["17:03"]),
        (["2024-03-28T09:05:00-03:00"], ["2024-03-28T12:05:00+00:00"]),
        (["12,5"] * 9, ["12,5"] * 9),
        (["12,50"] * 9, ["12,5"] * 9),
    ],
)
def test_the_way_of_writing_tells_nothing_of_few_records(texts: list[str], plain: list[str]) -> None:
    form = form_of(pa.array(texts))
    assert form is not None
    assert form.write(form.read(pa.array(texts))).to_pylist() == plain


@pytest.mark.parametrize(
    "texts",
    [
        ["24:10"],  # no time of the day
        ["25:30", "9:05"],
        ["13:05 PM"],
        ["0:05 AM"],
        ["9:05 PM", "17:03"],
        ["9:05+02:00"],
        ["2024-03-28T09:05:00+02:00", "2024-03-28T09:05:00"],
        ["2024-03-28T09:05:00+02:00", "2024-03-28T09:05:00Z"],
        ["2024-02-30"],
        ["2024-02-29", "2024-02-29 12:30"],
        ["2024-02-29T12:30:00Z", "2024-02-29T12:30:00"],
        ["1,234", "5,678"],  # decimals or thousands?
        ["1.234,50"],
        ["1.5", "1,5"],
        ["17:03", "x"],
        ["007"],
        [" "],
        [],
    ],
)
def test_what_stays_a_text(texts: list[str]) -> None:
    assert form_of(pa.array([*texts, None], pa.string())) is None


def test_commas_need_quotes_where_they_separate_fields(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + '"12,50"\n' * 10, encoding="utf-8")
    table = open_table(path)
    with open_writer(tmp_path / "again.csv", forms=written_forms(table)) as writer:
        writer.write(read_typed(table))
    assert (tmp_path / "again.csv").read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_commas_that_may_be_thousands_are_named() -> None:
    frame = pa.table({"a": ["1,234", "5"], "b": ["1,234", "x"], "c": ["1.234,50", None], "d": ["1", "2"]})
    assert doubtful_numbers(frame) == {"a": "1,234", "c": "1.234,50"}


@pytest.mark.parametrize(
    ("parts", "kind", "values"),
    [
        ([["1"], ["2,5"], ["1,234"]], "double", [1.0, 2.5, 1.234]),
        ([["1"], ["2.5"]], "double", [1.0, 2.5]),
        ([["1,25"], ["2,5"]], "double", [1.25, 2.5]),
        ([["2024-01-01 00:00:01"], ["2024-01-01 00:00:01.5"]], "timestamp[ms]", None),
        ([["2024-01-01"], ["2024-01-01 00:00:01"]], "string", None),
        ([["17:03"] * 10, ["9:05"] * 10], "time32[s]", None),
        ([["17:03:01"], ["9:05:01.5"]], "time32[ms]", None),
        (
            [["2024-01-01T00:00:01+01:00"] * 10, ["2024-07-01T00:00:01+02:00"] * 10],
            "timestamp[s, tz=UTC]",
            None,
        ),
        ([["2024-01-01T00:00:01+01:00"], ["2024-07-01T00:00:01Z"]], "string", None),
        ([["x"], ["1"]], "string", ["x", "1"]),
        ([["1,5"], ["1.5"]], "string", ["1,5", "1.5"]),
    ],
)
def test_batches_agree_on_a_form(
    tmp_path: Path, parts: list[list[str]], kind: str, values: list[float] | None
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b\nx;y\n", encoding="utf-8")
    table, types = open_table(path, delimiter=";"), {}
    batches = [pa.record_batch({"a": pa.array([*part, None])}) for part in parts]
    for batch in batches[:2]:
        guessed_types(batch, table, types)
    found = typed(pa.Table.from_batches(batches), table, types)
    assert str(found["a"].type) == kind
    if values is not None:
        assert found["a"].drop_null().to_pylist() == values


def test_a_rule_writes_new_records_as_they_were_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 1440, 1_500)

    def write(path: Path, rows: slice) -> None:
        lines = [
            f"{m // 60:02d}:{m % 60:02d};{m // 7},{m % 10}0;2024-01-{1 + m % 28:02d}T00:{m % 60:02d}Z;"
            + "ab"[m > 700]
            for m in minutes[rows].tolist()
        ]
        path.write_text("\n".join(["at;paid;made;y", *lines]) + "\n", encoding="utf-8")

    path, new = tmp_path / "old.csv", tmp_path / "new.csv"
    write(path, slice(None))
    write(new, slice(40))
    funnel = CertifiedFunnel(0.2, n_cells=8, random_state=0)
    funnel.fit(read_typed(open_table(path, delimiter=";")), private="y")
    funnel.rule_.release_stream(open_table(new, delimiter=";"), tmp_path / "out.tsv", rng=0)
    table = open_table(tmp_path / "out.tsv")
    assert written_forms(table)["at"] == written_forms(open_table(path, delimiter=";"))["at"]
    assert written_forms(table)["made"].kind == pa.timestamp("s", "UTC")
    assert written_forms(table)["paid"].decimals == 2
    new.write_text("at;paid;made;y\nnoon;1,50;2024-01-01T00:00Z;a\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="column 'at' held time32"):
        funnel.rule_.release_stream(open_table(new, delimiter=";"), tmp_path / "bad.csv")


def test_times_of_the_day_end_with_the_day() -> None:
    late = pa.array(np.random.default_rng(0).integers(86_000, 86_400, 500), pa.int32()).cast(pa.time32("s"))
    schema = TableSchema.read(pa.table({"at": late}))
    (column,) = schema.columns
    assert (column.stops * column.step).max() <= 86_400e6
    ends = column.values(np.arange(column.n_levels), np.ones(column.n_levels))
    assert max(ends.to_pylist()).hour == 23


def test_how_much_becomes_other() -> None:
    texts = ["a"] * 60 + [f"x{i % 20}" for i in range(40)]
    column = CategoryColumn.read("town", pa.chunked_array([texts]), "")
    assert isinstance(column, CategoryColumn)
    assert column.rest_share == 0.4
    assert column.sentence == "town: 1 value that 10 records share; rarer ones become 'other', 40%."


def test_batches_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "BATCH_ROWS", 4)
    path = tmp_path / "t.csv"
    path.write_text("at,b\n" + "17:03,1\n" * 9 + "18:00,x\n", encoding="utf-8")
    frame = read_typed(open_table(path))
    assert [str(kind) for kind in frame.schema.types] == ["time32[s]", "string"]
