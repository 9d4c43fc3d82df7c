"""A MariaDB server of the tests' own, in a temporary folder; it listens on a socket there only."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def _program(name: str) -> str:
    # Debian keeps the server itself off the path of others than root.
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(f"MariaDB's {name} is not installed: apt-get install mariadb-server")
    return found


def _user() -> str:
    """Whom the server runs as: it refuses to be root."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    for name in ("mysql", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("MariaDB does not run as root, and there is no user mysql")


@contextmanager
def running_server() -> Iterator[str]:
    """The socket of a new server, whose user root has no password."""
    pytest.importorskip("pymysql", reason="MariaDB's driver is not installed: pip install pymysql")
    install, server, user = _program("mariadb-install-db"), _program("mariadbd"), _user()
    folder = Path(tempfile.mkdtemp(prefix="pfunnel-mariadb-"))
    try:
        shutil.chown(folder, user)
        data, socket = folder / "data", folder / "socket"
        subprocess.run(
            [
                install,
                "--no-defaults",
                f"--datadir={data}",
                f"--user={user}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=300,
        )
        options = (
            *("--no-defaults", f"--datadir={data}", f"--user={user}", f"--socket={socket}"),
            *("--skip-networking", "--innodb-flush-log-at-trx-commit=0", f"--pid-file={folder / 'pid'}"),
        )
        with (folder / "log").open("w") as log:
            process = subprocess.Popen([server, *options], stdout=log, stderr=log)
        try:
            _wait(process, folder / "log")
            yield str(socket)
        finally:
            process.terminate()
            process.wait(timeout=120)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server says that it is there, which it does in its log."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"MariaDB did not start: {log.read_text()[-500:]}")
        if "ready for connections" in log.read_text():
            return
        time.sleep(0.1)
    raise RuntimeError("MariaDB did not start within a minute")
