"""audit() from end to end: controls, awkward data, seeds, and what it refuses."""

import inspect
import json
import math

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import (
    ClassifierAdversary,
    ClusteringAdversary,
    boosted_trees,
    default_adversaries,
    default_numeric_adversaries,
    logistic_regression,
    nearest_neighbours,
)
from privacyfunnel.datasets import load_digits
from privacyfunnel.errors import InvalidInputError

FAST = (logistic_regression(), nearest_neighbours(), ClusteringAdversary(embed=False))


@pytest.fixture(scope="module")
def digits():
    """600 digits as images, and what they show."""
    data = load_digits()
    return data.x_train[:600].reshape(-1, 8, 8), data.y_train[:600]


def run(**options):
    return pf.audit(**({"adversaries": FAST, "n_jobs": 1} | options))


def value(report, quantity, **fields):
    return report.find(quantity, **fields)[0].value


def numbers(report):
    """The report without what may differ between two runs."""
    content = report.to_dict()
    del content["meta"]["run"]
    return json.dumps(content, sort_keys=True)


# Controls

EVERY = [
    *default_adversaries(),
    ClusteringAdversary(embed=False),
    ClusteringAdversary(embed=False, n_clusters="ray-turi"),
    pytest.param(ClusteringAdversary(embed=True), marks=pytest.mark.full),
]


