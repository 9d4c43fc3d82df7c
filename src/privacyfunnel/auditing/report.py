"""AuditReport: everything an audit found, ready to be read, kept, compared and judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from os import PathLike, fspath
from typing import Any

import numpy as np

from ..attributes import Attribute
from ..errors import InvalidInputError
from ..frames import make_frame
from ..persistence import decode_labels, save_json
from .findings import About, Finding, guessed, highest
from .gate import Verdict, judge
from .inputs import without_seeds
from .measures.bits import class_gaps
from .published import RARE, ClassTable, published
from .summary import Value, summary_of

FORMAT_VERSION = 2
#: What numbers of two reports must have in common to be compared.
KEYS = ("quantity", "attribute", "on", "source", "kind")
#: Of fewer records, somebody with the codes can try private columns until one gives the report's numbers.
FEW_RECORDS = 100


@dataclass(frozen=True, eq=False)
class AuditReport:
    """What an audit found.

    Attributes
    ----------
    findings : tuple of Finding
        Every number with its kind, interval, source, sample size and seed.
    tables : tuple of ClassTable
        Confusion of the classes by each adversary, on Z and on X: before and after.
    meta : mapping
        JSON types. "name", "mechanism" (a description), "n_records", "attributes" and "tasks" (of each
        its name, kind, classes or bins), "fingerprint" (by array name; of private ones keyed), "settings",
        "versions", "audited" and "not_audited" (lists of sentences), "run" (seconds, jobs: the only part
        that differs between two audits with one seed), "published" where the numbers are rounded.
    figures_data : mapping
        What figures need beyond the findings, where it was asked for, in JSON types. "density"
        (`figures=True`): {"side": cells along a side, "least": fewest records of a cell, "classes": names,
        "X" and "Z": {"cells": [[column, row], …], "records": about how many in each, "shares": of each cell
        those of the classes in fifths, 0.8 for that and more, "not_shown": share of records in smaller
        cells}}. "images" (`show_records=True`): {"shape": [height, width], "X": [[…], …], "X_hat": [[…],
        …], one flat image a row}. Either is absent where it does not apply.
    """

    findings: tuple[Finding, ...]
    tables: tuple[ClassTable, ...] = ()
    meta: Mapping[str, Any] = field(default_factory=dict)
    figures_data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notice(self) -> str:
        """Why the report must be kept like the data themselves; empty where it may be handed on."""
        n = self.meta.get("n_records")
        reasons = []
        if "density" in self.figures_data:
            reasons.append("it shows where records lie, with shares of their private classes")
        if "images" in self.figures_data:
            reasons.append("it shows records")
        if n is not None and n < FEW_RECORDS:
            reasons.append(f"its numbers are about {n} records, few enough to search for what gives them")
        return f"This is as private as the data: {'; '.join(reasons)}." if reasons else ""

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from ..report.notebook import html_of

        return html_of(self)

    def published(self) -> AuditReport:
        """The report as files, pages and verdicts tell it: rounded, so that nobody can be counted."""
        if self.meta.get("published"):  # read back from a file
            return self
        return replace(self, findings=published(self.findings), meta={**self.meta, "published": True})

    def find(self, quantity: str | None = None, **fields: Any) -> tuple[Finding, ...]:
        """The findings of a quantity whose other fields have the given values, such as on="Z"."""
        return tuple(
            one
            for one in self.findings
            if (quantity is None or one.quantity == quantity)
            and all(getattr(one, name) == value for name, value in fields.items())
        )

    def table(self, source: str, on: str = "Z") -> ClassTable:
        """The confusion of one adversary on the release (or on "X", "X_hat")."""
        for one in self.tables:
            if (one.source, one.on) == (source, on):
                return one
        known = ", ".join(f"{one.source!r} on {one.on}" for one in self.tables) or "none"
        raise InvalidInputError(f"The report has no table of {source!r} on {on}; it has {known}.")

    @property
    def strongest(self) -> Finding | None:
        """The adversary with the highest success on what is released; None for a numeric attribute."""
        return highest(guessed(self.findings))

    def summary(self) -> dict[str, Value]:
        """The numbers that people ask for first, as one flat row of JSON values.

        They are those of `findings`: exact in Python; `report.published().summary()` has them rounded, as
        files tell them. None where something was not measured or has no finite value. Where a report has
        several private attributes, the keys of each begin with its name, as in "age: success".

        Notes
        -----
        name, attribute, n_records, confidence, seconds, published
        success, success_low, success_high, success_kind, strongest, strongest_on
            The highest success on what is released, its interval, its adversary and what that looks at.
        success_most
            What nobody can exceed who sees one release, where it is certified.
        success_with_labels
            The same among those who learn from other people's classes: without clusters.
        chance, raw_success
            Without the release; of the strongest adversary on raw records.
        leakage, leakage_low, leakage_high, leakage_kind
            Bits: the exact value where it is known, else the largest lower bound on what one release tells,
            else an estimate.
        leakage_estimate, leakage_most
            The estimate that no bound contradicts, and the smallest upper bound.
        clustering, clustering_low, clustering_high
            Success of clusters named after the audited records themselves, as in the literature.
        explained_variance, explained_variance_low, explained_variance_high, raw_explained_variance
            Of a numeric attribute.
        lift, lift_low, lift_high, lift_kind, smallest_group, unmeasured_success, unmeasured_leakage
        success_NAME, leakage_NAME, clustering_NAME, explained_variance_NAME
            Of each adversary on the release, such as success_boosted_trees.
        utility, utility_low, utility_high, utility_kind, utility_most
        mse, psnr, ssim, and the same with _low and _high
        task_accuracy, task_auc (of two classes), task_explained_variance, with _low and _high; raw_ for X
            Begin with the task's name where there are several tasks.
        """
        return summary_of(self.findings, self.meta)

    def to_frame(self) -> Any:
        """One row a finding, in whichever frame library is installed.

        Exact, as `findings`, for you alone; `report.published().to_frame()` has the numbers that may leave
        the house.
        """
        names = ("quantity", "attribute", "on", "source", "value", "low", "high", "kind", "unit")
        rest = ("confidence", "n_samples", "seed", "threat_model", "notes")
        return make_frame({name: [_part(one, name) for one in self.findings] for name in names + rest})

    def class_frame(self) -> Any:
        """One row a class and adversary: share of the records, success with its interval, false guesses."""
        rows = [
            (one.attribute, one.on, one.source, str(label), *numbers)
            for one in self.tables
            for label, numbers in zip(one.classes, one.numbers.tolist(), strict=True)
        ]
        names = ("attribute", "on", "source", "class", "size", "success", "low", "high", "false_guesses")
        return make_frame({name: [row[i] for row in rows] for i, name in enumerate(names)})

    def gate(
        self,
        *,
        max_success: float | None = None,
        max_leakage: float | None = None,
        min_psnr: float | None = None,
        max_lift: float | None = None,
        min_group: float | None = None,
    ) -> tuple[Verdict, ...]:
        """Whether the release keeps stated limits, judged by the pessimistic end of each interval.

        Parameters
        ----------
        max_success : float, optional
            The most that any adversary tried may reach, as a share: 0.9 for 90 %.
        max_leakage : float, optional
            Bits.
        min_psnr : float, optional
            dB.
        max_lift : float, optional
            Bits: the most that the release may raise anybody's likelihood of a private class.
        min_group : float, optional
            Records that the smallest group which the release sets apart must have. Only groups of symbols
            can be counted: among numbers somebody may stand apart where nobody looked, so that none pass.

        Returns
        -------
        A verdict for each limit given. What was not measured does not pass: classes and symbols of fewer
        than ten records count as told, unless an exact value or an upper bound keeps the limit.
        """
        return judge(
            self.published().findings,  # what is judged is what is shown
            max_success=max_success,
            max_leakage=max_leakage,
            min_psnr=min_psnr,
            max_lift=max_lift,
            min_group=min_group,
        )

    def compare(self, others: Sequence[AuditReport]) -> Any:
        """This report beside others: one row a number, with the values and intervals of each report.

        `differs` says whether the interval of a report and that of this one have nothing in common; None
        where one of them has no such number, or no interval for it.
        """
        names, rows = compared([self, *others])
        columns: dict[str, list[Any]] = {
            key: [getattr(next(filter(None, row)), key) for row in rows] for key in KEYS
        }
        for i, name in enumerate(names):
            for part in ("value", "low", "high"):
                columns[f"{name}: {part}"] = [None if row[i] is None else _part(row[i], part) for row in rows]
            if i:
                columns[f"{name}: differs"] = [differs(row[0], row[i]) for row in rows]
        return make_frame(columns)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON types; the payload of `save`."""
        shown = self.published()
        return {
            "notice": shown.notice,
            "findings": [one.to_dict() for one in shown.findings],
            "tables": [one.to_dict() for one in shown.tables],
            "meta": dict(shown.meta),
            "figures_data": dict(self.figures_data),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> AuditReport:
        """The report of `to_dict`."""
        return cls(
            tuple(Finding.from_dict(one) for one in values["findings"]),
            tuple(ClassTable.from_dict(one) for one in values["tables"]),
            dict(values["meta"]),
            dict(values["figures_data"]),
        )

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report: a page for people as .html, or .json, which `privacyfunnel.load` reads back."""
        ending = fspath(path).lower().rsplit(".", 1)[-1]
        if ending in ("html", "htm"):
            from ..report.html import save_html

            save_html(self, path)
        elif ending == "json":
            save_json(path, "audit-report", FORMAT_VERSION, self.to_dict())
        else:
            raise InvalidInputError(
                f"{fspath(path)}: a report is saved as .html or .json; change the ending."
            )

    def __str__(self) -> str:
        """In a sentence how often the strongest adversary is right, and how often without the release."""
        from ..report.wording import first_lines

        return " ".join(first_lines(self))

    def __repr__(self) -> str:
        best = self.strongest
        told = "" if best is None else f", {best.source} guesses {best.value:.1%}"
        return f"AuditReport({self.meta.get('name', 'release')}: {len(self.findings)} findings{told})"


def read_format_1(values: Mapping[str, Any]) -> AuditReport:
    """The report of a file of format 1, without what such files tell about people.

    Figures (record numbers with their classes) and hashes of private columns are left out, numbers are
    rounded, counts become shares of classes of ten records or more, and what smaller classes could tell is
    added, so that a gate counts them.
    """
    found = [Finding.from_dict(one) for one in values["findings"]]
    seed = next((one.seed for one in found if one.seed is not None), 0)
    meta = dict(values["meta"])
    numeric = {one["name"] for one in meta.get("attributes", ()) if one["kind"] == "numbers"}
    tables: list[ClassTable] = []
    common: dict[str, list[str]] = {}
    gaps: list[Finding] = []
    for one in values["tables"]:
        name, classes = str(one["attribute"]), tuple(decode_labels(one["classes"]))
        if name in numeric:  # their edges are values of people, with all digits
            classes = tuple(f"bin {i + 1} of {len(classes)}" for i in range(len(classes)))
        confusion = np.zeros((len(classes), len(classes)), dtype=np.intp)
        rows, columns, counts = (np.asarray(part, dtype=np.intp) for part in one["cells"])
        confusion[rows, columns] = counts
        table = ClassTable.of_counts(
            str(one["source"]), str(one["on"]), name, classes, confusion, float(one["confidence"])
        )
        tables.append(table)
        if name not in common:
            common[name] = [str(label) for label in table.classes if label != RARE]
            y = np.repeat(np.arange(len(classes)), confusion.sum(axis=1))
            gaps += class_gaps(About(table.confidence, seed), Attribute(name, classes, y))
    # What is said about one class may be about a handful of people.
    kept = [
        replace(one, notes="") if one.quantity == "chance" else one
        for one in found
        if not one.quantity.startswith("worst-class")
    ]
    meta["fingerprint"] = {key: one for key, one in meta.get("fingerprint", {}).items() if key == "Z"}
    meta["mechanism"] = without_seeds(str(meta.get("mechanism", "")))
    meta["audited"] = [without_seeds(str(one)) for one in meta.get("audited", ())]
    for part in ("attributes", "tasks"):
        described = [{**one, "classes": common.get(one["name"], [])} for one in meta.get(part, ())]
        meta[part] = [{**one, "n_rare": one["n_classes"] - len(one["classes"])} for one in described]
    return AuditReport((*kept, *gaps), tuple(tables), meta).published()


def _part(finding: Any, name: str) -> Any:
    """A field of a finding; what it has no interval for has no ends and no confidence."""
    missing = finding.interval is None and name in ("low", "high", "confidence")
    return None if missing else getattr(finding, name)


def compared(reports: Sequence[AuditReport]) -> tuple[list[str], list[list[Finding | None]]]:
    """Names of the reports, numbered where one comes twice, and a row of findings for each number."""
    names = [str(one.meta.get("name", "report")) for one in reports]
    told = [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]
    keyed = [{attrgetter(*KEYS)(finding): finding for finding in one.findings} for one in reports]
    keys = dict.fromkeys(key for findings in keyed for key in findings)
    return told, [[findings.get(key) for findings in keyed] for key in keys]


def differs(first: Finding | None, second: Finding | None) -> bool | None:
    """Whether two intervals have nothing in common; None where one is not known."""
    if first is None or second is None or None in (first.low, first.high, second.low, second.high):
        return None
    return second.low > first.high or second.high < first.low  # type: ignore[operator]
