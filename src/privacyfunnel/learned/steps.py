"""One mini-batch of training, by method.

The encoder's forward pass serves both steps of the paper's solver: step 1 sees its codes detached, step 2
with their graph and with the decoder already updated. Simultaneous steps take both gradients before either
moves. Each optimiser moves only its own parameters, and no other gradients are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .families import Latent, Likelihood
from .networks import Prior
from .objectives import (
    EncoderTerms,
    PrivateAttributes,
    Weights,
    constant_inside,
    decoder_loss,
    encoder_terms,
    exchange_rate,
)

GRADIENT_CLIP = 5.0

Terms = dict[str, Tensor]  # detached batch means


@dataclass(frozen=True, eq=False)
class Batch:
    """Records, and their private attributes as the classifier wants them."""

    x: Tensor
    targets: Sequence[Tensor]


class Step(Protocol):
    """What the training loop calls."""

    modules: nn.ModuleDict
    optimisers: dict[str, torch.optim.Optimizer]
    private: Any  # PrivateAttributes, or None where there are none

    def __call__(self, batch: Batch, fresh: Callable[[], Batch]) -> Terms:
        """Update every network on this batch; `fresh` draws another one."""


def adam(parameters: Iterable[nn.Parameter], learning_rate: float) -> torch.optim.Optimizer:
    """Adam with the paper's other settings, in one fused kernel."""
    return torch.optim.Adam(list(parameters), lr=learning_rate, fused=True)


def update(optimiser: torch.optim.Optimizer, loss: Tensor) -> None:
    """One clipped step of the optimiser's own parameters."""
    update_together((optimiser, loss))


def update_together(*pairs: tuple[torch.optim.Optimizer, Tensor]) -> None:
    """One clipped step of each optimiser on its own loss, all of them at the weights from before."""
    for number, (optimiser, loss) in enumerate(pairs, 1):
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        for parameter in parameters:
            parameter.grad = None
        loss.backward(inputs=parameters, retain_graph=number < len(pairs))
        clip([parameter.grad for parameter in parameters if parameter.grad is not None])
    for optimiser, _ in pairs:
        optimiser.step()


def clip(gradients: list[Tensor]) -> None:
    """Scale gradients in place to a joint norm of GRADIENT_CLIP where it is more; elsewhere, a pass over all
    of them is spared. A norm that is not finite stays for the loop to find."""
    norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients))))
    if norm > GRADIENT_CLIP:
        torch._foreach_mul_(gradients, GRADIENT_CLIP / norm)


class SamplingStep:
    """What the steps of all methods have: networks, distributions, private attributes, random numbers."""

    def __init__(
        self,
        modules: nn.ModuleDict,
        latent: Latent,
        likelihood: Likelihood,
        private: Any,
        generator: torch.Generator,
    ) -> None:
        self.modules, self.latent, self.likelihood = modules, latent, likelihood
        self.private, self.generator = private, generator

    def draw(self, loc: Tensor, log_scale: Tensor) -> Tensor:
        """Codes from P(Z|x)."""
        return loc + log_scale.exp() * self.latent.noise(tuple(loc.shape), self.generator, loc.device)


