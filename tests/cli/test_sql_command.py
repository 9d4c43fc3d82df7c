"""pfunnel sql: statements that run as they are written."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cli_tables import HEADER, Run, make_records, read_csv

import privacyfunnel as pf
from privacyfunnel.keys import hmac_pads, read_key
from privacyfunnel.sql import register_key


def filled(dialect: str) -> Any:
    base: Any = sqlite3.connect(":memory:") if dialect == "sqlite" else duckdb.connect()
    base.execute(f"CREATE TABLE people ({', '.join(f'{name} TEXT' for name in HEADER)})")
    base.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", make_records())
    return base


def statements(text: str) -> list[str]:
    return [part for part in text.split(";\n") if part.strip()]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_statements_release_the_table(pfunnel: Run, mechanism: Path, dialect: str) -> None:
    ended = pfunnel("sql", mechanism, "--table", "main.people", "--dialect", dialect, "--engine-random")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("-- A release of one table.")
    assert "no entropy of the operating system" in ended.out
    base = filled(dialect)
    for one in statements(ended.out):
        shares = base.execute(one).fetchall()
    assert sum(share for _, share in shares) == pytest.approx(1)
    symbols = {row[0] for row in base.execute("SELECT * FROM released").fetchall()}
    assert symbols <= set(pf.load(mechanism).z_labels)
    assert base.execute("SELECT count(*) FROM released").fetchall() == [(60,)]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_key_draws_what_the_command_draws(
    pfunnel: Run, people: Path, mechanism: Path, tmp_path: Path, dialect: str
) -> None:
    key, script, out = tmp_path / "owner.key", tmp_path / "release.sql", tmp_path / "out.csv"
    assert pfunnel("key", "new", key).code == 0
    common = ("--table", "people", "--dialect", dialect, "--id", "id", "--keep", "id", "--column", "symbol")
    ended = pfunnel("sql", mechanism, *common, "-o", script)
    assert (ended.code, ended.out.splitlines()[0]) == (0, f"people: statements that release it in {dialect}.")
    text = script.read_text(encoding="utf-8")
    assert key.read_text(encoding="utf-8").strip() not in text
    base = filled(dialect)
    if dialect == "sqlite":
        register_key(base, read_key(key))
    for one in statements(text):
        base.execute(one)
        if "CREATE TEMPORARY TABLE release_key" in one:
            base.execute("INSERT INTO release_key VALUES (?, ?)", hmac_pads(read_key(key)))
    found = base.execute("SELECT id, symbol FROM released").fetchall()
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
        (("--dialect", "mysql"), "choose one of sqlite, duckdb, postgres"),
        (("--dialect", "duckdb", "--keep", "sex"), "'sex' is private"),
        (("--dialect", "duckdb", "--public", "a", "--public", "b"), "as many columns as a letter has parts"),
    ],
)
def test_what_cannot_be_written(pfunnel: Run, mechanism: Path, arguments: tuple[str, ...], told: str) -> None:
    ended = pfunnel("sql", mechanism, "--table", "people", "--engine-random", *arguments)
    assert ended.code == 2
    assert told in " ".join(ended.err.split())
