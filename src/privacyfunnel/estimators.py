"""The learned methods by the names that the command line and sweeps use; imports no torch."""

from __future__ import annotations

from typing import Any

ESTIMATORS = {
    "funnel": "Funnel",
    "conditional": "ConditionalFunnel",
    "deep-variational": "DeepVariationalFunnel",
    "autoencoder": "Autoencoder",
}


def estimator(method: str) -> Any:
    """The class of a learned method."""
    from . import learned

    return getattr(learned, ESTIMATORS[method])
