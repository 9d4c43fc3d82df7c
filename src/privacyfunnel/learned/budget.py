"""Budget mode: what it reaches, and the rule that moves the weight of the leakage term. See budget_search.py.

Dual ascent moves the weight by what fresh adversaries find in the codes of records kept from training:

    log λ  ←  log λ + gain · log( upper end of the bound / target )

More λ can leak more, when the encoder fools the classifier instead of forgetting Y; a controller that only
raises λ would run away. When raising it does not help, training goes back to the least leaky weights and λ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ..audit.adversaries import LeakageBound

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
