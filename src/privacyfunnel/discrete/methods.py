"""The table of methods, a row each: what `solve`, `frontier`, the command, the demo and experiments know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from ..errors import shortened

# Dirichlet concentrations of random starts, in turn; None is the paper's uniform start. Uniform ones are
# rather flat, and on the paper's own joint 20 of them a β miss the optimum by up to 7e-4 bit; with three of
# falling concentration, towards deterministic maps, for each flat one it is 1e-4.
UNIFORM: tuple[float | None, ...] = (None,)
MIXED: tuple[float | None, ...] = (None, 0.3, 0.1, 0.03)


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    name : str
    algorithm : str
        "module:attribute". With `starts`, a class of the protocol `Algorithm` (`discrete/iterate.py`);
        without, a function of problem and β that returns a `Partition` (`discrete/deterministic.py`). Empty
        where a proof is looked for.
    starts : floats and None
        Concentrations of its random starts, in turn (None: uniform entries); empty if it needs no start.
    parameter : {"alpha", "penalty"}, optional
        Which of the settings of `solve` it has.
    default : float
        Of that setting.
    betas : (low, high)
        Where a frontier looks first. From β = 1 on, Z = X is optimal; only the paper's solvers, which do not
        minimise L, find other points there.
    with_utility : str
        "module:attribute" of a form of its own for `min_utility`, if it has one: a function of problem and
        utility, with `starts` also of these, tol and max_steps, that returns runs.
    full_rank : bool
        Whether it assumes that P(Y|X) has full row rank; a note says where that does not hold.
    proof : {"", "tried", "sought"}
        Whether it looks for a proof of optimality, for a while where n_z is left to it, or always. Where
        nothing is proved it goes on with `FALLBACK`.
    seconds : float
        That a start takes on the paper's joint, on one core, roughly.
    """

    name: str
    algorithm: str = ""
    starts: tuple[float | None, ...] = MIXED
    parameter: str | None = None
    default: float = math.nan
    betas: tuple[float, float] = (0.01, 0.99)
    with_utility: str = ""
    full_rank: bool = False
    proof: Literal["", "tried", "sought"] = ""
    seconds: float = 0.03

    def first_betas(self, n: int) -> list[float]:
        """n values of β to begin with, a geometric grid."""
        return [float(beta) for beta in np.geomspace(*self.betas, n)]


_HERE = __package__
_PAPER: dict[str, Any] = {
    "parameter": "alpha",
    "default": 0.1,
    "starts": UNIFORM,
    "betas": (0.1, 10.0),
    "full_rank": True,
}

#: By name, in the order in which they are shown.
METHODS = {
    row.name: row
    for row in (
        Method("auto", proof="tried"),
        Method("exact", proof="sought", seconds=0.2),
        Method("dca", f"{_HERE}.dca:Dca", seconds=0.1),
        Method("dca-ridge", f"{_HERE}.dca_ridge:DcaRidge", **_PAPER),
        Method("dca-sparse", f"{_HERE}.dca_sparse:DcaSparse", **_PAPER),
        # Measured on joints up to 10 × 10, β in [0.1, 10]: smaller penalties cycle more, larger ones are
        # slower.
        Method("splitting", f"{_HERE}.splitting:Splitting", parameter="penalty", default=2.0, seconds=2.0),
        Method("em", f"{_HERE}.em:Em", with_utility=f"{_HERE}.em:em_with_utility", seconds=0.3),
        Method(
            "greedy",
            f"{_HERE}.deterministic:greedy",
            starts=(),
            with_utility=f"{_HERE}.deterministic:greedy_with_utility",
        ),
        Method("submodular", f"{_HERE}.deterministic:submodular", starts=()),
    )
}
#: What goes on where no optimum is proved.
FALLBACK = "dca"


def no_method(name: object) -> str:
    """That a name is no method, and which was meant."""
    close = get_close_matches(str(name), METHODS, n=1)
    remedy = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(METHODS)}"
    return f"{shortened(name)} is no method; {remedy}"


def methods_with(parameter: str) -> list[str]:
    """The methods that have this setting: alpha, penalty, or n_z."""
    return [
        row.name
        for row in METHODS.values()
        if (row.proof != "sought" if parameter == "n_z" else row.parameter == parameter)
    ]
