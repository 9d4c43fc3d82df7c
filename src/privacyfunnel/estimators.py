"""The learned methods by the names that the command line and sweeps use; imports no torch."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

#: By name: what makes the estimator, in `privacyfunnel.learned`, and what it is called with besides settings.
ESTIMATORS: dict[str, tuple[str, dict[str, Any]]] = {
    "funnel": ("Funnel", {}),
    "written": ("Funnel.written", {}),
    "written-mended": ("Funnel.written", {"mended": True}),
    "published": ("PublishedFunnel", {}),
    "conditional": ("ConditionalFunnel", {}),
    "deep-variational": ("DeepVariationalFunnel", {}),
    "autoencoder": ("Autoencoder", {}),
}


def estimator(method: str) -> Any:
    """What makes the estimator of a learned method from its settings."""
    from . import learned

    name, fixed = ESTIMATORS[method]
    return partial(attrgetter(name)(learned), **fixed)