class AlternatingStep(SamplingStep):
    """The paper's alternating solver (`eq:unkn_alg`), or both of its steps at once."""

    def __init__(
        self,
        modules: nn.ModuleDict,
        latent: Latent,
        likelihood: Likelihood,
        private: PrivateAttributes,
        weights: Weights,
        learning_rate: float,
        classifier_steps: int,
        generator: torch.Generator,
        *,
        simultaneous: bool = False,
    ) -> None:
        super().__init__(modules, latent, likelihood, private, generator)
        self.weights, self.simultaneous = weights, simultaneous
        # The paper trains the classifier with the decoder. One that is to keep up with the encoder has steps
        # of its own, and learns faster than it.
        self.fresh_steps = 0 if classifier_steps == 1 else classifier_steps
        decoding, classifying = [*modules["decoder"].parameters()], [*modules["classifier"].parameters()]
        self.optimisers = {
            "encoder": adam(modules["encoder"].parameters(), learning_rate),
            "decoder": adam(decoding if self.fresh_steps else decoding + classifying, learning_rate),
        }
        if self.fresh_steps:
            self.optimisers["classifier"] = adam(classifying, 2 * learning_rate)

    def __call__(self, batch: Batch, fresh: Callable[[], Batch]) -> Terms:
        modules = self.modules
        for _ in range(self.fresh_steps):
            self._train_classifier(fresh())
        loc, log_scale = modules["encoder"](batch.x)
        z = self.draw(loc, log_scale)
        prior: Prior = modules["prior"]  # type: ignore[assignment]
        constant = self.likelihood.constant_of(batch.x)

        def terms_of(rec: Tensor, private_losses: list[Tensor]) -> EncoderTerms:
            return encoder_terms(
                self.latent,
                loc,
                log_scale,
                z,
                rec,
                private_losses,
                self.private,
                prior,
                self.weights,
                constant,
            )

        if self.simultaneous:
            decoded = self._decode(z, batch)
            loss, cross_entropy = decoder_loss(*decoded, self.weights)
            terms = terms_of(*decoded)
            update_together((self.optimisers["decoder"], loss), (self.optimisers["encoder"], terms.loss))
        else:
            loss, cross_entropy = decoder_loss(*self._decode(z.detach(), batch), self.weights)
            update(self.optimisers["decoder"], loss)
            terms = terms_of(*self._decode(z, batch))
            update(self.optimisers["encoder"], terms.loss)
        prior.log_scale.data.copy_(terms.log_moment)
        return {
            "decoder_loss": loss.detach(),
            "encoder_loss": terms.loss.detach(),
            **(self._inside(terms.residual, constant) if self.weights.squared else {}),
            "prior_divergence": terms.prior_divergence.detach(),
            "reconstruction": terms.reconstruction.detach(),
            "divergence": terms.divergence.detach(),
            "leakage": terms.leakage.detach(),
            "cross_entropy": cross_entropy,
        }

    def _decode(self, z: Tensor, batch: Batch) -> tuple[Tensor, list[Tensor]]:
        rec = self.likelihood.loss(self.modules["decoder"](z), batch.x)
        return rec, self.private.losses(self.modules["classifier"](z), batch.targets)

    def _inside(self, residual: Tensor, constant: float) -> Terms:
        """What the square sees."""
        weights = self.weights
        return {
            "residual": residual.detach(),
            **exchange_rate(residual.clamp_min(0.0), weights.beta, weights.alpha),
            "constant": residual.new_tensor(constant_inside(weights, constant)),
        }

    def _train_classifier(self, batch: Batch) -> None:
        """One step of the classifier alone, on a batch and noise of its own."""
        with torch.no_grad():
            z = self.draw(*self.modules["encoder"](batch.x))
        losses = self.private.losses(self.modules["classifier"](z), batch.targets)
        update(self.optimisers["classifier"], torch.stack([loss.mean() for loss in losses]).sum())


class VariationalStep(SamplingStep):
    """min a D[P(Z|x) ‖ N(0, I)] + b E[−log P(X|Z)], all networks at once: a plain autoencoder; with private
    attributes the decoder is P(X|Z,Y), as in CPF (Rodríguez-Gálvez et al. 2021)."""

    def __init__(
        self,
        modules: nn.ModuleDict,
        latent: Latent,
        likelihood: Likelihood,
        private: PrivateAttributes | None,
        divergence_weight: float,
        reconstruction_weight: float,
        learning_rate: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__(modules, latent, likelihood, private, generator)
        self.divergence_weight, self.reconstruction_weight = divergence_weight, reconstruction_weight
        parameters = [*modules["encoder"].parameters(), *modules["decoder"].parameters()]
        self.optimisers = {"all": adam(parameters, learning_rate)}

    def __call__(self, batch: Batch, fresh: Callable[[], Batch]) -> Terms:
        loc, log_scale = self.modules["encoder"](batch.x)
        inputs = self.draw(loc, log_scale)
        if self.private is not None:
            inputs = torch.cat([inputs, self.private.one_hot(batch.targets)], dim=1)
        rec = self.likelihood.loss(self.modules["decoder"](inputs), batch.x).mean()
        divergence = self.latent.kl_to_standard(loc, log_scale).mean()
        loss = self.divergence_weight * divergence + self.reconstruction_weight * rec
        update(self.optimisers["all"], loss)
        return {
            "loss": loss.detach(),
            "reconstruction": rec.detach() + self.likelihood.constant_of(batch.x),
            "divergence": divergence.detach(),
        }
