"""Interactive figures of the page, as Plotly's JSON: hover for the numbers, zoom for the details."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..audit import AuditReport, Finding
from ..errors import MissingDependencyError
from ..plotting import COLOURS
from .figures import SOME, class_colour, class_order, confusion_pair, row_shares
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
    if not any(one.on == "Z" for one in report.tables):
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
            z=row_shares(table)[np.ix_(rows, rows)].round(4),
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
    """UMAP of X and Z side by side."""
    data = report.figures_data.get("umap")
    if data is None:
        return None
    import_plotly()
    from plotly.subplots import make_subplots

    views = [on for on in ("X", "Z") if on in data]
    figure = make_subplots(1, len(views), subplot_titles=[f"UMAP of the {view(on)}" for on in views])
    labels = np.asarray(data["labels"])
    classes = class_order(labels)
    for column, on in enumerate(views, 1):
        points = np.asarray(data[on], dtype=np.float64)
        for i, label in enumerate(classes):
            own = points[labels == label].round(3)
            figure.add_scatter(
                x=own[:, 0].tolist(),
                y=own[:, 1].tolist(),
                mode="markers",
                name=_safe(label),
                legendgroup=str(i),
                showlegend=column == 1 and len(classes) <= SOME,
                marker={"size": 4, "color": class_colour(i), "opacity": 0.7},
                hovertemplate=f"{_safe(label)}<extra></extra>",
                row=1,
                col=column,
            )
        if len(classes) <= SOME:
            for i, label in enumerate(classes):
                centre = np.median(points[labels == label], axis=0)
                figure.add_annotation(
                    x=float(centre[0]),
                    y=float(centre[1]),
                    text=f"<b>{_safe(label)}</b>",
                    showarrow=False,
                    font={"color": class_colour(i, dark=True), "size": 14},
                    bgcolor="rgba(255,255,255,0.65)",
                    borderpad=1,
                    row=1,
                    col=column,
                )
    _layout(figure, "", "")
    bare = {"showticklabels": False, "ticks": "", "mirror": True, "showline": True, "linecolor": "#8a8a8a"}
    figure.update_xaxes(**bare)
    figure.update_yaxes(**bare)
    figure.update_layout(
        height=500, margin={"t": 90, "l": 20, "b": 20}, legend={"y": 1.09, "itemsizing": "constant"}
    )
    return figure


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
