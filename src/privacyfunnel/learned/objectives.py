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

The residual R inside the square is the exchange rate of the objective: the encoder's gradient is

    R ∇(Î + D − β E log P_φ(X|Z)) + α ∇E D[P_θ(Z|x) ‖ r_Z],

so that reconstruction and code are weighted βR : α, and every constant of −log P_φ(X|Z) counts: (n/2) log 2π
for n Gaussian components. The derivation has −β H(X) inside the square as well, which the paper drops.
`offset` subtracts a constant: the residual is … − offset, and counts as 0 below 0.

The plain sum (`squared=False`) counts each term in a unit of its own, so that weights mean the same for all
data: with the unit of −log P(X|Z) being what it is worse by for the best constant record,

    encoder θ:  min  β · (unexplained share of the records) + λ · Î(Z;Y) / H(Y) + α E D[P_θ(Z|x) ‖ r_Z]

up to a constant. For the Gaussian the share is that of the variance.

Y stands there as heads: one for the combinations of the private classes, or one for each attribute.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ..alphabet import label_array
from ..attributes import Attribute, require_two
from ..errors import InvalidInputError, PrivacyFunnelWarning
from .families import Latent
from .networks import Prior

MANY = 20  # classes of a number, from which on they may be too many
# Combinations of classes up to which one head guesses them all; with more, records by combination are few.
MOST_TOGETHER = 256


@dataclass(frozen=True, eq=False)
class PrivateColumn:
    """One attribute: its classes, or what standardises a numeric one; and what was seen of it so far.

    Attributes
    ----------
    name : str
    classes : array or None
        Those of the attribute, in its order; None for a numeric one.
    seen : array
        Records by class; for a numeric attribute n, Σu and Σu² of its standardised values u.
    mean, scale : float
        u = (value − mean) / scale, fixed by the first records.
    """

    name: str
    classes: NDArray[Any] | None
    seen: NDArray[np.float64]
    mean: float = 0.0
    scale: float = 1.0

    @property
    def attribute(self) -> Attribute:
        """What it is, of nobody."""
        nobody = np.zeros(0, dtype=np.intp)
        if self.classes is None:
            return Attribute(self.name, (), nobody, nobody.astype(np.float64))
        return Attribute(self.name, tuple(self.classes.tolist()), nobody)

    @cached_property
    def entropy(self) -> float:
        """H(Y) in nats over all records seen: the empirical one of the classes; for numbers, standardised,
        that of the Gaussian with their variance."""
        if self.classes is None:
            n, total, squares = self.seen
            return 0.5 * float(np.log(2 * np.pi * math.e * (squares / n - (total / n) ** 2)))
        share = self.seen[self.seen > 0] / self.seen.sum()
        return float(-(share * np.log(share)).sum())

    def after(self, target: Tensor) -> PrivateColumn:
        """The same attribute with these records, encoded, seen as well."""
        values = target.cpu().numpy()
        if self.classes is None:
            numbers = values.astype(np.float64)
            new = np.array([len(numbers), numbers.sum(), np.square(numbers).sum()])
        else:
            new = np.bincount(values, minlength=len(self.classes)).astype(np.float64)
        return replace(self, seen=self.seen + new)

    @property
    def n_outputs(self) -> int:
        """How many numbers the classifier gives for it: logits, or mean and log-scale."""
        return 2 if self.classes is None else len(self.classes)

    def encode(self, attribute: Attribute) -> Tensor:
        """Class numbers or standardised values of what was read like this column."""
        if self.classes is None:
            assert attribute.values is not None
            return torch.from_numpy(((attribute.values - self.mean) / self.scale).astype(np.float32))
        return torch.from_numpy(attribute.y.astype(np.int64))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """−log Q(y|z) by record, in nats."""
        if self.classes is not None:
            return functional.cross_entropy(output, target, reduction="none")
        mean, log_scale = output[:, 0], output[:, 1].clamp(-5.0, 5.0)
        half_log = 0.5 * float(np.log(2 * np.pi))
        return 0.5 * ((target - mean) / log_scale.exp()).square() + log_scale + half_log


