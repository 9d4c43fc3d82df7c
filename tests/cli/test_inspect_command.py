"""`pfunnel inspect`: a sentence first, a table, JSON, files that are read in batches, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from cli_tables import Run, write_csv

import privacyfunnel as pf
from privacyfunnel.files import base

HEADER = ["sex", "title", "age", "income", "plate", "note"]


def rows(n: int = 600) -> list[list[str]]:
    rng = np.random.default_rng(0)
    sex = np.where(rng.random(n) < 0.4, "w", "m")
    return [
        [
            str(one),
            "Ms" if one == "w" else "Mr",
            str(rng.integers(20, 60)),
            f" {rng.normal(2000 - 300 * (one == 'w'), 300):.2f}",
            f"{i:04d}",
            "",
        ]
        for i, one in enumerate(sex)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", rows(), HEADER)


def test_first_a_sentence_then_a_table(pfunnel: Run, table: Path) -> None:
    ended = pfunnel("inspect", table, "--private", "sex")
    assert ended.code == 0, ended.err
    first = ended.out.splitlines()[0]
    assert first.startswith("Somebody who sees title alone is right about sex 100.0 % of the time; without")
    for words in ("600 records, 5 columns beside sex", "whole number", "≥", "Together about sex:"):
        assert words in ended.out
    assert "plate: measured by its first 3 characters only: its values may name people." in ended.out
    assert "All values are missing in note." in ended.out
    assert "0123" not in ended.out  # no value of a record


def test_of_few_records_nothing_is_proposed(pfunnel: Run, tmp_path: Path) -> None:
    ten = write_csv(
        tmp_path / "ten.csv",
        [list(pair) for pair in zip("abababbaab", "mfmfmfmfmf", strict=True)],
        ["x", "y"],
    )
    out = pfunnel("inspect", ten, "--private", "y").out
    assert "10 records are too few to tell" in out.splitlines()[0]
    assert "pfunnel solve" not in out
    assert "Next: more records" in out


def test_row_numbers_without_a_name(pfunnel: Run, tmp_path: Path) -> None:
    numbered = [[str(i), *row] for i, row in enumerate(rows())]
    path = write_csv(tmp_path / "numbered.csv", numbered, ["", *HEADER])
    out = pfunnel("inspect", path, "--private", "sex").out
    assert "(no name): measured by its size in 32 bins only: its values may name people." in out
    assert "\n: " not in out


def test_json(pfunnel: Run, table: Path) -> None:
    values = json.loads(pfunnel("inspect", table, "--private", "sex", "--json").out)
    assert values["command"] == "inspect"
    kinds = {one["name"]: one["kind"] for one in values["columns"]}
    # A number with blanks is a number, one that begins with 0 is a text.
    assert kinds == {
        "title": "text",
        "age": "whole number",
        "income": "number",
        "plate": "text",
        "note": "empty",
    }
    income = next(one for one in values["columns"] if one["name"] == "income")
    assert 0 < income["bits"]["low"] < income["bits"]["value"] < income["bits"]["high"]
    assert income["bins"] > 10


def test_without_a_private_column(pfunnel: Run, table: Path) -> None:
    ended = pfunnel("inspect", table)
    assert ended.out.startswith("Of 6 columns in 600 records, sex and title tell most about each other")
    assert "About each other:" in ended.out


def test_batches_are_added_up(
    pfunnel: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = json.loads(pfunnel("inspect", table, "--private", "sex", "--json").out)
    columns = dict(zip(HEADER, zip(*rows(), strict=True), strict=True))
    typed: dict[str, object] = {name: list(values) for name, values in columns.items()}
    typed |= {"age": [int(x) for x in columns["age"]], "income": [float(x) for x in columns["income"]]}
    typed["note"] = [None] * 600
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table(typed), path, row_group_size=70)
    monkeypatch.setattr(base, "BATCH_ROWS", 64)
    parts = json.loads(pfunnel("inspect", path, "--private", "sex", "--json").out)
    alone = pf.inspect(pa.table(typed), private="sex").to_dict()
    for other in (whole, alone):
        for one, two in zip(parts["columns"], other["columns"], strict=True):
            assert (one["name"], one["kind"], one["n_values"]) == (two["name"], two["kind"], two["n_values"])
            assert (one["bits"] is None) == (two["bits"] is None)
            if one["bits"] is not None:
                assert one["bits"]["value"] == pytest.approx(two["bits"]["value"], abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--private", "sexx"], "people.csv: there is no column 'sexx'"),
        (["--private", "plate"], "600 different values in 600 records"),
        (["--private", "note"], "has no value at all"),
        (["--delimiter", ";;"], "single character"),
    ],
)
def test_bad_input_is_one_line(pfunnel: Run, table: Path, arguments: list[str], words: str) -> None:
    ended = pfunnel("inspect", table, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_no_records(pfunnel: Run, tmp_path: Path) -> None:
    ended = pfunnel("inspect", write_csv(tmp_path / "none.csv", [], ["a", "b"]), "--private", "a")
    assert ended.code == 2
    assert "no records" in ended.err or "two records or more" in ended.err


def test_what_is_proposed_next_is_not_refused(pfunnel, tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, 2_000)
    pay = np.round(rng.normal(30_000, 9_000, 2_000) + 9_000 * sex, 2)
    job = np.where(rng.random(2_000) < 0.7, sex, 1 - sex)
    path = tmp_path / "people.csv"
    for columns, said in (
        ({"pay": pay, "job": job}, "--public job "),
        ({"pay": pay}, "Next, the whole table"),
    ):
        pd.DataFrame({**columns, "sex": sex}).to_csv(path, index=False)
        ended = pfunnel("inspect", path, "--private", "sex")
        assert ended.code == 0, ended.err
        assert said in " ".join(ended.out.split())
        assert "--public pay" not in ended.out


def test_a_csv_file_is_typed_as_where_it_is_protected(pfunnel: Run, tmp_path: Path) -> None:
    """Dates that nobody shares tell by their year, in the command as in Python."""
    rng = np.random.default_rng(0)
    days = rng.integers(0, 22_000, 2_000)
    path = tmp_path / "born.csv"
    born = np.datetime64("1940-01-01") + days
    lines = [
        [str(day), f"{i % 24:02d}:{i % 60:02d}", "ny"[int(i < 8_000)]]
        for day, i in zip(born, days, strict=True)
    ]
    write_csv(path, lines, ["birth", "called", "retired"])
    found = json.loads(pfunnel("inspect", path, "--private", "retired", "--json").out)
    assert {one["name"]: one["kind"] for one in found["columns"]} == {"birth": "date", "called": "time"}
    assert found["summary"].startswith("Somebody who sees birth alone is right about retired 9")
    python = pf.inspect(pa_csv.read_csv(path), private="retired")
    assert python.columns[0].bits is not None
    assert found["columns"][0]["bits"]["value"] == pytest.approx(python.columns[0].bits.value, abs=1e-9)
