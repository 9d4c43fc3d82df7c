"""Slow, obvious twins of the fast formulas, written from the definitions alone."""

from __future__ import annotations

import math

import numpy as np


def slow_information(p_xy: np.ndarray, p_z_given_x: np.ndarray) -> tuple[float, float]:
    """I(Z;X) and I(Z;Y) in bits, by loops over the definition with exactly rounded sums."""
    n_x, n_y = p_xy.shape
    n_z = p_z_given_x.shape[1]
    p_x = [math.fsum(p_xy[x]) for x in range(n_x)]
    p_y = [math.fsum(p_xy[:, y]) for y in range(n_y)]
    p_z = [math.fsum(p_x[x] * p_z_given_x[x, z] for x in range(n_x)) for z in range(n_z)]
    utility, leakage = [], []
    for z in range(n_z):
        for x in range(n_x):
            p = p_x[x] * p_z_given_x[x, z]
            if p > 0:
                utility.append(p * (math.log2(p_z_given_x[x, z]) - math.log2(p_z[z])))
        for y in range(n_y):
            p = math.fsum(p_xy[x, y] * p_z_given_x[x, z] for x in range(n_x))
            if p > 0:
                leakage.append(p * (math.log2(p) - math.log2(p_y[y]) - math.log2(p_z[z])))
    return math.fsum(utility), math.fsum(leakage)


def slow_dca_map(p_xy: np.ndarray, p: np.ndarray, beta: float) -> np.ndarray:
    """p(z|x)^{1+β} p(z)^{1−β} exp(−Σ_y P(y|x) log p(z|y)), normalised over z."""
    n_x, n_y = p_xy.shape
    p_x, p_y = p_xy.sum(axis=1), p_xy.sum(axis=0)
    result = np.zeros_like(p)
    for x in range(n_x):
        for z in range(p.shape[1]):
            if p[x, z] == 0:
                continue
            p_z = sum(p_x[i] * p[i, z] for i in range(n_x))
            exponent = 0.0
            for y in range(n_y):
                if p_xy[x, y] > 0:
                    p_zy = sum(p_xy[i, y] / p_y[y] * p[i, z] for i in range(n_x))
                    exponent += p_xy[x, y] / p_x[x] * math.log(p_zy)
            result[x, z] = p[x, z] ** (1 + beta) * p_z ** (1 - beta) * math.exp(-exponent)
    return result / result.sum(axis=1, keepdims=True)


def slow_paper_target(p_xy: np.ndarray, p: np.ndarray, beta: float) -> np.ndarray:
    """log q(z|y) of eq:dca_inner_update by the Kronecker form of the paper, for p > 0: (n_y, n_z)."""
    p_x = p_xy.sum(axis=1)
    n_z = p.shape[1]
    p_z = p_x @ p
    c = np.log(p_z) + beta * (np.log(p) - np.log(p_z))
    b = np.kron(np.eye(n_z), p_xy / p_x[:, None])
    raw = (np.linalg.pinv(b) @ c.T.ravel()).reshape(n_z, -1).T
    return np.log(np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True))
