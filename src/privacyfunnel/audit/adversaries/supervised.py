"""Adversaries with labels: they learn from codes of other people's records.

Trees belong in every set of them: on codes that were trained against a neural network they find up to ninety
times the bits that another network finds.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .neighbours import NeighbourAdversary
from .protocol import SUPERVISED, FloatArray, IntArray

#: What scikit-learn says of classes of one or two records; the report says it better.
MANY_CLASSES = "The number of unique classes is greater than 50%"
# Boosting grows one tree a class and round; above this many classes a forest does in seconds what would
# take it minutes.
MOST_BOOSTED_CLASSES = 30


class EstimatorAdversary:
    """What adversaries made of a scikit-learn estimator share: a fit that starts anew, on one thread."""

    def __init__(self, name: str, estimator: Any, threat_model: str | None = None) -> None:
        self.name = name
        self.estimator = estimator
        self.threat_model = threat_model or SUPERVISED.format(how=name)

    def _fit(self, Z: FloatArray, y: Any, smallest_group: int, n_groups: int) -> Any:
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from threadpoolctl import threadpool_limits

        changes: dict[str, Any] = {}
        for key, value in self.estimator.get_params().items():
            # Early stopping holds a tenth of the records out, by class; k neighbours must exist.
            if key.endswith("early_stopping") and (smallest_group < 2 or len(y) < 10 * n_groups):
                changes[key] = False
            if key.endswith("n_neighbors"):
                changes[key] = min(value, len(y))
        fitted = clone(self.estimator).set_params(**changes)
        # Threads that wait for each other on busy cores make small fits tens of times slower.
        with threadpool_limits(1), warnings.catch_warnings():
            # An adversary that stops early still proves a bound, a weaker one.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", MANY_CLASSES, UserWarning)
            return fitted.fit(Z, y)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ClassifierAdversary(EstimatorAdversary):
    """Any scikit-learn classifier with `predict_proba` as an adversary.

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> ClassifierAdversary("forest", RandomForestClassifier(random_state=0)).name
    'forest'
    """

    def fit(self, Z: FloatArray, y: IntArray) -> ClassifierAdversary:
        counts = np.unique(y, return_counts=True)[1]
        # One class: nothing to learn.
        self._fitted: Any = self._fit(Z, y, int(counts.min()), len(counts)) if len(counts) > 1 else None
        return self

    def predict_proba(self, Z: FloatArray) -> ArrayLike:
        if self._fitted is None:
            return np.ones((len(Z), 1))
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            probabilities: ArrayLike = self._fitted.predict_proba(Z)
        return probabilities


def logistic_regression() -> ClassifierAdversary:
    """A linear adversary: finds what a hyperplane separates."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return ClassifierAdversary(
        "logistic regression", make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    )


def neural_network(random_state: int = 0) -> ClassifierAdversary:
    """A network with one hidden layer, on scaled codes."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier((128,), random_state=random_state, **NETWORK)
    return ClassifierAdversary("neural network", make_pipeline(StandardScaler(), network))


def boosted_trees(random_state: int = 0) -> ClassifierAdversary:
    """Histogram gradient boosting: finds thresholds and interactions that smooth adversaries miss."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return ClassifierAdversary(
        "boosted trees", HistGradientBoostingClassifier(random_state=random_state, **BOOSTING)
    )


def randomised_trees(random_state: int = 0) -> ClassifierAdversary:
    """A forest of randomised trees: what trees find, for many classes."""
    from sklearn.ensemble import ExtraTreesClassifier

    return ClassifierAdversary(
        "randomised trees", ExtraTreesClassifier(100, min_samples_leaf=2, random_state=random_state)
    )


def nearest_neighbours() -> NeighbourAdversary:
    """The classes among the 15 nearest codes, on scaled components."""
    return NeighbourAdversary("nearest neighbours", SUPERVISED.format(how="nearest neighbours"))


def default_adversaries(
    random_state: int = 0, n_classes: int = 2
) -> tuple[ClassifierAdversary | NeighbourAdversary, ...]:
    """One of each kind; always with trees."""
    trees = boosted_trees if n_classes <= MOST_BOOSTED_CLASSES else randomised_trees
    return (
        logistic_regression(),
        neural_network(random_state),
        trees(random_state),
        nearest_neighbours(),
    )


def reseeded(adversary: Any, seed: int) -> Any:
    """A copy to fit, whose estimator, if it is unseeded, takes this seed."""
    fresh = copy.deepcopy(adversary)
    estimator = getattr(fresh, "estimator", None)
    if estimator is not None:
        unseeded = {
            key: seed
            for key, value in estimator.get_params().items()
            if key.split("__")[-1] == "random_state" and value is None
        }
        estimator.set_params(**unseeded)
    return fresh


# What the classifier and the regressor of a kind have in common.
NETWORK: dict[str, Any] = {
    "alpha": 1e-3,
    "learning_rate_init": 2e-3,
    "max_iter": 100,
    "early_stopping": True,
    "n_iter_no_change": 10,
}
BOOSTING: dict[str, Any] = {
    "max_iter": 150,
    "max_leaf_nodes": 15,
    "early_stopping": True,
    "n_iter_no_change": 8,
}
