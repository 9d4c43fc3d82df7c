"""A table mechanism as SQL: the release of Z inside a database.

`dialects` has what differs between databases, `rows` the mechanism as rows of a table, `statements` the
statements. A row draws one number u, in a step of its own, and is then joined with the mechanism: a table of
letters, symbols and the interval [lo, hi) of numbers that draws each. A row's work does not grow with the
letters.
"""

from .dialects import DIALECTS, Dialect
from .statements import create_table, key_table_statement, quoted_name, register_key, select

__all__ = [
    "DIALECTS",
    "Dialect",
    "create_table",
    "key_table_statement",
    "quoted_name",
    "register_key",
    "select",
]
