"""One audit of budget mode: what new adversaries find in new codes, and what the codes are still good for."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..audit.adversaries import (
    LeakageBound,
    boosted_trees,
    cross_fitted_bound,
    leakage_lower_bound,
    logistic_regression,
    neural_network,
)
from .steps import AlternatingStep

# Codes that an adversary learns from at most; fresh records that are enough to learn from alone.
MOST_KNOWN, MANY_FRESH = 10_000, 1_500
ONE_SIDED = 1.64  # standard errors of a one-sided 95 % end


def fresh_audit(
    step: AlternatingStep,
    x: Tensor,
    classes: NDArray[np.intp],
    known: NDArray[np.bool_],
    fresh: NDArray[np.bool_],
    noise: torch.Generator,
    seed: int,
    apart: NDArray[np.bool_] | None = None,
    z: float = ONE_SIDED,
) -> tuple[LeakageBound, float]:
    """What new adversaries find in new codes of the `fresh` records: the bound with the highest upper end.

    They learn from the codes of the `known` records, the networks' own among them: a few hundred records
    alone teach so little that an adversary finds a tenth of what is there. Where the fresh records are many,
    others learn from records like these alone, because codes of those that trained the encoder tell less:
    from `apart` where it is given, else by cross-fitting.
    """
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(known))[:MOST_KNOWN]
    codes, codes_fresh = (
        release(step, x, some, noise).cpu().numpy() for some in (rows, np.flatnonzero(fresh))
    )
    held = codes_fresh, classes[fresh]
    codes_apart = None if apart is None else release(step, x, np.flatnonzero(apart), noise).cpu().numpy()
    bounds = []
    for one in (boosted_trees(seed), neural_network(seed), logistic_regression()):
        bounds.append(leakage_lower_bound(one, codes, classes[rows], *held, n_folds=2))
        if len(codes_fresh) < MANY_FRESH:
            continue
        if codes_apart is None:
            bounds.append(cross_fitted_bound(one, *held, n_folds=2))
        else:
            bounds.append(leakage_lower_bound(one, codes_apart, classes[apart], *held, n_folds=2))
    worst = max(bounds, key=lambda bound: bound.upper_end(z))
    return worst, worst.upper_end(z)


def release(step: AlternatingStep, x: Tensor, rows: NDArray[np.intp], noise: torch.Generator) -> Tensor:
    """New codes of these records."""
    with torch.inference_mode():
        loc, log_scale = step.modules["encoder"](x[torch.from_numpy(rows).to(x.device)])
        codes: Tensor = loc + log_scale.exp() * step.latent.noise(tuple(loc.shape), noise, loc.device)
    return codes


def explained_variance(
    step: AlternatingStep, x: Tensor, rows: NDArray[np.intp], mean: Tensor, noise: torch.Generator
) -> float:
    """Share of these records' squared distance from the mean record that their reconstruction removes."""
    records = x[torch.from_numpy(rows).to(x.device)]
    with torch.inference_mode():
        rebuilt = step.likelihood.mean(step.modules["decoder"](release(step, x, rows, noise)))
        left, whole = (rebuilt - records).square().mean(), (mean - records).square().mean()
    return 1 - float(left / whole) if whole > 0 else 0.0
