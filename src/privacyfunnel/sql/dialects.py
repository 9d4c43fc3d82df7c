"""What differs between databases: names, literals, types, random numbers, equality, hashes and errors.

A letter is what the mechanism says it is, whatever a column's own rules take for equal: databases take 'a'
for 'A', or for 'a ', and 'abc' for 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal, get_args

from ..errors import InvalidInputError, shortened

Dialect = Literal["sqlite", "duckdb", "postgres", "mariadb", "spark"]
DIALECTS: tuple[str, ...] = get_args(Dialect)
#: What SQLite, which has no SHA-256, calls for keyed numbers; see `statements.register_key`.
SQLITE_FUNCTION = "privacyfunnel_number"


class Language:
    """PostgreSQL's SQL, which is nearest to the standard; the others say what they do otherwise."""

    name = "PostgreSQL"
    mark = '"'  # around names
    types = {  # noqa: RUF012
        "text": "TEXT",
        "bytes": "BYTEA",
        "double": "DOUBLE PRECISION",
        "whole": "BIGINT",
        "boolean": "BOOLEAN",
        "date": "DATE",
        "time": "TIMESTAMP",
    }
    #: A number of [0, 1), one a row, and one to sort by.
    random = shuffling = "random()"
    #: What keeps a common table expression from being merged into the query, which would draw anew.
    materialised, end = "AS MATERIALIZED", ""
    #: Whether the first row of VALUES has to say the types.
    typed_values = True
    #: Which columns of a new table of letters get an index, if the database cannot hash without.
    indexed = False

    def identifier(self, name: str) -> str:
        """The name of a table or column, in the marks of the dialect."""
        if not name or "\0" in name:
            raise InvalidInputError(f"to_sql: {shortened(name)} is not a name of a table or column.")
        return self.mark + name.replace(self.mark, 2 * self.mark) + self.mark

    def literal(self, value: Any) -> str:
        """A label as SQL; InvalidInputError for what has no type there."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int) and -(2**63) < value < 2**63:
            return str(value)
        if isinstance(value, float) and math.isfinite(value):
            return self.number(value)
        if type(value) is date:
            return self.moment("DATE", str(value))
        if type(value) is datetime and value.tzinfo is None:
            return self.moment("TIMESTAMP", str(value))
        if isinstance(value, str) and "\0" not in value and _is_unicode(value):
            return self.quoted(value)
        raise InvalidInputError(
            f"to_sql: the label {shortened(value)} has no SQL literal; use labels that are texts, finite "
            "numbers, booleans, dates or None (relabel renames the symbols)."
        )

    def number(self, value: float) -> str:
        """The float as a literal that reads as the same double precision number."""
        text = repr(value)
        return text if "e" in text else text + "e0"

    def moment(self, word: str, text: str) -> str:
        return f"{word} '{text}'"

    def quoted(self, text: str) -> str:
        """A text, read the same whatever a server's settings are."""
        quoted = text.replace("'", "''")
        # Whether a plain text reads a backslash as itself depends on a setting.
        return "E'" + quoted.replace("\\", "\\\\") + "'" if "\\" in text else f"'{quoted}'"

    def text(self, value: str) -> str:
        """A value as text, the same whatever a server's settings are: a date would follow DateStyle, and a
        cast would cut the blanks off char(n), which everybody who reads the column gets."""
        plain = f"(to_jsonb({value}) #>> '{{}}')"
        moment = f"pg_typeof({value}) = 'timestamp'::regtype"
        return f"CASE WHEN {moment} THEN replace({plain}, 'T', ' ') ELSE {plain} END"

    def exactly(self, text: str) -> str:
        """A text that equals only itself."""
        return f'({text}) COLLATE "C"'

    def letter(self, text: str) -> str:
        """What that text is compared with: the column itself, so that an index serves, or of its type."""
        return text

    def numeric(self, value: str) -> str:
        """A column that is compared with numbers: no text is one, and NaN is missing, as in Python."""
        return f"NULLIF({value}, 'NaN'::float8)"

    def of_type(self, value: str) -> str | None:
        """A condition that a value can equal numbers at all, where the comparison itself does not refuse."""
        return None

    def joined(self, parts: Sequence[str]) -> str:
        return " || ".join(parts)

    def shown(self, value: str) -> str:
        return f"CAST({value} AS {self.types['text']})"

    def raising(self, message: str, values: Sequence[str]) -> str:
        """A condition whose evaluation stops the query with the message and the values.

        It depends on the row, so that no optimiser evaluates it beforehand.
        """
        parts = [f"'{message}'"]
        for value in values:
            parts += [f"COALESCE({self.shown(value)}, 'NULL')", "', '"]
        return self.stopping(self.joined(parts[:-1]))

    def stopping(self, text: str) -> str:
        return f"CAST({text} AS INTEGER) IS NULL"

    def wrong_type(self, person: str, table: Sequence[str], column: str) -> tuple[str, str]:
        """A condition that a column is none of ids, which read the same everywhere; and its type."""
        kinds = ("text", "varchar", "bpchar", "name", "smallint", "integer", "bigint", "date", "uuid")
        listed = ", ".join(f"'{kind}'::regtype" for kind in kinds)
        return f"pg_typeof({person}) NOT IN ({listed})", f"pg_typeof({person})"

    def keyed(self, person: str, secret: str, fingerprint: str) -> str:
        """The number of a person: 53 of the first 56 bits of HMAC-SHA-256, see `keys`."""
        inner = f"sha256({secret}.inner_pad || convert_to('{fingerprint}' || {self.text(person)}, 'UTF8'))"
        digest = f"encode(sha256({secret}.outer_pad || {inner}), 'hex')"
        return self._of_bits(f"CAST(CAST('x' || substr({digest}, 1, 14) AS bit(56)) AS BIGINT) >> 3")

    def _of_bits(self, bits: str) -> str:
        return f"CAST({bits} AS {self.types['double']}) / 9007199254740992e0"


