"""AuditReport: everything an audit found, ready to be read, kept, compared and judged."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Any

from ..errors import InvalidInputError
from ..frames import make_frame
from ..persistence import save_json
from .class_tables import ClassTable
from .findings import Finding
from .gate import Verdict, judge
from .rounding import published

FORMAT_VERSION = 2
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
        released = [one for one in self.find("success") if one.on not in ("X", "")]
        return max(released, key=lambda one: one.value, default=None)

    def to_frame(self) -> Any:
        """One row a finding, in whichever frame library is installed."""
        names = ("quantity", "attribute", "on", "source", "value", "low", "high", "kind", "unit")
        rest = ("confidence", "n_samples", "seed", "threat_model", "notes")
        return make_frame({name: [_part(one, name) for one in self.findings] for name in names + rest})

    def class_frame(self) -> Any:
        """One row a class and adversary: share of the records, success with its interval, false guesses."""
        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "attribute",
                "on",
                "source",
                "class",
                "size",
                "success",
                "low",
                "high",
                "false_guesses",
            )
        }
        for table in self.tables:
            for i, label in enumerate(table.classes):
                low, high = table.intervals[i].tolist()
                row = (table.attribute, table.on, table.source, str(label), float(table.sizes[i]))
                values = (float(table.success[i]), low, high, float(table.false_guesses[i]))
                for name, value in zip(columns, row + values, strict=True):
                    columns[name].append(value)
        return make_frame(columns)

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
            The most that any adversary tried may reach, as a share.
        max_leakage : float, optional
            Bits.
        min_psnr : float, optional
            dB.
        max_lift : float, optional
            Bits: the most that the release may raise anybody's likelihood of a private class.
        min_group : float, optional
            Records that the smallest group which the release sets apart must have.

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
        reports = [self, *others]
        names = _distinct([str(one.meta.get("name", "report")) for one in reports])
        keyed = [{_key(finding): finding for finding in one.findings} for one in reports]
        keys = list(dict.fromkeys(key for findings in keyed for key in findings))
        columns: dict[str, list[Any]] = {
            name: [key[i] for key in keys]
            for i, name in enumerate(("quantity", "attribute", "on", "source", "kind"))
        }
        for name, findings in zip(names, keyed, strict=True):
            found = [findings.get(key) for key in keys]
            for part in ("value", "low", "high"):
                columns[f"{name}: {part}"] = [None if one is None else _part(one, part) for one in found]
            if findings is not keyed[0]:
                columns[f"{name}: differs"] = [_differs(keyed[0].get(key), findings.get(key)) for key in keys]
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

    def __repr__(self) -> str:
        best = self.strongest
        told = "" if best is None else f", {best.source} guesses {best.value:.1%}"
        return f"AuditReport({self.meta.get('name', 'release')}: {len(self.findings)} findings{told})"


def _part(finding: Finding, name: str) -> Any:
    """A field of a finding; what it has no interval for has no ends and no confidence."""
    missing = finding.interval is None and name in ("low", "high", "confidence")
    return None if missing else getattr(finding, name)


def _key(finding: Finding) -> tuple[str, str, str, str, str]:
    return finding.quantity, finding.attribute, finding.on, finding.source, finding.kind


def _distinct(names: list[str]) -> list[str]:
    """The names, numbered where one comes twice."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def _differs(first: Finding | None, second: Finding | None) -> bool | None:
    if first is None or second is None:
        return None
    ends = first.low, first.high, second.low, second.high
    if ends[0] is None or ends[1] is None or ends[2] is None or ends[3] is None:
        return None
    return ends[2] > ends[1] or ends[3] < ends[0]
