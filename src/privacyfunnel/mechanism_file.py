"""A table mechanism as JSON types: what its file holds, how older files are read, and its fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .alphabet import as_text
from .errors import FileFormatError, InvalidInputError
from .persistence import decode_labels, encode_labels, require
from .sparse import SparseChannel

if TYPE_CHECKING:
    from .mechanism import TableMechanism

# Version 1 had the whole table.
FORMAT_VERSION = 2


def payload_of(mechanism: TableMechanism) -> dict[str, Any]:
    """See `TableMechanism.to_dict`."""
    table = mechanism.sparse
    return {
        "x_names": list(mechanism.x_names),
        "private_names": list(mechanism.private_names),
        "x_labels": encode_labels(mechanism.x_labels, "x_labels"),
        "z_labels": encode_labels(mechanism.z_labels, "z_labels"),
        "row_starts": table.indptr.tolist(),
        "symbols": table.symbols.tolist(),
        "probabilities": table.probabilities.tolist(),
        **({} if mechanism.marginal is None else {"p_z": mechanism.marginal.tolist()}),
        **({} if mechanism.p_x is None else {"p_x": mechanism.p_x.tolist()}),
    }


def from_payload(kind: type[TableMechanism], data: Mapping[str, Any]) -> TableMechanism:
    """See `TableMechanism.from_dict`."""
    # Absent in files that were written before mechanisms knew of private columns, of P(Z), or of P(X).
    later = {key: require(data, key, list) for key in ("private_names", "p_z", "p_x") if key in data}
    z_labels = decode_labels(require(data, "z_labels", list))
    try:
        if "row_starts" in data:
            starts, symbols, values = (
                require(data, key, list) for key in ("row_starts", "symbols", "probabilities")
            )
            table: Any = SparseChannel.checked(starts, symbols, values, len(z_labels))
        else:
            table = require(data, "p_z_given_x", list)
        return kind(
            table,
            x_labels=decode_labels(require(data, "x_labels", list)),
            z_labels=z_labels,
            x_names=[str(name) for name in require(data, "x_names", list)],
            private_names=[str(name) for name in later.get("private_names", ())],
            marginal=later.get("p_z"),
            p_x=later.get("p_x"),
        )
    except InvalidInputError as error:
        raise FileFormatError(f"This is not a saved mechanism: {error}") from None


def fingerprint_of(mechanism: TableMechanism) -> str:
    """See `TableMechanism.fingerprint`."""
    table = mechanism.sparse
    content = [
        list(mechanism.x_names),
        *([as_text(label) for label in labels] for labels in (mechanism.x_labels, mechanism.z_labels)),
        *(part.tolist() for part in (table.indptr, table.symbols, table.probabilities)),
    ]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode("ascii")).hexdigest()
