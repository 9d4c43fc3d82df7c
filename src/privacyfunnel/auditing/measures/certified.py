"""Upper bounds for every adversary, from records that had no part in making the mechanism."""

from __future__ import annotations

import math

import numpy as np

from ...arrays import FloatArray
from ...certificate import leakage_bound, soft_counts, success_bound
from ...joint import Joint
from ...mechanism import TableMechanism
from ...sparse import Channel
from ...uncertainty import rows_for
from ..findings import CERTIFICATE, About, Finding


def certificate_findings(about: About, counts: FloatArray, channel: Channel | None = None) -> list[Finding]:
    """What nobody can exceed who sees one release of a new person: success, and bits.

    Parameters
    ----------
    about : About
        With the attribute.
    counts : (n_x, n_y) array
        Records by letter and private class; by symbol where there is no table.
    channel : (n_x, n_z) table, optional
        P(z|x): the counts are then soft, which is tighter than any draw of Z.
    """
    n, level = int(counts.sum()), about.confidence
    about = about.of(source=CERTIFICATE, n_samples=n)
    success = success_bound(_released(counts, channel), level)
    found = [about.upper("success", success, (0.0, success), notes=_notes(n, level))]
    size = round(reference_share(counts.shape[1]) * n)
    if size < 1 or counts.shape[1] < 2:
        return found
    # The reference of P(Y) must come from other records than those that certify.
    rng = np.random.default_rng([about.seed, 31])
    first = rng.multivariate_hypergeometric(counts.astype(np.int64).ravel(), size, method="marginals")
    others = first.reshape(counts.shape).astype(np.float64)
    reference = (others.sum(axis=0) + 1) / (size + counts.shape[1])
    bits = leakage_bound(_released(counts - others, channel), reference, level)
    notes = f"{_notes(n - size, level)} The reference of P(Y) is counted in {size:,} others."
    return [*found, about.of(n_samples=n - size).upper("leakage", bits, (0.0, bits), notes=notes)]


def joint_certificate(about: About, mechanism: TableMechanism, joint: Joint) -> list[Finding]:
    """The same for a table on a joint that was counted in such records."""
    assert joint.n_samples is not None
    counts = np.rint(joint.p_xy * joint.n_samples)
    named = about.of(attribute=", ".join(joint.y_names))
    return certificate_findings(named, counts, rows_for(mechanism, joint))


def reference_share(n_classes: int) -> float:
    """The share of the records that P(Y) is guessed from.

    With n records that certify, the bound pays about C/n for its level, C near 30, and (k − 1)/2m for a
    guess of k shares from m others: the best m is near this.
    """
    return min(0.1 * math.sqrt(max(n_classes - 1, 1)), 1 / 3)


def _released(counts: FloatArray, channel: Channel | None) -> FloatArray:
    return counts if channel is None else soft_counts(channel, counts)


def _notes(n: int, level: float) -> str:
    return (
        f"For everybody who sees one release of a new person's record, {100 * level:g} %: counted in {n:,} "
        "records that had no part in making the mechanism."
    )
