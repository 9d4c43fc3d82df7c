"""Information measures against explicit sums, their inequalities, and repeated releases."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, channels, joints, random_joint

from privacyfunnel.errors import InvalidInputError
from privacyfunnel.information import (
    LeakageProfile,
    bayes_success,
    entropy,
    kl_divergence,
    maximal_leakage,
    measure,
    min_entropy_leakage,
    mutual_information,
    pointwise_leakage,
    repeated_leakage,
    utility_and_leakage,
)
from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.uncertainty import held_out_leakage, leakage_interval, utility_interval

Case = tuple[TableMechanism, Joint]


@st.composite
def cases(draw: st.DrawFn, max_x: int = 5, max_y: int = 4, max_z: int = 4) -> Case:
    joint = draw(joints(max_x, max_y))
    return TableMechanism(draw(channels(joint.n_x, max_z))), joint


@pytest.fixture
def xor() -> Case:
    """X is two fair bits, Y their exclusive or; a release tells one of the two bits, and which."""
    p_xy, channel = np.zeros((4, 2)), np.zeros((4, 4))
    for a, b in itertools.product((0, 1), repeat=2):
        p_xy[2 * a + b, a ^ b] = 0.25
        channel[2 * a + b, a] = channel[2 * a + b, 2 + b] = 0.5
    return TableMechanism(channel), Joint(p_xy)


def slow_information(p_ab: np.ndarray) -> float:
    """I(A;B) with exact rational marginals and one logarithm a cell."""
    cells = [[Fraction(float(p)) for p in row] for row in p_ab]
    p_a = [sum(row) for row in cells]
    p_b = [sum(column) for column in zip(*cells, strict=True)]
    return math.fsum(
        float(p) * (_log2(p) - _log2(p_a[a]) - _log2(p_b[b]))
        for a, row in enumerate(cells)
        for b, p in enumerate(row)
        if p > 0
    )


def _log2(p: Fraction) -> float:
    return math.log2(p.numerator) - math.log2(p.denominator)


def slow_joint_yz(joint: Joint, channel: np.ndarray) -> list[list[Fraction]]:
    return [
        [
            sum(Fraction(float(joint.p_xy[x, y])) * Fraction(float(channel[x, z])) for x in range(joint.n_x))
            for z in range(channel.shape[1])
        ]
        for y in range(joint.n_y)
    ]


# Known values


def test_known_values() -> None:
    assert entropy([0.5, 0.25, 0.25, 0]) == 1.5
    assert entropy([1.0]) == 0
    assert math.copysign(1, entropy([1.0])) == 1
    assert kl_divergence([1, 0], [0.5, 0.5]) == 1
    assert kl_divergence([0.5, 0.5], [1, 0]) == math.inf
    assert mutual_information([[0.5, 0], [0, 0.5]]) == 1
    assert mutual_information(np.full((3, 4), 1 / 12)) == pytest.approx(0, abs=1e-15)


def test_binary_symmetric_channel() -> None:
    """Y a fair bit, X = Y, Z = X flipped with probability 1/4: every measure has a closed form."""
    joint, mechanism = Joint(np.eye(2) / 2), TableMechanism([[0.75, 0.25], [0.25, 0.75]])
    capacity = 1 - entropy([0.25, 0.75])
    expected = LeakageProfile(
        utility=capacity,
        leakage=capacity,
        guess_before=0.5,
        guess_after=0.75,
        min_entropy_leakage=math.log2(1.5),
        maximal_leakage=math.log2(1.5),
        maximal_leakage_x=math.log2(1.5),
        largest_pointwise_leakage=math.log2(1.5),
        smallest_pointwise_leakage=-1.0,
    )
    assert vars(measure(mechanism, joint)) == pytest.approx(vars(expected), abs=1e-15)


def test_erasure_rules_letters_out() -> None:
    """Z tells x with probability 0.3 and nothing otherwise."""
    joint = Joint([[0.25, 0], [0, 0.75]])
    profile = measure(TableMechanism([[0.3, 0, 0.7], [0, 0.3, 0.7]]), joint)
    assert profile.leakage == pytest.approx(0.3 * joint.entropy_y, abs=1e-15)
    assert profile.guess_before == 0.75
    assert profile.guess_after == pytest.approx(0.3 + 0.7 * 0.75)
    assert profile.maximal_leakage == pytest.approx(math.log2(1.3))
    assert profile.largest_pointwise_leakage == pytest.approx(2)
    assert profile.smallest_pointwise_leakage == -math.inf
    assert profile.to_dict()["smallest_pointwise_leakage"] is None
    assert json.loads(json.dumps(profile.to_dict(), allow_nan=False))["guess_before"] == 0.75


# Against explicit sums


@given(cases())
def test_mutual_information_is_its_definition(case: Case) -> None:
    mechanism, joint = case
    assert mutual_information(joint.p_xy) == pytest.approx(slow_information(joint.p_xy), abs=1e-13)
    p_xz = joint.p_x[:, None] * mechanism.p_z_given_x
    p_yz = np.array([[float(p) for p in row] for row in slow_joint_yz(joint, mechanism.p_z_given_x)])
    assert utility_and_leakage(joint.p_xy, mechanism.p_z_given_x) == pytest.approx(
        (slow_information(p_xz), slow_information(p_yz)), abs=1e-13
    )


@given(cases())
def test_measures_are_their_definitions(case: Case) -> None:
    mechanism, joint = case
    profile = measure(mechanism, joint)
    channel = mechanism.p_z_given_x
    p_yz = slow_joint_yz(joint, channel)
    p_y = [sum(Fraction(float(p)) for p in joint.p_xy[:, y]) for y in range(joint.n_y)]
    p_z = [sum(row[z] for row in p_yz) for z in range(mechanism.n_z)]
    seen = [z for z in range(mechanism.n_z) if p_z[z] > 0]
    possible = [y for y in range(joint.n_y) if p_y[y] > 0]
    before, after = max(p_y), sum(max(p_yz[y][z] for y in possible) for z in seen)
    assert profile.guess_before == pytest.approx(float(before), abs=1e-15)
    assert profile.guess_after == pytest.approx(float(after), abs=1e-14)
    assert profile.min_entropy_leakage == pytest.approx(math.log2(after / before), abs=1e-13)
    most = sum(max(p_yz[y][z] / p_y[y] for y in possible) for z in seen)
    assert profile.maximal_leakage == pytest.approx(math.log2(most), abs=1e-13)
    most_x = math.fsum(max(channel[x, z] for x in range(joint.n_x) if joint.p_x[x] > 0) for z in seen)
    assert profile.maximal_leakage_x == pytest.approx(math.log2(most_x), abs=1e-13)
    ratios = [p_yz[y][z] / p_y[y] / p_z[z] for y in possible for z in seen]
    assert profile.largest_pointwise_leakage == pytest.approx(_log2(max(ratios)), abs=1e-10)
    lowest = min(ratios)
    expected = _log2(lowest) if lowest > 0 else -math.inf
    assert profile.smallest_pointwise_leakage == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_pointwise_leakage_tells_underflow_from_impossible() -> None:
    """y=1 gives z=0 only through x=1, with probability 2e-200 · 1e-200: no double, but not 0 either."""
    p_xy = [[0.5, 0], [0, 1e-200], [0, 0.5]]
    smallest, largest = pointwise_leakage(p_xy, [[0.5, 0.5], [1e-200, 1], [0, 1]])
    assert smallest == pytest.approx(math.log2(2e-200) + math.log2(1e-200) - math.log2(0.25), rel=1e-12)
    assert largest == pytest.approx(1)
    smallest, _ = pointwise_leakage(p_xy, [[0.5, 0.5], [0, 1], [0, 1]])
    assert smallest == -math.inf


# Inequalities


@given(cases())
def test_measures_are_ordered(case: Case) -> None:
    mechanism, joint = case
    profile = measure(mechanism, joint)
    slack = 1e-9
    assert 0 <= profile.leakage <= min(profile.utility, joint.mutual_information) + slack
    assert profile.utility <= min(joint.entropy_x, math.log2(mechanism.n_z)) + slack
    # Sibson's information grows with its order: order 1, the uniform prior's order ∞, the largest ratio.
    assert profile.leakage <= profile.maximal_leakage + slack
    assert profile.min_entropy_leakage <= profile.maximal_leakage + slack
    assert profile.maximal_leakage <= profile.largest_pointwise_leakage + slack
    assert profile.maximal_leakage <= profile.maximal_leakage_x + slack
    assert profile.maximal_leakage_x <= math.log2(min(mechanism.n_z, joint.n_x)) + slack
    assert profile.smallest_pointwise_leakage <= slack
    assert profile.guess_before <= profile.guess_after + slack <= 1 + 2 * slack


@given(st.data())
def test_processing_z_leaks_no_more(data: st.DataObject) -> None:
    mechanism, joint = data.draw(cases())
    after = mechanism.compose(TableMechanism(data.draw(channels(mechanism.n_z, 4))))
    first, second = measure(mechanism, joint), measure(after, joint)
    for name in (
        "utility",
        "leakage",
        "guess_after",
        "min_entropy_leakage",
        "maximal_leakage",
        "maximal_leakage_x",
        "largest_pointwise_leakage",
    ):
        assert getattr(second, name) <= getattr(first, name) + 1e-9
    assert second.smallest_pointwise_leakage >= first.smallest_pointwise_leakage - 1e-9


@given(cases(), st.integers(0, 2**32 - 1))
def test_order_of_letters_does_not_matter(case: Case, seed: int) -> None:
    mechanism, joint = case
    rng = np.random.default_rng(seed)
    x, y, z = (rng.permutation(n) for n in (joint.n_x, joint.n_y, mechanism.n_z))
    shuffled = TableMechanism(mechanism.p_z_given_x[np.ix_(x, z)]), Joint(joint.p_xy[np.ix_(x, y)])
    assert vars(measure(*shuffled)) == pytest.approx(vars(measure(mechanism, joint)), rel=1e-9, abs=1e-9)
    once, again = (repeated_leakage(*pair, 3).value for pair in (shuffled, case))
    assert once == pytest.approx(again, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_joint_gives_nan_or_warnings(kind: str) -> None:
    rng = np.random.default_rng(0)
    for n_x, n_y in [(1, 1), (1, 3), (4, 1), (3, 5)]:
        joint = random_joint(rng, n_x, n_y, kind)
        tiny = np.full((n_x, 3), 1e-300)
        tiny[:, 0] = 1
        for channel in (np.ones((n_x, 1)), np.eye(n_x), tiny, rng.dirichlet(np.ones(4), size=n_x)):
            profile = measure(TableMechanism(channel), joint)
            assert not any(math.isnan(value) for value in vars(profile).values())
            for k in (1, 2, 5):
                for entries in (10**7, 1):
                    assert repeated_leakage(TableMechanism(channel), joint, k, max_entries=entries).value >= 0


def test_letters_of_probability_zero_count_for_nothing() -> None:
    joint = Joint([[0.3, 0, 0.2], [0.1, 0, 0.4], [0, 0, 0]])
    shared = [[0.5, 0.5, 0], [0.9, 0.1, 0]]
    small = TableMechanism([row[:2] for row in shared]), Joint([[0.3, 0.2], [0.1, 0.4]])
    full = TableMechanism([*shared, [0, 0, 1]]), joint
    assert vars(measure(*full)) == pytest.approx(vars(measure(*small)), abs=1e-15)
    for entries in (10**7, 0):
        values = [repeated_leakage(*pair, 2, max_entries=entries).value for pair in (small, full)]
        assert values[0] == pytest.approx(values[1], abs=1e-15)


# Repeated releases


@given(cases(max_x=4, max_y=3, max_z=3), st.integers(1, 4))
def test_repeated_leakage_counts_like_the_product(case: Case, k: int) -> None:
    mechanism, joint = case
    sequences = list(itertools.product(range(mechanism.n_z), repeat=k))
    p_yz = np.zeros((joint.n_y, len(sequences)))
    for (x, y), p in np.ndenumerate(joint.p_xy):
        for at, symbols in enumerate(sequences):
            p_yz[y, at] += p * math.prod(mechanism.p_z_given_x[x, z] for z in symbols)
    result = repeated_leakage(mechanism, joint, k)
    assert result.kind == "exact"
    assert result.value == pytest.approx(slow_information(p_yz), abs=1e-11)
    assert result.value == pytest.approx(
        utility_and_leakage(joint.p_xy, mechanism.repeat(k).p_z_given_x)[1], abs=1e-11
    )


@given(cases(), st.integers(1, 8))
def test_the_bound_is_a_bound(case: Case, k: int) -> None:
    mechanism, joint = case
    exact, bound = repeated_leakage(mechanism, joint, k), repeated_leakage(mechanism, joint, k, max_entries=0)
    assert (exact.kind, bound.kind) == ("exact", "upper bound")
    assert "I(X;Y)" in bound.note
    assert exact.value <= bound.value + 1e-12
    assert bound.value <= joint.mutual_information + 1e-12


def test_two_releases_can_tell_what_none_tells_alone(xor: Case) -> None:
    """Why k·I(Z;Y) is no bound: each release is independent of Y, two differ with probability 1/2."""
    values = [repeated_leakage(*xor, k).value for k in (1, 2, 3, 20)]
    assert values == pytest.approx([0, 0.5, 0.75, 1 - 2**-19], abs=1e-12)
    assert repeated_leakage(*xor, 3, max_entries=0).value >= 0.75


def test_the_bound_uses_few_weak_releases() -> None:
    """A nearly useless release and a weak dependence: far below I(X;Y), which holds for any k."""
    joint = Joint(np.array([[0.55, 0.45], [0.45, 0.55]]) / 2)
    mechanism = TableMechanism([[0.51, 0.49], [0.49, 0.51]])
    bound = repeated_leakage(mechanism, joint, 2, max_entries=0).value
    assert repeated_leakage(mechanism, joint, 2).value < bound < joint.mutual_information / 10
    utility, _ = utility_and_leakage(joint.p_xy, mechanism.p_z_given_x)
    assert bound == pytest.approx(0.1 * 2 * utility, rel=1e-9)


def test_many_releases_tell_x_and_stay_exact() -> None:
    rng = np.random.default_rng(4)
    joint, mechanism = random_joint(rng, 3, 3), TableMechanism(rng.dirichlet(np.ones(3), size=3))
    values = [repeated_leakage(mechanism, joint, k) for k in (1, 10, 100, 1000)]
    assert {value.kind for value in values} == {"exact"}
    assert all(a.value < b.value for a, b in itertools.pairwise(values))
    assert values[-1].value == pytest.approx(joint.mutual_information, abs=1e-6)
    assert float(values[0]) == pytest.approx(utility_and_leakage(joint.p_xy, mechanism.p_z_given_x)[1])


def test_equivalent_symbols_and_letters_cost_nothing() -> None:
    """Ten copies of each symbol would be C(49, 30) counts; as two symbols they are 31."""
    joint = random_joint(np.random.default_rng(5), 4, 3)
    two = np.array([[0.2, 0.8], [0.2, 0.8], [0.7, 0.3], [0.7, 0.3]])
    copies = TableMechanism(np.repeat(two, 10, axis=1) / 10)
    result = repeated_leakage(copies, joint, 30)
    assert result.kind == "exact"
    assert result.value == pytest.approx(repeated_leakage(TableMechanism(two), joint, 30).value, abs=1e-12)
    merged = Joint(joint.p_xy.reshape(2, 2, 3).sum(axis=1))
    assert repeated_leakage(copies, joint, 10**6, max_entries=0).value <= merged.mutual_information + 1e-12


@pytest.mark.parametrize("k", [0, -3, 1.5, None, True])
def test_the_number_of_releases_is_checked(k: object, xor: Case) -> None:
    with pytest.raises(InvalidInputError, match="k must be a whole number"):
        repeated_leakage(*xor, k)  # type: ignore[arg-type]


def test_joint_and_mechanism_must_have_the_same_letters(xor: Case) -> None:
    joint = Joint(xor[1].p_xy, x_labels="abcd")
    for function in (measure, lambda *pair: repeated_leakage(*pair, 2)):
        with pytest.raises(InvalidInputError, match="letters must be those of the joint"):
            function(xor[0], joint)
    with pytest.raises(InvalidInputError, match="letters must be those of the joint"):
        measure(TableMechanism(np.eye(3)), xor[1])


@pytest.mark.parametrize(
    "function",
    [measure, lambda *pair: repeated_leakage(*pair, 2), held_out_leakage, leakage_interval, utility_interval],
)
def test_swapped_arguments_get_a_sentence(function: Any, xor: Case) -> None:
    mechanism, joint = xor
    function(mechanism, joint)
    with pytest.raises(InvalidInputError, match="the mechanism comes first; swap it with the joint"):
        function(joint, mechanism)
    with pytest.raises(InvalidInputError, match="first argument must be a TableMechanism; it is a ndarray"):
        function(mechanism.p_z_given_x, joint)
    with pytest.raises(InvalidInputError, match="second argument must be a Joint; it is a TableMechanism"):
        function(mechanism, mechanism)


def test_plain_functions_agree_with_the_profile(xor: Case) -> None:
    joint, mechanism = random_joint(np.random.default_rng(6), 4, 3), xor[0]
    p_yz = joint.p_xy.T @ mechanism.p_z_given_x
    profile = measure(mechanism, joint)
    assert bayes_success(p_yz) == profile.guess_after
    assert bayes_success(joint.p_y[:, None]) == profile.guess_before
    assert min_entropy_leakage(p_yz) == profile.min_entropy_leakage
    p_z_given_y = p_yz / joint.p_y[:, None]
    assert maximal_leakage(p_z_given_y, joint.p_y) == pytest.approx(profile.maximal_leakage, abs=1e-14)
