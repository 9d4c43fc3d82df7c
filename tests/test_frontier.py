"""Frontier geometry against slow twins, and files that read back the same."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import channels, joints

import privacyfunnel as pf
from privacyfunnel.errors import FileFormatError, InfeasibleError, InvalidInputError
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.persistence import load
from privacyfunnel.solution import Solution, Status, Target
from privacyfunnel.tradeoff import Frontier, TradeoffPoint


def point_of(joint: Joint, table: np.ndarray, method: str = "test", **settings: float) -> TradeoffPoint:
    utility, leakage = utility_and_leakage(joint.p_xy, table)
    mechanism = TableMechanism(table, x_labels=joint.x_labels, x_names=joint.x_names)
    return TradeoffPoint(utility, leakage, method, mechanism, settings)


def bare(*pairs: tuple[float, float], method: str = "test") -> list[TradeoffPoint]:
    return [TradeoffPoint(u, v, method) for u, v in pairs]


def corners(frontier: Frontier) -> list[tuple[float, float]]:
    return [(p.utility, p.leakage) for p in frontier.envelope()]


def least_leakage(places: list[tuple[float, float]], utility: float) -> float:
    """The slow twin of leakage_at: a linear programme over the shares of all points."""
    u, v = np.array([(0.0, 0.0), *places]).T
    result = linprog(v, A_ub=[-u], b_ub=[-utility], A_eq=[np.ones(u.size)], b_eq=[1])
    assert result.status == 0
    return float(result.fun)


@pytest.fixture
def joint() -> Joint:
    return Joint(
        np.array([[0.2, 0.05], [0.05, 0.2], [0.15, 0.05], [0.1, 0.2]]),
        x_labels=["a", "b", "c", None],
        x_names=["job"],
    )


@pytest.fixture
def frontier(joint: Joint) -> Frontier:
    rng = np.random.default_rng(5)
    tables = [rng.dirichlet(np.full(3, 0.3), size=4) for _ in range(40)]
    points = [point_of(joint, t, f"m{i % 2}", beta=i / 40) for i, t in enumerate(tables)]
    return Frontier.for_joint(joint, points, support_lines=[(1.0, -2.0), (0.1, -0.05)])


places = st.lists(st.tuples(st.floats(0, 2), st.floats(0, 1)), min_size=1, max_size=12)


@given(places, st.floats(0, 1))
def test_leakage_at_is_the_linear_programme_over_all_points(pairs, share):
    frontier = Frontier(bare(*pairs))
    utility = share * max(u for u, _ in pairs)
    assert frontier.leakage_at(utility) == pytest.approx(least_leakage(pairs, utility), abs=1e-6)


@given(places, st.floats(0, 1.2))
def test_utility_at_inverts_leakage_at(pairs, leakage):
    frontier = Frontier(bare(*pairs))
    utility = frontier.utility_at(leakage)
    assert frontier.leakage_at(utility) <= leakage + 1e-9
    # Any more utility costs more than was allowed.
    step = 1e-3
    if utility + step <= frontier.max_utility:
        assert frontier.leakage_at(utility + step) > leakage - 1e-9


@given(places)
def test_envelope_is_convex_rises_and_lies_below_every_point(pairs):
    frontier = Frontier(bare(*pairs))
    u, v = np.array(corners(frontier)).T
    assert (u[0], v[0]) == (0, 0)
    assert np.all(np.diff(u) > 0)
    assert np.all(np.diff(v) >= -1e-12)
    slopes = np.diff(v) / np.diff(u)
    assert np.all(np.diff(slopes) >= 0)
    for utility, leakage in pairs:
        if utility <= frontier.max_utility:
            assert frontier.leakage_at(utility) <= leakage + 1e-10


@given(places)
def test_pareto_keeps_exactly_what_nothing_beats(pairs):
    kept = {(p.utility, p.leakage) for p in Frontier(bare(*pairs)).pareto()}
    everything = {(0.0, 0.0), *pairs}
    for u, v in everything:
        # What rounding may decide either way is left alone.
        beaten = any((a > u + 1e-11 and b <= v) or (a >= u and b < v - 1e-11) for a, b in everything)
        alone = all((a, b) == (u, v) or a < u - 1e-11 or b > v + 1e-11 for a, b in everything)
        if beaten:
            assert (u, v) not in kept
        elif alone:
            assert (u, v) in kept


def test_the_paper_partitions_give_the_known_time_sharing_values():
    # The five partitions of the 3 × 3 example; the values are in the table of published results.
    joint = Joint(np.array([[0.90, 0.025, 0.075], [0.08, 0.82, 0.10], [0.40, 0.05, 0.55]]) / 3)
    partitions = [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    frontier = Frontier.for_joint(joint, [point_of(joint, np.eye(3)[p]) for p in partitions])
    found = [frontier.leakage_at(u) for u in (0.1, 0.3, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5)]
    assert found == pytest.approx([0.0254, 0.0762, 0.1271, 0.1779, 0.2287, 0.2850, 0.4116, 0.6014], abs=5e-5)
    assert [round(u, 4) for u, _ in corners(frontier)] == [0, 0.9183, 1.5850]


@given(st.data())
def test_mechanism_at_has_the_stated_utility_and_leakage(data):
    joint = data.draw(joints(max_x=5, max_y=4))
    tables = [data.draw(channels(joint.n_x, max_z=4)) for _ in range(3)]
    frontier = Frontier.for_joint(joint, [point_of(joint, table) for table in tables])
    utility = data.draw(st.floats(0, 1)) * joint.entropy_x
    mechanism = frontier.mechanism_at(utility)
    found = utility_and_leakage(joint.p_xy, mechanism.p_z_given_x)
    assert found == pytest.approx((utility, frontier.leakage_at(utility)), abs=1e-10)
    assert mechanism.x_labels == joint.x_labels


def test_mechanism_at_a_corner_is_that_corner_itself(frontier):
    for corner in frontier.envelope():
        assert frontier.mechanism_at(corner.utility) is corner.mechanism


def test_the_trivial_releases_bound_every_joint(joint):
    frontier = Frontier.for_joint(joint)
    assert corners(frontier) == [(0, 0), (joint.entropy_x, joint.mutual_information)]
    half = joint.entropy_x / 2
    assert frontier.leakage_at(half) == pytest.approx(joint.mutual_information / 2)
    assert frontier.utility_at(math.inf) == joint.entropy_x
    assert frontier.methods == ()
    assert frontier.leakage_at(-1) == 0
    assert frontier.mechanism_at(0).n_z == 1


def test_one_letter_joint():
    frontier = Frontier.for_joint(Joint([[0.3, 0.7]]))
    assert corners(frontier) == [(0, 0)]
    assert frontier.leakage_at(0) == 0
    assert frontier.utility_at(0) == 0
    assert frontier.mechanism_at(0).n_z == 1
    assert frontier.compare(frontier).area == 0


def test_no_points_at_all():
    assert corners(Frontier(())) == [(0, 0)]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 0.5), (1, 0.5), (1, 0.5)], [(0, 0), (1, 0.5)]),
        ([(1, 0.5), (1 + 2e-16, 0.5 - 1e-16), (1 - 1e-16, 0.5 + 1e-16)], [(0, 0), (1, 0.5)]),
        ([(0.1 * i, 0.05 * i) for i in range(1, 11)], [(0, 0), (1, 0.5)]),
        ([(0.5, 0.0), (1, 0.5)], [(0, 0), (0.5, 0), (1, 0.5)]),
        ([(0.5, 1e-17), (1, 0.5)], [(0, 0), (0.5, 0), (1, 0.5)]),
        ([(1, 0.5), (1, 0.2)], [(0, 0), (1, 0.2)]),
        ([(0, 0.3), (1, 0.5)], [(0, 0), (1, 0.5)]),
        ([(1e-14, 1e-15), (1, 0.5)], [(0, 0), (1, 0.5)]),
    ],
    ids=["repeated", "equal", "collinear", "free", "almost-free", "stacked", "useless", "near-origin"],
)
def test_degenerate_points(pairs, expected):
    assert corners(Frontier(bare(*pairs))) == [pytest.approx(pair, abs=1e-12) for pair in expected]


def test_almost_free_utility_counts_as_free():
    frontier = Frontier(bare((0.5, 1e-17), (1, 0.5)))
    assert frontier.utility_at(0) == 0.5
    assert frontier.utility_at(0.25) == pytest.approx(0.75)


def test_a_point_with_a_mechanism_wins_over_an_equal_one_without(joint):
    table = np.eye(2)[[0, 1, 1, 0]]
    full = point_of(joint, table)
    frontier = Frontier.for_joint(joint, [TradeoffPoint(full.utility, full.leakage, "numbers"), full])
    assert frontier.mechanism_at(full.utility) is full.mechanism


def test_compare_integrates_exactly():
    # |difference| rises 0 → 0.3 on [0, 1] and falls to −0.1 on [1, 2], crossing zero at 1.75.
    first = Frontier(bare((2, 1)))
    second = Frontier(bare((1, 0.2), (2, 1.1), (3, 3)))
    comparison = first.compare(second)
    assert comparison.area == pytest.approx(0.15 + 0.75 * 0.3 / 2 + 0.25 * 0.1 / 2)
    assert comparison.mean_difference == pytest.approx((0.15 + 0.75 * 0.3 / 2 - 0.25 * 0.1 / 2) / 2)
    assert comparison.largest_difference == pytest.approx(0.3)
    assert comparison.at_utility == 1
    assert comparison.max_utility == 2
    back = second.compare(first)
    assert back.area == pytest.approx(comparison.area)
    assert back.largest_difference == pytest.approx(-0.3)


@given(places, places)
def test_compare_agrees_with_sampling(one, two):
    first, second = Frontier(bare(*one)), Frontier(bare(*two))
    comparison = first.compare(second)
    at = np.linspace(0, comparison.max_utility, 2001)
    difference = np.array([first.leakage_at(u) - second.leakage_at(u) for u in at])
    # Steep ends make the sum coarse; its error is at most a cell's width times the rise of the curves.
    error = comparison.max_utility / 2000 * 2 + 1e-9
    assert comparison.area == pytest.approx(np.trapezoid(np.abs(difference), at), abs=error)
    assert np.abs(difference).max() <= abs(comparison.largest_difference) + 1e-9


def test_lower_bound_is_the_highest_line_and_never_negative(frontier):
    assert frontier.lower_bound_at(0.1) == 0
    assert frontier.lower_bound_at(1.0) == pytest.approx(0.05)
    assert frontier.lower_bound_at(frontier.max_utility) == pytest.approx(
        max(frontier.max_utility - 2, 0.1 * frontier.max_utility - 0.05)
    )
    assert Frontier(bare((1, 1))).lower_bound_at(0.5) is None


@pytest.mark.parametrize("p", [np.full((3, 2), 1 / 6), [[0.5], [0.5]], [[0.4, 0.6]]])
def test_where_x_tells_nothing_no_leakage_is_proved(p):
    """Independent values, one private letter, one public letter: whatever is kept, nothing need be told."""
    joint = Joint(np.array(p))
    front = pf.frontier(joint, method="exact", n_points=4, rng=0)
    for utility in (0.0, joint.entropy_x / 2, joint.entropy_x):
        assert front.lower_bound_at(utility) == 0.0
        assert front.leakage_at(utility) == pytest.approx(0.0, abs=1e-12)
    assert {bound for _, bound in front.proved()} == {0.0}


def test_select_and_merge_take_apart_and_put_together(frontier, joint):
    assert frontier.methods == ("m0", "m1")
    parts = [frontier.select(method) for method in frontier.methods]
    merged = parts[0].merge(parts[1])
    assert corners(merged) == corners(frontier)
    assert len(merged.points) == len(frontier.points)
    assert merged.support_lines == frontier.support_lines
    for part in parts:
        assert frontier.compare(part).largest_difference <= 0
    with pytest.raises(InvalidInputError, match="m0, m1"):
        frontier.select("m2")
    with pytest.raises(InvalidInputError, match="one joint"):
        frontier.merge(Frontier.for_joint(Joint(np.full((2, 2), 0.25))))


def test_from_solution_keeps_what_was_asked(joint):
    mechanism = TableMechanism(np.eye(4), x_labels=joint.x_labels, x_names=joint.x_names)
    solution = Solution(joint, mechanism, "dca", Status.CONVERGED, Target("beta", 0.3))
    point = TradeoffPoint.from_solution(solution, n_z=4)
    assert (point.utility, point.leakage) == (solution.utility, solution.leakage)
    assert point.settings == {"beta": 0.3, "n_z": 4}
    assert point.beta == 0.3
    assert point.status is Status.CONVERGED


def test_file_reads_back_the_same(frontier, tmp_path):
    path = tmp_path / "f.json"
    solved = TradeoffPoint(0.5, 0.1, "dca", None, {"beta": np.float64(0.25), "note": "a"}, Status.CYCLE)
    frontier = frontier.merge(Frontier((solved,), frontier.entropy_x, frontier.mutual_information))
    frontier.save(path)
    again = load(path)
    assert isinstance(again, Frontier)
    assert again.to_dict() == frontier.to_dict()
    assert again.points[-1].status is Status.CYCLE
    u = frontier.max_utility / 3
    table = frontier.mechanism_at(u).p_z_given_x
    assert np.array_equal(again.mechanism_at(u).p_z_given_x, table)
    assert again.envelope()[0].mechanism.x_labels == ("a", "b", "c", None)
    assert [p.name for p in tmp_path.iterdir()] == ["f.json"]


@pytest.mark.parametrize("damage", ["points", "entropy_x", "support_lines"])
def test_damaged_dictionary_is_refused(frontier, damage):
    values = frontier.to_dict()
    del values[damage]
    with pytest.raises(FileFormatError):
        Frontier.from_dict(values)
    values[damage] = "nonsense"
    with pytest.raises(FileFormatError):
        Frontier.from_dict(values)


def test_csv_and_frame_have_one_row_a_point(frontier, tmp_path):
    path = tmp_path / "f.csv"
    frontier.to_csv(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(frontier.points)
    assert [float(row["leakage"]) for row in rows] == [p.leakage for p in frontier.points]
    assert rows[0]["method"] == "constant"
    assert rows[0]["beta"] == ""
    assert sum(row["corner"] == "True" for row in rows) == len(frontier.envelope())
    frame = frontier.to_frame()
    assert list(frame.columns) == ["utility", "leakage", "method", "beta", "status", "corner"]
    assert list(frame["utility"]) == [p.utility for p in frontier.points]


def test_what_cannot_be_had_is_said_with_the_remedy(frontier):
    with pytest.raises(InfeasibleError, match=r"H\(X\)"):
        frontier.leakage_at(frontier.entropy_x + 1e-6)
    with pytest.raises(InfeasibleError):
        frontier.leakage_at(math.nan)
    with pytest.raises(InfeasibleError, match="perfect privacy"):
        frontier.utility_at(-0.1)
    with pytest.raises(InvalidInputError, match="no mechanism"):
        Frontier(bare((1, 0.5))).mechanism_at(0.5)
    # The largest utility itself is allowed whatever the last bit of it is.
    assert frontier.leakage_at(frontier.entropy_x * (1 + 4e-16)) == pytest.approx(frontier.mutual_information)


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_points_are_checked(value):
    with pytest.raises(InvalidInputError, match="finite and not negative"):
        TradeoffPoint(value, 0.1, "m")
    with pytest.raises(InvalidInputError, match="finite and not negative"):
        TradeoffPoint(0.1, value, "m")


def test_points_of_another_joint_and_odd_settings_are_refused(joint):
    with pytest.raises(InvalidInputError, match="one joint"):
        Frontier.for_joint(joint, bare((2.5, 0.1)))
    with pytest.raises(InvalidInputError, match="beta"):
        TradeoffPoint(0.1, 0.1, "m", settings={"beta": math.nan})
    with pytest.raises(InvalidInputError, match="finite"):
        Frontier((), support_lines=[(math.inf, 0.0)])
    assert TradeoffPoint(-1e-16, 0.0, "m").utility == 0
