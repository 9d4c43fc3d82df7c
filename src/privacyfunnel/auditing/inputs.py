"""What is audited, read and checked: settings, records and codes as adversaries see them, draws of codes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..alphabet import Letters
from ..arrays import FloatArray, IntArray
from ..attributes import Attribute, read_attributes
from ..errors import InvalidInputError
from ..fingerprints import keyed_fingerprint, open_fingerprint
from ..keys import checked_key
from ..mechanism import TableMechanism
from ..parallel import library_threads
from .adversaries.bounds import as_codes

#: Records that adversaries learn from at most, by effort.
EFFORTS: dict[str, int | None] = {"quick": 5_000, "default": 20_000, "thorough": None}
#: More symbols than this are taken for numbers, and so are numbers that seldom come again: at least this
#: share of the records must have one that occurs so many times.
MOST_SYMBOLS = 1000
REPEATED_SHARE, REPEATED_TIMES = 0.99, 10
#: Wider records are attacked through this many principal components.
WIDE, COMPONENTS = 256, 64


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
                    f"audit: {shown} must be at least {least}; it is {getattr(self, name)}.", names=(shown,)
                )
        if self.effort not in EFFORTS:
            raise InvalidInputError(
                f"audit: effort must be one of {', '.join(map(repr, EFFORTS))}; it is {self.effort!r}.",
                names=("effort",),
            )
        if not 0 < self.confidence < 1:
            raise InvalidInputError(
                f"audit: confidence must be between 0 and 1, such as 0.95; it is {self.confidence}.",
                names=("confidence",),
            )

    @property
    def most_learnt(self) -> int | None:
        """Records that an adversary learns from at most; None for all there are."""
        return EFFORTS[self.effort]


@dataclass(frozen=True, eq=False)
class Table:
    """Records or codes as the adversaries see them."""

    codes: FloatArray  # numbers as they were given; a column of symbols as one column each, 0 or 1
    symbols: IntArray | None = None  # of each record, where few are different: a finite alphabet
    shape: tuple[int, ...] = ()  # of a record as it was given

    @classmethod
    def of(cls, given: Any, name: str) -> Table:
        """A table of numbers (n, …), or a column of symbols (texts or whole numbers)."""
        values = np.asarray(given)
        if values.ndim == 1 and values.dtype.kind in "iubUSO":
            if values.dtype.kind == "O":  # 1 and "1", None and "None" are different symbols
                values = np.array([repr(value) for value in values.tolist()])
            found, numbers = np.unique(values, return_inverse=True)
            texts = values.dtype.kind in "USO"
            if len(found) <= MOST_SYMBOLS and (texts or _come_again(numbers)):
                return cls.of_symbols(numbers.astype(np.intp), len(found))
        if values.dtype.kind not in "iubf":
            raise InvalidInputError(
                f"{name} must be numbers, one row a record, or one column of symbols; it is an array of "
                f"{values.dtype} of shape {values.shape}. Encode its columns as numbers."
            )
        if values.ndim == 0:
            raise InvalidInputError(f"{name} must hold one row a record; it is a single number.")
        if 0 in values.shape[1:]:
            raise InvalidInputError(
                f"{name} must hold one number or more of each record; it is an array of shape {values.shape}."
            )
        flat = values.reshape(len(values), -1) if len(values) else values.reshape(0, 1)
        codes = as_codes(flat, name)
        return cls(codes, _symbols_of(codes), values.shape[1:])

    @classmethod
    def of_symbols(cls, numbers: IntArray, n_symbols: int) -> Table:
        """Symbol numbers, one column a symbol."""
        return cls(np.eye(n_symbols)[numbers], numbers)

    @property
    def n(self) -> int:
        return len(self.codes)

    def taken(self, rows: IntArray) -> Table:
        """Some of the records."""
        symbols = None if self.symbols is None else self.symbols[rows]
        return Table(self.codes[rows], symbols, self.shape)

    def narrowed(self) -> FloatArray:
        """The codes, or their leading principal components where they are very wide."""
        if self.codes.shape[1] <= WIDE or self.n <= COMPONENTS:
            return self.codes
        from sklearn.decomposition import PCA

        with library_threads(1):
            solver = PCA(COMPONENTS, svd_solver="covariance_eigh")
            return np.asarray(solver.fit_transform(self.codes), dtype=np.float64)


def _symbols_of(codes: FloatArray) -> IntArray | None:
    """A number for each different row, bit by bit, where there are few that come again and again."""
    rows = np.ascontiguousarray(codes).view(np.dtype((np.void, codes.itemsize * codes.shape[1])))[:, 0]
    if len(np.unique(rows[: 4 * MOST_SYMBOLS])) > MOST_SYMBOLS:  # saves sorting all of a large table
        return None
    found, numbers = np.unique(rows, return_inverse=True)
    few = len(found) <= MOST_SYMBOLS and _come_again(numbers)
    return numbers.astype(np.intp) if few else None


def _come_again(numbers: IntArray) -> bool:
    """Whether nearly all records have a symbol that many others have too."""
    counts = np.bincount(numbers)
    return bool(counts[counts >= REPEATED_TIMES].sum() >= REPEATED_SHARE * len(numbers))


@runtime_checkable
class KnownDensity(Protocol):
    """A mechanism whose density can be evaluated; offer this and the audit brackets what it leaks."""

    def log_density(self, Z: Any, X: Any) -> Any:
        """log P(z_i|x_j) in nats, (n codes, m records)."""


@runtime_checkable
class LocationScaleEncoder(Protocol):
    """An encoder that adds independent noise: P(Z|x) = location + scale · noise.

    `latent` names the noise, "normal" or "laplace".
    """

    latent: str

    def encode(self, X: Any) -> tuple[Any, Any]:
        """Location and log-scale of each record, (n, d) each."""


def location_scale_draw(
    loc: FloatArray, log_scale: FloatArray, latent: str, rng: np.random.Generator
) -> FloatArray:
    """A code of each record."""
    noise = rng.laplace(size=loc.shape) if latent == "laplace" else rng.standard_normal(loc.shape)
    result: FloatArray = loc + np.exp(log_scale) * noise
    return result


def location_scale_density(Z: FloatArray, loc: FloatArray, log_scale: FloatArray, latent: str) -> FloatArray:
    """log P(z_i|x_j) in nats for every code i and record j."""
    precision = np.exp(-log_scale)
    if latent == "laplace":
        constant = -log_scale.sum(axis=1) - loc.shape[1] * math.log(2)
        distances = np.stack(
            [np.abs((Z - at) * size).sum(axis=1) for at, size in zip(loc, precision, strict=True)], axis=1
        )
        return np.asarray(constant[None, :] - distances)
    constant = -log_scale.sum(axis=1) - 0.5 * loc.shape[1] * math.log(2 * math.pi)
    # ‖(z − μ)/σ‖² in three matrix products; what rounding leaves below 0 is 0.
    weights = precision**2
    squares = (Z**2) @ weights.T - 2 * Z @ (weights * loc).T + (weights * loc**2).sum(axis=1)[None, :]
    return np.asarray(constant[None, :] - 0.5 * np.maximum(squares, 0.0))


@dataclass(frozen=True, eq=False)
class Release:
    """A way to draw codes of the audited records."""

    description: str
    draw: Callable[[np.random.Generator], Table] | None = None  # None: only one set of codes is known
    seeded: bool = True  # whether the generator decides the draw; a mechanism may have its own randomness
    decode: Callable[[FloatArray], Any] | None = None  # to reconstructions, in the shape of the records
    # From codes and the numbers of their records to log P(z_i|x_j).
    log_density: Callable[[FloatArray, IntArray], FloatArray] | None = None
    letters: IntArray | None = None  # the row of each record in the table, for a table mechanism
    encoded: tuple[FloatArray, FloatArray, str] | None = None  # location, log-scale and noise of an encoder


def release_of(mechanism: Any, X: Any) -> Release:
    """How to draw codes of the records X from a mechanism.

    It may be a table, an encoder with a known location and scale, anything with `release(X, rng)`, or
    anything with `transform(X)`.
    """
    if isinstance(mechanism, TableMechanism):
        return _table_release(mechanism, X)
    description = described(mechanism)
    decode = getattr(mechanism, "inverse_transform", None)
    if getattr(mechanism, "decoder_needs_private", False) or not getattr(mechanism, "has_decoder", True):
        decode = None
    density = _user_density(mechanism, X) if isinstance(mechanism, KnownDensity) else None
    seeded, encoded = True, None
    if isinstance(mechanism, LocationScaleEncoder) and mechanism.latent in ("normal", "laplace"):
        loc, log_scale = (np.asarray(part, dtype=np.float64) for part in mechanism.encode(X))
        latent = mechanism.latent

        def draw(rng: np.random.Generator) -> Any:
            return location_scale_draw(loc, log_scale, latent, rng)

        def own_density(codes: FloatArray, rows: IntArray) -> FloatArray:
            return location_scale_density(codes, loc[rows], log_scale[rows], latent)

        density, encoded = density or own_density, (loc, log_scale, latent)
    elif hasattr(mechanism, "release"):
        draw = partial(mechanism.release, X)
    elif hasattr(mechanism, "transform"):
        seeded = False

        def draw(rng: np.random.Generator) -> Any:
            return mechanism.transform(X)

    else:
        raise InvalidInputError(
            f"audit: {type(mechanism).__name__} is no mechanism: it has neither release(X, rng) nor "
            "transform(X). Release the codes yourself and pass Z=."
        )
    return Release(
        description, lambda rng: Table.of(draw(rng), "Z"), seeded, decode, density, encoded=encoded
    )


def described(mechanism: Any) -> str:
    """A mechanism as a report names it: its settings, without seeds and places on the disk."""
    # Estimators at whatever length: where scikit-learn cuts a seed in two, half of it would stay.
    shortens = getattr(type(mechanism).__repr__, "__module__", "") == "sklearn.base"
    text = mechanism.__repr__(N_CHAR_MAX=math.inf) if shortens else repr(mechanism)
    return without_seeds(" ".join(text.split()))


#: A text in quotation marks; a long one comes in several parts, mostly within parentheses.
_TEXT = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_TEXTS = rf"b?(?:{_TEXT}(?: {_TEXT})*|\({_TEXT}(?: {_TEXT})*\))"
_INNER = rf"\((?:{_TEXT}|[^()'\"]|\((?:{_TEXT}|[^()'\"])*\))*\)"
_VALUE = rf"(?:{_TEXTS}|[^,()\[\]'\"]*(?:{_INNER}|\[[^\[\]]*\])?(?: at 0x\w+)?)"
#: Settings that hold a seed or a place, by their names.
_SECRET = re.compile(rf",? ?\b\w*(?:_state|seed|checkpoint|path|folder|directory)={_VALUE}")
#: Places under any name: a path, or a text with a slash or a drive in it.
_PLACE = re.compile(rf"\w*Path\({_TEXTS}\)|{_TEXT}(?: {_TEXT})*")


def without_seeds(description: str) -> str:
    """The description of a mechanism without its seeds, which would undo the noise of a release, and
    without places on the disk, which tell who made it and where."""

    def hidden(found: re.Match[str]) -> str:
        return "'…'" if "Path(" in found[0] or re.search(r"[/\\]", found[0]) else found[0]

    return _PLACE.sub(hidden, _SECRET.sub("", description)).replace("(, ", "(")


def _user_density(mechanism: KnownDensity, X: Any) -> Callable[[FloatArray, IntArray], FloatArray]:
    records = np.asarray(X)

    def density(codes: FloatArray, rows: IntArray) -> FloatArray:
        table = np.asarray(mechanism.log_density(codes, records[rows]), dtype=np.float64)
        if table.shape != (len(codes), len(rows)):
            raise InvalidInputError(
                f"audit: log_density must give log P(z_i|x_j) for every code and record, "
                f"({len(codes)}, {len(rows)}); it gave {table.shape}."
            )
        return table

    return density


def _table_release(mechanism: TableMechanism, X: Any) -> Release:
    letters = Letters(mechanism.x_labels, mechanism.x_names)
    rows = letters.find_all(X) if isinstance(X, (list, tuple)) else letters.find_array(np.asarray(X))
    symbols = Letters(mechanism.z_labels, ("z",))
    known = [mechanism.x_labels[row] for row in rows.tolist()]

    def draw(rng: np.random.Generator) -> Table:
        return Table.of_symbols(symbols.find_all(mechanism.release(known, rng)), mechanism.n_z)

    return Release(described(mechanism), draw, letters=rows)


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

    def copies(self, draws: list[Table]) -> list[FloatArray]:
        """Reconstructions, in the shape of records: those given, or one a draw; none without a decoder."""
        if self.X_hat is not None:
            shape = self.X.shape if self.X is not None and self.X.shape else self.X_hat.shape
            return [self.X_hat.codes.reshape((self.n, *shape))]
        decode = self.release.decode
        return [] if decode is None else [np.asarray(decode(draw.codes), dtype=np.float64) for draw in draws]


def read_input(
    mechanism: Any,
    X: Any,
    private: Any,
    Z: Any,
    X_hat: Any,
    task: Any,
    name: str,
    key: bytes | None = None,
    numeric: Sequence[str] | None = None,
) -> Given:
    """What was passed to `audit`; `name` is that of a private attribute that has none of its own."""
    if isinstance(numeric, str) or not isinstance(numeric, (Sequence, type(None))):
        raise InvalidInputError(
            f"audit: numeric must be a list of names, such as ['income']; it is {numeric!r}.",
            names=("numeric",),
        )
    if key is not None:
        checked_key(key)
    if private is None:
        raise InvalidInputError(
            "audit: pass the private attribute of the records, as private=.", names=("private",)
        )
    if (mechanism is None or X is None) and Z is None:
        raise InvalidInputError(
            "audit: pass a mechanism with records X, or codes Z=; a table mechanism may take a known joint."
        )
    if Z is None:
        release = release_of(mechanism, X)
    else:
        release = Release("codes that were released elsewhere" if mechanism is None else described(mechanism))
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
    if tables["X"] is not None and tables["X_hat"] is not None:
        _check_copies(tables["X"], tables["X_hat"])
    told = getattr(mechanism, "attributes_", ())
    known = [one for one in told if isinstance(one, Attribute)] if isinstance(told, tuple) else []
    attributes = read_attributes(private, n, numeric=numeric, known=known, name=name)
    tasks = read_attributes(task, n, name="task", what="task")
    names = [one.name for one in attributes + tasks]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"audit: attributes and tasks need names of their own; they are {names}.")
    inside = {"X": X, "X_hat": X_hat, "private": private, "task": task}
    prints = _fingerprints(Z, {} if key is None else inside, key or b"")
    return Given(mechanism, release, n, tables["X"], tables["Z"], tables["X_hat"], attributes, tasks, prints)


def _check_copies(X: Table, X_hat: Table) -> None:
    """Reconstructions are compared with the records number by number."""
    width = X.codes.shape[1]
    if X_hat.codes.shape[1] != width or (width > 1 and not X.shape and not X_hat.shape):
        given = [f"{name} of shape {(one.n, *one.shape)}" for name, one in (("X", X), ("X_hat", X_hat))]
        raise InvalidInputError(
            "audit: X and X_hat must hold the same numbers of each record, in two dimensions or more; they "
            f"are {' and '.join(given)}.",
            names=("X_hat",),
        )


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
