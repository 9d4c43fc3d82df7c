"""Solving for other measures than information, and what each proved solution must keep."""

from __future__ import annotations

import numpy as np

import privacyfunnel as pf
from privacyfunnel.measures import Distance

TOL = 1e-7


def solve(joint, measures, **target):
    asked = {"utility": measures.utility, "leakage": measures.leakage, "max_lift": measures.max_lift}
    return pf.solve(joint, tol=TOL, rng=0, n_jobs=1, **asked, **target)


def within(solution):
    """Assert that a solution is proved, keeps its limits and is what it says; its tolerance."""
    measures, joint = solution.measures, solution.joint
    whole = measures.utility_of(joint.p_x, np.eye(joint.n_x))
    shared = isinstance(measures.utility, Distance) and solution.target.kind == "max_leakage"
    tol = TOL * max(whole, 1e-2) if shared else TOL
    assert solution.status is pf.Status.OPTIMAL
    assert solution.gap <= 1.01 * tol
    assert solution.lower_bound <= solution.objective + 1e-15
    assert solution.target.excess(solution.utility, solution.leakage) <= 1e-11
    if measures.max_lift is not None:
        assert solution.lift <= measures.max_lift + 1e-9
    return tol
