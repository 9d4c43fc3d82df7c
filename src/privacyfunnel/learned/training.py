"""The one training loop: batches, history, divergence, collapse; and its checkpoints.

Same seed, same machine, same result: batches and noise come from one generator whose state is part of every
checkpoint, so a run that was killed goes on as if nothing had happened. A checkpoint is everything that the
rest of a run depends on, in one safetensors file that appears whole.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor

from ..errors import DataFileError, FileFormatError
from ..persistence import write_atomic
from .steps import Batch, Step

Tensors = dict[str, Tensor]

CHECKPOINT, VERSION = "privacyfunnel-checkpoint", "2"


class TrainingStatus(Enum):
    """How training ended; the value is a sentence with the remedy."""

    FINISHED = "All epochs were run."
    COLLAPSED = (
        "All epochs were run, but the code hardly depends on the record: it is useless and tells nothing. "
        "Raise beta or lower alpha."
    )
    DIVERGED = (
        "The loss was no longer finite, or the codes ran off; the weights of the last good epoch are kept, "
        "those of the beginning if there was none. Scale X, lower learning_rate, or raise alpha."
    )
    INTERRUPTED = "Interrupted by the caller; the weights of the last whole epoch are kept."

    @property
    def ok(self) -> bool:
        return self is TrainingStatus.FINISHED

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that these sentences speak of, as for errors."""
        return ("alpha", "beta", "learning_rate")


# Mean divergence D[P(Z|x) ‖ r_Z] in bits below which a code says nothing about its record.
COLLAPSED_BELOW = 0.015
EXPLODED_ABOVE = 1e8  # the same, for a code that ran off
LEAST_EPOCHS = 5  # with fewer, a loss that rises may be noise


@dataclass
class Progress:
    """Where a run is: epochs done, the mean of every term by epoch (information in bits), how it ended, and
    the seed it began with."""

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    status: TrainingStatus = TrainingStatus.FINISHED
    seed: int = 0

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint holds of it."""
        return {"epoch": self.epoch, "history": self.history, "seed": self.seed}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        self.epoch, self.history, self.seed = int(state["epoch"]), state["history"], int(state["seed"])


def train(
    step: Step,
    x: Tensor,
    targets: list[Tensor],
    *,
    epochs: int,
    batch_size: int,
    generator: torch.Generator,
    progress: Progress,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    report: Callable[[int, int, str], None] | None = None,
) -> Progress:
    """Run the epochs that `progress`, or a checkpoint of this run, lacks. Weights are updated in place."""
    n = len(x)
    n_batches = math.ceil(n / batch_size)
    if checkpoint is not None:
        resume(step, generator, progress, checkpoint, fingerprint)

    def keep() -> dict[str, Tensor]:
        return {**snapshot(step), "generator": generator.get_state()}

    def back() -> None:
        restore(step, good)
        generator.set_state(good["generator"])

    good = keep()

    def taken(rows: Tensor) -> Batch:
        # A third of the time of x[rows], which would also take an index from another device.
        rows = rows.to(x.device)
        return Batch(x.index_select(0, rows), [target.index_select(0, rows) for target in targets])

    def fresh() -> Batch:
        rows = torch.randint(n, (min(batch_size, n),), generator=generator)
        return taken(rows)

    try:
        for epoch in range(progress.epoch, epochs):
            order = torch.randperm(n, generator=generator)
            sums: Tensor | float = 0.0
            for k in range(n_batches):
                rows = order[k * batch_size : (k + 1) * batch_size]
                terms = step(taken(rows), fresh)
                sums = sums + torch.stack([*terms.values()]) * (len(rows) / n)
                if report is not None and (k % 20 == 0 or k == n_batches - 1):
                    report(epoch * n_batches + k + 1, epochs * n_batches, _text(terms))
            means = in_bits(dict(zip(terms, torch.as_tensor(sums).tolist(), strict=True)))
            if not all(map(math.isfinite, means.values())) or means["divergence"] > EXPLODED_ABOVE:
                back()
                progress.status = TrainingStatus.DIVERGED
                return progress
            progress.history.append({"epoch": epoch + 1, **means})
            progress.epoch = epoch + 1
            good = keep()
            if checkpoint is not None:
                write_checkpoint(checkpoint, good, progress.as_state(), fingerprint)
    except KeyboardInterrupt:
        back()
        progress.status = TrainingStatus.INTERRUPTED
        return progress
    collapsed = bool(progress.history) and progress.history[-1]["divergence"] < COLLAPSED_BELOW
    progress.status = TrainingStatus.COLLAPSED if collapsed else TrainingStatus.FINISHED
    return progress


def resume(
    step: Step, generator: torch.Generator, progress: Progress, checkpoint: Path, fingerprint: str
) -> None:
    """Continue from a checkpoint of the same run; a fresh start where there is none."""
    found = read_checkpoint(checkpoint, fingerprint)
    if found is not None:
        tensors, state = found
        restore(step, tensors)
        generator.set_state(tensors["generator"])
        progress.go_on_from(state)


def ran_away(history: list[dict[str, float]]) -> list[str]:
    """A note where the last epoch's loss is twice the lowest and half of the way down was lost again.

    But for what a constant inside a square makes of it: that is lost whatever the encoder does.
    """
    floors = [0.5 * (math.log(2) * max(row.get("constant", 0.0), 0.0)) ** 2 for row in history]
    losses = [
        row.get("encoder_loss", row.get("loss", 0.0)) - floor
        for row, floor in zip(history, floors, strict=True)
    ]
    if len(losses) < LEAST_EPOCHS:
        return []
    lowest = min(losses)
    lost = losses[-1] - lowest
    if lost <= abs(lowest) or lost <= 0.5 * (losses[0] - lowest):
        return []
    best = losses.index(lowest) + 1
    return [
        f"Training was not stable: the encoder's loss was {lowest:.3g} after epoch {best} and "
        f"{losses[-1]:.3g} at the end. Lower learning_rate; Funnel also has schedule='simultaneous'."
    ]


def in_bits(terms: Mapping[str, float]) -> dict[str, float]:
    """Information in bits; what an optimiser lowers, and rates of exchange, as they are."""
    plain = ("loss", "rate")
    return {name: value if name.endswith(plain) else value / math.log(2) for name, value in terms.items()}


def _text(terms: Mapping[str, Tensor]) -> str:
    """The losses of a batch, for a progress bar."""
    named = {name.replace("_", " "): float(value) for name, value in terms.items() if name.endswith("loss")}
    parts = [f"{name} {value:.4g}" for name, value in named.items()]
    if "leakage" in terms:
        parts.append(f"leakage {float(terms['leakage']) / math.log(2):.3f} bit")
    return ", ".join(parts)


def snapshot(step: Step) -> Tensors:
    """Weights and optimisers as they are now."""
    tensors = {f"module.{name}": value.clone() for name, value in step.modules.state_dict().items()}
    for name, optimiser in step.optimisers.items():
        for i, state in optimiser.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"optimiser.{name}.{i}.{key}"] = torch.as_tensor(value).clone()
    return tensors


def restore(step: Step, tensors: Mapping[str, Tensor]) -> None:
    """Weights and optimisers as they were at the snapshot."""
    step.modules.load_state_dict(without_prefix(tensors, "module."))
    for name, optimiser in step.optimisers.items():
        state: dict[int, Tensors] = {}
        for key, tensor in without_prefix(tensors, f"optimiser.{name}.").items():
            i, slot = key.split(".")
            state.setdefault(int(i), {})[slot] = tensor.clone()
        groups = optimiser.state_dict()["param_groups"]
        optimiser.load_state_dict({"state": state, "param_groups": groups})


def without_prefix(tensors: Mapping[str, Tensor], prefix: str) -> Tensors:
    """Those whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def write_checkpoint(path: Path, tensors: Tensors, state: Mapping[str, Any], fingerprint: str) -> None:
    """Replace the checkpoint; `state` is what JSON can hold of a run, `fingerprint` says which run it is."""
    from safetensors.torch import save

    metadata = {
        "format": CHECKPOINT,
        "version": VERSION,
        "fingerprint": fingerprint,
        "state": json.dumps(state),
    }
    write_atomic(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata))


