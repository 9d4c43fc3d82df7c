"""Runs of learned funnels: fit on one part of the records, judge the releases of the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..estimators import estimator
from .data import Records


def fit_and_audit(method: str, settings: Mapping[str, Any], seed: int, records: Records) -> dict[str, Any]:
    """Fit a learned funnel on the training part; judge its releases of the other part."""
    fitted = {name: value for name, value in settings.items() if name != "adversaries"}
    if "hidden" in fitted:
        fitted["hidden"] = tuple(fitted["hidden"])
    model = estimator(method)(**fitted, random_state=seed, release_state=seed, device="cpu", progress=False)
    model.fit(records.x_train, records.y_train)
    refuse_interrupted(model.status_)
    codes = model.transform(records.x_test)
    more = {"private": records.y_test} if model.decoder_needs_private else {}
    restored = model.inverse_transform(codes, **more)
    numbers = {
        "status": model.status_.name,
        "n_parameters": sum(p.numel() for p in model.modules_.parameters()),
        **reconstruction_quality(records.x_test, restored),
        **audit_codes(codes, records.y_test, settings.get("adversaries"), seed),
    }
    if records.target_test is not None:
        numbers["target_auc"] = target_auc(codes, records.target_test, seed)
    return numbers


def reconstruction_quality(x: NDArray[Any], restored: NDArray[Any]) -> dict[str, float]:
    """Mean squared error by value, and for values in [0, 1] the peak signal-to-noise ratio in dB."""
    from ..audit.reconstruction import psnr, squared_errors

    error = float(squared_errors(np.asarray(x, np.float64), np.asarray(restored, np.float64)).mean())
    quality = {"mse": error}
    if x.min() >= 0 and x.max() <= 1 and error > 0:
        quality["psnr"] = psnr(error, 1.0)
    return quality


def audit_codes(
    codes: NDArray[Any], private: NDArray[Any], names: list[str] | None, seed: int
) -> dict[str, float]:
    """What adversaries find in released codes. This is the one place where a sweep chooses them.

    One with labels learns from one half and is judged on the other: its bits are a lower bound on I(Z;Y), its
    success is the share of classes guessed; `success` and `leakage_bound` are those of the strongest one.
    Clusters are formed on all codes and named by the classes that fit them best, as in the paper.

    Parameters
    ----------
    names : list of str, optional
        Those of `audit.default_adversaries`, and "KMeans" or "UMAP and KMeans"; by default the former.
    """
    from ..audit import default_adversaries, fold_numbers, leakage_lower_bound
    from ..audit.adversaries.clustering import ClusteringAdversary

    with_labels: dict[str, Any] = {adversary.name: adversary for adversary in default_adversaries(seed)}
    clustering = {one.name: one for one in (ClusteringAdversary(False), ClusteringAdversary(True))}
    wanted = list(with_labels) if names is None else names
    if missing := [name for name in wanted if name not in with_labels and name not in clustering]:
        known = ", ".join([*with_labels, *clustering])
        raise InvalidInputError(f"there is no adversary {missing[0]!r}; choose from {known}.")
    halves = fold_numbers(private, 2, seed)
    learn, judge = halves == 0, halves == 1
    found: dict[str, float] = {}
    bounds = []
    for name in wanted:
        label = name.replace(" ", "_")
        if name in clustering:
            found[f"success_{label}"] = _clustering_success(clustering[name], codes, private, seed)
            continue
        bound = leakage_lower_bound(
            with_labels[name], codes[learn], private[learn], codes[judge], private[judge], random_state=seed
        )
        found[f"leakage_bound_{label}"] = bound.value
        found[f"leakage_error_{label}"] = bound.standard_error
        found[f"success_{label}"] = bound.success
        found["chance"] = bound.chance
        bounds.append(bound)
    if bounds:
        found["leakage_bound"] = max(bound.value for bound in bounds)
        found["success"] = max(bound.success for bound in bounds)
    return found


def _clustering_success(adversary: Any, codes: NDArray[Any], private: NDArray[Any], seed: int) -> float:
    from ..audit.adversaries.clustering import match_clusters

    classes, y = np.unique(private, return_inverse=True)
    points = adversary.embedding(np.asarray(codes, dtype=np.float64), seed)
    clusters = adversary.clusters(points, len(classes), seed)
    names = match_clusters(clusters, y, int(clusters.max()) + 1, len(classes))
    return float((names[clusters] == y).mean())


def target_auc(codes: NDArray[Any], target: NDArray[Any], seed: int) -> float:
    """How well a user who knows other people's targets predicts them from codes: area under the curve."""
    from sklearn.metrics import roc_auc_score

    from ..audit import boosted_trees, fold_numbers

    halves = fold_numbers(target, 2, seed)
    user = boosted_trees(seed).fit(codes[halves == 0].astype(np.float64), target[halves == 0].astype(np.intp))
    scores = np.asarray(user.predict_proba(codes[halves == 1].astype(np.float64)))[:, 1]
    return float(roc_auc_score(target[halves == 1], scores))


def refuse_interrupted(status: Any) -> None:
    """Ctrl-C makes solvers return the best so far; that is no result of the run."""
    if status.name == "INTERRUPTED":
        raise KeyboardInterrupt
