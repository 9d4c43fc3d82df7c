"""Distributions of the learned funnel: of a code given its record, and of a record given its code.

A latent family turns (loc, log_scale) into codes and has its divergences in closed form; a likelihood turns
the decoder's output into −log P(x|z). All values are nats, summed over the components of a record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from ..errors import InvalidInputError


@dataclass(frozen=True)
class Latent:
    """P(Z|x) = loc + scale · noise, independently in each component, with noise of unit scale.

    Attributes
    ----------
    quantile : the inverse distribution function of the noise, for uniform numbers in (0, 1)
    kl_to_standard : D( P(·; loc, scale) ‖ P(·; 0, 1) ), summed over the last axis
    kl_of_scales : D( P(·; 0, scale) ‖ P(·; 0, other) ), summed over the last axis; arguments are log-scales
    log_density : log P(z; loc, scale), summed over the last axis
    power : which absolute moment of zero-mean codes equals scale ** power
    """

    name: str
    quantile: Callable[[Tensor], Tensor]
    kl_to_standard: Callable[[Tensor, Tensor], Tensor]
    kl_of_scales: Callable[[Tensor, Tensor], Tensor]
    log_density: Callable[[Tensor, Tensor, Tensor], Tensor]
    power: int

    def running_log_scale(self, before: Tensor, z: Tensor, share: float) -> Tensor:
        """Log-scale of the zero-mean member that fits the codes so far and, a share of it, this batch (n,
        d)."""
        moment = z.abs().pow(self.power).mean(0)
        return ((1 - share) * (self.power * before).exp() + share * moment).log() / self.power

    def noise(self, shape: tuple[int, ...], generator: torch.Generator, device: torch.device) -> Tensor:
        """Unit noise for training, drawn on the CPU: the same for every device."""
        if self.name == "normal":
            return torch.randn(shape, generator=generator).to(device)
        # A uniform of exactly 0 would give −∞.
        uniform = torch.rand(shape, generator=generator).clamp_min(1e-7)
        return self.quantile(uniform).to(device)


def _normal_kl(loc: Tensor, log_scale: Tensor) -> Tensor:
    # Factors and constants after the sum: this runs in every step.
    squares = loc.square() + log_scale.exp().square()
    return 0.5 * (squares.sum(-1) - loc.shape[-1]) - log_scale.sum(-1)


def _normal_kl_of_scales(log_scale: Tensor, other: Tensor) -> Tensor:
    return (0.5 * ((2 * (log_scale - other)).exp() - 1) - (log_scale - other)).sum(-1)


def _normal_log_density(z: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
    squared = ((z - loc) / log_scale.exp()).square()
    return (-0.5 * squared - log_scale - 0.5 * torch.log(torch.tensor(2 * torch.pi))).sum(-1)


def _laplace_kl(loc: Tensor, log_scale: Tensor) -> Tensor:
    scale, size = log_scale.exp(), loc.abs()
    return (size + scale * (-size / scale).exp() - 1 - log_scale).sum(-1)


def _laplace_kl_of_scales(log_scale: Tensor, other: Tensor) -> Tensor:
    return ((log_scale - other).exp() - 1 - (log_scale - other)).sum(-1)


def _laplace_log_density(z: Tensor, loc: Tensor, log_scale: Tensor) -> Tensor:
    return (-(z - loc).abs() / log_scale.exp() - log_scale - torch.log(torch.tensor(2.0))).sum(-1)


def _laplace_quantile(uniform: Tensor) -> Tensor:
    centred = uniform - 0.5
    return -centred.sign() * torch.log1p(-2 * centred.abs())


LATENTS = {
    "normal": Latent(
        "normal",
        torch.special.ndtri,
        _normal_kl,
        _normal_kl_of_scales,
        _normal_log_density,
        2,
    ),
    "laplace": Latent(
        "laplace",
        _laplace_quantile,
        _laplace_kl,
        _laplace_kl_of_scales,
        _laplace_log_density,
        1,
    ),
}


@dataclass(frozen=True)
class Likelihood:
    """P(x|z) from the decoder's output.

    Attributes
    ----------
    loss : −log P(x|z) by record but for its constant, which depends on neither x̂ nor z
    mean : E[X|z]
    null_loss : by how much the best constant record is worse than perfect ones, the mean over records (n, d)
    constant : nats by component that −log P(x|z) has besides; none where it is a cross-entropy
    lowest, highest : the range of x that the family has a density for
    """

    name: str
    loss: Callable[[Tensor, Tensor], Tensor]
    mean: Callable[[Tensor], Tensor]
    null_loss: Callable[[Tensor], Tensor]
    constant: float = 0.0
    lowest: float = float("-inf")
    highest: float = float("inf")

    def constant_of(self, x: Tensor) -> float:
        """Nats that −log P(x|z) of each of these records (n, …) has besides `loss`.

        Of the density of the records as the networks see them: scaled ones, where they are scaled.
        """
        return self.constant * x[0].numel()

    def floor_of(self, x: Tensor) -> float:
        """Nats that −log P(x|z) of these records has at least on average, whatever the decoder does."""
        if self.name == "bernoulli":  # grey pixels
            return float(_binary_entropy(x).flatten(1).sum(1).mean())
        return self.constant_of(x)


def _bernoulli_null_loss(x: Tensor) -> Tensor:
    return (_binary_entropy(x.mean(0)) - _binary_entropy(x).mean(0)).sum()


def _binary_entropy(p: Tensor) -> Tensor:
    return -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))


def _exponential_null_loss(x: Tensor) -> Tensor:
    mean = x.mean(0)
    # A record of exactly 0 would have an infinite density: a hundredth of the mean counts as that near.
    log = torch.maximum(x, 0.01 * mean).clamp_min(1e-300).log().mean(0)
    return (mean.clamp_min(1e-300).log() - log).clamp_min(0.0).sum()


LIKELIHOODS = {
    # P(X|Z) = N(output, I), the paper's: half the squared error, and ½ log 2π a component.
    "gaussian": Likelihood(
        "gaussian",
        lambda output, x: 0.5 * functional.mse_loss(output, x, reduction="none").flatten(1).sum(1),
        lambda output: output,
        lambda x: 0.5 * x.var(0, correction=0).sum(),
        0.5 * math.log(2 * math.pi),
    ),
    "bernoulli": Likelihood(
        "bernoulli",
        lambda output, x: (
            functional.binary_cross_entropy_with_logits(output, x, reduction="none").flatten(1).sum(1)
        ),
        torch.sigmoid,
        _bernoulli_null_loss,
        lowest=0.0,
        highest=1.0,
    ),
    # Laplace with unit scale: the absolute error, and log 2 a component.
    "laplace": Likelihood(
        "laplace",
        lambda output, x: (output - x).abs().flatten(1).sum(1),
        lambda output: output,
        lambda x: (x - x.median(0).values).abs().mean(0).sum(),
        math.log(2),
    ),
    # The output is the log-mean: −log P(x) = output + x e^{−output}.
    "exponential": Likelihood(
        "exponential",
        lambda output, x: (output + x * (-output).exp()).flatten(1).sum(1),
        torch.exp,
        _exponential_null_loss,
        lowest=0.0,
    ),
}


def latent(name: str) -> Latent:
    if name not in LATENTS:
        raise InvalidInputError(
            f"latent must be one of {', '.join(LATENTS)}; it is {name!r}.", names=("latent",)
        )
    return LATENTS[name]


def likelihood(name: str) -> Likelihood:
    if name not in LIKELIHOODS:
        raise InvalidInputError(
            f"likelihood must be one of {', '.join(LIKELIHOODS)}; it is {name!r}.", names=("likelihood",)
        )
    return LIKELIHOODS[name]