@dataclass(frozen=True, eq=False)
class PrivateAttributes:
    """All private attributes of a fit.

    Attributes
    ----------
    columns : tuple of PrivateColumn
    together : array or None
        Records by combination of classes. Given, the classifier guesses combinations: a code may tell
        whether two attributes are equal, and nothing about either of them.
    """

    columns: tuple[PrivateColumn, ...]
    together: NDArray[np.float64] | None = None

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def heads(self) -> tuple[PrivateColumn, ...]:
        """What the classifier guesses: combinations of classes, then numbers; or each attribute by itself."""
        if self.together is None:
            return self.columns
        name = " × ".join(column.name for column in self.columns if column.classes is not None)
        numeric = (column for column in self.columns if column.classes is None)
        return (PrivateColumn(name, np.arange(len(self.together)), self.together), *numeric)

    @property
    def n_outputs(self) -> int:
        return sum(head.n_outputs for head in self.heads)

    @property
    def entropy(self) -> float:
        """H(Y) in nats, the sum over heads."""
        return sum(head.entropy for head in self.heads)

    def after(self, targets: Sequence[Tensor]) -> PrivateAttributes:
        """The same attributes with these records seen as well."""
        pairs = zip(self.columns, targets, strict=True)
        together = None
        if self.together is not None:
            found = self._aims(targets)[0].cpu().numpy()
            together = self.together + np.bincount(found, minlength=len(self.together))
        return PrivateAttributes(tuple(column.after(target) for column, target in pairs), together)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """What they are, of nobody."""
        return tuple(column.attribute for column in self.columns)

    def encode(self, read: Sequence[Attribute]) -> list[Tensor]:
        return [column.encode(one) for column, one in zip(self.columns, read, strict=True)]

    def losses(self, output: Tensor, targets: Sequence[Tensor]) -> list[Tensor]:
        """−log Q(y|z) by record for each head, from one classifier's concatenated outputs."""
        parts = output.split([head.n_outputs for head in self.heads], dim=1)
        triples = zip(self.heads, parts, self._aims(targets), strict=True)
        return [head.loss(part, target) for head, part, target in triples]

    def _aims(self, targets: Sequence[Tensor]) -> Sequence[Tensor]:
        """What each head has to guess."""
        if self.together is None:
            return targets
        numbers, numeric = None, []
        for column, target in zip(self.columns, targets, strict=True):
            if column.classes is None:
                numeric.append(target)
            else:
                numbers = target if numbers is None else numbers * len(column.classes) + target
        assert numbers is not None
        return [numbers, *numeric]

    def one_hot(self, targets: Sequence[Tensor]) -> Tensor:
        """The attributes as inputs of a network: one-hot classes, standardised numbers."""
        parts = []
        for column, target in zip(self.columns, targets, strict=True):
            if column.classes is None:
                parts.append(target[:, None].float())
            else:
                parts.append(functional.one_hot(target, len(column.classes)).float())
        return torch.cat(parts, dim=1)

    @property
    def n_one_hot(self) -> int:
        return sum(1 if column.classes is None else len(column.classes) for column in self.columns)


def describe(read: Sequence[Attribute], *, named: bool = False) -> PrivateAttributes:
    """The heads of these attributes, and what is seen of them in these records; `named` says that the caller
    named the classes, however many."""
    blank = tuple(_blank(one, named) for one in read)
    unseen = PrivateAttributes(blank, _none_together(blank))
    return unseen.after(unseen.encode(read))


def _none_together(columns: Sequence[PrivateColumn]) -> NDArray[np.float64] | None:
    """Combinations of classes of which nothing was seen yet; None where one attribute, or too many of them,
    has classes."""
    sizes = [len(column.classes) for column in columns if column.classes is not None]
    return np.zeros(math.prod(sizes)) if len(sizes) > 1 and math.prod(sizes) <= MOST_TOGETHER else None


def _blank(attribute: Attribute, named: bool) -> PrivateColumn:
    """An attribute of which nothing was seen yet."""
    name, values = attribute.name, attribute.values
    if values is not None:
        if values.min() == values.max():  # their standard deviation may be a rounding error above 0
            raise InvalidInputError(f"private {name} has the same value in every record; nothing to protect.")
        return PrivateColumn(name, None, np.zeros(3), float(values.mean()), float(values.std()))
    require_two(name, attribute.classes)
    classes = label_array(attribute.classes)
    n = len(attribute.y)
    if not named and classes.dtype.kind in "iuf" and len(classes) > max(MANY, n // 2):
        warnings.warn(
            PrivacyFunnelWarning(
                f"private {name} has {len(classes)} classes in {n} records, too many to be learnt; name it "
                "in numeric, or put its values into bins.",
                names=("numeric",),
            ),
            stacklevel=2,
        )
    return PrivateColumn(name, classes, np.zeros(len(classes)))


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
    reconstruction: Tensor  # −E log P(X|Z), with its constant
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
    constant: float = 0.0,
) -> EncoderTerms:
    """Step 2 (`eq:unkn_alg_step2`); `constant` is what −log P(X|Z) has besides `reconstruction`, in nats."""
    divergence = latent.kl_to_standard(loc, log_scale).mean()
    log_moment = latent.running_log_scale(prior.log_scale, z, MOMENT)
    prior_divergence = latent.kl_of_scales(log_moment, prior.log_scale)
    leakage = estimated_leakage(private, private_losses)
    rec = reconstruction.mean()
    lost = weights.beta / weights.reconstruction_unit * rec
    told = weights.leakage_weight / weights.leakage_unit * leakage
    if weights.squared:
        residual = told + prior_divergence + lost + constant_inside(weights, constant)
        # Below 0 the square would pay for more leakage and for worse reconstructions.
        fit = 0.5 * residual.clamp_min(0.0).square()
    else:
        # A constant in a sum would say nothing: this is the unexplained share.
        residual = fit = told + lost
    return EncoderTerms(
        fit + weights.alpha * divergence,
        residual,
        leakage,
        prior_divergence,
        rec + constant,
        divergence,
        log_moment.detach(),
    )


def constant_inside(weights: Weights, constant: float) -> float:
    """What does not change inside the square, in nats."""
    return weights.beta / weights.reconstruction_unit * constant - weights.offset


def exchange_rate(residual: Tensor, beta: float, alpha: float) -> dict[str, Tensor]:
    """βR/α, what a nat of reconstruction counts against one of code, by its name; without α there is none."""
    return {"exchange_rate": beta / alpha * residual.detach()} if alpha > 0 else {}


def estimated_leakage(private: PrivateAttributes, private_losses: Sequence[Tensor]) -> Tensor:
    """Î(Z;Y) = Σ_j max(0, H(Y_j) − cross-entropy_j) in nats."""
    parts = zip(private.heads, private_losses, strict=True)
    return torch.stack([(head.entropy - loss.mean()).clamp_min(0.0) for head, loss in parts]).sum()
