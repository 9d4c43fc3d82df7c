"""What commands refuse before any work: outputs that cannot be written, options that mean nothing there."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import DataFileError, InvalidInputError, shortened

if TYPE_CHECKING:
    from ..learned.encoder import Releasing
    from ..solution import Status

# What helps 'pfunnel encode' and 'pfunnel decode' where memory is short.
PARTS = "give them as CSV or Parquet, which is read and written in parts"


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


def as_text_file(delimiter: str | None, gaps: Sequence[str] | None = ()) -> str:
    """The options with which a CSV file was read, to be typed again in a command that is proposed."""
    said = "" if delimiter is None else f" --delimiter {shlex.quote(delimiter)}"
    return said + "".join(f" --missing-text {shlex.quote(gap)}" for gap in gaps or ())


def check_folder(output: str, inputs: Sequence[str], *, encoder: bool = False) -> None:
    """Refuse, before any work, a folder that cannot be written or holds something else; for an encoder,
    anything else."""
    check_new_folder(output, inputs)
    from ..learned.manifest import ENCODER_KIND, KIND, refuse_foreign

    refuse_foreign(Path(output), ENCODER_KIND if encoder else KIND)


def check_new_folder(output: str, inputs: Sequence[str]) -> None:
    """Refuse, before any work, a folder that cannot be written, or is a file that is read or written."""
    real = os.path.realpath(output)
    if real in map(os.path.realpath, inputs):
        raise InvalidInputError(f"{output}: this is what the command reads; give the output another name.")
    if os.path.exists(real) and not os.path.isdir(real):
        raise DataFileError(f"{output}: this is a file; name a folder.")
    while not os.path.exists(real):
        real = os.path.dirname(real)
    if not os.path.isdir(real) or not os.access(real, os.W_OK):
        raise DataFileError(
            f"{output}: the folder may not be written; choose another one or change its permissions."
        )


def load_estimator(path: str) -> Releasing:
    """The fitted model, or the encoder alone, in a folder."""
    if not os.path.isdir(path):
        raise DataFileError(f"{path}: there is no such folder; name what 'pfunnel fit --output' wrote.")
    from ..learned.saving import load_model

    return load_model(path)


def check_width(data: str, x: Any, model: Releasing) -> None:
    """Refuse arrays whose records have other values than those that the model was fitted on."""
    if x[0].size != model.n_features_in_:
        raise InvalidInputError(
            f"{data}: a record has {x[0].size} values and the model is for {model.n_features_in_}; use data "
            "of the kind that it was fitted on."
        )


def check_figure(path: str) -> None:
    """Refuse, before any work, a figure of an unknown kind or without matplotlib."""
    from ..plotting import figure_kind, import_figure

    figure_kind(path)
    import_figure()


def is_csv(path: str) -> bool:
    """Whether a file is CSV (or TSV) by its name; standard output is."""
    return path == "-" or path.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def check_delimiter(delimiter: str | None, files: Sequence[str]) -> None:
    """Refuse --delimiter where no file of the command is CSV."""
    if delimiter is not None and not any(map(is_csv, files)):
        raise InvalidInputError(f"{files[0]}: --delimiter belongs to CSV files; leave it out.")


def written_delimiter(delimiter: str | None, data: str, output: str) -> str | None:
    """What separates the fields of the output: what was asked for, or what does in DATA of the same kind."""
    from ..files import open_table
    from ..streams import delimiter_for

    if delimiter is not None or not is_csv(data):
        return delimiter if is_csv(output) else None
    return delimiter_for(output, open_table(data))


def check_columns(path: str, private: Sequence[str], drop: Sequence[str]) -> None:
    """Refuse --drop where there are no columns, and columns that are named twice."""
    from ..files.records import is_idx, is_npz

    if drop and (is_npz(path) or is_idx(path)):
        raise InvalidInputError(f"{path}: --drop belongs to CSV and Parquet files; leave it out.")
    if both := [name for name in private if name in drop]:
        raise InvalidInputError(
            f"{path}: column {shortened(both[0])} is in both --private and --drop; name it in one of them "
            "(a private column is never part of X)."
        )


def raise_if_interrupted(statuses: Iterable[Status | None]) -> None:
    """End the command where a solver, asked to stop with Ctrl-C, has returned the best it had."""
    if any(status is not None and status.name == "INTERRUPTED" for status in statuses):
        raise KeyboardInterrupt


def check_spreadsheet_safe(asked: bool, output: str) -> None:
    """Refuse --spreadsheet-safe where no text is written."""
    if asked and output.lower().endswith((".parquet", ".arrow", ".npz")):
        raise InvalidInputError(f"{output}: --spreadsheet-safe belongs to CSV files; leave it out.")


def check_table_name(path: str, *, arrays: bool = False) -> None:
    """Refuse an output of an unknown kind; with `arrays`, .npz is one."""
    from ..files import file_kind

    if arrays and path.lower().endswith(".npz"):
        return
    try:
        file_kind(path)
    except InvalidInputError:
        if not arrays:
            raise
        raise InvalidInputError(
            f"{path}: the name must end in .npz, .csv, .tsv (both also .gz), .parquet or .arrow, which "
            "says what the file is; choose another name."
        ) from None


def check_records(output: str, source: str, delimiter: str | None, *, spreadsheet_safe: bool) -> None:
    """Refuse, before any work, records or codes that could not be written, and options without meaning."""
    check_outputs([output], [source])
    check_table_name(output, arrays=True)
    check_spreadsheet_safe(spreadsheet_safe, output)
    check_delimiter(delimiter, [source])


@contextmanager
def enough_memory(path: str, remedy: str) -> Iterator[None]:
    """One sentence with the remedy where the memory, the GPU's too, does not suffice for the records."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # torch has no class of its own for it on the CPU
        if isinstance(error, RuntimeError) and not re.search("allocate memory|out of memory", str(error)):
            raise
        raise InvalidInputError(f"{path}: there is not enough memory for these records; {remedy}.") from None
