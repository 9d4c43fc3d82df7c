"""What the benchmarks of the learned funnels share: the machine, spreads over seeds, results as files."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.persistence import write_atomic

PACKAGES = ("torch", "numpy", "scikit-learn", "umap-learn", "privacyfunnel")

Row = dict[str, Any]


def machine() -> Row:
    """Processor, cores, their load at the moment and versions: what a time or a number depends on."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load average over 1, 5, 15 min": " ".join(f"{load:.2f}" for load in os.getloadavg()),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def mean_and_range(values: Sequence[float], digits: int = 3) -> str:
    """Mean, and the least and the largest over seeds."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{np.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def summary(runs: Sequence[Row], by: str, columns: dict[str, Callable[[Sequence[float]], str]]) -> list[Row]:
    """One row for each value of `by`, in order of appearance, with the columns drawn together over runs."""
    rows = []
    for name in dict.fromkeys(run[by] for run in runs):
        ours = [run for run in runs if run[by] == name]
        cells = {}
        for column, text in columns.items():
            values = [float(run[column]) for run in ours if run[column] is not None]
            cells[column] = text(values) if values else "–"
        rows.append({by: name, "runs": len(ours), **cells})
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """Rows as a Markdown table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(v) for v in row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def publish(
    name: str,
    title: str,
    table: Sequence[Row],
    runs: Sequence[Row],
    notes: Sequence[str],
    settings: Row,
    output: Path | None,
) -> None:
    """Print the table; with a folder, write it there as Markdown, and every run as JSON."""
    about = machine()
    text = "\n\n".join([f"# {title}", markdown(table), *notes, markdown([about])])
    print(f"\n{text}\n", flush=True)
    if output is None:
        return
    output.mkdir(parents=True, exist_ok=True)
    command = f"Made by `python -m benchmarks {name} --output {output}`."
    content = {"title": title, "machine": about, "settings": settings, "table": table, "runs": runs}
    write_atomic(output / f"{name}.md", f"{text}\n\n{command}\n".encode())
    write_atomic(output / f"{name}.json", (json.dumps(content, indent=1, default=float) + "\n").encode())


def _processor() -> str:
    """The model that the kernel names; elsewhere what Python knows."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
