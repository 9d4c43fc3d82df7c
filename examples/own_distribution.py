"""
A distribution of your own
==========================

From P(X,Y) to figures for a paper: the proved trade-off, every method beside it, and what the best release
looks like. Replace `p_xy` by yours and run it again.

Run: ``python examples/own_distribution.py [FOLDER] [--quick]`` (figures and tables go there; default: here)
"""

import sys
from pathlib import Path

import numpy as np

import privacyfunnel as pf
from privacyfunnel.plotting import save_figure

quick = "--quick" in sys.argv
folder = next((Path(one) for one in sys.argv[1:] if Path(one).is_dir()), Path())

# %%
# The distribution: a row for each public value, a column for each private one. Counts of records go in with
# `pf.Joint.from_counts`, a table with `pf.Joint.from_frame`.

p_xy = np.array([[0.18, 0.02, 0.05], [0.05, 0.15, 0.05], [0.02, 0.08, 0.15], [0.10, 0.05, 0.10]])
joint = pf.Joint(p_xy)
print(joint)

# %%
# What is possible without telling anything at all about Y, and what one release with a limit looks like.

free = pf.perfect_privacy(joint)
print(f"for nothing: {free.utility:.4f} bit")
solution = pf.solve(joint, max_leakage=0.05, method="exact", rng=0)
print(solution)
print(solution.mechanism.p_z_given_x.round(3))

# %%
# Every method in one plane. The paper's two solvers are swept over α as the paper does it: 16 values of β
# times 16 of α from 0.1 to 10, three numbers of symbols, 10 starts. With ``--quick``, as in the gallery,
# every method has one start.

comparison = pf.compare(joint, n_starts=1 if quick else None, rng=0)
print(comparison.summary)
for row in comparison.rows():
    print(
        f"{row['method']:10} keeps {row['utility']:.4f} bit, tells {row['leakage']:.5f}, "
        f"gap {row['gap']:.5f}, {row['cpu_seconds']:.1f} CPU s"
    )

# %%
# The figure, one column of a paper wide; the table as CSV; a page with both.

figure = comparison.plot(size=(3.6, 4.4), points=False)
save_figure(figure, folder / "own-plane.png")
comparison.to_csv(folder / "own-compare.csv")
comparison.save(folder / "own-compare.html")
