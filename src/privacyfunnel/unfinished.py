"""Files under way: locked while their process lives, so that what a killed one left can be removed."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where nothing tells the file of a dead process from that of a live one
    fcntl = None  # type: ignore[assignment]

_NAME = re.compile(r"\..*\.[0-9a-f]{16}\.pfunnel\.tmp")
_BINARY = getattr(os, "O_BINARY", 0)

# Folders that this process has looked through: what it starts itself it also ends.
_seen: set[Path] = set()


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
        handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | _BINARY)
        try:
            if _lock(handle):
                path.unlink()
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
