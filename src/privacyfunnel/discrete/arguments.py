"""What `solve` and `frontier` are asked for, checked before any work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..checks import finite_number, shown, whole_number
from ..errors import InfeasibleError, InvalidInputError
from ..joint import Joint
from .batch import DETERMINISTIC, ITERATIVE, PAPER_METHODS, as_seed, n_workers
from .problem import NATS_PER_BIT, Problem
from .search import Options

METHODS = ("auto", "exact", *ITERATIVE, *DETERMINISTIC)
DEFAULT_ALPHA = 0.1
TARGETS = ("beta", "min_utility", "max_leakage")
# Utilities this close above H(X), in bits, are H(X) but for rounding.
ROUNDING = 1e-9
# Tables of one size that a solver holds besides its starts.
WORKING_TABLES = 10
# Taken for the size of memory where the system does not tell it.
USUAL_MEMORY = 16 * 2**30


def check_target(
    joint: Joint, beta: float | None, min_utility: float | None, max_leakage: float | None
) -> tuple[str, float]:
    """The one target that is given, and its value."""
    require_joint(joint, "solve")
    given = dict(zip(TARGETS, (beta, min_utility, max_leakage), strict=True))
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            f"solve: pass exactly one of beta, min_utility and max_leakage; got {', '.join(named) or 'none'}."
        )
    value = finite_number(named[0], given[named[0]], 0.0)
    if min_utility is None:
        return named[0], value
    if value > joint.entropy_x + ROUNDING:
        raise InfeasibleError(
            f"solve: min_utility = {value:g} bit is more than H(X) = {joint.entropy_x:.6g} bit, "
            "the utility of releasing X itself. Ask for less."
        )
    return named[0], min(value, joint.entropy_x)


def require_joint(joint: Any, name: str) -> None:
    """InvalidInputError for anything but a Joint."""
    if not isinstance(joint, Joint):
        raise InvalidInputError(f"{name}: joint must be a Joint; it is a {type(joint).__name__}.")


def check_method(method: Any, n_z: Any) -> None:
    """Refuse an unknown method, and n_z for the one that does not have it."""
    if method not in METHODS:
        raise InvalidInputError(f"method must be one of {', '.join(METHODS)}; it is {shown(method)}.")
    if method == "exact" and n_z is not None:
        raise InvalidInputError(
            "n_z belongs to the local methods; exact finds the best number of symbols itself."
        )


def check_methods(method: Any, n_z: Any) -> tuple[str, ...]:
    """The methods of a frontier: one, or several without repetitions."""
    names = tuple(dict.fromkeys(_several(method)))
    for name in names:
        check_method(name, n_z if len(names) == 1 else None)
    return names


def own_settings(name: str, names: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The settings n_z, alpha and penalty for one of several methods: those that it has.

    What none of them has is left, for `make_options` to refuse.
    """
    owners = {
        "n_z": [one for one in names if one != "exact"],
        "alpha": [one for one in names if one in PAPER_METHODS],
        "penalty": [one for one in names if one == "splitting"],
    }
    return {key: value if name in (owners[key] or names) else None for key, value in settings.items()}


def check_betas(betas: Any) -> list[float]:
    """The values of β of a frontier."""
    if isinstance(betas, (str, bytes)) or not isinstance(betas, Iterable):
        raise InvalidInputError(f"betas must be a sequence of numbers; it is {shown(betas)}.")
    return [finite_number("beta", beta, 0.0) for beta in betas]


def make_options(
    problem: Problem,
    method: str,
    n_z: int | Sequence[int] | None,
    n_starts: int,
    alpha: float | Sequence[float] | None,
    penalty: float | None,
    tol: float,
    max_steps: int,
    rng: Any,
    n_jobs: int,
) -> Options:
    """How a method is run; `auto` is run like `dca`, which it falls back on."""
    if alpha is not None and method not in PAPER_METHODS:
        raise InvalidInputError(f"alpha belongs to {' and '.join(PAPER_METHODS)}; leave it out for {method}.")
    if penalty is not None and method != "splitting":
        raise InvalidInputError(f"penalty belongs to splitting; leave it out for {method}.")
    n_workers(n_jobs)  # checked before any work
    default = max(problem.n_x, problem.n_y) + 1
    return Options(
        method="dca" if method in ("auto", "exact") else method,
        n_z=tuple(whole_number("n_z", n) for n in ([default] if n_z is None else _several(n_z))),
        n_starts=whole_number("n_starts", n_starts),
        parameters=_parameters(method, alpha, penalty),
        tol=finite_number("tol", tol, 0.0) * NATS_PER_BIT,
        max_steps=whole_number("max_steps", max_steps),
        n_jobs=n_jobs,
        seed=as_seed(rng),
    )


def check_limits(time_limit: float, node_limit: int | None) -> tuple[float, float]:
    """Seconds and nodes after which `exact` stops."""
    nodes = math.inf if node_limit is None else whole_number("node_limit", node_limit)
    return finite_number("time_limit", time_limit, 0.0, strict=True), nodes


def check_size(problem: Problem, options: Options, *, whole: bool) -> None:
    """Refuse tables of letters and symbols that memory cannot hold.

    `whole` says that Z = X, a table of letters and letters, is among what is looked at.
    """
    n_x = problem.joint.n_x
    if whole or options.method in DETERMINISTIC:
        require_memory(n_x, n_x, WORKING_TABLES)
    if options.method not in DETERMINISTIC:
        require_memory(n_x, max(options.n_z), WORKING_TABLES + options.n_starts * len(options.n_z))


def require_memory(n_x: int, n_z: int, n_tables: int) -> None:
    """InvalidInputError where this computer cannot hold so many tables (n_x, n_z)."""
    needed = 8 * n_x * n_z * n_tables
    if needed > memory_size():
        raise InvalidInputError(
            f"{n_x:,} letters of X and {n_z:,} symbols of Z need about {needed / 2**30:,.1f} GiB of memory; "
            f"this computer has {memory_size() / 2**30:,.1f}. Merge rare letters or round values, or use a "
            "smaller n_z and n_starts."
        )


def memory_size() -> int:
    """Bytes of memory of this computer."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return USUAL_MEMORY


def _several(values: Any) -> list[Any]:
    """A number alone is a list of one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return [values]
    several = values.ravel().tolist() if isinstance(values, np.ndarray) else list(values)
    if not several:
        raise InvalidInputError("method, n_z and alpha must hold at least one value each; one is empty.")
    return several


def _parameters(
    method: str, alpha: float | Sequence[float] | None, penalty: float | None
) -> tuple[float, ...]:
    if method in PAPER_METHODS:
        values = _several(DEFAULT_ALPHA if alpha is None else alpha)
        return tuple(finite_number("alpha", value, 0.0, strict=True) for value in values)
    if method == "splitting":
        from .splitting import DEFAULT_PENALTY

        return (finite_number("penalty", DEFAULT_PENALTY if penalty is None else penalty, 0.0, strict=True),)
    return (math.nan,)
