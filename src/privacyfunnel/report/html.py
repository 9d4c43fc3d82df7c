"""Pages for people: one report, or several side by side, each one file without scripts or network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from os import PathLike
from typing import Any

from ..attributes import LEAST_RECORDS
from ..auditing import AuditReport, Finding, Verdict
from ..auditing.findings import KEPT, released
from ..auditing.published import RARE
from ..auditing.report import KEYS, compared, differs
from ..errors import InvalidInputError, MissingDependencyError
from ..persistence import write_atomic
from ..plotting import import_figure
from . import charts, wording


def save_html(report: AuditReport, path: str | PathLike[str], verdicts: Sequence[Verdict] = ()) -> None:
    """Write a report as one page: tables and charts, nothing that runs, nothing from outside.

    Parameters
    ----------
    report : AuditReport
    path : str or path
        The .html file.
    verdicts : sequence of Verdict
        What `report.gate` gave, where limits were set; they come first on the page.
    """
    report = report.published()
    check_installed()
    sections = [
        {
            "name": name,
            "adversaries": adversary_tables(report, name),
            "success": charts.success_chart(report, name, f"success-{i}"),
            "leakage": leakage_rows(report, name),
            "bits": charts.leakage_chart(report, name, f"leakage-{i}"),
        }
        for i, name in enumerate(wording.attributes(report))
    ]
    page = render(
        "report.html",
        title=str(report.meta.get("name", "release")),
        first_lines=wording.first_lines(report),
        first_seconds=wording.first_seconds(report),
        basis=wording.basis(report),
        meta=report.meta,
        verdicts=verdicts,
        headline=headline(report),
        sections=sections,
        kept=kept_rows(report),
        classes=class_rows(report),
        confusion=charts.confusion_chart(report, "confusion"),
        embedding=charts.embedding_chart(report, "embedding"),
        samples=charts.samples_chart(report, "samples"),
        findings=report.findings,
        limits=wording.limits(report),
    )
    write_atomic(path, page)


def save_comparison(reports: Sequence[AuditReport], path: str | PathLike[str]) -> None:
    """Write several reports side by side as one page; differences are against the first.

    Parameters
    ----------
    reports : sequence of AuditReport
        Two or more.
    path : str or path
        The .html file.
    """
    if len(reports) < 2:
        raise InvalidInputError(f"save_comparison: pass two reports or more; there is {len(reports)}.")
    check_installed()
    reports = [one.published() for one in reports]
    page = render(
        "comparison.html",
        title="Comparison of audits",
        first_lines=_told(reports),
        comparison=comparison(reports),
        reports=reports,
        tradeoff=charts.tradeoff_chart(reports, "tradeoff"),
    )
    write_atomic(path, page)


def _told(reports: Sequence[AuditReport]) -> list[str]:
    """The first lines of several reports, each with its name."""
    return [
        f"{report.meta.get('name', 'release')}: {line}"
        for report in reports
        for line in wording.first_lines(report)
    ]


def check_installed() -> None:
    """MissingDependencyError where a package is not there that a page needs."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "The page of a report needs jinja2. Install it with: pip install 'privacyfunnel[plot]'"
        ) from error
    import_figure()


