"""A limit that the population keeps: solve on some records, certify on others."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..certificate import Certifier, held_out_certifier, records_needed
from ..errors import FewRecordsWarning, InfeasibleError, InvalidInputError
from ..joint import Joint
from ..measured import Measured
from ..measures import Measures, Task
from ..solution import Solution, Status, Target
from ..uncertainty import split_joint

#: Candidates, as shares of the room that the limit leaves above saying nothing: from careful to daring.
SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: The share of the records that the mechanism is made from; the others certify it.
SOLVING_SHARE = 2 / 3


def limit_words(limit: float, leakage: str) -> str:
    """A limit as people say it: bits, or a share of people."""
    return f"{limit:.4g} bit" if leakage == "information" else f"{100 * limit:.4g} %"


def nothing_left(limit: float, least: float, leakage: str, name: str | None = None) -> InfeasibleError:
    """For a limit that saying nothing at all does not keep."""
    of = "" if name is None else f" for {name}"
    told = (
        f"A limit of {limit_words(limit, leakage)}{of} leaves nothing to be certified, however many "
        "records there are: "
    )
    if leakage == "success":
        told += f"who sees no release at all is right {100 * least:.2f} % of the time"
    else:
        told += f"saying nothing at all has {limit_words(least, leakage)}"
    return InfeasibleError(f"{told}; allow more.", names=("max_leakage",))


def keep_limit(
    solve_at: Callable[[float], Solution],
    certify: Callable[[Solution], Measured],
    limit: float,
    least: float,
    shares: Sequence[float] = SHARES,
    leakage: str = "information",
) -> tuple[Solution, float] | None:
    """The most daring release whose certificate keeps the limit, and its share; None where none does.

    Fixed-sequence testing: candidates are made from other records than those that certify, and are
    certified in an order that was fixed beforehand, each at the full level, until the first one fails. A
    false certificate needs the first candidate that really breaks the limit to pass, which has a probability
    of at most 1 − confidence; so no part of the level is lost to the number of candidates. What is certified
    is the limit: the bound of the one that is returned, which may be lower, was not asked for beforehand.
    """
    if limit <= least:
        raise nothing_left(limit, least, leakage)
    kept = None
    for share in shares:
        solution = solve_at(least + share * (limit - least))
        bound = certify(solution)
        if bound.value > limit:
            break
        kept = replace(solution, certified=_at_limit(bound, limit)), share
        if solution.status is Status.INTERRUPTED:
            break
    return kept


def _at_limit(bound: Measured, limit: float) -> Measured:
    """What a candidate that passed proves: that it keeps the limit."""
    interval = bound.interval and replace(bound.interval, high=limit)
    return replace(bound, value=limit, interval=interval)


def refusal(
    measure: str, limit: float, least: float, certifier: Certifier, first: FloatArray
) -> InfeasibleError:
    """What is said where no candidate passes; `first` is P(z, y) of the most careful one."""
    n = round(float(certifier.counts.sum()))
    above = "" if measure != "success" else f" (without any release {limit_words(least, measure)})"
    needed = records_needed(measure, first, certifier.reference, limit, certifier.confidence, failed=n)
    said = "no number of them would do for the most careful release that was tried"
    if needed is not None:
        said = f"about {_rounded_up(needed):,} would be needed, three times that in all"
        said += " where a third is held back"
    return InfeasibleError(
        f"A limit of {limit_words(limit, measure)}{above} cannot be certified at "
        f"{100 * certifier.confidence:g} % with {n:,} records held back for it; {said}. Allow more, or use "
        "more records; fitting these again until it passes, with other seeds or settings, voids the level.",
        names=("max_leakage",),
    )


def _rounded_up(n: int) -> int:
    """To two digits: more would say more than is known."""
    unit = int(10 ** max(len(str(n)) - 2, 0))
    return -(-n // unit) * unit


def solve_for_population(
    solve: Callable[..., Solution],
    joint: Joint,
    target: Target,
    measures: Measures,
    population: float | None,
    held_out: Any,
    seed: np.random.SeedSequence,
    settings: dict[str, Any],
) -> Solution:
    """The solution whose certificate keeps the limit."""
    begun = time.perf_counter()
    confidence = _checked(joint, target, measures, population, held_out)
    splitting, solving = seed.spawn(2)
    made_from = joint
    if held_out is None:
        made_from, held_out = split_joint(joint, SOLVING_SHARE, np.random.default_rng(splitting))
    certifiers: list[Certifier] = []
    told: list[FloatArray] = []

    def solve_at(limit: float) -> Solution:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewRecordsWarning)  # what new people lose is certified instead
            return solve(
                made_from,
                max_leakage=limit,
                utility=measures.utility,
                leakage=measures.leakage,
                rng=solving,
                **settings,
            )

    def certify(solution: Solution) -> Measured:
        certifier, channel = held_out_certifier(
            solution.mechanism, made_from, held_out, measures.leakage, confidence
        )
        certifiers.append(certifier)
        told.append(solution.mechanism.p_z_given_x.T @ made_from.p_xy)
        return certifier.bound(channel)

    least = measures.without_release(made_from.p_y)
    found = keep_limit(solve_at, certify, target.value, least, leakage=measures.leakage)
    if found is None:
        raise refusal(measures.leakage, target.value, least, certifiers[0], told[0])
    solution, share = found
    assert solution.certified is not None
    unit = measures.scale.leakage_unit
    note = (
        f"With {100 * confidence:g} % confidence nobody learns more than "
        f"{target.value:g}{unit} ({measures.leakage}) from the release of a new person: "
        f"certified with {solution.certified.n_samples:,} records that had no part in it. It was solved for "
        f"{solution.target.value:.4g}{unit}, {100 * share:g} % of the room up to this limit."
    )
    return replace(solution, notes=(note, *solution.notes), seconds=time.perf_counter() - begun)


def _checked(
    joint: Joint, target: Target, measures: Measures, population: float | None, held_out: Any
) -> float:
    """The confidence, once everything else is known to fit."""
    if population is None:
        raise InvalidInputError(
            "solve: held_out is for population, the confidence of a limit on new people; pass "
            "population=0.95 too.",
            names=("held_out", "population"),
        )
    if not (isinstance(population, float) and 0 < population < 1):
        raise InvalidInputError(
            f"population must be a confidence between 0 and 1, such as 0.95; it is {population!r}.",
            names=("population",),
        )
    if target.kind != "max_leakage":
        raise InvalidInputError(
            f"solve: population is about a limit on leakage, and {target.kind} sets none; pass max_leakage.",
            names=("population", "max_leakage"),
        )
    if measures.budgets:
        raise InvalidInputError(
            "solve: population certifies one limit, and max_leakage has one for each private column; pass "
            "one number for their combination.",
            names=("population", "max_leakage"),
        )
    if joint.n_samples is None:
        raise InvalidInputError(
            "solve: population needs records, and this joint has probabilities alone; use Joint.from_counts, "
            "from_samples or from_frame.",
            names=("population",),
        )
    most = joint.entropy_y if measures.leakage == "information" else 1.0
    if target.value >= most:
        unit = measures.scale.leakage_unit
        raise InfeasibleError(
            f"solve: max_leakage = {target.value:g}{unit} is no limit for {' × '.join(joint.y_names)}: "
            f"whoever tells all of it tells {most:.4g}{unit}, so that a certificate would say nothing. Allow "
            "less.",
            names=("max_leakage",),
        )
    if held_out is None and isinstance(measures.utility, Task) and joint.t_names:
        raise InvalidInputError(
            "solve: the task of this joint was counted on all its records, those held back for population "
            "too; pass other records as held_out.",
            names=("population", "held_out"),
        )
    return population
