"""CertifiedRule: what releases records, and nothing that tells a private value."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from ..alphabet import as_names, require_columns
from ..arrays import FloatArray, IntArray, uniform
from ..channels import posterior
from ..errors import InvalidInputError
from ..frames import make_frame, read_frame, without_notes
from ..keys import Draws, require_person
from ..lazy import release_on_cluster
from ..measured import Measured
from ..mechanism import Rng, TableMechanism
from ..shipping import Shipped
from .cells import Cells
from .readers import ArrayReader, Reader, n_records, taken
from .reading import CHUNK
from .tables import ColumnTables

#: Cells of a symbol, and properties of a cell, that `describe` names.
SHOWN_CELLS, SHOWN_WORDS = 3, 3
#: What a released frame holds.
RECORDS = ("columns", "typical", "symbol")


@dataclass(frozen=True, eq=False)
class CertifiedRule:
    """A release from records to records: into a cell, from the cell to a symbol, from the symbol a record.

    Attributes
    ----------
    reader : ArrayReader or FrameReader
        How records become points.
    cells : Cells
    mechanism : TableMechanism
        P(symbol | cell).
    p_cells : (n_cells,) array
        How common each cell was among the records that the rule was made from, to ten records.
    cell_points : (n_cells, d) array
        Their mean points, rounded to what two records or more can move them by.
    private_names : columns that the rule was made to protect
    certificate : Measured
        What nobody learns more than, from the release of a new person.
    tables : ColumnTables, optional
        Of a frame: P(column | symbol).
    """

    reader: Reader
    cells: Cells
    mechanism: TableMechanism
    p_cells: FloatArray
    cell_points: FloatArray
    private_names: tuple[str, ...]
    certificate: Measured
    tables: ColumnTables | None = None

    @cached_property
    def p_cell_given_symbol(self) -> FloatArray:
        """(n_z, n_cells): from whom a symbol comes."""
        return posterior(self.p_cells, self.mechanism.p_z_given_x)

    @cached_property
    def points(self) -> FloatArray:
        """(n_z, d): the mean point of a symbol."""
        found: FloatArray = self.p_cell_given_symbol @ self.cell_points
        return found

    @property
    def n_symbols(self) -> int:
        return self.mechanism.n_z

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal digits, of all that decides what comes out: for draws by a key."""
        tables = None if self.tables is None else self.tables.to_dict()
        try:
            cells = self.cells.to_dict()
        except InvalidInputError:
            raise InvalidInputError(
                "release: a key goes with a rule that can be saved, and cells of another clusterer cannot; "
                "use cells='kmeans' or 'tree', or leave the key out.",
                names=("key", "cells"),
            ) from None
        content = [self.reader.to_dict(), cells, self.mechanism.fingerprint, tables]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()

    def cells_of(self, X: Any) -> IntArray:
        """The cell of each record. It is not to leave the house: the symbol is."""
        points = map(self.reader.points, _parts(X))
        # Functions that sort records into cells need not take none.
        return np.concatenate([self.cells(some) if len(some) else np.zeros(0, np.intp) for some in points])

    def transform(self, X: Any, rng: Rng = None) -> IntArray:
        """A symbol for each record, 0, 1, …, drawn from the mechanism."""
        cells = self.cells_of(X)
        return self.mechanism.sparse.draw(cells, uniform(len(cells), rng))

    def inverse_transform(self, Z: Any) -> Any:
        """The typical record of each symbol, in the shape of the records; of a frame averages and modes."""
        return self._typical(self._symbols(Z))

    def _typical(self, symbols: IntArray) -> Any:
        if self.tables is not None:
            return self.tables.typical(symbols)
        assert isinstance(self.reader, ArrayReader)
        return self.reader.records(self.points[symbols])

    def release(
        self,
        X: Any,
        *,
        records: str = "columns",
        keep: str | Sequence[str] = (),
        rng: Rng = None,
        key: bytes | None = None,
        id: Any = None,
    ) -> Any:
        """Records of the same kind as X, made from their symbols alone.

        Parameters
        ----------
        X : array or frame, of Spark or Dask too
        records : {"columns", "typical", "symbol"}
            Of a frame: each column drawn from P(column | symbol), which keeps their distributions; the
            average or commonest value of the symbol; or its number. Arrays come as the symbol's mean record.
        keep : column names
            What is handed out unchanged beside it, such as the task; no private column, and none that the
            symbols are made from. The certificate does not speak of what these tell.
        rng : None, int or Generator
        key, id : 32 bytes and a column name, or of an array an id for each record; optional
            A stable draw for each id: whoever has the same record gets the same row whenever this rule
            releases it, so that releasing again tells nothing more (docs/keys.md).
        """
        if records not in RECORDS:
            raise InvalidInputError(
                f"release: records must be one of {', '.join(map(repr, RECORDS))}; it is {records!r}.",
                names=("records",),
            )
        require_person(id, (*self.private_names, *self.reader.names()), "release")
        if release := release_on_cluster(X):
            if self.tables is None:
                raise InvalidInputError("release: this rule is for arrays; a frame of a cluster is none.")
            return release(self, X, records=records, keep=keep, rng=rng, key=key, id=id)
        ids = id
        if isinstance(id, str) and self.tables is not None:
            frame = read_frame(X, "release")
            require_columns([id], frame.columns, "release: id")
            ids = frame[id].to_list()
        n_each = 1 if self.tables is None else 1 + 2 * len(self.tables.schema.columns)
        # An int would draw the columns with the numbers that drew the symbols.
        generator: Any = Draws(rng, key, ids).several(n_records(X), n_each, self)
        symbols = self.transform(X, generator)
        if self.tables is None:
            return symbols if records == "symbol" else self._typical(symbols)
        if records == "symbol":
            made = _column_like(X, "z", symbols)
        else:
            made = self.tables.draw(symbols, generator) if records == "columns" else self._typical(symbols)
        names = as_names(keep)
        return without_notes(_with_kept(made, X, names, self.private_names, self.reader.names()), names)

    def release_stream(
        self,
        source: Any,
        sink: str | PathLike[str] | None = None,
        *,
        records: str = "columns",
        keep: str | Sequence[str] = (),
        rng: Rng = None,
        key: bytes | None = None,
        id: str | None = None,
        shuffle: bool = False,
    ) -> Any:
        """Release a table that need not fit in memory, batch by batch.

        `source`, `sink` and `shuffle` are those of `TableMechanism.release_stream`, the rest those of
        `release`.
        """
        from .streaming import release_stream

        how = {"records": records, "keep": as_names(keep), "rng": rng, "key": key, "id": id}
        return release_stream(self, source, sink, how, shuffle)

    def _shipped(self) -> Any:
        """What workers of a cluster get: its files, or itself where cells are somebody else's."""
        from .saving import save_rule

        if not self.cells.can_save:
            return self
        return Shipped.of(lambda folder: save_rule(self, folder))

    def _symbols(self, Z: Any) -> IntArray:
        values = np.asarray(Z)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        whole = values.ndim == 1 and values.dtype.kind in "iuf" and np.array_equal(values, np.rint(values))
        if not whole or (values.size and not (values.min() >= 0 and values.max() < self.n_symbols)):
            raise InvalidInputError(
                f"inverse_transform: symbols are whole numbers from 0 to {self.n_symbols - 1}, as transform "
                "gives them."
            )
        return values.astype(np.intp)

    def describe(self) -> Any:
        """Which cells share a symbol, in words: a frame with a row a symbol, common ones first."""
        if self.tables is not None:
            return self.tables.codebook()
        p_z = self.p_cells @ self.mechanism.p_z_given_x
        order = np.argsort(-p_z, kind="stable")
        rows: dict[str, list[Any]] = {"symbol": [], "share": [], "stands for": []}
        for z in order.tolist():
            back = self.p_cell_given_symbol[z]
            chosen = np.argsort(-back, kind="stable")[:SHOWN_CELLS]
            parts = [
                f"{self._words(c)} ({back[c]:.0%})".replace("%", " %") for c in chosen if back[c] > 0.005
            ]
            left = int((back > 0.005).sum()) - len(parts)
            rows["symbol"].append(z)
            rows["share"].append(float(p_z[z]))
            rows["stands for"].append("; or ".join(parts) + (f"; or {left} more" if left > 0 else ""))
        return make_frame(rows)

    def _words(self, cell: int) -> str:
        """What sets a cell apart from the others: its largest differences in units of their spread."""
        centre = self.p_cells @ self.cell_points
        spread = np.sqrt(self.p_cells @ np.square(self.cell_points - centre))
        away = (self.cell_points[cell] - centre) / np.where(spread > 0, spread, np.inf)
        names = self.reader.names()
        most = [i for i in np.argsort(-np.abs(away), kind="stable")[:SHOWN_WORDS] if abs(away[i]) > 0.5]
        words = [f"{names[i]} {'high' if away[i] > 0 else 'low'}" for i in most]
        return ", ".join(words) or "like most"


