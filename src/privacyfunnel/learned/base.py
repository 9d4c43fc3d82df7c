"""What all learned estimators share: validation, training, releasing codes, reconstructing."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor, nn

from ..errors import ConvergenceWarning, InvalidInputError
from ..progress import progress_bar
from .families import likelihood
from .folders import training_lock
from .inputs import (
    as_array,
    check_settings,
    column_names,
    draw_seed,
    fingerprint_of,
    pick_device,
    split_columns,
)
from .networks import Prior, make_decoder, make_encoder
from .private import PrivateAttributes, describe, same_classes
from .records import as_tensor, check_range, check_square, read_records
from .releasing import CHUNK, Releasing
from .scaling import Scaling, kind_of_scaling, scaling_of
from .steps import Step
from .training import Progress, ran_away, train

# Without `epochs`: steps to train for, and passes over the records at the least.
N_STEPS, LEAST_EPOCHS = 2000, 10
# Settings that a continued run may change: they do not change its result.
FREE_TO_CHANGE = ("checkpoint", "device", "progress", "release_state")


@dataclass(eq=False, repr=False)
class LearnedFunnel(Releasing):
    """Base of the estimators. Subclasses name their networks and their step.

    The settings are the fields of a dataclass: its constructor stores them as they come, which is what
    scikit-learn asks of one. `Funnel` explains them.
    """

    n_components: int = 64
    _: KW_ONLY
    hidden: Sequence[int] = (500, 500)
    architecture: str = "mlp"
    latent: str = "normal"
    likelihood: str = "gaussian"
    scale: str = "none"
    epochs: int | None = 100
    batch_size: int = 256
    learning_rate: float = 3e-4
    random_state: Any = None
    release_state: Any = None
    checkpoint: Any = None
    device: str = "auto"
    progress: bool | None = None
    numeric: Sequence[str] = ()

    needs_private: ClassVar[bool] = True  # at fit
    decoder_needs_private: ClassVar[bool] = False

    def _build(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        raise NotImplementedError

    def _step(
        self, modules: nn.ModuleDict, private: PrivateAttributes | None, generator: torch.Generator
    ) -> Step:
        raise NotImplementedError

    def _modules(self, n_features: int, private: PrivateAttributes | None) -> nn.ModuleDict:
        """The networks, and what scales their records."""
        modules = self._build(n_features, private)
        modules["scaling"] = Scaling(n_features)
        return modules

    def _build_anew(self, private: PrivateAttributes | None, x: Tensor, *, is_frame: bool) -> None:
        """All networks, optimisers and random numbers of a new training."""
        self.device_ = pick_device(self.device)
        self.seed_ = draw_seed(self.random_state)
        self.private_: PrivateAttributes | None = private
        seeds = np.random.SeedSequence(self.seed_).generate_state(2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0]))
            modules = self._modules(self.n_features_in_, private)
        family, is_stack = likelihood(self.likelihood), self.record_shape_ is not None
        kind = kind_of_scaling(self.scale, x, is_frame=is_frame, is_stack=is_stack, family=family)
        scaling_of(modules).learn(x, kind, family)
        self.modules_ = modules.to(self.device_)
        self.generator_: torch.Generator = torch.Generator().manual_seed(int(seeds[1]))
        self.step_ = self._step(self.modules_, private, self.generator_)
        self.progress_ = Progress(seed=self.seed_)
        self.fingerprint_, self.n_records_ = "", 0

    def fit(self, X: Any, y: Any = None, *, private: Any = None) -> LearnedFunnel:
        """Learn the release from records X and their private attributes.

        Parameters
        ----------
        X : (n, features) array, frame or tensor, or a stack of images (n, height, width)
        y : private attributes, where `private` is not given
        private : one column or several; classes, or numbers that are not all whole or named in `numeric`
            Needed here and never again: `transform` sees X only.
        """
        with self._all_or_nothing():
            self._begin(X, y, private, anew=True)
            folder = None if self.checkpoint is None else Path(self.checkpoint)
            self._run(self.epochs, None if folder is None else folder / "checkpoint.safetensors", whole=True)
        self._warn(self._notes(whole=True))
        return self

    def partial_fit(
        self, X: Any, y: Any = None, *, private: Any = None, classes: Any = None
    ) -> LearnedFunnel:
        """Train for one more epoch on these records, a part of the data; for data larger than memory.

        The first call fixes features, private classes and networks; other settings may change between calls,
        such as a falling `learning_rate`. H(Y) is that of all records seen so far. Writes no checkpoints: the
        caller has the loop, and with it the place to save.

        Parameters
        ----------
        X, y, private : as for `fit`
        classes : all classes of the private attribute, or a mapping from attribute to its classes
            For the first call, where the first part may lack some. By default those that occur in it.
        """
        if getattr(self, "max_leakage", None) is not None:
            raise InvalidInputError(
                "partial_fit cannot keep a budget: audits need records that no call trains on. Use fit, or "
                "leakage_weight instead of max_leakage."
            )
        with self._all_or_nothing():
            self._begin(X, y, private, anew=not hasattr(self, "modules_"), classes=classes)
            self._run(self.progress_.epoch + 1, whole=False)
        self._warn(self._notes(whole=False))
        return self

    def inverse_transform(self, Z: Any) -> NDArray[np.float32]:
        """The reconstruction E[X|z] of each code, in the shape of the records."""
        return self._decode(self._codes(Z))

    def save(self, path: Any, part: str = "all") -> None:
        """Write the fitted model into a folder, whole or not at all; `privacyfunnel.load` reads it back.

        Parameters
        ----------
        path : folder
        part : "all" or "encoder"
            "all" is for the owner: it holds the counts of the private classes, the training history and what
            guesses Y from a code. "encoder" is what to hand on to whoever releases: a `FunnelEncoder`.
        """
        from .persistence import save_encoder, save_model

        if part not in ("all", "encoder"):
            raise InvalidInputError(f"save: part must be 'all' or 'encoder'; it is {part!r}.")
        (save_model if part == "all" else save_encoder)(self, path)

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
            self._renew_step(state["optimisers_"])

    def _begin(self, X: Any, y: Any, private: Any, *, anew: bool, classes: Any = None) -> None:
        """Check everything, and build what does not exist yet."""
        check_settings(self.get_params(deep=False))
        x = read_records(self, X, reset=anew)
        check_range(x, likelihood(self.likelihood))
        if self.architecture == "conv":
            check_square(self.record_shape_)
        known = None if anew or self.private_ is None else self.private_.names
        columns = self._private_columns(y, private, len(x), known)
        targets: list[Tensor] = []
        attributes = None if anew else self.private_
        if columns is not None:
            values = [column for _, column in columns]
            if attributes is None:
                attributes = describe(columns, classes, self.numeric)
                targets = attributes.encode(values)
            else:
                same_classes(attributes, columns, classes)
                targets = attributes.encode(values)
                attributes = attributes.after(targets)
        if anew:
            self._build_anew(attributes, x, is_frame=column_names(X, "X") is not None)
        else:
            self._require_same_networks(attributes)
            self.private_ = attributes
            self._renew_step({name: one.state_dict() for name, one in self.step_.optimisers.items()})
        self.x_, self.targets_ = x, targets

    def _require_same_networks(self, private: PrivateAttributes | None) -> None:
        with torch.device("meta"):
            asked = self._modules(self.n_features_in_, private).state_dict()
        if {name: tensor.shape for name, tensor in asked.items()} != {
            name: tensor.shape for name, tensor in self.modules_.state_dict().items()
        }:
            raise InvalidInputError(
                "partial_fit: a setting that shapes the networks was changed after the first call; set it "
                "back, or train a new estimator."
            )

    def _renew_step(self, optimisers: dict[str, Any]) -> None:
        """The step that the settings ask for now; its optimisers go on from these states, at rates of now."""
        self.step_ = self._step(self.modules_, self.private_, self.generator_)
        for name, one in self.step_.optimisers.items():
            own = one.state_dict()["param_groups"]
            # With another classifier_steps the classifier changes its optimiser: both begin anew.
            if name in optimisers and _n_moved(optimisers[name]["param_groups"]) == _n_moved(own):
                one.load_state_dict({**optimisers[name], "param_groups": own})

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A call that fails leaves the estimator as it was, fitted or not."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _run(self, epochs: int | None, checkpoint: Path | None = None, *, whole: bool) -> None:
        try:
            # Of all calls of partial_fit in their order.
            self.fingerprint_ = fingerprint_of([self.x_, *self.targets_], after=self.fingerprint_)
            self.n_records_ += len(self.x_)
            self._run_epochs(epochs, checkpoint, whole)
        finally:
            del self.x_, self.targets_  # training data must not travel with the model, whatever happens
        self.status_, self.seed_ = self.progress_.status, self.progress_.seed

    def _notes(self, *, whole: bool) -> list[str]:
        """What the user should be warned of after training. Losses of parts of a training, or under settings
        that changed in between, are not to be compared."""
        if not self.status_.ok:
            return [self.status_.value]
        return ran_away(self.progress_.history) if whole else []

    def _warn(self, notes: Sequence[str]) -> None:
        for note in notes:
            warnings.warn(f"{type(self).__name__}: {note}", ConvergenceWarning, stacklevel=3)

    def _run_epochs(self, epochs: int | None, checkpoint: Path | None, whole: bool) -> None:
        with (
            progress_bar(f"Training {type(self).__name__}", self.progress) as report,
            training_lock(None if checkpoint is None else checkpoint.parent),
        ):
            self._train(
                self.step_,
                self.modules_["scaling"](self.x_.to(self.device_)),
                [target.to(self.device_) for target in self.targets_],
                whole=whole,
                epochs=epochs,
                batch_size=int(self.batch_size),
                generator=self.generator_,
                progress=self.progress_,
                checkpoint=checkpoint,
                fingerprint=self._run_fingerprint(),
                report=report,
            )

    def _train(
        self, step: Any, x: Tensor, targets: list[Tensor], *, whole: bool, epochs: int | None, **options: Any
    ) -> None:
        """Train on these records; `whole` says that no others follow."""
        n_batches = math.ceil(len(x) / options["batch_size"])
        passes = max(LEAST_EPOCHS, math.ceil(N_STEPS / n_batches)) if epochs is None else int(epochs)
        train(step, x, targets, epochs=passes, **options)

    @property
    def history_(self) -> Any:
        """The means of every epoch as a frame: a column for each term of the objective.

        Information is in bits: `leakage` (Î(Z;Y)), `cross_entropy`, `divergence`, `prior_divergence`,
        `reconstruction` (−E log P(X|Z)), `residual`, and the games of DVPF. Without a unit are `epoch`
        and the columns that end in `loss`: what the optimisers lower, which may hold squares.
        """
        from ..frames import make_frame

        rows = self.progress_.history
        return make_frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {"epoch": []})

    def _private_columns(
        self, y: Any, private: Any, n: int, names: Sequence[str] | None
    ) -> list[tuple[str, NDArray[Any]]] | None:
        given = y if private is None else private
        if given is None:
            if self.needs_private:
                raise InvalidInputError(
                    f"{type(self).__name__} requires y to be passed, but the target y is None: fit needs the "
                    "private attribute, as y or as private=."
                )
            return None
        return split_columns(given, n, names) if self.needs_private else None

    def _codes(self, Z: Any) -> Tensor:
        check_is_fitted(self)
        table = check_array(as_array(Z), dtype=np.float32, input_name="Z")
        if table.shape[1] != self._n_features_out:
            raise InvalidInputError(
                f"Z must have {self._n_features_out} columns, one a component; its shape is {table.shape}."
            )
        return as_tensor(table)

    def _decode(self, inputs: Tensor) -> NDArray[np.float32]:
        decoder, scaling = self.modules_["decoder"], scaling_of(self.modules_)
        mean = likelihood(self.likelihood).mean
        with torch.inference_mode():
            parts = [
                scaling.inverse(mean(decoder(inputs[i : i + CHUNK].to(self.device_)))).cpu()
                for i in range(0, len(inputs), CHUNK)
            ]
        records = torch.cat(parts).numpy()
        return records.reshape(len(records), *self.record_shape_) if self.record_shape_ else records

    def _encoder(self, n_features: int) -> nn.Module:
        return make_encoder(self.architecture, n_features, tuple(self.hidden), self.n_components)

    def _decoder(self, n_inputs: int, n_features: int) -> nn.Module:
        return make_decoder(self.architecture, n_inputs, tuple(self.hidden), n_features)

    def _networks(self, n_features: int, n_extra: int = 0) -> dict[str, nn.Module]:
        return {
            "encoder": self._encoder(n_features),
            "decoder": self._decoder(self.n_components + n_extra, n_features),
            "prior": Prior(self.n_components),
        }

    def _run_fingerprint(self) -> str:
        """Of data and settings: a checkpoint of another run must not be continued."""
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in FREE_TO_CHANGE}
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            del settings["random_state"]  # a generator shows its address, not its state
        text = repr((type(self).__name__, sorted(settings.items()), self.fingerprint_))
        return hashlib.sha256(text.encode()).hexdigest()


def _n_moved(groups: list[dict[str, Any]]) -> int:
    """How many parameters an optimiser moves."""
    return sum(len(group["params"]) for group in groups)
