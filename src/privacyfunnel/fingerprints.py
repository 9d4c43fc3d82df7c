"""Fingerprints of data: open ones of what is released, keyed ones of what is private.

A plain hash of a private column tells it: whoever can list the columns it may be (two values a person, one
person unknown) hashes each and compares. With a key that only the owner has, nobody else can try.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import numpy as np

from .keys import checked_key


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
