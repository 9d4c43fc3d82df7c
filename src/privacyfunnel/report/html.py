"""Pages for people: one report, or several side by side, each one file that needs no network."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from ..audit import AuditReport, Verdict
from ..audit.class_tables import RARE
from ..audit.rounding import LEAST_RECORDS
from ..errors import InvalidInputError, MissingDependencyError
from ..persistence import write_atomic
from . import interactive, wording
from .card import limits
from .pages import adversary_tables, class_rows, comparison, headline, kept_rows, leakage_rows
from .summary import first_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_html(report: AuditReport, path: str | PathLike[str], verdicts: Sequence[Verdict] = ()) -> None:
    """Write a report as one page: tables that need no JavaScript, figures that do, nothing from outside.

    Parameters
    ----------
    report : AuditReport
    path : str or path
        The .html file.
    verdicts : sequence of Verdict
        What `report.gate` gave, where limits were set; they come first on the page.
    """
    report = report.published()
    names = wording.attributes(report)
    sections = [
        {
            "name": name,
            "adversaries": adversary_tables(report, name),
            "leakage": leakage_rows(report, name),
            "figures": _figures(
                ("success", interactive.success_figure(report, name)),
                ("leakage", interactive.leakage_figure(report, name)),
                prefix=f"attribute-{i}",
            ),
        }
        for i, name in enumerate(names)
    ]
    page = _render(
        "report.html",
        title=str(report.meta.get("name", "release")),
        first_lines=first_lines(report),
        basis=wording.basis(report),
        meta=report.meta,
        verdicts=verdicts,
        headline=headline(report),
        sections=sections,
        kept=kept_rows(report),
        classes=class_rows(report),
        figures=_figures(
            ("Which classes are taken for which", interactive.confusion_figure(report)),
            ("Embedding before and after", interactive.embedding_figure(report)),
            prefix="whole",
        ),
        samples=_samples(report),
        findings=report.findings,
        limits=limits(report),
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
    reports = [one.published() for one in reports]
    page = _render(
        "comparison.html",
        title="Comparison of audits",
        first_lines=_told(reports),
        comparison=comparison(reports),
        reports=reports,
        figures=_figures(("Success against PSNR", interactive.tradeoff_figure(reports)), prefix="compare"),
    )
    write_atomic(path, page)


def _told(reports: Sequence[AuditReport]) -> list[str]:
    """The first lines of several reports, each with its name."""
    return [
        f"{report.meta.get('name', 'release')}: {line}" for report in reports for line in first_lines(report)
    ]


def check_installed() -> None:
    """MissingDependencyError where a package is not there that a page needs."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(interactive.NEEDS) from error
    interactive.import_plotly()


def _render(template: str, **values: Any) -> str:
    check_installed()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("privacyfunnel.report", "templates")
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.globals.update(
        signs=wording.SIGNS,
        meanings=wording.MEANINGS,
        number=wording.number,
        signed=wording.signed,
        interval=wording.interval,
        ends=wording.ends,
        view=wording.view,
        common=wording.common,
        least_records=LEAST_RECORDS,
        rare=RARE,
        plotly_js=_plotly_js,
    )
    return pages.get_template(template).render(**values)


def _plotly_js() -> Any:
    """The whole of plotly.js, for one <script>; its own text holds no end tag."""
    interactive.import_plotly()
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs().replace("</script", "<\\/script"))


def _figures(*named: tuple[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Ids, titles and JSON of the figures that there are."""
    from markupsafe import Markup

    return [
        {"id": f"{prefix}-{i}", "title": title, "json": Markup(interactive.script_json(figure))}
        for i, (title, figure) in enumerate(named)
        if figure is not None
    ]


def _samples(report: AuditReport) -> str | None:
    """The grid of records and reconstructions as a PNG inside the page."""
    if "images" not in report.figures_data:
        return None
    from .figures import plot_samples

    return _png(plot_samples(report))


def _png(figure: Figure) -> str:
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode("ascii")
