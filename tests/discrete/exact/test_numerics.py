"""Joints at the end of the digits of linear programmes, ranks or sums: what is claimed must hold."""

import warnings

import highspy
import numpy as np
import pytest
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.exact.engine import line_without_search
from privacyfunnel.discrete.exact.master import Master
from privacyfunnel.discrete.exact.reduction import reduce
from privacyfunnel.discrete.exact.release import claim, kept_to
from privacyfunnel.discrete.problem import NATS_PER_BIT, Problem
from privacyfunnel.errors import ConvergenceWarning
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.solution import Target

NEARLY_DEPENDENT = [
    [0.00468525051073512, 0.0007384952838218004, 0.0017195056132981665],
    [0.07393979475479084, 0.0699200363706197, 0.147884133995344],
    [0.02450892859686147, 0.024382655872078964, 0.05151898134566522],
    [0.20673513652017, 0.12551358474362698, 0.26845349639298755],
]


def rare_letters():
    rng = np.random.default_rng(51)
    p_x = np.r_[1.0, 1.0, 10 ** -rng.uniform(8, 11, size=18)]
    return pf.Joint.from_channel(rng.dirichlet([0.3, 0.3], size=20), p_x / p_x.sum())


def quiet_exact(joint, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pf.solve(joint, method="exact", rng=0, n_jobs=1, **settings)


def assert_what_is_claimed_holds(solution, tol=1e-6):
    """The constraint, the bound below the objective, and OPTIMAL only within the tolerance."""
    if solution.min_utility is not None:
        assert solution.utility >= solution.min_utility - 2e-12
    if solution.max_leakage is not None:
        assert solution.leakage <= solution.max_leakage + 2e-12
    assert solution.lower_bound <= solution.objective
    if solution.status is pf.Status.OPTIMAL:
        assert solution.objective - solution.lower_bound <= tol


@pytest.mark.parametrize("limit", [1.940965079518526e-10, 1e-7, 1e-4])
def test_a_tiny_limit_on_leakage_is_kept(limit):
    solution = quiet_exact(pf.Joint(NEARLY_DEPENDENT), max_leakage=limit)
    assert_what_is_claimed_holds(solution)
    # Leakage may be tiny, utility need not be: the constant release is not the answer.
    assert solution.utility > 0.4


@pytest.mark.parametrize(
    "target", [{"beta": 1e-3}, {"beta": 0.3}, {"min_utility": 0.5}, {"max_leakage": 0.01}]
)
def test_letters_that_hardly_occur(target):
    solution = quiet_exact(rare_letters(), **target)
    assert_what_is_claimed_holds(solution)
    assert solution.gap <= 1e-5


@pytest.mark.parametrize("seed", range(12))
def test_constraints_hold_to_the_last_digit(seed):
    rng = np.random.default_rng(seed)
    joint = random_joint(rng, 5, 2 + seed % 3, ["dense", "zeros", "low-rank"][seed % 3])
    for share in (1e-7, 1e-3, 0.3, 0.999):
        # What is claimed must hold however far a proof got; a limit of 3e-9 bit can take minutes.
        for target in (
            {"min_utility": share * joint.entropy_x},
            {"max_leakage": share * joint.mutual_information},
        ):
            assert_what_is_claimed_holds(quiet_exact(joint, time_limit=2, **target))


def test_time_sharing_repairs_a_broken_constraint():
    problem = Problem(random_joint(np.random.default_rng(0), 4, 3))
    noisy = 0.9 * np.eye(4) + 0.025
    utility, leakage = (NATS_PER_BIT * v for v in utility_and_leakage(problem.p_xy, noisy))
    for target in (Target("min_utility", utility + 1e-3), Target("max_leakage", leakage - 1e-3)):
        held = kept_to(target, problem, noisy)
        u, v = (NATS_PER_BIT * value for value in utility_and_leakage(problem.p_xy, held))
        assert target.excess(u, v) <= 0.0
        assert abs(u - utility) + abs(v - leakage) < 0.05
        np.testing.assert_allclose(held.sum(axis=1), 1.0, atol=1e-12)
    easy = Target("max_leakage", leakage + 1e-3)
    assert kept_to(easy, problem, noisy) is noisy


def test_optimal_is_not_claimed_for_a_gap_a_broken_constraint_or_a_refuted_bound():
    problem = Problem(random_joint(np.random.default_rng(0), 4, 3))
    utility, leakage = (NATS_PER_BIT * v for v in utility_and_leakage(problem.p_xy, np.eye(4)))
    optimal, target = pf.Status.OPTIMAL, Target("min_utility", utility)
    assert claim(problem, np.eye(4), target, optimal, leakage, 1e-6)[0] is optimal
    assert claim(problem, np.eye(4), target, optimal, leakage - 1e-3, 1e-6)[0] is not optimal
    status, bound = claim(problem, np.eye(4), target, optimal, leakage + 1e-3, 1e-6)
    assert status is not optimal
    assert bound <= leakage
    above = Target("min_utility", utility + 1e-3)
    assert claim(problem, np.eye(4), above, optimal, leakage, 1e-6)[0] is not optimal


def test_a_programme_that_is_not_solved_is_not_used(monkeypatch):
    master = Master(reduce(Problem(pf.Joint(NEARLY_DEPENDENT))), Target("beta", 0.2), 1e-6)
    monkeypatch.setattr(
        highspy.Highs, "getModelStatus", lambda self: highspy.HighsModelStatus.kUnknown, raising=True
    )
    assert master.solve() is None
    solution = quiet_exact(pf.Joint(NEARLY_DEPENDENT), beta=0.2)
    assert solution.status is pf.Status.NUMERICAL_LIMIT
    assert solution.lower_bound <= solution.objective


@pytest.mark.parametrize("power", [-6, -8, -9, -10, -12, -13, -15])
@pytest.mark.parametrize("n_x", [2, 4])
def test_perfect_privacy_near_rank_deficiency(power, n_x):
    step = 10.0**power
    rows = [[0.3 + step * x, 0.7 - step * x] for x in range(n_x)]
    joint = pf.Joint.from_channel(rows, np.full(n_x, 1 / n_x))
    solution = pf.perfect_privacy(joint)
    assert_what_is_claimed_holds(solution)
    assert solution.leakage <= 1e-12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        front = pf.frontier(joint, method="exact", n_points=3, rng=0)
    for point in front.points:
        assert (front.lower_bound_at(min(point.utility, front.max_utility)) or 0.0) <= point.leakage + 1e-12


@pytest.mark.parametrize("total", [1 + 9e-10, 1 - 9e-10])
def test_a_joint_that_sums_to_almost_one(total):
    joint = pf.Joint(np.array(random_joint(np.random.default_rng(2), 4, 3).p_xy) * total)
    for target in ({"beta": 0.2}, {"min_utility": 1.0}, {"max_leakage": 0.05}):
        solution = quiet_exact(joint, **target)
        assert_what_is_claimed_holds(solution)
        assert solution.status is pf.Status.OPTIMAL


@pytest.mark.parametrize("seed", range(8))
def test_lines_that_need_no_search(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(random_joint(rng, 4, 3, ["dense", "zeros"][seed % 2]))
    n = problem.n_x  # letters that occur
    targets = [
        Target("beta", 0.2),
        Target("beta", 3.0),
        Target("min_utility", 1.0),
        Target("max_leakage", 0.01),
    ]
    channels = [np.eye(n), np.ones((n, 1)), *rng.dirichlet(np.full(5, 0.2), size=(50, n))]
    for target in targets:
        line = line_without_search(reduce(problem), target)
        for channel in channels:
            utility, leakage = (NATS_PER_BIT * v for v in utility_and_leakage(problem.p_xy, channel))
            assert leakage >= line.value + line.beta * utility - 1e-12
    assert line_without_search(reduce(problem), targets[-1]).beta == 1.0


def test_the_total_of_nodes_is_limited():
    joint = random_joint(np.random.default_rng(0), 10, 5)
    unlimited = quiet_exact(joint, beta=0.02)
    assert unlimited.status is pf.Status.OPTIMAL
    assert nodes_of(unlimited) > 1000
    for limit in (1, 300):
        limited = quiet_exact(joint, beta=0.02, node_limit=limit)
        assert limited.status is pf.Status.TIME_LIMIT
        assert nodes_of(limited) <= 2 * limit + 2  # the two workers may take as much
        assert limited.lower_bound <= unlimited.objective


def nodes_of(solution):
    return int(solution.notes[0].split(" columns, ")[1].split(" ")[0].replace(",", ""))
