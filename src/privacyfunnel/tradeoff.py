"""TradeoffPoint: one release in the information plane."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .errors import InvalidInputError
from .mechanism import TableMechanism
from .solution import Solution, Status

#: Differences below this many bits are rounding: such points are one point, such a bend is straight.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TradeoffPoint:
    """One release in the information plane.

    Parameters
    ----------
    utility, leakage : float
        I(Z;X) and I(Z;Y) in bits.
    method : str
        What found it.
    mechanism : TableMechanism, optional
        What releases it; None where only the numbers are known.
    settings : mapping of names to numbers, strings or None
        How it was found (beta, alpha, n_z, …).
    status : Status, optional
        How the solver ended.
    """

    utility: float
    leakage: float
    method: str
    mechanism: TableMechanism | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: Status | None = None

    def __post_init__(self) -> None:
        for name in ("utility", "leakage"):
            value = float(getattr(self, name))
            if not (math.isfinite(value) and value >= -ROUNDING):
                raise InvalidInputError(
                    f"TradeoffPoint: {name} must be finite and not negative; it is {value} ({self.method})."
                )
            object.__setattr__(self, name, max(0.0, value))
        settings = {str(key): _plain(key, value) for key, value in self.settings.items()}
        object.__setattr__(self, "settings", settings)

    @classmethod
    def from_solution(cls, solution: Solution, **settings: Any) -> TradeoffPoint:
        """The point of a solution; its beta or constraint is added to `settings`."""
        asked = {name: getattr(solution, name) for name in ("beta", "min_utility", "max_leakage")}
        known = {name: value for name, value in asked.items() if value is not None}
        return cls(
            solution.utility,
            solution.leakage,
            solution.method,
            solution.mechanism,
            known | settings,
            solution.status,
        )

    @property
    def beta(self) -> float | None:
        """The β it was found with, if any."""
        return self.settings.get("beta")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "utility": self.utility,
            "leakage": self.leakage,
            "method": self.method,
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            "settings": dict(self.settings),
            "status": None if self.status is None else self.status.name,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TradeoffPoint:
        """The inverse of `to_dict`."""
        mechanism, status = values["mechanism"], values["status"]
        return cls(
            values["utility"],
            values["leakage"],
            str(values["method"]),
            None if mechanism is None else TableMechanism.from_dict(mechanism),
            values["settings"],
            None if status is None else Status[status],
        )


def _plain(name: str, value: Any) -> str | int | float | bool | None:
    """A setting as a JSON value."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, str | int) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    raise InvalidInputError(
        f"TradeoffPoint: setting {name!r} must be a finite number, a string or None; it is {value!r}."
    )
