"""What does a release tell about the private attribute? Adversaries, what they prove, and the report."""

from . import adversaries
from .adversaries import *  # noqa: F403
from .audit import audit
from .findings import QUANTITIES, Finding
from .gate import Verdict
from .inputs import KnownDensity, LocationScaleEncoder
from .published import ClassTable
from .report import AuditReport

__all__ = [
    "QUANTITIES",
    "AuditReport",
    "ClassTable",
    "Finding",
    "KnownDensity",
    "LocationScaleEncoder",
    "Verdict",
    "audit",
]
__all__ += adversaries.__all__
