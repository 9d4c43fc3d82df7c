"""Adversaries find what is there, find nothing where there is nothing, and never claim more than is true."""

import warnings

import numpy as np
import pytest

from privacyfunnel.auditing import (
    ClassifierAdversary,
    boosted_trees,
    cross_fitted_bound,
    default_adversaries,
    fold_numbers,
    leakage_lower_bound,
    logistic_regression,
    nearest_neighbours,
    neural_network,
    strongest_bound,
)
from privacyfunnel.datasets import load_digits
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.information import entropy

every_adversary = pytest.mark.parametrize("adversary", default_adversaries(), ids=lambda one: one.name)


@pytest.fixture(scope="module")
def parity():
    """Digits and whether they are odd: 600 to learn from, 400 to be judged on."""
    data = load_digits()
    x, y = data.x_train.reshape(-1, 64), data.y_train % 2
    return x[:600], y[:600], x[600:1000], y[600:1000]


class Oracle:
    """Knows P(y|z) of the problem below."""

    name = "oracle"
    threat_model = "Knows the distribution."

    def fit(self, Z, y):
        return self

    def predict_proba(self, Z):
        p = np.where(Z[:, 0] > 0, 0.9, 0.2)
        return np.column_stack([1 - p, p])


def binary_channel(n, seed):
    """z = ±1 with equal chance and P(y=1|z) = 0.9 or 0.2; I(Z;Y) is known."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    y = (rng.random(n) < np.where(z, 0.9, 0.2)).astype(int)
    return (2.0 * z - 1)[:, None], y


CHANNEL_BITS = entropy([0.55, 0.45]) - (entropy([0.9, 0.1]) + entropy([0.2, 0.8])) / 2


@every_adversary
def test_positive_control(adversary, parity):
    bound = leakage_lower_bound(adversary, *parity, n_folds=2)
    assert bound.success > bound.chance + 0.3
    assert 0.4 < bound.interval.low < bound.value < bound.interval.high < 1.1
    assert (bound.n, bound.n_train, bound.kind, bound.adversary) == (400, 600, "lower bound", adversary.name)


@every_adversary
def test_negative_control(adversary):
    rng = np.random.default_rng(5)
    z, y = rng.normal(size=(1600, 4)), (rng.random(1600) < 0.4).astype(int)
    bound = leakage_lower_bound(adversary, z[:800], y[:800], z[800:], y[800:], n_folds=2)
    assert bound.value <= 2 * bound.standard_error + 1e-3
    assert bound.value > -0.02  # calibrated: an adversary that knows nothing says so
    assert bound.success == pytest.approx(bound.chance, abs=0.03)


@every_adversary
def test_none_proves_more_than_is_there(adversary):
    z, y = binary_channel(3000, 1)
    bound = leakage_lower_bound(adversary, z[:1000], y[:1000], z[1000:], y[1000:], n_folds=2)
    assert bound.value <= CHANNEL_BITS + 3 * bound.standard_error
    assert bound.value >= CHANNEL_BITS - 3 * bound.standard_error - 0.02


def test_the_value_is_entropy_minus_cross_entropy():
    z, y = binary_channel(500, 2)
    bound = leakage_lower_bound(Oracle(), z[:200], y[:200], z[200:], y[200:])
    share = (y[:200].sum() + 0.5) / 201
    terms = []
    for code, label in zip(z[200:, 0], y[200:], strict=True):
        said = 0.9 if code > 0 else 0.2
        sharp = said**bound.power / (said**bound.power + (1 - said) ** bound.power)
        odd = (1 - bound.shrinkage) * sharp + bound.shrinkage * share
        terms.append(np.log2(odd if label else 1 - odd))
    held = y[200:].mean()
    assert bound.value == pytest.approx(entropy([held, 1 - held]) + np.mean(terms), abs=1e-12)
    spread = np.array(terms) - np.log2(np.where(y[200:], held, 1 - held))
    assert bound.standard_error == pytest.approx(spread.std(ddof=1) / np.sqrt(300), rel=1e-12)
    assert bound.upper_end() == pytest.approx(bound.value + 1.64 * bound.standard_error)


def test_the_interval_covers_what_the_oracle_can_prove():
    hits = 0
    for seed in range(200):
        z, y = binary_channel(400, 100 + seed)
        hits += CHANNEL_BITS in leakage_lower_bound(Oracle(), z[:100], y[:100], z[100:], y[100:]).interval
    assert 180 <= hits <= 199


class Certain:
    """Always certain, and wrong in a tenth of the cases."""

    name = "certain"
    threat_model = "Guesses without doubt."

    def fit(self, Z, y):
        return self

    def predict_proba(self, Z):
        return np.eye(2)[(Z[:, 0] > 0).astype(int)]


def test_certainty_that_is_wrong_does_not_cost_an_infinity():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2000, 1))
    y = ((z[:, 0] > 0) ^ (rng.random(2000) < 0.1)).astype(int)
    bound = leakage_lower_bound(Certain(), z[:1000], y[:1000], z[1000:], y[1000:])
    exact = 1 - entropy([0.1, 0.9])
    assert bound.shrinkage == pytest.approx(0.2, abs=0.06)  # half of it goes to the other class
    assert bound.value == pytest.approx(exact, abs=4 * bound.standard_error)


class Timid(Oracle):
    """The oracle with its log-odds halved."""

    def predict_proba(self, Z):
        roots = np.sqrt(super().predict_proba(Z))
        return roots / roots.sum(axis=1, keepdims=True)


def test_a_timid_adversary_is_read_aright():
    z, y = binary_channel(3000, 4)
    timid, oracle = (
        leakage_lower_bound(one, z[:1000], y[:1000], z[1000:], y[1000:]) for one in (Timid(), Oracle())
    )
    assert timid.value == pytest.approx(oracle.value, abs=0.01)


def test_trees_find_what_a_line_cannot():
    rng = np.random.default_rng(3)
    z = rng.normal(size=(2000, 2))
    y = ((z[:, 0] > 0) ^ (z[:, 1] > 0)).astype(int)
    parts = z[:1000], y[:1000], z[1000:], y[1000:]
    assert leakage_lower_bound(boosted_trees(), *parts, n_folds=2).value > 0.7
    assert leakage_lower_bound(logistic_regression(), *parts, n_folds=2).value < 0.02


def test_the_default_set_has_trees_and_says_what_each_knows():
    adversaries = default_adversaries()
    assert "boosted trees" in [one.name for one in adversaries]
    assert len({one.name for one in adversaries}) == len(adversaries) == 4
    for one in adversaries:
        assert one.threat_model.endswith(".")
        assert one.name in one.threat_model


# Cross-fitting


class Memory:
    """Knows the class of every record it was trained on and nothing else."""

    name = "memory"
    threat_model = "Remembers."

    def fit(self, Z, y):
        self.known = dict(zip(Z[:, 0].tolist(), y.tolist(), strict=True))
        return self

    def predict_proba(self, Z):
        odd = np.array([self.known.get(code, 0.5) for code in Z[:, 0].tolist()])
        return np.column_stack([1 - odd, odd])


def test_cross_fitting_never_judges_a_record_that_was_learnt():
    rng = np.random.default_rng(4)
    z, y = rng.normal(size=(300, 1)), rng.integers(0, 2, 300)
    honest = cross_fitted_bound(Memory(), z, y)
    assert (honest.n, honest.n_train) == (300, 200)
    assert honest.value < 0.01
    remembered = Memory().fit(z, y).predict_proba(z)
    np.testing.assert_array_equal(remembered.argmax(axis=1), y)  # so the test above can fail


def test_cross_fitting_finds_what_is_there():
    z, y = binary_channel(1500, 7)
    bound = cross_fitted_bound(logistic_regression(), z, y)
    assert bound.value == pytest.approx(CHANNEL_BITS, abs=3 * bound.standard_error + 0.01)


def test_folds_are_disjoint_even_and_repeatable():
    y = np.repeat([0, 1, 2], [100, 31, 2])
    folds = fold_numbers(y, 3, 1)
    for label, least in ((0, 33), (1, 10), (2, 0)):
        counts = np.bincount(folds[y == label], minlength=3)
        assert counts.max() - counts.min() <= 1
        assert counts.min() >= least
    np.testing.assert_array_equal(folds, fold_numbers(y, 3, 1))
    assert not np.array_equal(folds, fold_numbers(y, 3, 2))


# Awkward data


@every_adversary
def test_the_same_seed_gives_the_same_bound(adversary, parity):
    x, y, x_new, y_new = (part[:150] for part in parity)
    one, two = (leakage_lower_bound(adversary, x, y, x_new, y_new, n_folds=2) for _ in range(2))
    assert one == two


@every_adversary
def test_rare_and_missing_classes_are_survived(adversary):
    rng = np.random.default_rng(8)
    z = rng.normal(size=(60, 3))
    y = np.array(["a"] * 30 + ["b"] * 9 + ["once"] + ["a"] * 10 + ["b"] * 9 + ["new"])
    bound = leakage_lower_bound(adversary, z[:40], y[:40], z[40:], y[40:], n_folds=2)
    assert np.isfinite(bound.value)
    assert bound.n == 20


@every_adversary
@pytest.mark.parametrize("n", [2, 12])
def test_constant_codes_and_few_records(adversary, n):
    z, y = np.zeros((n, 2)), np.arange(n) % 2
    bound = leakage_lower_bound(adversary, z, y, z, y, n_folds=2)
    assert bound.value == pytest.approx(0, abs=0.02)


def test_one_class_has_no_entropy_to_lose():
    z = np.arange(20.0)[:, None]
    bound = leakage_lower_bound(neural_network(), z, np.zeros(20), z, np.zeros(20))
    assert (bound.value, bound.success, bound.chance) == (0, 1, 1)


def test_a_single_held_out_record_says_nothing():
    z, y = binary_channel(50, 0)
    bound = leakage_lower_bound(nearest_neighbours(), z, y, z[:1], y[:1])
    assert bound.standard_error == bound.interval.high == np.inf


def test_any_classifier_will_do_and_may_stop_early():
    from sklearn.neural_network import MLPClassifier

    z, y = binary_channel(400, 3)
    hasty = ClassifierAdversary("hasty", MLPClassifier(max_iter=1, random_state=0), "Gives up at once.")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bound = leakage_lower_bound(hasty, z[:200], y[:200], z[200:], y[200:])
    assert bound.value > -0.05
    assert hasty.threat_model == "Gives up at once."


class Wrong:
    name = "wrong"
    threat_model = "Is broken."

    def __init__(self, answer):
        self.answer = answer

    def fit(self, Z, y):
        return self

    def predict_proba(self, Z):
        return np.tile(self.answer, (len(Z), 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Z_train": np.full((20, 1), np.nan)}, "Z_train: row 0 .* not finite"),
        ({"Z_train": np.zeros((20, 2))}, "Z_train has 2 components and Z_test 1"),
        ({"Z_test": np.zeros(20)}, "Z_test must be a table"),
        ({"y_test": [0, 1]}, "y_test must hold one class for each of the 20 codes"),
        ({"level": 95}, "level must be between 0 and 1"),
        ({"adversary": Wrong([0.5, 0.3, 0.2])}, r"'wrong': predict_proba must give one row .*\(10, 3\)"),
        ({"adversary": Wrong([0.9, 0.9])}, "'wrong': the rows of predict_proba must be probabilities"),
        ({"adversary": Wrong([np.nan, 1.0])}, "'wrong': the rows of predict_proba must be probabilities"),
    ],
)
def test_bad_input_gets_one_sentence(change, message):
    z, y = binary_channel(20, 0)
    arguments = {"adversary": Oracle(), "Z_train": z, "y_train": y, "Z_test": z, "y_test": y}
    with pytest.raises(InvalidInputError, match=message):
        leakage_lower_bound(**(arguments | {"n_folds": 2} | change))


def test_cross_fitting_needs_two_folds():
    z, y = binary_channel(20, 0)
    with pytest.raises(InvalidInputError, match="n_folds must be at least 2"):
        cross_fitted_bound(Oracle(), z, y, n_folds=1)


@pytest.mark.parametrize(("n_fresh", "with_apart"), [(200, False), (1600, False), (1600, True), (200, True)])
def test_the_strongest_bound_is_the_one_with_the_highest_upper_end(n_fresh, with_apart):
    rng = np.random.default_rng(5)

    def people(n):
        y = rng.integers(2, size=n)
        return rng.normal(size=(n, 2)) + 0.5 * y[:, None], y

    known, fresh, apart = people(600), people(n_fresh), people(700)
    adversaries = [logistic_regression(), boosted_trees(0)]
    bounds = [leakage_lower_bound(one, *known, *fresh, n_folds=2) for one in adversaries]
    if n_fresh == 1600 and with_apart:
        bounds += [leakage_lower_bound(one, *apart, *fresh, n_folds=2) for one in adversaries]
    elif n_fresh == 1600:
        bounds += [cross_fitted_bound(one, *fresh, n_folds=2) for one in adversaries]
    for z in (0.0, 1.64, 5.0):
        found = strongest_bound(adversaries, known, fresh, apart if with_apart else None, z=z)
        assert found == max(bounds, key=lambda bound: bound.value + z * bound.standard_error)