def render(template: str, **values: Any) -> str:
    """A page, or a part of one, from a template of this folder; every value in it is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    loader = PackageLoader("privacyfunnel.report", "templates")
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    look = loader.get_source(pages, "page.css")[0]
    pages.globals.update(
        # The policy of the page names its only style by this hash, and allows no other.
        look=Markup(look),
        look_hash=base64.b64encode(hashlib.sha256(look.encode()).digest()).decode("ascii"),
        inside=Markup,
        signs=wording.SIGNS,
        meanings=wording.MEANINGS,
        **{
            name: getattr(wording, name)
            for name in ("number", "signed", "interval", "ends", "view", "common")
        },
        least_records=LEAST_RECORDS,
        rare=RARE,
    )
    return pages.get_template(template).render(**values)


#: Most rows of the table of classes.
MOST_CLASSES = 40
#: What adversaries are judged by, in the order of the columns.
CLASS_COLUMNS = ("success", "advantage", "worst-class advantage", "leakage", "p-value")
WORST = ("lift", "group size")
NUMBER_COLUMNS = ("explained variance", "rmse")


def headline(report: AuditReport) -> list[dict[str, Any]]:
    """The numbers at the top: of each attribute what is guessed and leaked, and what is kept."""
    tiles: list[dict[str, Any]] = []

    def tile(
        title: str, finding: Finding, by: str, beside: Sequence[tuple[str, Finding | None]] = ()
    ) -> None:
        tiles.append({"title": title, "finding": finding, "beside": beside, "by": by})

    for name in wording.attributes(report):
        told = wording.told(report, name)
        if told.best is not None:
            beside = [
                ("nobody more", told.most),
                ("chance", told.chance),
                ("on raw records X", told.raw),
            ]
            tile(f"{name} guessed", told.best, wording.who(told.best), beside)
        if told.leaked.findings:
            shown, *others = sorted(told.leaked.findings, key=lambda one: one.kind != "exact")
            more = [(one.source, one) for one in others] + _exact_before(report, shown)
            tile(f"I(Z;Y), leakage about {name}", shown, shown.source, more)
        if told.lift is not None:
            beside = [(str(wording.worst_off(report, name)), told.lift), ("smallest group", told.group)]
            tile(f"Who is worst off, {name}", told.lift, wording.who(told.lift), beside)
        for one in told.unmeasured:
            if one.quantity == "unmeasured leakage":
                tile(f"Not measured about {name}, counted as told", one, one.notes)
    kept = wording.bracket(report, "utility").findings
    if kept:
        tile("I(Z;X), utility", kept[0], kept[0].source, [(one.source, one) for one in kept[1:]])
    psnr = wording.first(report, "psnr")
    if psnr is not None:
        tile("PSNR", psnr, psnr.source)
    return tiles


def _exact_before(report: AuditReport, finding: Finding) -> list[tuple[str, Finding]]:
    """The same number of raw records, where both are of one joint distribution."""
    found = wording.before(report, finding)
    alike = found is not None and (found.source, found.kind) == (finding.source, finding.kind)
    return [("on raw records X", found)] if found is not None and alike else []


def adversary_rows(report: AuditReport, attribute: str) -> list[dict[str, Any]]:
    """One row for each adversary and view of the release, the most successful first."""
    own = [one for one in report.findings if one.attribute == attribute]
    keys = dict.fromkeys((one.source, one.on) for one in released(own) if one.threat_model)
    rows: list[dict[str, Any]] = []
    for source, on in keys:
        found = {one.quantity: one for one in own if (one.source, one.on) == (source, on)}
        raw = {one.quantity: one for one in own if (one.source, one.on) == (source, "X")}
        model = next(one.threat_model for one in found.values() if one.threat_model)
        rows.append({"source": source, "on": on, "found": found, "raw": raw, "threat_model": model})
    return sorted(rows, key=_rank)


def adversary_tables(report: AuditReport, attribute: str) -> list[dict[str, Any]]:
    """The rows in two tables, as far as there are any: who guesses classes, and who guesses numbers."""
    tables = []
    for title, quantities in (
        ("Who guesses the class", CLASS_COLUMNS),
        ("Who guesses the number", NUMBER_COLUMNS),
    ):
        rows = [row for row in adversary_rows(report, attribute) if quantities[0] in row["found"]]
        columns = [name for name in quantities if any(name in row["found"] for row in rows)]
        found = [row["found"][name] for row in rows for name in columns if name in row["found"]]
        nothing = wording.chance(report, attribute) if quantities is CLASS_COLUMNS else None
        if rows:
            tables.append(
                {"title": title, "rows": rows, "columns": columns, "found": found, "chance": nothing}
            )
    return tables


def _rank(row: dict[str, Any]) -> tuple[float, float]:
    found: dict[str, Finding] = row["found"]
    ranks = [-found[name].value if name in found else 1.0 for name in ("success", "explained variance")]
    return ranks[0], ranks[1]


def leakage_rows(report: AuditReport, attribute: str) -> list[Finding]:
    """All that is known in bits about an attribute, on the release, by kind and value."""
    order = ("exact", "lower bound", "estimate", "upper bound")
    found = [
        one
        for one in released(report.findings)
        if one.attribute == attribute and ("leakage" in one.quantity or one.quantity in WORST)
    ]
    return sorted(found, key=lambda one: (one.quantity != "leakage", order.index(one.kind), one.value))


def kept_rows(report: AuditReport) -> list[Finding]:
    """What the release keeps."""
    return [one for one in report.findings if one.quantity in KEPT]


def class_rows(report: AuditReport) -> dict[str, Any] | None:
    """Success on each class before and after, of the adversary that guesses most; the best guessed first."""
    if not wording.has_confusion(report):
        return None
    raw, after = wording.confusion_pair(report)
    order = sorted(range(len(after.classes)), key=lambda i: (-after.success[i], i))
    rows = []
    for i in order[:MOST_CLASSES]:
        number = None if raw is None else raw.classes.index(after.classes[i])
        rows.append(
            {
                "name": str(after.classes[i]),
                "size": float(after.sizes[i]),
                "success": float(after.success[i]),
                "interval": after.intervals[i].tolist(),
                "false": float(after.false_guesses[i]),
                "raw": None if raw is None or number is None else float(raw.success[number]),
            }
        )
    return {
        "source": after.source,
        "attribute": after.attribute,
        "confidence": after.confidence,
        "rows": rows,
        "left_out": len(order) - len(rows),
    }


def comparison(reports: Sequence[AuditReport]) -> dict[str, Any]:
    """The numbers of the reports as rows of cells."""
    names, table = compared(reports)
    rows = []
    for found in table:
        one = next(filter(None, found))
        if one.quantity != "p-value":
            cells = [None if cell is None else _compared_cell(found[0], cell) for cell in found]
            rows.append({**{key: getattr(one, key) for key in KEYS}, "unit": one.unit, "cells": cells})
    first_rows = ("success", "leakage", "utility", "psnr", "ssim", "mse", "chance")
    rank = {name: i for i, name in enumerate(first_rows)}
    rows.sort(key=lambda row: (row["on"] == "X", rank.get(row["quantity"], len(rank)), row["quantity"]))
    return {"names": names, "rows": rows}


def _compared_cell(first: Finding | None, finding: Finding) -> dict[str, Any]:
    bare = finding.low is None or finding.low == finding.high == finding.value
    ends = None if bare else (finding.low, finding.high)
    return {"value": finding.value, "interval": ends, "differs": differs(first, finding) is True}
