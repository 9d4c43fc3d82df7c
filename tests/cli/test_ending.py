"""How the real command ends: interrupts, pipes, full devices, and how little it imports for its help."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privacyfunnel as pf

PFUNNEL = [sys.executable, "-c", "from privacyfunnel.cli import main; main()"]
HEAVY = ("numba", "scipy", "sklearn", "pyarrow", "narwhals", "pandas", "polars", "matplotlib", "torch")


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, Path]:
    """A table whose release is much longer than any pipe's buffer, and a mechanism for it."""
    table, mechanism = tmp_path / "large.csv", tmp_path / "m.json"
    table.write_text("a,text\n" + "".join(f"{i % 2},{i:060d}\n" for i in range(60_000)))
    pf.TableMechanism(np.full((2, 2), 0.5), x_labels=["0", "1"], x_names=["a"]).save(mechanism)
    return table, mechanism


def releasing(large: tuple[Path, Path], output: str) -> subprocess.Popen[bytes]:
    command = [*PFUNNEL, "release", str(large[0]), "-m", str(large[1]), "-o", output, "--drop", "a"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_bad_input_of_the_real_command(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*PFUNNEL, "solve", "none.csv", "--public", "a", "--private", "b", "--beta", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == (
        "error: none.csv: cannot read the file (No such file or directory); "
        "check the name and its permissions.\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_while_writing(large: tuple[Path, Path], number: int, code: int) -> None:
    with releasing(large, "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # Once the first bytes are here and the rest is not read, the command is waiting to write.
        assert process.stdout.read(6) == b"z,text"
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        lines = process.stderr.read().decode().splitlines()
    assert not any("Traceback" in line for line in lines)
    assert ("error: interrupted; no file was left unfinished." in lines) == (number == signal.SIGINT)


def test_reader_that_goes_away(large: tuple[Path, Path]) -> None:
    with releasing(large, "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(6) == b"z,text"
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        lines = process.stderr.read().decode().splitlines()
    assert all(line.startswith("warning: ") for line in lines)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_device(large: tuple[Path, Path]) -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*PFUNNEL, "release", str(large[0]), "-m", str(large[1]), "-o", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 2
    error = ended.stderr.decode().splitlines()[-1]
    assert error == (
        "error: standard output: cannot write (No space left on device); name a file as the output."
    )


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import json, sys\n"
        "from privacyfunnel.cli.running import run\n"
        "code = run(['solve', '--help'])\n"
        "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, modules = json.loads(ended.stderr)
    assert code == 0
    assert "--min-utility" in ended.stdout
    assert [name for name in HEAVY if name in modules] == []


def test_version() -> None:
    ended = subprocess.run([*PFUNNEL, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"pfunnel {pf.__version__}\n"
