"""The trees of the model of a task: against a slow twin, safe to store, and only where they help."""

import json

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from privacyfunnel.certified import predictor
from privacyfunnel.certified.boosting import (
    LEAST_IN_LEAF,
    MOST_STEP,
    RATE,
    RIDGE,
    Trees,
    _values,
    boosted,
    softmax,
)
from privacyfunnel.certified.predictor import Predictor
from privacyfunnel.parallel import library_threads


def crossed(n=6_000, seed=0, n_classes=2):
    """Two columns that say nothing each and everything together, and one that is noise."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n) - 0.5, rng.normal(size=n)])
    high = (points[:, 0] > 0) ^ (points[:, 1] > 0)
    return points, np.where(rng.random(n) < 0.9, high, ~high).astype(int) * (n_classes - 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_trees_say_what_columns_say_together(n_classes):
    points, classes = crossed(n_classes=n_classes)
    model, predicted = Predictor.cross_fit(points, classes, n_classes, np.random.default_rng(0))
    assert model.trees is not None
    new, truth = crossed(seed=1, n_classes=n_classes)
    for shares, right in ((predicted, classes), (model(new), truth)):
        assert np.allclose(shares.sum(axis=1), 1)
        assert (shares.argmax(axis=1) == right).mean() > 0.85
    plain = Predictor.fit(points, classes, n_classes)(new)
    assert (plain.argmax(axis=1) == truth).mean() < 0.65


def test_there_are_none_where_they_do_not_help():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(3_000, 4))
    classes = (points[:, 0] + rng.logistic(size=3_000) > 0).astype(int)  # what the plain model says
    assert Predictor.cross_fit(points, classes, 2, np.random.default_rng(0))[0].trees is None
    assert boosted(points, np.zeros((0, 2)), classes, np.zeros((3_000, 2)), rng) is None
    assert boosted(points, np.zeros((2, 2)), classes, np.zeros((3_000, 11)), rng) is None


def test_scores_are_those_of_walking_each_tree():
    points, classes = crossed(800)
    model = Predictor.fit(points, classes, 2).with_trees(points, classes, np.random.default_rng(0), 20)
    trees = model.trees
    assert trees.asked.shape[0] == 20
    for record in points[:50]:
        score = 0.0
        for asked, values in zip(trees.asked, trees.values, strict=True):
            leaf = 0
            for question in asked:
                column, place = trees.questions[question]
                leaf = 2 * leaf + (record[int(column)] > place)
            score += values[leaf, 0]
        assert trees(record[None])[0, 0] == pytest.approx(score)


def test_values_rest_on_twenty_records_and_are_rounded_to_two_of_them():
    points, classes = crossed(400)
    plain = Predictor.fit(points, classes, 2)
    trees = plain.with_trees(points, classes, np.random.default_rng(0), 30).trees
    score, few = plain.score(points), 0
    for i in range(30):
        one = Trees(trees.questions, trees.asked[i : i + 1], trees.values[i : i + 1])
        leaf = np.zeros(400, dtype=int)
        for question in trees.asked[i]:
            column, place = trees.questions[question]
            leaf = 2 * leaf + (points[:, int(column)] > place)
        shares = softmax(score)[:, 1]
        for number in range(16):
            mine = leaf == number
            value = trees.values[i, number, 0]
            if mine.sum() < LEAST_IN_LEAF:
                few += 1
                assert value == 0
                continue
            curve = (shares * (1 - shares))[mine].sum() + RIDGE
            exact = RATE * (classes - shares)[mine].sum() / curve
            step = 2.0 ** np.ceil(np.log2(2 * RATE / curve))
            assert value == pytest.approx(exact, abs=step / 2 + 1e-9)
            assert value / step == np.rint(value / step)
        score[:, 1:] += one(points)
    assert few > 30


def test_one_record_moves_a_value_by_a_unit_at_most():
    """Also where a sure model is wrong about a whole leaf and one record of it is undecided."""
    for n in (40, 200, 5_000):
        shares = np.append(np.full(n, 1e-3), 0.5)
        both = []
        for told in (np.ones(n + 1), np.append(np.ones(n), 0.0), np.ones(n)):
            p = shares[: len(told)]
            both.append([(told - p).sum(), (p * (1 - p)).sum(), len(told)])
        values = _values(np.array(both), 1)[:, 0]
        unit = 2.0 ** np.ceil(np.log2(2 * RATE / (both[2][1] + RIDGE)))
        assert np.abs(values - values[0]).max() <= unit
        assert np.abs(values).max() <= RATE * MOST_STEP + unit / 2


def test_questions_are_at_nobodys_number():
    points, classes = crossed()
    model, _ = Predictor.cross_fit(points, classes, 2, np.random.default_rng(0))
    for column, place in model.trees.questions:
        assert place not in points[:, int(column)]
        units = place / (0.01 * model.width[int(column)])
        assert units == pytest.approx(np.rint(units), abs=1e-6)


def test_a_model_is_read_as_it_was_written_and_older_ones_without_trees_too():
    points, classes = crossed(2_000)
    model, _ = Predictor.cross_fit(points, classes, 2, np.random.default_rng(0))
    written = json.loads(json.dumps(model.to_dict()))
    assert np.array_equal(Predictor.from_dict(written)(points), model(points))
    older = {name: value for name, value in written.items() if name != "trees"}
    plain = Predictor.from_dict(older)
    assert plain.trees is None
    assert np.array_equal(plain(points), Predictor.from_dict({**written, "trees": None})(points))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("asked", lambda values: values.__setitem__(0, 999)),
        ("asked", lambda values: values.__setitem__(0, 0.5)),
        ("asked", lambda values: values.__setitem__(0, -1)),
        ("questions", lambda values: values.__setitem__(0, 3)),
        ("values", lambda values: values.pop()),
        ("values", lambda values: values.__setitem__(0, float("nan"))),
        ("values", lambda values: values.__setitem__(0, 1e308)),
    ],
)
def test_damaged_trees_are_refused(name, change):
    points, classes = crossed(2_000)
    model, _ = Predictor.cross_fit(points, classes, 2, np.random.default_rng(0))
    written = model.to_dict()
    change(written["trees"][name]["values"])
    with pytest.raises(ValueError, match=r"trees of the predictor|array of numbers|not finite"):
        Predictor.from_dict(written)


def test_trees_without_questions_and_weights_beyond_numbers_are_refused():
    points, classes = crossed(2_000)
    model, _ = Predictor.cross_fit(points, classes, 2, np.random.default_rng(0))
    n = len(model.trees.asked)
    empty = {"asked": {"shape": [n, 0], "values": []}, "values": {"shape": [n, 1, 1], "values": [0.0] * n}}
    for change in (
        {"trees": {**model.trees.to_dict(), **empty}},
        {"width": {"shape": [3], "values": [1.0, 0.0, 1.0]}},
        {"intercept": {"shape": [2], "values": [1e308, 0.0]}},
    ):
        with pytest.raises(ValueError, match=r"trees of the predictor|no probabilities"):
            Predictor.from_dict({**model.to_dict(), **change})


def test_the_model_is_fitted_in_one_thread(monkeypatch):
    threads = []
    plain = predictor.boosted

    def watched(*arguments):
        threads.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return plain(*arguments)

    monkeypatch.setattr(predictor, "boosted", watched)
    with library_threads(2, "blas"):
        Predictor.cross_fit(*crossed(800), 2, np.random.default_rng(0))
    assert set(threads) == {1}
