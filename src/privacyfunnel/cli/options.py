"""The options that several commands share, with their help."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar

import typer

from ..counting import MAX_LETTERS
from ..discrete.methods import METHODS, methods_with, no_method
from ..errors import shortened

_Command = TypeVar("_Command", bound=Callable[..., None])


def numbers(value: float | Sequence[float] | None) -> float | Sequence[float] | None:
    for number in [] if value is None else [value] if isinstance(value, (int, float)) else value:
        if not (math.isfinite(number) and number >= 0):
            raise typer.BadParameter(f"it must be a finite number, 0 or more, and is {number:g}")
    return value


def check_methods(value: str | Sequence[str] | None) -> str | Sequence[str] | None:
    for name in [value] if isinstance(value, str) else value or ():
        if name not in METHODS:
            raise typer.BadParameter(no_method(name))
    return value


def output(help: str, metavar: str = "FILE") -> Any:
    """-o of every command: where what it makes goes."""
    return typer.Option("--output", "-o", metavar=metavar, help=help)


def choice(*allowed: str) -> Callable[[str | None], str | None]:
    """Refuses what is none of the words; an option that is not given has none."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"{shortened(value)} is unknown; choose one of {', '.join(allowed)}")
        return value

    return check


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: a .csv, .tsv (both also .gz), .parquet or .arrow file, a folder of .parquet files, "
        "or a pattern of their names. It is read in batches and may be larger than memory.",
    ),
]
Public = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN",
        help="The column to be released in disguise (X). Repeat for several: a letter is a combination.",
    ),
]
Private = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN",
        help="The column that must not be learned (Y). Repeat for several: combinations are protected.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        show_default="found; else a comma, in .tsv a tab",
        help="What separates the fields of a CSV file.",
    ),
]
_METHOD_HELP = f"How to solve: {', '.join(METHODS)}. exact proves the optimum, the others are local; auto "
Method = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        callback=check_methods,
        help=_METHOD_HELP + "tries exact for 20 seconds and goes on with dca where that proves no optimum.",
    ),
]
Methods = Annotated[
    list[str],
    typer.Option(
        metavar="METHOD",
        callback=check_methods,
        help=_METHOD_HELP
        + "takes exact where a proof is likely within minutes, else dca. Repeat to compare several.",
    ),
]
UnsafeSeed = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        show_default="the operating system's entropy",
        help="Draw repeatably, for tests only.",
    ),
]
Samples = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The records: .npz (arrays x and y), .csv, .tsv (both also .gz) or .parquet with columns of "
        "numbers, or IDX images (a file, or a folder with train-images-idx3-ubyte), also .gz.",
    ),
]
Model = Annotated[
    str,
    typer.Option("--model", "-m", metavar="FOLDER", help="What 'pfunnel fit' wrote: a model or an encoder."),
]
CodesOutput = Annotated[
    str,
    output("Where the codes go: .npz (array z), .csv, .tsv (both also .gz) or .parquet."),
]
Plot = Annotated[
    str | None, typer.Option(metavar="FILE", help="Draw the information plane: .png, .pdf or .svg.")
]
Shuffle = Annotated[
    bool,
    typer.Option(
        "--shuffle",
        help="Write the records in random order: in their own they tell what they were sorted by.",
    ),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In CSV, put a ' before texts and names that a spreadsheet would execute: those that begin with "
        "=, +, -, @, a tab or a line break and are no numbers.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]


@dataclass(frozen=True)
class Option:
    """An option that a command hands on: a row of a table, for `with_options`."""

    help: str
    default: str = ""  # what holds where it is not given, as the help shows it; empty where `value` says it
    kind: type = float  # bool, int, float or str
    several: bool = False  # whether the option may be repeated
    choices: tuple[str, ...] = ()  # all that it can be, if these are few
    metavar: str | None = None
    flags: tuple[str, ...] = ()  # how it is spelt, where that is not its name with dashes
    value: Any = None  # what a command gets where it is not given
    least: int | None = 1  # of a whole number
    check: Callable[[Any], Any] | None = None  # instead of refusing other texts, and numbers below 0

    def parameter(self, name: str) -> Parameter:
        """The parameter of a command."""
        flags = self.flags
        more: dict[str, Any] = {"help": self.help, "show_default": self.default or True}
        if self.kind is bool:  # without a twin that begins with --no-
            flags = flags or ("--" + name.replace("_", "-"),)
        else:
            more["metavar"] = self.metavar or "|".join(self.choices) or "NUMBER"
        if self.kind is int:
            more["min"] = self.least
        usual = choice(*self.choices) if self.choices else numbers if self.kind is float else None
        declared = typer.Option(*flags, callback=self.check or usual, **more)
        kind: Any = list[self.kind] if self.several else self.kind  # type: ignore[name-defined]
        return Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=self.value,
            annotation=Annotated[kind | None if self.value is None else kind, declared],
        )


