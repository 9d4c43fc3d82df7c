"""Moving the classes of Y onto one another: what any release without leakage costs, and the maps that do it.

Where Z is independent of Y, so is every reconstruction X̂ of X from Z, and its squared error is at least what
it costs to move each class of records onto one common distribution Q:

    E‖X − X̂‖²  ≥  min_Q Σ_y p_y W₂²(P(X|y), Q)  ≥  the same for Gaussians with the classes' means m_y and
    covariances C_y  =  Σ_y p_y ‖m_y − m‖²  +  min_S Σ_y p_y ( tr C_y + tr S − 2 tr (C_y^½ S C_y^½)^½ ).

The second step is Gelbrich's inequality. S is found by the fixed point of Álvarez-Esteban, del Barrio,
Cuesta-Albertos and Matrán (2016), S ← M S M with M = Σ_y p_y T_y and T_y the map from N(0, S) to N(0, C_y).

What is reported is the dual value, so that it is a lower bound however far the iteration got. For positive
definite B_y, 2 u·v ≤ uᵀB_y⁻¹u + vᵀB_y v; with Σ_y p_y B_y⁻¹ ≤ I this gives, for any Q and all distributions,

    Σ_y p_y W₂²(P(X|y), Q)  ≥  Σ_y p_y E_y[ ‖v‖² − vᵀB_y v + 2 v·(a_y − a) ] + Σ_y p_y ‖a_y − a‖²

with v = x − a_y, any points a_y and a = Σ_y p_y a_y. The best a_y are the means, and the best B_y the maps of
the classes onto their barycentre: x ↦ m + B_y (x − m_y).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import FloatArray, IntArray
from .checks import shown
from .errors import InvalidInputError

# The iteration ends when its value is this near to the dual one, as a share of the total variance.
GAP = 1e-10
MOST_STEPS = 100
# Added to every variance, as a share of the mean one: maps exist for singular covariances too. The dual value
# of singular ones is lower by up to the square root of it.
RIDGE = 1e-10
# Share of a class's covariance that is replaced by a multiple of the identity where it is estimated.
SHRINKAGE = 0.02
# Principal components that a bound from records looks at, and parts that the records are split into.
MOST_COMPONENTS, PARTS = 200, 5


@dataclass(frozen=True, eq=False)
class Barycentre:
    """The Gaussian in the middle of weighted Gaussians, in squared Wasserstein distance, and the maps to it.

    Attributes
    ----------
    weights : (k,) array
    means : (k, d) array
    maps : (k, d, d) array
        B_y, symmetric and positive definite, with Σ_y p_y B_y⁻¹ ≤ I.
    mean : (d,) array
    covariance : (d, d) array
    """

    weights: FloatArray
    means: FloatArray
    maps: FloatArray
    mean: FloatArray
    covariance: FloatArray

    def moved(self, points: FloatArray, y: int) -> FloatArray:
        """Points of class y, moved as its Gaussian is to the middle."""
        result: FloatArray = self.mean + (points - self.means[y]) @ self.maps[y]
        return result

    def bound(self, means: FloatArray, covariances: FloatArray) -> float:
        """A lower bound on Σ_y p_y W₂²(P_y, Q), for every Q, where P_y have these means and covariances.

        They may be of other records than those that the maps were found for: it holds for them, too.
        """
        between, total = self.means - self.mean, 0.0
        for weight, a, b, mean, covariance, gap in zip(
            self.weights, self.means, self.maps, means, covariances, between, strict=True
        ):
            v = mean - a
            squared, moved = np.trace(covariance) + v @ v, np.vdot(b, covariance) + v @ b @ v
            total += weight * float(squared - moved + 2 * v @ gap + gap @ gap)
        return total


def barycentre(means: ArrayLike, covariances: ArrayLike, weights: ArrayLike) -> Barycentre:
    """The barycentre of Gaussians with these means (k, d), covariances (k, d, d) and weights (k,)."""
    m, c, p = _checked(means, covariances, weights)
    d = m.shape[1]
    variance = float(np.einsum("y,yii->", p, c)) / d
    ridge = RIDGE * variance if variance > 0 else 1.0
    c = c + ridge * np.eye(d)
    pooled: FloatArray = np.einsum("y,yij->ij", p, c)
    middle, total, factors = pooled, float(np.trace(pooled)), _factors(c)
    between = float(p @ np.square(m - p @ m).sum(axis=1))
    for _ in range(MOST_STEPS):
        root, inverse_root = _roots(middle, ridge)
        parts = np.array([_root_of_square(root @ factor) for factor in factors])
        value = total + float(np.trace(middle)) - 2 * float(np.einsum("y,yii->", p, parts))
        to_class = inverse_root @ parts @ inverse_root
        shared = _symmetric(np.einsum("y,yij->ij", p, to_class))
        found = Barycentre(p, m, _feasible(to_class, shared, p), p @ m, middle)
        if value + between - found.bound(m, c) <= GAP * total:
            break
        middle = _symmetric(shared @ middle @ shared)
    return found


def barycentre_cost(means: ArrayLike, covariances: ArrayLike, weights: ArrayLike) -> float:
    """The least Σ_y p_y W₂²(N(m_y, C_y), Q) over all Q, from below; 0 if it is smaller than rounding.

    It bounds from below what moving *any* distributions with these means and covariances onto one another
    costs.

    Parameters
    ----------
    means : (k, d) array
    covariances : (k, d, d) array
    weights : (k,) array
        Probabilities.
    """
    m, c, p = _checked(means, covariances, weights)
    return max(0.0, barycentre(m, c, p).bound(m, c))


def no_leakage_mse(X: Any, y: Any) -> float:
    """A lower bound on E‖X − X̂‖², summed over features, of every X̂ that is independent of Y.

    The records are split into parts. The maps are found on all parts but one, on at most 200 principal
    components and with covariances shrunk by 2 %, and the bound is evaluated on the one left out: any maps
    give one, so that what was fitted to noise lowers it. The mean over the parts is thus an estimate of a
    bound for the population that records were drawn from, and does not exceed the best one but by chance.

    Parameters
    ----------
    X : (n, …) array of numbers
    y : (n,) array
        The class of each record.
    """
    x = np.asarray(X).reshape(len(X), -1)
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if len(numbers) != len(x) or not len(x):
        raise InvalidInputError(
            f"no_leakage_mse needs a class for each record; there are {len(x)} records and {len(numbers)} "
            "classes.",
            names=("X", "y"),
        )
    if x.dtype.kind not in "biuf" or not np.isfinite(x).all():
        raise InvalidInputError("no_leakage_mse: X must hold finite numbers.", names=("X",))
    counts = np.bincount(numbers.reshape(-1))
    if counts.min() < 2 * PARTS:
        raise InvalidInputError(
            f"no_leakage_mse needs at least {2 * PARTS} records of each class; "
            f"{shown(classes[counts.argmin()])} has {counts.min()}. Leave rare classes out, or merge them.",
            names=("y",),
        )
    # Within a class in random order: files are often sorted by more than the class.
    order = np.random.default_rng(0).permutation(len(x))
    by_class = [order[numbers.reshape(-1)[order] == label] for label in range(len(classes))]
    groups = [[rows[number::PARTS] for rows in by_class] for number in range(PARTS)]
    sums = [_sums(x, np.concatenate(rows)) for rows in groups]
    bounds = []
    for number, held in enumerate(groups):
        others = [i for i in range(PARTS) if i != number]
        n = sum(sums[i][0] for i in others)
        mean = np.sum([sums[i][1] for i in others], axis=0) / n
        squares = np.sum([sums[i][2] for i in others], axis=0)
        basis = principal_components(squares / n - np.outer(mean, mean), MOST_COMPONENTS)
        known = [np.concatenate([groups[i][label] for i in others]) for label in range(len(classes))]
        means, covariances = _moments(x, known, mean, basis)
        middle = barycentre(means, shrunk(covariances), counts / len(x))
        bounds.append(middle.bound(*_moments(x, held, mean, basis)))
    return max(0.0, float(np.mean(bounds)))


def _sums(x: NDArray[Any], rows: IntArray) -> tuple[int, FloatArray, FloatArray]:
    """n, Σx and Σxxᵀ of these records."""
    part = x[rows].astype(np.float64)
    return len(part), part.sum(axis=0), part.T @ part


def _moments(
    x: NDArray[Any], groups: Sequence[IntArray], mean: FloatArray, basis: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of groups of records, in this basis."""
    parts = [(x[rows] - mean) @ basis for rows in groups]
    pairs = [(part.mean(axis=0), np.cov(part.T, bias=True).reshape(basis.shape[1], -1)) for part in parts]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def principal_components(covariance: FloatArray, n: int) -> FloatArray:
    """The n directions (d, n) of the largest variance; all of space where it has no more."""
    if len(covariance) <= n:
        return np.eye(len(covariance))
    return np.linalg.eigh(covariance)[1][:, : -n - 1 : -1]


