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

RESULTS = Path(__file__).parent / "results"


def timed(function: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Best wall time of `repeat` calls, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeat):
        begun = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - begun)
    return best, result


def show(title: str, rows: list[dict[str, Any]], note: str = "") -> None:
    """Print rows as a table and store them as JSON with the machine and the versions."""
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
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "highspy", "privacyfunnel")},
    }
    name = "".join(c if c.isalnum() else "-" for c in title.split(":")[0].lower())
    content = {"title": title, "machine": machine, "rows": rows, "note": note}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1, default=float) + "\n")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1e-3 or abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)
