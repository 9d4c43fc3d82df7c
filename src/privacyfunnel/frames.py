"""Data frames in whichever library the user has: made, and as columns of Arrow and back, types kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from .errors import FileFormatError, InvalidInputError, shortened

#: The libraries whose frames are taken apart and put together again.
BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A table of the given columns: a pandas frame if pandas is installed, else polars, else pyarrow.

    Parameters
    ----------
    columns : mapping of column name to values
        All of one length; None is a missing value.
    """
    lists = {name: _as_list(values) for name, values in columns.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
        raise InvalidInputError(f"make_frame: the columns must have one length; {listed}.")
    try:
        import pandas
    except ImportError:
        pass
    else:
        return pandas.DataFrame({name: _pandas_column(pandas, values) for name, values in lists.items()})
    try:
        import polars
    except ImportError:
        pass
    else:
        return polars.DataFrame({name: uniform(values) for name, values in lists.items()})
    import pyarrow

    return pyarrow.table({name: uniform(values) for name, values in lists.items()})


def _as_list(values: Any) -> list[Any]:
    """Python scalars in a list: `tolist` turns NumPy's numbers into Python's."""
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _pandas_column(pandas: Any, values: list[Any]) -> Any:
    """A pandas column that keeps what it is given where pandas' own guess would change it.

    Tuples would be unpacked into levels or rows, and whole numbers beside None would become floats.
    """
    if any(isinstance(value, tuple) for value in values):
        return pandas.Series(values, dtype=object)
    if None in values and all(value is None or type(value) is int for value in values):
        return pandas.Series(values, dtype=object)
    return pandas.Series(values)


def uniform(values: list[Any]) -> list[Any]:
    """The values, as text where they are of several kinds: polars and pyarrow columns have one type."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds <= {int, float}:
        return [float(v) if v is not None and float in kinds else v for v in values]
    return [None if value is None else str(value) for value in values]


def column_names(values: Any, what: str) -> list[Any] | None:
    """The names of a frame's columns; None for what is no frame."""
    if hasattr(values, "collect_schema") and not hasattr(values, "shape"):
        raise InvalidInputError(f"{what} is a lazy frame, which has no rows yet; call its collect() first.")
    # pyarrow's tables name their columns elsewhere than pandas and polars.
    named = getattr(values, "column_names", getattr(values, "columns", None))
    return None if named is None or isinstance(values, np.ndarray) or callable(named) else list(named)


def read_frame(frame: Any, where: str) -> Any:
    """The frame as narwhals has it; InvalidInputError for what is lazy, none, or has a name twice."""
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        data = nw.from_native(frame, pass_through=True)
    except DuplicateError:
        raise InvalidInputError(f"{where}: two columns have the same name; rename one of them.") from None
    if isinstance(data, nw.LazyFrame):
        raise InvalidInputError(f"{where}: this frame is lazy and has no rows yet; call its collect() first.")
    if not isinstance(data, nw.DataFrame) or data.implementation.value not in BACKENDS:
        raise InvalidInputError(
            f"{where}: a frame of pandas, polars or pyarrow is needed; this is a {type(frame).__name__}."
        )
    if wrong := [name for name in data.columns if not isinstance(name, str)]:
        raise InvalidInputError(
            f"{where}: names of columns must be texts; {shortened(wrong[0])} is a {type(wrong[0]).__name__}."
        )
    return data


def without_views(schema: Any) -> Any:
    """The schema of Arrow with plain texts and bytes in place of views.

    Of views pyarrow takes no entries, and an empty text for a missing one when it looks for distinct values.
    """
    import pyarrow as pa

    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}
    for at, field in enumerate(schema):
        kind = str(field.type)
        if kind in plain:
            schema = schema.set(at, field.with_type(plain[kind]))
        elif pa.types.is_dictionary(field.type) and str(field.type.value_type) in plain:
            values = plain[str(field.type.value_type)]
            coded = pa.dictionary(field.type.index_type, values, field.type.ordered)
            schema = schema.set(at, field.with_type(coded))
    return schema


