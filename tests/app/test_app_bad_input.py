"""Whatever comes in, the app says one sentence and goes on: odd names, bombs, dead workers, lost columns."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from app_pages import Page, assert_one_sentence, text_of
from app_payloads import PAYLOADS

from privacyfunnel.app import work

SCREENS = ("look", "choose", "check", "take")
TAGS = frozenset(
    """html head meta title link body main header nav ol ul li p div span h1 h2 section form fieldset legend
    label input button select option table thead tbody caption tr th td dl dt dd b code pre progress svg
    rect path polygon polyline circle text""".split()  # noqa: SIM905
)


class Parsed(HTMLParser):
    """The elements of a page, as a browser finds them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]


def assert_only_ours(page: str) -> None:
    found = Parsed(page)
    assert found.tags <= TAGS, found.tags - TAGS
    assert not {name for name in found.attributes if name.startswith("on") or name in ("style", "srcdoc")}
    assert found.links == []


def odd_table(path: Path, n: int = 500) -> list[str]:
    """Every payload is a column and a value; the first column is public, the second private."""
    rng = np.random.default_rng(0)
    columns: dict[str, list[Any]] = {}
    for name in PAYLOADS:
        columns[name] = [PAYLOADS[i] for i in rng.integers(0, len(PAYLOADS), n)]
    columns[PAYLOADS[1]] = [PAYLOADS[i] for i in rng.integers(0, 2, n)]
    columns["person"] = list(range(n))
    pq.write_table(pa.table(columns), path)
    return list(columns)


@pytest.mark.parametrize("way", ["columns", "table"])
def test_no_name_and_no_value_becomes_markup(client: Any, tmp_path: Path, way: str) -> None:
    names = odd_table(tmp_path / "odd.parquet")
    page = Page(client)
    page.post("/open", path="odd.parquet")
    kept = dict.fromkeys(names[4:-1], "keep")
    public = {names[0]: "public", **({names[3]: "public"} if way == "table" else {})}
    roles = page.roles(names, **{**kept, names[1]: "private", **public})
    told = page.does("look", **roles)
    page.post(page.at("look"), **roles)  # as asked, whatever was advised
    told += page.does("choose", way=way, measure="information")
    told += page.does("check", max_success="90")
    told += page.does("take", folder="odd")
    assert "500 records were released" in told, told[-300:]
    for screen in SCREENS:
        assert_only_ours(page.get(page.at(screen)).text)
    assert_only_ours(page.post(page.at("stop"), at="7").text)
    for payload in PAYLOADS:
        assert " ".join(payload.split()) in told, payload
    assert_only_ours(page.post("/open", path=PAYLOADS[0]).text)
    script = (tmp_path / "odd" / "keep" / "repeat.py").read_text(encoding="utf-8")
    compile(script, "repeat.py", "exec")


