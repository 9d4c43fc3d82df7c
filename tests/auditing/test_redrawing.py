"""The adversary that owns the encoder: fresh codes every epoch, judged on one release of other records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.auditing import (
    ClusteringAdversary,
    RedrawingAdversary,
    cross_fitted_bound,
    neural_network,
)
from privacyfunnel.auditing.inputs import EFFORTS
from privacyfunnel.errors import InvalidInputError

QUIET: dict[str, Any] = {"n_jobs": 1, "progress": False}


def noisy(n: int, seed: int, strength: float = 1.5) -> tuple[Any, Any, Any]:
    """Locations that tell y in the product of two components, much noise, and y."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    loc = rng.normal(size=(n, 12))
    loc[:, 1] = np.where(y == 1, 1.0, -1.0) * np.sign(loc[:, 0]) * np.abs(loc[:, 1])
    return strength * loc, np.zeros((n, 12)), y


def released(loc: Any, log_scale: Any, seed: int) -> Any:
    return loc + np.exp(log_scale) * np.random.default_rng(seed).standard_normal(loc.shape)


def test_positive_control_finds_more_than_one_draw_teaches() -> None:
    loc, log_scale, y = noisy(900, 0)
    Z = released(loc, log_scale, 1)
    fresh = cross_fitted_bound(RedrawingAdversary(loc, log_scale), Z, y)
    plain = cross_fitted_bound(neural_network(), Z, y)
    assert fresh.interval.low > 0.03
    assert fresh.value > plain.value + 0.03
    assert fresh.success > plain.success


def test_from_some_records_it_learns_what_it_proves_on_the_others() -> None:
    loc, log_scale, y = noisy(900, 0)
    Z, known = released(loc, log_scale, 1), np.arange(900) < 600
    bound = RedrawingAdversary(loc, log_scale).bound(Z, y, known)
    assert bound.interval.low > 0.03
    assert (bound.n, bound.n_train) == (300, 600)
    dealt = np.random.default_rng(2).permutation(y[~known])
    shuffled = RedrawingAdversary(loc, log_scale).bound(Z, np.r_[y[known], dealt], known)
    assert shuffled.value <= 2 * shuffled.standard_error + 1e-3
    assert RedrawingAdversary(loc, log_scale, most_epochs=1).bound(Z, y, known).value < bound.value
    with pytest.raises(InvalidInputError, match="was made for codes of shape"):
        RedrawingAdversary(loc, log_scale).bound(Z[:10], y[:10], known[:10])


@pytest.mark.parametrize("latent", ["normal", "laplace"])
def test_negative_control(latent: str) -> None:
    rng = np.random.default_rng(3)
    loc, y = rng.normal(size=(600, 4)), rng.integers(3, size=600)
    Z = released(loc, np.zeros_like(loc), 4)
    bound = cross_fitted_bound(RedrawingAdversary(loc, np.zeros_like(loc), latent), Z, y)
    assert -0.03 < bound.value <= 2 * bound.standard_error + 1e-3


def test_it_is_asked_by_name_where_there_is_an_encoder() -> None:
    loc, log_scale, y = noisy(400, 5)

    class Encoder:
        latent = "normal"

        def encode(self, X: Any) -> tuple[Any, Any]:
            return loc, log_scale

        def transform(self, X: Any) -> Any:
            return released(loc, log_scale, 6)

    name = "network with fresh noise"
    report = pf.audit(Encoder(), loc, y, adversaries=[name, "KMeans"], n_repeats=1, **QUIET)
    found = report.find("success", on="Z", source=name)
    assert len(found) == 1
    assert "Owns the encoder" in found[0].threat_model
    assert not report.find("success", on="X", source=name)  # of raw records there is nothing to draw
    with pytest.raises(InvalidInputError, match="there is no adversary 'network with fresh noise'"):
        pf.audit(Z=loc, private=y, adversaries=[name], **QUIET)


def test_of_a_sample_it_knows_the_same_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged on a sample, it must draw codes of the sampled records: of others it would find nothing."""
    monkeypatch.setitem(EFFORTS, "quick", 200)
    rng = np.random.default_rng(7)
    y = rng.integers(2, size=900)
    loc = np.where(y == 1, 1.0, -1.0)[:, None] * np.ones((1, 2))
    log_scale = np.full((900, 2), -3.0)
    adversary = RedrawingAdversary(loc, log_scale)
    Z = released(loc, log_scale, 8)
    report = pf.audit(Z=Z, private=y, adversaries=[adversary], effort="quick", **QUIET)
    (success,) = report.find("success", on="Z")
    assert (success.n_samples, success.value) == (300, 1.0)


def test_it_refuses_what_does_not_fit() -> None:
    loc, log_scale, y = noisy(100, 9)
    with pytest.raises(InvalidInputError, match=r"tables of one shape.*\(100, 12\) and \(99, 12\)"):
        RedrawingAdversary(loc, log_scale[1:])
    with pytest.raises(InvalidInputError, match="latent must be normal or laplace; it is 'cauchy'"):
        RedrawingAdversary(loc, log_scale, "cauchy")
    with pytest.raises(InvalidInputError, match="was made for codes of shape"):
        pf.audit(Z=loc[:60], private=y[:60], adversaries=[RedrawingAdversary(loc, log_scale)], **QUIET)
    assert not isinstance(RedrawingAdversary(loc, log_scale), ClusteringAdversary)
