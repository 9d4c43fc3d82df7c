"""What `pfunnel audit` reads: a release of any kind, private columns, records, reconstructions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import DataFileError, InvalidInputError
from . import options
from .records import is_idx, is_npz, private_values, read_images, read_npz, read_records, table_records
from .spelling import numbers_say_all

if TYPE_CHECKING:
    from ..files import TableFile
    from ..mechanism import TableMechanism

#: More different texts than this in a column are taken for names, not for categories; so are, in a release,
#: more than the second number that fewer than ten records share on average: what they tell is not learnt.
MOST_TEXTS, FEW_TEXTS = 1000, 32


@dataclass(frozen=True)
class Sources:
    """The files of an audit, and which of their columns are what."""

    release: str
    data: str | None
    labels: str | None
    reconstruction: str | None
    private: tuple[str, ...]
    task: tuple[str, ...]
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    public: tuple[str, ...]
    delimiter: str | None

    @property
    def files(self) -> list[str]:
        """All that is read."""
        return [one for one in (self.release, self.data, self.labels, self.reconstruction) if one is not None]

    def not_attacked(self) -> list[str]:
        """Columns or arrays of a file of codes that no adversary sees: private, dropped, or not asked for."""
        if os.path.isdir(self.release) or self.release.lower().endswith(".json") or is_idx(self.release):
            return []
        there = column_names(self.release, self.delimiter)
        if is_npz(self.release):
            return [name for name in there if name != "z"]
        return [name for name in there if name in (*self.private, *self.task, *self.drop)]

    def read(self) -> dict[str, Any]:
        """The arguments of `privacyfunnel.audit`."""
        for path in self.files:
            if not os.path.exists(path):
                raise DataFileError(f"{path}: there is no such file or folder; check the name.")
        if self.public and not self.release.lower().endswith(".json"):
            raise InvalidInputError("--public belongs to a mechanism of 'pfunnel solve'; leave it out.")
        found = self._read()
        self._check_lengths(found)
        return found

    def _check_lengths(self, found: Mapping[str, Any]) -> None:
        """One record a row in every file: a sentence that names the file beats one that names an array."""
        places = {"Z": self.release, "X": self.data, "X_hat": self.reconstruction, "private": self.labels}
        sizes = {key: _length(value) for key, value in found.items() if key != "mechanism"}
        first = next(iter(sizes))
        for key, size in sizes.items():
            if size != sizes[first]:
                here, there = (places.get(one) or self.data or self.release for one in (key, first))
                raise InvalidInputError(
                    f"{here}: there are {size:,} values of {key} here, and {sizes[first]:,} of {first} in "
                    f"{there}; they must be the same records in the same order."
                )

    def _read(self) -> dict[str, Any]:
        if os.path.isdir(self.release):
            return self._of_model()
        if self.release.lower().endswith(".json"):
            return self._of_mechanism()
        found = {"Z": self._matrix(self.release, "z", released=True)}
        for key, path, array in (("X", self.data, "x"), ("X_hat", self.reconstruction, "x_hat")):
            if path is not None:
                found[key] = self._matrix(path, array)
            elif is_npz(self.release) and array in npz_names(self.release):
                found[key] = read_npz(self.release, array).x
        return {**found, **self._columns([self.release, self.data])}

    def _of_model(self) -> dict[str, Any]:
        data = self._needed_data("the model releases codes of")
        model = options.load_estimator(self.release)
        names = getattr(model, "feature_names_in_", None)
        if is_npz(data) or is_idx(data):
            x = read_npz(data, "x").x if is_npz(data) else read_images(data)
            if x[0].size != model.n_features_in_:
                raise InvalidInputError(
                    f"{data}: a record has {x[0].size} values and the model is for {model.n_features_in_}; "
                    "use data of the kind that it was fitted on."
                )
        elif names is None:
            x = self._matrix(data, "x")
        else:
            import pyarrow as pa

            table = self._table(data)
            table.require([str(name) for name in names])
            x = pa.concat_tables([part.x for part in table_records(table, [str(name) for name in names])])
        return {"mechanism": model, "X": x, **self._columns([data])}

    def _of_mechanism(self) -> dict[str, Any]:
        from ..mechanism import TableMechanism
        from ..persistence import load

        mechanism = load(self.release)
        if not isinstance(mechanism, TableMechanism):
            raise InvalidInputError(
                f"{self.release}: this is a {type(mechanism).__name__}; name a mechanism, a model folder, an "
                "audit or a file of codes."
            )
        data = self._needed_data("the mechanism releases")
        table = self._table(data)
        x = letters(table, mechanism, self.public or mechanism.x_names)
        columns = self._columns([data], mechanism.private_names)
        return {"mechanism": mechanism, "X": x, **columns}

    def _needed_data(self, what: str) -> str:
        if self.data is None:
            raise InvalidInputError(f"{self.release}: pass the records that {what} with --data FILE.")
        return self.data

    def _table(self, path: str) -> TableFile:
        from ..files import open_table

        return open_table(path, delimiter=self.delimiter)

    def _columns(self, files: Sequence[str | None], names: Sequence[str] = ()) -> dict[str, Any]:
        """The private columns and tasks, from --labels or the first of the files that has them."""
        places = [self.labels] if self.labels is not None else [one for one in files if one is not None]
        private = self.private or tuple(names)
        if not private and all(is_npz(one) or is_idx(one) for one in places):
            private = ("y",)
        if not private:
            raise InvalidInputError(
                f"{places[-1]}: which column is private? Name it with --private COLUMN (and its file with "
                "--labels FILE, if it is another one)."
            )
        if both := [name for name in self.keep if name in private]:
            raise InvalidInputError(f"{both[0]!r} is private; it cannot be kept beside the release.")
        found = {"private": self._named(places, private)}
        if self.task:
            found["task"] = self._named(places, self.task)
        if self.keep:
            found["keep"] = self._kept([one for one in files if one is not None])
        return found

    def _kept(self, places: Sequence[str]) -> dict[str, Any]:
        """The columns that are handed out beside the release, from the first file that has them all."""
        tables = [one for one in places if not (is_npz(one) or is_idx(one))]
        if not tables:
            raise InvalidInputError(f"{places[0]}: --keep belongs to CSV and Parquet files; leave it out.")
        for path in tables[:-1]:
            if set(self.keep) <= set(column_names(path, self.delimiter)):
                return read_kept(self._table(path), self.keep)
        return read_kept(self._table(tables[-1]), self.keep)

    def _named(self, places: Sequence[str], names: Sequence[str]) -> dict[str, Any]:
        for path in places[:-1]:
            if set(names) <= set(column_names(path, self.delimiter)):
                return read_columns(path, names, self.delimiter)
        return read_columns(places[-1], names, self.delimiter)

    def _matrix(self, path: str, array: str, *, released: bool = False) -> Any:
        """Records or codes of a file: what is neither private, nor a task, nor dropped."""
        if is_npz(path):
            return read_npz(path, array, as_written=True).x
        if is_idx(path):
            return read_images(path)
        leave_out = (*self.private, *self.task, *self.drop, *self.keep)
        return read_matrix(self._table(path), leave_out, released)


def _length(value: Any) -> int:
    if isinstance(value, dict):
        return len(next(iter(value.values())))
    return int(value.num_rows) if hasattr(value, "num_rows") else len(value)


def npz_names(path: str) -> list[str]:
    """The names of the arrays of an .npz file."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as file:
            return [name.removesuffix(".npy") for name in file.namelist()]
    except (OSError, zipfile.BadZipFile):
        return []  # reading an array says what is wrong


