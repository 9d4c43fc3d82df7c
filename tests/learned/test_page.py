"""The page about the learned funnel: its code runs, and it knows every setting and column."""

import re
from pathlib import Path

import pytest

from privacyfunnel.learned import ConditionalFunnel, DeepVariationalFunnel, Funnel
from privacyfunnel.learned.budget import LEAST_RECORDS, PARTS, USELESS_BELOW

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "learned.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # Shorter: what the table shows is not the test's to learn.
    short = re.sub(r"epochs=\d+", "epochs=1", block).replace("range(3)", "range(1)")
    short = short.replace("(0.0, 0.3, 1.0, 3.0)", "(0.0, 3.0)")
    exec(compile(short, "learned.md", "exec"), {})
    printed = capsys.readouterr().out
    if "explained" in block:
        number = r"-?\d\.\d\d"
        row = rf"^\| (?:0\.0|3\.0) \| {number} \| {number} ± {number} \| {number} \|$"
        rows = re.findall(row, printed, re.M)
        assert len(rows) == 2


@pytest.mark.full
def test_the_example_prints_its_table(capsys):
    (block,) = (block for block in BLOCKS if "explained" in block)
    exec(compile(block, "learned.md", "exec"), {})
    rows = [re.findall(r"-?\d+\.\d+", line) for line in capsys.readouterr().out.splitlines()]
    shown = [re.findall(r"-?\d+\.\d+", line) for line in re.findall(r"^\| \d\.\d \|.*$", PAGE, re.M)]
    assert len(rows) == len(shown) == 4
    # Other machines round differently, and training spreads that.
    for printed, told in zip(rows, shown, strict=True):
        assert [float(n) for n in printed] == pytest.approx([float(n) for n in told], abs=0.06)


def test_every_setting_has_a_row():
    table = PAGE.split("## What each knob does")[1].split("## ")[0]
    named = set(re.findall(r"`(\w+)`", table))
    assert set(Funnel().get_params()) - {"progress"} <= named
    own = set(ConditionalFunnel().get_params()) | set(DeepVariationalFunnel().get_params())
    for name in own - set(Funnel().get_params()):
        assert name in PAGE or name == "gamma"  # a letter on the page: γ


def test_limits_are_those_of_the_code():
    text = " ".join(PAGE.split())
    assert f"It needs {LEAST_RECORDS} records, and {PARTS} of each private class" in text
    assert f"explains less than {USELESS_BELOW:.0%}".replace("%", " %") in text


def test_defaults_are_those_of_the_code():
    settings = Funnel().get_params()
    rows = dict(re.findall(r"^\| `(\w+)`[ λ]* \| ([\d.]+) \|", PAGE, re.M))
    assert len(rows) >= 4
    for name, value in rows.items():
        assert settings[name] == float(value), name
