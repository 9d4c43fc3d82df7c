"""Functions that the tests sweep over; workers import them by name."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GATE, LOG = Path("gate"), Path("log")


def square(*, seed: int, scale: float = 1.0) -> dict[str, Any]:
    return {"value": scale * seed**2, "label": f"run {seed}", "parts": [seed, seed]}


def picky(*, seed: int) -> dict[str, Any]:
    """Fails for odd seeds unless a file "fixed" is in the working folder."""
    if seed % 2 and not Path("fixed").exists():
        raise ArithmeticError(f"seed {seed} is odd")
    return {"value": seed}


def deadly(*, seed: int) -> dict[str, Any]:
    """Ends its process without a word for seed 3."""
    if seed == 3:
        os._exit(1)
    return {"value": seed}


def not_finite(*, seed: int) -> dict[str, Any]:
    return {"value": float("nan")}


def threads(*, seed: int) -> dict[str, Any]:
    """How many threads the libraries in this worker would use."""
    import numpy as np
    import torch
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    return {"torch": torch.get_num_threads(), "blas": max(lib["num_threads"] for lib in threadpool_info())}


def held(*, seed: int, hold_from: int) -> dict[str, Any]:
    """Tells in the log that it began; the run of that number and later ones wait until the gate is open."""
    with LOG.open("a") as log:
        log.write(f"{seed} {os.getpid()}\n")
    if len(begun()) >= hold_from:
        with GATE.open("a") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
    return {"value": seed**2}


def begun(folder: Path = Path()) -> list[tuple[int, int]]:
    """Seed and process of every run that began, in order."""
    if not (folder / LOG).exists():
        return []
    pairs = (line.split() for line in (folder / LOG).read_text().splitlines())
    return [(int(seed), int(process)) for seed, process in pairs]


class ClosedGate:
    """Holds the gate of a folder while the block lasts, or until `open`."""

    def __init__(self, folder: Path) -> None:
        self._file = (folder / GATE).open("a")

    def __enter__(self) -> ClosedGate:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    def open(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def __exit__(self, *exception: object) -> None:
        self._file.close()


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as the condition holds; an error if it never does."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it never happened")
        threading.Event().wait(0.01)
