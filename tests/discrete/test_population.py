"""Limits that hold for the population: certificates of solutions, and budgets that they keep."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import privacyfunnel as pf
from privacyfunnel import certificate
from privacyfunnel.certificate import records_needed
from privacyfunnel.discrete.population import SHARES, keep_limit
from privacyfunnel.errors import InfeasibleError, InvalidInputError, UnknownLetterError
from privacyfunnel.measures import parity_gap
from privacyfunnel.solution import Target


def population(n_x=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(n_x, 3.0))[:, None] * rng.dirichlet([3.0, 2.0], size=n_x)


def sample(p_xy, n, rng):
    return pf.Joint.from_counts(rng.multinomial(n, p_xy.ravel()).reshape(p_xy.shape))


def told(p_xy, solution):
    """What the release really tells, in each measure."""
    p_yz = p_xy.T @ solution.mechanism.p_z_given_x
    return {
        "information": pf.mutual_information(p_yz),
        "success": float(p_yz.max(axis=0).sum()),
        "parity": parity_gap(p_yz),
    }


@pytest.mark.parametrize(("leakage", "limit"), [("information", 0.05), ("success", 0.7), ("parity", 0.2)])
def test_certificate_is_the_bound_of_the_soft_counts(leakage, limit):
    rng = np.random.default_rng(1)
    p_xy = population()
    made, other = sample(p_xy, 3_000, rng), sample(p_xy, 3_000, rng)
    solution = pf.solve(made, max_leakage=limit, leakage=leakage, rng=0)
    found = solution.certificate(other)
    soft = solution.mechanism.p_z_given_x.T @ (other.p_xy * 3_000)
    reference = (made.p_y * 3_000 + 1) / 3_002
    twin = {
        "information": lambda: certificate.leakage_bound(soft, reference),
        "success": lambda: certificate.success_bound(soft),
        "parity": lambda: certificate.parity_bound(soft),
    }[leakage]()
    assert found.value == pytest.approx(twin, abs=1e-12)
    assert (found.kind, found.confidence, found.n_samples) == ("upper bound", 0.95, 3_000)
    assert found.value >= told(p_xy, solution)[leakage]
    assert ("bit" in str(found)) == (leakage == "information")
    assert "for every adversary" in str(found)
    assert solution.certificate(other, confidence=0.999).value > found.value


def test_certificate_takes_a_frame_of_the_same_columns():
    rng = np.random.default_rng(0)

    def people(n):
        city = rng.choice(["a", "b", "c"], n)
        sex = np.where(rng.random(n) < np.where(city == "a", 0.7, 0.4), "m", "w")
        return pd.DataFrame({"sex": sex, "city": city, "other": 1})

    first, second = people(2_000), people(2_000)
    joint = pf.Joint.from_frame(first, public="city", private="sex")
    solution = pf.solve(joint, max_leakage=0.02)
    as_joint = pf.Joint.from_frame(second, public="city", private="sex")
    assert solution.certificate(second).value == solution.certificate(as_joint).value
    # Letters go by their names, whatever their order; a new one is released from P(Z).
    new = pd.concat([second, pd.DataFrame({"sex": ["m"], "city": ["new"], "other": [1]})])
    assert 0 < solution.certificate(new).value < 0.1
    with pytest.raises(UnknownLetterError, match="private value 'x'"):
        solution.certificate(pd.DataFrame({"sex": ["x", "m"], "city": ["a", "b"]}))


def test_certificate_wants_counts_of_other_records():
    joint = sample(population(), 500, np.random.default_rng(0))
    solution = pf.solve(joint, max_leakage=0.05)
    with pytest.raises(InvalidInputError, match="no counts"):
        solution.certificate(pf.Joint(population()))
    with pytest.raises(InvalidInputError, match="made from; pass others"):
        solution.certificate(pf.Joint.from_counts(np.rint(joint.p_xy * 500)))
    known = pf.solve(pf.Joint(population()), max_leakage=0.05)
    assert known.certificate(joint).value < 1.0


@pytest.mark.parametrize(
    ("leakage", "limit", "utility"),
    [
        ("information", 0.08, "information"),
        ("success", 0.72, "information"),
        ("parity", 0.25, pf.Distance(np.arange(6.0))),
    ],
)
def test_a_limit_for_the_population_is_certified(leakage, limit, utility):
    joint = sample(population(), 12_000, np.random.default_rng(3))
    solution = pf.solve(joint, max_leakage=limit, leakage=leakage, utility=utility, population=0.95, rng=0)
    assert solution.certified is not None
    # The limit is what is certified: the bound of the release was picked among several.
    assert solution.certified.value == solution.certified.high == limit
    assert solution.certified.n_samples == 4_000
    assert solution.joint.n_samples == 8_000
    assert solution.leakage <= limit
    assert "nobody learns more than" in solution.notes[0]
    again = pf.solve(joint, max_leakage=limit, leakage=leakage, utility=utility, population=0.95, rng=0)
    assert np.array_equal(again.mechanism.p_z_given_x, solution.mechanism.p_z_given_x)


def test_held_out_records_leave_all_others_for_solving():
    rng = np.random.default_rng(3)
    joint, other = sample(population(), 6_000, rng), sample(population(), 6_000, rng)
    solution = pf.solve(joint, max_leakage=0.08, population=0.9, held_out=other)
    assert solution.joint is joint
    # What is certified is the limit that was fixed beforehand, not the bound of what was chosen by it.
    own = solution.certificate(other, confidence=0.9)
    assert own.value <= solution.certified.value == 0.08
    assert replace(own, value=0.08, interval=replace(own.interval, high=0.08)) == solution.certified


def test_the_limit_is_kept_as_often_as_it_says():
    """Whole calls on fresh records of a population that is known; a limit that often binds."""
    rng = np.random.default_rng(11)
    p_xy = np.array([[0.30, 0.19], [0.19, 0.30], [0.0, 0.02]])  # a rare letter that tells all
    broken = refused = 0
    for repeat in range(60):
        try:
            solution = pf.solve(sample(p_xy, 2_400, rng), max_leakage=0.02, population=0.8, rng=repeat)
        except InfeasibleError:
            refused += 1
            continue
        broken += told(p_xy, solution)["information"] > 0.02
    assert refused < 50
    assert broken <= 0.2 * 60


def test_the_sequence_stops_at_the_first_failure():
    joint = pf.Joint.from_counts([[10, 20], [20, 10]])
    one = pf.solve(joint, max_leakage=0.01)
    tried = []

    def solve_at(limit):
        return replace(one, target=Target("max_leakage", limit))

    def certify(solution):
        tried.append(solution.target.value)
        return pf.Measured(0.2 if 0.05 < tried[-1] < 0.07 else 0.01, "upper bound")

    solution, share = keep_limit(solve_at, certify, 0.1, 0.0)
    assert share == 0.5
    assert solution.target.value == pytest.approx(0.05)
    assert tried == pytest.approx([0.03, 0.04, 0.05, 0.06])  # those after a failure are not looked at
    assert sorted(SHARES) == list(SHARES)


@pytest.mark.parametrize(
    ("joint", "given", "words"),
    [
        (pf.Joint(population()), {"max_leakage": 0.05, "population": 0.95}, "probabilities alone"),
        (None, {"max_leakage": 0.05, "population": 95}, "between 0 and 1"),
        (None, {"beta": 0.2, "population": 0.95}, "pass max_leakage"),
        (
            None,
            {"max_leakage": {"y": 0.05}, "utility": pf.Distance(np.arange(6.0)), "population": 0.95},
            "one number for their combination",
        ),
        (None, {"max_leakage": 0.05, "held_out": pf.Joint(population())}, "population=0.95 too"),
        (None, {"max_leakage": 0.001, "population": 0.95}, "about 66,000 would be needed"),
        (None, {"max_leakage": 0.62, "leakage": "success", "population": 0.95}, "would be needed"),
        (
            None,
            {"max_leakage": 0.6, "leakage": "success", "population": 0.95},
            "proved impossible|saying noth",
        ),
        (None, {"max_leakage": 0.05, "leakage": "parity", "population": 0.95}, "would be needed"),
    ],
)
def test_bad_input_is_one_sentence(joint, given, words):
    joint = joint or sample(population(), 400, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match=words):
        pf.solve(joint, **given, rng=1)


@pytest.mark.parametrize(("leakage", "limit"), [("information", 1.0), ("success", 1.0), ("parity", 1.0)])
def test_a_limit_that_limits_nothing_is_refused(leakage, limit):
    joint = sample(population(), 3_000, np.random.default_rng(0))
    with pytest.raises(InfeasibleError, match=r"is no limit for .* whoever tells all of it tells"):
        pf.solve(joint, max_leakage=limit, leakage=leakage, population=0.95)


def test_a_task_counted_on_all_records_needs_others():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 900), rng.integers(0, 2, 900)
    joint = pf.Joint.from_samples(x, y, task=(x > 0), t_names="job")
    with pytest.raises(InvalidInputError, match="pass other records as held_out"):
        pf.solve(joint, max_leakage=0.1, utility=pf.Task("job"), population=0.95)
    other = pf.Joint.from_samples(rng.integers(0, 3, 3_000), rng.integers(0, 2, 3_000))
    solution = pf.solve(joint, max_leakage=0.1, utility=pf.Task("job"), population=0.95, held_out=other)
    assert solution.certified.value <= 0.1


def test_letters_of_another_type_are_not_taken_for_new_ones():
    """Drawn from P(Z) they would tell nothing, and the bound would be far below what the release tells."""
    made = pf.Joint.from_samples([0, 1, 2] * 400, [0, 1, 1] * 400)
    solution = pf.solve(made, beta=1.0)
    for letters in (["0", "1", "2"], [0, "1", 2]):
        with pytest.raises(InvalidInputError, match=r"certificate: .* type"):
            solution.certificate(
                pf.Joint.from_samples(np.array(letters * 100, dtype=object), [0, 1, 1] * 100)
            )


@pytest.mark.parametrize(("measure", "limit"), [("information", 0.2), ("success", 0.75), ("parity", 0.5)])
def test_more_records_are_needed_than_were_not_enough(measure: str, limit: float) -> None:
    """Where chance was unkind, more of it is allowed for; no refusal is without a number."""
    p_zy = np.array([[0.35, 0.2], [0.15, 0.3]])
    usual = records_needed(measure, p_zy, [0.5, 0.5], limit)
    assert usual is not None
    found = [records_needed(measure, p_zy, [0.5, 0.5], limit, failed=k * usual) for k in (0, 1, 2, 4, 100)]
    assert found[0] == usual
    assert found == sorted(found)
    assert all(n > k * usual for n, k in zip(found, (0, 1, 2, 4, 100), strict=True))
