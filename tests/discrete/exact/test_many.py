"""Many letters and a binary Y: clusters, dealt out, with a bound that holds for every letter."""

import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.discrete.exact import entry, many
from privacyfunnel.discrete.exact.engine import Engine
from privacyfunnel.errors import ConvergenceWarning
from privacyfunnel.solution import Target
from privacyfunnel.sparse import SparseChannel

NATS = np.log(2)


def bench_joint(n, seed=1):
    rng = np.random.default_rng(seed)
    return pf.Joint(rng.dirichlet(np.full(n, 3.0))[:, None] * rng.dirichlet(np.ones(2), size=n))


def joint_of(t, p):
    return pf.Joint.from_channel(np.column_stack([1 - t, t]), p)


@pytest.fixture
def small(monkeypatch):
    """Clusters for small alphabets too, so that the plain engine can be the judge."""
    monkeypatch.setattr(entry, "MANY", 3)
    monkeypatch.setattr(many, "FEWEST", 8)


def plain(monkeypatch, joint, **options):
    """The engine without clusters."""
    with monkeypatch.context() as patch:
        patch.setattr(entry, "MANY", 10**9)
        return quietly(joint, **options)


def quietly(joint, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pf.solve(joint, **{"method": "exact", "rng": 0, **options})


def targets(joint):
    return (
        {"beta": 0.05},
        {"beta": 0.4},
        {"min_utility": 0.9 * joint.entropy_x},
        {"max_leakage": 0.1 * joint.mutual_information},
    )


def assert_bounded(solution, optimum):
    """Neither is the bound above the proved optimum, nor the release below its bound."""
    assert solution.lower_bound <= optimum.objective + 1e-12
    assert solution.objective >= optimum.lower_bound - 1e-12
    assert solution.lower_bound <= solution.objective + 1e-12
    assert solution.utility >= (solution.min_utility or 0.0) - 1e-9
    assert solution.leakage <= (np.inf if solution.max_leakage is None else solution.max_leakage) + 1e-12


@pytest.mark.parametrize(("n", "seed"), [(50, 0), (120, 1), (250, 2)])
def test_against_the_plain_engine(small, monkeypatch, n, seed):
    joint = bench_joint(n, seed)
    for target in targets(joint):
        optimum = plain(monkeypatch, joint, **target)
        assert optimum.status is pf.Status.OPTIMAL
        solution = pf.solve(joint, method="exact", rng=0, **target)
        assert solution.status is pf.Status.OPTIMAL
        assert solution.gap <= 1e-6
        assert_bounded(solution, optimum)
        assert "groups of letters" in " ".join(solution.notes) or solution.leakage <= 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_few_clusters_prove_less_but_nothing_wrong(small, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    t = rng.beta(0.3, 0.5, 70) if seed % 2 else rng.random(70)
    joint = joint_of(t, rng.dirichlet(np.full(70, 0.5)))
    for target in targets(joint):
        optimum = plain(monkeypatch, joint, **target)
        for fewest in (2, 5, 11):
            monkeypatch.setattr(many, "FEWEST", fewest)
            solution = quietly(joint, tol=0.5, **target)  # the first level will do
            assert_bounded(solution, optimum)


def check(solution):
    """An independent look at the proof: the line from its prices, and no posterior above M."""
    proof, joint = solution.proof, solution.joint
    prices, largest, beta = proof.arrays["prices"], float(proof.arrays["largest"]), proof.beta
    there = joint.p_x > 0
    p, t = joint.p_x[there], joint.p_xy[there, 1] / joint.p_x[there]

    def entropy(q):
        return -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=-1)

    value = entropy(joint.p_y) - beta * entropy(p) - prices @ p - largest
    assert proof.value <= value + 1e-12, "the line is above what its prices prove"
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 8):
        letters = rng.integers(p.size, size=(10_000, size))
        q = rng.dirichlet(np.full(size, rng.choice([0.3, 1.0])), size=10_000)
        at = (q * t[letters]).sum(axis=1)
        g = entropy(np.column_stack([at, 1 - at])) - beta * entropy(q) - (q * prices[letters]).sum(axis=1)
        assert g.max() <= largest + 1e-12, "a posterior beats the line"
    # The posteriors of the release itself: those that come closest.
    channel = solution.mechanism.sparse
    masses = joint.p_x[channel.rows] * channel.probabilities
    p_z = np.bincount(channel.symbols, masses, channel.n_z)
    q = masses / p_z[channel.symbols]
    full = np.zeros(joint.n_x)
    full[there] = prices
    spread = np.bincount(channel.symbols, -q * np.log(q), channel.n_z)
    told = np.bincount(
        channel.symbols, q * joint.p_xy[channel.rows, 1] / joint.p_x[channel.rows], channel.n_z
    )
    g = entropy(np.column_stack([told, 1 - told])) - beta * spread
    g = g - np.bincount(channel.symbols, q * full[channel.rows], channel.n_z)
    assert g.max() <= largest + 1e-12, "the release beats the line"


