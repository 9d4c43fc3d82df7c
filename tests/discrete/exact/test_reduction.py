import numpy as np
import pytest
from discrete.twins import slow_information
from hypothesis import given
from hypothesis import strategies as st
from strategies import joints, random_joint

from privacyfunnel import Joint
from privacyfunnel.discrete.exact.reduction import Posterior, coupling, entropy_nats, reduce
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 10**6))
def test_a_coupling_has_its_marginals_and_few_atoms(sizes, seed):
    rng = np.random.default_rng(seed)
    marginals = [rng.dirichlet(np.ones(size)) for size in sizes]
    atoms = coupling(marginals)
    assert len(atoms) <= sum(sizes) - len(sizes) + 1
    for i, marginal in enumerate(marginals):
        seen = np.zeros(marginal.size)
        for chosen, share in atoms:
            assert share >= 0
            seen[chosen[i]] += share
        np.testing.assert_allclose(seen, marginal, atol=1e-14)


def duplicated_joint(rng, copies=3):
    base = rng.dirichlet(np.ones(3), size=4)
    channel = np.repeat(base, copies, axis=0)
    return Joint.from_channel(channel, rng.dirichlet(np.ones(len(channel))))


def test_equal_letters_are_one_class():
    reduction = reduce(Problem(duplicated_joint(np.random.default_rng(0))))
    assert reduction.n == 4
    assert sorted(len(group) for group in reduction.members) == [3, 3, 3, 3]


def test_expanding_keeps_the_leakage_and_tells_members_apart():
    rng = np.random.default_rng(1)
    joint = duplicated_joint(rng)
    reduction = reduce(Problem(joint))
    weights = rng.dirichlet(np.ones(3))
    # Three posteriors whose mixture is p: two random ones below p and what is left.
    left = reduction.p.copy()
    posteriors = []
    for w in weights[:2]:
        part = rng.random(4) * left
        part *= min(1.0, w / part.sum())
        posteriors.append((part.sum(), part / part.sum()))
        left = left - part
    posteriors.append((left.sum(), left / left.sum()))
    columns = [Posterior(np.arange(4), q) for _, q in posteriors]
    p = reduction.expand(columns, np.array([w for w, _ in posteriors]))
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    utility, leakage = slow_information(joint.p_xy, p)
    noise = sum(w * entropy_nats(q @ reduction.channel) for w, q in posteriors)
    spread = sum(w * entropy_nats(q) for w, q in posteriors)
    assert leakage * NATS_PER_BIT == pytest.approx(reduction.noise - noise, abs=1e-12)
    assert utility * NATS_PER_BIT == pytest.approx(reduction.loss - spread, abs=1e-12)


@given(joints())
def test_classes_partition_the_letters_that_matter(joint):
    problem = Problem(joint)
    reduction = reduce(problem)
    letters = np.concatenate(reduction.members)
    assert len(set(letters.tolist())) == letters.size
    assert reduction.p.sum() == pytest.approx(1, abs=1e-12)
    left_out = 1 - problem.p_x[letters].sum()
    assert left_out <= 1e-13
    assert 0 <= reduction.slack <= 1e-9
    for c, group in enumerate(reduction.members):
        for x in group:
            np.testing.assert_allclose(reduction.channel[c], problem.p_y_given_x[x], atol=1e-12)


def test_posteriors_of_a_channel():
    joint = random_joint(np.random.default_rng(2), 4, 3)
    problem = Problem(joint)
    reduction = reduce(problem)
    p = np.random.default_rng(3).dirichlet(np.ones(3), size=4)
    columns = reduction.posteriors(p)
    assert len(columns) == 3
    total = np.zeros(reduction.n)
    for column, w in zip(columns, problem.p_x @ p, strict=True):
        total[column.letters] += w * column.shares
    np.testing.assert_allclose(total, reduction.p, atol=1e-12)
