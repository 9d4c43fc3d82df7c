"""pfunnel compare: every method on the columns of a table, with the proved optimum beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .checks import check_figure, check_outputs
from .measures import MEASURES
from .problem import Problem

if TYPE_CHECKING:
    from ..comparison import Comparison
    from ..joint import Joint

_SETTINGS = {name: options.SOLVING[name] for name in ("n_jobs", "seed")}


@options.with_options({**_SETTINGS, **options.READING}, before="delimiter")
def compare(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD",
            show_default="all",
            callback=options.check_methods,
            help="A method to compare. Repeat for several; exact, which proves the optimum, is always there.",
        ),
    ] = None,
    n_points: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=1, help="How many points to solve for with each method."),
    ] = 40,
    n_starts: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            show_default="the paper's solvers 10, splitting 16, the others 20",
            help="Random starts for each setting of every method.",
        ),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            callback=options.numbers,
            help="How long exact may take for a point; what is not proved by then counts as gap.",
        ),
    ] = 10.0,
    delimiter: options.Delimiter = None,
    output: Annotated[str | None, options.output("Write a page with figure and table: .html.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Save the table as CSV.")] = None,
    plot: options.Plot = None,
    as_json: options.Json = False,
    **more: Any,
) -> None:
    """Compare methods: what each reaches, how far that is from the proved optimum, and its CPU time.

    The paper's two solvers, dca-ridge and dca-sparse, run the paper's sweep: 16 values of β times 16 of α
    from 0.1 to 10, three numbers of symbols, 10 starts each. splitting, which is slow, runs with fewer values
    of β, starts and steps than by default, the others with their defaults.
    """
    methods = list(dict.fromkeys(method or ()))
    if "auto" in methods:
        raise InvalidInputError("--method auto is exact or dca, whichever suits; name these instead.")
    usual = {name: row.value for name, row in {**options.SOLVING, **MEASURES}.items()}
    problem = Problem(data, public, private, methods, {**usual, **more, "delimiter": delimiter})
    check_outputs([output, csv, plot], [data])
    if plot is not None:
        check_figure(plot)
    if output is not None:
        _check_page(output)

    from ..discrete.compare import compare as run
    from .output import describe_joint, joint_values, print_json, write_curves

    joint = problem.read(to_be_saved=False)
    _refuse_keys(joint)
    found = run(
        joint,
        methods=methods or None,
        n_points=n_points,
        n_starts=n_starts,
        time_limit=time_limit,
        rng=more["seed"],
        n_jobs=more["n_jobs"],
    )
    written = write_curves(found, output, csv, plot)
    if as_json:
        values = {**joint_values(data, joint), **found.to_dict()}
        print_json({"command": "compare", **values, "written": written})
    else:
        _print(f"{found.summary}\n{describe_joint(data, joint)}", found, written)


def _refuse_keys(joint: Joint) -> None:
    """Refuse public columns by which nearly every record is another: all would take long, and say nothing."""
    from ..alphabet import shown_name
    from ..attributes import LEAST_RECORDS
    from ..certified.categories import KEY_SHARE

    n = joint.n_samples or 0
    n_x = int((joint.p_x > 0).sum())
    if n >= LEAST_RECORDS and n_x >= KEY_SHARE * n:
        named = " × ".join(map(shown_name, joint.x_names))
        raise InvalidInputError(
            f"{named} has {n_x:,} different values in {n:,} records, as a key or a name has, and nothing can "
            "be learned from them; name public columns whose values people share, or group them.",
            names=("public",),
        )


def _check_page(path: str) -> None:
    from ..report.html import check_installed

    if not path.lower().endswith((".html", ".htm")):
        raise InvalidInputError(
            f"{path}: a page is written as HTML; give --output a name that ends in .html, "
            "--csv for the table and --plot for the figure."
        )
    check_installed()


def _print(title: str, found: Comparison, written: list[str]) -> None:
    from rich.text import Text

    from .output import NumberTable, bits, show

    leaks = [f"leakage\nat {utility:.4g}" for utility in found.utilities]
    table = NumberTable(["method", *leaks, "largest\ngap", "runs", "stopped\nearly", "CPU s"])
    rows = found.rows()
    for name in found.methods:
        own = [row for row in rows if row["method"] == name]
        table.add_row(
            Text(name, style="bold cyan"),
            *[bits(row["leakage"]) for row in own],
            bits(own[0]["largest_gap"]),
            f"{own[0]['runs']:,}",
            f"{own[0]['stopped_early']:,}",
            f"{own[0]['cpu_seconds']:.2f}",
        )
    table.add_section()
    exact = found.fronts["exact"]
    bounds = [bits(exact.lower_bound_at(utility) or 0.0) for utility in found.utilities]
    table.add_row("proved: at least", *bounds, style="dim")
    show(
        title,
        table,
        "Leakage I(Z;Y) in bits where so many bits I(Z;X) are kept, exact on these records, with time "
        "sharing between two releases; a gap is what a method has above what is proved for every release, "
        "where that is most. CPU seconds of all threads, without compilation.",
        *[f"{name}: {words}." for name, words in found.settings.items()],
        *[f"Saved {name}" for name in written],
    )
