"""Partitions: against the paper's five, brute force over all of them, and slow twins of each method."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import joints, random_joint

from privacyfunnel.datasets.joints import independent, paper_joint
from privacyfunnel.discrete.deterministic import (
    ENUMERATED,
    Partition,
    as_channel,
    greedy,
    greedy_with_utility,
    submodular,
)
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem
from privacyfunnel.discrete.subsets import enumerate_subsets, search_subsets, subset_change
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.joint import Joint


def all_partitions(n: int) -> Iterator[np.ndarray]:
    """Every partition of n letters, as labels in order of first appearance."""

    def extend(labels: list[int]) -> Iterator[np.ndarray]:
        if len(labels) == n:
            yield np.array(labels)
            return
        for label in range(max(labels, default=-1) + 2):
            yield from extend([*labels, label])

    return extend([])


def evaluate(problem: Problem, labels: np.ndarray) -> tuple[float, float]:
    return utility_and_leakage(problem.p_xy, as_channel(labels))


def loss(problem: Problem, labels: np.ndarray, beta: float) -> float:
    utility, leakage = evaluate(problem, labels)
    return leakage - beta * utility


def merged(labels: np.ndarray, blocks: tuple[int, ...]) -> np.ndarray:
    together = np.where(np.isin(labels, blocks), min(blocks), labels)
    _, first, inverse = np.unique(together, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def submodular_seeded(problem: Problem, beta: float) -> Partition:
    return submodular(problem, beta, np.random.default_rng(0))


METHODS = [greedy, submodular_seeded]


def logs(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore"):
        return problem.p_x, problem.p_xy, np.log(problem.p_x), np.log(problem.p_xy)


def test_the_papers_joint_has_five_partitions():
    problem = Problem(paper_joint())
    found = sorted(evaluate(problem, labels) for labels in all_partitions(3))
    listed = [(0, 0), (0.9183, 0.2334), (0.9183, 0.3187), (0.9183, 0.5076), (1.5850, 0.6551)]
    np.testing.assert_allclose(sorted((round(u, 4), round(le, 4)) for u, le in found), listed, atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_sweeping_beta_gives_the_partitions_that_no_other_beats(method):
    problem = Problem(paper_joint())
    found = set()
    for beta in np.linspace(0, 1.2, 25):
        labels = method(problem, beta).labels
        best = min(loss(problem, other, beta) for other in all_partitions(3))
        assert loss(problem, labels, beta) == pytest.approx(best, abs=1e-12)
        utility, leakage = evaluate(problem, labels)
        found.add((round(utility, 4), round(leakage, 4)))
    assert found == {(0.0, 0.0), (0.9183, 0.2334), (1.5850, 0.6551)}


@pytest.mark.parametrize("method", METHODS)
@given(joint=joints(), beta=st.floats(0, 2))
def test_history_and_labels_are_those_of_the_partition(method, joint, beta):
    problem = Problem(joint)
    result = method(problem, beta)
    assert result.labels.shape == (problem.n_x,)
    assert len(result.history) == result.n_rounds + 1
    assert np.all(np.diff(result.history) <= 0)
    assert result.history[0] == pytest.approx(
        loss(problem, np.arange(problem.n_x), beta) * NATS_PER_BIT, abs=1e-12
    )
    assert result.history[-1] == pytest.approx(loss(problem, result.labels, beta) * NATS_PER_BIT, abs=1e-12)
    assert list(dict.fromkeys(result.labels)) == list(range(result.n_z))
    if beta >= 1:
        assert result.n_rounds == 0


@pytest.mark.parametrize("method", METHODS)
@given(joint=joints())
def test_beta_zero_ends_at_leakage_zero(method, joint):
    problem = Problem(joint)
    assert evaluate(problem, method(problem, 0.0).labels)[1] <= 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_ties_keep_utility(method):
    problem = Problem(independent())
    assert method(problem, 0.0).n_rounds == 0
    # Two letters of the four are alike: they stay apart even where leakage is all that counts.
    table = np.array([[0.1, 0.3], [0.3, 0.1], [0.05, 0.05], [0.05, 0.05]])
    labels = method(Problem(Joint(table)), 0.0).labels
    assert labels[2] != labels[3]


def greedy_twin(problem: Problem, beta: float, min_utility: float = 0.0) -> np.ndarray:
    """The definition: of all pairs, try each and evaluate the mechanism."""
    labels = np.arange(problem.n_x)
    while True:
        now = loss(problem, labels, beta)
        options = [merged(labels, pair) for pair in combinations(range(labels.max() + 1), 2)]
        options = [other for other in options if evaluate(problem, other)[0] >= min_utility - 1e-12]
        losses = [loss(problem, other, beta) for other in options]
        if not losses or min(losses) >= now - 1e-13:
            return labels
        labels = options[int(np.argmin(losses))]


@pytest.mark.parametrize("beta", [0.0, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("shape", [(5, 2), (6, 4), (7, 9)])
def test_greedy_equals_its_slow_twin(beta, shape):
    for seed in range(3):
        problem = Problem(random_joint(np.random.default_rng(seed), *shape))
        assert greedy(problem, beta).labels.tolist() == greedy_twin(problem, beta).tolist()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_greedy_with_utility_equals_its_slow_twin(share):
    for seed in range(4):
        problem = Problem(random_joint(np.random.default_rng(seed), 7, 3))
        threshold = share * problem.joint.entropy_x
        result = greedy_with_utility(problem, threshold)
        utility, leakage = evaluate(problem, result.labels)
        assert utility >= threshold - 1e-11
        assert result.history[-1] == pytest.approx(leakage * NATS_PER_BIT, abs=1e-12)
        assert result.labels.tolist() == greedy_twin(problem, 0.0, threshold).tolist()


def test_a_threshold_that_a_partition_just_reaches_is_reached():
    problem = Problem(paper_joint())
    utility, leakage = evaluate(problem, np.array([0, 0, 1]))
    result = greedy_with_utility(problem, utility)
    assert evaluate(problem, result.labels) == pytest.approx((utility, leakage), abs=1e-12)
    assert greedy_with_utility(problem, 5.0).n_rounds == 0


@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "duplicated", "deterministic"])
def test_enumeration_finds_the_best_of_all_subsets(kind):
    rng = np.random.default_rng(7)
    for beta in (0.0, 0.1, 0.4):
        problem = Problem(random_joint(rng, 7, 3, kind))
        data = logs(problem)
        n = problem.n_x
        start = loss(problem, np.arange(n), beta)
        changes = {
            subset: loss(problem, merged(np.arange(n), subset), beta) - start
            for size in range(2, n + 1)
            for subset in combinations(range(n), size)
        }
        for subset, change in changes.items():
            chosen = np.isin(np.arange(n), subset)
            value, cost = subset_change(*data, 1 - beta, chosen)
            assert value / NATS_PER_BIT == pytest.approx(change, abs=1e-12)
            utility = evaluate(problem, merged(np.arange(n), subset))[0]
            assert cost / NATS_PER_BIT == pytest.approx(problem.joint.entropy_x - utility, abs=1e-12)
        chosen = enumerate_subsets(*data, 1 - beta)
        best = min(0.0, *changes.values())
        assert subset_change(*data, 1 - beta, chosen)[0] / NATS_PER_BIT == pytest.approx(best, abs=1e-12)


def test_search_is_never_worse_than_its_start_and_mostly_the_best(record_property):
    rng = np.random.default_rng(3)
    n_equal, n_all = 0, 60
    for _ in range(n_all):
        problem = Problem(random_joint(rng, int(rng.integers(6, 11)), int(rng.integers(2, 5))))
        data, kappa = logs(problem), 1 - rng.uniform(0, 0.6)
        pairs = [np.isin(np.arange(problem.n_x), pair) for pair in combinations(range(problem.n_x), 2)]
        first = min(pairs, key=lambda pair: subset_change(*data, kappa, pair)[0])
        found = subset_change(*data, kappa, search_subsets(*data, kappa, first, rng))[0]
        best = subset_change(*data, kappa, enumerate_subsets(*data, kappa))[0]
        assert best - 1e-12 <= found <= subset_change(*data, kappa, first)[0]
        n_equal += found <= best + 1e-12
    record_property("equal", n_equal)
    assert n_equal >= 0.8 * n_all


@given(joint=joints(max_x=3), beta=st.floats(0, 1.2))
def test_submodular_is_the_best_partition_of_three_letters(joint, beta):
    problem = Problem(joint)
    best = min(loss(problem, labels, beta) for labels in all_partitions(problem.n_x))
    assert loss(problem, submodular_seeded(problem, beta).labels, beta) <= best + 1e-12


def test_four_letters_against_all_partitions(record_property):
    rng = np.random.default_rng(0)
    n_best = {method.__name__: 0 for method in METHODS}
    for _ in range(50):
        problem, beta = Problem(random_joint(rng, 4, 3)), rng.uniform(0, 0.6)
        best = min(loss(problem, labels, beta) for labels in all_partitions(4))
        for method in METHODS:
            value = loss(problem, method(problem, beta).labels, beta)
            assert best - 1e-12 <= value
            n_best[method.__name__] += value <= best + 1e-12
    for name, count in n_best.items():
        record_property(name, count)
        assert count >= 25


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.4])
def test_large_alphabets(beta):
    problem = Problem(random_joint(np.random.default_rng(2), 4 * ENUMERATED, 3))
    pairs, subsets = greedy(problem, beta), submodular_seeded(problem, beta)
    assert subsets.history[1] <= pairs.history[1] + 1e-13
    for result in (pairs, subsets):
        assert result.history[-1] == pytest.approx(
            loss(problem, result.labels, beta) * NATS_PER_BIT, abs=1e-11
        )
    again = submodular_seeded(problem, beta)
    assert again.labels.tolist() == subsets.labels.tolist()


def test_as_channel():
    np.testing.assert_array_equal(as_channel(np.array([0, 1, 0])), [[1, 0], [0, 1], [1, 0]])
