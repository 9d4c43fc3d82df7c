"""An attacker on the same machine, and accidents: names, killed processes, many tabs, a token in a list."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from app_pages import COLUMNS, PORT, TOKEN, Page, assert_one_sentence, client_class, text_of

from privacyfunnel.app import make_app, places, server
from privacyfunnel.app.desks import Desks
from privacyfunnel.errors import InvalidInputError

NAMES = ["a" * 300, "a/" * 3_000 + "x", "\ud800", "\udcff"]


@pytest.fixture
def chosen(page: Page) -> Page:
    """A release that can be taken."""
    page.does("look", **page.roles(COLUMNS, sex="private", job="public"))
    page.does("choose", way="columns", measure="information")
    return page


@pytest.mark.parametrize("name", NAMES)
def test_names_that_no_file_can_have(chosen: Page, name: str) -> None:
    client = chosen.client
    for where, form in (
        ("/open", {"path": f"{name}.csv"}),
        (chosen.at("take"), {"folder": name}),
        (chosen.at("take"), {"folder": "out", "key": name, "id": "person"}),
    ):
        answer = client.post(where, content=json.dumps(form))
        assert answer.status_code == 422, text_of(answer.text)
        assert_one_sentence(answer)
        assert len(text_of(answer.text)) < 300
    assert chosen.post(chosen.at("stop"), at="9" * 5_000).status_code == 422


def test_a_folder_that_cannot_be_written_is_said(chosen: Page, people: Path) -> None:
    said = chosen.does("take", folder="b" * 250)  # its unfinished twin has a longer name
    assert "it cannot be written (File name too long); name another folder." in said
    assert [path.name for path in people.parent.iterdir()] == ["people.csv"]


def test_two_tabs_that_take_into_one_folder(chosen: Page, people: Path) -> None:
    desks: Desks = chosen.client.app.app.state.desks
    first, second = chosen.desk, Page(chosen.client)
    second.post("/open", path="people.csv")
    one, other = desks.get(first), desks.get(second.desk)
    other.asked, other.choice, other.inspection = one.asked, one.choice, one.inspection
    for tab in (chosen, second):
        assert tab.post(tab.at("take"), folder="out").status_code == 200
    said = []
    for tab in (chosen, second):
        tab.follow()
        said.append(text_of(tab.get(tab.at("take")).text))
    assert sorted("600 records were released" in one for one in said) == [False, True]
    assert sum("name another folder" in one for one in said) == 1
    assert len((people.parent / "out" / "released.csv").read_text().splitlines()) == 601
    assert sorted(path.name for path in people.parent.iterdir()) == ["out", "people.csv"]


@pytest.mark.parametrize("end", ["killed", "cancelled", "closed", "forgotten"])
def test_nothing_half_written_is_left(page: Page, people: Path, end: str) -> None:
    from test_app_screens import endless

    desks: Desks = page.client.app.app.state.desks
    desk = desks.get(page.desk)
    half = people.parent / ".out.unfinished"
    half.mkdir()
    (half / "released.csv").write_text("half\n")
    desk.unfinished = str(half)
    desk.start("take", lambda found: None, endless)
    assert desk.work is not None
    if end == "killed":
        os.kill(desk.work._process.pid, signal.SIGKILL)
        page.follow()
        page.get(page.at("take"))
    elif end == "cancelled":
        page.post(page.at("cancel"))
    elif end == "closed":
        desks.close()
    else:
        desk.seen -= 10_000
        desks.forget()
    assert not half.exists()


def test_what_is_guaranteed_is_no_markup(client: Any, tmp_path: Path) -> None:
    lines = (tmp_path / "people.csv").read_text().replace("sex", "<script>x</script>", 1)
    (tmp_path / "odd.csv").write_text(lines)
    page = Page(client)
    page.post("/open", path="odd.csv")
    names = ["person", "<script>x</script>", *COLUMNS[2:]]
    page.does("look", **page.roles(names, **{names[1]: "private", "job": "public"}))
    page.does("choose", way="columns", measure="information")
    page.does("take", folder="out")
    words = (tmp_path / "out" / "guarantee.md").read_text()
    assert "\\<script\\>x\\</script\\>" in words
    assert "<script>" not in words.replace("\\<", "")


def test_a_table_of_very_many_columns_is_one_sentence(client: Any, tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(",".join(f"c{i}" for i in range(server.MOST_COLUMNS + 1)) + "\n")
    answer = client.post("/open", json={"path": "wide.csv"})
    assert answer.status_code == 422
    assert_one_sentence(answer)
    assert "1,000 columns at most" in answer.text


def test_an_upload_that_is_no_table_is_not_kept(client: Any) -> None:
    before = set(Path(tempfile.gettempdir()).glob(f"{places.PREFIX}*/*"))
    answer = client.post("/upload", content=b"\xff\xfe\x00", headers={"X-Pfunnel-Ending": ".csv"})
    assert answer.status_code == 422
    assert set(Path(tempfile.gettempdir()).glob(f"{places.PREFIX}*/*")) <= before


def test_uploads_of_a_killed_app_are_removed_by_the_next(
    people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (temporary / f"{places.PREFIX}dead").mkdir()
    (temporary / f"{places.PREFIX}dead" / "x.csv").write_text("sex\nf\n")
    (temporary / f"{places.PREFIX}link").symlink_to(people.parent)  # somebody else's, by a trick
    app = make_app(str(people.parent), token=TOKEN, port=PORT)
    assert not (temporary / f"{places.PREFIX}dead").exists()
    assert people.exists()
    headers = {"X-Pfunnel-Token": TOKEN, "X-Pfunnel-Ending": ".csv"}
    with client_class()(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        client.post("/upload", content=people.read_bytes())
        places.Places(str(people.parent))  # another app: what is in use stays
        (kept,) = [path for path in temporary.glob(f"{places.PREFIX}*/*.csv") if path.name != people.name]
        assert kept.parent.stat().st_mode & 0o777 == 0o700
        assert kept.stat().st_mode & 0o777 == 0o600
    assert not kept.exists()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Sockets of workers lie in it, whose paths have a limit."""
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        yield Path(folder)


