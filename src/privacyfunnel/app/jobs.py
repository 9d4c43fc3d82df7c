"""What the worker processes do. Each takes plain settings and gives back what its screen shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import uniform
from ..auditing.inputs import MOST_SYMBOLS
from ..errors import InvalidInputError
from ..progress import status_line
from .choosing import (
    Choice,
    certified_corners,
    kinds_in_words,
    make_stops,
    right_on_others,
)

#: Share of the records that a release is made from; the others certify it.
SOLVING_SHARE = 2 / 3
CONFIDENCE = 0.95
#: Points of the frontier of columns, and seconds for each.
N_POINTS, SECONDS = 12, 10.0
#: Letters of public columns, at most: beyond, sliding along mixtures takes too much memory.
MOST_LETTERS = 2_000
#: Records that are attacked in a check, at most.
MOST_CHECKED = 20_000
#: How often one record is released in a check, and entries of the table that this may take.
REPEATS, MOST_ENTRIES = (1, 2, 5), 2_000_000


@dataclass(frozen=True)
class Asked:
    """A table and what its columns are."""

    path: str
    private: tuple[str, ...]
    public: tuple[str, ...]
    task: str | None
    keep: tuple[str, ...]
    way: str
    measure: str
    seed: int


@dataclass(frozen=True, eq=False)
class Checked:
    """What a check found: the report of the audit, and bits by number of releases."""

    report: Any
    repeated: tuple[tuple[int, Any], ...]


def look(path: str, private: Sequence[str]) -> Any:
    """The inspection of a table."""
    from ..files import open_table
    from ..inspection import inspect_tallies
    from ..inspection.tallies import file_tallies
    from ..progress import progress_bar

    table = open_table(path)
    table.require(private)
    with progress_bar("Counting") as report:
        return inspect_tallies(file_tallies(table, report), list(private))


def first_look(path: str, private: Sequence[str], most: int) -> Any:
    """The inspection of some records of a large file, while all of them are counted."""
    from ..files import ParquetFile, open_table
    from ..inspection import inspect_tallies
    from ..inspection.tallies import Tallies

    table = open_table(path)
    table.require(private)
    assert isinstance(table, ParquetFile)
    with status_line("A first look at some records"):
        return inspect_tallies(Tallies.of_frame(table.some(most), path), list(private))


def choose(asked: Asked) -> Choice:
    """The frontier, certified, with the stops of the slider."""
    return _choose_columns(asked) if asked.way == "columns" else _choose_table(asked)


def _choose_columns(asked: Asked) -> Choice:
    from ..certified.problem import CellProblem
    from ..discrete.solve import frontier
    from ..files import read_joint
    from ..report.notebook import symbols_of
    from ..report.plane import proved_points
    from ..uncertainty import split_joint

    if asked.task is not None:
        raise InvalidInputError("A task goes with the whole table; choose that, or give it another role.")
    public, private = asked.public, asked.private
    try:
        joint = read_joint(
            asked.path, public=public, private=private, missing="letter", max_letters=MOST_LETTERS
        )
    except InvalidInputError as error:
        if "max_letters" not in error.names:
            raise
        raise InvalidInputError(
            f"{' × '.join(public)} or {' × '.join(private)} has more than {MOST_LETTERS:,} different values, "
            "which are the most for the slider; choose the whole table, or fewer columns."
        ) from None
    if joint.n_y < 2:
        raise InvalidInputError("All records have the same private value; there is nothing to protect.")
    solving, held_out = split_joint(joint, SOLVING_SHARE, asked.seed)
    front = frontier(
        solving,
        leakage=asked.measure,
        n_points=N_POINTS,
        tol=1e-4,
        time_limit=SECONDS,
        rng=asked.seed,
        n_jobs=1,
    )
    counts = np.rint(held_out.p_xy * (held_out.n_samples or 0))
    problem = CellProblem(solving, "information", asked.measure, counts, CONFIDENCE)
    certified = certified_corners(front, problem)
    with status_line("Certifying"):
        stops = make_stops(problem, certified, symbols_of, lambda table: {})
    return _choice(asked, problem, certified, stops, proved=tuple(proved_points(front)), joint=joint)


def _choose_table(asked: Asked) -> Choice:
    from ..certified import CertifiedFunnel

    frame = read_people(asked).drop_columns(list(asked.keep))  # what is handed out makes no symbol
    with status_line("Sorting records into kinds") as show:
        show("this has no known length")
        funnel = CertifiedFunnel(
            None, leakage=asked.measure, confidence=CONFIDENCE, random_state=asked.seed
        ).fit(frame, private=list(asked.private), task=asked.task)
        show("certifying")
        front, problem, made = funnel.frontier_, funnel.made_.problem, funnel.made_
        names = funnel.rule_.reader.names()

        def columns(table: Any) -> dict[str, float]:
            return funnel.held_out_.variance_by_column(table, made.symbol_points(table), names)

        stops = make_stops(problem, front, kinds_in_words(funnel), columns)
    return _choice(asked, problem, front, stops, notes=tuple(funnel.notes_), funnel=funnel)


def _choice(asked: Asked, problem: Any, front: Any, stops: Any, **more: Any) -> Choice:
    nothing, everything = np.ones((problem.joint.n_x, 1)), np.eye(problem.joint.n_x)
    return Choice(
        asked.way,
        " × ".join(asked.private),
        asked.measure,
        front,
        stops,
        right_on_others(problem, nothing),
        right_on_others(problem, everything),
        problem.n_held_out,
        CONFIDENCE,
        **more,
    )


def read_people(asked: Asked) -> Any:
    """The records with the columns that a funnel reads."""
    from ..files import open_table
    from ..files.typed import read_typed

    table = open_table(asked.path)
    wanted = [*asked.public, *asked.private, *([asked.task] if asked.task else [])]
    table.require([*wanted, *asked.keep])
    frame = read_typed(table)
    if not len(frame):
        raise InvalidInputError("There are no records; pass a table with at least one row.")
    return frame.select([name for name in table.columns if name in {*wanted, *asked.keep}])


def chosen_funnel(choice: Choice, at: int) -> Any:
    """The funnel that releases by a stop of the slider: the most useful with its bound."""
    return choice.funnel.choose(max_leakage=choice.stops[at].at_most)


def chosen_mechanism(choice: Choice, at: int) -> Any:
    """The mechanism of a stop; its symbols are numbered."""
    found = choice.point(at).mechanism
    return found.relabel(tuple(range(found.n_z)))


def check(asked: Asked, choice: Choice, at: int) -> Checked:
    """The audit of a stop, and what several releases tell."""
    from ..auditing import audit

    given = _to_be_checked(asked, choice, at)
    report = audit(**given, effort="quick", n_jobs=1, n_repeats=1, name="release")
    with status_line("Releasing more than once"):
        return Checked(report, repeated(choice, at))


def repeated(choice: Choice, at: int) -> tuple[tuple[int, Any], ...]:
    """Bits that so many releases of one record tell, drawn without a key; of kinds an estimate."""
    from ..information import repeated_leakage

    joint = choice.funnel.made_.problem.joint if choice.joint is None else choice.joint
    mechanism = choice.point(at).mechanism
    found = [(k, repeated_leakage(mechanism, joint, k, max_entries=MOST_ENTRIES)) for k in REPEATS]
    if choice.way == "columns":
        return tuple(found)
    return tuple((k, replace(one, kind="estimate") if one.kind == "exact" else one) for k, one in found)


def _to_be_checked(asked: Asked, choice: Choice, at: int) -> dict[str, Any]:
    if asked.way == "table":
        frame = _some(read_people(asked))
        private = {name: frame[name].to_pylist() for name in asked.private}
        keep = {name: frame[name].to_pylist() for name in asked.keep}
        rule = chosen_funnel(choice, at).rule_
        points = rule.reader.points(frame)
        found: dict[str, Any] = {"mechanism": Symbols(rule), "X": points, "private": private}
        if asked.task is not None:
            found["task"] = {asked.task: frame[asked.task].to_pylist()}
    else:
        from ..files import open_table

        columns = [*asked.public, *asked.private, *asked.keep]
        import pyarrow as pa

        table = open_table(asked.path)
        frame = _some(pa.Table.from_batches(list(table.batches(columns, letters=columns))))
        lists = {name: frame[name].to_pylist() for name in columns}
        rows = list(zip(*(lists[name] for name in asked.public), strict=True))
        letters = rows if len(asked.public) > 1 else [row[0] for row in rows]
        found = {
            "mechanism": chosen_mechanism(choice, at),
            "X": letters,
            "private": {name: ["missing" if v is None else v for v in lists[name]] for name in asked.private},
        }
        keep = {name: lists[name] for name in asked.keep}
    return {**found, **({"keep": keep} if keep else {})}


class Symbols:
    """A rule as adversaries attack it: the symbol of a record, which tells all that its released row does."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def release(self, X: Any, rng: Any = None) -> Any:
        """The symbols of records that are numbers already, as texts: their order means nothing. Where they
        are too many to be counted, the mean record of each."""
        symbols = self.rule.mechanism.sparse.draw(self.rule.cells(X), uniform(len(X), rng))
        return symbols.astype(str) if self.rule.n_symbols <= MOST_SYMBOLS else self.rule.points[symbols]

    def __repr__(self) -> str:
        return f"CertifiedRule({self.rule.cells.n_cells} kinds of records → {self.rule.n_symbols} symbols)"


def _some(frame: Any) -> Any:
    if len(frame) <= MOST_CHECKED:
        return frame
    return frame.take(np.sort(np.random.default_rng(0).permutation(len(frame))[:MOST_CHECKED]))
