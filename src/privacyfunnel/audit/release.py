"""What is audited: draws of Z from a mechanism, or codes that somebody else released."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..labels import Letters
from ..mechanism import TableMechanism
from .density import KnownDensity, LocationScaleEncoder, location_scale_density, location_scale_draw
from .inputs import Table

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Release:
    """A way to draw codes of the audited records.

    Attributes
    ----------
    description : str
    draw : callable, optional
        From a generator to a table of codes; None where only one set of codes is known.
    seeded : bool
        Whether the generator decides the draw; a mechanism may have a randomness of its own.
    decode : callable, optional
        From codes to reconstructions, in the shape of the records.
    log_density : callable, optional
        From codes and the numbers of their records to log P(z_i|x_j).
    letters : (n,) int array, optional
        The row of each record in the table, for a table mechanism.
    """

    description: str
    draw: Callable[[np.random.Generator], Table] | None = None
    seeded: bool = True
    decode: Callable[[FloatArray], Any] | None = None
    log_density: Callable[[FloatArray, IntArray], FloatArray] | None = None
    letters: IntArray | None = None


def release_of(mechanism: Any, X: Any) -> Release:
    """How to draw codes of the records X from a mechanism.

    It may be a table, an encoder with a known location and scale, anything with `release(X, rng)`, or
    anything with `transform(X)`.
    """
    if isinstance(mechanism, TableMechanism):
        return _table_release(mechanism, X)
    # Seeds would undo the noise of a release that was drawn with them.
    description = re.sub(r",? ?\w+_state=[^,()]*(\([^()]*\))?", "", " ".join(repr(mechanism).split()))
    description = description.replace("(, ", "(")
    decode = getattr(mechanism, "inverse_transform", None)
    if getattr(mechanism, "decoder_needs_private", False) or not getattr(mechanism, "has_decoder", True):
        decode = None
    density = _user_density(mechanism, X) if isinstance(mechanism, KnownDensity) else None
    if isinstance(mechanism, LocationScaleEncoder) and mechanism.latent in ("normal", "laplace"):
        loc, log_scale = (np.asarray(part, dtype=np.float64) for part in mechanism.encode(X))
        latent = mechanism.latent

        def own_density(codes: FloatArray, rows: IntArray) -> FloatArray:
            return location_scale_density(codes, loc[rows], log_scale[rows], latent)

        return Release(
            description,
            lambda rng: Table.of(location_scale_draw(loc, log_scale, latent, rng), "Z"),
            decode=decode,
            log_density=density or own_density,
        )
    if hasattr(mechanism, "release"):
        return Release(
            description,
            lambda rng: Table.of(mechanism.release(X, rng), "Z"),
            decode=decode,
            log_density=density,
        )
    if hasattr(mechanism, "transform"):
        return Release(
            description,
            lambda rng: Table.of(mechanism.transform(X), "Z"),
            seeded=False,
            decode=decode,
            log_density=density,
        )
    raise InvalidInputError(
        f"audit: {type(mechanism).__name__} is no mechanism: it has neither release(X, rng) nor "
        "transform(X). Release the codes yourself and pass Z=."
    )


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

    return Release(repr(mechanism), draw, letters=rows)
