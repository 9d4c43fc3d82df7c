"""CertifiedFunnel on arrays: guarantees against known populations, what it returns, and bad input."""

import numpy as np
import pandas as pd
import pytest
from populations import Population, graded, hostile
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import privacyfunnel as pf
from privacyfunnel.certified import CertifiedFunnel
from privacyfunnel.certified.cells import make_space
from privacyfunnel.certified.held_out import HeldOut, coarse, coarse_moments, group_means, weighted_auc
from privacyfunnel.certified.predictor import Predictor, rounded_spread
from privacyfunnel.certified.problem import rough_bits
from privacyfunnel.certified.reading import split_records
from privacyfunnel.errors import InfeasibleError, InvalidInputError, TargetWarning


def fitted(population, n=6_000, seed=0, **settings):
    X, y, kinds = population.draw(n, np.random.default_rng(seed))
    fitting = {name: settings.pop(name) for name in ("groups",) if name in settings}
    task = kinds % 2 if settings.pop("task", False) else None
    return CertifiedFunnel(random_state=seed, **settings).fit(X, private=y, task=task, **fitting)


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({}, 0.05),
        ({"task": True}, 0.05),
        ({"utility": "information"}, 0.05),
        ({"leakage": "success"}, 0.72),
        ({"leakage": "parity"}, 0.2),
        ({"cells": "tree", "task": True}, 0.05),
        ({"cells": KMeans(12, n_init=1, random_state=0)}, 0.05),
        ({"cells": PCA(1)}, 0.05),
        ({"n_cells": 10}, 0.05),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_fit_says_what_it_did_and_keeps_the_limit(settings, limit):
    population = graded()
    funnel = fitted(population, max_leakage=limit, **settings)
    measure = settings.get("leakage", "information")
    assert funnel.certificate_.value == limit
    assert (funnel.certificate_.kind, funnel.certificate_.confidence) == ("upper bound", 0.95)
    assert funnel.certificate_.n_samples == 2_000
    assert population.leakage(funnel, measure) <= limit
    assert population.leakage(funnel, "success") <= funnel.verdict_.guesses[0].at_most
    if measure == "success":  # a looser number beside the limit would deny it
        assert funnel.verdict_.guesses[0].at_most == limit
    assert funnel.solution_.joint.n_samples == 4_000
    assert "nobody guesses private right more often than" in str(funnel.verdict_)
    assert "95 % confidence" in str(funnel.verdict_)
    X, _, _ = population.draw(50, np.random.default_rng(9))
    symbols = funnel.transform(X)
    assert symbols.shape == (50,)
    assert set(symbols) <= set(range(funnel.rule_.n_symbols))
    assert np.array_equal(funnel.inverse_transform(symbols), funnel.rule_.points[symbols])
    assert funnel.transform(X, points=True).shape == X.shape
    assert funnel.release(X).shape == X.shape
    assert np.array_equal(funnel.release(X, rng=1), funnel.release(X, rng=1))
    assert len(funnel.describe()) == funnel.rule_.n_symbols


def test_more_is_kept_with_a_larger_limit():
    careful, daring = (fitted(graded(), max_leakage=limit, n_cells=12) for limit in (0.06, 0.4))
    assert careful.verdict_.variance < daring.verdict_.variance
    assert careful.solution_.leakage < daring.solution_.leakage


def test_three_classes_and_two_attributes():
    population = graded(n_y=3)
    funnel = fitted(population, n=9_000, max_leakage=0.1)
    assert population.leakage(funnel) <= 0.1
    X, y, _ = population.draw(9_000, np.random.default_rng(1))
    private = {"first": y == 0, "second": y > 1}
    both = CertifiedFunnel(0.1, random_state=0).fit(X, private=private)
    assert both.solution_.joint.n_y == 3
    assert [one.name for one in both.verdict_.guesses] == ["first", "second"]
    own = CertifiedFunnel({"first": 0.1, "second": 0.2}, random_state=0).fit(X, private=private)
    assert {name: one.value for name, one in own.certificates_.items()} == {"first": 0.1, "second": 0.2}
    told = own.solution_.leakages
    assert told["first"] <= 0.1
    assert told["second"] <= 0.2
    with pytest.raises(InvalidInputError, match="give each of them one"):
        CertifiedFunnel({"first": 0.1}).fit(X, private=private)


