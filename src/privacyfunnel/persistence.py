"""Saving and loading: versioned JSON files that appear whole or not at all."""

from __future__ import annotations

import json
import math
import os
import secrets
import stat
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

from .errors import DataFileError, FileFormatError, InvalidInputError, PrivacyFunnelError

Path_ = str | PathLike[str]
T = TypeVar("T")

FORMAT = "privacyfunnel"

# The newest version of each kind of file that this library reads and writes.
VERSIONS = {"table-mechanism": 1, "frontier": 1, "learned-funnel": 1, "learned-encoder": 1, "audit-report": 1}


def load(path: Path_) -> Any:
    """Read back what `save` wrote: a mechanism, a frontier, an audit, or (a folder) a learned estimator.

    Raises
    ------
    DataFileError
        The file cannot be read.
    FileFormatError
        It is damaged, not of this library, or of a newer version of it.
    """
    if os.path.isdir(path):
        from .learned.persistence import load_model

        return load_model(path)
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
    if kind in ("learned-funnel", "learned-encoder"):
        raise FileFormatError(f"{path}: this file is a part of a saved model; load the folder that holds it.")
    reader: Any
    if kind == "table-mechanism":
        from .mechanism import TableMechanism as reader
    elif kind == "audit-report":
        from .audit.report import AuditReport as reader
    else:
        from .frontier import Frontier as reader
    try:
        return reader.from_dict(payload)
    except (FileFormatError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileFormatError(f"{path}: the file is damaged: {error} Save it again.") from None


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
    reader, a full disk, an interrupt or a power cut never see half of it.
    """
    # Follow links: replacing the link itself would leave its target behind, unchanged.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        mode = _mode(target)
        # Opened with 0666 so that the user's umask decides, as for any file a program writes.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except BaseException as error:  # an interrupt, too, leaves nothing behind
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and not isinstance(error, PrivacyFunnelError):
            raise DataFileError(
                f"{os.fspath(path)}: cannot write the file ({error.strerror or error}); choose a folder that "
                "exists, may be written and has space."
            ) from None
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
    """Labels as JSON values; a tuple becomes {"tuple": […]}."""
    return [_encode(label, name) for label in labels]


def _encode(label: Any, name: str) -> Any:
    if label is None or type(label) in (str, int, bool):
        return label
    if type(label) is float and math.isfinite(label):
        return label
    if type(label) is tuple:
        return {"tuple": [_encode(part, name) for part in label]}
    raise InvalidInputError(
        f"save: the label {label!r} in {name} is a {type(label).__name__}, which JSON cannot hold; use "
        "texts, finite numbers, booleans, None or tuples of them."
    )


def decode_labels(values: Iterable[Any]) -> list[Any]:
    """The labels of `encode_labels`."""
    return [_decode(value) for value in values]


def _decode(value: Any) -> Any:
    if isinstance(value, dict):
        if list(value) != ["tuple"] or not isinstance(value["tuple"], list):
            raise FileFormatError("a label is neither a value nor a tuple.")
        return tuple(_decode(part) for part in value["tuple"])
    if isinstance(value, list):
        raise FileFormatError("a label is neither a value nor a tuple.")
    return value


def require(data: Mapping[str, Any], key: str, kind: type[T]) -> T:
    """data[key] if it is there and of that type, or FileFormatError."""
    value = data.get(key)
    if not isinstance(value, kind):
        raise FileFormatError(f"{key!r} is missing or not a {kind.__name__}.")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not allowed")
