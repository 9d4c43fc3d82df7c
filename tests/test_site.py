"""The site builds without a warning, and its reference has every public name."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import privacyfunnel as pf

ROOT = Path(__file__).resolve().parents[1]


def listed():
    """{module: names} of the reference."""
    found: dict[str, set[str]] = {}
    module = ""
    for line in (ROOT / "docs" / "reference.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split("::")[1].strip()
        elif line.startswith("   ") and not line.strip().startswith(":"):
            found.setdefault(module, set()).add(line.strip())
    return found


def test_every_public_name_is_in_the_reference():
    names = listed()
    assert names["privacyfunnel"] | {"datasets", "errors"} == set(pf.__all__)
    for module in ("certified", "learned", "sweep", "report", "datasets"):
        path = f"privacyfunnel.{module}"
        assert names[path] == set(importlib.import_module(path).__all__), path


def test_names_of_the_reference_exist_and_say_what_they_are():
    for module, names in listed().items():
        for name in names:
            assert getattr(importlib.import_module(module), name).__doc__, f"{module}.{name}"


def test_every_page_is_on_the_site():
    pages = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in (ROOT / "docs").rglob("*.md")}
    linked = {"index"}
    for index in ("howto", "explanation", "results/index", "index"):
        text = (ROOT / "docs" / f"{index}.md").read_text(encoding="utf-8")
        entries = text.rpartition("toctree}")[2].replace("`", "").splitlines()
        folder = Path(index).parent
        linked |= {str(folder / line) for line in entries if line and not line.startswith(":")}
    built = {page for page in pages if page.startswith(("_build", "generated"))}
    assert pages - built == linked - {"reference"}


@pytest.mark.full
def test_the_site_builds_without_a_warning(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "docs",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "privacyfunnel.solve" in (tmp_path / "reference.html").read_text(encoding="utf-8")
