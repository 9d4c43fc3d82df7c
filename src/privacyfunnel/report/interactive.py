"""Interactive figures of the page, as Plotly's JSON: hover for the numbers, zoom for the details."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..audit import AuditReport, Finding
from ..errors import MissingDependencyError
from ..plotting import COLOURS
from .figures import SOME, UNTOLD, class_colour, confusion_pair
from .summary import chance
from .tradeoffs import frontier_points, grouped, success_psnr
from .wording import SIGNS, interval, reach, released, signed, view, who

NEEDS = "The page of a report needs plotly and jinja2. Install them with: pip install 'privacyfunnel[plot]'"
_SYMBOLS = {"exact": "diamond", "lower bound": "triangle-right", "upper bound": "triangle-left"}
_KINDS = dict(zip(SIGNS, (COLOURS[-1], *COLOURS[:3]), strict=True))
_FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#222222"}


def import_plotly() -> Any:
    """Plotly's graph objects, or MissingDependencyError."""
    try:
        import plotly.graph_objects as graph
    except ImportError as error:
        raise MissingDependencyError(NEEDS) from error
    return graph


def script_json(figure: Any) -> str:
    """A figure as JSON that is safe inside <script>, whatever the labels are."""
    text: str = figure.to_json()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def success_figure(report: AuditReport, attribute: str) -> Any | None:
    """Success of each adversary on the release and on raw records, with chance."""
    found = [one for one in report.find("success") if one.attribute == attribute]
    after = sorted(released(found), key=lambda one: one.value)
    if not after:
        return None
    graph = import_plotly()
    names = [_safe(who(one)) for one in after]
    raw = {one.source: one for one in found if one.on == "X"}
    pairs = [(name, raw[one.source]) for name, one in zip(names, after, strict=True) if one.source in raw]
    figure = graph.Figure()
    if pairs:
        figure.add_trace(
            _dots([one for _, one in pairs], [name for name, _ in pairs], "raw records X", "#b0b0b0")
        )
    figure.add_trace(_dots(after, names, "release", COLOURS[0]))
    nothing = chance(report, attribute)
    if nothing is not None:
        figure.add_vline(
            nothing.value,
            line={"dash": "dash", "color": "#8a8a8a", "width": 1},
            annotation={"text": f"chance {signed(nothing)}", "font": {"color": "#5f6368"}},
        )
    exact = all(one.kind == "exact" for one in after)
    kind = "" if exact else " (a lower bound on what the best adversary would)"
    _layout(figure, f"share of records whose class is guessed{kind}", "")
    figure.update_xaxes(range=[0, 1.03], tickformat=".0%")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names)
    figure.update_layout(height=150 + 36 * len(names), margin={"l": 200})
    return figure


def leakage_figure(report: AuditReport, attribute: str) -> Any | None:
    """What each source says about I(Z;Y), by kind."""
    found = [
        one
        for one in released(report.find("leakage")) + list(report.find("leakage null"))
        if one.attribute == attribute
    ]
    found = sorted(dict.fromkeys(found), key=lambda one: one.value)
    if not found:
        return None
    graph = import_plotly()
    names = [_safe(who(one)) + (" – null" if one.quantity.endswith("null") else "") for one in found]
    figure = graph.Figure()
    for kind in ("lower bound", "exact", "estimate", "upper bound"):
        own = [(one, name) for one, name in zip(found, names, strict=True) if one.kind == kind]
        if own:
            symbol = _SYMBOLS.get(kind, "circle-open")
            figure.add_trace(_dots([o for o, _ in own], [n for _, n in own], kind, _KINDS[kind], symbol))
    _layout(figure, "I(Z;Y) in bits", "")
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=names)
    figure.update_layout(height=150 + 32 * len(names), margin={"l": 220})
    return figure


def confusion_figure(report: AuditReport) -> Any | None:
    """Before and after, side by side."""
    if not any(one.on == "Z" and one.classes for one in report.tables):
        return None
    import_plotly()
    from plotly.subplots import make_subplots

    raw, after = confusion_pair(report)
    shown = [one for one in (raw, after) if one is not None]
    titles = [f"{_safe(one.source)} on {'raw X' if one.on == 'X' else 'the release Z'}" for one in shown]
    figure = make_subplots(1, len(shown), subplot_titles=titles, horizontal_spacing=0.1)
    for column, table in enumerate(shown, 1):
        # With very many classes only those that are guessed best after the release fit on a screen.
        rows = np.sort(np.argsort(-after.success, kind="stable")[: 2 * SOME])
        names = [_safe(table.classes[i]) for i in rows]
        figure.add_heatmap(
            z=table.guessed[np.ix_(rows, rows)],
            x=names,
            y=names,
            zmin=0,
            zmax=1,
            colorscale="Blues",
            showscale=column == len(shown),
            colorbar={"tickformat": ".0%", "outlinewidth": 0},
            hovertemplate="true %{y}, guessed %{x}: %{z:.1%}<extra></extra>",
            row=1,
            col=column,
        )
    _layout(figure, "guessed class", "true class")
    figure.update_xaxes(type="category")
    figure.update_yaxes(type="category", autorange="reversed")
    figure.update_layout(height=460)
    return figure


