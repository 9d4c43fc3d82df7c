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
from .combining import time_share
from .comparison import Comparison
from .discrete.compare import compare
from .discrete.solve import frontier, perfect_privacy, solve
from .information import (
    LeakageProfile,
    entropy,
    kl_divergence,
    measure,
    mutual_information,
    repeated_leakage,
)
from .joint import Joint
from .measured import Estimate, Interval, Measured
from .measures import Distance, Task
from .mechanism import Mechanism, TableMechanism
from .persistence import load
from .solution import Solution, Status
from .tradeoff import Frontier, FrontierComparison, TradeoffPoint
from .uncertainty import held_out_leakage, split_joint

if TYPE_CHECKING:
    from .auditing.audit import audit
    from .auditing.report import AuditReport
    from .inspection import Inspection, inspect

__version__ = "0.1.0"

__all__ = [
    "AuditReport",
    "Comparison",
    "Distance",
    "Estimate",
    "Frontier",
    "FrontierComparison",
    "Inspection",
    "Interval",
    "Joint",
    "LeakageProfile",
    "Measured",
    "Mechanism",
    "Solution",
    "Status",
    "TableMechanism",
    "Task",
    "TradeoffPoint",
    "audit",
    "compare",
    "datasets",
    "entropy",
    "errors",
    "frontier",
    "held_out_leakage",
    "inspect",
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
    """Import audits and inspections when they are first asked for: they need more than solving does."""
    if name in ("audit", "AuditReport"):
        return getattr(import_module(".auditing", __name__), name)
    if name in ("inspect", "Inspection"):
        return getattr(import_module(".inspection", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
