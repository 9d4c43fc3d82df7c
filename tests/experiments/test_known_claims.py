"""Each statement about the known distribution: made-up results that bear it out, and some that refute it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from privacyfunnel.experiments import known
from privacyfunnel.experiments import known_claims as said
from privacyfunnel.experiments.base import Claim
from privacyfunnel.experiments.published import MOST_STEPS

Pairs = Sequence[tuple[float, float]]
MERGED, IDENTITY = (0.918295, 0.233358), (1.584962, 0.655136)  # what submodular reaches


def straight(slope: float, *more: tuple[float, float]) -> list[tuple[float, float]]:
    """A release at every utility that leaks so much for each bit."""
    return [*((u, slope * u) for u in said.UTILITIES), *more]


def verdict(claims: Sequence[Claim], source: str, says: str) -> bool | None:
    (found,) = (claim for claim in claims if claim.source == source and claim.says.startswith(says))
    return found.holds


def single(says: str, source: str, sparse: Pairs, ridge: Pairs, submodular: Pairs) -> bool | None:
    solvers = {"sparse": sparse, "ridge": ridge, "submodular": submodular}
    arrays = {name: np.array(points, dtype=float) for name, points in solvers.items()}
    return verdict(said.paper_claims("published", arrays), f"{source}, published", says)


@pytest.mark.parametrize(
    ("sparse", "holds"),
    [
        ([MERGED, IDENTITY], True),
        ([(1.0, 0.2), IDENTITY], True),
        ([MERGED, (1.5, 0.6)], False),
        ([(0.918295, 0.24), IDENTITY], False),
    ],
)
def test_sparse_covers_submodular(sparse: Pairs, holds: bool) -> None:
    says = "The sparse solver covers"
    found = single(says, "figure 1a", sparse, [MERGED], [(0.0, 0.0), MERGED, MERGED, IDENTITY])
    assert found is holds


@pytest.mark.parametrize(
    ("lead", "holds"),
    [
        (np.full(9, 0.01), True),
        (np.full(9, -0.01), False),
        (np.full(9, 0.002), True),  # little, but everywhere
        (np.full(9, -0.002), False),
        (np.array([0.002] * 7 + [0.0, -0.002]), True),
        (np.array([0.002] * 6 + [0.0, 0.0, -0.002]), None),  # six of nine are not clearly most
        (np.array([0.04, 0.04, 0.0, 0.0, 0.0, -0.001, -0.001, -0.001, -0.001]), True),
        (np.array([-0.04, -0.04, 0.0, 0.0, 0.0, 0.001, 0.001, 0.001, 0.001]), False),
        (np.array([0.09] + [-0.001] * 8), None),  # the average and the utilities disagree
        (np.zeros(9), None),
    ],
)
def test_ridge_is_worse(lead: np.ndarray, holds: bool | None) -> None:
    sparse = np.full_like(lead, 0.3)
    claim = said.ridge_is_worse("figure 1b", "Ridge is worse.", "somewhere", sparse + lead, sparse)
    assert claim.holds is holds
    assert "at least 0.005 bit or by 75% of the utilities" in claim.measured


def test_utilities_that_a_solver_does_not_reach() -> None:
    """They count for the other; where none is reached by both nothing is decided."""
    ridge, sparse = np.array([0.3, np.inf, np.inf, np.inf]), np.array([0.3, 0.4, 0.5, np.inf])
    assert said.ridge_is_worse("figure 1b", "x", "somewhere", ridge, sparse).holds is None  # two of four
    assert said.ridge_is_worse("figure 1b", "x", "somewhere", ridge[:3], sparse[:3]).holds is None
    ridge[0] = 0.31
    assert said.ridge_is_worse("figure 1b", "x", "somewhere", ridge[:3], sparse[:3]).holds is True
    assert said.ridge_is_worse("figure 1b", "x", "somewhere", ridge[3:], sparse[3:]).holds is None


@pytest.mark.parametrize(("ridge", "sparse", "holds"), [(0.32, 0.30, True), (0.30, 0.32, False)])
def test_ridge_against_sparse_by_single_releases(ridge: float, sparse: float, holds: bool) -> None:
    """Only utilities below the point count: above it, here, all is the other way round."""
    first = [pair for pair in straight(ridge) if pair[0] < 1] + [(1.5, 0.6 if holds else 0.65)]
    second = [pair for pair in straight(sparse) if pair[0] < 1] + [(1.5, 0.65 if holds else 0.6)]
    assert single("Ridge characterises", "figure 1b", second, first, [MERGED]) is holds


@pytest.mark.parametrize(
    ("ridge", "sparse", "holds"), [(0.30, 0.65, True), (0.65, 0.30, False), (0.3, 0.3, False)]
)
def test_ridge_has_a_better_point(ridge: float, sparse: float, holds: bool) -> None:
    found = single("Ridge has a better point", "figure 1b", [(1.0, sparse)], [(1.1, ridge)], [MERGED])
    assert found is holds


@pytest.mark.parametrize(
    ("sparse", "ridge", "holds"),
    [
        (straight(0.2), straight(0.2), True),
        (straight(0.2), [MERGED, IDENTITY], False),  # ridge is only as good
        ([MERGED, IDENTITY], straight(0.2), False),
        (straight(0.2), [(0.5, 0.1), (1.5, 0.7)], False),  # better below, worse above
        ([(0.5, 0.1), (1.5, 0.7)], straight(0.2), False),
        (straight(0.2), [(0.5, 0.1)], False),  # ends early
    ],
)
def test_both_outperform_submodular(sparse: Pairs, ridge: Pairs, holds: bool) -> None:
    assert single("Both solvers", "section IV-A", sparse, ridge, [MERGED, IDENTITY]) is holds


def solves(
    method: str, points: Pairs, *, status: str = "CONVERGED", seconds: float = 1.0, steps: int = 5
) -> list[Any]:
    return [
        {
            "key": "k",
            "run": {"method": method, "settings": {"beta": 0.2}, "seed": 0, "data": None},
            "values": {
                "utility": utility,
                "leakage": leakage,
                "lower_bound": 0.0,
                "status": status,
                "n_steps": steps,
            },
            "seconds": seconds,
        }
        for utility, leakage in points
    ]


def published(
    solver: str, points: Pairs, *, seconds: float = 1.0, steps: int = 5, gap: float = 0.0
) -> list[Any]:
    """One run of a published solver that ended at these releases."""
    utility, leakage = zip(*points, strict=True)
    n = len(points)
    values = {
        "utility": utility,
        "leakage": leakage,
        "n_steps": [5] * (n - 1) + [steps],
        "gap": [0.0] * (n - 1) + [gap],
    }
    run = {"method": said.PUBLISHED, "settings": {"solver": solver}, "seed": 0, "data": None}
    return [{"key": "k", "run": run, "values": values, "seconds": seconds}]


def shared(records: list[Any], source: str, says: str) -> bool | None:
    """Of results for the two solvers, and of submodular's two releases."""
    records = [*records, *solves("submodular", [MERGED, IDENTITY])]
    proved = dict.fromkeys(said.UTILITIES, 0.0)
    return verdict(said.claims(records, known.frontiers(records), proved), source, says)