def embedding_figure(report: AuditReport) -> Any | None:
    """Where records lie in UMAP of X and Z: a square a cell, coloured by the class that leads there."""
    data = report.figures_data.get("density")
    if data is None:
        return None
    import_plotly()
    from plotly.subplots import make_subplots

    views = [on for on in ("X", "Z") if on in data]
    figure = make_subplots(1, len(views), subplot_titles=[f"UMAP of the {view(on)}" for on in views])
    most = max((n for on in views for n in data[on]["records"]), default=1)
    for column, on in enumerate(views, 1):
        cells, records = np.array(data[on]["cells"]).reshape(-1, 2), np.array(data[on]["records"])
        shares = np.array(data[on]["shares"]).reshape(len(cells), -1)
        # −1 where no share is large enough to be told.
        leading = [int(one.argmax()) if one.any() else -1 for one in shares]
        for i, label in [*enumerate(data["classes"]), (-1, "not told")]:
            own = [k for k, one in enumerate(leading) if one == i]
            figure.add_scatter(
                x=cells[own, 0].tolist(),
                y=cells[own, 1].tolist(),
                mode="markers",
                name=_safe(label),
                legendgroup=str(i),
                showlegend=column == 1 and len(data["classes"]) <= SOME,
                marker={
                    "size": [round(4 + 14 * math.sqrt(records[k] / most), 1) for k in own],
                    "symbol": "square",
                    "color": class_colour(i) if i >= 0 else UNTOLD,
                    # A cell that several classes share is paler.
                    "opacity": [round(0.3 + 0.8 * min(shares[k].max(), 0.8), 2) for k in own],
                },
                text=[_cell_text(records[k], shares[k], data["classes"]) for k in own],
                hovertemplate="%{text}<extra></extra>",
                row=1,
                col=column,
            )
    _layout(figure, "", "")
    bare = {"showticklabels": False, "ticks": "", "mirror": True, "showline": True, "linecolor": "#8a8a8a"}
    figure.update_xaxes(**bare, range=[-1, data["side"]])
    figure.update_yaxes(**bare, range=[-1, data["side"]])
    figure.update_layout(
        height=540, margin={"t": 90, "l": 20, "b": 20}, legend={"y": 1.09, "itemsizing": "constant"}
    )
    return figure


def _cell_text(records: int, shares: Any, classes: Sequence[str]) -> str:
    told = [
        f"{_safe(name)} {100 * share:.0f} %" for name, share in zip(classes, shares, strict=True) if share
    ]
    return f"about {records} records: " + (", ".join(told) or "no class has a fifth")


def tradeoff_figure(reports: Sequence[AuditReport]) -> Any | None:
    """Success of the strongest adversary against PSNR, with the frontier of each method."""
    drawn = {name: success_psnr(group) for name, group in grouped(reports).items()}
    if not any(drawn.values()):
        return None
    figure = import_plotly().Figure()
    for i, (name, pairs) in enumerate(drawn.items()):
        if not pairs:
            continue
        colour = COLOURS[i % len(COLOURS)]
        figure.add_scatter(
            x=[psnr.value for psnr, _ in pairs],
            y=[success.value for _, success in pairs],
            error_x=_bars([psnr for psnr, _ in pairs], colour),
            error_y=_bars([success for _, success in pairs], colour),
            mode="markers",
            marker={"size": 10, "color": colour, "line": {"width": 1, "color": "white"}},
            name=_safe(name),
            legendgroup=str(i),
            text=[f"{signed(success)} by {_safe(success.source)}, {signed(psnr)}" for psnr, success in pairs],
            hovertemplate="%{text}<extra></extra>",
        )
        best = frontier_points([(psnr.value, success.value) for psnr, success in pairs])
        figure.add_scatter(
            x=[p for p, _ in best],
            y=[s for _, s in best],
            mode="lines",
            line={"shape": "vh", "color": colour, "width": 1.5},
            legendgroup=str(i),
            showlegend=False,
            hoverinfo="skip",
        )
    _layout(figure, "PSNR of the reconstruction in dB", "success of the strongest adversary (lower bound)")
    figure.update_yaxes(tickformat=".0%", rangemode="tozero")
    figure.update_layout(height=460)
    return figure


def _dots(
    found: Sequence[Finding], names: Sequence[str], name: str, colour: str, symbol: str = "circle"
) -> Any:
    return import_plotly().Scatter(
        x=[one.value for one in found],
        y=list(names),
        error_x=_bars(found, colour),
        mode="markers",
        marker={"size": 9, "color": colour, "symbol": symbol, "line": {"width": 1, "color": colour}},
        name=name,
        text=[f"{signed(one)}  ({one.kind}; {interval(one)})" for one in found],
        hovertemplate="%{y} on " + name + "<br>%{text}<extra></extra>",
    )


def _bars(found: Sequence[Finding], colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(one)[1] for one in found],
        "arrayminus": [reach(one)[0] for one in found],
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _layout(figure: Any, x: str, y: str) -> None:
    figure.update_layout(
        template="simple_white",
        font=_FONT,
        margin={"l": 70, "r": 20, "t": 50, "b": 55},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        paper_bgcolor="white",
    )
    small = {"size": 13}
    figure.update_xaxes(title={"text": x, "font": small})
    figure.update_yaxes(title={"text": y, "font": small}, automargin=True)
    figure.update_annotations(font_size=13)


def _safe(label: object) -> str:
    """A label as Plotly shall print it: it would take <b> for markup."""
    return html.escape(str(label), quote=False)
