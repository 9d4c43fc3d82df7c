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
BROKEN = (
    "error: standard output: its reader went away before everything was written; "
    "let it read to the end, or write to a file."
)
INTERRUPTED = "error: interrupted; no file was left unfinished, run the command again for the result."
HEAVY = ("numba", "scipy", "sklearn", "pyarrow", "narwhals", "pandas", "polars", "matplotlib", "torch")


@pytest.fixture
def large(tmp_path: Path) -> tuple[Path, Path]:
    """A table whose release is much longer than any pipe's buffer, and a mechanism for it."""
    table, mechanism = tmp_path / "large.csv", tmp_path / "m.json"
    table.write_text("a,text\n" + "".join(f"{i % 2},{i:060d}\n" for i in range(60_000)))
    pf.TableMechanism(np.full((2, 2), 0.5), x_labels=["0", "1"], x_names=["a"]).save(mechanism)
    return table, mechanism


def releasing(large: tuple[Path, Path], output: str) -> subprocess.Popen[bytes]:
    command = [*PFUNNEL, "release", str(large[0]), "-m", str(large[1]), "-o", output, "--keep", "text"]
    # Started under nohup, tests hand on that SIGHUP is to be ignored.
    restore = None if sys.platform == "win32" else lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=restore)


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
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_signal_while_writing(large: tuple[Path, Path], name: str, code: int) -> None:
    number = signal.Signals[name]
    with releasing(large, "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        # Once the first bytes are here and the rest is not read, the command is waiting to write.
        assert process.stdout.read(6) == b"z,text"
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        lines = process.stderr.read().decode().splitlines()
    assert not any("Traceback" in line for line in lines)
    assert (INTERRUPTED in lines) == (number == signal.SIGINT)


AUDIT_THAT_HANGS = """
import sys
from threading import Event
from types import SimpleNamespace

from privacyfunnel.auditing import attacks, plan
from privacyfunnel.auditing.adversaries.clustering import umap_embedding
from privacyfunnel.cli import main


class Umap:  # counts its rounds as the real one does, which takes long to compile
    def __init__(self, **settings):
        pass

    def fit_transform(self, Z):
        from tqdm.auto import tqdm

        for _ in tqdm(range(2), disable=True):
            pass
        return Z[:, :2]


class Hanging:
    name = threat_model = "embeds the codes, says so, and never ends"

    def fit(self, Z, y):
        sys.modules["umap"] = SimpleNamespace(UMAP=Umap)
        umap_embedding(Z, 0)
        with open(sys.argv[2], "w") as said:
            said.write("embedded")
        Event().wait()

    def predict_proba(self, Z):
        raise NotImplementedError


plan.Plan._defaults = lambda plan, n_classes: (Hanging(),)
plan.check_honest = lambda *arguments: None
attacks.SMALL = 0
main(["audit", sys.argv[1], "--n-jobs", "2"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
def test_terminated_audit_says_nothing(tmp_path: Path) -> None:
    """Its workers leave no semaphores behind, of which Python would warn in its own words."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "codes.npz", z=rng.normal(size=(80, 2)), y=rng.integers(2, size=80))
    (tmp_path / "hanging.py").write_text(AUDIT_THAT_HANGS)
    os.mkfifo(tmp_path / "said")
    command = [sys.executable, "hanging.py", "codes.npz", str(tmp_path / "said")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert (tmp_path / "said").read_text().startswith("embedded")  # waits for it
        process.terminate()
        out, err = process.communicate(timeout=60)
    lines = [line for line in err.decode().splitlines() if not line.startswith("Auditing: ")]
    assert (process.returncode, out, lines) == (143, b"", [])


@pytest.mark.skipif(sys.platform == "win32", reason="signals as on Unix")
def test_closed_terminal_that_is_to_be_ignored() -> None:
    script = (
        "import os, signal, sys\n"
        "from privacyfunnel.cli import running\n"
        "running._invoke = lambda argv: os.kill(os.getpid(), signal.SIGHUP) or 0\n"
        "signal.signal(signal.SIGHUP, getattr(signal, sys.argv[1]))\n"
        "sys.exit(running.run([]))\n"
    )
    for before, code in (("SIG_IGN", 0), ("SIG_DFL", 129)):  # nohup, and a terminal
        ended = subprocess.run([sys.executable, "-c", script, before], capture_output=True, check=False)
        assert (ended.returncode, ended.stderr) == (code, b"")


def test_reader_that_goes_away(large: tuple[Path, Path]) -> None:
    with releasing(large, "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(6) == b"z,text"
        process.stdout.close()
        assert process.wait(timeout=60) == 2
        *warnings, error = process.stderr.read().decode().splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    assert error == BROKEN


@pytest.mark.parametrize("everything", [False, True])
def test_nobody_reads(everything: bool) -> None:
    """The reader of stdout, or of stdout and stderr, went away before the command began."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run(
            [*PFUNNEL, "solve", "--help"],
            stdout=writer,
            stderr=writer if everything else subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    assert ended.returncode == 2
    if not everything:
        assert ended.stderr.decode() == f"{BROKEN}\n"


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors as on Unix")
def test_closed_standard_output(large: tuple[Path, Path]) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*PFUNNEL, *args], stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1), check=False
        )

    ended = run("solve", "--help")
    assert (ended.returncode, ended.stderr) == (0, b"")
    ended = run("release", str(large[0]), "-m", str(large[1]), "-o", "-")
    assert ended.returncode == 2
    assert ended.stderr == b"error: standard output: it is closed; write to a file.\n"


def test_terminal_without_greek_letters() -> None:
    script = (
        "from privacyfunnel.cli.running import run\n"
        "from privacyfunnel.cli.output import print_json\n"
        "code = run(['solve', '--help'])\n"
        "print_json({'β': code})\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        check=True,
    )
    text = ended.stdout.decode("latin-1")
    assert "leakage ? ? · utility" in text
    assert json.loads(text[text.rindex("{") :]) == {"β": 0}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("to_release", [False, True])
def test_full_device(large: tuple[Path, Path], to_release: bool) -> None:
    release = ["release", str(large[0]), "-m", str(large[1]), "-o", "-"]
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [*PFUNNEL, *(release if to_release else ["--version"])],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ended.returncode == 2
    error = ended.stderr.decode().splitlines()[-1]
    assert error == ("error: standard output: cannot write (No space left on device); write to a file.")


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


@pytest.mark.parametrize("command", [PFUNNEL, [sys.executable, "-m", "privacyfunnel"]])
def test_version(command: list[str]) -> None:
    ended = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout == f"pfunnel {pf.__version__}\n"


def test_python_m_tells_how_to_go_on_as_pfunnel() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "privacyfunnel", "slove"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr == "error: No such command 'slove'. Did you mean 'solve'? See pfunnel --help.\n"


@pytest.mark.parametrize(
    ("line", "found"), [("pfunnel so", ["solve"]), ("pfunnel solve --min", ["--min-utility"])]
)
def test_shell_completion(line: str, found: list[str]) -> None:
    asked = {"_PFUNNEL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    ended = subprocess.run(PFUNNEL, capture_output=True, text=True, env=os.environ | asked, check=True)
    assert (ended.stdout.split(), ended.stderr) == (found, "")


def test_completion_that_cannot_be_installed(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    script = (
        "import shellingham, sys\n"
        "shellingham.detect_shell = lambda: ('bash', '/bin/bash')\n"
        "from privacyfunnel.cli import main\n"
        "main(['--install-completion'])\n"
    )
    env = os.environ | {"HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {tmp_path / 'home'}")
    assert "cannot be read or written" in ended.stderr
    assert ended.stderr.count("\n") == 1
