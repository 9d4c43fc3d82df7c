"""The learned estimators as scikit-learn's: its own checks, pipelines, searches, frames and copies."""

import copy
import pickle

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from privacyfunnel.errors import InvalidInputError, TargetWarning
from privacyfunnel.learned import Autoencoder, ConditionalFunnel, DeepVariationalFunnel, Funnel

# scikit-learn's data are tiny and not scaled; two epochs on them may well collapse.
pytestmark = pytest.mark.filterwarnings("ignore::privacyfunnel.errors.ConvergenceWarning")

SMALL = {"n_components": 2, "hidden": (8,), "epochs": 2, "batch_size": 32, "random_state": 0}
CLASSES = [Funnel, ConditionalFunnel, DeepVariationalFunnel, Autoencoder]

IN_ORDER = (
    "a release draws its noise by row: with one seed, another order or part of the rows is another draw"
)
FRESH = "compares two calls of transform, each a release with noise of its own"
EXPECTED_FAILURES = {
    "seeded": {
        "check_methods_sample_order_invariance": IN_ORDER,
        "check_methods_subset_invariance": IN_ORDER,
    },
    "unseeded": {
        "check_estimators_pickle": FRESH,
        "check_fit_idempotent": FRESH,
    },
}


def expected_failures(estimator):
    return EXPECTED_FAILURES["unseeded" if estimator.release_state is None else "seeded"]


