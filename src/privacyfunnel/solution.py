"""Target, Status and Solution: what a solver of the known-distribution funnel is asked for, and returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .arrays import FloatArray
from .certificate import held_out_certifier
from .errors import InvalidInputError, NotConvergedError
from .information import utility_and_leakage
from .joint import Joint
from .measured import Interval, Measured
from .measures import Measures, largest_lift
from .mechanism import TableMechanism
from .uncertainty import (
    LEVEL,
    few_records,
    highest_leakage,
    leakage_interval,
    utility_interval,
)

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
        "was proved so far. Raise time_limit or tol, or merge rare letters."
    )
    NUMERICAL_LIMIT = (
        "The optimum could not be proved to this tolerance, because of rounding; the bound holds for what "
        "was proved. Raise tol, or merge rare letters."
    )
    TOO_LARGE = (
        "The optimum could not be proved to this tolerance: there are too many letters. The bound holds for "
        "what was proved. Raise tol, or merge rare letters."
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

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that these sentences speak of, as for errors."""
        return ("alpha", "method", "max_steps", "tol", "time_limit")


TargetKind = Literal["beta", "min_utility", "max_leakage"]


@dataclass(frozen=True)
class Target:
    """One of the three problems and its number: β, or bits; inside the exact solver nats. Other measures have
    units of their own.

    - "beta": minimise leakage − value · utility;
    - "min_utility": minimise leakage subject to utility ≥ value;
    - "max_leakage": maximise utility subject to leakage ≤ value.
    """

    kind: TargetKind
    value: float

    def objective(self, utility: float, leakage: float) -> float:
        """What is minimised: L, the leakage, or −utility."""
        if self.kind == "min_utility":
            return leakage
        return -utility if self.kind == "max_leakage" else leakage - self.value * utility

    def excess(self, utility: float, leakage: float) -> float:
        """By how much the constraint is broken; not positive where it holds."""
        if self.kind == "min_utility":
            return self.value - utility
        return leakage - self.value if self.kind == "max_leakage" else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Proof:
    """Numbers that prove a line, leakage ≥ value + β · utility, in inner units: nats, or shares.

    - "posteriors": with `prices` λ of the letters that occur and `largest` M, G(q) ≤ M for every posterior q
      that is allowed; see docs/exact.md.
    - "merged": the same for merged private values; `groups` says into which one each private value went.
    - "actions" and "programme": multipliers for a finite set of answers, whose costs are in `costs`; for
      points and tasks the `answers` themselves.
    - "private": `prices` λ of the letters, for posteriors that tell nothing. The line is upright: no release
      without leakage has a utility above `value`.
    """

    kind: str
    beta: float
    value: float
    arrays: Mapping[str, FloatArray]

    def __repr__(self) -> str:
        if self.kind == "private":
            return f"Proof(private: utility ≤ {self.value:.6g} where nothing leaks)"
        return f"Proof({self.kind}: leakage ≥ {self.value:.6g} + {self.beta:.6g} · utility)"


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """A mechanism for a joint, and how it was found.

    `utility` and `leakage` are exact for this joint and evaluated from the mechanism alone, in the unit of
    `measures`. For a joint estimated from records, `leakage_interval` tells what that means for the true
    joint, and `certificate` what no adversary can exceed. `scope` says for which releases `lower_bound`
    holds, where that is not every one. `certified` is the certificate of `solve(…, population=…)`.
    """

    joint: Joint
    mechanism: TableMechanism
    method: str
    status: Status
    target: Target = Target("max_leakage", math.inf)  # by default, all that can be kept
    lower_bound: float | None = None
    history: FloatArray = field(default_factory=lambda: np.empty(0))
    n_steps: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    measures: Measures = field(default_factory=Measures)
    scope: str = ""
    proof: Proof | None = None
    certified: Measured | None = None

    @cached_property
    def _measured(self) -> tuple[float, float]:
        joint, channel = self.joint, self.mechanism.channel
        scale = self.measures.scale
        if scale.utility == scale.leakage == "information" and not scale.budgets:
            return utility_and_leakage(joint.p_xy, channel)
        utility = self.measures.utility_of(joint.p_x, channel)
        return utility, self.measures.leakage_of(joint.p_xy, channel)

    @property
    def utility(self) -> float:
        """I(Z;X) in bits, or what `measures` says."""
        return self._measured[0]

    @property
    def leakage(self) -> float:
        """I(Z;Y) in bits, or what `measures` says."""
        return self._measured[1]

    @property
    def leakages(self) -> dict[str, float]:
        """The leakage about each private column that has a limit of its own, in its unit."""
        return self.measures.leakage_by_column(self.joint.p_xy, self.mechanism.p_z_given_x)

    @cached_property
    def lift(self) -> float:
        """max |log2 P(y|z)/P(y)| over symbols and private values, in bits: what the most telling one says."""
        return largest_lift(self.joint.p_xy, self.mechanism.channel)

    @property
    def beta(self) -> float | None:
        """The β that was asked for, if any."""
        return self._asked("beta")

    @property
    def min_utility(self) -> float | None:
        """The utility that was asked for, if any."""
        return self._asked("min_utility")

    @property
    def max_leakage(self) -> float | None:
        """The leakage that was allowed, if any."""
        return self._asked("max_leakage")

    def _asked(self, kind: str) -> float | None:
        return self.target.value if self.target.kind == kind else None

    @property
    def objective(self) -> float:
        """What was minimised, in bits or the unit of the measure.

        Leakage − β · utility for `beta`, leakage for `min_utility`, −utility for `max_leakage`.
        """
        return self.target.objective(self.utility, self.leakage)

    @property
    def gap(self) -> float | None:
        """How far `objective` can be above the optimum (of `scope`); None when nothing was proved."""
        return None if self.lower_bound is None else max(0.0, self.objective - self.lower_bound)

    def leakage_interval(
        self, level: float = 0.95, n_draws: int = 2000, rng: int | np.random.Generator | None = None
    ) -> Interval:
        """An interval for the leakage of this mechanism on the joint that the records were drawn from.

        It allows for the mechanism having been chosen on the same records; see
        `privacyfunnel.uncertainty.leakage_interval` for the method and its measured coverage. For a known
        joint the interval has no width.
        """
        self._require_bits("leakage_interval", self.measures.leakage)
        return leakage_interval(self.mechanism, self.joint, level=level, n_draws=n_draws, rng=rng)

    def utility_interval(
        self, level: float = 0.95, n_draws: int = 2000, rng: int | np.random.Generator | None = None
    ) -> Interval:
        """An interval for the utility of this mechanism on the joint that the records were drawn from."""
        self._require_bits("utility_interval", self.measures.scale.utility)
        return utility_interval(self.mechanism, self.joint, level=level, n_draws=n_draws, rng=rng)

    def certificate(self, held_out: Any, *, confidence: float = 0.95) -> Measured:
        """The most that this release tells about Y in the population: an upper bound against every adversary.

        In the measure of the solution: bits, or a share of people for success and parity. One-sided: it is
        too small with a probability of at most 1 − confidence, whatever the population is; parity is that of
        the classes that the records show. See docs/certificates.md for the proof.

        Parameters
        ----------
        held_out : Joint or frame
            Independent records of the population that had no part in making the mechanism, with their
            counts: `split_joint` gives some. A frame has the columns of the joint.
        confidence : float

        Notes
        -----
        It is about the mechanism that the records had no part in choosing. Who computes it for several
        mechanisms and takes one of them asks for `solve(…, population=…)` instead, or shares 1 − confidence
        among them.
        """
        certifier, channel = held_out_certifier(
            self.mechanism, self.joint, held_out, self.measures.leakage, confidence
        )
        return certifier.bound(channel)

    def _require_bits(self, name: str, measure: str) -> None:
        if measure != "information":
            raise InvalidInputError(
                f"Solution.{name} is for information, and this is measured by {measure}; hold records back "
                "and use Solution.certificate."
            )

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
        if not self.measures.scale.leakage_unit:
            return (
                f"{few}: on new people this release may tell more than on these. Merge rare letters, or use "
                "fewer columns."
            )
        high = highest_leakage(self.mechanism, self.joint)
        more, here = f"{high:.2g}", f"{self.leakage:.2g}"
        told = f"may leak up to {more} bit" + ("" if more == here else f", not {here} as on these")
        return f"{few}: on new people this release {told}. Merge rare letters, or use fewer columns."

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from .report.notebook import html_of

        return html_of(self)

    def __repr__(self) -> str:
        return self._described(self.measures.scale.with_leakage(self.leakage))

    def __str__(self) -> str:
        """Like `repr`, with the interval for the leakage on new people."""
        if self.joint.n_samples is None or not self.measures.scale.leakage_unit:
            return repr(self)
        likely = self.leakage_interval(level=LEVEL, n_draws=PRINTED_DRAWS, rng=0)
        return self._described(
            f"leakage {self.leakage:.4f} bit on these {self.joint.n_samples:,} records and "
            f"{likely.low:.2g} to {likely.high:.2g} on new people ({100 * LEVEL:g} %)"
        )

    def _described(self, leakage: str) -> str:
        scale = self.measures.scale
        proved = "" if self.gap is None else f", gap {self.gap:.2g}" + f" {self.scope}" * bool(self.scope)
        lift = "" if scale.max_lift is None else f", lift {self.lift:.4f} bit"
        return (
            f"Solution({self.method}: {scale.with_utility(self.utility)}, {leakage}{lift}{proved}, "
            f"{self.mechanism.n_z} symbols, {self.status.name})"
        )
