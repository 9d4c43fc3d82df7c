"""The code of the documentation, run as a reader would: `from pages import blocks, run_page`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """(language, code) of the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```({'|'.join(languages)})\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def run_page(page: Path, folder: Path, *, only_python: bool = False) -> dict[str, Any]:
    """Run the blocks of a page in one folder, one after the other; the names that its Python leaves.

    A comment `# exit 1` after a command says how it ends, where that is not with 0.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for language, code in blocks(page, "python", *([] if only_python else ["sh"])):
        if language == "python":
            exec(compile(code, str(page.relative_to(ROOT)), "exec"), names)
            continue
        for line in code.replace("\\\n", " ").splitlines():
            run_line(line, folder)
    return names


def run_line(line: str, folder: Path) -> str:
    """Run one command of a page; what it printed."""
    words = shlex.split(line, comments=True)
    if not words:
        return ""
    asked = int((re.search(r"# exit (\d)", line) or [0, 0])[1])
    name, *arguments = words
    command = [str(Path(sys.executable).with_name(name)), *arguments]
    ended = subprocess.run(
        command, cwd=folder, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == asked, f"{line}\n{ended.stderr}{ended.stdout}"
    return ended.stdout
