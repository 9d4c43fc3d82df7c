"""What does a release tell about the private attribute? Adversaries, and what they prove."""

from .adversaries import (
    Adversary,
    ClassifierAdversary,
    LeakageBound,
    boosted_trees,
    cross_fitted_bound,
    default_adversaries,
    fold_numbers,
    leakage_lower_bound,
    logistic_regression,
    nearest_neighbours,
    neural_network,
)

__all__ = [
    "Adversary",
    "ClassifierAdversary",
    "LeakageBound",
    "boosted_trees",
    "cross_fitted_bound",
    "default_adversaries",
    "fold_numbers",
    "leakage_lower_bound",
    "logistic_regression",
    "nearest_neighbours",
    "neural_network",
]
