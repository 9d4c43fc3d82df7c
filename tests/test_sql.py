"""Mechanisms as SQL, run in SQLite and DuckDB: probabilities, quoting, unknown letters, random numbers."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np
import pytest
import sparse_twins
from scipy.stats import chisquare

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.sql import _RANDOM

ENGINES = ("sqlite", "duckdb")
FAILURES = (sqlite3.Error, duckdb.Error)

# Letters and symbols with everything that needs quoting, a missing value, a sure row and zeros.
NASTY = ["a", "A", "b'; DROP TABLE people; --", 'c"\\', None, "e", "ü\n"]
SYMBOLS = ["p", "q'||'", 'r"', "s\\'"]
TABLE = [
    [0.1, 0.2, 0.3, 0.4],
    [0.4, 0.3, 0.2, 0.1],
    [0, 1, 0, 0],
    [0, 0.5, 0, 0.5],
    [0.25, 0, 0.75, 0],
    [1 / 3, 1 / 3, 1 / 3, 0],
    [0, 0, 0, 1],
]


@pytest.fixture
def mechanism() -> TableMechanism:
    return TableMechanism(TABLE, x_labels=NASTY, z_labels=SYMBOLS, x_names=["job"])


class Database:
    """The two engines under one interface."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.connection: Any = sqlite3.connect(":memory:") if dialect == "sqlite" else duckdb.connect()

    def query(self, sql: str) -> list[tuple]:
        return self.connection.execute(sql).fetchall()

    def fill(self, declaration: str, rows: Iterable[tuple], times: int = 1) -> None:
        """A table `people` with an integer key first, each row `times` times under keys of its own."""
        rows = list(rows)
        self.connection.execute(f"CREATE TABLE seed (key INTEGER, {declaration})")
        marks = ", ".join("?" for _ in rows[0])
        self.connection.executemany(f"INSERT INTO seed VALUES ({marks})", rows)
        self.connection.execute(
            "CREATE TABLE people AS WITH RECURSIVE copies(n) AS "
            f"(SELECT 0 UNION ALL SELECT n + 1 FROM copies WHERE n + 1 < {times}) "
            "SELECT seed.* FROM seed, copies"
        )


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterable[Database]:
    opened = Database(request.param)
    yield opened
    opened.connection.close()


def assert_frequencies(pairs: Iterable[tuple[int, Any]], mechanism: TableMechanism) -> None:
    """For each letter number the symbols occur as the table says; fails once in 10⁹ correct runs."""
    counts = Counter(pairs)
    for row, p in enumerate(mechanism.p_z_given_x):
        here = np.array([counts.pop((row, symbol), 0) for symbol in mechanism.z_labels])
        assert here[p == 0].sum() == 0
        assert here.sum() > 0
        if (p > 0).sum() > 1:
            assert chisquare(here[p > 0], p[p > 0] * here.sum()).pvalue > 1e-9
    assert not counts


def test_frequencies_match_the_table(database: Database, mechanism: TableMechanism) -> None:
    database.fill("job TEXT", enumerate(NASTY), times=6000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["key"])
    assert_frequencies(database.query(sql), mechanism)
    assert database.query("SELECT count(*) FROM people") == [(6000 * len(NASTY),)]


def test_frequencies_match_inside_other_queries(database: Database, mechanism: TableMechanism) -> None:
    """A filter, two uses of the symbol and a stored copy must all see one draw a row."""
    database.fill("job TEXT", enumerate(NASTY), times=6000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["key"])
    assert database.query(f"SELECT count(*) FROM ({sql}) AS t WHERE z <> z") == [(0,)]
    database.query(f"CREATE TABLE released AS {sql}")
    assert_frequencies(database.query("SELECT key, z FROM released"), mechanism)
    filtered = []
    for symbol in SYMBOLS:
        quoted = symbol.replace("'", "''")
        filtered += database.query(f"SELECT key, z FROM ({sql}) AS t WHERE z = '{quoted}' AND key = 5")
    counts = Counter(symbol for _, symbol in filtered)
    assert set(counts) == set(SYMBOLS[:3])
    # Four separate draws: each count is binomial (6000, 1/3), and 6.5 standard deviations are 237.
    assert all(abs(count - 2000) < 237 for count in counts.values())


def test_one_draw_a_branch_would_be_noticed(database: Database, mechanism: TableMechanism) -> None:
    """What an optimiser makes of a plain subquery (SQLite does), and why the numbers are materialised."""
    database.fill("job TEXT", enumerate(NASTY), times=6000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["key"])
    assert " AS MATERIALIZED (" in sql
    inlined = sql.replace("drawn.random_number", f"({_RANDOM[database.dialect]})")
    with pytest.raises(AssertionError, match="pvalue"):
        assert_frequencies(database.query(inlined), mechanism)


