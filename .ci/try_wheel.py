"""Build the wheel and the source distribution, check them, and try the wheel in an empty environment.

Run: python .ci/try_wheel.py    (make wheel)

In the empty environment the demo runs, and every block of the README that its packages allow: Python blocks
in an interpreter of their own, shell blocks line by line, in a folder that knows nothing of the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDS = {"privacyfunnel.learned": "torch"}  # what a block imports, and the package that it needs


def run(command: list[str], folder: Path, **more: str) -> str:
    """Run a command away from the repository; what it prints, or the end of everything."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(command, cwd=folder, env=kept | more, capture_output=True, text=True, check=False)
    if ended.returncode:
        sys.exit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def environment(folder: Path, *packages: str) -> Path:
    """A new environment with these packages; its folder of programs."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    quiet = ["--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt")]
    run([str(programs / "python"), "-m", "pip", "install", *quiet, *packages], folder)
    return programs


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        tools = environment(scratch / "tools", "build", "twine")
        print(
            run([str(tools / "python"), "-m", "build", "--outdir", str(ROOT / "dist"), str(ROOT)], scratch)[
                -200:
            ]
        )
        made = sorted(map(str, (ROOT / "dist").glob("privacyfunnel-*")), key=os.path.getmtime)[-2:]
        print(run([str(tools / "python"), "-m", "twine", "check", "--strict", *made], scratch))
        (wheel,) = [path for path in made if path.endswith(".whl")]
        programs = environment(scratch / "empty", f"{wheel}[plot]")
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        print(run([str(programs / "pfunnel"), "demo"], scratch, COLUMNS="80", PATH=path))
        for own in ("people.csv", "new.csv"):  # the README's names for a file of one's own
            shutil.copy(scratch / "demo-output" / "adult.csv", scratch / own)
        for number, (kind, block) in enumerate(blocks(ROOT / "README.md"), 1):
            lacking = [
                package for what, package in NEEDS.items() if what in block and not has(programs, package)
            ]
            if lacking:
                print(
                    f"README block {number} ({kind}): left out, {lacking[0]} is not in the wheel's own needs"
                )
                continue
            if kind == "python":
                run([str(programs / "python"), "-W", "ignore", "-c", block], scratch, PATH=path)
            else:
                for line in filter(None, block.splitlines()):
                    run(["sh", "-ec", line], scratch, PATH=path)
            print(f"README block {number} ({kind}): runs")


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(
        r"^```(python|sh)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def has(programs: Path, package: str) -> bool:
    found = subprocess.run(
        [str(programs / "python"), "-c", f"import {package}"], capture_output=True, check=False
    )
    return found.returncode == 0


if __name__ == "__main__":
    main()
