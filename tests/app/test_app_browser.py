"""The page in a browser: the whole way by mouse and by keyboard, quiet, alone, readable, accessible."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest
from app_pages import write_people

import privacyfunnel as pf
from privacyfunnel.keys import new_key

pytestmark = pytest.mark.full

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
#: Milliseconds for the long work of a loaded machine.
LONG = 300_000
#: Where pictures go, if somebody wants to look at them.
PICTURES = os.environ.get("PRIVACYFUNNEL_PICTURES")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        found = [os.environ.get("PRIVACYFUNNEL_BROWSER"), *map(shutil.which, NAMES)]
        path = next((one for one in found if one and Path(one).exists()), None)
        if path is None:
            pytest.skip("no Chromium on this machine: install Debian's package chromium")
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-zygote"])
        yield chromium
        chromium.close()


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
    browser: Any, address: str, *, width: int = 1280, scheme: str = "light"
) -> Iterator[tuple[Any, list[str]]]:
    """The page, and whatever it complained about or asked of others."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, noise = context.new_page(), []
    own = address.split("#")[0]
    page.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("request", lambda one: None if one.url.startswith(own) else noise.append(one.url))
    page.goto(address)
    page.set_default_timeout(LONG)
    yield page, [line for line in noise if not line.startswith("data:")]
    assert [line for line in noise if not line.startswith("data:")] == []
    assert context.cookies() == []
    context.close()


def picture(page: Any, name: str) -> None:
    if PICTURES:
        page.screenshot(path=str(Path(PICTURES) / f"{name}.png"), full_page=True)


def assert_no_wider_than_the_window(page: Any) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def mark(page: Any, role: str, column: str) -> None:
    page.get_by_role("radio", name=f"{role}: {column}", exact=True).check()


def whole_way(page: Any, private: str, public: list[str], folder: str, way: str, name: str = "") -> None:
    """Look, Choose, Check and Take by mouse."""
    page.wait_for_selector("table.roles")
    picture(page, f"{name}-0-first")
    for radio in page.get_by_role("radio", name=re.compile("^drop: ")).all():
        radio.check()
    mark(page, "private", private)
    for column in public:
        mark(page, "public", column)
    page.get_by_role("button", name="Look", exact=True).click()
    page.get_by_role("button", name="Next: choose").wait_for()
    picture(page, f"{name}-1-look")
    assert_no_wider_than_the_window(page)
    page.get_by_role("button", name="Next: choose").click()
    page.locator(f'input[name="way"][value="{way}"]').check()
    page.get_by_role("button", name="Compute the frontier").click()
    page.wait_for_selector("#slider")
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
    page.get_by_role("button", name="Write everything").click()
    page.wait_for_selector("#command")
    picture(page, f"{name}-4-take")
    assert_no_wider_than_the_window(page)
    return shlex.split(unescape(page.inner_text("#command")))


@pytest.fixture(scope="module")
def credit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("credit")
    table = nw.from_native(pf.datasets.load_german_credit()).with_row_index("person")
    table.write_csv(str(folder / "credit.csv"))
    return folder / "credit.csv"


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_whole_way_on_german_credit_by_mouse(browser: Any, credit: Path, width: int, scheme: str) -> None:
    key = credit.parent / f"{scheme}.key"
    new_key(key)
    with (
        served(credit, credit.parent) as address,
        opened(browser, address, width=width, scheme=scheme) as (page, _),
    ):
        name = f"credit-{width}-{scheme}"
        whole_way(page, "sex", ["housing", "employment"], f"out-{scheme}", "columns", name)
        page.get_by_label("A key file").fill(key.name)
        page.get_by_label("The column that tells people apart").select_option("person")
        command = written(page, name)
    assert command[:2] == ["pfunnel", "release"]
    subprocess.run([sys.executable, "-m", "privacyfunnel", *command[1:]], check=True, capture_output=True)
    out = credit.parent / f"out-{scheme}"
    first, again = ((out / f"{name}.csv").read_text().splitlines() for name in ("released", "again"))
    assert len(first) == 1001
    assert sorted(first) == sorted(again)


def test_a_whole_table_of_adult(browser: Any, data_folder: Path, tmp_path: Path) -> None:
    shutil.copy(data_folder / "adult" / "adult.csv.gz", tmp_path / "adult.csv.gz")
    with served(tmp_path / "adult.csv.gz", tmp_path) as address, opened(browser, address) as (page, _):
        page.wait_for_selector("table.roles")
        public = ["age", "occupation", "education", "hours-per-week"]
        there = [text.strip() for text in page.locator("table.roles tbody th").all_inner_texts()]
        public = [name for name in there if name.replace("_", "-").replace(".", "-") in public]
        assert len(public) >= 3, there
        whole_way(page, "sex", public, "out", "table", "adult-1280-light")
        written(page, "adult-1280-light")
    assert (tmp_path / "out" / "released.csv").exists()


