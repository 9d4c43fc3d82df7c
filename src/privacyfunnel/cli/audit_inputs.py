"""What `pfunnel audit` reads: a release of any kind, private columns, records, reconstructions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import DataFileError, InvalidInputError
from .checks import check_delimiter, check_width, is_csv, load_estimator

if TYPE_CHECKING:
    from ..files import RecordFile, TableFile
    from ..mechanism import TableMechanism


@dataclass(frozen=True)
class Sources:
    """The files of an audit, and which of their columns are what."""

    release: str
    delimiter: str | None
    data: str | None
    labels: str | None
    reconstruction: str | None
    private: tuple[str, ...]
    numeric: tuple[str, ...]
    task: tuple[str, ...]
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    public: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """All that is read."""
        return [one for one in (self.release, self.data, self.labels, self.reconstruction) if one is not None]

    def not_attacked(self) -> list[str]:
        """Columns or arrays of a file of codes that no adversary sees: private, dropped, or not asked for."""
        from ..files.records import is_idx, is_npz

        if self.release.lower().endswith(".json") or is_idx(self.release):
            return []
        there = self._open(self.release).columns
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
        check_delimiter(self.delimiter, self.files)
        found = self._read()
        self._check_lengths(found)
        return {**found, "numeric": self.numeric or None}

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
            elif self._open(self.release).table is None and array in self._open(self.release).columns:
                found[key] = self._open(self.release).matrix(array)
        return {**found, **self._columns([self.release, self.data])}

    def _of_model(self) -> dict[str, Any]:
        data = self._needed_data("the model releases codes of")
        model = load_estimator(self.release)
        source = self._open(data)
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        if source.table is None:
            x = source.matrix("x")
            check_width(data, x, model)
        elif not names:
            x = self._matrix(data, "x")
        else:
            import pyarrow as pa

            source.table.require(names)
            x = pa.concat_tables([part.x for part in source.parts("x", names)])
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
        x = letters(self._table(data), mechanism, self.public or mechanism.x_names)
        columns = self._columns([data], mechanism.private_names)
        return {"mechanism": mechanism, "X": x, **columns}

    def _needed_data(self, what: str) -> str:
        if self.data is None:
            raise InvalidInputError(f"{self.release}: pass the records that {what} with --data FILE.")
        return self.data

    def _table(self, path: str) -> TableFile:
        from ..files import open_table

        return open_table(path, delimiter=self.delimiter if is_csv(path) else None)

    def _open(self, path: str) -> RecordFile:
        from ..files import open_records

        return open_records(path, delimiter=self.delimiter if is_csv(path) else None)

    def _columns(self, files: Sequence[str | None], names: Sequence[str] = ()) -> dict[str, Any]:
        """The private columns and tasks, from --labels or the first of the files that has them."""
        there = [self._open(one) for one in files if one is not None]
        places = there if self.labels is None else [self._open(self.labels)]
        private = self.private or tuple(names)
        if not private and all(one.private for one in places):
            private = places[0].private
        if not private:
            raise InvalidInputError(
                f"{places[-1].path}: which column is private? Name it with --private COLUMN (and its file "
                "with --labels FILE, if it is another one)."
            )
        if both := [name for name in self.keep if name in private]:
            raise InvalidInputError(f"{both[0]!r} is private; it cannot be kept beside the release.")
        found = {"private": _holding(places, private).values(private)}
        if self.task:
            found["task"] = _holding(places, self.task).values(self.task)
        if self.keep:
            tables = [one for one in there if one.table is not None]
            found["keep"] = _holding(tables or there, self.keep).kept(self.keep)
        return found

    def _matrix(self, path: str, array: str, *, released: bool = False) -> Any:
        """Records or codes of a file: what is neither private, nor a task, nor dropped."""
        leave_out = (*self.private, *self.task, *self.drop, *self.keep)
        return self._open(path).matrix(array, leave_out, released=released, as_written=True)


def _holding(places: Sequence[RecordFile], names: Sequence[str]) -> RecordFile:
    """The first file that has all these columns, or the last, which says what it lacks."""
    return next((one for one in places if set(names) <= set(one.columns)), places[-1])


def _length(value: Any) -> int:
    if isinstance(value, dict):
        return len(next(iter(value.values())))
    return int(value.num_rows) if hasattr(value, "num_rows") else len(value)


def letters(table: TableFile, mechanism: TableMechanism, names: Sequence[str]) -> list[Any]:
    """The letter of each record; in a CSV file, where all is text, the letter that looks like it."""
    from ..alphabet import as_text
    from ..files import CsvFile

    table.require(names)
    known = {as_text(letter): letter for letter in mechanism.x_labels} if isinstance(table, CsvFile) else {}
    found: list[Any] = []
    for batch in table.batches(list(names), letters=names):
        rows = zip(*[column.to_pylist() for column in batch.columns], strict=True)
        values = [row if len(names) > 1 else row[0] for row in rows]
        found += [known.get(value, value) for value in values]
    return found
