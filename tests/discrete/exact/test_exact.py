"""method="exact": the optimum, its certificate, and what happens beyond the provable range."""

import warnings

import numpy as np
import pytest
from discrete.twins import slow_information
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import entr
from strategies import KINDS, joints, random_joint

import privacyfunnel as pf
from privacyfunnel.datasets import known_joints, paper_joint
from privacyfunnel.discrete.exact import engine as engine_module
from privacyfunnel.discrete.exact.looking import Looker, Starts
from privacyfunnel.discrete.exact.nodes import empty_nodes
from privacyfunnel.discrete.exact.pricing import Pricing
from privacyfunnel.errors import ConvergenceWarning, InvalidInputError

GRID_OPTIMUM = [
    *(0.01751, 0.03589, 0.05434, 0.07283, 0.09137, 0.10997, 0.13291, 0.17814),
    *(0.22471, 0.28280, 0.34548, 0.40933, 0.47318, 0.53703, 0.60089),
]


def objective_bits(joint, p, beta):
    utility, leakage = slow_information(joint.p_xy, p)
    return leakage - beta * utility


def assert_certificate(solution, beta, channels):
    """The bound is below every feasible objective found by any means, and the gap is what it says."""
    assert solution.lower_bound is not None
    assert solution.objective == pytest.approx(
        objective_bits(solution.joint, solution.mechanism.p_z_given_x, beta), abs=1e-11
    )
    assert solution.lower_bound <= solution.objective + 1e-12
    for p in channels:
        assert solution.lower_bound <= objective_bits(solution.joint, p, beta) + 1e-12


def feasible_channels(joint, beta, rng):
    """Channels from other methods and at random: none may lie below the bound."""
    n = joint.n_x
    yield np.eye(n)
    yield np.ones((n, 1))
    for _ in range(20):
        yield rng.dirichlet(np.full(n + 1, rng.choice([0.1, 1.0])), size=n)
    for method in ("dca", "greedy", "submodular"):
        options = {} if method != "dca" else {"n_starts": 12}
        yield pf.solve(joint, beta=beta, method=method, rng=0, **options).mechanism.p_z_given_x


def exact(joint, **options):
    return pf.solve(joint, method="exact", rng=0, **options)


