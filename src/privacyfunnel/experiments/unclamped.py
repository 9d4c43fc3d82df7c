"""The paper's formula as it is printed, without a clamp on Î(Z;Y): shown once, because it runs away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..sweep.data import load_records

METHOD = "privacyfunnel.experiments.unclamped:printed"
#: Of the running mean behind D[P_z ‖ P_zᵏ], and of the gradients, as in `Funnel.written`.
MOMENT, CLIP = 0.1, 5.0
#: Less than this, in nats, is no information and no chance either: training has run away.
RAN_AWAY = -1.0


def printed(
    *,
    seed: int,
    data: Mapping[str, Any],
    alpha: float,
    beta: float,
    n_components: int,
    epochs: int,
    batch_size: int,
    learning_rate: float = 3e-4,
    hidden: int = 500,
) -> dict[str, Any]:
    """Train `eq:unkn_alg` literally, both steps on each mini-batch in turn, and say what became of it.

    The epoch after which the mean of Î is below −1 nat (0 if none is), the least Î and R of that epoch, in
    nats, and the PSNR of the training records at the end beside that of the mean record.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(seed)
    records = load_records(data)
    x = torch.from_numpy(records.x_train.reshape(len(records.x_train), -1).astype(np.float32))
    names, classes = np.unique(records.y_train, return_inverse=True)
    y, n = torch.from_numpy(classes.astype(np.int64)), x.shape[1]
    shares = np.bincount(classes) / len(classes)
    entropy = -float((shares * np.log(shares)).sum())
    body = nn.Sequential(nn.Linear(n, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
    encoder = nn.Sequential(body, nn.Linear(hidden, 2 * n_components))
    decoder = nn.Sequential(nn.Linear(n_components, hidden), nn.ReLU(), nn.Linear(hidden, n))
    classifier = nn.Linear(n_components, len(names))
    decoding = [*decoder.parameters(), *classifier.parameters()]
    first = torch.optim.Adam(decoding, lr=learning_rate)
    second = torch.optim.Adam(encoder.parameters(), lr=learning_rate)
    variance = torch.ones(n_components)
    per_epoch: list[tuple[float, float]] = []
    lowest, mse = math.inf, math.nan
    for _ in range(epochs):
        rows = []
        for batch in torch.randperm(len(x)).split(batch_size):
            loc, log_scale = encoder(x[batch]).chunk(2, dim=1)
            z = loc + log_scale.exp() * torch.randn_like(loc)

            def terms(z: Any, batch: Any = batch) -> tuple[Any, Any, Any]:
                squares = (decoder(z) - x[batch]).square().sum(1).mean()
                rec = 0.5 * squares + 0.5 * n * math.log(2 * math.pi)
                return rec, functional.cross_entropy(classifier(z), y[batch]), squares

            rec, cross_entropy, _ = terms(z.detach())
            first.zero_grad()
            (beta * rec + cross_entropy).backward()
            nn.utils.clip_grad_norm_(decoding, CLIP)
            first.step()
            rec, cross_entropy, squares = terms(z)
            now = (1 - MOMENT) * variance + MOMENT * z.square().mean(0)
            ratio = now / variance
            leakage = entropy - cross_entropy
            residual = leakage + 0.5 * (ratio - 1 - ratio.log()).sum() + beta * rec
            kl = (0.5 * (loc.square() + (2 * log_scale).exp() - 1) - log_scale).sum(1).mean()
            second.zero_grad()
            (0.5 * residual.square() + alpha * kl).backward()
            nn.utils.clip_grad_norm_(encoder.parameters(), CLIP)
            second.step()
            variance = now.detach()
            rows.append((float(leakage.detach()), float(residual.detach()), float(squares.detach()) / n))
        means = np.mean(rows, axis=0)
        lowest, mse = min(lowest, *(row[0] for row in rows)), float(means[2])
        per_epoch.append((float(means[0]), float(means[1])))
    away = next((k for k, (leakage, _) in enumerate(per_epoch) if leakage < RAN_AWAY), None)
    return {
        "ran_away_in_epoch": 0 if away is None else away + 1,
        "leakage_nats": per_epoch[-1 if away is None else away][0],
        "residual_nats": per_epoch[-1 if away is None else away][1],
        "lowest_leakage_nats": lowest,
        "psnr": -10 * math.log10(mse),
        "psnr_nothing": -10 * math.log10(float(x.var(0, correction=0).mean())),
        "n_epochs": epochs,
    }
