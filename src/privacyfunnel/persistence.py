"""Saving and loading: versioned JSON files that appear whole or not at all.

Files under way are locked while their process lives, so that what a killed one left can be removed.
"""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from os import PathLike
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, Any, NoReturn, TypeVar

from .alphabet import canonical_label
from .errors import (
    DataFileError,
    FileFormatError,
    InvalidInputError,
    MissingDependencyError,
    PrivacyFunnelError,
    PrivacyFunnelWarning,
    shortened,
)

try:
    import fcntl
except ImportError:  # Windows, where nothing tells the file of a dead process from that of a live one
    fcntl = None  # type: ignore[assignment]

Path_ = str | PathLike[str]
T = TypeVar("T")

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.pfunnel\.tmp")
_BINARY = getattr(os, "O_BINARY", 0)

# Folders that this process has looked through: what it starts itself it also ends.
_seen: set[Path] = set()

FORMAT = "privacyfunnel"

# The newest version of each kind of file that this library reads and writes.
VERSIONS = {
    "table-mechanism": 2,
    "frontier": 2,
    "learned-funnel": 1,
    "learned-encoder": 1,
    "audit-report": 2,
    "certified-rule": 2,
    "certified-funnel": 2,
}
# What reads them, "module:attribute"; imported when such a file is loaded.
READERS = {
    "table-mechanism": "privacyfunnel.mechanism:TableMechanism.from_dict",
    "frontier": "privacyfunnel.tradeoff:Frontier.from_dict",
    "audit-report": "privacyfunnel.auditing.report:AuditReport.from_dict",
}
# What reads versions that may hold private values, without these.
CAREFUL_READERS = {("audit-report", 1): "privacyfunnel.auditing.report:read_format_1"}
FOLDER_READER = "privacyfunnel.learned.saving:load_model"
# Files that make a folder a certified rule or funnel, and what reads it.
CERTIFIED_FILES = ("rule.json", "funnel.json")
CERTIFIED_READER = "privacyfunnel.certified.saving:load_certified"


def load(path: Path_) -> Any:
    """Read back what `save` wrote: a mechanism, a frontier, an audit, or (a folder) a learned or certified
    funnel.

    Raises
    ------
    DataFileError
        The file cannot be read.
    FileFormatError
        It is damaged, not of this library, or of a newer version of it.
    """
    if os.path.isdir(path):
        if any(os.path.isfile(os.path.join(path, name)) for name in CERTIFIED_FILES):
            return resolve_name(CERTIFIED_READER)(path)
        return resolve_name(FOLDER_READER)(path)
    kind, version, payload = load_json(path)
    if kind not in VERSIONS:
        raise FileFormatError(
            f"{path}: this version of the library cannot read a {kind!r}; install a newer one."
        )
    if version > VERSIONS[kind]:
        raise FileFormatError(
            f"{path}: this {kind} has format version {version} and this library reads up to "
            f"{VERSIONS[kind]}; install a newer one."
        )
    if kind not in READERS:
        raise FileFormatError(
            f"{path}: this file is a part of a saved model or rule; load the folder that holds it."
        )
    careful = CAREFUL_READERS.get((kind, version))
    read = resolve_name(careful or READERS[kind])
    try:
        found = read(payload)
    except (FileFormatError, LookupError, TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path}: the file is damaged: {error} Save it again.") from None
    if careful:
        warnings.warn(
            f"{path}: this {kind} has format version {version}, which may hold private values; figures, "
            "counts and hashes were left out while reading. Save it again and delete the file.",
            PrivacyFunnelWarning,
            stacklevel=2,
        )
    return found


def save_json(path: Path_, kind: str, version: int, payload: Mapping[str, Any]) -> None:
    """Write `payload` (JSON types only) under a header that names the kind and version."""
    document = {"format": FORMAT, "kind": kind, "version": version, "payload": dict(payload)}
    # Python writes the shortest digits that read back to the same float.
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        data = (text + "\n").encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInputError("save: a label is not valid Unicode text and cannot be written.") from None
    write_atomic(path, data)


