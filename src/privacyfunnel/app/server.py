"""The server: routes, and how it is started on the loopback address of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from ..errors import DataFileError, InvalidInputError, PrivacyFunnelError
from ..files import ParquetFile, open_table
from . import screens
from .desks import Desk, Desks
from .guard import TOKEN_HEADER, WRONG, Guard, require_loopback
from .pages import error_page, render, static
from .places import MOST_UPLOAD, Places
from .work import warm_up

if TYPE_CHECKING:
    import uvicorn

#: Bytes of a form, at most.
MOST_FORM = 1 << 20
#: Columns that a page can show.
MOST_COLUMNS = 1_000
#: Seconds between two lines of progress.
PACE = 0.2
#: Lines of one answer: a browser has six connections for all tabs, and each must get its turn.
MOST_LINES = 10
#: Seconds between two looks for desks that nobody uses any more.
TIDY = 20.0
#: Bytes of the name of the folder for temporary files: sockets of workers lie in it, and theirs have 107.
LONGEST_TEMPORARY = 70


class App:
    """The routes, with the desks and the folder that they use."""

    def __init__(self, folder: str, table: str | None = None) -> None:
        self.places, self.desks, self.first = Places(folder), Desks(), table

    def routes(self) -> list[Route]:
        return [
            Route("/", lambda request: render("shell.html")),
            Route("/app.js", lambda request: static("app.js")),
            Route("/app.css", lambda request: static("app.css")),
            Route("/favicon.ico", lambda request: Response(status_code=204)),
            Route("/start", self._told(self.start)),
            Route("/open", self._told(self.open), methods=["POST"]),
            Route("/upload", self._told(self.upload), methods=["POST"]),
            Route("/desk/{desk}/progress", self._told(self.progress)),
            Route("/desk/{desk}/behind", self._told(self.progress)),
            Route("/desk/{desk}/cancel", self._told(self.cancel), methods=["POST"]),
            Route("/desk/{desk}/{screen}", self._told(self.show), methods=["GET"]),
            Route("/desk/{desk}/{screen}", self._told(self.act), methods=["POST"]),
        ]

    def _told(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """The handler, whose errors are a sentence."""

        async def handle(request: Request) -> Response:
            try:
                response: Response = await handler(request)
                return response
            except PrivacyFunnelError as error:
                return error_page(str(error), 422, whole=False)
            except Exception:  # its words may hold a value of the table
                return error_page(WRONG, 500, whole=False)

        return handle

    async def start(self, request: Request) -> Response:
        others = self.desks.begun()
        if self.first is None:
            return render(
                "start.html",
                folder=str(self.places.folder),
                most_upload=MOST_UPLOAD,
                too_large=str(self.places.too_large()),
                others=others,
            )
        return screens.show(self._opened(self.first, os.path.basename(self.first)), "look", others)

    async def open(self, request: Request) -> Response:
        name = str((await read_form(request)).get("path", ""))
        return screens.show(self._opened(self.places.table(name), os.path.basename(name.strip())), "look")

    async def upload(self, request: Request) -> Response:
        ending = request.headers.get("x-pfunnel-ending", "").lower()
        size = request.headers.get("content-length")
        path = await self.places.upload(ending, size, request.stream())
        try:
            desk = self._opened(path, f"uploaded table{ending}", copied=True)
        except BaseException:
            os.unlink(path)
            raise
        return screens.show(desk, "look")

    def _opened(self, path: str, shown: str, *, copied: bool = False) -> Desk:
        table = open_table(path)
        if len(table.columns) > MOST_COLUMNS:
            raise InvalidInputError(
                f"{shown}: the page shows {MOST_COLUMNS:,} columns at most, and the table has "
                f"{len(table.columns):,}; use 'pfunnel inspect', or leave some out."
            )
        n = table.n_records if isinstance(table, ParquetFile) else None
        return self.desks.add(Desk(path, shown, tuple(table.columns), n_records=n, copied=copied))

    async def show(self, request: Request) -> Response:
        return screens.show(self._desk(request), request.path_params["screen"])

    async def act(self, request: Request) -> Response:
        desk, form = self._desk(request), await read_form(request)
        return screens.act(desk, request.path_params["screen"], form, self.places)

    async def cancel(self, request: Request) -> Response:
        desk = self._desk(request)
        screen = desk.doing
        await asyncio.to_thread(desk.cancel)
        desk.settle()
        return screens.show(desk, screen or "look")

    async def progress(self, request: Request) -> Response:
        """Lines of JSON while work is done; the tab that watches keeps its desk, and asks again."""
        desk = self._desk(request)
        behind = request.url.path.endswith("/behind")
        work = desk.behind if behind else desk.work
        screen = "look" if behind else desk.doing

        async def lines() -> AsyncIterator[str]:
            for _ in range(MOST_LINES):
                if work is None or not work.running:
                    yield json.dumps({"end": f"/desk/{desk.name}/{screen}"}) + "\n"
                    return
                seconds = f"{work.seconds} s" if work.seconds else ""
                yield json.dumps({"text": work.text, "done": work.done, "total": work.total, "time": seconds})
                yield "\n"
                self.desks.get(desk.name)
                await asyncio.sleep(PACE)

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    def _desk(self, request: Request) -> Desk:
        return self.desks.get(request.path_params["desk"])

    async def _tidy(self) -> None:
        """End what tabs that were closed have left, though nobody asks for anything."""
        while True:
            await asyncio.sleep(TIDY)
            await asyncio.to_thread(self.desks.forget)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        tidying = asyncio.create_task(self._tidy())
        await asyncio.to_thread(warm_up)
        try:
            yield
        finally:
            tidying.cancel()
            self.desks.close()
            self.places.close()


async def read_form(request: Request) -> dict[str, Any]:
    """A form, which our script sends as one JSON object of texts."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_FORM:
            raise InvalidInputError("The form is too large; fill it in again.")
    try:
        form = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        form = None
    if not isinstance(form, dict) or not all(isinstance(value, str) for value in form.values()):
        raise InvalidInputError("The form cannot be read; load the page again.")
    return form


