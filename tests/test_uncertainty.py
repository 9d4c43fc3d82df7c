"""Intervals: measured coverage on simulated records, and the pieces they are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from privacyfunnel.certificate import leakage_bound
from privacyfunnel.discrete.solve import solve
from privacyfunnel.errors import InvalidInputError, UnknownLetterError
from privacyfunnel.information import mutual_information, utility_and_leakage
from privacyfunnel.joint import Joint
from privacyfunnel.measured import Interval
from privacyfunnel.mechanism import TableMechanism
from privacyfunnel.resampling import leakage_bias, posterior_leakage, posterior_utility, sampled_leakage
from privacyfunnel.solution import Solution, Status
from privacyfunnel.uncertainty import (
    held_out_leakage,
    leakage_interval,
    split_joint,
    utility_interval,
)

Choose = Callable[[Joint, np.random.Generator], TableMechanism]


def random_truth(rng: np.random.Generator, n_x: int, n_y: int) -> np.ndarray:
    return rng.dirichlet(np.full(n_x, 2.0))[:, None] * rng.dirichlet(np.ones(n_y), size=n_x)


def with_leakage(p_xy: np.ndarray, table: np.ndarray, leakage: float) -> np.ndarray:
    """p_xy mixed with independence until the table leaks that much (or p_xy itself if it leaks less)."""
    independent = np.outer(p_xy.sum(axis=1), p_xy.sum(axis=0))
    low, high = 0.0, 1.0
    for _ in range(40):
        t = (low + high) / 2
        leaks = utility_and_leakage((1 - t) * independent + t * p_xy, table)[1]
        low, high = (low, t) if leaks > leakage else (t, high)
    return (1 - low) * independent + low * p_xy if leakage > 0 else independent


def fixed(table: np.ndarray) -> Choose:
    return lambda joint, rng: TableMechanism(table)


def optimised(beta: float) -> Choose:
    """Minimise I(Z;Y) − β I(Z;X) on the very records that the interval is made from: 4 starts, 150 steps.

    p(z|x) ← p(z|x)^{1+β} p(z)^{1−β} exp(−Σ_y p(y|x) log p(z|y)), rows normalised.
    """

    def choose(joint: Joint, rng: np.random.Generator) -> TableMechanism:
        p_xy = joint.p_xy[joint.p_x > 0][:, joint.p_y > 0]
        p_x, p_y = p_xy.sum(axis=1), p_xy.sum(axis=0)
        tables = rng.dirichlet(np.ones(joint.n_x + 1), size=(4, p_x.size)) + 1e-9
        for _ in range(150):
            p_z, p_zy = p_x @ tables, p_xy.T @ tables / p_y[:, None]
            logs = (1 + beta) * np.log(tables) + (1 - beta) * np.log(p_z)[:, None]
            logs -= p_xy / p_x[:, None] @ np.log(p_zy)
            # Symbols that die out stay just above 0, so that no logarithm is infinite.
            tables = np.exp(logs - logs.max(axis=2, keepdims=True)) + 1e-12
            tables /= tables.sum(axis=2, keepdims=True)
        measured = np.array([utility_and_leakage(p_xy, table) for table in tables])
        whole = np.full((joint.n_x, joint.n_x + 1), 1 / (joint.n_x + 1))
        whole[joint.p_x > 0] = tables[np.argmin(measured[:, 1] - beta * measured[:, 0])]
        return TableMechanism(whole)

    return choose


def best_partition(joint: Joint, rng: np.random.Generator) -> TableMechanism:
    """Of 200 random two-way partitions with at least half of the utility, the one that leaks least."""
    choices = np.eye(2)[rng.integers(2, size=(200, joint.n_x))]
    measured = np.array([utility_and_leakage(joint.p_xy, table) for table in choices])
    useful = measured[:, 0] >= 0.5 * measured[:, 0].max()
    return TableMechanism(choices[np.argmin(np.where(useful, measured[:, 1], np.inf))])


def privately_empty(joint: Joint, rng: np.random.Generator) -> TableMechanism:
    """Two symbols that leak exactly nothing on the records: p(z|x) varies in the null space of p_xy."""
    null = np.linalg.svd(joint.p_xy.T)[2][joint.n_y :]
    direction = rng.normal(size=len(null)) @ null
    half = direction / np.abs(direction).max() / 2
    return TableMechanism(np.stack([0.5 + half, 0.5 - half], axis=1))


def misses(
    truths: Callable[[np.random.Generator], np.ndarray],
    choose: Choose,
    n: int,
    repetitions: int,
    seed: int,
    make: Callable[..., Interval] = leakage_interval,
    which: int = 1,
    n_draws: int = 200,
    **options: bool,
) -> tuple[float, float]:
    """How often the true value lies below and above the 95 % interval."""
    rng = np.random.default_rng(seed)
    below = above = 0
    for _ in range(repetitions):
        p_xy = truths(rng)
        joint = Joint.from_counts(rng.multinomial(n, p_xy.ravel()).reshape(p_xy.shape))
        mechanism = choose(joint, rng)
        interval = make(mechanism, joint, n_draws=n_draws, rng=rng, **options)
        true = utility_and_leakage(p_xy, mechanism.p_z_given_x)[which]
        below += true < interval.low - 1e-12
        above += true > interval.high + 1e-12
    return below / repetitions, above / repetitions


NOISY = np.random.default_rng(8).dirichlet(np.full(3, 0.3), size=5)
TRUTH = random_truth(np.random.default_rng(9), 5, 3)


@pytest.mark.parametrize(
    ("n", "leakage", "choose"),
    [
        (300, 0.0, fixed(NOISY)),
        (300, 0.05, fixed(NOISY)),
        (3000, 0.3, optimised(beta=0.3)),
        (1000, 0.3, privately_empty),
    ],
    ids=["independent", "small", "optimised", "empty"],
)
def test_interval_covers_at_about_its_level(n, leakage, choose):
    table = choose(Joint(TRUTH), np.random.default_rng(0)).p_z_given_x
    p_xy = with_leakage(TRUTH, table if choose is not privately_empty else np.eye(5), leakage)
    below, above = misses(lambda rng: p_xy, choose, n, 200, seed=1)
    assert 0.90 <= 1 - below - above <= 0.985


def test_resampling_without_care_does_not_cover():
    """The plain percentile interval of the Bayesian bootstrap: its low end is above zero leakage always."""

    def percentile(mechanism, joint, n_draws, rng):
        draws = posterior_leakage(joint.p_xy * joint.n_samples, mechanism.p_z_given_x, n_draws, rng)
        return Interval(*np.quantile(draws, [0.025, 0.975]), 0.95, "percentile", n_draws)

    independent = np.outer(TRUTH.sum(axis=1), TRUTH.sum(axis=0))
    below, _ = misses(lambda rng: independent, fixed(NOISY), 300, 50, seed=2, make=percentile)
    assert below == 1


def test_a_mechanism_fitted_on_the_records_needs_the_in_sample_interval():
    def truths(rng):
        return random_truth(rng, 8, 4)

    _, honest = misses(truths, optimised(beta=0.05), 400, 80, seed=4)
    _, as_if_held_out = misses(truths, optimised(beta=0.05), 400, 80, seed=4, held_out=True)
    assert honest <= 0.05
    assert as_if_held_out > 0.2


def test_held_out_interval_covers_and_is_tighter():
    p_xy = with_leakage(TRUTH, NOISY, 0.02)
    below, above = misses(lambda rng: p_xy, fixed(NOISY), 500, 150, seed=5, held_out=True)
    assert 0.90 <= 1 - below - above <= 0.985
    joint = Joint.from_counts(np.random.default_rng(6).multinomial(500, p_xy.ravel()).reshape(p_xy.shape))
    mechanism = TableMechanism(NOISY)
    tight = leakage_interval(mechanism, joint, held_out=True, rng=0)
    assert tight.method == "held-out"
    assert tight.high < leakage_interval(mechanism, joint, rng=0).high


def test_utility_interval_covers():
    below, above = misses(lambda rng: TRUTH, fixed(NOISY), 300, 200, 7, make=utility_interval, which=0)
    assert 0.90 <= 1 - below - above <= 0.99


SHAPES = [(2, 2), (5, 3), (10, 5)]


@pytest.mark.full
@pytest.mark.parametrize("n", [200, 2000, 20000])
@pytest.mark.parametrize(("n_x", "n_y"), SHAPES)
@pytest.mark.parametrize("leakage", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("held_out", [False, True])
def test_coverage_of_fixed_mechanisms(n_x, n_y, n, leakage, held_out):
    """Random joints and random, partition and identity mechanisms: a different one each time."""
    current: list[np.ndarray] = []

    def truths(rng):
        tables = [np.eye(n_x), np.eye(2)[rng.integers(2, size=n_x)], rng.dirichlet(np.full(3, 0.3), size=n_x)]
        current[:] = [tables[rng.integers(3)]]
        return with_leakage(random_truth(rng, n_x, n_y), current[0], leakage)

    below, above = misses(
        truths, lambda j, g: TableMechanism(current[0]), n, 400, n, n_draws=500, held_out=held_out
    )
    assert below <= 0.065
    assert above <= (0.09 if held_out else 0.065)


@pytest.mark.full
@pytest.mark.parametrize("n", [200, 2000, 20000])
@pytest.mark.parametrize(("n_x", "n_y"), SHAPES)
@pytest.mark.parametrize("information", [0.02, 1.0], ids=["weak", "strong"])
@pytest.mark.parametrize(
    "choose",
    [optimised(beta=0.05), optimised(beta=0.3), best_partition, privately_empty],
    ids=["beta=0.05", "beta=0.3", "partition", "empty"],
)
def test_coverage_of_mechanisms_chosen_on_the_records(n_x, n_y, n, information, choose):
    if choose is privately_empty and n_x <= n_y:
        pytest.skip("needs more letters than private ones")
    below, above = misses(
        lambda rng: with_leakage(random_truth(rng, n_x, n_y), np.eye(n_x), information),
        choose,
        n,
        200,
        seed=n,
        n_draws=400,
    )
    assert below <= 0.065
    assert above <= 0.065


def test_leakage_draws_agree_with_a_loop_over_whole_tables():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 5, size=(4, 3)) * 1.0
    counts[1] = 0
    table = rng.dirichlet(np.ones(3), size=4)
    draws = posterior_leakage(counts, table, 4000, np.random.default_rng(1))
    slow = []
    for _ in range(4000):
        p = rng.standard_gamma(counts)
        slow.append(mutual_information((p / p.sum()).T @ table))
    assert draws.mean() == pytest.approx(np.mean(slow), rel=0.05)
    assert np.quantile(draws, 0.9) == pytest.approx(np.quantile(slow, 0.9), rel=0.08)
    p_xy = counts / counts.sum()
    sampled = sampled_leakage(p_xy, table, 30, 4000, np.random.default_rng(1))
    slow = [
        mutual_information((rng.multinomial(30, p_xy.ravel()).reshape(4, 3) / 30).T @ table)
        for _ in range(4000)
    ]
    assert sampled.mean() == pytest.approx(np.mean(slow), rel=0.05)
    assert np.quantile(sampled, 0.9) == pytest.approx(np.quantile(slow, 0.9), rel=0.08)


def test_utility_draws_agree_with_a_loop_over_whole_tables():
    rng = np.random.default_rng(0)
    counts, table = np.array([5.0, 0.0, 2.0, 9.0]), rng.dirichlet(np.ones(3), size=4)
    draws = posterior_utility(counts, table, 4000, np.random.default_rng(1))
    slow = []
    for _ in range(4000):
        p = rng.standard_gamma(counts)
        slow.append(mutual_information((p / p.sum())[:, None] * table))
    assert draws.mean() == pytest.approx(np.mean(slow), rel=0.02)
    assert np.quantile(draws, 0.9) == pytest.approx(np.quantile(slow, 0.9), rel=0.03)


def test_blocks_of_draws_do_not_change_the_result(monkeypatch):
    counts, table = np.arange(12.0).reshape(4, 3), np.eye(4)
    whole = posterior_leakage(counts, table, 50, np.random.default_rng(0))
    monkeypatch.setattr("privacyfunnel.resampling.BLOCK", 100)
    assert np.array_equal(whole, posterior_leakage(counts, table, 50, np.random.default_rng(0)))


@pytest.mark.parametrize(
    "table", [np.eye(4), np.eye(2)[[0, 1, 1, 0]], NOISY[:4]], ids=["all", "merge", "noisy"]
)
def test_bias_is_the_mean_excess_of_samples(table):
    p_xy = random_truth(np.random.default_rng(0), 4, 3)
    n = 2000
    true = utility_and_leakage(p_xy, table)[1]
    draws = sampled_leakage(p_xy, table, n, 40_000, np.random.default_rng(1))
    error = draws.std() / math.sqrt(draws.size)
    assert draws.mean() - true == pytest.approx(leakage_bias(p_xy, table, n), abs=4 * error)


def test_bias_of_a_partition_is_the_textbook_one():
    p_xy = random_truth(np.random.default_rng(0), 6, 4)
    table = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    assert leakage_bias(p_xy, table, 500) == pytest.approx(2 * 3 / (2 * 500 * math.log(2)))


def sample(n: int = 500) -> Joint:
    counts = np.random.default_rng(2).multinomial(n, TRUTH.ravel()).reshape(TRUTH.shape)
    return Joint.from_counts(counts, x_labels=list("abcde"), x_names=["job"])


def test_solution_has_intervals_and_the_seed_decides_them():
    joint = sample()
    mechanism = TableMechanism(NOISY, x_labels=joint.x_labels, x_names=joint.x_names)
    solution = Solution(joint, mechanism, "test", Status.FINISHED)
    interval = solution.leakage_interval(rng=3)
    assert interval == solution.leakage_interval(rng=3)
    assert interval != solution.leakage_interval(rng=4)
    assert (interval.level, interval.method, interval.n_draws) == (0.95, "in-sample", 2000)
    assert solution.leakage in interval
    wider = solution.leakage_interval(level=0.99, rng=3)
    assert wider.low < interval.low < interval.high < wider.high
    assert solution.utility in solution.utility_interval(rng=3)


def test_known_joint_has_no_uncertainty():
    solution = Solution(Joint(TRUTH), TableMechanism(NOISY), "test", Status.FINISHED)
    leakage = solution.leakage_interval()
    assert (leakage.low, leakage.high, leakage.method) == (solution.leakage, solution.leakage, "exact")
    utility = solution.utility_interval()
    assert utility.low == utility.high == solution.utility


def test_more_records_make_it_narrower():
    widths = []
    for n in (200, 2000, 20000):
        joint = Joint(TRUTH, n_samples=n)
        interval = leakage_interval(TableMechanism(NOISY), joint, rng=0)
        widths.append(interval.high - interval.low)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]


@pytest.mark.parametrize(
    ("counts", "table"),
    [
        ([[5, 5], [3, 9]], [[1.0], [1.0]]),
        ([[4, 6]], [[0.5, 0.5]]),
        ([[4], [6]], np.eye(2)),
        ([[4, 0], [6, 0]], np.eye(2)),
    ],
    ids=["constant", "one-letter", "one-private-letter", "unused-private-letter"],
)
def test_what_cannot_leak_has_no_leakage_interval(counts, table):
    interval = leakage_interval(TableMechanism(table), Joint.from_counts(counts), rng=0)
    assert interval.low == 0
    assert interval.high == pytest.approx(0, abs=1e-12)


def test_odd_tables_give_finite_ordered_intervals():
    for counts in ([[1, 0], [0, 0]], [[1, 0], [0, 1]], [[50, 0], [0, 50]], [[0, 7, 0], [1, 0, 0]]):
        joint = Joint.from_counts(counts)
        for held_out in (False, True):
            interval = leakage_interval(TableMechanism(np.eye(2)), joint, held_out=held_out, rng=0)
            assert 0 <= interval.low <= interval.high <= 1
        interval = utility_interval(TableMechanism(np.eye(2)), joint, rng=0)
        assert 0 <= interval.low <= interval.high <= 1


@pytest.mark.parametrize("n", [2, 4, 20, 100])
def test_few_records_that_agree_prove_little(n):
    """Y is X in all of n balanced records: the low end is where that happens in 2.5 % of samples."""
    joint = Joint(np.eye(2) / 2, n_samples=n)
    interval = leakage_interval(TableMechanism(np.eye(2)), joint, rng=0)
    # A sample of the mixture leaks a whole bit if it is balanced and Y is X, or not X, in all n records.
    balanced = math.comb(n, n // 2) / 2**n
    shares = np.linspace(0, 1, 10_001)
    whole = balanced * (((1 + shares) / 2) ** n + ((1 - shares) / 2) ** n)
    flip = (1 - shares[np.argmax(whole >= 0.025)]) / 2
    entropy = 0.0 if flip == 0 else -(flip * math.log2(flip) + (1 - flip) * math.log2(1 - flip))
    assert interval.low == pytest.approx(1 - entropy, abs=0.05)
    assert interval.low == 0 or n > 4
    assert interval.high == pytest.approx(1, abs=0.01)


def test_split_keeps_every_record_and_letter():
    joint = sample(501)
    counts = np.rint(joint.p_xy * 501)
    fit, test = split_joint(joint, 0.6, rng=0)
    assert (fit.n_samples, test.n_samples) == (301, 200)
    assert np.array_equal(np.rint(fit.p_xy * 301) + np.rint(test.p_xy * 200), counts)
    assert fit.x_labels == test.x_labels == joint.x_labels
    assert fit.x_names == ("job",)
    again, _ = split_joint(joint, 0.6, rng=0)
    assert np.array_equal(fit.p_xy, again.p_xy)


def test_split_is_a_random_choice_of_records():
    joint = Joint.from_counts([[30, 10], [5, 55]])
    parts = np.array([np.rint(split_joint(joint, 0.3, rng=i)[0].p_xy * 30) for i in range(2000)])
    # Hypergeometric: mean and variance of drawing 30 of 100 records.
    share = joint.p_xy
    assert parts.mean(axis=0) == pytest.approx(30 * share, rel=0.02)
    assert parts.var(axis=0) == pytest.approx(30 * share * (1 - share) * 70 / 99, rel=0.12)


def test_split_of_very_many_records(monkeypatch):
    monkeypatch.setattr("privacyfunnel.uncertainty._HYPERGEOMETRIC_LIMIT", 100)
    joint = sample(501)
    fit, test = split_joint(joint, 0.6, rng=0)
    total = np.rint(fit.p_xy * fit.n_samples) + np.rint(test.p_xy * test.n_samples)
    assert np.array_equal(total, np.rint(joint.p_xy * 501))


def test_solve_on_one_half_and_measure_on_the_other():
    rng = np.random.default_rng(11)
    p_xy = random_truth(rng, 8, 3)
    joint = Joint.from_counts(rng.multinomial(2000, p_xy.ravel()).reshape(p_xy.shape))
    fit, test = split_joint(joint, 0.5, rng=0)
    solution = solve(fit, beta=0.1, n_starts=3, rng=0, n_jobs=1)
    estimate = held_out_leakage(solution.mechanism, test, rng=0)
    true = utility_and_leakage(p_xy, solution.mechanism.p_z_given_x)[1]
    assert true in estimate.interval
    assert estimate.n_samples == 1000
    plug_in = utility_and_leakage(test.p_xy, solution.mechanism.p_z_given_x)[1]
    assert 0 <= estimate.value < plug_in


def test_held_out_letters_are_matched_by_label():
    joint = sample()
    mechanism = TableMechanism(NOISY, x_labels=joint.x_labels)
    order = [3, 1, 4, 0]
    kept = Joint.from_counts(np.rint(joint.p_xy * 500)[order], x_labels=[joint.x_labels[i] for i in order])
    padded = np.rint(joint.p_xy * 500)
    padded[2] = 0
    same = Joint.from_counts(padded, x_labels=joint.x_labels)
    assert held_out_leakage(mechanism, kept, rng=0).value == pytest.approx(
        held_out_leakage(mechanism, same, rng=0).value
    )
    with pytest.raises(UnknownLetterError, match="'z'"):
        held_out_leakage(mechanism, Joint.from_counts([[1, 2]], x_labels=["z"]))
    unused = Joint.from_counts([[0, 0], [4, 5]], x_labels=["z", "a"])
    assert held_out_leakage(mechanism, unused, rng=0).value == pytest.approx(0, abs=1e-12)


def test_known_joint_as_the_held_out_one_is_exact():
    estimate = held_out_leakage(TableMechanism(NOISY), Joint(TRUTH))
    assert estimate.value == estimate.interval.low == utility_and_leakage(TRUTH, NOISY)[1]
    assert (estimate.kind, estimate.n_samples) == ("exact", None)


def test_bad_arguments_are_named_with_the_remedy():
    joint, mechanism = sample(), TableMechanism(NOISY, x_labels=list("abcde"))
    with pytest.raises(InvalidInputError, match="level"):
        leakage_interval(mechanism, joint, level=95)
    with pytest.raises(InvalidInputError, match="n_draws must be at least 80"):
        leakage_interval(mechanism, joint, n_draws=10)
    for wrong in ({"level": "0.95"}, {"level": True}, {"n_draws": 1e3}, {"n_draws": "200"}):
        with pytest.raises(InvalidInputError, match="must be a"):
            leakage_interval(mechanism, joint, **wrong)
    with pytest.raises(InvalidInputError, match="from_counts"):
        split_joint(Joint(TRUTH))
    with pytest.raises(InvalidInputError, match="from_counts"):
        split_joint(Joint(TRUTH, n_samples=7))
    with pytest.raises(InvalidInputError, match="fraction"):
        split_joint(joint, 1.0)
    with pytest.raises(InvalidInputError, match="empty"):
        split_joint(Joint.from_counts([[1, 0]]), 0.5)


def test_a_rare_symbol_that_reveals_all_is_beyond_the_held_out_interval_and_within_the_certificate():
    """What the docstring of `held_out_leakage` says it is not good for."""
    rng = np.random.default_rng(0)
    population = np.array([[0.495, 0.495], [0.0, 0.01]])
    truth = mutual_information(population)
    mechanism = TableMechanism(np.eye(2), x_labels=["common", "rare"])
    missed = certified = 0
    for i in range(60):
        counts = rng.multinomial(100, population.ravel()).reshape(2, 2)
        joint = Joint.from_counts(counts, x_labels=["common", "rare"])
        found = held_out_leakage(mechanism, joint, n_draws=200, rng=i)
        missed += truth > found.interval.high
        other = rng.binomial(100, population[:, 0].sum()) + 1
        certified += truth <= leakage_bound(counts, [other / 102, 1 - other / 102])
    assert missed > 15
    assert certified == 60
