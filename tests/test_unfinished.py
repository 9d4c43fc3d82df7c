"""What a killed process leaves behind is removed by the next one that writes there, and nothing else is."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from privacyfunnel import persistence
from privacyfunnel.persistence import atomic_stream, write_atomic

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and signals as on Unix")

HALF = """
import sys
from privacyfunnel.persistence import atomic_stream
with atomic_stream(sys.argv[1]) as file:
    file.write(b"a record, f")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""
WHOLE = "import sys; from privacyfunnel.persistence import write_atomic; write_atomic(sys.argv[1], b'whole')"


@contextmanager
def half_written(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has written half of a file and waits."""
    command = [sys.executable, "-c", HALF, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        yield process


def write_elsewhere(path: Path) -> None:
    subprocess.run([sys.executable, "-c", WHOLE, str(path)], check=True)


def test_what_a_killed_process_left_is_removed_and_what_a_live_one_writes_is_not(tmp_path: Path) -> None:
    with half_written(tmp_path / "killed.csv") as dead, half_written(tmp_path / "other.csv") as live:
        assert len(list(tmp_path.iterdir())) == 2
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
        dead.send_signal(signal.SIGKILL)
        dead.wait(timeout=60)
        assert len(list(tmp_path.iterdir())) == 2  # this is what kill -9 leaves
        write_elsewhere(tmp_path / "new.csv")
        assert [path.name[:11] for path in sorted(tmp_path.iterdir())] == [".other.csv.", "new.csv"]
        live.communicate(b"", timeout=60)
        assert live.returncode == 0
    assert (tmp_path / "other.csv").read_bytes() == b"a record, f"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "other.csv"]


def test_files_of_others_stay(tmp_path: Path) -> None:
    names = [".a.csv.0123456789abcdef.tmp", "a.csv.0123456789abcdef.pfunnel.tmp", ".a.csv.pfunnel.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    write_elsewhere(tmp_path / "new.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "new.csv"])


def test_file_that_was_taken_for_a_dead_one_is_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its creation and its lock a file looks like one of a dead process."""
    real, tried = persistence._lock, []

    def lock(handle: int) -> bool | None:
        tried.append(handle)
        if len(tried) == 1:
            next(tmp_path.iterdir()).unlink()
        return False if len(tried) == 2 else real(handle)

    monkeypatch.setattr(persistence, "_lock", lock)
    write_atomic(tmp_path / "t", b"whole")
    assert len(tried) == 3
    assert (tmp_path / "t").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_temporary_file_is_private_and_the_finished_one_as_the_user_wants(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        with atomic_stream(tmp_path / "t") as file:
            file.write(b"x")
            (temporary,) = tmp_path.iterdir()
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o666 & ~mask


def test_without_locks_files_are_written_and_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / ".a.csv.0123456789abcdef.pfunnel.tmp"
    left.write_bytes(b"")
    monkeypatch.setattr(persistence, "fcntl", None)
    write_atomic(tmp_path / "t", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [left.name, "t"]
