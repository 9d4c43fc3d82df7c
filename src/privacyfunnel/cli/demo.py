"""pfunnel demo: a whole table with a guarantee, and the paper's example with the proved optimum."""

from __future__ import annotations

import os
import shlex
import signal
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConvergenceWarning, DataFileError
from ..measured import rounded_up
from . import options
from .checks import check_figure, check_outputs

if TYPE_CHECKING:
    from ..joint import Joint
    from ..tradeoff import Frontier
    from .demo_table import Protected

_UTILITIES = (0.5, 1.0, 1.5)  # bits
_FIGURE = "information-plane.png"
_N_POINTS = 24  # of the proved trade-off, where not every method is asked for


@dataclass(frozen=True)
class _Result:
    """One method's frontier and what it took."""

    method: str
    front: Frontier
    n_runs: int
    n_early: int
    seconds: float


def demo(
    output: Annotated[str, options.output("Where tables and figures go.", "FOLDER")] = "demo-output",
    seed: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Where the random starts come from.")
    ] = 0,
    n_jobs: Annotated[
        int,
        typer.Option(
            "--n-jobs", metavar="NUMBER", help="Methods to run at a time, one core each; -1 for all cores."
        ),
    ] = -1,
    every: Annotated[
        bool,
        typer.Option("--every-method", help="Solve the paper's example with every method: a minute of CPU."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Protect a whole table with a guarantee, and solve the paper's 3 × 3 example with a proof.

    The table is Adult: 32,561 people, whose sex is private. It is written as it was and as it is released,
    with a picture. Of the paper's example the proved trade-off is drawn. With --every-method the two solvers
    of the paper run its whole sweep: 16 values of β, 16 of α, 2 to 4 symbols, 10 starts; splitting, which is
    slow, runs with fewer values of β, starts and steps than by default; the others with their defaults.
    """
    from .demo_table import AFTER, BEFORE, FIGURE, protect_adult

    path = os.path.join(output, _FIGURE)
    _make_folder(output)
    check_outputs([os.path.join(output, name) for name in (_FIGURE, FIGURE, BEFORE, AFTER)], [])

    from ..datasets import paper_joint
    from ..discrete.methods import METHODS
    from .output import print_json

    begun = time.perf_counter()
    # Those that prove, and those that need no start, take no time.
    methods = [
        name
        for name, row in METHODS.items()
        if name != "auto" and (every or row.proof == "sought" or not row.starts)
    ]
    table: list[Protected] = []
    results = _run_all(methods, seed, n_jobs, path, every, lambda: table.append(protect_adult(seed, output)))
    if as_json:
        print_json(_values(paper_joint(), results, path) | {"certified": table[0].values()})
        return
    _print_table(table[0], output, seed)
    _print(paper_joint(), results, path, every, time.perf_counter() - begun)


def _run_all(
    methods: list[str], seed: int, n_jobs: int, path: str, every: bool, meanwhile: Callable[[], None]
) -> list[_Result]:
    """Solve with each method, as many at a time as there are workers, and draw the figure.

    `meanwhile` is done here while they begin.

    In processes and not in threads: where nothing is compiled yet that takes most of the time, and the
    compiler works in one thread of a process only.
    """
    from multiprocessing import get_context

    from ..parallel import n_workers
    from ..progress import progress_bar

    tasks = [(method, seed, every) for method in methods]
    results: list[_Result] = []
    with progress_bar("Protecting and solving") as report, ExitStack() as stack:
        workers = min(n_workers(n_jobs), len(tasks))
        solved: Iterable[_Result] = map(_run, tasks)
        if workers > 1:
            # Two short tasks share a worker: this process is busy, too.
            pool = get_context("spawn").Pool(workers if every else 1, initializer=_leave_interrupts_to_parent)
            solved = stack.enter_context(pool).imap_unordered(_run, tasks)
        check_figure(path)
        meanwhile()
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


def _run(task: tuple[str, int, bool]) -> _Result:
    from ..datasets import paper_joint
    from ..discrete.compare import method_settings
    from ..discrete.methods import METHODS
    from ..discrete.solve import frontier
    from ..tradeoff import TRIVIAL_METHODS

    method, seed, every = task
    joint = paper_joint()
    if every:
        settings = method_settings(method, joint)
    else:
        settings = {"n_points": _N_POINTS} if METHODS[method].proof else {}
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


def _print_table(table: Protected, folder: str, seed: int) -> None:
    """What happened to the table, for people who have never heard of leakage."""
    from rich.text import Text

    from .demo_table import AFTER, BEFORE, BITS, CELLS, FIGURE, PRIVATE, TASK
    from .output import own_command, show

    pfunnel, csv = own_command(), shlex.quote(os.path.join(folder, BEFORE))
    name, (before, after) = next(iter(table.told.items()))
    show(
        Text(
            f"A table protected. {table.n_records:,} people of a census (Adult), {table.n_columns} columns "
            f"besides their {PRIVATE}, which is private and which other columns betray.\n"
        ),
        Text("Before:", style="bold"),
        _rows(table.rows_before),
        Text("\nReleased, with the same columns and types; every row is made anew:", style="bold"),
        _rows(table.rows_after),
        Text("Rows are in random order: those before and these are other people's; none goes with another."),
        Text(
            f"\nWhat an attacker gains: whoever says the commonest {PRIVATE} of everybody is right for "
            f"about {100 * table.chance:.1f} % of the people that made the rule (inspect counts everybody). "
            "With a new person's released row nobody, whatever "
            "he knows and however he computes, is right more often than "
            f"{rounded_up(100 * table.at_most, 1):.1f} % of the time. {name} alone told "
            f"about {before:.3f} bit of {PRIVATE}, and tells about {after:.3f} now.\n"
        ),
        Text(
            f"Certificate: at most {BITS:g} bit about {PRIVATE}, for every adversary, with 95 % confidence, "
            f"from {table.n_certifying:,} people who had no part in making the rule. {_kept(table.verdict)}\n"
        ),
        f"Tables: {os.path.join(folder, BEFORE)} and {os.path.join(folder, AFTER)}\n"
        f"Picture: {os.path.join(folder, FIGURE)}\n",
        Text(_why_more(table)) if _told_more(table) else "",
        Text(
            "The same in the shell; with a file of your own, leave --n-cells and --seed out:\n", style="bold"
        ),
        Text(f"--n-cells {CELLS} is about what protect finds by itself here; it spares the search.\n"),
        f"  {pfunnel} inspect {csv} --private {PRIVATE}\n"
        f"  {pfunnel} protect {csv} --private {PRIVATE} --task {TASK} \\\n"
        f"    --max-leakage {BITS:g} --n-cells {CELLS} --seed {seed} --output safe.csv --rule rule/\n"
        f"  {pfunnel} release TOMORROW.csv --rule rule/ --output more.csv\n"
        "TOMORROW.csv stands for tomorrow's records: new people, with the same columns.\n",
    )


def _told_more(table: Protected) -> list[str]:
    """Columns that tell more by themselves than they did."""
    return [name for name, (before, after) in table.told.items() if after > before]


def _why_more(table: Protected) -> str:
    names = _told_more(table)
    return (
        f"{', '.join(names)}: the column alone tells more after than before. Each column of a row is drawn "
        "by itself from what is usual for the row's kind of people, and a kind goes with the private column "
        "a little, so that each column carries a little of it. All columns of a row together tell no more "
        "than its kind does, and that is what is limited.\n"
    )


def _kept(verdict: str) -> str:
    """The part of the verdict on what is kept, as a sentence."""
    return f"The release {verdict.partition('; it ')[2]}"


def _rows(rows: list[list[str]]) -> Any:
    from rich.table import Table

    from .demo_table import SHOWN

    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    for name in SHOWN:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _print(joint: Joint, results: list[_Result], path: str, every: bool, seconds: float) -> None:
    from rich.text import Text

    from .output import NumberTable, own_command, show

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
    budgets = (
        " The budgets differ: the paper's two solvers run its whole sweep, splitting less than its default."
        if every
        else f" All methods: {own_command()} demo --every-method."
    )
    show(
        Text(
            "For researchers: the most useful release for what it tells, with a proof. The example is the "
            "paper's: a public X and a private Y of three letters each. X has "
            f"H(X) = {joint.entropy_x:.4f} bit and tells I(X;Y) = {joint.mutual_information:.4f} bit about Y."
        ),
        table,
        Text(
            "Leakage is what the release Z tells about Y, I(Z;Y) in bits, where it keeps 0.5, 1 or 1.5 bits "
            "of X: less is better. Below 'proved' no release can get. 'X or nothing' is what publishing X "
            "now and then, and nothing otherwise, leaks without any method. Each number is an exact "
            "evaluation of mechanisms that were found, with time sharing between two; a local method does "
            f"not prove that none is better.{budgets} Seconds are those of one core, without compilation.\n"
        ),
        f"Picture: {path} ({seconds:.0f} s in all; the first time most of it compiles the solvers)",
    )


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot make the folder ({error.strerror or error}); choose another with --output."
        ) from None
