"""Where runs are computed: this process, local processes or a Dask cluster, all of them executors."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from ..errors import InvalidInputError, MissingDependencyError
from .execute import THREAD_VARIABLES, Outcome, Task, execute, installed_version

CONNECT_SECONDS = 10
_ADDRESS = re.compile(r"((tcp|tls|wss?|ucx)://)?([^\s/:]+|\[[^\s/]+\]):\d+")
#: Idle local processes wait so long for the next sweep: starting them costs seconds where they import torch.
IDLE_SECONDS = 300


@dataclass(frozen=True)
class Workers:
    """A place to compute tasks."""

    executor: Callable[[], Executor]  # asked again after the last one broke
    # Tasks handed over at a time, as late as possible: another sweep may have finished one meanwhile.
    n_ahead: int
    threads: int  # that a task may use: processes × threads are the cores there are
    check: Callable[[], None] = lambda: None  # raises InvalidInputError if the place is gone
    leave: Mapping[str, Any] = field(default_factory=dict)  # how `shutdown` drops runs that are under way

    def run(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Outcomes as they arrive.

        When a worker dies, which run it was cannot be told: those that were under way run again, one by one,
        and the one that loses its worker then has failed. Close the generator to drop what is under way.
        """
        waiting = iter(tasks)
        while True:
            lost: list[tuple[Task, Exception]] = []
            with closing(self._together(waiting)) as results:
                for task, found in results:
                    if isinstance(found, Outcome):
                        yield found
                    else:
                        lost.append((task, found))
            if not lost:
                return
            for task, first in lost:
                self.check()
                with closing(self._together([task])) as results:
                    for _, found in results:
                        yield found if isinstance(found, Outcome) else self._failed(task, first, found)

    def _together(self, tasks: Iterable[Task]) -> Generator[tuple[Task, Outcome | Exception], None, None]:
        """Each task with its outcome, or with the error of a worker; after an error no more are begun."""
        executor, waiting, broken = self.executor(), iter(tasks), False
        under_way: dict[Future[Outcome], Task] = {}
        try:
            while True:
                for task in islice(waiting, 0 if broken else self.n_ahead - len(under_way)):
                    under_way[_submitted(executor, task, self.threads)] = task
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    task = under_way.pop(future)
                    try:
                        found: Outcome | Exception = future.result()
                    except Exception as error:
                        found, broken = error, True
                    yield task, found
        finally:
            if under_way:
                executor.shutdown(**self.leave)

    def _failed(self, task: Task, first: Exception, second: Exception) -> Outcome:
        self.check()
        told = (
            f"the worker process ended while it computed this run ({type(second).__name__}); it may have run "
            "out of memory."
        )
        return Outcome(task.key, 0.0, None, told, f"{first}\n{second}")


def _submitted(executor: Executor, task: Task, threads: int) -> Future[Outcome]:
    """The future of a task; one that has failed where the executor takes no more."""
    try:
        return executor.submit(execute, task, threads)
    except Exception as error:
        refused: Future[Outcome] = Future()
        refused.set_exception(error)
        return refused


class _Here(Executor):
    """This process: a task is computed when it is handed over."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(function(*args, **more))
        return done


@contextmanager
def workers(n_jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Local processes (−1: one a core), or the Dask cluster at an address such as tcp://host:port."""
    with ExitStack() as stack:
        yield _local(n_jobs, stack) if scheduler is None else _dask(scheduler, stack)


def _local(n_jobs: int, stack: ExitStack) -> Workers:
    import loky

    cores = loky.cpu_count()
    if type(n_jobs) is not int or n_jobs == 0:
        raise InvalidInputError(
            f"n_jobs must be a whole number, -1 for all cores; it is {n_jobs!r}.", names=("n_jobs",)
        )
    jobs = max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs
    if jobs == 1:
        return Workers(_Here, 1, cores)
    stack.enter_context(warnings.catch_warnings())
    # loky replaces a worker whose memory has grown; no run is lost by it.
    replaced = "A worker (stopped|was restarted) while some jobs"
    warnings.filterwarnings("ignore", message=replaced, category=UserWarning)
    threads = max(1, cores // jobs)
    # From the start of a worker, for libraries that count their threads when they are imported.
    limits = dict.fromkeys((*THREAD_VARIABLES, "NUMBA_NUM_THREADS"), str(threads))

    def pool() -> Executor:
        executor: Executor = loky.get_reusable_executor(jobs, timeout=IDLE_SECONDS, env=limits)
        return executor

    return Workers(pool, 2 * jobs, threads, leave={"kill_workers": True})


def _dask(address: str, stack: ExitStack) -> Workers:
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            "scheduler: a Dask cluster needs dask: pip install 'privacyfunnel[distributed]'"
        ) from None

    _silence("distributed", stack)
    try:
        if not _ADDRESS.fullmatch(address):  # Dask's client would give up late, with a traceback
            raise ValueError("an address is written tcp://host:8786")
        open_client: Any = distributed.Client
        client = stack.enter_context(open_client(address, timeout=CONNECT_SECONDS, set_as_default=False))
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidInputError(
            f"scheduler {address!r}: no Dask scheduler answers ({reason}); check the address and that it "
            "runs."
        ) from None

    def check() -> None:
        if not _answers(client):
            raise InvalidInputError(
                f"scheduler {address!r}: the connection was lost; finished runs are kept, start again when "
                "it is back."
            )

    _check_versions(client)
    jobs = max(1, sum(client.ncores().values()))
    # Dask gives each of its workers' threads a task; more threads inside would compete with them. Not pure:
    # a run that is tried again must not get back the failure of the first time.
    return Workers(lambda: client.get_executor(pure=False), 2 * jobs, 1, check, {"wait": False})


def _silence(name: str, stack: ExitStack) -> None:
    """Keep a library's own messages from the terminal meanwhile: what matters is said in one sentence."""
    logger = logging.getLogger(name)
    stack.callback(logger.setLevel, logger.level)
    logger.setLevel(logging.CRITICAL + 1)


def _answers(client: Any) -> bool:
    try:
        return client.status == "running" and client.sync(client.scheduler.identity) is not None
    except (OSError, RuntimeError, TimeoutError, AttributeError):
        return False


def _check_versions(client: Any) -> None:
    """Numbers of another version are other numbers: refuse to mix them."""
    own = installed_version()
    try:
        found = client.run(installed_version)
    except Exception as error:  # whatever keeps a worker from importing this library
        raise InvalidInputError(
            f"scheduler: a worker cannot import this library ({type(error).__name__}: {error}); install "
            f"privacyfunnel {own} there."
        ) from None
    for worker, version in found.items():
        if version != own:
            raise InvalidInputError(
                f"scheduler: worker {worker} has privacyfunnel {version} and this is {own}; install the same."
            )
