"""What a run computes: a solve, a fit that is judged, or a function of the user's."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ..discrete.methods import METHODS as SOLVERS
from ..errors import ConvergenceWarning, FewRecordsWarning, InvalidInputError
from ..estimators import ESTIMATORS, estimator
from .data import load_joint, load_records
from .fits import fit_and_judge, refuse_interrupted
from .judging import JUDGING
from .runs import Run

# Of the estimators and of solve(): what the engine sets itself.
_OWN = ("joint", "rng", "n_jobs", "progress", "random_state", "release_state", "checkpoint", "device")


def kind_of(method: str) -> str:
    """ "solver", "estimator" or "function"; InvalidInputError for anything else."""
    if method in SOLVERS:
        return "solver"
    if method in ESTIMATORS:
        return "estimator"
    if ":" in method:
        return "function"
    raise InvalidInputError(
        f"method {method!r} is unknown; choose one of {', '.join((*SOLVERS, *ESTIMATORS))}, or name a "
        "function as module:function."
    )


def check(run: Run) -> None:
    """Refuse, before any work, a run that could not even begin: unknown names, data that do not fit."""
    kind = kind_of(run.method)
    if kind == "function":
        load_function(run.method)
        return
    if run.data is None:
        raise InvalidInputError(f"method {run.method!r} needs data; name a data set or a file.")
    known: Any
    if kind == "solver":
        from ..discrete.solve import solve

        known = inspect.signature(solve).parameters
    else:
        known = (*estimator(run.method)().get_params(), *JUDGING)
    allowed = [name for name in known if name not in (*_OWN, "method")]
    if unknown := [name for name in run.settings if name not in allowed]:
        raise InvalidInputError(
            f"{unknown[0]!r} is no setting of method {run.method!r}; there are {', '.join(allowed)}."
        )


def compute(run: Run, data: Mapping[str, Any] | None) -> dict[str, Any]:
    """The numbers of a run. `data` is the run's own with absolute paths."""
    with warnings.catch_warnings():
        # What they say is among the numbers: the status, and how much may leak on new people.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FewRecordsWarning)
        kind = kind_of(run.method)
        if kind == "solver":
            return _solve(run, load_joint(data or {}))
        if kind == "estimator":
            return fit_and_judge(run.method, run.settings, run.seed, load_records(data or {}))
        more = {} if data is None else {"data": dict(data)}
        return dict(load_function(run.method)(seed=run.seed, **more, **run.settings))


def load_function(name: str) -> Callable[..., Any]:
    """The function "module:function", imported."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # importing runs the user's file, which may raise anything
        raise InvalidInputError(
            f"method {name!r} cannot be imported ({error}); write module:function, both importable where the "
            "workers run."
        ) from None
    if not callable(found):
        raise InvalidInputError(f"method {name!r} is no function.")
    function: Callable[..., Any] = found
    return function


def code_of(method: str) -> str | None:
    """A hash of the source behind a user's function: changed code is another run."""
    if kind_of(method) != "function":
        return None
    function = load_function(method)
    try:
        source = inspect.getsource(sys.modules[function.__module__])
    except (OSError, TypeError, KeyError):
        return None
    return hashlib.sha256(source.encode()).hexdigest()


def _solve(run: Run, joint: Any) -> dict[str, Any]:
    from ..discrete.solve import solve
    from ..uncertainty import highest_leakage

    solution = solve(joint, method=run.method, rng=run.seed, n_jobs=1, progress=False, **run.settings)
    refuse_interrupted(solution.status)
    return {
        "solver": solution.method,
        "status": solution.status.name,
        "utility": solution.utility,
        "leakage": solution.leakage,
        "leakage_up_to": None if joint.n_samples is None else highest_leakage(solution.mechanism, joint),
        "objective": solution.objective,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "n_symbols": solution.mechanism.n_z,
        "n_steps": solution.n_steps,
    }
