"""The verdict after a fit: what the code keeps and what it tells, on records kept from training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..auditing.adversaries import LeakageBound, fold_numbers, logistic_regression
from .budget import USELESS_BELOW
from .judges import explained_variance, fresh_audit
from .steps import AlternatingStep

# Records that a verdict needs, and more than which would not sharpen it.
LEAST_KEPT, MOST_KEPT = 40, 2000
# Share of H(Y) above which a code tells much.
MUCH = 0.5
# A classifier was outrun where adversaries find more than this share of H(Y), and this many times as much.
OUTRUN_SHARE, OUTRUN_TIMES = 0.1, 3.0


@dataclass(frozen=True)
class Guessed:
    """What the strongest of the adversaries tried makes of the codes for one private attribute.

    Attributes
    ----------
    name : str
    success, chance : float
        Share of the records whose class it guesses, and the share of the largest class.
    bits : float
        What it proves of I(Z;Y): a lower bound; others may find more.
    entropy : float
        H(Y) in bits.
    """

    name: str
    success: float
    chance: float
    bits: float
    entropy: float

    @classmethod
    def of(cls, name: str, bound: LeakageBound, nats: float) -> Guessed:
        """An adversary's success; one that guesses worse than the largest class would name that."""
        success = max(bound.success, bound.chance)
        return cls(name, success, bound.chance, bound.value, nats / math.log(2))

    @property
    def tells_much(self) -> bool:
        return self.bits > MUCH * self.entropy


@dataclass(frozen=True)
class Verdict:
    """What a fitted funnel keeps and tells. `str` is one plain sentence.

    Attributes
    ----------
    explained : float or None
        Share of the (scaled) variance of the records that their reconstruction from a code explains.
    guessed : tuple of Guessed
        By private attribute; numeric ones are not judged.
    n : int
        Records kept from training that it was measured on; 0 where nothing was measured.
    note : str
        What was not measured and why, or what else there is to say.
    by_line : tuple of Guessed
        Where no records were kept: what a new logistic regression makes of new codes of those trained on, for
        `outrun` alone, as training has seen them. Not saved.
    n_by_line : int
        Codes that it was judged on.
    """

    explained: float | None
    guessed: tuple[Guessed, ...]
    n: int
    note: str = ""
    by_line: tuple[Guessed, ...] = field(default=(), metadata={"saved": False})
    n_by_line: int = field(default=0, metadata={"saved": False})

    def __str__(self) -> str:
        if self.explained is None:
            return f"Not measured: {self.note}; audit the release on new records."
        parts = [f"Keeps {max(self.explained, 0):.0%} of the variance"]
        parts += [f"{one.name} guessed {one.success:.0%}, chance {one.chance:.0%}" for one in self.guessed]
        parts += [self.note] if self.note else []
        sentence = "; ".join(parts).replace("%", " %")
        return f"{sentence} (measured on {self.n:,} records kept from training)."

    def warnings(self) -> list[str]:
        """What the user should not overlook."""
        notes = []
        if self.explained is not None and self.explained < USELESS_BELOW:
            notes.append(
                f"{self} The code is nearly useless: it reconstructs records hardly better than the mean "
                "record would. Lower leakage_weight or alpha, or train for more epochs."
            )
        notes += [
            f"{self} The code tells much about {one.name}: at least {one.bits:.2f} of its {one.entropy:.2f} "
            "bit. Raise leakage_weight, or set max_leakage."
            for one in self.guessed
            if one.tells_much
        ]
        return notes

    def outrun(self, training: float) -> list[str]:
        """Attributes that fresh adversaries learn though training's classifier finds next to nothing.

        `training` is its Î(Z;Y) in bits. What few records may show by chance does not count.
        """
        guessed, n, of = self.guessed, self.n, "codes of records kept from training"
        if not n:
            guessed, n, of = self.by_line, self.n_by_line, "new codes of the records"
        if not n:
            return []
        chance = 1 / math.sqrt(n)
        return [
            f"Training's classifier was outrun: it finds {training:.2f} bit, where fresh adversaries find at "
            f"least {one.bits:.2f} bit of {one.name} in {of}. Use classifier='mlp', and more "
            "classifier_steps."
            for one in guessed
            if one.bits - chance > max(OUTRUN_SHARE * one.entropy, OUTRUN_TIMES * training)
        ]


def kept_apart(targets: Sequence[Tensor], n: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Records that are not trained on, a share of each class; none where they would be too few to judge."""
    n_kept = min(round(share * n), MOST_KEPT)
    kept = np.zeros(n, dtype=bool)
    if n_kept < LEAST_KEPT:
        return kept
    classes = [target for target in targets if not target.is_floating_point()]
    first = classes[0].cpu().numpy() if classes else np.zeros(n, dtype=np.intp)
    kept[fold_numbers(first, n // n_kept, seed) == 0] = True
    return kept


def judged(
    step: AlternatingStep,
    x: Tensor,
    targets: Sequence[Tensor],
    kept: NDArray[np.bool_],
    seed: int,
) -> Verdict:
    """Judge the networks by new codes of the kept records; adversaries learn from codes of the others."""
    noise = torch.Generator().manual_seed(seed)
    mean = x[torch.from_numpy(~kept).to(x.device)].mean(0)
    explained = explained_variance(step, x, np.flatnonzero(kept), mean, noise)
    private, guessed = step.private, []
    for column, target in zip(private.columns, targets, strict=True):
        if column.classes is not None:
            classes = target.cpu().numpy().astype(np.intp)
            bound, _ = fresh_audit(step, x, classes, ~kept, kept, noise, seed)
            guessed.append(Guessed.of(column.name, bound, column.entropy))
    numeric = [column.name for column in private.columns if column.classes is None]
    note = f"{', '.join(numeric)} not judged, because adversaries guess classes" if numeric else ""
    return Verdict(explained, tuple(guessed), int(kept.sum()), note)


def not_measured(reason: str) -> Verdict:
    return Verdict(None, (), 0, reason)


def by_line(step: AlternatingStep, x: Tensor, targets: Sequence[Tensor], seed: int, reason: str) -> Verdict:
    """No verdict, as no records were kept; but whether a line reads what training's classifier does not."""
    apart = kept_apart(targets, len(x), 0.5, seed)
    if not apart.any():
        return not_measured(reason)
    noise = torch.Generator().manual_seed(seed)
    guessed = []
    for column, target in zip(step.private.columns, targets, strict=True):
        if column.classes is not None:
            classes = target.cpu().numpy().astype(np.intp)
            bound, _ = fresh_audit(
                step, x, classes, ~apart, apart, noise, seed, adversaries=[logistic_regression()]
            )
            guessed.append(Guessed.of(column.name, bound, column.entropy))
    return Verdict(None, (), 0, reason, tuple(guessed), int(apart.sum()))
