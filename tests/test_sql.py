"""Mechanisms as SQL, in every database that is offered: probabilities, quoting, unknown letters, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sparse_twins
from databases import Database, Postgres, Sqlite
from scipy.stats import chisquare

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.keys import hmac_pads
from privacyfunnel.mechanism import TableMechanism

KEY = bytes(range(32))

# Spark has names of tables that are letters and digits alone.
MY_TABLE = "my_table"

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
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["nr"])
    assert_frequencies(database.query(sql), mechanism)
    assert database.query("SELECT count(*) FROM people") == [(6000 * len(NASTY),)]


def test_frequencies_match_inside_other_queries(database: Database, mechanism: TableMechanism) -> None:
    """A filter, two uses of the symbol and a stored copy must all see one draw a row."""
    database.fill("job TEXT", enumerate(NASTY), times=6000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["nr"])
    assert database.query(f"SELECT count(*) FROM ({sql}) AS t WHERE z <> z") == [(0,)]
    database.query(f"CREATE TABLE released AS {sql}")
    assert_frequencies(database.query("SELECT nr, z FROM released"), mechanism)
    filtered = []
    for symbol in SYMBOLS:
        quoted = database.language.quoted(symbol)
        filtered += database.query(f"SELECT nr, z FROM ({sql}) AS t WHERE z = {quoted} AND nr = 5")
    counts = Counter(symbol for _, symbol in filtered)
    assert set(counts) == set(SYMBOLS[:3])
    # Four separate draws: each count is binomial (6000, 1/3), and 6.5 standard deviations are 237.
    assert all(abs(count - 2000) < 237 for count in counts.values())


def test_one_draw_a_branch_would_be_noticed(database: Database, mechanism: TableMechanism) -> None:
    """What an optimiser makes of a plain subquery (SQLite does), and why the numbers are materialised."""
    database.fill("job TEXT", enumerate(NASTY), times=6000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["nr"])
    assert f"drawn {database.language.materialised} (" in sql
    assert database.language.end in sql
    inlined = sql.replace("drawn.random_number", f"({database.language.random})")
    with pytest.raises((AssertionError, *database.failures), match=r"pvalue|unknown letter"):
        assert_frequencies(database.query(inlined), mechanism)


def test_it_draws_what_release_draws(database: Database, mechanism: TableMechanism) -> None:
    u = np.random.default_rng(0).random(1000)
    u[:4] = [0, 1 - 2**-53, 0.5, 0.25]
    rows = np.arange(u.size) % len(NASTY)
    database.fill("job TEXT, u DOUBLE", [(i, NASTY[row], float(u[i])) for i, row in enumerate(rows.tolist())])
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", random="source.u")
    got = [symbol for _, symbol in sorted(database.query(sql))]
    expected = sparse_twins.draw(mechanism.p_z_given_x, rows, u)
    assert got == [SYMBOLS[symbol] for symbol in expected]


def test_letters_of_several_columns_and_types(database: Database) -> None:
    letters = [(1, 0.5, True), (1, None, False), (-2, 1e-300, None), (None, 0.1, True)]
    mechanism = TableMechanism(
        np.eye(4), x_labels=letters, z_labels=[10, -20, 30, 40], x_names=["a", "b", "c"]
    )
    database.fill("a INTEGER, b DOUBLE, c BOOLEAN", [(i, *letter) for i, letter in enumerate(letters)])
    sql = mechanism.to_sql("people", dialect=database.dialect, keep=["nr"])
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
            "people", dialect=database.dialect, keep=["nr"]
        )
        assert [symbol for _, symbol in sorted(database.query(sql))] == expected


def test_only_the_symbol_is_handed_out(database: Database, mechanism: TableMechanism) -> None:
    database.fill("job TEXT, secret TEXT", [(0, "a", "s")])
    sql = mechanism.to_sql("people", dialect=database.dialect, output='the "z"')
    assert database.names(sql) == ['the "z"']


def test_names_need_no_care(database: Database) -> None:
    names = ['odd "name"', "back`tick", "select", "random_number", "drawn", "source", "letter_1"]
    letters = [(0,) * 7, (1,) * 7]
    mechanism = TableMechanism(np.eye(2), x_labels=letters, x_names=names)
    declaration = ", ".join(f"{database.name(name)} INTEGER" for name in names)
    rows = [(i, *letter) for i, letter in enumerate(letters)]
    database.query(f"CREATE TABLE {database.name(MY_TABLE)} (nr INTEGER, {declaration})")
    listed = ", ".join(str(row) for row in rows)
    database.query(f"INSERT INTO {database.name(MY_TABLE)} VALUES {listed}")
    sql = mechanism.to_sql(MY_TABLE, dialect=database.dialect, output="source", keep=["nr"])
    assert sorted(database.query(sql)) == [(0, 0), (1, 1)]
    qualified = mechanism.to_sql((database.schema, MY_TABLE), dialect=database.dialect, keep=["nr"])
    assert sorted(database.query(qualified)) == [(0, 0), (1, 1)]


def test_missing_columns_are_errors(database: Database) -> None:
    """SQLite reads an unknown name in double quotes as a text, which may be a letter."""
    database.fill("x INTEGER", [(0, 0)])
    mechanism = TableMechanism(np.eye(1), x_labels=["job"], x_names=["job"])
    with pytest.raises(database.failures, match="job"):
        database.query(mechanism.to_sql("people", dialect=database.dialect))


def test_impossible_symbols_do_not_appear() -> None:
    sql = TableMechanism([[0, 0.5, 0.5, 0]], z_labels=["never", "p", "q", "no"]).to_sql("t", dialect="duckdb")
    assert "'p'" in sql
    assert "'never'" not in sql
    assert "'no'" not in sql


@pytest.mark.parametrize("value", ["zz", None])
def test_unknown_letters_stop_the_query_or_stay_out(database: Database, value: str | None) -> None:
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(0, "a"), (1, value)])
    with pytest.raises(database.failures, match=f"release: unknown letter: {value or 'NULL'}"):
        database.query(mechanism.to_sql("people", dialect=database.dialect))
    rows = database.query(mechanism.to_sql("people", dialect=database.dialect, keep=["nr"], unknown="drop"))
    assert [nr for nr, _ in rows] == [0]
    assert rows[0][1] in (0, 1)


def test_unknown_letters_are_drawn_from_the_marginal(database: Database) -> None:
    """Known letters have symbols of their own, so the frequencies of strangers can only be those of P(Z)."""
    p_z = np.array([0.2, 0.7, 0.1])
    mechanism = TableMechanism(
        np.vstack([np.eye(3)[2], np.eye(3)[0]]), x_labels=["a", "b"], x_names=["job"], marginal=p_z
    )
    database.fill("job TEXT", [(0, "a"), (1, "b"), (2, "stranger"), (3, None)], times=5000)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", unknown="draw")
    twin = TableMechanism(np.vstack([mechanism.p_z_given_x, p_z, p_z]))
    assert_frequencies(database.query(sql), twin)
    database.make("numbered", "job TEXT, u DOUBLE", [("stranger", 0.85)] * 9)
    sql = mechanism.to_sql("numbered", dialect=database.dialect, unknown="draw", random="u")
    assert database.query(sql) == [(1,)] * 9


def test_rows_come_in_random_order_on_request(database: Database) -> None:
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(i, "a") for i in range(40)])
    for unknown in ("error", "drop"):
        sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", shuffle=True, unknown=unknown)
        keys = [nr for nr, _ in database.query(sql)]
        assert sorted(keys) == list(range(40))
        assert keys != list(range(40))  # equal with probability 1/40!
        assert keys != [nr for nr, _ in database.query(sql)]


@pytest.mark.parametrize("number", ["1", "-0.5", "NULL", "5e300"])
def test_bad_random_numbers_are_noticed(database: Database, number: str) -> None:
    """Such as SQLite's random(), a large integer, where a number of [0, 1) is meant."""
    mechanism = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT", [(0, "a")])
    with pytest.raises(database.failures, match="random number outside"):
        database.query(mechanism.to_sql("people", dialect=database.dialect, random=number))
    with pytest.raises(database.failures, match="random number outside"):
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
    database = Sqlite()
    database.query("CREATE TABLE people (nr INTEGER, job TEXT COLLATE NOCASE)")
    database.query("INSERT INTO people VALUES (0, 'a'), (1, 'A')")
    mechanism = TableMechanism(np.eye(2), x_labels=["a", "A"], x_names=["job"])
    assert database.query(mechanism.to_sql("people", dialect="sqlite", keep=["nr"])) == [(0, 0), (1, 1)]
    database.close()