def shrunk(covariances: FloatArray) -> FloatArray:
    """Covariances moved a little towards multiples of the identity of the same trace."""
    d = covariances.shape[1]
    spheres = np.einsum("yii->y", covariances)[:, None, None] / d * np.eye(d)
    result: FloatArray = (1 - SHRINKAGE) * covariances + SHRINKAGE * spheres
    return result


def _checked(means: ArrayLike, covariances: ArrayLike, weights: ArrayLike) -> tuple[FloatArray, ...]:
    m, c, p = (np.asarray(values, dtype=np.float64) for values in (means, covariances, weights))
    if m.ndim != 2 or 0 in m.shape or c.shape != (*m.shape, m.shape[1]) or p.shape != m.shape[:1]:
        raise InvalidInputError(
            "means, covariances and weights must have the shapes (k, d), (k, d, d) and (k,); they have "
            f"{m.shape}, {c.shape} and {p.shape}.",
            names=("means", "covariances", "weights"),
        )
    if not (np.isfinite(m).all() and np.isfinite(c).all()):
        raise InvalidInputError("means and covariances must be finite.", names=("means", "covariances"))
    if not ((p >= 0).all() and abs(p.sum() - 1) <= 1e-9):
        raise InvalidInputError(
            f"weights must be probabilities that sum to 1; they sum to {p.sum():g}.", names=("weights",)
        )
    size = np.abs(c).max(axis=(1, 2))
    lopsided = np.abs(c - np.swapaxes(c, 1, 2)).max(axis=(1, 2)) > 1e-9 * size
    if lopsided.any() or (np.linalg.eigvalsh(c)[:, 0] < -1e-9 * size * m.shape[1]).any():
        raise InvalidInputError(
            "covariances must be symmetric without negative eigenvalues.", names=("covariances",)
        )
    return m, 0.5 * (c + np.swapaxes(c, 1, 2)), p