def column_names(path: str, delimiter: str | None) -> Sequence[str]:
    """What may be private in a file."""
    if is_npz(path):
        return npz_names(path)
    if is_idx(path):
        return ("y",)
    from ..files import open_table

    return open_table(path, delimiter=delimiter).columns


def read_columns(path: str, names: Sequence[str], delimiter: str | None) -> dict[str, Any]:
    """Columns of labels or numbers, by name."""
    import numpy as np

    if is_npz(path):
        there = npz_names(path)
        if there and (missing := [name for name in names if name not in there]):
            raise InvalidInputError(
                f"{path}: there is no array {missing[0]!r} in the file (it holds {', '.join(there)}); name "
                "the private array with --private, or its file with --labels."
            )
        # Any array of the file will do as the records: only the columns are kept.
        return _flat(path, read_npz(path, _first_numbers(path, there), names).private)
    if is_idx(path):
        found = read_records(path, names).private
        if not found:
            raise InvalidInputError(f"{path}: there are no labels beside the images; name their file.")
        return found
    from ..files import open_table

    table = open_table(path, delimiter=delimiter)
    parts = list(table.batches(list(names)))
    columns = {}
    for name in names:
        values = [part.column(name).to_numpy(zero_copy_only=False) for part in parts]
        columns[name] = private_values(path, name, np.concatenate(values) if values else np.empty(0))
    return columns


def read_kept(table: TableFile, names: Sequence[str]) -> dict[str, Any]:
    """Columns as they are handed out: numbers where they say all, else texts."""
    import numpy as np
    import pyarrow as pa

    whole = pa.Table.from_batches(list(table.batches(list(names))), schema=table.schema(names))
    columns: dict[str, Any] = {}
    for name in names:
        column = whole.column(name)
        if pa.types.is_nested(column.type):
            raise InvalidInputError(
                f"{table.path}: column {name!r} holds {column.type}, not single values; what it tells cannot "
                "be measured."
            )
        try:
            values = column.cast(pa.float64()).to_numpy()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            values = np.array([np.nan])
        plain = np.isfinite(values).all() and not _has_negative_zero(values)
        columns[name] = values if plain and numbers_say_all(column, values) else _texts(column)
    return columns


