import itertools

import numpy as np
import pytest
from scipy.special import entr
from strategies import random_joint

from privacyfunnel.discrete.exact.faces import (
    climb,
    flat_directions,
    sample_faces,
    search_faces,
)
from privacyfunnel.discrete.exact.listing import compatible_pairs, next_faces
from privacyfunnel.discrete.exact.master import Duals
from privacyfunnel.discrete.exact.pricing import Pricing, n_faces
from privacyfunnel.discrete.exact.reduction import reduce
from privacyfunnel.discrete.problem import Problem

GO_ON = np.zeros(1, dtype=np.int8)


def reduced_values(channel, prices, beta, q):
    """H(Tq) − β H(q) − λ·q for each row of q."""
    return entr(q @ channel).sum(axis=1) - beta * entr(q).sum(axis=1) - q @ prices


def dense_search(channel, prices, beta, rng, n_random=20_000):
    """A lower bound on max G over the whole simplex: random points of every sparsity, then climbing."""
    n = len(prices)
    q = rng.dirichlet(np.ones(n), size=n_random) * (rng.random((n_random, n)) < rng.random((n_random, 1)))
    q = q[q.sum(axis=1) > 0]
    q /= q.sum(axis=1, keepdims=True)
    q = np.vstack([q, np.eye(n)])
    values = reduced_values(channel, prices, beta, q)
    best = values.max()
    for start in q[np.argsort(-values)[:20]]:
        best = max(best, climb(channel, prices, beta, start.copy(), 2000))
    return best


def pricing_for(seed, n_x, n_y, kind="dense"):
    reduction = reduce(Problem(random_joint(np.random.default_rng(seed), n_x, n_y, kind)))
    return Pricing(reduction, 2, np.random.SeedSequence(0))


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank"])
def test_a_proof_bounds_what_any_search_finds(beta, kind):
    rng = np.random.default_rng(5)
    for seed in range(6):
        pricing = pricing_for(seed, 6, 3 + seed % 2, kind)
        channel = pricing.reduction.channel
        prices = pricing.noise + rng.exponential(0.1, size=len(channel))
        duals = Duals(prices, beta)
        found = dense_search(channel, prices, beta, rng)
        # Just above the truth it proves, and its bound holds; just below it must find a counterexample.
        above = pricing.prove(duals, found + 1e-4, np.inf, 10**6, np.inf)
        assert above.columns == []
        assert found - 1e-12 <= above.bound <= found + 1e-4 + 1e-12
        if found > 1e-3:
            below = pricing.prove(duals, found - 1e-4, np.inf, 10**6, np.inf)
            assert below.columns
            assert below.bound >= found
            assert below.largest >= found - 1e-4


def test_a_search_without_the_large_faces_is_caught():
    """The check above must be able to fail: hide the faces that hold the maximum."""
    rng = np.random.default_rng(3)
    pricing = pricing_for(1, 6, 3)
    beta = 0.02
    prices = np.full(pricing.reduction.n, 0.3)
    duals = Duals(prices, beta)
    found = dense_search(pricing.reduction.channel, prices, beta, rng)
    assert found > pricing.noise.max() - 0.3 + 1e-3, (
        "the maximum must not be a letter for this test to mean anything"
    )
    pricing.faces = lambda beta: ([], True)
    assert pricing.prove(duals, found + 1e-4, np.inf, 10**6, np.inf).bound < found - 1e-4


def test_a_node_limit_leaves_a_valid_bound():
    pricing = pricing_for(2, 7, 4)
    rng = np.random.default_rng(0)
    prices = pricing.noise + rng.exponential(0.05, size=pricing.reduction.n)
    duals = Duals(prices, 0.05)
    found = dense_search(pricing.reduction.channel, prices, 0.05, rng)
    bounds = [
        pricing.prove(duals, max(found, 0) + 1e-7, np.inf, limit, np.inf).bound
        for limit in (1, 10, 100, 10**6)
    ]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] <= max(found, 0) + 1e-7
    assert all(bound >= found - 1e-12 for bound in bounds)
    out_of_time = pricing.prove(duals, max(found, 0) + 1e-7, -np.inf, 10**6, np.inf)
    assert out_of_time.bound >= found - 1e-12


def test_pairs_that_are_ruled_out_never_share_a_local_maximum():
    rng = np.random.default_rng(4)
    ruled_out = 0
    for seed in range(8):
        channel = reduce(Problem(random_joint(np.random.default_rng(seed), 5, 3))).channel
        for beta in (0.05, 0.2, 0.5):
            allowed = compatible_pairs(channel, beta)
            ruled_out += int((~allowed).sum()) - 5
            for _ in range(40):
                prices = rng.normal(scale=0.3, size=5)
                q = rng.dirichlet(np.ones(5))
                climb(channel, prices, beta, q, 100_000)
                support = np.flatnonzero(q > 1e-6)
                assert all(allowed[i, j] for i, j in itertools.combinations(support, 2))
    assert ruled_out > 0


