"""What 'pfunnel protect' measures for whoever owns the table: by column, beside it, and inside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InvalidInputError
from .running import warn

if TYPE_CHECKING:
    from ..certified import CertifiedFunnel


def rounded(value: Any, digits: int = 3) -> Any:
    """As the page rounds it: exact figures of two tables that differ in a person tell what is theirs."""
    return round(value, digits) if isinstance(value, float) else value


def kept_columns(
    funnel: CertifiedFunnel, frame: Any, private: Sequence[str], keep: Sequence[str]
) -> list[dict[str, Any]]:
    """What each kept column, and all of them together, tell alone and beside the symbol, on these records."""
    if not keep:
        return []
    from ..joint import Joint
    from .problem import measured_kept

    rule = funnel.rule_
    cell = "cell"
    while cell in frame.column_names:
        cell += "_"
    cells = frame.select([*private, *keep]).append_column(cell, [rule.cells_of(frame)])
    groups = [(name,) for name in keep] + ([tuple(keep)] if len(keep) > 1 else [])
    joints = {}
    for names in groups:
        try:
            joints[names] = Joint.from_frame(
                cells, public=[cell, *names], private=list(private), missing="letter", max_letters=1_000_000
            )
        except InvalidInputError as error:
            warn(f"what {' and '.join(names)} tells beside the release was not measured: {error}")
    found = measured_kept(rule.mechanism, joints)
    return [
        {name: rounded(value, 4 if "leak" in name else 3) for name, value in one.items()}
        | {"chance": round(float(joints[tuple(one["columns"])].p_y.max()), 3)}  # of the same records
        for one in found
    ]


def before_and_after(funnel: CertifiedFunnel, frame: Any, private: Sequence[str]) -> list[dict[str, Any]]:
    """What the three columns that told most tell, each by itself, in the table and in the release: bits."""
    import numpy as np

    from ..attributes import read_attributes
    from ..information import mutual_information

    most = 50_000
    rows = np.sort(np.random.default_rng(0).permutation(len(frame))[:most])
    some = frame.take(rows)
    read = read_attributes({name: some[name] for name in private}, len(some))
    y = np.zeros(len(some), dtype=np.intp)
    for one in read:
        y = y * one.n_classes + one.y
    y = np.unique(y, return_inverse=True)[1]
    assert funnel.rule_.tables is not None
    schema = funnel.rule_.tables.schema

    def told(table: Any) -> list[float]:
        found = []
        for codes in schema.to_codes(table):
            levels = np.unique(codes, return_inverse=True)[1]
            counts = np.zeros((levels.max() + 1, y.max() + 1))
            np.add.at(counts, (levels, y), 1)
            # What chance adds to a count's bits, taken off again.
            chance = (counts.shape[0] - 1) * (counts.shape[1] - 1) / (2 * len(y) * np.log(2))
            found.append(max(mutual_information(counts / counts.sum()) - chance, 0.0))
        return found

    before, after = told(some), told(funnel.release(some))
    order = np.argsort(before)[::-1][:3]
    return [
        {"column": schema.names[i], "before": round(before[i], 4), "after": round(after[i], 4)}
        for i in order.tolist()
    ]


def guessed_inside(funnel: CertifiedFunnel, frame: Any, private: Sequence[str]) -> dict[str, float]:
    """How often the best guess from the symbol is right about the people of this very table, by attribute.

    Σ_z max_y Σ_i P(z|record i) [y_i = y] / n: nobody who sees the row of somebody drawn from the table
    does better on average, whatever he knows of the table but whose row it is. Exact, and so for the owner
    alone: figures of two tables that differ in a person tell what is theirs.
    """
    import numpy as np

    from ..attributes import read_attributes
    from ..certificate import soft_counts

    rule, found = funnel.rule_, {}
    cells = rule.cells_of(frame)
    for one in read_attributes({name: frame[name] for name in private}, len(frame)):
        counts = np.zeros((rule.mechanism.n_x, one.n_classes))
        np.add.at(counts, (cells, one.y), 1)
        by_symbol = soft_counts(rule.mechanism.p_z_given_x, counts)
        found[one.name] = round(float(by_symbol.max(axis=1).sum()) / len(frame), 3)
    return found