def columns(help: str, default: str = "") -> Option:
    """An option that names columns, one each time."""
    return Option(help, default, str, several=True, metavar="COLUMN")


def file(help: str, *flags: str, default: str = "") -> Option:
    """An option that names a file."""
    return Option(help, default, str, metavar="FILE", flags=flags)


def flag(help: str) -> Option:
    """An option that is given or not."""
    return Option(help, kind=bool, value=False)


MISSING_TEXT = Option(
    "A text that means a missing value in the CSV file, such as NA. Repeat for several.",
    "none",
    str,
    metavar="TEXT",
    several=True,
)


def listed(table: Mapping[str, Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a table's options; those that may be repeated as tuples, which may be empty."""
    return {name: tuple(given[name] or ()) if row.several else given[name] for name, row in table.items()}


# What solve and frontier read their joint with, besides --delimiter, and what they hand to the solver.
READING = {
    "missing": Option(
        "What a missing value (in CSV an empty field) is: an error, or a letter of its own. Records are "
        "never dropped.",
        kind=str,
        choices=("error", "letter"),
        value="error",
    ),
    "max_letters": Option(
        "The most distinct letters that either side may have.", kind=int, value=MAX_LETTERS
    ),
}
SOLVING = {
    "alpha": Option(
        f"Regularisation of {' and '.join(methods_with('alpha'))}. Repeat to try several.",
        "0.1",
        several=True,
    ),
    "penalty": Option(
        f"Penalty of {' and '.join(methods_with('penalty'))}, in units of |Z| · max(1, β).", "2"
    ),
    "n_z": Option(
        "How many symbols Z may have, for all methods but exact. Repeat to try several.",
        "max(|X|, |Y|) + 1",
        int,
        several=True,
    ),
    "n_starts": Option("Random starts for each setting.", kind=int, value=20),
    "tol": Option(
        "Stop when a step changes the objective by no more; for exact, when the optimum is proved this "
        "closely.",
        metavar="BITS",
        value=1e-6,
    ),
    "max_steps": Option("Steps after which a start is given up.", kind=int, value=10_000),
    "time_limit": Option(
        "How long exact may take for a proof; after that the best release and bound so far are taken.",
        metavar="SECONDS",
        value=300.0,
    ),
    "n_jobs": Option(
        "Worker threads; -1 for all cores. The result does not depend on it.", kind=int, value=-1, least=None
    ),
    "seed": Option("Makes the random starts, and so the result, repeatable.", kind=int, least=0),
}


def with_options(options: Mapping[str, Option], *, before: str) -> Callable[[_Command], _Command]:
    """Give a command that takes **keywords these options too, listed before one of its own."""

    def given(command: _Command) -> _Command:
        own = [p for p in signature(command, eval_str=True).parameters.values() if p.kind != p.VAR_KEYWORD]
        at = [p.name for p in own].index(before)
        added = [option.parameter(name) for name, option in options.items()]
        named = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own]
        command.__signature__ = Signature([*named[:at], *added, *named[at:]])  # type: ignore[attr-defined]
        return command

    return given
