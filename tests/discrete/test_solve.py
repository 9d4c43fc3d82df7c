"""solve() and frontier(): every method on every kind of joint, and the paper's example."""

import re
import warnings

import numpy as np
import pytest
from discrete.twins import slow_information
from strategies import KINDS, random_joint

import privacyfunnel as pf
from privacyfunnel.datasets import known_joints, paper_joint
from privacyfunnel.discrete.methods import METHODS
from privacyfunnel.errors import ConvergenceWarning, FewRecordsWarning, InfeasibleError, InvalidInputError

SOLVERS = [method for method in METHODS if method != "auto"]
# Least leakage (bits) of the paper's joint for utility ≥ 0.1, 0.2, …, 1.5: grid LP, 115,921 columns.
GRID_OPTIMUM = dict(
    zip(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        [
            *(0.01751, 0.03589, 0.05434, 0.07283, 0.09137, 0.10997, 0.13291, 0.17814),
            *(0.22471, 0.28280, 0.34548, 0.40933, 0.47318, 0.53703, 0.60089),
        ],
        strict=True,
    )
)


def quiet(function, *args, **options):
    """Call it; a solver that says it did not converge is no failure here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return function(*args, **options)


def assert_valid(solution):
    p = solution.mechanism.p_z_given_x
    joint = solution.joint
    assert p.shape == (joint.n_x, solution.mechanism.n_z)
    assert np.all(np.isfinite(p))
    assert np.all(p >= 0)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    utility, leakage = slow_information(joint.p_xy, p)
    assert solution.utility == pytest.approx(utility, abs=1e-12)
    assert solution.leakage == pytest.approx(leakage, abs=1e-12)
    assert -1e-12 <= leakage <= utility + 1e-12 <= joint.entropy_x + 2e-12
    assert np.all(np.isfinite(solution.history[~np.isnan(solution.history)]))
    assert (solution.gap is None) == (solution.method != "exact")


def test_the_check_fails_on_wrong_numbers():
    solution = pf.solve(paper_joint(), beta=0.3, n_starts=2, rng=0)
    solution.__dict__["_measured"] = (0.5, 0.1)
    with pytest.raises(AssertionError):
        assert_valid(solution)


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 5), (5, 2), (4, 4)])
def test_every_method_on_every_kind_of_joint(method, kind, shape):
    joint = random_joint(np.random.default_rng(sum(map(ord, kind))), *shape, kind)
    for beta in (0.0, 0.3, 2.0):
        assert_valid(quiet(pf.solve, joint, beta=beta, method=method, n_starts=2, max_steps=200, rng=0))


@pytest.mark.parametrize("method", SOLVERS)
def test_every_method_on_the_joints_that_broke_a_published_solver(method):
    rng = np.random.default_rng(0)
    base = rng.dirichlet(np.ones(3), size=3)
    mixture = np.vstack([base[:2], 0.4 * base[0] + 0.6 * base[1]])
    duplicated = np.vstack([base[:2], base[1]])
    unused = np.zeros((4, 3))
    unused[:3] = base / 3
    for joint in (
        pf.Joint.from_channel(mixture, np.full(3, 1 / 3)),
        pf.Joint.from_channel(duplicated, np.full(3, 1 / 3)),
        pf.Joint(unused),
        random_joint(rng, 10, 10),
    ):
        assert_valid(quiet(pf.solve, joint, beta=0.4, method=method, n_starts=3, max_steps=500, rng=0))


@pytest.mark.parametrize("method", SOLVERS)
def test_the_same_seed_gives_the_same_bits_for_any_number_of_workers(method):
    joint = random_joint(np.random.default_rng(1), 5, 3)
    options = {"method": method, "n_starts": 4, "max_steps": 100, "rng": 7}
    solutions = [quiet(pf.solve, joint, beta=0.3, n_jobs=n, **options) for n in (1, 2, 3)]
    for other in solutions[1:]:
        np.testing.assert_array_equal(
            other.mechanism.p_z_given_x, solutions[0].mechanism.p_z_given_x, strict=True
        )
        np.testing.assert_array_equal(other.history, solutions[0].history)


@pytest.mark.parametrize("method", SOLVERS)
@pytest.mark.parametrize("kind", ["dense", "zeros", "tiny", "rank1", "deterministic", "zero-row"])
def test_constraints_hold(method, kind):
    joint = random_joint(np.random.default_rng(3), 4, 3, kind)
    options = {"method": method, "n_starts": 2, "max_steps": 100, "rng": 0}
    for share in (0.0, 0.4, 1.0):
        wanted = share * joint.entropy_x
        solution = quiet(pf.solve, joint, min_utility=wanted, **options)
        assert_valid(solution)
        assert solution.utility >= wanted - 1e-9
        allowed = share * joint.mutual_information
        solution = quiet(pf.solve, joint, max_leakage=allowed, **options)
        assert_valid(solution)
        assert solution.leakage <= allowed + 1e-9


@pytest.mark.parametrize("utility", GRID_OPTIMUM)
def test_dca_reaches_the_optimum_of_the_papers_joint(utility):
    solution = pf.solve(paper_joint(), min_utility=utility, method="dca", n_starts=20, rng=0)
    assert solution.utility >= utility - 1e-12
    # The grid's own values are optimal to about 1e-5.
    assert -2e-5 <= solution.leakage - GRID_OPTIMUM[utility] <= 1e-4


def test_the_frontier_of_dca_reaches_it_everywhere():
    front = pf.frontier(paper_joint(), method="dca", n_starts=20, rng=0)
    for utility, leakage in GRID_OPTIMUM.items():
        assert -2e-5 <= front.leakage_at(utility) - leakage <= 1e-4


@pytest.mark.parametrize("known", known_joints(), ids=lambda known: known.name)
def test_dca_on_joints_with_a_known_optimum(known):
    front = pf.frontier(known.joint, method="dca", n_points=24, n_starts=10, rng=0)
    for utility, leakage in known.points:
        found = front.leakage_at(utility)
        assert found >= leakage - known.tolerance - 1e-9, "better than the optimum: one of the two is wrong"
        assert found <= leakage + 2e-3


@pytest.mark.parametrize("method", ["greedy", "submodular"])
def test_deterministic_methods_find_the_papers_partitions(method):
    """Of the five partitions three are not dominated; sweeping β finds exactly those."""
    front = pf.frontier(paper_joint(), method=method, betas=np.geomspace(0.01, 10, 40), rng=0)
    found = {(round(p.utility, 4), round(p.leakage, 4)) for p in front.points}
    assert found == {(0.0, 0.0), (0.9183, 0.2334), (1.585, 0.6551)}


def test_beta_of_one_or_more_releases_x():
    for beta in (1.0, 4.0):
        solution = pf.solve(paper_joint(), beta=beta, method="dca", rng=0)
        assert solution.objective == pytest.approx(0.655136 - beta * 1.584963, abs=1e-4)


def test_a_limit_cycle_is_reported_and_the_best_iterate_returned():
    """The orbits of the ridge solver at this α are known from the paper's own sweep."""
    joint = paper_joint()
    with pytest.warns(ConvergenceWarning, match="runs stopped before"):
        front = pf.frontier(joint, method="dca-ridge", betas=[2.929], alpha=0.341, n_z=4, n_starts=10, rng=0)
    circling = [point for point in front.points if point.status is pf.Status.CYCLE]
    assert circling
    assert all(np.isfinite(point.utility) for point in circling)