def load_json(path: Path_) -> tuple[str, int, dict[str, Any]]:
    """The kind, version and payload of a file of `save_json`, header checked."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise DataFileError(f"{path}: cannot read the file ({error.strerror or error}).") from None
    if not data.strip():
        raise FileFormatError(f"{path}: the file is empty; save it again.")
    try:
        document = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise FileFormatError(
            f"{path}: the file is damaged or was not saved by this library ({error}); save it again."
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError(
            f"{path}: this JSON was not saved by this library; use a file that `save` wrote."
        )
    kind, version, payload = (document.get(key) for key in ("kind", "version", "payload"))
    if not isinstance(kind, str) or type(version) is not int or version < 1 or not isinstance(payload, dict):
        raise FileFormatError(f"{path}: the header of the file is damaged; save it again.")
    return kind, version, payload


def write_atomic(path: Path_, data: str | bytes) -> None:
    """Write a file whole or not at all; text as UTF-8."""
    with atomic_stream(path) as file:
        file.write(data.encode("utf-8") if isinstance(data, str) else data)


@contextmanager
def atomic_stream(path: Path_) -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path` when the block ends well, and vanishes otherwise.

    The data go to a new file in the same folder, which then takes the place of the old one, so a
    reader, a full disk, an interrupt or a power cut never see half of it. Until then only its owner can
    read it. What a process that was killed has left in the folder is removed first.
    """
    # Follow links: replacing the link itself would leave its target behind, unchanged.
    target = Path(os.path.realpath(path))
    temporary: TemporaryFile | None = None
    try:
        mode = _mode(target)
        remove_leftovers(target.parent)
        temporary = TemporaryFile(target)
        with temporary.open() as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(mode)
        _sync_folder(target.parent)
    except BaseException as error:  # an interrupt, too, leaves nothing behind
        if temporary is not None:
            temporary.discard()
        if isinstance(error, OSError) and not isinstance(error, PrivacyFunnelError):
            raise DataFileError(
                f"{os.fspath(path)}: cannot write the file ({error.strerror or error}); choose a folder that "
                "exists, may be written and has space."
            ) from None
        raise


@contextmanager
def atomic_folder(path: Path_) -> Iterator[Path]:
    """A new folder that gets the name `path` when the block ends well, and vanishes otherwise.

    There must be no folder of that name yet, or an empty one. What a process that was killed has left beside
    it is removed first.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        what = "this folder is not empty" if target.is_dir() else "there is a file of this name"
        raise DataFileError(f"{os.fspath(path)}: {what}; name a new folder.")
    handle, temporary = -1, target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.pfunnel.tmp")
    try:
        remove_leftovers(target.parent)
        temporary.mkdir()
        mode = stat.S_IMODE(temporary.stat().st_mode)
        temporary.chmod(0o700)  # until it is done
        if fcntl is not None:  # elsewhere folders cannot be opened
            handle = os.open(temporary, os.O_RDONLY)
            _lock(handle)
        yield temporary
        temporary.chmod(mode)
        if target.exists() and os.name == "nt":
            target.rmdir()
        temporary.rename(target)
        _sync_folder(target.parent)
    except BaseException as error:  # an interrupt, too, leaves nothing behind
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, OSError) and not isinstance(error, PrivacyFunnelError):
            raise DataFileError(
                f"{os.fspath(path)}: cannot write the folder ({error.strerror or error}); name a new one, in "
                "a folder that exists, may be written and has space."
            ) from None
        if isinstance(error, DataFileError):  # of a file in it, which has another name in the end
            raise DataFileError(str(error).replace(str(temporary), os.fspath(path))) from None
        raise
    finally:
        if handle >= 0:
            os.close(handle)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """The folder exists inside the block; one that was made for nothing is removed."""
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = "there is a file of this name" if folder.exists() else error.strerror or error
        raise DataFileError(f"{folder}: cannot create the folder ({what}); choose another name.") from None
    try:
        yield
    except BaseException:
        if made:
            with suppress(OSError):
                folder.rmdir()
        raise


def _mode(target: Path) -> int | None:
    """The permissions of the file to be replaced; None if there is none yet."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise DataFileError(f"{target}: this is not a regular file; choose another name.")
    if not os.access(target, os.W_OK):
        raise DataFileError(f"{target}: the file is write-protected; choose another name.")
    return stat.S_IMODE(status.st_mode)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def encode_labels(labels: Iterable[Hashable], name: str) -> list[Any]:
    """Labels as JSON values; a tuple becomes {"tuple": […]}, a date {"date": "2024-05-17"}, and so on."""
    return [_encode(label, name) for label in labels]


def _encode(label: Any, name: str) -> Any:
    if label is None or type(label) in (str, int, bool):
        return label
    if type(label) is float and math.isfinite(label):
        return label
    if type(label) is tuple:
        return {"tuple": [_encode(part, name) for part in label]}
    if type(label).__name__ == "Interval" and hasattr(label, "closed"):
        ends = [_encode(canonical_label(end), name) for end in (label.left, label.right)]
        return {"interval": [*ends, label.closed]}
    kind = type(label).__name__.lower()
    if kind in _WRITTEN:
        with suppress(AttributeError, TypeError, ValueError):  # another type of that name
            text = _WRITTEN[kind](label)
            if _READ[kind](text) == label:
                return {kind: text}
    raise InvalidInputError(
        f"save: the label {shortened(label)} in {name} is a {type(label).__name__}, which a file cannot "
        "hold; use texts, finite numbers, booleans, None, dates and times, intervals, or tuples of them."
    )


