"""
The paper's example
===================

Three letters: the proved optimum, the paper's two solvers, and deterministic releases.

Run: ``python examples/paper_figure.py [FOLDER] [--quick]`` (--quick: a small part of the paper's sweep)
Writes exact-3x3.png to FOLDER (docs/images) and prints the table of docs/exact.md.
"""

import sys
import warnings
from pathlib import Path

import numpy as np

import privacyfunnel as pf
from privacyfunnel.plotting import COLOURS, MARKERS, looks, new_figure, plot_frontier, save_figure, tidy

PARTITIONS = ([0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2])


def curves(joint: pf.Joint, quick: bool) -> dict[str, pf.Frontier]:
    grid = np.geomspace(0.1, 10, 16)[:: 5 if quick else 1]
    sweep = {"betas": grid, "alpha": grid, "n_z": (2, 3, 4), "n_starts": 2 if quick else 10, "rng": 0}
    found = {"exact": pf.frontier(joint, method="exact", n_points=10 if quick else 100, rng=0)}
    warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)  # orbits: see docs/methods.md
    for method in ("dca-ridge", "dca-sparse"):
        lowest = pf.frontier(joint, method=method, **sweep).pareto()  # what the paper's figure shows
        found[method] = pf.Frontier.for_joint(joint, lowest)
    maps = [pf.TableMechanism(np.eye(3)[labels], x_labels=joint.x_labels) for labels in PARTITIONS]
    points = [(pf.measure(m, joint).utility, pf.measure(m, joint).leakage, "map", m) for m in maps]
    return found | {"deterministic": pf.Frontier.for_joint(joint, [pf.TradeoffPoint(*p) for p in points])}


def draw(found: dict[str, pf.Frontier], folder: Path) -> None:
    at = np.linspace(0, found["exact"].max_utility, 400)
    figure, (plane, excess) = new_figure((9.6, 3.7), 2)
    plot_frontier(found, ax=plane)
    look = dict(zip(found, looks(list(found)), strict=True))
    places = np.transpose([(p.utility, p.leakage) for p in found["deterministic"].points])
    own = {"color": COLOURS[look["deterministic"]], "marker": MARKERS[look["deterministic"]]}
    plane.plot(*places, linestyle="none", markersize=5, zorder=6, clip_on=False, **own)
    for name, front in found.items():
        above = [front.leakage_at(u) - (found["exact"].lower_bound_at(u) or 0.0) for u in at]
        excess.semilogy(at, above, color=COLOURS[look[name]], linewidth=1.3)
    tidy(excess, "utility  $I(Z;X)$  [bit]", "leakage above the proved bound  [bit]")
    excess.set(xlim=(0, at[-1]), ylim=(3e-7, 0.2))
    save_figure(figure, folder / "exact-3x3.png", dpi=110)


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--quick"]
    found = curves(pf.datasets.paper_joint(), "--quick" in sys.argv)
    draw(found, Path(folders[0] if folders else "docs/images"))
    print("utility | proved |", " | ".join(f"{name}: one release | time shared" for name in found))
    for u in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5):
        row = [found["exact"].lower_bound_at(u) or 0.0]
        for front in found.values():
            row += [min(p.leakage for p in front.points if p.utility >= u - 1e-9), front.leakage_at(u)]
        print(f"{u:.1f} |", " | ".join(f"{leakage:.5f}" for leakage in row))
