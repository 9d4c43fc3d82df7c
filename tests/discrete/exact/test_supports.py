"""The search of partial supports: its bound holds, whatever it is asked for and wherever it stops."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import entr
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.exact.climbing import climb, free_bound, grow, sample_chains, swap_letters
from privacyfunnel.discrete.exact.master import Duals
from privacyfunnel.discrete.exact.nodes import empty_nodes
from privacyfunnel.discrete.exact.pricing import Pricing
from privacyfunnel.discrete.exact.ratios import share_ratios
from privacyfunnel.discrete.exact.reduction import reduce
from privacyfunnel.discrete.exact.supports import TINY, _fill, search
from privacyfunnel.discrete.problem import Problem

GO_ON = np.zeros(1, dtype=np.int8)


def reduced_values(channel, prices, beta, q):
    """H(Tq) − β H(q) − λ·q for each row of q."""
    return entr(q @ channel).sum(axis=1) - beta * entr(q).sum(axis=1) - q @ prices


def random_posteriors(n, rng, count):
    """Random points of every sparsity, the letters themselves among them."""
    q = rng.dirichlet(np.ones(n), size=count) * (rng.random((count, n)) < rng.random((count, 1)))
    q = q[q.sum(axis=1) > 0]
    return np.vstack([q / q.sum(axis=1, keepdims=True), np.eye(n)])


def dense_search(channel, prices, beta, rng, n_random=20_000):
    """A lower bound on max G over the whole simplex: random points, then climbing."""
    q = random_posteriors(len(prices), rng, n_random)
    values = reduced_values(channel, prices, beta, q)
    best = values.max()
    for start in q[np.argsort(-values)[:20]]:
        best = max(best, climb(channel, prices, beta, start.copy(), 2000))
    return best


def pricing_for(seed, n_x, n_y, kind="dense"):
    reduction = reduce(Problem(random_joint(np.random.default_rng(seed), n_x, n_y, kind)))
    return Pricing(reduction, 2, np.random.SeedSequence(0))


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("kind", ["dense", "zeros", "low-rank", "deterministic", "duplicated"])
def test_a_proof_bounds_what_any_search_finds(beta, kind):
    rng = np.random.default_rng(5)
    for seed in range(6):
        pricing = pricing_for(seed, 6, 3 + seed % 6, kind)
        channel = pricing.reduction.channel
        if channel.shape[1] == 2 or pricing.reduction.rank == 1:
            continue
        prices = pricing.noise + rng.exponential(0.1, size=len(channel))
        duals = Duals(prices, beta)
        found = dense_search(channel, prices, beta, rng)
        # Just above the truth it proves, and its bound holds; just below it must find a counterexample.
        above = pricing.prove(duals, found + 1e-4, np.inf, np.inf)
        assert above.columns == []
        assert found - 1e-12 <= above.bound <= found + 1e-4 + 1e-12
        if found > 1e-3:
            below = pricing.prove(duals, found - 1e-4, np.inf, np.inf)
            assert below.columns
            assert below.bound >= found - 1e-12
            assert below.largest >= found - 1e-4


def searched(channel, prices, beta, threshold, rank, ratios=None, rung=None, width=4096, only=None):
    """One round of the search from all letters: bound, nodes, leaves, posteriors found, limited."""
    n, n_y = channel.shape
    least, most = share_ratios(channel, beta) if ratios is None else ratios
    roots = empty_nodes(n, rank, n_y)
    roots.letters[:, 0], roots.low[:, 0], roots.high[:, 0], roots.size[:] = np.arange(n), 1 / rank, 1.0, 1
    roots.centre[:] = channel.mean(axis=0)
    leaves = empty_nodes(width, rank, n_y)
    found, letters = np.zeros((100, rank + 4)), np.full((100, rank + 4), -1, dtype=np.int32)
    rung = threshold if rung is None else rung
    bound, nodes, n_leaves, n_found, limited = search(
        *(roots, only or 0, n if only is None else only + 1, channel, prices, beta, rank),
        *(least, most, np.log(np.maximum(most, TINY)), threshold, rung, 10**7, GO_ON),
        *(leaves, found, letters),
    )
    return bound, nodes, leaves.upper[:n_leaves], (letters[:n_found], found[:n_found]), limited


@pytest.mark.parametrize("seed", range(25))
def test_what_is_below_the_maximum_is_never_proved(seed):
    rng = np.random.default_rng(seed)
    n, n_y, beta = (
        int(rng.integers(4, 10)),
        int(rng.integers(3, 6)),
        float(rng.choice([0.02, 0.05, 0.2, 0.5])),
    )
    channel = rng.dirichlet(np.full(n_y, rng.choice([0.3, 1.0, 3.0])), size=n)
    if rng.random() < 0.3:
        channel[channel < 0.05] = 0.0
        channel /= channel.sum(axis=1, keepdims=True)
    own = entr(channel).sum(axis=1)
    prices = own + rng.uniform(0, 0.5) * rng.random(n)
    best = (own - prices).max()
    for _ in range(300):
        letters = np.sort(rng.choice(n, int(rng.integers(2, n + 1)), replace=False))
        q = np.maximum(rng.dirichlet(np.full(letters.size, 0.7)), 1e-9)
        best = max(best, climb(channel[letters], prices[letters], beta, q / q.sum(), 2000))
    if best <= (own - prices).max() + 1e-6:
        return  # the maximum is a letter
    rank = int(np.linalg.matrix_rank(channel, tol=1e-13))
    bound, _, _, found, _ = searched(channel, prices, beta, best - 2e-5, rank)
    assert bound > best - 2e-5 or len(found[0])
    for letters, q in zip(*found, strict=True):
        posterior = np.zeros(n)
        np.add.at(posterior, letters[q > 0], q[q > 0])
        assert posterior.sum() == pytest.approx(1.0, abs=1e-9)
        assert reduced_values(channel, prices, beta, posterior[None])[0] > best - 2e-5 - 1e-12
    bound, _, _, found, limited = searched(channel, prices, beta, best + 1e-4, rank)
    assert not len(found[0])
    assert not limited
    assert best - 1e-12 <= max(bound, (own - prices).max()) <= best + 1e-4


def test_bounds_of_first_letters_hold_for_every_posterior():
    """Without ratios nothing is dropped: the bound of a letter is above G wherever that letter is largest."""
    rng = np.random.default_rng(0)
    for seed in range(10):
        channel = reduce(Problem(random_joint(np.random.default_rng(seed), 7, 4, "zeros"))).channel
        n, beta, rank = len(channel), 0.1, 4
        prices = rng.normal(scale=0.3, size=n)
        anything = np.where(np.eye(n, dtype=bool), 2.0, 0.0), np.where(np.eye(n, dtype=bool), -1.0, 1.0)
        threshold = dense_search(channel, prices, beta, rng) + 1e-6
        q = random_posteriors(n, rng, 5000)
        q = q[((q > 0).sum(axis=1) <= rank) & ((q > 0).sum(axis=1) > 1)]
        values = reduced_values(channel, prices, beta, q)
        for x in range(n):
            bound, nodes, upper, _, _ = searched(
                channel, prices, beta, threshold, rank, anything, np.inf, only=x
            )
            assert nodes == 1
            assert values[q.argmax(axis=1) == x].max() <= max(bound, upper.max(initial=-np.inf))


def test_shares_of_maximisers_have_the_ratios_that_are_allowed():
    rng = np.random.default_rng(4)
    ruled_out = narrow = 0
    for seed in range(8):
        channel = reduce(Problem(random_joint(np.random.default_rng(seed), 5, 3))).channel
        for beta in (0.05, 0.2, 0.5):
            least, most = share_ratios(channel, beta)
            ruled_out += int((most < 0.0).sum()) - 5
            narrow += int(((least > 0.05) & (most > 0.0)).sum())
            for _ in range(40):
                prices = rng.normal(scale=0.3, size=5)
                q = rng.dirichlet(np.ones(5))
                climb(channel, prices, beta, q, 100_000)
                for i, j in itertools.permutations(np.flatnonzero(q > 1e-6), 2):
                    if q[j] <= q[i]:
                        assert least[i, j] * (1 - 1e-6) <= q[j] / q[i] <= most[i, j] * (1 + 1e-6)
    assert ruled_out > 0
    assert narrow > 0


def test_filling_up_solves_the_programme():
    rng = np.random.default_rng(0)
    for _ in range(200):
        size, n_rest = int(rng.integers(1, 4)), int(rng.integers(0, 4))
        slope, room = rng.normal(size=size), rng.random(size)
        rest_slope, rest_room = np.sort(rng.normal(size=n_rest))[::-1].copy(), rng.random(n_rest)
        low = rng.random() * rest_room.sum() * 0.5
        high = low + rng.random() * (rest_room.sum() - low)
        mass = low + rng.random() * (room.sum() + high - low) * 1.1
        order = np.argsort(-slope).astype(np.int32)
        share, rest_share = np.zeros(size), np.zeros(n_rest)
        value = _fill(
            *(size, slope, room, order, n_rest, rest_slope, rest_room, mass, low, high),
            *(share, rest_share),
        )
        in_rest = np.r_[np.zeros(size), np.ones(n_rest)]
        best = linprog(
            -np.r_[slope, rest_slope],
            A_ub=[in_rest, -in_rest],
            b_ub=[high, -low],
            A_eq=[np.ones(size + n_rest)],
            b_eq=[mass],
            bounds=[(0, r) for r in np.r_[room, rest_room]],
        )
        if best.status == 0:
            assert value == pytest.approx(-best.fun, abs=1e-8)
            assert share.sum() + rest_share.sum() == pytest.approx(mass, abs=1e-9)
        else:
            assert value == -np.inf


def test_a_search_without_supports_is_caught():
    """The checks above must be able to fail: hide the supports that hold the maximum."""
    rng = np.random.default_rng(3)
    pricing = pricing_for(1, 6, 3)
    duals = Duals(np.full(pricing.reduction.n, 0.3), 0.02)
    found = dense_search(pricing.reduction.channel, duals.prices, 0.02, rng)
    assert found > pricing.noise.max() - 0.3 + 1e-3, "the maximum must not be a letter"
    pricing._first_nodes = lambda beta: empty_nodes(0, 3, 3)
    assert pricing.prove(duals, found + 1e-4, np.inf, np.inf).bound < found - 1e-4


def test_an_interrupted_proof_leaves_a_valid_bound_that_falls():
    pricing = pricing_for(2, 14, 5)
    rng = np.random.default_rng(0)
    prices = pricing.noise + 0.2 + rng.exponential(0.05, size=pricing.reduction.n)
    duals = Duals(prices, 0.05)
    found = dense_search(pricing.reduction.channel, prices, 0.05, rng)
    threshold = max(found, 0.0) + 1e-7
    free = free_bound(pricing.reduction.channel, prices, 0.05)
    bounds = [pricing.prove(duals, threshold, np.inf, limit).bound for limit in (1, 100, 400, np.inf)]
    assert all(bound >= found - 1e-12 for bound in bounds)
    assert bounds[-1] <= threshold
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[2] < bounds[0] <= free
    assert found <= pricing.prove(duals, threshold, -np.inf, np.inf).bound <= free


def test_leaves_and_what_is_done_cover_everything():
    """Stopping at a rung loses nothing: the larger of both bounds is one of the whole."""
    rng = np.random.default_rng(1)
    channel = rng.dirichlet(np.ones(4), size=8)
    prices = entr(channel).sum(axis=1) + rng.exponential(0.05, size=8)
    found = dense_search(channel, prices, 0.05, rng)
    for rung in (0.3, 0.1, 0.05):
        for width in (0, 5, 4096):
            bound, _, upper, _, _ = searched(channel, prices, 0.05, found + 1e-6, 4, rung=rung, width=width)
            assert max(bound, upper.max(initial=-np.inf), -prices.min()) >= found - 1e-12
            assert len(upper) <= width


def test_climbing_and_growing_never_descend():
    rng = np.random.default_rng(0)
    channel, prices, beta = rng.dirichlet(np.ones(3), size=6), rng.normal(size=6), 0.2
    q = rng.dirichlet(np.ones(6))
    values = [reduced_values(channel, prices, beta, q[None])[0]]
    for _ in range(50):
        value = climb(channel, prices, beta, q, 1)
        assert value == pytest.approx(reduced_values(channel, prices, beta, q[None])[0], abs=1e-12)
        values.append(value)
    assert np.all(np.diff(values) >= -1e-9)
    pairs = np.array(list(itertools.combinations(range(6), 2)), dtype=np.int32)
    letters, portion, value = np.zeros((15, 3), dtype=np.int32), np.zeros((15, 3)), np.zeros((15, 3))
    possible = ~np.eye(6, dtype=bool)
    some = np.array([0.2, 0.5, 0.7])
    sample_chains(pairs, possible, channel, prices, beta, some, some[:2], letters, portion, value)
    for f in range(15):
        for size in (2, 3):
            q = np.zeros(6)
            for letter, a in zip(letters[f, :size], portion[f, :size], strict=True):
                q *= 1.0 - a
                q[letter] += a
            assert reduced_values(channel, prices, beta, q[None])[0] == pytest.approx(value[f, size - 1])
    rows, shares = np.full((15, 4), -1, dtype=np.int32), np.zeros((15, 4))
    rows[:, :2], shares[:, 0], shares[:, 1] = pairs, 1.0 - portion[:, 1], portion[:, 1]
    grown = np.zeros(15)
    grow(rows, shares, channel, prices, beta, 3, grown)
    assert np.all(grown >= value[:, 1] - 1e-9)
    assert np.all((rows >= 0).sum(axis=1) <= 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_shares_next_to_one_are_no_division_by_zero():
    """φ rises up to the end where one letter lacks a value; β just below its top ends the search there."""
    for lacking in (1e-3, 0.02, 0.3):
        channel = np.array([[0.5, 0.5, 0.0], [0.5 * (1 - lacking), 0.5 * (1 - lacking), lacking]])
        for below in 10.0 ** -np.arange(1.0, 12.0):
            least, most = share_ratios(channel, lacking * (1.0 - below))
            assert np.all(np.isfinite(least))
            assert np.all(np.isfinite(most))


def test_letters_are_swapped_for_the_best_others():
    rng = np.random.default_rng(1)
    channel, prices, beta = rng.dirichlet(np.ones(3), size=7), rng.normal(size=7), 0.2
    letters = np.array([[0, 1, 2], [5, 3, -1], [6, -1, -1]], dtype=np.int32)
    shares = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0], [1.0, 0.0, 0.0]])
    other = np.empty_like(letters)
    swap_letters(letters, shares, channel, prices, other)
    for row, k in np.ndindex(letters.shape):
        if letters[row, k] < 0:
            assert other[row, k] == -1
            continue
        values = {}
        for x in set(range(7)) - set(letters[row].tolist()):
            q = np.zeros((1, 7))
            q[0, np.where(np.arange(3) == k, x, letters[row])] += shares[row]
            values[x] = reduced_values(channel, prices, beta, q)[0]
        assert other[row, k] == max(values, key=values.__getitem__)
    every = np.arange(7, dtype=np.int32)[None]
    none = np.empty_like(every)
    swap_letters(every, np.full((1, 7), 1 / 7), channel, prices, none)
    assert np.all(none == -1)


@pytest.mark.parametrize(("seed", "objective"), [(1, -0.604442299), (2, -0.577515555), (3, -0.609030165)])
def test_numbers_of_the_listing_of_all_faces(seed, objective):
    """What branch and bound on each listed face, one by one, had proved for 25 × 8 at β = 0.2, in bits."""
    solution = pf.solve(drawn_joint(seed, 25, 8), beta=0.2, method="exact", rng=0)
    assert solution.status is pf.Status.OPTIMAL
    assert solution.objective == pytest.approx(objective, abs=1e-7)


EARLIER = [
    (0, 12, 2, "dense", {"beta": 0.1}, -0.230398257),
    (1, 9, 2, "zeros", {"max_leakage": 0.05}, -1.3195019052),
    (2, 10, 2, "duplicated", {"min_utility": 1.5}, 0.0),
    (3, 8, 3, "dense", {"beta": 0.2}, -0.3879079167),
    (4, 7, 3, "low-rank", {"max_leakage": 0.05}, -2.0741818201),
    (5, 8, 4, "zeros", {"min_utility": 1.2}, 0.0112298923),
    (6, 6, 5, "dense", {"beta": 0.05}, -0.0436626138),
    (7, 5, 7, "dense", {"max_leakage": 0.1}, -1.0980670758),
]


@pytest.mark.parametrize(("seed", "n_x", "n_y", "kind", "target", "objective"), EARLIER)
def test_information_has_the_numbers_it_had_before_other_measures(seed, n_x, n_y, kind, target, objective):
    joint = random_joint(np.random.default_rng(seed), n_x, n_y, kind)
    solution = pf.solve(joint, method="exact", tol=1e-8, rng=0, n_jobs=1, **target)
    assert solution.objective == pytest.approx(objective, abs=1e-7)


def drawn_joint(seed, n_x, n_y):
    rng = np.random.default_rng(seed)
    return pf.Joint(rng.dirichlet(np.full(n_x, 3.0))[:, None] * rng.dirichlet(np.ones(n_y), size=n_x))


@pytest.mark.parametrize("shape", [(8, 4), (4, 7), (1, 4), (9, 3)])
def test_names_do_not_matter(shape):
    rng = np.random.default_rng(2)
    joint = drawn_joint(4, *shape)
    xs, ys = rng.permutation(shape[0]), rng.permutation(shape[1])
    one = pf.solve(joint, beta=0.1, method="exact", rng=0)
    other = pf.solve(pf.Joint(joint.p_xy[np.ix_(xs, ys)]), beta=0.1, method="exact", rng=0)
    assert one.objective == pytest.approx(other.objective, abs=2e-6)
    assert max(one.lower_bound, other.lower_bound) <= min(one.objective, other.objective) + 1e-12


@pytest.mark.full
@pytest.mark.parametrize("shape", [(120, 3, 0.2), (60, 4, 0.2), (40, 5, 0.2), (25, 8, 0.5), (20, 15, 0.5)])
def test_auto_proves_what_has_millions_of_supports(shape):
    solution = pf.solve(drawn_joint(1, *shape[:2]), beta=shape[2], rng=0)
    assert (solution.method, solution.status) == ("exact", pf.Status.OPTIMAL)
