"""What all learned estimators share: validation, training, releasing codes, reconstructing."""

from __future__ import annotations

import copy
import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor, nn

from ..arrays import from_tensor
from ..attributes import Attribute, read_attributes
from ..errors import ConvergenceWarning, InvalidInputError
from ..frames import column_names
from ..pipelines import PrivateAtFit
from ..progress import progress_bar, saying_how_long
from .encoder import CHUNK, Releasing
from .families import likelihood
from .inputs import (
    Marks,
    as_tensor,
    check_range,
    check_settings,
    check_square,
    draw_seed,
    fingerprint_of,
    pick_device,
    read_records,
)
from .networks import Prior, Scaling, kind_of_scaling, make_decoder, make_encoder, scaling_of
from .objectives import PrivateAttributes, describe
from .steps import Step
from .training import Progress, ran_away, train, training_lock

if TYPE_CHECKING:
    from .budget import Budget
    from .verdict import Verdict

# Without `epochs`: steps to train for, and passes over the records at the least.
N_STEPS, LEAST_EPOCHS = 2000, 10
# Settings that the notes on a training speak of.
_NAMED = (
    *("alpha", "beta", "learning_rate", "leakage_weight", "max_leakage", "schedule"),
    *("classifier", "classifier_steps"),
)
# What is noted of the records of a fit.
SHAPE = ("n_features_in_", "feature_names_in_", "record_shape_")
# Settings that a continued run may change: they do not change its result.
FREE_TO_CHANGE = ("checkpoint", "device", "progress", "release_state")


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What one call of `fit` or `partial_fit` was given, read and checked. It ends with the call.

    Attributes
    ----------
    x : (n, features) tensor
    targets : tensors
        The private attributes, encoded.
    private : PrivateAttributes or None
        With these records seen.
    shape : dict
        What the estimator is to know of the records' shape.
    is_frame : bool
    """

    x: Tensor
    targets: list[Tensor]
    private: PrivateAttributes | None
    shape: dict[str, Any]
    is_frame: bool


@dataclass(eq=False)
class Trained:
    """What a training makes: the fitted attributes of an estimator, which have an underscore behind.

    `marks` are None where records were learned from before there were marks; `verdict` and `budget` are of
    estimators that judge themselves.
    """

    modules: nn.ModuleDict
    step: Step
    generator: torch.Generator
    progress: Progress
    device: torch.device
    fingerprint: str = ""
    n_records: int = 0
    marks: Marks | None = field(default_factory=Marks)
    verdict: Verdict | None = None
    budget: Budget | None = None


@dataclass(eq=False, repr=False)
class LearnedFunnel(PrivateAtFit, Releasing):
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

    def fit(self, X: Any, y: Any = None, *, private: Any = None) -> Self:
        """Learn the release from records X and their private attributes.

        Parameters
        ----------
        X : (n, features) array, frame or tensor, or a stack of images (n, height, width)
        y : private attributes, where `private` is not given: in a pipeline y is the target, so give it there
        private : one column or several; classes, or numbers that are not all whole or named in `numeric`
            Needed here and never again: `transform` sees X only.
        """
        data = self._read(X, y, private)
        folder = None if self.checkpoint is None else Path(self.checkpoint)
        checkpoint = None if folder is None else folder / "checkpoint.safetensors"
        trained = self._run(data, self._begin(data), self.epochs, checkpoint, whole=True)
        self._take(trained, data.private, data.shape)
        self._warn(self._notes(whole=True))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, private: Any = None, classes: Any = None) -> Self:
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
                "leakage_weight instead of max_leakage.",
                names=("leakage_weight", "max_leakage"),
            )
        anew = not hasattr(self, "modules_")
        data = self._read(X, y, private, classes, anew=anew)
        trained = self._begin(data) if anew else self._copied(data)
        self._run(data, trained, trained.progress.epoch + 1, whole=False)
        self._take(trained, data.private, data.shape)
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
        from .saving import save_encoder, save_model

        if part not in ("all", "encoder"):
            raise InvalidInputError(f"save: part must be 'all' or 'encoder'; it is {part!r}.")
        (save_model if part == "all" else save_encoder)(self, path)

    def trained_on(self, X: Any) -> float | None:
        """An estimate of the share of these records that it was trained on; None where that is not known.

        Its owner alone can ask: what tells is saved with the whole model, and not with the encoder.
        """
        check_is_fitted(self)
        marks: Marks | None = self.marks_
        return None if marks is None else marks.share(read_records(self, X, reset=False).numpy())

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
            self.step_ = self._renewed(self.modules_, self.private_, self.generator_, state["optimisers_"])

    def _read(self, X: Any, y: Any, private: Any, classes: Any = None, *, anew: bool = True) -> TrainingData:
        """Check everything that a call was given; the estimator stays as it is."""
        check_settings(self.get_params(deep=False))
        # What a new training sees of the records' shape is noted by a blank of the same class.
        shaped = type(self)(**self.get_params(deep=False)) if anew else self
        x = read_records(shaped, X, reset=anew)
        check_range(x, likelihood(self.likelihood))
        if self.architecture == "conv":
            check_square(shaped.record_shape_)
        read = self._read_private(y, private, len(x), classes, anew=anew)
        known = None if anew else self.private_
        heads = describe(read, named=classes is not None) if read and known is None else known
        targets = heads.encode(read) if heads is not None else []
        if known is not None:
            heads = known.after(targets)
        seen = {name: value for name, value in vars(shaped).items() if name in SHAPE}
        return TrainingData(x, targets, heads, seen, column_names(X, "X") is not None)

    def _begin(self, data: TrainingData) -> Trained:
        """All networks, optimisers and random numbers of a new training."""
        device, seed = pick_device(self.device), draw_seed(self.random_state)
        seeds = np.random.SeedSequence(seed).generate_state(2)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(seeds[0]))
            modules = self._modules(data.x.shape[1], data.private)
        family, is_stack = likelihood(self.likelihood), data.shape["record_shape_"] is not None
        kind = kind_of_scaling(self.scale, data.x, is_frame=data.is_frame, is_stack=is_stack, family=family)
        scaling_of(modules).learn(data.x, kind, family)
        modules = modules.to(device)
        generator = torch.Generator().manual_seed(int(seeds[1]))
        step = self._step(modules, data.private, generator)
        return Trained(modules, step, generator, Progress(seed=seed), device)

    def _copied(self, data: TrainingData) -> Trained:
        """The training so far, to go on with: a copy, so that a call that fails changes nothing."""
        self._require_same_networks(data.private)
        modules, progress = copy.deepcopy(self.modules_), copy.deepcopy(self.progress_)
        generator = torch.Generator()
        generator.set_state(self.generator_.get_state())
        states = {name: copy.deepcopy(one.state_dict()) for name, one in self.step_.optimisers.items()}
        step = self._renewed(modules, data.private, generator, states)
        before = self.fingerprint_, self.n_records_, self.marks_
        return Trained(modules, step, generator, progress, self.device_, *before)

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

    def _renewed(
        self,
        modules: nn.ModuleDict,
        private: PrivateAttributes | None,
        generator: torch.Generator,
        optimisers: dict[str, Any],
    ) -> Step:
        """The step that the settings ask for now; its optimisers go on from these states, at rates of now."""
        step = self._step(modules, private, generator)
        for name, one in step.optimisers.items():
            own = one.state_dict()["param_groups"]
            # With another classifier_steps the classifier changes its optimiser: both begin anew.
            if name in optimisers and _n_moved(optimisers[name]["param_groups"]) == _n_moved(own):
                one.load_state_dict({**optimisers[name], "param_groups": own})
        return step

    def _run(
        self,
        data: TrainingData,
        trained: Trained,
        epochs: int | None,
        checkpoint: Path | None = None,
        *,
        whole: bool,
    ) -> Trained:
        """Train on these records; `whole` says that no others follow."""
        # Of all calls of partial_fit in their order.
        trained.fingerprint = fingerprint_of([data.x, *data.targets], after=trained.fingerprint)
        trained.n_records += len(data.x)
        trained.marks = trained.marks and trained.marks.after(data.x.numpy())
        title = f"Training {type(self).__name__}"
        with (
            progress_bar(title, self.progress) as report,
            training_lock(None if checkpoint is None else checkpoint.parent),
        ):
            self._train(
                trained,
                trained.modules["scaling"](data.x.to(trained.device)),
                [target.to(trained.device) for target in data.targets],
                whole=whole,
                epochs=epochs,
                batch_size=int(self.batch_size),
                generator=trained.generator,
                progress=trained.progress,
                checkpoint=checkpoint,
                fingerprint=self._run_fingerprint(trained.fingerprint),
                report=saying_how_long(report, f"{title} on {len(data.x):,} records", self.progress),
            )
        return trained

    def _train(
        self,
        trained: Trained,
        x: Tensor,
        targets: list[Tensor],
        *,
        whole: bool,
        epochs: int | None,
        **options: Any,
    ) -> None:
        n_batches = math.ceil(len(x) / options["batch_size"])
        passes = max(LEAST_EPOCHS, math.ceil(N_STEPS / n_batches)) if epochs is None else int(epochs)
        train(trained.step, x, targets, epochs=passes, **options)

    def _take(self, trained: Trained, private: PrivateAttributes | None, shape: dict[str, Any]) -> None:
        """All that a training made, at once and at its end: before that, the estimator is as it was."""
        judged = () if trained.verdict is None else ("verdict", "budget")
        parts = [part.name for part in fields(trained) if part.name not in ("verdict", "budget")]
        fitted = {f"{name}_": getattr(trained, name) for name in (*parts, *judged)}
        progress = trained.progress
        fitted |= {"private_": private, "status_": progress.status, "seed_": progress.seed}
        self.__dict__.update(fitted | shape)
        for name in SHAPE:
            if name not in shape:  # names that the records of an earlier fit had
                self.__dict__.pop(name, None)

    def _notes(self, *, whole: bool) -> list[str]:
        """What the user should be warned of after training. Losses of parts of a training, or under settings
        that changed in between, are not to be compared."""
        if not self.status_.ok:
            return [self.status_.value]
        return ran_away(self.progress_.history) if whole else []

    def _warn(self, notes: Sequence[str]) -> None:
        for note in notes:
            told = ConvergenceWarning(f"{type(self).__name__}: {note}", names=_NAMED)
            warnings.warn(told, stacklevel=3)

    @property
    def history_(self) -> Any:
        """The means of every epoch as a frame: a column for each term of the objective.

        Information is in bits: `leakage` (Î(Z;Y)), `cross_entropy`, `divergence`, `prior_divergence`,
        `reconstruction` (−E log P(X|Z), of scaled records where they are scaled), and the games of DVPF.
        Objectives with a square have its `residual` R and the `constant` in it, in bits as well (that of
        `PublishedFunnel` is what grey pixels leave), and the
        `exchange_rate` βR/α: what a nat of reconstruction counts against one of code. It has no unit, nor
        have `epoch` and the columns that end in `loss`: what the optimisers lower, which may hold squares.
        """
        from ..frames import make_frame

        rows = self.progress_.history
        return make_frame({name: [row[name] for row in rows] for name in rows[0]} if rows else {"epoch": []})

    def _read_private(
        self, y: Any, private: Any, n: int, classes: Any, *, anew: bool
    ) -> tuple[Attribute, ...]:
        given = y if private is None else private
        if given is None and self.needs_private:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: fit needs the "
                "private attribute, as y or as private=.",
                names=("private",),
            )
        if not self.needs_private:
            return ()
        if anew:
            return read_attributes(given, n, numeric=tuple(self.numeric), classes=classes)
        return read_attributes(given, n, classes=classes, like=self.attributes_)

    @property
    def attributes_(self) -> tuple[Attribute, ...]:
        """The private attributes that it was fitted with: names, and classes or that they are numbers."""
        check_is_fitted(self)
        return () if self.private_ is None else self.private_.attributes

    def _codes(self, Z: Any) -> Tensor:
        check_is_fitted(self)
        table = check_array(from_tensor(Z), dtype=np.float32, input_name="Z")
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

    def _run_fingerprint(self, of_data: str) -> str:
        """Of data and settings: a checkpoint of another run must not be continued."""
        settings = {k: v for k, v in self.get_params(deep=False).items() if k not in FREE_TO_CHANGE}
        if not isinstance(self.random_state, (int, np.integer, type(None))):
            del settings["random_state"]  # a generator shows its address, not its state
        text = repr((type(self).__name__, sorted(settings.items()), of_data))
        return hashlib.sha256(text.encode()).hexdigest()


def _n_moved(groups: list[dict[str, Any]]) -> int:
    """How many parameters an optimiser moves."""
    return sum(len(group["params"]) for group in groups)
