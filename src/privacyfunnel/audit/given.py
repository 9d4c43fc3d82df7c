"""The input of an audit, read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidInputError
from ..fingerprints import checked_key, keyed_fingerprint, open_fingerprint
from ..mechanism import TableMechanism
from .inputs import Attribute, Table, as_attributes
from .release import Release, release_of

#: Records that adversaries learn from at most, by effort.
EFFORTS: dict[str, int | None] = {"quick": 5_000, "default": 20_000, "thorough": None}


@dataclass(frozen=True)
class Settings:
    """What the numbers of an audit depend on besides the data."""

    n_folds: int
    n_repeats: int
    many_draws: int
    confidence: float
    seed: int
    effort: str = "default"

    def __post_init__(self) -> None:
        for name, least in (("n_folds", 2), ("n_repeats", 1), ("many_draws", 0), ("seed", 0)):
            if getattr(self, name) < least:
                shown = "random_state" if name == "seed" else name
                raise InvalidInputError(
                    f"audit: {shown} must be at least {least}; it is {getattr(self, name)}."
                )
        if self.effort not in EFFORTS:
            raise InvalidInputError(
                f"audit: effort must be one of {', '.join(map(repr, EFFORTS))}; it is {self.effort!r}."
            )
        if not 0 < self.confidence < 1:
            raise InvalidInputError(
                f"audit: confidence must be between 0 and 1, such as 0.95; it is {self.confidence}."
            )

    @property
    def most_learnt(self) -> int | None:
        """Records that an adversary learns from at most; None for all there are."""
        return EFFORTS[self.effort]


@dataclass(frozen=True, eq=False)
class Given:
    """The records, codes and attributes of an audit."""

    mechanism: Any
    release: Release
    n: int
    X: Table | None
    Z: Table | None
    X_hat: Table | None
    attributes: tuple[Attribute, ...]
    tasks: tuple[Attribute, ...]
    fingerprints: Mapping[str, str]

    def draws(self, n_repeats: int, seed: int) -> list[Table]:
        """New codes of every record for each repeat; one set where there is no mechanism to draw from."""
        if self.release.draw is None:
            assert self.Z is not None
            return [self.Z]
        draws = [self.release.draw(np.random.default_rng([seed, 1, i])) for i in range(n_repeats)]
        wrong = next((draw.n for draw in draws if draw.n != self.n), None)
        if wrong is not None:
            raise InvalidInputError(
                f"audit: the mechanism gave {wrong} codes for {self.n} records; it must give one a record."
            )
        # A mechanism without randomness: the repeats share one graph of neighbours.
        if all(np.array_equal(draw.codes, draws[0].codes) for draw in draws[1:]):
            return draws[:1]
        return draws


def read_input(
    mechanism: Any, X: Any, private: Any, Z: Any, X_hat: Any, task: Any, name: str, key: bytes | None = None
) -> Given:
    """What was passed to `audit`; `name` is that of a private attribute that has none of its own."""
    if key is not None:
        checked_key(key)
    if private is None:
        raise InvalidInputError("audit: pass the private attribute of the records, as private=.")
    if (mechanism is None or X is None) and Z is None:
        raise InvalidInputError(
            "audit: pass a mechanism with records X, or codes Z=; a table mechanism may take a known joint."
        )
    if Z is None:
        release = release_of(mechanism, X)
    else:
        release = Release("codes that were released elsewhere" if mechanism is None else repr(mechanism))
    tables = {
        key: None if value is None else Table.of(value, key) for key, value in (("Z", Z), ("X_hat", X_hat))
    }
    if release.letters is not None and isinstance(mechanism, TableMechanism):
        tables["X"] = Table.of_symbols(release.letters, mechanism.n_x)
    else:
        tables["X"] = None if X is None else Table.of(X, "X")
    sizes = {key: table.n for key, table in tables.items() if table is not None}
    if len(set(sizes.values())) != 1:
        raise InvalidInputError(f"audit: X, Z and X_hat must have one row a record each; they have {sizes}.")
    n = next(iter(sizes.values()))
    if n < 2:
        raise InvalidInputError(f"audit: there must be two records or more; there is {n}.")
    attributes, tasks = as_attributes(private, n, name), as_attributes(task, n, "task")
    names = [one.name for one in attributes + tasks]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"audit: attributes and tasks need names of their own; they are {names}.")
    inside = {"X": X, "X_hat": X_hat, "private": private, "task": task}
    prints = _fingerprints(Z, {} if key is None else inside, key or b"")
    return Given(mechanism, release, n, tables["X"], tables["Z"], tables["X_hat"], attributes, tasks, prints)


def _fingerprints(released: Any, inside: Mapping[str, Any], key: bytes) -> dict[str, str]:
    """An open fingerprint of what is released, keyed ones of what stays inside."""
    prints = {} if released is None else {"Z": open_fingerprint(released)}
    for name, values in inside.items():
        if values is not None:
            prints[name] = keyed_fingerprint(_plain(values), key, name)
    return prints


def _plain(values: Any) -> Any:
    """A mapping of columns as a table, with their names; anything else as it is."""
    if not isinstance(values, Mapping):
        return values
    columns = [[str(name), *np.asarray(column).tolist()] for name, column in values.items()]
    return np.array(columns, dtype=object)
