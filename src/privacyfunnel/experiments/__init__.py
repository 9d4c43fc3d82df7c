"""The paper's figures and tables, and ours, as named experiments: a sweep, then a figure, a table, claims.

>>> from privacyfunnel.experiments import reproduce
>>> reproduce("known", "smoke", output="results/", store="runs/")  # doctest: +SKIP
"""

from .base import SCALES, Claim, Experiment, Findings
from .run import EXPERIMENTS, all_but_larger, estimated_hours, experiment, reproduce

__all__ = [
    "EXPERIMENTS",
    "SCALES",
    "Claim",
    "Experiment",
    "Findings",
    "all_but_larger",
    "estimated_hours",
    "experiment",
    "reproduce",
]
