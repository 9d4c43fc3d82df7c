"""Folders that several processes may write into: made when needed, one writer at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import DataFileError


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


@contextmanager
def saving_lock(folder: Path) -> Iterator[bool]:
    """One process saves into a folder at a time; False where the system or the disk has no such locks."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows does not open folders
        yield False
        return
    try:
        yield _flock(handle, wait=True)
    finally:
        os.close(handle)  # and with it the lock, also when the process is killed


@contextmanager
def training_lock(folder: Path | None) -> Iterator[None]:
    """One run at a time writes checkpoints into a folder: two would replace each other's.

    The lock ends with the process, however it ends. Without locks in the system, nobody is kept out.
    """
    if folder is None:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / "checkpoint.lock", os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise DataFileError(
            f"{folder}: checkpoints cannot be written here ({error.strerror or error}); choose another one."
        ) from None
    try:
        try:
            _flock(handle, wait=False)
        except BlockingIOError:
            raise DataFileError(
                f"{folder}: another run is training with checkpoints in this folder; wait for it, or give "
                "this one a folder of its own."
            ) from None
        yield
    finally:
        os.close(handle)


def _flock(handle: int, *, wait: bool) -> bool:
    """Whether the file is locked now; BlockingIOError where another process has it and nobody waits."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):  # some network file systems have no locks
        return False
    return True