def test_private_numbers_are_cut_and_said():
    population = graded()
    X, y, _ = population.draw(9_000, np.random.default_rng(0))
    pay = y * 1.5 + np.random.default_rng(1).random(9_000)
    funnel = CertifiedFunnel(0.5, random_state=0).fit(X, private=pay)
    assert "which of 8 classes of equal size" in funnel.notes_[0]
    shares = funnel.made_.problem.joint.p_y
    np.testing.assert_allclose(shares, 1 / 8, atol=2e-3)  # cut by the records that solve


def test_a_fit_that_fails_leaves_the_funnel_as_it_was():
    funnel = fitted(graded(), n=3_000, max_leakage=0.3)
    before, made = funnel.rule_, funnel.made_
    X, y, _ = graded().draw(300, np.random.default_rng(0))
    with pytest.raises(InfeasibleError):
        funnel.set_params(max_leakage=0.01).fit(X, private=y)
    assert funnel.rule_ is before
    assert funnel.made_ is made


def test_in_a_pipeline():
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    pipeline = make_pipeline(StandardScaler(), CertifiedFunnel(0.1, n_cells=6, random_state=0)).fit(X, y)
    assert pipeline.transform(X).shape == (3_000,)
    pipeline.fit(X, y)  # again: nothing of the first fit is in the way


def test_in_the_middle_of_a_pipeline():
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    target = X[:, 0] > X[:, 0].mean()
    points = FunctionTransformer(lambda symbols: symbols[:, None])
    pipeline = make_pipeline(
        CertifiedFunnel(0.1, n_cells=6, random_state=0), points, DummyClassifier(strategy="most_frequent")
    )
    with pytest.warns(TargetWarning, match="pass certifiedfunnel__private="):
        pipeline.fit(X, target)
    pipeline.fit(X, target, certifiedfunnel__private={"kind": y})  # warnings are errors
    assert pipeline[0].rule_.private_names == ("kind",)
    assert pipeline[-1].classes_.tolist() == [False, True]


def test_the_trade_off_is_certified_together_and_can_be_chosen_from():
    population = graded()
    funnel = fitted(population, n=12_000, n_cells=12)
    front = funnel.frontier_
    assert front is funnel.frontier_
    bounds = [point.bound.value for point in front.points]
    assert bounds == sorted(bounds)
    assert {point.bound.confidence for point in front.points} == {1 - 0.05 / len(bounds)}
    middle = (bounds[3] + bounds[4]) / 2
    chosen = funnel.choose(max_leakage=middle)
    assert chosen.certificate_.value == pytest.approx(middle)
    assert population.leakage(chosen) <= middle
    assert chosen.solution_ is None
    assert funnel.certificate_.value == 0.05  # the first is what it was
    assert population.leakage(chosen) == pytest.approx(
        np.interp(
            middle, bounds[3:5], [population.leakage(funnel.choose(max_leakage=b)) for b in bounds[3:5]]
        ),
        rel=0.3,
    )
    half = funnel.choose(keep_variance=0.5)
    assert half.verdict_.variance == pytest.approx(0.5, abs=0.05)
    with pytest.raises(InfeasibleError, match="12 cells themselves keep"):
        funnel.choose(keep_variance=0.9999)
    with pytest.raises(InfeasibleError, match="least that the trade-off certifies"):
        funnel.choose(max_leakage=1e-6)
    knee = (
        clone(funnel).set_params(max_leakage=None).fit(*population.draw(12_000, np.random.default_rng(0))[:2])
    )
    assert knee.verdict_.variance > 0
    assert (knee.certificate_.confidence, chosen.certificate_.confidence) == (0.95, 0.95)
    assert population.leakage(knee) <= knee.certificate_.value


