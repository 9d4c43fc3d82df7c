"""A new decoder that learns from a release alone: what anybody can restore, whatever the method's own saw.

A method's own decoder is no yardstick: CPF's sees Y beside Z, and others are as good as their training made
them. This one is the same network for every method, with the same number of steps, and sees Z alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .encoder import CHUNK, Releasing
from .families import latent, likelihood
from .networks import mlp
from .steps import adam

HIDDEN = 500
BATCH = 256
RATE = 2e-3  # at the beginning; it falls to 0 as a cosine


def fresh_reconstructions(
    model: Releasing, X: Any, codes: NDArray[Any], *, n_steps: int, seed: int = 0
) -> NDArray[np.float32]:
    """What a new decoder makes of `codes`, flat, after it has learned from releases of the records X.

    It learns E[X|z]: by cross-entropy where records lie in [0, 1], else by squared error. Every batch is a
    new release, because whoever owns the encoder may draw as many of its own records as it likes.

    Parameters
    ----------
    model : a fitted estimator
    X : (n, …) array
        Records to learn from; those that trained the encoder may be among them.
    codes : (m, d) array
        Codes of other records.
    n_steps : int
        Of Adam, on batches of 256.
    seed : int
    """
    records = np.asarray(X, dtype=np.float32)
    x = torch.from_numpy(records.reshape(len(records), -1))
    loc, log_scale = (torch.from_numpy(part) for part in model.encode(X))
    scale, family = log_scale.exp(), latent(model.latent)
    within = bool((x >= 0).all() and (x <= 1).all())
    kind = likelihood("bernoulli" if within else "gaussian")
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = mlp([loc.shape[1], HIDDEN, x.shape[1]])
    optimiser = adam(network.parameters(), RATE)

    def drawn(rows: Tensor) -> Tensor:
        noise = family.noise((len(rows), loc.shape[1]), generator, loc.device)
        return loc[rows] + scale[rows] * noise

    # Codes with mean 0 and spread 1, in every component that has a spread.
    once = drawn(torch.arange(len(x)))
    centre, spread = once.mean(dim=0), once.std(dim=0)
    spread = torch.where(spread > 0, spread, torch.ones_like(spread))
    for k in range(n_steps):
        rows = torch.randint(len(x), (min(BATCH, len(x)),), generator=generator)
        loss = kind.loss(network((drawn(rows) - centre) / spread), x[rows]).mean()
        for group in optimiser.param_groups:
            group["lr"] = 0.5 * RATE * (1 + math.cos(math.pi * k / n_steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    released = (torch.from_numpy(np.asarray(codes, dtype=np.float32)) - centre) / spread
    with torch.inference_mode():
        parts: list[Tensor] = [
            kind.mean(network(released[i : i + CHUNK])) for i in range(0, len(released), CHUNK)
        ]
    result: NDArray[np.float32] = torch.cat(parts).numpy()
    return result
