"""Store: the folder that a sweep's results go into, one small file a run.

Why files and not a database: a rename is atomic on every file system that a cluster shares, while SQLite's
write-ahead log needs shared memory and working locks, which network file systems do not give. After kill −9
there is nothing to recover: a result is there whole or not at all, and a leftover temporary file is ignored.
Two sweeps need no lock: the name of a result is the hash of what was computed, so they can only write the
same thing twice. The price is a few milliseconds a run for making it durable.

    sweep.json           the format and its version
    runs/<key>.json      a finished run: what was asked and the numbers
    failed/<key>.json    a run that raised an error; a finished run of the same key wins
    plans/<hash>.json    the keys that a sweep was asked for, so that `status` can tell what is left
    models/<key>/        what learned runs trained, so that it can be judged again; may be removed at any time
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import DataFileError, FileFormatError
from ..persistence import Path_, load_json, save_json
from .runs import Run

KIND, VERSION = "sweep-store", 1
_FOLDERS = ("runs", "failed", "plans")
_NAME = re.compile(r"([0-9a-f]{64})\.json")


class Store:
    """Results of sweeps in a folder, by the key of each run.

    Parameters
    ----------
    path : folder
    create : bool
        Make the folder if it is not there, and refuse one that cannot be written; otherwise it must exist.
    """

    def __init__(self, path: Path_, *, create: bool = False) -> None:
        self.path = Path(path)
        header = self.path / "sweep.json"
        if not header.exists():
            if not create:
                raise DataFileError(f"{self.path}: there is no sweep in this folder; check --store.")
            self._refuse_foreign()
        if create:
            self._make()
            if not header.exists():
                save_json(header, KIND, VERSION, {})
        kind, version, _ = load_json(header)
        if kind != KIND:
            raise FileFormatError(
                f"{header}: this is a {kind} and not a store of runs; choose another folder."
            )
        if version > VERSION:
            raise FileFormatError(
                f"{self.path}: this store has format version {version} and this library reads up to "
                f"{VERSION}; install a newer one, or choose another folder."
            )

    def _refuse_foreign(self) -> None:
        """Do not scatter files over a folder that holds something else."""
        if self.path.is_file():
            raise DataFileError(f"{self.path}: this is a file; name a folder for the runs.")
        # Folders of a store without its header: another sweep is making it, or was killed over it.
        own = {*_FOLDERS, "sweep.json", "models"}
        if self.path.is_dir() and any(
            not p.name.startswith(".") and p.name not in own for p in self.path.iterdir()
        ):
            raise DataFileError(
                f"{self.path}: this folder holds other things and no sweep; name a new or empty one."
            )

    def _make(self) -> None:
        try:
            for part in _FOLDERS:
                (self.path / part).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataFileError(
                f"{self.path}: cannot make the folder ({error.strerror or error}); choose one that may be "
                "written."
            ) from None
        for folder in (self.path, *(self.path / part for part in _FOLDERS)):
            if not os.access(folder, os.W_OK):
                raise DataFileError(
                    f"{folder}: the folder may not be written; choose another one or change its permissions."
                )

    @property
    def models(self) -> Path:
        """The folder of trained models, for the owner of the records: they tell how many have each class."""
        return self.path.absolute() / "models"

    def has(self, key: str) -> bool:
        """Whether the run is finished."""
        return (self.path / "runs" / f"{key}.json").exists()

    def has_failed(self, key: str) -> bool:
        """Whether the run was tried, failed, and has not been finished since."""
        return (self.path / "failed" / f"{key}.json").exists() and not self.has(key)

    def write(self, key: str, run: Run, values: Mapping[str, Any], seconds: float) -> None:
        """Add a finished run; it appears whole or not at all."""
        content = {"run": run.to_dict(), "values": dict(values), "seconds": seconds}
        save_json(self.path / "runs" / f"{key}.json", "sweep-run", VERSION, content)
        self.forget_failure(key)

    def write_failure(self, key: str, run: Run, error: str, details: str, seconds: float) -> None:
        """Note that a run failed."""
        content = {"run": run.to_dict(), "error": error, "details": details, "seconds": seconds}
        save_json(self.path / "failed" / f"{key}.json", "sweep-run", VERSION, content)

    def forget_failure(self, key: str) -> None:
        """Remove the note that a run failed."""
        with suppress(FileNotFoundError):
            (self.path / "failed" / f"{key}.json").unlink()

    def write_plan(self, name: str, keys: Sequence[str]) -> None:
        """Note what a sweep was asked for."""
        ordered = sorted(keys)
        digest = hashlib.sha256("\n".join([name, *ordered]).encode()).hexdigest()
        path = self.path / "plans" / f"{digest}.json"
        if not path.exists():
            save_json(path, "sweep-plan", VERSION, {"name": name, "keys": ordered})

    def plans(self) -> list[tuple[str, list[str]]]:
        """Name and keys of every sweep that was begun here, by name."""
        found = [self._read(path) for path in self._paths("plans")]
        return sorted((str(plan["name"]), list(plan["keys"])) for plan in found)

    def keys(self) -> set[str]:
        """The keys of all finished runs."""
        return {path.stem for path in self._paths("runs")}

    def failures(self) -> list[dict[str, Any]]:
        """The records of failed runs that have not been finished since."""
        done = self.keys()
        found = [
            {"key": path.stem, **self._read(path)} for path in self._paths("failed") if path.stem not in done
        ]
        return _ordered(found)

    def records(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Finished runs, each with key, run, values and seconds, in an order that depends on nothing else."""
        chosen = self.keys() if keys is None else self.keys().intersection(keys)
        found = [{"key": key, **self._read(self.path / "runs" / f"{key}.json")} for key in chosen]
        return _ordered(found)

    def take(self, other: Store, keys: Iterable[str]) -> int:
        """Copy finished runs of another store that this one lacks; how many."""
        lacking = [key for key in keys if other.has(key) and not self.has(key)]
        for record in other.records(lacking):
            self.write(record["key"], Run(**record["run"]), record["values"], record["seconds"])
        return len(lacking)

    def to_frame(self, *, timings: bool = False) -> Any:
        """All runs as a frame; see `table` for the columns."""
        from ..frames import make_frame
        from .table import table

        return make_frame(table(self, timings=timings))

    def export(self, path: Path_, *, timings: bool = False) -> int:
        """Write all runs as CSV or Parquet, by the ending of the name; how many there are."""
        from .table import export

        return export(self, path, timings=timings)

    def _paths(self, part: str) -> Iterator[Path]:
        try:
            names = sorted(os.listdir(self.path / part))
        except FileNotFoundError:
            return
        yield from (self.path / part / name for name in names if _NAME.fullmatch(name))

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            return load_json(path)[2]
        except FileFormatError:
            raise FileFormatError(
                f"{path}: this result is damaged; remove the file, and sweep again to compute it anew."
            ) from None


def _ordered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By method, data, settings and seed: the same table whoever computed what first."""

    def place(record: dict[str, Any]) -> tuple[Any, ...]:
        from .runs import canonical

        run = record["run"]
        return run["method"], canonical(run["data"]), canonical(run["settings"]), run["seed"], record["key"]

    return sorted(records, key=place)