def misses(population, limit, n, repeats, measure="information", confidence=0.95, **settings):
    """How many of so many whole fits, on fresh records, really tell more than they promise."""
    rng = np.random.default_rng(5)
    over = refused = 0
    for repeat in range(repeats):
        X, y, _ = population.draw(n, rng)
        funnel = CertifiedFunnel(
            limit, leakage=measure, confidence=confidence, random_state=repeat, **settings
        )
        try:
            funnel.fit(X, private=y)
        except InfeasibleError:
            refused += 1
            continue
        over += population.leakage(funnel, measure) > limit
    return over, refused


@pytest.mark.parametrize(
    ("population", "limit", "n"),
    [(graded(), 0.05, 3_000), (hostile(), 0.009, 24_000)],
    ids=["graded", "a rare kind reveals all"],
)
def test_fits_keep_the_limit_as_often_as_they_say(population, limit, n):
    over, refused = misses(population, limit, n, 12, n_cells=8)
    assert refused < 12
    assert over <= 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("population", "limit", "n", "measure"),
    [
        (graded(), 0.05, 3_000, "information"),
        (hostile(), 0.009, 24_000, "information"),
        (Population([0.3] * 3 + [0.1], [[0.5, 0.5]] * 3 + [[0.9, 0.1]]), 0.02, 6_000, "information"),
        (graded(n_y=3), 0.1, 4_000, "information"),
        (graded(), 0.7, 3_000, "success"),
        (graded(), 0.2, 3_000, "parity"),
    ],
    ids=["graded", "hostile", "one kind tells", "three classes", "success", "parity"],
)
def test_two_hundred_fits_are_over_the_limit_in_at_most_five_per_cent(population, limit, n, measure):
    over, refused = misses(population, limit, n, 200, measure)
    print(f"over {over}, refused {refused} of 200")
    assert refused < 150
    assert over <= 0.05 * 200


def test_people_with_several_records_count_once():
    groups = np.repeat(np.arange(500), 4)
    solving, certifying = split_records(2_000, groups, np.random.default_rng(0))
    assert not set(groups[solving]) & set(groups[certifying])
    assert len(set(groups[certifying])) == len(certifying) == 500 - 334
    assert len(set(groups[solving])) == len(solving) == 334
    X, y, _ = graded().draw(2_000, np.random.default_rng(0))
    funnel = CertifiedFunnel(0.5, random_state=0).fit(X, private=y[groups], groups=groups)
    assert funnel.certificate_.n_samples == 166


def test_the_records_that_certify_have_no_part_in_cells_and_candidates():
    """Their private values are changed: everything up to the certificate stays as it is."""
    population = graded()
    X, y, _ = population.draw(3_000, np.random.default_rng(0))
    first = CertifiedFunnel(0.3, random_state=0).fit(X, private=y)
    rng = np.random.default_rng(0)
    _, certifying = split_records(3_000, None, rng)
    other = y.copy()
    other[certifying] = np.random.default_rng(1).permutation(y[certifying])
    second = CertifiedFunnel(0.3, random_state=0).fit(X, private=other)
    assert np.array_equal(first.rule_.cells.centres, second.rule_.cells.centres)
    assert np.array_equal(first.made_.problem.joint.p_xy, second.made_.problem.joint.p_xy)
    assert not np.array_equal(first.held_out_.counts, second.held_out_.counts)


def test_the_records_that_certify_do_not_cut_a_numeric_task():
    X, y, kinds = graded().draw(3_000, np.random.default_rng(0))
    task = kinds + np.random.default_rng(1).random(3_000)
    _, certifying = split_records(3_000, None, np.random.default_rng(0))
    other = task.copy()
    other[certifying] = 0.5
    first, second = (
        CertifiedFunnel(0.3, n_cells=10, random_state=0).fit(X, private=y, task=one) for one in (task, other)
    )
    assert np.array_equal(first.made_.tasks, second.made_.tasks)
    assert np.array_equal(first.rule_.cells.centres, second.rule_.cells.centres)


