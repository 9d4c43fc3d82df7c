"""Certificates of every kind against a checker in interval arithmetic that knows none of the solvers."""

from dataclasses import replace

import numpy as np
import pytest
from grids import limits, utilities
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.exact import entry, many
from privacyfunnel.errors import InfeasibleError
from privacyfunnel.measures import Distance, Measures

pytest.importorskip("flint", reason="needs python-flint, of the extra dev")
from interval_checker import Refuted, check

SHAPES = ["dense", "zeros", "duplicated", "uniform", "zero-row", "low-rank", "zero-column", "dense"]
TARGETS = ("beta", "max_leakage", "min_utility")
#: Utilities, leakages, limits on lift and numbers of private values, of which one each is drawn.
KINDS = {
    "information by pairs": (["information"], ["information"], [None], [2]),
    "information by supports": (["information"], ["information"], [None], [3, 4, 5]),
    "merged private values": (["information"], ["information"], [None], [4, 5]),
    "many letters": (["information"], ["information"], [None], [2]),
    "distance by pairs": (["distance", "cost"], ["information"], [None], [2]),
    "task by pairs": (["task of two", "task of three"], ["information"], [None], [2]),
    "success by pairs": (["information", "distance", "cost", "task of two"], ["success"], [None], [2]),
    "parity by pairs": (["information", "distance", "cost", "task of two"], ["parity"], [None], [2]),
    "lift by pairs": (
        ["information", "distance", "task of three"],
        ["information", "success", "parity"],
        [0.2, 0.7],
        [2],
    ),
    "success by a programme": (["distance", "cost", "task of two"], ["success"], [None], [3, 4]),
    "parity by a programme": (["distance", "cost", "task of two"], ["parity"], [None], [3, 4]),
    "lift by a programme": (["distance", "cost", "task of three"], ["success", "parity"], [0.2, 0.7], [3]),
    "finite actions": (["distance", "cost", "task of two", "task of three"], ["information"], [None], [3, 5]),
    "budgets": (["distance", "cost", "task of two"], ["information", "success", "parity"], [None], [4]),
    "perfect privacy": (
        ["information", "distance", "cost", "task of two", "task of three"],
        ["information"],
        [None],
        [2, 3, 4],
    ),
}


def drawn(kind, rng):
    """A random solution of this kind with its proof; None where none was needed, or nothing is possible."""
    names, leakages, lifts, sizes = ([*one] for one in KINDS[kind])
    name, leakage, lift = (one[rng.integers(len(one))] for one in (names, leakages, lifts))
    n_x, n_y = int(rng.integers(2, 8)), int(rng.choice(sizes))
    if kind == "many letters":
        n_x = int(rng.integers(12, 25))
    joint = random_joint(rng, n_x, n_y, SHAPES[rng.integers(len(SHAPES))])
    utility = utilities(rng, n_x, zeros=rng.random() < 0.3)[name]
    if name == "distance":
        utility = Distance(utility.table * 10.0 ** rng.integers(-6, 7), kind="points")
    if kind == "perfect privacy":
        return pf.perfect_privacy(joint, utility=utility)
    measures = Measures(utility, leakage, lift)
    target = TARGETS[rng.integers(3)]
    asked = {target: limits(joint, measures, rng.choice([0.02, 0.1, 0.3, 0.6, 0.9]))[target]}
    if kind == "budgets":
        columns = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]}
        pairs = tuple(zip(columns["a"], columns["b"], strict=True))
        joint = pf.Joint(joint.p_xy, y_labels=pairs, y_names=("a", "b"))
        room = float(rng.choice([0.01, 0.05, 0.2]))
        asked = {"max_leakage": {}}
        for column, groups in columns.items():
            shares = np.bincount(groups, weights=joint.p_y)
            asked["max_leakage"][column] = room + (shares.max() if leakage == "success" else 0.0)
    try:
        return pf.solve(
            joint,
            utility=utility,
            leakage=leakage,
            max_lift=lift,
            method="exact",
            tol=float(rng.choice([1e-3, 1e-4] if kind == "many letters" else [1e-4, 1e-6, 1e-8])),
            node_limit=int(rng.choice([1, 30, 300])) if kind == "merged private values" else None,
            rng=0,
            n_jobs=1,
            **asked,
        )
    except InfeasibleError:
        return None


def is_of(kind, solution):
    """Whether the proof is what its kind is about, where a problem may be settled in another way."""
    if kind == "merged private values":
        return solution.proof.kind == "merged"
    return kind != "many letters" or "groups of letters" in solution.notes[0]


@pytest.fixture(autouse=True)
def _few_letters_count_as_many(request, monkeypatch):
    """Letters are put into clusters from ten on, into four at first: few enough to check every pair."""
    if getattr(request.node, "callspec", None) and request.node.callspec.params.get("kind") == "many letters":
        monkeypatch.setattr(entry, "MANY", 10)
        monkeypatch.setattr(many, "FEWEST", 4)


def certificates(kind, count):
    """So many solutions with a proof, and their seeds."""
    found, seed = 0, 0
    while found < count:
        seed += 1
        assert seed < 20 * count + 100, "most problems of this kind need no proof"
        solution = drawn(kind, np.random.default_rng([seed, *map(ord, kind)]))
        if solution is not None and solution.proof is not None and is_of(kind, solution):
            found += 1
            yield seed, solution


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_certificates_of_each_kind(kind):
    for seed, solution in certificates(kind, 6):
        assert check(solution) >= 0, seed


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_two_hundred_certificates_of_each_kind(kind):
    for seed, solution in certificates(kind, 200):
        assert check(solution) >= 0, seed


@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_that_claims_too_much_is_refuted(kind):
    """Where the gap is small, a little more than the bound is more than is true; prices that are wrong say
    nothing."""
    refuted = 0
    for _, solution in certificates(kind, 6):
        measures, joint = solution.measures, solution.joint
        whole = measures.utility_of(joint.p_x, np.eye(joint.n_x))
        scale = max(whole, 1e-6) if solution.target.kind == "max_leakage" else 1.0
        more = 3e-3 * scale
        if kind == "merged private values":
            more += solution.gap  # such proofs are for when the gap stays open
        elif solution.gap > 1e-3 * scale or solution.scope:
            continue
        with pytest.raises(Refuted):
            check(replace(solution, lower_bound=solution.lower_bound + more))
        refuted += 1
    assert refuted


@pytest.mark.full
@pytest.mark.parametrize("target", [{"beta": 0.05}, {"max_leakage": 0.05}])
def test_certificates_of_more_letters_than_are_solved_at_once(target):
    rng = np.random.default_rng(3)
    p_x, rows = rng.dirichlet(np.full(230, 3.0)), rng.dirichlet(np.ones(2), size=230)
    solution = pf.solve(pf.Joint(p_x[:, None] * rows), method="exact", tol=1e-3, rng=0, n_jobs=1, **target)
    assert "groups of letters" in solution.notes[0]
    assert check(solution)
    with pytest.raises(Refuted):
        check(replace(solution, lower_bound=solution.lower_bound + 3e-2))
