"""Adversaries who look at which codes lie near each other: the nearest known ones, and clusters.

Clusters are the literature's adversary: formed without labels, named after the classes that fit them best.
They understate what an adversary with labels learns, by 16 to 27 points of success on published codes, and
vary by some 0.03 with the embedding's seed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal

import numpy as np

from ...arrays import FloatArray, IntArray
from ...errors import InvalidInputError, MissingDependencyError
from ...parallel import library_threads

# Neighbours to look up for each one that is wanted from other folds: two thirds of them are, on average.
MARGIN = 3
#: Neighbours of each code in the embedding, UMAP's own default.
N_NEIGHBORS = 15
#: Rounds of the layout, UMAP's own default for large sets. Below 10,000 points it would take 500, two and a
#: half times as long: on digits the mean success of five seeds moves by 0.01, single seeds by 0.03.
N_EPOCHS = 200
#: Up to this many records the embedding starts at random: spectral starts need more points.
FEW = 50
#: The most clusters that the Ray–Turi index chooses among.
MOST_CLUSTERS = 20


@dataclass(frozen=True, eq=False)
class NeighbourGraph:
    """The k nearest neighbours of each of n codes among the others, nearest first: (n, k) tables."""

    indices: IntArray
    distances: FloatArray

    @classmethod
    def of(cls, Z: FloatArray, k: int) -> NeighbourGraph:
        """The exact graph; fewer neighbours where there are not k others."""
        k = min(k, len(Z) - 1)
        if k < 1:
            return cls(np.zeros((len(Z), 0), dtype=np.intp), np.zeros((len(Z), 0)))
        distances, indices = search(Z, None, k)
        return cls(indices, distances)

    @property
    def k(self) -> int:
        return int(self.indices.shape[1])


def search(Z: FloatArray, queries: FloatArray | None, k: int) -> tuple[FloatArray, IntArray]:
    """Distances and numbers of the k codes of Z nearest to each query; of Z itself, each without itself."""
    from sklearn.neighbors import NearestNeighbors

    with library_threads(1):
        distances, indices = NearestNeighbors(n_neighbors=k).fit(Z).kneighbors(queries)
    return distances.astype(np.float64), indices.astype(np.intp)


def scaled(Z: FloatArray, reference: FloatArray | None = None) -> FloatArray:
    """Components with mean 0 and spread 1 (in the reference); constant ones stay constant."""
    known = Z if reference is None else reference
    centre, spread = known.mean(axis=0), known.std(axis=0)
    # A spread that is rounding of the values themselves is none: dividing by it would invent a component.
    noise = 1e-12 * np.abs(known).max(axis=0, initial=0.0)
    result: FloatArray = (Z - centre) / np.where(spread > noise, spread, 1.0)
    return result


def without_ties(Z: FloatArray) -> FloatArray:
    """Codes moved a little at random: of many equal ones, not always the same few must be the nearest."""
    return Z + 1e-5 * np.random.default_rng(0).standard_normal(Z.shape)


class NeighbourAdversary:
    """The classes among the nearest known codes, on scaled components.

    One graph of neighbours serves all folds: for each record the nearest ones of other folds are picked
    from it, which are the same that a search among the other folds would find.
    """

    def __init__(self, name: str, threat_model: str, n_neighbors: int = 15) -> None:
        self.name = name
        self.threat_model = threat_model
        self.n_neighbors = n_neighbors

    def fit(self, Z: FloatArray, y: IntArray) -> NeighbourAdversary:
        self._raw = Z
        self._codes = without_ties(scaled(Z))
        self._classes, self._numbers = np.unique(y, return_inverse=True)
        return self

    def predict_proba(self, Z: FloatArray) -> FloatArray:
        k = min(self.n_neighbors, len(self._codes))
        nearest = search(self._codes, without_ties(scaled(Z, self._raw)), k)[1]
        return _shares(self._numbers[nearest], len(self._classes))

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        codes = without_ties(scaled(Z))
        graph = NeighbourGraph.of(codes, MARGIN * self.n_neighbors)
        result = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = np.flatnonzero(folds == fold)
            k = min(self.n_neighbors, len(Z) - len(held))
            known = folds[graph.indices[held]] != fold
            # Stable: known neighbours first, nearest first.
            order = np.argsort(~known, axis=1, kind="stable")[:, :k]
            nearest = np.take_along_axis(graph.indices[held], order, axis=1)
            short = held[known.sum(axis=1) < k]
            if len(short):
                rest = np.flatnonzero(folds != fold)
                found = rest[search(codes[rest], codes[short], k)[1]]
                nearest = np.pad(nearest, ((0, 0), (0, k - nearest.shape[1])))
                nearest[known.sum(axis=1) < k] = found
            result[held] = _shares(y[nearest], n_classes)
        return result

    def __repr__(self) -> str:
        return f"NeighbourAdversary({self.name!r})"


def vote_weights(k: int) -> FloatArray:
    """A vote for each neighbour, nearest first, that sum to 1: nearly equal, the nearer a little more.

    Of two classes with as many neighbours the nearer wins: with few records a class, ties are the rule.
    """
    weights = 1 + 1e-3 * np.arange(k - 1, -1, -1)
    result: FloatArray = weights / weights.sum()
    return result


def _shares(classes: IntArray, n_classes: int) -> FloatArray:
    """The share of each class in each row of class numbers, nearest first."""
    shares = np.zeros((len(classes), n_classes))
    np.add.at(shares, (np.arange(len(classes))[:, None], classes), vote_weights(classes.shape[1]))
    return shares


class ClusteringAdversary:
    """KMeans on codes or on their two-dimensional UMAP embedding, one class a cluster.

    Parameters
    ----------
    embed : bool
        Whether to cluster the embedding (needs umap-learn) or the codes themselves.
    n_clusters : int, "known" or "ray-turi"
        "known": as many as there are classes. "ray-turi": from 2 to 20, the number with the least ratio
        of the mean squared distance to the own centre and the least squared distance of two centres
        (Ray & Turi 1999).
    """

    def __init__(self, embed: bool = True, n_clusters: int | Literal["known", "ray-turi"] = "known") -> None:
        if n_clusters not in ("known", "ray-turi") and not (isinstance(n_clusters, int) and n_clusters > 0):
            raise InvalidInputError(
                f'n_clusters must be a number from 1 on, "known" or "ray-turi"; it is {n_clusters!r}.'
            )
        self.embed = embed
        self.n_clusters = n_clusters
        found = {"known": "", "ray-turi": " (k found)"}.get(str(n_clusters), f" (k = {n_clusters})")
        self.name = f"{'UMAP and ' if embed else ''}KMeans{found}"
        self.threat_model = (
            "Sees the released codes of many people at once, forms clusters without labels, and knows enough "
            "classes to name each cluster."
        )

    def embedding(self, Z: FloatArray, seed: int, graph: NeighbourGraph | None = None) -> FloatArray:
        """What is clustered: the codes, or their embedding in the plane."""
        return umap_embedding(Z, seed, graph) if self.embed else Z

    def clusters(self, points: FloatArray, n_classes: int, seed: int) -> IntArray:
        """A cluster number for each point."""
        if isinstance(self.n_clusters, int):
            return kmeans(points, self.n_clusters, seed)[0]
        if self.n_clusters == "known":
            return kmeans(points, n_classes, seed)[0]
        return ray_turi_clusters(points, seed)

    def __repr__(self) -> str:
        return f"ClusteringAdversary({self.embed}, {self.n_clusters!r})"


def import_umap() -> Any:
    """The class UMAP, or MissingDependencyError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from umap import UMAP
    except ImportError as error:
        raise MissingDependencyError(
            f"The UMAP adversary and figures of embeddings need {error.name}: pip install "
            "'privacyfunnel[audit]', or pass adversaries= without it and no figures=.",
            names=("figures",),
        ) from None
    return UMAP


