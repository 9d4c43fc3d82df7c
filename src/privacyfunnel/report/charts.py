"""The charts of the pages: the figures as SVG inside the page, each with what it shows in words."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ..auditing import AuditReport, ClassTable
from ..plotting import INK, printable, svg_source
from . import figures
from .tradeoffs import grouped, plot_success_psnr, success_psnr
from .wording import chance, confusion_pair, has_confusion, number, signed, view, who

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: In inches, of one panel; two stand side by side where there is room, and below each other where not.
PANEL = (3.6, 3.75)


@dataclass(frozen=True)
class Chart:
    """One or two pictures under a title, with names and colours where those are not in the picture."""

    title: str
    pictures: list[str]
    key: list[tuple[str, str]] = field(default_factory=list)


def success_chart(report: AuditReport, attribute: str, name: str) -> Chart | None:
    """Success of each adversary on the release and on raw records, with chance."""
    found = figures.success_found(report, attribute)
    if not found:
        return None
    title = f"How often {attribute} is guessed"
    best, least = found[0][0], found[-1][0]
    words = [
        f"A line for each of {len(found)} adversaries: a dot for the share of records whose {attribute} it "
        f"guesses from the release, and a bar for the interval. {who(best)} guesses most, {signed(best)}."
    ]
    if len(found) > 1:
        words.append(f"{who(least)} guesses least, {signed(least)}.")
    if raw := [one for _, one in found if one is not None]:
        most = max(raw, key=lambda one: one.value)
        words.append(f"Grey dots are guesses from raw records X, up to {signed(most)} by {most.source}.")
    if (nothing := chance(report, attribute)) is not None:
        words.append(f"A tick on each line marks chance, {signed(nothing)}.")
    return Chart(title, [inline_svg(figures.plot_success(report, attribute), name, title, " ".join(words))])


def leakage_chart(report: AuditReport, attribute: str, name: str) -> Chart | None:
    """What each source says about I(Z;Y), by kind."""
    found = figures.leakage_found(report, attribute)
    if not found:
        return None
    title = f"Leakage about {attribute} in bits"
    words = [f"A line for each of {len(found)} numbers about I(Z;Y), the largest first, with its interval."]
    for kind in dict.fromkeys(one.kind for one in found):
        own = [one for one in found if one.kind == kind]
        ends = own[:1] if len(own) == 1 else [own[0], own[-1]]
        told = " to ".join(f"{signed(one)} ({who(one)})" for one in ends)
        words.append(f"{kind.capitalize()}{'s' if len(own) > 1 else ''}: {told}.")
    return Chart(title, [inline_svg(figures.plot_leakage(report, attribute), name, title, " ".join(words))])


def confusion_chart(report: AuditReport, name: str) -> Chart | None:
    """Which classes are taken for which, before and after; of very many those that are guessed best."""
    if not has_confusion(report):
        return None
    title, pictures = "Which classes are taken for which", []
    for table in confusion_pair(report):
        if table is not None:
            figure = figures.plot_confusion(report, views=[table.on], most=2 * figures.SOME, size=PANEL)
            pictures.append(inline_svg(figure, f"{name}-{table.on}", title, _confusion_words(table)))
    return Chart(title, pictures)


def _confusion_words(table: ClassTable) -> str:
    order = sorted(range(len(table.classes)), key=lambda i: -table.success[i])
    best, least = (f"{table.classes[i]} ({number(table.success[i], 'share')})" for i in (order[0], order[-1]))
    return (
        f"A square of shades: a row for each true {table.attribute}, a column for each that {table.source} "
        f"guesses from the {view(table.on)}. {number(table.right, 'share')} are guessed right; the class "
        f"that is guessed best is {best}, the one that is guessed worst {least}."
    )


def embedding_chart(report: AuditReport, name: str) -> Chart | None:
    """Where records lie in UMAP of X and Z, as cells with the shares of their classes."""
    data = report.figures_data.get("density")
    if data is None:
        return None
    title, pictures = "Embedding before and after", []
    for on in ("X", "Z"):
        if on not in data:
            continue
        led = sum(max(shares, default=0) >= 0.8 for shares in data[on]["shares"])
        words = (
            f"{len(data[on]['cells'])} squares, each for {data['least']} records or more that lie together "
            f"in an embedding of the {view(on)}, striped by the shares of their classes. In {led} of them "
            f"one class has four fifths or more. {number(data[on]['not_shown'], 'share')} of the records, in "
            "smaller groups, are not shown."
        )
        figure = figures.plot_embedding(report, views=[on], names=False, size=(2 * PANEL[0], PANEL[1]))
        pictures.append(inline_svg(figure, f"{name}-{on}", f"UMAP of the {view(on)}", words))
    return Chart(
        title, pictures, figures.class_key(data["classes"]) if len(data["classes"]) <= figures.SOME else []
    )


def samples_chart(report: AuditReport, name: str) -> Chart | None:
    """A few records above their reconstructions."""
    if "images" not in report.figures_data:
        return None
    n = len(report.figures_data["images"]["X"])
    title = "Records and their reconstructions"
    words = f"{n} images of records X in the upper rows, and beneath each its reconstruction X̂."
    return Chart(title, [inline_svg(figures.plot_samples(report), name, title, words)])


def tradeoff_chart(reports: Sequence[AuditReport], name: str) -> Chart | None:
    """Success of the strongest adversary against PSNR, with the frontier of each method."""
    drawn = {group: success_psnr(own) for group, own in grouped(reports).items()}
    told = [
        f"{group}: {signed(success)} at {signed(psnr)}"
        for group, own in drawn.items()
        for psnr, success in own
    ]
    if not told:
        return None
    title = "Success against PSNR"
    words = f"Lower and further right is better. Strongest adversary of each release: {'; '.join(told)}."
    return Chart(title, [inline_svg(plot_success_psnr(reports), name, title, words)])


def inline_svg(figure: Figure, name: str, title: str, words: str) -> str:
    """A figure as an <svg> for the inside of a page.

    Text stays text, and what is dark takes the colour of the page's text. All ids begin with `name`, no style
    is left that a policy of the page could refuse, and marks say their tips when they are pointed at.
    """
    source = svg_source(figure)
    used = dict.fromkeys(
        old for pair in re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', source) for old in pair
    )
    names = {old: f"{name}-{i}" for i, old in enumerate(old for old in used if old)}
    given = ElementTree.fromstring(source)
    root = ElementTree.Element(
        "svg",
        {
            "class": "chart",
            "viewBox": given.get("viewBox", ""),
            "role": "img",
            "aria-labelledby": f"{name}-title",
            "aria-describedby": f"{name}-words",
            "fill": "currentColor",
            "stroke-linejoin": "round",
        },
    )
    for tag, text in (("title", title), ("desc", words)):
        end = "title" if tag == "title" else "words"
        ElementTree.SubElement(root, tag, {"id": f"{name}-{end}"}).text = printable(text)
    for child in given:
        root.extend(_cleaned(child, names))
    return ElementTree.tostring(root, encoding="unicode")


def _cleaned(element: Any, names: Mapping[str, str]) -> Iterator[Any]:
    """The element without matplotlib's names and styles; the children of a group that says nothing."""
    tag = _local(element.tag)
    given = {_local(key): value for key, value in element.items()}
    own = given.pop("id", "")
    looks = dict(_attribute(*one) for one in _declarations(given.pop("style", "")))
    if tag in ("metadata", "style") or (tag == "path" and looks == {"fill": "none"}):
        return
    kept = {key: _written(key, value, names) for key, value in given.items()} | looks
    kept = {key: value for key, value in kept.items() if value}
    if own in names:
        kept["id"] = names[own]
    result = ElementTree.Element(tag, kept)
    if own.startswith(figures.TIP):
        ElementTree.SubElement(result, "title").text = own.removeprefix(figures.TIP)
    for child in element:
        result.extend(_cleaned(child, names))
    if tag in ("text", "tspan"):
        result.text = element.text if (element.text or "").strip() else None
    if tag == "g" and not kept and not own.startswith(figures.TIP):
        yield from result
    elif tag not in ("g", "defs") or len(result):
        yield result


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    """The parts of a style; the page has a font for all texts."""
    for part in style.split(";"):
        key, _, value = part.partition(":")
        if value and key.strip() != "font-family":
            yield key.strip(), value.strip()


