"""pfunnel sweep: many runs, each computed once; what is done, failed and left; and the table."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .checks import check_outputs

if TYPE_CHECKING:
    from ..sweep import Store, Summary

_ACTIONS = ("status", "retry-failed", "export")

Processes = Annotated[
    int,
    typer.Option(
        "--n-jobs",
        metavar="NUMBER",
        help="Local processes; -1 for one a core. The cores are shared out among them.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on the Dask cluster of this scheduler instead, such as tcp://host:8786.",
    ),
]


def sweep(
    what: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|status|retry-failed|export",
            help="A .toml or .json file that lists the runs; or what to do with the runs of the store: show "
            "what is done and left, try the failed ones again, write them as a table.",
        ),
    ],
    store: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Where the results are; made if it is not there."),
    ],
    n_jobs: Processes = -1,
    scheduler: Scheduler = None,
    output: Annotated[
        str | None, options.output("The table of export: .csv, .tsv (also .gz) or .parquet.")
    ] = None,
    timings: Annotated[
        bool,
        typer.Option("--timings", help="With export: a column of seconds, which differs from time to time."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Compute many runs (methods × settings × seeds × data) and keep every result in a folder.

    A run that the folder has is not computed again, so the same command goes on after an interrupt, a crash
    or a full disk, and adds what is new after a change of SPEC. Several sweeps may share a folder. A run that
    fails is noted with its error and does not stop the others; exit code 1 says that some failed.
    """
    if (output is not None or timings) and what != "export":
        raise InvalidInputError("--output and --timings belong to export; leave them out.")
    from ..sweep import Store

    if what == "status":
        _status(Store(store), as_json)
    elif what == "export":
        _export(Store(store), output, timings, as_json)
    else:
        # Functions named in SPEC are looked for where the command was typed, as Python does for scripts.
        sys.path.insert(0, os.getcwd())
        _compute(what, store, n_jobs, scheduler, as_json)


def _compute(what: str, store: str, n_jobs: int, scheduler: str | None, as_json: bool) -> None:
    from ..sweep import Store, read_spec, retry_failed
    from ..sweep import sweep as compute
    from .output import print_json

    if what == "retry-failed":
        summary = retry_failed(Store(store), n_jobs=n_jobs, scheduler=scheduler)
    else:
        if not what.lower().endswith((".toml", ".json")):
            raise InvalidInputError(
                f"{what!r} is neither a .toml or .json file of runs nor one of {', '.join(_ACTIONS)}."
            )
        name = os.path.splitext(os.path.basename(what))[0]
        summary = compute(read_spec(what), store, n_jobs=n_jobs, scheduler=scheduler, name=name)
    failures = Store(store).failures() if summary.n_failed else []
    if as_json:
        print_json(
            {
                "command": "sweep",
                "store": store,
                **asdict(summary),
                "errors": _errors(failures),
            }
        )
    else:
        _print_summary(summary, store, failures)
    if summary.n_failed:
        raise typer.Exit(1)


def _print_summary(summary: Summary, store: str, failures: list[dict[str, Any]]) -> None:
    from .output import plural, print_facts

    facts = [
        ("Computed", f"{summary.n_computed:,}", f"in {summary.seconds:.1f} s"),
        ("Reused", f"{summary.n_reused:,}", "they were in the store"),
    ]
    if summary.n_failed:
        facts.append(("Failed", f"{summary.n_failed:,}", "'pfunnel sweep retry-failed' tries them again"))
        facts += [("", f"{error['count']} ×", error["error"]) for error in _errors(failures)[:5]]
    print_facts(f"{store}: {plural(summary.n_runs, 'run')} asked for.", facts)


def _status(store: Store, as_json: bool) -> None:
    from .output import NumberTable, plural, print_json, show

    done = store.keys()
    failures = store.failures()
    failed = {record["key"] for record in failures}
    plans = [
        {
            "name": name,
            "n_runs": len(keys),
            "n_done": len(done.intersection(keys)),
            "n_failed": len(failed.intersection(keys)),
            "n_left": len(set(keys) - done - failed),
        }
        for name, keys in store.plans()
    ]
    values = {
        "command": "sweep status",
        "store": str(store.path),
        "n_done": len(done),
        "n_failed": len(failures),
        "sweeps": plans,
        "errors": _errors(failures),
    }
    if as_json:
        print_json(values)
        return
    table = NumberTable(["sweep", "runs", "done", "failed", "left"])
    for plan in plans:
        table.add_row(
            str(plan["name"]), *(f"{plan[n]:,}" for n in ("n_runs", "n_done", "n_failed", "n_left"))
        )
    show(
        f"{store.path}: {plural(len(done), 'run')} done, {len(failures):,} failed.",
        table,
        *[f"{error['count']} failed: {error['error']}" for error in _errors(failures)],
    )


def _errors(failures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each error once, the most frequent first."""
    counts: dict[str, int] = {}
    for record in failures:
        counts[record["error"]] = counts.get(record["error"], 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return [{"error": error, "count": count} for error, count in ordered]


def _export(store: Store, output: str | None, timings: bool, as_json: bool) -> None:
    from .output import plural, print_json, show

    if output is None:
        raise InvalidInputError("export needs --output, the .csv or .parquet file to write.")
    check_outputs([output], [])
    n_runs = store.export(output, timings=timings)
    if as_json:
        print_json({"command": "sweep export", "store": str(store.path), "n_runs": n_runs, "written": output})
    else:
        show(f"Saved {output}: {plural(n_runs, 'run')}.")