def make_app(folder: str, *, table: str | None = None, token: str, port: int) -> Guard:
    """The application for a server on this port, behind its guard."""
    inside = App(folder, table)
    found = Starlette(
        routes=inside.routes(),
        lifespan=inside.lifespan,
        exception_handlers={404: _not_found, 405: _not_found},
    )
    found.state.desks = inside.desks
    return Guard(found, token, port)


async def _not_found(request: Request, error: Exception) -> Response:
    sentence = "There is nothing at this address; open the one that pfunnel app printed."
    return error_page(sentence, 404, whole=TOKEN_HEADER not in request.headers)


def loopback_socket(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket that only this machine reaches, on a free port."""
    require_loopback(host)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((host, port))
        listening.listen(64)  # before the address is told: whoever comes first waits, and is not refused
    except OSError as error:
        listening.close()
        raise DataFileError(
            f"Port {port} cannot be used ({error.strerror or error}); name another, or none for a free one."
        ) from None
    return listening


def serve(
    table: str | None,
    folder: str,
    *,
    port: int = 0,
    browser: bool = True,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the app until it is interrupted; `announce` is given its address."""
    import uvicorn

    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_TEMPORARY:
        raise InvalidInputError(
            "app: the folder for temporary files has too long a name for the sockets of workers; set TMPDIR "
            "to a shorter one."
        )
    with contextlib.suppress(KeyboardInterrupt), loopback_socket(port=port) as listening:
        token = secrets.token_urlsafe(32)
        port = listening.getsockname()[1]
        address = f"http://127.0.0.1:{port}/#token={token}"
        application: Any = make_app(folder, table=table, token=token, port=port)
        config = uvicorn.Config(
            application,
            http="h11",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=64,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=3,
        )
        server = uvicorn.Server(config)
        with _ends_when_told(server), tempfile.TemporaryDirectory(prefix="pfunnel-open-") as private:
            announce(address)
            if browser:
                webbrowser.open(_file_that_leads_to(address, private))
            server.run(sockets=[listening])


def _file_that_leads_to(address: str, private: str) -> str:
    """The address of a page that only this user reads: what a browser is started with all users can list."""
    path = Path(private) / "open.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={address}">'
        f'<title>privacyfunnel</title><a href="{address}">Open the page</a>\n',
        encoding="utf-8",
    )
    return path.as_uri()


@contextlib.contextmanager
def _ends_when_told(server: uvicorn.Server) -> Iterator[None]:
    """Ctrl+C ends a server in good order before it has begun, too; so does a terminal that is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [signal.SIGINT]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup's
        ours.append(signal.SIGHUP)
    before = {one: signal.signal(one, server.handle_exit) for one in ours}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