def _attribute(key: str, value: str) -> tuple[str, str]:
    """A part of a style as an attribute; white edges of marks are as the paper, which may be dark."""
    if (key, value) == ("stroke", "#ffffff"):
        return "class", "edge"
    return key, "currentColor" if value == INK else _rounded(value, 2)


def _written(key: str, value: str, names: Mapping[str, str]) -> str:
    if key == "href" and value.startswith("#"):
        return f"#{names[value[1:]]}"
    if key == "href":
        return _grey(value)
    if key == "clip-path":
        return f"url(#{names[value[5:-1]]})"
    if key == "transform":
        return "" if value.startswith(("rotate(-0 ", "rotate(0 ")) else _rounded(value, 4)
    return _path(_rounded(value, 2)) if key == "d" else _rounded(value, 2)


def _grey(picture: str) -> str:
    """A PNG inside a page with one number a pixel where three say the same."""
    from PIL import Image

    head, _, content = picture.partition(",")
    pixels = Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")
    grey = pixels.convert("L")
    if grey.convert("RGB").tobytes() != pixels.tobytes():
        return re.sub(r"\s", "", picture)
    smaller = io.BytesIO()
    grey.save(smaller, format="png", optimize=True)
    return f"{head},{base64.b64encode(smaller.getvalue()).decode('ascii')}"


def _path(text: str) -> str:
    """A path with h and v for lines along an axis: most of an embedding are rectangles."""
    steps, at = [], ["", ""]
    for letter, *numbers in (one.split() for one in re.findall(r"[A-Za-z][^A-Za-z]*", text)):
        along = letter == "L" and [i for i in (0, 1) if at[1 - i] == numbers[1 - i]]
        if along:
            (i, *_) = along
            steps.append("hv"[i] + _rounded(f"{float(numbers[i]) - float(at[i]):.2f}", 2))
        else:
            steps.append(letter + " ".join(numbers))
        at = numbers[-2:] or ["", ""]
    return "".join(steps)


def _rounded(text: str, digits: int) -> str:
    """The text with shorter numbers."""

    def short(found: re.Match[str]) -> str:
        value = round(float(found[0]), digits)
        return f"{value:.{digits}f}".rstrip("0").rstrip(".") if value else "0"

    return re.sub(r"-?\d+\.\d+(e-?\d+)?", short, text)
