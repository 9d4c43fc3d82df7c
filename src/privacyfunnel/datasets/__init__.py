"""Named joints with known optimum, and loaders of public tables.

The tables are looked for in the folder named by the environment variable PRIVACYFUNNEL_DATA first.
"""

from .joints import (
    KnownJoint,
    deterministic,
    erasure,
    independent,
    known_joints,
    paper_joint,
    perfect_privacy,
    symmetric,
)
from .tables import load_adult, load_german_credit

__all__ = [
    "KnownJoint",
    "deterministic",
    "erasure",
    "independent",
    "known_joints",
    "load_adult",
    "load_german_credit",
    "paper_joint",
    "perfect_privacy",
    "symmetric",
]
