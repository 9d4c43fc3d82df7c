"""Solution and Status: what every solver of the known-distribution funnel returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .errors import NotConvergedError
from .information import utility_and_leakage
from .joint import Joint
from .mechanism import TableMechanism
from .uncertainty import (
    LEVEL,
    Interval,
    few_records,
    highest_leakage,
    leakage_interval,
    utility_interval,
)

FloatArray = NDArray[np.float64]

PRINTED_DRAWS = 200  # resampled joints behind the interval that `print` shows: two digits need no more


class Status(Enum):
    """How a solver ended; the value is a sentence with the remedy."""

    OPTIMAL = "The optimum was found and proved to the requested tolerance."
    CONVERGED = "The stop rule was met; the result is locally optimal at best."
    FINISHED = "The algorithm ended by itself; it proves nothing about its result."
    CYCLE = (
        "The iterates go round in a limit cycle or an orbit that never settles; the best iterate is "
        "returned. Change alpha or use method='dca', which cannot cycle."
    )
    STEP_LIMIT = (
        "The step limit was reached before the stop rule was met; the best iterate is returned. "
        "Raise max_steps or tol."
    )
    TIME_LIMIT = (
        "The limit on time or nodes was reached before the optimum was proved; the bound holds for what "
        "was proved so far. Raise time_limit or tol."
    )
    NUMERICAL_LIMIT = (
        "The optimum could not be proved to this tolerance, because of rounding; the bound holds for what "
        "was proved. Raise tol, or merge rare letters."
    )
    TOO_LARGE = (
        "The optimum could not be proved: there are more sets of letters than can be listed. The bound holds "
        "for what was proved. Merge rare letters, or use fewer columns."
    )
    NOT_FINITE = (
        "A step produced numbers that are not finite; the best iterate before it is returned. "
        "Raise alpha or use method='dca'."
    )
    INTERRUPTED = "Interrupted by the caller; the best result so far is returned."

    @property
    def ok(self) -> bool:
        """Whether the solver did all it could."""
        return self in (Status.OPTIMAL, Status.CONVERGED, Status.FINISHED)


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A mechanism for a joint, and how it was found.

    `utility` and `leakage` are exact for this joint and evaluated from the mechanism alone.
    For a joint estimated from records, `leakage_interval` tells what that means for the true joint.
    """

    joint: Joint
    mechanism: TableMechanism
    method: str
    status: Status
    beta: float | None = None
    min_utility: float | None = None
    max_leakage: float | None = None
    lower_bound: float | None = None
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    n_steps: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @cached_property
    def _information(self) -> tuple[float, float]:
        return utility_and_leakage(self.joint.p_xy, self.mechanism.p_z_given_x)

    @property
    def utility(self) -> float:
        """I(Z;X) in bits."""
        return self._information[0]

    @property
    def leakage(self) -> float:
        """I(Z;Y) in bits."""
        return self._information[1]

    @property
    def objective(self) -> float:
        """What was minimised, in bits.

        I(Z;Y) − β I(Z;X) for `beta`, I(Z;Y) for `min_utility`, −I(Z;X) for `max_leakage`.
        """
        if self.beta is not None:
            return self.leakage - self.beta * self.utility
        return self.leakage if self.min_utility is not None else -self.utility

    @property
    def gap(self) -> float | None:
        """How far `objective` can be above the optimum, in bits; None when nothing was proved."""
        return None if self.lower_bound is None else max(0.0, self.objective - self.lower_bound)

    def leakage_interval(
        self, level: float = 0.95, n_draws: int = 2000, rng: int | np.random.Generator | None = None
    ) -> Interval:
        """An interval for the leakage of this mechanism on the joint that the records were drawn from.

        It allows for the mechanism having been chosen on the same records; see
        `privacyfunnel.uncertainty.leakage_interval` for the method and its measured coverage. For a known
        joint the interval has no width.
        """
        return leakage_interval(self.mechanism, self.joint, level=level, n_draws=n_draws, rng=rng)

    def utility_interval(
        self, level: float = 0.95, n_draws: int = 2000, rng: int | np.random.Generator | None = None
    ) -> Interval:
        """An interval for the utility of this mechanism on the joint that the records were drawn from."""
        return utility_interval(self.mechanism, self.joint, level=level, n_draws=n_draws, rng=rng)

    def raise_for_status(self) -> Solution:
        """This solution, or NotConvergedError if the solver stopped early."""
        if not self.status.ok:
            raise NotConvergedError(f"{self.method}: {self.status.value}")
        return self

    def few_records(self) -> str | None:
        """What the leakage may be on new people, where the records are few for their letters; else None."""
        few = few_records(self.joint)
        if few is None:
            return None
        high = highest_leakage(self.mechanism, self.joint)
        more, here = f"{high:.2g}", f"{self.leakage:.2g}"
        told = f"may leak up to {more} bit" + ("" if more == here else f", not {here} as on these")
        return f"{few}: on new people this release {told}. Merge rare letters, or use fewer columns."

    def __repr__(self) -> str:
        return self._described(f"leakage {self.leakage:.4f} bit")

    def __str__(self) -> str:
        """Like `repr`, with the interval for the leakage on new people."""
        if self.joint.n_samples is None:
            return repr(self)
        likely = self.leakage_interval(level=LEVEL, n_draws=PRINTED_DRAWS, rng=0)
        return self._described(
            f"leakage {self.leakage:.4f} bit on these {self.joint.n_samples:,} records and "
            f"{likely.low:.2g} to {likely.high:.2g} on new people ({100 * LEVEL:g} %)"
        )

    def _described(self, leakage: str) -> str:
        proved = "" if self.gap is None else f", gap {self.gap:.2g}"
        return (
            f"Solution({self.method}: utility {self.utility:.4f}, {leakage}{proved}, "
            f"{self.mechanism.n_z} symbols, {self.status.name})"
        )
