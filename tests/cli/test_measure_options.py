"""pfunnel solve and frontier with other measures than information: numbers, words, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_tables import Run, write_csv

import privacyfunnel as pf
from privacyfunnel.cli.measures import distance_of
from privacyfunnel.measures import Measures

HEADER = ["city", "age", "sex", "income"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(400):
        city, age = rng.integers(3), rng.integers(3)
        sex = rng.random() < 0.2 + 0.2 * city + 0.05 * age
        income = rng.random() < 0.3 + 0.2 * age + 0.1 * sex
        rows.append(
            [["Bonn", "Lima", "Oslo"][city], str(20 + 15 * age), "mf"[int(sex)], ["low", "high"][int(income)]]
        )
    return write_csv(tmp_path / "t.csv", rows, HEADER)


ASK = ("--public", "city", "--public", "age", "--private", "sex", "--seed", 0, "--n-jobs", 1)


def solved(pfunnel: Run, table: Path, *more: object) -> dict[str, object]:
    ended = pfunnel("solve", table, *ASK, *more, "--json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def joint_of(table: Path, **more: object) -> pf.Joint:
    from privacyfunnel.files import read_joint

    return read_joint(table, public=["city", "age"], private="sex", **more)


def test_success_is_told_as_people_who_are_guessed(pfunnel: Run, table: Path) -> None:
    ask = ("--leakage", "success", "--max-leakage", 0.6)
    values = solved(pfunnel, table, *ask)
    joint = joint_of(table)
    one = pf.solve(joint, max_leakage=0.6, leakage="success", rng=0)
    assert values["leakage"] == pytest.approx(0.6, abs=1e-9)
    assert values["utility"] == pytest.approx(one.utility, abs=1e-6)
    assert values["leakage_interval"] is None
    assert values["scale"] == {"utility": "information", "leakage": "success", "max_lift": None, "task": []}
    lines = pfunnel("solve", table, *ASK, *ask).out.splitlines()
    most = Measures(leakage="success").leakage_of(joint.p_xy, np.eye(joint.n_x))
    assert lines[0].endswith(
        "From it the best guess of sex is right for 60.00 % of these 400 records; "
        f"{100 * joint.p_y.max():.2f} % without it, {100 * most:.2f} % from the public columns themselves."
    )
    assert not any(line.strip().startswith("Adversary") for line in lines)
    assert any("no release of that success has a utility above" in line for line in lines)


def test_a_task_column_is_enough(pfunnel: Run, table: Path) -> None:
    values = solved(pfunnel, table, "--task", "income", "--max-leakage", 0.01)
    joint = joint_of(table, task="income")
    one = pf.solve(joint, max_leakage=0.01, utility=pf.Task("income"), rng=0)
    assert values["utility"] == pytest.approx(one.utility, abs=1e-6)
    assert values["scale"]["task"] == ["income"]
    assert values["leakage_interval"]["high"] > 0
    out = pfunnel("solve", table, *ASK, "--utility", "task", "--task", "income", "--max-leakage", 0.01).out
    assert "of what the public columns tell about income. It leaks 0.01000 bit about sex" in out
    assert "I(Z;T) = " in out


def test_distance_parity_and_lift(pfunnel: Run, table: Path) -> None:
    ask = ("--utility", "distance", "--leakage", "parity", "--max-leakage", 0.05, "--max-lift", 0.4)
    values = solved(pfunnel, table, *ask)
    assert values["leakage"] <= 0.05 + 1e-9
    assert values["scale"]["max_lift"] == 0.4
    out = pfunnel("solve", table, *ASK, *ask).out
    assert "of the differences between the public values. No rule that sees it alone selects shares" in out
    assert "No symbol makes a value of sex more or less probable by a factor above 1." in out


def test_points_are_standard_deviations_and_equal_or_not(table: Path) -> None:
    joint = joint_of(table)
    points = distance_of(joint).table
    ages = np.array([float(age) for _, age in joint.x_labels])
    spread = np.sqrt(joint.p_x @ (ages - joint.p_x @ ages) ** 2)
    for i, (city, age) in enumerate(joint.x_labels):
        for j, (other, years) in enumerate(joint.x_labels):
            apart = ((float(age) - float(years)) / spread) ** 2 + (city != other)
            assert np.square(points[i] - points[j]).sum() == pytest.approx(apart)
    codes = pf.Joint(np.full((3, 2), 1 / 6), x_labels=["007", "7", None])
    assert np.square(np.diff(distance_of(codes).table, axis=0)).sum(axis=1) == pytest.approx([1, 1])


def test_a_frontier_in_other_measures(pfunnel: Run, table: Path, tmp_path: Path) -> None:
    saved, figure = tmp_path / "f.json", tmp_path / "f.png"
    ask = ("--task", "income", "--leakage", "success", "--n-points", 3)
    ended = pfunnel("frontier", table, *ASK, *ask, "-o", saved, "--plot", figure, "--json")
    assert ended.code == 0, ended.err
    values = json.loads(ended.out)
    front = pf.load(saved)
    assert (
        values["scale"]
        == front.scale.to_dict()
        == {"utility": "task", "leakage": "success", "max_lift": None}
    )
    chance = joint_of(table).p_y.max()
    assert values["table"][0]["x_or_nothing"] == pytest.approx(
        chance + 0.1 * (front.mutual_information - chance)
    )
    assert figure.read_bytes().startswith(b"\x89PNG")
    out = pfunnel("frontier", table, *ASK, *ask).out
    assert "How often the best guess of the private value is right at that utility I(Z;T)" in out
    lifted = pfunnel("frontier", table, *ASK, "--max-lift", 0.1, "--n-points", 2).out
    assert "where no symbol tells more than 0.1 bit" in lifted
    assert "releasing X sometimes" not in lifted


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--utility", "task"), "--utility task needs the columns that the release is meant to tell about;"),
        (("--utility", "distance", "--task", "income"), "--task goes with --utility task, not with distance"),
        (("--leakage", "bits"), "'bits' is unknown; choose one of information, success, parity"),
        (("--utility", "fun"), "'fun' is unknown; choose one of information, distance, task"),
        (("--task", "incom"), "there is no column 'incom'; the closest is 'income'"),
        (
            ("--leakage", "success"),
            "--max-leakage = 0.2 is proved impossible: without any release an",
        ),
        (("--leakage", "parity", "--method", "dca"), "--method dca knows information alone"),
        (("--leakage", "parity", "--n-z", 3), "--n-z belongs to methods that know information alone"),
        (("--private", "income", "--leakage", "parity"), "'parity' with a distance or a task; ask for one"),
        (("--max-lift", -1), "it must be a finite number, 0 or more, and is -1"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    pfunnel: Run, table: Path, more: tuple[object, ...], message: str
) -> None:
    ended = pfunnel("solve", table, *ASK, *more, "--max-leakage", 0.2)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err
