"""Mechanism and TableMechanism: what releases Z from X alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .alphabet import Letters, as_labels, as_names, label_array
from .arrays import FloatArray
from .channels import as_distribution, as_p_x, conditional, posterior, to_one
from .columns import ValueKind, codebook, long_table, release_frame, release_values
from .errors import InvalidInputError, shortened
from .frames import make_frame
from .joint import Joint
from .keys import Draws
from .mechanism_file import FORMAT_VERSION, fingerprint_of, from_payload, payload_of
from .persistence import save_json
from .sources import is_streamed
from .spark import is_spark, release_spark
from .sparse import (
    Channel,
    SparseChannel,
    as_sparse,
    below,
    posterior_of,
    require_room,
    require_same_records,
    told_by,
)
from .unknown import Unknown

if TYPE_CHECKING:
    from .sql import Dialect

Rng = int | np.random.Generator | None


@runtime_checkable
class Mechanism(Protocol):
    """Anything that releases Z from X alone."""

    def release(self, x: Any, rng: Rng = None) -> Any:
        """Draw Z for each entry of x; None draws from the operating system's entropy."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class TableMechanism:
    """A mechanism for a finite alphabet: the table P(Z|x), of which the nonzeros are stored.

    Parameters
    ----------
    p_z_given_x : (n_x, n_z) array or SparseChannel
        Rows are distributions. They must sum to 1 (tolerance 1e-9) and are never renormalised.
    x_labels, z_labels : sequences of distinct labels, optional
        The letters that go in and the symbols that come out; 0, 1, … by default. For several columns a
        letter is a tuple. None is the letter of missing values; NaN as a label means the same.
    x_names : sequence of column names
        What the letters are letters of.
    private_names : sequence of column names
        The columns that the mechanism was made to protect, which `release_frame` drops; none by default.
        Mechanisms of the solvers know those of their joint.
    marginal : (n_z,) array, optional
        P(Z) for the records that the mechanism was made for, from which `unknown="draw"` draws. Mechanisms of
        the solvers have it; None where it is not known.
    p_x : (n_x,) array, optional
        P(X) for these records, by which a symbol stands for letters: `release_frame(values="draw")`,
        `codebook`. Mechanisms of the solvers have it, and so do their files: it tells how common each letter
        is among the records, and nothing about private columns. With both P(Z) must follow (tolerance 1e-6).
    """

    sparse: SparseChannel
    x_labels: tuple[Hashable, ...]
    z_labels: tuple[Hashable, ...]
    x_names: tuple[str, ...]
    private_names: tuple[str, ...]
    marginal: FloatArray | None
    p_x: FloatArray | None

    def __init__(
        self,
        p_z_given_x: ArrayLike | SparseChannel,
        *,
        x_labels: Sequence[Hashable] | None = None,
        z_labels: Sequence[Hashable] | None = None,
        x_names: Sequence[str] = ("x",),
        private_names: Sequence[str] = (),
        marginal: ArrayLike | None = None,
        p_x: ArrayLike | None = None,
    ) -> None:
        table = as_sparse(p_z_given_x)
        setting = object.__setattr__
        setting(self, "sparse", table)
        setting(self, "x_labels", as_labels(x_labels, table.shape[0], "TableMechanism: x_labels"))
        setting(self, "z_labels", as_labels(z_labels, table.shape[1], "TableMechanism: z_labels"))
        setting(self, "x_names", as_names(x_names))
        setting(self, "private_names", as_names(private_names))
        setting(self, "marginal", as_distribution(marginal, table.shape[1], "marginal", "symbol"))
        setting(self, "p_x", as_distribution(p_x, table.shape[0], "p_x", "letter"))
        # One name may also stand for a whole tuple.
        if len(self.x_names) != 1 and len(self.x_names) != self.n_parts:
            raise InvalidInputError(
                f"TableMechanism: x_names must have one name for each column of a letter ({self.n_parts}); "
                f"there are {len(self.x_names)}."
            )
        if self.marginal is not None and self.p_x is not None:
            require_same_records(self.p_x, table, self.marginal)

    @classmethod
    def for_joint(
        cls, joint: Joint, p_z_given_x: ArrayLike | SparseChannel, z_labels: Sequence[Hashable] | None = None
    ) -> TableMechanism:
        """The mechanism of this table for the letters, columns and private columns of a joint."""
        table = as_sparse(p_z_given_x)
        if table.shape[0] != joint.n_x:
            raise InvalidInputError(
                f"TableMechanism: p_z_given_x must have a row for each of the {joint.n_x} letters of the "
                f"joint; it has {table.shape[0]}."
            )
        return cls(
            table,
            x_labels=joint.x_labels,
            z_labels=z_labels,
            x_names=joint.x_names,
            private_names=joint.y_names,
            marginal=to_one(joint.p_x @ table),
            p_x=joint.p_x,
        )

    @classmethod
    def identity(cls, joint: Joint) -> TableMechanism:
        """Z = X: all the utility and all the leakage."""
        return cls.for_joint(joint, SparseChannel.identity(joint.n_x), joint.x_labels)

    @classmethod
    def constant(cls, joint: Joint) -> TableMechanism:
        """One symbol for every letter: no utility and no leakage."""
        return cls.for_joint(joint, np.ones((joint.n_x, 1)))

    @property
    def n_x(self) -> int:
        return self.sparse.shape[0]

    @property
    def n_z(self) -> int:
        return self.sparse.n_z

    @property
    def n_parts(self) -> int:
        """How many columns a letter has."""
        return len(self.x_labels[0]) if self._letters.are_tuples else 1  # type: ignore[arg-type]

    @cached_property
    def p_z_given_x(self) -> FloatArray:
        """The whole table (n_x, n_z); InvalidInputError where memory cannot hold it."""
        table = self.sparse.dense()
        table.setflags(write=False)
        return table

    @property
    def channel(self) -> Channel:
        """The table in the form that is quicker to compute with: an array, or for a large one nonzeros."""
        return self.sparse if self.sparse.thin else self.p_z_given_x

    def _with(self, **changes: Any) -> TableMechanism:
        """This mechanism with other arguments."""
        same = {field.name: getattr(self, field.name) for field in fields(self)}
        return TableMechanism(**{"p_z_given_x": same.pop("sparse"), **same, **changes})

    def release(self, x: Any, rng: Rng = None, *, key: bytes | None = None, id: Any = None) -> Any:
        """Draw a symbol for each letter of x, independently.

        Parameters
        ----------
        x : a letter, a list, an array, or a column of a data frame
            What comes out is of the same kind. A tuple is one letter where letters are tuples; in an array
            such letters lie along the last axis. Missing values are the letter None.
        rng : None, int or Generator
            None takes each random number from the operating system's entropy. An int starts the same
            sequence anew at every call, so pass one Generator to release piece by piece.
        key, id : 32 bytes and an id for each letter, optional
            One stable draw for each person: the same id gets the same symbol for the same letter whenever
            this mechanism releases it, so that releasing again tells nothing more. `keys.read_key` reads a
            key; docs/keys.md says what it protects from and what not.

        Raises
        ------
        UnknownLetterError
            A value is not one of `x_labels`; the message names it, its row and the remedy.

        Notes
        -----
        Probabilities are realised to a resolution of 2⁻⁵³; a symbol of probability 0 is never drawn.
        Each call draws anew, and several releases of the same x tell more than one: see
        `repeated_leakage`. Release once, store the result, and hand out the stored one, or draw with a key.
        """
        return release_values(self, x, Draws(rng, key, id))

    def release_frame(
        self,
        frame: Any,
        columns: str | Sequence[str] | None = None,
        *,
        values: ValueKind = "symbol",
        output: str = "z",
        keep: str | Sequence[str] = (),
        keep_public: bool = False,
        keep_private: bool = False,
        unknown: Unknown = "error",
        shuffle: bool = False,
        rng: Rng = None,
        key: bytes | None = None,
        id: str | None = None,
    ) -> Any:
        """The released symbol of each record of a data frame, and of the other columns those to be kept.

        Parameters
        ----------
        frame : pandas, polars or pyarrow frame, any other eager frame that narwhals reads, or a lazy one
            A LazyFrame of polars and a frame of Dask stay what they are; of a DuckDB relation, an Ibis table
            and all else that `release_stream` takes comes a RecordBatchReader. docs/streams.md says more.
        columns : column names, optional
            The public columns, in the order of the parts of a letter; `x_names` by default.
        values : {"symbol", "typical", "draw"}
            What stands for a symbol: itself, its most probable letter, or a letter drawn from P(X|z). Letters
            stand in the public columns, with their names and types. Both are made from the symbol alone and
            leak no more than it. Drawn letters have the distribution P(X) again, typical ones have not.
        output : str
            Name of the column of symbols; it takes the place of the first public column.
        keep : column name, names or "all"
            What is handed out beside the symbol; "all" is every column that is neither public nor private.
            The mechanism does not protect what they tell: `audit(keep=…)` measures it.
        keep_public : bool
            Whether the public columns stay beside the symbol, for tests: whoever sees them needs no Z.
        keep_private : bool
            Whether the columns named in `private_names` stay, for tests.
        unknown : {"error", "draw", "drop"}
            What becomes of a record whose letter the mechanism does not know: an error that counts them all,
            a symbol from P(Z), which tells nothing about the letter, or no record.
        shuffle : bool
            Whether the records come out in random order. In order, whoever knows how they were sorted knows
            what they were sorted by.
        rng : None, int or Generator
            As for `release`.
        key, id : 32 bytes and a column name, optional
            One stable draw for each id, as for `release`. The column of ids leaves only if `keep` names it.

        Returns
        -------
        A frame of the same kind. The index of a pandas frame is left out too, but for keep="all" in order.
        Symbols of several types or tuples become text.
        """
        how: dict[str, Any] = {
            "values": values,
            "output": output,
            "keep": keep,
            "keep_public": keep_public,
            "keep_private": keep_private,
            "unknown": unknown,
            "shuffle": shuffle,
            "rng": rng,
            "key": key,
            "id": id,
        }
        if is_spark(frame):
            return release_spark(self, frame, columns, **how)
        if is_streamed(frame):
            from .lazy import release_lazy

            return release_lazy(self, frame, columns, how)
        return release_frame(self, frame, columns, **how)

    def release_stream(
        self,
        source: Any,
        sink: str | PathLike[str] | None = None,
        columns: str | Sequence[str] | None = None,
        *,
        values: ValueKind = "symbol",
        output: str = "z",
        keep: str | Sequence[str] = (),
        keep_public: bool = False,
        keep_private: bool = False,
        unknown: Unknown = "error",
        shuffle: bool = False,
        rng: Rng = None,
        key: bytes | None = None,
        id: str | None = None,
        n_jobs: int = -1,
    ) -> Any:
        """Release records that need not fit in memory, batch by batch.

        Parameters
        ----------
        source : path of a file, folder or pattern of Parquet files, pyarrow reader, scanner or dataset,
            polars LazyFrame, DuckDB relation, Ibis table, or anything with `__arrow_c_stream__`.
        sink : path of a .csv, .tsv (both also .gz), .parquet or .arrow file, or of a new folder of parts
            (a name without ending, for a source in parts). It appears whole or not at all, and what is
            returned has `n_records`. None gives a RecordBatchReader.
        n_jobs : int
            Threads; -1 is one a core. With `rng` there is one.
        columns, values, output, keep, keep_public, keep_private, unknown, shuffle, rng, key, id
            As for `release_frame`; docs/streams.md says when unknown letters end the release.
        """
        from .streams import release_stream

        return release_stream(
            self,
            source,
            sink,
            columns,
            values=values,
            output=output,
            keep=keep,
            keep_public=keep_public,
            keep_private=keep_private,
            unknown=unknown,
            shuffle=shuffle,
            rng=rng,
            key=key,
            id=id,
            n_jobs=n_jobs,
        )

    def require_marginal(self, where: str) -> FloatArray:
        """P(Z), or InvalidInputError where it is not known."""
        if self.marginal is None:
            raise InvalidInputError(
                f"{where}: this mechanism does not know P(Z), from which unknown='draw' draws; take one that "
                "a solver made, or build it with marginal=mechanism.p_z(joint.p_x).",
                names=("unknown",),
            )
        return self.marginal

    @cached_property
    def letters_of_symbols(self) -> SparseChannel:
        """P(X|z) as rows (n_z, n_x); of a symbol that the letters of `p_x` never give, by P(z|x) alone."""
        if self.p_x is None:
            raise InvalidInputError(
                "TableMechanism: this mechanism does not know P(X), by which a symbol stands for letters; "
                "solve again, or build it with p_x=joint.p_x."
            )
        return posterior_of(self.p_x, self.sparse)

    def codebook(self) -> Any:
        """A frame of the symbols: name, share of the records, and the letters that each stands for.

        Of each symbol the most probable letters, at most three. A pandas frame if pandas is installed, else
        polars, else a pyarrow table.
        """
        return make_frame(codebook(self))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal digits, of the columns, letters, symbols and probabilities.

        Letters and symbols count as texts, so that the mechanism for a CSV file, where 7 is "7", has it too.
        """
        return fingerprint_of(self)

    @cached_property
    def _letters(self) -> Letters:
        return Letters(self.x_labels, self.x_names)

    @cached_property
    def _with_marginal(self) -> SparseChannel:
        """The table with P(Z) as one more row."""
        return below(self.sparse, self.require_marginal("release"))

    @cached_property
    def _symbols(self) -> NDArray[Any]:
        return label_array(self.z_labels)

    def relabel(self, z_labels: Sequence[Hashable] | Mapping[Hashable, Hashable]) -> TableMechanism:
        """The same mechanism with other names for its symbols: all of them in order, or a map of some."""
        if isinstance(z_labels, Mapping):
            strangers = [label for label in z_labels if label not in self.z_labels]
            if strangers:
                raise InvalidInputError(
                    f"relabel: {shortened(strangers[0])} is not a symbol of this mechanism; see z_labels."
                )
            z_labels = [z_labels.get(label, label) for label in self.z_labels]
        return self._with(z_labels=tuple(z_labels))

    def p_z(self, p_x: ArrayLike) -> FloatArray:
        """P(Z), shape (n_z,), for letters drawn from p_x."""
        result: FloatArray = as_p_x(p_x, self.n_x, "p_z") @ self.channel
        return result

    def p_x_given_z(self, p_x: ArrayLike) -> FloatArray:
        """P(X|z) as rows (n_z, n_x): what a symbol tells about the letter.

        The row of a symbol that is never released is 0.
        """
        weights = as_p_x(p_x, self.n_x, "p_x_given_z")
        require_room(self.n_z, self.n_x)
        return posterior(weights, self.p_z_given_x)

    def p_y_given_z(self, joint: Joint) -> FloatArray:
        """P(Y|z) as rows (n_z, n_y): what a symbol tells about the private attribute.

        The row of a symbol that is never released is 0.
        """
        channel = self.channel
        if isinstance(channel, SparseChannel):
            as_p_x(joint.p_x, self.n_x, "p_y_given_z")
            return told_by(joint.p_xy, channel)
        result: FloatArray = self.p_x_given_z(joint.p_x) @ conditional(joint.p_xy)
        return result

    def compose(self, other: TableMechanism) -> TableMechanism:
        """The mechanism that releases this one's symbol through a second mechanism.

        The letters of `other` must include all symbols of this mechanism, in any order. Neither utility
        nor leakage can grow by it.
        """
        from .combining import compose

        return compose(self, other)

    def repeat(self, k: int) -> TableMechanism:
        """The mechanism that releases the same letter k times, independently: a symbol is a k-tuple."""
        from .combining import repeat

        return repeat(self, k)

    def to_dict(self) -> dict[str, Any]:
        """The mechanism as JSON types, every float exact; the payload of `save`."""
        return payload_of(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TableMechanism:
        """The mechanism of `to_dict`, checked like one given by hand; FileFormatError if it is none."""
        return from_payload(cls, data)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mechanism as versioned JSON, whole or not at all; `load` reads it back exactly."""
        save_json(path, "table-mechanism", FORMAT_VERSION, self.to_dict())

    def to_frame(self, output: str = "z") -> Any:
        """The table in long form: the columns of the letter, the symbol (`output`), the probability.

        A pandas frame if pandas is installed, else polars, else a pyarrow table.
        """
        return make_frame(long_table(self, output))

    def to_sql(
        self,
        table: str | Sequence[str],
        columns: str | Sequence[str] | None = None,
        *,
        dialect: Dialect,
        **settings: Any,
    ) -> str:
        """A SELECT that releases Z for each row of a database table; see `privacyfunnel.sql.select`."""
        from .sql import select

        return select(self, table, columns, dialect=dialect, **settings)

    def to_sql_table(
        self,
        name: str | Sequence[str] = "mechanism",
        *,
        dialect: Dialect,
    ) -> list[str]:
        """Statements that put the mechanism into a table for `to_sql(mechanism_table=name)`, which then does
        not grow with it; see `privacyfunnel.sql.create_table`."""
        from .sql import create_table

        return create_table(self, name, dialect=dialect)

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from .report.notebook import html_of

        return html_of(self)

    def __repr__(self) -> str:
        return f"TableMechanism({', '.join(self.x_names)}: {self.n_x} letters → {self.n_z} symbols)"
