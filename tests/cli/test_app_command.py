"""pfunnel app: bad input is one line, and what it prints is an address of this machine with a token."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tables import Run

pytest.importorskip("starlette", reason="needs the extra app: pip install 'privacyfunnel[app]'")


def test_bad_input_is_one_line(pfunnel: Run, people: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, told in (
        (["missing.csv"], "missing.csv"),
        ([people, "--folder", "nowhere"], "there is no such folder"),
        ([people.parent], "this is a folder"),
    ):
        ended = pfunnel("app", "--no-browser", *asked)
        assert ended.code == 2
        assert told in ended.err
        assert len(ended.err.strip().splitlines()) <= 2
        assert "Traceback" not in ended.err
    monkeypatch.setitem(sys.modules, "privacyfunnel.app", None)
    ended = pfunnel("app", people)
    assert ended.code == 2
    assert "privacyfunnel[app]" in ended.err


def test_there_is_no_way_to_listen_elsewhere(pfunnel: Run, people: Path) -> None:
    assert pfunnel("app", people, "--host", "0.0.0.0").code == 2


def test_it_says_where_it_is_and_ends_with_an_interrupt(people: Path) -> None:
    asked = [sys.executable, "-m", "privacyfunnel", "app", str(people), "--no-browser", "--json"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
            assert process.poll() is None
        values = json.loads(told)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]{43}", values["address"])
    assert values["folder"] == str(people.parent)
    assert (out, err, process.returncode) == ("", "", 0)


# Interrupted when the address is told, but nothing runs yet that could be asked to end.
EARLY = """
import signal, sys
import uvicorn
from privacyfunnel.app import serve

ours = uvicorn.Config.get_loop_factory
uvicorn.Config.get_loop_factory = lambda config: (signal.raise_signal(signal.SIGINT), ours(config))[1]
serve(None, sys.argv[1], browser=False, announce=lambda address: None)
"""


def test_an_interrupt_before_it_serves_ends_it_in_silence(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", EARLY, str(tmp_path)]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("", "", 0)
