"""Where runs are computed: local processes, a Dask cluster or Ray, all through joblib's backends."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..errors import InvalidInputError, MissingDependencyError
from .execute import Outcome, Task, execute

CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Workers:
    """A place to compute tasks.

    Attributes
    ----------
    backend : str
        joblib's name of it.
    n_jobs : int
        Tasks at a time.
    threads : int
        Threads that a task may use: n_jobs × threads are the cores there are.
    check : callable
        Raises InvalidInputError if the place is gone.
    """

    backend: str
    n_jobs: int
    threads: int
    check: Callable[[], None]

    def run(self, tasks: Iterable[Task]) -> Generator[Outcome, None, None]:
        """Outcomes as they arrive. An exception means that a worker, and not a run, has failed.

        Close it when done: runs that are under way are then cancelled.
        """
        from joblib import Parallel, delayed, parallel_config

        calls = (delayed(execute)(task, self.threads) for task in tasks)
        with parallel_config(backend=self.backend, n_jobs=self.n_jobs):
            if self.backend == "ray":
                # Its backend cannot hand over results one by one, so they come in groups.
                while group := list(islice(calls, 2 * self.n_jobs)):
                    yield from Parallel(batch_size=1)(group)
                return
            # In batches of one: a batch would be lost as a whole.
            outcomes = Parallel(batch_size=1, return_as="generator_unordered")(calls)
            try:
                yield from outcomes
            finally:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # that runs were cancelled: whoever stops knows
                    outcomes.close()


@contextmanager
def workers(n_jobs: int, scheduler: str | None) -> Iterator[Workers]:
    """Local processes (−1: one a core), or the cluster at an address: tcp://… is Dask, ray or ray://… Ray."""
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # loky replaces a worker whose memory has grown; no run is lost by it.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        if scheduler is None:
            yield _local(n_jobs)
        elif scheduler == "ray" or scheduler.startswith("ray://"):
            yield _ray(scheduler, stack)
        else:
            yield _dask(scheduler, stack)


def _local(n_jobs: int) -> Workers:
    from joblib import cpu_count

    cores = cpu_count()
    if type(n_jobs) is not int or n_jobs == 0:
        raise InvalidInputError(f"n_jobs must be a whole number, -1 for all cores; it is {n_jobs!r}.")
    jobs = max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs
    return Workers("loky" if jobs > 1 else "sequential", jobs, max(1, cores // jobs), lambda: None)


def _dask(address: str, stack: ExitStack) -> Workers:
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            "scheduler: a Dask cluster needs dask: pip install 'privacyfunnel[distributed]'"
        ) from None
    from joblib import register_parallel_backend

    from .dask_backend import DaskBackend

    _silence("distributed", stack)
    try:
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
    register_parallel_backend("privacyfunnel-dask", lambda **options: DaskBackend(client=client, **options))
    # Dask gives each of its workers' threads a task; more threads inside would compete with them.
    return Workers("privacyfunnel-dask", max(1, sum(client.ncores().values())), 1, check)


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


def installed_version() -> str:
    """The version of this library where it is asked."""
    from .. import __version__

    return __version__


def _ray(address: str, stack: ExitStack) -> Workers:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingDependencyError("scheduler: Ray is not installed: pip install ray") from None
    try:
        ray.init(address=None if address == "ray" else address, ignore_reinit_error=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidInputError(
            f"scheduler {address!r}: no Ray cluster answers ({str(error).splitlines()[0]}); check the "
            "address."
        ) from None
    stack.callback(ray.shutdown)
    register_ray()
    cores = int(ray.cluster_resources().get("CPU", 1))
    return Workers("ray", cores, 1, lambda: None)
