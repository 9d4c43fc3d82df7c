"""Budget mode: find the weight of the leakage term that keeps what a fresh adversary finds under a target.

The classifier inside training is no judge: its own Î(Z;Y) reads ten times too low, because the encoder learns
to fool it. So some records are kept from the networks, and every few hundred steps new adversaries (trees, a
network, a line) attack the codes of these records; dual ascent moves the weight by what they find:

    log λ  ←  log λ + gain · log( upper end of the bound / target )

More λ can leak more, when the encoder fools the classifier instead of forgetting Y; a controller that only
raises λ would run away. When raising it does not help, training goes back to the least leaky weights and λ.
Of the weights whose leakage was within the target, those with the best reconstruction are kept, if further
records that had no part in choosing them confirm it; else less useful, safer ones.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..audit.adversaries import (
    LeakageBound,
    boosted_trees,
    cross_fitted_bound,
    fold_numbers,
    leakage_lower_bound,
    logistic_regression,
    neural_network,
)
from ..errors import ConvergenceWarning, InvalidInputError
from .private import PrivateAttributes
from .steps import AlternatingStep
from .training import Progress, TrainingStatus, train

# Of every ten records: seven train the networks, three are kept for audits, half of them for the last one.
PARTS = 20
AUDITED, CONFIRMING = (0, 1, 2), (3, 4, 5)
LEAST_RECORDS = 400
# Steps between audits, at least; more where there would be over 16 audits, fewer where less than 8.
STEPS_BETWEEN_AUDITS = 200
# λ moves by at most a factor of LARGEST_MOVE at once, and between these multiples of its start.
LARGEST_MOVE = 2.0
LOWEST_FACTOR, HIGHEST_FACTOR = 1e-3, 1e3
# Share of the target that the controller steers to: the verdict, on other records, has an error of its own.
AIM = 0.8
# Rises without a lower bound to show for it before the controller goes back.
PATIENCE = 3
LEAST_GAIN = 0.125
# Codes that an adversary learns from at most; fresh records that are enough to learn from alone.
MOST_KNOWN, MANY_FRESH = 10_000, 1_500
# Standard errors of a one-sided 95 % end; further verdicts on the same records have to be clearer
# (97.5 %, 98.3 %).
ONE_SIDED = 1.64
VERDICTS = (ONE_SIDED, 1.96, 2.13)


class BudgetStatus(Enum):
    """How budget mode ended; the value is a sentence with the remedy."""

    MET = "The leakage that fresh adversaries find on records kept from training is within the budget."
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
        That end, in bits.
    reconstruction : float
        −E log P(X|Z) in nats, the mean over the last epoch.
    accepted : bool
    """

    epoch: int
    leakage_weight: float
    bound: LeakageBound
    upper: float
    reconstruction: float
    accepted: bool


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
        Its upper end in bits, with sampling error (one-sided 95 %).
    accepted : bool
        Whether the upper end is within the target.
    status : BudgetStatus
    leakage_weight : float
        λ of the kept weights.
    trace : tuple of Audit
    """

    target: float
    bound: LeakageBound
    upper: float
    accepted: bool
    status: BudgetStatus
    leakage_weight: float
    trace: tuple[Audit, ...]


@dataclass(eq=False)
class _Saved:
    """Weights and optimisers as they were at an audit."""

    audit: Audit
    status: TrainingStatus
    modules: dict[str, Any]
    optimisers: dict[str, Any]

    @classmethod
    def of(cls, step: AlternatingStep, audit: Audit, status: TrainingStatus) -> _Saved:
        states = {name: copy.deepcopy(opt.state_dict()) for name, opt in step.optimisers.items()}
        return cls(audit, status, copy.deepcopy(step.modules.state_dict()), states)

    def restore(self, step: AlternatingStep) -> None:
        step.modules.load_state_dict(self.modules)
        for name, state in self.optimisers.items():
            step.optimisers[name].load_state_dict(copy.deepcopy(state))
        set_leakage_weight(step, self.audit.leakage_weight)


class Controller:
    """Multiplicative dual ascent on λ that goes back when raising λ does not help.

    Parameters
    ----------
    target : float
        Bits.
    start : float
        The first λ.
    """

    def __init__(self, target: float, start: float) -> None:
        self.target, self.weight = target, start
        self.lowest, self.highest = start * LOWEST_FACTOR, start * HIGHEST_FACTOR
        self.gain = 1.0
        self.reached_cap = False
        self._rises = 0  # in a row that did not lower the leakage
        self._raised = False
        self._previous = np.inf
        self._least = np.inf
        self._best_weight = start

    def update(self, upper: float) -> bool:
        """Take the upper end of an audit and move λ; whether to go back to the least leaky weights."""
        if upper < self._least:
            self._least, self._best_weight = upper, self.weight
        above = upper > self.target
        self._rises = self._rises + 1 if above and self._raised and upper >= self._previous else 0
        self._previous = upper
        at_cap = above and self.weight >= self.highest
        self.reached_cap |= at_cap
        if at_cap or self._rises >= PATIENCE:
            self.weight, self._rises, self._raised = self._best_weight, 0, False
            self.gain = max(self.gain / 2, LEAST_GAIN)
            return True
        move = min(max(max(upper, 0.0) / self.target, 1 / LARGEST_MOVE), LARGEST_MOVE)
        self.weight = min(max(self.weight * move**self.gain, self.lowest), self.highest)
        self._raised = above
        return False


def train_within_budget(
    step: AlternatingStep,
    x: Tensor,
    targets: list[Tensor],
    *,
    max_leakage: float,
    private: PrivateAttributes,
    epochs: int,
    batch_size: int,
    generator: torch.Generator,
    progress: Progress,
    checkpoint: Path | None = None,
    fingerprint: str = "",
    report: Callable[[int, int, str], None] | None = None,
) -> Budget:
    """Train like `train`, on seven tenths of the records, with λ steered towards `max_leakage` bits.

    Issues a ConvergenceWarning and says so in the status where the budget could not be met.
    """
    classes = _check(max_leakage, step, private, targets, checkpoint)
    seed = generator.initial_seed() % 2**31
    part = fold_numbers(classes, PARTS, seed)
    audited, confirming = np.isin(part, AUDITED), np.isin(part, CONFIRMING)
    learning = ~(audited | confirming)
    rows = torch.from_numpy(np.flatnonzero(learning)).to(x.device)
    x_train, targets_train = x[rows], [target[rows] for target in targets]
    n_batches = -(-len(x_train) // batch_size)
    epochs_between = max(1, min(max(-(-STEPS_BETWEEN_AUDITS // n_batches), epochs // 16), epochs // 8))
    noise = torch.Generator().manual_seed(seed)
    controller = Controller(AIM * max_leakage, step.weights.leakage_weight)
    trace: list[Audit] = []
    least: _Saved | None = None
    within: list[_Saved] = []  # the target; none of them better than another in both respects
    while progress.epoch < epochs:
        until = min(epochs, progress.epoch + epochs_between)
        train(
            step,
            x_train,
            targets_train,
            epochs=until,
            batch_size=batch_size,
            generator=generator,
            progress=progress,
            fingerprint=fingerprint,
            report=_overall(report, epochs, n_batches),
        )
        if progress.status in (TrainingStatus.DIVERGED, TrainingStatus.INTERRUPTED):
            break
        bound, upper = _fresh_audit(step, x, classes, learning, audited, noise, seed + len(trace))
        audit = Audit(
            progress.epoch,
            step.weights.leakage_weight,
            bound,
            upper,
            progress.history[-1]["reconstruction"],
            upper <= max_leakage,
        )
        trace.append(audit)
        saved = _Saved.of(step, audit, progress.status)
        if least is None or upper < least.audit.upper:
            least = saved
        if audit.accepted and not any(_as_good(other.audit, audit) for other in within):
            within = [other for other in within if not _as_good(audit, other.audit)] + [saved]
        if controller.update(upper):
            least.restore(step)
        set_leakage_weight(step, controller.weight)
    # Nothing was audited when training was stopped at once: the verdict is about the weights as they are.
    candidates: Sequence[_Saved | None] = _spread(within) or [least]
    kept, bound, upper = _choose(
        candidates,
        step,
        lambda z: _fresh_audit(step, x, classes, ~confirming, confirming, noise, seed, audited, z),
        max_leakage,
    )
    if kept is not None and progress.status is TrainingStatus.COLLAPSED:
        progress.status = kept.status
    accepted = upper <= max_leakage
    if accepted:
        status = BudgetStatus.MET
    elif within:
        status = BudgetStatus.NOT_CONFIRMED
    else:
        status = BudgetStatus.AT_CAP if controller.reached_cap else BudgetStatus.NOT_MET
    if not status.ok:
        warnings.warn(
            f"max_leakage={max_leakage:g} bit: at least {bound.value:.3g} bit found, upper end {upper:.3g}. "
            f"{status.value}",
            ConvergenceWarning,
            stacklevel=5,
        )
    return Budget(max_leakage, bound, upper, accepted, status, step.weights.leakage_weight, tuple(trace))


def set_leakage_weight(step: AlternatingStep, weight: float) -> None:
    step.weights = replace(step.weights, leakage_weight=weight)


def _as_good(one: Audit, other: Audit) -> bool:
    return one.reconstruction <= other.reconstruction and one.upper <= other.upper


def _spread(within: list[_Saved]) -> list[_Saved]:
    """As many as there are verdicts, from the best reconstruction to the least leakage."""
    ordered = sorted(within, key=lambda saved: saved.audit.reconstruction)
    n = min(len(ordered), len(VERDICTS))
    return [ordered[round(i)] for i in np.linspace(0, len(ordered) - 1, n)]


def _choose(
    candidates: Sequence[_Saved | None],
    step: AlternatingStep,
    audit: Callable[[float], tuple[LeakageBound, float]],
    target: float,
) -> tuple[_Saved | None, LeakageBound, float]:
    """Restore the first candidate that an audit clears, else the last; its bound and upper end."""
    for attempt, saved in enumerate(candidates):
        if saved is not None:
            saved.restore(step)
        bound, upper = audit(VERDICTS[attempt])
        if upper <= target or saved is candidates[-1]:
            break
    return saved, bound, upper


def _fresh_audit(
    step: AlternatingStep,
    x: Tensor,
    classes: NDArray[np.intp],
    known: NDArray[np.bool_],
    fresh: NDArray[np.bool_],
    noise: torch.Generator,
    seed: int,
    apart: NDArray[np.bool_] | None = None,
    z: float = ONE_SIDED,
) -> tuple[LeakageBound, float]:
    """What new adversaries find in new codes of the `fresh` records: the bound with the highest upper end.

    They learn from the codes of the `known` records, the networks' own among them: a few hundred records
    alone teach so little that an adversary finds a tenth of what is there. Where the fresh records are many,
    others learn from records like these alone, because codes of those that trained the encoder tell less:
    from `apart` where it is given, else by cross-fitting.
    """
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(known))[:MOST_KNOWN]
    codes, codes_fresh = _release(step, x, rows, noise), _release(step, x, np.flatnonzero(fresh), noise)
    held = codes_fresh, classes[fresh]
    codes_apart = None if apart is None else _release(step, x, np.flatnonzero(apart), noise)
    bounds = []
    for one in (boosted_trees(seed), neural_network(seed), logistic_regression()):
        bounds.append(leakage_lower_bound(one, codes, classes[rows], *held, n_folds=2))
        if len(codes_fresh) < MANY_FRESH:
            continue
        if codes_apart is None:
            bounds.append(cross_fitted_bound(one, *held, n_folds=2))
        else:
            bounds.append(leakage_lower_bound(one, codes_apart, classes[apart], *held, n_folds=2))
    worst = max(bounds, key=lambda bound: bound.upper_end(z))
    return worst, worst.upper_end(z)


def _release(
    step: AlternatingStep, x: Tensor, rows: NDArray[np.intp], noise: torch.Generator
) -> NDArray[np.float32]:
    with torch.inference_mode():
        loc, log_scale = step.modules["encoder"](x[torch.from_numpy(rows).to(x.device)])
        draws = step.latent.noise(tuple(loc.shape), noise, torch.device("cpu")).to(loc.device)
        codes: NDArray[np.float32] = (loc + log_scale.exp() * draws).cpu().numpy()
    return codes


def _overall(
    report: Callable[[int, int, str], None] | None, epochs: int, n_batches: int
) -> Callable[[int, int, str], None] | None:
    """Rounds of a few epochs, reported as parts of the whole run."""
    if report is None:
        return None
    return lambda done, total, text: report(done, epochs * n_batches, text)


def _check(
    max_leakage: float,
    step: AlternatingStep,
    private: PrivateAttributes,
    targets: list[Tensor],
    checkpoint: Path | None,
) -> NDArray[np.intp]:
    """The private attributes together as one class number a record, after a look at the arguments."""
    if not (np.isfinite(max_leakage) and max_leakage > 0):
        raise InvalidInputError(f"max_leakage must be a positive number of bits; it is {max_leakage}.")
    if step.weights.leakage_weight <= 0:
        raise InvalidInputError(
            "max_leakage needs a leakage_weight above 0 to start from; "
            f"it is {step.weights.leakage_weight:g}."
        )
    if checkpoint is not None:
        raise InvalidInputError(
            "max_leakage and checkpoint cannot be used together: a checkpoint does not hold the state of the "
            "search for the weight. Leave one of them out."
        )
    numeric = [column.name for column in private.columns if column.classes is None]
    if numeric:
        raise InvalidInputError(
            f"max_leakage needs private attributes with classes; {numeric[0]} is numeric. Put its values "
            "into a few bins."
        )
    table = np.column_stack([target.cpu().numpy() for target in targets])
    classes: NDArray[np.intp] = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    least = int(np.bincount(classes).min())
    if len(classes) < LEAST_RECORDS or least < PARTS:
        raise InvalidInputError(
            f"max_leakage needs at least {LEAST_RECORDS} records, and {PARTS} of each private class, to keep "
            f"some for audits; there are {len(classes)}, and {least} of the rarest class. Use more records, "
            "or set leakage_weight by hand."
        )
    return classes
