"""Long work in a process of its own, with progress, Cancel, and one sentence where it fails."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from ..errors import PrivacyFunnelError, PrivacyFunnelWarning
from ..progress import listening

CANCELLED = "Cancelled; nothing was changed."
KILLED = "The work ended before it was done, perhaps for want of memory; try fewer columns or records."
FAILED = "The work could not be done with this table; try other columns or roles."
#: What the fork server has imported before the first worker is asked for.
IMPORTED = (
    "privacyfunnel.app.jobs",
    "privacyfunnel.auditing",
    "privacyfunnel.certified",
    "privacyfunnel.discrete.exact.entry",
    "pyarrow.parquet",
    "sklearn.cluster",
)
#: Bytes that a worker may take: all of the machine's memory, so that it fails before the machine does.
MOST_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 0
#: Seconds between two reports of progress.
PACE = 0.1


def _context() -> Any:
    # Not fork: the server has threads. The fork server starts a worker in a moment, once it has imported.
    name = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(name)
    if name == "forkserver":
        context.set_forkserver_preload(list(IMPORTED))
    return context


def warm_up() -> None:
    """Let the fork server import before the first worker is asked for; it does so beside us."""
    if _context().get_start_method() == "forkserver":
        from multiprocessing.forkserver import ensure_running

        ensure_running()


class Work:
    """One job in a process: `state` is "running", "done", "failed" or "cancelled".

    Attributes
    ----------
    text, done, total : how far it is
    result : what the job returned
    sentence : why it failed
    notes : warnings on the way, each a sentence
    """

    def __init__(self, job: Callable[..., Any], *args: Any) -> None:
        self.text, self.done, self.total = "Starting", 0, 0
        self.state, self.sentence = "running", ""
        self.result: Any = None
        self.notes: tuple[str, ...] = ()
        self.begun = time.monotonic()
        context = _context()
        ours, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_run, args=(theirs, job, args, MOST_MEMORY), daemon=False)
        self._process.start()
        theirs.close()
        self._thread = Thread(target=self._listen, args=(ours,), daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def seconds(self) -> int:
        return int(time.monotonic() - self.begun)

    def cancel(self) -> None:
        """End the process and all that it started."""
        if self.running:
            self.state, self.sentence = "cancelled", CANCELLED
        self._end()
        self._thread.join(5)

    def wait(self, seconds: float | None = None) -> None:
        """Until it ends; for tests and the end of the server."""
        self._thread.join(seconds)

    def _listen(self, ours: Connection) -> None:
        try:
            while True:
                kind, *what = ours.recv()
                if kind == "progress":
                    self.text, self.done, self.total = what
                    continue
                if self.running:
                    if kind == "done":
                        self.result, self.notes = what
                    else:
                        self.sentence = str(what[0])
                    self.state = kind
                break
        except Exception:  # the pipe broke, or what came through it cannot be read
            if self.running:
                self.state, self.sentence = "failed", KILLED
        finally:
            ours.close()
            self._end()

    def _end(self) -> None:
        process = self._process
        if process.pid is not None and process.is_alive():
            process.join(0.5 if self.state == "done" else 0)
            if process.is_alive():
                with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
        process.join(5)


def _run(theirs: Connection, job: Callable[..., Any], args: tuple[Any, ...], most: int) -> None:
    """In the process: do the job, tell how far it is, and say in one sentence what went wrong."""
    with contextlib.suppress(AttributeError, OSError):
        os.setpgid(0, 0)  # so that Cancel reaches what this process starts
    if most:
        _limit_memory(most)
    # Neither a traceback nor a value reaches a terminal or a log.
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    told = 0.0

    def report(text: str, done: int = 0, total: int = 0) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= PACE:
            told = now
            theirs.send(("progress", text, done, total))

    try:
        with warnings.catch_warnings(record=True) as caught, listening(report):
            warnings.simplefilter("always", PrivacyFunnelWarning)
            result = job(*args)
        notes = [str(one.message) for one in caught if issubclass(one.category, PrivacyFunnelWarning)]
        theirs.send(("done", result, tuple(dict.fromkeys(notes))))
    except PrivacyFunnelError as error:
        theirs.send(("failed", str(error)))
    except MemoryError:
        theirs.send(("failed", KILLED))
    except Exception as error:
        theirs.send(("failed", f"{FAILED} ({type(error).__name__})"))


def _limit_memory(most: int) -> None:
    """A few bytes of a file may stand for very much: then there is an error, and no full machine."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