def test_by_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    table = write_people(tmp_path / "people.csv")
    with served(None, tmp_path) as address, opened(browser, address) as (page, _):
        press = page.keyboard.press
        page.get_by_label("A .csv").wait_for()
        page.get_by_label("A .csv").focus()
        page.keyboard.type(table.name)
        press("Enter")
        page.wait_for_selector("table.roles")
        page.get_by_role("radio", name="public: sex").focus()
        press("ArrowLeft")
        assert page.get_by_role("radio", name="private: sex").is_checked()
        press("Enter")
        page.get_by_role("button", name="Next: choose").focus()
        press("Enter")
        page.locator('input[name="way"][value="table"]').focus()
        press("ArrowUp")
        assert page.locator('input[name="way"][value="columns"]').is_checked()
        page.locator('input[name="way"][value="table"]').check()
        press("Enter")
        page.wait_for_selector("#slider")
        page.locator("#slider").focus()
        press("Home")
        page.wait_for_selector('#slider[aria-valuetext="0 % kept"]')
        nothing = page.get_attribute("#here", "cx")
        press("End")
        page.wait_for_selector(f'#here:not([cx="{nothing}"])')
        page.reload()
        page.wait_for_selector("#slider")  # the desk is found again
        assert page.locator("#slider").input_value() == "40"


def test_cancel_and_two_tabs(browser: Any, credit: Path) -> None:
    with (
        served(credit, credit.parent) as address,
        opened(browser, address) as (page, _),
        opened(browser, address) as (other, _),
    ):
        for one in (page, other):
            one.wait_for_selector("table.roles")
        mark(page, "private", "sex")
        page.get_by_role("button", name="Look", exact=True).click()
        page.get_by_role("button", name="Next: choose").click()
        page.locator('input[name="way"][value="table"]').check()
        page.get_by_role("button", name="Compute the frontier").click()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("Cancelled; nothing was changed.").wait_for()
        page.get_by_role("button", name="Compute the frontier").wait_for()
        assert other.locator("table.roles th", has_text="guessed alone").count() == 0


def test_without_the_token_there_is_nothing(browser: Any, credit: Path) -> None:
    with served(credit, credit.parent) as address:
        context = browser.new_context()
        page = context.new_page()
        page.goto(address.split("#")[0])
        page.get_by_text("The token is missing or wrong").wait_for()
        assert "sex" not in page.content()
        context.close()


def axe_source() -> str:
    """axe-core of npm, where it is installed: in the folder of AXE_CORE or of `npm root -g`."""
    found = [os.environ.get("AXE_CORE", "")]
    if npm := shutil.which("npm"):
        root = subprocess.run([npm, "root", "-g"], capture_output=True, text=True).stdout.strip()
        found.append(f"{root}/axe-core/axe.min.js")
    path = next((Path(one) for one in found if one and Path(one).is_file()), None)
    if path is None:
        pytest.skip("no axe-core on this machine: npm install -g axe-core, or name axe.min.js in AXE_CORE")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, tmp_path: Path, scheme: str) -> None:
    source = axe_source()
    table = write_people(tmp_path / "people.csv")
    with served(table, tmp_path) as address, opened(browser, address, scheme=scheme) as (page, _):

        def check(where: str) -> None:
            found = page.evaluate(f"(async () => {{ {source}; return (await axe.run()).violations; }})()")
            serious = [
                (one["id"], node["html"][:120], node["failureSummary"])
                for one in found
                if one["impact"] in ("serious", "critical")
                for node in one["nodes"]
            ]
            assert serious == [], (where, serious)

        page.wait_for_selector("table.roles")
        check("first")
        mark(page, "private", "sex")
        mark(page, "drop", "person")
        page.get_by_role("button", name="Look", exact=True).click()
        page.get_by_role("button", name="Next: choose").wait_for()
        check("look")
        page.get_by_role("button", name="Next: choose").click()
        page.locator('input[name="way"][value="table"]').check()
        page.get_by_role("button", name="Compute the frontier").click()
        page.wait_for_selector("#slider")
        check("choose")
        page.get_by_role("button", name="Next: check").click()
        page.get_by_role("button", name="Check", exact=True).click()
        page.get_by_role("button", name="Next: take").wait_for()
        check("check")
        page.get_by_role("button", name="Next: take").click()
        page.get_by_label("A new folder").fill("out")
        written(page)
        check("take")
