"""One linear programme, solved by HiGHS itself: to import SciPy around it takes longer than to solve."""

from __future__ import annotations

import highspy
import numpy as np
from numpy.typing import NDArray

from ..arrays import FloatArray

INFINITY = highspy.kHighsInf
TOLERANCE = 1e-10  # of HiGHS, for rows and for reduced costs


def least_mixture(
    costs: FloatArray,
    columns: list[tuple[NDArray[np.intp], FloatArray]],
    low: FloatArray,
    high: FloatArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Minimise costs · w subject to low ≤ Σ w_j column_j ≤ high, w ≥ 0; None where HiGHS finds no optimum.

    Parameters
    ----------
    costs : (n,) array
    columns : of (rows, values)
        The nonzeros of each column.
    low, high : (m,) arrays
        −INFINITY and INFINITY for no limit.

    Returns
    -------
    (weights, duals)
        A dual is what one more unit of its row would cost.
    """
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(name, TOLERANCE)
    none = np.empty(0, dtype=np.int32)
    for least, most in zip(low.tolist(), high.tolist(), strict=True):
        solver.addRow(least, most, 0, none, np.empty(0))
    sizes = [rows.size for rows, _ in columns]
    n = len(columns)
    solver.addCols(
        n,
        np.ascontiguousarray(costs, dtype=np.float64),
        np.zeros(n),
        np.full(n, INFINITY),
        sum(sizes),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32),
        np.concatenate([rows for rows, _ in columns]).astype(np.int32),
        np.concatenate([values for _, values in columns]).astype(np.float64),
    )
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    solution = solver.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
