"""A table mechanism on columns and data frames, read through narwhals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from .alphabet import (
    Letters,
    as_names,
    canonical_label,
    column_values,
    require_columns,
    require_single_values,
)
from .arrays import IntArray, one_generator, random_order, uniform
from .errors import InvalidInputError, shortened
from .frames import BACKENDS, arrow_column, make_native, native_type, without_notes, without_views
from .keys import Draws, require_person
from .sparse import SparseChannel
from .unknown import Unknown, UnknownLetters, check_unknown

if TYPE_CHECKING:
    from .mechanism import Rng, TableMechanism

#: What stands for a symbol in a released table.
ValueKind = Literal["symbol", "typical", "draw"]
#: What a codebook says of a symbol: its letters up to this share, and up to this many.
TOLD_SHARE, TOLD_LETTERS = 0.8, 3


def release_values(mechanism: TableMechanism, x: Any, draws: Draws) -> Any:
    """See `TableMechanism.release`."""
    letters = mechanism._letters
    if isinstance(x, np.ndarray) and x.ndim:
        return mechanism._symbols[_drawn(mechanism, letters.find_array(x), draws)]
    if isinstance(x, (list, range)) or (isinstance(x, tuple) and not letters.are_tuples):
        symbols = _drawn(mechanism, letters.find_all(x), draws)
        return [mechanism.z_labels[symbol] for symbol in symbols.tolist()]
    if not isinstance(x, (str, int, float, tuple, np.generic, np.ndarray)) and x is not None:
        released = _release_column(mechanism, x, draws)
        if released is not None:
            return released
    value = x.item() if isinstance(x, np.ndarray) else x
    one = replace(draws, ids=None if draws.ids is None else [draws.ids])
    return mechanism.z_labels[int(_drawn(mechanism, np.array([letters.find(value)]), one)[0])]


def _drawn(mechanism: TableMechanism, rows: IntArray, draws: Draws) -> IntArray:
    """The symbol of each row of the table; of row −1 one drawn from P(Z)."""
    table, flat = mechanism.sparse, rows.ravel()
    if flat.size and flat.min() < 0:
        table = mechanism._with_marginal
        flat = np.where(flat < 0, mechanism.n_x, flat)
    if draws.rng is None and draws.key is None:
        return table.draw_anew(flat).reshape(rows.shape)
    symbols = np.empty(flat.size, dtype=np.intp)
    for part, u in draws.parts(flat.size, mechanism):
        symbols[part] = table.draw(flat[part], u)
    return symbols.reshape(rows.shape)


def _release_column(mechanism: TableMechanism, x: Any, draws: Draws) -> Any:
    """The released symbols of a column, of the same kind as x; None if x is no column.

    Anything else that converts to an array of one or more dimensions gives an array.
    """
    import narwhals as nw

    native = nw.from_native(x, pass_through=True, allow_series=True)
    if isinstance(native, nw.Series):
        symbols = _drawn(mechanism, _find(mechanism._letters, [native]), draws)
        return _gather(mechanism.z_labels, symbols, native, native.name).to_native()
    if isinstance(native, (nw.DataFrame, nw.LazyFrame)):
        raise InvalidInputError("release: this is a data frame; use release_frame.")
    if hasattr(x, "__array__"):
        array = np.asarray(x)
        if array.ndim:
            return release_values(mechanism, array, draws)
    return None


def release_frame(
    mechanism: TableMechanism,
    frame: Any,
    columns: str | Sequence[str] | None,
    *,
    values: ValueKind,
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
        require_person(id, (*public, *mechanism.private_names), "release_frame")
    private = [name for name in mechanism.private_names if name not in public]
    staying = {*kept_columns(keep, data.columns, public, private, "release_frame")}
    staying |= {name for name in private if keep_private} | {name for name in public if keep_public}
    new = [output] if values == "symbol" else list(public)
    _check_values(values, output, keep_public)
    if found := [name for name in new if name in staying.intersection(data.columns)]:
        raise InvalidInputError(
            f"release_frame: the frame already has a column {found[0]!r}; pass another name as output."
        )
    # An int would start the same numbers again for the order, and for the letters, as for the symbols.
    again = shuffle or values == "draw"
    generator = one_generator(rng) if again else rng
    rows = search_letters(mechanism._letters, [data[name] for name in public])
    data, rows = _known_or(unknown, mechanism, data, public, rows)
    symbols = _drawn(mechanism, rows, Draws(generator, key, None if id is None else data[id].to_list()))
    if values == "symbol":
        released = [_gather(mechanism.z_labels, symbols, data[public[0]], output)]
    else:
        released = _letter_columns(mechanism, values, symbols, [data[name] for name in public], generator)
    replaced = public[:1] if values == "symbol" else public
    order = [name for name in data.columns if name in staying or name in replaced]
    if values == "symbol":
        at = order.index(public[0])
        order[at : at + 1] = [*([public[0]] if keep_public else []), output]
    result = data.with_columns(*released).select(order)
    if shuffle:
        result = result[random_order(len(result), generator)]
    if shuffle or keep != "all":
        result = nw.maybe_reset_index(result)
    return without_notes(result.to_native(), staying.intersection(order))


def _check_values(values: str, output: str, keep_public: bool) -> None:
    if values not in get_args(ValueKind):
        listed = ", ".join(map(repr, get_args(ValueKind)))
        raise InvalidInputError(
            f"release_frame: values must be one of {listed}; it is {values!r}.", names=("values",)
        )
    if values != "symbol" and keep_public:
        raise InvalidInputError(
            f"release_frame: with values={values!r} the released columns have the names of the public ones; "
            "leave out keep_public.",
            names=("values", "keep_public"),
        )
    if values != "symbol" and output != "z":
        raise InvalidInputError(
            f"release_frame: output names the column of symbols, and values={values!r} releases none; leave "
            "one of them out.",
            names=("values",),
        )


def _letter_columns(
    mechanism: TableMechanism, values: str, symbols: IntArray, public: Sequence[Any], rng: Rng
) -> list[Any]:
    """Columns like the public ones: for each symbol the parts of its typical letter, or of one drawn."""
    table = mechanism.letters_of_symbols
    if values == "draw":
        letters = table.draw(symbols, uniform(symbols.size, rng))
    else:
        letters = _likeliest(table)[symbols]
    parts: list[Any] = [mechanism.x_labels]
    if mechanism._letters.are_tuples:
        parts = list(zip(*mechanism.x_labels, strict=True))
    return [_like(part, letters, column) for part, column in zip(parts, public, strict=True)]


def _likeliest(table: SparseChannel) -> IntArray:
    """The letter of the largest entry of each row, the first of several."""
    order = np.lexsort((table.symbols, -table.probabilities, table.rows))
    return table.symbols[order[table.indptr[:-1]]]


def _like(labels: Sequence[Any], at: IntArray, like: Any) -> Any:
    """A narwhals column of labels, in the type of the column `like` where it can hold them all.

    Of declared categories only those that are labels are declared again: the others may be somebody's.
    """
    import narwhals as nw
    import pyarrow as pa

    column = arrow_column(like)
    if column is None or pa.types.is_null(column.type) or like.implementation.value not in BACKENDS:
        return _gather(labels, at, like, like.name)
    few = list(dict.fromkeys(labels))
    coded = pa.types.is_dictionary(column.type)
    if coded:  # missing values last; in the order in which they were declared, if that means something
        declared = column.dictionary.to_pylist() if column.type.ordered else []
        place = {canonical_label(value): i for i, value in enumerate(declared)}
        few.sort(key=lambda label: (label is None, place.get(label, len(place))))
    number = {label: i for i, label in enumerate(few)}
    codes = np.array([number[label] for label in labels], dtype=np.intp)[at]
    try:
        known = pa.array(few, type=column.type.value_type if coded else column.type)
        if coded:
            there = known.drop_null()
            indices = pa.array(codes, mask=codes >= len(there)).cast(column.type.index_type)
            made = pa.DictionaryArray.from_arrays(indices, there, ordered=column.type.ordered)
        else:
            made = known.take(pa.array(codes))
        frame = make_native(like.implementation.value, {like.name: made}, {like.name: native_type(like)})
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return _gather(labels, at, like, like.name)
    return _with_index(nw.from_native(frame, eager_only=True)[like.name], like)


def codebook(mechanism: TableMechanism) -> dict[str, Any]:
    """The columns of `TableMechanism.codebook`."""
    table = mechanism.letters_of_symbols
    p_z = mechanism.p_z(mechanism.p_x)  # type: ignore[arg-type]  # or there would be no table
    order = np.lexsort((table.symbols, -table.probabilities, table.rows))
    told = []
    for symbol in range(mechanism.n_z):
        entries = order[table.indptr[symbol] : table.indptr[symbol + 1]]
        sums = np.cumsum(table.probabilities[entries])
        n_told = min(int(np.searchsorted(sums, TOLD_SHARE)) + 1, TOLD_LETTERS, entries.size)
        letters = [_in_words(mechanism.x_labels[i]) for i in table.symbols[entries[:n_told]].tolist()]
        rest = "" if sums[n_told - 1] >= TOLD_SHARE else f" and {entries.size - n_told} others"
        told.append(" / ".join(letters) + rest)
    return {"symbol": column_values(mechanism.z_labels), "share": p_z, "stands_for": told}


def _in_words(letter: Any) -> str:
    if isinstance(letter, tuple):
        return ", ".join(map(_in_words, letter))
    return "missing" if letter is None else str(letter)


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
    if data.implementation.is_pyarrow():
        table = data.to_native()
        plain = without_views(table.schema)
        return data if plain == table.schema else nw.from_native(table.cast(plain))
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
    if unknown == "drop":
        data = data if known.all() else data.filter(known.tolist())
        return data, rows[known]
    if known.all():
        return data, rows
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


def search_table(letters: Letters, table: Any, public: Sequence[str]) -> tuple[IntArray, list[Any]]:
    """The row of the mechanism for each record of an Arrow table, and the columns it was found in."""
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True)
    columns = [frame[name] for name in public]
    return search_letters(letters, columns), columns


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
        return of_arrays([_in_arrow(column) for column in columns])
    except pa.ArrowException:  # a pandas column of mixed objects, or of intervals
        lists = [column.to_list() for column in columns]
        return of_values(list(zip(*lists, strict=True)) if letters.are_tuples else lists[0])


def _in_arrow(column: Any) -> Any:
    """A narwhals column as Arrow has it, without copying what is Arrow already."""
    import narwhals as nw
    import pyarrow as pa

    native = column.to_native()
    if column.implementation.is_pyarrow():
        return native
    if column.implementation.is_pandas() and native.dtype == object:
        return _of_objects(native)
    is_text = column.implementation.is_polars() and column.dtype == nw.String
    if is_text and hasattr(native, "__arrow_c_stream__"):  # which older versions have not
        return pa.chunked_array(native)
    return column.to_arrow()


def _of_objects(column: Any) -> Any:
    """A pandas column of objects as Arrow has it: their codes, where Arrow can hold the values."""
    import pandas as pd
    import pyarrow as pa

    try:
        codes, found = pd.factorize(column.to_numpy())
    except TypeError:  # what cannot be hashed
        return pa.array(column, from_pandas=True)
    values = pa.array(found, from_pandas=True)
    if len({type(value) for value in found}) > 1 or pa.types.is_nested(values.type):
        return pa.array(column, from_pandas=True)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), values)


def _gather(labels: Sequence[Any], at: IntArray, like: Any, name: str) -> Any:
    """A narwhals column of labels, of the kind and with the index of the column `like`."""
    import narwhals as nw

    # Indexing a column of the few labels is the native library's own fast path for any type.
    few = nw.new_series(name, column_values(labels), backend=like.implementation)
    if like.implementation.is_pandas():
        native = few.to_native()
        made = type(native)(native.array.take(at), index=like.to_native().index, name=name)
        return nw.from_native(made, series_only=True)
    return _with_index(few[at], like)


def _with_index(column: Any, like: Any) -> Any:
    """The column with the index of the column `like`, if that has one."""
    import narwhals as nw

    if nw.maybe_get_index(like) is None:
        return column
    native = column.to_native()
    native.index = like.to_native().index
    return nw.from_native(native, series_only=True)
