"""Records of numbers for the learned commands: .npz, CSV, Parquet and IDX files, and what is written."""

from __future__ import annotations

import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataFileError, InvalidInputError, shortened

if TYPE_CHECKING:
    from ..files import TableFile

_REMEDY = "encode it as numbers first (for example one column a category), or leave it out with --drop"

# What helps 'pfunnel encode' and 'pfunnel decode' where memory is short.
PARTS = "give them as CSV or Parquet, which is read and written in parts"

_WHOLE = re.compile(r"\s*[+-]?[0-9]+\s*")
# Not with zeros in front, which a code has and a number has not; what is not finite is refused later.
_NUMBER = re.compile(
    r"\s*[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|nan|inf|infinity)\s*",
    re.ASCII | re.IGNORECASE,
)


@dataclass
class Records:
    """Some records: X as an array or (with names) a pyarrow table, and private columns by name."""

    x: Any
    private: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.x.num_rows) if hasattr(self.x, "num_rows") else len(self.x)


@contextmanager
def enough_memory(path: str, remedy: str) -> Iterator[None]:
    """One sentence with the remedy where the memory, the GPU's too, does not suffice for the records."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch has no class of its own for it on the CPU
        if isinstance(error, RuntimeError) and not re.search("allocate memory|out of memory", str(error)):
            raise
        raise InvalidInputError(f"{path}: there is not enough memory for these records; {remedy}.") from None


def is_npz(path: str) -> bool:
    return path.lower().endswith(".npz")


def is_idx(path: str) -> bool:
    name = os.path.basename(path).lower().removesuffix(".gz")
    return os.path.isdir(path) or ("idx" in name and name.endswith(("-ubyte", ".idx")))


def check_options(
    path: str, delimiter: str | None, private: Sequence[str] = (), drop: Sequence[str] = ()
) -> None:
    """Refuse, before any work, options that the kind of file has no use for or that contradict each other."""
    from ..files import file_kind

    arrays = is_npz(path) or is_idx(path)
    if drop and arrays:
        raise InvalidInputError(f"{path}: --drop belongs to CSV and Parquet files; leave it out.")
    if delimiter is not None and (arrays or file_kind(path)[0] == ".parquet"):
        raise InvalidInputError(f"{path}: --delimiter belongs to CSV files; leave it out.")
    if both := [name for name in private if name in drop]:
        raise InvalidInputError(
            f"{path}: column {shortened(both[0])} is in both --private and --drop; name it in one of them "
            "(a private column is never part of X)."
        )


def read_records(
    path: str, private: Sequence[str], drop: Sequence[str] = (), delimiter: str | None = None
) -> Records:
    """All records of a file, for fitting."""
    if is_npz(path):
        return read_npz(path, "x", private or ["y"])
    if is_idx(path):
        return _read_idx(path, private)
    from ..files import open_table

    table = open_table(path, delimiter=delimiter)
    table.require([*private, *drop])
    names = [name for name in table.columns if name not in (*private, *drop)]
    if not names:
        raise InvalidInputError(f"{path}: no column is left for X; name fewer in --private and --drop.")
    parts = list(table_records(table, names, private))
    import numpy as np
    import pyarrow as pa

    columns = {name: np.concatenate([part.private[name] for part in parts]) for name in private}
    return Records(
        pa.concat_tables([part.x for part in parts]),
        {name: private_values(path, name, values) for name, values in columns.items()},
    )


def table_records(table: TableFile, names: Sequence[str], private: Sequence[str] = ()) -> Iterator[Records]:
    """The records of a CSV or Parquet file in batches: the named columns as numbers, others as they are."""
    import pyarrow as pa

    from ..progress import progress_bar

    done = 0
    wanted = list(dict.fromkeys([*names, *private]))
    with progress_bar(f"Reading {os.path.basename(table.path)}") as report:
        for batch in table.batches(wanted, report=report):
            columns = {name: _numbers(table.path, name, batch.column(name), done) for name in names}
            texts = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in private}
            done += batch.num_rows
            if batch.num_rows:
                yield Records(pa.table(columns), texts)
    if not done:
        raise InvalidInputError(f"{table.path}: there are no records in this file.")


def _numbers(path: str, name: str, column: Any, done: int) -> Any:
    """A column as float32, or a sentence about the first record that is no finite number."""
    import numpy as np
    import pyarrow as pa

    try:
        values = column.cast(pa.float64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        at, value = _first_text(column)
        raise InvalidInputError(
            f"{path}: column {shortened(name)} does not hold numbers (record {done + at + 1:,} has "
            f"{shortened(value)}); {_REMEDY} {name}."
        ) from None
    with np.errstate(over="ignore"):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float32)
    finite = np.isfinite(numbers)
    if not finite.all():
        at = int(np.argmin(finite))
        what = "no value" if column[at].as_py() is None else shortened(column[at].as_py())
        raise InvalidInputError(
            f"{path}: record {done + at + 1:,} has {what} in column {shortened(name)}; fill it in, or drop "
            "the record."
        )
    return numbers


def _first_text(column: Any) -> tuple[int, Any]:
    for at, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return at, value
    return 0, column[0].as_py()


def private_values(path: str, name: str, values: Any) -> Any:
    """A private column: whole numbers or numbers where every value is written as one, else texts."""
    import numpy as np

    values = single_values(path, name, values)
    if values.dtype.kind != "O":
        return values
    distinct = set(values.tolist())
    if all(isinstance(value, Decimal) for value in distinct):
        if any(value.as_tuple().exponent < 0 for value in distinct):
            return values.astype(np.float64)
        # Without decimal places they may be long identifiers, which a float64 would round.
        values = np.array([f"{value:f}" for value in values], dtype=object)
        distinct = set(values.tolist())
    if not all(isinstance(value, str) for value in distinct):
        return values.astype(str)
    if all(map(_WHOLE.fullmatch, distinct)):
        return values.astype(np.int64 if all(map(_is_int64, distinct)) else str)
    return values.astype(np.float64 if all(map(_NUMBER.fullmatch, distinct)) else str)


def single_values(path: str, name: str, values: Any, done: int = 0) -> Any:
    """A private column in which every record has one value; bytes are the text that they hold."""
    import numpy as np

    for at, value in enumerate(values):
        if isinstance(value, (list, dict, np.ndarray)):
            raise InvalidInputError(
                f"{path}: record {done + at + 1:,} has several values in the private column "
                f"{shortened(name)}; write each of them into a column of its own."
            )
        if value is None or value != value:
            raise InvalidInputError(
                f"{path}: record {done + at + 1:,} has no value in the private column {shortened(name)}; "
                "give it a class of its own, or drop the record."
            )
    if not len(values) or not isinstance(values[0], bytes):
        return values
    try:
        return np.array([value.decode() for value in values], dtype=object)
    except UnicodeDecodeError:
        raise InvalidInputError(
            f"{path}: the private column {shortened(name)} holds bytes that are no text; encode it as "
            "texts or numbers first."
        ) from None


def _is_int64(text: str) -> bool:
    """Whether a whole number is written as Python would, so that nothing is lost as int64: not 007 or +7."""
    return len(text) <= 20 and str(int(text)) == text and -(2**63) <= int(text) < 2**63


def read_npz(path: str, array: str, private: Sequence[str] = (), *, as_written: bool = False) -> Records:
    """The named array of an .npz file, without executing anything, and private ones that are there.

    Its numbers become 32-bit ones, as models take them, unless every digit counts (`as_written`).
    """
    import numpy as np

    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            if array not in file:
                found = ", ".join(file.files) or "none"
                raise InvalidInputError(
                    f"{path}: there is no array {shortened(array)} in the file (it holds {found}); save it "
                    "under this name."
                )
            x = _member(file, array)
            columns = {name: _member(file, name) for name in private if name in file}
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
            f"{path}: this is no .npz file with plain arrays, or a damaged one ({reason}); write it again "
            "with numpy.savez."
        ) from None
    return Records(_finite(path, array, x, as_written), columns)


def _member(file: Any, name: str) -> Any:
    """An array of an .npz file. NumPy gives the bytes of a member that is none."""
    import numpy as np

    values = file[name]
    if not isinstance(values, np.ndarray):
        raise ValueError(f"its member {name!r} is no array")
    return values


def _finite(path: str, name: str, x: Any, as_written: bool) -> Any:
    import numpy as np

    if x.dtype.kind not in "biuf":
        raise InvalidInputError(
            f"{path}: the array {shortened(name)} does not hold numbers; encode it as numbers first."
        )
    if x.ndim < 2 or not x.size:
        raise InvalidInputError(
            f"{path}: the array {shortened(name)} must have a row for each record; its shape is {x.shape}."
        )
    with np.errstate(over="ignore"):
        numbers = x if as_written else x.astype(np.float32)
    finite = np.isfinite(numbers).reshape(len(x), -1).all(axis=1)
    if not finite.all():
        raise InvalidInputError(
            f"{path}: record {int(np.argmin(finite)) + 1:,} of the array {shortened(name)} holds a value "
            "that is no finite number; fill it in, or drop the record."
        )
    return numbers


def _read_idx(path: str, private: Sequence[str]) -> Records:
    """Images in [0, 1] of an IDX file, or of a folder with train-images…; labels from beside them."""
    images = _images_file(path)
    data = Records(read_images(str(images)))
    labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    names = [labels, labels.with_name(labels.name.removesuffix(".gz")), labels.with_name(f"{labels.name}.gz")]
    found = next((name for name in names if name != images and name.exists()), None)
    if found is not None:
        from ..datasets.images import read_idx

        data.private = {(private or ["y"])[0]: read_idx(found)}
    return data


def read_images(path: str) -> Any:
    """Images as floats; bytes from 0 to 255 become numbers in [0, 1]."""
    import numpy as np

    from ..datasets.images import read_idx

    file = str(_images_file(path))
    images = read_idx(file)
    x = _finite(file, "images", images, as_written=False)
    return x / np.float32(255) if images.dtype == np.uint8 else x


def _images_file(path: str) -> Path:
    if not os.path.isdir(path):
        return Path(path)
    for name in ("train-images-idx3-ubyte", "train-images-idx3-ubyte.gz"):
        if os.path.exists(os.path.join(path, name)):
            return Path(path, name)
    raise DataFileError(
        f"{path}: there is no train-images-idx3-ubyte (or .gz) in this folder; name the file with the images."
    )


def check_kind(path: str) -> None:
    """Refuse, before any work, an output of an unknown kind."""
    from ..files import file_kind

    if is_npz(path):
        return
    try:
        file_kind(path)
    except InvalidInputError:
        raise InvalidInputError(
            f"{path}: the name must end in .npz, .csv, .tsv (both also .gz) or .parquet, which says what the "
            "file is; choose another name."
        ) from None


def write_records(
    path: str,
    array: str,
    names: Sequence[str],
    parts: Iterator[Any],
    *,
    spreadsheet_safe: bool = False,
    shuffle: bool = False,
    rng: Any = None,
) -> int:
    """Write arrays as one table or as one array of an .npz file; how many records there were.

    The last three are those of `open_writer`.
    """
    n_records = 0
    if is_npz(path):
        import io

        import numpy as np

        from ..persistence import write_atomic
        from ..sampling import random_order

        whole = np.concatenate(list(parts))
        if shuffle:
            whole = whole[random_order(len(whole), rng)]
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {array: whole}
        np.savez(buffer, **arrays)
        write_atomic(path, buffer.getvalue())
        return len(whole)
    import pyarrow as pa

    from ..files import open_writer

    with open_writer(path, spreadsheet_safe=spreadsheet_safe, shuffle=shuffle, rng=rng) as writer:
        for part in parts:
            flat = part.reshape(len(part), -1)
            writer.write(pa.table({name: flat[:, j] for j, name in enumerate(names)}))
            n_records += len(part)
    return n_records
