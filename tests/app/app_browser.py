"""The page in a browser: how tests open it, go through it by mouse and by keys, and what must stay quiet."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app_pages import command_of

#: Milliseconds for the long work of a loaded machine.
LONG = 300_000
#: Every address that the page asks for: no name or value of a table is in one.
ADDRESS = re.compile(r"/(app\.js|app\.css|start|open|upload|desk/[\w-]+/[a-z]+)?")
#: Where pictures go, if somebody wants to look at them.
PICTURES = os.environ.get("PRIVACYFUNNEL_PICTURES")


@contextmanager
def served(table: Path | None, folder: Path) -> Iterator[str]:
    """The address of `pfunnel app` in a process of its own, which is ended like by Ctrl+C."""
    asked = [sys.executable, "-m", "privacyfunnel", "app", "--no-browser", "--json", "--folder", str(folder)]
    asked += [] if table is None else [str(table)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = ""
        while not told.endswith("}\n"):
            told += process.stdout.readline()
            assert process.poll() is None, told
        try:
            yield json.loads(told)["address"]
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (out, err, process.returncode) == ("", "", 0)


@contextmanager
def opened(
    browser: Any,
    address: str,
    *,
    width: int = 1280,
    scheme: str = "light",
    refused: str = "nothing",
    **more: Any,
) -> Iterator[tuple[Any, list[str]]]:
    """The page, and whatever it complained about or asked of others; a browser tells of what is `refused`."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
    page, noise = context.new_page(), []
    own = address.split("#")[0]
    page.on(
        "console", lambda said: None if refused in said.text else noise.append(f"{said.type}: {said.text}")
    )
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda one: None if is_ours(one.url, own) else noise.append(one.url))
    page.goto(address)
    page.set_default_timeout(LONG)
    yield page, [line for line in noise if not line.startswith("data:")]
    assert [line for line in noise if not line.startswith("data:")] == []
    assert context.cookies() == []
    context.close()


def is_ours(url: str, own: str) -> bool:
    path = url.split("#")[0].removeprefix(own.rstrip("/"))
    return url.startswith(own) and ADDRESS.fullmatch(path) is not None


def picture(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def assert_no_wider_than_the_window(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def mark(page: Any, role: str, column: str) -> None:
    page.get_by_role("radio", name=f"{role}: {column}", exact=True).check()


def mark_all(page: Any, private: str, public: list[str]) -> None:
    """These columns; all others are dropped."""
    for radio in page.get_by_role("radio", name=re.compile("^drop: ")).all():
        radio.check()
    mark(page, "private", private)
    for column in public:
        mark(page, "public", column)


def look(page: Any) -> None:
    page.get_by_role("button", name="Look", exact=True).click()
    page.get_by_role("button", name="Next: choose").wait_for()


def choose(page: Any, way: str) -> None:
    """On to Choose, and the frontier."""
    page.get_by_role("button", name="Next: choose").click()
    page.locator(f'input[name="way"][value="{way}"]').check()
    page.get_by_role("button", name="Compute the frontier").click()
    page.wait_for_selector("#slider")


def whole_way(page: Any, private: str, public: list[str], folder: str, way: str, name: str = "") -> None:
    """Look, Choose, Check and Take by mouse."""
    page.wait_for_selector("table.roles")
    picture(page, f"{name}-0-first")
    mark_all(page, private, public)
    look(page)
    picture(page, f"{name}-1-look")
    assert_no_wider_than_the_window(page)
    choose(page, way)
    picture(page, f"{name}-2-choose")
    assert_no_wider_than_the_window(page)
    page.get_by_role("button", name="Next: check").click()
    page.get_by_label("Nobody may be right more often").fill("99")
    page.get_by_role("button", name="Check", exact=True).click()
    page.get_by_role("button", name="Next: take").wait_for()
    picture(page, f"{name}-3-check")
    assert_no_wider_than_the_window(page)
    page.get_by_role("button", name="Next: take").click()
    page.get_by_label("A new folder").fill(folder)


def written(page: Any, name: str = "") -> list[str]:
    """Write everything; the command that repeats it."""
    page.get_by_role("button", name="Write everything").click()
    page.wait_for_selector("#command")
    picture(page, f"{name}-4-take")
    assert_no_wider_than_the_window(page)
    return command_of(page.content())


class Keyboard:
    """Somebody who has no mouse: what has the focus is found by Tab alone."""

    def __init__(self, page: Any) -> None:
        self.page, self.press = page, page.keyboard.press

    def to(self, selector: str) -> None:
        """Press Tab until the focus is there; only what can be reached by keys is found."""
        self.page.wait_for_selector(selector)
        for _ in range(400):
            if self.page.evaluate("one => document.activeElement.matches(one)", selector):
                return
            self.press("Tab")
        raise AssertionError(f"Tab does not reach {selector}")

    def role(self, column: str, role: str) -> None:
        """From the role that is marked to another, by arrows."""
        group = self.page.locator(f'input[aria-label="{role}: {column}"]').get_attribute("name")
        self.to(f'input[name="{group}"]:checked')
        for _ in range(5):
            if self.page.locator(f'input[name="{group}"][value="{role}"]').is_checked():
                return
            self.press("ArrowRight")
        raise AssertionError((column, role))

    def enter(self, selector: str) -> None:
        self.to(selector)
        self.press("Enter")

    def fill(self, selector: str, text: str) -> None:
        self.to(selector)
        self.press("Control+a")
        self.page.keyboard.type(text)


def whole_way_by_keys(
    page: Any, private: str, public: list[str], way: str, form: dict[str, str]
) -> list[str]:
    """Look, Choose, Check and Take without a mouse; the command that repeats it."""
    keys = Keyboard(page)
    page.wait_for_selector("table.roles")
    for name in page.locator("table.roles tbody th").all_inner_texts():
        keys.role(name, "private" if name == private else "public" if name in public else "drop")
    keys.press("Enter")  # the form's own button
    keys.enter('button[data-save$="/choose"]')
    keys.to('input[name="way"]:checked')
    if not page.locator(f'input[name="way"][value="{way}"]').is_checked():
        keys.press("ArrowDown" if way == "table" else "ArrowUp")
    assert page.locator(f'input[name="way"][value="{way}"]').is_checked()
    keys.press("Enter")
    keys.to("#slider")
    keys.press("Home")
    page.wait_for_selector('#slider[aria-valuetext="0 % kept"]')
    nothing = page.get_attribute("#here", "cx")
    keys.press("End")
    page.wait_for_selector(f'#here:not([cx="{nothing}"])')
    keys.press("ArrowLeft")
    keys.press("ArrowLeft")
    page.wait_for_selector('#slider[aria-valuetext="95 % kept"]')
    keys.enter('button[data-get$="/check"].next')
    keys.fill("#max_success", "99")
    keys.press("Enter")
    keys.enter('button[data-get$="/take"].next')
    keys.fill("#folder", form["folder"])
    keys.fill("#key", form["key"])
    keys.to("#id")
    page.keyboard.type(form["id"])  # a list goes to what is typed
    assert page.locator("#id").input_value() == form["id"]
    keys.enter("form button:not([type])")
    page.wait_for_selector("#command")
    return command_of(page.content())
