"""What does a release tell about the private attribute? Adversaries, what they prove, and the report.

The package can be called: `privacyfunnel.audit(...)` is `privacyfunnel.audit.audit(...)`.
"""

import sys
from inspect import signature
from types import ModuleType
from typing import Any

from .adversaries import (
    Adversary,
    ClassifierAdversary,
    ClusteringAdversary,
    CountingAdversary,
    CrossPredictor,
    LeakageBound,
    NeighbourAdversary,
    NumericAdversary,
    OrderAdversary,
    RegressorAdversary,
    ResidueAdversary,
    boosted_trees,
    cross_fitted_bound,
    default_adversaries,
    default_numeric_adversaries,
    fold_numbers,
    leakage_lower_bound,
    logistic_regression,
    nearest_neighbours,
    neural_network,
    randomised_trees,
)
from .class_tables import ClassTable
from .density import KnownDensity, LocationScaleEncoder
from .findings import QUANTITIES, Finding
from .gate import Verdict
from .report import AuditReport
from .run import audit

__all__ = [
    "QUANTITIES",
    "Adversary",
    "AuditReport",
    "ClassTable",
    "ClassifierAdversary",
    "ClusteringAdversary",
    "CountingAdversary",
    "CrossPredictor",
    "Finding",
    "KnownDensity",
    "LeakageBound",
    "LocationScaleEncoder",
    "NeighbourAdversary",
    "NumericAdversary",
    "OrderAdversary",
    "RegressorAdversary",
    "ResidueAdversary",
    "Verdict",
    "audit",
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
]


class _CallableModule(ModuleType):
    """The package under its public name is also the function: `pf.audit(...)`, `pf.audit.Adversary`."""

    def __call__(self, *args: Any, **options: Any) -> AuditReport:
        return audit(*args, **options)


__signature__ = signature(audit)  # what help and editors show for pf.audit
sys.modules[__name__].__class__ = _CallableModule
