"""The site: `make docs` writes it into docs/_build. Warnings are errors."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import privacyfunnel

sys.path.insert(0, str(Path(__file__).parent))  # gallery_pictures

project = "privacyfunnel"
author = "The privacyfunnel developers"
copyright = author
version = release = privacyfunnel.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "results/runs", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["deflist", "dollarmath", "colon_fence"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # the signature has them
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\w+\.py$",
    "within_subsection_order": "ExampleTitleSortKey",
    "image_scrapers": ("gallery_pictures.pictures",),
    "reset_argv": "gallery_pictures.arguments",
    "reset_modules": (),
    "default_thumb_file": str(Path(__file__).parent / "images" / "printed-table.png"),
    "abort_on_example_error": True,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "backreferences_dir": None,
}

default_role = "code"  # docstrings write names as Markdown does

html_theme = "pydata_sphinx_theme"
html_title = "privacyfunnel"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "use_edit_page_button": False,
    "header_links_before_dropdown": 6,
}
html_copy_source = False
html_show_sourcelink = False


def escape_bars(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """|X| is the size of an alphabet, not a substitution of reStructuredText; names in backticks stay."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"(`[^`]*`)|\|", lambda found: found[1] or r"\|", line)


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_bars)
