"""How many files of the package a call goes through: what a reader opens to follow it from end to end.

A file is entered when a function or method that is defined in it is called. What runs while modules are
imported does not count, and neither do constructors that dataclasses write. `followed` counts only files of
which two functions or more are called: of the others a reader needs a line. Worker processes are not seen, so
everything runs in this one.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import privacyfunnel as pf

from .report import show

PACKAGE = str(Path(pf.__file__).parent)


class Entered:
    """A context that notes which functions of the package are called, by file."""

    def __init__(self) -> None:
        self.functions: dict[str, set[str]] = {}
        self._thread = threading.local()
        self._known: dict[CodeType, str | None] = {}

    def __enter__(self) -> Entered:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in self._known:
            path = Path(code.co_filename)
            ours = path.suffix == ".py" and path.is_relative_to(PACKAGE)  # templates are compiled, too
            self._known[code] = path.relative_to(PACKAGE).as_posix() if ours else None
        file = self._known[code]
        if file is None:
            return
        importing = getattr(self._thread, "importing", 0)
        if code.co_name == "<module>":
            self._thread.importing = importing + (1 if event == "call" else -1)
        elif event == "call" and not importing:
            # A comprehension or lambda belongs to the function around it.
            self.functions.setdefault(file, set()).add(code.co_qualname.split(".<")[0])

    @property
    def followed(self) -> list[str]:
        """The files of which two functions or more were called."""
        return [file for file, functions in self.functions.items() if len(functions) > 1]


def walks(folder: Path) -> dict[str, Callable[[], object]]:
    """The calls, ready to be made; what they need is made here."""
    import torch

    from privacyfunnel.cli import main as pfunnel
    from privacyfunnel.learned import Funnel

    torch.set_num_threads(1)
    joint = pf.datasets.paper_joint()
    mechanism = pf.solve(joint, beta=0.3, method="exact").mechanism
    mechanism.save(folder / "mechanism.json")
    rows = "\n".join(str(mechanism.x_labels[i % joint.n_x]) for i in range(30))
    (folder / "records.csv").write_text(f"{mechanism.x_names[0]}\n{rows}\n")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    x = rng.normal(size=(600, 6)).astype(np.float32)
    x[:, 0] += 2 * y
    tiny: dict[str, Any] = {"n_components": 2, "hidden": (8,), "epochs": 3, "random_state": 0}
    funnel = Funnel(**tiny).fit(x, y)
    ways: dict[str, Any] = {"max_leakage": 0.05, "rng": 0, "n_jobs": 1}

    codes = funnel.transform(x)

    def audit(*given: Any, **named: Any) -> None:
        pf.audit(*given, **named, n_repeats=1, n_jobs=1).save(folder / "audit.html")

    def command(*arguments: object) -> None:
        with suppress(SystemExit):
            pfunnel([str(argument) for argument in arguments])

    def release() -> None:
        files = folder / "records.csv", "--mechanism", folder / "mechanism.json"
        command("release", *files, "-o", folder / "released.csv")

    def reproduce() -> None:
        folders = "--output", folder / "results", "--store", folder / "runs"
        command("reproduce", "mnist", "--scale", "smoke", "--n-jobs", 1, *folders)

    return {
        "solve exact": lambda: pf.solve(joint, method="exact", **ways),
        "solve dca": lambda: pf.solve(joint, method="dca", **ways),
        "release": release,
        "fit": lambda: Funnel(validation_fraction=0.0, **tiny).fit(x, y),
        "fit and verdict": lambda: Funnel(**tiny).fit(x, y),
        "budget fit": lambda: Funnel(max_leakage=0.5, **tiny).fit(x, y),
        "audit of codes → HTML": lambda: audit(Z=codes, private=y),
        "audit of a funnel → HTML": lambda: audit(funnel, x, y),
        "reproduce mnist": reproduce,
    }


def main(verbose: bool = False) -> None:
    rows = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # networks this small keep next to nothing, and say so
        for name, walk in walks(Path(folder)).items():
            with Entered() as entered:
                walk()
            functions = sum(len(one) for one in entered.functions.values())
            files = len(entered.functions)
            rows.append(
                {"walk": name, "files": files, "followed": len(entered.followed), "functions": functions}
            )
            if verbose:
                print(f"\n{name}")
                for file in sorted(entered.functions):
                    print(f"  {len(entered.functions[file]):3} {file}")
    show("walks: files of the package that a call enters", rows)
