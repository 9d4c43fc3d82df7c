"""CONTRIBUTING.md is true: its map shows what is there, and its recipes lead where they say."""

import importlib
import re
from inspect import cleandoc
from pathlib import Path

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.cli.reference import commands

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = Path(pf.__file__).parent


def on_the_map():
    """The modules and folders of the layout: what stands before two spaces and an explanation."""
    block = TEXT.split("    src/privacyfunnel/\n")[1].split("\n    tests/")[0]
    return {name for line in block.splitlines() for name in line[:46].split()}


def test_the_map_shows_what_is_there():
    there = {path.stem for path in PACKAGE.glob("*.py")} | {
        f"{p.parent.name}/" for p in PACKAGE.glob("*/__init__.py")
    }
    assert on_the_map() - {"discrete/exact/"} == there - {"__init__", "__main__"}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+(?:\.py|\.md|/))`", TEXT))))
def test_every_path_leads_somewhere(path):
    assert (
        path == "discrete/your_method.py"
        or path == "cli/your_command.py"
        or any((folder / path).exists() for folder in (ROOT, PACKAGE))
    )


class Toy:
    """Sees one column and guesses by its sign."""

    name = "toy"
    threat_model = "Sees the first column of the code."

    def fit(self, Z, y):
        self.right = np.mean((Z[:, 0] > 0) == y)

    def predict_proba(self, Z):
        p = np.where(Z[:, 0] > 0, self.right, 1 - self.right)
        return np.column_stack([1 - p, p])


def test_an_adversary_is_four_names_and_goes_into_a_list():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    told = np.column_stack([np.where(rng.random(400) < 0.9, y, 1 - y) - 0.5, rng.normal(size=400)])
    report = pf.audit(Z=told, private=y, adversaries=[Toy()], n_jobs=1)
    found = next(one for one in report.findings if (one.source, one.quantity) == ("toy", "success"))
    assert found.value == pytest.approx(0.9, abs=0.05)
    assert (found.kind, found.threat_model) == ("lower bound", Toy.threat_model)


@pytest.mark.parametrize(("name", "one"), commands().items())
def test_a_command_is_a_function_in_a_file_of_its_name(name, one):
    # cli/app.py puts the commands together, so that of the page has another name.
    file, *_ = words = name.replace("app", "open_app").split()
    function = getattr(importlib.import_module(f"privacyfunnel.cli.{file}"), words[-1])
    first = " ".join(cleandoc(function.__doc__).split("\n\n")[0].split())
    assert " ".join(one.help.split()).startswith(first)
    assert "--json" in {option for parameter in one.params for option in parameter.opts}
