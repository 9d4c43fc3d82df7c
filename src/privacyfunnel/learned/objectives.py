"""The losses of the learned funnels, each as one step on one mini-batch.

The paper's alternating solver (`eq:unkn_alg`), with z = loc(x) + scale(x) · noise:

    step 1, decoder φ:  min  −β E log P_φ(X|Z) − E log Q_φ(Y|Z)
    step 2, encoder θ:  min  ½ ( Î(Z;Y) + D[P_z;θ ‖ P_z;θᵏ] − β E log P_φ(X|Z) )² + α E D[P_θ(Z|x) ‖ r_Z]

Î(Z;Y) = H(Y) − cross-entropy, with the empirical H(Y), clamped at 0: a classifier that is worse than guessing
would otherwise make the residual negative and pay for reconstruction errors. `leakage_weight` multiplies Î (1
is the paper's).

P_z;θ is the zero-mean member of the latent family that fits the codes: a running mean over batches of which
the current one, a share MOMENT of it, depends on the encoder. P_z;θᵏ is its value before this batch, a real
earlier copy kept by the prior. (Were P_z;θ a free parameter that occurs nowhere else, its divergence from its
own earlier value would be 0 at every step.)

The derivation has −β H(X) inside the square as well; the paper drops it, so its residual has no zero and
the square acts like a reconstruction weight of β(Î + …). `offset` restores it: the residual is … − offset,
and counts as 0 below 0.

The plain sum (`squared=False`) counts each term in a unit of its own, so that weights mean the same for all
data: with the unit of −log P(X|Z) being what it is worse by for the best constant record,

    encoder θ:  min  β · (unexplained share of the records) + λ · Î(Z;Y) / H(Y) + α E D[P_θ(Z|x) ‖ r_Z]

up to a constant. For the Gaussian the share is that of the variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .families import Latent
from .networks import Prior
from .private import PrivateAttributes

# Share of the current batch in P_z;θ. With the whole of it, the noise of a batch's moments alone is worth
# half a nat at 256 components and batches of 256.
MOMENT = 0.1


@dataclass(frozen=True)
class Weights:
    """The numbers of the objective.

    Attributes
    ----------
    alpha, beta, leakage_weight, offset : float
    squared : bool
        The paper's square; False for the plain sum.
    reconstruction_unit, leakage_unit : float
        Nats that −log P(X|Z) and Î(Z;Y) are counted in: 1 for the paper's objective.
    """

    alpha: float
    beta: float
    leakage_weight: float = 1.0
    offset: float = 0.0
    squared: bool = True
    reconstruction_unit: float = 1.0
    leakage_unit: float = 1.0


@dataclass(frozen=True, eq=False)
class EncoderTerms:
    """Every term of the second step, batch means in nats."""

    loss: Tensor
    residual: Tensor
    leakage: Tensor  # Î(Z;Y), clamped
    prior_divergence: Tensor
    reconstruction: Tensor  # −E log P(X|Z)
    divergence: Tensor  # E D[P(Z|x) ‖ r_Z]
    log_moment: Tensor  # log-scale of P_z;θ, detached


def decoder_loss(
    reconstruction: Tensor, private_losses: Sequence[Tensor], weights: Weights
) -> tuple[Tensor, Tensor]:
    """Step 1 (`eq:unkn_alg_step1`): the loss, and the cross-entropy in it. Batch means in nats."""
    cross_entropy = torch.stack([loss.mean() for loss in private_losses]).sum()
    rec = reconstruction.mean() / weights.reconstruction_unit
    return weights.beta * rec + cross_entropy, cross_entropy.detach()


def encoder_terms(
    latent: Latent,
    loc: Tensor,
    log_scale: Tensor,
    z: Tensor,
    reconstruction: Tensor,
    private_losses: Sequence[Tensor],
    private: PrivateAttributes,
    prior: Prior,
    weights: Weights,
) -> EncoderTerms:
    """Step 2 (`eq:unkn_alg_step2`)."""
    divergence = latent.kl_to_standard(loc, log_scale).mean()
    log_moment = latent.running_log_scale(prior.log_scale, z, MOMENT)
    prior_divergence = latent.kl_of_scales(log_moment, prior.log_scale)
    leakage = estimated_leakage(private, private_losses)
    rec = reconstruction.mean()
    lost = weights.beta / weights.reconstruction_unit * rec
    told = weights.leakage_weight / weights.leakage_unit * leakage
    if weights.squared:
        residual = told + prior_divergence + lost - weights.offset
        # Below 0 the square would pay for more leakage and for worse reconstructions.
        fit = 0.5 * residual.clamp_min(0.0).square()
    else:
        residual = fit = told + lost
    return EncoderTerms(
        fit + weights.alpha * divergence,
        residual,
        leakage,
        prior_divergence,
        rec,
        divergence,
        log_moment.detach(),
    )


def estimated_leakage(private: PrivateAttributes, private_losses: Sequence[Tensor]) -> Tensor:
    """Î(Z;Y) = Σ_j max(0, H(Y_j) − cross-entropy_j) in nats."""
    parts = zip(private.heads, private_losses, strict=True)
    return torch.stack([(head.entropy - loss.mean()).clamp_min(0.0) for head, loss in parts]).sum()
