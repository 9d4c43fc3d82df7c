"""How a benchmark prints and stores what it measured."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from privacyfunnel.persistence import write_atomic

RESULTS = Path(__file__).parent / "results"


def timed(function: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Best wall time of `repeat` calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        begun = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - begun)
    return best, result


def show(title: str, rows: list[dict[str, Any]], note: str = "") -> str:
    """Print rows as a table and store them as JSON with the machine and the versions; give it in Markdown."""
    names = list(rows[0])
    cells = [[_text(row[name]) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    print(f"\n{title}")
    print("  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True)))
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))
    if note:
        print(note)
    print(flush=True)
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "cores": _n_cores(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "highspy", "privacyfunnel")},
    }
    name = "".join(c if c.isalnum() else "-" for c in title.split(":")[0].lower())
    content = {"title": title, "machine": machine, "rows": rows, "note": note}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1, default=float) + "\n")
    lines = [names, ["---"] * len(names), *cells]
    return "\n".join([f"**{title}**", "", *(f"| {' | '.join(line)} |" for line in lines)])


def page(path: Path, title: str, name: str, tables: list[str]) -> None:
    """Write the tables of a benchmark as a page: no figure on it is typed by hand."""
    busy = f"{os.getloadavg()[0]:.1f} processes wanted one of {_n_cores()} cores when it ended"
    head = f"Written by `python -m benchmarks {name} --output {path.parent}`; {busy}."
    write_atomic(path, "\n\n".join([f"# {title}", head, *tables]) + "\n")


def _n_cores() -> int | None:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e-3 or abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)
