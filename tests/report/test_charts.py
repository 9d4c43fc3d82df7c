"""Charts in the page: what they show in words, ids of their own, labels as text, small, always the same."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from report_samples import CLASSES, exact_report, finding, make_report

from privacyfunnel.auditing import AuditReport, ClassTable
from privacyfunnel.plotting import svg_source
from privacyfunnel.report import charts, plot_success, save_comparison, save_html

HOSTILE = (
    "</svg><script>alert(1)</script>",
    '" onload="alert(1)',
    "&amp;]]>",
    "$5 & $6",
    "漢字",
    "\x00\x1b[0m",
)


def drawn(report: AuditReport) -> list[charts.Chart]:
    found = [charts.success_chart(report, "colour", "s"), charts.leakage_chart(report, "colour", "l")]
    found += [charts.confusion_chart(report, "c"), charts.embedding_chart(report, "e")]
    return [one for one in found if one is not None]


def words(picture: str) -> tuple[str, str]:
    """Title and description of a picture, found by the names that it gives for them."""
    root = ElementTree.fromstring(picture)
    assert root.get("role") == "img"
    texts = {one.get("id"): one.text or "" for one in root}
    return texts[root.get("aria-labelledby")], texts[root.get("aria-describedby")]


def test_every_chart_says_what_it_shows():
    success, leakage, confusion, embedding = drawn(make_report())
    title, told = words(success.pictures[0])
    assert title == "How often colour is guessed"
    for part in (
        "3 adversaries",
        "trees guesses most, ≥ 60.0 %",
        "lines guesses least, ≥ 50.0 %",
        "≥ 90.0 %",
    ):
        assert part in told
    assert "chance, ≈ 33.3 %" in told
    told = words(leakage.pictures[0])[1]
    assert "Lower bounds: ≥ 0.310 bit (trees) to ≥ 0.280 bit (lines)." in told
    assert "Upper bound: ≤ 1.200 bit (entropy)." in told
    before, after = (words(picture)[1] for picture in confusion.pictures)
    assert "trees guesses from the raw records X" in before
    assert "60.0 % are guessed right" in after
    assert f"guessed best is {CLASSES[0]} (" in after
    before, after = (words(picture)[1] for picture in embedding.pictures)
    assert before.startswith("2 squares, each for 10 records or more")
    assert "In 1 of them one class has four fifths or more. 5.0 % of the records" in before
    assert "In 0 of them" in after
    assert [name for name, _ in embedding.key] == [*CLASSES, "not told"]


def test_a_comparison_says_its_points():
    chart = charts.tradeoff_chart([make_report("one"), make_report("two", 0.9, 25.0)], "t")
    assert chart is not None
    assert "one: ≥ 60.0 % at ≈ 20.00 dB; two: ≥ 90.0 % at ≈ 25.00 dB." in words(chart.pictures[0])[1]
    assert charts.tradeoff_chart([exact_report()], "t") is None


def test_nothing_is_drawn_of_what_is_not_there():
    assert len(drawn(exact_report())) == 2
    assert drawn(AuditReport(())) == []


def test_names_are_text_and_marks_say_their_numbers():
    (picture,) = drawn(make_report())[0].pictures
    root = ElementTree.fromstring(picture)
    texts = [one.text for one in root.iter("text")]
    assert {"trees", "lines", "decoder (reconstruction X̂)", "release", "chance ≈ 33.3 %"} <= set(texts)
    tips = [one.text for one in root.iter("title")][1:]
    assert "trees, raw records X: ≥ 90.0 % (lower bound; 85.0 to 95.0 %)" in tips
    assert len(tips) == 4


def test_dark_parts_take_the_colour_of_the_text_and_no_style_is_left():
    for chart in drawn(make_report()):
        for picture in chart.pictures:
            assert "#222222" not in picture
            assert "currentColor" in picture
            assert " style=" not in picture
            assert "font-family" not in picture


def test_numbers_on_cells_keep_their_colour():
    """They stand on the picture's own blue and white, not on the paper."""
    root = ElementTree.fromstring(drawn(make_report())[2].pictures[1])
    cells = [one for one in root.iter("text") if one.text in ("70", "60")]
    assert len(cells) == 2
    assert {one.get("fill") for one in cells} == {"#ffffff"}


@pytest.fixture(scope="module")
def hostile() -> AuditReport:
    """Names that are markup, formulas, other scripts and no text at all, wherever names may stand."""
    report = make_report()
    density = {**report.figures_data["density"], "classes": list(HOSTILE[:3])}
    findings = [
        replace(one, source=HOSTILE[i % len(HOSTILE)], attribute=one.attribute and HOSTILE[0])
        for i, one in enumerate(report.findings)
    ]
    tables = [
        ClassTable.of_counts(one, on, HOSTILE[0], HOSTILE, 9 * np.eye(6, dtype=np.intp) + 2)
        for one in HOSTILE
        for on in ("X", "Z")
    ]
    return AuditReport(
        tuple(findings), tuple(tables), report.meta, {**report.figures_data, "density": density}
    )


