"""pfunnel frontier: the whole trade-off, with one method or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .checks import check_figure, check_outputs, raise_if_interrupted
from .measures import MEASURES
from .problem import Problem

if TYPE_CHECKING:
    from ..joint import Joint
    from ..tradeoff import Frontier

_SHARES = tuple(k / 10 for k in range(1, 11))  # of H(X), the utilities that are printed


@options.with_options({**options.SOLVING, **options.READING}, before="delimiter")
@options.with_options(MEASURES, before="method")
def frontier(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    method: options.Methods = ["auto"],  # noqa: B006 (typer copies it)
    n_points: Annotated[
        int,
        typer.Option(metavar="NUMBER", min=1, help="How many points to solve for with each method."),
    ] = 40,
    delimiter: options.Delimiter = None,
    output: Annotated[str | None, options.output("Save the frontier with its mechanisms as JSON.")] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save every point as CSV, without mechanisms.")
    ] = None,
    plot: options.Plot = None,
    as_json: options.Json = False,
    **more: Any,
) -> None:
    """Trace how little must leak for each utility, between releasing nothing and releasing everything.

    Using one of two releases at random gives everything on the line between them, so each curve is the lower
    convex hull of what its method found.
    """
    methods = list(dict.fromkeys(method))
    problem = Problem(data, public, private, methods, {**more, "delimiter": delimiter})
    check_outputs([output, csv, plot], [data])
    if plot is not None:
        check_figure(plot)

    from ..discrete.solve import frontier as trace
    from .output import describe_joint, joint_values, print_json, write_curves

    joint = problem.read(to_be_saved=output is not None)
    front = trace(joint, method=methods, n_points=n_points, **problem.settings)
    raise_if_interrupted(point.status for point in front.points)
    written = write_curves(front, output, csv, plot)
    if as_json:
        print_json({"command": "frontier", **joint_values(data, joint), **_values(front), "written": written})
    else:
        _print(f"{_headline(joint, front)}\n{describe_joint(data, joint)}", front, written)


def _headline(joint: Joint, front: Frontier) -> str:
    """What the curve says in the middle."""
    from .output import bits

    scale, name = front.scale, " × ".join(joint.y_names)
    leakage = front.leakage_at(0.5 * (front.entropy_x or front.max_utility))
    kept = {
        "information": "the public information",
        "distance": "the differences between the public values",
        "task": f"what the public columns tell about {' × '.join(joint.t_names)}",
    }[scale.utility]
    told = {
        "information": f"leaks {bits(leakage)} bit about {name}",
        "success": f"lets {name} be guessed {100 * leakage:.2f} % of the time, instead of "
        f"{100 * front.least_leakage:.2f} %",
        "parity": f"lets a rule select two groups of {name} with shares that differ by "
        f"{100 * leakage:.2f} percentage points",
    }[scale.leakage]
    whole = front.mutual_information
    every = ""
    if whole is not None:
        every = (
            f"; all of it {bits(whole)}"
            if scale.leakage == "information"
            else f"; all of it {100 * whole:.2f} %"
        )
    return f"On these records a release that keeps half of {kept} {told}{every}."


def _rows(front: Frontier) -> list[dict[str, Any]]:
    """Utilities between nothing and everything, the leakage of each method there, and what is proved."""
    curves = {name: front.select(name) for name in front.methods}
    # Where a limit on lift keeps X itself from being released, of the most that is useful.
    whole, top = front.entropy_x or front.max_utility, front.mutual_information
    least = front.least_leakage
    rows = []
    for share in _SHARES:
        at = min(share * whole, front.max_utility)
        rows.append(
            {
                "share_of_entropy_x": share,
                "utility": at,
                "leakage": {name: curve.leakage_at(at) for name, curve in curves.items()},
                "lower_bound": front.lower_bound_at(at),
                "x_or_nothing": None if top is None else least + share * (top - least),
            }
        )
    return rows


def _values(front: Frontier) -> dict[str, Any]:
    return {
        "methods": list(front.methods),
        "scale": front.scale.to_dict(),
        "scope": front.scope,
        "n_points": len(front.points),
        "table": _rows(front),
        "corners": [
            {
                "utility": point.utility,
                "leakage": point.leakage,
                "method": point.method,
                "settings": dict(point.settings),
                "status": None if point.status is None else point.status.name,
            }
            for point in front.envelope()
        ],
        "support_lines": [{"beta": beta, "value": value} for beta, value in front.support_lines],
    }


def _print(title: str, front: Frontier, written: list[str]) -> None:
    from .output import NumberTable, bits, plural, show

    bounded = ["at least\n(proved)"] if front.support_lines else []
    rows = _rows(front)
    shared = ["X or\nnothing"] if rows[0]["x_or_nothing"] is not None else []
    whole = "of H(X)" if front.scale.utility == "information" and shared else "of all"
    table = NumberTable(["utility", whole, *front.methods, *bounded, *shared])
    for row in rows:
        leaks = [*row["leakage"].values(), *([row["lower_bound"]] if bounded else [])]
        leaks += [row["x_or_nothing"]] if shared else []
        table.add_row(f"{row['utility']:.4f}", f"{100 * row['share_of_entropy_x']:.0f} %", *map(bits, leaks))
    show(
        title,
        table,
        f"{_measured(front)}, exact on these records: {plural(len(front.points), 'release')} evaluated, "
        f"{plural(len(front.envelope()), 'corner')} on the common hull.",
        *[f"What is proved holds {front.scope}."] * bool(front.scope and bounded),
        *["The last column is what releasing X sometimes, and nothing otherwise, gives without a solver."]
        * bool(shared),
        *["For the population of these records leakage is uncertain; 'pfunnel solve' gives an interval."]
        * (front.scale.leakage == "information"),
        *[f"Saved {name}" for name in written],
    )


def _measured(front: Frontier) -> str:
    """What the table holds."""
    scale = front.scale
    leakage = {
        "information": "Leakage I(Z;Y) in bits",
        "success": "How often the best guess of the private value is right",
        "parity": "The largest difference between two private values in the share that a rule on z selects",
    }[scale.leakage]
    utility = {
        "information": "that utility I(Z;X)",
        "distance": "that much squared distance taken away",
        "cost": "that much cost taken away",
        "task": "that utility I(Z;T)",
    }[scale.utility]
    lift = "" if scale.max_lift is None else f" where no symbol tells more than {scale.max_lift:g} bit"
    return f"{leakage} at {utility}{lift}"