def test_a_run_that_hits_the_step_limit_says_so():
    with pytest.warns(ConvergenceWarning, match="max_steps"):
        solution = pf.solve(paper_joint(), beta=0.2, method="dca", n_starts=1, max_steps=1, tol=0, rng=0)
    assert solution.status is pf.Status.STEP_LIMIT
    with pytest.raises(pf.errors.NotConvergedError, match="step limit"):
        solution.raise_for_status()


def test_rank_deficiency_is_noted():
    joint = random_joint(np.random.default_rng(0), 4, 3, "low-rank")
    noted = quiet(pf.solve, joint, beta=0.3, method="dca-ridge", n_starts=1, rng=0)
    assert "rank 2" in noted.notes[0]
    assert pf.solve(joint, beta=0.3, method="dca", n_starts=1, rng=0).notes == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of beta"),
        ({"beta": 0.1, "min_utility": 0.1}, "got beta, min_utility"),
        ({"beta": -1}, "beta must be a finite number, at least 0"),
        ({"beta": float("nan")}, "beta must be"),
        ({"beta": "much"}, "it is 'much'"),
        ({"beta": 0.1, "method": "magic"}, "method must be one of auto, exact"),
        ({"beta": 0.1, "method": "dca", "alpha": 1.0}, "alpha belongs to"),
        ({"beta": 0.1, "method": "dca", "penalty": 1.0}, "penalty belongs to"),
        ({"beta": 0.1, "method": "dca-ridge", "alpha": 0}, "alpha must be a finite number, more than 0"),
        ({"beta": 0.1, "n_z": 0}, "n_z must be a whole number"),
        ({"beta": 0.1, "n_starts": 1.5}, "n_starts must be a whole number"),
        ({"beta": 0.1, "rng": "seed"}, "rng must be"),
        ({"beta": 0.1, "rng": -1}, "rng must be"),
        ({"beta": 0.1, "n_jobs": 0}, "n_jobs must be"),
        ({"max_leakage": -0.1}, "max_leakage must be"),
    ],
)
def test_bad_arguments_get_one_sentence(options, message):
    with pytest.raises(InvalidInputError, match=message):
        pf.solve(paper_joint(), **options)