def test_hostile_names_are_text(hostile, tmp_path):
    save_html(hostile, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "\x00" not in re.sub(r"<t[dr].*?</t[dr]>|<div.*?</div>", "", page)
    pictures = re.findall(r'<svg class="chart".*?</svg>', page, flags=re.DOTALL)
    assert len(pictures) == 7
    seen = set()
    for picture in pictures:
        root = ElementTree.fromstring(picture)
        assert {one.tag for one in root.iter()} <= {
            *(
                "svg",
                "g",
                "defs",
                "path",
                "use",
                "text",
                "tspan",
                "image",
                "clipPath",
                "rect",
                "title",
                "desc",
            )
        }
        assert not [name for one in root.iter() for name in one.keys() if name.startswith("on")]  # noqa: SIM118
        seen |= {one.text for one in root.iter() if one.text}
    assert {"$5 & $6", "漢字", "&amp;]]>"} <= {text.partition(" (")[0] for text in seen}
    assert any(text.startswith('" onload="ale') for text in seen)


def test_ids_of_a_page_are_its_own_and_lead_somewhere(tmp_path):
    report = make_report()
    # A second attribute, so that each kind of chart is there twice.
    more = [replace(one, attribute="shape") for one in report.findings if one.attribute]
    save_html(replace(report, findings=(*report.findings, *more)), tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    ids = re.findall(r' id="([^"]*)"', page)
    assert len(ids) == len(set(ids)) > 30
    assert not [one for one in ids if not re.fullmatch(r"[a-z]+(-[\w]+)+", one)]
    used = re.findall(r'url\(#([^)]*)\)|href="#([^"]*)"|aria-\w+by="([^"]*)"', page)
    assert {one for group in used for one in group if one} <= set(ids)


def test_a_page_is_the_same_each_time(tmp_path):
    for name in ("one.html", "two.html"):
        save_html(make_report(), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_shortening_moves_nothing():
    """Every number of matplotlib's drawing is there, to a hundredth of a point."""
    one, other = (plot_success(make_report(), "colour") for _ in range(2))
    whole = ElementTree.fromstring(svg_source(one))
    short = ElementTree.fromstring(charts.inline_svg(other, "s", "t", "w"))

    def places(root: Any) -> list[list[float]]:
        return [
            [float(one.get(key)) for key in ("x", "y")]
            for one in root.iter()
            if one.tag.rpartition("}")[2] in ("use", "text") and one.get("x")
        ]

    assert np.allclose(places(short), places(whole), rtol=0, atol=0.0051)
    assert len(places(short)) > 10


def test_images_keep_their_pixels():
    report = make_report()
    chart = charts.samples_chart(report, "i")
    assert chart is not None
    shown = []
    for one in ElementTree.fromstring(chart.pictures[0]).iter("image"):
        content = base64.b64decode(one.get("href", "").removeprefix("data:image/png;base64,"))
        picture = Image.open(io.BytesIO(content))
        assert (picture.mode, picture.size) == ("L", (3, 2))
        shown.append(np.asarray(picture, dtype=float))
    data = report.figures_data["images"]
    low, high = np.min(data["X"]), np.max(data["X"])
    wanted = [
        np.clip((np.reshape(one, (2, 3)) - low) / (high - low), 0, 1) for one in data["X"] + data["X_hat"]
    ]
    assert np.allclose(np.divide(shown, 255), wanted, rtol=0, atol=1 / 128)


def large_report() -> AuditReport:
    """Much for one page: three attributes, ten adversaries, full densities, images that are noise."""
    rng = np.random.default_rng(0)
    names = [f"attribute {i}" for i in range(3)]
    sources = [f"adversary number {i}" for i in range(10)]
    findings = [
        finding(
            quantity, 0.5, "lower bound", source, on, attribute=name, interval=(0.4, 0.6), threat_model="t"
        )
        for name in names
        for source in sources
        for on in ("Z", "X")
        for quantity in ("success", "advantage", "leakage", "lift", "worst-class advantage")
    ]
    classes = tuple(f"class {i}" for i in range(10))
    tables = [
        ClassTable.of_counts(sources[0], on, names[0], classes, rng.integers(0, 90, (10, 10)))
        for on in ("X", "Z")
    ]
    cells = [[i, j] for i in range(24) for j in range(24)][:416]  # 5,000 records, twelve a cell
    view = {
        "cells": cells,
        "records": (5 * rng.integers(2, 9, 416)).tolist(),
        "shares": [(np.eye(10)[rng.choice(10, 4, replace=False)].sum(axis=0) / 5).tolist() for _ in cells],
        "not_shown": 0.1,
    }
    images = rng.random((30, 28 * 28))
    figures = {
        "density": {"side": 24, "least": 10, "classes": list(classes), "X": view, "Z": view},
        "images": {"shape": [28, 28], "X": images.tolist(), "X_hat": images.tolist()},
    }
    return AuditReport(tuple(findings), tuple(tables), {"name": "large", "n_records": 10_000}, figures)


def test_a_large_page_stays_under_half_a_megabyte(tmp_path):
    report = large_report()
    save_html(report, tmp_path / "audit.html")
    save_comparison([report, replace(report, meta={**report.meta, "name": "other"})], tmp_path / "two.html")
    sizes = [(tmp_path / name).stat().st_size for name in ("audit.html", "two.html")]
    assert max(sizes) < 500_000, sizes
