"""Thirty mechanisms that are hard to carry from one engine to another."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
from sparse_twins import cumulative

from privacyfunnel import TableMechanism

#: Texts that some engine holds for equal, or reads as something else.
TEXTS = [
    "a",
    "A",
    "a ",
    " a",
    "ä",
    "a\u0308",
    "ß",
    "ss",
    "İ",
    "i",
    "",
    "NULL",
    "😀",
    "西",
    "\t",
    "a\nb",
    "0",
    "00",
]
QUOTES = [
    "'",
    "''",
    '"',
    "`",
    "\\",
    "\\'",
    "x'; DROP TABLE people; --",
    "%s",
    "{}",
    "$1",
    "?",
    ":a",
    "--",
    "/*",
]
WHOLE = [0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63) + 1]
FLOATS = [0.0, 0.1, 0.1 + 0.2, 1e-300, 2.092920056545605e-299, 1.7e308, -1.5, 1 / 3]
DAYS = [date(1000, 1, 1), date(1969, 12, 31), date(2020, 2, 29), date(9999, 12, 31)]
TIMES = [datetime(1969, 12, 31, 23, 59, 59), datetime(2020, 2, 29, 1, 2, 3, 456789), datetime(2020, 2, 29)]


def _table(n_x: int, n_z: int, seed: int, zeros: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(n_z, 0.5), n_x)
    weights[rng.random((n_x, n_z)) < zeros] = 0.0
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


def _one(
    labels: Sequence[Any], seed: int, symbols: Sequence[Any] = ("p", "q", "r"), **more: Any
) -> TableMechanism:
    table = _table(len(labels), len(symbols), seed, zeros=0.2)
    names = [f"column {i}" for i in range(len(labels[0]) if isinstance(labels[0], tuple) else 1)]
    return TableMechanism(table, x_labels=labels, z_labels=list(symbols), x_names=names)


def odd_mechanisms() -> list[TableMechanism]:
    tiny = TableMechanism([[1e-300, 1e-17, 1.0], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], x_labels=["a", "b", "c"])
    found = [
        _one(TEXTS, 0),
        _one([*TEXTS, None], 1, symbols=["", None, "a ", "a", "A"]),
        _one(QUOTES, 2, symbols=QUOTES),
        _one([*QUOTES, None], 3, symbols=[1, 2]),
        _one(WHOLE, 4, symbols=WHOLE),
        _one([*WHOLE, None], 5, symbols=[*WHOLE, None]),
        _one(FLOATS, 6, symbols=FLOATS),
        _one([*FLOATS, None], 7),
        _one([True, False], 8, symbols=[True, False]),
        _one([True, False, None], 9, symbols=[False, True, None]),
        _one(DAYS, 10, symbols=["d", "e"]),
        _one([*DAYS, None], 11),
        _one(TIMES, 12),
        _one([*TIMES, None], 13),
        _one([None], 14),
        _one([None, "a"], 15, symbols=[None]),
        _one([(a, n) for a in TEXTS[:6] for n in (0, None)], 16),
        _one([(None, None), ("a", 1), ("a", None), (None, 1)], 17),
        _one([("x", 0.5, True, DAYS[2]), ("x", None, None, None), (None, 0.25, False, DAYS[1])], 18),
        _one([("a,b", "c"), ("a", "b,c"), ("a", "c")], 19),
        _one([("only",), ("one",)], 20),
        _one(["a", "b"], 21, symbols=[(0, 1), (1, 0), (0, "x")]),
        _one(["a", "b"], 22, symbols=[1, "one", None]),
        _one(["only"], 23, symbols=["always"]),
        _one(list(range(300)), 24, symbols=list(range(40))),
        _one([f"letter {i}" for i in range(200)], 25, symbols=[f"symbol {i}" for i in range(30)]),
        tiny,
        TableMechanism([[1 - 2**-53, 2**-53], [2**-53, 1 - 2**-53]], x_labels=["a", "b"]),
        TableMechanism(np.full((2, 1000), 1e-3), x_labels=["a", None]),
        TableMechanism(np.eye(5)[:, ::-1], x_labels=[1.5, 2.5, 3.5, -4.5, 1e22]),
        _one([2**40 + i for i in range(20)], 30, symbols=[0.1, 0.2, None]),
    ]
    assert len(found) > 30
    return found


def numbers(mechanism: TableMechanism, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the table and numbers to draw them with: bounds of intervals, what is beside them, others."""
    rows, us = [], []
    rng = np.random.default_rng(seed)
    for row in range(min(mechanism.n_x, 20)):
        bounds = cumulative(mechanism.p_z_given_x[row : row + 1])[0, :8]
        near = np.concatenate([[0.0, 1 - 2**-53], bounds, np.nextafter(bounds, 0), np.nextafter(bounds, 1)])
        u = np.concatenate([near, rng.random(4)])
        u = u[(u >= 0) & (u < 1)]
        rows.append(np.full(u.size, row))
        us.append(u)
    return np.concatenate(rows), np.concatenate(us)
