"""What may go wrong in a database: texts and names as statements, keys in logs and plans, settings."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from databases import Database, open_database
from odd_mechanisms import QUOTES, odd_mechanisms

from privacyfunnel import TableMechanism
from privacyfunnel.keys import hmac_pads, keyed_uniform
from privacyfunnel.sql import DIALECTS, create_table
from privacyfunnel.sql.dialects import language

KEY = bytes(range(50, 82))
HOSTILE = [
    'a"; DROP TABLE people; --',
    "b`; DROP TABLE people; --",
    "c'); DROP TABLE people; --",
    "d\\",
    "e\n;",
]


def sqlglot_name(dialect: str) -> str:
    return {"mariadb": "mysql"}.get(dialect, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_statements_parse_as_one_query_of_the_tables_that_are_meant(dialect: str) -> None:
    """By somebody else's parser: whatever labels and names hold, there is one SELECT and no other table."""
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: pip install sqlglot")
    names = [*HOSTILE, "person"]
    letters = [tuple(np.roll(QUOTES, i)[:6].tolist()) for i in range(6)]
    one = TableMechanism(np.eye(6), x_labels=letters, z_labels=QUOTES[:6], x_names=names)
    for table in HOSTILE:
        for more in ({"id": "id"}, {}, {"mechanism_table": "other; table"}):
            if dialect == "mariadb" and "mechanism_table" not in more:
                continue  # it knows MySQL only, whose VALUES are written otherwise
            sql = one.to_sql(("schema", table), dialect=dialect, keep=["kept"], shuffle=True, **more)
            parsed = sqlglot.parse(sql, dialect=sqlglot_name(dialect))
            assert len(parsed) == 1
            assert isinstance(parsed[0], sqlglot.exp.Select)
            tables = {found.name for found in parsed[0].find_all(sqlglot.exp.Table)}
            own = {"drawn", "mechanism", "release_key", "columns"}
            assert tables - own == {table, *([more["mechanism_table"]] if "mechanism_table" in more else [])}
            assert not list(parsed[0].find_all(sqlglot.exp.Drop, sqlglot.exp.Create, sqlglot.exp.Insert))
    for statement in create_table(one, "m'; --", dialect=dialect):
        assert len(sqlglot.parse(statement, dialect=sqlglot_name(dialect))) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_are_quoted_as_others_quote_them(dialect: str) -> None:
    sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: pip install sqlglot")
    for name in HOSTILE:
        theirs = sqlglot.exp.to_identifier(name, quoted=True).sql(dialect=sqlglot_name(dialect))
        ours = language(dialect).identifier(name)
        # SQLite reads both marks, and ours never as a text.
        assert ours == theirs or (dialect == "sqlite" and ours[0] == "`" and theirs[0] == '"')


def test_floats_arrive_as_they_are(database: Database) -> None:
    """SQLite reads one decimal of 17 digits in a hundred one unit off in the last place."""
    rng = np.random.default_rng(0)
    values = [
        *rng.random(300),
        *(rng.random(100) * 2.0 ** -rng.integers(0, 1000, 100)),
        1e-300,
        1.0,
        0.5,
        2**-53,
    ]
    values += [2.092920056545605e-299, 0.1 + 0.2]
    literals = [database.language.literal(float(value)) for value in values]
    listed = ", ".join(f"CAST({one} AS {database.language.types['double']})" for one in literals)
    assert list(database.query(f"SELECT {listed}")[0]) == [float(value) for value in values]


def secrets_of(key: bytes) -> list[bytes]:
    """What must not be seen: the key and its pads, as bytes and as digits."""
    raw = [key, *hmac_pads(key)]
    return [*raw, *(one.hex().encode() for one in raw), *(one.hex().upper().encode() for one in raw)]


def prepared(database: Database) -> str:
    one = TableMechanism([[0.5, 0.5]], x_labels=["a"], x_names=["job"])
    database.fill("job TEXT, person TEXT", [(i, "a", f"p{i}") for i in range(20)])
    return one.to_sql("people", dialect=database.dialect, id="person")


def test_no_plan_has_the_key(database: Database) -> None:
    sql = prepared(database)
    database.teach(KEY)
    explain = {
        "sqlite": ["EXPLAIN", "EXPLAIN QUERY PLAN"],
        "duckdb": ["EXPLAIN", "EXPLAIN ANALYZE"],
        "postgres": ["EXPLAIN (VERBOSE)", "EXPLAIN (ANALYZE, VERBOSE)"],
        "mariadb": ["EXPLAIN EXTENDED", "EXPLAIN FORMAT=JSON", "ANALYZE FORMAT=JSON"],
        "spark": ["EXPLAIN EXTENDED", "EXPLAIN FORMATTED", "EXPLAIN COST"],
    }[database.dialect]
    for words in explain:
        seen = repr(database.query(f"{words} {sql}")).encode()
        assert len(seen) > 50
        assert not [one for one in secrets_of(KEY) if one in seen]
    assert not [one for one in secrets_of(KEY) if one in sql.encode()]


def test_postgres_log_of_all_statements_has_no_key(
    request: pytest.FixtureRequest, postgres_server: str
) -> None:
    """By COPY; the parameters of an INSERT would stand there."""
    log = Path(postgres_server.split()[0].removeprefix("host=")) / "log"
    with open_database(request, "postgres") as database:
        database.query("SET log_statement TO 'all'")
        sql = prepared(database)
        database.teach(KEY)
        database.query(sql)
        seen = log.read_bytes()
        assert b"COPY release_key" in seen
        assert not [one for one in secrets_of(KEY) if one in seen]
        database.insert("release_key", [hmac_pads(bytes(32))])
        assert [one for one in secrets_of(bytes(32)) if one in log.read_bytes()]


