"""Imports go down only, importing is light, and the public names are the ones we mean."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

import privacyfunnel as pf
from privacyfunnel import persistence

PACKAGE = Path(pf.__file__).parent

# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {
        "errors",
        "arrays",
        "checks",
        "fingerprints",
        "keys",
        "alphabet",
        "measured",
        "parallel",
        "progress",
        "unknown",
    },
    {
        *("attributes", "channels", "sparse", "merging", "information", "frames", "resampling", "order"),
        *("sources", "transport", "pipelines"),
    },
    {
        *("counting", "joint", "measures", "sql", "spark", "columns", "persistence", "mechanism"),
        *("mechanism_file", "shipping", "combining"),
    },
    {"files", "streams", "lazy"},
    {"solution", "uncertainty", "certificate", "tradeoff", "comparison"},
    {"discrete", "auditing", "datasets"},
    {"learned", "estimators", "certified", "inspection"},
    {"sweep"},
    {"experiments", "plotting", "report"},
    {"app"},
    {"cli", "__main__"},
]
HEAVY = (
    *("torch", "umap", "matplotlib", "jinja2", "starlette", "uvicorn", "numba", "scipy", "sklearn"),
    *("highspy", "pandas", "polars", "pyarrow", "narwhals", "rich", "typer"),
)


def layer(name):
    return next((i for i, names in enumerate(LAYERS) if name in names), None)


# Imports upwards, inside a function that is called when everything is loaded: nothing else may.
LAZY = {
    ("information", "joint"),  # require_pair tells what the two arguments should be
    ("information", "mechanism"),
    ("mechanism", "streams"),  # TableMechanism.release_stream
    ("mechanism", "lazy"),  # TableMechanism.release_frame
    ("tradeoff", "plotting"),  # Frontier.plot
    ("auditing", "report"),  # AuditReport.save, and what notebooks show of it
    ("joint", "report"),  # what notebooks show
    ("mechanism", "report"),
    ("solution", "report"),
    ("tradeoff", "report"),
    ("comparison", "plotting"),  # Comparison.plot
    ("comparison", "report"),  # Comparison.save, and what notebooks show
}


def imported_modules(path):
    """What a file imports of the package, but for mypy's eyes alone: (top-level name, inside a function)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = ("privacyfunnel", *path.relative_to(PACKAGE).parts[:-1])
    blocks = [node for node in tree.body if isinstance(node, ast.If)]
    unseen = {id(n) for block in blocks if "TYPE_CHECKING" in ast.dump(block.test) for n in ast.walk(block)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            whole = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{whole}.{alias.name}" for alias in node.names]
        for parts in {tuple(name.split(".")[:2]) for name in names}:
            if parts[0] == "privacyfunnel" and len(parts) == 2 and not parts[1].startswith("__"):
                yield parts[1], node not in tree.body


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert layer(own) is not None, f"{own} has no place in the layers above"
    for name, lazy in imported_modules(path):
        assert layer(name) is not None, f"{own} imports {name}, which has no place in the layers above"
        allowed = layer(name) <= layer(own) or (lazy and (own, name) in LAZY)
        assert allowed, f"{own} imports {name}, which is above it"
        assert {own, name} not in ({"discrete", "learned"},), "the two paths never import each other"


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("from .cli import main", [("cli", False)]),
        ("from . import cli", [("cli", False)]),
        ("from privacyfunnel.cli.app import main", [("cli", False)]),
        ("def f():\n    if True:\n        from .cli import main", [("cli", True)]),
        ("def f():\n    import privacyfunnel.cli.app", [("cli", True)]),
        ("if TYPE_CHECKING:\n    from .cli import main", []),
        ("import numpy.linalg\nfrom . import __version__", []),
    ],
)
def test_the_check_sees_an_import(code, seen, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: code)
    assert list(imported_modules(PACKAGE / "errors.py")) == seen


def test_every_lazy_import_that_is_allowed_is_there():
    found = {
        (path.relative_to(PACKAGE).parts[0].removesuffix(".py"), name)
        for path in FILES
        for name, lazy in imported_modules(path)
        if lazy
    }
    assert found >= LAZY
    assert all(layer(name) > layer(own) for own, name in LAZY)


@pytest.mark.parametrize("name", [*persistence.READERS.values(), persistence.FOLDER_READER])
def test_what_is_named_by_a_text_is_there(name):
    assert callable(resolve_name(name))


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
    assert callable(pf.audit)


def test_every_error_is_ours_and_a_built_in():
    for name, error in vars(pf.errors).items():
        if isinstance(error, type) and issubclass(error, Exception) and not issubclass(error, Warning):
            assert issubclass(error, pf.errors.PrivacyFunnelError)
            assert name in (pf.errors.__doc__ or "")
            if error is not pf.errors.PrivacyFunnelError:
                assert issubclass(error, (ValueError, OSError, ImportError, RuntimeError))
