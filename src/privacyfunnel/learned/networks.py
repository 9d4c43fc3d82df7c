"""Networks of the learned funnel, and the scaling of records before them.

The defaults are the paper's, down to its table of parameters.

Networks learn badly where columns differ by powers of ten, or all lie far from 1.

Scaled records are (x − shift) / width. The two are kept with the networks, so that a release takes records as
they are and a reconstruction has the units of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ..errors import InvalidInputError
from .families import Likelihood

# Log-scales outside this range are numerically a point or no information at all; a floor on the scale also
# keeps the code's own scale from escaping the classifier.
LOWEST_LOG_SCALE, HIGHEST_LOG_SCALE = -7.0, 7.0
CHANNELS = 16  # of the first convolution; the second has twice as many
# Share of the variance that the best linear code would keep at the price of a nat that records ask for, the
# records that are looked at for it, and the price where they are all alike.
LINEAR_SHARE, LOOKED_AT, COMMON_PRICE = 0.7, 2000, 4e-3


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Fully connected layers with ReLU between them, none at the end."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


def two_heads(output: Tensor) -> tuple[Tensor, Tensor]:
    """(loc, log_scale) from the two halves of an encoder's last layer."""
    loc, log_scale = output.chunk(2, dim=1)
    return loc, log_scale.clamp(LOWEST_LOG_SCALE, HIGHEST_LOG_SCALE)


class Encoder(nn.Module):
    """x ↦ (loc, log_scale) of P(Z|x); the paper's is n → 500 → 500 → (d, d)."""

    def __init__(self, n_features: int, hidden: Sequence[int], n_components: int) -> None:
        super().__init__()
        self.body = (
            nn.Sequential(mlp([n_features, *hidden]), nn.ReLU(inplace=True)) if hidden else nn.Identity()
        )
        last = hidden[-1] if hidden else n_features
        self.heads = nn.Linear(last, 2 * n_components)  # one product: two narrow ones would take longer

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return two_heads(self.heads(self.body(x)))


class ConvolutionalEncoder(nn.Module):
    """Two strided convolutions on single-channel square images, then (d, d)."""

    def __init__(self, side: int, channels: int, n_components: int) -> None:
        super().__init__()
        self.side = side
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, 2 * channels, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        last = 2 * channels * (side // 4) ** 2
        self.heads = nn.Linear(last, 2 * n_components)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return two_heads(self.heads(self.body(x.view(-1, 1, self.side, self.side))))


class ConvolutionalDecoder(nn.Module):
    """The mirror of ConvolutionalEncoder; the output is flat."""

    def __init__(self, n_inputs: int, channels: int, side: int) -> None:
        super().__init__()
        self.shape = (2 * channels, side // 4, side // 4)
        self.first = nn.Linear(n_inputs, 2 * channels * (side // 4) ** 2)
        self.body = nn.Sequential(
            nn.ReLU(),
            nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(channels, 1, 4, stride=2, padding=1),
            nn.Flatten(),
        )

    def forward(self, z: Tensor) -> Tensor:
        output: Tensor = self.body(self.first(z).view(-1, *self.shape))
        return output


class Prior(nn.Module):
    """P(Z) with mean 0 (a parameter that is not trained) and a log-scale by component."""

    loc: nn.Parameter
    log_scale: nn.Parameter

    def __init__(self, n_components: int) -> None:
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(n_components), requires_grad=False)
        self.log_scale = nn.Parameter(torch.zeros(n_components), requires_grad=False)


def make_encoder(
    architecture: str, n_features: int, hidden: Sequence[int], n_components: int
) -> Encoder | ConvolutionalEncoder:
    """The encoder of an estimator's settings."""
    if architecture == "conv":
        return ConvolutionalEncoder(_side(n_features), CHANNELS, n_components)
    return Encoder(n_features, hidden, n_components)


def make_decoder(architecture: str, n_inputs: int, hidden: Sequence[int], n_features: int) -> nn.Module:
    """The decoder of an estimator's settings: the last of the hidden layers, as in the paper's table."""
    if architecture == "conv":
        return ConvolutionalDecoder(n_inputs, CHANNELS, _side(n_features))
    return mlp([n_inputs, *hidden[-1:], n_features])


def _side(n_features: int) -> int:
    side = math.isqrt(n_features)
    if side * side != n_features or side % 4:
        raise InvalidInputError(
            f"architecture='conv' needs square single-channel images whose side is a multiple of 4; "
            f"a record has {n_features} values. Use architecture='mlp'.",
            names=("architecture",),
        )
    return side


def n_parameters(*modules: nn.Module) -> int:
    """How many numbers the modules hold, trained or not."""
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


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
    code_price : scalar tensor
        What a nat of code is to cost as a share of the variance, where nobody sets it: see `code_price`.
    """

    shift: Tensor
    width: Tensor
    null_loss: Tensor
    code_price: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("shift", torch.zeros(n_features))
        self.register_buffer("width", torch.ones(n_features))
        self.register_buffer("null_loss", torch.ones(()))
        self.register_buffer("code_price", torch.full((), COMMON_PRICE))

    def learn(self, x: Tensor, kind: str, family: Likelihood) -> None:
        """Take all of it from records; `kind` is "columns", "common" or "none"."""
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
        self.code_price.fill_(code_price(self(x[:: -(-len(x) // LOOKED_AT)])))

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


def code_price(x: Tensor) -> float:
    """The price α of a nat, in shares of the variance, at which the best linear code keeps seven tenths.

    For Gaussian records the least of (share left) + α · (nats) leaves min(v, α/2) of a principal component
    that has the share v of the variance. So records whose variance lies in few directions have a higher price
    than images have, and a component's noise is about as large beside it for both: with little noise a
    code hides what it tells from judges with few records.
    """
    x = x.double() - x.double().mean(0)
    products = x @ x.T if x.shape[0] < x.shape[1] else x.T @ x
    shares = torch.linalg.eigvalsh(products).clamp_min(0).flip(0)
    if not float(shares.sum()) > 0:
        return COMMON_PRICE
    shares = shares / shares.sum()
    left = 1 - LINEAR_SHARE
    # With the k largest cut at one level, the others are left as they are.
    level = (left - (1 - shares.cumsum(0))) / torch.arange(1, len(shares) + 1, dtype=shares.dtype)
    return float(f"{2 * float(level.max()):.2g}")


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
            f"scale={asked!r} would move X out of the range of likelihood={family.name!r}; use scale='none'.",
            names=("scale", "likelihood"),
        )
    return asked


def _of_one_unit(x: Tensor) -> bool:
    spread = x.std(0, correction=0)[~is_indicator(x)]
    spread = spread[spread > 0]
    return not len(spread) or float(spread.max()) <= ONE_UNIT * float(spread.median())


def is_indicator(x: Tensor) -> Tensor:
    """Which columns hold nothing but 0 and 1."""
    return ((x == 0) | (x == 1)).all(0)
