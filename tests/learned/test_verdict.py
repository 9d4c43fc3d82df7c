"""The verdict after a fit: on records kept from training, in one sentence, with warnings where due."""

import re
import warnings

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import cross_fitted_bound, neural_network
from privacyfunnel.errors import ConvergenceWarning, InvalidInputError
from privacyfunnel.learned import Funnel, funnel, judges
from privacyfunnel.learned.training import TrainingStatus
from privacyfunnel.learned.verdict import LEAST_KEPT, Guessed, Verdict, kept_apart

SMALL = {"n_components": 8, "hidden": (64, 64), "random_state": 0, "release_state": 1}


@pytest.fixture(scope="module")
def fitted():
    """The defaults, on digits with their parity private, with small networks and few epochs."""
    images, labels, *_ = pf.datasets.load_digits()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return Funnel(hidden=(128, 128), epochs=40, random_state=0, release_state=1).fit(images, labels % 2)


def test_the_defaults_keep_much_of_the_digits_and_tell_little(fitted):
    _, _, images, labels = pf.datasets.load_digits()
    assert fitted.status_ is TrainingStatus.FINISHED
    codes = fitted.transform(images)
    explained = 1 - ((fitted.inverse_transform(codes) - images) ** 2).mean() / images.var(axis=0).mean()
    assert explained > 0.3
    bound = cross_fitted_bound(neural_network(), codes, labels % 2)
    raw = cross_fitted_bound(neural_network(), images.reshape(len(images), -1), labels % 2)
    assert raw.value > 0.6  # there was something to hide
    assert bound.value < 0.15
    # And the verdict, on others of the training set, says the same.
    assert fitted.verdict_.explained == pytest.approx(explained, abs=0.1)
    assert fitted.verdict_.n == 130
    (guessed,) = fitted.verdict_.guessed
    assert guessed.success < 0.8
    assert guessed.chance == pytest.approx(0.5, abs=0.05)


def test_the_sentence(fitted):
    assert str(fitted.verdict_).startswith(f"Keeps {fitted.verdict_.explained:.0%}".replace("%", " %"))
    verdict = Verdict(0.412, (Guessed("sex", 0.71, 0.67, 0.02, 0.9),), 1600)
    sentence = "Keeps 41 % of the variance; sex guessed 71 %, chance 67 %"
    assert str(verdict) == f"{sentence} (measured on 1,600 records kept from training)."
    assert verdict.warnings() == []


def test_kept_records_are_not_trained_on(digits, monkeypatch):
    x, y, _, _ = digits
    trained, judged = [], []

    def train(self, run, x, targets, *, original=funnel.LearnedFunnel._train, **options):
        trained.append(x.numpy())
        original(self, run, x, targets, **options)

    def judge(step, x, targets, kept, seed, original=funnel.judged):
        judged.append(x.numpy()[kept])
        return original(step, x, targets, kept, seed)

    monkeypatch.setattr(funnel.LearnedFunnel, "_train", train)
    monkeypatch.setattr(funnel, "judged", judge)
    with pytest.warns(ConvergenceWarning, match="nearly useless"):
        Funnel(**SMALL, epochs=1, validation_fraction=0.2).fit(x, y)
    assert (len(trained[0]), len(judged[0])) == (800, 200)
    rows = {row.tobytes() for row in trained[0]}
    assert not any(row.tobytes() in rows for row in judged[0])


def test_a_run_that_goes_on_keeps_the_same_records_apart(digits, tmp_path, monkeypatch):
    x, y, _, _ = digits
    trained = []

    def train(self, step, x, targets, *, original=funnel.LearnedFunnel._train, **options):
        trained.append(x.numpy())
        original(self, step, x, targets, **options)
        if len(trained) == 1:
            raise MemoryError

    monkeypatch.setattr(funnel.LearnedFunnel, "_train", train)
    options = SMALL | {"random_state": None, "checkpoint": tmp_path, "epochs": 1}
    with pytest.raises(MemoryError):
        Funnel(**options).fit(x, y)
    with pytest.warns(ConvergenceWarning):
        Funnel(**options).fit(x, y)
    np.testing.assert_array_equal(*trained)


def test_a_code_that_tells_much_is_told(digits):
    x, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match=r"much about y: at least .* Raise leakage_weight"):
        model = Funnel(**SMALL, epochs=25, leakage_weight=0.0, alpha=1e-4).fit(x, y % 2)
    (guessed,) = model.verdict_.guessed
    assert guessed.tells_much
    assert guessed.success > 0.8