@pytest.mark.parametrize("target", [{"beta": 0.05}, {"max_leakage": 0.02}, {"min_utility": 8.0}])
def test_the_proof_can_be_checked_and_a_changed_price_is_found(target):
    solution = pf.solve(bench_joint(400), method="exact", rng=0, tol=1e-5, **target)
    assert solution.status is pf.Status.OPTIMAL
    check(solution)
    prices = solution.proof.arrays["prices"]
    for change in (-0.01, 0.01):
        for x in (3, 200, 399):
            changed = prices.copy()
            changed[x] += change
            prices_of = {**solution.proof.arrays, "prices": changed}
            with pytest.raises(AssertionError, match="line"):
                check(_with_proof(solution, prices_of))


def _with_proof(solution, arrays):
    return replace(solution, proof=replace(solution.proof, arrays=arrays))


def test_a_broken_proof_is_caught(small, monkeypatch):
    """Without the search over pairs the bound is none, and the judge above must say so."""
    joint = bench_joint(60)
    optimum = plain(monkeypatch, joint, beta=0.05)
    monkeypatch.setattr(many.ManyEngine, "lift", lambda self, level, line: many.Duals(self.noise, line.beta))
    monkeypatch.setattr(many, "raise_prices", lambda *arguments: 0)
    with pytest.raises(AssertionError):
        assert_bounded(quietly(joint, beta=0.05), optimum)


DEGENERATE = {
    "all equal": (np.full(40, 0.3), np.ones(40)),
    "zero or one": (np.repeat([0.0, 1.0], 20), np.arange(1.0, 41)),
    "two classes": (np.repeat([0.2, 0.7], 20), np.arange(1.0, 41)),
    "duplicates": (np.repeat(np.linspace(0.05, 0.9, 8), 5), np.arange(1.0, 41)),
    "zeros": (np.linspace(0, 1, 40), np.where(np.arange(40) % 3, 1.0, 0.0)),
    "one zero": (np.linspace(0, 1, 40), np.where(np.arange(40) == 7, 0.0, 1.0)),
    "next to nothing": (np.linspace(0.1, 0.9, 40), np.where(np.arange(40) % 4, 1.0, 1e-16)),
    "rare": (np.linspace(0.1, 0.9, 40), 10.0 ** -np.arange(0, 10, 0.25)),
    "close": (0.5 + 1e-10 * np.arange(40), np.ones(40)),
    "one far": (np.concatenate([np.linspace(0.5, 0.500001, 39), [1.0]]), np.ones(40)),
    "tiny": (10.0 ** -np.linspace(1, 25, 40), np.ones(40)),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_joints(small, monkeypatch, name):
    t, p = DEGENERATE[name]
    joint = joint_of(t, p / p.sum())
    for target in targets(joint):
        optimum = plain(monkeypatch, joint, **target)
        solution = quietly(joint, **target)
        assert_bounded(solution, optimum)
        assert solution.gap <= max(1e-6, 2 * optimum.gap)
        rows = solution.mechanism.sparse.sum(axis=1)
        np.testing.assert_allclose(rows, 1.0, atol=1e-12)


@pytest.mark.parametrize("target", [{"beta": 0.0}, {"beta": 0.999999}, {"beta": 3.0}, {"max_leakage": 9.0}])
def test_ends_of_the_curve(small, monkeypatch, target):
    joint = bench_joint(40)
    assert_bounded(pf.solve(joint, method="exact", rng=0, **target), plain(monkeypatch, joint, **target))


def test_all_and_nothing_of_the_utility(small):
    joint = bench_joint(60)
    most = pf.solve(joint, method="exact", rng=0, min_utility=joint.entropy_x)
    assert most.leakage == pytest.approx(joint.mutual_information, abs=1e-6)
    free = pf.solve(joint, method="exact", rng=0, min_utility=0.5)
    assert free.leakage <= 1e-12  # a release that tells nothing has more utility than that
    assert free.gap <= 1e-12
    assert pf.perfect_privacy(joint).utility >= free.utility - 1e-6


def test_relabelling_changes_nothing():
    joint = bench_joint(300)
    rng = np.random.default_rng(0)
    shuffled = pf.Joint(joint.p_xy[rng.permutation(300)][:, ::-1])
    for target in targets(joint)[1:]:
        one, other = (pf.solve(j, method="exact", rng=0, **target) for j in (joint, shuffled))
        assert one.objective == pytest.approx(other.objective, abs=2e-6)
        assert one.lower_bound <= other.objective + 1e-12


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_ten_thousand_letters_need_no_table(monkeypatch, method):
    monkeypatch.setattr("privacyfunnel.discrete.arguments.memory_size", lambda: 2**28)
    monkeypatch.setattr(SparseChannel, "dense", lambda self: pytest.fail("a table of letters and symbols"))
    joint = bench_joint(10_000)
    solution = pf.solve(joint, beta=0.05, method=method, tol=2e-4, rng=0)
    assert (solution.method, solution.status) == ("exact", pf.Status.OPTIMAL)
    assert solution.gap <= 2e-4
    assert solution.mechanism.sparse.counts.max() <= 200
    check(solution)
    assert "exact" in repr(solution)
    assert "10,000 letters" in solution.notes[0]


def test_a_limit_on_leakage_is_kept_by_many_letters():
    joint = bench_joint(3_000)
    solution = pf.solve(joint, max_leakage=0.01, tol=1e-3, rng=0)
    assert solution.leakage <= 0.01 + 1e-12
    assert solution.gap <= 1e-3


def test_letters_that_never_occur_tell_nothing(monkeypatch):
    p_xy = bench_joint(600).p_xy.copy()
    p_xy[::50] = 0.0
    joint = pf.Joint(p_xy / p_xy.sum())
    solution = pf.solve(joint, beta=0.05, tol=1e-3, rng=0)
    p_z = solution.mechanism.p_z(joint.p_x)
    np.testing.assert_allclose(solution.mechanism.p_z_given_x[::50], np.tile(p_z, (12, 1)), atol=1e-12)
    monkeypatch.setattr("privacyfunnel.sparse._FILLED", 100)
    fewer = pf.solve(joint, beta=0.05, tol=1e-3, rng=0)
    assert fewer.objective == pytest.approx(solution.objective, abs=1e-12)
    row = fewer.mechanism.p_z_given_x[int(np.argmax(joint.p_x))]
    np.testing.assert_array_equal(fewer.mechanism.p_z_given_x[::50], np.tile(row, (12, 1)))


def test_out_of_time_the_bound_still_holds():
    joint = bench_joint(2_000)
    with pytest.warns(ConvergenceWarning, match="limit on time"):
        solution = pf.solve(joint, beta=0.05, method="exact", time_limit=1e-3, tol=1e-9, rng=0)
    assert solution.status is pf.Status.TIME_LIMIT
    assert solution.lower_bound <= solution.objective
    assert "dca was left out" in solution.notes[-1]


@pytest.mark.parametrize("target", [{"beta": 0.05}, {"max_leakage": 0.01}, {"min_utility": 9.9}])
def test_interrupted_it_returns_what_there_is(monkeypatch, target):
    joint = bench_joint(1_200)

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Engine, "solve", interrupt)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        solution = pf.solve(joint, method="exact", rng=0, **target)
    assert solution.status is pf.Status.INTERRUPTED
    assert solution.lower_bound <= solution.objective + 1e-12
    assert solution.leakage <= target.get("max_leakage", np.inf) + 1e-12
    assert solution.utility >= target.get("min_utility", 0.0) - 1e-9