def test_postgres_text_does_not_depend_on_settings(postgres_server: str, mechanism: TableMechanism) -> None:
    """Whether a backslash in a plain text stands for itself is a setting of the server."""
    database = Postgres(postgres_server)
    database.query("SET standard_conforming_strings TO off")
    database.fill("job TEXT", enumerate(NASTY))
    sql = mechanism.to_sql("people", dialect="postgres", keep="nr", random="0.7::float8")
    expected = sparse_twins.draw(mechanism.p_z_given_x, np.arange(7), np.full(7, 0.7))
    assert sorted(database.query(sql)) == [(i, SYMBOLS[one]) for i, one in enumerate(expected.tolist())]
    database.close()


def test_a_stored_mechanism_gives_a_statement_of_constant_size(database: Database) -> None:
    rng = np.random.default_rng(0)
    lengths = []
    for n in (3, 2000):
        letters = [None, *(f"letter {i}" for i in range(n - 1))]
        one = TableMechanism(
            rng.dirichlet(np.ones(3), n),
            x_labels=letters,
            x_names=["job"],
            marginal=np.array([0.5, 0.25, 0.25]),
        )
        name = (database.schema, f"mechanism_{n}")
        for statement in one.to_sql_table(name, dialect=database.dialect):
            database.query(statement)
        sql = one.to_sql(
            f"people_{n}",
            dialect=database.dialect,
            keep="nr",
            random="u",
            unknown="draw",
            mechanism_table=name,
        )
        u = rng.random(n + 1)
        rows = [(i, job, float(u[i])) for i, job in enumerate([*letters, "stranger"])]
        database.make(f"people_{n}", "nr INTEGER, job TEXT, u DOUBLE", rows)
        table = np.vstack([one.p_z_given_x, one.marginal])
        expected = sparse_twins.draw(table, np.arange(n + 1), u)
        assert [symbol for _, symbol in sorted(database.query(sql))] == expected.tolist()
        lengths.append(len(sql))
    assert lengths[1] <= lengths[0] + 10


