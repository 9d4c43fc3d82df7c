"""What is asked for: the three targets."""

import math

import pytest

import privacyfunnel as pf
from privacyfunnel.datasets import paper_joint
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.solution import Solution, Target


@pytest.mark.parametrize(
    ("kind", "objective", "excess"),
    [("beta", 0.2 - 0.4 * 0.9, 0.0), ("min_utility", 0.2, 0.4 - 0.9), ("max_leakage", -0.9, 0.2 - 0.4)],
)
def test_what_is_minimised_and_what_is_broken(kind, objective, excess):
    target = Target(kind, 0.4)
    assert target.objective(utility=0.9, leakage=0.2) == pytest.approx(objective)
    assert target.excess(utility=0.9, leakage=0.2) == pytest.approx(excess)


def test_beta_has_no_unit():
    problem = Problem(paper_joint())
    assert problem.inner(Target("beta", 0.4)) == Target("beta", 0.4)
    assert problem.inner(Target("max_leakage", 0.4)) == Target("max_leakage", 0.4 * math.log(2))
    assert problem.inner(Target("min_utility", 0.4)) == Target("min_utility", 0.4 * math.log(2))


@pytest.mark.parametrize("method", ["exact", "dca", "greedy"])
@pytest.mark.parametrize("kind", ["beta", "min_utility", "max_leakage"])
def test_a_solution_says_what_was_asked_for(method, kind):
    solution = pf.solve(paper_joint(), method=method, n_starts=2, rng=0, **{kind: 0.3})
    assert solution.target == Target(kind, 0.3)
    asked = {name: getattr(solution, name) for name in ("beta", "min_utility", "max_leakage")}
    assert asked == {"beta": None, "min_utility": None, "max_leakage": None} | {kind: 0.3}
    assert solution.objective == solution.target.objective(solution.utility, solution.leakage)
    assert solution.target.excess(solution.utility, solution.leakage) <= 1e-9
    assert pf.TradeoffPoint.from_solution(solution).settings == {kind: 0.3}


def test_a_release_that_nobody_asked_for_is_judged_by_what_it_keeps():
    joint = paper_joint()
    solution = Solution(joint, pf.TableMechanism.identity(joint), "check", pf.Status.FINISHED)
    assert solution.objective == -solution.utility
    assert solution.max_leakage == math.inf
    assert pf.TradeoffPoint.from_solution(solution).settings == {}
