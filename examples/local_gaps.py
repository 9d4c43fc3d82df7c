"""
How far local methods end above the optimum
===========================================

At one β; prints a table of docs/methods.md.

Run: ``python examples/local_gaps.py [--quick]``
"""

import sys
import time
import warnings
from collections import Counter

import numpy as np

import privacyfunnel as pf

METHODS = ("dca", "em", "splitting", "dca-ridge", "dca-sparse", "greedy", "submodular")


def random_joint(n_x: int, n_y: int) -> pf.Joint:
    return pf.Joint(np.random.default_rng(1).dirichlet(np.ones(n_x * n_y)).reshape(n_x, n_y))


def main(quick: bool) -> None:
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)  # the table shows every status
    joints = {"paper's 3 × 3": pf.datasets.paper_joint()}
    if not quick:
        joints |= {"random 10 × 4": random_joint(10, 4), "random 20 × 2": random_joint(20, 2)}
    settings = {"n_starts": 2 if quick else 20, "max_steps": 100 if quick else 10_000, "rng": 0}
    for name, joint in joints.items():
        for beta in (0.1, 0.3):
            exact = pf.solve(joint, beta=beta, method="exact", rng=0)
            print(f"{name}, β = {beta}: least L {exact.objective:.5f} bit, proved to {exact.gap:.0e}")
            for method in METHODS:
                pf.solve(joint, beta=beta, method=method, n_starts=1, max_steps=2, rng=0)  # compiles
                begun = time.perf_counter()
                runs = [
                    p for p in pf.frontier(joint, method=method, betas=[beta], **settings).points if p.status
                ]
                seconds = time.perf_counter() - begun
                above = min(p.leakage - beta * p.utility for p in runs) - exact.objective
                states = dict(Counter(p.status.name for p in runs))
                print(f"  {method:10} best {above:8.5f} bit above, {seconds:5.2f} s, {states}")


if __name__ == "__main__":
    main("--quick" in sys.argv)
