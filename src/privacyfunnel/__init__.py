"""Release data that stays useful and tells as little as possible about a private attribute.

>>> import privacyfunnel as pf
>>> joint = pf.datasets.paper_joint()
>>> solution = pf.solve(joint, min_utility=1.0, rng=0)
>>> solution.mechanism.release(joint.x_labels[0], rng=0) in solution.mechanism.z_labels
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import datasets, errors
from .frontier import Frontier, FrontierComparison
from .information import (
    LeakageProfile,
    Measured,
    entropy,
    kl_divergence,
    measure,
    mutual_information,
    repeated_leakage,
)
from .joint import Joint
from .mechanism import Mechanism, TableMechanism, time_share
from .persistence import load
from .solution import Solution, Status
from .tradeoff import TradeoffPoint
from .uncertainty import Estimate, Interval, held_out_leakage, split_joint

# After the module privacyfunnel.frontier: the function takes the name in this namespace.
from .discrete.solve import frontier, perfect_privacy, solve  # isort: skip

if TYPE_CHECKING:
    from .audit.report import AuditReport
    from .audit.run import audit

__version__ = "0.1.0"

__all__ = [
    "AuditReport",
    "Estimate",
    "Frontier",
    "FrontierComparison",
    "Interval",
    "Joint",
    "LeakageProfile",
    "Measured",
    "Mechanism",
    "Solution",
    "Status",
    "TableMechanism",
    "TradeoffPoint",
    "audit",
    "datasets",
    "entropy",
    "errors",
    "frontier",
    "held_out_leakage",
    "kl_divergence",
    "load",
    "measure",
    "mutual_information",
    "perfect_privacy",
    "repeated_leakage",
    "solve",
    "split_joint",
    "time_share",
]


def __dir__() -> list[str]:
    """The public names and no others."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Import the audit when it is first asked for; the package `audit` can be called like a function."""
    if name in ("audit", "AuditReport"):
        package = import_module(".audit", __name__)
        return package if name == "audit" else package.AuditReport
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
