"""Problem: what is solved. The funnel of a joint, restricted to the letters that occur."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..joint import Joint
from ..mechanism import TableMechanism

FloatArray = NDArray[np.float64]
NATS_PER_BIT = float(np.log(2.0))


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise L = I(Z;Y) − β I(Z;X) over channels P(Z|X), for a fixed joint and any β.

    Letters of probability 0 are left out, so that every conditional below exists; `embed` puts
    them back. Arrays are contiguous and in the order that the compiled kernels read them.
    """

    joint: Joint

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Indices of the letters of X that occur."""
        return np.flatnonzero(self.joint.p_x > 0)

    @cached_property
    def p_xy(self) -> FloatArray:
        columns = np.flatnonzero(self.joint.p_y > 0)
        return np.ascontiguousarray(self.joint.p_xy[np.ix_(self.rows, columns)])

    @cached_property
    def p_x(self) -> FloatArray:
        return np.asarray(self.p_xy.sum(axis=1))

    @cached_property
    def p_y(self) -> FloatArray:
        return np.asarray(self.p_xy.sum(axis=0))

    @cached_property
    def p_y_given_x(self) -> FloatArray:
        """(n_x, n_y)"""
        return np.ascontiguousarray(self.p_xy / self.p_x[:, None])

    @cached_property
    def p_x_given_y(self) -> FloatArray:
        """(n_y, n_x)"""
        return np.ascontiguousarray((self.p_xy / self.p_y).T)

    @cached_property
    def pseudo_inverse(self) -> FloatArray:
        """Of the operator log p(z|y) ↦ Σ_y P(y|x) log p(z|y): (n_y, n_x)"""
        return np.ascontiguousarray(np.linalg.pinv(self.p_y_given_x), dtype=np.float64)

    @property
    def n_x(self) -> int:
        return int(self.p_xy.shape[0])

    @property
    def n_y(self) -> int:
        return int(self.p_xy.shape[1])

    @cached_property
    def rank(self) -> int:
        """Rank of P(Y|X)."""
        return int(np.linalg.matrix_rank(self.p_y_given_x))

    def embed(self, p_z_given_x: FloatArray) -> FloatArray:
        """The channel on the full alphabet of X.

        A letter that never occurs is released as a draw from P(Z), which tells nothing about it.
        """
        if self.n_x == self.joint.n_x:
            return p_z_given_x
        p_z = self.p_x @ p_z_given_x
        full = np.tile(p_z / p_z.sum(), (self.joint.n_x, 1))
        full[self.rows] = p_z_given_x
        return full

    def mechanism(self, p_z_given_x: FloatArray) -> TableMechanism:
        """What releases through this channel, for the full alphabet of the joint."""
        return TableMechanism.for_joint(self.joint, self.embed(p_z_given_x))

    def gradient(self, p_z_given_x: FloatArray, beta: float) -> FloatArray:
        """∂L/∂p(z|x) in bits: p(x) [ Σ_y P(y|x) log p(z|y) − log p(z) − β log( p(z|x)/p(z) ) ].

        +∞ where p(z|x) = 0 < p(z): the slope of −β I(Z;X) there. 0 for symbols that never occur.
        """
        p_z = self.p_x @ p_z_given_x
        with np.errstate(divide="ignore"):
            log_p, log_pz = np.log2(p_z_given_x), np.log2(p_z)
            log_pzy = np.log2(self.p_x_given_y @ p_z_given_x)
        log_pz[p_z == 0] = 0.0
        mixed = self.p_y_given_x @ np.where(np.isfinite(log_pzy), log_pzy, 0.0)
        inner = mixed - log_pz - beta * (log_p - log_pz)
        if beta == 0:
            inner = mixed - log_pz
        # A zero entry whose neighbours p(z|y) vanish too: β log p(z|x) is outweighed or not by P(y|x);
        # such entries cannot be re-entered by any local step, so they count as closed.
        inner[p_z_given_x == 0] = np.inf
        inner[:, p_z == 0] = 0.0
        return self.p_x[:, None] * inner

    def stationarity_gap(self, p_z_given_x: FloatArray, beta: float) -> float:
        """First-order residual in bits, on the support: Σ ∂L·p − Σ_x min_z ∂L; 0 exactly if stationary."""
        gradient = self.gradient(p_z_given_x, beta)
        gradient[p_z_given_x == 0] = np.inf
        weighted = np.where(p_z_given_x > 0, gradient, 0.0) * p_z_given_x
        return float(weighted.sum() - gradient.min(axis=1).sum())
