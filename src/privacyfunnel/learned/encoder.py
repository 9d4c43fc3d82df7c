"""FunnelEncoder: the part of a model that releases, for whoever is to release and to know nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from torch import nn

from ..errors import InvalidInputError
from .networks import make_encoder
from .releasing import Releasing
from .scaling import Scaling


@dataclass(eq=False, repr=False)
class FunnelEncoder(Releasing):
    """What `save(folder, part="encoder")` hands on: `transform` and `encode`, and nothing that tells Y.

    It has the encoder and the scaling of its records; no decoder, no classifier, no private classes or their
    counts, no history, no seed. `privacyfunnel.load` makes it; it cannot be trained.

    Parameters
    ----------
    n_components, hidden, architecture, latent, release_state, device
        As for `Funnel`.
    """

    has_decoder = False

    n_components: int = 64
    _: KW_ONLY
    hidden: Sequence[int] = (500, 500)
    architecture: str = "mlp"
    latent: str = "normal"
    release_state: Any = None
    device: str = "auto"

    def fit(self, X: Any, y: Any = None, **more: Any) -> NoReturn:
        """Not possible."""
        raise self._refusal("fit", "fit the whole model anew")

    def partial_fit(self, X: Any, y: Any = None, **more: Any) -> NoReturn:
        """Not possible."""
        raise self._refusal("partial_fit", "train the whole model")

    def inverse_transform(self, Z: Any, private: Any = None) -> NoReturn:
        """Not possible."""
        raise self._refusal("inverse_transform", "reconstruct with the whole model")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Those of the whole model, so that it can decode what this encoder released."""
        names = [f"{self.prefix_}{j}" for j in range(self._n_features_out)]
        return np.array(names, dtype=object)

    def save(self, path: Any) -> None:
        """Write the encoder into a folder, whole or not at all."""
        from .persistence import save_encoder

        save_encoder(self, path)

    def _modules(self, n_features: int) -> nn.ModuleDict:
        encoder = make_encoder(self.architecture, n_features, tuple(self.hidden), self.n_components)
        return nn.ModuleDict({"encoder": encoder, "scaling": Scaling(n_features)})

    def _refusal(self, what: str, remedy: str) -> InvalidInputError:
        return InvalidInputError(
            f"{what}: this is the encoder alone, which releases codes and does nothing else; {remedy}, which "
            "its owner has."
        )
