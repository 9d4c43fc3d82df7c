"""What useful and telling mean: numbers of a channel from their definitions, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import channels, joints

import privacyfunnel as pf
from privacyfunnel.errors import InfeasibleError, InvalidInputError
from privacyfunnel.measures import PLAIN, Distance, Measures, Scale, Task, largest_lift, parity_gap

JOINT = pf.Joint([[0.1, 0.1], [0.2, 0.05], [0.05, 0.5]])
POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
TASK = np.array([[0.5, 0.5], [1.0, 0.0], [0.2, 0.8]])


def posteriors(p_xz):
    p_z = p_xz.sum(axis=0)
    return p_z[p_z > 0], (p_xz / np.where(p_z > 0, p_z, 1))[:, p_z > 0].T


@given(st.data())
def test_utilities_are_what_a_release_takes_off_a_loss(data):
    joint = data.draw(joints(max_y=3))
    p = data.draw(channels(joint.n_x))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    points = rng.normal(size=(joint.n_x, 2))
    costs = rng.exponential(size=(joint.n_x, 3))
    weights, q = posteriors(joint.p_x[:, None] * p)

    def variance(q):
        return sum(q[x] * ((points[x] - q @ points) ** 2).sum() for x in range(joint.n_x))

    removed = variance(joint.p_x) - sum(w * variance(one) for w, one in zip(weights, q, strict=True))
    assert Measures(Distance(points)).utility_of(joint.p_x, p) == pytest.approx(removed, abs=1e-9)
    spared = (joint.p_x @ costs).min() - sum(
        w * (one @ costs).min() for w, one in zip(weights, q, strict=True)
    )
    found = Measures(Distance(costs, kind="costs")).utility_of(joint.p_x, p)
    assert found == pytest.approx(max(spared, 0.0), abs=1e-9)
    task = rng.dirichlet(np.ones(3), size=joint.n_x)
    told = pf.mutual_information(task.T @ (joint.p_x[:, None] * p))
    assert Measures(Task(task)).utility_of(joint.p_x, p) == pytest.approx(told, abs=1e-12)


@given(st.data())
def test_leakages_are_what_an_attacker_gets(data):
    joint = data.draw(joints(max_y=4))
    p = data.draw(channels(joint.n_x))
    p_yz = joint.p_xy.T @ p
    success = Measures(leakage="success").leakage_of(joint.p_xy, p)
    assert success == pytest.approx(sum(p_yz[:, z].max() for z in range(p.shape[1])))
    assert success >= Measures(leakage="success").without_release(joint.p_y) - 1e-12
    groups = [row / row.sum() for row in p_yz if row.sum() > 0]
    rule = max(
        (max(np.maximum(a - b, 0).sum() for b in groups) for a in groups),
        default=0.0,
    )
    assert parity_gap(p_yz) == pytest.approx(rule, abs=1e-12)
    assert Measures(leakage="parity").leakage_of(joint.p_xy, p) == parity_gap(p_yz)


def test_nothing_and_everything():
    everything, nothing = np.eye(3), np.ones((3, 1))
    for utility in ("information", Distance(POINTS), Distance(np.ones((3, 3)) - np.eye(3)), Task(TASK)):
        measures = Measures(utility, "success")
        assert measures.utility_of(JOINT.p_x, nothing) == pytest.approx(0.0, abs=1e-12)
        assert measures.utility_of(JOINT.p_x, everything) > 0.05
        assert measures.leakage_of(JOINT.p_xy, nothing) == pytest.approx(JOINT.p_y.max())
    assert largest_lift(JOINT.p_xy, nothing) == pytest.approx(0.0, abs=1e-12)
    assert largest_lift(JOINT.p_xy, everything) == pytest.approx(-np.log2(0.05 / 0.55 / 0.35))


def test_a_square_table_with_a_zero_diagonal_is_costs():
    assert Distance(np.ones((3, 3)) - np.eye(3)).kind == "costs"
    assert Distance(np.zeros((3, 3)), kind="points").kind == "points"
    assert Distance([1.0, 2.0, 4.0]).table.shape == (3, 1)
    assert Distance(POINTS).kind == "points"
    assert repr(Distance(POINTS)) == "Distance(3 letters, 2 dimensions)"
    assert repr(Task(TASK)) == "Task(2 values)"
    assert repr(Task(["a", "b"])) == "Task(a, b)"


def test_names_and_units():
    assert Measures().plain
    assert not Measures(leakage="parity").plain
    assert not Measures(max_lift=1.0).plain
    scale = Measures(Distance(POINTS), "success", 0.5).scale
    assert scale == Scale("distance", "success", 0.5)
    assert Scale.from_dict(scale.to_dict()) == scale
    assert (scale.utility_unit, scale.leakage_unit, PLAIN.leakage_unit) == ("", "", " bit")
    assert scale.objective_unit("max_leakage") == ""
    assert PLAIN.objective_unit("beta") == " bit"
    with pytest.raises(KeyError):
        Scale.from_dict({"utility": "fun", "leakage": "success", "max_lift": None})


BAD = [
    ({"utility": "distance"}, "utility must be 'information', a Distance or a Task; it is 'distance'."),
    ({"leakage": "bits"}, "leakage must be one of 'information', 'success', 'parity'; it is 'bits'."),
    ({"leakage": ["success"]}, "leakage must be one of 'information', 'success', 'parity'; it is ['succ"),
    ({"utility": POINTS}, "utility must be 'information', a Distance or a Task; it is"),
    ({"max_lift": -1.0}, "max_lift must be"),
    ({"max_lift": float("nan")}, "max_lift must be"),
    ({"utility": Distance(POINTS[:2])}, "points must have one row a letter of X; there are 2 rows"),
    ({"utility": Task(TASK[:2])}, "p_t_given_x must have one row a letter of X; there are 2 rows"),
    ({"utility": Task("income")}, "there is no column 'income'; the joint keeps no task."),
    ({"utility": Distance(POINTS), "method": "dca"}, "method='dca' knows information alone; use 'auto' or"),
    ({"leakage": "success", "method": "greedy"}, "method='greedy' knows information alone"),
    ({"leakage": "success", "n_z": 3}, "n_z belongs to methods that know information alone; leave it out"),
    ({"max_lift": 0.1, "method": "splitting"}, "method='splitting' knows information alone"),
]


@pytest.mark.parametrize(("asked", "message"), BAD, ids=[message for _, message in BAD])
def test_what_cannot_be_asked_is_refused_in_a_sentence(asked, message):
    with pytest.raises(InvalidInputError) as error:
        pf.solve(JOINT, beta=0.1, **asked)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    if not {"method", "n_z"} & set(asked):
        with pytest.raises(InvalidInputError, match=r"must|there is no column"):
            pf.frontier(JOINT, **asked)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Distance([[1.0, np.nan]]), "entry [0, 1] is nan; every number must be finite"),
        (lambda: Distance([[1.0, np.inf]]), "entry [0, 1] is inf"),
        (lambda: Distance(["far", "near"]), "points must be numbers"),
        (lambda: Distance([1j, 2.0]), "points must be numbers"),
        (
            lambda: Distance([0.0, 1e200]),
            "points are up to 1e+200 apart, and the square of that is no",
        ),
        (lambda: Distance([0.0, 1e-200]), "measure them in another unit"),
        (lambda: Distance(np.zeros((2, 2, 2))), "its shape is (2, 2, 2)"),
        (lambda: Distance([]), "its shape is (0, 1)"),
        (
            lambda: Distance([[0.0, -1.0], [1.0, 0.0]]),
            "entry [0, 1] is -1: correct it, or pass kind='points'",
        ),
        (lambda: Distance([[0.0, -1.0], [1.0, 0.5]], kind="costs"), "Distance: costs"),
        (lambda: Distance(POINTS, kind="miles"), "kind must be 'points' or 'costs'; it is 'miles'."),
        (lambda: Task([[0.5, 0.6]]), "Each row of Task: p_t_given_x must sum to 1"),
        (lambda: Task([[1.5, -0.5]]), "Task: p_t_given_x"),
    ],
)
def test_tables_that_are_no_measure_are_refused(make, message):
    with pytest.raises(InvalidInputError) as error:
        make()
    assert message in str(error.value)


def test_limits_that_no_release_keeps():
    with pytest.raises(InfeasibleError, match=r"proved impossible: without any release .* right 0.65 of the"):
        pf.solve(JOINT, max_leakage=0.6, leakage="success")
    with pytest.raises(InfeasibleError, match=r"is more than .*, the utility of releasing X itself"):
        pf.solve(JOINT, min_utility=9.0, utility=Distance(POINTS))
    with pytest.raises(InfeasibleError, match=r"with max_lift = 0.05 bit is proved impossible"):
        pf.solve(JOINT, min_utility=1.3, max_lift=0.05)
    with pytest.raises(InfeasibleError, match="with max_lift = 0 bit is proved impossible"):
        pf.solve(JOINT, min_utility=1.3, max_lift=0)
    with pytest.raises(InvalidInputError, match="exactly one of"):
        pf.solve(JOINT, min_utility=0.1, max_leakage=0.1, utility=Distance(POINTS))


FRAME = pd.DataFrame(
    {
        "job": ["a", "a", "b", "b", "c", "c", "c", "c"] * 40,
        "sex": ["f", "m", "f", "f", "m", "m", "f", "m"] * 40,
        "income": ["low", "high", "low", "low", "high", "high", "low", "high"] * 40,
        "married": [True, True, False, True, False, False, True, True] * 40,
    }
).sample(frac=1.0, random_state=0)


def test_a_joint_keeps_its_task():
    joint = pf.Joint.from_frame(FRAME, public="job", private="sex", task=["income", "married"])
    assert joint.t_names == ("income", "married")
    assert joint.p_t_given_x.shape == (3, len(joint.t_labels))
    one = joint.task_channel("income")
    for x, job in enumerate(joint.x_labels):
        rows = FRAME[FRAME.job == job]
        shares = {v: (rows.income == v).mean() for v in ("high", "low")}
        assert sorted(one[x]) == pytest.approx(sorted(shares.values()))
    both = joint.task_channel(["income", "married"])
    assert both.sum(axis=1) == pytest.approx(np.ones(3))
    told = pf.solve(joint, max_leakage=0.5, utility=pf.Task(["income", "married"]), rng=0)
    less = pf.solve(joint, max_leakage=0.5, utility=pf.Task("income"), rng=0)
    assert told.utility > less.utility > 0
    with pytest.raises(InvalidInputError, match="there is no column 'age'; the joint keeps income, married"):
        pf.solve(joint, beta=0.1, utility=pf.Task("age"))


def test_tasks_of_samples_and_files(tmp_path):
    frame = FRAME.assign(married=FRAME.married.map({True: "yes", False: "no"}))
    frame.to_csv(tmp_path / "t.csv", index=False)
    from privacyfunnel.files import read_joint

    file = read_joint(tmp_path / "t.csv", public="job", private="sex", task="income")
    samples = pf.Joint.from_samples(FRAME.job, FRAME.sex, task=FRAME.income, t_names="income")
    table = pf.Joint.from_frame(FRAME, public="job", private="sex", task="income")
    for joint in (file, samples):
        assert np.array_equal(joint.p_t_given_x, table.p_t_given_x)
        assert joint.t_labels == table.t_labels == ("high", "low")
    assert pf.Joint.from_frame(FRAME, public="job", private="sex").p_t_given_x is None
    # A part of X may be the task, and so may the private column: then utility is leakage.
    joint = pf.Joint.from_frame(FRAME, public=["job", "married"], private="sex", task=["sex"])
    solution = pf.solve(joint, max_leakage=0.1, utility=pf.Task("sex"), rng=0)
    assert solution.utility == pytest.approx(solution.leakage)


def test_tasks_that_do_not_fit_are_refused():
    with pytest.raises(InvalidInputError, match="missing values in column 'income'"):
        pf.Joint.from_frame(FRAME.assign(income=None), public="job", private="sex", task="income")
    with pytest.raises(
        InvalidInputError, match="x and task must have one label a record; x has 2 and task 1"
    ):
        pf.Joint.from_samples(["a", "b"], [0, 1], task=["u"])
    with pytest.raises(InvalidInputError, match="must have one row a letter of X"):
        pf.Joint([[0.5, 0.5]], p_t_given_x=[[1.0], [1.0]])
    from privacyfunnel.counting import PairCounter

    with pytest.raises(InvalidInputError, match="exactly if a task column is named"):
        PairCounter("x", "y", task="t").update([1], [2])
    with pytest.raises(InvalidInputError, match="more than 2 distinct letters"):
        PairCounter("x", "y", task="t", max_letters=2).update([1, 1, 1], [2, 2, 2], [1, 2, 3])


def test_a_solution_speaks_in_its_measures():
    solution = pf.solve(JOINT, max_leakage=0.7, utility=Distance(POINTS), leakage="success", rng=0)
    assert solution.measures.scale == Scale("distance", "success")
    assert repr(solution).startswith(
        f"Solution(exact: utility {solution.utility:.4f} (distance), success 0.7000"
    )
    assert str(solution) == repr(solution)
    assert "bit" not in repr(solution)
    assert solution.objective == -solution.utility
    for name in ("leakage_interval", "utility_interval"):
        with pytest.raises(InvalidInputError, match="is for information, and this is measured by"):
            getattr(solution, name)()
    lifted = pf.solve(JOINT, beta=0.1, max_lift=0.25, rng=0)
    assert f"lift {lifted.lift:.4f} bit" in repr(lifted)
    assert "utility 0.2500 bit (task)" in pf.measures.Scale("task").with_utility(0.25)
    note = pf.solve(JOINT, max_leakage=0.99, leakage="success", rng=0).notes[0]
    assert note.startswith("The limit max_leakage = 0.99 does nothing: the success of releasing X itself is")


def test_few_records_are_told_without_bits_where_there_are_none():
    joint = pf.Joint.from_counts([[3, 1], [2, 2], [1, 4]])
    with pytest.warns(pf.errors.FewRecordsWarning, match="may tell more than on these"):
        solution = pf.solve(joint, max_leakage=0.6, leakage="success", rng=0)
    assert str(solution) == repr(solution)
