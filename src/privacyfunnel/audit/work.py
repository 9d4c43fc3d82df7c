"""The fits of an audit as independent pieces of work, done on several cores, the longest first."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..progress import Report
from .adversaries.clustering import ClusteringAdversary
from .adversaries.crossfit import check_probabilities, predict
from .adversaries.numeric import predict_values
from .adversaries.protocol import Adversary, CrossPredictor, NumericAdversary
from .adversaries.supervised import reseeded
from .graph import NeighbourGraph

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Cells of all tables below which starting other processes costs more than they save.
SMALL = 200_000
#: Seconds until an embedding begins: numba compiles it in every process.
EMBEDDING = 30.0


@dataclass(frozen=True, eq=False)
class Piece:
    """One piece of work: `function(*arguments)`, whose result is kept under `key`."""

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    cost: float = 0.0  # seconds on one core, roughly: the costly ones begin first
    text: str = ""  # for the progress bar
    setup: float = 0.0  # seconds before the first such piece of a process begins


def run_pieces(pieces: Sequence[Piece], n_jobs: int, report: Report) -> dict[Hashable, Any]:
    """The results by key. Every piece has its own seed, so their order and place change nothing."""
    ordered = sorted(pieces, key=lambda piece: -piece.cost - piece.setup)
    results: dict[Hashable, Any] = {}
    size = sum(part.size for piece in pieces for part in piece.arguments if isinstance(part, np.ndarray))
    if n_jobs == 1 or size < SMALL:
        for done, piece in enumerate(ordered):
            report(done, len(ordered), piece.text)
            results[piece.key] = piece.function(*piece.arguments)
        return results
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    calls = (delayed(_numbered)(i, piece.function, piece.arguments) for i, piece in enumerate(ordered))
    report(0, len(ordered), "starting")
    with warnings.catch_warnings():
        # joblib replaces a worker whose memory has grown and warns, in a thread of its own: where warnings
        # are errors, that thread would die and the results never come.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        for done, (i, result) in enumerate(parallel(calls), 1):
            results[ordered[i].key] = result
            report(done, len(ordered), ordered[i].text)
    return results


def expected_seconds(pieces: Sequence[Piece], n_jobs: int) -> float:
    """How long the pieces will take, roughly: at least the longest, and all of them shared among cores."""
    cores = n_jobs if n_jobs > 0 else os.cpu_count() or 1
    longest = max((piece.cost for piece in pieces), default=0.0)
    setup = max((piece.setup for piece in pieces), default=0.0)
    return setup + max(sum(piece.cost for piece in pieces) / cores, longest)


def _numbered(i: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[int, Any]:
    return i, function(*arguments)


def class_pieces(
    key: tuple[Hashable, ...],
    adversary: Adversary | CrossPredictor,
    Z: FloatArray,
    y: IntArray,
    folds: IntArray,
    n_classes: int,
    seed: int,
) -> list[Piece]:
    """The cross-fit of one adversary: a piece a fold, or one piece where it predicts all folds at once."""
    text = f"{adversary.name} on {key[-2]}"
    if isinstance(adversary, CrossPredictor):
        cost = _cost(adversary, len(Z), Z.shape[1], n_classes)
        return [Piece((*key, 0), _cross_predict, (adversary, Z, y, folds, n_classes), cost, text)]
    cost = _cost(adversary, len(Z), Z.shape[1], n_classes)
    return [
        Piece((*key, fold), _fit_fold, (adversary, Z, y, folds, fold, n_classes, seed), cost, text)
        for fold in range(int(folds.max()) + 1)
    ]


def class_result(results: dict[Hashable, Any], key: tuple[Hashable, ...], folds: IntArray) -> FloatArray:
    """The cross-fitted P(y|z), (n, n_classes), from the pieces of `class_pieces`."""
    first: FloatArray = results[(*key, 0)]
    if len(first) == len(folds):
        return first
    q = np.empty((len(folds), first.shape[1]))
    for fold in range(int(folds.max()) + 1):
        q[folds == fold] = results[(*key, fold)]
    return q


def number_piece(
    key: Hashable,
    adversary: NumericAdversary,
    Z: FloatArray,
    values: FloatArray,
    folds: IntArray,
    seed: int,
    text: str,
) -> Piece:
    """The cross-fit of one adversary for numbers, all folds."""
    cost = (int(folds.max()) + 1) * _cost(adversary, len(Z), Z.shape[1], 1)
    return Piece(key, _fit_numbers, (adversary, Z, values, folds, seed), cost, text)


def cluster_piece(
    key: Hashable,
    adversaries: tuple[ClusteringAdversary, ...],
    Z: FloatArray,
    graph: NeighbourGraph | None,
    sizes: tuple[int, ...],
    seed: int,
    text: str,
) -> Piece:
    """One embedding for several adversaries; gives (points, {(name, n_classes): clusters})."""
    embed = adversaries[0].embed
    cost = 2e-3 * len(Z) if embed else 2e-7 * Z.size * sum(sizes)
    arguments = adversaries, Z, graph, sizes, seed
    return Piece(key, _cluster, arguments, cost, text, EMBEDDING if embed else 0.0)


def _fit_fold(
    adversary: Adversary, Z: FloatArray, y: IntArray, folds: IntArray, fold: int, n_classes: int, seed: int
) -> FloatArray:
    held = folds == fold
    # A copy: fits of one adversary may run at the same time.
    return predict(reseeded(adversary, seed), Z[~held], y[~held], Z[held], n_classes)


def _cross_predict(adversary: Any, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
    q = np.asarray(adversary.cross_predict(Z, y, folds, n_classes), dtype=np.float64)
    check_probabilities(adversary, q, (len(Z), n_classes))
    return q


def _fit_numbers(
    adversary: NumericAdversary, Z: FloatArray, values: FloatArray, folds: IntArray, seed: int
) -> FloatArray:
    result = np.empty(len(Z))
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        result[held] = predict_values(reseeded(adversary, seed), Z[~held], values[~held], Z[held])
    return result


def _cluster(
    adversaries: tuple[ClusteringAdversary, ...],
    Z: FloatArray,
    graph: NeighbourGraph | None,
    sizes: tuple[int, ...],
    seed: int,
) -> tuple[FloatArray, dict[tuple[str, int], IntArray]]:
    points = adversaries[0].embedding(Z, seed, graph)
    return points, {
        (one.name, size): one.clusters(points, size, seed) for one in adversaries for size in sizes
    }


def _cost(adversary: Any, n: int, d: int, n_classes: int) -> float:
    """Seconds that a fit on n records takes on one core, roughly; an unknown one counts as trees."""
    name = adversary.name
    if "neighbour" in name:
        return 1e-10 * n**2 * d
    if "network" in name:
        return 1.2e-6 * n * (d + 30)
    if "logistic" in name or "ridge" in name:
        return 8e-8 * n * d * n_classes
    if "residues" in name or "order" in name:
        return 1e-6 * n * (d + 10)
    if "counts" in name:
        return 1e-7 * n
    return 0.3 + 8e-7 * n * d * (n_classes if n_classes > 2 else 1)
