"""The one training loop: batches, history, divergence, collapse, checkpoints.

Same seed, same machine, same result: batches and noise come from one generator whose state is part of every
checkpoint, so a run that was killed goes on as if nothing had happened.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import FileFormatError
from ..persistence import write_atomic
from .steps import Batch, Step


class TrainingStatus(Enum):
    """How training ended; the value is a sentence with the remedy."""

    FINISHED = "All epochs were run."
    COLLAPSED = (
        "All epochs were run, but the code hardly depends on the record: it is useless and tells nothing. "
        "Raise beta or lower alpha."
    )
    DIVERGED = (
        "The loss was no longer finite; the weights of the last good epoch are kept. "
        "Lower learning_rate, or raise alpha."
    )
    INTERRUPTED = "Interrupted by the caller; the weights of the last whole epoch are kept."

    @property
    def ok(self) -> bool:
        return self is TrainingStatus.FINISHED


# Mean divergence D[P(Z|x) ‖ r_Z] in nats below which a code says nothing about its record.
COLLAPSED_BELOW = 1e-2
EXPLODED_ABOVE = 1e8


@dataclass
class Progress:
    """Where a run is: epochs done, the mean of every term by epoch, and how it ended."""

    epoch: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    status: TrainingStatus = TrainingStatus.FINISHED


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
    """Run the epochs that `progress` lacks. Weights are updated in place."""
    n = len(x)
    n_batches = math.ceil(n / batch_size)
    good = _snapshot(step, generator)

    def fresh() -> Batch:
        rows = torch.randint(n, (min(batch_size, n),), generator=generator)
        return Batch(x[rows], [target[rows] for target in targets])

    try:
        for epoch in range(progress.epoch, epochs):
            order = torch.randperm(n, generator=generator)
            sums: dict[str, Tensor] = {}
            for k in range(n_batches):
                rows = order[k * batch_size : (k + 1) * batch_size]
                terms = step(Batch(x[rows], [target[rows] for target in targets]), fresh)
                for name, value in terms.items():
                    sums[name] = sums.get(name, torch.zeros(())) + value * (len(rows) / n)
                if report is not None and (k % 20 == 0 or k == n_batches - 1):
                    main = terms.get("encoder_loss", terms.get("loss"))
                    report(epoch * n_batches + k + 1, epochs * n_batches, f"loss {float(main):.4g}")  # type: ignore[arg-type]
            means = {name: float(value) for name, value in sums.items()}
            if not all(math.isfinite(value) and abs(value) < EXPLODED_ABOVE for value in means.values()):
                _restore(step, generator, good)
                progress.status = TrainingStatus.DIVERGED
                return progress
            progress.history.append({"epoch": epoch + 1, **means})
            progress.epoch = epoch + 1
            good = _snapshot(step, generator)
            if checkpoint is not None:
                save_checkpoint(checkpoint, good, progress, fingerprint)
    except KeyboardInterrupt:
        _restore(step, generator, good)
        progress.status = TrainingStatus.INTERRUPTED
        return progress
    collapsed = bool(progress.history) and progress.history[-1]["divergence"] < COLLAPSED_BELOW
    progress.status = TrainingStatus.COLLAPSED if collapsed else TrainingStatus.FINISHED
    return progress


def save_checkpoint(path: Path, tensors: dict[str, Tensor], progress: Progress, fingerprint: str) -> None:
    """Everything that the rest of a run depends on, in one safetensors file that appears whole."""
    from safetensors.torch import save

    metadata = {
        "format": "privacyfunnel-checkpoint",
        "version": "1",
        "fingerprint": fingerprint,
        "progress": json.dumps({"epoch": progress.epoch, "history": progress.history}),
    }
    write_atomic(path, save({name: tensor.contiguous() for name, tensor in tensors.items()}, metadata))


def resume(path: Path, step: Step, generator: torch.Generator, fingerprint: str) -> Progress:
    """Continue from a checkpoint of the same run; a fresh start where there is none."""
    if not path.exists():
        return Progress()
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError):
        raise FileFormatError(f"{path}: the checkpoint is damaged; delete it to start anew.") from None
    if metadata.get("format") != "privacyfunnel-checkpoint" or metadata.get("fingerprint") != fingerprint:
        raise FileFormatError(
            f"{path}: this checkpoint belongs to another run (other data or settings); "
            "use another folder or delete it."
        )
    _restore(step, generator, tensors)
    saved: dict[str, Any] = json.loads(metadata["progress"])
    return Progress(int(saved["epoch"]), saved["history"])


def _snapshot(step: Step, generator: torch.Generator) -> dict[str, Tensor]:
    tensors = {f"module.{name}": value.clone() for name, value in step.modules.state_dict().items()}
    for name, optimiser in step.optimisers.items():
        for i, state in optimiser.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"optimiser.{name}.{i}.{key}"] = torch.as_tensor(value).clone()
    tensors["generator"] = generator.get_state().clone()
    return tensors


def _restore(step: Step, generator: torch.Generator, tensors: dict[str, Tensor]) -> None:
    modules = {name.removeprefix("module."): t for name, t in tensors.items() if name.startswith("module.")}
    step.modules.load_state_dict(modules)
    for name, optimiser in step.optimisers.items():
        whole = optimiser.state_dict()
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in tensors.items():
            if key.startswith(f"optimiser.{name}."):
                i, slot = key.removeprefix(f"optimiser.{name}.").split(".")
                state.setdefault(int(i), {})[slot] = tensor.clone()
        optimiser.load_state_dict({"state": state, "param_groups": whole["param_groups"]})
    generator.set_state(tensors["generator"])
