"""Bounds against every adversary: against slow twins, brute force, and simulated populations."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import rel_entr

from privacyfunnel import certificate
from privacyfunnel.errors import InvalidInputError

RACE = np.array([0.854, 0.096, 0.0312, 0.0096, 0.0092])


def counts_of(rng, p_zy, n):
    return rng.multinomial(n, p_zy.ravel()).reshape(p_zy.shape).astype(float)


def information(p_zy):
    outer = p_zy.sum(axis=1, keepdims=True) * p_zy.sum(axis=0, keepdims=True)
    return float(rel_entr(p_zy, outer).sum()) / math.log(2)


def designs():
    """Hostile populations P(Z,Y): a rare symbol that reveals all, a function, independence, rare classes."""
    rng = np.random.default_rng(3)
    rare = np.array([[0.495, 0.495], [0.0, 0.01]])
    yield "one rare symbol tells all", rare
    yield "the symbol is the class", np.diag([0.3, 0.7])
    yield "independent", np.outer(rng.dirichlet(np.ones(60)), [0.33, 0.67])
    yield "a rare class is told", np.array([[0.98, 0.0], [0.0, 0.02]])
    yield "five classes", rng.dirichlet(np.ones(8))[:, None] * rng.dirichlet(40 * RACE / RACE.sum(), size=8)
    yield "twelve classes", rng.dirichlet(np.ones(6))[:, None] * rng.dirichlet(np.full(12, 2.0), size=6)


@pytest.mark.parametrize(("name", "population"), list(designs()), ids=lambda value: str(value)[:20])
@pytest.mark.parametrize("n", [60, 1_000])
def test_bounds_hold_as_often_as_they_say(name, population, n):
    rng = np.random.default_rng(7)
    repeats = 40
    truth = information(population), population.max(axis=1).sum()
    shares = population / population.sum(axis=0)
    gaps = [np.abs(shares[:, i] - shares[:, j]).sum() / 2 for i in range(shares.shape[1]) for j in range(i)]
    misses = np.zeros(3)
    for _ in range(repeats):
        other = counts_of(rng, population, n).sum(axis=0) + 1
        counts = counts_of(rng, population, n)
        reached = (
            certificate.leakage_bound(counts, other / other.sum()),
            certificate.success_bound(counts),
            certificate.parity_bound(counts),
        )
        misses += np.array(reached) < np.array([*truth, max(gaps)]) - 1e-12
    # One-sided: the bounds are conservative, so more than two standard errors above the level is a defect.
    assert (misses <= 0.05 * repeats + 2 * math.sqrt(repeats * 0.05 * 0.95)).all(), misses


def slow_excess(theta, price, q, rng, n=20_000):
    """D + u·m over random posteriors of every concentration, and over posteriors of one or two levels."""
    draws = [rng.dirichlet(q * scale + 1e-3, size=n // 4) for scale in (0.3, 3.0, 30.0, 300.0)]
    r = np.concatenate([*draws, np.eye(len(q)), q[None]])
    with np.errstate(divide="ignore"):
        moment = (r ** (1 - theta) * q**theta).sum(axis=1)
    return float((rel_entr(r, q).sum(axis=1) + price * moment).max())


@pytest.mark.parametrize("theta", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("price", [0.5, 4.0, 60.0])
@pytest.mark.parametrize("q", [[0.5, 0.5], [0.02, 0.98], RACE / RACE.sum(), np.full(10, 0.1)], ids=len)
def test_no_posterior_is_above_the_two_level_maximum(theta, price, q):
    q = np.asarray(q, dtype=float)
    rng = np.random.default_rng(0)
    assert slow_excess(theta, price, q, rng) <= certificate.largest_excess(theta, price, q, 1e-7)


@pytest.mark.parametrize("theta", [0.02, 0.3, 0.9])
@pytest.mark.parametrize("price", [0.5, 4.0, 60.0])
def test_the_maximum_is_reached(theta, price):
    q = np.array([0.2, 0.8])
    t = np.linspace(0, 1, 200_001)
    moment = t ** (1 - theta) * q[0] ** theta + (1 - t) ** (1 - theta) * q[1] ** theta
    grid = float((rel_entr(t, q[0]) + rel_entr(1 - t, q[1]) + price * moment).max())
    assert grid <= certificate.largest_excess(theta, price, q, 1e-7) <= grid + 1e-5 * price


def test_many_classes_are_covered_by_their_shares():
    """The interval that stands for all sets of classes is never below the sets themselves."""
    q = np.random.default_rng(1).dirichlet(np.ones(8))
    other = np.array([q.min(), *[(1 - q.min()) / 9] * 9])  # the same least share, and ten classes
    listed, covered = (certificate.largest_excess(0.1, 8.0, one, 1e-7) for one in (q, other))
    assert listed <= covered + 2e-7


def closed_bound(counts, q, delta=0.05):
    """I ≤ (λx + ln(m/δ)/n) / (λ − φ(λb)/φ(b)) over m values of λ: looser, independent, without a search."""
    n, b = counts.sum(), math.log(1 / q.min())
    conditional = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    x = float(rel_entr(conditional, q).sum(axis=1) @ counts.sum(axis=1)) / n
    lam = np.geomspace(0.01, 0.9, 12)
    ratio = (np.exp(-lam * b) - 1 + lam * b) / (math.exp(-b) - 1 + b)
    return float(((lam * x + math.log(len(lam) / delta) / n) / (lam - ratio)).min()) / math.log(2)


def test_sharper_than_the_closed_form_and_wider_than_the_plug_in():
    rng = np.random.default_rng(2)
    for classes in (2, 5, 10):
        q = rng.dirichlet(np.full(classes, 5.0))
        joint = rng.dirichlet(np.ones(20))[:, None] * rng.dirichlet(50 * q, size=20)
        counts = counts_of(rng, joint, 8_000)
        bound = certificate.leakage_bound(counts, q)
        assert information(counts / counts.sum()) < bound < closed_bound(counts, q)


def test_widths_where_nothing_is_told():
    """What a bound costs: 64 symbols and 10,000 records, 256 symbols and 100,000."""
    rng = np.random.default_rng(0)
    for n_z, n, most in ((64, 10_000, 0.0111), (256, 100_000, 0.0029)):
        counts = counts_of(rng, np.full((n_z, 2), 0.5 / n_z), n)
        assert certificate.leakage_bound(counts, [0.5, 0.5]) < most


def test_soft_counts_are_no_wider():
    """Averaging over the mechanism's own draws removes noise."""
    rng = np.random.default_rng(5)
    channel = rng.dirichlet(np.ones(6), size=30)
    letters = rng.integers(0, 30, 4_000)
    y = (rng.random(4_000) < 0.3 + 0.4 * (letters < 10)).astype(int)
    soft, hard = np.zeros((6, 2)), np.zeros((6, 2))
    for one, label in zip(letters, y, strict=True):
        soft[:, label] += channel[one]
        hard[rng.choice(6, p=channel[one]), label] += 1
    assert certificate.leakage_bound(soft, [0.6, 0.4]) < certificate.leakage_bound(hard, [0.6, 0.4])