@settings(max_examples=120)
@given(joints(max_x=6, max_y=4), st.sampled_from([0.02, 0.1, 0.3, 0.6, 0.95, 1.5]), st.integers(0, 10**6))
def test_optimal_and_proved_on_random_joints(joint, beta, seed):
    solution = exact(joint, beta=beta)
    assert solution.status is pf.Status.OPTIMAL
    assert solution.gap <= 1e-6
    channels = list(feasible_channels(joint, beta, np.random.default_rng(seed)))
    assert_certificate(solution, beta, channels)
    for p in channels:
        assert solution.objective <= objective_bits(joint, p, beta) + 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_certificates_hold_where_conditionals_are_tiny(seed):
    """P(y|x) down to 1e-25: roots and complements that cancel would void the bound without a sign."""
    rng = np.random.default_rng(seed)
    n_x, n_y = int(rng.integers(2, 6)), int(rng.choice([2, 2, 3]))
    channel = rng.dirichlet(np.ones(n_y), size=n_x)
    channel *= 10.0 ** -(rng.uniform(0, 25, size=channel.shape) * (rng.random(channel.shape) < 0.5))
    joint = pf.Joint.from_channel(channel / channel.sum(axis=1, keepdims=True), rng.dirichlet(np.ones(n_x)))
    for beta in (float(rng.random()), 1 - 10.0 ** -rng.uniform(1, 6)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = exact(joint, beta=beta, time_limit=5)
        assert_certificate(solution, beta, feasible_channels(joint, beta, rng))


def test_a_broken_pricing_is_caught(monkeypatch):
    """Without a search of supports the bound is no bound, and the check above must say so."""
    joint = random_joint(np.random.default_rng(1), 6, 3)
    channels = list(feasible_channels(joint, 0.1, np.random.default_rng(0)))
    assert_certificate(exact(joint, beta=0.1), 0.1, channels)
    monkeypatch.setattr(Pricing, "_first_nodes", lambda self, beta: empty_nodes(0, 3, 3))
    nothing = np.empty(0), Starts(np.empty((0, 1), dtype=np.int32), np.empty((0, 1)))
    monkeypatch.setattr(Looker, "look", lambda self, duals, possible, known, effort=1: nothing)
    monkeypatch.setattr(engine_module.Engine, "add", lambda self, p: None)
    broken = exact(joint, beta=0.1)
    with pytest.raises(AssertionError):
        assert_certificate(broken, 0.1, channels)


def grid_optimum(joint, beta, steps):
    """The linear programme over all posteriors on a grid: an upper bound on the least L, in bits."""
    n = joint.n_x
    grid = np.array([c for c in np.ndindex(*([steps + 1] * (n - 1))) if sum(c) <= steps], dtype=float) / steps
    q = np.column_stack([grid, 1 - grid.sum(axis=1)])
    channel = joint.p_xy / joint.p_x[:, None]
    f = (entr(q @ channel).sum(axis=1) - beta * entr(np.clip(q, 0, 1)).sum(axis=1)) / np.log(2)
    result = linprog(-f, A_eq=q.T, b_eq=joint.p_x, method="highs")
    return joint.entropy_y - beta * joint.entropy_x + result.fun


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_fine_grid_programme(seed):
    joint = random_joint(np.random.default_rng(seed), 3, 2 + seed % 3)
    for beta in (0.1, 0.4):
        solution = exact(joint, beta=beta)
        grid = grid_optimum(joint, beta, 150)
        assert solution.lower_bound <= grid + 1e-9
        assert solution.objective <= grid + 1e-6
        assert grid - solution.objective <= 5e-4  # the grid is coarse; the optimum is not far below it


@pytest.mark.parametrize("step", range(15))
def test_the_papers_joint(step):
    solution = exact(paper_joint(), min_utility=0.1 * (step + 1))
    assert solution.gap <= 1e-6
    assert solution.utility >= 0.1 * (step + 1) - 1e-9
    assert abs(solution.leakage - GRID_OPTIMUM[step]) <= 2e-5


@pytest.mark.parametrize("known", known_joints(), ids=lambda known: known.name)
def test_joints_with_a_known_optimum(known):
    for utility, leakage in known.points:
        solution = exact(known.joint, min_utility=utility)
        assert solution.gap <= 1e-6
        assert abs(solution.leakage - leakage) <= known.tolerance + 1e-6
        assert solution.lower_bound <= leakage + known.tolerance


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (4, 1), (2, 6), (6, 2), (5, 5)])
def test_degenerate_joints_without_noise(kind, shape):
    joint = random_joint(np.random.default_rng(7), *shape, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for target in (
            {"beta": 0.2},
            {"min_utility": 0.5 * joint.entropy_x},
            {"max_leakage": 0.5 * joint.mutual_information},
        ):
            solution = exact(joint, **target)
            assert solution.status is pf.Status.OPTIMAL
            assert solution.gap <= 1e-6
            utility, leakage = slow_information(joint.p_xy, solution.mechanism.p_z_given_x)
            assert solution.utility == pytest.approx(utility, abs=1e-12)
            assert solution.leakage == pytest.approx(leakage, abs=1e-12)
            assert utility >= target.get("min_utility", 0.0) - 1e-9
            assert leakage <= target.get("max_leakage", np.inf) + 1e-9


@settings(max_examples=25)
@given(joints(max_x=5, max_y=4), st.integers(0, 10**6))
def test_relabelling_changes_nothing(joint, seed):
    rng = np.random.default_rng(seed)
    shuffled = pf.Joint(joint.p_xy[rng.permutation(joint.n_x)][:, rng.permutation(joint.n_y)])
    one, other = exact(joint, beta=0.2), exact(shuffled, beta=0.2)
    assert one.objective == pytest.approx(other.objective, abs=2e-6)


@settings(max_examples=25)
@given(joints(max_x=5, max_y=3))
def test_a_tighter_constraint_never_helps_and_the_curve_is_convex(joint):
    shares = np.array([0.2, 0.4, 0.6, 0.8])
    solutions = [exact(joint, min_utility=share * joint.entropy_x) for share in shares]
    leakage = np.array([s.leakage for s in solutions])
    assert np.all(np.diff(leakage) >= -2e-6)
    assert np.all(np.diff(leakage, 2) >= -4e-6)
    # The two constrained problems are each other's inverse.
    for solution, share in zip(solutions, shares, strict=True):
        inverse = exact(joint, max_leakage=solution.leakage)
        assert inverse.utility >= share * joint.entropy_x - 1e-4


@pytest.mark.parametrize("n_y", [2, 3, 4])
def test_supports_obey_the_theorem(n_y):
    joint = random_joint(np.random.default_rng(n_y), 12, n_y)
    solution = exact(joint, beta=0.05)
    assert np.all((solution.mechanism.p_z_given_x > 0).sum(axis=0) <= n_y)
    assert solution.mechanism.n_z <= joint.n_x
    constrained = exact(joint, min_utility=0.5 * joint.entropy_x)
    assert constrained.mechanism.n_z <= joint.n_x + 1


def test_duplicated_letters_are_told_apart_for_free():
    rng = np.random.default_rng(0)
    channel, p_x = rng.dirichlet(np.ones(3), size=4), rng.dirichlet(np.ones(4))
    plain = pf.Joint.from_channel(channel, p_x)
    split = pf.Joint.from_channel(np.repeat(channel, 3, axis=0), np.repeat(p_x / 3, 3))
    for beta in (0.1, 0.4):
        one, other = exact(plain, beta=beta), exact(split, beta=beta)
        assert other.objective == pytest.approx(one.objective - beta * np.log2(3), abs=2e-6)
        assert other.leakage == pytest.approx(one.leakage, abs=1e-3)


@pytest.mark.parametrize(
    "target", [{"beta": 0.1}, {"min_utility": 1.5}, {"max_leakage": 0.05}], ids=["beta", "utility", "leakage"]
)
@pytest.mark.parametrize("n_y", [2, 3])
def test_the_number_of_workers_changes_nothing(target, n_y):
    joint = random_joint(np.random.default_rng(5), 10, n_y)
    one, two = (exact(joint, n_jobs=n, **target) for n in (1, 2))
    np.testing.assert_array_equal(one.mechanism.p_z_given_x, two.mechanism.p_z_given_x)
    assert one.lower_bound == two.lower_bound


def test_the_frontier_has_certified_points_and_a_curve_below():
    joint = paper_joint()
    front = pf.frontier(joint, method="exact", n_points=14, rng=0)
    assert all(point.status is pf.Status.OPTIMAL for point in front.points if point.method == "exact")
    for utility in np.linspace(0.01, joint.entropy_x, 50):
        bound = front.lower_bound_at(utility)
        assert bound <= front.leakage_at(utility) + 1e-12
        assert front.leakage_at(utility) - bound <= 2e-3
    for point in front.points:
        assert front.lower_bound_at(min(point.utility, joint.entropy_x)) <= point.leakage + 1e-12
    # No release of any other method lies below the curve.
    for method in ("dca", "greedy", "dca-ridge"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            other = pf.frontier(joint, method=method, n_points=16, n_starts=5, rng=0)
        for point in other.points:
            utility = min(point.utility, joint.entropy_x)
            assert front.lower_bound_at(utility) <= point.leakage + 1e-12


def test_a_frontier_at_given_betas():
    front = pf.frontier(paper_joint(), method="exact", betas=[0.2, 0.5], rng=0)
    assert [point.beta for point in front.points if point.method == "exact"] == [0.2, 0.5]
    assert [beta for beta, _ in front.support_lines] == [0.2, 0.5]


def test_out_of_time_the_bound_still_holds():
    joint = random_joint(np.random.default_rng(0), 14, 6)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        solution = exact(joint, beta=0.03, time_limit=1e-3)
    assert solution.status is pf.Status.TIME_LIMIT
    assert solution.gap > 1e-6
    assert_certificate(solution, 0.03, feasible_channels(joint, 0.03, np.random.default_rng(0)))
    with pytest.raises(pf.errors.NotConvergedError, match="time_limit"):
        solution.raise_for_status()


def test_a_node_limit_is_honoured_and_said():
    joint = random_joint(np.random.default_rng(0), 8, 4)
    with pytest.warns(ConvergenceWarning):
        solution = exact(joint, beta=0.05, node_limit=1)
    assert solution.status is pf.Status.TIME_LIMIT
    assert_certificate(solution, 0.05, feasible_channels(joint, 0.05, np.random.default_rng(0)))


def test_an_interrupt_returns_the_best_so_far(monkeypatch):
    joint = random_joint(np.random.default_rng(3), 8, 3)
    calls = []

    def interrupted(self, *arguments, original=Pricing.look):
        calls.append(arguments)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(Pricing, "look", interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        solution = exact(joint, min_utility=1.0)
    assert solution.status is pf.Status.INTERRUPTED
    assert solution.utility >= 1.0 - 1e-9
    assert solution.lower_bound <= solution.objective


def test_auto_takes_exact_unless_the_number_of_symbols_is_given():
    assert pf.solve(paper_joint(), beta=0.3).method == "exact"
    assert pf.solve(paper_joint(), beta=0.3, n_z=3, n_starts=2, rng=0).method == "dca"


def channel_joint(n_x, n_y):
    rng = np.random.default_rng(0)
    return pf.Joint.from_channel(rng.dirichlet(np.ones(n_y), size=n_x), rng.dirichlet(np.full(n_x, 3.0)))


@pytest.mark.parametrize(
    ("n_x", "n_y", "beta"),
    [(40, 5, 0.5), (25, 8, 0.5), (20, 15, 0.5), (30, 20, 0.5), (50, 20, 0.5), (300, 3, 0.5), (60, 4, 0.4)],
)
def test_auto_proves_what_looks_large_and_is_not(n_x, n_y, beta):
    joint = channel_joint(n_x, n_y)
    solution = pf.solve(joint, beta=beta, rng=0)
    assert (solution.method, solution.status) == ("exact", pf.Status.OPTIMAL)
    assert solution.gap <= 1e-6
    local = pf.solve(joint, beta=beta, method="dca", n_starts=4, rng=0)
    assert solution.lower_bound - 1e-9 <= local.objective
    assert solution.objective <= local.objective + 1e-6


TIGHT = [{"beta": 0.1}, {"min_utility": 2.0}, {"max_leakage": 0.05}]


@pytest.mark.parametrize("target", TIGHT, ids=lambda target: next(iter(target)))
def test_a_proof_out_of_time_is_not_worse_than_dca(target):
    joint = channel_joint(14, 12)
    local = pf.solve(joint, method="dca", rng=0, **target)
    with pytest.warns(ConvergenceWarning, match="exact"):
        late = exact(joint, time_limit=1e-3, **target)
    assert not late.status.ok
    assert late.lower_bound <= late.objective <= local.objective + 1e-9
    assert "dca improved" in late.notes[-1] or late.objective <= local.objective
    both = pf.solve(joint, time_limit=1e-3, rng=0, **target)
    assert (both.method, both.status) == ("dca", pf.Status.CONVERGED)
    assert both.lower_bound <= both.objective <= local.objective + 1e-9
    assert "auto tried exact first" in both.notes[-1]
    assert both.leakage <= target.get("max_leakage", np.inf) + 1e-9
    assert both.utility >= target.get("min_utility", 0.0) - 1e-9


def test_auto_leaves_at_once_what_is_too_large_to_begin(monkeypatch):
    monkeypatch.setattr("privacyfunnel.discrete.exact.entry.MOST_LETTERS", 5)
    solution = pf.solve(channel_joint(6, 3), beta=0.3, n_starts=1, rng=0)
    assert solution.method == "dca"
    assert solution.lower_bound is None
    assert solution.notes == ("auto left exact out: the joint is too large for a proof.",)


def test_exact_finds_its_own_number_of_symbols():
    with pytest.raises(InvalidInputError, match="n_z belongs to the local methods"):
        exact(paper_joint(), beta=0.3, n_z=4)


@pytest.mark.parametrize("known", known_joints(), ids=lambda known: known.name)
def test_perfect_privacy_of_known_joints(known):
    solution = pf.perfect_privacy(known.joint)
    assert solution.leakage <= 1e-12
    assert solution.utility == pytest.approx(known.free_utility, abs=1e-9)
    assert solution.gap <= 1e-9


@settings(max_examples=60)
@given(joints(max_x=6, max_y=4))
def test_perfect_privacy_is_where_the_curve_leaves_zero(joint):
    solution = pf.perfect_privacy(joint)
    assert solution.leakage <= 1e-10
    assert solution.status is pf.Status.OPTIMAL
    assert solution.gap <= 1e-6
    # An independent bound: a line of the certified frontier crosses zero leakage at a larger utility.
    for beta in (0.3, 0.01):
        line = exact(joint, beta=beta).lower_bound
        assert solution.utility <= -line / beta + 1e-9


def test_perfect_privacy_with_too_many_letters_says_so():
    joint = random_joint(np.random.default_rng(0), 60, 12)
    with pytest.raises(InvalidInputError, match="Merge letters"):
        pf.perfect_privacy(joint)
