"""What a release keeps: reconstructions; and I(Z;X), I(Z;Y) where the encoder's density P(z|x) is known.

Of known densities mixtures give an estimate between two bounds.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ...arrays import FloatArray, IntArray
from ...attributes import Attribute
from ..adversaries.bounds import fold_numbers
from ..findings import About, Finding, clipped, jackknife_interval, mean_interval, repeated_interval
from ..inputs import Table
from .bits import most_bits

Bracketed = tuple[float, tuple[float, float]]
# From the groups of records to keep to log p̂₋ and log p̂₊ of every code.
MixturePair = Callable[[NDArray[np.bool_]], tuple[FloatArray, FloatArray]]

BITS = 1 / math.log(2)
#: Groups of records that the jackknife leaves out.
N_GROUPS = 20
#: Most records of a mixture: the table of densities grows with the square.
MOST_RECORDS = 3000
#: Bits between the bounds above which halfway between them is no estimate.
WIDEST = 0.5
#: Side of the window of structural similarity.
WINDOW = 7


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
        with np.errstate(divide="ignore", invalid="ignore"):
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


def density_findings(
    about: About,
    log_density: Callable[[FloatArray, IntArray], FloatArray],
    codes: Table,
    attributes: Sequence[Attribute],
) -> list[Finding]:
    """The brackets of I(Z;X) and of I(Z;Y) for every attribute with classes."""
    rows = np.random.default_rng([about.seed, 13]).permutation(codes.n)[:MOST_RECORDS]
    Z = codes.codes[rows]
    table = log_density(Z, rows)
    utility = mixture_utility(table, about.confidence)
    folds = fold_numbers(np.zeros(len(rows)), min(2, len(rows)), about.seed)
    terms = gaussian_utility_bound(np.diag(table), Z, folds)
    gaussian = float(terms.mean()), mean_interval(terms, about.confidence)
    if gaussian[1][1] < utility.upper[1][1]:
        utility = replace(utility, upper=gaussian)
    about = about.of(source="mixture of known densities", n_samples=len(rows))
    found = _bracket(about, "utility", utility, math.inf)
    ceiling = found[-1]
    for attribute in attributes:
        if attribute.n_classes < 2:
            continue
        most = math.inf if attribute.values is not None else most_bits(attribute, about.confidence)
        own = about.of(attribute=attribute.name)
        if ceiling.value < most:
            notes = "I(Z;Y) ≤ I(Z;X), with its upper bound: what is not kept cannot leak."
            processed = own.of(source="data processing", notes=notes)
            found.append(processed.upper("leakage", ceiling.value, ceiling.interval, within=(0.0, most)))
        if attribute.values is None:
            leakage = mixture_leakage(table, attribute.y[rows], about.confidence)
            found += _bracket(own, "leakage", leakage, most)
    return found


def _bracket(about: About, quantity: str, sandwich: Sandwich, most: float) -> list[Finding]:
    """The bracket of a mixture estimate; halfway between its bounds only where they are close."""

    def finding(make: Callable[..., Finding], part: Bracketed, notes: str) -> Finding:
        value = min(max(part[0], 0.0), most)
        return make(quantity, value, part[1], within=(0.0, most), notes=notes)

    own = "In expectation, from the encoder's own density."
    found = [finding(about.lower, sandwich.lower, own), finding(about.upper, sandwich.upper, own)]
    if found[1].value - found[0].value <= WIDEST:
        found.insert(1, finding(about.estimate, sandwich.estimate, "Halfway between the bounds."))
    return found


def reconstruction_findings(about: About, X: FloatArray, copies: Sequence[FloatArray]) -> list[Finding]:
    """Error, PSNR and, for images, SSIM of reconstructions, one or several of each record."""
    records = X.reshape(copies[0].shape)
    peak = peak_of(records)
    errors = np.stack([squared_errors(records, copy) for copy in copies])
    mse = float(errors.mean())
    low, high = clipped(repeated_interval(errors, about.confidence), mse, 0.0, math.inf)
    drawn = f"{len(copies)} draws of each code." if len(copies) > 1 else "One reconstruction of each record."
    about = about.of(source="reconstruction", on="X_hat", n_samples=len(records), notes=drawn)
    ends = psnr(high, peak), psnr(low, peak)
    found = [
        about.estimate("mse", mse, (low, high)),
        about.estimate("psnr", psnr(mse, peak), ends, notes=f"Peak value {peak:g}. {drawn}"),
    ]
    if records.ndim in (3, 4) and min(records.shape[1:3]) > 1:
        values = np.stack([structural_similarity(records, copy, peak) for copy in copies])
        ends = repeated_interval(values, about.confidence)
        found.append(about.estimate("ssim", float(values.mean()), ends, within=(-1.0, 1.0)))
    return found


def squared_errors(X: FloatArray, X_hat: FloatArray) -> FloatArray:
    """Mean squared error per pixel or feature of each record, (n,)."""
    result: FloatArray = ((X - X_hat) ** 2).reshape(len(X), -1).mean(axis=1)
    return result


def peak_of(X: FloatArray) -> float:
    """The largest value that a pixel can take: 1 or 255 where the data look so, else their range."""
    low, high = float(X.min()), float(X.max())
    if low >= 0 and high <= 1:
        return 1.0
    if low >= 0 and high <= 255 and bool((np.rint(X) == X).all()):
        return 255.0
    return (high - low) or 1.0


def psnr(mse: float, peak: float) -> float:
    """10 log10(peak² / mse) in dB; infinite for a perfect reconstruction."""
    return math.inf if mse <= 0 else 10 * math.log10(peak**2 / mse)


def structural_similarity(X: FloatArray, X_hat: FloatArray, peak: float) -> FloatArray:
    """The mean SSIM of each image, (n,), over channels and windows of 7 × 7 equally weighted pixels.

    Images are (n, height, width) or (n, height, width, channels). The constants are those of Wang, Bovik,
    Sheikh & Simoncelli (2004), with unbiased variances; windows that stick out are not counted.
    """
    from scipy.ndimage import uniform_filter

    side = min(WINDOW, X.shape[1], X.shape[2])
    side -= 1 - side % 2
    size = (0, side, side) + (0,) * (X.ndim - 3)
    inside = slice(side // 2, X.shape[1] - side // 2), slice(side // 2, X.shape[2] - side // 2)

    def average(values: FloatArray) -> FloatArray:
        result: FloatArray = uniform_filter(values, size)[:, inside[0], inside[1]]
        return result

    unbiased = side**2 / max(side**2 - 1, 1)
    a, b = average(X), average(X_hat)
    var_a, var_b = (unbiased * (average(v**2) - m**2) for v, m in ((X, a), (X_hat, b)))
    covariance = unbiased * (average(X * X_hat) - a * b)
    c1, c2 = (0.01 * peak) ** 2, (0.03 * peak) ** 2
    index = (2 * a * b + c1) * (2 * covariance + c2) / ((a**2 + b**2 + c1) * (var_a + var_b + c2))
    result: FloatArray = index.reshape(len(X), -1).mean(axis=1)
    return result
