"""Every block of Python on a page runs, and so do the commands of the pages that give them a file."""

import importlib.util
import warnings
from pathlib import Path

import pytest
from pages import ROOT, blocks, run_page

DOCS = ROOT / "docs"
# Run by tests of their own, for they need a database, Spark, torch, or something shorter than is shown.
ELSEWHERE = {"audit.md", "keys.md", "learned.md", "spark.md", "sql.md"}
# Their commands speak of files that a reader has.
ONLY_PYTHON = {"streams.md", "sweep.md"}
# Training, or several commands; by their names.
LONG = {"ci-gate", "compare", "data-engineer", "images", "pipelines", "scikit-learn"}
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if blocks(page, "python", "sh")
    and page.name not in ELSEWHERE | {"cli.md"}
    and not {"_build", "generated", "gallery"} & set(page.relative_to(DOCS).parts)
)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.full if page.stem in LONG else ()) for page in PAGES],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "dask" in page.read_text(encoding="utf-8") and importlib.util.find_spec("dask") is None:
        pytest.skip("needs dask")
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # a page may show what warns
        run_page(page, tmp_path, only_python=page.name in ONLY_PYTHON)


def test_pages_that_are_run_elsewhere_are_there():
    assert all((DOCS / name).exists() for name in ELSEWHERE | ONLY_PYTHON)
    assert {"compare.md", "certified.md", "inspect.md"} <= {page.name for page in PAGES}
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert all(name in sources.replace(Path(__file__).read_text(encoding="utf-8"), "") for name in ELSEWHERE)
