"""The exact solver: time, nodes, columns, rounds and proved gap, and how they grow in |X| and |Y|."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.optimize import linprog
from scipy.special import entr

import privacyfunnel as pf

from .report import show, timed

SHAPES = [
    (20, 2),
    (100, 2),
    (300, 2),
    (1000, 2),
    (12, 3),
    (30, 3),
    (100, 3),
    (16, 4),
    (30, 4),
    (12, 5),
    (20, 5),
    (12, 10),
]
BETAS = (0.05, 0.2, 0.5)
MANY_VALUES = [(40, 5, 0.05, 1e-3), (25, 8, 0.2, 1e-6), (12, 10, 0.05, 1e-6), (100, 3, 0.05, 1e-6)]
AUTO_SHAPES = [
    *((120, 3, 0.2), (300, 3, 0.5), (60, 4, 0.2), (40, 5, 0.2), (40, 5, 0.5), (25, 8, 0.2), (25, 8, 0.5)),
    *((20, 15, 0.5), (30, 20, 0.5), (200, 8, 0.5), (50, 20, 0.5)),
]


def random_joint(seed: int, n_x: int, n_y: int) -> pf.Joint:
    return pf.Joint(np.random.default_rng(seed).dirichlet(np.ones(n_x * n_y)).reshape(n_x, n_y))


def growth() -> None:
    rows = []
    pf.solve(random_joint(0, 5, 2), beta=0.2, method="exact", rng=0)
    pf.solve(random_joint(0, 5, 4), beta=0.05, method="exact", rng=0)
    for n_x, n_y in SHAPES:
        for beta in BETAS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
                solution = pf.solve(
                    random_joint(1, n_x, n_y), beta=beta, method="exact", time_limit=300, rng=0
                )
            found = re.search(r"([\d,]+) rounds?, ([\d,]+) columns?, ([\d,]+) ", " ".join(solution.notes))
            rounds, columns, nodes = (int(c.replace(",", "")) for c in found.groups()) if found else (0, 0, 0)
            rows.append(
                {
                    "|X|": n_x,
                    "|Y|": n_y,
                    "beta": beta,
                    "seconds": solution.seconds,
                    "rounds": rounds,
                    "columns": columns,
                    "nodes": nodes,
                    "objective (bit)": solution.objective,
                    "gap (bit)": solution.gap,
                    "status": solution.status.name,
                }
            )
    show("exact growth: random joints, tolerance 1e-6 bit", rows)


def against_dca() -> None:
    rows = []
    joint = random_joint(1, 20, 2)
    for beta in BETAS:
        pf.solve(joint, beta=beta, method="dca", n_starts=1, rng=0)
        exact_seconds, exact = timed(lambda b=beta: pf.solve(joint, beta=b, method="exact", rng=0))
        dca_seconds, dca = timed(
            lambda b=beta: pf.solve(joint, beta=b, method="dca", n_starts=60, tol=1e-9, rng=0)
        )
        rows.append(
            {
                "beta": beta,
                "exact (s)": exact_seconds,
                "exact objective": exact.objective,
                "proved gap": exact.gap,
                "60 dca starts (s)": dca_seconds,
                "dca objective": dca.objective,
                "dca above exact (bit)": dca.objective - exact.objective,
                "time ratio": dca_seconds / exact_seconds,
            }
        )
    show("exact against dca: |X| = 20, |Y| = 2, best of 60 starts", rows)


def grid_sweep(joint: pf.Joint, utilities: np.ndarray, steps: int) -> np.ndarray:
    """Least leakage by linear programmes over all posteriors on a grid of the simplex."""
    grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    noise = entr(grid @ (joint.p_xy / joint.p_x[:, None])).sum(axis=1) / np.log(2)
    spread = entr(grid).sum(axis=1) / np.log(2)
    leakage = []
    for utility in utilities:
        result = linprog(
            -noise,
            A_ub=spread[None],
            b_ub=[joint.entropy_x - utility],
            A_eq=grid.T,
            b_eq=joint.p_x,
            method="highs",
        )
        leakage.append(joint.entropy_y + result.fun)
    return np.array(leakage)


def against_grid() -> None:
    joint = pf.datasets.paper_joint()
    utilities = np.arange(1, 16) / 10
    pf.solve(joint, min_utility=0.5, method="exact", rng=0)

    def exact() -> list[pf.Solution]:
        return [pf.solve(joint, min_utility=float(u), method="exact", rng=0) for u in utilities]

    seconds, solutions = timed(exact, repeat=3)
    grid_seconds, grid = timed(lambda: grid_sweep(joint, utilities, 240))
    show(
        "exact against a grid programme: the paper's 3×3 joint, utility ≥ 0.1 … 1.5 bit",
        [
            {
                "points": 15,
                "exact (s)": seconds,
                "largest gap": max(s.gap or 0.0 for s in solutions),
                "grid columns": 241 * 242 // 2,
                "grid (s)": grid_seconds,
                "ratio": grid_seconds / seconds,
                "grid above exact (bit)": float(
                    max(g - s.leakage for g, s in zip(grid, solutions, strict=True))
                ),
            }
        ],
    )


def drawn_joint(seed: int, n_x: int, n_y: int) -> pf.Joint:
    rng = np.random.default_rng(seed)
    return pf.Joint(rng.dirichlet(np.full(n_x, 3.0))[:, None] * rng.dirichlet(np.ones(n_y), size=n_x))


def solved(seed: int, n_x: int, n_y: int, beta: float, tol: float, method: str) -> dict[str, object]:
    """CPU seconds on one core, and what was proved in a minute."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
        joint = drawn_joint(seed, n_x, n_y)
        solution = pf.solve(joint, beta=beta, method=method, tol=tol, rng=0, n_jobs=1, time_limit=60)
    seconds = time.process_time() - begun
    return {"cpu": seconds, "status": solution.status.name, "gap": solution.gap, "method": solution.method}


def earlier(path: str, case: tuple[object, ...]) -> dict[str, object]:
    """The same with the package of another source tree, in a process of its own."""
    code = (
        "import json; from benchmarks.exact import solved\n"
        "solved(0, 6, 4, 0.05, 1e-6, 'exact')\n"
        f"print(json.dumps(solved(*{case!r})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(ran.stdout.splitlines()[-1]))


def many_values() -> None:
    """More than two private values; against the tree that PRIVACYFUNNEL_BEFORE names, if it does."""
    before = os.environ.get("PRIVACYFUNNEL_BEFORE")
    solved(0, 6, 4, 0.05, 1e-6, "exact")  # compile
    rows = []
    for n_x, n_y, beta, tol in MANY_VALUES:
        for seed in (1, 2, 3):
            case = (seed, n_x, n_y, beta, tol, "exact")
            now = solved(*case)
            row = {"|X|": n_x, "|Y|": n_y, "beta": beta, "tol": tol, "seed": seed, "cpu (s)": now["cpu"]}
            row |= {"gap (bit)": now["gap"], "status": now["status"]}
            if before:
                then = earlier(before, case)
                row |= {"before (s)": then["cpu"], "then": then["status"]}
                row["ratio"] = float(str(then["cpu"])) / float(str(now["cpu"]))
            rows.append(row)
    show("exact for more than two private values: CPU seconds on one core", rows)
    rows = []
    for n_x, n_y, beta in AUTO_SHAPES:
        now = solved(1, n_x, n_y, beta, 1e-6, "auto")
        rows.append({"|X|": n_x, "|Y|": n_y, "beta": beta, **now})
    show("auto for more than two private values: CPU seconds on one core", rows)


def main() -> None:
    against_grid()
    against_dca()
    many_values()
    growth()
