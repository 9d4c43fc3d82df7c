"""How far long work is, on stderr: a bar for a person who watches, a line a minute for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

Report = Callable[..., None]  # (done, total) or (done, total, text)
DELAY = 1.0  # seconds of silence: short work shows nothing
LONG = 30.0  # seconds of work from which on it is said how long it will take
MINUTE = 60.0  # seconds between two lines of a log

_listeners: list[Callable[[str, int, int], None]] = []


@contextmanager
def listening(tell: Callable[[str, int, int], None]) -> Iterator[None]:
    """In this block all progress is told as (what, done, total) instead of being printed; total may be 0."""
    _listeners.append(tell)
    try:
        yield
    finally:
        _listeners.remove(tell)


@contextmanager
def progress_bar(description: str, enabled: bool | None = None) -> Iterator[Report]:
    """Yield `report(done, total, text="")`. By default a bar on a terminal, else a line a minute."""
    if enabled is False:
        yield lambda done, total, text="": None
        return
    if _listeners:
        hear = _listeners[-1]
        yield lambda done, total, text="": hear(f"{description}  {text}".rstrip(), done, total)
        return
    if enabled is None and not sys.stderr.isatty():
        with _line_a_minute(description) as tell:
            yield lambda done, total, text="": tell(
                f"{100 * done // max(total, 1)} %" + f", {text}" * bool(text)
            )
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


def saying_how_long(report: Report, what: str, enabled: bool | None = None) -> Report:
    """The same report, which first says on stderr how long the work will take, if that is long.

    It is told once, by the pace of the first parts that are reported; where a bar is shown, the bar tells it.
    """
    first: list[tuple[float, int]] = []

    def told(done: int, total: int, text: str = "") -> None:
        now = time.perf_counter()
        first.append((now, done))
        if len(first) == 2 and done > first[0][1] and enabled is None and not sys.stderr.isatty():
            seconds = (now - first[0][0]) / (done - first[0][1]) * (total - done)
            about = f"{round(seconds, -1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
            if seconds >= LONG:
                say_first(f"{what}: about {about} (a rough guess).")
        del first[2:]
        report(done, total, text)

    return told


@contextmanager
def status_line(description: str, enabled: bool | None = None) -> Iterator[Callable[[str], None]]:
    """Yield `show(text)` for work whose length is not known, shown as that of `progress_bar`."""
    if enabled is False:
        yield lambda text: None
        return
    if _listeners:
        hear = _listeners[-1]
        yield lambda text: hear(f"{description}: {text}", 0, 0)
        return
    if enabled is None and not sys.stderr.isatty():
        with _line_a_minute(description) as tell:
            yield tell
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


@contextmanager
def _line_a_minute(description: str) -> Iterator[Callable[[str], None]]:
    """Yield `tell(text)`; the latest text stands in the line.

    A thread prints it, because a single step of the work may take longer than a minute.
    """
    latest = ""
    ended = Event()

    def tell(text: str) -> None:
        nonlocal latest
        latest = text

    def print_lines() -> None:
        minutes = 0
        while not ended.wait(MINUTE):
            minutes += 1
            said = f"{latest}, " if latest else ""
            with suppress(OSError, ValueError):  # nobody reads it
                print(f"{description}: {said}{minutes} min", file=sys.stderr, flush=True)

    thread = Thread(target=print_lines, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        ended.set()
        thread.join()
