"""Pages and parts of pages, rendered by the server; every value in them is escaped."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from starlette.responses import HTMLResponse, Response

from ..errors import MissingDependencyError
from ..report import wording
from .choosing import MEASURES, STEPS, Choice

#: Of the chart of a frontier, in the units of its picture.
WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 560, 320, 62, 44, 12, 14


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
        number=wording.number,
        signs=wording.SIGNS,
        signed=wording.signed,
        interval=wording.interval,
        view=wording.view,
        measures=MEASURES,
        steps=STEPS,
    )
    return pages


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people write it."""
    return "–" if value is None else f"{100 * value:.{digits}f} %"


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
    """Where the lines of the chart run: x is what is kept, y what is told."""
    most_kept = max(stop.kept for stop in choice.stops) or 1.0
    heights = [stop.at_most for stop in choice.stops] + [stop.told for stop in choice.stops]
    low = 0.0 if choice.measure != "success" else max(0.0, min(heights) - 0.02)
    high = max(max(heights), low + 1e-6)

    def x(kept: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * kept / most_kept, 1)

    def y(told: float) -> float:
        share = (min(max(told, low), high) - low) / (high - low)
        return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * share, 1)

    def line(points: Any) -> str:
        return " ".join(f"{x(kept)},{y(told)}" for kept, told in points)

    floor = HEIGHT - BOTTOM
    proved = [(kept * most_kept, told) for kept, told in choice.proved]
    ticks = [low + (high - low) * share for share in (0, 0.5, 1)]
    unit = MEASURES[choice.measure][1]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "floor": floor,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "impossible": f"{x(0)},{floor} {line(proved)} {x(most_kept)},{floor}" if proved else "",
        "told": line((stop.kept, stop.told) for stop in choice.stops),
        "at_most": line((stop.kept, stop.at_most) for stop in choice.stops),
        "here": [(x(stop.kept), y(stop.at_most)) for stop in choice.stops],
        "y_ticks": [(y(tick), f"{100 * tick:.0f} %" if unit == "share" else f"{tick:.3f}") for tick in ticks],
        "x_ticks": [(x(most_kept * share), f"{100 * most_kept * share:.0f} %") for share in (0, 0.5, 1)],
        "words": (
            f"What is told about {choice.private} against what is kept. From "
            f"{percent(choice.stops[0].kept, 0)} kept, where at most {choice.stops[0].at_most:.3g} is told, "
            f"to {percent(most_kept, 0)} kept, where it is at most {choice.stops[-1].at_most:.3g}."
        ),
    }
