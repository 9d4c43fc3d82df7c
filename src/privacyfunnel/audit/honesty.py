"""An adversary must not have seen the records it is judged on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from .adversaries.bounds import cross_fitted
from .adversaries.crossfit import fold_numbers
from .adversaries.supervised import reseeded
from .inputs import Attribute

FloatArray = NDArray[np.float64]

#: Records that the check uses at most, and how unlikely its finding must be.
MOST_RECORDS, RARE = 600, 1e-6


def check_honest(adversary: Any, Z: FloatArray, attribute: Attribute, seed: int) -> None:
    """Refuse an adversary that guesses classes which were dealt out at random, or that ignores its training.

    It is trained on codes with reordered classes. Whoever then guesses the reordered class of held-out
    records has looked at them; whoever guesses their true class knew it beforehand.
    """
    from scipy.stats import binom

    rng = np.random.default_rng([seed, 5])
    rows = rng.permutation(len(Z))[:MOST_RECORDS]
    truth = np.unique(attribute.y[rows], return_inverse=True)[1].astype(np.intp)
    if len(rows) < 20 or truth.max() == 0:
        return
    dealt = rng.permutation(truth)
    folds = fold_numbers(dealt, 2, rng)
    n_classes = int(truth.max()) + 1
    guesses = cross_fitted(reseeded(adversary, seed % 2**31), Z[rows], dealt, folds, n_classes).argmax(axis=1)
    chance = float(np.bincount(truth).max()) / len(rows)
    for classes, what in (
        (dealt, "guesses classes that were dealt out at random, so it has seen the records it is judged on"),
        (truth, "guesses true classes after training on random ones, so it knew these records beforehand"),
    ):
        hits = int((guesses == classes).sum())
        if binom.sf(hits - 1, len(rows), chance) < RARE:
            raise InvalidInputError(
                f"Adversary {adversary.name!r} {what}: {hits} of {len(rows)} right, {chance:.0%} by chance. "
                "Let fit start anew, from what it is given alone."
            )
