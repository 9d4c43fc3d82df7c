"""history_ and the progress bar: information in bits, losses as the optimisers see them."""

import numpy as np
import pytest

from privacyfunnel.attributes import read_attributes
from privacyfunnel.learned import (
    Autoencoder,
    ConditionalFunnel,
    DeepVariationalFunnel,
    Funnel,
    PublishedFunnel,
)
from privacyfunnel.learned.objectives import describe
from privacyfunnel.learned.training import in_bits, ran_away

TINY = {"n_components": 3, "hidden": (16,), "random_state": 0, "epochs": 2, "batch_size": 200}
COLUMNS = {
    Funnel: {"decoder_loss", "encoder_loss", "leakage", "prior_divergence", "cross_entropy"},
    Autoencoder: {"loss"},
    ConditionalFunnel: {"loss"},
    DeepVariationalFunnel: {"loss", "conditional_reconstruction", "latent_game", "visible_game"},
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns(kind, digits):
    x, y, _, _ = digits
    frame = kind(**TINY).fit(x, y).history_
    assert set(frame.columns) >= COLUMNS[kind] | {"epoch", "reconstruction", "divergence"}
    assert ("leakage" in frame.columns) == (kind is Funnel)  # an autoencoder has not measured a leakage of 0


def test_information_is_in_bits(digits):
    x, y, _, _ = digits
    nat = np.log(2)  # what optimisers lower is in nats
    bits = describe(read_attributes({"y": y})).columns[0].entropy / nat
    half_variance = 0.5 * x.var(axis=0).sum() / nat
    constant = 32 * np.log2(2 * np.pi)  # of 64 Gaussian components
    options = {"beta": 0.7, "alpha": 0.3, "leakage_weight": 2.0, "scale": "none"}
    row = Funnel(**TINY, **options, schedule="alternating").fit(x, y).history_.iloc[-1]
    lost = 0.7 * (row["reconstruction"] - constant) / half_variance
    assert row["decoder_loss"] == pytest.approx(lost + nat * row["cross_entropy"], rel=0.05)
    told = 2 * row["leakage"] / bits
    assert row["encoder_loss"] == pytest.approx(told + lost + 0.3 * nat * row["divergence"], rel=1e-5)
    row = Funnel.written(**TINY | {"batch_size": 1000}).fit(x, y).history_.iloc[-1]
    residual = row["leakage"] + row["prior_divergence"] + 0.05 * row["reconstruction"]
    assert row["residual"] == pytest.approx(residual, rel=1e-5)
    assert row["constant"] == pytest.approx(0.05 * constant, rel=1e-5)
    assert row["reconstruction"] > constant
    assert row["exchange_rate"] == pytest.approx(5 * nat * residual, rel=1e-5)
    square = 0.5 * (nat * residual) ** 2
    assert row["encoder_loss"] == pytest.approx(square + 0.01 * nat * row["divergence"], rel=1e-5)
    # An untrained classifier of ten classes is about log2(10) bits off, and not log(10).
    first = Funnel(**TINY | {"epochs": 1}, learning_rate=1e-9).fit(x, y).history_.iloc[0]
    assert first["cross_entropy"] == pytest.approx(np.log2(10), abs=0.15)
    assert first["leakage"] == pytest.approx(max(0, bits - first["cross_entropy"]), abs=0.05)


@pytest.mark.parametrize("kind", [Autoencoder, ConditionalFunnel, DeepVariationalFunnel])
def test_the_reconstruction_is_that_of_a_density(kind, digits):
    """Gaussian: at least its constant; the loss, a sum, has it not."""
    x, y, _, _ = digits
    row = kind(**TINY).fit(x, y).history_.iloc[-1]
    constant = 32 * np.log2(2 * np.pi)
    assert constant < row["reconstruction"] < constant + 5 * x.var(axis=0).sum() / np.log(2)
    assert row["loss"] < row["reconstruction"] * np.log(2)


def test_what_the_published_square_sees(digits):
    x, y, _, _ = digits
    row = PublishedFunnel(**TINY | {"batch_size": 1000}).fit(x, y).history_.iloc[-1]
    residual = row["leakage"] + 0.05 * row["reconstruction"]
    assert row["residual"] == pytest.approx(residual, rel=1e-5)
    assert row["exchange_rate"] == pytest.approx(5 * np.log(2) * residual, rel=1e-5)


def test_without_a_price_of_code_there_is_no_exchange_rate(digits):
    x, y, _, _ = digits
    model = Funnel.written(**TINY, alpha=0.0).fit(x, y)
    assert "exchange_rate" not in model.history_.columns
    assert model.status_.name == "FINISHED"


def test_only_information_is_converted():
    terms = {"encoder_loss": 1.0, "loss": 2.0, "divergence": np.log(2), "latent_game": 0.0}
    expected = {"encoder_loss": 1.0, "loss": 2.0, "divergence": 1.0, "latent_game": 0.0}
    assert in_bits(terms | {"exchange_rate": 3.0}) == expected | {"exchange_rate": 3.0}


def test_a_constant_inside_the_square_hides_no_running_away():
    constant = 52.0  # bits: a loss of 650 whatever the encoder does
    floor = 0.5 * (np.log(2) * constant) ** 2
    rows = [{"encoder_loss": floor + more, "constant": constant} for more in (90, 40, 20, 60, 95)]
    assert ran_away(rows)
    assert not ran_away([{**row, "constant": 0.0} for row in rows])
    assert not ran_away(rows[:3] * 2)


def test_the_progress_bar_shows_losses_and_bits(digits, monkeypatch):
    from contextlib import contextmanager

    from privacyfunnel.learned import base

    texts = []

    @contextmanager
    def bar(description, enabled):
        yield lambda done, total, text: texts.append((done, total, text))

    monkeypatch.setattr(base, "progress_bar", bar)
    x, y, _, _ = digits
    model = Funnel(**TINY | {"epochs": 1}).fit(x, y)
    done, total, text = texts[-1]
    assert (done, total) == (5, 5)
    names = [part.rsplit(" ", 1)[0] for part in text.split(", ")]
    assert names[:2] == ["decoder loss", "encoder loss"]
    assert text.endswith(" bit")
    assert "leakage" in text
    assert model.progress_.epoch == 1


def test_the_published_square_has_what_grey_pixels_leave(digits):
    x, y, _, _ = digits
    model = PublishedFunnel(4, beta=0.05, hidden=(16,), epochs=2, random_state=0).fit(x, y)
    p = x.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        grey = np.nan_to_num(-(p * np.log2(p) + (1 - p) * np.log2(1 - p))).sum(axis=1).mean()
    rows = model.history_
    assert list(rows["constant"]) == pytest.approx([0.05 * grey] * 2, rel=1e-4)
    assert (rows["residual"] > rows["constant"] + rows["leakage"]).all()
    assert (rows["reconstruction"] > grey).all()
