"""Mechanisms of mechanisms: one after another, the same one several times, one of several."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray
from .channels import SUM_TOLERANCE, to_one
from .errors import InvalidInputError, shortened
from .mechanism import TableMechanism
from .merging import merged
from .sparse import below, beside, product_of, repeated, with_rows_to_one

# The most symbols, and nonzeros of the table, that repeated releases may have: 160 MB.
MAX_ENTRIES = 10_000_000


def compose(first: TableMechanism, second: TableMechanism) -> TableMechanism:
    """See `TableMechanism.compose`."""
    rows = second._letters.rows
    missing = [label for label in first.z_labels if label not in rows]
    if missing:
        raise InvalidInputError(
            f"compose: the symbol {shortened(missing[0])} is not a letter of the second mechanism; "
            "build it with x_labels equal to the z_labels of the first."
        )
    then = second.sparse[[rows[label] for label in first.z_labels]]
    return first._with(
        p_z_given_x=with_rows_to_one(product_of(first.sparse, then)),
        z_labels=second.z_labels,
        private_names=_all_private((first, second)),
        marginal=None if first.marginal is None else to_one(first.marginal @ then),
    )


def repeat(mechanism: TableMechanism, k: int) -> TableMechanism:
    """See `TableMechanism.repeat`."""
    if not isinstance(k, (int, np.integer)) or k < 1:
        raise InvalidInputError(f"repeat: k must be a whole number ≥ 1; it is {k!r}.")
    nonzeros = float((mechanism.sparse.counts.astype(np.float64) ** min(int(k), 1000)).sum())
    if max(mechanism.n_z ** min(int(k), 1000), nonzeros) > MAX_ENTRIES:
        raise InvalidInputError(
            f"repeat: {k} releases of {mechanism.n_z} symbols make a table of {mechanism.n_x} × "
            f"{mechanism.n_z}^{k} entries, with more than {MAX_ENTRIES:,} symbols or nonzeros; "
            "repeated_leakage measures them without the table."
        )
    return mechanism._with(
        p_z_given_x=with_rows_to_one(repeated(mechanism.sparse, int(k))),
        z_labels=tuple(product(mechanism.z_labels, repeat=int(k))),
        # P(Z₁, …, Z_k) is not determined by P(Z): the releases have their letter in common.
        marginal=mechanism.marginal if k == 1 else None,
    )


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
        private_names=_all_private(mechanisms),
        marginal=table[first.n_x :].dense()[0] if len(table) > first.n_x else None,
        p_x=first.p_x if all(_same(first.p_x, m.p_x) for m in mechanisms) else None,
    )


def _all_private(mechanisms: Sequence[TableMechanism]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for one in mechanisms for name in one.private_names))


def _same(a: FloatArray | None, b: FloatArray | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))