def _symmetric(matrix: FloatArray) -> FloatArray:
    result: FloatArray = 0.5 * (matrix + matrix.T)
    return result


def _roots(matrix: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """The square root of a positive definite matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    roots = np.sqrt(np.maximum(values, least))
    return (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T


def _factors(covariances: FloatArray) -> list[FloatArray]:
    """F with F Fᵀ = C for each."""
    return [
        vectors * np.sqrt(np.maximum(values, 0.0)) for values, vectors in map(np.linalg.eigh, covariances)
    ]


def _root_of_square(factor: FloatArray) -> FloatArray:
    """(F Fᵀ)^½ from singular values: those of the product would lose half of the digits."""
    vectors, values, _ = np.linalg.svd(factor)
    result: FloatArray = (vectors * values) @ vectors.T
    return result


def _feasible(to_class: FloatArray, shared: FloatArray, p: FloatArray) -> FloatArray:
    """B_y = T_y⁻¹, corrected so that Σ_y p_y B_y⁻¹ ≤ I holds, rounding included."""
    values, vectors = np.linalg.eigh(shared)
    inverse_root = (vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))) @ vectors.T
    maps, sum_, condition = [], np.zeros_like(shared), 1.0
    for weight, forward in zip(p, to_class, strict=True):
        there = _symmetric(inverse_root @ forward @ inverse_root)
        size, axes = np.linalg.eigh(there)
        size = np.maximum(size, 1e-12 * size[-1])
        condition = max(condition, size[-1] / size[0])
        maps.append((axes / size) @ axes.T)
        sum_ += weight * (axes * size) @ axes.T
    # Of the inverse that was taken by eigenvalues, relative to its largest.
    rounding = 10 * len(shared) * np.finfo(float).eps * condition
    largest = float(np.linalg.eigvalsh(_symmetric(sum_))[-1])
    result: FloatArray = np.array(maps) * largest * (1 + rounding)
    return result
