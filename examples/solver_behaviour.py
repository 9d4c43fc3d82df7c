"""
How the local solvers behave
============================

The numbers of docs/methods.md.

Run: ``python examples/solver_behaviour.py``
"""

import sys
from collections import Counter

import numpy as np

import privacyfunnel as pf
from privacyfunnel.discrete.batch import Task, random_starts, run_tasks
from privacyfunnel.discrete.dca_ridge import DcaRidge
from privacyfunnel.discrete.dca_sparse import DcaSparse
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem

GRID, TINY, PAPER = np.geomspace(0.1, 10, 16), 1e-6 * NATS_PER_BIT, Problem(pf.datasets.paper_joint())
STARTS = {n: random_starts(np.random.SeedSequence(0), "dca-ridge", 3, n, 10) for n in (2, 3, 4)}


def sweep(method: str, step: int) -> str:
    """The paper's sweep: how often L rises by more than 1e-6 bit, or ends that much above its start."""
    alphas = [np.nan] if method == "dca" else GRID[::step]
    tasks = [Task(b, a, p) for b in GRID[::step] for a in alphas for n in STARTS for p in STARTS[n]]
    runs = run_tasks(PAPER, method, tasks, tol=TINY, max_steps=10_000)
    rises = np.mean([np.any(np.diff(run.history) > TINY) for run in runs])
    worse = np.mean([run.history[-1] > run.history[0] + TINY for run in runs])
    ended = [r for r in runs if r.history[-1] == r.objective]  # `p` is the best iterate, here the last
    far = np.mean([PAPER.stationarity_gap(run.p, run.task.beta) > 1e-3 for run in ended])
    text = f"{len(runs)} runs, L rises in {rises:.1%}, ends above its start in {worse:.1%}; of {len(ended)} "
    return f"{text}best at the end {far:.1%} are not stationary; {dict(Counter(r.status.name for r in runs))}"


def path(method: DcaRidge | DcaSparse, beta: float, alpha: float, n_steps: int) -> np.ndarray:
    """The iterates (n_steps, 10, 3, 4) of ten starts."""
    state, iterates = method.start(PAPER, np.stack(STARTS[4]), np.full(10, beta), np.full(10, alpha)), []
    for _ in range(n_steps):
        method.step(PAPER, state, np.arange(10))
        iterates.append(state.p.copy())
    return np.stack(iterates)


if __name__ == "__main__":
    quick = "--quick" in sys.argv
    for method in ("dca-ridge", "dca-sparse", "dca"):
        print(f"{method}: {sweep(method, 5 if quick else 1)}")
    late = path(DcaRidge(), GRID[10], GRID[4], 200 if quick else 20_000)[-100 if quick else -5_000 :]
    wide = np.ptp(late, axis=0).max(axis=(1, 2)).min()
    back = np.abs(late[1:] - late[0]).max(axis=(2, 3)).min()
    print(f"dca-ridge, β {GRID[10]:.3f}, α {GRID[4]:.3f}: orbits {wide:.2f} wide, closest return {back:.0e}")
    for a in GRID[::5]:
        rows = path(DcaSparse(), 1.0, a, 1)[-1].reshape(-1, 4)
        print(f"dca-sparse, α {a:.2f}: a row has {np.mean([pf.entropy(row) for row in rows]):.2f} of 2 bit")
    rng, lower = np.random.default_rng(0), Counter[str]()
    for _ in range(40 if quick else 400):
        n_x, n_y, beta = int(rng.integers(4, 11)), int(rng.integers(2, 6)), float(rng.uniform())
        joint = pf.Joint(rng.dirichlet(np.ones(n_x * n_y)).reshape(n_x, n_y))
        one, two = (pf.solve(joint, beta=beta, method=m).objective for m in ("greedy", "submodular"))
        lower["both" if abs(one - two) < 1e-9 else "greedy" if one < two else "submodular"] += 1
    print("lower L on random joints:", dict(lower))