def drawn_by_key(database: Database) -> list[int]:
    sql = sixty_four().to_sql("people", dialect=database.dialect, keep="nr", id="person")
    return [symbol for _, symbol in sorted(database.query(sql))]


def sixty_four() -> TableMechanism:
    return TableMechanism(np.full((1, 64), 1 / 64), x_labels=["a"], x_names=["job"])


def in_python(ids: list[Any]) -> list[int]:
    return np.floor(keyed_uniform(ids, KEY, sixty_four().fingerprint) * 64).astype(int).tolist()


@pytest.mark.parametrize("style", ["German", "SQL, DMY", "Postgres"])
def test_postgres_dates_do_not_depend_on_settings(request: pytest.FixtureRequest, style: str) -> None:
    days = [date(2020, 2, 29), date(1999, 12, 1)]
    with open_database(request, "postgres") as database:
        database.query(f"SET DateStyle TO '{style}'")
        database.fill("job TEXT, person DATE", [(i, "a", day) for i, day in enumerate(days)])
        database.teach(KEY)
        assert drawn_by_key(database) == in_python(days)
        texts = TableMechanism(np.eye(2), x_labels=[str(day) for day in days], x_names=["person"])
        sql = texts.to_sql("people", dialect="postgres", keep="nr")
        assert sorted(database.query(sql)) == [(0, 0), (1, 1)]


def test_postgres_blanks_of_char_are_what_everybody_reads(request: pytest.FixtureRequest) -> None:
    with open_database(request, "postgres") as database:
        database.fill("job CHAR(3), person CHAR(4)", [(0, "a", "p"), (1, "ab", "pq")])
        assert database.query("SELECT job, person FROM people WHERE nr = 0") == [("a  ", "p   ")]
        one = TableMechanism(np.eye(2), x_labels=["a  ", "ab "], x_names=["job"])
        assert sorted(database.query(one.to_sql("people", dialect="postgres", keep="nr"))) == [(0, 0), (1, 1)]
        database.query("UPDATE people SET job = 'a'")
        database.teach(KEY)
        wide = sixty_four()._with(x_labels=("a  ",))
        sql = wide.to_sql("people", dialect="postgres", keep="nr", id="person")
        expected = np.floor(keyed_uniform(["p   ", "pq  "], KEY, wide.fingerprint) * 64)
        assert sorted(database.query(sql)) == list(enumerate(expected.astype(int).tolist()))


@pytest.mark.full
def test_mariadb_does_not_depend_on_settings_and_collations(request: pytest.FixtureRequest) -> None:
    with open_database(request, "mariadb") as database:
        odd = odd_mechanisms()
        for mode in ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT", "ANSI"):
            database.query(f"SET sql_mode = '{mode}'")
            for one in (odd[0], odd[2]):
                letters = list(one.x_labels)
                database.query("SET NAMES utf8mb4")
                database.fill("`column 0` VARCHAR(99) COLLATE utf8mb4_unicode_ci", list(enumerate(letters)))
                same = TableMechanism(np.eye(one.n_x), x_labels=letters, x_names=one.x_names)
                for names in ("utf8mb4", "latin1"):
                    sql = same.to_sql("people", dialect="mariadb", keep="nr")
                    database.query(f"SET NAMES {names}")
                    assert sorted(database.query(sql)) == [(i, i) for i in range(one.n_x)]
                database.drop("people")


@pytest.mark.full
def test_mariadb_ids_do_not_depend_on_how_a_column_is_shown(request: pytest.FixtureRequest) -> None:
    with open_database(request, "mariadb") as database:
        database.teach(KEY)
        database.fill(
            "job TEXT, person VARCHAR(20) CHARACTER SET latin1", [(0, "a", "müller"), (1, "a", "MÜLLER")]
        )
        assert drawn_by_key(database) == in_python(["müller", "MÜLLER"])
        database.drop("people")
        database.fill("job TEXT, person INT(8) ZEROFILL", [(0, "a", 7)])
        with pytest.raises(database.failures, match=r"not int\(8\) unsigned zerofill"):
            drawn_by_key(database)


@pytest.mark.full
def test_spark_does_not_depend_on_settings(request: pytest.FixtureRequest) -> None:
    one = odd_mechanisms()[2]
    same = TableMechanism(np.eye(one.n_x), x_labels=one.x_labels, x_names=["job"])
    with open_database(request, "spark") as database:
        database.fill("job TEXT", list(enumerate(one.x_labels)))
        sql = same.to_sql("people", dialect="spark", keep="nr")
        conf: Any = database.session.conf  # type: ignore[attr-defined]
        for setting, value in (
            ("spark.sql.parser.escapedStringLiterals", "true"),
            ("spark.sql.ansi.enabled", "false"),
            ("spark.sql.legacy.consecutiveStringLiterals.enabled", "true"),
        ):
            before = conf.get(setting)
            conf.set(setting, value)
            try:
                assert sorted(database.query(sql)) == [(i, i) for i in range(one.n_x)]
                numbers = TableMechanism(np.eye(2), x_labels=[0, 7], x_names=["job"])
                database.make("texts", "nr INTEGER, job TEXT", [(0, "7.6")])
                with pytest.raises(database.failures):
                    database.query(numbers.to_sql("texts", dialect="spark"))
            finally:
                conf.set(setting, before)