@pytest.mark.parametrize("reading", ["corrected", "published"])
@pytest.mark.parametrize(
    ("point", "holds"),
    [
        ((0.5, 0.12), True),
        ((0.5, 0.14), False),  # less than any release of submodular with as much, more than with time sharing
        (MERGED, False),
    ],
)
def test_sparse_finds_new_points(reading: str, point: tuple[float, float], holds: bool) -> None:
    there, other = [point, (0.5, 0.2)], [(0.5, 0.12 if not holds else 0.2)]
    corrected, literal = (there, other) if reading == "corrected" else (other, there)
    records = [
        *solves("dca-sparse", corrected),
        *solves("dca-ridge", [(0.5, 0.05)]),
        *published("sparse", literal),
        *published("ridge", [(0.5, 0.05)]),
    ]
    source = f"figure 1a, {reading}, time sharing"
    assert shared(records, source, "The sparse solver finds points") is holds


@pytest.mark.parametrize(
    ("ridge", "sparse", "holds"),
    [(0.32, 0.30, True), (0.30, 0.32, False), (0.3, 0.3, None), (0.3015, 0.3, True), (0.3, 0.3015, False)],
)
def test_ridge_against_sparse_with_time_sharing(ridge: float, sparse: float, holds: bool | None) -> None:
    records = [*solves("dca-ridge", straight(ridge)), *solves("dca-sparse", straight(sparse))]
    assert shared(records, "figure 1b, corrected, time sharing", "Ridge characterises") is holds


@pytest.mark.parametrize(
    ("sparse", "ridge", "holds"),
    [
        (0.2, 0.2, True),
        (0.3, 0.2, False),
        (0.2, 0.3, False),
        (None, 0.2, False),  # as good as submodular
        (0.2, None, False),
    ],
)
def test_both_outperform_submodular_with_time_sharing(
    sparse: float | None, ridge: float | None, holds: bool
) -> None:
    points = [[MERGED] if slope is None else straight(slope) for slope in (sparse, ridge)]
    records = [*solves("dca-sparse", points[0]), *solves("dca-ridge", points[1])]
    assert shared(records, "section IV-A, corrected, time sharing", "Both solvers") is holds


TIMES = pytest.mark.parametrize(
    ("ridge", "sparse", "holds"), [(1.0, 2.0, True), (2.0, 1.0, False), (1.0, 1.1, None)]
)


@TIMES
def test_ridge_is_faster(ridge: float, sparse: float, holds: bool | None) -> None:
    """The time decides; the steps are the other way round."""
    records = [
        *solves("dca-ridge", [MERGED], seconds=ridge, steps=10 if ridge < sparse else 2),
        *solves("dca-sparse", [MERGED], seconds=sparse, steps=5),
    ]
    assert shared(records, "section IV-A, corrected", "The ridge solver converges faster") is holds


