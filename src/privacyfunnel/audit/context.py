"""What all findings of one audit share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .findings import Finding, Kind
from .inputs import Attribute


@dataclass(frozen=True)
class Context:
    """What all findings of an audit share."""

    confidence: float
    seed: int

    def finding(
        self,
        quantity: str,
        value: float,
        kind: Kind,
        unit: str,
        source: str,
        attribute: Attribute,
        on: str = "Z",
        interval: tuple[float, float] | None = None,
        **more: Any,
    ) -> Finding:
        """A finding about an attribute on all audited records, unless it says otherwise."""
        more.setdefault("n_samples", len(attribute.y))
        return Finding(
            quantity,
            value,
            kind,
            unit,
            source,
            on,
            attribute.name,
            interval,
            self.confidence,
            seed=self.seed,
            **more,
        )