# Its checks call fit_transform(X, y), as a pipeline does.
@pytest.mark.filterwarnings("ignore::privacyfunnel.errors.TargetWarning")
@parametrize_with_checks(
    [*(one(**SMALL, release_state=0) for one in CLASSES), Funnel(**SMALL)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    """Four columns; y is the sign of the first, the private attribute that of the second."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 4)).astype(np.float32)
    return x, (x[:, 0] > 0).astype(int), np.where(x[:, 1] > 0, "m", "f")


def test_private_is_routed_through_pipelines_and_searches(table):
    x, y, private = table
    with sklearn.config_context(enable_metadata_routing=True):
        funnel = Funnel(**SMALL).set_fit_request(private=True)
        steps = [("scale", StandardScaler()), ("funnel", funnel), ("judge", LogisticRegression())]
        pipeline = Pipeline(steps).fit(x, y, private=private)
        assert pipeline["funnel"].private_.columns[0].classes.tolist() == ["f", "m"]
        assert pipeline["judge"].classes_.tolist() == [0, 1]
        assert pipeline.predict(x).shape == (120,)  # without the private attribute

        search = GridSearchCV(Pipeline(steps), {"funnel__n_components": [1, 3]}, cv=2)
        search.fit(x, y, private=private)
        best = search.best_estimator_["funnel"]
        assert best.private_.columns[0].classes.tolist() == ["f", "m"]
        assert best.transform(x).shape[1] == search.best_params_["funnel__n_components"]


def test_a_private_attribute_that_nobody_asked_for_is_not_dropped_silently(table):
    x, y, private = table
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(Funnel(**SMALL), LogisticRegression())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="private"):
            pipeline.fit(x, y, private=private)


@pytest.mark.parametrize("one", [Funnel, ConditionalFunnel, DeepVariationalFunnel])
def test_a_target_that_a_pipeline_makes_the_private_attribute_is_told(one, table):
    x, y, private = table
    pipeline = make_pipeline(one(**SMALL), LogisticRegression())
    name = one.__name__
    with pytest.warns(TargetWarning, match=rf"{name}: y was taken .* pass {name.lower()}__private=") as told:
        pipeline.fit(x, y)
    assert len(told) == 1
    pipeline.fit(x, y, **{f"{name.lower()}__private": private})  # warnings are errors
    assert pipeline[0].private_.columns[0].classes.tolist() == ["f", "m"]
    assert pipeline[-1].classes_.tolist() == [0, 1]


def test_whoever_has_the_funnel_in_hand_may_give_the_private_attribute_plainly(table):
    x, y, private = table
    funnel = Funnel(**SMALL).fit(x, private)
    assert funnel.private_.names == ["y"]
    assert Funnel(**SMALL).fit(x, private={"sex": private}).private_.names == ["sex"]
    assert funnel.fit_transform(x, private=private).shape == (120, 2)
    make_pipeline(StandardScaler(), Funnel(**SMALL)).fit(x, private)  # the last step
    make_pipeline(Autoencoder(**SMALL), LogisticRegression()).fit(x, y)  # has nothing private


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_codes_come_as_frames_where_asked_for(library, table):
    frames = pytest.importorskip(library)
    x, _, private = table
    records = frames.DataFrame({f"column {j}": x[:, j] for j in range(4)})
    model = Funnel(**SMALL, release_state=1).fit(records, private)
    assert model.feature_names_in_.tolist() == [f"column {j}" for j in range(4)]
    plain = model.transform(records)
    codes = model.set_output(transform=library).transform(records)
    assert isinstance(codes, frames.DataFrame)
    assert list(codes.columns) == ["funnel0", "funnel1"] == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(codes.to_numpy(), plain)
    np.testing.assert_array_equal(model.inverse_transform(codes), model.inverse_transform(plain))
    renamed = frames.DataFrame({f"other {j}": x[:, j] for j in range(4)})
    with pytest.raises(ValueError, match="feature names"):
        model.transform(renamed)


@pytest.mark.parametrize("one", CLASSES)
def test_parameters_survive_cloning(one):
    changed = one(**SMALL).set_params(latent="laplace", learning_rate=0.5)
    again = clone(changed)
    assert again.get_params() == changed.get_params()
    assert again.get_params()["learning_rate"] == 0.5
    assert not hasattr(again, "modules_")


@pytest.mark.parametrize("one", CLASSES)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_goes_on_by_itself_as_the_original_would(one, copied, table):
    x, _, private = table
    model = one(**SMALL).fit(x, private)
    twin = copied(model)
    before = [p.clone() for p in model.modules_.parameters()]
    twin.partial_fit(x, private)
    assert any(not torch.equal(a, b) for a, b in zip(before, twin.modules_.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in zip(before, model.modules_.parameters(), strict=True))
    model.partial_fit(x, private)
    for a, b in zip(model.modules_.parameters(), twin.modules_.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not any(isinstance(value, torch.Tensor) and len(value) == 120 for value in vars(model).values()), (
        "training data must not travel with the model"
    )


@pytest.mark.parametrize("one", CLASSES)
@pytest.mark.parametrize(("n", "batch_size"), [(10, 256), (33, 32), (2, 256)])
def test_few_records_and_constant_columns_will_do(one, n, batch_size, table):
    x, _, _ = table
    records = x[:n].copy()
    records[:, 2] = 7.0
    model = one(**(SMALL | {"batch_size": batch_size})).fit(records, np.arange(n) % 2)
    assert model.progress_.epoch == 2
    assert np.isfinite(model.transform(records)).all()
    assert all(np.isfinite(list(row.values())).all() for row in model.progress_.history)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number from 1 on; it is 0"),
        ({"n_components": 2.5}, "n_components must be"),
        ({"epochs": True}, "epochs must be"),
        ({"batch_size": -1}, "batch_size must be"),
        ({"classifier_steps": 0}, "classifier_steps must be"),
        ({"alpha": -1.0}, "alpha must be a finite number from 0 on"),
        ({"beta": float("nan")}, "beta must be"),
        ({"max_leakage": "low"}, "max_leakage must be a positive number of bits; it is 'low'"),
        ({"offset": float("inf")}, "offset must be a finite number"),
        ({"device": "xpu:7"}, "use 'cpu' or 'auto'"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0"),
        ({"hidden": 64}, "hidden must be a sequence"),
        ({"hidden": (64, 0)}, "hidden must be a sequence"),
        ({"device": "abacus"}, "device must be 'auto'"),
        ({"random_state": "seven"}, "random_state must be"),
        ({"architecture": "conv"}, "square single-channel images"),
    ],
)
def test_settings_that_cannot_work_get_one_sentence(settings, message, table):
    x, _, private = table
    with pytest.raises(InvalidInputError, match=message):
        Funnel(**(SMALL | settings)).fit(x, private)


def test_codes_that_cannot_be_decoded_get_one_sentence(table):
    x, _, private = table
    model = Funnel(**SMALL).fit(x.reshape(-1, 2, 2), private)
    assert model.inverse_transform(torch.zeros(3, 2, requires_grad=True)).shape == (3, 2, 2)
    with pytest.raises(ValueError, match="Z contains NaN"):
        model.inverse_transform([[0.0, np.nan]])
    with pytest.raises(InvalidInputError, match=r"shape \(4, 1\); fit saw \(2, 2\)"):
        model.transform(x.reshape(-1, 4, 1))
