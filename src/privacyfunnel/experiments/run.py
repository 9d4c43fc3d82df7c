"""reproduce(): compute what an experiment needs, then write its tables, figures and the results page."""

from __future__ import annotations

import os
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from ..errors import DataFileError, InvalidInputError
from ..files import write_table
from ..persistence import Path_, load_json, save_json
from ..sweep import Store, Summary, sweep
from ..sweep.execute import prepare
from . import adult, appendix, certified, images, known, occupation, ours
from .base import SCALES, Experiment, Findings
from .page import KIND, VERSION, write_own_page, write_page

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        known.EXPERIMENT,
        occupation.EXPERIMENT,
        *images.EXPERIMENTS,
        *appendix.EXPERIMENTS,
        adult.EXPERIMENT,
        *ours.EXPERIMENTS,
        certified.EXPERIMENT,
    )
}


def experiment(name: str) -> Experiment:
    """The experiment of that name."""
    if name not in EXPERIMENTS:
        close = get_close_matches(name, EXPERIMENTS, n=1)
        remedy = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(EXPERIMENTS)}, and all."
        raise InvalidInputError(f"No experiment is called {name!r}; {remedy}")
    return EXPERIMENTS[name]


def all_but_larger(output: Path_, scale: str) -> list[str]:
    """The experiments, without those that a folder has at a larger scale: their findings are worth more."""
    larger = SCALES[SCALES.index(_scale(scale)) + 1 :]
    found = {name: Path(output) / f"{name}.json" for name in EXPERIMENTS}
    return [
        name
        for name, path in found.items()
        if not (path.exists() and load_json(path)[2].get("scale") in larger)
    ]


def estimated_hours(*names: str, scale: str) -> float:
    """About how many hours of one core all runs of experiments take, what they share once.

    Those in a store take none.
    """
    chosen = [experiment(name) for name in names]
    each = {run.canonical(): one.seconds(run) for one in chosen for run in one.runs(_scale(scale))}
    return sum(each.values()) / 3600


def reproduce(
    name: str,
    scale: str = "small",
    *,
    output: Path_,
    store: Path_,
    n_jobs: int = -1,
    scheduler: str | None = None,
    progress: bool | None = None,
    compute: bool = True,
) -> tuple[Summary, list[str]]:
    """Run an experiment, or go on with it, and write what it found.

    Finished runs of learned experiments are kept in the folder `runs` of the output, too, and taken from
    there: they took hours, and whoever has the page need not compute them again.

    Parameters
    ----------
    name : str
        One of EXPERIMENTS.
    scale : "smoke", "small" or "paper"
    output : folder
        For tables (CSV), figures (PNG), the findings (JSON) and the page README.md about all experiments
        whose findings are there. Made if need be.
    store, n_jobs, scheduler, progress
        As for `sweep`: a run that is in the store is not computed again.
    compute : bool
        Whether to compute what is missing; otherwise the page is about the runs that are there, and says how
        many are not.

    Returns
    -------
    (Summary, list of str)
        What the sweep did, and the names of the files that were written.

    Raises
    ------
    InvalidInputError
        If there is no such experiment, or one of its runs failed: a page without it would not be honest.
    """
    chosen = experiment(name)
    runs = chosen.runs(_scale(scale))
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"{folder}: cannot make the folder ({error.strerror or error}); choose another with --output."
        ) from None
    if not os.access(folder, os.W_OK):
        raise DataFileError(f"{folder}: the folder may not be written; choose another with --output.")
    opened, beside = Store(store, create=True), folder / "runs"
    keys = {prepare(run).key for run in runs}
    if chosen.kept and (beside / "sweep.json").exists():
        opened.take(Store(beside), keys)
    if compute:
        if chosen.fetch is not None and not all(opened.has(key) for key in keys):
            chosen.fetch(scale)
        summary = sweep(
            runs, store, n_jobs=n_jobs, scheduler=scheduler, name=f"{name} {scale}", progress=progress
        )
    else:
        there = sum(opened.has(key) for key in keys)
        summary = Summary(len(keys), there, 0, 0, 0.0)
        if not there:
            raise InvalidInputError(f"{name}: none of its {len(keys)} runs at scale {scale} is there.")
    if summary.n_failed:
        failed = [record for record in opened.failures() if record["key"] in keys]
        raise InvalidInputError(
            f"{name}: {len(failed)} of {summary.n_runs} runs failed, the first with: {failed[0]['error']} "
            f"Try them again with: pfunnel sweep retry-failed --store {os.fspath(store)}"
        )
    if chosen.kept and scale != "smoke":
        Store(beside, create=True).take(opened, keys)
    records = opened.records(keys)
    found = chosen.find(records, scale)
    found = replace(found, claims=[chosen.decided(claim, scale, records) for claim in found.claims])
    return summary, _write(folder, chosen, scale, found, len(keys), len(records))


def _scale(scale: str) -> str:
    if scale not in SCALES:
        raise InvalidInputError(
            f"scale must be one of {', '.join(SCALES)}; it is {scale!r}.", names=("scale",)
        )
    return scale


def _write(
    folder: Path, chosen: Experiment, scale: str, found: Findings, n_runs: int, n_there: int
) -> list[str]:
    from ..plotting import save_figure

    written = []
    for name, columns in found.tables.items():
        path = folder / f"{name}.csv"
        write_table(path, columns)
        written.append(str(path))
    for name, figure in found.figures.items():
        path = folder / f"{name}.png"
        save_figure(figure, path, dpi=120)
        written.append(str(path))
    findings = {
        "name": chosen.name,
        "title": chosen.title,
        "scale": scale,
        "n_runs": n_runs,
        "n_there": n_there,
        # A minute's worth of runs shows that everything works, and decides nothing.
        "claims": [
            {
                **{part: getattr(claim, part) for part in ("source", "says", "measured")},
                "holds": None if scale == "smoke" else claim.holds,
            }
            for claim in found.claims
        ],
        "tables": list(found.tables),
        "figures": list(found.figures),
        "notes": list(found.notes),
        "own_page": chosen.own_page,
    }
    path = folder / f"{chosen.name}.json"
    save_json(path, KIND, VERSION, findings)
    written.append(str(path))
    if chosen.own_page:
        written.append(str(write_own_page(folder, chosen.name)))
    written.append(str(write_page(folder, list(EXPERIMENTS))))
    return written
