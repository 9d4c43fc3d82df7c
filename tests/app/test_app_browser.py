"""The page in a browser: the whole way by mouse and by keyboard, quiet, alone, readable, accessible."""

from __future__ import annotations

import gzip
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest
from app_browser import Keyboard, mark, opened, served, whole_way, whole_way_by_keys, written
from app_pages import assert_repeated, symbols_in_duckdb, write_people

import privacyfunnel as pf
from privacyfunnel.keys import new_key

pytestmark = pytest.mark.full

#: Columns of Adult that make a table.
PUBLIC = ["age", "occupation", "education", "hours-per-week"]


@pytest.fixture(scope="module")
def credit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("credit")
    table = nw.from_native(pf.datasets.load_german_credit()).with_row_index("person")
    table.write_csv(str(folder / "credit.csv"))
    return folder / "credit.csv"


@pytest.fixture
def adult(tmp_path: Path, data_folder: Path) -> Path:
    """Every fourth record, with a number: all of them take minutes on a loaded machine."""
    with gzip.open(data_folder / "adult" / "adult.csv.gz", "rt", encoding="utf-8") as file:
        head, *rows = file.read().splitlines()
    rows = [f"{i},{row}" for i, row in enumerate(rows[::4])]
    (tmp_path / "adult.csv").write_text("\n".join([f"person,{head}", *rows]) + "\n", encoding="utf-8")
    return tmp_path / "adult.csv"


def by_name(table: Path, wanted: list[str]) -> list[str]:
    """Columns of Adult, whatever is between their words."""
    names = table.read_text(encoding="utf-8").partition("\n")[0].split(",")
    return [name for name in names if re.sub("[._]", "-", name) in wanted]


def assert_same_in_duckdb(table: Path, folder: Path, key: Path) -> None:
    released = sorted((folder / "released.csv").read_text().splitlines()[1:])
    assert symbols_in_duckdb(table, folder / "release.sql", key) == released


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_whole_way_on_german_credit_by_mouse(browser: Any, credit: Path, width: int, scheme: str) -> None:
    name, out = f"credit-{width}-{scheme}", credit.parent / f"out-{width}-{scheme}"
    key = new_key_file(credit.parent / f"{name}.key")
    with (
        served(credit, credit.parent) as address,
        opened(browser, address, width=width, scheme=scheme) as (page, _),
    ):
        whole_way(page, "sex", ["housing", "employment"], out.name, "columns", name)
        page.get_by_label("A key file").fill(key.name)
        page.get_by_label("The column that tells people apart").select_option("person")
        command = written(page, name)
    assert len((out / "released.csv").read_text().splitlines()) == 1001
    if (width, scheme) == (1280, "light"):
        assert_repeated(out / "released.csv", command)
        assert_same_in_duckdb(credit, out, key)


def new_key_file(path: Path) -> Path:
    new_key(path)
    return path


def test_a_whole_table_of_adult_by_mouse(browser: Any, adult: Path) -> None:
    key = new_key_file(adult.parent / "mouse.key")
    with served(adult, adult.parent) as address, opened(browser, address) as (page, _):
        whole_way(page, "sex", by_name(adult, PUBLIC), "mouse", "table", "adult-1280-light")
        page.get_by_label("A key file").fill(key.name)
        page.get_by_label("The column that tells people apart").select_option("person")
        command = written(page, "adult-1280-light")
    assert_repeated(adult.parent / "mouse" / "released.csv", command)


@pytest.mark.parametrize("way", ["columns", "table"])
def test_the_whole_way_on_german_credit_by_keyboard(browser: Any, credit: Path, way: str) -> None:
    form = {"folder": f"keys-{way}", "key": f"{way}.key", "id": "person"}
    new_key(credit.parent / form["key"])
    with served(credit, credit.parent) as address, opened(browser, address) as (page, _):
        command = whole_way_by_keys(page, "sex", ["housing", "employment"], way, form)
    assert_repeated(credit.parent / f"keys-{way}" / "released.csv", command)


def test_the_whole_way_on_adult_by_keyboard(browser: Any, adult: Path) -> None:
    key = new_key_file(adult.parent / "keys.key")
    form = {"folder": "keys", "key": key.name, "id": "person"}
    with served(adult, adult.parent) as address, opened(browser, address) as (page, _):
        public = by_name(adult, ["occupation", "workclass"])
        command = whole_way_by_keys(page, "sex", public, "columns", form)
    assert_repeated(adult.parent / "keys" / "released.csv", command)
    assert_same_in_duckdb(adult, adult.parent / "keys", key)


def test_a_table_is_opened_by_keyboard_and_found_again(browser: Any, tmp_path: Path) -> None:
    table = write_people(tmp_path / "people.csv")
    with served(None, tmp_path) as address:
        with opened(browser, address) as (page, _):
            keys = Keyboard(page)
            keys.fill("#path", table.name)
            keys.press("Enter")
            page.wait_for_selector("table.roles")
            keys.role("sex", "private")
            keys.press("Enter")
            page.get_by_role("button", name="Next: choose").wait_for()
            page.reload()
            page.get_by_role("button", name="Next: choose").wait_for()  # the desk is found again
        with opened(browser, address) as (page, _):  # the tab was closed
            page.get_by_role("button", name="people.csv: look").click()
            page.get_by_role("button", name="Next: choose").wait_for()


@pytest.mark.parametrize("width", [1280, 400])
def test_long_names_do_not_widen_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    table, long = write_people(tmp_path / "people.csv"), "job" * 67
    table.write_text(table.read_text().replace("job", long, 1).replace("city1", "c" * 200))
    with served(table, tmp_path) as address, opened(browser, address, width=width) as (page, _):
        whole_way(page, "sex", [long, "city"], "out", "table", f"long-{width}")
        written(page, f"long-{width}")


def test_a_copy_is_uploaded_and_a_large_one_is_refused(browser: Any, tmp_path: Path) -> None:
    table, large = write_people(tmp_path / "people.csv"), tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(1 << 30)  # a gigabyte of nothing, which takes no place
    (tmp_path / "empty").mkdir()
    with served(None, tmp_path / "empty") as address, opened(browser, address) as (page, _):
        page.set_input_files("#file", str(large))
        page.get_by_role("button", name="Open the copy").click()
        page.get_by_text("256 MB at most").wait_for()
        page.set_input_files("#file", str(table))
        page.get_by_role("button", name="Open the copy").click()
        page.wait_for_selector("table.roles")
        assert "uploaded table" in page.inner_text("header")


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
    """axe-core: the file that AXE_CORE names, or that of the package which carries it."""
    if named := os.environ.get("AXE_CORE"):
        return Path(named).read_text(encoding="utf-8")
    pytest.importorskip("axe_playwright_python", reason="needs axe-core: pip install axe-playwright-python")
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


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
        assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") == (scheme == "dark")
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
        page.get_by_label("Nobody may be right more often").wait_for()
        check("check, before")
        page.get_by_role("button", name="Check", exact=True).click()
        page.wait_for_selector("progress, .next")
        check("check, under way")
        page.get_by_role("button", name="Next: take").wait_for()
        check("check")
        page.get_by_role("button", name="Next: take").click()
        page.get_by_label("A new folder").wait_for()
        check("take, before")
        page.get_by_label("A new folder").fill("out")
        written(page)
        check("take")
    with (
        served(None, tmp_path) as address,
        opened(browser, address, scheme=scheme, refused="status of 422") as (page, _),
    ):
        page.get_by_label("A .csv").fill("nothing.csv")
        page.get_by_role("button", name="Open", exact=True).click()
        page.get_by_text("there is no such file").wait_for()
        check("start, with an error")