def test_what_is_kept_is_that_of_drawn_releases():
    population = graded()
    funnel = fitted(population, n=12_000, task=True, n_cells=12)
    X, _, _ = population.draw(20_000, np.random.default_rng(77))
    released = funnel.release(X, rng=0)
    kept = 1 - np.square(X - released).sum() / np.square(X - X.mean(axis=0)).sum()
    assert funnel.verdict_.variance == pytest.approx(kept, abs=0.02)
    assert funnel.verdict_.task == "task"
    assert 0.5 < funnel.verdict_.score <= funnel.verdict_.score_before + 0.02


def test_sums_by_cell_are_those_of_records():
    rng = np.random.default_rng(0)
    points, cells = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    y, t = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    centre, symbols = rng.normal(size=3), rng.normal(size=(5, 3))
    channel = rng.dirichlet(np.ones(5), size=4)
    sizes = {"centre": centre, "n_cells": 4, "n_classes": 2, "n_tasks": 2}
    whole = HeldOut.of(points, cells, y, t, **sizes)
    parts = HeldOut.of(points[:20], cells[:20], y[:20], t[:20], **sizes) + HeldOut.of(
        points[20:], cells[20:], y[20:], t[20:], **sizes
    )
    slow = sum(
        channel[c, z] * np.square(point - symbols[z]).sum()
        for point, c in zip(points, cells, strict=True)
        for z in range(5)
    )
    expected = 1 - slow / np.square(points - centre).sum()
    assert whole.variance_kept(channel, symbols) == pytest.approx(expected)
    assert parts.variance_kept(channel, symbols) == pytest.approx(expected)
    from sklearn.metrics import roc_auc_score

    scores = rng.integers(0, 5, 60).astype(float)
    assert weighted_auc(scores, np.eye(2)[t]) == pytest.approx(roc_auc_score(t, scores))


