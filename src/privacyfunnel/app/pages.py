"""Pages and parts of pages, rendered by the server; every value in them is escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from starlette.responses import HTMLResponse, Response

from ..errors import MissingDependencyError
from ..measured import rounded_up
from ..report import wording
from ..report.plane import plane_chart
from .choosing import STEPS, Choice


@cache
def _environment() -> Any:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingDependencyError(
            "The app needs jinja2. Install it with: pip install 'privacyfunnel[app]'"
        ) from error
    loader = ChoiceLoader(
        [
            PackageLoader("privacyfunnel.app", "templates"),
            PackageLoader("privacyfunnel.report", "templates"),
        ]
    )
    pages = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    pages.globals.update(
        percent=percent,
        unbroken=unbroken,
        number=wording.number,
        rounded_up=rounded_up,
        signs=wording.SIGNS,
        signed=wording.signed,
        interval=wording.interval,
        view=wording.view,
        steps=STEPS,
    )
    return pages


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people write it."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def unbroken(text: str) -> str:
    """A sentence in which no line begins with its sign of per cent."""
    return text.replace(" %", "\u00a0%")


def render(template: str, status: int = 200, **values: Any) -> Response:
    """A page or a part of one."""
    return HTMLResponse(_environment().get_template(template).render(**values), status)


def error_page(sentence: str, status: int, *, whole: bool) -> Response:
    """One sentence: as a page for a browser, or as a part for our script."""
    return render("error.html" if whole else "error_part.html", status, sentence=sentence)


def static(name: str) -> Response:
    """The script, or the style: that of reports and what the app adds."""
    own = files("privacyfunnel.app").joinpath("static", name).read_text(encoding="utf-8")
    if name.endswith(".js"):
        return Response(own, media_type="text/javascript")
    look = files("privacyfunnel.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    return Response(f"{look}\n{own}", media_type="text/css")


def chart_of(choice: Choice) -> dict[str, Any]:
    """The picture of a frontier; its places are those of the slider."""
    first, last = choice.stops[0], choice.stops[-1]
    words = (
        f"What is told about {choice.private} against what is kept: from {percent(first.kept, 0)} kept, "
        f"where at most {rounded_up(first.at_most):.4g} is told, to {percent(last.kept, 0)} kept, where it "
        f"is at most {rounded_up(last.at_most):.4g}."
    )
    return plane_chart(
        [(stop.kept, stop.told) for stop in choice.stops],
        [(stop.kept, stop.at_most) for stop in choice.stops],
        [(kept * last.kept, told) for kept, told in choice.proved],
        choice.measure,
        words,
        "on these records, exact" if choice.way == "columns" else "on these records, an estimate",
    )
