"""Where the app may read and write: inside one folder, and a temporary one for uploads."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from ..errors import InvalidInputError, shortened
from ..files import file_kind

#: What the temporary folders of uploads begin with.
PREFIX = "pfunnel-app-"
#: Bytes of an upload, at most: larger tables are opened by path.
MOST_UPLOAD = 256 << 20
#: Cells of an uploaded Parquet file, at most: a few bytes of it may stand for thousands of millions.
MOST_CELLS = 500_000_000


class Places:
    """The folder that tables are opened in and releases are written to, and that of uploads."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(os.path.realpath(folder))
        if not self.folder.is_dir():
            raise InvalidInputError(f"{folder}: there is no such folder; name one.")
        self._uploads: Path | None = None
        self._lock = -1
        _remove_abandoned()

    def table(self, name: str) -> str:
        """The path of a table inside the folder, or of an upload."""
        path = self._inside(name)
        if not path.is_file():
            raise InvalidInputError(f"{name}: there is no such file; check the name.")
        file_kind(path)
        return str(path)

    def new_folder(self, name: str) -> Path:
        """A folder to write to, inside the folder: new, or empty."""
        path = self._inside(name)
        if path == self.folder:
            raise InvalidInputError("Name a new folder for the release, such as release.")
        if not path.parent.is_dir():
            raise InvalidInputError(f"{name}: the folder it is to lie in does not exist; make it first.")
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InvalidInputError(f"{name}: there is something already; name a new folder.")
        return path

    def existing(self, name: str) -> str:
        """A file inside the folder that is there, such as a key."""
        path = self._inside(name)
        if not path.is_file():
            raise InvalidInputError(f"{name}: there is no such file; 'pfunnel key new FILE' makes a key.")
        return str(path)

    def _inside(self, name: str) -> Path:
        if not name.strip() or "\0" in name:
            raise InvalidInputError("Name a file; nothing was named.")
        try:
            name.encode()  # so that a sentence about it can be sent
            path = Path(os.path.realpath(self.folder / os.path.expanduser(name.strip())))
            path.exists()
        except (OSError, UnicodeError):
            raise InvalidInputError(f"{shortened(name)}: no file can have this name; name another.") from None
        if path != self.folder and self.folder not in path.parents:
            raise InvalidInputError(
                f"{shortened(name)}: this lies outside {self.folder}; start the app there with --folder."
            )
        return path

    async def upload(self, ending: str, size: str | None, parts: AsyncIterator[bytes]) -> str:
        """Store an upload under a name of our own; refused as soon as it is too large."""
        if ending not in (".csv", ".tsv", ".parquet"):
            raise InvalidInputError("An upload must be a .csv, .tsv or .parquet file; unpack or convert it.")
        if size is not None and (not size.isdigit() or int(size) > MOST_UPLOAD):
            raise self.too_large()
        if self._uploads is None:
            self._uploads = Path(tempfile.mkdtemp(prefix=PREFIX))
            self._lock = _locked(self._uploads)
        handle, name = tempfile.mkstemp(suffix=ending, dir=self._uploads)
        written = 0
        try:
            with os.fdopen(handle, "wb") as file:
                async for part in parts:
                    written += len(part)
                    if written > MOST_UPLOAD:
                        raise self.too_large()
                    file.write(part)
            if ending == ".parquet":
                _check_parquet(name)
        except BaseException:
            os.unlink(name)
            raise
        return name

    def close(self) -> None:
        """Remove the uploads."""
        if self._uploads is not None:
            shutil.rmtree(self._uploads, ignore_errors=True)
            self._uploads = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def too_large(self) -> InvalidInputError:
        """What is said of an upload that is."""
        return InvalidInputError(
            f"An upload may have {MOST_UPLOAD >> 20} MB at most; put the file into {self.folder} and open it "
            "by its name."
        )


def _locked(folder: Path) -> int:
    """A handle that holds a folder as long as this process lives; -1 where another has it, or none can."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except (ImportError, OSError):
        return -1
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return -1
    return handle


def _remove_abandoned() -> None:
    """Remove the uploads of an app that was killed, and could not."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            handle = _locked(folder)
            if handle >= 0:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)


def _check_parquet(name: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(name)
    except (pa.ArrowException, OSError):
        raise InvalidInputError("The upload is no Parquet file; check it.") from None
    if about.num_rows * about.num_columns > MOST_CELLS:
        raise InvalidInputError(
            f"The upload has {about.num_rows:,} records of {about.num_columns:,} columns, too many for an "
            "upload; open it by its name."
        )
