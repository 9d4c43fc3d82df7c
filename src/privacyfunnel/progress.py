"""A progress bar on stderr for work that takes longer than a moment, when a person watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[..., None]  # (done, total) or (done, total, text)
DELAY = 1.0  # seconds of silence: short work shows nothing


@contextmanager
def progress_bar(description: str, enabled: bool | None = None) -> Iterator[Report]:
    """Yield `report(done, total, text="")`. Enabled by default exactly when stderr is a terminal."""
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield lambda done, total, text="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(description)
    begun = time.perf_counter()

    def report(done: int, total: int, text: str = "") -> None:
        if time.perf_counter() - begun >= DELAY and not bar.live.is_started:
            bar.start()
        bar.update(task, completed=done, total=total, description=f"{description}  {text}".rstrip())

    try:
        yield report
    finally:
        bar.stop()


def say_first(text: str, enabled: bool | None = None) -> None:
    """One line on stderr before long work begins, for people and logs; none where progress is off."""
    if enabled is not False:
        print(text, file=sys.stderr, flush=True)


@contextmanager
def status_line(description: str, enabled: bool | None = None) -> Iterator[Callable[[str], None]]:
    """Yield `show(text)` for work whose length is not known. Enabled by default when stderr is a terminal."""
    if not (sys.stderr.isatty() if enabled is None else enabled):
        yield lambda text: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(description)
    begun = time.perf_counter()
    shown = False

    def show(text: str) -> None:
        nonlocal shown
        if not shown and time.perf_counter() - begun >= DELAY:
            shown = True
            status.start()
        status.update(f"{description}: {text}")

    try:
        yield show
    finally:
        status.stop()
