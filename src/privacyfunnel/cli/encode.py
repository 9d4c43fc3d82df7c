"""pfunnel encode: release codes of records with a fitted model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .checks import PARTS, check_records, check_width, enough_memory, load_estimator
from .running import warn_of_seed

if TYPE_CHECKING:
    from ..learned.encoder import Releasing


def encode(
    data: options.Samples,
    model: options.Model,
    output: options.CodesOutput,
    seed: options.UnsafeSeed = None,
    shuffle: options.Shuffle = False,
    spreadsheet_safe: options.SpreadsheetSafe = False,
    decimals: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=7,
            show_default="32-bit numbers, about 7 digits",
            help="Round codes to so many decimals.",
        ),
    ] = None,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Release a code for each record of DATA: a draw from what the model has learned.

    The private column is not needed, and nothing but the codes is written, in the order of the records
    unless --shuffle is given. Columns that the model does not know are ignored. MODEL may be the encoder
    alone, which is what to hand on to whoever releases ('pfunnel fit --encoder-output').

    Codes are 32-bit numbers in every kind of file: there are no finer digits that could carry anything.

    Release once and hand out the result: a second release of the same records tells more.
    """
    from ..files import write_records
    from .output import plural, print_facts, print_json

    begun = time.perf_counter()
    check_records(output, data, delimiter, spreadsheet_safe=spreadsheet_safe)
    funnel = load_estimator(model)
    order = None
    if seed is not None:
        import numpy as np

        warn_of_seed()
        generator = np.random.default_rng(seed)
        order = generator.spawn(1)[0]
        funnel.set_params(release_state=generator)
    names = [str(name) for name in funnel.get_feature_names_out()]
    with enough_memory(data, PARTS):
        codes = (_rounded(part, decimals) for part in _codes(funnel, data, delimiter))
        n_records = write_records(
            output, "z", names, codes, spreadsheet_safe=spreadsheet_safe, shuffle=shuffle, rng=order
        )
    values: dict[str, Any] = {
        "command": "encode",
        "data": data,
        "model": model,
        "output": output,
        "n_records": n_records,
        "n_components": len(names),
        "shuffled": shuffle,
        "seeded": seed is not None,
        "decimals": decimals,
        "seconds": time.perf_counter() - begun,
    }
    if as_json:
        print_json(values)
        return
    facts = [
        ("Code", plural(len(names), "component"), type(funnel).__name__),
        ("Precision", "32-bit" if decimals is None else plural(decimals, "decimal"), ""),
        ("Saved", output, f"{plural(n_records, 'record')} in {values['seconds']:.1f} s"),
    ]
    print_facts(f"{data}: {plural(n_records, 'record')} released.", facts)


def _rounded(codes: Any, decimals: int | None) -> Any:
    """Codes as 32-bit numbers, with so many decimals; without the sign of a zero."""
    import numpy as np

    codes = np.asarray(codes, dtype=np.float32)
    return (codes if decimals is None else codes.round(decimals)) + np.float32(0)


def _codes(model: Releasing, data: str, delimiter: str | None) -> Iterator[Any]:
    """The codes in parts, as the file is read."""
    from ..files import open_records

    source = open_records(data, delimiter=delimiter)
    names = [str(name) for name in getattr(model, "feature_names_in_", source.columns)]
    if source.table is not None and len(names) != model.n_features_in_:
        raise InvalidInputError(
            f"{data}: the file has {len(names)} columns and the model, which knows no names, is for "
            f"{model.n_features_in_}; leave out the others."
        )
    for part in source.parts("x", names):
        if source.table is None:
            check_width(data, part.x, model)
        yield _transform(model, part.x)


def _transform(model: Releasing, x: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(x, pa.Table):
        x = np.column_stack([column.to_numpy() for column in x.columns])
    elif not isinstance(x, pa.Table):
        x = x.reshape(len(x), -1)
        if names is not None:
            x = pa.table({str(name): x[:, j] for j, name in enumerate(names)})
    return model.set_output(transform="default").transform(x)
