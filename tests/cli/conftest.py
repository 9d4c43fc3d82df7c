"""`pfunnel` in this process, with a small table and a mechanism for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_tables import Ended, Run, make_records, write_csv

from privacyfunnel.cli import main


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", make_records())


@pytest.fixture
def pfunnel(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `pfunnel` with the arguments; the exit code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: object) -> Ended:
        with pytest.raises(SystemExit) as end:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        code = end.value.code
        assert isinstance(code, int)
        return Ended(code, out, err)

    return run


@pytest.fixture
def mechanism(pfunnel: Run, people: Path) -> Path:
    """A mechanism for city against sex, as `pfunnel solve` writes it."""
    path = people.with_name("m.json")
    ended = pfunnel(
        "solve",
        people,
        "--public",
        "city",
        "--private",
        "sex",
        "--beta",
        0.2,
        "--method",
        "greedy",
        "-o",
        path,
    )
    assert ended.code == 0, ended.err
    return path


@pytest.fixture
def one_torch_thread() -> Iterator[None]:
    """Tests run beside each other; one thread each is fastest and repeatable."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
