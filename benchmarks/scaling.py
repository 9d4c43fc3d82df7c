"""How a `dca` step grows with |X| = |Y| = |Z| = n, against its two matrix products alone."""

from __future__ import annotations

import tracemalloc

import numpy as np

from privacyfunnel import Joint
from privacyfunnel.discrete.dca import Dca, evaluate
from privacyfunnel.discrete.kernels import normalise_log_rows
from privacyfunnel.discrete.problem import Problem

from .report import show, timed

SIZES = (10, 20, 50, 100, 200, 400, 700, 1000)


def main() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for n in SIZES:
        problem = Problem(Joint(rng.dirichlet(np.full(n, 0.5), size=n) / n))
        start = rng.random((1, n, n))
        start /= start.sum(axis=2, keepdims=True)
        tracemalloc.start()
        algorithm = Dca()
        state = algorithm.start(problem, start, np.array([0.3]), np.array([np.nan]))
        log_p, p, direction = state.log_p[0], state.p[0], np.empty((n, n))
        arrays = problem.p_x, problem.p_y, problem.p_y_given_x, problem.p_x_given_y

        def step(log_p=log_p, p=p, direction=direction, arrays=arrays) -> float:
            normalise_log_rows(log_p, p)
            return evaluate(log_p, p, 0.3, *arrays, direction)

        def products(p=p, arrays=arrays) -> np.ndarray:
            return arrays[2] @ (arrays[3] @ p)

        step()
        repeat = min(2000, max(5, int(1e9 / n**3)))
        ours, value = timed(step, repeat)
        alone, _ = timed(products, repeat)
        active = np.array([0])

        def cycle(algorithm=algorithm, problem=problem, state=state, active=active) -> None:
            algorithm.step(problem, state, active)

        per_cycle, _ = timed(cycle, max(3, repeat // 10))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            {
                "n": n,
                "map evaluation (ms)": ours * 1e3,
                "two products (ms)": alone * 1e3,
                "ratio": ours / alone,
                "accelerated cycle (ms)": per_cycle * 1e3,
                "peak memory (MB)": peak / 1e6,
                "GFLOP/s": 4 * n**3 / ours / 1e9,
                "objective (nat)": value,
            }
        )
    show("dca scaling: one evaluation of the map (step, objective and direction)", rows)
