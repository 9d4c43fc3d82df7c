"""Bounds from merged private values: they hold for the whole attribute, and say where they come from."""

import warnings

import numpy as np
import pytest
from discrete.twins import slow_information

import privacyfunnel as pf
from privacyfunnel.discrete.exact.coarser import merged
from privacyfunnel.discrete.problem import Problem
from privacyfunnel.errors import ConvergenceWarning


def drawn_joint(seed, n_x, n_y):
    rng = np.random.default_rng(seed)
    return pf.Joint(rng.dirichlet(np.full(n_x, 3.0))[:, None] * rng.dirichlet(np.ones(n_y), size=n_x))


def out_of_nodes(joint, **target):
    """One node is not enough for a proof, but for two merged values none is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pf.solve(joint, method="exact", rng=0, n_jobs=1, node_limit=1, **target)


def test_merging_keeps_the_letters_and_adds_up_the_others():
    joint = drawn_joint(0, 5, 4)
    coarse, groups = merged(Problem(joint), [2, 0])
    assert groups.tolist() == [1, 2, 0, 2]
    expected = np.stack([joint.p_xy[:, 2], joint.p_xy[:, 0], joint.p_xy[:, [1, 3]].sum(axis=1)], axis=1)
    np.testing.assert_allclose(coarse.joint.p_xy, expected, atol=1e-16)


@pytest.mark.parametrize("target", [{"beta": 0.1}, {"max_leakage": 0.05}])
def test_a_bound_from_merged_values_holds_and_is_said(target):
    joint = drawn_joint(1, 10, 4)
    late = out_of_nodes(joint, **target)
    optimum = pf.solve(joint, method="exact", rng=0, **target)
    assert optimum.status is pf.Status.OPTIMAL
    assert late.status is pf.Status.TIME_LIMIT
    assert late.lower_bound <= optimum.objective + 1e-12
    assert any("merged private values" in note for note in late.notes)
    # The line is one of the merged joint: no release of X has less leakage about the merged values.
    proof = late.proof
    assert proof.kind == "merged"
    groups = proof.arrays["groups"].astype(int)
    assert groups.shape == (4,)
    table = np.stack([joint.p_xy[:, groups == g].sum(axis=1) for g in range(groups.max() + 1)], axis=1)
    rng = np.random.default_rng(0)
    for channel in [np.eye(10), optimum.mechanism.p_z_given_x, *rng.dirichlet(np.full(5, 0.2), (50, 10))]:
        utility, leakage = (np.log(2) * v for v in slow_information(table, channel))
        assert leakage >= proof.value + proof.beta * utility - 1e-12


def test_merging_helps_where_the_proof_does_not_end(monkeypatch):
    joint = drawn_joint(1, 10, 4)
    late = out_of_nodes(joint, max_leakage=0.05)
    monkeypatch.setattr("privacyfunnel.discrete.exact.entry._coarser", lambda *_: None)
    alone = out_of_nodes(joint, max_leakage=0.05)
    assert late.lower_bound > alone.lower_bound + 1e-3
    assert late.gap < alone.gap
    assert alone.proof is None or alone.proof.kind == "posteriors"


def test_auto_keeps_the_bound_of_merged_values_and_is_not_worse_than_dca():
    joint = drawn_joint(2, 10, 4)
    local = pf.solve(joint, beta=0.05, method="dca", rng=0)
    both = pf.solve(joint, beta=0.05, rng=0, n_jobs=1, node_limit=1)
    assert both.method == "dca"
    assert both.lower_bound <= both.objective <= local.objective + 1e-9
    assert any("merged private values" in note for note in both.notes)
    assert "auto tried exact first" in both.notes[-1]


def test_a_frontier_of_auto_has_lines_beside_the_points_of_dca(monkeypatch):
    joint = drawn_joint(3, 9, 4)
    monkeypatch.setattr("privacyfunnel.discrete.exact.entry.MOST_SETS", 10)
    front = pf.frontier(joint, n_points=4, n_starts=2, rng=0)
    assert {"dca", "exact"} <= {point.method for point in front.points}
    assert front.support_lines
    for point in front.points:
        assert point.leakage >= (front.lower_bound_at(point.utility) or 0.0) - 1e-9