def test_a_key_draws_what_release_draws_with_it(database: Database, mechanism: TableMechanism) -> None:
    ids = ["", "7", "süd 西", "x" * 300, "o'brien", "\\", "  "]
    database.fill("job TEXT, person TEXT", [(i, NASTY[i], ids[i]) for i in range(7)], times=3)
    database.teach(KEY)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", id="person")
    assert KEY.hex() not in sql
    expected = mechanism.release(NASTY, key=KEY, id=ids)
    assert sorted(database.query(sql)) == [(i, expected[i]) for i in range(7) for _ in range(3)]
    database.make("others", "nr INTEGER, job TEXT, person TEXT", [(0, "a", None)])
    with pytest.raises(database.failures, match="a row without an id"):
        database.query(mechanism.to_sql("others", dialect=database.dialect, id="person"))


@pytest.mark.parametrize("pads", [[], [0, 1], [2]], ids=["none", "two", "no pads"])
def test_not_one_key_is_no_key(database: Database, mechanism: TableMechanism, pads: list[int]) -> None:
    """Without a key nobody would come out, with two everybody twice, and a bare key draws other numbers."""
    if database.dialect == "sqlite":
        pytest.skip("SQLite is taught one key")
    database.fill("job TEXT, person BIGINT", [(i, NASTY[i], i) for i in range(7)])
    choices = [hmac_pads(KEY), hmac_pads(bytes(32)), (KEY, KEY)]
    database.make_keys([choices[i] for i in pads])
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", id="person")
    with pytest.raises(
        database.failures, match=f"one key is needed, as two pads; rows of the key: {len(pads)}"
    ):
        database.query(sql)


