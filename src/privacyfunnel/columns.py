"""A table mechanism on columns and data frames, read through narwhals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .alphabet import Letters, as_names, column_values, require_columns, require_single_values
from .arrays import IntArray, random_order
from .errors import InvalidInputError, shortened
from .keys import Draws
from .unknown import Unknown, UnknownLetters, check_unknown

if TYPE_CHECKING:
    from .mechanism import Rng, TableMechanism


def release_column(mechanism: TableMechanism, x: Any, draws: Draws) -> Any:
    """The released symbols of a column, of the same kind as x; None if x is no column.

    Anything else that converts to an array of one or more dimensions gives an array.
    """
    import narwhals as nw

    native = nw.from_native(x, pass_through=True, allow_series=True)
    if isinstance(native, nw.Series):
        symbols = mechanism._draw(_find(mechanism._letters, [native]), draws)
        return _gather(mechanism, symbols, native, native.name).to_native()
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InvalidInputError("release: this is a data frame; use release_frame.")
    if hasattr(x, "__array__"):
        array = np.asarray(x)
        if array.ndim:
            return mechanism.release(array, draws.rng, key=draws.key, id=draws.ids)
    return None


def release_frame(
    mechanism: TableMechanism,
    frame: Any,
    columns: str | Sequence[str] | None,
    *,
    output: str,
    keep: str | Sequence[str],
    keep_public: bool,
    keep_private: bool,
    unknown: Unknown,
    shuffle: bool,
    rng: Rng,
    key: bytes | None,
    id: str | None,
) -> Any:
    """See `TableMechanism.release_frame`."""
    import narwhals as nw

    data = _eager(frame)
    check_unknown(unknown, "release_frame")
    public = public_columns(mechanism, columns)
    require_columns(public, data.columns, "release_frame", "pass columns=[…] to name the public ones")
    require_single_values(public, data.schema, "release_frame")
    if id is not None:
        require_columns((id,), data.columns, "release_frame")
    private = [name for name in mechanism.private_names if name not in public]
    staying = {*kept_columns(keep, data.columns, public, private, "release_frame")}
    staying |= {name for name in private if keep_private} | {name for name in public if keep_public}
    if output in staying.intersection(data.columns):
        raise InvalidInputError(
            f"release_frame: the frame already has a column {output!r}; pass another name as output."
        )
    # An int would start the same numbers again for the order as for the symbols.
    generator = np.random.default_rng(rng) if shuffle and isinstance(rng, int) else rng
    rows = search_letters(mechanism._letters, [data[name] for name in public])
    data, rows = _known_or(unknown, mechanism, data, public, rows)
    symbols = mechanism._draw(rows, Draws(generator, key, None if id is None else data[id].to_list()))
    released = _gather(mechanism, symbols, data[public[0]], output)
    order = [name for name in data.columns if name in staying or name == public[0]]
    at = order.index(public[0])
    order[at : at + 1] = [*([public[0]] if keep_public else []), output]
    result = data.with_columns(released).select(order)
    if shuffle:
        result = result[random_order(len(result), generator)]
    if shuffle or keep != "all":
        result = nw.maybe_reset_index(result)
    return result.to_native()


def _eager(frame: Any) -> Any:
    """The frame as narwhals has it, refused if it is lazy or none."""
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
    return data


def kept_columns(
    keep: str | Sequence[str],
    columns: Sequence[str] | None,
    public: Sequence[str],
    private: Sequence[str],
    where: str,
) -> tuple[str, ...]:
    """The columns to be handed out beside the symbol, some or "all"; no public and no private one can be.

    `columns` are those of the table, None where they are not known.
    """
    if isinstance(keep, str) and keep == "all":
        if columns is None:
            raise InvalidInputError(f"{where}: the columns are not known here; name those to keep.")
        return tuple(name for name in columns if name not in public and name not in private)
    names = as_names(keep)
    for kind, guarded in (("private", private), ("public", public)):
        if found := [name for name in names if name in guarded]:
            raise InvalidInputError(
                f"{where}: column {found[0]!r} is {kind}, and handing it out undoes the release; leave it "
                "out of the columns to be kept."
            )
    if columns is not None:
        require_columns(names, columns, where)
    return names


def _known_or(
    unknown: Unknown, mechanism: TableMechanism, data: Any, public: Sequence[str], rows: IntArray
) -> tuple[Any, IntArray]:
    """The records whose letter is known, or all with −1 for those to be drawn from P(Z)."""
    if unknown == "draw":
        mechanism.require_marginal("release_frame")
        return data, rows
    known = rows >= 0
    if known.all():
        return data, rows
    if unknown == "drop":
        return data.filter(known.tolist()), rows[known]
    wrong = UnknownLetters(mechanism._letters)
    wrong.add(rows, [data[name] for name in public])
    raise wrong.error("release_frame")


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


def search_letters(letters: Letters, columns: Sequence[Any]) -> IntArray:
    """The row of the mechanism for each row of narwhals columns; −1 for what is no letter."""
    return _look_up(columns, letters, letters.search_columns, letters.search_all)


def _find(letters: Letters, columns: Sequence[Any]) -> IntArray:
    return _look_up(columns, letters, letters.find_columns, letters.find_all)


def _look_up(
    columns: Sequence[Any],
    letters: Letters,
    of_arrays: Callable[[Sequence[Any]], IntArray],
    of_values: Callable[[Sequence[Any]], IntArray],
) -> IntArray:
    import pyarrow as pa

    try:
        return of_arrays([column.to_arrow() for column in columns])
    except pa.ArrowException:  # a pandas column of mixed objects, or of intervals
        lists = [column.to_list() for column in columns]
        return of_values(list(zip(*lists, strict=True)) if letters.are_tuples else lists[0])


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
