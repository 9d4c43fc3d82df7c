"""A table of people, and somebody who works with the app by what its script would send."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np

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
        return [json.loads(line) for line in self.get(self.at("progress")).text.splitlines() if line]

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


@contextmanager
def started(folder: Path) -> Iterator[Any]:
    """A client of an app for this folder."""
    from privacyfunnel.app import make_app

    app = make_app(str(folder), token=TOKEN, port=PORT)
    base = f"http://127.0.0.1:{PORT}"
    with client_class()(app, base_url=base, headers={"X-Pfunnel-Token": TOKEN}) as found:
        yield found
