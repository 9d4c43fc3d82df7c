"""What all learned estimators share: validation, training, releasing codes, reconstructing."""

from __future__ import annotations

import hashlib
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from torch import Tensor, nn

from ..errors import ConvergenceWarning, InvalidInputError
from ..progress import progress_bar
from ..sampling import uniform
from .families import latent, likelihood
from .inputs import as_tensor, check_settings, draw_seed, fingerprint_of, pick_device
from .networks import (
    ConvolutionalDecoder,
    ConvolutionalEncoder,
    Encoder,
    Prior,
    mlp,
)
from .private import PrivateAttributes, describe, split_columns
from .steps import Step
from .training import Progress, resume, train

# Records encoded at a time.
CHUNK = 4096
# Settings that a continued run may change: they do not change its result.
FREE_TO_CHANGE = ("checkpoint", "device", "progress", "release_state")


class LearnedFunnel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators. Subclasses name their networks and their step."""

    needs_private = True  # at fit
    decoder_needs_private = False

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        raise NotImplementedError

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> Step:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, *, private: Any = None) -> LearnedFunnel:
        """Learn the release from records X and their private attributes.

        Parameters
        ----------
        X : (n, features) array, frame or tensor, or a stack of images (n, height, width)
        y : private attributes, where `private` is not given
        private : one column or several; classes, or numbers that are not all whole
            Needed here and never again: `transform` sees X only.
        """
        self._begin(X, y, private, anew=True)
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        return self._run(int(self.epochs), None if folder is None else folder / "checkpoint.safetensors")

    def partial_fit(self, X: Any, y: Any = None, *, private: Any = None) -> LearnedFunnel:
        """Train for one more epoch on these records; the first call fixes features and private classes.

        Writes no checkpoints: the caller has the loop, and with it the place to save.
        """
        self._begin(X, y, private, anew=not hasattr(self, "modules_"))
        return self._run(self.progress_.epoch + 1)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Release a code for each record: a draw from P(Z|x), anew at every call.

        The randomness is the mechanism. It comes from the operating system's entropy unless `release_state`
        is set. Several releases of one record tell more than one.
        """
        loc, log_scale = self.encode(X)
        rng = self.release_state
        numbers = uniform(loc.size, np.random.default_rng(rng) if isinstance(rng, (int, np.integer)) else rng)
        # Uniform numbers are multiples of 2⁻⁵³ from 0 on; half a step up keeps the quantile finite.
        noise = latent(self.latent).quantile(torch.from_numpy(numbers + 2.0**-54)).numpy().reshape(loc.shape)
        codes: NDArray[np.float32] = (loc + np.exp(log_scale) * noise).astype(np.float32)
        return codes

    def encode(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Location and log-scale of P(Z|x) for each record: what the owner of the encoder knows."""
        check_is_fitted(self)
        x = self._records(X, reset=False)
        encoder = self.modules_["encoder"]
        with torch.inference_mode():
            parts = [encoder(x[i : i + CHUNK].to(self.device_)) for i in range(0, len(x), CHUNK)]
        loc, log_scale = (torch.cat([part[j].cpu() for part in parts]).numpy() for j in (0, 1))
        return loc, log_scale

    def inverse_transform(self, Z: Any) -> NDArray[np.float32]:
        """The reconstruction E[X|z] of each code, in the shape of the records."""
        return self._decode(self._codes(Z))

    def save(self, path: Any) -> None:
        """Write the fitted model into a folder, whole or not at all; `privacyfunnel.load` reads it back."""
        from .persistence import save_model

        save_model(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.release_state is None or self.random_state is None
        tags.target_tags.required = self.needs_private
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Copies take the optimisers' numbers along and rebuild the rest of the step from the settings."""
        state: dict[str, Any] = super().__getstate__().copy()
        step = state.pop("step_", None)
        if step is not None:
            state["optimisers_"] = {name: one.state_dict() for name, one in step.optimisers.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({name: value for name, value in state.items() if name != "optimisers_"})
        if "optimisers_" in state:
            self.step_ = self._step(self.modules_, self.private_, self.generator_)
            for name, numbers in state["optimisers_"].items():
                self.step_.optimisers[name].load_state_dict(numbers)

    @property
    def _n_features_out(self) -> int:
        encoder: Any = self.modules_["encoder"]
        return int(encoder.loc.out_features)

    def _begin(self, X: Any, y: Any, private: Any, *, anew: bool) -> None:
        check_settings(self.get_params(deep=False))
        x = self._records(X, reset=anew)
        attributes = self._private_columns(y, private, len(x))
        if anew:
            self.device_ = self._pick_device()
            self.seed_ = draw_seed(self.random_state)
            self.private_ = None if attributes is None else describe(attributes)
            seeds = np.random.SeedSequence(self.seed_).generate_state(2)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(seeds[0]))
                self.modules_ = self._build(self.n_features_in_, self.private_).to(self.device_)
            self.generator_ = torch.Generator().manual_seed(int(seeds[1]))
            self.step_ = self._step(self.modules_, self.private_, self.generator_)
            self.progress_ = Progress()
        self.targets_ = (
            []
            if self.private_ is None or attributes is None
            else self.private_.encode([v for _, v in attributes])
        )
        self.x_ = x

    def _run(self, epochs: int, checkpoint: Path | None = None) -> LearnedFunnel:
        try:
            self._run_epochs(epochs, checkpoint)
            self.n_records_ = len(self.x_)
        finally:
            del self.x_, self.targets_  # training data must not travel with the model, whatever happens
        self.status_ = self.progress_.status
        if not self.status_.ok:
            warnings.warn(f"{type(self).__name__}: {self.status_.value}", ConvergenceWarning, stacklevel=3)
        return self

    def _run_epochs(self, epochs: int, checkpoint: Path | None) -> None:
        self.fingerprint_ = fingerprint_of([self.x_, *self.targets_])
        fingerprint = self._run_fingerprint()
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            self.progress_ = resume(checkpoint, self.step_, self.generator_, fingerprint)
        with progress_bar(f"Training {type(self).__name__}", self.progress) as report:
            self._train(
                self.step_,
                self.x_.to(self.device_),
                [target.to(self.device_) for target in self.targets_],
                epochs=epochs,
                batch_size=int(self.batch_size),
                generator=self.generator_,
                progress=self.progress_,
                checkpoint=checkpoint,
                fingerprint=fingerprint,
                report=report,
            )

    def _train(self, step: Any, x: Tensor, targets: list[Tensor], **options: Any) -> None:
        train(step, x, targets, **options)

    @property
    def history_(self) -> Any:
        """The mean of every term of the objective by epoch, in nats, as a frame."""
        from ..frames import make_frame

        rows = self.progress_.history
        return make_frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {"epoch": []})

    def _records(self, X: Any, *, reset: bool) -> Tensor:
        if isinstance(X, Tensor):
            X = X.detach().cpu().numpy()
        if isinstance(X, np.ndarray) and X.ndim > 2:
            if reset:
                self.record_shape_ = X.shape[1:]
            elif self.record_shape_ and X.shape[1:] != tuple(self.record_shape_):
                raise InvalidInputError(
                    f"a record of X has the shape {X.shape[1:]}; fit saw {tuple(self.record_shape_)}."
                )
            X = X.reshape(len(X), -1)
        elif reset:
            self.record_shape_ = None
        table = validate_data(self, X, dtype=np.float32, reset=reset, ensure_min_samples=2 if reset else 1)
        family = likelihood(self.likelihood)
        if reset and (table.min() < family.lowest or table.max() > family.highest):
            raise InvalidInputError(
                f"X must lie between {family.lowest:g} and {family.highest:g} for "
                f"likelihood={family.name!r}; it lies between {table.min():g} and {table.max():g}. "
                "Scale it, or choose another likelihood."
            )
        return as_tensor(table)

    def _private_columns(self, y: Any, private: Any, n: int) -> list[tuple[str, NDArray[Any]]] | None:
        given = y if private is None else private
        if given is None:
            if self.needs_private:
                raise InvalidInputError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None: fit needs the "
                    "private attribute, as y or as private=."
                )
            return None
        return split_columns(given, n) if self.needs_private else None

    def _codes(self, Z: Any) -> Tensor:
        check_is_fitted(self)
        if isinstance(Z, Tensor):
            Z = Z.detach().cpu().numpy()
        table = check_array(Z, dtype=np.float32, input_name="Z")
        if table.shape[1] != self._n_features_out:
            raise InvalidInputError(
                f"Z must have {self._n_features_out} columns, one a component; its shape is {table.shape}."
            )
        return as_tensor(table)

    def _decode(self, inputs: Tensor) -> NDArray[np.float32]:
        decoder, mean = self.modules_["decoder"], likelihood(self.likelihood).mean
        with torch.inference_mode():
            parts = [
                mean(decoder(inputs[i : i + CHUNK].to(self.device_))).cpu()
                for i in range(0, len(inputs), CHUNK)
            ]
        records = torch.cat(parts).numpy()
        return records.reshape(len(records), *self.record_shape_) if self.record_shape_ else records

    def _encoder(self, n_features: int) -> nn.Module:
        if self.architecture == "conv":
            return ConvolutionalEncoder(self._side(n_features), 16, self.n_components)
        return Encoder(n_features, tuple(self.hidden), self.n_components)

    def _decoder(self, n_inputs: int, n_features: int) -> nn.Module:
        if self.architecture == "conv":
            return ConvolutionalDecoder(n_inputs, 16, self._side(n_features))
        return mlp([n_inputs, *tuple(self.hidden)[-1:], n_features])

    def _networks(self, n_features: int, n_extra: int = 0) -> dict[str, nn.Module]:
        return {
            "encoder": self._encoder(n_features),
            "decoder": self._decoder(self.n_components + n_extra, n_features),
            "prior": Prior(self.n_components),
        }

    def _side(self, n_features: int) -> int:
        side = math.isqrt(n_features)
        if side * side != n_features or side % 4:
            raise InvalidInputError(
                f"architecture='conv' needs square single-channel images whose side is a multiple of 4; "
                f"a record has {n_features} values. Use architecture='mlp'."
            )
        return side

    def _pick_device(self) -> torch.device:
        return pick_device(self.device)

    def _run_fingerprint(self) -> str:
        """Of data and settings: a checkpoint of another run must not be continued."""
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in FREE_TO_CHANGE}
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            del settings["random_state"]  # a generator shows its address, not its state
        text = repr((type(self).__name__, sorted(settings.items()), self.fingerprint_))
        return hashlib.sha256(text.encode()).hexdigest()