def _first_numbers(path: str, names: Sequence[str]) -> str:
    """An array that `read_npz` takes for records."""
    return next((name for name in ("z", "x", "x_hat") if name in names), names[0] if names else "z")


def _flat(path: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    for name, values in columns.items():
        if values.ndim != 1:
            raise InvalidInputError(
                f"{path}: the array {name!r} must hold one value a record; its shape is {values.shape}."
            )
    return dict(columns)


def read_matrix(table: TableFile, leave_out: Sequence[str], released: bool) -> Any:
    """A table as numbers: texts become one column a category; a single column of symbols stays one.

    Of what is released, numbers that are written in several ways are texts.
    """
    import numpy as np
    import pyarrow as pa

    from ..audit.rounding import LEAST_RECORDS

    names = [name for name in table.columns if name not in leave_out]
    if not names:
        raise InvalidInputError(f"{table.path}: no column is left; name fewer in --private and --drop.")
    whole = pa.Table.from_batches(list(table.batches(names)), schema=table.schema(names))
    if not whole.num_rows:
        raise InvalidInputError(f"{table.path}: there are no records in this file.")
    columns = [_column(table.path, name, whole.column(name), released) for name in names]
    if len(columns) == 1 and _are_symbols(columns[0]):
        only = columns[0]
        return only if only.dtype.kind == "U" else only.astype(np.int64)
    most = min(MOST_TEXTS, max(FEW_TEXTS, whole.num_rows // LEAST_RECORDS)) if released else MOST_TEXTS
    return np.column_stack([_indicators(table.path, *one, most) for one in zip(names, columns, strict=True)])


def _column(path: str, name: str, column: Any, released: bool) -> Any:
    """Finite numbers where all values are, else texts."""
    import numpy as np
    import pyarrow as pa

    from ..audit.adversaries.bounds import LARGEST

    try:
        values = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return _texts(column)
    finite = np.isfinite(values)
    if not finite.all():
        raise InvalidInputError(
            f"{path}: record {int(np.argmin(finite)) + 1:,} has no finite number in column {name!r}; fill it "
            "in, or drop the record."
        )
    small = np.abs(values) <= LARGEST
    if not small.all():
        row = int(np.argmin(small))
        raise InvalidInputError(
            f"{path}: record {row + 1:,} has {values[row]:g} in column {name!r}, beyond ±{LARGEST:g}; "
            "release the column in another unit."
        )
    return _texts(column) if released and not numbers_say_all(column, values) else values


def _texts(column: Any) -> Any:
    """A text for each value, another one for every other: a missing one is not empty, a NUL is not lost."""
    import numpy as np

    return np.array([repr(value) for value in column.to_pylist()])


def _are_symbols(values: Any) -> bool:
    """Texts, or whole numbers that stay apart as such."""
    import numpy as np

    if values.dtype.kind == "U":
        return True
    return bool(np.array_equal(values, np.rint(values))) and not _has_negative_zero(values)


def _has_negative_zero(values: Any) -> bool:
    import numpy as np

    return bool((np.signbit(values) & (values == 0)).any())


def _indicators(path: str, name: str, values: Any, most: int) -> Any:
    import numpy as np

    if values.dtype.kind != "U":
        return values
    found, numbers = np.unique(values, return_inverse=True)
    if len(found) > most:
        raise InvalidInputError(
            f"{path}: column {name!r} has {len(found):,} different texts (or numbers that are written in "
            "several ways), which name people rather than describe them; if it is not released, leave it out "
            f"with --drop {name}."
        )
    return np.eye(len(found))[numbers]


def letters(table: TableFile, mechanism: TableMechanism, names: Sequence[str]) -> list[Any]:
    """The letter of each record; in a CSV file, where all is text, the letter that looks like it."""
    from ..files import CsvFile

    table.require(names)
    known = {_as_text(letter): letter for letter in mechanism.x_labels} if isinstance(table, CsvFile) else {}
    found: list[Any] = []
    for batch in table.batches(list(names), letters=names):
        rows = zip(*[column.to_pylist() for column in batch.columns], strict=True)
        values = [row if len(names) > 1 else row[0] for row in rows]
        found += [known.get(value, value) for value in values]
    return found


def _as_text(letter: Any) -> Any:
    if isinstance(letter, tuple):
        return tuple(map(_as_text, letter))
    return letter if letter is None else str(letter)
