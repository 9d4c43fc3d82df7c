"""The app answers its own page alone: token, host, origin, policy, paths, sizes; errors are one sentence."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from app_pages import PORT, TOKEN, assert_one_sentence, client_class

from privacyfunnel.app import make_app, places
from privacyfunnel.app.guard import require_loopback
from privacyfunnel.app.server import loopback_socket
from privacyfunnel.errors import InvalidInputError

ROUTES = [
    ("GET", "/start"),
    ("POST", "/open"),
    ("POST", "/upload"),
    *(("GET", f"/desk/x/{screen}") for screen in ("look", "choose", "check", "take", "progress")),
    *(("POST", f"/desk/x/{screen}") for screen in ("look", "choose", "check", "take", "stop", "cancel")),
    ("GET", "/nothing"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("token", [None, "", "wrong", "the-tokeñ".encode()])
def test_every_route_needs_the_token(client: Any, method: str, path: str, token: Any) -> None:
    del client.headers["X-Pfunnel-Token"]
    answer = client.request(method, path, headers={} if token is None else {"X-Pfunnel-Token": token})
    assert answer.status_code == 403
    assert_one_sentence(answer)


@pytest.mark.parametrize("path", ["/", "/app.js", "/app.css"])
def test_the_shell_needs_none_and_holds_nothing(client: Any, path: str) -> None:
    del client.headers["X-Pfunnel-Token"]
    answer = client.get(path)
    assert answer.status_code == 200
    assert TOKEN not in answer.text
    assert "people" not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", "[::1]", ""]
)
@pytest.mark.parametrize("path", ["/", "/start"])
def test_a_foreign_host_is_refused(client: Any, host: str, path: str) -> None:
    answer = client.get(path, headers={"Host": host})
    assert answer.status_code == 421
    assert_one_sentence(answer)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/start"])
def test_a_foreign_origin_is_refused(client: Any, headers: dict[str, str], path: str) -> None:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 403
    assert_one_sentence(answer)


def test_our_own_origin_is_not(client: Any) -> None:
    own = {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    assert client.get("/start", headers=own).status_code == 200


@pytest.mark.parametrize("path", ["/", "/app.js", "/start", "/nothing", "/desk/x/look"])
def test_every_answer_has_the_policy_and_no_cookie(client: Any, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text
    assert " style=" not in answer.text
    assert " onclick=" not in answer.text


def test_the_script_is_short_and_asks_nobody_else() -> None:
    script = (Path(places.__file__).parent / "static" / "app.js").read_text(encoding="utf-8")
    assert len(script.splitlines()) < 150
    assert "http:" not in script
    assert "https:" not in script
    assert "innerHTML" not in script
    assert "localStorage" not in script


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org", ""])
def test_it_listens_on_this_machine_alone(host: str) -> None:
    with pytest.raises(InvalidInputError, match=r"this machine alone"):
        loopback_socket(host)
    assert require_loopback("127.0.0.1") == "127.0.0.1"
    with loopback_socket() as own:
        assert own.getsockname()[0] == "127.0.0.1"
        socket.create_connection(own.getsockname(), timeout=5).close()  # a browser may be quick


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../people.csv", "~/x.csv", "", " ", "a\0b.csv", "missing.csv", ".", "people.csv/x"],
)
def test_a_path_stays_in_the_folder(client: Any, path: str) -> None:
    answer = client.post("/open", json={"path": path})
    assert answer.status_code == 422
    assert_one_sentence(answer)


def test_a_link_that_leaves_the_folder_is_refused(client: Any, people: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.csv"
    outside.write_text("a,b\n1,2\n")
    (people.parent / "link.csv").symlink_to(outside)
    answer = client.post("/open", json={"path": "link.csv"})
    assert answer.status_code == 422
    assert "outside" in answer.text


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"path": 3}', b"[" * 100_000, b"\xff", b'{"a": "' + b"x" * 2_000_000]
)
def test_a_form_that_is_none_is_refused(client: Any, body: bytes) -> None:
    answer = client.post("/open", content=body)
    assert answer.status_code == 422
    assert_one_sentence(answer)


def test_an_upload_is_opened_and_removed_at_the_end(people: Path) -> None:
    app = make_app(str(people.parent), token=TOKEN, port=PORT)
    headers = {"X-Pfunnel-Token": TOKEN, "X-Pfunnel-Ending": ".csv"}
    with client_class()(app, base_url=f"http://127.0.0.1:{PORT}", headers=headers) as client:
        before = set(Path("/tmp").glob("pfunnel-app-*"))
        answer = client.post("/upload", content=people.read_bytes())
        assert answer.status_code == 200
        assert "colour" in answer.text
        made = set(Path("/tmp").glob("pfunnel-app-*")) - before
    assert not any(path.exists() for path in made)


def test_a_large_upload_is_refused_before_it_is_read(client: Any) -> None:
    headers = {"X-Pfunnel-Ending": ".csv", "Content-Length": str(1 << 30)}
    answer = client.post("/upload", content=b"a,b\n", headers=headers)
    assert answer.status_code == 422
    assert "256 MB" in answer.text


def test_an_upload_that_says_no_length_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_UPLOAD", 1000)
    there = places.Places(str(tmp_path))

    async def parts() -> Any:
        for _ in range(100):
            yield b"x" * 100

    with pytest.raises(InvalidInputError, match="at most"):
        asyncio.run(there.upload(".csv", None, parts()))
    assert there._uploads is not None
    assert list(there._uploads.iterdir()) == []
    there.close()


@pytest.mark.parametrize("ending", [".gz", ".exe", "", "/../../x.csv", ".csv/../x"])
def test_an_upload_of_another_kind_is_refused(client: Any, ending: str) -> None:
    answer = client.post("/upload", content=b"a,b\n1,2\n", headers={"X-Pfunnel-Ending": ending})
    assert answer.status_code == 422
    assert_one_sentence(answer)


def test_a_parquet_file_that_unpacks_to_very_much_is_refused(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(places, "MOST_CELLS", 50_000)
    pq.write_table(pa.table({"a": pa.array([1] * 100_000)}), tmp_path / "bomb.parquet")
    headers = {"X-Pfunnel-Ending": ".parquet"}
    answer = client.post("/upload", content=(tmp_path / "bomb.parquet").read_bytes(), headers=headers)
    assert answer.status_code == 422
    assert "100,000 records" in answer.text
    broken = client.post("/upload", content=b"PAR1 no", headers=headers)
    assert broken.status_code == 422
    assert_one_sentence(broken)


def test_an_error_inside_is_a_sentence_and_the_server_goes_on(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from privacyfunnel.app import server

    def broken(*args: Any) -> Any:
        raise ZeroDivisionError("secret value 42")

    monkeypatch.setattr(server, "open_table", broken)
    answer = client.post("/open", json={"path": "people.csv"})
    assert answer.status_code == 500
    assert_one_sentence(answer)
    assert "secret" not in answer.text
    monkeypatch.undo()
    assert client.post("/open", json={"path": "people.csv"}).status_code == 200
