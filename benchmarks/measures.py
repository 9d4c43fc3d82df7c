"""Other measures than information, on cells of Adult: CPU seconds and the gap that is proved.

Cells are k-means clusters of standardised numbers and one-hot categories, without fnlwgt and education-num,
the private column and the task, which is income. The points of a distance are the cells' centres.
"""

from __future__ import annotations

import time
import warnings
from functools import cache
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.cluster import KMeans

import privacyfunnel as pf
from privacyfunnel.datasets import load_adult

from .report import show

TASK = "income-per-year"
LEFT_OUT = ("fnlwgt", "education-num", TASK)
#: Cells, what is private, utility, leakage, limit on lift, the relative gap to prove, and the seconds for it.
CASES: list[tuple[int, str, str, str, float | None, float, float]] = [
    (256, "sex", "distance", "information", None, 1e-4, 2.0),
    (256, "sex", "task", "information", None, 1e-4, 2.0),
    (1024, "sex", "distance", "information", None, 1e-4, 20.0),
    (1024, "sex", "task", "information", None, 1e-4, 20.0),
    (256, "sex", "distance", "success", None, 1e-4, 1.0),
    (256, "sex", "distance", "parity", None, 1e-4, 1.0),
    (256, "sex", "distance", "information", 0.2, 1e-4, 1.0),
    (256, "sex", "distance", "success", 0.2, 1e-4, 1.0),
    (256, "sex", "task", "success", None, 1e-4, 1.0),
    (256, "sex", "task", "parity", None, 1e-4, 1.0),
    (256, "sex", "task", "parity", 0.2, 1e-4, 1.0),
    (256, "race", "distance", "information", None, 1e-2, 20.0),
]
SHARES = (0.02, 0.1, 0.5)  # of what X itself leaks, that may leak


@cache
def table() -> dict[str, np.ndarray]:
    frame = nw.from_native(load_adult())
    return {name: frame[name].to_numpy() for name in frame.columns}


@cache
def cells(n: int, private: str) -> tuple[np.ndarray, np.ndarray]:
    """The cell of every person, and the centres."""
    parts = []
    for name, column in table().items():
        if name in LEFT_OUT or name == private:
            continue
        if np.issubdtype(column.dtype, np.number):
            parts.append(((column - column.mean()) / column.std())[:, None])
        else:
            parts.append(np.equal.outer(column, np.unique(column)).astype(float))
    found = KMeans(n, n_init=1, random_state=0).fit(np.hstack(parts))
    used, letters = np.unique(found.labels_, return_inverse=True)
    return letters, found.cluster_centers_[used]


def counts(letters: np.ndarray, column: np.ndarray) -> np.ndarray:
    values, at = np.unique(column, return_inverse=True)
    found = np.zeros((letters.max() + 1, values.size))
    np.add.at(found, (letters, at), 1.0)
    return found


def problem(n: int, private: str, utility: str) -> tuple[pf.Joint, pf.Distance | pf.Task]:
    letters, centres = cells(n, private)
    joint = pf.Joint(counts(letters, table()[private]) / letters.size)
    if utility == "distance":
        return joint, pf.Distance(centres)
    told = counts(letters, table()[TASK])
    return joint, pf.Task(told / told.sum(axis=1, keepdims=True))


def row(
    n: int,
    private: str,
    utility: str,
    leakage: str,
    lift: float | None,
    wanted: float,
    seconds: float,
    share: float = 0.1,
) -> dict[str, Any]:
    joint, measure = problem(n, private, utility)
    asked = pf.measures.Measures(measure, leakage)
    least, most = asked.without_release(joint.p_y), asked.leakage_of(joint.p_xy, np.eye(joint.n_x))
    whole = asked.utility_of(joint.p_x, np.eye(joint.n_x))
    # A tolerance of a distance is a share of the whole, that of a task is in bits; what is found is less.
    tol = wanted * (0.3 if utility == "distance" else 0.3 * whole)
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pf.errors.ConvergenceWarning)
        found = pf.solve(
            joint,
            max_leakage=least + share * (most - least),
            utility=measure,
            leakage=leakage,
            max_lift=lift,
            tol=tol,
            time_limit=20.0 * seconds,
            rng=0,
            n_jobs=1,
            progress=False,
        )
    spent = time.process_time() - begun
    gap = (found.gap or 0.0) / found.utility
    return {
        "cells": n,
        "private": private,
        "utility": utility,
        "leakage": leakage,
        "max lift": "" if lift is None else lift,
        "may leak": share,
        "CPU (s)": spent,
        "allowed (s)": seconds,
        "utility found": found.utility,
        "of all": found.utility / whole,
        "relative gap": gap,
        "wanted gap": wanted,
        "status": found.status.name,
        "kept": "yes" if gap <= wanted and spent <= seconds else "no",
    }


def main() -> None:
    for private, utility, leakage in (
        ("sex", "distance", "information"),
        ("sex", "task", "success"),
        ("race", "distance", "information"),
    ):
        row(16, private, utility, leakage, None, 1e-3, 5.0)  # compile
    show(
        "measures: cells of Adult, a share of what X leaks may leak, one core",
        [row(*case, share) for case in CASES for share in SHARES],
    )