def read_checkpoint(path: Path, fingerprint: str) -> tuple[Tensors, dict[str, Any]] | None:
    """Tensors and state of a checkpoint of this run; None where there is none yet."""
    if not path.exists():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError):
        raise FileFormatError(f"{path}: the checkpoint is damaged; delete it to start anew.") from None
    if metadata.get("format") != CHECKPOINT or metadata.get("version") != VERSION:
        raise FileFormatError(
            f"{path}: this checkpoint is not of this version of the library; delete it to start anew."
        )
    if metadata.get("fingerprint") != fingerprint:
        raise FileFormatError(
            f"{path}: this checkpoint belongs to another run (other data or settings); "
            "use another folder or delete it."
        )
    state: dict[str, Any] = json.loads(metadata["state"])
    return tensors, state


def encode_result(value: Any) -> Any:
    """A frozen dataclass of numbers, texts, enumerations, tuples and other such classes, as JSON."""
    if is_dataclass(value):
        return {name: encode_result(getattr(value, name)) for name in _saved_fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple):
        return [encode_result(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _saved_fields(kind: Any) -> list[str]:
    """All but those that matter only while the object is made."""
    return [part.name for part in fields(kind) if part.metadata.get("saved", True)]


def read_result(kind: Any, value: Any) -> Any:
    """The object of class `kind` that `encode_result` described; each field is checked for its type."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints, names = get_type_hints(kind), set(_saved_fields(kind))
        if not isinstance(value, dict) or value.keys() != names:
            raise FileFormatError(f"the {kind.__name__} has other fields than expected.")
        return kind(**{name: read_result(hints[name], value[name]) for name in names})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind[value]
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(read_result(get_args(kind)[0], part) for part in value)
    if kind is float and (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
        return float(value)
    if get_args(kind) and type(None) in get_args(kind):
        return None if value is None else read_result(get_args(kind)[0], value)
    if kind not in (int, str, bool) or type(value) is not kind:
        raise FileFormatError(f"{value!r} is not a {getattr(kind, '__name__', kind)}.")
    return value


@contextmanager
def training_lock(folder: Path | None) -> Iterator[None]:
    """One run at a time writes checkpoints into a folder: two would replace each other's.

    The lock ends with the process, however it ends. Without locks in the system, nobody is kept out.
    """
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "checkpoint.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataFileError(
            f"{folder}: checkpoints cannot be written here ({error.strerror or error}); choose another one."
        ) from None
    try:
        if locked(handle, wait=False) is False:
            raise DataFileError(
                f"{folder}: another run is training with checkpoints in this folder; wait for it, or give "
                "this one a folder of its own."
            )
        yield
    finally:
        os.close(handle)


def locked(handle: int, *, wait: bool) -> bool | None:
    """Whether the open file is ours alone now; None where the system or the disk has no such locks."""
    from filelock import lock_descriptor

    try:
        return lock_descriptor(handle, blocking=wait)
    except OSError:  # some network file systems have none
        return None
