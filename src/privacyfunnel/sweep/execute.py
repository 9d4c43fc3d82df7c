"""One run in a worker: limit its threads, compute, and hand back numbers or an error, never an exception."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, PrivacyFunnelError
from ..parallel import library_threads
from .data import content_mark, resolve
from .fits import models_kept_in
from .methods import check, code_of, compute, kind_of
from .runs import Run, canonical
from .store import VERSION

#: Who judges the releases of learned runs: what another one found is computed again.
JUDGE = "audit 2"
# For libraries that a run imports only when it has begun, such as torch.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Task:
    """A run with everything that a worker needs, as plain values."""

    key: str
    run: Run
    data: dict[str, Any] | None
    fingerprint: str | None
    models: str | None = None  # folder for trained models


@dataclass(frozen=True)
class Outcome:
    """What came of a task: values, or an error with its details."""

    key: str
    seconds: float
    values: dict[str, Any] | None = None
    error: str | None = None
    details: str = ""


def prepare(run: Run) -> Task:
    """Check a run and find its key: the hash of all that its result depends on.

    That is the method, settings and seed, the content of the data (not their place), the version of this
    library, and for a function of the user's the source of its module.
    """
    check(run)
    kind = kind_of(run.method)
    data = mark = None
    if run.data is not None:
        data = resolve(run.data, named=kind != "function")
        mark = content_mark(kind, data)
    identity = {
        "format": VERSION,
        "version": installed_version(),
        "method": run.method,
        "settings": run.settings,
        "seed": run.seed,
        # A function reads its data itself, so what it is told is part of the run.
        "data": run.data if kind == "function" else None,
        "content": mark,
        "code": code_of(run.method),
    }
    if kind == "estimator":  # results of another judge are other results
        identity["judge"] = JUDGE
    return Task(hashlib.sha256(canonical(identity).encode()).hexdigest(), run, data, mark)


def execute(task: Task, threads: int) -> Outcome:
    """Compute a task with at most so many threads. Only an interrupt or a dying process gets out of here."""
    begun = time.perf_counter()
    try:
        kind = kind_of(task.run.method)
        if kind == "estimator":
            import torch  # noqa: F401 (its threads can be limited from now on)
        with limited_threads(threads):
            if task.data is not None and content_mark(kind, task.data) != task.fingerprint:
                raise InvalidInputError(
                    "the data that this worker reads differ from those where the sweep was started; give all "
                    "of them the same files."
                )
            with models_kept_in(_folder(task.models)):
                values = _json_values(compute(task.run, task.data))
    except Exception as error:
        told = str(error) if isinstance(error, PrivacyFunnelError) else f"{type(error).__name__}: {error}"
        return Outcome(task.key, time.perf_counter() - begun, None, told, traceback.format_exc())
    return Outcome(task.key, time.perf_counter() - begun, values)


def _folder(models: str | None) -> Path | None:
    """Where models are kept; nowhere on a machine that does not see the store."""
    folder = None if models is None else Path(models)
    return folder if folder is not None and folder.parent.is_dir() else None


@contextmanager
def limited_threads(n: int) -> Iterator[None]:
    """At most n threads inside BLAS, OpenMP and torch: n_jobs × n are the cores there are."""
    torch = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    variables = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update({name: str(n) for name in variables})
    try:
        with library_threads(n):
            if torch is not None:
                torch.set_num_threads(n)
            yield
    finally:
        if torch is not None and before is not None:
            torch.set_num_threads(before)
        for name, value in variables.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """What a run returns as JSON values; InvalidInputError where it cannot be kept."""

    def convert(value: Any) -> Any:
        if hasattr(value, "tolist"):  # numpy's numbers and arrays
            return value.tolist()
        raise TypeError(f"a {type(value).__name__} is no JSON value")

    try:
        text = json.dumps({str(k): v for k, v in values.items()}, allow_nan=False, default=convert)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the run returned something that cannot be kept ({error}); return names with finite numbers, "
            "texts, or lists of them."
        ) from None
    kept: dict[str, Any] = json.loads(text)
    return kept


def installed_version() -> str:
    """The version of this library where it is asked."""
    from .. import __version__

    return __version__
