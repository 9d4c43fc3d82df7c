"""Time sharing: a mechanism that is one of several, by weights; symbols that say the same are one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import mechanisms_on_joints

from privacyfunnel.combining import time_share
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.information import utility_and_leakage
from privacyfunnel.joint import Joint
from privacyfunnel.mechanism import TableMechanism

NAN = float("nan")


@given(mechanisms_on_joints(count=3), st.integers(0, 2**32 - 1))
def test_time_sharing_averages_utility_and_leakage(
    case: tuple[Joint, list[TableMechanism]], seed: int
) -> None:
    joint, mechanisms = case
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.ones(3)) if seed % 3 else np.array([0.0, 1.0, 0.0])
    shared = time_share(mechanisms, weights)
    parts = np.array([utility_and_leakage(joint.p_xy, m.p_z_given_x) for m in mechanisms])
    assert utility_and_leakage(joint.p_xy, shared.p_z_given_x) == pytest.approx(weights @ parts, abs=1e-12)
    assert (shared.p_z_given_x.max(axis=0) > 0).all()
    for a, b in itertools.combinations(shared.p_z_given_x.T, 2):
        assert not np.allclose(a / a.max(), b / b.max(), rtol=1e-13, atol=0)


def test_time_sharing_merges_what_is_the_same() -> None:
    table = np.random.default_rng(1).dirichlet(np.ones(4), size=5)
    mechanism = TableMechanism(table)
    assert np.allclose(time_share([mechanism] * 3, [0.2, 0.3, 0.5]).p_z_given_x, table, rtol=1e-14)
    one = TableMechanism(np.ones((5, 1)))
    assert time_share([one, mechanism, one], [0.25, 0.5, 0.25]).n_z == 5
    # Zeros in other places are another posterior, however small the probabilities are.
    almost = TableMechanism([[1 - 1e-14, 1e-14], [1, 0]])
    shared = time_share([almost, TableMechanism([[1.0], [1.0]])], [0.5, 0.5])
    assert shared.p_z_given_x[:, 1].tolist() == [0.5e-14, 0]
    assert time_share([TableMechanism([[0.5, 0.5, 0], [1e-14, 0, 1 - 1e-14]])], [1]).n_z == 3


def test_merging_finds_all_pairs_among_many() -> None:
    rng = np.random.default_rng(2)
    table = rng.dirichlet(np.ones(40), size=6)
    split = rng.uniform(0.1, 0.9, size=40)
    order = rng.permutation(80)
    noise = 1 + 1e-13 * rng.uniform(-1, 1, size=table.shape)
    doubled = TableMechanism(np.concatenate([table * split, table * (1 - split) * noise], axis=1)[:, order])
    merged = time_share([doubled], [1.0]).p_z_given_x
    key = np.argsort(merged[0])
    assert np.allclose(merged[:, key], table[:, np.argsort(table[0])], rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([0.5], "one weight a mechanism"),
        ([0.5, 0.6], "sum to 1"),
        ([1.5, -0.5], "0 or more"),
        ([NAN, 1], "0 or more"),
    ],
)
def test_time_sharing_needs_weights(weights: list, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        time_share([TableMechanism(np.eye(2))] * 2, weights)


def test_time_sharing_needs_the_same_letters() -> None:
    with pytest.raises(InvalidInputError, match="the same letters"):
        time_share([TableMechanism(np.eye(2)), TableMechanism(np.eye(2), x_labels="ab")], [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="one weight a mechanism"):
        time_share([], [])
