"""mypy --strict accepts every documented call, and would not if a name were something else than it says."""

import re
import subprocess
import sys

from test_examples import PAGES, ROOT

CALLS = ROOT / "tests" / "typing" / "documented_calls.py"
WRONG = """import privacyfunnel as pf

pf.errors("a module is not called")
number: int = pf.audit(Z=[[0.0]], private=[0])
pf.solve(pf.datasets.paper_joint(), 0.3)
"""


def test_mypy_accepts_every_documented_call_and_refuses_wrong_ones(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    asked = [sys.executable, "-m", "mypy", "--strict", str(CALLS), str(wrong)]
    ended = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT)
    errors = [line for line in ended.stdout.splitlines() if ": error: " in line]
    assert [line for line in errors if "wrong.py" not in line] == [], ended.stdout
    assert [re.search(r":(\d+): error: .*\[([\w-]+)\]$", line).groups() for line in errors] == [
        ("3", "operator"),  # what the audit was while it was a module that could be called
        ("4", "assignment"),
        ("5", "call-arg"),
    ], ended.stdout + ended.stderr


def shown_names(text: str) -> set[str]:
    """The names of this library that a piece of Python uses: pf.solve, and what it imports."""
    names = set(re.findall(r"\bpf\.(\w+)", text))
    for imported in re.findall(r"from privacyfunnel\S* import ([\w, ]+|\([^)]*\))", text):
        names |= set(re.findall(r"\w+", imported))
    return names


def test_every_name_of_the_documentation_is_among_the_calls():
    blocks = [block for page in PAGES for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S)]
    shown = set().union(*map(shown_names, blocks))
    assert {"solve", "audit", "load", "frontier", "Funnel", "Store"} <= shown
    assert shown - shown_names(CALLS.read_text()) == set()
