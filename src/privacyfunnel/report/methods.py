"""The page of a comparison of methods."""

from __future__ import annotations

from os import PathLike, fspath

from ..comparison import Comparison
from ..errors import InvalidInputError
from ..persistence import write_atomic
from .charts import Chart, inline_svg
from .html import check_installed, render


def compare(comparison: Comparison, path: str | PathLike[str]) -> None:
    """Write a comparison of methods as one page: a sentence, the plane, the table, what each was given.

    Parameters
    ----------
    comparison : Comparison
        What `privacyfunnel.compare` returns.
    path : str or path
        The file, whose name ends in .html; it appears whole or not at all.

    Raises
    ------
    InvalidInputError
        If the name ends in something else.
    """
    check_page(path)
    joint = comparison.joint
    title = "Every method in one plane"
    rows = comparison.rows()
    page = render(
        "methods.html",
        title="Comparison of methods",
        first_lines=[comparison.summary],
        comparison=comparison,
        joint=joint,
        x=" × ".join(joint.x_names),
        y=" × ".join(joint.y_names),
        by_method={name: [row for row in rows if row["method"] == name] for name in comparison.methods},
        bounds=[comparison.fronts["exact"].lower_bound_at(at) or 0.0 for at in comparison.utilities],
        plane=Chart(title, [inline_svg(comparison.plot(), "plane", title, plane_words(comparison))]),
    )
    write_atomic(path, page)


def check_page(path: str | PathLike[str]) -> None:
    """Refuse what cannot be written as a page, before any work."""
    name = fspath(path)
    if not name.lower().endswith((".html", ".htm")):
        raise InvalidInputError(
            f"{name}: a page is written as HTML; give it a name that ends in .html. Figures are drawn by "
            "plot() and saved by plotting.save_figure, tables by to_csv()."
        )
    check_installed()


def plane_words(comparison: Comparison) -> str:
    """The picture, for who does not see it."""
    gaps = ", ".join(f"{name} {comparison.largest_gap(name)[0]:.5f}" for name in comparison.methods)
    return (
        "A curve for each method: how much its releases tell about the private column, in bits, against how "
        "much of the public column they keep. Below the grey area's edge no release can be. Each stays above "
        f"that edge by at most, in bits: {gaps}."
    )
