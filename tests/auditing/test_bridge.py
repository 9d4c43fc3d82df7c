"""The bridge: sample from a known joint, release, audit. Exact values are the oracle for every number."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import privacyfunnel as pf
from privacyfunnel.auditing import ClusteringAdversary, default_adversaries, logistic_regression

JOINT = pf.Joint(np.array([[0.20, 0.05], [0.10, 0.15], [0.05, 0.20], [0.15, 0.10]]), y_names=("private",))
TABLE = pf.TableMechanism.for_joint(
    JOINT, np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
)
EXACT = pf.measure(TABLE, JOINT)


class GaussianEncoder:
    """Z = X + N(0, 1) for X = ±1 + N(0, 1) by class: every number has a closed form or one integral."""

    latent = "normal"
    utility = 0.0
    leakage = 0.0

    def encode(self, X):
        return X, np.zeros_like(X)

    def __repr__(self):
        return "GaussianEncoder()"


def gaussian_records(n, rng):
    y = rng.integers(0, 2, n)
    return (2.0 * y - 1 + rng.standard_normal(n))[:, None], y


def _entropy(density):
    return -quad(lambda z: density(z) * math.log2(density(z)), -15, 15)[0]


MIXTURE = _entropy(lambda z: 0.5 * norm.pdf(z, 1, math.sqrt(2)) + 0.5 * norm.pdf(z, -1, math.sqrt(2)))
GAUSSIAN_LEAKAGE = MIXTURE - 0.5 * math.log2(2 * math.pi * math.e * 2)
GAUSSIAN_UTILITY = MIXTURE - 0.5 * math.log2(2 * math.pi * math.e)
GAUSSIAN_SUCCESS = norm.cdf(1 / math.sqrt(2))


def assert_bounds_right(report, exact, slack=0.0):
    """Every lower bound ≤ exact + interval, every upper bound ≥ exact − interval."""
    for finding in report.findings:
        truth = exact.get(finding.quantity)
        if truth is None or finding.on == "X":
            continue
        if finding.kind == "lower bound":
            assert finding.low <= truth + slack, finding
        if finding.kind == "upper bound":
            assert finding.high >= truth - slack, finding
        if finding.kind == "exact":
            assert finding.value == pytest.approx(truth, abs=1e-12)


TABLE_EXACT = {
    "success": EXACT.guess_after,
    "leakage": EXACT.leakage,
    "utility": EXACT.utility,
    "maximal leakage": EXACT.maximal_leakage,
    "maximal leakage of X": EXACT.maximal_leakage_x,
}
GAUSSIAN_EXACT = {"success": GAUSSIAN_SUCCESS, "leakage": GAUSSIAN_LEAKAGE, "utility": GAUSSIAN_UTILITY}


def test_a_wrong_bound_is_seen():
    report = pf.audit(TABLE, JOINT)
    assert_bounds_right(report, TABLE_EXACT)
    with pytest.raises(AssertionError):
        assert_bounds_right(report, TABLE_EXACT | {"leakage": EXACT.leakage + 0.1})


@pytest.mark.parametrize(
    "arguments", [(JOINT, TABLE), (JOINT,), (np.zeros(20), TABLE, np.zeros(20)), (JOINT, TABLE, np.zeros(20))]
)
def test_swapped_arguments_get_a_sentence(arguments):
    with pytest.raises(pf.errors.InvalidInputError, match=r"the mechanism comes first, .* Swap them"):
        pf.audit(*arguments)
    assert pf.audit(TABLE, JOINT).findings


def test_table_every_bound_is_on_its_side():
    x, y = JOINT.sample(3000, 1)
    adversaries = [*default_adversaries(), ClusteringAdversary(embed=False)]
    report = pf.audit(TABLE, x, y, joint=JOINT, adversaries=adversaries, n_jobs=1)
    assert_bounds_right(report, TABLE_EXACT)
    found = {one.source: one for one in report.find("leakage", on="Z", kind="lower bound")}
    for name in ("logistic regression", "neural network", "boosted trees"):
        assert found[name].high > EXACT.leakage - 0.01  # symbols: everybody can find nearly all


def test_gaussian_every_bound_is_on_its_side():
    X, y = gaussian_records(3000, np.random.default_rng(2))
    adversaries = [*default_adversaries(), ClusteringAdversary(embed=False)]
    report = pf.audit(GaussianEncoder(), X, y, adversaries=adversaries, many_draws=8, n_jobs=1)
    single = [one for one in report.findings if not one.on.startswith("Z ×")]
    assert_bounds_right(pf.AuditReport(tuple(single)), GAUSSIAN_EXACT)
    upper = report.find("leakage", kind="upper bound", source="mixture of known densities")[0]
    lower = report.find("leakage", kind="lower bound", source="mixture of known densities")[0]
    assert upper.value - lower.value < 0.02
    # Whoever draws many codes sees X nearly: success Φ(1) instead of Φ(1/√2).
    many = report.find("success", on="Z × 8", source="logistic regression")[0]
    assert many.low > GAUSSIAN_SUCCESS
    assert many.value == pytest.approx(norm.cdf(1 / math.sqrt(1 + 1 / 8)), abs=0.03)
    difference = report.find("many-draws difference", source="logistic regression")[0]
    single_success = report.find("success", on="Z", source="logistic regression")[0]
    assert difference.value == pytest.approx(many.value - single_success.value, abs=1e-12)
    assert difference.low > 0


@pytest.mark.parametrize("adversary", default_adversaries(), ids=lambda one: one.name)
def test_the_bayes_adversary_is_never_beaten(adversary):
    x, y = JOINT.sample(4000, 3)
    report = pf.audit(TABLE, x, y, adversaries=[adversary], n_jobs=1)
    bayes, other = (report.find("success", on="Z", source=s)[0] for s in ("Bayes adversary", adversary.name))
    error = math.sqrt(EXACT.guess_after * (1 - EXACT.guess_after) / 4000)
    assert other.value <= EXACT.guess_after + 3 * error
    assert bayes.value == pytest.approx(EXACT.guess_after, abs=3 * error)


def coverage(repetitions, first_seed=0, n=500):
    """How often the intervals hold the exact value, by name; lower bounds from below only."""
    hits: dict[str, int] = {}

    def count(name, inside):
        hits[name] = hits.get(name, 0) + bool(inside)

    for i in range(repetitions):
        seed = first_seed + i
        rng = np.random.default_rng(seed)
        x, y = JOINT.sample(n, rng)
        report = pf.audit(TABLE, x, y, adversaries=[logistic_regression()], random_state=seed, n_jobs=1)
        for quantity, source, truth in (
            ("success", "Bayes adversary", EXACT.guess_after),
            ("success", "logistic regression", EXACT.guess_after),
            ("leakage", "known table", EXACT.leakage),
            ("utility", "known table", EXACT.utility),
        ):
            finding = report.find(quantity, source=source, on="Z")[0]
            count(f"table: {quantity}, {source}", finding.low <= truth <= finding.high)
        X, y = gaussian_records(n, rng)
        report = pf.audit(
            GaussianEncoder(), X, y, adversaries=[logistic_regression()], random_state=seed, n_jobs=1
        )
        for quantity, kind, source, truth in (
            ("success", "lower bound", "logistic regression", GAUSSIAN_SUCCESS),
            ("leakage", "estimate", "mixture of known densities", GAUSSIAN_LEAKAGE),
            ("utility", "estimate", "mixture of known densities", GAUSSIAN_UTILITY),
            ("chance", "estimate", "largest class", None),
        ):
            finding = report.find(quantity, kind=kind, source=source)[0]
            if truth is not None:
                count(f"gaussian: {quantity}, {source}", finding.low <= truth <= finding.high)
    return {name: count / repetitions for name, count in hits.items()}


def test_intervals_cover_in_most_cases():
    for name, share in coverage(12, n=300).items():
        assert share >= 8 / 12, name  # less than once in 5,000 runs at 95 %; the full suite says more


@pytest.mark.full
def test_intervals_cover_at_their_confidence():
    for name, share in coverage(200).items():
        assert 0.90 <= share <= 0.985, (name, share)
