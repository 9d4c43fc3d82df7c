"""The page: every number with what it is, nothing from outside, nothing taken for markup."""

from __future__ import annotations

import base64
import builtins
import hashlib
import html
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from report_samples import MODEL, exact_report, finding, make_report

from privacyfunnel.auditing import AuditReport, ClassTable
from privacyfunnel.errors import InvalidInputError, MissingDependencyError
from privacyfunnel.report import save_comparison, save_html
from privacyfunnel.report.wording import interval, signed


class Page(HTMLParser):
    """Rows of tables, texts, elements with their attributes, addresses, and the end of every element."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.rows, self.text, self.elements, self.addresses, self.open = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.elements.append((tag, dict(attrs)))
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
            if {"td", "th"} & set(self.open):
                self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def report():
    return make_report()


@pytest.fixture(scope="module")
def page(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "audit.html"
    save_html(report, path, report.gate(max_success=0.6, min_psnr=10))
    return Page(path.read_text(encoding="utf-8"))


def test_report_saves_itself_as_a_page(report, tmp_path):
    report.save(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").read_bytes().startswith(b"<!doctype html>")


def test_elements_are_closed(page):
    assert page.open == []


def test_every_number_stands_in_a_table_with_kind_interval_size_and_seed(page, report):
    rows = [row for row in page.rows if len(row) == 11][1:]
    assert len(rows) == len(report.findings)
    for row, one in zip(rows, report.published().findings, strict=True):
        cells = [cell.strip() for cell in row]
        assert cells[:4] == [one.quantity, one.attribute, one.source, one.on or "–"]
        assert cells[4:7] == [signed(one), one.kind, interval(one)]
        assert cells[7] == ("95 %" if one.interval else "–")
        assert cells[8:10] == ["90", "7"]


def test_adversaries_come_with_threat_model_and_what_they_find_in_x(page):
    header, first, *others = [
        row for row in page.rows if row[0].startswith(("adversary", "trees", "lines", "dec"))
    ][:4]
    assert header[:3] == ["adversary", "sees", "success"]
    assert [row[0].removesuffix(MODEL) for row in (first, *others)] == ["trees", "decoder", "lines"]
    assert MODEL in first[0]
    assert "≥ 60.0 %" in first[2]
    assert "X: ≥ 90.0 %" in first[2]


def test_verdicts_and_limits_are_on_the_page(page, report):
    text = " ".join(" ".join(page.text).split())
    for verdict in report.gate(max_success=0.6, min_psnr=10):
        assert verdict.sentence in text
    for words in ("The weather.", "ab" * 32, "Repeated releases", "Distribution shift"):
        assert words in text


def test_nothing_comes_from_outside_and_nothing_runs(page):
    assert page.addresses
    for address in page.addresses:
        assert address.startswith(("data:image/png;base64,", "#")) or address == "data:,"
    assert not {"script", "iframe", "object", "embed", "form"} & {tag for tag, _ in page.elements}
    names = {name for _, attributes in page.elements for name in attributes}
    # The policy would refuse a style on an element, and is not there for what it need not refuse.
    assert not [name for name in names if name.startswith("on") or name == "style"]


def test_the_policy_allows_one_style_and_pictures_of_the_page(report, tmp_path):
    save_html(report, tmp_path / "audit.html")
    text = (tmp_path / "audit.html").read_text(encoding="utf-8")
    (style,) = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
    assert html.unescape(policy).split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_labels_are_no_markup(page):
    assert not [tag for tag, _ in page.elements if tag == "script"]
    assert "<b>a</b>" in page.text
    assert any("d</script><script>alert(1)</script>" in text for text in page.text)


def test_an_exact_report_is_bold_and_without_intervals(tmp_path):
    save_html(exact_report(), tmp_path / "exact.html")
    text = (tmp_path / "exact.html").read_text(encoding="utf-8")
    assert '<span class="k exact" title="exact">= 75.0 %</span>' in text
    assert 'class="k lower-bound" title' not in text
    Page(text)


def test_a_report_without_findings_and_one_with_a_thousand_classes(tmp_path):
    save_html(AuditReport(()), tmp_path / "empty.html")
    table = ClassTable.of_counts("trees", "Z", "id", tuple(range(1000)), 10 * np.eye(1000, dtype=np.intp))
    save_html(
        AuditReport((finding("success", 1.0, "lower bound", "trees", attribute="id"),), (table,)),
        tmp_path / "many.html",
    )
    page = Page((tmp_path / "many.html").read_text(encoding="utf-8"))
    assert any("960 more classes" in text for text in page.text)


def test_infinite_numbers_are_written(tmp_path):
    perfect = AuditReport((finding("psnr", np.inf, "estimate", "reconstruction", "X_hat", attribute=""),))
    save_html(perfect, tmp_path / "perfect.html")
    assert "≈ ∞ dB" in (tmp_path / "perfect.html").read_text(encoding="utf-8")
    save_comparison([perfect, make_report()], tmp_path / "two.html")


def test_comparison_marks_what_differs(tmp_path):
    reports = [make_report("one"), make_report("two", success=0.9), make_report("three", success=0.62)]
    save_comparison(reports, tmp_path / "compare.html")
    text = (tmp_path / "compare.html").read_text(encoding="utf-8")
    page = Page(text)
    (row,) = [row for row in page.rows if row[:4] == ["success", "colour", "trees", "Z"]]
    assert [cell.split("%")[0].strip() for cell in row[5:]] == ["≥ 60.0", "≥ 90.0", "≥ 62.0"]
    cells = re.search(r"<tr><td>success</td><td>colour</td><td>trees</td><td>Z</td>.*?</tr>", text, re.DOTALL)
    assert cells is not None
    assert re.findall(r'class="n( differs)?"', cells[0]) == ["", " differs", ""]
    with pytest.raises(InvalidInputError, match="two reports or more"):
        save_comparison(reports[:1], tmp_path / "one.html")


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_a_missing_package_is_named(package, report, tmp_path, monkeypatch):
    real = builtins.__import__

    def fake(name, *rest, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", fake)
    with pytest.raises(MissingDependencyError, match=r"pip install 'privacyfunnel\[plot\]'"):
        save_html(report, tmp_path / "audit.html")
    assert not (tmp_path / "audit.html").exists()
