"""The tables of the pages: which numbers stand in which row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..audit import AuditReport, Finding
from .figures import confusion_pair
from .summary import (
    before,
    bracket,
    chance,
    first,
    largest_lift,
    smallest_group,
    strongest,
    unmeasured,
    worst_off,
)
from .wording import KEPT, attributes, released, who

#: Most rows of the table of classes.
MOST_CLASSES = 40
#: What adversaries are judged by, in the order of the columns.
CLASS_COLUMNS = ("success", "advantage", "worst-class advantage", "leakage", "p-value")
WORST = ("lift", "group size")
NUMBER_COLUMNS = ("explained variance", "rmse")


def headline(report: AuditReport) -> list[dict[str, Any]]:
    """The numbers at the top: of each attribute what is guessed and leaked, and what is kept."""
    tiles: list[dict[str, Any]] = []
    for name in attributes(report):
        best = strongest(report, name)
        if best is not None:
            tiles.append(
                {
                    "title": f"{name} guessed",
                    "finding": best,
                    "beside": [
                        ("chance", chance(report, name)),
                        ("on raw records X", before(report, best)),
                    ],
                    "by": who(best),
                }
            )
        leaked = bracket(report, "leakage", name)
        if leaked.findings:
            shown, *others = sorted(leaked.findings, key=lambda one: one.kind != "exact")
            tiles.append(
                {
                    "title": f"I(Z;Y), leakage about {name}",
                    "finding": shown,
                    "beside": [(one.source, one) for one in others] + _exact_before(report, shown),
                    "by": shown.source,
                }
            )
        tiles += _worst_tiles(report, name)
    kept = bracket(report, "utility").findings
    if kept:
        beside = [(one.source, one) for one in kept[1:]]
        tiles.append({"title": "I(Z;X), utility", "finding": kept[0], "beside": beside, "by": kept[0].source})
    psnr = first(report, "psnr")
    if psnr is not None:
        tiles.append({"title": "PSNR", "finding": psnr, "beside": [], "by": psnr.source})
    return tiles


def _exact_before(report: AuditReport, finding: Finding) -> list[tuple[str, Finding]]:
    """The same number of raw records, where both are of one joint distribution."""
    found = before(report, finding)
    alike = found is not None and (found.source, found.kind) == (finding.source, finding.kind)
    return [("on raw records X", found)] if found is not None and alike else []


def _worst_tiles(report: AuditReport, name: str) -> list[dict[str, Any]]:
    """Who is worst off, and what could not be measured."""
    tiles: list[dict[str, Any]] = []
    lift = largest_lift(report, name)
    if lift is not None:
        beside = [(str(worst_off(report, name)), lift), ("smallest group", smallest_group(report, name))]
        tiles.append(
            {"title": f"Who is worst off, {name}", "finding": lift, "beside": beside, "by": who(lift)}
        )
    for one in unmeasured(report, name):
        if one.quantity == "unmeasured leakage":
            title = f"Not measured about {name}, counted as told"
            tiles.append({"title": title, "finding": one, "beside": [], "by": one.notes})
    return tiles


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
        nothing = chance(report, attribute) if quantities is CLASS_COLUMNS else None
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
    if not any(one.on == "Z" and one.classes for one in report.tables):
        return None
    raw, after = confusion_pair(report)
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
    """`AuditReport.compare` as rows of cells, with the units that the frame does not have."""
    import narwhals as nw

    table = nw.from_native(reports[0].compare(reports[1:]), eager_only=True)
    names = [name.removesuffix(": value") for name in table.columns if name.endswith(": value")]
    units = {one.quantity: one.unit for report in reports for one in report.findings}
    rows = []
    for row in table.iter_rows(named=True):
        if row["quantity"] == "p-value":
            continue
        cells = []
        for name in names:
            value, low, high = (row[f"{name}: {part}"] for part in ("value", "low", "high"))
            missing = value is None or value != value
            bare = missing or low is None or low != low or low == high == value
            cell = {"value": value, "interval": None if bare else (low, high)}
            cells.append(None if missing else {**cell, "differs": row.get(f"{name}: differs") is True})
        keys = {key: row[key] for key in ("quantity", "attribute", "on", "source", "kind")}
        rows.append({**keys, "unit": units[row["quantity"]], "cells": cells})
    first_rows = ("success", "leakage", "utility", "psnr", "ssim", "mse", "chance")
    rank = {name: i for i, name in enumerate(first_rows)}
    rows.sort(key=lambda row: (row["on"] == "X", rank.get(row["quantity"], len(rank)), row["quantity"]))
    return {"names": names, "rows": rows}
