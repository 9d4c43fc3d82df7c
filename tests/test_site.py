"""The site builds without a warning, its links lead somewhere, and its reference has every public name."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import FunctionType
from urllib.parse import unquote, urldefrag

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


# Packages that say what of them the command line and the app are made of; nobody else needs to call it.
INSIDE = {"app", "files"}


def public_modules():
    """The modules that say what of them is public, and their functions and classes."""
    modules = [f"privacyfunnel.{one.name}" for one in pkgutil.iter_modules(pf.__path__)]
    modules.append("privacyfunnel.certified.tables")
    for path in modules:
        if path.rpartition(".")[2] not in INSIDE | {"__main__"}:
            module = importlib.import_module(path)
            public = getattr(module, "__all__", ())
            if names := {name for name in public if isinstance(getattr(module, name), type | FunctionType)}:
                yield path, names


def test_every_public_name_is_in_the_reference():
    names = listed()
    assert names["privacyfunnel"] | {"datasets", "errors"} == set(pf.__all__)
    modules = dict(public_modules())
    assert len(modules) == 10
    for path, public in modules.items():
        assert names.get(path, set()) >= public - names["privacyfunnel"], path
    own = [one for one in vars(pf.errors).values() if getattr(one, "__module__", "") == pf.errors.__name__]
    errors = {one.__name__ for one in own if isinstance(one, type) and issubclass(one, Exception)}
    assert names["privacyfunnel.errors"] >= errors | {"PrivacyFunnelWarning"}


def test_names_of_the_reference_exist_and_say_what_they_are():
    for module, names in listed().items():
        for name in names:
            assert getattr(importlib.import_module(module), name).__doc__, f"{module}.{name}"


def test_every_page_is_on_the_site():
    docs = ROOT / "docs"
    made = {"_build", "generated", "gallery"}
    pages = {page for page in docs.rglob("*.md") if not made & set(page.relative_to(docs).parts)}
    linked = {docs / "index.md"}
    for page in pages:
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.M | re.S
        ):
            entries = [line for line in tree.splitlines() if line and not line.startswith(":")]
            linked |= {page.parent / f"{entry}.md" for entry in entries}
    assert pages == linked - {docs / "reference.md", docs / "gallery" / "index.md"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does it."""
    folder = tmp_path_factory.mktemp("site")
    flags = ["-W", "--keep-going", "-q", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *flags, "docs", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


class Page(HTMLParser):
    """What a page refers to, what it loads, and where it can be jumped to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif values.get("src"):
            self.loads.append(values["src"])
        elif tag == "link" and values.get("rel") in ("stylesheet", "preload", "icon", "shortcut icon"):
            self.loads.append(values["href"])


def broken_links(site):
    """What the pages refer to and is not there, and what they would load from elsewhere."""
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            if re.match(r"(https?|mailto|data|javascript):", target):
                if target in page.loads and not target.startswith("data:"):
                    broken.append(f"{path.name} loads {target}")
                continue
            place, anchor = urldefrag(target)
            place = unquote(place.partition("?")[0])
            there = (path.parent / place).resolve() if place else path
            if not there.exists():
                broken.append(f"{path.name}: {target}")
            elif anchor and there in pages and unquote(anchor) not in pages[there].anchors:
                broken.append(f"{path.name}: no {anchor} in {there.name}")
    return broken


@pytest.mark.full
def test_links_of_the_site_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    assert broken_links(site) == []


@pytest.mark.full
def test_the_gallery_has_pictures_and_notebooks(site, tmp_path, monkeypatch):
    index = (site / "gallery" / "index.html").read_text(encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        assert f"{example.stem}.html" in index
    assert len(list((site / "_images").glob("sphx_glr_*_001.png"))) >= 5
    (notebook,) = site.rglob("own_distribution.ipynb")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == 5
    assert not any(cell.get("outputs") for cell in cells)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])  # as a notebook has it
    names = {}
    for source in code:
        exec(compile(source, notebook.name, "exec"), names)
    assert (tmp_path / "own-plane.png").exists()


@pytest.mark.full
def test_search_works_without_a_network(site, browser):
    page = browser.new_context(offline=True).new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q=certificate")
    page.wait_for_selector("#search-results li a", timeout=60_000)
    found = page.locator("#search-results li a").all_inner_texts()
    assert any("certif" in title.lower() for title in found)
