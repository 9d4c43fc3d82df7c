"""Named joints with known optimum, and loaders of public tables and images.

They are looked for in the folder named by the environment variable PRIVACYFUNNEL_DATA first.
"""

from ..files.idx import read_idx
from .images import ImageSet, load_digits, load_fashion_mnist, load_mnist
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
from .tables import AdultRecords, adult_records, load_adult, load_german_credit

__all__ = [
    "AdultRecords",
    "ImageSet",
    "KnownJoint",
    "adult_records",
    "deterministic",
    "erasure",
    "independent",
    "known_joints",
    "load_adult",
    "load_digits",
    "load_fashion_mnist",
    "load_german_credit",
    "load_mnist",
    "paper_joint",
    "perfect_privacy",
    "read_idx",
    "symmetric",
]
