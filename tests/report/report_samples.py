"""Reports made by hand, so that every number that a page or a figure must show is known."""

from __future__ import annotations

from typing import Any

import numpy as np

from privacyfunnel.auditing import AuditReport, ClassTable, Finding

CLASSES = ("<b>a</b>", "b & c", "d</script><script>alert(1)</script>")
MODEL = "Sees the release & knows the classes of other people."


def finding(quantity: str, value: float, kind: Any, source: str, on: str = "Z", **more: Any) -> Finding:
    units = {"success": "share", "chance": "share", "advantage": "share", "psnr": "dB", "p-value": ""}
    options = {"attribute": "colour", "n_samples": 90, "seed": 7, **more}
    return Finding(quantity, value, kind, units.get(quantity, "bits"), source, on, **options)


def make_report(name: str = "hand-made", success: float = 0.6, psnr: float = 20.0) -> AuditReport:
    """Two adversaries on Z, one on X and on X̂, bounds in bits, PSNR, and everything that figures need."""
    width = 0.05
    tried = {"threat_model": MODEL}
    findings = (
        finding("chance", 1 / 3, "estimate", "largest class", ""),
        finding(
            "success", success, "lower bound", "trees", interval=(success - width, success + width), **tried
        ),
        finding("advantage", success - 1 / 3, "lower bound", "trees", interval=(0.0, 1.0), **tried),
        finding("success", success - 0.1, "lower bound", "lines", interval=(0.0, success), **tried),
        finding("success", 0.9, "lower bound", "trees", "X", interval=(0.85, 0.95), **tried),
        finding(
            "success", success - 0.05, "lower bound", "decoder", "X_hat", interval=(0.0, success), **tried
        ),
        finding("p-value", 0.001, "estimate", "trees", **tried),
        finding("leakage", 0.31, "lower bound", "trees", interval=(0.25, 0.37), **tried),
        finding("leakage", 0.28, "lower bound", "lines", interval=(0.2, 0.36), **tried),
        finding("leakage", 0.33, "estimate", "mixture", interval=(0.3, 0.36)),
        finding("leakage", 1.2, "upper bound", "entropy", interval=(1.1, 1.3)),
        finding("utility", 2.0, "lower bound", "mixture", attribute=""),
        finding("utility", 3.0, "upper bound", "mixture", attribute=""),
        finding(
            "psnr", psnr, "estimate", "reconstruction", "X_hat", attribute="", interval=(psnr - 1, psnr + 1)
        ),
    )
    confusion = np.array([[20, 5, 5], [6, 18, 6], [9, 5, 16]])
    tables = (
        ClassTable.of_counts("trees", "Z", "colour", CLASSES, confusion),
        ClassTable.of_counts("trees", "X", "colour", CLASSES, np.diag([27, 27, 27]) + 1),
    )
    rng = np.random.default_rng(0)
    images = rng.random((4, 6))
    meta = {
        "name": name,
        "mechanism": "a <mechanism> & more",
        "n_records": 90,
        "attributes": [{"name": "colour", "kind": "classes", "n_classes": 3, "classes": list(CLASSES)}],
        "tasks": [],
        "fingerprint": {"Z": "sha256:" + "ab" * 32, "private": "hmac-sha256:" + "cd" * 32},
        "settings": {"seed": 7, "confidence": 0.95, "adversaries": ["trees", "lines"]},
        "versions": {"numpy": "2.0"},
        "audited": ["90 records."],
        "not_audited": ["The weather."],
        "run": {"seconds": 1.0, "n_jobs": 1},
    }
    figures: dict[str, Any] = {
        "density": {
            "side": 4,
            "least": 10,
            "classes": list(CLASSES),
            "X": {"cells": [[0, 0], [2, 3]], "records": [20, 10], "shares": [[0.8, 0, 0], [0, 0.4, 0.6]]},
            "Z": {"cells": [[1, 1]], "records": [40], "shares": [[0.4, 0.4, 0]]},
        },
        "images": {"shape": [2, 3], "X": images.tolist(), "X_hat": (images / 2).tolist()},
    }
    for on, left_out in (("X", 0.05), ("Z", 0.1)):
        figures["density"][on]["not_shown"] = left_out
    return AuditReport(findings, tables, meta, figures)


def exact_report() -> AuditReport:
    """What a table mechanism on a known joint gives: no records, no tables, exact values."""
    exact = {"n_samples": None, "seed": 0}
    findings = (
        finding("success", 0.75, "exact", "Bayes adversary", threat_model=MODEL, **exact),
        finding("success", 0.9, "exact", "Bayes adversary", "X", threat_model=MODEL, **exact),
        finding("chance", 0.5, "exact", "largest class", "", **exact),
        finding("leakage", 0.25, "exact", "all joint probabilities", **exact),
        finding("utility", 1.5, "exact", "all joint probabilities", **exact),
    )
    return AuditReport(findings, (), {"name": "table", "mechanism": "a table", "n_records": None})
