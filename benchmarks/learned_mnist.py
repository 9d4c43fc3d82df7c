"""MNIST, digit private: what the leakage term does to the picture and to two adversaries."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from privacyfunnel.auditing import leakage_lower_bound, neural_network
from privacyfunnel.datasets import load_mnist
from privacyfunnel.learned import Funnel

from .learned import SCHEDULES, Row, mean_and_spread, publish, summary

SEEDS = (1, 2, 3)
SETTINGS = {"n_components": 256, "epochs": 15, "alpha": 0.01, "beta": 0.05}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    "without the leakage term": {"leakage_weight": 0.0},
    "linear classifier, one step": {},
    "MLP classifier, three steps": {"classifier": "mlp", "classifier_steps": 3},
}
METHODS: dict[str, dict[str, Any]] = {
    f"{name}, {schedule}": {**options, "schedule": schedule}
    for schedule in SCHEDULES
    for name, options in CLASSIFIERS.items()
} | {
    # What the published prototype does in place of the paper's Gaussian.
    "linear classifier, one step, alternating, likelihood=bernoulli": {
        "schedule": "alternating",
        "likelihood": "bernoulli",
    }
}
N_ADVERSARY = 10_000  # codes of training images that the supervised adversary learns from

TITLE = "MNIST, digit private: d = 256, 15 epochs, α = 0.01, β = 0.05"
NOTE = (
    "Mean ± standard deviation over seeds, of training and of UMAP alike. PSNR in dB, on the test images, "
    "from a released code; CPU seconds of training, on one thread. Clustering: share of test digits that "
    "UMAP (2 components), KMeans (10) and the best "
    "matching of clusters to digits get right, without any label. MLP: share of test digits that a network "
    "gets right which was trained on codes of {n} training images, and the bits it proves to be in a code (a "
    "lower bound on I(Z;Y)). Chance is {chance:.3f}, H(Y) {entropy:.3f} bit. All have the paper's objective; "
    "its setting is the linear classifier, one step, alternating (Funnel.written)."
)
COLUMNS = {
    "PSNR": lambda values: mean_and_spread(values, 2),
    "clustering": mean_and_spread,
    "MLP": mean_and_spread,
    "MLP bits": mean_and_spread,
    "CPU seconds": lambda values: mean_and_spread(values, 0),
}


def main(output: Path | None = None) -> None:
    torch.set_num_threads(1)
    runs: list[Row] = []
    for seed in SEEDS:
        runs += runs_of(seed)
        report(runs, output)


def runs_of(seed: int) -> list[Row]:
    """The images themselves, as what adversaries find where nothing is hidden, and all methods."""
    data = load_mnist()
    x_train, x_test = (x.reshape(len(x), -1) for x in (data.x_train, data.x_test))
    some = np.random.default_rng(0).permutation(len(x_train))[:N_ADVERSARY]
    raw = judge(x_train[some], data.y_train[some], x_test, data.y_test, seed)
    runs: list[Row] = [
        {"method": "the images themselves", "seed": seed, "PSNR": None, **raw, "CPU seconds": None}
    ]
    for method, options in METHODS.items():
        model = Funnel.written(**SETTINGS, **options, random_state=seed, release_state=seed, progress=False)
        begun = time.process_time()
        model.fit(x_train, private=data.y_train)
        seconds = time.process_time() - begun
        codes = model.transform(x_test)
        error = float(np.square(model.inverse_transform(codes) - x_test).mean())
        found = judge(model.transform(x_train[some]), data.y_train[some], codes, data.y_test, seed)
        psnr = -10 * math.log10(error)
        runs.append({"method": method, "seed": seed, "PSNR": psnr, **found, "CPU seconds": seconds})
        print(runs[-1], flush=True)
    return runs


def report(runs: list[Row], output: Path | None) -> None:
    """The page of the runs so far."""
    digits = load_mnist("uint8").y_test
    share = np.bincount(digits) / len(digits)
    entropy = -(share * np.log2(share)).sum()
    note = NOTE.format(n=N_ADVERSARY, chance=share.max(), entropy=entropy)
    settings = {**SETTINGS, "seeds": SEEDS}
    publish("learned-mnist", TITLE, summary(runs, "method", COLUMNS), runs, [note], settings, output)


def judge(
    codes: NDArray[Any], digits: NDArray[Any], codes_test: NDArray[Any], digits_test: NDArray[Any], seed: int
) -> Row:
    """What both adversaries find in the test codes."""
    bound = leakage_lower_bound(neural_network(seed), codes, digits, codes_test, digits_test, n_folds=2)
    return {
        "clustering": clustered(codes_test, digits_test, seed),
        "MLP": bound.success,
        "MLP bits": bound.value,
    }


def clustered(codes: NDArray[Any], labels: NDArray[Any], seed: int) -> float:
    """Share of labels that clusters get right, each cluster named by the best one-to-one matching."""
    from sklearn.cluster import KMeans
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP says that a seed costs it its threads
        points = UMAP(n_components=2, random_state=seed, n_jobs=1).fit_transform(codes)
    clusters = KMeans(10, n_init=10, random_state=seed).fit_predict(points)
    counts = np.zeros((10, 10), dtype=int)
    np.add.at(counts, (clusters, labels), 1)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(labels))
