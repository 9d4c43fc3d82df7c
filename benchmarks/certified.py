"""The certified funnel on Adult, German credit, digits and MNIST: what is guaranteed, found and kept."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacyfunnel.certified import CertifiedFunnel
from privacyfunnel.datasets import load_adult, load_digits, load_german_credit, load_mnist
from privacyfunnel.errors import InfeasibleError

from .learned import Row, mean_and_range, publish, summary

SEEDS = (21, 22, 23)  # of the split, the fit and the judges; settings were chosen on others
N_FIT = 24_000  # of Adult; the others are fresh
TITLE = "Certified funnel: what is guaranteed, what is found in fresh records, and what is kept"
NOTES = (
    "Mean and range over three splits. Guaranteed: bits that no adversary exceeds on a new person, 95 %. "
    "Found: bits that counting finds in the symbols of fresh records, learnt from half, scored on the "
    "other; it must not be above the guarantee. Kept: share of the variance of fresh records (PSNR for "
    "images of pixels in [0, 1]). AUC(Z): income from the symbol; raw: from the whole record. Rows: boosted "
    "trees trained on released rows with the people's true income and tested on real records. CPU seconds "
    "of the fit.",
)
ADULT = (
    "Adult: sex private, all columns but the survey weight fnlwgt; 24,000 records to fit (a third of them to "
    "certify), 8,561 fresh."
)
COLUMNS: dict[str, Callable[..., str]] = {
    "guaranteed": lambda values: mean_and_range(values, 3),
    "found": lambda values: mean_and_range(values, 4),
    "kept": mean_and_range,
    "PSNR": lambda values: mean_and_range(values, 2),
    "AUC(Z)": mean_and_range,
    "AUC raw": mean_and_range,
    "rows": mean_and_range,
    "cells": lambda values: mean_and_range(values, 0),
    "CPU seconds": lambda values: mean_and_range(values, 1),
}
EMPTY: Row = dict.fromkeys(COLUMNS)


def main(output: Path | None = None) -> None:
    adult = load_adult().drop(columns="fnlwgt")
    runs = [row for seed in SEEDS for row in adult_runs(adult, seed)] + [
        row for seed in SEEDS for row in digits_runs(seed)
    ]
    _publish("certified", runs, [ADULT, f"German credit, sex private: {german()}"], output)


def images(output: Path | None = None) -> None:
    """MNIST, by its own name: half a minute of CPU a fit."""
    runs = [row for seed in SEEDS for row in mnist_runs(seed)]
    _publish(
        "certified-images", runs, ["MNIST: the fits differ, the 10,000 fresh images are the same."], output
    )


def _publish(name: str, runs: list[Row], notes: list[str], output: Path | None) -> None:
    used = {key: text for key, text in COLUMNS.items() if any(run[key] is not None for run in runs)}
    publish(name, TITLE, summary(runs, "what", used), runs, [*NOTES, *notes], {"seeds": list(SEEDS)}, output)


def adult_runs(adult: Any, seed: int) -> list[Row]:
    """With and without the task."""
    income = adult["income-per-year"].str.startswith(">50K").to_numpy().astype(int)
    order = np.random.default_rng(seed).permutation(len(adult))
    fit, fresh = order[:N_FIT], order[N_FIT:]
    rows = []
    for what, settings, task in (
        ("Adult, .05 bit, income is the task", {"max_leakage": 0.05}, "income-per-year"),
        ("Adult, .05 bit, no task", {"max_leakage": 0.05}, None),
    ):
        table = adult if task else adult.drop(columns="income-per-year")
        funnel, seconds = fitted(table.iloc[fit], seed, private="sex", task=task, **settings)
        symbols, known = (
            funnel.transform(table.iloc[fresh], rng=seed),
            funnel.transform(table.iloc[fit], rng=seed),
        )
        rates = smoothed(known, income[fit], funnel.rule_.n_symbols)
        points = funnel.rule_.reader.points(table.iloc[fresh])
        rows.append(
            EMPTY
            | {
                "what": what,
                "guaranteed": funnel.certificate_.value,
                "found": found(symbols, (adult["sex"].iloc[fresh] == "Male").to_numpy(), seed),
                "kept": explained(
                    points, funnel.rule_.points[symbols], funnel.rule_.reader.points(table.iloc[fit])
                ),
                "AUC(Z)": auc(income[fresh], rates[symbols]),
                "AUC raw": raw_auc(
                    table.drop(columns=["sex", *([task] if task else [])]), income, fit, fresh, seed
                ),
                "rows": rows_auc(funnel, table, income, fit, fresh, task, seed),
                "cells": funnel.rule_.cells.n_cells,
                "CPU seconds": seconds,
            }
        )
    return rows


def digits_runs(seed: int) -> list[Row]:
    images, digits, new, new_digits = load_digits()
    return [
        image_run("digits 8 × 8, parity private, .4 bit", 0.4, images, digits % 2, new, new_digits % 2, seed)
    ]


def mnist_runs(seed: int) -> list[Row]:
    images, digits, new, new_digits = load_mnist()
    odd = image_run("MNIST, parity private, .05 bit", 0.05, images, digits % 2, new, new_digits % 2, seed)
    digit = image_run("MNIST, digit private, .3 bit", 0.3, images, digits, new, new_digits, seed)
    return [odd, digit]


def image_run(
    what: str,
    limit: float,
    images: NDArray[Any],
    y: NDArray[Any],
    new: NDArray[Any],
    new_y: NDArray[Any],
    seed: int,
) -> Row:
    funnel, seconds = fitted(images, seed, private=y, max_leakage=limit)
    symbols = funnel.transform(new, rng=seed)
    back = funnel.inverse_transform(symbols)
    mean_square = float(np.square(new - back).mean())
    return EMPTY | {
        "what": what,
        "guaranteed": funnel.certificate_.value,
        "found": found(symbols, new_y, seed),
        "kept": 1 - mean_square / float(np.square(new - images.mean(axis=0)).mean()),
        "PSNR": -10 * np.log10(mean_square),
        "cells": funnel.rule_.cells.n_cells,
        "CPU seconds": seconds,
    }


def german() -> str:
    """What is said of 1,000 records at .05 bit, and what a larger limit gives."""
    people = load_german_credit()
    people = people.drop(columns=["personal_status"])
    try:
        CertifiedFunnel(0.05, random_state=SEEDS[0]).fit(people, private="sex", task="credit")
        said = "a limit of .05 bit was certified."
    except InfeasibleError as error:
        said = f"“{error}”"
    larger = CertifiedFunnel(0.3, random_state=SEEDS[0]).fit(people, private="sex", task="credit")
    return f"{said} With .3 bit: {larger.verdict_}"


def fitted(
    X: Any, seed: int, *, private: Any, task: Any = None, **settings: Any
) -> tuple[CertifiedFunnel, float]:
    begun = time.process_time()
    funnel = CertifiedFunnel(random_state=seed, **settings).fit(X, private=private, task=task)
    seconds = time.process_time() - begun
    print(f"{seconds:.1f} s: {funnel.verdict_}", flush=True)
    return funnel, seconds


def found(symbols: NDArray[Any], y: NDArray[Any], seed: int) -> float:
    """Bits that counting, the best judge of a symbol, learns from half of the records, shown on the other."""
    _, numbers = np.unique(y, return_inverse=True)
    half = np.random.default_rng(seed).permutation(len(y)) < len(y) // 2
    reached = []
    for part in (half, ~half):
        counts = np.zeros((int(symbols.max()) + 1, int(numbers.max()) + 1))
        np.add.at(counts, (symbols[part], numbers[part]), 1)
        overall = counts.sum(axis=0) / counts.sum()
        rates = (counts + 2 * overall) / (counts.sum(axis=1, keepdims=True) + 2)
        truth = np.bincount(numbers[~part]) / (~part).sum()
        entropy = -float(truth @ np.log2(truth))
        reached.append(entropy + float(np.log2(rates[symbols[~part], numbers[~part]]).mean()))
    return max(float(np.mean(reached)), 0.0)


def explained(points: NDArray[Any], released: NDArray[Any], fit: NDArray[Any]) -> float:
    return 1 - float(np.square(points - released).sum() / np.square(points - fit.mean(axis=0)).sum())


def smoothed(symbols: NDArray[Any], labels: NDArray[Any], n: int) -> NDArray[Any]:
    rates: NDArray[Any] = (np.bincount(symbols, labels, n) + labels.mean()) / (
        np.bincount(symbols, minlength=n) + 1
    )
    return rates


def auc(truth: NDArray[Any], score: NDArray[Any]) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, score))


def coded(frame: Any, like: Any) -> NDArray[Any]:
    """Columns as numbers, texts by their place among the values of another frame."""
    import pandas as pd

    return np.column_stack(
        [
            frame[name].to_numpy(dtype=float)
            if pd.api.types.is_numeric_dtype(like[name])
            else frame[name]
            .map({value: i for i, value in enumerate(sorted(like[name].unique()))})
            .to_numpy(dtype=float)
            for name in frame.columns
        ]
    )


def trees(x: NDArray[Any], t: NDArray[Any], new: NDArray[Any], seed: int) -> NDArray[Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    scores: NDArray[Any] = (
        HistGradientBoostingClassifier(random_state=seed).fit(x, t).predict_proba(new)[:, 1]
    )
    return scores


def raw_auc(frame: Any, income: NDArray[Any], fit: NDArray[Any], fresh: NDArray[Any], seed: int) -> float:
    x = coded(frame, frame)
    return auc(income[fresh], trees(x[fit], income[fit], x[fresh], seed))


def rows_auc(
    funnel: CertifiedFunnel,
    table: Any,
    income: NDArray[Any],
    fit: NDArray[Any],
    fresh: NDArray[Any],
    task: str | None,
    seed: int,
) -> float:
    """Trees that learn income from released rows with true labels, tested on real records."""
    released = funnel.release(table.iloc[fit], rng=seed)
    released = released.drop(columns=[task]) if task else released
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, new = coded(released, table), coded(table.iloc[fresh][list(released.columns)], table)
    return auc(income[fresh], trees(x, income[fit], new, seed))
