"""docs/audit.md: its code and commands run in order, and it shows what the command prints."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from privacyfunnel.auditing import QUANTITIES
from privacyfunnel.report.wording import SIGNS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def blocks(*languages):
    return re.findall(rf"^```({'|'.join(languages)})\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def run(line, folder):
    name, *arguments = shlex.split(line)
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, "COLUMNS": "80"}, capture_output=True, text=True, check=False
    )


def test_signs_and_quantities_are_explained():
    for kind, sign in SIGNS.items():
        assert f"| {sign} | {kind} |" in PAGE
    for quantity in QUANTITIES:
        assert re.search(rf"^\| ([^|]*, )?{re.escape(quantity)}(, [^|]*)? \|", PAGE, flags=re.MULTILINE), (
            quantity
        )


@pytest.mark.full
def test_code_and_commands_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for language, code in blocks("python", "sh"):
        if language == "python":
            exec(compile(code, "docs/audit.md", "exec"), names)
            continue
        for line in code.splitlines():
            ended = run(line, tmp_path)
            assert ended.returncode == 0, ended.stderr + ended.stdout
    for name in (
        "audit.html",
        "audit.json",
        "card.md",
        "card.json",
        "compare.html",
        "confusion.pdf",
        "umap.png",
    ):
        assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.full
def test_the_page_shows_what_is_printed(tmp_path):
    """Word by word, and its numbers but for what the training of adversaries differs by between machines."""
    example = ROOT / "examples" / "audit_digits.py"
    subprocess.run([sys.executable, str(example), str(tmp_path), "--quick"], check=True, capture_output=True)
    (command,) = re.findall(r"^`(pfunnel audit [^`]*)` prints:", PAGE, flags=re.MULTILINE)
    ended = run(command, tmp_path)
    assert ended.returncode == 1, ended.stderr
    ((_, shown),) = blocks("text")
    # Adversaries come by what they find: two that find about the same may change places.
    printed, known = (sorted(text.splitlines(), key=_words) for text in (ended.stdout, shown))
    assert [_words(line) for line in printed] == [_words(line) for line in known]
    for one, other in zip(printed, known, strict=True):
        if "KMeans" not in one:  # of an embedding, which differs much
            assert _numbers(one) == pytest.approx(_numbers(other), rel=0.15, abs=0.1), one


_NUMBER = re.compile(r"\d+(\.\d+)?")


def _words(line):
    return " ".join(_NUMBER.sub("0", line).split())


def _numbers(line):
    return [float(found[0]) for found in _NUMBER.finditer(line)]
