"""Shared set-up: where the data folder is, how hypothesis runs, and databases of the tests' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from databases import ENGINES, KINDS, Database, open_database
from hypothesis import settings

# Compiled kernels make the first example slow, and a red run must be red again: no deadline, fixed seeds.
settings.register_profile("privacyfunnel", deadline=None, derandomize=True)
settings.load_profile("privacyfunnel")

_NEARBY_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if "PRIVACYFUNNEL_DATA" not in os.environ and _NEARBY_DATA.is_dir():
    os.environ["PRIVACYFUNNEL_DATA"] = str(_NEARBY_DATA)


@pytest.fixture
def data_folder() -> Path:
    """The folder of PRIVACYFUNNEL_DATA; tests that need it are skipped where there is none."""
    folder = os.environ.get("PRIVACYFUNNEL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the data sets: set PRIVACYFUNNEL_DATA to the folder that holds adult/adult.csv.gz")
    return Path(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium; tests that need it are skipped where there is none."""
    pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    try:
        with chromium() as found:
            yield found
    except LookupError as error:
        pytest.skip(str(error))


def _server(dialect: str) -> Any:
    """A server of the tests' own that runs until the last test."""

    @pytest.fixture(scope="session", name=f"{dialect}_server")
    def server() -> Iterator[Any]:
        with KINDS[dialect][1]() as address:
            yield address

    return server


postgres_server, mariadb_server, spark_server = map(_server, ("postgres", "mariadb", "spark"))


@pytest.fixture(params=ENGINES)
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty database of each engine that `to_sql` writes for."""
    with open_database(request, request.param) as found:
        yield found
