"""What the sweep engine costs a run, and what two cores bring: learned runs and short discrete ones."""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from pathlib import Path

import privacyfunnel as pf
from privacyfunnel.sweep import Run, Store, grid_runs, sweep
from privacyfunnel.sweep.execute import execute, prepare

from .report import show

N_LEARNED = 64
N_DISCRETE = 200


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        _learned(Path(folder))
        _overhead(Path(folder))


def _learned(folder: Path) -> None:
    """The same short fits one by one in this process, with one thread, and by the engine on all cores."""
    settings = {"n_components": 8, "hidden": [64], "epochs": 6, "adversaries": ["logistic regression"]}
    data = {"name": "digits", "n_train": 1300, "n_test": 497}
    runs = grid_runs("funnel", data, settings=settings, grid={"seed": range(N_LEARNED)})
    warm = [Run("funnel", data, {**settings, "epochs": 1}, seed) for seed in range(8)]
    execute(prepare(warm[0]), 1)
    begun = time.perf_counter()
    outcomes = [execute(task, 1) for task in map(prepare, runs)]
    alone = time.perf_counter() - begun
    # Importing torch in each worker is a cost of starting, once for a sweep of any length.
    sweep(warm, folder / "warm", n_jobs=-1)
    summary = sweep(runs, folder / "learned", n_jobs=-1)
    records = Store(folder / "learned").records()
    by_seed = [record["values"] for record in sorted(records, key=lambda record: record["run"]["seed"])]
    rows = [
        {
            "how": how,
            "runs": N_LEARNED,
            "seconds": seconds,
            "median run (s)": statistics.median(times),
            "speed-up": alone / seconds,
            "mean mse": statistics.fmean(one["mse"] for one in values),
        }
        for how, seconds, times, values in (
            ("one by one", alone, [o.seconds for o in outcomes], [o.values or {} for o in outcomes]),
            ("all cores", summary.seconds, [record["seconds"] for record in records], by_seed),
        )
    ]
    same = "the same" if [o.values for o in outcomes] == by_seed else "not all the same"
    show(f"sweep throughput: {N_LEARNED} short learned runs", rows, f"The numbers of both are {same}.")


def _overhead(folder: Path) -> None:
    """Short solves by the engine and by a plain loop; the difference is what the engine takes a run."""
    settings = {"n_starts": 1, "alpha": 1.0, "beta": 0.3}
    runs = grid_runs("dca-ridge", "paper", settings=settings, grid={"seed": range(N_DISCRETE)})
    joint = pf.datasets.paper_joint()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pf.solve(joint, method="dca-ridge", rng=0, n_jobs=1, progress=False, **settings)
        begun = time.perf_counter()
        for run in runs:
            pf.solve(joint, method="dca-ridge", rng=run.seed, n_jobs=1, progress=False, **settings)
        alone = time.perf_counter() - begun
    rows = [
        {"engine": "none: a loop", "seconds": alone, "a run (ms)": alone / N_DISCRETE * 1e3, "cost (ms)": 0.0}
    ]
    for n_jobs in (1, 2):
        sweep(runs[:4], folder / f"start{n_jobs}", n_jobs=n_jobs)  # starts and compiles the workers
        seconds = sweep(runs, folder / f"discrete{n_jobs}", n_jobs=n_jobs).seconds
        rows.append(
            {
                "engine": f"{n_jobs} process{'es' * (n_jobs > 1)}",
                "seconds": seconds,
                "a run (ms)": seconds / N_DISCRETE * 1e3,
                # With several processes a run shares the wall clock with others.
                "cost (ms)": (seconds * n_jobs - alone) / N_DISCRETE * 1e3,
            }
        )
    begun = time.perf_counter()
    sweep(runs, folder / "discrete1", n_jobs=1)
    again = time.perf_counter() - begun
    per_run = again / N_DISCRETE * 1e3
    rows.append(
        {"engine": "all stored already", "seconds": again, "a run (ms)": per_run, "cost (ms)": per_run}
    )
    show(
        f"sweep overhead: {N_DISCRETE} short discrete runs", rows, "Cost: over the plain loop, in core time."
    )
