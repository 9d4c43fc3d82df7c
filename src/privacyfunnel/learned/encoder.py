"""What releases codes of records: the base of every estimator, and the encoder alone that is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Any, ClassVar, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..arrays import uniform
from ..errors import InvalidInputError
from ..mechanism import Rng
from ..shipping import Shipped
from .families import latent
from .inputs import read_records
from .networks import Scaling, make_encoder

# Records encoded at a time.
CHUNK = 4096


class Releasing(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that draws codes. Subclasses have `latent`, `release_state`, `modules_` and `device_`."""

    has_decoder: ClassVar[bool] = True

    latent: str
    release_state: Any
    modules_: nn.ModuleDict
    device_: torch.device

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Release a code for each record: a draw from P(Z|x), anew at every call.

        The randomness is the mechanism. It comes from the operating system's entropy unless `release_state`
        is set. Several releases of one record tell more than one. Codes are float32: finer digits would be
        noise at best.
        """
        return self._drawn(X, self.release_state)

    def _drawn(self, X: Any, rng: Any) -> NDArray[np.float32]:
        loc, log_scale = self.encode(X)
        numbers = uniform(loc.size, rng)
        # Uniform numbers are multiples of 2⁻⁵³ from 0 on, and quantiles are finite inside (0, 1): half a step
        # up leaves 0, and the largest one, which rounding would take to 1, stays.
        inside = np.minimum(numbers + 2.0**-54, 1 - 2.0**-53)
        noise = latent(self.latent).quantile(torch.from_numpy(inside)).numpy().reshape(loc.shape)
        codes: NDArray[np.float32] = (loc + np.exp(log_scale) * noise).astype(np.float32)
        return codes

    def release_frame(self, frame: Any, *, keep: str | Sequence[str] = (), rng: Rng = None) -> Any:
        """Release codes of a data frame as a frame of the same kind.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, or one of Spark or Dask
            Its columns are those that the model was fitted on; others are left out. In a cluster each
            partition is released where it is, and a worker gets the encoder once.
        keep : column name or names
            What is handed out unchanged beside the codes; none that they are made from.
        rng : None, int or Generator
            `release_state` by default. In a cluster a seed gives the same codes for the same partitions.
        """
        from .streaming import release_frame

        return release_frame(self, frame, keep, self.release_state if rng is None else rng)

    def _shipped(self) -> Shipped:
        """What workers of a cluster get: the part that may be handed on."""
        from .saving import save_encoder

        check_is_fitted(self)
        return Shipped.of(lambda folder: save_encoder(self, folder))

    def release_stream(self, source: Any, sink: str | PathLike[str] | None = None) -> Any:
        """Release codes of a table that need not fit in memory, batch by batch.

        Parameters
        ----------
        source : as for `TableMechanism.release_stream`
            Its columns are those that the model was fitted on; others are left out.
        sink : path of a file, optional
            None gives a RecordBatchReader.
        """
        from .streaming import release_stream

        return release_stream(self, source, sink)

    def encode(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Location and log-scale of P(Z|x) for each record: what the owner of the encoder knows."""
        check_is_fitted(self)
        x = read_records(self, X, reset=False)
        encoder, scaling = self.modules_["encoder"], self.modules_["scaling"]
        with torch.inference_mode():
            parts = [encoder(scaling(x[i : i + CHUNK].to(self.device_))) for i in range(0, len(x), CHUNK)]
        loc, log_scale = (torch.cat([part[j].cpu() for part in parts]).numpy() for j in (0, 1))
        return loc, log_scale

    @property
    def _n_features_out(self) -> int:
        encoder: Any = self.modules_["encoder"]
        return int(encoder.heads.out_features) // 2


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
        from .saving import save_encoder

        save_encoder(self, path)

    def _modules(self, n_features: int) -> nn.ModuleDict:
        encoder = make_encoder(self.architecture, n_features, tuple(self.hidden), self.n_components)
        return nn.ModuleDict({"encoder": encoder, "scaling": Scaling(n_features)})

    def _refusal(self, what: str, remedy: str) -> InvalidInputError:
        return InvalidInputError(
            f"{what}: this is the encoder alone, which releases codes and does nothing else; {remedy}, which "
            "its owner has."
        )