def test_progress_tells_the_gap():
    seen = []
    joint = bench_joint(500)
    problem = entry.Problem(joint)
    engine = many.ManyEngine(problem, 1, np.random.SeedSequence(0))
    target, limits = Target("beta", 0.05), many.Limits(1e-6 * NATS, 60.0)
    outcome = engine.solve(target, limits, lambda *numbers: seen.append(numbers))
    gaps = [objective - bound for objective, bound, _ in seen]
    assert len(outcome.history) >= 3
    assert gaps[-1] <= 1e-6 * NATS
    assert all(later <= earlier + 1e-15 for earlier, later in pairwise(gaps))


def test_a_frontier_of_many_letters():
    joint = bench_joint(2_000)
    front = pf.frontier(joint, betas=[0.05, 0.3], tol=1e-4, rng=0)
    assert {point.method for point in front.points if point.status} == {"exact"}
    for point in front.points:
        bound = front.lower_bound_at(point.utility)
        assert bound is not None
        assert bound <= point.leakage + 1e-9


def test_counted_letters_are_warned_of_and_printed():
    rng = np.random.default_rng(0)
    counts = rng.poisson(2.0, size=(2_000, 2))
    joint = pf.Joint.from_counts(counts[counts.sum(axis=1) > 0])
    with pytest.warns(pf.errors.FewRecordsWarning):
        solution = pf.solve(joint, beta=0.1, tol=1e-3, rng=0)
    assert "on new people" in str(solution)


@pytest.mark.full
def test_a_hundred_thousand_letters_in_two_gigabytes():
    code = """
import resource, sys
sys.path.insert(0, "tests/discrete/exact")
from test_many import bench_joint, check
import privacyfunnel as pf
for target in ({"beta": 0.05}, {"max_leakage": 0.02}, {"min_utility": 15.9}):
    solution = pf.solve(bench_joint(100_000), tol=1e-4, rng=0, **target)
    assert solution.gap <= 1e-4, solution
    check(solution)
assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * 1024**2
"""
    subprocess.run([sys.executable, "-c", code], check=True)