def test_faces_are_the_cliques():
    rng = np.random.default_rng(0)
    allowed = rng.random((8, 8)) < 0.6
    allowed = np.triu(allowed, 1) | np.triu(allowed, 1).T
    level = np.arange(8, dtype=np.int32)[:, None]
    for size in (2, 3, 4):
        level, count = next_faces(level, allowed, 1000)
        assert count == len(level)
        expected = [
            face
            for face in itertools.combinations(range(8), size)
            if all(allowed[i, j] for i, j in itertools.combinations(face, 2))
        ]
        assert [tuple(face) for face in level.tolist()] == expected
    assert n_faces(8, 3) == 28 + 56


def test_climbing_never_descends_and_sampling_finds_the_best_point():
    rng = np.random.default_rng(0)
    channel, prices, beta = rng.dirichlet(np.ones(3), size=4), rng.normal(size=4), 0.2
    q = rng.dirichlet(np.ones(4))
    values = [reduced_values(channel, prices, beta, q[None])[0]]
    for _ in range(50):
        value = climb(channel, prices, beta, q, 1)
        assert value == pytest.approx(reduced_values(channel, prices, beta, q[None])[0], abs=1e-12)
        values.append(value)
    assert np.all(np.diff(values) >= -1e-9)
    faces = np.array([[0, 1, 2], [1, 2, 3]], dtype=np.int32)
    points = rng.dirichlet(np.ones(3), size=5)
    value, which = np.empty(2), np.empty(2, dtype=np.intp)
    sample_faces(faces, channel, prices, beta, points, value, which)
    for f, face in enumerate(faces):
        all_values = reduced_values(channel[face], prices[face], beta, points)
        assert value[f] == pytest.approx(all_values.max(), abs=1e-13)
        assert which[f] == all_values.argmax()


def test_search_reports_the_posterior_it_found():
    rng = np.random.default_rng(7)
    channel, beta = rng.dirichlet(np.ones(3), size=3), 0.05
    prices = np.full(3, 0.2)
    faces = np.array([[0, 1, 2]], dtype=np.int32)
    state, found = np.zeros(1, dtype=np.int8), np.zeros((1, 3))
    search_faces(faces, channel, prices, beta, 0.1, 10**6, 10**6, GO_ON, state, found)
    assert state[0] == 2
    assert reduced_values(channel, prices, beta, found)[0] > 0.1


@pytest.mark.parametrize("kind", ["dense", "rank1", "duplicated", "deterministic"])
def test_directions_stay_in_the_face_even_where_it_is_degenerate(kind):
    """A direction that is nothing but rounding would make the second-order test a coin toss."""
    for seed in range(10):
        joint = random_joint(np.random.default_rng(seed), 6, 4, kind)
        channel = np.ascontiguousarray(joint.p_xy / joint.p_x[:, None])
        directions = flat_directions(channel)
        np.testing.assert_allclose(directions.sum(axis=1), 0, atol=1e-12)
        np.testing.assert_allclose(directions @ directions.T, np.eye(5), atol=1e-10)


def test_no_maximiser_is_ever_dropped():
    """At local maxima found by climbing, the sub-simplices around them must survive the second-order test."""
    rng = np.random.default_rng(11)
    checked = 0
    for seed in range(30):
        pricing = pricing_for(seed, 8, 5)
        channel = pricing.reduction.channel
        beta = float(rng.choice([0.01, 0.03, 0.1]))
        prices = pricing.noise + rng.exponential(0.05, size=len(channel))
        q = rng.dirichlet(np.ones(len(channel)))
        climb(channel, prices, beta, q, 200_000)
        support = np.flatnonzero(q > 1e-4)  # what is smaller is on its way out
        if len(support) < 2:
            continue
        checked += 1
        inside = q[support] / q[support].sum()
        value = climb(channel[support], prices[support], beta, inside, 200_000)
        face = support.astype(np.int32)[None]
        state, found = np.zeros(1, dtype=np.int8), np.zeros((1, len(support)))
        bound, _ = search_faces(face, channel, prices, beta, value + 1e-6, 10**6, 10**6, GO_ON, state, found)
        # Other maxima of the face may lie higher (state 2); if not, the bound must cover this one.
        assert state[0] == 2 or bound >= value - 1e-12
    assert checked >= 10
