"""The kinds of mechanism that can be audited, and the work that an audit is cut into."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import privacyfunnel as pf
from privacyfunnel.auditing import KnownDensity, nearest_neighbours
from privacyfunnel.auditing.attacks import Piece, run_pieces
from privacyfunnel.auditing.inputs import Given, release_of
from privacyfunnel.errors import InvalidInputError, UnknownLetterError
from privacyfunnel.report.card import save_card

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


SECRETS = ("77123", "qwertz", "zuiop")


class Told(BaseEstimator):
    """Has seeds, and places on the disk under names of all kinds."""

    def __init__(self, n_components=2, release_state=None, random_state=None, checkpoint=None, start=None):
        self.n_components, self.checkpoint, self.start = n_components, checkpoint, start
        self.release_state, self.random_state = release_state, random_state

    def transform(self, X):
        return np.asarray(X)


@pytest.mark.parametrize(
    "settings",
    [
        {"release_state": 77123, "random_state": 77123},
        {"random_state": np.random.RandomState(77123), "checkpoint": "/home/qwertz/zuiop.pt"},
        {"random_state": [77123, 77123], "checkpoint": "zuiop (1), 'new'.pt"},
        {"checkpoint": Path("/home/qwertz/of this zuiop/with a rather long name/and another one/checkpoint")},
        {"checkpoint": "/home/qwertz/of this zuiop/with a rather long name/and another one/checkpoint"},
        {"start": "C:\\qwertz\\zuiop", "release_state": 77123},
        {"start": [Path("qwertz/zuiop"), "qwertz/zuiop"]},
        {"start": list(range(10**6, 10**6 + 30)), "random_state": int("77123" * 150)},
        {"start": Told(9, 77123, checkpoint="qwertz/zuiop")},
    ],
)
def test_neither_seeds_nor_places_are_in_anything_of_a_report(settings, tmp_path):
    """Also where codes are given: with the encoder and its seed anybody could make them again."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    mechanism, y = Told(n_components=5, **settings), np.arange(60) % 2
    for given in ({}, {"Z": X}):
        report = pf.audit(mechanism, X, y, **OPTIONS, **given)
        told = report.meta["mechanism"]
        assert told.startswith("Told(n_components=5")
        assert told.endswith(")")
        report.save(tmp_path / "report.html")
        report.save(tmp_path / "report.json")
        save_card(report, tmp_path / "card.md")
        for file in tmp_path.iterdir():
            assert [one for one in SECRETS if one in file.read_text()] == [], file
        assert "state" not in told
        assert "checkpoint" not in told
