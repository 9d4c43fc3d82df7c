"""The learned methods by the names that the command line and sweeps use; imports no torch."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

ESTIMATORS = {
    "funnel": "Funnel",
    "written": "Funnel.written",
    "conditional": "ConditionalFunnel",
    "deep-variational": "DeepVariationalFunnel",
    "autoencoder": "Autoencoder",
}


def estimator(method: str) -> Any:
    """What makes the estimator of a learned method from its settings."""
    from . import learned

    return attrgetter(ESTIMATORS[method])(learned)
