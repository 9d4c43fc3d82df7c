"""The paper's whole sweep on its 3×3 joint against plain Python twins of the same algorithms.

7,680 solves: |Z| ∈ {2, 3, 4} × 16 β × 16 α in [0.1, 10] × 10 starts. A twin is timed on a stratified
sample of the same tasks (every k-th, so that every |Z| and β occurs) and extrapolated.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import Ridge

from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.batch import Task, random_starts, run_tasks
from privacyfunnel.discrete.kernels import LOG_FLOOR
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem
from privacyfunnel.information import utility_and_leakage

from .report import show, timed

TOL, MAX_STEPS = 1e-6 * NATS_PER_BIT, 10_000
SAMPLE = {"dca-ridge": 256, "dca-sparse": 24}


def paper_tasks(method: str, problem: Problem) -> list[Task]:
    seed = np.random.SeedSequence(0)
    grid = np.geomspace(0.1, 10, 16)
    return [
        Task(float(beta), float(alpha), start)
        for n_z in (2, 3, 4)
        for beta in grid
        for alpha in grid
        for start in random_starts(seed, method, problem.n_x, n_z, 10)
    ]


def target(problem: Problem, p: np.ndarray, beta: float) -> np.ndarray:
    """log q(z|y) of the paper's update."""
    p_z = problem.p_x @ p
    log_p, log_pz = (np.maximum(np.log(np.maximum(v, 1e-300)), LOG_FLOOR) for v in (p, p_z))
    raw = problem.pseudo_inverse @ (log_pz + beta * (log_p - log_pz))
    return np.maximum(raw - logsumexp(raw, axis=1, keepdims=True), LOG_FLOOR)


def loss(problem: Problem, p: np.ndarray, beta: float) -> float:
    utility, leakage = utility_and_leakage(problem.p_xy, p)
    return (leakage - beta * utility) * NATS_PER_BIT


def ridge_twin(problem: Problem, task: Task) -> tuple[float, int]:
    """The same algorithm as a Python loop over scikit-learn's Ridge on all symbols, then normalised."""
    p, best = task.start, np.inf
    before = loss(problem, p, task.beta)
    model = Ridge(alpha=task.parameter, positive=True, fit_intercept=False)
    n_steps = 0
    while n_steps < MAX_STEPS:
        n_steps += 1
        q = np.exp(target(problem, p, task.beta))
        p = model.fit(problem.p_x_given_y, q).coef_.T
        p = np.maximum(p, 1e-12)
        p = p / p.sum(axis=1, keepdims=True)
        after = loss(problem, p, task.beta)
        best = min(best, after)
        if abs(before - after) <= TOL:
            break
        before = after
    return best, n_steps


def sparse_twin(problem: Problem, task: Task) -> tuple[float, int]:
    """The same algorithm with plain NumPy gradient descent for the inner problem."""
    p, best = task.start, np.inf
    before = loss(problem, p, task.beta)
    log_x_given_y = np.log(problem.p_x_given_y)
    n_steps = 0
    while n_steps < MAX_STEPS:
        n_steps += 1
        log_q = target(problem, p, task.beta)
        free = np.clip(np.log(p), LOG_FLOOR, -1e-9)
        for _ in range(10_000):
            exponent = log_x_given_y[:, :, None] + free[None]
            fitted = logsumexp(exponent, axis=1)
            weights = np.exp(exponent - fitted[:, None, :])
            gradient = (weights * (fitted - log_q)[:, None, :]).sum(axis=0) - task.parameter
            moved = np.clip(free - 0.3 * gradient, LOG_FLOOR, -1e-9)
            if np.abs(moved - free).max() <= 1e-9:
                break
            free = moved
        p = np.exp(free - logsumexp(free, axis=1, keepdims=True))
        after = loss(problem, p, task.beta)
        best = min(best, after)
        if abs(before - after) <= TOL:
            break
        before = after
    return best, n_steps


def run_twin(
    twin: Callable[[Problem, Task], tuple[float, int]], problem: Problem, tasks: list[Task]
) -> tuple[float, list[tuple[float, int]]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: [twin(problem, task) for task in tasks])


def main() -> None:
    problem = Problem(paper_joint())
    rows = []
    twins = {"dca-ridge": ridge_twin, "dca-sparse": sparse_twin}
    for method in ("dca", "dca-ridge", "dca-sparse"):
        tasks = paper_tasks(method, problem)

        def sweep(method: str = method, tasks: list[Task] = tasks) -> list:
            return run_tasks(problem, method, tasks, tol=TOL, max_steps=MAX_STEPS)

        sweep()  # compile
        seconds, runs = timed(sweep, repeat=2)
        objectives = np.array([run.objective for run in runs]) / NATS_PER_BIT
        row = {
            "method": method,
            "solves": len(runs),
            "steps": sum(run.n_steps for run in runs),
            "seconds": seconds,
            "mean objective": float(objectives.mean()),
            "twin solves": 0,
            "twin steps": 0,
            "twin mean objective": float("nan"),
            "same solves, ours": float("nan"),
            "twin, whole sweep (s)": float("nan"),
            "ratio": float("nan"),
        }
        if method in twins:
            # A stride without common factors with the grid walks through every |Z|, β, α and start.
            picked = range(0, len(tasks), len(tasks) // SAMPLE[method] + 1)
            twin_seconds, ended = run_twin(twins[method], problem, [tasks[i] for i in picked])
            whole = twin_seconds * len(tasks) / len(picked)
            row |= {
                "twin solves": len(picked),
                "twin steps": sum(steps for _, steps in ended),
                "twin mean objective": float(np.mean([best for best, _ in ended])) / NATS_PER_BIT,
                "same solves, ours": float(np.mean([objectives[i] for i in picked])),
                "twin, whole sweep (s)": whole,
                "ratio": whole / seconds,
            }
        rows.append(row)
    show("paper sweep: 7,680 solves on the 3×3 joint, ours on all cores against one-core Python twins", rows)
