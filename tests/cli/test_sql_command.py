"""pfunnel sql: statements that run as they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_tables import HEADER, Run, make_records, read_csv
from databases import Database

import privacyfunnel as pf
from privacyfunnel.keys import read_key
from privacyfunnel.sql import key_table_statement


def statements(text: str) -> list[str]:
    return [part for part in text.split(";\n") if part.strip()]


def fill(database: Database) -> None:
    database.make("people", ", ".join(f"{name} TEXT" for name in HEADER), make_records())


def test_statements_release_the_table(pfunnel: Run, mechanism: Path, database: Database) -> None:
    dialect = database.dialect
    ended = pfunnel("sql", mechanism, "--table", "people", "--dialect", dialect, "--engine-random")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("-- A release of one table.")
    assert "no entropy of the operating system" in ended.out
    fill(database)
    for one in statements(ended.out):
        shares = database.query(one)
    assert sum(float(share) for _, share, _ in shares) == pytest.approx(1)
    assert sum(expected for *_, expected in shares) == pytest.approx(1)
    symbols = {row[0] for row in database.query("SELECT * FROM released")}
    assert symbols <= set(pf.load(mechanism).z_labels)
    assert database.query("SELECT count(*) FROM released") == [(60,)]


def test_a_key_draws_what_the_command_draws(
    pfunnel: Run, people: Path, mechanism: Path, tmp_path: Path, database: Database
) -> None:
    key, script, out = tmp_path / "owner.key", tmp_path / "release.sql", tmp_path / "out.csv"
    assert pfunnel("key", "new", key).code == 0
    dialect = database.dialect
    common = ("--table", "people", "--dialect", dialect, "--id", "id", "--keep", "id", "--column", "symbol")
    ended = pfunnel("sql", mechanism, *common, "-o", script)
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"people: statements that release it in {dialect}.")
    text = script.read_text(encoding="utf-8")
    assert key.read_text(encoding="utf-8").strip() not in text
    fill(database)
    made = key_table_statement(dialect)
    assert made is None or made in text
    database.teach(read_key(key))
    for one in statements(text):
        if made is None or made not in one:
            database.query(one)
    found = database.query("SELECT id, symbol FROM released")
    drawing = ("--keep", "id", "--key", key, "--id", "id")
    assert pfunnel("release", people, "-m", mechanism, "-o", out, *drawing).code == 0
    assert {person: str(symbol) for person, symbol in found} == dict(read_csv(out)[1])


def test_where_numbers_come_from_must_be_said(pfunnel: Run, mechanism: Path) -> None:
    for more in ((), ("--id", "id", "--engine-random")):
        ended = pfunnel("sql", mechanism, "--table", "people", "--dialect", "duckdb", *more)
        assert ended.code == 2
        assert "say where the numbers come from" in ended.err


def test_statements_as_json(pfunnel: Run, mechanism: Path) -> None:
    ended = pfunnel("sql", mechanism, "--table", "t", "--dialect", "postgres", "--id", "id", "--json")
    found = json.loads(ended.out)
    assert found["dialect"] == "postgres"
    assert any("sha256" in one for one in found["statements"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dialect", "mysql"), "choose one of sqlite, duckdb, postgres, mariadb, spark"),
        (("--dialect", "duckdb", "--keep", "sex"), "'sex' is private"),
        (("--dialect", "duckdb", "--public", "a", "--public", "b"), "as many columns as a letter has parts"),
    ],
)
def test_what_cannot_be_written(pfunnel: Run, mechanism: Path, arguments: tuple[str, ...], told: str) -> None:
    ended = pfunnel("sql", mechanism, "--table", "people", "--engine-random", *arguments)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
