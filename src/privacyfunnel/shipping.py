"""What releases on the workers of a cluster: sent as the bytes of its own files, opened once in a process."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from .persistence import load

# What this process has opened, the latest last, and how many of them it keeps.
_OPENED: dict[str, Any] = {}
_MOST_OPENED = 4
_OPENING = Lock()


@dataclass(frozen=True)
class Shipped:
    """A saved folder in memory: no object of torch or scikit-learn travels, and nothing in it is executed.

    Attributes
    ----------
    files : pairs of a path inside the folder and the content
    digest : of both
    """

    files: tuple[tuple[str, bytes], ...] = field(repr=False)
    digest: str

    @classmethod
    def of(cls, save: Callable[[Path], None]) -> Shipped:
        """What `save` writes into a folder."""
        with tempfile.TemporaryDirectory(prefix="pfunnel-") as name:
            folder = Path(name) / "saved"
            save(folder)
            paths = sorted(path for path in folder.rglob("*") if path.is_file())
            files = tuple((path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths)
        digest = hashlib.sha256()
        for name, content in files:
            digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
        return cls(files, digest.hexdigest())

    def open(self) -> Any:
        """What was saved, as `privacyfunnel.load` reads it; the same object again in the same process."""
        with _OPENING:
            if self.digest not in _OPENED:
                found = self._read()
                while len(_OPENED) >= _MOST_OPENED:
                    del _OPENED[next(iter(_OPENED))]
                _OPENED[self.digest] = found
            return _OPENED[self.digest]

    def _read(self) -> Any:
        with tempfile.TemporaryDirectory(prefix="pfunnel-") as folder:
            for name, content in self.files:
                path = Path(folder) / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            return load(folder)


def packed(what: Any) -> Any:
    """What goes to the workers for something that releases: its files, or itself where it has none."""
    return what._shipped() if hasattr(what, "_shipped") else what


def opened(sent: Any) -> Any:
    """The inverse of `packed`, on a worker."""
    return sent.open() if isinstance(sent, Shipped) else sent
