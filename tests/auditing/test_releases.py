"""The kinds of mechanism that can be audited, and the work that an audit is cut into."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import privacyfunnel as pf
from privacyfunnel.auditing import KnownDensity, nearest_neighbours
from privacyfunnel.auditing.attacks import Piece, run_pieces
from privacyfunnel.auditing.inputs import Given, release_of
from privacyfunnel.errors import InvalidInputError, UnknownLetterError

OPTIONS = {"adversaries": [nearest_neighbours()], "n_jobs": 1}


class Shifted:
    """Z = x + N(0, 1), with a density of its own."""

    def release(self, x, rng=None):
        return x + np.random.default_rng(rng).normal(size=x.shape)

    def log_density(self, Z, X):
        squares = ((Z[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
        return -0.5 * squares - 0.5 * Z.shape[1] * np.log(2 * np.pi)


class Encoder:
    """The same as location and scale."""

    latent = "normal"

    def encode(self, X):
        return X, np.zeros_like(X)


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    return (y[:, None] + rng.normal(size=(200, 2))), y


def test_a_mechanism_may_offer_its_density(records):
    X, y = records
    assert isinstance(Shifted(), KnownDensity)
    own = pf.audit(Shifted(), X, y, **OPTIONS)
    known = pf.audit(Encoder(), X, y, **OPTIONS)
    for report in (own, known):
        assert {one.kind for one in report.find("utility")} == {"lower bound", "estimate", "upper bound"}
    for one, two in zip(own.find("utility"), known.find("utility"), strict=True):
        assert one.value == pytest.approx(two.value, rel=1e-9)  # the same draws, the same density


def test_a_density_of_the_wrong_shape_is_refused(records):
    class Wrong(Shifted):
        def log_density(self, Z, X):
            return np.zeros(len(Z))

    with pytest.raises(InvalidInputError, match="log_density must give"):
        pf.audit(Wrong(), *records, **OPTIONS)


def test_a_mechanism_that_loses_records_is_refused(records):
    class Short(Shifted):
        def release(self, x, rng=None):
            return x[:-1]

    with pytest.raises(InvalidInputError, match="199 codes for 200 records"):
        pf.audit(Short(), *records, **OPTIONS)


def test_letters_of_several_columns():
    letters = [("a", 1), ("a", 2), ("b", 1)]
    table = pf.TableMechanism(np.array([[1, 0], [0.5, 0.5], [0, 1]]), x_labels=letters, x_names=("c", "d"))
    rows = np.random.default_rng(1).integers(0, 3, 120)
    report = pf.audit(table, [letters[row] for row in rows], (rows == 2).astype(int), **OPTIONS)
    assert report.find("success", source="Bayes adversary")[0].value > 0.75
    with pytest.raises(UnknownLetterError):
        pf.audit(table, [("z", 1)] * 4, [0, 1, 0, 1], **OPTIONS)


def test_an_empirical_joint_gives_estimates_not_exact_values():
    joint = pf.datasets.paper_joint()
    x, y = joint.sample(500, 0)
    empirical = pf.Joint.from_samples(x, y)
    report = pf.audit(pf.TableMechanism.identity(empirical), empirical)
    assert {one.kind for one in report.findings if one.unit != "records"} == {"estimate", "upper bound"}
    assert report.meta["n_records"] == 500  # no known distribution
    assert report.find("success", on="Z")[0].interval is not None
    assert report.find("leakage", on="Z")[0].interval is not None
    assert "500 records" in report.find("leakage", on="Z")[0].notes


def test_a_mechanism_without_randomness_is_drawn_once(records):
    class Half:
        def transform(self, X):
            return X[:, :1]

    drawn = []
    original = Given.draws

    def draws(self, *options):
        drawn.append(original(self, *options))
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Given, "draws", draws)
        pf.audit(Half(), *records, **OPTIONS)
        pf.audit(Shifted(), *records, **OPTIONS)
    assert [len(one) for one in drawn] == [1, 3]


def test_costly_pieces_begin_first_and_progress_is_told():
    order, told = [], []
    pieces = [Piece(key, order.append, (key,), cost, f"piece {key}") for key, cost in enumerate((1, 9, 5))]
    results = run_pieces(pieces, 1, lambda *args: told.append(args))
    assert order == [1, 2, 0]
    assert set(results) == {0, 1, 2}
    assert told[0] == (0, 3, "piece 1")


def test_no_seed_of_a_release_is_told():
    """Whoever knows it can undo the noise."""

    class Encoder(BaseEstimator):
        def __init__(self, n_components=2, release_state=None, random_state=None, scale=1):
            self.n_components, self.scale = n_components, scale
            self.release_state, self.random_state = release_state, random_state

        def transform(self, X):
            return X

    for settings in (
        {"release_state": 77123},
        {"n_components": 5, "random_state": 77123, "scale": 3},
        {"release_state": np.random.default_rng(77123), "scale": 3},
    ):
        described = release_of(Encoder(**settings), np.zeros((3, 2))).description
        assert "state" not in described
        assert "77123" not in described
        assert ("scale=3" in described) == ("scale" in settings)
        assert described.startswith("Encoder(")
        assert described.endswith(")")
        assert "(," not in described
