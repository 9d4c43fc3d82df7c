"""A PostgreSQL server of the tests' own, in a temporary folder; it listens on a socket there only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from glob import glob
from pathlib import Path

import pytest


def _program(name: str) -> str:
    # Debian keeps the server's programs off the path.
    found = shutil.which(name) or max(glob(f"/usr/lib/postgresql/*/bin/{name}"), default=None)
    if found is None:
        pytest.skip(f"PostgreSQL's {name} is not installed: apt-get install postgresql")
    return found


def _user() -> str | None:
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres")


@contextmanager
def running_server() -> Iterator[str]:
    """The address of a new, empty server."""
    initdb, pg_ctl, user = _program("initdb"), _program("pg_ctl"), _user()
    folder = Path(tempfile.mkdtemp(prefix="pfunnel-postgres-"))
    try:
        if user is not None:
            shutil.chown(folder, user)
        data = folder / "data"

        def run(*command: str) -> None:
            subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, timeout=120)

        run(initdb, "-D", str(data), "-U", "tests", "--auth=trust", "--no-sync", "-E", "UTF8", "--no-locale")
        options = f"-c listen_addresses='' -k {folder} -c fsync=off"
        run(pg_ctl, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"host={folder} user=tests dbname=postgres"
        finally:
            run(pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
