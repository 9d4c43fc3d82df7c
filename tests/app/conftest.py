"""The app in this process, with a client that sends the token, and a table of people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import Page, started, write_people

pytest.importorskip("starlette", reason="needs the extra app: pip install 'privacyfunnel[app]'")
pytest.importorskip("httpx", reason="needs httpx: pip install httpx")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write_people(tmp_path / "people.csv")


@pytest.fixture
def client(people: Path) -> Iterator[Any]:
    with started(people.parent) as found:
        yield found


@pytest.fixture
def page(client: Any) -> Page:
    """The table, opened."""
    found = Page(client)
    answer = found.post("/open", path="people.csv")
    assert answer.status_code == 200, answer.text
    return found
