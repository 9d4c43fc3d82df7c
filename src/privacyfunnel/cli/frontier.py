"""pfunnel frontier: the whole trade-off, with one method or several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options

if TYPE_CHECKING:
    from ..frontier import Frontier

_SHARES = tuple(k / 10 for k in range(1, 11))  # of H(X), the utilities that are printed


def frontier(
    data: options.Data,
    public: options.Public,
    private: options.Private,
    method: options.Methods = ["auto"],  # noqa: B006 (typer copies it)
    n_points: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="How many values of β to try with each method.",
        ),
    ] = 40,
    alpha: options.Alpha = None,
    penalty: options.Penalty = None,
    n_z: options.Symbols = None,
    n_starts: options.Starts = 20,
    tol: options.Tol = 1e-6,
    max_steps: options.MaxSteps = 10_000,
    n_jobs: options.Jobs = -1,
    seed: options.Seed = None,
    missing: options.Missing = "error",
    max_letters: options.MaxLetters = options.LETTERS,
    delimiter: options.Delimiter = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the frontier with its mechanisms as JSON."),
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="FILE", help="Save every point as CSV, without mechanisms.")
    ] = None,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the information plane: .png, .pdf or .svg.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Trace how little must leak for each utility, between releasing nothing and releasing everything.

    Using one of two releases at random gives everything on the line between them, so each curve is the lower
    convex hull of what its method found.
    """
    methods = list(dict.fromkeys(method))
    options.check_settings(methods, alpha, penalty)
    options.check_outputs([output, csv, plot], [data])
    if plot is not None:
        options.check_figure(plot)

    from ..discrete.solve import frontier as trace
    from ..files import read_joint
    from ..persistence import encode_labels
    from ..plotting import save_figure
    from .output import describe_joint, joint_values, print_json

    joint = read_joint(
        data, public=public, private=private, missing=missing, max_letters=max_letters, delimiter=delimiter
    )
    if output is not None:
        encode_labels(joint.x_labels, "x_labels")  # what cannot be saved is better known before the work
    fronts = [
        trace(
            joint,
            method=name,
            n_points=n_points,
            alpha=alpha if options.takes_alpha(name) else None,
            penalty=penalty if options.takes_penalty(name) else None,
            n_z=n_z,
            n_starts=n_starts,
            tol=tol,
            max_steps=max_steps,
            n_jobs=n_jobs,
            rng=seed,
        )
        for name in methods
    ]
    front = fronts[0].merge(*fronts[1:])
    written = [name for name in (output, csv, plot) if name is not None]
    if output is not None:
        front.save(output)
    if csv is not None:
        front.to_csv(csv)
    if plot is not None:
        save_figure(front.plot(), plot)
    if as_json:
        print_json({"command": "frontier", **joint_values(data, joint), **_values(front), "written": written})
    else:
        _print(describe_joint(data, joint), front, written)


def _values(front: Frontier) -> dict[str, Any]:
    return {
        "methods": list(front.methods),
        "n_points": len(front.points),
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
        "support_lines": [list(line) for line in front.support_lines],
    }


def _print(title: str, front: Frontier, written: list[str]) -> None:
    from .output import new_table, plural, show

    bounded = bool(front.support_lines)
    table = new_table(
        ["utility", "of H(X)", *front.methods, *["at least (proved)"] * bounded, "X or nothing"]
    )
    curves = [front.select(name) for name in front.methods]
    whole, top = front.entropy_x or 0.0, front.mutual_information or 0.0
    for share in _SHARES:
        at = min(share * whole, front.max_utility)
        bound = [f"{front.lower_bound_at(at):.5f}"] if bounded else []
        leaks = [f"{curve.leakage_at(at):.5f}" for curve in curves]
        table.add_row(f"{at:.4f}", f"{100 * share:.0f} %", *leaks, *bound, f"{share * top:.5f}")
    show(
        title,
        table,
        f"Leakage I(Z;Y) in bits at that utility I(Z;X); {plural(len(front.points), 'release')} evaluated "
        f"exactly on these records, {plural(len(front.envelope()), 'corner')} on the common hull.",
        "The last column is what releasing X sometimes, and nothing otherwise, gives without a solver.",
        *[f"Saved {name}" for name in written],
    )
