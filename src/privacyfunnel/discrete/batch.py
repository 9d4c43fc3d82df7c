"""Runs many independent solves of one problem on all cores: every setting times every start.

Each task's result depends on the task alone, so the number of workers and the way tasks are grouped
do not change a single bit of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from threading import Event
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..checks import shown
from ..errors import InvalidInputError
from ..parallel import in_threads, library_threads
from ..progress import Report
from ..solution import Status
from .methods import METHODS, Method
from .problem import Problem

LARGEST_CHUNK = 256  # tasks advanced together
CHUNK_BYTES = 64 * 2**20
CHUNK_WORK = 20_000  # multiplications a step below which a group costs more in Python than in its kernel


@dataclass(frozen=True, eq=False)
class Task:
    """One solve: a setting and the channel it starts from (None for methods that need no start)."""

    beta: float
    parameter: float = np.nan  # alpha or penalty
    start: FloatArray | None = None  # (n_x, n_z)


@dataclass(frozen=True, eq=False)
class Run:
    """One solve's end."""

    task: Task
    p: FloatArray  # (n_x, n_z) best channel found, on the letters that occur
    objective: float  # its L, nats
    status: Status
    n_steps: int
    history: FloatArray  # L by step, nats


def run_tasks(
    problem: Problem,
    method: str,
    tasks: Sequence[Task],
    *,
    tol: float,
    max_steps: int,
    n_jobs: int = -1,
    end: float = np.inf,
    report: Report | None = None,
) -> list[Run]:
    """Solve every task with one method; tol in nats. Results come in the order of the tasks.

    After `end` (of time.perf_counter) every iterative task stops at its next step.
    """
    chunks = _chunks(tasks, problem)
    cancelled = Event()
    calls = [
        partial(_run_chunk, problem, method, [tasks[i] for i in chunk], tol, max_steps, cancelled)
        for chunk in chunks
    ]

    def poll() -> None:
        if time.perf_counter() > end:
            cancelled.set()

    found: dict[int, Run] = {}
    # One task alone may use every core inside its matrix products; several share them as tasks.
    # The rule looks at the tasks, not at n_jobs, so that n_jobs cannot change a summation order.
    with (
        library_threads(None if len(tasks) == 1 else 1, "blas"),
        closing(in_threads(calls, n_jobs, cancelled.set, poll)) as ended,
    ):
        for at, runs in ended:
            found.update(zip(chunks[at], runs, strict=False))  # a cancelled chunk may be short
            if report is not None:
                report(len(found), len(tasks))
    return [found[i] for i in sorted(found)]


def random_starts(
    seed: np.random.SeedSequence, method: str, n_x: int, n_z: int, n_starts: int
) -> list[FloatArray]:
    """Random channels; start k depends on the seed, n_z and k alone.

    The paper's solvers get the paper's starts: entries uniform on [0, 1], rows normalised. The others get
    Dirichlet rows in between; see `MIXED`.
    """
    starts, concentrations = [], METHODS[method].starts
    for k in range(n_starts):
        sequence = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, n_z, k))
        rng = np.random.default_rng(sequence)
        concentration = concentrations[k % len(concentrations)]
        if concentration is None:
            p = rng.random((n_x, n_z))
        else:
            p = rng.gamma(concentration, size=(n_x, n_z)) + 1e-12  # no start may rule a symbol out
        starts.append(p / p.sum(axis=1, keepdims=True))
    return starts


def as_seed(rng: Any) -> np.random.SeedSequence:
    """A seed sequence from None, an int, a sequence of ints, a Generator or itself."""
    if isinstance(rng, np.random.SeedSequence):
        return rng
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence([int(word) for word in rng.integers(2**32, size=4)])
    try:
        if isinstance(rng, (bool, np.bool_)):
            raise TypeError
        return np.random.SeedSequence(rng)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"rng must be None, a non-negative whole number or a numpy Generator; it is {shown(rng)}.",
            names=("rng",),
        ) from None


def _chunks(tasks: Sequence[Task], problem: Problem) -> list[list[int]]:
    """Groups of tasks whose channels have one shape."""
    groups: dict[int, list[int]] = {}
    for index, task in enumerate(tasks):
        n_z = 0 if task.start is None else task.start.shape[1]
        groups.setdefault(n_z, []).append(index)
    chunks = []
    for n_z, members in groups.items():
        cells = problem.n_x * max(n_z, 1)
        # Small problems go in large groups, where the loop's own cost vanishes; large ones alone.
        worthwhile = max(len(members) // 16, CHUNK_WORK // (cells * problem.n_y), 1)
        size = min(worthwhile, max(CHUNK_BYTES // (8 * cells), 1), LARGEST_CHUNK)
        chunks += [members[i : i + size] for i in range(0, len(members), size)]
    return chunks


def _run_chunk(
    problem: Problem, method: str, tasks: Sequence[Task], tol: float, max_steps: int, cancelled: Event
) -> list[Run]:
    row = METHODS[method]
    if not row.starts:
        return [_merge(problem, row, task) for task in tasks if not cancelled.is_set()]
    from .iterate import iterate

    ended = iterate(
        resolve_name(row.algorithm)(),
        problem,
        np.stack([task.start for task in tasks if task.start is not None]),
        np.array([task.beta for task in tasks]),
        np.array([task.parameter for task in tasks]),
        tol=tol,
        max_steps=max_steps,
        cancelled=cancelled,
    )
    return [
        Run(
            task,
            ended.p[i],
            float(ended.objective[i]),
            ended.status[i],
            int(ended.n_steps[i]),
            ended.history[i],
        )
        for i, task in enumerate(tasks)
    ]


def _merge(problem: Problem, row: Method, task: Task) -> Run:
    from .deterministic import as_channel

    found = resolve_name(row.algorithm)(problem, task.beta)
    channel = as_channel(found.labels)
    return Run(task, channel, float(found.history[-1]), Status.FINISHED, found.n_rounds, found.history)
