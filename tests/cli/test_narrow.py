"""Tables on a narrow terminal: no number is cut or lost, and no line is longer than the terminal is wide."""

from __future__ import annotations

import io
import re
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from cli_tables import Run, write_csv
from rich.console import Console

import privacyfunnel as pf
from privacyfunnel.auditing import boosted_trees, logistic_regression
from privacyfunnel.auditing.plan import Plan
from privacyfunnel.cli import demo
from privacyfunnel.cli.output import NumberTable, show
from privacyfunnel.datasets import paper_joint

NUMBER = re.compile(r"\d[\d.,]*")


def numbers(text: str) -> list[str]:
    return sorted(set(NUMBER.findall(text)))


def draw(table: NumberTable, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


@pytest.fixture
def table() -> NumberTable:
    table = NumberTable(["who tries", "sees", "rate and interval", "runs", "bits\n(proved)"], n_text=2)
    table.add_row("nearest-neighbour regression", "Z", "≥ 69.1 % (61.6–76.6)", "1,234,567", "0.12345")
    table.add_row("trees", "Z and W", "–", "8", "2.5e-06")
    table.add_section()
    table.add_row("by chance", "", "≈ 34.0 %")
    return table


@pytest.mark.parametrize("width", [44, 60, 80, 140])
def test_numbers_stay_whole(table: NumberTable, width: int) -> None:
    text = draw(table, width)
    for cell in ("≥ 69.1 % (61.6–76.6)", "1,234,567", "0.12345", "2.5e-06", "≈ 34.0 %"):
        assert text.count(cell) == 1, text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width


def test_columns_that_do_not_fit_come_below(table: NumberTable) -> None:
    assert draw(table, 100).count("who tries") == 1
    narrow = draw(table, 44)
    assert narrow.count("who tries") == 3
    assert narrow.count("trees") == 3
    assert narrow.count("by chance") == 1  # it says nothing about the other columns


def test_the_narrowest_terminal_folds_numbers() -> None:
    table = NumberTable(["a", "runs"])
    table.add_row("b", "1,234,567,890")
    for width in (12, 15, 20):
        assert "1,234,567,890" in re.sub(r"\s", "", draw(table, width))
    assert draw(table, 1)


def test_a_long_text_leaves_room_for_numbers() -> None:
    table = NumberTable(["sweep", "runs"])
    table.add_row("a" * 10_000, "1,234")
    text = draw(table, 80)
    assert "1,234" in text
    assert text.count("\n") == 5


@pytest.mark.parametrize("width", [60, 80])
def test_demo(pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """With as many runs and seconds as the paper's solvers take on a slow machine."""
    front = pf.frontier(paper_joint(), method="greedy")
    results = [demo._Result("dca-sparse", front, 76_801, 1_234, 987.65)]

    def run_all(*arguments: object) -> list[demo._Result]:
        protect = arguments[-1]
        assert callable(protect)
        protect()
        return results

    monkeypatch.setattr(demo, "_run_all", run_all)
    monkeypatch.setenv("COLUMNS", str(width))
    ended = pfunnel("demo", "--output", tmp_path)
    assert ended.code == 0, ended.err
    for number in ("0.12706", "0.28505", "0.60138", "76,801", "1,234", "987.65", "0.09137", "0.62002"):
        assert number in ended.out
    tables = sum("method" in line and "─" in below for line, below in pairwise(ended.out.splitlines()))
    assert tables == (1 if width == 80 else 2)
    long = [line for line in ended.out.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    assert not long


@pytest.mark.parametrize("width", [60, 80])
def test_frontier(pfunnel: Run, people: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    ask = ("frontier", people, "--public", "city", "--private", "sex", "--n-points", 2, "--seed", 0)
    methods = [part for name in ("exact", "dca", "greedy", "submodular") for part in ("--method", name)]
    monkeypatch.setenv("COLUMNS", "200")
    wide = pfunnel(*ask, *methods, "--n-starts", 1)
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = pfunnel(*ask, *methods, "--n-starts", 1)
    assert (wide.code, narrow.code) == (0, 0)
    assert numbers(narrow.out) == numbers(wide.out)
    assert narrow.out.count("utility") > wide.out.count("utility")  # the table was split


def test_audit(pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adversaries = (logistic_regression(), boosted_trees())
    monkeypatch.setattr(Plan, "_defaults", lambda plan, n_classes: adversaries)
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=80)
    rows = [
        [f"{value:.4f}", f"class {label}"] for value, label in zip(rng.normal(size=80) + y, y, strict=True)
    ]
    codes = write_csv(tmp_path / "codes.csv", rows, ["z", "kind"])
    printed = []
    for width in ("200", "60"):
        monkeypatch.setenv("COLUMNS", width)
        ended = pfunnel("audit", codes, "--private", "kind", "--seed", 0)
        assert ended.code == 0, ended.err
        printed.append(ended.out)
    assert numbers(printed[0]) == numbers(printed[1])


@pytest.mark.parametrize("watched", [False, True])
def test_sentences(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    """On a terminal they end between words and paths stay whole; for other programs they are one line."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: watched)
    path = "/folder" * 20
    sentence = f"The figure, which shows leakage against utility for every method, is in {path} now."
    show(sentence)
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines) == sentence
    assert len(lines) == (4 if watched else 1)
    if watched:
        assert lines[2] == path
