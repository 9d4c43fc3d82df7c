"""Drawing which of several mechanisms releases: the convex combinations of what they reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray
from .channels import SUM_TOLERANCE
from .errors import InvalidInputError
from .mechanism import TableMechanism
from .merging import merged
from .sparse import below, beside, with_rows_to_one


def time_share(mechanisms: Sequence[TableMechanism], weights: ArrayLike) -> TableMechanism:
    """The mechanism that draws Z from mechanism i with probability weights[i].

    Each mechanism has symbols of its own, so Z tells which one was used, and utility and leakage are
    exactly the weighted averages of theirs. Symbols that are never released are dropped and symbols
    with the same posterior merged, which changes neither number. The symbols of the result are
    numbered 0, 1, …; `TableMechanism.relabel` names them.
    """
    shares = np.asarray(weights, dtype=np.float64)
    if len(mechanisms) == 0 or shares.shape != (len(mechanisms),):
        raise InvalidInputError(
            f"time_share: pass one weight a mechanism; there are {len(mechanisms)} mechanisms and weights "
            f"of shape {shares.shape}."
        )
    if not np.all(shares >= 0) or not abs(float(shares.sum()) - 1.0) <= SUM_TOLERANCE:
        raise InvalidInputError(f"time_share: weights must be 0 or more and sum to 1; they are {shares}.")
    first = mechanisms[0]
    if any(m.x_labels != first.x_labels or m.x_names != first.x_names for m in mechanisms):
        raise InvalidInputError("time_share: the mechanisms must have the same letters in the same order.")
    used = [(share, m) for share, m in zip(shares.tolist(), mechanisms, strict=True) if share > 0]
    # P(Z) is a mixture of the rows, so as one more row it changes neither what is merged nor the rest.
    rows = [m.sparse if m.marginal is None else below(m.sparse, m.marginal) for _, m in used]
    if len({len(part) for part in rows}) > 1:
        rows = [m.sparse for _, m in used]
    parts = [
        part.with_values(share * part.probabilities) for (share, _), part in zip(used, rows, strict=True)
    ]
    table = with_rows_to_one(merged(beside(parts)))
    return TableMechanism(
        table[: first.n_x],
        x_labels=first.x_labels,
        x_names=first.x_names,
        private_names=tuple(dict.fromkeys(name for m in mechanisms for name in m.private_names)),
        marginal=table[first.n_x :].dense()[0] if len(table) > first.n_x else None,
        p_x=first.p_x if all(_same(first.p_x, m.p_x) for m in mechanisms) else None,
    )


def _same(a: FloatArray | None, b: FloatArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
