"""ConditionalFunnel: the conditional privacy funnel (CPF), whose decoder needs the private attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..errors import InvalidInputError
from .base import LearnedFunnel
from .families import latent, likelihood
from .private import PrivateAttributes, split_columns
from .steps import ConditionalStep


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

    def __init__(
        self,
        n_components: int = 64,
        *,
        gamma: float = 1.0,
        hidden: Sequence[int] = (500, 500),
        architecture: str = "mlp",
        latent: str = "normal",
        likelihood: str = "gaussian",
        epochs: int = 100,
        batch_size: int = 256,
        learning_rate: float = 3e-4,
        random_state: Any = None,
        release_state: Any = None,
        checkpoint: Any = None,
        device: str = "auto",
        progress: bool | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.hidden = hidden
        self.architecture = architecture
        self.latent = latent
        self.likelihood = likelihood
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.release_state = release_state
        self.checkpoint = checkpoint
        self.device = device
        self.progress = progress

    def inverse_transform(self, Z: Any, private: Any = None) -> NDArray[np.float32]:
        """The reconstruction E[X|z, y]. The private attribute of each record is needed."""
        if private is None:
            raise InvalidInputError(
                "ConditionalFunnel.inverse_transform needs the private attribute of each record: its "
                "decoder is P(X|Z,Y). Pass private=, or use Funnel, which reconstructs from Z alone."
            )
        codes = self._codes(Z)
        assert self.private_ is not None
        targets = self.private_.encode([values for _, values in split_columns(private, len(codes))])
        return self._decode(torch.cat([codes, self.private_.one_hot(targets)], dim=1))

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        assert private is not None
        return nn.ModuleDict(self._networks(n_features, n_extra=private.n_one_hot))

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> ConditionalStep:
        assert private is not None
        return ConditionalStep(
            modules,
            latent(self.latent),
            likelihood(self.likelihood),
            private,
            self.gamma,
            self.learning_rate,
            generator,
        )
