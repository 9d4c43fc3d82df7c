"""Leakage and utility where the encoder's density P(z|x) is known: mixture estimates and their sandwich.

With m records x_j and the code z_i of record i, two averages of densities frame the true one,

    including i:  p̂₊(z_i) = 1/m Σ_j P(z_i|x_j)          E[−log p̂₊] ≤ h(Z)
    leaving i out: p̂₋(z_i) = 1/(m−1) Σ_{j≠i} P(z_i|x_j)    E[−log p̂₋] ≥ h(Z)

(the first is the contrastive bound of Poole et al. 2019, the second Jensen's inequality), and in the same
way over the records of one class for P(z|y). So, in expectation,

    E log P(z|x)/p̂₊(z)      ≤  I(Z;X)  ≤  E log P(z|x)/p̂₋(z)
    E log p̂₋(z|y)/p̂₊(z)     ≤  I(Z;Y)  ≤  E log p̂₊(z|y)/p̂₋(z).

The estimate is halfway. Utility also has E log P(z|x)/r(z) above it for every density r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .intervals import jackknife_interval

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

Bracketed = tuple[float, tuple[float, float]]
# From the groups of records to keep to log p̂₋ and log p̂₊ of every code.
MixturePair = Callable[[NDArray[np.bool_]], tuple[FloatArray, FloatArray]]

BITS = 1 / math.log(2)
#: Groups of records that the jackknife leaves out.
N_GROUPS = 20
#: Most records of a mixture: the table of densities grows with the square.
MOST_RECORDS = 3000


@runtime_checkable
class KnownDensity(Protocol):
    """A mechanism whose density can be evaluated; offer this and the audit brackets what it leaks."""

    def log_density(self, Z: Any, X: Any) -> Any:
        """log P(z_i|x_j) in nats, (n codes, m records)."""


@runtime_checkable
class LocationScaleEncoder(Protocol):
    """An encoder that adds independent noise: P(Z|x) = location + scale · noise.

    `latent` names the noise, "normal" or "laplace".
    """

    latent: str

    def encode(self, X: Any) -> tuple[Any, Any]:
        """Location and log-scale of each record, (n, d) each."""


def location_scale_draw(
    loc: FloatArray, log_scale: FloatArray, latent: str, rng: np.random.Generator
) -> FloatArray:
    """A code of each record."""
    noise = rng.laplace(size=loc.shape) if latent == "laplace" else rng.standard_normal(loc.shape)
    result: FloatArray = loc + np.exp(log_scale) * noise
    return result


def location_scale_density(Z: FloatArray, loc: FloatArray, log_scale: FloatArray, latent: str) -> FloatArray:
    """log P(z_i|x_j) in nats for every code i and record j."""
    precision = np.exp(-log_scale)
    if latent == "laplace":
        constant = -log_scale.sum(axis=1) - loc.shape[1] * math.log(2)
        distances = np.stack(
            [np.abs((Z - at) * size).sum(axis=1) for at, size in zip(loc, precision, strict=True)], axis=1
        )
        return np.asarray(constant[None, :] - distances)
    constant = -log_scale.sum(axis=1) - 0.5 * loc.shape[1] * math.log(2 * math.pi)
    # ‖(z − μ)/σ‖² in three matrix products; what rounding leaves below 0 is 0.
    weights = precision**2
    squares = (Z**2) @ weights.T - 2 * Z @ (weights * loc).T + (weights * loc**2).sum(axis=1)[None, :]
    return np.asarray(constant[None, :] - 0.5 * np.maximum(squares, 0.0))


@dataclass(frozen=True)
class Sandwich:
    """A mixture estimate between two bounds: each a value in bits and its interval."""

    lower: Bracketed
    estimate: Bracketed
    upper: Bracketed


def mixture_utility(log_density: FloatArray, confidence: float) -> Sandwich:
    """I(Z;X) from log P(z_i|x_j) (n, n), code i being that of record i."""
    own = np.diag(log_density)
    return _sandwich(lambda keep: (own, own), _Mixtures(log_density), confidence)


def mixture_leakage(log_density: FloatArray, y: IntArray, confidence: float) -> Sandwich:
    """I(Z;Y) from log P(z_i|x_j) (n, n) and the class of each record."""
    return _sandwich(_Mixtures(log_density, y).mixture, _Mixtures(log_density), confidence)


class _Mixtures:
    """Sums of densities over groups of records, so that leaving a group out costs next to nothing."""

    def __init__(self, log_density: FloatArray, y: IntArray | None = None) -> None:
        n = len(log_density)
        self.n_groups = min(N_GROUPS, n)
        self.group = np.arange(n) * self.n_groups // n
        self.own = np.diag(log_density)
        table = np.array(log_density, dtype=np.float64)
        np.fill_diagonal(table, -np.inf)
        counted = np.ones((n, n), dtype=bool) if y is None else y[:, None] == y[None, :]
        table[~counted] = -np.inf
        members = np.eye(self.n_groups)[self.group]
        np.fill_diagonal(counted, False)
        self.counts = counted @ members
        self.logs = np.stack([_log_sum(table[:, self.group == one]) for one in range(self.n_groups)], axis=1)

    def mixture(self, keep: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """log p̂₋ and log p̂₊ of every code from the records of the groups kept."""
        logs, counts = _log_sum(self.logs[:, keep]), self.counts[:, keep].sum(axis=1)
        with np.errstate(divide="ignore"):
            without = logs - np.log(counts)
        # A class of one record has no mixture without it; what it says alone is all there is.
        without = np.where(counts > 0, without, self.own)
        return without, np.logaddexp(logs, self.own) - np.log(counts + 1)


def _sandwich(numerator: MixturePair, denominator: _Mixtures, confidence: float) -> Sandwich:
    """Means of log ratios with jackknife intervals."""

    def means(keep: NDArray[np.bool_]) -> FloatArray:
        above_without, above_with = numerator(keep)
        below_without, below_with = denominator.mixture(keep)
        terms = np.stack(
            [
                above_without - below_with,
                (above_without - below_without + above_with - below_with) / 2,
                above_with - below_without,
            ]
        )
        result: FloatArray = terms[:, keep[denominator.group]].mean(axis=1) * BITS
        return result

    groups = np.arange(denominator.n_groups)
    values = means(np.ones(len(groups), dtype=bool)).tolist()
    without = np.stack([means(groups != one) for one in groups], axis=1)
    lower, estimate, upper = (
        (value, jackknife_interval(value, row, confidence))
        for value, row in zip(values, without, strict=True)
    )
    return Sandwich(lower, estimate, upper)


def gaussian_utility_bound(own: FloatArray, Z: FloatArray, folds: IntArray) -> FloatArray:
    """Terms, in bits, of E log P(z|x)/r(z) with r the Gaussian fitted to the codes of the other folds.

    `own` is log P(z_i|x_i). Far below the mixture bound where the codes of different records do not
    overlap: then log p̂₋ is very low.
    """
    from scipy.linalg import solve_triangular

    terms = np.empty(len(Z))
    for fold in np.unique(folds):
        held = folds == fold
        known = Z[~held]
        centre = known.mean(axis=0)
        covariance = np.atleast_2d(np.cov(known, rowvar=False)) if len(known) > 1 else np.eye(Z.shape[1])
        scale = max(float(np.trace(covariance)) / Z.shape[1], 1e-12)
        factor = np.linalg.cholesky(covariance + 1e-6 * scale * np.eye(Z.shape[1]))
        white = solve_triangular(factor, (Z[held] - centre).T, lower=True)
        log_r = -0.5 * (white**2).sum(axis=0) - np.log(np.diag(factor)).sum()
        log_r -= 0.5 * Z.shape[1] * math.log(2 * math.pi)
        terms[held] = (own[held] - log_r) * BITS
    return terms


def _log_sum(logs: FloatArray) -> FloatArray:
    """log Σ exp over the last axis; −∞ where there is nothing."""
    if not logs.shape[-1]:
        return np.full(logs.shape[0], -np.inf)
    top = logs.max(axis=-1)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        result: FloatArray = safe + np.log(np.exp(logs - safe[:, None]).sum(axis=-1))
    return result