def test_a_rule_holds_no_centre_of_a_few_people():
    """One who is far from all others is a cluster of k-means, and its centre would be the record itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    X[7] = [1234.5, -777.25, 99.125]
    X[11:15] = [-900.5, 800.25, 3.5]
    for seed in range(3):
        funnel = CertifiedFunnel(0.1, n_cells=8, random_state=seed).fit(X, rng.integers(0, 2, 3_000))
        cells = funnel.rule_.cells
        nearest = np.square(X[:, None] - cells.centres).sum(axis=2).argmin(axis=1)
        assert np.bincount(nearest, minlength=len(cells.centres)).min() >= 20
        assert np.abs(cells.centres).max() < 300
        assert np.array_equal(cells.number[nearest], funnel.rule_.cells_of(X))


def test_steps_of_the_predictor_are_nobodys_numbers():
    """Of a column in which most people have 0, the steps are among the others: ten of them between two."""
    rng = np.random.default_rng(0)
    values = np.zeros(4_000)
    unusual = rng.permutation(4_000)[:120]
    values[unusual] = np.rint(rng.lognormal(8, 1, 120))
    plain = rng.normal(size=4_000)
    points = np.column_stack([values / values.std(), plain])
    steps = Predictor.fit(points, (values > 3_000).astype(int), 2).steps
    for column in (0, 1):
        places = np.sort(steps[steps[:, 0] == column, 1])
        assert len(places) >= 8
        assert not np.isin(places, points[:, column]).any()
        sides = np.searchsorted(places, points[points[:, column] != 0, column])
        assert np.bincount(sides, minlength=len(places) + 1).min() >= 5  # ten but for rounding
    few = np.column_stack([np.where(np.arange(4_000) < 9, np.arange(4_000), 0.0), plain])
    assert not (Predictor.fit(few, (plain > 0).astype(int), 2).steps[:, 0] == 0).any()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"max_leakage": 0.05},
            r"0.05 bit is none for private: whoever tells all of it tells 0.0\d+ bit. Allow",
        ),
        ({"max_leakage": 1.0, "leakage": "success"}, "A limit of 100 % is none for private"),
        ({"max_leakage": 1.0, "leakage": "parity"}, "A limit of 100 % is none for private"),
    ],
)
def test_a_limit_that_everything_keeps_is_refused(settings, said):
    """Of a rare private value there is little to know on average: 0.05 bit would let it all be told."""
    rng = np.random.default_rng(0)
    y = (rng.permutation(6_000) < 12).astype(int)
    X = rng.normal(size=(6_000, 2)) + 50 * y[:, None]
    with pytest.raises(InfeasibleError, match=said):
        CertifiedFunnel(n_cells=8, random_state=0, **settings).fit(X, y)


def test_images_come_back_as_images():
    images, digits, new, _ = pf.datasets.load_digits(dtype="uint8")
    funnel = CertifiedFunnel(0.4, n_cells=20, random_state=0).fit(images, private=digits % 2)
    back = funnel.release(new)
    assert back.shape == new.shape
    assert back.dtype == np.uint8
    assert back.max() <= 16
    assert funnel.verdict_.variance > 0.1


def test_an_encoder_that_saw_the_records_is_refused():
    class Encoder:
        def transform(self, X):
            return X[:, :1]

        def trained_on(self, X):
            return 0.4

    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    with pytest.raises(InvalidInputError, match="trained on some of the records that are to certify"):
        CertifiedFunnel(0.2, cells=Encoder()).fit(X, private=y)


RNG = np.random.default_rng(0)
X50, Y50 = RNG.normal(size=(50, 2)), RNG.integers(0, 2, 50)


@pytest.mark.parametrize(
    ("X", "given", "settings", "words"),
    [
        (X50, {"private": Y50}, {}, "with 16 records held back for it; about .* would be needed"),
        (X50, {}, {}, "name what is private"),
        (X50, {"private": np.zeros(50)}, {}, "nothing to protect"),
        (X50, {"private": np.arange(50)}, {}, "different for every record"),
        (X50, {"private": [0] * 47 + [1] * 3}, {}, "has 3 records, too few"),
        (X50, {"private": Y50[:20]}, {}, "20 values for 50 records"),
        (np.where(np.arange(100).reshape(50, 2) == 7, np.inf, X50), {"private": Y50}, {}, "row 3 has an inf"),
        (np.where(np.arange(100).reshape(50, 2) == 7, np.nan, X50), {"private": Y50}, {}, "row 3 has a miss"),
        (X50[:, 0], {"private": Y50}, {}, "one row a record"),
        (X50, {"private": Y50}, {"leakage": "bits"}, "leakage must be one of"),
        (X50, {"private": Y50}, {"utility": "beauty"}, "utility must be one of"),
        (X50, {"private": Y50}, {"utility": "task"}, "needs a task"),
        (X50, {"private": Y50}, {"cells": "tree"}, "pass task="),
        (X50, {"private": Y50}, {"cells": 3}, "cells must be"),
        (X50, {"private": Y50}, {"max_leakage": -1}, "more than 0"),
        (X50, {"private": Y50}, {"max_leakage": 0.3, "leakage": "success"}, "leaves nothing to be certified"),
        (X50, {"private": Y50}, {"n_cells": 1}, "at least 2"),
        (X50, {"private": Y50}, {"confidence": 95}, "between 0 and 1"),
        (pd.DataFrame({"a": ["x"] * 50, "b": 1}), {"private": Y50}, {}, "no column tells records apart"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(X, given, settings, words):
    with pytest.raises(InvalidInputError, match=words) as caught:
        CertifiedFunnel(random_state=0, **settings).fit(X, **given)
    assert "\n" not in str(caught.value)


def test_new_records_must_be_like_the_old():
    funnel = fitted(graded(), n=3_000, max_leakage=0.3)
    with pytest.raises(InvalidInputError, match="fitted on records of shape"):
        funnel.transform(np.zeros((3, 5)))
    with pytest.raises(InvalidInputError, match="symbols are whole numbers from 0 to"):
        funnel.inverse_transform([0.5])


def test_a_rule_holds_no_exact_mean_and_no_exact_count():
    """Whoever knows all records of a cell but one must not compute the last from what is handed on."""
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    for settings in ({"n_cells": 8}, {"n_cells": 8, "cells": "tree"}):
        funnel = CertifiedFunnel(0.3, random_state=0, **settings)
        funnel.fit(X, private=y, task=(X[:, 0] > 3).astype(int))
        rule, solving = funnel.rule_, X[split_records(3_000, None, np.random.default_rng(0))[0]]
        at = rule.cells_of(solving)
        sizes = np.bincount(at, minlength=rule.cells.n_cells)
        steps = 4 * np.ptp(solving, axis=0) / sizes[:, None]
        exact = group_means(solving, at, rule.cells.n_cells)
        off = (rule.cell_points - exact) / steps
        # Predictions of other folds put a few records elsewhere than the rule does.
        assert 0.05 < np.abs(off).max() < 3
        tens = rule.p_cells / rule.p_cells.min() * np.rint(sizes.min() / 10)
        assert np.allclose(tens, np.rint(tens))
        assert np.array_equal(rule.mechanism.p_x, rule.p_cells)
        assert np.allclose(rule.mechanism.marginal, rule.p_cells @ rule.mechanism.p_z_given_x)


def test_what_the_model_of_the_task_is_scaled_by_is_rounded():
    points = np.random.default_rng(0).normal(3.0, 0.0123456, (500, 2))
    model = Predictor.fit(points, (points[:, 0] > 3).astype(int), 2)
    assert np.allclose(model.width * 1e4, np.rint(model.width * 1e4), atol=1e-9)
    for numbers in (model.centre, *(model.steps[model.steps[:, 0] == i, 1] for i in (0, 1))):
        units = numbers / (0.01 * model.width[0])
        assert np.allclose(units, np.rint(units), atol=1e-6)
    assert np.array_equal(rounded_spread(np.zeros((3, 2))), [1.0, 1.0])


def test_a_limit_made_from_shares_does_not_tell_how_many_have_a_private_value():
    X, y, _ = graded().draw(3_000, np.random.default_rng(0))
    given = []
    funnel = CertifiedFunnel(
        lambda shares: given.append(shares) or shares.max() + 0.2,
        leakage="success",
        n_cells=8,
        random_state=0,
    ).fit(X, private=y)
    solving = y[split_records(3_000, None, np.random.default_rng(0))[0]]
    tens = 10 * np.rint(np.bincount(solving) / 10)
    assert np.allclose(given[0], tens / tens.sum())
    assert funnel.certificate_.value == pytest.approx(given[0].max() + 0.2)
    assert funnel.verdict_.guesses[0].chance == pytest.approx(given[0].max())


@pytest.mark.parametrize(("limit", "most"), [(0.68, (0.68, 0.68)), (lambda p: p.max() + 0.1, (0.6, 0.7))])
def test_a_limit_on_guesses_of_several_attributes_holds_for_each(limit, most, tmp_path):
    """Who knows everybody's sex is right about sex and race as often as race is the usual one."""
    rng = np.random.default_rng(0)
    sex, race = rng.integers(2, size=6_000), rng.choice(3, size=6_000, p=[0.6, 0.25, 0.15])
    X = np.column_stack([sex + 0.1 * rng.normal(size=6_000), rng.integers(3, size=6_000)])
    funnel = CertifiedFunnel(limit, leakage="success", n_cells=6, random_state=0)
    funnel.fit(X, private={"sex": sex, "race": race})
    assert list(funnel.certificates_) == ["sex", "race"]
    for one, certificate, at_most in zip(
        funnel.verdict_.guesses, funnel.certificates_.values(), most, strict=True
    ):
        assert one.at_most == certificate.value
        assert certificate.value == pytest.approx(at_most, abs=0.01)
    guesses = pd.crosstab(funnel.transform(X, rng=0), sex).max(axis=1).sum() / 6_000
    assert guesses <= most[0] + 0.01
    funnel.save(tmp_path / "funnel")
    again = pf.load(tmp_path / "funnel")
    assert again.max_leakage == (
        limit if isinstance(limit, float) else {n: c.value for n, c in funnel.certificates_.items()}
    )


