"""Clusters: their number, their names, and the graph they share."""

import itertools
import sys

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import privacyfunnel as pf
from privacyfunnel.auditing import ClusteringAdversary, nearest_neighbours
from privacyfunnel.auditing.adversaries.clustering import (
    NeighbourGraph,
    cross_matched,
    kmeans,
    match_clusters,
    ray_turi_clusters,
    ray_turi_index,
    scaled,
    without_ties,
)
from privacyfunnel.errors import InvalidInputError, MissingDependencyError


def test_matching_is_the_best_of_all():
    rng = np.random.default_rng(0)
    clusters, y = rng.integers(0, 4, 60), rng.integers(0, 4, 60)
    names = match_clusters(clusters, y, 4, 4)
    best = max((np.array(order)[clusters] == y).sum() for order in itertools.permutations(range(4)))
    assert (names[clusters] == y).sum() == best


def test_clusters_left_over_take_the_largest_class():
    y = np.array([0, 0, 0, 1, 1, 0])
    names = match_clusters(np.array([0, 0, 1, 2, 2, 3]), y, 4, 2)
    assert names[0] == 0
    assert names[2] == 1
    assert set(names[[1, 3]]) == {0}


def test_names_come_from_other_folds():
    # One record a cluster: its own class would name it rightly, others cannot.
    y = np.arange(10) % 2
    guesses = cross_matched(np.arange(10), y, np.arange(10), 2)
    in_sample = match_clusters(np.arange(10), y, 10, 2)[np.arange(10)]
    assert (guesses == y).mean() <= 0.5
    assert (in_sample == y).mean() > (guesses == y).mean()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_ray_turi_finds_the_number_of_blobs(k):
    rng = np.random.default_rng(1)
    centres = 20 * np.column_stack([np.cos(np.arange(k)), np.sin(np.arange(k))])
    points = centres[np.arange(150) % k] + rng.normal(size=(150, 2))
    assert len(np.unique(ray_turi_clusters(points, 0))) == k
    labels, found = kmeans(points, k, 0)
    slow = np.mean([((p - found[c]) ** 2).sum() for p, c in zip(points, labels, strict=True)])
    slow /= min(((a - b) ** 2).sum() for a, b in itertools.combinations(found, 2))
    assert ray_turi_index(points, labels, found) == pytest.approx(slow)


def test_all_points_equal():
    assert set(ray_turi_clusters(np.zeros((10, 2)), 0)) == {0}
    assert len(kmeans(np.zeros((10, 2)), 3, 0)[0]) == 10


def test_bad_numbers_of_clusters():
    with pytest.raises(InvalidInputError, match="n_clusters must be"):
        ClusteringAdversary(n_clusters="many")
    assert ClusteringAdversary(n_clusters=4).name == "UMAP and KMeans (k = 4)"


def _votes(distances):
    """Equal votes, a thousandth more for each place nearer."""
    return np.tile([1 + 0.001 * (14 - place) for place in range(15)], (len(distances), 1))


def test_neighbours_of_all_folds_are_those_of_each():
    rng = np.random.default_rng(2)
    Z, y = rng.normal(size=(300, 5)) * [1, 10, 1, 1, 0.1], rng.integers(0, 3, 300)
    folds = rng.integers(0, 3, 300)
    folds[:200] = 0  # most neighbours are of the own fold: some must be searched for
    q = nearest_neighbours().cross_predict(Z, y, folds, 3)
    codes = without_ties(scaled(Z))
    for fold in range(3):
        held = folds == fold
        twin = KNeighborsClassifier(15, weights=_votes).fit(codes[~held], y[~held])
        np.testing.assert_allclose(q[held], twin.predict_proba(codes[held]))


def test_scaling_invents_no_component():
    column = np.full(50, 0.1) + np.linspace(0, 1e-17, 50)
    assert np.ptp(scaled(np.column_stack([column, np.arange(50.0)]))[:, 0]) < 1e-10


def test_the_graph_is_exact_and_without_oneself():
    Z = np.random.default_rng(3).normal(size=(40, 3))
    graph = NeighbourGraph.of(Z, 4)
    distances = np.linalg.norm(Z[:, None] - Z[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(graph.indices, np.argsort(distances, axis=1)[:, :4])
    assert NeighbourGraph.of(Z[:1], 4).k == 0


def test_without_umap_the_remedy_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'privacyfunnel\[audit\]'"):
        pf.audit(Z=np.eye(6), private=[0, 1] * 3, adversaries=[ClusteringAdversary()], n_jobs=1)


def test_the_literatures_adversary_end_to_end():
    pytest.importorskip("umap")
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 240)
    Z = 8 * np.eye(5)[y] + rng.normal(size=(240, 5))
    adversaries = [ClusteringAdversary(), ClusteringAdversary(n_clusters="ray-turi")]
    one, two = (
        pf.audit(Z=Z, private=y, adversaries=adversaries, n_repeats=2, figures=True, n_jobs=1)
        for _ in range(2)
    )
    assert one.findings == two.findings
    for found in one.find("success"):
        assert found.value > 0.95
    assert one.find("matched success")[0].value >= one.find("success")[0].value
    assert one.figures_data["density"]["Z"] != two.figures_data["density"]["Z"]  # of a seed nobody knows
    constant = pf.audit(Z=np.ones((20, 2)), private=[0, 1] * 10, adversaries=adversaries[:1], n_jobs=1)
    assert constant.find("success")[0].value <= 0.6
