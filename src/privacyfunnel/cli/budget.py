"""A limit on what a release tells, in the words of people: bits, guesses, advantage, share of the leak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InfeasibleError
from .options import Option

if TYPE_CHECKING:
    from ..joint import Joint


def share(value: str | None) -> float | None:
    """A share of people, written 70% or 0.7."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(%?)\s*", str(value))
    number = None if found is None else float(found[1]) / (100 if found[2] else 1)
    if number is None or number > 1:
        raise typer.BadParameter(f"it is a share such as 70% or 0.7, and is {value}")
    return number


def _share(help: str) -> Option:
    return Option(help, kind=str, metavar="SHARE", check=share)


#: Ways to say how much may be told, besides --max-leakage; each becomes that limit of a measure.
BUDGETS = {
    "max_success": _share(
        "Target: the most utility while nobody who sees z guesses the private column more often than this, "
        "such as 70%."
    ),
    "max_advantage": _share(
        "The same, as the share of people by which seeing z may add to guesses without it, such as 5%."
    ),
    "max_parity": _share(
        "Target: the most utility while no rule on z selects two private groups with shares that differ by "
        "more than this, such as 10%."
    ),
    "remove": _share(
        "Target: the most utility with this share of I(X;Y), what the public columns tell, removed, such as "
        "90%."
    ),
}


@dataclass(frozen=True)
class Budget:
    """One limit: which of `BUDGETS`, and how much."""

    kind: str
    value: float

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Budget | None:
        """The limit among the options, if there is one."""
        return next((cls(name, given[name]) for name in BUDGETS if given[name] is not None), None)

    def arguments(self, joint: Joint) -> dict[str, Any]:
        """What `solve` is asked for: the limit in bits or as a share, and the measure."""
        chance = float(joint.p_y.max())
        if self.kind == "remove":
            return {"max_leakage": (1 - self.value) * joint.mutual_information, "leakage": "information"}
        if self.kind == "max_parity":
            return {"max_leakage": self.value, "leakage": "parity"}
        limit = min(chance + self.value, 1.0) if self.kind == "max_advantage" else self.value
        if limit < chance:
            raise InfeasibleError(
                f"max_success: {100 * self.value:g} % is impossible, as without any release an attacker who "
                f"guesses the most frequent {' × '.join(joint.y_names)} is right {100 * chance:.4g} % of the "
                "time; allow that or more.",
                names=("max_success",),
            )
        return {"max_leakage": limit, "leakage": "success"}

    def instead(self, note: str) -> str:
        """A note on the limit that this one became, as one on this."""
        return re.sub(r"max_leakage = [\d.e+-]+( bit)?", f"{self.kind} = {100 * self.value:g} %", note)

    def words(self, joint: Joint) -> str:
        """What was asked for."""
        private, percent = " × ".join(joint.y_names), f"{100 * self.value:g} %"
        return {
            "max_success": f"the most utility while {private} is guessed at most {percent} of the time",
            "max_advantage": f"the most utility while seeing z lets {private} be guessed of at most "
            f"{percent} more of the people",
            "max_parity": f"the most utility while no rule on z treats two groups of {private} more than "
            f"{percent} differently",
            "remove": f"the most utility with {percent} of what the public columns tell removed",
        }[self.kind]
