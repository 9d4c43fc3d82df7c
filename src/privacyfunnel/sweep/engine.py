"""sweep(): compute the runs that a store does not have yet, and keep each result as it arrives."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from ..persistence import Path_
from ..progress import Report, progress_bar
from .execute import Task, prepare
from .runs import Run
from .store import Store
from .workers import Workers, workers


@dataclass(frozen=True)
class Summary:
    """What a sweep did.

    Attributes
    ----------
    n_runs : int
        Distinct runs that were asked for.
    n_reused, n_computed, n_failed : int
        Already in the store; computed now; failed, now or before.
    seconds : float
    """

    n_runs: int
    n_reused: int
    n_computed: int
    n_failed: int
    seconds: float


def sweep(
    runs: Iterable[Run],
    store: Store | Path_,
    *,
    n_jobs: int = -1,
    scheduler: str | None = None,
    name: str = "sweep",
    progress: bool | None = None,
) -> Summary:
    """Compute every run that the store does not have, and keep each result when it arrives.

    A run that raises an error is noted in the store and does not stop the others; it is not tried again until
    `retry_failed`. However the process ends, the runs that were finished are kept, and calling `sweep` again
    goes on with the rest. Several sweeps may share a store, from several machines.

    Parameters
    ----------
    runs : iterable of Run
    store : folder or Store
        Made if it is not there.
    n_jobs : int
        Local processes; −1 for one a core. The cores are shared out among them: n_jobs × threads = cores.
    scheduler : str, optional
        Compute on the Dask cluster of this scheduler instead, such as ``tcp://host:port``.
    name : str
        What this sweep is called in the status of the store.
    progress : bool, optional
        Show a progress bar with the time left; by default when stderr is a terminal, and a
        line a minute when it is none.

    Returns
    -------
    Summary
        `Store.records` and `Store.to_frame` have the results.
    """
    return _sweep(runs, _opened(store), name, progress, again=False, n_jobs=n_jobs, scheduler=scheduler)


def retry_failed(
    store: Store | Path_,
    *,
    n_jobs: int = -1,
    scheduler: str | None = None,
    progress: bool | None = None,
) -> Summary:
    """Compute the failed runs of a store again; parameters as for `sweep`."""
    opened = _opened(store)
    failures = opened.failures()
    runs = [Run(**record["run"]) for record in failures]
    tasks = {record["key"]: prepare(run) for record, run in zip(failures, runs, strict=True)}
    summary = _sweep(runs, opened, None, progress, again=True, n_jobs=n_jobs, scheduler=scheduler)
    for key, task in tasks.items():
        if task.key != key:  # other data or code by now: the run lives on under another key
            opened.forget_failure(key)
    return summary


def _opened(store: Store | Path_) -> Store:
    return Store(store.path if isinstance(store, Store) else store, create=True)


def _sweep(
    runs: Iterable[Run], store: Store, name: str | None, progress: bool | None, *, again: bool, **place: Any
) -> Summary:
    begun = time.perf_counter()
    models = str(store.models)
    tasks = {task.key: replace(task, models=models) for task in map(prepare, runs)}
    if name is not None:
        store.write_plan(name, list(tasks))
    todo = [t for t in tasks.values() if not store.has(t.key) and (again or not store.has_failed(t.key))]
    # In random order: the time left can be told from the first runs, and two sweeps on one store meet the
    # same run at the same time so rarely that they need no lock.
    random.SystemRandom().shuffle(todo)
    n_computed = 0
    if todo:
        with progress_bar("Sweep", progress) as report, workers(**place) as found:
            n_computed = _compute(todo, store, found, report, again)
    failed = sum(store.has_failed(key) for key in tasks)
    finished = sum(store.has(key) for key in tasks)
    return Summary(len(tasks), finished - n_computed, n_computed, failed, time.perf_counter() - begun)


def _compute(todo: list[Task], store: Store, place: Workers, report: Report, again: bool) -> int:
    """Compute and keep; how many runs were finished here."""
    n_failed, n_computed, n_elsewhere = 0, 0, 0
    by_key = {task.key: task for task in todo}

    def waiting() -> Iterator[Task]:
        """Tasks as workers ask for them, without those that another sweep has finished meanwhile."""
        nonlocal n_elsewhere
        for task in todo:
            if store.has(task.key) or (not again and store.has_failed(task.key)):
                n_elsewhere += 1
            else:
                yield task

    with closing(place.run(waiting())) as outcomes:
        for outcome in outcomes:
            run = by_key[outcome.key].run
            if outcome.values is not None:
                store.write(outcome.key, run, outcome.values, outcome.seconds)
                n_computed += 1
            else:
                store.write_failure(outcome.key, run, outcome.error or "", outcome.details, outcome.seconds)
                n_failed += 1
            report(n_computed + n_failed + n_elsewhere, len(todo), f"{n_failed} failed" if n_failed else "")
    return n_computed
