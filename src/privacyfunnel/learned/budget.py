"""Budget mode: train with the weight of the leakage term steered by fresh adversaries.

The classifier inside training is no judge: its own Î(Z;Y) reads ten times too low, because the encoder learns
to fool it. So some records are kept from the networks, and every few hundred steps new adversaries (trees, a
line, a network, and one that draws codes anew) attack the codes of these records. Dual ascent moves the
weight by what they find:

    log λ  ←  log λ + gain · log( upper end of the bound / target )

More λ can leak more, when the encoder fools the classifier instead of forgetting Y; a controller that only
raises λ would run away. When raising it does not help, training goes back to the least leaky weights and λ.
Of the weights whose leakage was within the target, those with the best reconstruction are kept, if further
records that had no part in choosing them confirm it, before a judge that learns for longer and from more
records; else less useful, safer ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..auditing.adversaries import LeakageBound, fold_numbers
from ..auditing.adversaries.bounds import ONE_SIDED
from ..errors import InvalidInputError
from .judges import QUICK, THOROUGH, explained_variance, fresh_audit
from .networks import scaling_of
from .steps import AlternatingStep
from .training import (
    Progress,
    Tensors,
    TrainingStatus,
    encode_result,
    read_checkpoint,
    read_result,
    restore,
    snapshot,
    train,
    without_prefix,
    write_checkpoint,
)

# λ moves by at most a factor of LARGEST_MOVE at once, and between these multiples of its start.
LARGEST_MOVE = 2.0
LOWEST_FACTOR, HIGHEST_FACTOR = 1e-3, 1e3
# Rises without a lower bound to show for it before the controller goes back.
PATIENCE = 3
LEAST_GAIN = 0.125
# Audits over which the code must have kept more for training to go on, and by what share of what there is to
# keep; and audits before anything is decided.
STALLED_AFTER, LEAST_GROWTH, LEAST_AUDITS = 5, 0.01, 8
# Share of the records' variance that a reconstruction must explain for the code to be of use.
USELESS_BELOW = 0.05
# Of every ten records: seven train the networks, three are kept for audits, half of them for the last one.
PARTS = 20
AUDITED, CONFIRMING = (0, 1, 2), (3, 4, 5)
LEAST_RECORDS = 400
# Steps between audits, at least; more where there would be over 16 audits, fewer where less than 8.
STEPS_BETWEEN_AUDITS = 200
MOST_AUDITS = 40  # where the number of epochs is open
# Share of the target that the controller steers to: the verdict, on other records, has an error of its own,
# and its judge, which learns for longer, finds about a fifth more.
AIM = 0.8
# Standard errors of a verdict's upper end: further ones on the same records have to be clearer (97.5 %,
# 98.3 %).
VERDICTS = (ONE_SIDED, 1.96, 2.13)


class BudgetStatus(Enum):
    """How budget mode ended; the value is a sentence with the remedy."""

    MET = "The leakage that fresh adversaries find on records kept from training is within the budget."
    MET_BUT_USELESS = (
        "The leakage is within the budget, but the code is nearly useless: it reconstructs records hardly "
        "better than the mean record would. Raise beta, max_leakage or epochs, or lower alpha."
    )
    NOT_CONFIRMED = (
        "The budget was met while training, but not on the records kept for the verdict. "
        "Use more records, a larger max_leakage or more epochs."
    )
    NOT_MET = (
        "The leakage was never within the budget; the least leaky weights are kept. "
        "Raise max_leakage, epochs or alpha, or lower beta."
    )
    AT_CAP = (
        "The weight of the leakage term reached its cap and the leakage was still above the budget; the "
        "least leaky weights are kept. Raise max_leakage or alpha, or lower beta."
    )

    @property
    def ok(self) -> bool:
        return self is BudgetStatus.MET

    @property
    def names(self) -> tuple[str, ...]:
        """The settings that these sentences speak of, as for errors."""
        return ("alpha", "beta", "max_leakage", "epochs")


@dataclass(frozen=True)
class Audit:
    """One audit during training.

    Attributes
    ----------
    epoch : int
    leakage_weight : float
        λ in the epochs before it.
    bound : LeakageBound
        Of the adversary with the highest upper end.
    upper : float
        That end in bits, or what training's own classifier finds, if that is more.
    training : float
        Î(Z;Y) of training's classifier in bits, the mean over the last epoch.
    reconstruction : float
        −E log P(X|Z) in bits, likewise.
    accepted : bool
    """

    epoch: int
    leakage_weight: float
    bound: LeakageBound
    upper: float
    training: float
    reconstruction: float
    accepted: bool

    def as_good_as(self, other: Audit) -> bool:
        """In both respects."""
        return self.reconstruction <= other.reconstruction and self.upper <= other.upper


def stalled(trace: Sequence[Audit], whole: float) -> bool:
    """Whether the best accepted code keeps no more than one some audits ago; `whole` bits could be kept."""
    before, after = (
        min((audit.reconstruction for audit in part if audit.accepted), default=math.inf)
        for part in (trace[:-STALLED_AFTER], trace)
    )
    return len(trace) >= LEAST_AUDITS and before - after < LEAST_GROWTH * whole


@dataclass(frozen=True)
class Budget:
    """What budget mode reached.

    Attributes
    ----------
    target : float
        `max_leakage`, in bits.
    bound : LeakageBound
        What the strongest of the fresh adversaries finds in the kept weights' codes, on records that neither
        trained the networks nor chose the weights. A lower bound on I(Z;Y): others may find more.
    upper : float
        Its upper end in bits, with sampling error (one-sided 95 %), or what training's own classifier found
        with these weights, if that is more.
    accepted : bool
        Whether the upper end is within the target.
    explained : float
        Share of the variance of the same records that their reconstruction explains, an estimate: 0 is no
        better than the mean record.
    status : BudgetStatus
    leakage_weight : float
        λ of the kept weights.
    trace : tuple of Audit
    """

    target: float
    bound: LeakageBound
    upper: float
    accepted: bool
    explained: float
    status: BudgetStatus
    leakage_weight: float
    trace: tuple[Audit, ...]

    @property
    def used(self) -> float:
        """Share of the target that the upper end takes up."""
        return max(self.upper, 0.0) / self.target

    @property
    def note(self) -> str:
        """The same in words."""
        return f"{self.used:.0%} of the budget of {self.target:g} bit used"


@dataclass
class Controller:
    """Multiplicative dual ascent on λ = start · factor that goes back when raising λ does not help.

    Attributes
    ----------
    target : float
        Bits.
    start, factor : float
    gain : float
        The power of each move.
    reached_cap : bool
        Whether λ was at its highest while the leakage was still above the target.
    rises : int
        Rises in a row that did not lower the leakage.
    raised : bool
        Whether the last move was one.
    previous, least, best_factor : float
        The upper end of the audit before, the least one so far, and where that was.
    """

    target: float
    start: float
    factor: float = 1.0
    gain: float = 1.0
    reached_cap: bool = False
    rises: int = 0
    raised: bool = False
    previous: float = math.inf
    least: float = math.inf
    best_factor: float = 1.0

    @property
    def weight(self) -> float:
        """λ."""
        return self.start * self.factor

    def update(self, upper: float) -> bool:
        """Take the upper end of an audit and move λ; whether to go back to the least leaky weights."""
        if upper < self.least:
            self.least, self.best_factor = upper, self.factor
        above = upper > self.target
        self.rises = self.rises + 1 if above and self.raised and upper >= self.previous else 0
        self.previous = upper
        at_cap = above and self.factor >= HIGHEST_FACTOR
        self.reached_cap |= at_cap
        if at_cap or self.rises >= PATIENCE:
            self.factor, self.rises, self.raised = self.best_factor, 0, False
            self.gain = max(self.gain / 2, LEAST_GAIN)
            return True
        move = min(max(max(upper, 0.0) / self.target, 1 / LARGEST_MOVE), LARGEST_MOVE)
        self.factor = min(max(self.factor * move**self.gain, LOWEST_FACTOR), HIGHEST_FACTOR)
        self.raised = above
        return False


@dataclass(eq=False)
class _Saved:
    """Weights and optimisers as they were at an audit."""

    audit: Audit
    status: TrainingStatus
    tensors: Tensors

    def restore(self, step: AlternatingStep) -> None:
        restore(step, self.tensors)
        set_leakage_weight(step, self.audit.leakage_weight)


@dataclass(eq=False)
class _Search:
    """How far the search for the weight is: all that its rest depends on besides the networks."""

    controller: Controller
    trace: list[Audit] = field(default_factory=list)
    least: _Saved | None = None
    within: list[_Saved] = field(
        default_factory=list
    )  # the target; none better than another in both respects

    def take(self, step: AlternatingStep, audit: Audit, status: TrainingStatus) -> None:
        """Note an audit of the networks, move λ, and go back where it did not help."""
        self.trace.append(audit)
        saved = _Saved(audit, status, snapshot(step))
        if self.least is None or audit.upper < self.least.audit.upper:
            self.least = saved
        if audit.accepted and not any(other.audit.as_good_as(audit) for other in self.within):
            self.within = [other for other in self.within if not audit.as_good_as(other.audit)] + [saved]
        if self.controller.update(audit.upper):
            self.least.restore(step)
        set_leakage_weight(step, self.controller.weight)

    def write(
        self, path: Path, fingerprint: str, step: AlternatingStep, progress: Progress, draws: Tensors
    ) -> None:
        kept = list(dict.fromkeys([*self.within, *([] if self.least is None else [self.least])]))
        tensors = {f"now.{name}": tensor for name, tensor in snapshot(step).items()} | draws
        for i, saved in enumerate(kept):
            tensors |= {f"saved.{i}.{name}": tensor for name, tensor in saved.tensors.items()}
        state = {
            **progress.as_state(),
            "controller": encode_result(self.controller),
            "trace": [encode_result(audit) for audit in self.trace],
            "saved": [[self.trace.index(saved.audit), saved.status.name] for saved in kept],
            "within": len(self.within),
            "least": None if self.least is None else kept.index(self.least),
        }
        write_checkpoint(path, tensors, state, fingerprint)

    def resume(self, path: Path, fingerprint: str, step: AlternatingStep, progress: Progress) -> Tensors:
        """Go on from a checkpoint of this run, if there is one; the states of the generators in it."""
        found = read_checkpoint(path, fingerprint)
        if found is None:
            return {}
        tensors, state = found
        restore(step, without_prefix(tensors, "now."))
        progress.go_on_from(state)
        self.controller = read_result(Controller, state["controller"])
        self.trace = [read_result(Audit, audit) for audit in state["trace"]]
        kept = [
            _Saved(self.trace[at], TrainingStatus[status], without_prefix(tensors, f"saved.{i}."))
            for i, (at, status) in enumerate(state["saved"])
        ]
        self.within = kept[: state["within"]]
        self.least = None if state["least"] is None else kept[state["least"]]
        set_leakage_weight(step, self.controller.weight)
        return tensors


def train_within_budget(
    step: AlternatingStep,
    x: Tensor,
    targets: list[Tensor],
    *,
    max_leakage: float,
    epochs: int | None,
    batch_size: int,
    generator: torch.Generator,
    progress: Progress,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    report: Callable[[int, int, str], None] | None = None,
) -> Budget:
    """Train like `train`, on seven tenths of the records, with λ steered towards `max_leakage` bits.

    Without a number of epochs, until codes within the target keep no more of the records than before.

    Checkpoints are written at audits: a run that was killed goes on from the last one to the same bits.
    """
    classes = _check(step, targets)
    search = _Search(Controller(AIM * max_leakage, step.weights.leakage_weight))
    states = {} if checkpoint is None else search.resume(checkpoint, fingerprint, step, progress)
    if states:
        generator.set_state(states["generator"])
    # After that: the records that a resumed run keeps apart must be the same, whatever its own seed was.
    seed = generator.initial_seed() % 2**31
    noise = torch.Generator().manual_seed(seed)
    if states:
        noise.set_state(states["noise"])
    part = fold_numbers(classes, PARTS, seed)
    audited, confirming = np.isin(part, AUDITED), np.isin(part, CONFIRMING)
    learning = ~(audited | confirming)
    rows = torch.from_numpy(np.flatnonzero(learning)).to(x.device)
    x_train, targets_train = x[rows], [target[rows] for target in targets]
    n_batches = -(-len(x_train) // batch_size)
    goes_on = epochs is None
    if epochs is None:
        epochs_between = -(-STEPS_BETWEEN_AUDITS // n_batches)
        epochs = MOST_AUDITS * epochs_between
    else:
        epochs_between = max(1, min(max(-(-STEPS_BETWEEN_AUDITS // n_batches), epochs // 16), epochs // 8))
    whole = float(scaling_of(step.modules).null_loss) / math.log(2)
    while progress.epoch < epochs and not (goes_on and stalled(search.trace, whole)):
        train(
            step,
            x_train,
            targets_train,
            epochs=min(epochs, progress.epoch + epochs_between),
            batch_size=batch_size,
            generator=generator,
            progress=progress,
            report=_overall(report, epochs * n_batches),
        )
        if progress.status in (TrainingStatus.DIVERGED, TrainingStatus.INTERRUPTED):
            break
        bound, upper = fresh_audit(
            step, x, classes, learning, audited, noise, seed + len(search.trace), redrawing=QUICK
        )
        # A judge of few records finds less than the classifier, which has learned since the beginning.
        training = progress.history[-1]["leakage"]
        upper = max(upper, training)
        weight, reconstruction = step.weights.leakage_weight, progress.history[-1]["reconstruction"]
        audit = Audit(progress.epoch, weight, bound, upper, training, reconstruction, upper <= max_leakage)
        search.take(step, audit, progress.status)
        if checkpoint is not None:
            draws = {"generator": generator.get_state(), "noise": noise.get_state()}
            search.write(checkpoint, fingerprint, step, progress, draws)
    kept, bound, upper = _choose(
        search,
        step,
        lambda z: fresh_audit(
            step, x, classes, ~confirming, confirming, noise, seed, audited, z, redrawing=THOROUGH
        ),
        max_leakage,
    )
    if kept is not None and progress.status in (TrainingStatus.FINISHED, TrainingStatus.COLLAPSED):
        progress.status = kept.status
    explained = explained_variance(step, x, np.flatnonzero(confirming), x_train.mean(0), noise)
    accepted = upper <= max_leakage
    if accepted:
        status = BudgetStatus.MET if explained >= USELESS_BELOW else BudgetStatus.MET_BUT_USELESS
    elif search.within:
        status = BudgetStatus.NOT_CONFIRMED
    else:
        status = BudgetStatus.AT_CAP if search.controller.reached_cap else BudgetStatus.NOT_MET
    weight = step.weights.leakage_weight
    return Budget(max_leakage, bound, upper, accepted, explained, status, weight, tuple(search.trace))


def set_leakage_weight(step: AlternatingStep, weight: float) -> None:
    step.weights = replace(step.weights, leakage_weight=weight)


def _choose(
    search: _Search,
    step: AlternatingStep,
    audit: Callable[[float], tuple[LeakageBound, float]],
    target: float,
) -> tuple[_Saved | None, LeakageBound, float]:
    """Restore the first candidate that an audit clears, else the last; its bound and upper end.

    The first is the one that keeps most. The judge of the verdict may find more than those while training
    did: next is the one that keeps most where as many times more would be within the target, at last the
    safest.
    """
    left = sorted(search.within, key=lambda saved: saved.audit.reconstruction)
    # Nothing was audited when training was stopped at once: the verdict is about the weights as they are.
    saved = left[0] if left else search.least
    for attempt, z in enumerate(VERDICTS):
        if saved is not None:
            saved.restore(step)
        bound, upper = audit(z)
        upper = upper if saved is None else max(upper, saved.audit.training)
        left = left[1 + left.index(saved) :] if saved in left else []
        if upper <= target or saved is None or not left:
            break
        likely = [one for one in left if upper * one.audit.upper <= target * saved.audit.upper]
        saved = left[-1] if attempt + 2 == len(VERDICTS) or not likely else likely[0]
    return saved, bound, upper


def _overall(
    report: Callable[[int, int, str], None] | None, total: int
) -> Callable[[int, int, str], None] | None:
    """Rounds of a few epochs, reported as parts of the whole run."""
    if report is None:
        return None
    return lambda done, _, text: report(done, total, text)


def _check(step: AlternatingStep, targets: list[Tensor]) -> NDArray[np.intp]:
    """The private attributes together as one class number a record, after a look at the arguments."""
    if step.weights.leakage_weight <= 0:
        raise InvalidInputError(
            "max_leakage needs a leakage_weight above 0 to start from; "
            f"it is {step.weights.leakage_weight:g}.",
            names=("max_leakage", "leakage_weight"),
        )
    numeric = [column.name for column in step.private.columns if column.classes is None]
    if numeric:
        raise InvalidInputError(
            f"max_leakage needs private attributes with classes, because its adversaries guess classes; "
            f"{numeric[0]} is numeric. Put its values into a few bins, such as its quartiles.",
            names=("max_leakage",),
        )
    table = np.column_stack([target.cpu().numpy() for target in targets])
    classes: NDArray[np.intp] = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    least = int(np.bincount(classes).min())
    if len(classes) < LEAST_RECORDS or least < PARTS:
        raise InvalidInputError(
            f"max_leakage needs at least {LEAST_RECORDS} records, and {PARTS} of each private class, to keep "
            f"some for audits; there are {len(classes)}, and {least} of the rarest class. Use more records, "
            "or set leakage_weight by hand.",
            names=("max_leakage", "leakage_weight"),
        )
    return classes