# How labels of these types are written, by their names in lower case, and read again.
_WRITTEN: dict[str, Callable[[Any], Any]] = {
    "date": lambda label: label.isoformat(),
    "time": lambda label: label.isoformat(),
    "datetime": lambda label: label.isoformat(),
    "timestamp": lambda label: label.isoformat(),
    "period": lambda label: [str(label), label.freqstr],
    "timedelta": lambda label: [label.days, label.seconds, label.microseconds],
    "decimal": str,
    "bytes": lambda label: label.hex(),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": datetime.fromisoformat,
    "timestamp": lambda text: _pandas().Timestamp(text),
    "period": lambda parts: _pandas().Period(*parts),
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "bytes": bytes.fromhex,
}


def _interval(left: Any, right: Any, closed: Any) -> Any:
    """An interval of pandas, which takes its own kinds of times only."""
    pandas = _pandas()
    kinds = {datetime: pandas.Timestamp, timedelta: pandas.Timedelta}
    ends = [kinds.get(type(end), lambda end: end)(end) for end in map(_decode, (left, right))]
    return pandas.Interval(*ends, closed)


def _pandas() -> Any:
    """pandas, for labels that are of its own types."""
    try:
        import pandas
    except ImportError:
        raise MissingDependencyError(
            "load: a label of this file is of a type of pandas; run pip install pandas."
        ) from None
    return pandas


def decode_labels(values: Iterable[Any]) -> list[Any]:
    """The labels of `encode_labels`."""
    return [_decode(value) for value in values]


def _decode(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        ((kind, written),) = value.items()
        if kind == "tuple" and isinstance(written, list):
            return tuple(_decode(part) for part in written)
        if kind == "interval" and isinstance(written, list) and len(written) == 3:
            return _interval(*written)
        if kind in _READ:
            try:
                return _READ[kind](written)
            except (TypeError, ValueError, ArithmeticError):
                raise FileFormatError(f"a label is no {kind}.") from None
    if isinstance(value, (dict, list)):
        raise FileFormatError("a label is neither a value nor a tuple.")
    return value


def require(data: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """data[key] if it is there and of that type, or FileFormatError."""
    value = data.get(key)
    if not isinstance(value, kind):
        raise FileFormatError(f"{key!r} is missing or not a {kind.__name__}.")
    return value


def require_number(data: Mapping[str, Any], key: str) -> float:
    """data[key] if it is there and a finite number, or FileFormatError. Texts such as "nan" are none."""
    value = data.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise FileFormatError(f"{key!r} is missing or not a finite number.")
    return float(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")


class TemporaryFile:
    """A new file beside `target`, hidden, readable by its owner only, and locked until it is done with."""

    def __init__(self, target: Path) -> None:
        self.target = target
        while True:
            self.path = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.pfunnel.tmp")
            # With 0666 the user's umask decides, as for any file a program writes; this is the final mode.
            self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
            try:
                self._mode = os.fstat(self._handle).st_mode & 0o777
                os.chmod(self.path, 0o600)
                if _lock(self._handle) is not False and os.fstat(self._handle).st_nlink:
                    return
            except FileNotFoundError:
                pass
            except BaseException:
                self.discard()
                raise
            # Somebody who cleans up was between the two steps above, and takes this file for a dead one.
            self.discard()

    def open(self) -> IO[bytes]:
        """The file for writing; closing it keeps the lock."""
        return os.fdopen(os.dup(self._handle), "wb")

    def replace(self, mode: int | None) -> None:
        """Put the file in the place of its target, with these permissions or those of a new file."""
        os.chmod(self.path, self._mode if mode is None else mode)
        if fcntl is None:  # an open file cannot be renamed there
            self._close()
        os.replace(self.path, self.target)
        self._close()

    def discard(self) -> None:
        """Remove the file."""
        try:
            with suppress(OSError):
                self.path.unlink()
        finally:
            self._close()

    def _close(self) -> None:
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def is_unfinished(name: str) -> bool:
    """Whether a file of this name is one under way, or was."""
    return bool(_NAME.fullmatch(name))


def remove_leftovers(folder: Path) -> None:
    """Remove what killed processes have left unfinished in a folder, once for each process and folder.

    Such files are nobody's any more: the system lets go of the locks of a process that ends.
    """
    if folder in _seen:
        return
    _seen.add(folder)
    with suppress(OSError):
        for name in os.listdir(folder):
            if _NAME.fullmatch(name):
                _remove_if_dead(folder / name)


def _remove_if_dead(path: Path) -> None:
    with suppress(OSError):
        is_folder = path.is_dir()
        handle = os.open(
            path, (os.O_RDONLY if is_folder else os.O_WRONLY) | getattr(os, "O_NOFOLLOW", 0) | _BINARY
        )
        try:
            if _lock(handle):
                shutil.rmtree(path) if is_folder else path.unlink()
        finally:
            os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the file is ours now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True