@pytest.mark.parametrize(
    "path",
    [
        *("/desk/x/look", "/desk/x/nothing", "/desk//look", "/desk/%00/look", "/desk/x/look/more"),
        *(
            "/../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/app.js/../server.py",
            "/static/app.js",
            "/desk/../start/x",
        ),
        *("/nothing", "/desk/x/progress", "/desk/x/cancel", "/" + "a" * 5_000),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_addresses_that_are_none(client: Any, path: str, method: str) -> None:
    answer = client.request(method, path)
    assert 400 <= answer.status_code < 500
    assert_one_sentence(answer)


@pytest.mark.parametrize("screen", [*SCREENS, "stop", "cancel", "nothing"])
@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"role-0": "owner"}', b'{"at": "1e9"}'])
def test_every_form_with_every_nonsense(page: Page, screen: str, body: bytes) -> None:
    answer = page.client.post(page.at(screen), content=body)
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert_one_sentence(answer)
    assert page.get(page.at("look")).status_code == 200


def test_a_worker_that_somebody_kills(page: Page) -> None:
    from test_app_screens import endless

    desk = page.client.app.app.state.desks.get(page.desk)
    desk.start("look", lambda found: None, endless)
    os.kill(desk.work._process.pid, signal.SIGKILL)
    page.follow()
    assert work.KILLED in text_of(page.get(page.at("look")).text)
    assert page.get(page.at("look")).status_code == 200


def write_bomb(path: Path, megabytes: int = 8, n: int = 1_000) -> None:
    """A dictionary of one long text, which all records share: little in the file, very much in memory."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int8)), ["x" * (megabytes << 20)])
    columns = {"y": pa.array(np.arange(n) % 2), "x": text}
    pq.write_table(pa.table(columns), path, compression="zstd", store_schema=False)


def test_a_file_that_unpacks_to_more_than_there_is(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bomb(tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 1 << 20
    monkeypatch.setattr(work, "MOST_MEMORY", 2 << 30)
    page = Page(client)
    answer = client.post(
        "/upload", content=(tmp_path / "bomb.parquet").read_bytes(), headers={"X-Pfunnel-Ending": ".parquet"}
    )
    if answer.status_code == 200:
        page._kept(answer)
        said = page.does("look", **page.roles(["y", "x"], y="private", x="public"))
        assert "could not be done" in said or "ended before" in said or "damaged" in said, said
    else:
        assert_one_sentence(answer)
    assert client.get("/start").status_code == 200


@pytest.mark.parametrize(
    "content",
    [b"", b"\n\n", b"a,b\n", b"x" * (8 << 20), b'a,b\n"', b"a,a\n1,2\n", b"\x00\x01\x02", b"a,b\n1\n"],
)
def test_uploads_that_are_no_tables(client: Any, content: bytes) -> None:
    answer = client.post("/upload", content=content, headers={"X-Pfunnel-Ending": ".csv"})
    assert answer.status_code in (200, 422)
    if answer.status_code == 422:
        assert_one_sentence(answer)
        assert len(text_of(answer.text)) < 500
    else:
        page = Page(client)
        page._kept(answer)
        said = page.does("look", **{"role-0": "private"})
        assert "Traceback" not in said
        assert 'class="error"' in page.get(page.at("look")).text
    assert client.get("/start").status_code == 200


@pytest.fixture
def server(people: Path) -> Iterator[tuple[Any, Any]]:
    """`pfunnel app` in a process of its own, and a function that asks it; it says nothing but its address."""
    asked = [sys.executable, "-m", "privacyfunnel", "app", "--no-browser", "--json", str(people)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
        at = urlsplit(json.loads(told)["address"])
        token = at.fragment.removeprefix("token=")

        def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
            chunked = not isinstance(body, (bytes, str, type(None)))
            with closing(http.client.HTTPConnection("127.0.0.1", at.port, timeout=60)) as wire:
                wire.request(
                    method, path, body, {"X-Pfunnel-Token": token, **headers}, encode_chunked=chunked
                )
                answer = wire.getresponse()
                return answer.status, answer.read().decode()

        try:
            yield process, ask
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("", "", 0)  # nothing is logged


@pytest.mark.full
def test_a_gigabyte_is_refused_and_never_kept(server: Any) -> None:
    process, ask = server
    ending = {"X-Pfunnel-Ending": ".csv"}
    status, said = ask("POST", "/upload", b"a,b\n", **ending, **{"Content-Length": str(1 << 30)})
    assert (status, "256 MB" in said) == (422, True)

    def parts() -> Iterator[bytes]:
        for _ in range(1 << 10):
            yield b"x" * (1 << 20)

    try:
        status, said = ask("POST", "/upload", parts(), **ending, **{"Transfer-Encoding": "chunked"})
        assert (status, "256 MB" in said) == (422, True)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it answered and closed before all was sent
    peak = [line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "VmHWM" in line]
    assert int(peak[0].split()[1]) < 400_000  # kB
    assert ask("GET", "/start")[0] == 200


def test_odd_requests_on_the_wire(server: Any) -> None:
    _, ask = server
    assert ask("GET", "/start", Host="evil.example")[0] == 421
    assert ask("GET", "/start", Origin="http://evil.example")[0] == 403
    assert ask("GET", "/start", **{"X-Pfunnel-Token": "wrong"})[0] == 403
    for path in ("/../../etc/passwd", "/%2e%2e/etc/passwd", "/desk/x/look?sex=f"):
        status, said = ask("GET", path)
        assert status in (404, 422)
        assert "root:" not in said
    status, said = ask("GET", "/start")
    assert (status, "colour" in said) == (200, True)


@pytest.mark.full
def test_a_million_different_values(client: Any, tmp_path: Path) -> None:
    n = 1_000_000
    columns = {"y": np.arange(n) % 2, "x": pa.array(np.arange(n)).cast(pa.string()), "w": np.arange(n) % 3}
    pq.write_table(pa.table(columns), tmp_path / "many.parquet")
    page = Page(client)
    page.post("/open", path="many.parquet")
    roles = page.roles(["y", "x", "w"], y="private", x="public", w="public")
    assert "1,000,000 records" in page.does("look", **roles)
    page.post(page.at("look"), **roles)
    said = page.does("choose", way="columns", measure="information")
    assert "more than 2,000 different values" in said, said
    said = page.does("look", **page.roles(["y", "x", "w"], x="private", w="public"))
    assert "has too many different values; group them" in said, said
