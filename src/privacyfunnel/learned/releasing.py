"""What releases codes of records: an estimator with its networks, or the encoder alone that was handed on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ..sampling import uniform
from .families import latent
from .records import read_records

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
        loc, log_scale = self.encode(X)
        numbers = uniform(loc.size, self.release_state)
        # Uniform numbers are multiples of 2⁻⁵³ from 0 on, and quantiles are finite inside (0, 1): half a step
        # up leaves 0, and the largest one, which rounding would take to 1, stays.
        inside = np.minimum(numbers + 2.0**-54, 1 - 2.0**-53)
        noise = latent(self.latent).quantile(torch.from_numpy(inside)).numpy().reshape(loc.shape)
        codes: NDArray[np.float32] = (loc + np.exp(log_scale) * noise).astype(np.float32)
        return codes

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
