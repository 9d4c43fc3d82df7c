"""An adversary that owns the encoder: it learns from codes that it draws anew every epoch.

Of a noisy code one draw a record teaches little, and a network soon knows those few by heart. Who has the
encoder and records of other people draws as many as it likes. Judged is it as all others: on one released
code of records that it knows nothing of.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray
from ...errors import InvalidInputError
from ...parallel import library_threads
from .bounds import LeakageBound, bound_of, cross_calibrated, fold_numbers

#: Epochs at most, and without a better one among records that are kept from learning.
MOST_EPOCHS, PATIENCE = 60, 6
#: Share of the known records that choose when to stop.
KEPT_APART = 0.1
HIDDEN = (256, 256)
#: Records in a step of the network.
BATCH = 200
LEARNING_RATE = 1e-3


class RedrawingAdversary:
    """A network that learns from fresh codes of the audited records of other folds, anew every epoch.

    Parameters
    ----------
    loc, log_scale : (n, d) arrays
        What `encode` of a funnel gives for the audited records, in their order.
    latent : "normal" or "laplace"
    random_state : int
    most_epochs : int
        Most often it stops before.
    learning_rate : float
        A larger one finds most of it in a few epochs, and not quite as much in the end.
    """

    name = "network with fresh noise"
    threat_model = (
        "Owns the encoder, knows records and private attribute of other people, draws as many codes of them "
        "as it likes and learns from those; sees one released code of each record that it attacks."
    )

    def __init__(
        self,
        loc: Any,
        log_scale: Any,
        latent: str = "normal",
        random_state: int = 0,
        most_epochs: int = MOST_EPOCHS,
        learning_rate: float = LEARNING_RATE,
    ) -> None:
        self.loc = np.asarray(loc, dtype=np.float32)
        self.log_scale = np.asarray(log_scale, dtype=np.float32)
        if self.loc.ndim != 2 or self.loc.shape != self.log_scale.shape:
            raise InvalidInputError(
                "RedrawingAdversary: loc and log_scale must be tables of one shape, a row a record; they "
                f"have {self.loc.shape} and {self.log_scale.shape}."
            )
        if latent not in ("normal", "laplace"):
            raise InvalidInputError(
                f"RedrawingAdversary: latent must be normal or laplace; it is {latent!r}.", names=("latent",)
            )
        self.latent, self.random_state = latent, int(random_state)
        self.most_epochs, self.learning_rate = most_epochs, learning_rate

    def taken(self, rows: IntArray) -> Self:
        """The same for some of the records."""
        rest = self.latent, self.random_state, self.most_epochs, self.learning_rate
        return type(self)(self.loc[rows], self.log_scale[rows], *rest)

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        self._check(Z)
        q = np.empty((len(Z), n_classes))
        for fold in np.unique(folds):
            held = folds == fold
            q[held] = self._predict(Z, y, ~held, n_classes, int(fold))
        return q

    def bound(self, Z: FloatArray, y: IntArray, known: BoolArray, level: float = 0.95) -> LeakageBound:
        """What it proves on the other records when it learns from the known ones alone.

        It is trained once: calibrated are its probabilities on each half of the others for the other half.
        """
        self._check(Z)
        q, others = self._predict(Z, y, known, int(y.max()) + 1), y[~known]
        q, calibration = cross_calibrated(q, others, fold_numbers(others, 2))
        return bound_of(self.name, q, others, level, int(known.sum()), calibration)

    def _check(self, Z: FloatArray) -> None:
        if Z.shape != self.loc.shape:
            raise InvalidInputError(
                f"Adversary {self.name!r} was made for codes of shape {self.loc.shape}; the audited ones "
                f"have {Z.shape}. Make it from what encode gives for the audited records."
            )

    def _predict(
        self, Z: FloatArray, y: IntArray, known: BoolArray, n_classes: int, fold: int = 0
    ) -> FloatArray:
        """P(y|z) of the records that are not known."""
        rows = np.flatnonzero(known)
        centre, spread = Z[rows].mean(axis=0), Z[rows].std(axis=0)
        spread[spread == 0] = 1.0
        scaled = ((Z[~known] - centre) / spread).astype(np.float32)
        return self._learnt(rows, y[rows], centre, spread, scaled, n_classes, fold)

    def _learnt(
        self,
        known: IntArray,
        y: IntArray,
        centre: FloatArray,
        spread: FloatArray,
        Z: Any,
        n_classes: int,
        fold: int,
    ) -> FloatArray:
        """P(y|z) of a network that has learned from the known records, at its best epoch."""
        from sklearn.neural_network import MLPClassifier

        rng = np.random.default_rng([self.random_state, 31, fold])
        order = rng.permutation(len(known))
        apart, learnt = np.split(order, [max(1, int(KEPT_APART * len(known)))])
        shift, width = centre.astype(np.float32), spread.astype(np.float32)
        loc = (self.loc[known] - shift) / width
        scale = np.exp(self.log_scale[known]) / width

        def drawn(rows: IntArray) -> Any:
            shape = len(rows), loc.shape[1]
            if self.latent == "laplace":
                noise = rng.laplace(size=shape).astype(np.float32)
            else:
                noise = rng.standard_normal(shape, dtype=np.float32)
            return loc[rows] + scale[rows] * noise

        network = MLPClassifier(
            HIDDEN,
            batch_size=min(BATCH, len(learnt)),
            learning_rate_init=self.learning_rate,
            alpha=1e-4,
            random_state=self.random_state % 2**31,
        )
        classes = np.arange(n_classes)
        judged, truth = drawn(apart), y[apart]
        best, since, answer = -np.inf, 0, np.full((len(Z), n_classes), 1 / n_classes)
        with library_threads(1):
            for _ in range(self.most_epochs):
                network.partial_fit(drawn(learnt), y[learnt], classes=classes)
                score = float(np.log(_of(network, judged)[np.arange(len(truth)), truth] + 1e-9).mean())
                if score > best:
                    best, since, answer = score, 0, _of(network, Z)
                else:
                    since += 1
                    if since >= PATIENCE:
                        break
        return answer

    def __repr__(self) -> str:
        return "RedrawingAdversary()"


def _of(network: Any, Z: Any) -> FloatArray:
    """Probabilities, a column a class, whose rows sum to 1 in 64 bits too."""
    q = np.asarray(network.predict_proba(Z), dtype=np.float64)
    result: FloatArray = q / q.sum(axis=1, keepdims=True)
    return result
