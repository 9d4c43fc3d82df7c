"""The one loop of the iterative solvers: stop rule, history, best iterate, limit cycles, finiteness.

It advances a batch of independent tasks (one per setting and start) together. An algorithm supplies
`start` and `step`; it never decides when to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray
from ..solution import Status
from .problem import Problem

# Two iterates this close (largest entry) are the same one seen again; inner solvers are exact to 1e-11.
SAME = 1e-9
# Steps without a lower L after which an oscillating run is given up.
PATIENCE = 1000
ROUND_OFF = 1e-13


@dataclass
class State:
    """What an algorithm carries from step to step; axis 0 of every array is the task."""

    p: FloatArray  # (n_tasks, n_x, n_z): always valid channels
    objective: FloatArray  # (n_tasks,) L of p, nats
    beta: FloatArray
    parameter: FloatArray  # alpha or penalty, by algorithm


class Algorithm(Protocol):
    """One iterative method."""

    name: str
    monotone: bool  # a claim that L never rises; the loop then needs no best iterate and no cycle check

    def start(self, problem: Problem, p: FloatArray, beta: FloatArray, parameter: FloatArray) -> Any:
        """The state at the channels p (n_tasks, n_x, n_z)."""

    def step(self, problem: Problem, state: Any, active: NDArray[np.intp]) -> None:
        """Advance the active tasks in place."""


@dataclass(frozen=True)
class Iterated:
    """Where the tasks of a batch ended."""

    p: FloatArray  # (n_tasks, n_x, n_z) best iterates
    objective: FloatArray  # (n_tasks,) their L, nats
    status: list[Status]
    n_steps: NDArray[np.intp]
    history: list[FloatArray]  # L after 0, 1, … steps, nats


def iterate(
    algorithm: Algorithm,
    problem: Problem,
    p: FloatArray,
    beta: FloatArray,
    parameter: FloatArray,
    *,
    tol: float,
    max_steps: int,
    cancelled: Event | None = None,
) -> Iterated:
    """Run every task until |L_k − L_{k+1}| ≤ tol (nats), a limit cycle, or max_steps."""
    n_tasks = len(p)
    state = algorithm.start(problem, p, beta, parameter)
    status = np.full(n_tasks, Status.STEP_LIMIT, dtype=object)
    n_steps = np.zeros(n_tasks, dtype=np.intp)
    record = _Record(state.objective)
    best = state.p if algorithm.monotone else state.p.copy()
    best_objective = state.objective if algorithm.monotone else state.objective.copy()
    watch = None if algorithm.monotone else _OrbitWatch(state, tol)
    active = np.arange(n_tasks)
    for step in range(1, max_steps + 1):
        before = state.objective[active]
        algorithm.step(problem, state, active)
        after = state.objective[active]
        n_steps[active] = step
        record.add(step, active, after)

        ended = np.full(active.size, None, dtype=object)
        settled = getattr(state, "settled", None)
        rule = np.abs(before - after) <= tol
        ended[rule if settled is None else rule & settled[active]] = Status.CONVERGED
        ended[~np.isfinite(after)] = Status.NOT_FINITE
        if watch is not None:
            better = after < best_objective[active]
            best[active[better]] = state.p[active[better]]
            best_objective[active[better]] = after[better]
            circling = watch.circling(step, state, active, after - before)
            ended[circling & (ended == None)] = Status.CYCLE  # noqa: E711 (elementwise)
        if cancelled is not None and cancelled.is_set():
            ended[ended == None] = Status.INTERRUPTED  # noqa: E711 (elementwise)
        over = ended != None  # noqa: E711 (elementwise)
        if over.any():
            status[active[over]] = ended[over]
            active = active[~over]
            if active.size == 0:
                break
    return Iterated(best, best_objective, list(status), n_steps, record.trimmed(n_steps))


class _Record:
    """L after each step, in an array that doubles when it is full."""

    def __init__(self, first: FloatArray) -> None:
        self.values = np.full((len(first), 64), np.nan)
        self.values[:, 0] = first

    def add(self, step: int, active: NDArray[np.intp], objective: FloatArray) -> None:
        if step >= self.values.shape[1]:
            self.values = np.concatenate([self.values, np.full_like(self.values, np.nan)], axis=1)
        self.values[active, step] = objective

    def trimmed(self, n_steps: NDArray[np.intp]) -> list[FloatArray]:
        return [row[: n + 1].copy() for row, n in zip(self.values, n_steps, strict=True)]


class _OrbitWatch:
    """Tells when a non-monotone method goes round in circles: a limit cycle, or an orbit that never closes.

    Cycles are found by Brent's method: compare with one remembered iterate, renewed at steps 1, 2, 4, 8, …
    An iterate that comes back has been away: L must have left the remembered one by more than the stop rule's
    tolerance in between, or slow convergence would be called a cycle. Orbits that never close are known
    by L turning up and down for PATIENCE steps without a lower value.
    """

    def __init__(self, state: State, tol: float) -> None:
        n_tasks = len(state.objective)
        self.tol = tol
        self.p = state.p.copy()
        self.objective = state.objective.copy()
        self.excursion = np.zeros(n_tasks)
        self.next = 1
        self.lowest = state.objective.copy()  # lowered only by more than the tolerance
        self.idle = np.zeros(n_tasks, dtype=np.intp)  # steps since then
        self.turns = np.zeros(n_tasks, dtype=np.intp)  # changes of L's direction since then
        self.rising = np.zeros(n_tasks, dtype=bool)

    def circling(
        self, step: int, state: State, active: NDArray[np.intp], change: FloatArray
    ) -> NDArray[np.bool_]:
        """Which of the active tasks circle, after a step that changed their L by `change`."""
        objective = state.objective[active]
        lower = objective < self.lowest[active] - self.tol
        self.lowest[active[lower]] = objective[lower]
        # A run at rest still turns up and down in its last digit; such changes are no turns.
        rising = np.where(np.abs(change) > ROUND_OFF, change > 0, self.rising[active])
        self.idle[active] = np.where(lower, 0, self.idle[active] + 1)
        self.turns[active] = np.where(lower, 0, self.turns[active] + (rising != self.rising[active]))
        self.rising[active] = rising
        circling = (self.idle[active] >= PATIENCE) & (self.turns[active] >= PATIENCE // 10)

        distance = np.abs(objective - self.objective[active])
        self.excursion[active] = np.maximum(self.excursion[active], distance)
        near = (distance <= self.tol) & (self.excursion[active] > self.tol)
        suspects = active[near]
        if suspects.size:
            circling[near] |= np.abs(state.p[suspects] - self.p[suspects]).max(axis=(1, 2)) <= SAME
        if step == self.next:
            self.p[active] = state.p[active]
            self.objective[active] = state.objective[active]
            self.excursion[active] = 0.0
            self.next *= 2
        return circling
