"""What `solve` and `frontier` are asked for, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np

from ..checks import finite_number, memory_size, shown, whole_number
from ..errors import InfeasibleError, InvalidInputError
from ..joint import Joint
from ..measures import Measures
from ..parallel import n_workers
from ..solution import Target, TargetKind
from .batch import as_seed
from .methods import FALLBACK, METHODS, methods_with
from .problem import Problem
from .search import Options

TARGETS: tuple[TargetKind, ...] = get_args(TargetKind)
# Utilities this close above H(X), in bits, are H(X) but for rounding.
ROUNDING = 1e-9
# Tables of one size that a solver holds besides its starts.
WORKING_TABLES = 10


def check_target(
    joint: Joint,
    beta: float | None,
    min_utility: float | None,
    max_leakage: float | Mapping[str, float] | None,
    measures: Measures | None = None,
) -> Target:
    """The one target that is given, in the units of the measures.

    Where private columns have a budget each, that is to use at most all of each.
    """
    require_joint(joint, "solve")
    if isinstance(max_leakage, Mapping):
        max_leakage = 1.0
    given = dict(zip(TARGETS, (beta, min_utility, max_leakage), strict=True))
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InvalidInputError(
            "solve: pass exactly one of beta, min_utility and max_leakage; "
            f"got {', '.join(named) or 'none'}.",
            names=TARGETS,
        )
    value = finite_number(named[0], given[named[0]], 0.0)
    measures = measures or Measures()
    if named[0] == "max_leakage":
        _require_possible(joint, value, measures)
    if named[0] != "min_utility":
        return Target(named[0], value)
    plain = measures.utility == "information"
    most = joint.entropy_x if plain else measures.utility_of(joint.p_x, np.eye(joint.n_x))
    if value > most + ROUNDING * (1.0 if plain else most):
        unit, whole = measures.scale.utility_unit, f"{'H(X) = ' if plain else ''}{most:.6g}"
        raise InfeasibleError(
            f"solve: min_utility = {value:g}{unit} is more than {whole}{unit}, the utility of releasing X "
            "itself. Ask for less.",
            names=("min_utility",),
        )
    return Target(named[0], min(value, most))


def _require_possible(joint: Joint, value: float, measures: Measures) -> None:
    least = measures.without_release(joint.p_y)
    if value < least - ROUNDING:
        raise InfeasibleError(
            f"solve: max_leakage = {value:g} is proved impossible: without any release an attacker who "
            f"guesses the most frequent private value is right {least:.6g} of the time. Allow that or more.",
            names=("max_leakage",),
        )


def check_measures(
    joint: Joint,
    utility: Any,
    leakage: Any,
    max_lift: Any,
    methods: Sequence[str],
    limit: Any = None,
    n_z: Any = None,
) -> Measures:
    """What useful and private mean, if the methods know it for a joint of this size.

    `limit` is that on leakage: with a mapping, private columns have a budget each.
    """
    measures = Measures.of(joint, utility, leakage, max_lift)
    if isinstance(limit, Mapping):
        measures = measures.with_budgets(joint, limit)
    if measures.plain:
        return measures
    scale, knowing = measures.scale, [name for name, row in METHODS.items() if row.proof]
    lifted = "" if scale.max_lift is None else " with max_lift"
    for name in methods:
        if name not in knowing:
            raise InvalidInputError(
                f"method={name!r} knows information alone; use {' or '.join(map(repr, knowing))} for utility "
                f"{scale.utility!r} and leakage {scale.leakage!r}{lifted}.",
                names=("method",),
            )
    if n_z is not None:
        raise InvalidInputError(
            "n_z belongs to methods that know information alone; leave it out for utility "
            f"{scale.utility!r} and leakage {scale.leakage!r}{lifted}.",
            names=("n_z",),
        )
    n_y = int((joint.p_y > 0).sum())
    if scale.budgets and scale.utility == "information":
        raise InvalidInputError(
            "A limit for each private column is offered for the utility Distance or Task; pass one of them, "
            "or a limit for all columns together.",
            names=("utility", "max_leakage"),
        )
    if n_y <= 2 and not scale.budgets:
        return measures
    if scale.utility == "information":
        raise InvalidInputError(
            f"solve: with {n_y} private values the utility 'information' goes with leakage 'information' "
            f"alone, and {scale.leakage!r}{lifted} with a distance or a task; ask for one of these "
            "(Distance, Task), or merge private values into two.",
            names=("utility", "leakage", "max_lift"),
        )
    if scale.leakage == "information" and scale.max_lift is not None:
        raise InvalidInputError(
            f"solve: with {n_y} private values max_lift goes with leakage 'success' or 'parity', not with "
            "'information'; pass one of them, or merge private values into two.",
            names=("leakage", "max_lift"),
        )
    return measures


def require_joint(joint: Any, name: str) -> None:
    """InvalidInputError for anything but a Joint."""
    if not isinstance(joint, Joint):
        raise InvalidInputError(f"{name}: joint must be a Joint; it is a {type(joint).__name__}.")


def check_method(method: Any, n_z: Any) -> None:
    """Refuse an unknown method, and n_z for the one that does not have it."""
    if method not in METHODS:
        raise InvalidInputError(
            f"method must be one of {', '.join(METHODS)}; it is {shown(method)}.", names=("method",)
        )
    if n_z is not None and method not in methods_with("n_z"):
        raise InvalidInputError(
            "n_z belongs to the local methods; exact finds the best number of symbols itself.", names=("n_z",)
        )


def check_methods(method: Any, n_z: Any) -> tuple[str, ...]:
    """The methods of a frontier: one, or several without repetitions."""
    names = tuple(dict.fromkeys(_several(method)))
    for name in names:
        check_method(name, n_z if len(names) == 1 else None)
    return names


def check_settings(methods: Sequence[str], alpha: object, penalty: object) -> None:
    """Refuse a setting that none of the methods has."""
    for name, value in (("alpha", alpha), ("penalty", penalty)):
        owners = methods_with(name)
        if value is not None and not set(owners) & set(methods):
            raise InvalidInputError(
                f"{name} belongs to {' and '.join(owners)}; leave it out for {', '.join(methods)}.",
                names=(name,),
            )


def own_settings(name: str, names: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    """The settings n_z, alpha and penalty for one of several methods: those that it has.

    What none of them has is left, for `make_options` to refuse.
    """
    owners = {key: [one for one in names if one in methods_with(key)] or names for key in settings}
    return {key: value if name in owners[key] else None for key, value in settings.items()}


def check_betas(betas: Any) -> list[float]:
    """The values of β of a frontier."""
    if isinstance(betas, (str, bytes)) or not isinstance(betas, Iterable):
        raise InvalidInputError(f"betas must be a sequence of numbers; it is {shown(betas)}.")
    return [finite_number("beta", beta, 0.0) for beta in betas]


def make_options(
    problem: Problem,
    kind: str,
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
    """How a method is run for a target of this kind; one that looks for a proof is run like that which it
    falls back on."""
    check_settings([method], alpha, penalty)
    n_workers(n_jobs)  # checked before any work
    default = max(problem.n_x, problem.n_y) + 1
    return Options(
        method=FALLBACK if METHODS[method].proof else method,
        n_z=tuple(whole_number("n_z", n) for n in ([default] if n_z is None else _several(n_z))),
        n_starts=whole_number("n_starts", n_starts),
        parameters=_parameters(method, alpha, penalty),
        tol=finite_number("tol", tol, 0.0) * problem.tol_unit(kind),
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
    starts = METHODS[options.method].starts
    if whole or not starts:
        require_memory(n_x, n_x, WORKING_TABLES)
    if starts:
        require_memory(n_x, max(options.n_z), WORKING_TABLES + options.n_starts * len(options.n_z))


def require_memory(n_x: int, n_z: int, n_tables: int) -> None:
    """InvalidInputError where this computer cannot hold so many tables (n_x, n_z)."""
    needed = 8 * n_x * n_z * n_tables
    if needed > memory_size():
        raise InvalidInputError(
            f"{n_x:,} letters of X and {n_z:,} symbols of Z need about {needed / 2**30:,.1f} GiB of memory; "
            f"this computer has {memory_size() / 2**30:,.1f}. Merge rare letters or round values, or use a "
            "smaller n_z and n_starts.",
            names=("n_z", "n_starts"),
        )


def _several(values: Any) -> list[Any]:
    """A number alone is a list of one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        return [values]
    several = values.ravel().tolist() if isinstance(values, np.ndarray) else list(values)
    if not several:
        raise InvalidInputError(
            "method, n_z and alpha must hold at least one value each; one is empty.",
            names=("method", "n_z", "alpha"),
        )
    return several


def _parameters(
    method: str, alpha: float | Sequence[float] | None, penalty: float | None
) -> tuple[float, ...]:
    row = METHODS[method]
    if row.parameter is None:
        return (math.nan,)
    given = alpha if row.parameter == "alpha" else penalty
    values = [row.default] if given is None else _several(given) if given is alpha else [given]
    return tuple(finite_number(row.parameter, value, 0.0, strict=True) for value in values)