class Sqlite(Language):
    """Types belong to values, and to a column an inclination only."""

    name = "SQLite"
    mark = "`"  # SQLite reads "name" as a text where there is no such column, and `name` never
    types = Language.types | {"bytes": "BLOB"}
    # random() is a 64-bit integer; its lowest 53 bits are a number of [0, 1) without rounding, and without
    # abs(), which fails for the most negative one.
    random = "(random() & 9007199254740991) / 9007199254740992.0"
    shuffling = "random()"
    typed_values = False

    def number(self, value: float) -> str:
        """As a quotient of whole numbers: SQLite reads some decimals one unit off in the last place."""
        if value == 0.0:
            return "0.0"
        digits, power = math.frexp(value)
        whole, power = int(digits * 2.0**53), power - 53
        while whole % 2 == 0:
            whole, power = whole // 2, power + 1
        steps, rest = divmod(abs(power), 62)
        sign = "/" if power < 0 else "*"
        factors = [f" {sign} {2.0**62:.1f}"] * steps + [f" {sign} {2.0**rest:.1f}"]
        return f"({whole}{''.join(factors)})"

    def moment(self, word: str, text: str) -> str:
        return f"'{text}'"

    def quoted(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def text(self, value: str) -> str:
        return f"CAST({value} AS TEXT)"

    def exactly(self, text: str) -> str:
        return f"{text} COLLATE BINARY"

    def numeric(self, value: str) -> str:
        return value

    def of_type(self, value: str) -> str | None:
        return f"typeof({value}) NOT IN ('text', 'blob')"

    def stopping(self, text: str) -> str:
        # A JSON path must start with $; the error quotes what it got.
        return f"json_extract('{{}}', {text}) IS NULL"

    def wrong_type(self, person: str, table: Sequence[str], column: str) -> tuple[str, str]:
        return f"typeof({person}) IN ('real', 'blob')", f"typeof({person})"

    def keyed(self, person: str, secret: str, fingerprint: str) -> str:
        return f"{SQLITE_FUNCTION}('{fingerprint}', {person})"


class DuckDB(Language):
    name = "DuckDB"
    types = Language.types | {"text": "VARCHAR", "bytes": "BLOB"}

    def quoted(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def text(self, value: str) -> str:
        return f"CAST({value} AS VARCHAR)"

    def exactly(self, text: str) -> str:
        return f"encode({text})"

    letter = exactly

    def numeric(self, value: str) -> str:
        # A sum of a text and 0 is refused; compared with a number, '7.6' would be rounded to 8.
        return f"NULLIF({value} + 0, CAST('NaN' AS DOUBLE))"

    def stopping(self, text: str) -> str:
        return f"error({text}) IS NULL"

    def wrong_type(self, person: str, table: Sequence[str], column: str) -> tuple[str, str]:
        whole = [f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")]
        kinds = ", ".join(f"'{one}'" for one in ("VARCHAR", "DATE", "UUID", "INTEGER", "UINTEGER", *whole))
        kind = f"typeof({person})"
        # The type alone is known before any row is: without a row in it the error would come beforehand.
        return (
            f"{kind} NOT IN ({kinds}) AND {kind} NOT LIKE 'ENUM(%'",
            f"{kind} || left({self.text(person)}, 0)",
        )

    def keyed(self, person: str, secret: str, fingerprint: str) -> str:
        inner = f"unhex(sha256({secret}.inner_pad || encode('{fingerprint}' || {self.text(person)})))"
        return self._of_bits(
            f"CAST('0x' || substr(sha256({secret}.outer_pad || {inner}), 1, 14) AS BIGINT) >> 3"
        )


class MariaDB(Language):
    """Compares by collations, converts texts to numbers as far as they go, and cannot stop a query."""

    name = "MariaDB"
    mark = "`"
    types = Language.types | {
        "text": "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
        "bytes": "VARBINARY(64)",
        "double": "DOUBLE",
        "time": "DATETIME(6)",
    }
    # RAND() has 30 bits and a known state; these are the bytes of its cryptographic library.
    random = "CAST(CAST(CONV(HEX(RANDOM_BYTES(7)), 16, 10) AS UNSIGNED) >> 3 AS DOUBLE) / 9007199254740992e0"
    shuffling = "RAND()"
    materialised, end = "AS", "\n  LIMIT 18446744073709551615"  # what has a limit is not merged
    typed_values = False
    indexed = True

    def quoted(self, text: str) -> str:
        # What a backslash means depends on a setting, and other letters on the connection.
        if "\\" in text or not text.isascii():
            return f"_utf8mb4 X'{text.encode().hex()}'"
        return "'" + text.replace("'", "''") + "'"

    def text(self, value: str) -> str:
        return f"CONVERT({value} USING utf8mb4)"

    def exactly(self, text: str) -> str:
        return f"{text} COLLATE utf8mb4_nopad_bin"

    def numeric(self, value: str) -> str:
        return value

    def of_type(self, value: str) -> str | None:
        return f"CHARSET({value}) = 'binary'"  # of numbers; a text would equal the number it begins with

    def joined(self, parts: Sequence[str]) -> str:
        return f"CONCAT({', '.join(parts)})"

    def shown(self, value: str) -> str:
        return self.text(value)

    def stopping(self, text: str) -> str:
        # Nothing raises an error of one's own in a SELECT. The name of a lock that is too long is told as it
        # is; should a server take it, no double holds what comes then.
        return f"EXP(1000 + GET_LOCK(RPAD({text}, 1000, '.'), 0)) IS NULL"

    def wrong_type(self, person: str, table: Sequence[str], column: str) -> tuple[str, str]:
        kinds = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "date", "uuid")
        whole = ("tinyint", "smallint", "mediumint", "int", "bigint")
        listed = ", ".join(f"'{kind}'" for kind in (*kinds, *whole))
        schema = self.quoted(table[-2]) if len(table) > 1 else "DATABASE()"
        found = (
            "(SELECT min(column_type) FROM information_schema.columns "
            f"WHERE table_schema = {schema} AND table_name = {self.quoted(table[-1])} "
            f"AND column_name = {self.quoted(column)} "
            f"AND (data_type NOT IN ({listed}) OR column_type LIKE '%zerofill%'))"
        )
        return f"{found} IS NOT NULL", found

    def keyed(self, person: str, secret: str, fingerprint: str) -> str:
        inner = f"UNHEX(SHA2(CONCAT({secret}.inner_pad, '{fingerprint}', {self.text(person)}), 256))"
        first = f"LEFT(SHA2(CONCAT({secret}.outer_pad, {inner}), 256), 14)"
        return self._of_bits(f"CAST(CONV({first}, 16, 10) AS UNSIGNED) >> 3")


class Spark(Language):
    """A temporary view stands for a temporary table, and a step that draws is not merged with others."""

    name = "Spark"
    mark = "`"
    types = Language.types | {
        "text": "STRING",
        "bytes": "BINARY",
        "double": "DOUBLE",
        "time": "TIMESTAMP_NTZ",
    }
    random = shuffling = "rand()"
    materialised = "AS"

    def number(self, value: float) -> str:
        return super().number(value) + "D"

    def moment(self, word: str, text: str) -> str:
        return f"{'TIMESTAMP_NTZ' if word == 'TIMESTAMP' else word} '{text}'"

    def quoted(self, text: str) -> str:
        # What a backslash and two quotation marks mean depends on settings.
        return f"CAST(X'{text.encode().hex()}' AS STRING)" if "'" in text or "\\" in text else f"'{text}'"

    def text(self, value: str) -> str:
        return f"CAST({value} AS STRING)"

    def exactly(self, text: str) -> str:
        return f"CAST({text} AS BINARY)"

    letter = exactly

    def numeric(self, value: str) -> str:
        return f"CASE WHEN isnan({value}) THEN NULL ELSE {value} END"

    def of_type(self, value: str) -> str | None:
        return f"typeof({value}) NOT LIKE 'string%'"

    def stopping(self, text: str) -> str:
        return f"raise_error({text}) IS NULL"

    def wrong_type(self, person: str, table: Sequence[str], column: str) -> tuple[str, str]:
        kinds = "'string', 'tinyint', 'smallint', 'int', 'bigint', 'date'"
        return f"typeof({person}) NOT IN ({kinds})", f"typeof({person})"

    def keyed(self, person: str, secret: str, fingerprint: str) -> str:
        message = f"encode('{fingerprint}' || {self.text(person)}, 'UTF-8')"
        inner = f"unhex(sha2({secret}.inner_pad || {message}, 256))"
        first = f"substr(sha2({secret}.outer_pad || {inner}, 256), 1, 14)"
        return self._of_bits(f"shiftright(CAST(conv({first}, 16, 10) AS BIGINT), 3)")


_LANGUAGES: dict[str, Language] = {
    "sqlite": Sqlite(),
    "duckdb": DuckDB(),
    "postgres": Language(),
    "mariadb": MariaDB(),
    "spark": Spark(),
}


def language(dialect: str) -> Language:
    """What is particular to a dialect; InvalidInputError for one that is not offered."""
    if dialect not in _LANGUAGES:
        raise InvalidInputError(
            f"to_sql: dialect must be one of {', '.join(_LANGUAGES)}; it is {dialect!r}.", names=("dialect",)
        )
    return _LANGUAGES[dialect]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True
