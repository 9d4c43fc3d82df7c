"""A table mechanism on columns and data frames, read through narwhals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError, shortened
from .labels import column_values
from .names import as_names, require_columns

if TYPE_CHECKING:
    from .mechanism import Rng, TableMechanism

IntArray = NDArray[np.intp]


def release_column(mechanism: TableMechanism, x: Any, rng: Rng) -> Any:
    """The released symbols of a column, of the same kind as x; None if x is no column.

    Anything else that converts to an array of one or more dimensions gives an array.
    """
    import narwhals as nw

    native = nw.from_native(x, pass_through=True, allow_series=True)
    if isinstance(native, nw.Series):
        symbols = mechanism._draw(_find(mechanism, [native]), rng)
        return _gather(mechanism, symbols, native, native.name).to_native()
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InvalidInputError("release: this is a data frame; use release_frame.")
    if hasattr(x, "__array__"):
        array = np.asarray(x)
        return mechanism.release(array, rng) if array.ndim else None
    return None


def release_frame(
    mechanism: TableMechanism,
    frame: Any,
    columns: str | Sequence[str] | None,
    *,
    output: str,
    keep_public: bool,
    dropped: Sequence[str],
    rng: Rng,
) -> Any:
    """See `TableMechanism.release_frame`."""
    import narwhals as nw

    data = nw.from_native(frame, pass_through=True)
    if isinstance(data, nw.LazyFrame):
        raise InvalidInputError(
            "release_frame: this frame is lazy and has no rows yet; collect it (in batches if it is large) "
            "or let the database draw with to_sql."
        )
    if not isinstance(data, nw.DataFrame):
        raise InvalidInputError(
            f"release_frame: a data frame is needed, such as one of pandas or polars; this is a "
            f"{type(frame).__name__}."
        )
    public = public_columns(mechanism, columns)
    require_columns(public, data.columns, "release_frame", "pass columns=[…] to name the public ones")
    staying = [name for name in data.columns if (keep_public if name in public else name not in dropped)]
    if output in staying:
        raise InvalidInputError(
            f"release_frame: the frame already has a column {shortened(output)}; pass another name as output."
        )
    symbols = mechanism._draw(_find(mechanism, [data[name] for name in public]), rng)
    released = _gather(mechanism, symbols, data[public[0]], output)
    order = [name for name in data.columns if name in staying or name == public[0]]
    at = order.index(public[0])
    order[at : at + 1] = [*([public[0]] if keep_public else []), output]
    return data.with_columns(released).select(order).to_native()


def public_columns(mechanism: TableMechanism, columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """The public column names: the mechanism's own by default."""
    return mechanism.x_names if columns is None else as_names(columns)


def long_table(mechanism: TableMechanism, output: str) -> dict[str, Any]:
    """The columns of the table in long form: parts of the letter, symbol, probability."""
    names = mechanism.x_names
    letters: list[Any] = list(mechanism.x_labels)
    if len(names) > 1 and all(isinstance(letter, tuple) and len(letter) == len(names) for letter in letters):
        parts = [list(part) for part in zip(*letters, strict=True)]
    else:
        names, parts = ("_".join(names),), [letters]
    if len({*names, output, "probability"}) < len(names) + 2:
        raise InvalidInputError(
            f"to_frame: the columns {', '.join(map(shortened, names))}, {shortened(output)} and "
            "'probability' must have different names; pass another name as output."
        )
    columns: dict[str, Any] = {}
    for name, part in zip(names, parts, strict=True):
        columns[name] = [value for value in column_values(part) for _ in range(mechanism.n_z)]
    columns[output] = column_values(mechanism.z_labels) * mechanism.n_x
    columns["probability"] = mechanism.p_z_given_x.ravel()
    return columns


def _find(mechanism: TableMechanism, columns: Sequence[Any]) -> IntArray:
    """The row of the mechanism for each row of narwhals columns."""
    import pyarrow as pa

    letters = mechanism._letters
    try:
        return letters.find_columns([column.to_arrow() for column in columns])
    except pa.ArrowException:  # a pandas column of mixed objects, or of intervals
        lists = [column.to_list() for column in columns]
        return letters.find_all(list(zip(*lists, strict=True)) if letters.are_tuples else lists[0])


def _gather(mechanism: TableMechanism, symbols: IntArray, like: Any, name: str) -> Any:
    """A narwhals column of symbols, of the kind and with the index of the column `like`."""
    import narwhals as nw

    # Indexing a column of the few symbols is the native library's own fast path for any type.
    few = nw.new_series(name, column_values(mechanism.z_labels), backend=like.implementation)
    column = few[symbols]
    if nw.maybe_get_index(like) is None:
        return column
    native = column.to_native()
    native.index = like.to_native().index
    return nw.from_native(native, series_only=True)
