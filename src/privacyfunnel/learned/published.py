"""PublishedFunnel: the objective that the authors' program runs, for comparison only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InvalidInputError
from .base import LearnedFunnel, Trained
from .families import Latent, Likelihood, latent, likelihood
from .networks import Encoder
from .objectives import PrivateAttributes, exchange_rate
from .steps import Batch, SamplingStep, Terms, adam
from .verdict import not_measured


@dataclass(eq=False, repr=False, kw_only=True)
class PublishedFunnel(LearnedFunnel):
    """The paper's solver as its authors' program computes it, with what it does differently from the text.

    For comparison only, with published numbers: it protects nobody, use `Funnel` for that. On each mini-batch

        decoder and classifier:  min β E rec + E c ,                              then
        encoder:                 min ½ ( log |Y| − E c + β E rec )² + α E D[P(Z|x) ‖ N(0, I)]

    where rec is the binary cross-entropy summed over the pixels of X in [0, 1], which never vanishes on grey
    ones and so is a constant inside the square, and c is a cross-entropy that takes the classifier's
    probabilities for logits: log |Y| − c lies in [−0.16, 0.84] nats for ten classes, so that the leakage term
    is weak. The divergence of P_z from its earlier self is 0. Each half draws its own noise. One Adam moves
    everything: the half whose turn it is not has gradients of 0 and goes on by its momentum. The encoder's
    second output is a log-variance.

    Guarantee: none.

    Parameters
    ----------
    alpha : float
        Weight of D[P(Z|x) ‖ N(0, I)].
    beta : float
        Weight of the reconstruction.

    The others are those of `Funnel`. There must be one private attribute, with classes. `verdict_` says what
    it is for.
    """

    alpha: float = 1e-2
    beta: float = 5e-2
    likelihood: str = "bernoulli"

    def _train(self, trained: Trained, x: Tensor, targets: list[Tensor], **options: Any) -> None:
        step: Any = trained.step
        step.constant = self.beta * step.likelihood.floor_of(x)
        super()._train(trained, x, targets, **options)
        trained.verdict = not_measured("the published objective is for comparison only and protects nobody")

    def _encoder(self, n_features: int) -> nn.Module:
        if self.architecture != "mlp":
            raise InvalidInputError(
                "PublishedFunnel has fully connected networks only: architecture='mlp'.",
                names=("architecture",),
            )
        return LogVarianceEncoder(n_features, tuple(self.hidden), self.n_components)

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        assert private is not None
        if len(private.columns) != 1 or private.columns[0].classes is None:
            raise InvalidInputError(
                "PublishedFunnel is for one private attribute with classes; use Funnel for "
                f"{', '.join(private.names)}."
            )
        classifier = nn.Linear(self.n_components, private.n_outputs)
        return nn.ModuleDict({**self._networks(n_features), "classifier": classifier})

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> PublishedStep:
        return PublishedStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            private,
            generator,
            self.alpha,
            self.beta,
            self.learning_rate,
        )


class LogVarianceEncoder(Encoder):
    """An encoder whose second output is the logarithm of the variance, unbounded."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        loc, log_variance = self.heads(self.body(x)).chunk(2, dim=1)
        return loc, 0.5 * log_variance


class PublishedStep(SamplingStep):
    """Two moves of one optimiser; see `PublishedFunnel`."""

    def __init__(
        self,
        modules: nn.ModuleDict,
        latent: Latent,
        likelihood: Likelihood,
        private: Any,
        generator: torch.Generator,
        alpha: float,
        beta: float,
        learning_rate: float,
    ) -> None:
        super().__init__(modules, latent, likelihood, private, generator)
        self.alpha, self.beta = alpha, beta
        self.constant = 0.0  # of the square, in nats: what a perfect decoder leaves there
        self.coding = [*modules["encoder"].parameters()]
        self.decoding = [*modules["decoder"].parameters(), *modules["classifier"].parameters()]
        self.optimisers = {"all": adam([*self.coding, *self.decoding], learning_rate)}

    def __call__(self, batch: Batch, fresh: Callable[[], Batch]) -> Terms:
        encoder = self.modules["encoder"]
        with torch.no_grad():
            z = self.draw(*encoder(batch.x))
        rec, cross_entropy = self._terms(z, batch)
        decoder_loss = self.beta * rec + cross_entropy
        self._move(decoder_loss, self.decoding)
        loc, log_scale = encoder(batch.x)
        rec, cross_entropy = self._terms(self.draw(loc, log_scale), batch)
        leakage = math.log(self.private.n_outputs) - cross_entropy
        residual = leakage + self.beta * rec
        divergence = self.latent.kl_to_standard(loc, log_scale).mean()
        loss = 0.5 * residual.square() + self.alpha * divergence
        self._move(loss, self.coding)
        return {
            "decoder_loss": decoder_loss.detach(),
            "encoder_loss": loss.detach(),
            "residual": residual.detach(),
            **exchange_rate(residual, self.beta, self.alpha),
            "constant": residual.new_tensor(self.constant),
            "reconstruction": rec.detach(),
            "divergence": divergence.detach(),
            "leakage": leakage.detach(),
            "cross_entropy": cross_entropy.detach(),
        }

    def _terms(self, z: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """−E log P(X|Z), and the cross-entropy of probabilities that are taken for logits."""
        rec = self.likelihood.loss(self.modules["decoder"](z), batch.x).mean()
        probabilities = self.modules["classifier"](z).softmax(dim=1)
        return rec, functional.cross_entropy(probabilities, batch.targets[0])

    def _move(self, loss: Tensor, parameters: list[nn.Parameter]) -> None:
        """One step of the optimiser of everything, with gradients of 0 for all but these parameters."""
        for parameter in (*self.coding, *self.decoding):
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            else:
                parameter.grad.zero_()
        loss.backward(inputs=parameters)
        self.optimisers["all"].step()