def test_case_draws_what_release_draws(database: Database, mechanism: TableMechanism) -> None:
    u = np.random.default_rng(0).random(1000)
    u[:4] = [0, 1 - 2**-53, 0.5, 0.25]
    rows = np.arange(u.size) % len(NASTY)
    database.fill("job TEXT, u DOUBLE", [(i, NASTY[row], u[i]) for i, row in enumerate(rows.tolist())])
    case = mechanism.to_sql_case("u", dialect=database.dialect)
    got = [symbol for (symbol,) in database.query(f"SELECT {case} FROM people ORDER BY key")]
    expected = sparse_twins.draw(mechanism.p_z_given_x, rows, u)
    assert got == [SYMBOLS[symbol] for symbol in expected]


def test_letters_of_several_columns_and_types(database: Database) -> None:
    letters = [(1, 0.5, True), (1, None, False), (-2, 1e-300, None), (None, 0.1, True)]
    mechanism = TableMechanism(
        np.eye(4), x_labels=letters, z_labels=[10, -20, 30, 40], x_names=["a", "b", "c"]
    )
    database.fill("a INTEGER, b DOUBLE, c BOOLEAN", [(i, *letter) for i, letter in enumerate(letters)])
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["key"])
    assert sorted(database.query(sql)) == [(0, 10), (1, -20), (2, 30), (3, 40)]


def test_symbols_of_every_type(database: Database) -> None:
    database.fill("x INTEGER", [(0, 0), (1, 1)])
    for labels, expected in [
        ([0.1, 1e-5], [0.1, 1e-5]),
        ([True, False], [True, False]),
        ([1, None], [1, None]),
        ([1, "one"], ["1", "one"]),
        ([(0, 1), (1, 0)], ["(0, 1)", "(1, 0)"]),
    ]:
        sql = TableMechanism(np.eye(2), z_labels=labels).to_sql(
            "people", dialect=database.dialect, keep=["key"]
        )
        assert [symbol for _, symbol in sorted(database.query(sql))] == expected


def test_only_the_symbol_is_handed_out(database: Database, mechanism: TableMechanism) -> None:
    database.fill("job TEXT, secret TEXT", [(0, "a", "s")])
    cursor = database.connection.execute(
        mechanism.to_sql("people", dialect=database.dialect, output='the "z"')
    )
    assert [column[0] for column in cursor.description] == ['the "z"']


def test_names_need_no_care(database: Database) -> None:
    names = ['odd "name"', "back`tick", "select", "random_number", "drawn", "source"]
    letters = [(0,) * 6, (1,) * 6]
    mechanism = TableMechanism(np.eye(2), x_labels=letters, x_names=names)
    declaration = ", ".join('"' + name.replace('"', '""') + '" INTEGER' for name in names)
    database.fill(declaration, [(i, *letter) for i, letter in enumerate(letters)])
    database.query('CREATE TABLE "my \'table" AS SELECT * FROM people')
    sql = mechanism.to_sql("my 'table", dialect=database.dialect, output="source", keep=["key"])
    assert sorted(database.query(sql)) == [(0, 0), (1, 1)]
    qualified = mechanism.to_sql(("main", "people"), dialect=database.dialect, keep=["key"])
    assert sorted(database.query(qualified)) == [(0, 0), (1, 1)]


def test_missing_columns_are_errors(database: Database) -> None:
    """SQLite reads an unknown name in double quotes as a text, which may be a letter."""
    database.fill("x INTEGER", [(0, 0)])
    mechanism = TableMechanism(np.eye(1), x_labels=["job"], x_names=["job"])
    case = mechanism.to_sql_case("x", dialect=database.dialect)
    for sql in (mechanism.to_sql("people", dialect=database.dialect), f"SELECT {case} FROM people"):
        with pytest.raises(FAILURES, match="job"):
            database.query(sql)


def test_impossible_symbols_do_not_appear() -> None:
    case = TableMechanism([[0, 0.5, 0.5, 0]], z_labels=["never", "p", "q", "no"]).to_sql_case(
        dialect="duckdb"
    )
    assert "'p'" in case
    assert "'never'" not in case
    assert "'no'" not in case


@pytest.mark.parametrize("value", ["zz", None])
def test_unknown_letters_stop_the_query_or_stay_out(database: Database, value: str | None) -> None:
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(0, "a"), (1, value)])
    with pytest.raises(FAILURES, match=f"release: unknown letter: {value or 'NULL'}"):
        database.query(mechanism.to_sql("people", dialect=database.dialect))
    rows = database.query(mechanism.to_sql("people", dialect=database.dialect, keep=["key"], unknown="drop"))
    assert [key for key, _ in rows] == [0]
    assert rows[0][1] in (0, 1)


