"""The pages in a real browser: no complaint on the console, tables to be seen, figures drawn."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_samples import make_report

import privacyfunnel as pf
from privacyfunnel.report import save_comparison

pytestmark = pytest.mark.full

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def browser_path(playwright: Any) -> str | None:
    """A Chromium: of PRIVACYFUNNEL_BROWSER, on the path, or the one that playwright has installed."""
    own = playwright.chromium.executable_path
    found = [os.environ.get("PRIVACYFUNNEL_BROWSER"), *map(shutil.which, NAMES), own]
    return next((path for path in found if path and Path(path).exists()), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        path = browser_path(playwright)
        if path is None:
            pytest.skip("no Chromium on this machine: playwright install chromium, or PRIVACYFUNNEL_BROWSER")
        # Without its sandbox it also runs as root and in containers; it only sees files made here.
        chromium = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-zygote"])
        yield chromium
        chromium.close()


@contextmanager
def opened(browser: Any, path: Path, *, javascript: bool = True) -> Iterator[tuple[Any, list[str]]]:
    """The page, and what it complained about or fetched."""
    context = browser.new_context(viewport={"width": 1150, "height": 900}, java_script_enabled=javascript)
    page, noise = context.new_page(), []
    page.on("console", lambda message: noise.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.on("dialog", lambda dialog: noise.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: noise.append(request.url))
    page.goto(path.as_uri())
    assert noise.pop(0) == path.as_uri()
    yield page, noise
    context.close()


def outside(noise: list[str]) -> list[str]:
    """All but what the page holds itself."""
    return [line for line in noise if not line.startswith(("data:", "blob:"))]


def test_a_complaint_is_noticed(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text("<script>console.error('a'); throw 'b'</script><img src='no.png'>")
    with opened(browser, page) as (_, noise):
        assert any("a" in line for line in noise if line.startswith("error"))
        assert any(line.endswith("no.png") for line in outside(noise))
        assert "b" in noise


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[pf.audit.AuditReport, Path]:
    """A real audit with everything that a page can show."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images, y = data.images[:500] / 16, data.target[:500]
    codes = images.reshape(500, -1)[:, ::8] + np.random.default_rng(0).normal(size=(500, 8)) / 4
    report = pf.audit(
        Z=codes,
        X=images,
        X_hat=images * 0.9,
        private={"digit": y},
        figures=True,
        show_records=True,
        n_repeats=2,
        n_jobs=1,
    )
    path = tmp_path_factory.mktemp("browser") / "audit.html"
    report.save(path)
    return report, path


def test_the_page_of_a_real_audit(browser: Any, digits: tuple[Any, Path]) -> None:
    report, path = digits
    with opened(browser, path) as (page, noise):
        page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length > 0")
        figures = page.locator(".js-plotly-plot")
        assert figures.count() == 4  # success, leakage, confusion, embedding
        for i in range(4):
            assert figures.nth(i).bounding_box()["height"] > 100
        points = figures.nth(3).locator(".scatterlayer .point").count()
        assert points == sum(len(report.figures_data["density"][on]["cells"]) for on in ("X", "Z"))
        for table in page.locator("main > .scroll table").all():
            assert table.is_visible()
        page.locator("details summary").click()
        assert page.locator("table.all tbody tr").count() == len(report.findings)
        assert page.locator("table.all").is_visible()
        assert page.locator("img.samples").evaluate("image => image.naturalWidth") > 300
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        shot = path.with_name("audit.png")
        page.screenshot(path=str(shot), full_page=True)
        assert shot.read_bytes().startswith(b"\x89PNG")
        assert outside(noise) == []


def test_numbers_need_no_javascript(browser: Any, digits: tuple[Any, Path]) -> None:
    report, path = digits
    best = report.strongest
    with opened(browser, path, javascript=False) as (page, noise):
        assert page.locator("table.adversaries").is_visible()
        assert f"{best.value:.1%}".replace("%", " %") in page.locator("table.adversaries").inner_text()
        assert page.locator("noscript").inner_text().startswith("The figures of this page need JavaScript")
        assert outside(noise) == []


def test_hostile_labels_do_nothing(browser: Any, tmp_path: Path) -> None:
    """The hand-made report has an end of script and an alert among its classes."""
    make_report().save(tmp_path / "hostile.html")
    save_comparison([make_report("one"), make_report("<i>two</i>", success=0.9)], tmp_path / "compare.html")
    for name, n_figures in (("hostile.html", 4), ("compare.html", 1)):
        with opened(browser, tmp_path / name) as (page, noise):
            page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length > 0")
            assert page.locator(".js-plotly-plot").count() == n_figures
            assert outside(noise) == []