def test_a_limit_that_is_a_number_of_numpy_is_saved(tmp_path):
    funnel = fitted(graded(), n=3_000, max_leakage=np.float32(0.3))
    funnel.save(tmp_path / "funnel")
    assert pf.load(tmp_path / "funnel").max_leakage == pytest.approx(0.3)


def test_bits_of_a_limit_on_guesses_are_none_at_chance_and_more_above_it():
    for p_y in ([0.5, 0.5], [0.7, 0.3], [0.5, 0.3, 0.15, 0.05], [0.25] * 4, [0.4, 0.39, 0.21]):
        shares = np.array(p_y)
        bits = [rough_bits("success", shares.max() + more, shares) for more in (0.0, 0.03, 0.1)]
        assert bits[0] == pytest.approx(0, abs=1e-12)
        assert 0 < bits[1] < bits[2]
    assert rough_bits("success", 1.0, shares) == pytest.approx(pf.entropy(shares))


def test_the_space_of_wide_records_does_not_tell_the_last_one():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (600, 225)).astype(float)
    X[:, :60] += 60 * rng.integers(0, 2, (600, 1))
    space, _ = make_space("kmeans", X, private=np.zeros(600, dtype=int), task=None, rng=rng)
    recovered = space.origin * 600 - X[:-1].sum(axis=0)
    assert np.abs(recovered - X[-1]).mean() > 255  # as far off as two records are
    steps = space.directions * 2**10
    assert np.array_equal(steps, np.rint(steps))
    assert np.allclose(space.directions.T @ space.directions, np.eye(50), atol=0.05)


