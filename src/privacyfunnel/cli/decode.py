"""pfunnel decode: reconstruct records from released codes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError, shortened
from . import options
from .checks import PARTS, check_records, enough_memory, load_estimator

if TYPE_CHECKING:
    from ..learned.base import LearnedFunnel
    from ..learned.objectives import PrivateColumn


def decode(
    codes: Annotated[
        str,
        typer.Argument(metavar="CODES", help="What 'pfunnel encode' wrote: .npz, CSV or Parquet."),
    ],
    model: options.Model,
    output: Annotated[
        str, options.output("Where the records go: .npz (array x), .csv, .tsv (both also .gz) or .parquet.")
    ],
    spreadsheet_safe: options.SpreadsheetSafe = False,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Reconstruct the expected record of each code in CODES.

    A model of --method conditional decodes with the private attributes: CODES must hold them too, as columns
    or arrays of the names that the model was fitted with.
    """
    from ..files import write_records
    from .output import plural, print_facts, print_json

    begun = time.perf_counter()
    check_records(output, codes, delimiter, spreadsheet_safe=spreadsheet_safe)
    funnel: Any = load_estimator(model)
    if not funnel.has_decoder:
        raise InvalidInputError(
            f"{model}: this is the encoder alone, which cannot reconstruct records; use the whole model, "
            "which its owner has."
        )
    known = getattr(funnel, "feature_names_in_", None)
    n_features = int(funnel.n_features_in_)
    names = [f"x{j}" for j in range(n_features)] if known is None else [str(name) for name in known]
    with enough_memory(codes, PARTS):
        records = _reconstructed(funnel, codes, delimiter)
        n_records = write_records(output, "x", names, records, spreadsheet_safe=spreadsheet_safe)
    values: dict[str, Any] = {
        "command": "decode",
        "codes": codes,
        "model": model,
        "output": output,
        "n_records": n_records,
        "n_features": n_features,
        "seconds": time.perf_counter() - begun,
    }
    if as_json:
        print_json(values)
        return
    facts = [("Saved", output, f"{plural(n_records, 'record')} in {values['seconds']:.1f} s")]
    print_facts(f"{codes}: {plural(n_records, 'record')} reconstructed.", facts)


def _reconstructed(model: LearnedFunnel, path: str, delimiter: str | None) -> Iterator[Any]:
    """The records in parts, as the file is read."""
    from ..files import open_records

    columns = model.private_.columns if model.decoder_needs_private and model.private_ is not None else ()
    private = [column.name for column in columns]
    names = [str(name) for name in model.get_feature_names_out()]
    source = open_records(path, delimiter=delimiter)
    if source.table is not None:
        source.table.require(names)
    # Of a file that cannot be read nothing is known: reading it says why.
    if source.columns and (missing := [name for name in private if name not in source.columns]):
        raise _needs_private(path, missing[0])
    done = 0
    for part in source.parts("z", names, private):
        z = part.array
        if z.ndim != 2 or z.shape[1] != len(names):
            raise InvalidInputError(
                f"{path}: the codes have shape {z.shape} and the model's have {len(names)} components; use "
                "codes of this model."
            )
        yield _decode(model, z, part.private, path, done)
        done += len(part)


def _needs_private(path: str, name: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path}: this model decodes with the private attribute, and there is no {shortened(name)} in the "
        "file; add it, or fit with --method funnel, which decodes from the code alone."
    )


def _decode(model: LearnedFunnel, z: Any, private: dict[str, Any], path: str, done: int = 0) -> Any:
    if not model.decoder_needs_private:
        return model.inverse_transform(z)
    from ..frames import make_frame

    decoder: Any = model
    columns = {c.name: _typed(path, c, private[c.name], done) for c in decoder.private_.columns}
    try:
        return decoder.inverse_transform(z, private=make_frame(columns))
    except InvalidInputError as error:
        raise error.at(path) from None


def _typed(path: str, column: PrivateColumn, values: Any, done: int) -> Any:
    """Values of a CSV file, which are text, as the model's classes are; others as they are."""
    import numpy as np

    from ..files.values import single_values

    if values.dtype.kind != "O":
        return values
    classes = column.classes
    dtype = np.dtype(np.float64) if classes is None else classes.dtype
    known = None if classes is None else {*classes.tolist()}
    typed = []
    for at, value in enumerate(single_values(path, column.name, values, done)):
        try:
            typed.append(_as_kind(value, dtype))
            unknown = known is not None and typed[-1] not in known
        except (ArithmeticError, LookupError, TypeError, ValueError):
            unknown = True
        if unknown:
            what = "no number" if known is None else "not among the model's classes"
            raise InvalidInputError(
                f"{path}: record {done + at + 1:,} has {shortened(value)} in the private column "
                f"{shortened(column.name)}, which is {what}; correct it, or fit on records that have it."
            )
    return np.array(typed, dtype=dtype)


def _as_kind(value: Any, dtype: Any) -> Any:
    """The value that a text, or a decimal number, stands for among values of this dtype."""
    if dtype.kind == "b":
        return {"true": True, "false": False}[str(value).lower()]
    if dtype.kind in "iu":
        number = int(value)
        exact = str(number) == value if isinstance(value, str) else number == value
        if not exact:
            raise ValueError  # 007 is another class than 7, and the decimal number 7.5 is none
        return number
    return dtype.type(float(value)).item() if dtype.kind == "f" else str(value)
