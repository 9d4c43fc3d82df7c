"""A table of people, and somebody who works with the app by what its script would send."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

from privacyfunnel.keys import hmac_pads, read_key

TOKEN, PORT = "the-token", 8765
COLUMNS = ["person", "sex", "job", "city", "colour", "age"]


def write_people(path: Path, n: int = 600) -> Path:
    """sex is told by job, a little by city, and not by colour."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, n)
    job = np.where(rng.random(n) < 0.75, sex, rng.integers(0, 4, n))
    city = np.where(rng.random(n) < 0.2, sex, rng.integers(0, 3, n))
    rows = [
        f"{i},{'fm'[s]},job{j},city{c},{k},{a}"
        for i, s, j, c, k, a in zip(
            range(n), sex, job, city, rng.integers(0, 2, n), rng.integers(20, 60, n), strict=True
        )
    ]
    path.write_text("\n".join(["person,sex,job,city,colour,age", *rows]) + "\n", encoding="utf-8")
    return path


class Page:
    """Somebody who works with the app, by what the script would send."""

    def __init__(self, client: Any) -> None:
        self.client, self.desk = client, ""

    def get(self, path: str) -> Any:
        return self._kept(self.client.get(path))

    def post(self, where: str, /, **form: str) -> Any:
        return self._kept(self.client.post(where, json=form))

    def _kept(self, answer: Any) -> Any:
        found = re.search(r'data-desk="([^"]+)"', answer.text)
        if found:
            self.desk = found[1]
        return answer

    def at(self, screen: str) -> str:
        return f"/desk/{self.desk}/{screen}"

    def roles(self, columns: list[str], **named: str) -> dict[str, str]:
        return {f"role-{i}": named.get(name, "drop") for i, name in enumerate(columns)}

    def follow(self) -> list[dict[str, Any]]:
        """All progress, until the work ends."""
        told: list[dict[str, Any]] = []
        while not told or "end" not in told[-1]:  # the script asks again, too
            told += [json.loads(line) for line in self.get(self.at("progress")).text.splitlines() if line]
        return told

    def does(self, screen: str, **form: str) -> str:
        """Ask for work and wait for it; what the screen then says."""
        answer = self.post(self.at(screen), **form)
        assert answer.status_code == 200, answer.text
        self.follow()
        return text_of(self.get(self.at(screen)).text)


def client_class() -> Any:
    """Starlette's, which says that it would rather have a successor of httpx."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from starlette.testclient import TestClient
    return TestClient


def text_of(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def assert_one_sentence(answer: Any) -> None:
    text = text_of(answer.text)
    assert text, "an error says something"
    assert text.endswith("."), text
    assert "Traceback" not in answer.text
    assert 'File "' not in answer.text


def command_of(page: str) -> list[str]:
    """The command that the last screen shows."""
    found = re.search(r'id="command">(.*?)</code>', page, re.S)
    assert found
    return shlex.split(unescape(found[1]))


def assert_repeated(released: Path, command: list[str]) -> None:
    """The command and the script, run by themselves, give the same records in another order."""
    assert command[:2] == ["pfunnel", "release"]
    folder, first = released.parent, _records(released)
    again = released.with_stem("again")
    for ask in (
        [sys.executable, "-m", "privacyfunnel", *command[1:]],
        [sys.executable, folder / "keep" / "repeat.py"],
    ):
        again.unlink(missing_ok=True)
        ended = subprocess.run(ask, check=True, capture_output=True, text=True, cwd=folder.parent)
        assert _records(again) == first
    assert "Made again to the last bit." in ended.stdout


def _records(path: Path) -> list[str]:
    if path.suffix == ".csv":
        return sorted(path.read_text(encoding="utf-8").splitlines())
    import pyarrow.parquet as pq

    return sorted(map(str, pq.read_table(path).to_pylist()))


def symbols_in_duckdb(table: Path, script: Path, key: Path) -> list[str]:
    """What the statements of a script release inside DuckDB, with the key in its table."""
    import duckdb

    base = duckdb.connect()
    base.execute(f"CREATE TABLE {table.stem} AS SELECT * FROM read_csv(?)", [str(table)])
    for statement in script.read_text(encoding="utf-8").split(";\n\n"):
        base.execute(statement)
        if "release_key" in statement and "CREATE TABLE" not in statement:
            base.execute("INSERT INTO release_key VALUES (?, ?)", hmac_pads(read_key(key)))
    return sorted(str(row[0]) for row in base.execute("SELECT z FROM released").fetchall())


@contextmanager
def started(folder: Path) -> Iterator[Any]:
    """A client of an app for this folder."""
    from privacyfunnel.app import make_app

    app = make_app(str(folder), token=TOKEN, port=PORT)
    base = f"http://127.0.0.1:{PORT}"
    with client_class()(app, base_url=base, headers={"X-Pfunnel-Token": TOKEN}) as found:
        yield found
