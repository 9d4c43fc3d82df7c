"""A table in parts: the Parquet files of a folder, or those that a pattern such as data/*.parquet names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import DataFileError, InvalidInputError, shortened
from ..progress import Report
from .base import TableFile
from .parquet_files import ParquetFile


def is_parts(path: str) -> bool:
    """Whether this names several files: a folder, or a pattern that is no file itself."""
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


class PartsFile(TableFile):
    """Parquet files, one after the other in the order of their names.

    Each must have the columns that are read, with the types of the first; where a part has no value at all
    in a column, its type does not matter.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.parts = [ParquetFile(name) for name in _names(path)]
        self.columns = self.parts[0].columns

    def require(self, columns: Sequence[str]) -> None:
        for part in self.parts:
            part.require(columns)

    def schema(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        names = list(self.columns if columns is None else columns)
        self.require(names)
        fields = []
        for name in names:
            kinds = [(part, part.schema([name]).field(0).type) for part in self.parts]
            first, kind = next((both for both in kinds if not pa.types.is_null(both[1])), kinds[0])
            for part, other in kinds:
                if other != kind and not pa.types.is_null(other):
                    raise InvalidInputError(
                        f"{part.path}: column {shortened(name)} is {other} here and {kind} in {first.path}; "
                        "write all parts with the same types."
                    )
            fields.append(pa.field(name, kind))
        return pa.schema(fields)

    def _batches(self, columns: list[str], letters: Sequence[str], report: Report) -> Iterator[Any]:
        schema = self.schema(columns)
        for number, part in enumerate(self.parts):
            for batch in part.batches(columns, letters=letters):
                yield batch.cast(schema)
            report(number + 1, len(self.parts))


def _names(path: str) -> list[str]:
    """The files, sorted; hidden ones and those of other programs (_SUCCESS) are none."""
    pattern = os.path.join(glob.escape(path), "*.parquet") if os.path.isdir(path) else path
    found = sorted(glob.glob(pattern, recursive=True))
    seen = [name for name in found if os.path.basename(name)[:1] not in ("", ".", "_")]
    found = [name for name in seen if os.path.isfile(name)]
    for name in seen:  # nothing that looks like a part is left out in silence
        if not os.path.exists(name):
            raise DataFileError(f"{name}: this link leads to no file; mend it, or remove it.")
        folder = name.lower().endswith(".parquet") and os.path.isdir(name)
        if folder and not any(part.startswith(name + os.sep) for part in found):
            raise DataFileError(f"{name}: this part is a folder; name its files too, with a pattern.")
    if not found and os.path.isdir(path):
        raise DataFileError(f"{path}: this is a folder; name a file in it, or one that has .parquet files.")
    if not found:
        raise DataFileError(f"{path}: no file has such a name; check the pattern.")
    if wrong := [name for name in found if not name.lower().endswith(".parquet")]:
        raise InvalidInputError(
            f"{wrong[0]}: only .parquet files can be parts of a table; put the others together first."
        )
    return found