def test_unknown_letters_are_drawn_from_the_marginal(database: Database) -> None:
    """Known letters have symbols of their own, so the frequencies of strangers can only be those of P(Z)."""
    p_z = np.array([0.2, 0.7, 0.1])
    mechanism = TableMechanism(
        np.vstack([np.eye(3)[2], np.eye(3)[0]]), x_labels=["a", "b"], x_names=["job"], marginal=p_z
    )
    database.fill("job TEXT", [(0, "a"), (1, "b"), (2, "stranger"), (3, None)], times=5000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="key", unknown="draw")
    twin = TableMechanism(np.vstack([mechanism.p_z_given_x, p_z, p_z]))
    assert_frequencies(database.query(sql), twin)
    database.query("CREATE TABLE numbered AS SELECT job, 0.85 AS u FROM people WHERE key = 2")
    case = mechanism.to_sql_case("u", dialect=database.dialect, unknown="draw")
    assert set(database.query(f"SELECT {case} FROM numbered")) == {(1,)}


def test_rows_come_in_random_order_on_request(database: Database) -> None:
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(i, "a") for i in range(40)])
    for unknown in ("error", "drop"):
        sql = mechanism.to_sql("people", dialect=database.dialect, keep="key", shuffle=True, unknown=unknown)
        keys = [key for key, _ in database.query(sql)]
        assert sorted(keys) == list(range(40))
        assert keys != list(range(40))  # equal with probability 1/40!
        assert keys != [key for key, _ in database.query(sql)]


@pytest.mark.parametrize("number", ["1", "-0.5", "NULL", "5e300"])
def test_bad_random_numbers_are_noticed(database: Database, number: str) -> None:
    """Such as SQLite's random(), a large integer, where a number of [0, 1) is meant."""
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(0, "a")])
    with pytest.raises(FAILURES, match="random number outside"):
        database.query(mechanism.to_sql("people", dialect=database.dialect, random=number))
    with pytest.raises(FAILURES, match="random number outside"):
        database.query(mechanism.to_sql("people", dialect=database.dialect, random=number, unknown="drop"))
    low, high = (mechanism.to_sql("people", dialect=database.dialect, random=u) for u in ("0.25", "0.75"))
    assert database.query(low) + database.query(high) == [(0,), (1,)]


def test_random_numbers_are_uniform(database: Database) -> None:
    """The engine's expression against 64 equal cells, through a mechanism with 64 symbols."""
    database.fill("x INTEGER", [(0, 0)], times=40_000)
    sql = TableMechanism(np.full((1, 64), 1 / 64)).to_sql("people", dialect=database.dialect)
    counts = np.bincount([symbol for (symbol,) in database.query(sql)], minlength=64)
    assert chisquare(counts).pvalue > 1e-9


def test_sqlite_columns_without_case_keep_letters_apart() -> None:
    database = Database("sqlite")
    database.query("CREATE TABLE people (key INTEGER, job TEXT COLLATE NOCASE)")
    database.query("INSERT INTO people VALUES (0, 'a'), (1, 'A')")
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "A"], x_names=["job"])
    assert database.query(mechanism.to_sql("people", dialect="sqlite", keep=["key"])) == [(0, 0), (1, 1)]
    database.connection.close()


def test_postgres_text_does_not_depend_on_settings(mechanism: TableMechanism) -> None:
    """No PostgreSQL runs here; this pins the literals whose meaning a setting could change."""
    sql = mechanism.to_sql("people", dialect="postgres")
    assert r"""E'c"\\'""" in sql
    assert r"""E's\\'''""" in sql
    assert "random() AS random_number" in sql
    assert " AS MATERIALIZED (" in sql


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([float("inf")], {}, "has no SQL literal"),
        (["a\0b"], {}, "has no SQL literal"),
        ([b"a"], {}, "has no SQL literal"),
        ([2**63], {}, "has no SQL literal"),
        (["a"], {"columns": ["x", "y"]}, "as many columns as a letter has parts"),
        (["a"], {"columns": [""]}, "is not a name"),
        (["a"], {"dialect": "mysql"}, "dialect must be one of sqlite, duckdb, postgres"),
        (["a"], {"unknown": "null"}, "unknown must be one of 'error', 'draw', 'drop'"),
        (["a"], {"unknown": "draw"}, "does not know P"),
        (["a"], {"keep": "all"}, "the columns are not known here; name those to keep"),
        (["a"], {"keep": "x"}, "column 'x' is public"),
        (["a"], {"keep": ["key", "sex"]}, "column 'sex' is private"),
        (["a"], {"keep": ["z"]}, "must differ"),
    ],
)
def test_what_cannot_be_written(labels: list, options: dict, message: str) -> None:
    mechanism = TableMechanism([[1.0]], x_labels=labels, private_names=["sex"])
    with pytest.raises(InvalidInputError, match=message):
        mechanism.to_sql("people", **{"dialect": "sqlite", **options})


def test_case_cannot_leave_out_a_row() -> None:
    with pytest.raises(InvalidInputError, match="unknown must be 'error' or 'draw'; it is 'drop'"):
        TableMechanism([[1.0]]).to_sql_case(dialect="sqlite", unknown="drop")  # type: ignore[arg-type]
