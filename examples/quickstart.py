"""
From a table to a released table
================================

German credit, housing and employment against sex.

Run: ``python examples/quickstart.py [FOLDER]`` (the mechanism is saved there; a temporary folder by default)
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

import privacyfunnel as pf
from privacyfunnel.plotting import save_figure


def main(folder: Path) -> None:
    people = pf.datasets.load_german_credit()
    joint = pf.Joint.from_frame(people, public=["housing", "employment"], private=["sex"])
    print(joint)

    solution = pf.solve(joint, max_leakage=0.01, rng=0)
    interval = solution.leakage_interval(rng=0)
    print(solution)
    print(f"proved: no release with this leakage has more than {-solution.lower_bound:.4f} bit of utility")
    print(f"leakage on the population, 95 %: {interval.low:.4f} to {interval.high:.4f} bit")

    profile = pf.measure(solution.mechanism, joint)
    print(f"best guess of sex is right: {profile.guess_before:.3f} before, {profile.guess_after:.3f} after")
    for k in (1, 2, 5):
        repeated = pf.repeated_leakage(solution.mechanism, joint, k)
        print(f"leakage of {k} releases of the same record: {repeated.value:.4f} bit ({repeated.kind})")

    path = folder / "mechanism.json"
    solution.mechanism.save(path)
    mechanism = pf.load(path)
    assert np.array_equal(mechanism.p_z_given_x, solution.mechanism.p_z_given_x)
    # Only what the receiver needs: personal_status, for one, would tell sex outright.
    released = mechanism.release_frame(people, keep=["credit"], shuffle=True)
    save_figure(pf.frontier(joint, n_points=8, rng=0).plot(), folder / "trade-off.png")
    print(f"released {len(released)} records as z and credit, mechanism in {path.name}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
