"""Records of any kind of file, .npz, IDX, CSV or Parquet: numbers X (or codes Z), and columns beside them.

The one reader of the commands, of audits and of sweeps. What a private column *is*, classes or numbers, is
for `attributes.read_attributes` to say: here it keeps the values that the file has.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import DataFileError, InvalidInputError, shortened
from ..progress import progress_bar
from .as_written import read_kept, read_matrix
from .base import Path_, TableFile
from .idx import images_path, labels_path, read_idx
from .values import finite_array, labels, numbers


@dataclass
class Records:
    """Some records: X as an array or (with names) a pyarrow table, and private columns by name."""

    x: Any
    private: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.x.num_rows) if hasattr(self.x, "num_rows") else len(self.x)

    @property
    def array(self) -> Any:
        """X as an array, whatever it is."""
        if not hasattr(self.x, "num_rows"):
            return self.x
        return np.column_stack([column.to_numpy() for column in self.x.columns])


class RecordFile:
    """Records in a file."""

    path: str
    columns: tuple[str, ...]  # names to ask for: columns, arrays of an .npz file, the labels of images
    private: tuple[str, ...] = ()  # what is private where nobody says it
    table: TableFile | None = None  # the table that the file holds, if it does

    def records(
        self, private: Sequence[str] = (), drop: Sequence[str] = (), *, as_written: bool = False
    ) -> Records:
        """All records, for fitting: X is what is neither private nor dropped."""
        wanted = private or [name for name in self.private if name in self.columns]
        return Records(self.matrix("x", as_written=as_written), self.values(wanted) if wanted else {})

    def parts(self, array: str, names: Sequence[str] = (), private: Sequence[str] = ()) -> Iterator[Records]:
        """The records in parts: the named columns of a table, or the one array; private values unchanged."""
        yield Records(self.matrix(array), self.values(private) if private else {})

    def matrix(
        self, array: str, leave_out: Sequence[str] = (), *, released: bool = False, as_written: bool = False
    ) -> Any:
        """Records or codes as an array: the named one, or all columns of a table but some.

        Numbers are 32-bit ones, as models take them, unless every digit counts: `as_written`, or what is
        `released`, whose numbers are texts where they are written in several ways.
        """
        raise NotImplementedError

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns of labels or numbers, by name."""
        raise NotImplementedError

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns as they are handed out beside a release."""
        raise InvalidInputError(
            f"{self.path}: keep belongs to CSV and Parquet files; leave it out.", names=("keep",)
        )


def open_records(path: Path_, *, delimiter: str | None = None) -> RecordFile:
    """The records of a file, by its name; `delimiter` is for CSV."""
    name = os.fspath(path)
    if is_npz(name):
        return ArrayFile(name)
    if is_idx(name):
        return ImageFile(name)
    from . import open_table

    return ColumnFile(open_table(name, delimiter=delimiter))


def is_npz(path: str) -> bool:
    return path.lower().endswith(".npz")


def is_idx(path: str) -> bool:
    name = os.path.basename(path).lower().removesuffix(".gz")
    return os.path.isdir(path) or ("idx" in name and name.endswith(("-ubyte", ".idx")))


class ColumnFile(RecordFile):
    """The columns of a CSV or Parquet file."""

    table: TableFile

    def __init__(self, table: TableFile) -> None:
        self.table, self.path, self.columns = table, table.path, table.columns

    def records(
        self, private: Sequence[str] = (), drop: Sequence[str] = (), *, as_written: bool = False
    ) -> Records:
        import pyarrow as pa

        self.table.require([*private, *drop])
        names = [name for name in self.columns if name not in (*private, *drop)]
        if not names:
            raise InvalidInputError(
                f"{self.path}: no column is left for X; name fewer in private and drop.",
                names=("private", "drop"),
            )
        parts = list(self.parts("x", names, private))
        columns = {name: np.concatenate([part.private[name] for part in parts]) for name in private}
        return Records(
            pa.concat_tables([part.x for part in parts]),
            {name: labels(self.path, name, values) for name, values in columns.items()},
        )

    def parts(self, array: str, names: Sequence[str] = (), private: Sequence[str] = ()) -> Iterator[Records]:
        import pyarrow as pa

        done = 0
        wanted = list(dict.fromkeys([*names, *private]))
        with progress_bar(f"Reading {os.path.basename(self.path)}") as report:
            for batch in self.table.batches(wanted, report=report):
                columns = {name: numbers(self.path, name, batch.column(name), done) for name in names}
                texts = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in private}
                done += batch.num_rows
                if batch.num_rows:
                    yield Records(pa.table(columns), texts)
        if not done:
            raise InvalidInputError(f"{self.path}: there are no records in this file.")

    def matrix(
        self, array: str, leave_out: Sequence[str] = (), *, released: bool = False, as_written: bool = False
    ) -> Any:
        return read_matrix(self.table, leave_out, released=released)

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        parts = list(self.table.batches(list(names)))
        columns = {}
        for name in names:
            values = [part.column(name).to_numpy(zero_copy_only=False) for part in parts]
            columns[name] = labels(self.path, name, np.concatenate(values) if values else np.empty(0))
        return columns

    def kept(self, names: Sequence[str]) -> dict[str, Any]:
        return read_kept(self.table, names)


class ArrayFile(RecordFile):
    """The arrays of an .npz file, read without executing anything."""

    private = ("y",)

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with zipfile.ZipFile(path) as file:
                self.columns = tuple(name.removesuffix(".npy") for name in file.namelist())
        except (OSError, zipfile.BadZipFile):
            self.columns = ()  # reading an array says what is wrong

    def matrix(
        self, array: str, leave_out: Sequence[str] = (), *, released: bool = False, as_written: bool = False
    ) -> Any:
        (x,) = self._read([array])
        return finite_array(self.path, array, x, as_written=released or as_written)

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        found = dict(zip(names, self._read(names), strict=True))
        for name, values in found.items():
            if values.ndim != 1:
                raise InvalidInputError(
                    f"{self.path}: the array {shortened(name)} must hold one value a record; its shape is "
                    f"{values.shape}."
                )
        return found

    def _read(self, names: Sequence[str]) -> list[Any]:
        path = self.path
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                if absent := [name for name in names if name not in file]:
                    raise InvalidInputError(
                        f"{path}: there is no array {shortened(absent[0])} in the file (it holds "
                        f"{', '.join(file.files) or 'none'}); save it under this name, or name another one."
                    )
                return [_member(file, name) for name in names]
        except InvalidInputError:
            raise
        except FileNotFoundError:
            raise DataFileError(f"{path}: there is no such file; check the name.") from None
        # AttributeError and TypeError: a single array under this name.
        except (
            OSError,
            ValueError,
            EOFError,
            zipfile.BadZipFile,
            zlib.error,
            AttributeError,
            TypeError,
        ) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise DataFileError(
                f"{path}: this is no .npz file with plain arrays, or a damaged one ({reason}); write it "
                "again with numpy.savez."
            ) from None


def _member(file: Any, name: str) -> Any:
    """An array of an .npz file. NumPy gives the bytes of a member that is none."""
    values = file[name]
    if not isinstance(values, np.ndarray):
        raise ValueError(f"its member {name!r} is no array")
    return values


class ImageFile(RecordFile):
    """Images of an IDX file, or of a folder with train-images…; their labels are in a file beside them."""

    columns = private = ("y",)

    def __init__(self, path: str) -> None:
        self.path = path

    def records(
        self, private: Sequence[str] = (), drop: Sequence[str] = (), *, as_written: bool = False
    ) -> Records:
        there = labels_path(images_path(self.path)) is not None
        return Records(self.matrix("x"), self.values(private or self.private) if there else {})

    def matrix(
        self, array: str, leave_out: Sequence[str] = (), *, released: bool = False, as_written: bool = False
    ) -> Any:
        """Images as floats; bytes from 0 to 255 become numbers in [0, 1]."""
        file = images_path(self.path)
        images = read_idx(file)
        x = finite_array(str(file), "images", images)
        return x / np.float32(255) if images.dtype == np.uint8 else x

    def values(self, names: Sequence[str]) -> dict[str, Any]:
        """The labels, under the first of the names."""
        file = labels_path(images_path(self.path))
        if file is None:
            raise InvalidInputError(f"{self.path}: there are no labels beside the images; name their file.")
        return {names[0]: read_idx(file)}
