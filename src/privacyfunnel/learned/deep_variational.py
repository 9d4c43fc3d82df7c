"""DeepVariationalFunnel: a reconstruction of the deep variational privacy funnel (DVPF)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from ..errors import InvalidInputError
from .adversarial import N_NOISE, WIDTH, DeepVariationalStep, adversarial_mlp
from .base import LearnedFunnel
from .families import latent, likelihood
from .objectives import PrivateAttributes


@dataclass(eq=False, repr=False, kw_only=True)
class DeepVariationalFunnel(LearnedFunnel):
    """DVPF (Razeghi, Rahimi & Marcel 2024): a reconstruction, not the authors' program.

    From I(Z;Y) = I(Z;X) − I(Z;X|Y), the funnel max I(Z;X) − α I(Z;Y) becomes, with a utility decoder P(X|Z)
    and an uncertainty decoder P(X|Z,Y),

        min E[−log P(X|Z)] + α ( E D[P(Z|x) ‖ Q(Z)] + E[−log P(X|Z,Y)] ),

    and discriminators pull the prior Q(Z) to the codes and what both decoders make of it to the data. Six
    updates on each mini-batch:

        1. encoder and both decoders, on the line above
        2. latent discriminator: codes of records against codes from the prior's generator
        3. encoder and generator, against it
        4. visible discriminator: records against P(X|Z) of generated codes; and attribute discriminator:
           records beside their y against P(X|Z,Y) of generated codes beside the same y
        5. generator and utility decoder, against the visible one
        6. generator and uncertainty decoder, against the attribute one

    Releasing needs X alone, and `inverse_transform` needs Z alone: it is the utility decoder.

    Guarantee: none; see `Funnel`.

    Notes
    -----
    Public descriptions give the networks and the six steps in outline. What was interpreted here:

    - Q(Z) in the divergence of step 1 is N(0, I): the generator's distribution has no density.
    - The attribute discriminator sees the record beside its y. The description lists one for y alone, but
      P(X|Z,Y) makes no y that could be judged.
    - Generator: 100 → 200 → d. Discriminators: w → 200 → 200 → 1 with logits into a cross-entropy, which is
      the sigmoid of the description in a form that cannot overflow. BatchNorm is over single features:
      these layers have no images. Real and invented inputs go through a discriminator as one batch:
      normalised apart, they would lose the mean and scale that tell them apart.
    - Games are played in their non-saturating form, once a mini-batch, each update with an Adam of its own.
      `adversarial_rate` is the weight of steps 3, 5 and 6, for which no value is published.

    Parameters
    ----------
    alpha : float
        Weight α of the leakage; larger tells less about Y.
    adversarial_rate : float
        Learning rate of steps 3, 5 and 6 as a share of `learning_rate`; 0 leaves the variational bound alone.
        On small images the games overwhelm the reconstruction at 1.

    The others are those of `Funnel`; `batch_size` is 2 or more.
    """

    alpha: float = 0.1
    adversarial_rate: float = 0.1

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        assert private is not None
        if self.batch_size < 2:
            raise InvalidInputError(
                "batch_size must be 2 or more for DeepVariationalFunnel: its discriminators compare the "
                f"records of a batch; it is {self.batch_size}.",
                names=("batch_size",),
            )
        d, n_y = self.n_components, private.n_one_hot
        discriminators = {"latent": d, "visible": n_features, "attribute": n_features + n_y}
        return nn.ModuleDict(
            {
                "encoder": self._encoder(n_features),
                "decoder": self._decoder(d, n_features),
                "uncertainty_decoder": self._decoder(d + n_y, n_features),
                "generator": adversarial_mlp([N_NOISE, WIDTH, d]),
                **{
                    f"{name}_discriminator": adversarial_mlp([size, WIDTH, WIDTH, 1])
                    for name, size in discriminators.items()
                },
            }
        )

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> DeepVariationalStep:
        assert private is not None
        return DeepVariationalStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            private,
            self.alpha,
            self.learning_rate,
            self.adversarial_rate,
            generator,
        )
