"""Data frames in whichever library the user has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InvalidInputError


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