def test_whole_numbers_are_ids(database: Database, mechanism: TableMechanism) -> None:
    database.fill("job TEXT, person BIGINT", [(i, NASTY[i], 10**i - 3) for i in range(7)])
    database.teach(KEY)
    sql = mechanism.to_sql("people", dialect=database.dialect, keep="nr", id="person")
    expected = mechanism.release(NASTY, key=KEY, id=[10**i - 3 for i in range(7)])
    assert [symbol for _, symbol in sorted(database.query(sql))] == expected


def test_a_key_and_an_expression_are_one_too_many(mechanism: TableMechanism) -> None:
    with pytest.raises(InvalidInputError, match="leave one out"):
        mechanism.to_sql("people", dialect="duckdb", random="u", id="person")


def test_one_number_for_all_rows_is_noticed(database: Database, mechanism: TableMechanism) -> None:
    """Such as a number that an engine draws once a query."""
    database.fill("job TEXT", enumerate(NASTY), times=2)
    with pytest.raises(database.failures, match="every row has the random number"):
        database.query(mechanism.to_sql("people", dialect=database.dialect, random="0.5e0"))
    one = mechanism.to_sql("people", dialect=database.dialect)
    assert len(database.query(one)) == 14
    with pytest.raises(database.failures, match="every row has the random number"):
        database.query(one.replace(database.language.random, "0.25e0"))


def test_dates_and_times_are_letters(database: Database) -> None:
    days, times = [date(2020, 2, 29), date(1999, 1, 1), None], [datetime(2020, 2, 29, 1, 2, 3), None, None]
    letters = list(zip(days, times, strict=True))
    one = TableMechanism(np.eye(3), x_labels=letters, x_names=["day", "time"])
    kinds = "day TEXT, time TEXT" if database.dialect == "sqlite" else "day DATE, time TIMESTAMP"
    as_stored = [tuple(None if v is None else str(v) for v in letter) for letter in letters]
    rows = as_stored if database.dialect == "sqlite" else letters
    database.fill(kinds, [(i, *row) for i, row in enumerate(rows)])
    sql = one.to_sql("people", dialect=database.dialect, keep="nr")
    assert sorted(database.query(sql)) == [(0, 0), (1, 1), (2, 2)]


def test_texts_are_found_in_columns_of_other_types(database: Database) -> None:
    """A mechanism that was made from a CSV file has texts for letters."""
    one = TableMechanism(np.eye(2), x_labels=["7", "12"], x_names=["n"])
    database.fill("n INTEGER", [(0, 7), (1, 12)])
    assert sorted(database.query(one.to_sql("people", dialect=database.dialect, keep="nr"))) == [
        (0, 0),
        (1, 1),
    ]


@pytest.mark.parametrize("page", ["sql.md", "keys.md"])
def test_the_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """And print what their comments say."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).resolve().parents[1] / "docs" / page).read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, page, "exec"), {})
    assert capsys.readouterr().out == re.findall(r"print\(.*\)  # (.*)\n", code)[0] + "\n"


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([float("inf")], {}, "has no SQL literal"),
        (["a\0b"], {}, "has no SQL literal"),
        ([b"a"], {}, "has no SQL literal"),
        ([2**63], {}, "has no SQL literal"),
        ([1, "a"], {}, "of several types"),
        (["a"], {"columns": ["x", "y"]}, "as many columns as a letter has parts"),
        (["a"], {"columns": [""]}, "is not a name"),
        (
            ["a"],
            {"dialect": "mysql"},
            "dialect must be one of sqlite, duckdb, postgres, mariadb, spark; it is 'mysql'",
        ),
        (["a"], {"unknown": "null"}, "unknown must be one of 'error', 'draw', 'drop'"),
        (["a"], {"unknown": "draw"}, "does not know P"),
        (["a"], {"keep": "all"}, "the columns are not known here; name those to keep"),
        (["a"], {"keep": "x"}, "column 'x' is public"),
        (["a"], {"keep": ["key", "sex"]}, "column 'sex' is private"),
        (["a"], {"keep": ["z"]}, "must differ"),
    ],
)
def test_what_cannot_be_written(labels: list, options: dict, message: str) -> None:
    mechanism = TableMechanism([[1.0]] * len(labels), x_labels=labels, private_names=["sex"])
    with pytest.raises(InvalidInputError, match=message):
        mechanism.to_sql("people", **{"dialect": "sqlite", **options})