def umap_embedding(
    Z: FloatArray,
    seed: int,
    graph: NeighbourGraph | None = None,
    *,
    start: Literal["spectral", "random"] = "spectral",
) -> FloatArray:
    """UMAP's two-dimensional embedding, from exact neighbours.

    A spectral start, for which there must be enough points, is nearly the same whatever the seed is.
    """
    embedding = import_umap()
    from tqdm.auto import tqdm

    if len(Z) < 4 or not np.ptp(Z, axis=0).any():  # nothing to lay out
        return np.zeros((len(Z), 2))
    k = min(N_NEIGHBORS, len(Z) - 1)
    if graph is None or graph.k < k - 1:
        graph = NeighbourGraph.of(Z, k - 1)
    # UMAP counts each point as its own first neighbour.
    own = np.arange(len(Z))
    indices = np.column_stack([own, graph.indices[:, : k - 1]])
    distances = np.column_stack([np.zeros(len(Z)), graph.distances[:, : k - 1]])
    embedder = embedding(
        n_neighbors=k,
        n_components=2,
        n_epochs=N_EPOCHS,
        init="random" if len(Z) <= FEW else start,
        random_state=seed,
        n_jobs=1,
        precomputed_knn=(indices, distances.astype(np.float32)),
    )
    if not hasattr(tqdm, "_lock"):
        # UMAP counts with tqdm, whose own lock is a semaphore of the system; a worker that is terminated
        # would leave it behind, and Python would warn of it.
        tqdm.set_lock(RLock())
    with warnings.catch_warnings():  # about transforming new codes, spectral gaps, disconnected points
        warnings.simplefilter("ignore")
        # Only the neighbours decide; numbers near the end of float32 must not overflow beside them.
        small = Z / max(1.0, float(np.abs(Z).max()) / 1e15)
        points = np.asarray(embedder.fit_transform(small.astype(np.float32)), dtype=np.float64)
    # Points without any neighbour are left out as NaN; at the centre they cost nobody anything.
    return np.nan_to_num(points, nan=0.0)


