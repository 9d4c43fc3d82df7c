"""A default audit of 10,000 codes of width 64 against the naive order of the same work.

The naive order goes from number to number: for the success of an adversary it is fitted, for its bits it is
fitted again, each embedding finds its neighbours anew and is made once to name its clusters from other folds
and once from all records; one after the other, on one core. The numbers are the same, which is checked.
"""

from __future__ import annotations

import numpy as np

import privacyfunnel as pf
from privacyfunnel.auditing import ClusteringAdversary, default_adversaries, fold_numbers
from privacyfunnel.auditing.adversaries.bounds import bound_of, cross_calibrated, cross_fitted
from privacyfunnel.auditing.adversaries.clustering import cross_matched, match_clusters, umap_embedding

from .report import show, timed

N, WIDTH, CLASSES, FOLDS, REPEATS, SEED = 10_000, 64, 10, 3, 3, 0


def codes() -> tuple[np.ndarray, np.ndarray]:
    """Classes that overlap: an attack that succeeds in some four of five cases."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, N)
    return 0.35 * rng.normal(size=(CLASSES, WIDTH))[y] + rng.normal(size=(N, WIDTH)), y


def naive(Z: np.ndarray, y: np.ndarray) -> dict[tuple[str, str], float]:
    """Success and bits of every adversary, one number after the other."""
    folds = fold_numbers(y, FOLDS, SEED)
    found = {}
    for adversary in default_adversaries(SEED, CLASSES):
        for quantity in ("success", "leakage"):
            q, calibration = cross_calibrated(cross_fitted(adversary, Z, y, folds, CLASSES), y, folds)
            bound = bound_of(adversary.name, q, y, 0.95, N, calibration)
            found[quantity, adversary.name] = bound.success if quantity == "success" else bound.value
    for adversary in (ClusteringAdversary(embed=True), ClusteringAdversary(embed=False)):
        for quantity in ("success", "matched success"):
            hits = []
            for repeat in range(REPEATS):
                seed = int(np.random.default_rng([SEED, 3, repeat]).integers(2**31))
                points = umap_embedding(Z, seed) if adversary.embed else Z
                clusters = adversary.clusters(points, CLASSES, seed)
                if quantity == "success":
                    guesses = cross_matched(clusters, y, folds, CLASSES)
                else:
                    guesses = match_clusters(clusters, y, CLASSES, CLASSES)[clusters]
                hits.append((guesses == y).mean())
            found[quantity, adversary.name] = float(np.mean(hits))
    return found


def largest_difference(report: pf.AuditReport, expected: dict[tuple[str, str], float]) -> float:
    return max(
        abs(report.find(quantity, source=source, on="Z")[0].value - value)
        for (quantity, source), value in expected.items()
    )


def main() -> None:
    Z, y = codes()
    umap_embedding(Z[:200], 0)  # compile
    pf.audit(
        Z=Z[:4000], private=y[:4000], n_repeats=2, adversaries=[ClusteringAdversary()]
    )  # workers compile
    shared_seconds, shared = timed(lambda: pf.audit(Z=Z, private=y))
    one_seconds, one = timed(lambda: pf.audit(Z=Z, private=y, n_jobs=1))
    naive_seconds, expected = timed(lambda: naive(Z, y))
    rows = [
        {
            "order": order,
            "seconds": seconds,
            "times faster than naive": naive_seconds / seconds,
            "largest difference": difference,
        }
        for order, seconds, difference in (
            ("naive: every number refits, one after the other", naive_seconds, 0.0),
            ("audit on one core", one_seconds, largest_difference(one, expected)),
            ("audit on all cores", shared_seconds, largest_difference(shared, expected)),
        )
    ]
    show(f"audit: {N:,} codes of width {WIDTH}, {CLASSES} classes, every adversary, after compilation", rows)


if __name__ == "__main__":
    main()
