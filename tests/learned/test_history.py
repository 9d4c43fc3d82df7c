"""history_ and the progress bar: information in bits, losses as the optimisers see them."""

import numpy as np
import pytest

from privacyfunnel.learned import Autoencoder, ConditionalFunnel, DeepVariationalFunnel, Funnel
from privacyfunnel.learned.private import describe
from privacyfunnel.learned.training import in_bits

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
    bits = describe([("y", y)]).columns[0].entropy / nat
    half_variance = 0.5 * x.var(axis=0).sum() / nat
    options = {"beta": 0.7, "alpha": 0.3, "leakage_weight": 2.0, "scale": "none"}
    row = Funnel(**TINY, **options, schedule="alternating").fit(x, y).history_.iloc[-1]
    lost = 0.7 * row["reconstruction"] / half_variance
    assert row["decoder_loss"] == pytest.approx(lost + nat * row["cross_entropy"], rel=0.05)
    told = 2 * row["leakage"] / bits
    assert row["encoder_loss"] == pytest.approx(told + lost + 0.3 * nat * row["divergence"], rel=1e-5)
    row = Funnel.written(**TINY | {"batch_size": 1000}).fit(x, y).history_.iloc[-1]
    residual = row["leakage"] + row["prior_divergence"] + 0.05 * row["reconstruction"]
    assert row["residual"] == pytest.approx(residual, rel=1e-5)
    square = 0.5 * (nat * residual) ** 2
    assert row["encoder_loss"] == pytest.approx(square + 0.01 * nat * row["divergence"], rel=1e-5)
    # An untrained classifier of ten classes is about log2(10) bits off, and not log(10).
    first = Funnel(**TINY | {"epochs": 1}, learning_rate=1e-9).fit(x, y).history_.iloc[0]
    assert first["cross_entropy"] == pytest.approx(np.log2(10), abs=0.15)
    assert first["leakage"] == pytest.approx(max(0, bits - first["cross_entropy"]), abs=0.05)


def test_only_information_is_converted():
    terms = {"encoder_loss": 1.0, "loss": 2.0, "divergence": np.log(2), "latent_game": 0.0}
    expected = {"encoder_loss": 1.0, "loss": 2.0, "divergence": 1.0, "latent_game": 0.0}
    assert in_bits(terms) == expected


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