def test_tables_and_references_that_sum_to_one_roughly_are_made_exact():
    """A tolerance of 1e-9 is far above the rounding that the proof allows for."""
    counts = np.array([[400.0, 300.0], [10.0, 90.0], [50.0, 60.0]])
    q = np.array([0.4, 0.6])
    exact = certificate.leakage_bound(counts, q)
    assert certificate.leakage_bound(counts, q * (1 + 9e-10)) == pytest.approx(exact, rel=1e-13)
    channel = np.random.default_rng(0).dirichlet(np.ones(4), size=3)
    soft = certificate.soft_counts(channel, counts)
    assert soft.sum() == pytest.approx(counts.sum(), rel=1e-14)
    off = channel * (1 + np.array([[9e-10], [-9e-10], [0.0]]))
    assert certificate.soft_counts(off, counts) == pytest.approx(soft, rel=1e-14)


@pytest.mark.parametrize("n", [50, 10**6, 10**13])
def test_success_is_outside_of_chernoffs_bound_in_exact_arithmetic(n):
    """With very many records the divergence of two coins is a difference of nearly equal numbers."""
    wins = 7 * n // 10
    bound = certificate.success_bound([[float(wins), float(n - wins)]])
    with localcontext() as context:
        context.prec = 60
        found, q = Decimal(wins) / n, Decimal(bound)
        divergence = found * (found / q).ln() + (1 - found) * ((1 - found) / (1 - q)).ln()
        assert n * divergence >= Decimal(20).ln()
        assert bound < float(found) + 2.5 / math.sqrt(n)


def test_success_covers_a_class_that_no_record_has():
    rng = np.random.default_rng(3)
    population = np.array([[0.6, 0.36, 0.0], [0.0, 0.0, 0.04]])  # the second symbol is the third class
    for _ in range(200):
        counts = counts_of(rng, population, 20)
        assert certificate.success_bound(counts[:, :2][counts[:, :2].sum(axis=1) > 0]) >= 0.64 or (
            counts[1, 2] > 0  # then it is seen
        )


def test_more_confidence_is_wider():
    counts = np.array([[40.0, 60.0], [70.0, 30.0]])
    for bound in (
        certificate.success_bound,
        certificate.parity_bound,
        lambda table, level: certificate.leakage_bound(table, [0.5, 0.5], level),
    ):
        values = [bound(counts, level) for level in (0.5, 0.9, 0.99)]
        assert values == sorted(values)
        assert values[0] < values[-1]


def test_ends():
    assert certificate.leakage_bound([[5.0], [3.0]], [1.0]) == 0.0
    assert certificate.parity_bound([[5.0], [3.0]]) == 0.0
    assert certificate.leakage_bound([[1.0, 0.0]], [0.5, 0.5]) == 1.0  # one record proves nothing
    assert certificate.parity_bound([[4.0, 0.0]]) == 1.0
    assert certificate.success_bound([[9.0, 0.0], [0.0, 9.0]]) == 1.0
    assert certificate.success_bound([[3.0, 1.0]]) < 1.0


@pytest.mark.parametrize(
    ("counts", "reference", "words"),
    [
        ([1.0, 2.0], [0.5, 0.5], "table of records"),
        ([[1.0, -1.0]], [0.5, 0.5], "0 or more"),
        ([[np.nan, 1.0]], [0.5, 0.5], "finite"),
        ([[0.0, 0.0]], [0.5, 0.5], "not all 0"),
        ([[1.0, 2.0]], [1.0, 0.0], "positive share"),
        ([[1.0, 2.0]], [0.3, 0.3], "summing to 1"),
        ([[1.0, 2.0]], [0.2, 0.3, 0.5], "each of the 2 classes"),
    ],
)
def test_bad_input(counts, reference, words):
    with pytest.raises(InvalidInputError, match=words):
        certificate.leakage_bound(counts, reference)
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        certificate.success_bound([[1.0, 2.0]], confidence=95)
