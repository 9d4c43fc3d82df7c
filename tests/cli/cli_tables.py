"""A small table for the command line, and how a command ended."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEADER = ["id", "city", "sex", "note"]


def make_records() -> list[list[str]]:
    """60 records: city tells something about sex, ids begin with 0, notes hold special characters."""
    notes = ["plain", "a, b", 'she said "no"', "two\nlines", "", " blanks "]
    cities = ["Bonn", "Lima", "Oslo", "Rome"]
    return [
        [f"{i:03d}", cities[i % 4], "f" if (i * 7) % 10 < 3 + 2 * (i % 4 > 1) else "m", notes[i % 6]]
        for i in range(60)
    ]


def write_csv(path: Path, rows: list[list[str]], header: list[str] | None = None) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header or HEADER, *rows])
    return path


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


@dataclass
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]
