"""Adversaries that guess a private attribute from released codes, and the leakage they prove."""

from .bounds import (
    LeakageBound,
    cross_fitted_bound,
    fold_numbers,
    leakage_lower_bound,
    strongest_bound,
)
from .clustering import ClusteringAdversary, NeighbourAdversary
from .protocol import Adversary, CrossPredictor, NumericAdversary
from .redrawing import RedrawingAdversary
from .supervised import (
    ClassifierAdversary,
    CountingAdversary,
    OrderAdversary,
    RegressorAdversary,
    ResidueAdversary,
    boosted_trees,
    default_adversaries,
    default_numeric_adversaries,
    logistic_regression,
    nearest_neighbours,
    neural_network,
    randomised_trees,
    trees_for,
)

__all__ = [
    "Adversary",
    "ClassifierAdversary",
    "ClusteringAdversary",
    "CountingAdversary",
    "CrossPredictor",
    "LeakageBound",
    "NeighbourAdversary",
    "NumericAdversary",
    "OrderAdversary",
    "RedrawingAdversary",
    "RegressorAdversary",
    "ResidueAdversary",
    "boosted_trees",
    "cross_fitted_bound",
    "default_adversaries",
    "default_numeric_adversaries",
    "fold_numbers",
    "leakage_lower_bound",
    "logistic_regression",
    "nearest_neighbours",
    "neural_network",
    "randomised_trees",
    "strongest_bound",
    "trees_for",
]
