"""Fingerprints of data: open ones of what is released, keyed ones of what is private.

A plain hash of a private column tells it: whoever can list the columns it may be (two values a person, one
person unknown) hashes each and compares. With a key that only the owner has, nobody else can try.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataFileError, InvalidInputError

#: Bytes of a key, as many as of the digest.
KEY_BYTES = 32


def open_fingerprint(values: Any) -> str:
    """sha256 of values that everybody may see: anybody who has them can check it."""
    return f"sha256:{hashlib.sha256(_content(values)).hexdigest()}"


def keyed_fingerprint(values: Any, key: bytes, name: str) -> str:
    """HMAC-SHA-256 of private values: only who has the key can compute or check it.

    `name` says what the values are: the same values under two names have fingerprints that do not show it.
    """
    message = name.encode() + b"\0" + _content(values)
    return f"hmac-sha256:{hmac.digest(checked_key(key), message, 'sha256').hex()}"


def _content(values: Any) -> bytes:
    """Shape, type and numbers of an array; of texts and other objects their values as text."""
    array = np.asarray(values)
    head = repr((array.shape, array.dtype.str)).encode()
    if array.dtype.kind == "O":
        return head + "\0".join(map(str, array.ravel().tolist())).encode()
    return head + np.ascontiguousarray(array).tobytes()


def checked_key(key: bytes) -> bytes:
    """The key, if it is one."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        # The value is not shown: it may be a key with a slip in it.
        raise InvalidInputError(
            f"A fingerprint key must be {KEY_BYTES} bytes; privacyfunnel.fingerprints.owner_key makes one."
        )
    return key


def owner_key(path: str | PathLike[str]) -> bytes:
    """The key in a file that only its owner may read; a new one, from the system's entropy, if there is none.

    Keep the file with the private data: it must not go where the fingerprints go.
    """
    name = os.fspath(path)
    try:
        if not os.path.lexists(name):
            _create(name, secrets.token_bytes(KEY_BYTES))
        mode = os.stat(name).st_mode
        content = Path(name).read_bytes() if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise DataFileError(
            f"{name}: cannot use the key file ({error.strerror or error}); name a file in a folder of yours."
        ) from None
    if os.name == "posix" and mode & 0o077:
        raise InvalidInputError(
            f"{name}: others than its owner may read this key; run 'chmod 600' on it, or make a new key if "
            "they may have read it."
        )
    try:
        return checked_key(bytes.fromhex(content.decode("ascii")))
    except ValueError:
        raise InvalidInputError(
            f"{name}: this file holds no key ({2 * KEY_BYTES} hexadecimal digits); name another file, or one "
            "that does not exist to get a new key."
        ) from None


def _create(name: str, key: bytes) -> None:
    # Nobody else may read it at any moment; and a key that is there by now is not replaced.
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(key.hex().encode("ascii") + b"\n")
        file.flush()
        os.fsync(file.fileno())
