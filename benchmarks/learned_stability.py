"""Whether training runs away: alternating steps against both at once, by learning rate, on scikit-learn's
digits."""

from __future__ import annotations

import math
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits

from privacyfunnel.errors import ConvergenceWarning
from privacyfunnel.learned import Funnel

from .learned import Row, mean_and_range, publish, summary

SEEDS = range(3)
RATES = (3e-4, 1e-3, 3e-3)
N_STEPS = 240  # of each fit at the largest rate; slower ones take as many more
FIXED = {"n_components": 8, "hidden": (64, 64), "batch_size": 64, "alpha": 0.02, "beta": 3.0}
CLASSIFIERS = {
    "linear, 1 step": {"classifier": "linear", "classifier_steps": 1},
    "MLP, 3 steps": {"classifier": "mlp", "classifier_steps": 3},
}
N_TRAIN = 1000
TITLE = "Stability of the learned funnel: digits, 8 components, β = 3, α = 0.02"
NOTE = (
    "Error: mean squared error of the reconstruction of 797 new digits by that of the mean image; above 1 is "
    "worse than no code at all. Mean over {seeds} seeds, least and largest. Every fit has as many epochs as "
    "its learning rate needs to come as far: {epochs}."
)


def main(output: Path | None = None) -> None:
    torch.set_num_threads(1)
    bunch = load_digits()
    x, y = (bunch.data / 16).astype(np.float32), bunch.target
    train, new = x[:N_TRAIN], x[N_TRAIN:]
    nothing = float(((train.mean(axis=0) - new) ** 2).mean())
    epochs = {rate: round(N_STEPS * RATES[-1] / rate / (N_TRAIN / 64)) for rate in RATES}
    runs: list[Row] = []
    for rate in RATES:
        for name, classifier in CLASSIFIERS.items():
            for schedule in ("alternating", "simultaneous"):
                for seed in SEEDS:
                    model = Funnel.written(
                        **FIXED,
                        **classifier,
                        schedule=schedule,
                        learning_rate=rate,
                        epochs=epochs[rate],
                        random_state=seed,
                        release_state=seed,
                        progress=False,
                    )
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", ConvergenceWarning)
                        model.fit(train, y[:N_TRAIN])
                    error = ((model.inverse_transform(model.transform(new)) - new) ** 2).mean() / nothing
                    divergence = model.progress_.history[-1]["divergence"]
                    label = f"{schedule}, {name}, learning rate {rate:g}"
                    runs.append({"what": label, "seed": seed, "error": float(error), "bits": divergence})
    table = summary(runs, "what", {"error": mean_and_range, "bits": lambda v: mean_and_range(v, 0)})
    for row in table:
        errors = [run["error"] for run in runs if run["what"] == row["what"]]
        row["worse than no code"] = f"{sum(error > 1 for error in errors)} of {len(errors)}"
    note = NOTE.format(seeds=len(SEEDS), epochs=", ".join(f"{n} at {rate:g}" for rate, n in epochs.items()))
    assert all(math.isfinite(run["error"]) for run in runs)
    publish("learned-stability", TITLE, table, runs, [note], {**FIXED, "epochs": epochs}, output)
