"""The options that several commands share, with their help and checks."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..discrete.arguments import METHODS
from ..discrete.batch import PAPER_METHODS
from ..errors import DataFileError, InvalidInputError, shortened
from ..tabulate import MAX_LETTERS

if TYPE_CHECKING:
    from ..joint import Joint
    from ..learned.releasing import Releasing
    from ..solution import Status


def numbers(value: float | Sequence[float] | None) -> float | Sequence[float] | None:
    for number in [] if value is None else [value] if isinstance(value, (int, float)) else value:
        if not (math.isfinite(number) and number >= 0):
            raise typer.BadParameter(f"it must be a finite number, 0 or more, and is {number:g}")
    return value


def _methods(value: str | Sequence[str]) -> str | Sequence[str]:
    for name in [value] if isinstance(value, str) else value:
        if name not in METHODS:
            close = get_close_matches(name, METHODS, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(METHODS)}"
            raise typer.BadParameter(f"{shortened(name)} is no method; {remedy}")
    return value


def _missing(value: str) -> str:
    if value not in ("error", "letter"):
        raise typer.BadParameter(f"{shortened(value)} is neither 'error' nor 'letter'")
    return value


def unknown(value: str) -> str:
    if value not in ("error", "draw", "drop"):
        raise typer.BadParameter(f"{value!r} is neither 'error' nor 'draw' nor 'drop'")
    return value


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The table: a .csv, .tsv (both also .gz) or .parquet file. It is read in batches and may be "
        "larger than memory.",
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
Missing = Annotated[
    str,
    typer.Option(
        metavar="error|letter",
        callback=_missing,
        help="What a missing value (in CSV an empty field) is: an error, or a letter of its own. Records "
        "are never dropped.",
    ),
]
MaxLetters = Annotated[
    int,
    typer.Option(
        metavar="NUMBER",
        min=1,
        help="The most distinct letters that either side may have.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        show_default="a comma; a tab in .tsv",
        help="What separates the fields of a CSV file.",
    ),
]
_METHOD_HELP = f"How to solve: {', '.join(METHODS)}. exact proves the optimum, the others are local; auto "
Method = Annotated[
    str,
    typer.Option(
        metavar="METHOD",
        callback=_methods,
        help=_METHOD_HELP + "tries exact for 20 seconds and goes on with dca where that proves no optimum.",
    ),
]
Methods = Annotated[
    list[str],
    typer.Option(
        metavar="METHOD",
        callback=_methods,
        help=_METHOD_HELP
        + "takes exact where a proof is likely within minutes, else dca. Repeat to compare several.",
    ),
]
Alpha = Annotated[
    list[float] | None,
    typer.Option(
        metavar="NUMBER",
        callback=numbers,
        show_default="0.1",
        help="Regularisation of dca-ridge and dca-sparse. Repeat to try several.",
    ),
]
Penalty = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        callback=numbers,
        show_default="2",
        help="Penalty of splitting, in units of |Z| · max(1, β).",
    ),
]
Symbols = Annotated[
    list[int] | None,
    typer.Option(
        "--n-z",
        metavar="NUMBER",
        min=1,
        show_default="max(|X|, |Y|) + 1",
        help="How many symbols Z may have, for all methods but exact. Repeat to try several.",
    ),
]
Starts = Annotated[
    int,
    typer.Option("--n-starts", metavar="NUMBER", min=1, help="Random starts for each setting."),
]
Tol = Annotated[
    float,
    typer.Option(
        metavar="BITS",
        callback=numbers,
        help="Stop when a step changes the objective by no more; for exact, when the optimum is proved this "
        "closely.",
    ),
]
MaxSteps = Annotated[
    int,
    typer.Option(metavar="NUMBER", min=1, help="Steps after which a start is given up."),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        callback=numbers,
        help="How long exact may take for a proof; after that the best release and bound so far are taken.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--n-jobs",
        metavar="NUMBER",
        help="Worker threads; -1 for all cores. The result does not depend on it.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="NUMBER",
        min=0,
        help="Makes the random starts, and so the result, repeatable.",
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
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the codes go: .npz (array z), .csv, .tsv (both also .gz) or .parquet.",
    ),
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

LETTERS = MAX_LETTERS


def check_outputs(outputs: Sequence[str | None], inputs: Sequence[str]) -> None:
    """Refuse, before any work, to write where it cannot be done or over a file that is read."""
    seen = {os.path.realpath(name): "is read by this command" for name in inputs}
    for name in outputs:
        if name is None:
            continue
        real = os.path.realpath(name)
        if real in seen:
            raise InvalidInputError(f"{name}: this file {seen[real]}; give the output another name.")
        seen[real] = "is another output too"
        folder = os.path.dirname(real)
        if os.path.isdir(real):
            raise DataFileError(f"{name}: this is a folder; name a file in it.")
        if not os.path.isdir(folder):
            raise DataFileError(
                f"{name}: there is no folder {shortened(os.path.dirname(name))}; create it first."
            )
        if not os.access(folder, os.W_OK):
            raise DataFileError(
                f"{name}: the folder may not be written; choose another one or change its permissions."
            )


def check_folder(output: str, inputs: Sequence[str], *, encoder: bool = False) -> None:
    """Refuse, before any work, a folder that cannot be written or holds something else; for an encoder,
    anything else."""
    real = os.path.realpath(output)
    if real in map(os.path.realpath, inputs):
        raise InvalidInputError(f"{output}: this is what the command reads; give the output another name.")
    if os.path.exists(real) and not os.path.isdir(real):
        raise DataFileError(f"{output}: this is a file; name a folder for the model.")
    while not os.path.exists(real):
        real = os.path.dirname(real)
    if not os.path.isdir(real) or not os.access(real, os.W_OK):
        raise DataFileError(
            f"{output}: the folder may not be written; choose another one or change its permissions."
        )
    from ..learned.model_files import ENCODER_KIND, KIND, refuse_foreign

    refuse_foreign(Path(output), ENCODER_KIND if encoder else KIND)


def load_estimator(path: str) -> Releasing:
    """The fitted model, or the encoder alone, in a folder."""
    if not os.path.isdir(path):
        raise DataFileError(f"{path}: there is no such folder; name what 'pfunnel fit --output' wrote.")
    from ..learned.persistence import load_model

    return load_model(path)


def check_figure(path: str) -> None:
    """Refuse, before any work, a figure of an unknown kind or without matplotlib."""
    from ..plotting import figure_kind, import_figure

    figure_kind(path)
    import_figure()


def takes_alpha(method: str) -> bool:
    return method in PAPER_METHODS


def takes_penalty(method: str) -> bool:
    return method == "splitting"


def check_settings(methods: Sequence[str], alpha: object, penalty: object) -> None:
    """Refuse a setting that none of the methods has."""
    for value, name, takes in ((alpha, "alpha", takes_alpha), (penalty, "penalty", takes_penalty)):
        if value is not None and not any(map(takes, methods)):
            owners = " and ".join(filter(takes, METHODS))
            raise InvalidInputError(f"{name} belongs to {owners}; leave it out for {', '.join(methods)}.")


def read_data(
    data: str,
    public: Sequence[str],
    private: Sequence[str],
    missing: str,
    max_letters: int,
    delimiter: str | None,
    to_be_saved: bool,
) -> Joint:
    """The joint of the records; what cannot be saved later is refused now, before the work."""
    from ..files import read_joint
    from ..persistence import encode_labels

    joint = read_joint(
        data, public=public, private=private, missing=missing, max_letters=max_letters, delimiter=delimiter
    )
    if to_be_saved:
        encode_labels(joint.x_labels, "x_labels")
    return joint


def raise_if_interrupted(statuses: Iterable[Status | None]) -> None:
    """End the command where a solver, asked to stop with Ctrl-C, has returned the best it had."""
    if any(status is not None and status.name == "INTERRUPTED" for status in statuses):
        raise KeyboardInterrupt


def check_spreadsheet_safe(asked: bool, output: str) -> None:
    """Refuse --spreadsheet-safe where no text is written."""
    if asked and output.lower().endswith((".parquet", ".npz")):
        raise InvalidInputError(f"{output}: --spreadsheet-safe belongs to CSV files; leave it out.")


def check_table_name(path: str) -> None:
    """Refuse, before any work, a table file of an unknown kind."""
    from ..files import file_kind

    file_kind(path)