@TIMES
def test_published_ridge_is_faster(ridge: float, sparse: float, holds: bool | None) -> None:
    """By the time of a start, of which a run has several."""
    records = [
        *published("ridge", [MERGED] * 4, seconds=4 * ridge, steps=10),
        *published("sparse", [MERGED], seconds=sparse),
    ]
    claims = said.published_claims(records)
    assert verdict(claims, "section IV-A, published", "The ridge solver converges faster") is holds


@pytest.mark.parametrize("solver", said.SOLVERS)
def test_stationary_points(solver: str) -> None:
    """A stop rule on the loss proves nothing, so all that can be seen is that it was not met."""
    records = [*solves("dca-ridge", [MERGED] * 2), *solves("dca-sparse", [MERGED] * 2)]
    claim = ("theorem 1, corrected", "Both solvers converge")
    assert shared(records, *claim) is None
    assert shared([*records, *solves(f"dca-{solver}", [MERGED], status="CYCLE")], *claim) is False


@pytest.mark.parametrize("solver", said.SOLVERS)
def test_published_stationary_points(solver: str) -> None:
    def holds(**last: Any) -> bool | None:
        records = [
            *published("ridge", [MERGED] * 3, **(last if solver == "ridge" else {})),
            *published("sparse", [MERGED] * 3, **(last if solver == "sparse" else {})),
        ]
        return verdict(said.published_claims(records), "theorem 1, published", "Both solvers converge")

    assert holds() is True
    assert holds(gap=0.009) is True
    assert holds(gap=0.011) is False
    assert holds(steps=MOST_STEPS - 1) is True
    assert holds(steps=MOST_STEPS) is False


@pytest.mark.parametrize("solver", said.SOLVERS)
def test_twins_against_the_authors_program(solver: str) -> None:
    def judged(by: float) -> Claim:
        points = {name: np.array(list(said.AUTHORS[name].items())) for name in said.SOLVERS}
        points[solver][2, 1] += by
        return said.twins_are_close({name: [found] for name, found in points.items()})

    assert judged(0.0).holds is True
    assert judged(0.009).holds is True
    assert judged(-0.009).holds is True
    assert judged(0.011).holds is False
    assert f"{solver} at 0.5 bit, +0.0110 (the twin leaks more)" in judged(0.011).measured
    assert judged(-0.011).holds is None
    assert f"{solver} at 0.5 bit, -0.0110 (the twin leaks less, in 1 of its runs)" in judged(-0.011).measured


def test_least_of_as_many_starts_as_the_authors_had() -> None:
    """One lucky start of ten is among seven of them seven times in ten."""
    starts = [np.array([(1.0, leak)]) for leak in (0.1, *[0.2] * 9)]
    assert said.expected_least(starts, 1.0, 7) == pytest.approx(0.7 * 0.1 + 0.3 * 0.2)
    assert said.expected_least(starts, 1.0, 10) == pytest.approx(0.1)
    assert said.expected_least(starts, 1.0, 1) == pytest.approx(0.19)
    assert said.expected_least(starts[:1], 1.0, 7) == pytest.approx(0.1)
    every = [min(starts[k][0, 1] for k in chosen) for chosen in itertools.combinations(range(10), 7)]
    assert said.expected_least(starts, 1.0, 7) == pytest.approx(sum(every) / len(every))


def test_starts_are_told_apart_by_their_seed() -> None:
    records = [*published("sparse", [(0.3, 0.03)]), *published("sparse", [(0.4, 0.04)])]
    records[1] = {**records[1], "run": {**records[1]["run"], "seed": records[0]["run"]["seed"]}}
    assert [part.tolist() for part in said.starts_of(records, "sparse")] == [[[0.3, 0.03], [0.4, 0.04]]]
    records[1] = {**records[1], "run": {**records[1]["run"], "seed": records[0]["run"]["seed"] + 1}}
    assert len(said.starts_of(records, "sparse")) == 2


def test_distance_to_what_is_proved() -> None:
    records = [*solves("dca-ridge", [MERGED]), *solves("dca-sparse", straight(0.2))]
    proved = {u: 0.15 * u for u in said.UTILITIES}
    claim = said.claims(records, known.frontiers(records), proved)[-1]
    assert claim.holds is None
    assert "dca-sparse 0.0750" in claim.measured  # at 1.5 bit


def test_readings_are_not_mixed_up() -> None:
    records = [
        *solves("dca-sparse", [(0.1, 0.01)]),
        *solves("dca-ridge", [(0.2, 0.02)]),
        *solves("submodular", [MERGED]),
        *published("sparse", [(0.3, 0.03)]),
        *published("ridge", [(0.4, 0.04), (0.5, 0.05)]),
    ]
    found = {
        reading: {k: v.tolist() for k, v in one.items()} for reading, one in said.readings(records).items()
    }
    assert found == {
        "published": {
            "sparse": [[0.3, 0.03]],
            "ridge": [[0.4, 0.04], [0.5, 0.05]],
            "submodular": [list(MERGED)],
        },
        "corrected": {"sparse": [[0.1, 0.01]], "ridge": [[0.2, 0.02]], "submodular": [list(MERGED)]},
    }