NUMERIC = ("beta", "min_utility", "max_leakage", "tol", "time_limit", "node_limit", "n_starts", "max_steps")


@pytest.mark.parametrize(
    "value",
    ["0.1", b"1", 10**400, 10**5000, True, np.True_, np.array([0.1]), 1j, []],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("name", [*NUMERIC, "n_z", "n_jobs", "alpha", "penalty"])
def test_what_is_no_number_gets_one_sentence(name, value):
    if (name, type(value)) == ("alpha", np.ndarray):
        return  # several values of it are fine
    method = {"alpha": "dca-ridge", "penalty": "splitting"}.get(name, "auto")
    target = {} if name in NUMERIC[:3] else {"beta": 0.1}
    with pytest.raises(InvalidInputError) as raised:
        pf.solve(paper_joint(), **target, **{name: value}, method=method)
    assert name in str(raised.value)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    "options", [{"n_points": "4"}, {"betas": 0.3}, {"betas": "0.3"}, {"betas": [True]}, {"n_points": 10**400}]
)
def test_a_frontier_asks_for_numbers_too(options):
    with pytest.raises(InvalidInputError, match=r"betas? must be|n_points must be"):
        pf.frontier(paper_joint(), method="dca", n_starts=1, **options)


def test_a_frontier_of_several_methods_is_that_of_each_together():
    options = {"n_points": 3, "n_starts": 2, "rng": 0}
    methods = ["greedy", "dca-ridge", "exact", "greedy"]
    front = quiet(pf.frontier, paper_joint(), method=methods, alpha=0.3, n_z=3, **options)
    assert front.methods == ("greedy", "dca-ridge", "exact")
    own = {"greedy": {}, "dca-ridge": {"alpha": 0.3, "n_z": 3}, "exact": {}}
    for name, settings in own.items():
        alone = quiet(pf.frontier, paper_joint(), method=name, **settings, **options)
        found, expected = front.select(name), alone.select(name)
        assert [(p.utility, p.leakage) for p in found.points] == [
            (p.utility, p.leakage) for p in expected.points
        ]
    assert front.support_lines
    with pytest.raises(InvalidInputError, match="alpha belongs to"):
        pf.frontier(paper_joint(), method=["greedy", "dca"], alpha=0.3)
    with pytest.raises(InvalidInputError, match="method must be one of"):
        pf.frontier(paper_joint(), method=["greedy", "magic"])
    with pytest.raises(InvalidInputError, match="at least one value"):
        pf.frontier(paper_joint(), method=[])


@pytest.mark.parametrize("method", [*SOLVERS, "auto"])
def test_utility_of_x_but_for_rounding_is_that_of_x(method):
    whole = paper_joint().entropy_x
    solution = quiet(pf.solve, paper_joint(), min_utility=whole + 9e-10, method=method, n_starts=2, rng=0)
    assert solution.utility == pytest.approx(whole, abs=1e-9)
    with pytest.raises(InfeasibleError, match="more than H"):
        pf.solve(paper_joint(), min_utility=whole + 1.1e-9, method=method)


@pytest.mark.parametrize("method", ["exact", "dca", "greedy"])
def test_a_limit_above_what_x_leaks_is_said_to_do_nothing(method):
    joint = paper_joint()
    options = {"method": method, "n_starts": 2, "rng": 0}
    solution = quiet(pf.solve, joint, max_leakage=joint.mutual_information + 0.1, **options)
    assert "does nothing: releasing X itself leaks 0.6551 bit" in solution.notes[0]
    assert solution.utility == pytest.approx(joint.entropy_x)
    limited = quiet(pf.solve, joint, max_leakage=joint.mutual_information - 0.1, **options)
    assert not any("does nothing" in note for note in limited.notes)