def blobs(n, seed=0):
    """Three classes far apart in four dimensions: anybody finds them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return 6 * np.eye(4)[y] + rng.normal(size=(n, 4)), y


@pytest.mark.parametrize("adversary", EVERY, ids=lambda one: one.name)
def test_positive_control(adversary):
    Z, y = blobs(300)
    report = run(Z=Z, private=y, adversaries=[adversary])
    (found,) = report.find("success")
    assert found.low > 0.9
    assert value(report, "p-value") == 0.001
    assert value(report, "advantage") > 0.5
    assert found.threat_model.endswith(".")


@pytest.mark.parametrize("adversary", EVERY, ids=lambda one: one.name)
def test_negative_control(adversary):
    Z, y = blobs(400)
    report = run(Z=Z, private=np.random.default_rng(1).permutation(y), adversaries=[adversary])
    (found,) = report.find("success")
    chance = value(report, "chance")
    assert found.low < chance + 0.02
    assert found.value < chance + 0.06
    assert value(report, "p-value") > 0.01
    for bound in report.find("leakage", kind="lower bound"):
        assert bound.value < 0.02


@pytest.mark.parametrize("adversary", default_numeric_adversaries(), ids=lambda one: one.name)
def test_controls_for_numbers(adversary):
    rng = np.random.default_rng(2)
    Z = rng.normal(size=(400, 3))
    options = {"Z": Z, "adversaries": [adversary]}
    found = run(private=Z[:, 0] + 0.1 * rng.normal(size=400), **options)
    assert value(found, "explained variance") > 0.7
    assert value(found, "rmse") < 0.6
    nothing = run(private=rng.normal(size=400), **options)
    assert abs(value(nothing, "explained variance")) < 0.03


def test_raw_records_reconstruction_and_tasks_are_measured(digits):
    X, y = digits

    class HalfNoise:
        """Keeps the left half of the image, adds noise."""

        latent = "laplace"

        def encode(self, X):
            left = X[:, :, :4].reshape(len(X), -1)
            return left, np.full_like(left, -1.0)

        def inverse_transform(self, Z):
            return np.concatenate([Z.reshape(-1, 8, 4), np.zeros((len(Z), 8, 4))], axis=2)

    report = pf.audit(
        HalfNoise(), X, y, adversaries=[logistic_regression()], task={"odd": y % 2}, figures=False, n_jobs=1
    )
    before, after = (value(report, "success", on=on) for on in ("X", "Z"))
    assert before > 0.85 > after > 0.2
    assert value(report, "success", on="X_hat", source="decoder-aware network") > 0.2
    assert value(report, "task accuracy", on="X") > value(report, "task accuracy", on="Z")
    mse = value(report, "mse")
    # Left: twice the squared scale of Laplace noise. Right: lost.
    expected = (2 * math.exp(-2) + (X[:, :, 4:] ** 2).mean()) / 2
    assert mse == pytest.approx(expected, rel=0.05)
    assert value(report, "psnr") == pytest.approx(10 * math.log10(1 / mse))
    assert -1 <= value(report, "ssim") < 0.9
    assert report.find("utility", kind="upper bound")[0].value > 1
    assert report.table("logistic regression", "X").right == pytest.approx(before, abs=1e-3)
    assert report.meta["fingerprint"] == {}  # nothing but private data was given, and no key


def test_several_attributes_are_audited_each_by_itself():
    Z, y = blobs(300)
    other = np.random.default_rng(3).integers(0, 2, 300).astype(str)
    report = run(Z=Z, private={"blob": y, "coin": other})
    assert value(report, "success", attribute="blob", source="logistic regression") > 0.9
    assert value(report, "success", attribute="coin", source="logistic regression") < 0.62
    assert [one["name"] for one in report.meta["attributes"]] == ["blob", "coin"]


def test_frames_and_texts_are_read():
    pandas = pytest.importorskip("pandas")
    Z, y = blobs(120)
    frame = pandas.DataFrame({"blob": y, "name": np.array(["a", "b", "c"])[y]})
    report = run(Z=pandas.DataFrame(Z), private=frame)
    assert value(report, "success", attribute="name", source="logistic regression") > 0.9
    assert run(Z=Z, private=frame["name"]).findings[0].attribute == "name"


def test_symbols_get_counts():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 1500)
    z = np.where(rng.random(1500) < 0.9, y, 1 - y)
    report = run(Z=np.array(["no", "yes"])[z], private=y)
    exact = 1 - pf.entropy([0.1, 0.9])
    found = report.find("leakage", source="counts of symbols and classes")[0]
    assert found.low <= exact <= found.high
    assert value(report, "success", source="logistic regression") == pytest.approx(0.9, abs=0.03)


# Awkward data


def test_a_perfect_attack():
    y = np.arange(90) % 3
    report = run(Z=np.eye(3)[y], private=y)
    for one in report.find("success"):
        assert one.value == 1.0
        assert one.low > 0.9
    assert value(report, "worst-class advantage", source="logistic regression") == 1.0
    assert report.find("leakage", source="logistic regression")[0].value > 1.4


def test_a_constant_code():
    y = np.random.default_rng(0).permutation([0] * 60 + [1] * 40)
    report = run(Z=np.ones((100, 5)), private=y, adversaries=[*default_adversaries(), FAST[2]])
    for one in report.find("success"):
        assert one.value == pytest.approx(0.6, abs=0.05)
    for one in report.find("advantage"):
        assert one.value == pytest.approx(0, abs=0.05)
    for one in report.find("worst-class advantage", source="logistic regression"):
        assert one.value == pytest.approx(0)
    assert value(report, "leakage", source="counts of symbols and classes") < 0.05
    for one in report.find("leakage", kind="lower bound"):
        assert one.value == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize("y", [[0, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1], ["a", "b", "c", "d"]])
def test_classes_with_one_record_and_hardly_any_records(y):
    Z = np.random.default_rng(5).normal(size=(len(y), 3))
    report = run(Z=Z, private=y, adversaries=[*default_adversaries(), FAST[2]])
    for one in report.findings:
        assert math.isfinite(one.value)
        assert one.interval is None or one.low <= one.value <= one.high
    assert all(one.high - one.low > 0.3 for one in report.find("success") if one.value < 1)


def test_a_thousand_classes():
    rng = np.random.default_rng(6)
    y = rng.permutation(np.repeat(np.arange(1000), 3))
    centres = rng.normal(size=(1000, 8))
    Z = centres[y] + 0.05 * rng.normal(size=(3000, 8))
    report = run(Z=Z, private=y, adversaries=[nearest_neighbours()])
    assert report.find("success")[0].value > 0.9
    assert 0 < report.find("leakage", kind="lower bound")[0].value <= math.log2(1000)
    assert len(report.to_json()) < 2_000_000
    assert "randomised trees" in [one.name for one in default_adversaries(0, 1000)]


@pytest.mark.full
def test_a_thousand_classes_with_every_adversary():
    rng = np.random.default_rng(6)
    y = rng.permutation(np.repeat(np.arange(1000), 3))
    Z = rng.normal(size=(1000, 8))[y] + 0.05 * rng.normal(size=(3000, 8))
    report = pf.audit(Z=Z, private=y, n_repeats=2)
    assert {one.source for one in report.find("success")} == set(report.meta["settings"]["adversaries"])
    assert max(one.value for one in report.find("success")) > 0.8


# Honesty


class Peeper:
    """Predicts all folds at once, from the classes of the records themselves."""

    name = "peeper"
    threat_model = "Cheats."

    def cross_predict(self, Z, y, folds, n_classes):
        return np.eye(n_classes)[y]


class Prepared:
    """Was trained on the audited records before the audit, and keeps that."""

    name = "prepared"
    threat_model = "Knows the records."

    def __init__(self, Z, y):
        self.known = dict(zip(Z[:, 0].tolist(), y.tolist(), strict=True))
        self.n_classes = int(y.max()) + 1

    def fit(self, Z, y):
        return self

    def predict_proba(self, Z):
        return np.eye(self.n_classes)[[self.known[code] for code in Z[:, 0].tolist()]]


def test_an_adversary_that_saw_the_test_records_is_caught():
    Z, y = blobs(200)
    y = np.random.default_rng(7).permutation(y)
    with pytest.raises(InvalidInputError, match="'peeper' guesses classes that were dealt out at random"):
        run(Z=Z, private=y, adversaries=[Peeper()])
    with pytest.raises(InvalidInputError, match="'prepared' guesses true classes after training on random"):
        run(Z=Z, private=y, adversaries=[Prepared(Z, y)])
    few = np.arange(20) % 2  # as few as can tell
    with pytest.raises(InvalidInputError, match="'peeper' guesses classes that were dealt out at random"):
        run(Z=Z[:20], private=few, adversaries=[Peeper()])


def test_your_own_adversary_takes_five_lines():
    from sklearn.ensemble import RandomForestClassifier

    class Forest:
        name = "forest"
        threat_model = "Sees codes, knows other people's labels, and grows a forest on them."

        def fit(self, Z, y):
            self.forest = RandomForestClassifier(20, random_state=0).fit(Z, y)

        def predict_proba(self, Z):
            return self.forest.predict_proba(Z)

    Z, y = blobs(200)
    report = run(Z=Z, private=y, adversaries=[Forest()])
    assert value(report, "success", source="forest") > 0.9


# Seeds


class Noisy:
    """A mechanism with a generator."""

    def release(self, x, rng=None):
        return x + np.random.default_rng(rng).normal(size=x.shape)


def test_the_same_seed_gives_the_same_report_on_any_number_of_cores(monkeypatch):
    from sklearn.ensemble import RandomForestClassifier

    from privacyfunnel.auditing import attacks

    monkeypatch.setattr(attacks, "SMALL", 0)  # other processes even for so little
    X, y = blobs(300)
    forest = ClassifierAdversary("forest", RandomForestClassifier(5))  # unseeded: the audit seeds it
    options = {"mechanism": Noisy(), "X": X, "private": y, "adversaries": [*FAST, forest], "many_draws": 2}
    one = run(**options)
    assert numbers(one) == numbers(run(**options))
    assert numbers(one) == numbers(run(**options, n_jobs=2))
    assert numbers(one) != numbers(run(**options, random_state=1))


def test_a_seed_from_the_system_is_told():
    Z, y = blobs(60)
    report = run(Z=Z, private=y, random_state=None, adversaries=[nearest_neighbours()])
    seed = report.meta["settings"]["seed"]
    again = run(Z=Z, private=y, random_state=seed, adversaries=[nearest_neighbours()])
    assert numbers(report) == numbers(again)
    assert {one.seed for one in report.findings} == {seed}


# What is told and what is refused


def test_the_report_says_what_it_is_about():
    Z, y = blobs(60)
    report = run(Z=Z, private=y, name="release 7")
    meta = report.meta
    assert meta["name"] == "release 7"
    assert len(meta["fingerprint"]["Z"]) == len("sha256:") + 64
    assert meta["fingerprint"]["Z"] != run(Z=Z + 1e-9, private=y).meta["fingerprint"]["Z"]
    assert any("raw records" in sentence for sentence in meta["not_audited"])
    assert any("density" in sentence for sentence in meta["not_audited"])
    assert {"numpy", "scikit-learn", "python"} <= set(meta["versions"])
    assert any(
        "randomness of its own" in s
        for s in pf.audit(Transformer(), Z, y, adversaries=[nearest_neighbours()], n_jobs=1).meta[
            "not_audited"
        ]
    )


class Transformer:
    """Not a mechanism of ours: a plain transformer."""

    def transform(self, X):
        return X[:, :2]


def test_figures_and_records_are_kept_on_request_only(monkeypatch, digits):
    import privacyfunnel.auditing.published as figures

    X, y = digits
    monkeypatch.setattr(figures, "umap_embedding", lambda Z, seed, start: Z[:, :2])
    given = {"Z": X.reshape(600, -1), "private": y, "X": X, "X_hat": X, "adversaries": [nearest_neighbours()]}
    assert run(**given).figures_data == {}
    assert run(**given).notice == ""
    drawn = run(**given, figures=True)
    assert set(drawn.figures_data) == {"density"}
    assert set(drawn.figures_data["density"]) == {"side", "least", "classes", "X", "Z"}
    assert "where records lie" in drawn.notice
    shown = run(**given, show_records=True)
    images = shown.figures_data["images"]
    assert set(shown.figures_data) == {"images"}
    assert set(images) == {"shape", "X", "X_hat"}
    assert images["shape"] == [8, 8]
    for image in images["X"]:
        assert np.abs(X.reshape(600, -1) - image).max(axis=1).min() < 1e-4
    assert "it shows records" in shown.notice


def test_cells_hold_what_a_slow_count_finds():
    from privacyfunnel.auditing.published import cells_of

    rng = np.random.default_rng(8)
    points, y = rng.random((900, 2)), rng.integers(0, 3, 900)
    view = cells_of(points, y, 3, 5)
    low, high = np.quantile(points, [0.01, 0.99], axis=0)
    width = (high - low).max()
    corner = (low + high - width) / 2
    shown = 0
    for (column, row), records, shares in zip(view["cells"], view["records"], view["shares"], strict=True):
        begin = corner + np.array([column, row]) * width / 5
        members = y[((points >= begin) & (points < begin + width / 5)).all(axis=1)]
        shown += len(members)
        assert abs(records - len(members)) <= 2.5
        np.testing.assert_allclose(shares, np.bincount(members, minlength=3) / len(members), atol=0.1 + 1e-6)
    assert len(view["cells"]) == 25
    assert view["not_shown"] == pytest.approx(1 - shown / 900, abs=0.026)


def test_a_cell_never_says_that_all_are_of_one_class_and_small_ones_say_nothing():
    from privacyfunnel.auditing.published import cells_of

    points = np.array([[0.0, 0.0]] * 50 + [[1.0, 1.0]] * 9)
    view = cells_of(points, np.array([0] * 50 + [1] * 9), 2, 4)
    assert view["shares"] == [[0.8, 0.0]]
    assert view["not_shown"] == 0.15


@pytest.mark.filterwarnings("ignore:neighbours among the records")
def test_rare_classes_have_no_name_in_figures(monkeypatch):
    import privacyfunnel.auditing.published as figures

    monkeypatch.setattr(figures, "umap_embedding", lambda Z, seed, start: Z[:, :2])
    Z = np.random.default_rng(9).normal(size=(400, 2))
    few = np.array(["a"] * 200 + ["b"] * 195 + ["c"] * 5)
    more = np.array(["a"] * 200 + ["b"] * 185 + ["c"] * 8 + ["d"] * 7)
    for y, names in ((few, ["a", "b"]), (more, ["a", "b", "rare classes"])):
        density = run(Z=Z, private=y, adversaries=[nearest_neighbours()], figures=True).figures_data[
            "density"
        ]
        assert density["classes"] == names
        assert {len(shares) for shares in density["Z"]["shares"]} == {len(names)}


GOOD = {"Z": np.zeros((4, 2)), "private": [0, 1, 0, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"private": None}, "pass the private attribute"),
        ({"Z": None}, "pass a mechanism with records X, or codes Z="),
        ({"private": [0, 1]}, "private y has 2 values for 4 records"),
        ({"private": [0.5, np.nan, 1, 2]}, "private y: row 1 is missing"),
        ({"private": ["a", None, "b", "a"]}, "private y: row 1 is missing"),
        ({"Z": np.full((4, 1), np.inf)}, "Z: row 0 .* not finite"),
        ({"Z": [[0.0, 1.0]] * 3 + [[0.0, 1e200]]}, "Z: row 3, column 1 holds 1e.200, beyond"),
        ({"Z": np.full((4, 1), -1e308)}, "Z: row 0, column 0 holds -1e.308, beyond"),
        ({"private": [0.5, 1e200, 1, 2]}, "private y: row 1 has a value beyond"),
        ({"effort": "lazy"}, "effort must be one of 'quick', 'default', 'thorough'"),
        ({"Z": [["a", "b"]] * 4}, "Z must be numbers"),
        ({"X": np.zeros((3, 2))}, "X, Z and X_hat must have one row a record"),
        ({"X": np.zeros((4, 4)), "X_hat": np.zeros((4, 3))}, r"same numbers .* \(4, 4\) and .* \(4, 3\)"),
        ({"X": np.zeros((4, 4)), "X_hat": np.zeros(4)}, r"\(4, 4\) and X_hat of shape \(4,\)"),
        (
            {
                "X": np.arange(20) % 2,
                "X_hat": np.arange(20) % 2,
                "Z": np.eye(20),
                "private": np.arange(20) % 2,
            },
            "in two dimensions or more",
        ),
        ({"Z": np.zeros((4, 0))}, r"Z must hold one number or more of each record; .* \(4, 0\)"),
        ({"X": np.zeros((4, 2, 0))}, "X must hold one number or more"),
        ({"adversaries": []}, "adversaries must be objects"),
        ({"adversaries": [3]}, "adversaries must be objects"),
        ({"adversaries": ["trees"]}, "there is no adversary 'trees'; choose from logistic regression"),
        ({"adversaries": [boosted_trees(), boosted_trees()]}, "names of their own"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"n_repeats": 0}, "n_repeats must be at least 1"),
        ({"random_state": -1}, "random_state must be at least 0"),
        ({"confidence": 95}, "confidence must be between 0 and 1"),
        ({"task": {"y": [0, 1, 0, 1]}}, "names of their own"),
        ({"numeric": "y"}, "numeric must be a list of names"),
        ({"numeric": ["age"]}, "numeric names 'age', which is no private attribute; they are y"),
        ({"Z": None, "mechanism": 3, "X": np.zeros((4, 2))}, "int is no mechanism"),
        ({"joint": pf.datasets.paper_joint()}, "for a TableMechanism only"),
    ],
)
def test_bad_input_gets_one_sentence(change, message):
    with pytest.raises(InvalidInputError, match=message):
        run(**(GOOD | change))


def test_audit_is_a_plain_function():
    assert inspect.isfunction(pf.audit)
