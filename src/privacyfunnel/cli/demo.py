"""pfunnel demo: the paper's example with every method, and a whole table with a guarantee."""

from __future__ import annotations

import os
import signal
import time
import warnings
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConvergenceWarning, DataFileError
from . import options
from .checks import check_figure, check_outputs

if TYPE_CHECKING:
    from ..joint import Joint
    from ..tradeoff import Frontier

_UTILITIES = (0.5, 1.0, 1.5)  # bits
_FIGURE = "information-plane.png"
_TABLE_BITS = 0.3  # as much as 1,000 people can certify


@dataclass(frozen=True)
class _Result:
    """One method's frontier and what it took."""

    method: str
    front: Frontier
    n_runs: int
    n_early: int
    seconds: float


def demo(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FOLDER", help="Where the figure goes.")
    ] = "demo-output",
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Where the random starts come from.")
    ] = 0,
    n_jobs: Annotated[
        int,
        typer.Option(
            "--n-jobs", metavar="NUMBER", help="Methods to run at a time, one core each; -1 for all cores."
        ),
    ] = -1,
    as_json: options.Json = False,
) -> None:
    """Solve the paper's 3 × 3 example with every method, draw the information plane, and protect a table.

    The two solvers of the paper run its whole sweep: 16 values of β, 16 of α, 2 to 4 symbols, 10 starts.
    splitting, which is slow, runs with fewer values of β, starts and steps than by default; the others with
    their defaults. The table is German credit: 1,000 people, whose sex is private.
    """
    path = os.path.join(output, _FIGURE)
    _make_folder(output)
    check_outputs([path], [])

    from ..datasets import paper_joint
    from ..discrete.methods import METHODS
    from .output import print_json

    begun = time.perf_counter()
    results = _run_all([method for method in METHODS if method != "auto"], seed, n_jobs, path)
    table = _certified(seed)
    if as_json:
        print_json(_values(paper_joint(), results, path) | {"certified": table})
    else:
        _print(paper_joint(), results, path, table, time.perf_counter() - begun)


def _run_all(methods: list[str], seed: int, n_jobs: int, path: str) -> list[_Result]:
    """Solve with each method, as many at a time as there are workers, and draw the figure.

    In processes and not in threads: where nothing is compiled yet that takes most of the time, and the
    compiler works in one thread of a process only.
    """
    from multiprocessing import get_context

    from ..parallel import n_workers
    from ..progress import progress_bar

    tasks = [(method, seed) for method in methods]
    results: list[_Result] = []
    with progress_bar("Solving with every method") as report, ExitStack() as stack:
        workers = min(n_workers(n_jobs), len(tasks))
        solved: Iterable[_Result] = map(_run, tasks)
        if workers > 1:
            pool = get_context("spawn").Pool(workers, initializer=_leave_interrupts_to_parent)
            solved = stack.enter_context(pool).imap_unordered(_run, tasks)
        check_figure(path)  # imports matplotlib while the workers begin
        for result in solved:
            results.append(result)
            report(len(results), len(tasks))
    results.sort(key=lambda result: methods.index(result.method))

    from ..plotting import plot_frontier, save_figure

    fronts = {result.method: result.front for result in results}
    save_figure(plot_frontier(fronts, title="The paper's 3 × 3 example"), path)
    return results


