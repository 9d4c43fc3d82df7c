"""The databases that mechanisms are released in, under one interface."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import duckdb
import pytest
from mariadb_server import running_server as running_mariadb
from postgres_server import running_server as running_postgres
from spark_session import running_spark

from privacyfunnel.keys import hmac_pads
from privacyfunnel.sql import key_table_statement, quoted_name, register_key
from privacyfunnel.sql.dialects import language

#: Those that start slowly are for the long tests.
QUICK, SLOW = ("sqlite", "duckdb", "postgres"), ("mariadb", "spark")
ENGINES = (*QUICK, *(pytest.param(name, marks=pytest.mark.full) for name in SLOW))
NUMBERS = itertools.count()


class Database:
    """An engine with a table `people`."""

    failures: tuple[type[Exception], ...]
    mark = "?"

    def __init__(self, dialect: str) -> None:
        self.dialect: Any = dialect
        self.language = language(dialect)
        self.schema = "main"

    def query(self, sql: str) -> list[tuple]:
        cursor = self.connection.execute(sql)
        return cursor.fetchall() if cursor.description else []

    def names(self, sql: str) -> list[str]:
        """The columns that a query gives."""
        return [column[0] for column in self.connection.execute(sql).description]

    def declared(self, columns: str) -> str:
        """Columns, declared in the words of DuckDB, for this engine."""
        return columns

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        rows = list(rows)
        marks = ", ".join([self.mark] * len(rows[0]))
        # A cursor of DuckDB does not see the temporary tables of its connection.
        here = self.connection if hasattr(self.connection, "executemany") else self.connection.cursor()
        here.executemany(f"INSERT INTO {self.name(table)} VALUES ({marks})", rows)

    def name(self, name: str) -> str:
        return quoted_name(name, self.dialect)

    def make(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        """A table with these columns and rows."""
        self.query(f"CREATE TABLE {self.name(table)} ({self.declared(columns)})")
        if rows := list(rows):
            self.insert(table, rows)

    def drop(self, table: str) -> None:
        self.query(f"DROP TABLE {self.name(table)}")

    def fill(self, columns: str, rows: Iterable[Sequence[Any]], times: int = 1) -> None:
        """The table `people` with an integer `nr` first, each row `times` times."""
        self.make("people", f"nr INTEGER, {columns}", [row for row in rows for _ in range(times)])

    def teach(self, key: bytes) -> None:
        """Make the key known, without writing it into a statement."""
        self.make_keys([hmac_pads(key)])

    def make_keys(self, pads: Sequence[tuple[bytes, bytes]]) -> None:
        """The table of keys, with any number of them."""
        self.query(key_table_statement(self.dialect))
        if pads:
            self.insert("release_key", pads)

    def close(self) -> None:
        self.connection.close()


class Sqlite(Database):
    failures = (sqlite3.Error,)

    def __init__(self, _: Any = None) -> None:
        super().__init__("sqlite")
        self.connection = sqlite3.connect(":memory:")

    def teach(self, key: bytes) -> None:
        register_key(self.connection, key)


class DuckDB(Database):
    failures = (duckdb.Error,)

    def __init__(self, _: Any = None) -> None:
        super().__init__("duckdb")
        self.connection = duckdb.connect()

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        import pyarrow

        rows = list(rows)
        if len(rows) < 100:
            super().insert(table, rows)
            return
        # One by one is slow there.
        columns = {str(i): list(column) for i, column in enumerate(zip(*rows, strict=True))}
        self.connection.register("inserted", pyarrow.table(columns))
        self.query(f"INSERT INTO {self.name(table)} SELECT * FROM inserted")
        self.connection.unregister("inserted")


class Postgres(Database):
    mark = "%s"

    def __init__(self, address: str) -> None:
        super().__init__("postgres")
        import psycopg

        self.failures = (psycopg.Error,)
        self.connection = psycopg.connect(address, autocommit=True)
        self.schema = f"test{next(NUMBERS)}"
        self.query(f"CREATE SCHEMA {self.schema}")
        self.query(f"SET search_path TO {self.schema}")

    def declared(self, columns: str) -> str:
        return columns.replace("DOUBLE", "DOUBLE PRECISION")

    def make_keys(self, pads: Sequence[tuple[bytes, bytes]]) -> None:
        """By COPY, which no log of statements and their parameters holds."""
        self.query(key_table_statement(self.dialect))
        with self.connection.cursor().copy("COPY release_key FROM STDIN") as copy:
            for both in pads:
                copy.write_row(both)


class MariaDB(Database):
    mark = "%s"

    def __init__(self, socket: str) -> None:
        super().__init__("mariadb")
        import pymysql

        self.failures = (pymysql.Error,)
        self.connection: Any = pymysql.connect(
            unix_socket=socket, user="root", charset="utf8mb4", autocommit=True
        )
        self.schema = f"test{next(NUMBERS)}"
        self.query(f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        self.query(f"USE {self.schema}")

    def query(self, sql: str) -> list[tuple]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def names(self, sql: str) -> list[str]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return [column[0] for column in cursor.description]

    def declared(self, columns: str) -> str:
        return columns.replace('"', "`").replace("TIMESTAMP", "DATETIME(6)")


class Spark(Database):
    def __init__(self, session: Any) -> None:
        super().__init__("spark")
        from pyspark.errors import PySparkException

        self.failures = (PySparkException,)
        self.session = session
        self.schema = f"test{next(NUMBERS)}"
        self.query(f"CREATE DATABASE {self.schema}")
        self.query(f"USE {self.schema}")

    def query(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self.session.sql(sql).collect()]

    def names(self, sql: str) -> list[str]:
        return list(self.session.sql(sql).columns)

    def declared(self, columns: str) -> str:
        for word, here in (('"', "`"), ("TEXT", "STRING"), ("TIMESTAMP", "TIMESTAMP_NTZ")):
            columns = columns.replace(word, here)
        return columns

    def make(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        frame = self.session.createDataFrame([tuple(row) for row in rows], schema=self.declared(columns))
        frame.createOrReplaceTempView(table)

    def drop(self, table: str) -> None:
        self.session.catalog.dropTempView(table)

    def make_keys(self, pads: Sequence[tuple[bytes, bytes]]) -> None:
        frame = self.session.createDataFrame(list(pads), schema="inner_pad BINARY, outer_pad BINARY")
        frame.createOrReplaceTempView("release_key")

    def close(self) -> None:
        for view in ("people", "release_key"):
            self.session.catalog.dropTempView(view)
        self.query(f"DROP DATABASE {self.schema} CASCADE")


KINDS: dict[str, Any] = {
    "sqlite": (Sqlite, nullcontext),
    "duckdb": (DuckDB, nullcontext),
    "postgres": (Postgres, running_postgres),
    "mariadb": (MariaDB, running_mariadb),
    "spark": (Spark, running_spark),
}


@contextmanager
def open_database(request: pytest.FixtureRequest, dialect: str) -> Iterator[Any]:
    """An empty database, of a server that all tests share."""
    if dialect == "postgres":
        pytest.importorskip(
            "psycopg", reason="PostgreSQL's driver is not installed: pip install psycopg[binary]"
        )
    server = None if dialect in ("sqlite", "duckdb") else request.getfixturevalue(f"{dialect}_server")
    database = KINDS[dialect][0](server)
    try:
        yield database
    finally:
        database.close()
