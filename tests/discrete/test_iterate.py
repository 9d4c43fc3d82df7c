"""The loop, driven by made-up algorithms whose behaviour is known."""

from threading import Event

import numpy as np
import pytest

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.iterate import State, iterate
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.solution import Status


class Scripted:
    """The objective after k steps is script(k); the channel moves with it."""

    name = "scripted"
    monotone = False

    def __init__(self, *scripts):
        self.scripts = scripts
        self.steps = np.zeros(len(scripts), dtype=int)

    def _place(self, state, task):
        value = self.scripts[task](self.steps[task])
        state.objective[task] = value
        state.p[task] = [[value, 1 - value]] if np.isfinite(value) else [[0.5, 0.5]]

    def start(self, problem, p, beta, parameter):
        state = State(p.copy(), np.zeros(len(p)), beta, parameter)
        for task in range(len(p)):
            self._place(state, task)
        return state

    def step(self, problem, state, active):
        for task in active:
            self.steps[task] += 1
            self._place(state, task)


def run(*scripts, max_steps=10_000, tol=1e-6, **options):
    n = len(scripts)
    starts = np.full((n, 1, 2), 0.5)
    return iterate(
        Scripted(*scripts),
        Problem(paper_joint()),
        starts,
        np.ones(n),
        np.ones(n),
        tol=tol,
        max_steps=max_steps,
        **options,
    )


def test_every_task_ends_for_its_own_reason():
    ended = run(
        lambda k: 0.5 + 0.5**k,
        lambda k: [0.3, 0.5, 0.2, 0.6][k % 4],
        lambda k: np.nan if k == 3 else 0.9 - 0.1 * k,
        lambda k: 0.5 + 0.3 * np.sin(k * np.sqrt(2)),
        lambda k: 0.9 - 1e-4 * k,
        max_steps=3000,
    )
    assert ended.status == [
        Status.CONVERGED,
        Status.CYCLE,
        Status.NOT_FINITE,
        Status.CYCLE,
        Status.STEP_LIMIT,
    ]
    assert ended.n_steps[4] == 3000
    assert ended.n_steps[3] < 3000


def test_the_best_iterate_is_returned_and_the_history_is_whole():
    ended = run(lambda k: [0.8, 0.1, 0.4, 0.6, 0.6][min(k, 4)])
    assert ended.objective[0] == 0.1
    np.testing.assert_array_equal(ended.p[0], [[0.1, 0.9]])
    np.testing.assert_array_equal(ended.history[0], [0.8, 0.1, 0.4, 0.6, 0.6])


def test_a_best_iterate_before_a_failure_survives():
    ended = run(lambda k: np.nan if k >= 2 else [0.8, 0.2][k])
    assert ended.status == [Status.NOT_FINITE]
    assert ended.objective[0] == 0.2


@pytest.mark.parametrize("period", [2, 3, 7, 64, 300])
def test_cycles_of_any_length_are_found(period):
    values = np.random.default_rng(period).random(period)
    ended = run(lambda k: values[k % period])
    assert ended.status == [Status.CYCLE]
    assert ended.objective[0] == values.min()


def test_slow_convergence_is_not_called_a_cycle():
    ended = run(lambda k: 0.5 + 0.4 * 0.999**k, tol=1e-9, max_steps=20_000)
    assert ended.status == [Status.CONVERGED]
    rising = run(lambda k: 0.5 - 0.4 * 0.999**k, tol=1e-9, max_steps=20_000)
    assert rising.status == [Status.CONVERGED]


def test_cancelling_stops_and_says_so():
    cancelled = Event()
    cancelled.set()
    ended = run(lambda k: 0.9 - 1e-4 * k, cancelled=cancelled)
    assert ended.status == [Status.INTERRUPTED]
    assert ended.n_steps[0] == 1


def test_a_run_that_rests_but_may_not_stop_yet_is_no_cycle():
    """Like splitting before its copies agree: L is constant to the last digit, and `settled` is false."""

    class Resting(Scripted):
        def start(self, problem, p, beta, parameter):
            state = super().start(problem, p, beta, parameter)
            state.settled = np.zeros(len(p), dtype=bool)
            return state

    algorithm = Resting(lambda k: 0.5 + 1e-16 * (k % 2))
    ended = iterate(
        algorithm,
        Problem(paper_joint()),
        np.full((1, 1, 2), 0.5),
        np.ones(1),
        np.ones(1),
        tol=1e-6,
        max_steps=3000,
    )
    assert ended.status == [Status.STEP_LIMIT]
