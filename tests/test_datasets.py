"""Named joints against independent optima, and the loaders of public tables."""

from __future__ import annotations

import gzip
import os
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import channels

from privacyfunnel import datasets
from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.information import entropy, utility_and_leakage
from privacyfunnel.joint import Joint

KNOWN = {known.name: known for known in datasets.known_joints()}
every_known_joint = pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())


def grid_leakage(joint: Joint, utility: float, steps: int) -> float:
    """Least leakage over mechanisms whose posteriors lie on a grid: an upper bound of the optimum."""
    corners = combinations_with_replacement(range(joint.n_x), steps)
    q = np.unique([np.bincount(corner, minlength=joint.n_x) for corner in corners], axis=0) / steps
    p_y_given_x = joint.p_xy / joint.p_x[:, None]
    h_x = np.array([entropy(row) for row in q])
    h_y = np.array([entropy(row) for row in q @ p_y_given_x])
    result = linprog(
        -h_y,
        A_ub=h_x[None],
        b_ub=[joint.entropy_x - utility],
        A_eq=q.T,
        b_eq=joint.p_x,
    )
    return joint.entropy_y + float(result.fun)


@every_known_joint
def test_the_known_optimum_is_that_of_a_grid(known: datasets.KnownJoint) -> None:
    steps = {4: 12, 5: 10}.get(known.joint.n_x, 60)  # grids that hold the posteriors of the known optima
    for utility, leakage in known.points:
        on_grid = grid_leakage(known.joint, utility - 1e-9, steps)
        assert leakage <= on_grid + known.tolerance + 1e-7
        assert leakage >= on_grid - 3e-3


@every_known_joint
@given(st.data())
def test_no_release_beats_the_known_optimum(known: datasets.KnownJoint, data: st.DataObject) -> None:
    channel = data.draw(channels(known.joint.n_x, 5))
    utility, leakage = utility_and_leakage(known.joint.p_xy, channel)
    for least_utility, least_leakage in known.points:
        if utility >= least_utility:
            assert leakage >= least_leakage - known.tolerance
    if utility > known.free_utility + 1e-9:
        assert leakage > 0


@every_known_joint
def test_the_known_points_are_within_the_plane(known: datasets.KnownJoint) -> None:
    assert 0 <= known.free_utility <= known.joint.entropy_x + 1e-12
    for utility, leakage in known.points:
        assert 0 <= utility <= known.joint.entropy_x + 1e-12
        assert 0 <= leakage <= known.joint.mutual_information + 1e-12


def test_the_paper_joint_has_the_published_information() -> None:
    joint = datasets.paper_joint()
    assert (joint.n_x, joint.n_y) == (3, 3)
    np.testing.assert_allclose(joint.p_x, 1 / 3)
    assert joint.p_xy[0, 1] == pytest.approx(0.025 / 3)
    assert joint.entropy_x == pytest.approx(1.584963, abs=5e-7)
    assert joint.entropy_y == pytest.approx(1.531081, abs=5e-7)
    assert joint.mutual_information == pytest.approx(0.655136, abs=5e-7)
    assert np.linalg.matrix_rank(joint.p_xy) == 3


@given(st.floats(0, 1), channels(2))
def test_an_erased_private_letter_leaks_in_proportion(probability: float, channel: np.ndarray) -> None:
    joint = datasets.erasure(probability, (0.3, 0.7))
    utility, leakage = utility_and_leakage(joint.p_xy, channel)
    assert leakage == pytest.approx((1 - probability) * utility, abs=1e-12)


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_whether_the_public_letter_is_erased_is_free(probability: float) -> None:
    joint = datasets.erasure(probability, (0.2, 0.3, 0.5), erased="public")
    assert joint.x_labels == (0, 1, 2, "erased")
    utility, leakage = utility_and_leakage(joint.p_xy, [[1, 0], [1, 0], [1, 0], [0, 1]])
    assert utility == pytest.approx(entropy([probability, 1 - probability]), abs=1e-12)
    assert leakage == pytest.approx(0, abs=1e-12)
    assert joint.entropy_x - joint.mutual_information == pytest.approx(utility, abs=1e-12)


def test_a_flipped_bit_leaks_what_is_left_of_it() -> None:
    joint = datasets.symmetric(0.11)
    assert joint.mutual_information == pytest.approx(1 - entropy([0.11, 0.89]))
    utility, leakage = utility_and_leakage(joint.p_xy, [[0.5, 0, 0.5], [0, 0.5, 0.5]])
    assert (utility, leakage) == (pytest.approx(0.5), pytest.approx(0.5 * joint.mutual_information))


def test_deterministic_and_independent_joints_are_what_they_say() -> None:
    joint = datasets.deterministic((0, 0, 1, 1, 1))
    assert joint.mutual_information == pytest.approx(joint.entropy_y)
    assert joint.entropy_y == pytest.approx(entropy([0.4, 0.6]))
    assert datasets.independent().mutual_information == pytest.approx(0, abs=1e-15)


def test_perfect_privacy_is_reached_by_its_three_symbols_and_no_partition() -> None:
    joint = datasets.perfect_privacy()
    free = 1.1258145837  # 5/3 − (2/3) h(1/4), from log2 3 = 1.5849625007
    mechanism = np.array([[1, 0, 2], [0, 3, 0], [3, 0, 0], [0, 1, 2]]) / 3
    utility, leakage = utility_and_leakage(joint.p_xy, mechanism)
    assert utility == pytest.approx(free, abs=1e-9)
    assert leakage == pytest.approx(0, abs=1e-12)
    assert KNOWN["perfect privacy"].free_utility == pytest.approx(free, abs=1e-9)
    partitions = (np.eye(4)[list(symbols)] for symbols in product(range(4), repeat=4))
    values = [utility_and_leakage(joint.p_xy, partition) for partition in partitions]
    assert max(utility for utility, leakage in values if leakage < 1e-9) == pytest.approx(1)


