"""Many runs, computed once each: a grid of settings → a folder of results that survives anything.

>>> from privacyfunnel.sweep import Store, grid_runs, sweep
>>> runs = grid_runs("dca", "paper", settings={"n_starts": 5}, grid={"beta": [0.2, 0.4], "seed": [0, 1]})
>>> len(runs)
4
>>> sweep(runs, "runs/", n_jobs=2)  # doctest: +SKIP
>>> Store("runs/").to_frame()       # doctest: +SKIP
"""

from .engine import Summary, retry_failed, sweep
from .runs import Run, grid_runs, read_spec
from .store import Store

__all__ = ["Run", "Store", "Summary", "grid_runs", "read_spec", "retry_failed", "sweep"]