def without_notes(frame: Any, kept: Iterable[str] = ()) -> Any:
    """The frame without what is written on it beside its records: `attrs` of pandas, metadata of pyarrow.

    Whoever made the frame may have noted names of people there, and pandas notes the columns that a release
    leaves out, with their types. Of the columns `kept` as they are, and of an index, categories that no
    record has are left out too: they are those of people who were taken out of the frame before.
    """
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        plain = pa.schema([field.remove_metadata() for field in frame.schema])
        columns = [
            _in_use(column) if name in kept else column
            for name, column in zip(frame.column_names, frame.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=plain)
    if not hasattr(frame, "attrs"):
        return frame
    frame = frame.copy(deep=False)  # what was given may be the same object
    frame.attrs = {}
    for name in kept:
        if str(frame[name].dtype) == "category":
            frame[name] = frame[name].cat.remove_unused_categories()
    for unused in ("remove_unused_categories", "remove_unused_levels"):
        if hasattr(frame.index, unused):
            frame.index = getattr(frame.index, unused)()
    return frame


def _in_use(column: Any) -> Any:
    """A column of pyarrow with the entries of its dictionary that records have, in their order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return column
    column = column.unify_dictionaries()
    values, kind = column.chunk(0).dictionary, column.type
    codes = pa.chunked_array([chunk.indices for chunk in column.chunks])
    used = np.sort(pc.unique(codes).drop_null().to_numpy())
    if used.size == len(values):
        return column
    place = np.zeros(len(values), dtype=np.intp)
    place[used] = np.arange(used.size)
    numbers, few = pa.array(place).cast(kind.index_type), values.take(pa.array(used))
    parts = [
        pa.DictionaryArray.from_arrays(numbers.take(part), few, ordered=kind.ordered) for part in codes.chunks
    ]
    return pa.chunked_array(parts, kind)


def arrow_column(series: Any) -> Any:
    """A column of narwhals in one piece of Arrow; None if it has no type there that can be written down."""
    import pyarrow as pa

    try:
        column = series.to_arrow()
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return column if parse_type(str(column.type)) == column.type else None
    except (pa.ArrowException, FileFormatError, TypeError, ValueError):
        return None


def native_type(series: Any) -> str:
    """What Arrow does not tell of the type of a column: the words of pandas, or that polars has an Enum."""
    import narwhals as nw

    if series.implementation.is_pandas():
        import pandas as pd

        dtype = series.to_native().dtype
        if isinstance(dtype, pd.ArrowDtype):
            return "arrow"
        if isinstance(dtype, pd.StringDtype) and str(dtype) == "string":
            return f"string[{dtype.storage}]"
        return str(dtype)
    return "enum" if series.implementation.is_polars() and series.dtype == nw.Enum else ""


def parse_type(text: str) -> Any:
    """The type of Arrow that is written so; nested types, bytes and extensions are none of these."""
    import pyarrow as pa

    if coded := re.fullmatch(r"dictionary<values=(.+), indices=(u?int\d+), ordered=([01])>", text):
        values, indices, ordered = coded.groups()
        return pa.dictionary(pa.type_for_alias(indices), parse_type(values), ordered == "1")
    if zoned := re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=(.+)\]", text):
        return pa.timestamp(*zoned.groups())
    if decimal := re.fullmatch(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)", text):
        bits, precision, scale = map(int, decimal.groups())
        return getattr(pa, f"decimal{bits}")(precision, scale)
    try:
        found = pa.type_for_alias(text)
    except ValueError:
        found = None
    if found is None or pa.types.is_binary(found) or pa.types.is_large_binary(found):
        raise FileFormatError(f"there is no type {shortened(text)} of a column.")
    return found


def is_number(kind: Any) -> bool:
    """Whether values of this type of Arrow have an order and a distance, or there are none."""
    import pyarrow as pa

    types = pa.types
    plain = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return bool(plain or is_time(kind) or types.is_null(kind))


def is_time(kind: Any) -> bool:
    """Whether these are points or lengths of time."""
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind))


def make_native(backend: str, columns: Mapping[str, Any], natives: Mapping[str, str]) -> Any:
    """A frame of the library from columns of Arrow, in the types that `native_type` wrote."""
    import pyarrow as pa

    table = pa.table(dict(columns))
    if backend == "pyarrow":
        return table
    if backend == "polars":
        import polars as pl

        made = {name: _polars_series(pl, name, column, natives[name]) for name, column in columns.items()}
        return pl.DataFrame(made)
    import pandas as pd

    return pd.DataFrame({name: _pandas_series(pd, column, natives[name]) for name, column in columns.items()})


def check_native(backend: str, arrow: str, native: str) -> None:
    """FileFormatError where the library of frames has no such type; one not installed is not asked."""
    known = native in ("", "enum") if backend == "polars" else not native or backend == "pandas"
    if backend == "pandas" and find_spec("pandas") is not None:
        import pandas as pd
        import pyarrow as pa

        try:
            _pandas_series(pd, pa.chunked_array([], parse_type(arrow)), native)
        except (ImportError, MemoryError):  # types of another package, which may be there at the release
            known = True
        except Exception:  # whatever pandas, NumPy or a type of pandas raises
            known = False
    if not known:
        raise FileFormatError(f"{backend} has no type {shortened(native)} for a column of {arrow}.")


def _polars_series(pl: Any, name: str, column: Any, native: str) -> Any:
    made = pl.Series(name, column)
    return made.cast(pl.Enum(column.dictionary.to_pylist())) if native == "enum" else made


def _pandas_series(pd: Any, column: Any, native: str) -> Any:
    """A column of pandas: through Arrow's own where the type is one, else through NumPy or objects."""
    import pyarrow as pa

    if native == "category":
        return column.to_pandas()
    if native == "arrow":
        return pd.Series(pd.array(column, dtype=pd.ArrowDtype(column.type)))
    if column.null_count and native[:1] in "IU" and pa.types.is_integer(column.type):
        # Through floats, large numbers would be rounded.
        return column.to_pandas(integer_object_nulls=True).astype(native)
    return column.to_pandas().astype(native)
