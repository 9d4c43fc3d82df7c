"""An encoder on records that need not fit in memory: codes batch by batch, as tables are released."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..arrays import one_generator
from ..errors import InvalidInputError
from ..files import TableFile
from ..files.records import ColumnFile
from ..streams import open_any, write_stream

if TYPE_CHECKING:
    from .encoder import Releasing


def release_stream(model: Releasing, source: Any, sink: Any) -> Any:
    """See `Releasing.release_stream`."""
    import pyarrow as pa

    check_is_fitted(model)
    table = open_any(source, "release_stream")
    names = [str(name) for name in getattr(model, "feature_names_in_", table.columns)]
    if len(names) != model.n_features_in_:
        raise InvalidInputError(
            f"{table.path}: there are {len(names)} columns and the model, which knows no names, is for "
            f"{model.n_features_in_}; leave out the others."
        )
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
