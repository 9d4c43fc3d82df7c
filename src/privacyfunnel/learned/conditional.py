"""ConditionalFunnel: the conditional privacy funnel (CPF), whose decoder needs the private attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..attributes import read_attributes
from ..errors import InvalidInputError
from .base import LearnedFunnel
from .families import latent, likelihood
from .objectives import PrivateAttributes
from .steps import VariationalStep


@dataclass(eq=False, repr=False, kw_only=True)
class ConditionalFunnel(LearnedFunnel):
    """CPF (Rodríguez-Gálvez, Thobaben & Skoglund 2021): min D[P(Z|x) ‖ N(0, I)] + γ E[−log P(X|Z,Y)].

    The encoder sees X alone, but the decoder sees Y beside Z, so that Z need not carry it. Whoever is to
    reconstruct X must therefore know Y: `inverse_transform` asks for it.

    Parameters
    ----------
    gamma : float
        Weight of the reconstruction, γ = β + 1 in the paper's letters.

    The others are those of `Funnel`.
    """

    decoder_needs_private = True

    gamma: float = 1.0

    def inverse_transform(self, Z: Any, private: Any = None) -> NDArray[np.float32]:
        """The reconstruction E[X|z, y]. The private attribute of each record is needed."""
        if private is None:
            raise InvalidInputError(
                "ConditionalFunnel.inverse_transform needs the private attribute of each record: its "
                "decoder is P(X|Z,Y). Pass private=, or use Funnel, which reconstructs from Z alone.",
                names=("private",),
            )
        codes = self._codes(Z)
        assert self.private_ is not None
        targets = self.private_.encode(read_attributes(private, len(codes), like=self.attributes_))
        return self._decode(torch.cat([codes, self.private_.one_hot(targets)], dim=1))

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        assert private is not None
        return nn.ModuleDict(self._networks(n_features, n_extra=private.n_one_hot))

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> VariationalStep:
        assert private is not None
        return VariationalStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            private,
            1.0,
            self.gamma,
            self.learning_rate,
            generator,
        )
