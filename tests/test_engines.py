"""The same mechanism with the same numbers, or the same key, draws the same symbols in every database."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
import sparse_twins
from databases import Database
from odd_mechanisms import TEXTS, numbers, odd_mechanisms

import privacyfunnel as pf
from privacyfunnel import TableMechanism
from privacyfunnel.alphabet import column_values
from privacyfunnel.keys import keyed_uniform

KEY = bytes(range(100, 132))
TYPES = {str: "TEXT", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN", date: "DATE", datetime: "TIMESTAMP"}
NONE = type(None)


def stored(value: Any, dialect: str) -> Any:
    """A value as the database holds it: SQLite has no dates."""
    return str(value) if dialect == "sqlite" and isinstance(value, date) else value


def fill(database: Database, mechanism: TableMechanism, rows: np.ndarray, more: str, extra: list) -> None:
    """A table of these letters, with a number and one more column."""
    letters = [mechanism.x_labels[row] for row in rows.tolist()]
    parts = [letter if isinstance(letter, tuple) else (letter,) for letter in letters]
    kinds = [
        next((TYPES[type(part)] for part in column if part is not None), "TEXT")
        for column in zip(*(x if isinstance(x, tuple) else (x,) for x in mechanism.x_labels), strict=True)
    ]
    if database.dialect == "sqlite":
        kinds = ["TEXT" if kind in ("DATE", "TIMESTAMP") else kind for kind in kinds]
    declared = ", ".join(
        f"{database.name(name)} {kind}" for name, kind in zip(mechanism.x_names, kinds, strict=True)
    )
    database.fill(
        f"{declared}, {more}",
        [
            (i, *(stored(part, database.dialect) for part in letter), one)
            for i, (letter, one) in enumerate(zip(parts, extra, strict=True))
        ],
    )


@pytest.fixture(scope="module")
def mechanisms(tmp_path_factory: pytest.TempPathFactory) -> list[TableMechanism]:
    """Odd ones, as a file has them."""
    path: Path = tmp_path_factory.mktemp("mechanisms") / "m.json"
    found = []
    for one in odd_mechanisms():
        one.save(path)
        found.append(pf.load(path))
        assert found[-1].fingerprint == one.fingerprint
    return found


def test_the_same_numbers_draw_the_same_symbols(database: Database, mechanisms: list[TableMechanism]) -> None:
    for one in mechanisms:
        rows, u = numbers(one)
        fill(database, one, rows, "u DOUBLE", u.tolist())
        sql = one.to_sql("people", dialect=database.dialect, keep="nr", random="source.u")
        found = [symbol for _, symbol in sorted(database.query(sql), key=lambda row: row[0])]
        labels = [stored(label, database.dialect) for label in column_values(one.z_labels)]
        expected = [labels[symbol] for symbol in sparse_twins.draw(one.p_z_given_x, rows, u).tolist()]
        assert found == expected, one.x_labels
        database.drop("people")


def test_the_same_key_draws_the_same_symbols(database: Database, mechanisms: list[TableMechanism]) -> None:
    database.teach(KEY)
    for one in mechanisms:
        rows = np.arange(3 * one.n_x)[:100] % one.n_x
        persons = [f"{TEXTS[i % len(TEXTS)]} {i}" for i in range(rows.size)]
        fill(database, one, rows, "person TEXT", persons)
        sql = one.to_sql("people", dialect=database.dialect, keep="nr", id="person")
        found = [symbol for _, symbol in sorted(database.query(sql), key=lambda row: row[0])]
        labels = [stored(label, database.dialect) for label in column_values(one.z_labels)]
        of = {label: labels[i] for i, label in enumerate(one.z_labels)}
        drawn = one.release([one.x_labels[row] for row in rows.tolist()], key=KEY, id=persons)
        assert found == [of[symbol] for symbol in drawn], one.x_labels
        database.drop("people")


def test_a_table_without_rows_gives_none(database: Database) -> None:
    one = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.make("people", "nr INTEGER, job TEXT", [])
    assert database.query(one.to_sql("people", dialect=database.dialect)) == []


def uniform(k: int = 64) -> TableMechanism:
    return TableMechanism(np.full((1, k), 1 / k), x_labels=["a"], x_names=["job"])


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("TEXT", TEXTS),
        ("BIGINT", [0, -1, 2**63 - 1, 7]),
        ("INTEGER", [0, -1, 2**31 - 1]),
        ("DATE", [date(1969, 12, 31), date(2020, 2, 29), date(9999, 12, 31)]),
        ("UUID", [UUID(int=5), UUID("12345678-9abc-4ef0-9234-56789abcdef0")]),
    ],
)
def test_ids_read_the_same(database: Database, kind: str, ids: list) -> None:
    if kind == "UUID" and database.dialect in ("sqlite", "spark"):
        pytest.skip("has no such type")
    database.teach(KEY)
    held = [str(one) if database.dialect in ("sqlite", "mariadb") and kind == "UUID" else one for one in ids]
    held = [stored(one, database.dialect) for one in held]
    declared = "TEXT" if database.dialect == "sqlite" and kind == "DATE" else kind
    database.fill(f"job TEXT, person {declared}", [(i, "a", one) for i, one in enumerate(held)])
    sql = uniform().to_sql("people", dialect=database.dialect, keep="nr", id="person")
    expected = np.floor(keyed_uniform(ids, KEY, uniform().fingerprint) * 64).astype(int).tolist()
    assert sorted(database.query(sql)) == list(enumerate(expected))


@pytest.mark.parametrize("kind", ["DOUBLE", "BOOLEAN", "TIMESTAMP", "DECIMAL(5, 2)"])
def test_what_python_refuses_as_ids_stops_the_query(database: Database, kind: str) -> None:
    """Such values read differently from engine to engine, and a person would get several symbols."""
    if (database.dialect, kind) in {("sqlite", "BOOLEAN"), ("sqlite", "TIMESTAMP"), ("mariadb", "BOOLEAN")}:
        pytest.skip("has whole numbers or texts of that name")
    value = {"DOUBLE": 2.5, "BOOLEAN": True, "TIMESTAMP": datetime(2020, 2, 29)}.get(kind, 1.25)
    if kind.startswith("DECIMAL") and database.dialect == "spark":
        from decimal import Decimal

        value = Decimal("1.25")
    database.teach(KEY)
    database.fill(f"job TEXT, person {kind}", [(0, "a", value)])
    sql = uniform().to_sql("people", dialect=database.dialect, id="person")
    with pytest.raises(database.failures, match="ids must be text, whole numbers or dates, not "):
        database.query(sql)
    qualified = uniform().to_sql((database.schema, "people"), dialect=database.dialect, id="person")
    if database.dialect != "spark":  # whose views have no schema
        with pytest.raises(database.failures, match="ids must be text, whole numbers or dates, not "):
            database.query(qualified)


def test_a_text_is_no_number(database: Database) -> None:
    """MariaDB holds 'abc' for 0, DuckDB '7.6' for 8."""
    one = TableMechanism(np.eye(2), x_labels=[0, 8], x_names=["n"])
    for wrong in ("abc", "7.6", "8", ""):
        database.fill("n TEXT", [(0, wrong)])
        with pytest.raises(database.failures):
            database.query(one.to_sql("people", dialect=database.dialect))
        database.drop("people")


def test_nan_is_missing(database: Database) -> None:
    """As in Python; SQLite and MariaDB have no NaN."""
    if database.dialect in ("sqlite", "mariadb"):
        pytest.skip("has no NaN")
    letters = [1.5, None]
    database.fill("x DOUBLE", [(0, 1.5), (1, float("nan")), (2, None)])
    for labels in (letters, [1, None]):
        one = TableMechanism(np.eye(2), x_labels=labels, x_names=["x"])
        sql = one.to_sql("people", dialect=database.dialect, keep="nr", unknown="drop")
        kept = [(0, 0)] if labels == letters else []
        assert sorted(database.query(sql)) == [*kept, (1, 1), (2, 1)]
