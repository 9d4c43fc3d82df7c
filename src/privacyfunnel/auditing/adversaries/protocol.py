"""What an adversary is: the one protocol that the audit's own and everybody else's follow."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike

from ...arrays import FloatArray, IntArray

SUPERVISED = (
    "Sees the released codes alone, knows the private attribute of other people whose codes it also has, "
    "and learns from those. Its method: {how}."
)


class Named(Protocol):
    """What a report says about an adversary."""

    @property
    def name(self) -> str:
        """A short name for tables."""

    @property
    def threat_model(self) -> str:
        """One sentence: what it sees and what it knows."""


class Adversary(Named, Protocol):
    """Somebody who guesses y from z. `fit` starts anew each time it is called.

    Five lines make one of your own::

        class Forest:
            name = "forest"
            threat_model = "Sees codes, knows other people's labels, and grows a forest on them."
            def fit(self, Z, y): self.forest = RandomForestClassifier(random_state=0).fit(Z, y)
            def predict_proba(self, Z): return self.forest.predict_proba(Z)

    and `ClassifierAdversary("forest", RandomForestClassifier(random_state=0))` is the same in one.
    """

    def fit(self, Z: FloatArray, y: IntArray) -> Any:
        """Learn from codes (n, d) and class numbers (n,)."""

    def predict_proba(self, Z: FloatArray) -> ArrayLike:
        """P(y|z): a column for each class that `fit` saw, in ascending order."""


@runtime_checkable
class CrossPredictor(Named, Protocol):
    """An adversary that predicts all folds at once: where that is cheaper, or it looks at the whole file."""

    def cross_predict(self, Z: FloatArray, y: IntArray, folds: IntArray, n_classes: int) -> FloatArray:
        """P(y|z) for every record, (n, n_classes), from the classes of records of other folds alone."""


class NumericAdversary(Named, Protocol):
    """Somebody who guesses a numeric private attribute from z."""

    def fit(self, Z: FloatArray, y: FloatArray) -> Any:
        """Learn from codes (n, d) and values (n,)."""

    def predict(self, Z: FloatArray) -> ArrayLike:
        """A value for each code."""
