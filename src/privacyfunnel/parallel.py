"""Workers: how many `n_jobs` asks for, and work that is shared among threads."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from .checks import LARGEST_WHOLE, shown
from .errors import InvalidInputError

T = TypeVar("T")
S = TypeVar("S")


def n_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_workers(n_jobs: int) -> int:
    """How many workers n_jobs asks for: −1 means every core this process may use, −2 all but one, …"""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0 or abs(n_jobs) > LARGEST_WHOLE:
        raise InvalidInputError(
            f"n_jobs must be a positive number, or -1 for all cores; it is {shown(n_jobs)}.",
            names=("n_jobs",),
        )
    return max(1, n_cores() + 1 + int(n_jobs)) if n_jobs < 0 else int(n_jobs)


def library_threads(limit: int | None, user_api: str | None = None) -> AbstractContextManager[Any]:
    """At most this many threads inside BLAS and OpenMP (or one of them) while the context lasts."""
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=limit, user_api=user_api)
    return limited


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """The native libraries of this process. Looking for them takes longer than a small fit, and new ones come
    with new modules only.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_threads(
    calls: Sequence[Callable[[], T]], n_jobs: int, cancel: Callable[[], Any], poll: Callable[[], Any]
) -> Generator[tuple[int, T], None, None]:
    """(index, result) of each call as it ends.

    `poll` is called a few times a second meanwhile. An error, Ctrl-C or closing the generator calls `cancel`,
    by which running calls are asked to end, and waits for them; those that have not begun never do.
    """
    with ThreadPoolExecutor(n_workers(n_jobs)) as pool:
        pending = {pool.submit(call): at for at, call in enumerate(calls)}
        try:
            while pending:
                # A finite wait keeps Ctrl-C responsive.
                finished, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                poll()
                for future in finished:
                    yield pending.pop(future), future.result()
        except BaseException:
            cancel()
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def in_order(call: Callable[[S], T], items: Iterable[S], n_jobs: int) -> Iterator[T]:
    """call(item) for each item, in their order, by threads; few items are taken ahead of what is asked for.

    After an error, or when the generator is closed, no more are begun, and those under way are waited for.
    """
    n_threads = n_workers(n_jobs)
    if n_threads == 1:
        yield from map(call, items)
        return
    waiting: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(n_threads)
    try:
        for item in items:
            waiting.append(pool.submit(call, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
