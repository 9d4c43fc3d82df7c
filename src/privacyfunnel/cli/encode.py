"""pfunnel encode: release codes of records with a fitted model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInputError
from . import options
from .running import warn

if TYPE_CHECKING:
    from ..learned.releasing import Releasing


def encode(
    data: options.Samples,
    model: options.Model,
    output: options.CodesOutput,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            show_default="the operating system's entropy",
            help="Draw repeatably, for tests only.",
        ),
    ] = None,
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
    from .output import plural, print_facts, print_json
    from .records import PARTS, check_kind, check_options, enough_memory, write_records

    begun = time.perf_counter()
    options.check_outputs([output], [data])
    check_kind(output)
    options.check_spreadsheet_safe(spreadsheet_safe, output)
    check_options(data, delimiter)
    funnel = options.load_estimator(model)
    order = None
    if seed is not None:
        import numpy as np

        warn("--seed: whoever knows or guesses the seed can undo the noise; use it for tests only.")
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
    from .records import is_idx, is_npz, read_images, read_npz, table_records

    if is_npz(data) or is_idx(data):
        x = read_npz(data, "x").x if is_npz(data) else read_images(data)
        width = x[0].size
        if width != model.n_features_in_:
            raise InvalidInputError(
                f"{data}: a record has {width} values and the model is for {model.n_features_in_}; use data "
                "of the kind that it was fitted on."
            )
        yield _transform(model, x.reshape(len(x), -1))
        return
    from ..files import open_table

    table = open_table(data, delimiter=delimiter)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        if len(table.columns) != model.n_features_in_:
            raise InvalidInputError(
                f"{data}: the file has {len(table.columns)} columns and the model, which knows no names, is "
                f"for {model.n_features_in_}; leave out the others."
            )
        names = table.columns
    table.require([str(name) for name in names])
    for part in table_records(table, [str(name) for name in names]):
        yield _transform(model, part.x)


def _transform(model: Releasing, x: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(x, pa.Table):
        x = np.column_stack([column.to_numpy() for column in x.columns])
    elif names is not None and not isinstance(x, pa.Table):
        x = pa.table({str(name): x[:, j] for j, name in enumerate(names)})
    return model.set_output(transform="default").transform(x)
