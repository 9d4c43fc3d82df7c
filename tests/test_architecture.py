"""Imports go down only, importing is light, and the public names are the ones we mean."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import privacyfunnel as pf

PACKAGE = Path(pf.__file__).parent

# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {"errors", "checks", "fingerprints", "labels", "names", "progress", "unfinished", "unknown"},
    {"channels", "information", "sampling", "frames", "resampling", "order"},
    {"tabulate", "joint", "sql", "columns", "persistence", "mechanism"},
    {"solution", "uncertainty", "certificate", "tradeoff", "frontier"},
    {"discrete", "audit", "datasets", "files"},
    {"learned", "estimators"},
    {"sweep"},
    {"experiments", "plotting", "report"},
    {"cli", "__main__"},
]
HEAVY = (
    *("torch", "umap", "matplotlib", "plotly", "numba", "scipy", "sklearn", "highspy"),
    *("pandas", "polars", "pyarrow", "narwhals", "rich", "typer"),
)


def layer(name):
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


def imported_modules(path):
    """Top-level names inside the package that a file imports when it is loaded (not inside functions)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ("privacyfunnel", *path.relative_to(PACKAGE).parts[:-1])
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom):
            continue
        if node.level:
            base = package[: len(package) - node.level + 1]
            names = [*base[1:], *((node.module or "").split(".") if node.module else [])]
            yield from [names[0]] if names else [alias.name for alias in node.names]
        elif node.module and node.module.startswith("privacyfunnel."):
            yield node.module.split(".")[1]


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert layer(own) is not None, f"{own} has no place in the layers above"
    for name in imported_modules(path):
        assert layer(name) is not None, f"{own} imports {name}, which has no place in the layers above"
        assert layer(name) <= layer(own), f"{own} imports {name}, which is above it"
        assert {own, name} not in ({"discrete", "learned"},), "the two paths never import each other"


def test_the_check_sees_an_import(tmp_path, monkeypatch):
    fake = PACKAGE / "errors.py"
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: "from .cli import main")
    assert list(imported_modules(fake)) == ["cli"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_shared_has_a_public_name(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imported = [alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [name for name in imported if name.startswith("_") and not name.startswith("__")] == []


def test_importing_is_light():
    code = f"import sys, privacyfunnel; print([m for m in {HEAVY!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_example_of_the_package_runs():
    assert doctest.testmod(pf) == (0, 4)


def test_exported_members():
    assert sorted(pf.__all__) == pf.__all__ == sorted(set(pf.__all__))
    for name in pf.__all__:
        assert getattr(pf, name) is not None
    assert dir(pf) == sorted([*pf.__all__, "__version__"])
    assert callable(pf.frontier)
    assert callable(pf.audit)  # a package, too


def test_every_error_is_ours_and_a_built_in():
    for name, error in vars(pf.errors).items():
        if isinstance(error, type) and issubclass(error, Exception) and not issubclass(error, Warning):
            assert issubclass(error, pf.errors.PrivacyFunnelError)
            assert name in (pf.errors.__doc__ or "")
            if error is not pf.errors.PrivacyFunnelError:
                assert issubclass(error, (ValueError, OSError, ImportError, RuntimeError))
