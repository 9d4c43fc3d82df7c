"""The numbers of a report that people ask for first, as one flat row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .findings import Bracket, Finding, Told, attribute_names, before, guessed, highest, released

Value = float | int | str | bool | None

#: What each adversary has by itself, and what its keys begin with.
_BY_ADVERSARY = {
    "success": "success",
    "leakage": "leakage",
    "matched success": "clustering",
    "explained variance": "explained_variance",
}


def summary_of(findings: Sequence[Finding], meta: Mapping[str, Any]) -> dict[str, Value]:
    """One flat row of JSON values; the keys are those of `AuditReport.summary`."""
    tasks = [str(one["name"]) for one in meta.get("tasks", ())]
    names = attribute_names(findings, tasks)
    row: dict[str, Value] = {
        "name": meta.get("name"),
        "attribute": ", ".join(names) or None,
        "n_records": meta.get("n_records"),
        "confidence": next((one.confidence for one in findings if one.interval is not None), None),
        "seconds": meta.get("run", {}).get("seconds"),
        "published": bool(meta.get("published")),
    }
    for name in names:
        own = _of_attribute([one for one in findings if one.attribute == name])
        row |= _prefixed(own, name if len(names) > 1 else "")
    kept = Bracket.of(findings, "utility")
    row |= _numbers("utility", kept.middle or kept.lower)
    row["utility_most"] = _value(kept.upper)
    for quantity in ("mse", "psnr", "ssim"):
        found = next((one for one in findings if one.quantity == quantity), None)
        row |= _numbers(quantity, found, kind=False)
    for name in tasks:
        own = _of_task([one for one in findings if one.attribute == name])
        row |= _prefixed(own, name if len(tasks) > 1 else "")
    return row


def _of_attribute(own: Sequence[Finding]) -> dict[str, Value]:
    seen = released(own)
    row: dict[str, Value] = {}
    for one in seen:
        if one.quantity in _BY_ADVERSARY and one.threat_model and one.on in ("Z", "X_hat"):
            # The first: of a table on a joint and on records, the exact one.
            row.setdefault(f"{_BY_ADVERSARY[one.quantity]}_{one.source.replace(' ', '_')}", _json(one.value))
    told = Told.of(own)
    best, leaked = told.best, told.leaked
    # Of several clusterings that of an embedding, as in the literature.
    clusters = [one for one in seen if one.quantity == "matched success" and one.on == "Z"]
    clusters.sort(key=lambda one: not one.source.startswith("UMAP"))
    clustering = {one.source for one in clusters}
    labelled = highest(one for one in guessed(own) if one.source not in clustering)
    explained = highest(one for one in seen if one.quantity == "explained variance")
    raw_explained = None if explained is None else before(own, explained)
    return {
        **row,
        **_numbers("success", best),
        "strongest": None if best is None else best.source,
        "strongest_on": None if best is None else best.on,
        "success_with_labels": _value(labelled),
        "success_most": _value(told.most),
        "chance": _value(told.chance),
        "raw_success": _value(told.raw),
        **_numbers("leakage", leaked.lower or leaked.middle),
        "leakage_estimate": _value(leaked.middle),
        "leakage_most": _value(leaked.upper),
        **_numbers("clustering", next(iter(clusters), None), kind=False),
        **_numbers("explained_variance", explained, kind=False),
        "raw_explained_variance": _value(raw_explained),
        **_numbers("lift", told.lift),
        "smallest_group": _value(told.group),
        **{
            f"unmeasured_{what}": math.fsum(one.value for one in own if one.quantity == f"unmeasured {what}")
            for what in ("success", "leakage")
        },
    }


def _of_task(own: Sequence[Finding]) -> dict[str, Value]:
    found = {(one.quantity, one.on): one for one in own if one.quantity.startswith("task ")}
    row: dict[str, Value] = {}
    for quantity in dict.fromkeys(quantity for quantity, _ in found):
        key = quantity.replace(" ", "_")
        row |= _numbers(key, found.get((quantity, "Z")), kind=False)
        row[f"raw_{key}"] = _value(found.get((quantity, "X")))
    return row


def _numbers(key: str, finding: Finding | None, kind: bool = True) -> dict[str, Value]:
    """The value, the ends of its interval and what it is."""
    value, low, high = (
        (None, None, None) if finding is None else map(_json, (finding.value, finding.low, finding.high))
    )
    row: dict[str, Value] = {key: value, f"{key}_low": low, f"{key}_high": high}
    return row | ({f"{key}_kind": None if finding is None else finding.kind} if kind else {})


def _value(finding: Finding | None) -> Value:
    return None if finding is None else _json(finding.value)


def _json(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _prefixed(row: Mapping[str, Value], name: str) -> dict[str, Value]:
    return {f"{name}: {key}" if name else key: value for key, value in row.items()}
