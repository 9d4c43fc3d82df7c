"""New judges of an encoder: what adversaries find in new codes of some records, and what a code keeps.

One code of a record teaches little where its noise is large. Whoever owns the encoder draws as many codes of
its own records as it likes, and finds more: about digits 1.05 bit, where a network that saw one code of each
of the same 20,000 records found 0.75. So budget mode asks such a judge, a quick one at each audit and a
thorough one for its verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..auditing.adversaries import (
    Adversary,
    LeakageBound,
    RedrawingAdversary,
    logistic_regression,
    neural_network,
    strongest_bound,
    trees_for,
)
from ..auditing.adversaries.bounds import ONE_SIDED
from ..auditing.adversaries.redrawing import BATCH, LEARNING_RATE, MOST_EPOCHS
from .encoder import CHUNK
from .steps import AlternatingStep

# Codes that an adversary learns from at most, where it sees one of each record.
MOST_KNOWN = 10_000


@dataclass(frozen=True)
class Redrawing:
    """How long the judge that draws codes anew may learn, at most.

    Attributes
    ----------
    most_records : int
        That it draws codes of.
    epochs, steps : int
        So many epochs, or more where the records are so few that these make fewer steps; never more than
        `MOST_EPOCHS`.
    learning_rate : float
    """

    most_records: int
    epochs: int
    steps: int
    learning_rate: float

    def epochs_of(self, n: int) -> int:
        return min(max(self.epochs, math.ceil(self.steps / math.ceil(n / BATCH))), MOST_EPOCHS)


# About digits the quick one finds five sixths of what the thorough one does, in a ninth of the time.
QUICK = Redrawing(25_000, 8, 800, 3e-3)
THOROUGH = Redrawing(100_000, MOST_EPOCHS, 0, LEARNING_RATE)


def fresh_audit(
    step: AlternatingStep,
    x: Tensor,
    classes: NDArray[np.intp],
    known: NDArray[np.bool_],
    fresh: NDArray[np.bool_],
    noise: torch.Generator,
    seed: int,
    apart: NDArray[np.bool_] | None = None,
    z: float = ONE_SIDED,
    adversaries: Sequence[Adversary] | None = None,
    redrawing: Redrawing | None = None,
) -> tuple[LeakageBound, float]:
    """What new adversaries find in new codes of the `fresh` records: the bound with the highest upper end.

    Of trees, a network and a line, if none are named, and of one that draws codes anew, if it is asked.

    See `strongest_bound`, which it shares with the audit; the noise of the codes is new.
    """
    order = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    # In this order: each part takes its noise from one generator.
    judged = np.flatnonzero(fresh)
    parts = [order[:MOST_KNOWN], judged, *([] if apart is None else [np.flatnonzero(apart)])]
    pairs = [(release(step, x, some, noise).cpu().numpy(), classes[some]) for some in parts]
    if adversaries is None:
        adversaries = (trees_for(int(classes.max()) + 1, seed), neural_network(seed), logistic_regression())
    bounds = [strongest_bound(adversaries, *pairs, z=z)]
    if redrawing is not None:
        rows = order[: redrawing.most_records]
        bounds.append(_redrawn(step, x, classes, rows, judged, pairs[1][0], noise, seed, redrawing))
    worst = max(bounds, key=lambda bound: bound.upper_end(z))
    return worst, worst.upper_end(z)


def _redrawn(
    step: AlternatingStep,
    x: Tensor,
    classes: NDArray[np.intp],
    rows: NDArray[np.intp],
    judged: NDArray[np.intp],
    codes: NDArray[np.float32],
    noise: torch.Generator,
    seed: int,
    how: Redrawing,
) -> LeakageBound:
    """What one that draws codes of `rows` anew, and learns from those, finds in the `codes` of the judged."""
    everybody = np.concatenate([rows, judged])
    n = len(rows)
    loc, log_scale = encoded(step, x, everybody)
    once = draw(step, loc[:n], log_scale[:n], noise).cpu().numpy()
    judge = RedrawingAdversary(
        loc.cpu().numpy(),
        log_scale.cpu().numpy(),
        step.latent.name,
        seed,
        how.epochs_of(n),
        how.learning_rate,
    )
    return judge.bound(np.concatenate([once, codes]), classes[everybody], np.arange(len(everybody)) < n)


def encoded(step: AlternatingStep, x: Tensor, rows: NDArray[np.intp]) -> tuple[Tensor, Tensor]:
    """Location and log-scale of P(Z|x) of these records."""
    with torch.inference_mode():
        parts = [
            step.modules["encoder"](x[some]) for some in torch.from_numpy(rows).to(x.device).split(CHUNK)
        ]
    loc, log_scale = zip(*parts, strict=True)
    return torch.cat(loc), torch.cat(log_scale)


def release(step: AlternatingStep, x: Tensor, rows: NDArray[np.intp], noise: torch.Generator) -> Tensor:
    """New codes of these records."""
    return draw(step, *encoded(step, x, rows), noise)


def draw(step: AlternatingStep, loc: Tensor, log_scale: Tensor, noise: torch.Generator) -> Tensor:
    codes: Tensor = loc + log_scale.exp() * step.latent.noise(tuple(loc.shape), noise, loc.device)
    return codes


def explained_variance(
    step: AlternatingStep, x: Tensor, rows: NDArray[np.intp], mean: Tensor, noise: torch.Generator
) -> float:
    """Share of these records' squared distance from the mean record that their reconstruction removes."""
    records = x[torch.from_numpy(rows).to(x.device)]
    with torch.inference_mode():
        rebuilt = step.likelihood.mean(step.modules["decoder"](release(step, x, rows, noise)))
        left, whole = (rebuilt - records).square().mean(), (mean - records).square().mean()
    return 1 - float(left / whole) if whole > 0 else 0.0
