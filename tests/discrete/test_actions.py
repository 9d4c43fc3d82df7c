"""More than two private values, other measures: finite actions against grids, random channels and ends."""

import numpy as np
import pytest
from grids import least_on_grid, limits, loss, utilities
from proved import solve, within
from scipy.optimize import linprog
from strategies import random_joint

import privacyfunnel as pf
from privacyfunnel.discrete.actions import first_actions, loss_of_nothing
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.errors import InfeasibleError, InvalidInputError
from privacyfunnel.measures import Distance, Measures, Task, largest_lift, parity_gap

KINDS = ["dense", "zeros", "deterministic", "duplicated", "uniform", "zero-row", "rank1", "zero-column"]
LEAKAGES = ("information", "success", "parity")


def others(rng, n, *, zeros=False):
    return {name: one for name, one in utilities(rng, n, zeros=zeros).items() if name != "information"}


def channels(rng, n, n_a=None):
    sizes = (2, 3, n + 1) if n_a is None else (n_a,)
    return [rng.dirichlet(np.full(k, a), size=n) for k in sizes for a in (0.1, 0.5, 2.0) for _ in range(60)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_combination_is_proved_and_keeps_its_limits(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    joint = random_joint(rng, 4, 3 if KINDS.index(kind) % 2 else 5, kind)
    for utility in others(rng, 4, zeros=kind == "zeros").values():
        for leakage in LEAKAGES:
            for target, value in limits(joint, Measures(utility, leakage), 0.3).items():
                within(solve(joint, Measures(utility, leakage), **{target: value}))


@pytest.mark.parametrize("leakage", LEAKAGES)
def test_no_channel_over_the_answers_of_a_table_beats_the_bound(leakage):
    """A table of costs has no other answers: the bound is for every release."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        joint = random_joint(rng, 5, 3)
        measures = Measures(Distance(rng.exponential(size=(5, 4)), kind="costs"), leakage)
        solution = solve(joint, measures, max_leakage=limits(joint, measures, 0.3)["max_leakage"])
        within(solution)
        assert solution.scope == ""
        line = pf.frontier(
            joint, utility=measures.utility, leakage=leakage, n_points=3, rng=0, n_jobs=1
        ).support_lines
        for p in channels(rng, 5):
            utility, told = measures.utility_of(joint.p_x, p), measures.leakage_of(joint.p_xy, p)
            assert all(told >= value + beta * utility - 1e-12 for beta, value in line)


def dense_programme(joint, measures, limit):
    """The twin: the least expected cost over the first actions, all columns at once; success or parity."""
    problem = Problem(joint, measures)
    cost, table = first_actions(problem).cost, problem.p_y_given_x
    n_x, n_a = cost.shape
    n_y = table.shape[1]
    n_m = n_x * n_a
    rows, right = [], []
    pairs = [(i, j) for i in range(n_y) for j in range(n_y) if i != j]
    n_s = n_a if measures.leakage == "success" else n_a * len(pairs)
    for a in range(n_a):
        v = np.zeros((n_y, n_m))
        for x in range(n_x):
            v[:, x * n_a + a] = table[x]
        if measures.leakage == "success":
            for y in range(n_y):
                rows.append(np.concatenate([v[y], -np.eye(n_a)[a]]))
        else:
            for k, (i, j) in enumerate(pairs):
                form = v[i] / joint.p_y[i] - v[j] / joint.p_y[j]
                rows.append(np.concatenate([form, -np.eye(n_s)[a * len(pairs) + k]]))
        right += [0.0] * (len(rows) - len(right))
    if measures.leakage == "success":
        rows.append(np.concatenate([np.zeros(n_m), np.ones(n_a)]))
        right.append(limit)
    else:
        for k in range(len(pairs)):
            rows.append(np.concatenate([np.zeros(n_m), np.tile(np.eye(len(pairs))[k], n_a)]))
            right.append(limit)
    once = np.hstack([np.kron(np.eye(n_x), np.ones(n_a)), np.zeros((n_x, n_s))])
    objective = np.concatenate([cost.ravel(), np.zeros(n_s)])
    result = linprog(objective, np.array(rows), right, once, joint.p_x, method="highs")
    return (loss_of_nothing(problem) - result.fun) / problem.utility_unit


@pytest.mark.parametrize("leakage", ["success", "parity"])
def test_the_linear_programme_against_one_with_all_columns(leakage):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        joint = random_joint(rng, 9, 3)
        for name, utility in others(rng, 9).items():
            measures = Measures(utility, leakage)
            limit = limits(joint, measures, 0.3)["max_leakage"]
            twin = dense_programme(joint, measures, limit)
            solution = solve(joint, measures, max_leakage=limit)
            within(solution)
            if solution.scope:  # more answers than the twin has
                assert solution.utility >= twin - 1e-6, name
            else:
                assert solution.utility == pytest.approx(twin, abs=1e-6), name


def test_two_private_values_the_other_way_agree():
    """Finite actions never beat the optimum over all posteriors, and a table of costs reaches it."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        joint = random_joint(rng, 5, 2)
        split = pf.Joint(np.hstack([joint.p_xy[:, :1], joint.p_xy[:, 1:] * 0.3, joint.p_xy[:, 1:] * 0.7]))
        for name, utility in others(rng, 5).items():
            for leakage in ("information", "parity"):  # splitting a value at random tells nothing new
                measures = Measures(utility, leakage)
                value = limits(joint, measures, 0.3)["max_leakage"]
                one, two = (
                    solve(joint, measures, max_leakage=value),
                    solve(split, measures, max_leakage=value),
                )
                assert two.utility <= -one.lower_bound + 1e-6, (name, leakage)
                close = 1e-6 if name == "cost" else 2e-2 * one.utility
                assert two.utility == pytest.approx(one.utility, abs=close), (name, leakage)


def test_a_limit_never_helps_and_more_allowed_is_never_worse():
    rng = np.random.default_rng(5)
    joint = random_joint(rng, 5, 3)
    costs = Distance(rng.exponential(size=(5, 6)), kind="costs")
    for leakage in ("success", "parity"):
        measures = Measures(costs, leakage)
        kept = []
        for share in (0.0, 0.2, 0.6, 1.0):
            value = limits(joint, measures, share)["max_leakage"]
            free = solve(joint, measures, max_leakage=value)
            within(free)
            kept.append(free.utility)
            for lift in (0.0, 0.3):
                limited = solve(joint, Measures(costs, leakage, lift), max_leakage=value)
                within(limited)
                assert limited.utility <= -free.lower_bound + 1e-9
        assert np.all(np.diff(kept) >= -1e-6)
    with pytest.raises(InfeasibleError, match=r"with max_lift = 0.01 bit is proved impossible"):
        solve(joint, Measures(costs, "success", 0.01), min_utility=0.99 * kept[-1])


def test_letters_and_private_values_may_be_renamed():
    rng = np.random.default_rng(9)
    joint = random_joint(rng, 5, 3, "zeros")
    order = rng.permutation(5)
    renamed = pf.Joint(joint.p_xy[np.ix_(order, [2, 0, 1])])
    costs = rng.exponential(size=(5, 4))
    for leakage in LEAKAGES:
        one, two = (Measures(Distance(c, kind="costs"), leakage) for c in (costs, costs[order]))
        value = limits(joint, one, 0.4)["max_leakage"]
        first, second = solve(joint, one, max_leakage=value), solve(renamed, two, max_leakage=value)
        assert first.objective == pytest.approx(second.objective, abs=3e-7)


@pytest.mark.parametrize(
    "p_xy",
    [[[0.2, 0.3, 0.5]], [[0.1, 0.1, 0.2], [0.15, 0.15, 0.3]], [[0.3, 0, 0], [0, 0.3, 0], [0, 0, 0.4]]],
)
def test_degenerate_joints(p_xy):
    joint = pf.Joint(p_xy)
    for zeros in (False, True):
        for utility in others(np.random.default_rng(1), joint.n_x, zeros=zeros).values():
            for leakage in LEAKAGES:
                for target, value in limits(joint, Measures(utility, leakage), 0.5).items():
                    within(solve(joint, Measures(utility, leakage), **{target: value}))


def test_means_of_symbols_are_better_answers_than_letters():
    rng = np.random.default_rng(3)
    joint = random_joint(rng, 12, 4)
    points = Distance(rng.normal(size=(12, 2)))
    measures = Measures(points)
    limit = 0.1 * joint.mutual_information
    solution = solve(joint, measures, max_leakage=limit)
    # The letters' own points as the only answers, which is a table of costs.
    own = Distance(((points.table[:, None] - points.table[None]) ** 2).sum(axis=2))
    fixed = solve(joint, Measures(own), max_leakage=limit)
    before = (joint.p_x @ own.table).min()
    variance = loss(measures, joint.p_x[None])[0]
    assert solution.utility > variance - (before - fixed.utility) + 1e-3
    assert "among releases answered by" in solution.scope
    assert "whose symbols are answered by one of" in solution.notes[-1]
    assert solution.scope in repr(solution)


def test_a_frontier_over_finite_actions(tmp_path):
    rng = np.random.default_rng(7)
    joint = random_joint(rng, 6, 3)
    front = pf.frontier(joint, utility=Distance(rng.normal(size=(6, 2))), n_points=5, rng=0, n_jobs=1)
    assert "among releases answered by" in front.scope
    for share in (0.2, 0.5, 0.8):
        at = share * front.max_utility
        assert front.lower_bound_at(at) <= front.leakage_at(at) + 1e-9
    front.save(tmp_path / "front.json")
    assert pf.load(tmp_path / "front.json").scope == front.scope


@pytest.mark.parametrize("leakage", ["information", "success"])
def test_against_a_fine_grid_of_posteriors(leakage):
    """No grid refutes the bound of a table of costs; points and predictions come close to the best of all."""
    rng = np.random.default_rng(1)
    joint = random_joint(rng, 3, 3)
    steps = np.array([(i, j, 40 - i - j) for i in range(41) for j in range(41 - i)]) / 40
    q = np.vstack([steps, joint.p_x[None], rng.dirichlet(np.full(3, 0.5), 1000)])
    for name, utility in others(rng, 3).items():
        measures = Measures(utility, leakage)
        for target, value in limits(joint, measures, 0.4).items():
            solution = solve(joint, measures, **{target: value})
            least = least_on_grid(joint, measures, target, value, q)
            if name == "cost":
                assert solution.lower_bound <= least + 1e-8, target
                assert solution.objective <= least + 1e-6, target
            elif target == "max_leakage":
                assert solution.objective <= least + 0.02 * abs(least), (name, target)


def test_the_end_of_a_frontier_under_a_limit_on_lift():
    """Near the most that is useful only the answers of that release will do."""
    rng = np.random.default_rng(0)
    joint = pf.Joint(rng.dirichlet(np.ones(12)).reshape(4, 3))
    asked = {"utility": Distance(rng.normal(size=(4, 2))), "leakage": "success", "max_lift": 0.2}
    front = pf.frontier(joint, n_points=4, rng=0, n_jobs=1, **asked)
    asked_for = [point for point in front.points if "min_utility" in point.settings]
    assert asked_for
    for point in asked_for:
        assert point.status is pf.Status.OPTIMAL
        assert point.utility >= point.settings["min_utility"] - 1e-9
    most = pf.solve(joint, max_leakage=1.0, rng=0, n_jobs=1, **asked).utility
    assert pf.solve(joint, min_utility=0.999 * most, rng=0, n_jobs=1, **asked).status is pf.Status.OPTIMAL
    # Other answers may be more useful: that is not proved impossible.
    with pytest.raises(
        InfeasibleError, match=r"is not reached: the most useful release found has [\d.]+\. Ask"
    ):
        pf.solve(joint, min_utility=1.1 * most, rng=0, n_jobs=1, **asked)


def test_points_that_are_all_one_keep_nothing_and_prove_it():
    for n_y in (2, 3):
        joint = random_joint(np.random.default_rng(n_y), 4, n_y)
        for leakage in LEAKAGES:
            measures = Measures(Distance(np.full((4, 2), 1.1)), leakage)
            solution = solve(joint, measures, max_leakage=limits(joint, measures, 0.5)["max_leakage"])
            assert solution.status is pf.Status.OPTIMAL
            assert solution.utility == 0.0


FRAME = [
    (job, sex, race)
    for job, sex, race, n in [
        ("a", "f", "u", 30),
        ("a", "m", "v", 10),
        ("b", "f", "v", 25),
        ("b", "m", "u", 40),
        ("c", "m", "w", 20),
        ("c", "f", "u", 35),
        ("d", "m", "v", 60),
        ("d", "f", "w", 15),
    ]
    for _ in range(n)
]


def two_columns():
    import pandas as pd

    frame = pd.DataFrame(FRAME, columns=["job", "sex", "race"]).sample(frac=1.0, random_state=0)
    return pf.Joint.from_frame(frame, public="job", private=["sex", "race"])


@pytest.mark.parametrize("leakage", LEAKAGES)
def test_a_budget_for_each_private_column(leakage):
    joint = two_columns()
    costs = Distance(1.0 - np.eye(4))
    free = Measures(costs, leakage)
    chance = {"sex": 0.0, "race": 0.0}
    if leakage == "success":
        chance = {"sex": 130 / 235, "race": 105 / 235}
    budgets = {name: least + 0.02 for name, least in chance.items()}
    both = solve(joint, free, max_leakage=budgets)
    within(both)
    assert set(both.leakages) == {"sex", "race"}
    for name, limit in budgets.items():
        assert both.leakages[name] <= limit + 1e-9
        alone = solve(joint, free, max_leakage={name: limit})
        within(alone)
        assert both.utility <= -alone.lower_bound + 1e-9
        assert alone.leakages[name] <= limit + 1e-9
    assert both.leakage == pytest.approx(
        max((both.leakages[n] - chance[n]) / (budgets[n] - chance[n]) for n in budgets)
    )
    rng = np.random.default_rng(0)
    tried = 0
    for p in channels(rng, 4):
        shrunk = 0.1 * p + 0.9 * p.mean(axis=0)
        told = both.measures.leakage_of(joint.p_xy, shrunk)
        if told <= 1.0:
            tried += 1
            assert free.utility_of(joint.p_x, shrunk) <= -both.lower_bound + 1e-9
    assert tried > 20


@pytest.mark.parametrize("leakage", LEAKAGES)
def test_a_frontier_of_budgets_goes_through_what_solve_finds(leakage, tmp_path):
    joint, costs = two_columns(), Distance(1.0 - np.eye(4))
    chance = {"sex": 130 / 235, "race": 105 / 235} if leakage == "success" else {"sex": 0.0, "race": 0.0}
    limits = {name: least + 0.02 for name, least in chance.items()}
    front = pf.frontier(
        joint, utility=costs, leakage=leakage, max_leakage=limits, n_points=4, rng=0, n_jobs=1
    )
    assert front.scale.budgets
    assert "share of the budgets used" in repr(front)
    found = pf.solve(joint, utility=costs, leakage=leakage, max_leakage=limits, rng=0, n_jobs=1)
    assert front.lower_bound_at(found.utility) <= found.leakage + 1e-9
    for point in front.points:
        assert point.leakage >= (front.lower_bound_at(point.utility) or 0.0) - 1e-9
        if point.leakage <= 1.0:
            assert point.utility <= -found.lower_bound + 1e-9
    front.save(tmp_path / "front.json")
    assert pf.load(tmp_path / "front.json").scale == front.scale
    assert front.plot().axes[0].get_ylabel() == "share of the budgets used"


def test_limits_of_a_frontier_are_those_of_columns():
    joint, costs = two_columns(), Distance(1.0 - np.eye(4))
    with pytest.raises(
        InvalidInputError, match=r"a mapping from private columns to a limit each; it is 0\.1"
    ):
        pf.frontier(joint, utility=costs, max_leakage=0.1)
    with pytest.raises(InvalidInputError, match="is offered for the utility Distance or Task"):
        pf.frontier(joint, max_leakage={"sex": 0.1})
    with pytest.raises(InvalidInputError, match="There is no private column 'age'"):
        pf.frontier(joint, utility=costs, max_leakage={"age": 0.1})


BAD = [
    ({"max_leakage": {"age": 0.1}}, "There is no private column 'age'; the joint has sex, race."),
    ({"max_leakage": {}}, "max_leakage names no private column"),
    ({"max_leakage": {"sex": -1.0}}, "max_leakage of 'sex' must be"),
    ({"max_leakage": {"sex": 0.0}}, "must be more than 0, the information without any release"),
    ({"max_leakage": {"sex": 0.1}, "utility": "information"}, "is offered for the utility Distance or Task"),
    ({"max_leakage": {"sex": 0.1}, "beta": 1.0}, "exactly one of"),
    ({"max_leakage": 0.1, "max_lift": 0.1}, "max_lift goes with leakage 'success' or 'parity'"),
    ({"max_leakage": 0.9, "utility": "information", "leakage": "success"}, "with a distance or a task"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=[message for _, message in BAD])
def test_what_is_not_offered_is_said_in_a_sentence(asked, message):
    asked = {"utility": Distance(1.0 - np.eye(4)), **asked}
    with pytest.raises(InvalidInputError) as error:
        pf.solve(two_columns(), **asked)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_tasks_that_letters_tell_for_sure():
    """Predictions of 0 and 1: the cost of being wrong is finite all the same."""
    rng = np.random.default_rng(2)
    joint = random_joint(rng, 6, 3)
    measures = Measures(Task(np.eye(2)[[0, 1, 0, 1, 1, 0]]))
    solution = solve(joint, measures, max_leakage=0.3 * joint.mutual_information)
    within(solution)
    assert 0.0 < solution.utility < 1.0
    whole = solve(joint, measures, max_leakage=joint.mutual_information)
    assert whole.utility == pytest.approx(measures.utility_of(joint.p_x, np.eye(6)))


def test_symbols_under_a_limit_on_lift_and_parity_of_three_groups():
    rng = np.random.default_rng(4)
    joint = random_joint(rng, 6, 3)
    solution = solve(joint, Measures(Distance(rng.normal(size=(6, 2))), "parity", 0.2), max_leakage=0.08)
    within(solution)
    p = solution.mechanism.p_z_given_x
    assert parity_gap(joint.p_xy.T @ p) <= 0.08 + 1e-9
    assert largest_lift(joint.p_xy, p) <= 0.2 + 1e-9
