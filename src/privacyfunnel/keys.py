"""The owner's keys: files that nobody else may read, and one stable random number for each person.

Releasing a record twice tells more than once. With a key, a person's random number is a function of the key,
the mechanism and the person's id: every release of the same value is the same symbol, with nothing stored.

    u = top 53 bits, big-endian, of HMAC-SHA-256(key, fingerprint of the mechanism ‖ id as UTF-8 text) / 2⁵³

A rule for whole tables needs several numbers for a person. They are the bytes of
SHAKE-256(HMAC-SHA-256(key, fingerprint of the rule ‖ id as UTF-8 text)), eight for each number, of which the
top 53 bits count.

To whoever has no key these numbers cannot be told from the operating system's. Whoever has it can compute
them, and undo the release as far as a known random number does. Any engine with SHA-256 computes the same.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from .alphabet import is_missing
from .arrays import FloatArray, SecretNumbers, one_generator, uniform
from .errors import DataFileError, InvalidInputError, shortened

#: Bytes of a key, as many as of the digest.
KEY_BYTES = 32
_BLOCK = 64  # of SHA-256, to which HMAC fills up the key
_PART = 1 << 16  # random numbers at a time


def checked_key(key: bytes) -> bytes:
    """The key, if it is one."""
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        # The value is not shown: it may be a key with a slip in it.
        raise InvalidInputError(
            f"A key must be {KEY_BYTES} bytes; 'pfunnel key new FILE' makes one, and "
            "privacyfunnel.keys.read_key reads it.",
            names=("key",),
        )
    return key


def new_key(path: str | PathLike[str]) -> bytes:
    """Make a key from the system's entropy, in a new file that only its owner may read.

    Keep the file with the private data: it must not go where releases, cards or reports go. Without it
    nobody can draw the same symbols again.
    """
    name = os.fspath(path)
    key = secrets.token_bytes(KEY_BYTES)
    try:
        # Nobody else may read it at any moment.
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(key.hex().encode("ascii") + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise DataFileError(
            f"{name}: this file exists, and a key is never replaced: nobody could draw its numbers again. "
            "Name a new file."
        ) from None
    except OSError as error:
        raise _unusable(name, error) from None
    return key


def read_key(path: str | PathLike[str]) -> bytes:
    """The key in a file that only its owner may read."""
    name = os.fspath(path)
    try:
        mode = os.stat(name).st_mode
        content = Path(name).read_bytes() if stat.S_ISREG(mode) else b""
    except FileNotFoundError:
        raise DataFileError(
            f"{name}: there is no such key file; 'pfunnel key new {name}' makes one."
        ) from None
    except OSError as error:
        raise _unusable(name, error) from None
    if os.name == "posix" and mode & 0o077:
        raise InvalidInputError(
            f"{name}: others than its owner may read this key; run 'chmod 600' on it, or make a new key if "
            "they may have read it."
        )
    try:
        return checked_key(bytes.fromhex(content.decode("ascii")))
    except ValueError:
        raise InvalidInputError(
            f"{name}: this file holds no key ({2 * KEY_BYTES} hexadecimal digits); name another file, or "
            "make a key with 'pfunnel key new'."
        ) from None


def owner_key(path: str | PathLike[str]) -> bytes:
    """The key in a file, made if there is none: see `new_key` and `read_key`."""
    return read_key(path) if os.path.lexists(path) else new_key(path)


def _unusable(name: str, error: OSError) -> DataFileError:
    return DataFileError(
        f"{name}: cannot use the key file ({error.strerror or error}); name a file in a folder of yours."
    )


def hmac_pads(key: bytes) -> tuple[bytes, bytes]:
    """What HMAC-SHA-256 puts before the message and before its inner digest: as secret as the key.

    HMAC(key, message) = SHA-256(outer ‖ SHA-256(inner ‖ message)), for engines that have SHA-256 alone.
    """
    filled = checked_key(key).ljust(_BLOCK, b"\0")
    inner, outer = (bytes(byte ^ mask for byte in filled) for mask in (0x36, 0x5C))
    return inner, outer


def require_person(id: Any, names: Iterable[str], where: str) -> None:
    """Refuse for ids a column that the release is made from, or that is private.

    People who share its value would be drawn alike: with the public column the release is no longer random
    given it, and tells more than was computed.
    """
    if isinstance(id, str) and id in names:
        raise InvalidInputError(
            f"{where}: {shortened(id)} is public or private itself, and people who share a value of it would "
            "be drawn alike; name a column that tells people apart.",
            names=("id",),
        )


def keyed_uniform(ids: Sequence[Any], key: bytes, fingerprint: str) -> FloatArray:
    """The number of each id in [0, 1), a multiple of 2⁻⁵³; see the head of this file.

    Parameters
    ----------
    ids : sequence of texts, whole numbers, dates or UUIDs
        7 and "7" are the same id. What has no text of its own, such as a number with decimals, is refused,
        and so is a missing one.
    key : 32 bytes
    fingerprint : str
        Of the mechanism: 64 hexadecimal digits, so that another mechanism draws other numbers.
    """
    return _numbers(b"".join(digest[:8] for digest in _digests(ids, key, fingerprint)))


class PersonNumbers(SecretNumbers):
    """Several numbers for each id, drawn one after another for all of them; see the head of this file.

    Parameters
    ----------
    ids, key, fingerprint : as for `keyed_uniform`
    n_each : int
        How often `random` may be asked.
    """

    def __init__(self, ids: Sequence[Any], key: bytes, fingerprint: str, n_each: int) -> None:
        drawn = (hashlib.shake_256(one).digest(8 * n_each) for one in _digests(ids, key, fingerprint))
        self._columns = iter(_numbers(b"".join(drawn)).reshape(len(ids), n_each).T)

    def random(self, n: int) -> FloatArray:
        """The next number of each id."""
        return next(self._columns).copy()


def _digests(ids: Sequence[Any], key: bytes, fingerprint: str) -> Iterator[bytes]:
    """HMAC-SHA-256 of the fingerprint and each id."""
    inner_pad, outer_pad = hmac_pads(key)
    inner, outer = hashlib.sha256(inner_pad + fingerprint.encode("ascii")), hashlib.sha256(outer_pad)
    for text in map(_id_text, ids, range(len(ids))):
        one, both = inner.copy(), outer.copy()
        one.update(text)
        both.update(one.digest())
        yield both.digest()


def _numbers(data: bytes) -> FloatArray:
    """Eight bytes each, big-endian, as multiples of 2⁻⁵³ in [0, 1)."""
    bits = np.frombuffer(data, dtype=">u8").astype(np.uint64) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def _id_text(value: Any, at: int) -> bytes:
    """An id as the bytes that are hashed; `at` is its place, for the message."""
    if isinstance(value, (np.datetime64, np.timedelta64)) and isinstance(value.item(), int):
        value = value.astype(f"{value.dtype.kind}8[us]")  # nanoseconds are no whole number of a person
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        try:
            return str(value).encode()
        except UnicodeEncodeError:
            pass  # half a surrogate pair
    elif type(value) is date or isinstance(value, UUID):
        return str(value).encode()
    # The id itself is not shown: it is a person's.
    what = "no id" if is_missing(value) else f"an id of type {type(value).__name__}"
    raise InvalidInputError(
        f"record {at + 1:,} has {what}; it must be a text, a whole number, a date or a UUID, which read "
        "the same everywhere: fill it in, or turn it into text."
    )


@dataclass(frozen=True)
class Draws:
    """Where random numbers come from: the system, a generator, or a key and ids."""

    rng: int | np.random.Generator | None = None
    key: bytes | None = None
    ids: Any = None

    def __post_init__(self) -> None:
        if (self.key is None) != (self.ids is None):
            raise InvalidInputError(
                "release: a key and the ids that it draws for go together; pass both, or neither.",
                names=("key", "id"),
            )
        if self.key is not None and self.rng is not None:
            raise InvalidInputError(
                "release: with a key there is nothing else to draw from; leave rng out.", names=("rng", "key")
            )

    def parts(self, n: int, of: Any) -> Iterator[tuple[slice, FloatArray]]:
        """n numbers, uniform on [0, 1), for what has a `fingerprint`: in parts that stay in the cache."""
        if self.key is None:
            generator = one_generator(self.rng)
            for start in range(0, n, _PART):
                yield slice(start, min(start + _PART, n)), uniform(min(_PART, n - start), generator)
        else:
            yield slice(0, n), keyed_uniform(self._ids(n), self.key, of.fingerprint)

    def several(self, n: int, n_each: int, of: Any) -> np.random.Generator | SecretNumbers | None:
        """What `n_each` draws for all of n records go on from."""
        if self.key is None:
            return one_generator(self.rng)
        return PersonNumbers(self._ids(n), self.key, of.fingerprint, n_each)

    def _ids(self, n: int) -> Sequence[Any]:
        ids = self.ids
        if not isinstance(ids, (list, tuple)):
            column = np.asarray(ids).ravel()
            ids = list(column) if column.dtype.kind in "mM" else column.tolist()
        if len(ids) != n:
            raise InvalidInputError(
                f"release: there must be an id for each of the {n:,} letters; there are {len(ids):,}.",
                names=("id",),
            )
        found: Sequence[Any] = ids
        return found