def test_a_column_that_varies_little_keeps_a_deviation():
    rare = np.zeros(1_000)
    rare[:3] = 1
    for values in (rare, rare[:40], np.random.default_rng(0).normal(size=12)):
        mean, deviation = coarse_moments(values)
        assert deviation > 0
        assert abs(mean - values.mean()) <= 10 * np.ptp(values) / len(values)
    assert coarse_moments(np.full(20, 3.0)) == (3.0, 0.0)


def test_a_rounded_share_fits_several_counts_and_does_not_tell_the_size():
    for size in (20, 37, 430):
        counts = np.arange(size + 1)
        rounded = coarse(counts[:, None] / size, np.full(size + 1, size), np.ones(1))[:, 0]
        _, fitting = np.unique(rounded, return_counts=True)
        assert fitting[1:-1].min() >= 2
        assert np.array_equal(rounded * 1024, np.rint(rounded * 1024))


def test_one_record_moves_a_rounded_mean_by_a_step_at_most():
    rng = np.random.default_rng(0)
    points, groups = rng.uniform(size=(200, 3)), rng.integers(0, 5, 200)
    sizes, spread = np.bincount(groups), np.ones(3)
    before = coarse(group_means(points, groups, 5), sizes, spread)
    points[17] = 1 - points[17]
    moved = np.abs(coarse(group_means(points, groups, 5), sizes, spread) - before)[groups[17]]
    assert (
        moved.max() <= 4 / sizes[groups[17]] + 1e-12
    )  # a step; two records move the mean by half of it or more
    assert np.array_equal(coarse(np.ones((2, 1)), np.array([3, 4]), np.zeros(1)), np.ones((2, 1)))
