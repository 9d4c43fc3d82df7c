"""The certified funnel: records → cells → a release whose leakage no adversary exceeds. Needs no torch."""

from .choice import CertifiedFrontier, CertifiedPoint
from .funnel import CertifiedFunnel
from .rule import CertifiedRule
from .verdict import Verdict

__all__ = ["CertifiedFrontier", "CertifiedFunnel", "CertifiedPoint", "CertifiedRule", "Verdict"]
