"""Networks of the learned funnel. The defaults are the paper's, down to its table of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ..errors import InvalidInputError

# Log-scales outside this range are numerically a point or no information at all; a floor on the scale also
# keeps the code's own scale from escaping the classifier.
LOWEST_LOG_SCALE, HIGHEST_LOG_SCALE = -7.0, 7.0
CHANNELS = 16  # of the first convolution; the second has twice as many


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
            f"a record has {n_features} values. Use architecture='mlp'."
        )
    return side


def n_parameters(*modules: nn.Module) -> int:
    """How many numbers the modules hold, trained or not."""
    return sum(parameter.numel() for module in modules for parameter in module.parameters())
