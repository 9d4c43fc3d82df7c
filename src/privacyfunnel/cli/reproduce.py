"""pfunnel reproduce: the paper's figures and tables, and ours, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .sweep import Processes, Scheduler

if TYPE_CHECKING:
    from ..sweep import Summary

_ALL = "all"


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="known, occupation, mnist, fashion, appendix-f, code-length, pictures, adult, search, "
            "budget, certified, or all of them but those that the output has at a larger scale.",
        ),
    ],
    scale: Annotated[
        str,
        typer.Option(
            metavar="smoke|small|paper",
            help="A minute to see that it runs; all of it in about five and a half hours on two cores; or "
            "the paper's grids, epochs and seeds, which take weeks.",
        ),
    ] = "small",
    output: Annotated[
        str, options.output("For tables, figures and the page about them, README.md.", "FOLDER")
    ] = "results",
    store: Annotated[
        str, typer.Option(metavar="FOLDER", help="Where the runs are kept; see 'pfunnel sweep'.")
    ] = "runs",
    n_jobs: Processes = -1,
    scheduler: Scheduler = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Compute nothing: write about the runs that are there.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compute an experiment of the paper and write its table, figure and what became of the paper's claims.

    It may be interrupted at any time: the same command goes on where it was. The estimated core-hours of the
    whole experiment are printed first.
    """
    from ..experiments import EXPERIMENTS, SCALES, all_but_larger, estimated_hours, experiment
    from ..experiments import reproduce as compute
    from .output import print_json, show

    if scale not in SCALES:
        raise InvalidInputError(f"--scale must be one of {', '.join(SCALES)}; it is {scale!r}.")
    names = all_but_larger(output, scale) if name == _ALL else [experiment(name).name]
    if not as_json and name == _ALL and (left := [one for one in EXPERIMENTS if one not in names]):
        show(f"{output} has these at a larger scale, and they stay: {', '.join(left)}.")
    hours = {one: estimated_hours(one, scale=scale) for one in names}
    place: dict[str, Any] = {"n_jobs": n_jobs, "scheduler": scheduler}
    if not as_json and not finished:
        total = estimated_hours(*names, scale=scale)
        show(f"About {_hours(total)} on one core, less what {store} has already.")
        for one in names:
            needs = EXPERIMENTS[one].needs
            if needs is not None and (told := needs(scale)):
                show(told)
    done: list[dict[str, Any]] = []
    for one in names:
        summary, written = compute(one, scale, output=output, store=store, compute=not finished, **place)
        done.append(_values(one, summary, written, hours[one]))
        if not as_json:
            show(
                f"{one}: {summary.n_computed:,} runs computed, {summary.n_reused:,} reused, "
                f"{summary.seconds:.0f} s; wrote {', '.join(written)}"
            )
    if as_json:
        print_json({"command": "reproduce", "scale": scale, "store": store, "experiments": done})


def _hours(hours: float) -> str:
    return f"{60 * hours:.0f} core-minutes" if hours < 2 else f"{hours:.0f} core-hours"


def _values(name: str, summary: Summary, written: list[str], hours: float) -> dict[str, Any]:
    return {
        "name": name,
        "n_runs": summary.n_runs,
        "n_reused": summary.n_reused,
        "n_computed": summary.n_computed,
        "seconds": summary.seconds,
        "estimated_core_hours": hours,
        "written": written,
    }
