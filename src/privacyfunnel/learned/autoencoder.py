"""Autoencoder: the reference point, with no privacy at all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .base import LearnedFunnel
from .families import latent, likelihood
from .objectives import PrivateAttributes
from .steps import VariationalStep


@dataclass(eq=False, repr=False, kw_only=True)
class Autoencoder(LearnedFunnel):
    """A variational autoencoder with the networks of `Funnel` and no privacy term.

    min β E[−log P(X|Z)] + α E D[P(Z|x) ‖ N(0, I)], encoder and decoder at once. Parameters as for `Funnel`.
    """

    needs_private = False

    alpha: float = 1e-2
    beta: float = 1.0

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        return nn.ModuleDict(self._networks(n_features))

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> VariationalStep:
        return VariationalStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            None,
            self.alpha,
            self.beta,
            self.learning_rate,
            generator,
        )
