"""The adversarial networks of DVPF and one mini-batch of its training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from .families import Latent, Likelihood
from .objectives import PrivateAttributes
from .steps import Batch, SamplingStep, Terms, adam, update

N_NOISE = 100  # inputs of the prior's generator
WIDTH = 200  # hidden layers of the generator and the discriminators


def adversarial_mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Fully connected layers with BatchNorm and LeakyReLU between them, none at the end.

    Normalises by the statistics of the batch at hand and keeps no running ones: these networks are used
    in training only.
    """
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [
            nn.Linear(before, after),
            nn.BatchNorm1d(after, track_running_stats=False),
            nn.LeakyReLU(0.2),
        ]
    return nn.Sequential(*layers[:-2])


class DeepVariationalStep(SamplingStep):
    """DVPF (Razeghi et al. 2024) in six updates, each with an optimiser of its own.

    Modules: encoder, decoder P(X|Z), uncertainty_decoder P(X|Z,Y), generator of the prior, and the
    discriminators latent_discriminator (codes), visible_discriminator (records) and attribute_discriminator
    (records beside their attribute). See `DeepVariationalFunnel` for the objective.
    """

    PARTS: ClassVar[dict[str, tuple[str, ...]]] = {
        "variational": ("encoder", "decoder", "uncertainty_decoder"),
        "latent_discriminator": ("latent_discriminator",),
        "latent_game": ("encoder", "generator"),
        "output_discriminators": ("visible_discriminator", "attribute_discriminator"),
        "visible_game": ("generator", "decoder"),
        "attribute_game": ("generator", "uncertainty_decoder"),
    }

    def __init__(
        self,
        modules: nn.ModuleDict,
        latent: Latent,
        likelihood: Likelihood,
        private: PrivateAttributes,
        alpha: float,
        learning_rate: float,
        adversarial_rate: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__(modules, latent, likelihood, private, generator)
        self.alpha = alpha
        self.optimisers = {
            step: adam(
                [parameter for name in names for parameter in modules[name].parameters()],
                # Adam does not see the scale of a loss: the weight of a game is its rate.
                learning_rate * (adversarial_rate if step.endswith("_game") else 1.0),
            )
            for step, names in self.PARTS.items()
        }

    def __call__(self, batch: Batch, fresh: Callable[[], Batch]) -> Terms:
        x, y = batch.x, self.private.one_hot(batch.targets)
        terms = self._variational(x, y)
        # A single record, the rest of an epoch, has no batch statistics for the discriminators.
        games = self._games(x, y) if len(x) > 1 else dict.fromkeys(list(self.PARTS)[1:], x.new_zeros(()))
        return {**terms, **games}

    def _variational(self, x: Tensor, y: Tensor) -> Terms:
        """Step 1: the encoder and both decoders on the variational bound."""
        loc, log_scale = self.modules["encoder"](x)
        z = self.draw(loc, log_scale)
        rec = self.likelihood.loss(self.modules["decoder"](z), x).mean()
        conditional = self.modules["uncertainty_decoder"](torch.cat([z, y], dim=1))
        conditional_rec = self.likelihood.loss(conditional, x).mean()
        divergence = self.latent.kl_to_standard(loc, log_scale).mean()
        loss = rec + self.alpha * (divergence + conditional_rec)
        update(self.optimisers["variational"], loss)
        constant = self.likelihood.constant_of(x)
        return {
            "loss": loss.detach(),
            "reconstruction": rec.detach() + constant,
            "conditional_reconstruction": conditional_rec.detach() + constant,
            "divergence": divergence.detach(),
        }

    def _games(self, x: Tensor, y: Tensor) -> Terms:
        """Steps 2 to 6."""
        on_z, on_x, on_xy = (self.modules[f"{w}_discriminator"] for w in ("latent", "visible", "attribute"))
        terms: Terms = {}

        def play(step: str, loss: Tensor) -> None:
            update(self.optimisers[step], loss)
            terms[step] = loss.detach()

        with torch.no_grad():
            codes, invented = self.draw(*self.modules["encoder"](x)), self._invent(x)
        play("latent_discriminator", told_apart(*judged(on_z, codes, invented)))

        codes, invented = self.draw(*self.modules["encoder"](x)), self._invent(x)
        as_code, as_invented = judged(on_z, codes, invented)
        play("latent_game", told_apart(as_invented, as_code))

        pairs = torch.cat([x, y], dim=1)
        with torch.no_grad():
            visible, beside = self._visible(self._invent(x)), self._beside(self._invent(x), y)
        loss = told_apart(*judged(on_x, x, visible)) + told_apart(*judged(on_xy, pairs, beside))
        play("output_discriminators", loss)

        play("visible_game", taken_for_real(judged(on_x, x, self._visible(self._invent(x)))[1]))
        play("attribute_game", taken_for_real(judged(on_xy, pairs, self._beside(self._invent(x), y))[1]))
        return terms

    def _invent(self, like: Tensor) -> Tensor:
        """Codes from the prior's generator, as many as there are records."""
        noise = torch.randn((len(like), N_NOISE), generator=self.generator).to(like.device)
        codes: Tensor = self.modules["generator"](noise)
        return codes

    def _visible(self, z: Tensor) -> Tensor:
        return self.likelihood.mean(self.modules["decoder"](z))

    def _beside(self, z: Tensor, y: Tensor) -> Tensor:
        """Records of P(X|z,y) beside their y, as the attribute discriminator sees them."""
        records = self.likelihood.mean(self.modules["uncertainty_decoder"](torch.cat([z, y], dim=1)))
        return torch.cat([records, y], dim=1)


def judged(discriminator: nn.Module, real: Tensor, invented: Tensor) -> tuple[Tensor, Tensor]:
    """The logits of both kinds, in one batch: normalised apart, each would lose its mean and scale, and
    the discriminator could not see them differ."""
    logits: Tensor = discriminator(torch.cat([real, invented]))
    return logits[: len(real)], logits[len(real) :]


def taken_for_real(logits: Tensor) -> Tensor:
    """Cross-entropy against "real" in nats: what a generator lowers."""
    return functional.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))


def told_apart(real: Tensor, invented: Tensor) -> Tensor:
    """Cross-entropy of a discriminator in nats, summed over both kinds."""
    return taken_for_real(real) + taken_for_real(-invented)
