"""The one training loop: batches, history, divergence, collapse, checkpoints.

Same seed, same machine, same result: batches and noise come from one generator whose state is part of every
checkpoint, so a run that was killed goes on as if nothing had happened.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .checkpoints import read_checkpoint, restore, snapshot, write_checkpoint
from .steps import Batch, Step


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
    """A note where the last epoch's loss is twice the lowest and half of the way down was lost again."""
    losses = [row.get("encoder_loss", row.get("loss", 0.0)) for row in history]
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
    """Information in bits; what an optimiser lowers as it is."""
    return {name: value if name.endswith("loss") else value / math.log(2) for name, value in terms.items()}


def _text(terms: Mapping[str, Tensor]) -> str:
    """The losses of a batch, for a progress bar."""
    named = {name.replace("_", " "): float(value) for name, value in terms.items() if name.endswith("loss")}
    parts = [f"{name} {value:.4g}" for name, value in named.items()]
    if "leakage" in terms:
        parts.append(f"leakage {float(terms['leakage']) / math.log(2):.3f} bit")
    return ", ".join(parts)