def sparse_sample(seed):
    """Some six records a letter of a known joint, and that joint on the letters that occur."""
    rng = np.random.default_rng(seed)
    truth = pf.Joint.from_channel(rng.dirichlet(np.ones(2), size=100), rng.dirichlet(np.ones(100)))
    counts = rng.multinomial(500, truth.p_xy.ravel()).reshape(100, 2)
    seen = counts.any(axis=1)
    return pf.Joint.from_counts(counts[seen], x_names="town"), pf.Joint(
        truth.p_xy[seen] / truth.p_xy[seen].sum()
    )


@pytest.mark.parametrize("seed", range(3))
def test_few_records_a_letter_are_warned_of_with_numbers_that_hold(seed):
    sample, truth = sparse_sample(seed)
    with pytest.warns(FewRecordsWarning) as caught:
        solution = pf.solve(sample, max_leakage=0.01, rng=0)
    (message,) = [str(warning.message) for warning in caught]
    told = re.search(
        r"500 records for (\d+) letters of town \((.*) a letter\) .* up to ([\d.]+) bit", message
    )
    assert int(told[1]) == sample.n_x
    assert float(told[2]) == pytest.approx(500 / sample.n_x, abs=0.05)
    assert "Merge rare letters" in message
    assert solution.notes[0] == message
    on_new_people = pf.measure(solution.mechanism, truth).leakage
    assert solution.leakage <= 0.01 + 1e-9 < on_new_people < float(told[3])
    assert float(told[3]) == pytest.approx(solution.leakage_interval(rng=1).high, rel=0.15)


def test_few_records_are_warned_of_in_frontiers_and_perfect_privacy():
    sample, _ = sparse_sample(0)
    with pytest.warns(FewRecordsWarning, match="500 records for .* solve tells how much"):
        pf.frontier(sample, method="greedy", n_points=2)
    with pytest.warns(FewRecordsWarning, match="on new people this release may leak up to"):
        pf.perfect_privacy(sample)


def test_many_records_a_letter_and_known_joints_are_not_warned_of():
    counts = np.rint(paper_joint().p_xy * 3 * 20)
    assert counts.sum() == 60
    assert pf.solve(pf.Joint.from_counts(counts), beta=0.1).few_records() is None
    assert pf.solve(pf.Joint(sparse_sample(0)[0].p_xy), beta=0.5).few_records() is None


def test_printing_shows_the_interval():
    counts = np.rint(paper_joint().p_xy * 600)
    solution = pf.solve(pf.Joint.from_counts(counts), beta=0.3)
    likely = solution.leakage_interval(n_draws=200, rng=0)
    records = f"{int(counts.sum())} records and {likely.low:.2g} to {likely.high:.2g} on new people (95 %)"
    assert records in str(solution)
    assert "new people" not in str(pf.solve(paper_joint(), beta=0.3))


@pytest.mark.parametrize("method", [*SOLVERS, "auto"])
def test_tables_that_memory_cannot_hold_are_refused_before_any_work(method):
    joint = pf.Joint(np.full((100_000, 3), 1e-5 / 3))  # two private values need no tables
    for function, target in ((pf.solve, {"min_utility": 1.0}), (pf.frontier, {})):
        with pytest.raises(InvalidInputError, match=r"100,000 letters of X .* GiB of memory.* Merge rare"):
            function(joint, method=method, **target)
    with pytest.raises(InvalidInputError, match="GiB of memory"):
        pf.perfect_privacy(joint)


def test_few_symbols_for_many_letters_fit(monkeypatch):
    monkeypatch.setattr("privacyfunnel.discrete.arguments.memory_size", lambda: 2**22)
    joint = pf.Joint(np.full((1000, 2), 5e-4))
    assert pf.solve(joint, beta=0.5, n_z=2, n_starts=1, rng=0).mechanism.n_z == 2
    with pytest.raises(InvalidInputError, match="n_z"):
        pf.solve(joint, beta=0.5, n_z=200, n_starts=1, rng=0)


def test_a_search_makes_the_table_of_letters_and_letters_once(monkeypatch):
    made = []
    identity = pf.TableMechanism.identity
    monkeypatch.setattr(
        pf.TableMechanism, "identity", lambda joint: made.append(joint) or identity(joint), raising=True
    )
    solution = pf.solve(paper_joint(), min_utility=1.0, method="dca", n_starts=2, rng=0)
    assert len(solution.history) > 1
    assert len(made) == 1
    pf.solve(paper_joint(), beta=0.3, method="dca", n_starts=2, rng=0)
    assert len(made) == 1, "a fixed β needs no frontier"


def test_more_utility_than_there_is_cannot_be_asked_for():
    with pytest.raises(InfeasibleError, match="more than H"):
        pf.solve(paper_joint(), min_utility=2.0)