def _leave_interrupts_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(task: tuple[str, int]) -> _Result:
    from ..datasets import paper_joint
    from ..discrete.compare import method_settings
    from ..discrete.solve import frontier
    from ..tradeoff import TRIVIAL_METHODS

    method, seed = task
    joint = paper_joint()
    settings = method_settings(method, joint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table has a column for it
        common: dict[str, Any] = {"method": method, "n_jobs": 1, "progress": False}
        frontier(joint, betas=[0.5], n_starts=1, rng=0, **common)  # compiles, which is not timed
        begun = time.perf_counter()
        front = frontier(joint, rng=seed, **common, **settings)
    seconds = time.perf_counter() - begun
    runs = [point for point in front.points if point.method not in TRIVIAL_METHODS]
    early = sum(point.status is not None and not point.status.ok for point in runs)
    return _Result(method, front, len(runs), early, seconds)


def _certified(seed: int) -> dict[str, Any]:
    """What 'pfunnel protect' would say of German credit."""
    from ..certified import CertifiedFunnel
    from ..datasets import load_german_credit

    people = load_german_credit().drop(columns="personal_status")  # it contains the sex
    funnel = CertifiedFunnel(_TABLE_BITS, random_state=seed).fit(people, private="sex", task="credit")
    return {
        "n_records": len(people),
        "n_columns": people.shape[1] - 1,
        "max_leakage": funnel.certificate_.value,
        "verdict": str(funnel.verdict_),
    }


def _values(joint: Joint, results: list[_Result], path: str) -> dict[str, Any]:
    return {
        "command": "demo",
        "entropy_x": joint.entropy_x,
        "mutual_information": joint.mutual_information,
        "utilities": list(_UTILITIES),
        "optimum": _optimum(),
        "lower_bound": _proved(results),
        "methods": [
            {
                "method": result.method,
                "leakage": [result.front.leakage_at(utility) for utility in _UTILITIES],
                "n_runs": result.n_runs,
                "n_stopped_early": result.n_early,
                "seconds": result.seconds,
            }
            for result in results
        ],
        "figure": path,
    }


def _proved(results: list[_Result]) -> list[float] | None:
    """What every mechanism leaks at least at the utilities of the table, where some method proved it."""
    fronts = [result.front for result in results if result.front.support_lines]
    if not fronts:
        return None
    return [max(front.lower_bound_at(utility) or 0.0 for front in fronts) for utility in _UTILITIES]


def _optimum() -> list[float]:
    """The least leakage that any mechanism has at the utilities of the table; known to 1e-5 bit."""
    from ..datasets import known_joints

    known = dict(next(joint.points for joint in known_joints() if joint.name == "paper"))
    return [known[utility] for utility in _UTILITIES]


def _print(
    joint: Joint, results: list[_Result], path: str, certified: dict[str, Any], seconds: float
) -> None:
    from rich.text import Text

    from .output import NumberTable, show

    leaks = [f"leakage\nat {utility:g}" for utility in _UTILITIES]
    table = NumberTable(["method", *leaks, "runs", "stopped\nearly", "seconds"])
    for result in results:
        table.add_row(
            Text(result.method, style="bold cyan"),
            *[f"{result.front.leakage_at(utility):.5f}" for utility in _UTILITIES],
            f"{result.n_runs:,}",
            f"{result.n_early:,}",
            f"{result.seconds:.2f}",
        )
    table.add_section()
    diagonal = [joint.mutual_information * utility / joint.entropy_x for utility in _UTILITIES]
    references = [("known optimum", _optimum()), ("X or nothing", diagonal)]
    if bounds := _proved(results):
        references.insert(0, ("proved: at least", bounds))
    for name, values in references:
        table.add_row(name, *[f"{value:.5f}" for value in values], style="dim")
    show(
        Text("Every method looks for the release that stays useful and tells least about what is private."),
        Text(
            "The example is the paper's: a public X and a private Y of three letters each. X has "
            f"H(X) = {joint.entropy_x:.4f} bit and tells I(X;Y) = {joint.mutual_information:.4f} bit about Y."
        ),
        table,
        Text(
            "Leakage is what the release Z tells about Y, I(Z;Y) in bits, where it keeps 0.5, 1 or 1.5 bits "
            "of X: less is better. 'X or nothing' is what publishing X now and then, and nothing otherwise, "
            "leaks without any method; below 'proved' no release can get.\n\n"
            "Each number is an exact evaluation of mechanisms that were found, with time sharing between "
            "two; a local method does not prove that none is better. The budgets differ: the paper's two "
            "solvers run its whole sweep, splitting less than its default. Seconds are those of one core, "
            "without compilation.\n"
        ),
        f"The information plane, leakage against utility, is drawn in {path} ({seconds:.0f} s in all).\n",
        Text(
            f"A whole table: {certified['n_records']:,} people with {certified['n_columns']} columns besides "
            f"their sex, which is private (German credit), at most {certified['max_leakage']:g} bit, against "
            f"everybody. {certified['verdict']}\n"
        ),
        Text(
            "Next, with a table of your own: pfunnel protect --help, or for one column pfunnel solve --help"
        ),
    )


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot make the folder ({error.strerror or error}); choose another with --output."
        ) from None