def test_a_classifier_that_was_outrun_is_told():
    """Y is whether two signs are equal: no line finds it, trees and networks do."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 4)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    linear = SMALL | {"classifier": "linear", "classifier_steps": 1, "alpha": 1e-4}
    with pytest.warns(ConvergenceWarning) as told:
        model = Funnel(**linear, epochs=40).fit(x, y)
    notes = " ".join(str(one.message) for one in told)
    assert re.search(r"outrun: it finds 0\.0\d bit.* Use classifier='mlp', and more classifier_steps", notes)
    assert model.history_["leakage"].iloc[-1] < 0.05
    (guessed,) = model.verdict_.guessed
    assert guessed.bits > 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the default keeps up
        Funnel(**SMALL, epochs=40).fit(x, y)


@pytest.mark.parametrize("mended", [False, True])
def test_the_written_reading_tells_that_its_classifier_was_outrun(digits, mended):
    """It keeps no records: a new logistic regression reads codes of those it learned from."""
    x, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match=r"outrun: it finds 0\.00 bit.*bit of y in new codes"):
        model = Funnel.written(16, mended=mended, epochs=30, random_state=0, progress=False).fit(x, y)
    assert model.history_["leakage"].iloc[-1] < 0.01
    (line,) = model.verdict_.by_line
    assert line.bits > 0.5
    assert (model.verdict_.guessed, model.verdict_.n) == ((), 0)


def test_what_few_records_show_by_chance_is_no_sign_of_being_outrun():
    found = Guessed("sex", 0.71, 0.67, 0.2, 1.0)
    assert Verdict(0.4, (found,), 1600).outrun(0.0)
    assert not Verdict(0.4, (found,), 64).outrun(0.0)
    assert not Verdict(0.4, (found,), 1600).outrun(0.07)
    assert not Verdict(None, (), 0, "no records").outrun(0.0)
    assert Verdict(None, (), 0, "no records", (found,), 1600).outrun(0.0)
    assert not Verdict(None, (), 0, "no records", (found,), 64).outrun(0.0)


def test_a_code_that_collapsed_is_told_once(digits):
    x, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="hardly depends") as told:
        model = Funnel(**SMALL, epochs=25, alpha=10.0).fit(x, y)
    assert len(told) == 1
    assert model.status_ is TrainingStatus.COLLAPSED


def test_what_was_not_measured_is_said(digits):
    x, y, _, _ = digits
    few = Funnel(**SMALL, epochs=1).fit(x[:200], y[:200])
    assert str(few.verdict_) == (
        "Not measured: 200 records are too few to keep some from training; audit the release on new records."
    )
    for model in (
        Funnel(**SMALL, epochs=1, validation_fraction=0).fit(x, y),
        Funnel(**SMALL).partial_fit(x, y),
        Funnel.written(**SMALL | {"epochs": 1}).fit(x, y),
    ):
        assert str(model.verdict_).startswith("Not measured: no records were kept from training;")
    with pytest.raises(InvalidInputError, match=r"between 0 and 0\.5"):
        Funnel(**SMALL, validation_fraction=1.0).fit(x, y)


def test_every_attribute_is_judged_and_numbers_are_named(digits):
    pandas = pytest.importorskip("pandas")
    x, y, _, _ = digits
    private = pandas.DataFrame({"odd": y % 2, "large": y > 4, "ink": x.sum(axis=1) + 0.01})
    with pytest.warns(ConvergenceWarning):
        model = Funnel(**SMALL, epochs=1).fit(x, private=private)
    assert [one.name for one in model.verdict_.guessed] == ["odd", "large"]
    assert "ink not judged" in str(model.verdict_)


def test_the_verdict_comes_back(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    assert pf.load(tmp_path / "model").verdict_ == fitted.verdict_


def test_each_class_is_kept_apart_in_its_share():
    import torch

    y = torch.arange(1000) % 4
    kept = kept_apart([y], 1000, 0.1, 0)
    assert np.bincount(y.numpy()[kept]).tolist() == [25] * 4
    assert not kept_apart([y], 1000, (LEAST_KEPT - 1) / 1000, 0).any()


def test_without_a_number_of_epochs_small_data_get_enough_steps(digits, monkeypatch):
    from privacyfunnel.learned import base

    x, y, _, _ = digits
    monkeypatch.setattr(base, "N_STEPS", 30)
    options = SMALL | {"validation_fraction": 0.0, "batch_size": 64}
    assert Funnel(**options).fit(x[:128], y[:128]).progress_.epoch == 15
    assert Funnel(**options).fit(x, y).progress_.epoch == 10


@pytest.mark.filterwarnings("ignore")  # of networks this small
def test_many_classes_are_judged_by_randomised_trees(monkeypatch):
    """Boosting grows a tree a class: with forty, each audit of a search for a budget would take minutes."""
    asked = []

    def strongest(adversaries, *pairs, original=judges.strongest_bound, **options):
        asked.append([one.name for one in adversaries])
        return original(adversaries, *pairs, **options)

    monkeypatch.setattr(judges, "strongest_bound", strongest)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 3)).astype(np.float32)
    for n_classes in (30, 31):
        Funnel(2, hidden=(4,), epochs=1, random_state=0).fit(x, np.arange(800) % n_classes)
    assert [names[0] for names in asked] == ["boosted trees", "randomised trees"]
