"""The decoder that learns from a release alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from privacyfunnel.learned.fresh import fresh_reconstructions


def encoder(noise: float, seen: slice = slice(None)) -> Any:
    def encode(X: Any) -> tuple[Any, Any]:
        flat = np.asarray(X, dtype=np.float32).reshape(len(X), -1)[:, seen]
        return flat, np.full(flat.shape, np.log(noise), dtype=np.float32)

    return SimpleNamespace(encode=encode, latent="normal")


@pytest.mark.parametrize("offset", [0.0, -3.0])  # in [0, 1], where it learns by cross-entropy, and elsewhere
def test_it_learns_the_conditional_mean(offset: float) -> None:
    """Of x uniform on two values and a code of the first component: the first is found, the other is not."""
    rng = np.random.default_rng(0)
    x = rng.integers(2, size=(2000, 2)).astype(np.float32) + np.float32(offset)
    codes = x[:500, :1]
    made = fresh_reconstructions(encoder(1e-3, slice(0, 1)), x, codes, n_steps=400)
    assert np.abs(made[:, 0] - x[:500, 0]).max() < 0.1
    assert np.abs(made[:, 1] - offset - 0.5).max() < 0.1


def test_noise_costs_what_it_must_and_a_seed_decides() -> None:
    """x = ±1 behind noise of spread 1: E[X|z] = tanh z."""
    rng = np.random.default_rng(1)
    x = (2 * rng.integers(2, size=(3000, 1)) - 1).astype(np.float32)
    z = np.linspace(-2, 2, 9, dtype=np.float32)[:, None]
    one, two, three = (fresh_reconstructions(encoder(1.0), x, z, n_steps=500, seed=s) for s in (0, 0, 1))
    assert np.abs(one - np.tanh(z)).max() < 0.12
    assert np.array_equal(one, two)
    assert not np.array_equal(one, three)


def test_components_without_spread_are_no_trouble() -> None:
    x = np.ones((50, 3), dtype=np.float32)
    made = fresh_reconstructions(encoder(1e-30), x, x, n_steps=300)
    assert np.isfinite(made).all()
    assert made.shape == (50, 3)