def test_perfect_privacy_cannot_be_better() -> None:
    """λ·q ≤ H(q) for every posterior q that hides Y, so H(X|Z) ≥ λ·p_X for every such Z."""
    joint, rng = datasets.perfect_privacy(), np.random.default_rng(3)
    inner = (4 * entropy([0.25, 0.75]) - 1) / 3
    duals = np.array([1, inner, inner, 1])
    # P(Y=1|z) = 1/2 leaves two free numbers: q = (a, b, c, 1−a−b−c) with b/3 + 2c/3 + d = 1/2.
    b, c = rng.uniform(0, 1, (2, 20_000))
    d = 0.5 - b / 3 - 2 * c / 3
    q = np.column_stack([1 - b - c - d, b, c, d])
    q = q[(q >= 0).all(axis=1)]
    assert len(q) > 1000
    assert all(duals @ row <= entropy(row) + 1e-12 for row in q)
    assert joint.entropy_x - duals @ joint.p_x == pytest.approx(KNOWN["perfect privacy"].free_utility)


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"crossover must be a probability.*1\.5"):
        datasets.symmetric(1.5)
    with pytest.raises(InvalidInputError, match="probability between 0 and 1; it is nan"):
        datasets.erasure(float("nan"))
    with pytest.raises(InvalidInputError, match='"private" or "public"'):
        datasets.erasure(erased="both")


# Tables


def test_german_credit_is_inside_and_decoded() -> None:
    frame = datasets.load_german_credit()
    joint = Joint.from_frame(frame, public=["purpose"], private=["sex"])
    assert joint.n_samples == 1000
    assert (joint.n_x, joint.y_labels) == (10, ("female", "male"))
    np.testing.assert_allclose(joint.p_y, [0.31, 0.69])
    assert "radio or television" in joint.x_labels
    credit = Joint.from_frame(frame, public=["age", "housing"], private=["credit"])
    np.testing.assert_allclose(credit.p_y, [0.3, 0.7])
    assert credit.y_labels == ("bad", "good")
    assert all(type(age) is int for age, _ in credit.x_labels)
    marital = Joint.from_frame(frame, public="marital_status", private="personal_status")
    assert marital.mutual_information == pytest.approx(marital.entropy_x)


def test_german_credit_has_no_code_left() -> None:
    import narwhals as nw

    frame = nw.from_native(datasets.load_german_credit(), eager_only=True)
    assert frame.shape == (1000, 23)
    texts = {value for name in frame.columns for value in frame[name].to_list() if isinstance(value, str)}
    assert not [text for text in texts if text[0] == "A" and text[1:].isdigit()]


def test_adult_gives_the_published_information() -> None:
    joint = Joint.from_frame(datasets.load_adult(), public=["occupation"], private=["sex"])
    assert (joint.n_samples, joint.n_x, joint.y_labels) == (32_561, 15, ("Female", "Male"))
    assert joint.mutual_information == pytest.approx(0.1433, abs=5e-5)
    assert joint.entropy_x == pytest.approx(3.517, abs=5e-4)


@pytest.fixture
def folder(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PRIVACYFUNNEL_DATA", str(tmp_path))
    (tmp_path / "adult").mkdir()
    return tmp_path / "adult"


def test_blanks_around_adult_values_are_removed(folder) -> None:
    (folder / "adult.csv.gz").write_bytes(gzip.compress(b"age, sex\n39, Male\n 50 ,?\n\n"))
    frame = datasets.load_adult()
    assert (list(frame["age"]), list(frame["sex"])) == ([39, 50], ["Male", "?"])


whole = gzip.compress(b"age,sex\n39,Male\n" * 100)


@pytest.mark.parametrize(
    "content",
    [b"", b"not gzip", whole[:-10], whole[:12] + b"\xff" * 9 + whole[21:], gzip.compress(b"a,b\n1\n")],
    ids=["empty", "foreign", "cut off", "damaged", "ragged"],
)
def test_a_damaged_adult_file_is_named(folder, content: bytes) -> None:
    (folder / "adult.csv.gz").write_bytes(content)
    with pytest.raises(DataFileError, match=r"cannot read .*adult\.csv\.gz .*replace the file"):
        datasets.load_adult()


def test_adult_is_inside_and_the_same_as_the_file(monkeypatch) -> None:
    import narwhals as nw

    folder = os.environ.get("PRIVACYFUNNEL_DATA", "")
    monkeypatch.delenv("PRIVACYFUNNEL_DATA", raising=False)
    inside = nw.from_native(datasets.load_adult(), eager_only=True)
    assert inside.shape == (32_561, 15)
    assert inside["age"].to_list()[:3] == [39, 50, 38]
    assert inside["workclass"].to_list().count("?") == 1836
    if (Path(folder) / "adult" / "adult.csv.gz").is_file():
        monkeypatch.setenv("PRIVACYFUNNEL_DATA", folder)
        published = nw.from_native(datasets.load_adult(), eager_only=True)
        assert inside.to_dict(as_series=False) == published.to_dict(as_series=False)
