"""
Local methods and the proved optimum on a table
===============================================

German credit: how far local methods stay from what is proved.

Run: ``python examples/frontier_compare.py [FIGURE.png] [--quick]``
"""

import sys
import warnings
from pathlib import Path

import privacyfunnel as pf
from privacyfunnel.plotting import save_figure

METHODS = ("exact", "dca", "dca-ridge", "greedy", "submodular")


def main(figure: str | None, quick: bool) -> None:
    people = pf.datasets.load_german_credit()
    joint = pf.Joint.from_frame(people, public=["housing", "employment"], private=["sex"])
    settings = {"n_points": 8 if quick else 40, "n_starts": 4 if quick else 20, "rng": 0}
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)  # the points keep their status
    fronts = {method: pf.frontier(joint, method=method, **settings) for method in METHODS}
    exact = fronts["exact"]

    print(joint)
    print(
        "method     | leakage at 1 | 2 | 3 bit | largest excess over exact | at utility | mean excess (bit)"
    )
    for method, front in fronts.items():
        leakages = " | ".join(f"{front.leakage_at(u):.5f}" for u in (1.0, 2.0, 3.0))
        over = front.compare(exact)
        print(
            f"{method:10} | {leakages} | {over.largest_difference:.5f} | {over.at_utility:.2f} "
            f"| {over.mean_difference:.5f}"
        )
    proved = " | ".join(f"{exact.lower_bound_at(u) or 0.0:.5f}" for u in (1.0, 2.0, 3.0))
    print(f"{'proved ≥':10} | {proved} | for every mechanism")

    mechanism = exact.mechanism_at(2.0)  # two neighbouring corners, time shared
    print(f"a mechanism with 2 bit of utility: {mechanism}")
    if figure is not None:
        save_figure(exact.merge(*[fronts[m] for m in METHODS[1:]]).plot(points=False), figure)
        print(f"the information plane is in {Path(figure).name}")


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--quick"]
    main(names[0] if names else None, "--quick" in sys.argv)