def kmeans(points: FloatArray, k: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Cluster numbers and centres of the best of ten runs."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # More runs than this cost more than they find where there are hundreds of clusters.
    n_init = 10 if k <= 50 else 1
    fitted = KMeans(min(k, len(points)), n_init=n_init, random_state=seed)
    with library_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters
        fitted.fit(points)
    return fitted.labels_.astype(np.intp), np.asarray(fitted.cluster_centers_, dtype=np.float64)


def ray_turi_clusters(points: FloatArray, seed: int) -> IntArray:
    """Cluster numbers for the number of clusters with the least Ray–Turi index."""
    best, labels = np.inf, np.zeros(len(points), dtype=np.intp)
    for k in range(2, min(MOST_CLUSTERS, len(np.unique(points, axis=0))) + 1):
        candidate, centres = kmeans(points, k, seed)
        index = ray_turi_index(points, candidate, centres)
        if index < best:
            best, labels = index, candidate
    return labels


def ray_turi_index(points: FloatArray, labels: IntArray, centres: FloatArray) -> float:
    """Mean squared distance to the own centre over the least squared distance of two centres."""
    from scipy.spatial.distance import pdist

    within = float(((points - centres[labels]) ** 2).sum(axis=1).mean())
    between = float(pdist(centres, "sqeuclidean").min())
    return within / between if between > 0 else np.inf


def match_clusters(clusters: IntArray, y: IntArray, n_clusters: int, n_classes: int) -> IntArray:
    """A class for each cluster, distinct ones, so that most of the records y are right.

    Clusters beyond the number of classes, which the optimal matching leaves over, take the largest class.
    """
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((n_clusters, n_classes), dtype=np.intp)
    np.add.at(table, (clusters, y), 1)
    names = np.full(n_clusters, int(table.sum(axis=0).argmax()), dtype=np.intp)
    matched, classes = linear_sum_assignment(table, maximize=True)
    names[matched] = classes
    return names


def cross_matched(clusters: IntArray, y: IntArray, folds: IntArray, n_classes: int) -> IntArray:
    """A guess for each record, by names that the clusters got from the records of other folds."""
    n_clusters = int(clusters.max()) + 1
    guesses = np.empty(len(y), dtype=np.intp)
    for fold in np.unique(folds):
        held = folds == fold
        guesses[held] = match_clusters(clusters[~held], y[~held], n_clusters, n_classes)[clusters[held]]
    return guesses
