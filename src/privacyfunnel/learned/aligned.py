"""The aligned front end: classes of Y moved onto one another before the encoder sees a record.

A function of X alone, fixed before training: a classifier q(y|x), and for each class the affine map T_y that
moves its Gaussian onto the barycentre of all classes (transport.py). The encoder sees

    ( Σ_y q(y|x) T_y(x),  x,  q(·|x) )

with the first on the leading principal components. Where Y is nearly a function of X, as what a digit is to
its image, moved records look alike whatever their class, and the encoder need not learn that itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from ..arrays import FloatArray
from ..errors import InvalidInputError
from ..transport import MOST_COMPONENTS, barycentre, principal_components, shrunk
from .networks import Encoder, mlp
from .steps import adam

HIDDEN, STEPS, BATCH, RATE = 256, 1500, 256, 1e-3
#: Records that each class must have: fewer have no covariance to speak of.
LEAST_OF_A_CLASS = 10
REFUSED = (
    "align=True: this encoder holds a classifier of the private attribute and the mean record of each class "
    "and cannot be handed on; train with align=False for one that can."
)


def refuse_aligned(encoder: nn.Module) -> None:
    """Refuse to hand on an encoder that tells of Y."""
    if isinstance(encoder, AlignedEncoder):
        raise InvalidInputError(REFUSED, names=("align",))


class AlignedEncoder(Encoder):
    """An encoder behind the front end. What is fixed is in buffers: no optimiser moves it."""

    def __init__(self, n_features: int, hidden: Sequence[int], n_components: int, n_classes: int) -> None:
        k = min(n_features, MOST_COMPONENTS)
        super().__init__(k + n_features + n_classes, hidden, n_components)
        shapes = {
            "centre": (n_features,),
            "basis": (n_features, k),
            "maps": (n_classes, k, k),
            "shifts": (n_classes, k),
            "weight_1": (HIDDEN, n_features),
            "bias_1": (HIDDEN,),
            "weight_2": (n_classes, HIDDEN),
            "bias_2": (n_classes,),
        }
        for name, shape in shapes.items():
            self.register_buffer(name, torch.zeros(shape))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            moved, q = self.front(x)
        return super().forward(torch.cat([moved, x, q], dim=1))

    def front(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Σ_y q(y|x) T_y(x) on the leading components, and q(·|x)."""
        part = self.get_buffer
        hidden = functional.linear(x, part("weight_1"), part("bias_1")).relu()
        q = functional.linear(hidden, part("weight_2"), part("bias_2")).softmax(dim=1)
        points = (x - part("centre")) @ part("basis")
        moved = torch.einsum("nk,ykl->nyl", points, part("maps")) + part("shifts")
        return (q[:, :, None] * moved).sum(dim=1), q

    def learn(self, x: Tensor, y: Tensor, seed: int) -> None:
        """Fix the front end from records (n, features) and their class numbers."""
        n_classes = int(self.get_buffer("bias_2").shape[0])
        counts = torch.bincount(y.cpu(), minlength=n_classes).numpy()
        if counts.min() < LEAST_OF_A_CLASS:
            raise InvalidInputError(
                f"align=True needs at least {LEAST_OF_A_CLASS} records of each private class to train on; "
                f"one has {counts.min()}. Merge rare classes, or leave align out.",
                names=("align",),
            )
        self._learn_maps(x.cpu().double().numpy(), y.cpu().numpy(), counts)
        self._learn_classes(x, y, n_classes, seed)

    def _learn_maps(self, x: FloatArray, y: NDArray[Any], counts: NDArray[Any]) -> None:
        centre = x.mean(axis=0)
        basis = principal_components(np.cov(x.T, bias=True).reshape(x.shape[1], -1), MOST_COMPONENTS)
        points = (x - centre) @ basis
        own = [points[y == label] for label in range(len(counts))]
        covariances = np.array([np.cov(one.T, bias=True).reshape(basis.shape[1], -1) for one in own])
        means = np.array([one.mean(axis=0) for one in own])
        middle = barycentre(means, shrunk(covariances), counts / len(x))
        # x ↦ m + B_y (x − m_y) as a product and a shift.
        shifts = middle.mean - np.einsum("yk,ykl->yl", middle.means, middle.maps)
        found = {"centre": centre, "basis": basis, "maps": middle.maps, "shifts": shifts}
        for name, values in found.items():
            self.get_buffer(name).copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))

    def _learn_classes(self, x: Tensor, y: Tensor, n_classes: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = mlp([x.shape[1], HIDDEN, n_classes]).to(x.device)
        optimiser = adam(network.parameters(), RATE)
        for _ in range(STEPS):
            rows = torch.randint(len(x), (min(BATCH, len(x)),), generator=generator).to(x.device)
            loss = functional.cross_entropy(network(x[rows]), y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        state = network.state_dict()
        for name, key in (("weight_1", "0.weight"), ("bias_1", "0.bias")):
            self.get_buffer(name).copy_(state[key])
        for name, key in (("weight_2", "2.weight"), ("bias_2", "2.bias")):
            self.get_buffer(name).copy_(state[key])
