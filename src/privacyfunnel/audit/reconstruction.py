"""How much of the records a release keeps: error, PSNR and structural similarity of reconstructions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Side of the window of structural similarity.
WINDOW = 7


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