def _parts(X: Any) -> Iterator[Any]:
    """The records piece by piece, so that their points need little memory."""
    n = n_records(X)
    if n <= CHUNK:
        yield X
        return
    for start in range(0, n, CHUNK):
        yield taken(X, np.arange(start, min(start + CHUNK, n)))


def _column_like(X: Any, name: str, values: IntArray) -> Any:
    """A frame of one column, of the library of another frame."""
    import narwhals as nw

    frame = read_frame(X, "release")
    made = nw.from_dict({name: values.tolist()}, {name: nw.Int64()}, backend=frame.implementation)
    return made.to_native()


def _with_kept(
    made: Any, X: Any, keep: tuple[str, ...], private: tuple[str, ...], read: Sequence[str]
) -> Any:
    """The released frame with these columns of the records as they are; none that the rule makes anew."""
    if not keep:
        return made
    import narwhals as nw

    frame, out = read_frame(X, "release"), nw.from_native(made, eager_only=True)
    require_columns(keep, frame.columns, "release: keep")
    hidden = [name for name in keep if name in private]
    if hidden:
        raise InvalidInputError(
            f"release: {hidden[0]!r} is private, so that it cannot be kept.", names=("keep",)
        )
    if undone := [name for name in keep if name in read]:
        raise InvalidInputError(
            f"release: {undone[0]!r} is what the symbols are made from, and handing it out undoes the "
            "release; leave it out of keep.",
            names=("keep",),
        )
    if made_twice := [name for name in keep if name == "z" and name in out.columns]:
        raise InvalidInputError(
            f"release: {made_twice[0]!r} is the name of the column of symbols; rename the one to be kept.",
            names=("keep",),
        )
    if frame.implementation == out.implementation:
        beside = nw.maybe_reset_index(frame.select(keep))
        return out.with_columns(*(beside[name] for name in keep)).to_native()
    kept = [nw.new_series(name, frame[name].to_list(), backend=out.implementation) for name in keep]
    return out.with_columns(*kept).to_native()
