"""Two private values and very many letters: CPU seconds, proved gap and memory.

Each size is measured in a process of its own, once warmed up. With PRIVACYFUNNEL_BEFORE, a folder with
another version of the package, 1,000 letters are solved by that one too, in the same run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from .report import show

CASES = ((1_000, 1e-6), (10_000, 2e-4), (100_000, 4e-4), (10_000, 1e-6), (100_000, 1e-6))
SEEDS = (1, 2, 3)
CODE = """
import json, resource, sys, time, warnings
import numpy as np
import privacyfunnel as pf
warnings.simplefilter("ignore")
n, tol, seed = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
def joint(n, seed):
    rng = np.random.default_rng(seed)
    return pf.Joint(rng.dirichlet(np.full(n, 3.0))[:, None] * rng.dirichlet(np.ones(2), size=n))
for size in (20, 300):
    pf.solve(joint(size, 0), beta=0.05, method="exact", n_jobs=1, rng=0)  # compile
it = joint(n, seed)
begun = time.process_time()
solution = pf.solve(it, beta=0.05, method="exact", tol=tol, time_limit=1200, n_jobs=1, rng=0, progress=False)
seconds = time.process_time() - begun
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([seconds, solution.gap, solution.objective, solution.status.name, memory]))
"""


def measured(n: int, tol: float, seed: int, source: str | None = None) -> list[float]:
    there = {"PYTHONPATH": source} if source else {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **there}
    arguments = [sys.executable, "-c", CODE, str(n), str(tol), str(seed)]
    done = subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    before = os.environ.get("PRIVACYFUNNEL_BEFORE")
    rows = []
    for n, tol in CASES:
        for seed in SEEDS:
            seconds, gap, objective, status, memory = measured(n, tol, seed)
            row = {"|X|": n, "tol (bit)": tol, "seed": seed, "CPU (s)": seconds, "gap (bit)": gap}
            row |= {"objective (bit)": objective, "status": status, "memory (GB)": memory}
            if before and n == 1_000:
                was = measured(n, tol, seed, before)
                row |= {"before (s)": was[0], "ratio": was[0] / seconds}
            rows.append({"before (s)": "", "ratio": "", **row})
    show("exact many: two private values, beta = 0.05", rows)
