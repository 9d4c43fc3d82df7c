"""`dca-ridge`: the paper's solver with a quadratic penalty (`eq:lasso_pf`, q = 2).

From p^k form the target q(z|y) (`eq:dca_inner_update`), then

    p^{k+1} = argmin ½ ‖A p − q‖² + (α/2) ‖p‖²   over channels p (rows on the simplex),   A = P(X|Y)

The simplex is inside the quadratic programme: it is solved exactly, by block coordinate descent over the
rows, each an exact projection. Its Hessian AᵀA + αI is positive definite, so the minimiser is unique.

Guarantee: none for L. The pseudo-inverse in q and the penalty break the majorisation that makes a
difference-of-convex step descend, so L may rise and the iterates may cycle; the loop keeps the best one.
Where P(Y|X) has not full row rank the target is a least-squares one, and the result says so.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import FloatArray
from .iterate import State
from .kernels import lagrangian, lagrangians, paper_target, project_simplex
from .problem import Problem

TOLERANCE = 1e-11  # largest entry of p − proj(p − gradient)
MAX_SWEEPS = 20_000


class DcaRidge:
    """See the module's text. The parameter is α."""

    name = "dca-ridge"
    monotone = False

    def start(self, problem: Problem, p: FloatArray, beta: FloatArray, parameter: FloatArray) -> State:
        return State(p.copy(), lagrangians(problem, p, beta), beta, parameter)

    def step(self, problem: Problem, state: State, active: NDArray[np.intp]) -> None:
        a = problem.p_x_given_y
        _step(
            active,
            state.p,
            state.objective,
            state.beta,
            state.parameter,
            problem.p_x,
            problem.p_y,
            a,
            a.T @ a,
            problem.pseudo_inverse,
        )


@njit(nogil=True, cache=True)
def solve_simplex_ridge(gram: FloatArray, linear: FloatArray, alpha: float, p: FloatArray) -> int:
    """Minimise ½ tr pᵀ(gram + αI)p − tr linearᵀp over rows on the simplex, in place from p; sweeps used.

    Stops when no entry of p − proj(p − gradient) exceeds TOLERANCE, the optimality conditions of the QP.
    """
    n_x, n_z = p.shape
    gradient = np.empty(n_z)
    shifted = np.empty(n_z)
    row = np.empty(n_z)
    scratch = np.empty(n_z)
    for sweep in range(MAX_SWEEPS):
        moved = 0.0
        residual = 0.0
        for x in range(n_x):
            for z in range(n_z):
                gradient[z] = alpha * p[x, z] - linear[x, z]
            for other in range(n_x):
                for z in range(n_z):
                    gradient[z] += gram[x, other] * p[other, z]
            for z in range(n_z):
                shifted[z] = p[x, z] - gradient[z]
            project_simplex(shifted, row, scratch)
            for z in range(n_z):
                residual = max(residual, abs(row[z] - p[x, z]))
            curvature = gram[x, x] + alpha
            for z in range(n_z):
                shifted[z] = p[x, z] - gradient[z] / curvature
            project_simplex(shifted, row, scratch)
            for z in range(n_z):
                moved = max(moved, abs(row[z] - p[x, z]))
                p[x, z] = row[z]
        # Residuals of rows seen early in a sweep are stale once later rows move: both must be small.
        if residual <= TOLERANCE and moved <= TOLERANCE:
            return sweep + 1
    return MAX_SWEEPS


@njit(nogil=True, cache=True)
def _step(
    active: NDArray[np.intp],
    all_p: FloatArray,
    objective: FloatArray,
    betas: FloatArray,
    alphas: FloatArray,
    p_x: FloatArray,
    p_y: FloatArray,
    p_x_given_y: FloatArray,
    gram: FloatArray,
    pinv: FloatArray,
) -> None:
    n_z = all_p.shape[2]
    target = np.empty((p_y.size, n_z))
    for task in active:
        p = all_p[task]
        paper_target(p, betas[task], p_x, pinv, target)
        for y in range(p_y.size):
            for z in range(n_z):
                target[y, z] = np.exp(target[y, z])
        solve_simplex_ridge(gram, np.dot(p_x_given_y.T, target), alphas[task], p)
        objective[task] = lagrangian(p, betas[task], p_x, p_y, p_x_given_y)
