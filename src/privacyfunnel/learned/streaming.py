"""An encoder on frames and clusters, and on records that need not fit in memory: codes batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..alphabet import as_names, require_columns
from ..arrays import one_generator
from ..errors import InvalidInputError
from ..files import TableFile
from ..files.records import ColumnFile
from ..frames import read_frame, without_notes
from ..lazy import release_on_cluster
from ..streams import open_any, write_stream

if TYPE_CHECKING:
    from .encoder import Releasing


def release_frame(model: Releasing, frame: Any, keep: str | Sequence[str], rng: Any) -> Any:
    """See `Releasing.release_frame`."""
    import narwhals as nw

    check_is_fitted(model)
    if release := release_on_cluster(frame):
        return release(model, frame, keep=keep, rng=rng)
    data, kept = read_frame(frame, "release_frame"), as_names(keep)
    require_columns(kept, data.columns, "release_frame: keep")
    codes = [str(name) for name in model.get_feature_names_out()]
    named = hasattr(model, "feature_names_in_")
    others = [name for name in data.columns if name not in kept]
    names = [str(name) for name in model.feature_names_in_] if named else others
    require_columns(names, data.columns, "release_frame")
    _require_width(model, names, "release_frame")
    if undone := [name for name in kept if name in names]:
        raise InvalidInputError(
            f"release_frame: {undone[0]!r} is what the codes are made from, and handing it out undoes the "
            "release; leave it out of keep.",
            names=("keep",),
        )
    if twice := [name for name in kept if name in codes]:
        raise InvalidInputError(
            f"release_frame: {twice[0]!r} is the name of a column of codes; rename the one to be kept.",
            names=("keep",),
        )
    records = data.select(names)
    z = np.zeros((0, len(codes)), np.float32)
    if len(data):  # scikit-learn takes no records as a mistake
        z = model._drawn(records.to_native() if named else records.to_numpy(), rng)
    made = {c: nw.new_series(c, z[:, j], backend=data.implementation) for j, c in enumerate(codes)}
    beside = nw.maybe_reset_index(data.select(kept))
    whole = nw.from_dict({**made, **{name: beside[name] for name in kept}})
    return without_notes(whole.to_native(), kept)


def _require_width(model: Releasing, names: Sequence[str], where: str) -> None:
    if len(names) != model.n_features_in_:
        raise InvalidInputError(
            f"{where}: there are {len(names)} columns and the model, which knows no names, is for "
            f"{model.n_features_in_}; leave out the others."
        )


def release_stream(model: Releasing, source: Any, sink: Any) -> Any:
    """See `Releasing.release_stream`."""
    import pyarrow as pa

    check_is_fitted(model)
    table = open_any(source, "release_stream")
    names = [str(name) for name in getattr(model, "feature_names_in_", table.columns)]
    _require_width(model, names, table.path)
    table.require(names)
    own = copy(model)
    # An int would start the same noise again for every batch.
    own.release_state = one_generator(model.release_state)
    schema = pa.schema([(str(name), pa.float32()) for name in model.get_feature_names_out()])

    def tables(part: TableFile | None = None) -> Iterator[Any]:
        for records in ColumnFile(part or table).parts("x", names):
            x = records.x if hasattr(model, "feature_names_in_") else records.array
            codes = np.asarray(own.transform(x), dtype=np.float32)
            yield pa.table(list(codes.T), schema=schema)

    return write_stream(table, sink, tables, schema)
