"""The pages in a real browser: no complaint on the console, tables and charts to be seen and printed."""

from __future__ import annotations

import re
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


@contextmanager
def opened(
    browser: Any, path: Path, *, width: int = 1280, scheme: str = "light", javascript: bool = True
) -> Iterator[tuple[Any, list[str]]]:
    """The page, and what it complained about or fetched."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=javascript
    )
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
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[pf.AuditReport, Path]:
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


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_a_real_audit(browser: Any, digits: tuple[Any, Path], width: int, scheme: str) -> None:
    report, path = digits
    assert path.stat().st_size < 500_000
    with opened(browser, path, width=width, scheme=scheme) as (page, noise):
        assert page.locator("svg.bar").count() == 1
        charts = page.locator("svg.chart:not(.bar)")
        assert charts.count() == 7  # success, leakage, records, and before and after of two more
        for i in range(7):
            box = charts.nth(i).bounding_box()
            assert box["height"] > 100
            assert box["x"] + box["width"] <= width
        assert page.locator("svg.chart image").count() == 2 + 2 * len(report.figures_data["images"]["X"])
        for table in page.locator("main > .scroll table").all():
            assert table.is_visible()
        # No row is a tower of single words.
        assert (
            page.evaluate("Math.max(...[...document.querySelectorAll('tr')].map(r => r.offsetHeight))") < 260
        )
        page.locator("details summary").click()
        assert page.locator("table.all tbody tr").count() == len(report.findings)
        assert page.locator("table.all").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        shot = path.with_name("audit.png")
        page.screenshot(path=str(shot), full_page=True)
        assert shot.read_bytes().startswith(b"\x89PNG")
        assert outside(noise) == []


#: Every text of a chart in pixels, and its box in those of its chart.
TEXTS = """() => [...document.querySelectorAll('svg.chart')].map(chart => {
    const whole = chart.getBoundingClientRect(), scale = whole.width / chart.viewBox.baseVal.width;
    return [...chart.querySelectorAll('text')].map(text => {
        const box = text.getBoundingClientRect();
        return {text: text.textContent, size: parseFloat(getComputedStyle(text).fontSize) * scale,
                left: box.left - whole.left, right: whole.right - box.right,
                top: box.top - whole.top, bottom: whole.bottom - box.bottom};
    });
})"""


@pytest.mark.parametrize("width", [1280, 400])
def test_texts_of_charts_are_whole_and_large_enough(
    browser: Any, digits: tuple[Any, Path], width: int
) -> None:
    with opened(browser, digits[1], width=width) as (page, _):
        texts = [text for chart in page.evaluate(TEXTS) for text in chart if text["text"].strip()]
    assert len(texts) > 100
    for text in texts:
        assert text["size"] >= 8.5, text
        assert min(text[side] for side in ("left", "right", "top", "bottom")) >= -1, text


def test_it_turns_dark_on_the_screen_and_never_on_paper(browser: Any, digits: tuple[Any, Path]) -> None:
    seen = []
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        with opened(browser, digits[1], scheme=scheme) as (page, _):
            page.emulate_media(media=media)
            seen.append(
                page.evaluate(
                    "[getComputedStyle(document.body).backgroundColor,"
                    " getComputedStyle(document.querySelector('svg.chart text')).fill]"
                )
            )
    light, dark, paper = seen
    assert light == paper == ["rgb(255, 255, 255)", "rgb(34, 34, 34)"]
    assert all(
        max(map(int, re.findall(r"\d+", dark[0]))) < 64 < min(map(int, re.findall(r"\d+", one)))
        for one in dark[1:]
    )


def test_printed_tables_fit_the_paper(browser: Any, digits: tuple[Any, Path]) -> None:
    """A4 within the margins of the page is 703 pixels wide."""
    with opened(browser, digits[1], width=703) as (page, _):
        page.emulate_media(media="print")
        page.locator("details").evaluate("one => one.open = true")
        for table in page.locator("table").all():
            assert table.bounding_box()["width"] <= 704
        assert page.pdf(format="A4").startswith(b"%PDF")


def test_it_needs_no_javascript(browser: Any, digits: tuple[Any, Path]) -> None:
    report, path = digits
    best = report.strongest
    with opened(browser, path, javascript=False) as (page, noise):
        assert page.locator("table.adversaries").is_visible()
        assert f"{best.value:.1%}".replace("%", " %") in page.locator("table.adversaries").inner_text()
        assert page.locator("svg.chart text", has_text=best.source).first.is_visible()
        assert outside(noise) == []


def test_hostile_labels_do_nothing(browser: Any, tmp_path: Path) -> None:
    """The hand-made report has an end of script and an alert among its classes."""
    make_report().save(tmp_path / "hostile.html")
    save_comparison([make_report("one"), make_report("<i>two</i>", success=0.9)], tmp_path / "compare.html")
    for name, n_charts in (("hostile.html", 7), ("compare.html", 1)):
        with opened(browser, tmp_path / name) as (page, noise):
            assert page.locator("svg.chart:not(.bar)").count() == n_charts
            assert page.locator("script").count() == 0
            assert outside(noise) == []


def test_the_policy_refuses_what_somebody_puts_in(browser: Any, tmp_path: Path) -> None:
    """Were a label ever taken for markup, it could neither run nor ask for anything."""
    path = tmp_path / "audit.html"
    make_report().save(path)
    bad = "<script>document.title = 'run'</script><img src='https://example.org/x.png'>"
    bad += "<p style='color: red'>p</p>"
    path.write_text(path.read_text(encoding="utf-8").replace("</main>", f"{bad}</main>"), encoding="utf-8")
    with opened(browser, path) as (page, noise):
        assert page.title() != "run"
        refused = [line for line in noise if "Content Security Policy" in line]
        assert len(refused) == 3, noise
        assert (
            page.evaluate("getComputedStyle(document.querySelector('main > p[style]')).color")
            != "rgb(255, 0, 0)"
        )
