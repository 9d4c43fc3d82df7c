"""The attacks of an audit: which adversary on which view of the records, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .adversaries.clustering import ClusteringAdversary, cross_matched, match_clusters
from .adversaries.crossfit import cross_calibrated
from .adversaries.numeric import cross_shrunk
from .adversaries.protocol import Adversary, CrossPredictor, NumericAdversary
from .bits import bits_finding
from .class_tables import ClassTable
from .context import Context
from .findings import Finding
from .graph import NeighbourGraph
from .guesses import difference_finding, guess_findings
from .inputs import Attribute, Table
from .intervals import clipped, repeated_interval
from .numbers import number_findings
from .work import Piece, class_pieces, class_result, cluster_piece, number_piece

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

RAW = "The same adversary before anything is released: it sees the raw records instead of codes."
DECODER = (
    "Sees the released codes, owns the decoder, knows the private attribute of other people whose codes it "
    "also has, and learns from their reconstructions with a neural network."
)
MANY = "{0} It owns the encoder, draws {1} codes of each record and averages them."


@dataclass(frozen=True, eq=False)
class View:
    """Something to attack.

    Attributes
    ----------
    on : str
        As in `Finding`.
    codes : list of (n, d) arrays
        One a repeat; supervised adversaries take the first.
    notes : str
        What was done to the records before.
    symbols : (n,) int array, optional
        Of all records, where the view is a finite alphabet.
    """

    on: str
    codes: list[FloatArray]
    notes: str = ""
    symbols: IntArray | None = None


@dataclass(eq=False)
class Attack:
    """The pieces of work of one adversary on one view, and how to read their results."""

    pieces: list[Piece]
    read: Callable[[dict[Hashable, Any]], None] = field(repr=False)


@dataclass(eq=False)
class Outcome:
    """What the attacks found; guesses by (attribute, adversary, view)."""

    findings: list[Finding] = field(default_factory=list)
    tables: list[ClassTable] = field(default_factory=list)
    guesses: dict[tuple[str, str, str], IntArray] = field(default_factory=dict)
    codes: Table | None = None
    reconstructed: FloatArray | None = None


def class_attack(
    context: Context,
    outcome: Outcome,
    adversary: Adversary | CrossPredictor,
    view: View,
    attribute: Attribute,
    folds: IntArray,
    seed: int,
) -> Attack:
    """An adversary with labels: cross-fitted, calibrated, judged on records it has not seen."""
    key = (attribute.name, view.on, adversary.name)
    codes = view.codes[0]
    pieces = class_pieces(key, adversary, codes, attribute.y, folds, attribute.n_classes, seed)
    name, threat_model = adversary.name, _threat(adversary, view)
    if view.on == "X_hat":
        name, threat_model = "decoder-aware network", DECODER
    if view.on.startswith("Z ×"):
        threat_model = MANY.format(threat_model, view.on.removeprefix("Z × "))

    def read(results: dict[Hashable, Any]) -> None:
        raw = class_result(results, key, folds)
        q, calibration = cross_calibrated(raw, attribute.y, folds)
        guesses = q.argmax(axis=1)
        found, table = guess_findings(
            context, attribute, guesses[None, :], name, threat_model, view.on, view.notes
        )
        n_train = len(folds) - int(np.bincount(folds).max())
        bits = bits_finding(context, attribute, q, calibration, n_train, name, threat_model, view.on)
        outcome.findings += [*found, bits]
        outcome.tables.append(table)
        outcome.guesses[attribute.name, adversary.name, view.on] = guesses
        single = outcome.guesses.get((attribute.name, adversary.name, "Z"))
        if view.on.startswith("Z ×") and single is not None:
            outcome.findings.append(
                difference_finding(context, attribute, guesses, single, name, view.on, threat_model)
            )

    return Attack(pieces, read)


def _threat(adversary: Any, view: View) -> str:
    return RAW if view.on == "X" else str(adversary.threat_model)


def number_attack(
    context: Context,
    outcome: Outcome,
    adversary: NumericAdversary,
    view: View,
    attribute: Attribute,
    folds: IntArray,
    seed: int,
) -> Attack:
    """An adversary for numbers."""
    key = (attribute.name, view.on, adversary.name, "numbers")
    truth = attribute.values
    assert truth is not None
    text = f"{adversary.name} on {view.on}"
    piece = number_piece(key, adversary, view.codes[0], truth, folds, seed, text)

    def read(results: dict[Hashable, Any]) -> None:
        values = cross_shrunk(results[key], truth, folds)
        outcome.findings += number_findings(
            context, attribute, values, adversary.name, _threat(adversary, view), view.on
        )

    return Attack([piece], read)


def cluster_attack(
    context: Context,
    outcome: Outcome,
    adversaries: Sequence[ClusteringAdversary],
    view: View,
    attributes: Sequence[Attribute],
    folds: dict[str, IntArray],
    seeds: Sequence[int],
) -> Attack:
    """Clusterings of one view, repeated with new seeds, and new codes where there are some.

    The clusters do not depend on the attribute, so all attributes share them.
    """
    sizes = tuple(sorted({attribute.n_classes for attribute in attributes}))
    embed = adversaries[0].embed
    # One set of codes: one graph of neighbours serves all embeddings. New codes: each piece makes its own.
    graph = NeighbourGraph.of(view.codes[0], 14) if embed and len(view.codes) == 1 else None
    pieces = [
        cluster_piece(
            ("clusters", embed, view.on, repeat),
            tuple(adversaries),
            view.codes[repeat % len(view.codes)],
            graph,
            sizes,
            seed,
            f"{adversaries[0].name} on {view.on}",
        )
        for repeat, seed in enumerate(seeds)
    ]

    def read(results: dict[Hashable, Any]) -> None:
        parts = [results[piece.key] for piece in pieces]
        for adversary in adversaries:
            for attribute in attributes:
                clusters = [part[1][adversary.name, attribute.n_classes] for part in parts]
                found, table = _clusters_findings(
                    context, adversary, attribute, clusters, folds[attribute.name], view
                )
                outcome.findings += found
                outcome.tables.append(table)

    return Attack(pieces, read)


def _clusters_findings(
    context: Context,
    adversary: ClusteringAdversary,
    attribute: Attribute,
    clusters: list[IntArray],
    folds: IntArray,
    view: View,
) -> tuple[list[Finding], ClassTable]:
    y, n_classes = attribute.y, attribute.n_classes
    guesses = np.stack([cross_matched(labels, y, folds, n_classes) for labels in clusters])
    matched = [
        match_clusters(labels, y, int(labels.max()) + 1, n_classes)[labels] == y for labels in clusters
    ]
    repeats = f"{len(clusters)} repeats, whose spread is in the interval. {view.notes}".strip()
    found, table = guess_findings(
        context,
        attribute,
        guesses,
        adversary.name,
        _threat(adversary, view),
        view.on,
        f"Clusters named after records of other folds; {repeats}",
    )
    hits = np.stack(matched).astype(np.float64)
    value = float(hits.mean())
    found.append(
        context.finding(
            "matched success",
            value,
            "estimate",
            "share",
            adversary.name,
            attribute,
            view.on,
            clipped(repeated_interval(hits, context.confidence), value, 0.0, 1.0),
            threat_model=_threat(adversary, view),
            notes=f"Clusters named after the audited records themselves; {repeats}",
        )
    )
    return found, table
