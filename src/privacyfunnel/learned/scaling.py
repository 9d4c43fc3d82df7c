"""Scaling of records: networks learn badly where columns differ by powers of ten, or all lie far from 1.

Scaled records are (x − shift) / width. The two are kept with the networks, so that a release takes records as
they are and a reconstruction has the units of the data.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..errors import InvalidInputError
from .families import Likelihood

# Largest spread of a column, as a multiple of the median one, up to which columns count as of one unit.
ONE_UNIT = 10.0


class Scaling(nn.Module):
    """What scales the records of a fit, and what their reconstruction costs where nothing is known of them.

    Attributes
    ----------
    shift, width : (n_features,) tensors
    null_loss : scalar tensor
        Nats by which the best constant record is worse than the scaled records themselves: half the total
        variance for the Gaussian. 1 where all records are equal.
    """

    shift: Tensor
    width: Tensor
    null_loss: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(n_features))
        self.register_buffer("width", torch.ones(n_features))
        self.register_buffer("null_loss", torch.ones(()))

    def learn(self, x: Tensor, kind: str, family: Likelihood) -> None:
        """Take shift, width and null loss from records; `kind` is "columns", "common" or "none"."""
        values = x.double()
        spread = values.std(0, correction=0)
        # Rounding gives a constant column of large numbers a spread above 0.
        varied = spread > 1e-6 * values.abs().amax(0)
        if kind == "columns":
            # An indicator has its unit: all those of one attribute have a variance below 1 together, as much
            # as a number. Divided by their spreads, rare categories would drown the rest.
            own = varied & ~is_indicator(x)
            self.width.copy_(torch.where(own, spread, 1.0))
        elif kind == "common" and bool(varied.any()):
            self.width.fill_(float(spread[varied].square().mean().sqrt()))
        if kind != "none":
            self.shift.copy_(values.mean(0))
        null = float(family.null_loss(self(x).double()))
        self.null_loss.fill_(null if null > 0 else 1.0)

    def forward(self, x: Tensor) -> Tensor:
        """Scaled records; the same memory where there is nothing to scale."""
        return x if self._is_identity else (x - self.shift) / self.width

    def inverse(self, x: Tensor) -> Tensor:
        """Records in the units of the data."""
        return x if self._is_identity else x * self.width + self.shift

    @property
    def _is_identity(self) -> bool:
        return not bool(self.shift.any()) and bool((self.width == 1).all())


def scaling_of(modules: nn.ModuleDict) -> Scaling:
    """The scaling among the networks of an estimator."""
    scaling = modules["scaling"]
    assert isinstance(scaling, Scaling)
    return scaling


def kind_of_scaling(asked: str, x: Tensor, *, is_frame: bool, is_stack: bool, family: Likelihood) -> str:
    """What "auto" stands for: columns one by one for a frame, one width for arrays of one unit.

    A stack of images has one unit. A plain table of numbers has one if no column that is neither constant nor
    an indicator spreads more than ten times as far as the median of them. Likelihoods of a fixed range take
    records as they are.
    """
    ranged = family.lowest > float("-inf")
    if asked == "auto":
        if ranged:
            return "none"
        return "columns" if is_frame or not (is_stack or _of_one_unit(x)) else "common"
    if ranged and asked != "none":
        raise InvalidInputError(
            f"scale={asked!r} would move X out of the range of likelihood={family.name!r}; use scale='none'."
        )
    return asked


def _of_one_unit(x: Tensor) -> bool:
    spread = x.std(0, correction=0)[~is_indicator(x)]
    spread = spread[spread > 0]
    return not len(spread) or float(spread.max()) <= ONE_UNIT * float(spread.median())


def is_indicator(x: Tensor) -> Tensor:
    """Which columns hold nothing but 0 and 1."""
    return ((x == 0) | (x == 1)).all(0)
