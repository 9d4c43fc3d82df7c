"""What goes in and comes out: records of many kinds, one sentence for those that cannot be used, releases."""

import numpy as np
import pytest
import torch
from scipy import stats

from privacyfunnel.errors import ConvergenceWarning, InvalidInputError
from privacyfunnel.learned import Autoencoder, Funnel, encoder
from privacyfunnel.learned.training import TrainingStatus

TINY = {"n_components": 3, "hidden": (16,), "random_state": 0, "batch_size": 50, "epochs": 1}


@pytest.mark.parametrize("name", ["normal", "laplace"])
def test_a_release_has_the_noise_of_its_family(name, digits):
    x, _, _, _ = digits
    model = Autoencoder(**TINY, latent=name, release_state=3).fit(x)
    loc, log_scale = model.encode(x)
    noise = (model.transform(x) - loc) / np.exp(log_scale)
    family = {"normal": stats.norm, "laplace": stats.laplace}
    others = {other: stats.kstest(noise.ravel(), one.cdf).pvalue for other, one in family.items()}
    assert others.pop(name) > 1e-3
    assert max(others.values()) < 1e-6


@pytest.mark.parametrize("name", ["normal", "laplace"])
@pytest.mark.parametrize("number", [0.0, 1 - 2.0**-53])
def test_no_random_number_releases_infinity(name, number, digits, monkeypatch):
    x, _, _, _ = digits
    model = Autoencoder(**TINY, latent=name).fit(x)
    monkeypatch.setattr(encoder, "uniform", lambda n, rng: np.full(n, number))
    assert np.isfinite(model.transform(x)).all()


def test_images_of_bytes_can_be_learnt_from(digits):
    x, y, _, _ = digits
    model = Funnel(**TINY | {"epochs": 3}).fit((255 * x).astype(np.uint8), y)
    assert model.status_ is TrainingStatus.FINISHED


def test_codes_that_run_off_stop_training_while_all_is_finite(digits):
    x, y, _, _ = digits
    with pytest.warns(ConvergenceWarning, match="Scale X"):
        model = Funnel(**TINY, scale="none", objective="dca").fit(1e8 * x, y)
    assert model.status_ is TrainingStatus.DIVERGED
    assert all(bool(torch.isfinite(p).all()) for p in model.modules_.parameters())


def test_a_fit_that_fails_leaves_everything_as_it_was(digits, tmp_path):
    x, y, x_new, _ = digits
    model = Funnel(**TINY, release_state=0)
    with pytest.raises(InvalidInputError, match="at least 400 records"):
        model.set_params(max_leakage=0.05).fit(x[:10], y[:10])
    assert not [name for name in vars(model) if name.endswith("_")]
    model.set_params(max_leakage=None).fit(x, y)
    before, history = model.transform(x_new), len(model.history_)
    for broken in (
        lambda: model.fit(x[:, :10]),
        lambda: model.fit(x[:, :10], np.zeros(1000)),
        lambda: model.set_params(max_leakage=0.05).fit(x[:10], y[:10]),
        lambda: model.set_params(max_leakage=None).partial_fit(x[:, :10], y),
    ):
        with pytest.raises(ValueError, match=r".+"):
            broken()
        assert np.array_equal(model.transform(x_new), before)
        assert len(model.history_) == history


def test_settings_that_change_between_parts_are_no_instability(digits):
    x, y, _, _ = digits
    model = Funnel(**TINY, beta=0.05, objective="dca", scale="none")
    for _ in range(6):
        model.partial_fit(x, y)
    model.set_params(beta=3.0).partial_fit(x, y)  # a warning would be an error here
    losses = model.history_["encoder_loss"].tolist()
    assert losses[-1] > 10 * min(losses)


def test_an_exponential_likelihood_needs_the_plain_sum(digits):
    x, y, _, _ = digits
    with pytest.raises(InvalidInputError, match="needs objective='lagrangian'"):
        Funnel(**TINY, likelihood="exponential", objective="dca").fit(x, y)
    Funnel(**TINY, likelihood="exponential").fit(x, y)


@pytest.mark.parametrize("shape", [(8, 32), (4, 8, 8), (3, 64)])
def test_convolutions_refuse_what_is_no_square_in_grey(shape):
    x = np.random.default_rng(0).random((60, *shape), dtype=np.float32)
    with pytest.raises(InvalidInputError, match="square single-channel images"):
        Autoencoder(**TINY, architecture="conv").fit(x)


@pytest.mark.parametrize("shape", [(8, 8), (1, 8, 8), (8, 8, 1)])
def test_convolutions_take_squares_in_grey(shape):
    x = np.random.default_rng(0).random((60, *shape), dtype=np.float32)
    model = Autoencoder(**TINY, architecture="conv").fit(x)
    assert model.inverse_transform(model.transform(x)).shape == x.shape


def frame(**columns):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"age": np.arange(60.0), **columns})


LABELS = np.arange(60) % 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: frame(job=["clerk"] * 60), "could not convert column 'job' to numbers, it holds texts"),
        (
            lambda: frame(born=np.full(60, "2000-01-01", "M8[D]")),
            "column 'born' to numbers, it holds values of",
        ),
        (
            lambda: frame(pay=[1.0] * 59 + [np.nan]),
            r"contains NaN \(a missing value\) in row 59, column 'pay'",
        ),
        (lambda: frame(pay=[np.inf] + [1.0] * 59), "contains infinity in row 0, column 'pay'"),
        (lambda: np.where(np.eye(60, 5), np.nan, 1.0), r"contains NaN .* in row 0, column 0"),
    ],
)
def test_records_that_cannot_be_used_get_one_sentence(make, sentence):
    with pytest.raises(InvalidInputError, match=sentence) as error:
        Funnel(**TINY).fit(make(), LABELS)
    assert "\n" not in str(error.value)


def test_lazy_frames_are_asked_for_their_rows():
    polars = pytest.importorskip("polars")
    lazy = polars.DataFrame({"a": np.arange(60.0), "b": LABELS}).lazy()
    with pytest.raises(InvalidInputError, match=r"X is a lazy frame.*collect\(\)"):
        Funnel(**TINY).fit(lazy, LABELS)
    with pytest.raises(InvalidInputError, match=r"private is a lazy frame.*collect\(\)"):
        Funnel(**TINY).fit(np.ones((60, 2)), private=lazy)
    unnamed = polars.Series(LABELS)
    assert Funnel(**TINY).fit(np.ones((60, 2)), private=unnamed).private_.names == ["y"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: frame().iloc[:, :0], "private has no columns"),
        (lambda: frame(sex=LABELS).iloc[:, [1, 1]], "private has the column 'sex' twice"),
    ],
)
def test_private_tables_that_cannot_be_used_get_one_sentence(make, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Funnel(**TINY).fit(np.ones((60, 2)), private=make())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"checkpoint": 3}, "checkpoint must be a folder's name"),
        ({"release_state": np.random.RandomState(0)}, "release_state must be None, a whole number"),
    ],
)
def test_settings_are_checked_before_any_work(options, sentence):
    with pytest.raises(InvalidInputError, match=sentence):
        Funnel(**TINY | options).fit(np.ones((60, 2)), LABELS)


def test_half_precision_tensors(digits):
    x, y, _, _ = digits
    Funnel(**TINY).fit(torch.from_numpy(x).bfloat16(), torch.from_numpy(y))
