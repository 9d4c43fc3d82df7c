"""Run: one setting to compute, and how a grid or a file of settings becomes a list of them."""

from __future__ import annotations

import itertools
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataFileError, InvalidInputError
from ..persistence import Path_

_PARTS = ("method", "data", "settings", "grid", "seed")


@dataclass(frozen=True)
class Run:
    """One setting to compute.

    Parameters
    ----------
    method : str
        A method of `privacyfunnel.solve`, a learned one (funnel, written, conditional, deep-variational,
        autoencoder), or a function of yours that workers can import, "module:function".
    data : str or mapping, optional
        The name of a data set or a file, or a mapping with ``name`` or ``file`` and options: see data.py.
    settings : mapping of JSON values
        What the method is called with.
    seed : int
        Where the randomness comes from: the same run gives the same numbers.
    """

    method: str
    data: Mapping[str, Any] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or not self.method:
            raise InvalidInputError(f"A run's method must be a name; it is {self.method!r}.")
        if type(self.seed) is not int or self.seed < 0:
            raise InvalidInputError(f"A run's seed must be a whole number from 0 on; it is {self.seed!r}.")
        data = {"name": self.data} if isinstance(self.data, str) else self.data
        for part, values in (("data", data), ("settings", self.settings)):
            if values is not None and not isinstance(values, Mapping):
                raise InvalidInputError(f"A run's {part} must be names with values; it is {values!r}.")
            object.__setattr__(self, part, None if values is None else plain(values, part))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"method": self.method, "data": self.data, "settings": self.settings, "seed": self.seed}

    def canonical(self) -> str:
        """The same text for the same run, whatever the order in which its settings were written."""
        return canonical(self.to_dict())


def canonical(values: Any) -> str:
    """JSON with sorted names and no blanks: equal values give equal texts."""
    return json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def plain(value: Any, name: str) -> Any:
    """A value as JSON would give it back; 1.0 becomes 1, so that both are one setting."""
    if isinstance(value, Mapping):
        return {str(key): plain(part, f"{name}.{key}") for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part, name) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isfinite(value):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if value is None or isinstance(value, (str, bool, int)):
        return value
    raise InvalidInputError(
        f"{name}: a setting must be a finite number, a text, true or false, or a list or table of them; it "
        f"is {value!r}."
    )


def grid_runs(
    method: str | None = None,
    data: str | Mapping[str, Any] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    grid: Mapping[str, Sequence[Any] | Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> list[Run]:
    """Every combination of the values in `grid`, each with the fixed settings.

    Parameters
    ----------
    method, data, settings, seed
        As for `Run`, the same for all.
    grid : mapping of names to values
        What varies: settings, or ``method``, ``data`` and ``seed``. ``{"geometric": [0.1, 10, 16]}`` stands
        for 16 values in equal ratios.
    """
    axes = {name: _axis(name, values) for name, values in (grid or {}).items()}
    if clash := [name for name in axes if name in (settings or {})]:
        raise InvalidInputError(f"{clash[0]!r} is both in settings and in grid; leave it in one of them.")
    fixed = {"method": method, "data": data, "seed": seed}
    if clash := [name for name in axes if name in ("method", "data") and fixed[name] is not None]:
        raise InvalidInputError(f"{clash[0]!r} is given twice, outside and in grid; leave one of them out.")
    runs = []
    for values in itertools.product(*axes.values()):
        chosen = dict(zip(axes, values, strict=True))
        own = {name: chosen.pop(name, value) for name, value in fixed.items()}
        runs.append(Run(settings={**(settings or {}), **chosen}, **own))
    return runs


def _axis(name: str, values: Any) -> list[Any]:
    if isinstance(values, Mapping):
        try:
            ((kind, (low, high, n)),) = values.items()
            if kind == "geometric" and low > 0 and high > 0 and type(n) is int and n > 0:
                return [float(value) for value in np.geomspace(low, high, n)]
        except (TypeError, ValueError):
            pass
        raise InvalidInputError(
            f"grid.{name}: a range is written {{geometric = [lowest, highest, how many]}} with numbers above "
            f"0; it is {dict(values)!r}."
        )
    if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)) or not len(values):
        raise InvalidInputError(
            f"grid.{name} must be a list of values to try; it is {values!r}. Put a fixed value in settings."
        )
    return list(values)


def read_spec(path: Path_) -> list[Run]:
    """The runs that a TOML or JSON file asks for.

    The file has a list ``runs``; each entry has ``method``, ``data``, ``settings``, ``seed`` and ``grid`` as
    `grid_runs`, none of them needed where a grid gives it.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot read the file ({error.strerror or error}); check the name."
        ) from None
    try:
        text = content.decode("utf-8")
        spec = json.loads(text) if str(path).lower().endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "JSON" if str(path).lower().endswith(".json") else "TOML"
        raise InvalidInputError(f"{path}: this is no valid {kind} ({error}); mend it there.") from None
    entries = spec.get("runs") if isinstance(spec, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidInputError(f"{path}: nothing to run; begin a list of runs with [[runs]].")
    if more := [name for name in spec if name != "runs"]:
        raise InvalidInputError(f"{path}: {more[0]!r} means nothing here; the file has a list 'runs' only.")
    runs: list[Run] = []
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: runs entry {number}"
        if unknown := [name for name in entry if name not in _PARTS]:
            raise InvalidInputError(
                f"{where}: {unknown[0]!r} is none of {', '.join(_PARTS)}; put settings of the method into "
                "settings or grid."
            )
        try:
            runs += grid_runs(**entry)
        except (InvalidInputError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"{where}: {error}", names=getattr(error, "names", ())) from None
    return runs