def test_a_long_name_of_the_temporary_folder_is_one_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    with pytest.raises(InvalidInputError, match="set TMPDIR to a shorter one"):
        server.serve(None, str(tmp_path), browser=False)


def test_a_terminal_that_is_closed_removes_what_was_uploaded(people: Path, short_folder: Path) -> None:
    temporary = short_folder
    asked = [sys.executable, "-m", "privacyfunnel", "app", "--no-browser", "--json", str(people)]
    how: dict[str, Any] = {
        "env": {**os.environ, "TMPDIR": str(temporary)},
        # Started under nohup, tests hand on that SIGHUP is to be ignored.
        "preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    with subprocess.Popen(asked, stdout=subprocess.PIPE, text=True, **how) as process:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
        base, token = json.loads(told)["address"].split("/#token=")
        headers = {"X-Pfunnel-Token": token, "X-Pfunnel-Ending": ".csv"}
        asking = urllib.request.Request(f"{base}/upload", people.read_bytes(), headers)
        with urllib.request.urlopen(asking, timeout=60) as answer:
            assert answer.status == 200
        assert list(temporary.glob(f"{places.PREFIX}*/*.csv"))
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0
    assert not list(temporary.glob(f"{places.PREFIX}*"))


def test_the_browser_is_not_started_with_the_token(tmp_path: Path) -> None:
    """What a process is started with, every user of the machine can list."""
    address = f"http://127.0.0.1:{PORT}/#token={TOKEN}"
    given = server._file_that_leads_to(address, str(tmp_path))
    assert TOKEN not in given
    assert address in Path(given.removeprefix("file://")).read_text()


def test_only_the_empty_page_may_be_come_to_from_elsewhere(client: Any) -> None:
    came = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=came).status_code == 200
    for path in ("/start", "/app.js", "/desk/x/look"):
        assert client.get(path, headers=came).status_code == 403
    assert client.get("/", headers={**came, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert client.get("/", headers={**came, "Origin": "null"}).status_code == 403


def test_no_tab_keeps_a_connection_for_long(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser has six for all tabs: were each held while work lasts, the seventh could not even cancel."""
    from test_app_screens import endless

    monkeypatch.setattr(server, "PACE", 0.01)
    page.client.app.app.state.desks.get(page.desk).start("look", lambda found: None, endless)
    lines = page.get(page.at("progress")).text.splitlines()
    assert len(lines) == server.MOST_LINES
    assert not any("end" in json.loads(line) for line in lines)
    page.post(page.at("cancel"))
    assert "end" in json.loads(page.get(page.at("progress")).text)


@pytest.mark.full
def test_a_browser_comes_from_the_file_and_ten_tabs_work(people: Path, tmp_path: Path) -> None:
    pytest.importorskip("playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("needs a browser: apt install chromium")
    from playwright.sync_api import sync_playwright

    asked = [sys.executable, "-m", "privacyfunnel", "app", "--no-browser", "--json", str(people)]
    with (
        subprocess.Popen(asked, stdout=subprocess.PIPE, text=True) as process,
        sync_playwright() as playwright,
    ):
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
        given = server._file_that_leads_to(json.loads(told)["address"], str(tmp_path))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        context = browser.new_context()
        tabs = [context.new_page() for _ in range(10)]
        for tab in tabs:
            tab.goto(given)
            tab.get_by_role("radio", name="private: sex").wait_for()
        for tab in tabs:
            tab.get_by_role("radio", name="private: sex").check()
            tab.get_by_role("button", name="Look", exact=True).click()
        for tab in tabs:
            tab.get_by_text("Somebody who sees").wait_for(timeout=120_000)
        browser.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
