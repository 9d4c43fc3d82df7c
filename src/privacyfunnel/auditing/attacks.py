"""Attacks: an adversary on a view of the records, as pieces of work for several cores, and what they found.

An attack is a value: `pieces()` is what there is to compute, `findings(results)` reads the results of all
pieces and changes nothing, so that neither the order of attacks nor where they ran shows in a report.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import Attribute
from ..progress import Report
from .adversaries.bounds import Calibration, cross_calibrated, cross_fitted, predict, reseeded
from .adversaries.clustering import ClusteringAdversary, NeighbourGraph, cross_matched, match_clusters
from .adversaries.protocol import CrossPredictor
from .adversaries.supervised import cross_shrunk, predict_values
from .findings import About, Finding, kept_view, ranking, repeated_interval, wilson_interval
from .measures.bits import bits_finding
from .measures.guesses import (
    REGIONS,
    difference_finding,
    explained_variance,
    guess_findings,
    number_findings,
    region_findings,
    worst_region,
)
from .published import ClassTable

Results = Mapping[Hashable, Any]
Found = tuple[list[Finding], list[ClassTable]]

RAW = "The same adversary before anything is released: it sees the raw records instead of codes."
DECODER = (
    "Sees the released codes, owns the decoder, knows the private attribute of other people whose codes it "
    "also has, and learns from their reconstructions with a neural network."
)
MANY = "{0} It owns the encoder, draws {1} codes of each record and averages them."
# Cells of all tables below which starting other processes costs more than they save.
SMALL = 200_000
#: Seconds until an embedding begins: numba compiles it in every process.
EMBEDDING = 30.0


class Look(Enum):
    """What an adversary looks at."""

    RELEASE = "one code of each record"
    DRAWS = "the mean of several codes of each record"
    RAW = "the records themselves"
    RECONSTRUCTION = "what a decoder makes of the codes"
    ORDER = "the place of each record in the file"
    KEPT = "columns handed out beside the release, alone or with it"


@dataclass(frozen=True, eq=False)
class View:
    """Something to attack."""

    look: Look
    codes: list[FloatArray] = field(repr=False)  # one a repeat; supervised adversaries take the first
    notes: str = ""  # what was done to the records before
    symbols: IntArray | None = field(default=None, repr=False)  # of all records, in a finite alphabet
    n_draws: int = 1  # codes of each record in the mean, of `Look.DRAWS`
    columns: tuple[str, ...] = ()  # of `Look.KEPT`
    with_z: bool = False  # whether these are seen together with Z

    @property
    def on(self) -> str:
        """What `Finding.on` calls it."""
        if self.look is Look.KEPT:
            return kept_view(self.columns, self.with_z)
        if self.look is Look.DRAWS:
            return f"Z × {self.n_draws}"
        return _ON[self.look]


_ON = {Look.RELEASE: "Z", Look.RAW: "X", Look.RECONSTRUCTION: "X_hat", Look.ORDER: "order"}


@dataclass(frozen=True, eq=False)
class Judged:
    """An attribute or task on the records that some adversaries are tried on, and the folds of these."""

    attribute: Attribute
    folds: IntArray

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1


class Attack(Protocol):
    """What is computed, and what the results say."""

    def pieces(self) -> list[Piece]:
        """The work, each piece by itself."""

    def findings(self, results: Results) -> Found:
        """Findings and tables from the results of all pieces, by their keys."""


@dataclass(frozen=True, eq=False)
class Computed:
    """Findings that need no adversary: a function and what it is called with."""

    function: Callable[..., list[Finding]]
    arguments: tuple[Any, ...] = field(repr=False)

    def pieces(self) -> list[Piece]:
        return []

    def findings(self, results: Results) -> Found:
        return self.function(*self.arguments), []


@dataclass(frozen=True, eq=False)
class LearnedAttack:
    """One adversary with labels on one view: cross-fitted, judged on records it has not seen."""

    about: About
    adversary: Any
    view: View
    judged: Judged = field(repr=False)
    seed: int

    @property
    def key(self) -> tuple[Hashable, ...]:
        return type(self).__name__, self.judged.attribute.name, self.view.on, self.adversary.name

    @property
    def text(self) -> str:
        return f"{self.adversary.name} on {self.view.on}"

    @property
    def subject(self) -> About:
        """What its findings share."""
        name, threat_model = self.adversary.name, _threat(self.adversary, self.view)
        if self.view.look is Look.RECONSTRUCTION:
            name, threat_model = "decoder-aware network", DECODER
        if self.view.look is Look.DRAWS:
            threat_model = MANY.format(threat_model, self.view.n_draws)
        return self.about.of(self.judged.attribute, source=name, threat_model=threat_model, on=self.view.on)

    def cost(self, n_classes: int) -> float:
        """Seconds of a fold, roughly."""
        n, d = self.view.codes[0].shape
        return _cost(self.adversary, n, d, n_classes)


@dataclass(frozen=True, eq=False)
class ClassAttack(LearnedAttack):
    """An adversary that guesses classes; calibrated.

    `single` is the same adversary on one code of each record, where this one sees several: then the
    difference of the two is found too. `brief` leaves success and bits only.
    """

    single: ClassAttack | None = None
    brief: bool = False

    def pieces(self) -> list[Piece]:
        """A piece a fold, or one piece where the adversary predicts all folds at once."""
        one, codes, folds = self.judged.attribute, self.view.codes[0], self.judged.folds
        cost = self.cost(one.n_classes)
        if isinstance(self.adversary, CrossPredictor):
            arguments = self.adversary, codes, one.y, folds, one.n_classes
            return [Piece((*self.key, 0), cross_fitted, arguments, cost, self.text)]
        return [
            Piece(
                (*self.key, fold),
                _fit_fold,
                (self.adversary, codes, one.y, folds, fold, one.n_classes, self.seed),
                cost,
                self.text,
            )
            for fold in range(self.judged.n_folds)
        ]

    def probabilities(self, results: Results) -> tuple[FloatArray, Calibration]:
        """The cross-fitted and calibrated P(y|z), (n, n_classes), and the mean calibration."""
        folds, y = self.judged.folds, self.judged.attribute.y
        q: FloatArray = results[(*self.key, 0)]
        if not isinstance(self.adversary, CrossPredictor):
            q = np.empty((len(folds), q.shape[1]))
            for fold in range(self.judged.n_folds):
                q[folds == fold] = results[(*self.key, fold)]
        return cross_calibrated(q, y, folds)

    def findings(self, results: Results) -> Found:
        attribute, folds, about = self.judged.attribute, self.judged.folds, self.subject
        q, calibration = self.probabilities(results)
        guesses = q.argmax(axis=1)
        noted = about.of(notes=self.view.notes)
        found, table = guess_findings(noted, attribute, guesses[None, :], self.view.look is Look.RAW)
        n_train = len(folds) - int(np.bincount(folds).max())
        found.append(bits_finding(about, attribute, q, calibration, n_train))
        if self.single is not None:
            one = self.single.probabilities(results)[0].argmax(axis=1)
            found.append(difference_finding(about, attribute, guesses, one))
        if self.brief:
            return [one for one in found if one.quantity in ("success", "leakage")], []
        return found, [table]


@dataclass(frozen=True, eq=False)
class NumberAttack(LearnedAttack):
    """An adversary that predicts numbers; drawn towards their mean."""

    @property
    def truth(self) -> FloatArray:
        values = self.judged.attribute.values
        assert values is not None
        return values

    def pieces(self) -> list[Piece]:
        arguments = self.adversary, self.view.codes[0], self.truth, self.judged.folds, self.seed
        return [Piece(self.key, _fit_numbers, arguments, self.judged.n_folds * self.cost(1), self.text)]

    def values(self, results: Results) -> FloatArray:
        """The predicted values."""
        return cross_shrunk(results[self.key], self.truth, self.judged.folds)

    def findings(self, results: Results) -> Found:
        return number_findings(self.subject, self.truth, self.values(results)), []


class ClassTask(ClassAttack):
    """How well classes that the user named are predicted."""

    def findings(self, results: Results) -> Found:
        y, about = self.judged.attribute.y, self.subject.of(threat_model="", notes=self.view.notes)
        q = self.probabilities(results)[0]
        hits = int((q.argmax(axis=1) == y).sum())
        low, high = wilson_interval(hits, len(y), about.confidence)
        found = [about.lower("task accuracy", hits / len(y), (float(low), float(high)))]
        if self.judged.attribute.n_classes == 2 and 0 < y.sum() < len(y):
            found.append(about.lower("task auc", *ranking(q[:, 1], y == 1, about.confidence)))
        return found, []


class NumberTask(NumberAttack):
    """How well numbers that the user named are predicted."""

    def findings(self, results: Results) -> Found:
        about = self.subject.of(threat_model="", notes=self.view.notes)
        share = explained_variance(self.truth, self.values(results), about.confidence)
        return [about.lower("task explained variance", *share)], []


@dataclass(frozen=True, eq=False)
class RegionAttack:
    """The region of codes that tells most: found by a tree on other folds, judged on the records held out."""

    about: About
    view: View
    judged: Judged = field(repr=False)
    seed: int

    def pieces(self) -> list[Piece]:
        one, codes = self.judged.attribute, self.view.codes[0]
        arguments = codes, one.y, self.judged.folds, one.n_classes, self.seed
        return [
            Piece((*self.key, fold), worst_region, (*arguments, fold), 2e-7 * codes.size, REGIONS)
            for fold in range(self.judged.n_folds)
        ]

    @property
    def key(self) -> tuple[Hashable, ...]:
        return "region", self.judged.attribute.name, self.view.on

    def findings(self, results: Results) -> Found:
        parts = [results[(*self.key, fold)] for fold in range(self.judged.n_folds)]
        size, hits, expected = (sum(part[i] for part in parts) for i in range(3))
        return region_findings(self.about, self.judged.attribute, size, hits, expected), []


@dataclass(frozen=True, eq=False)
class ClusterAttack:
    """Clusterings of one view, repeated with new seeds, and new codes where there are some.

    The clusters do not depend on the attribute, so all attributes share them, and adversaries that embed
    share the embedding.
    """

    about: About
    adversaries: tuple[ClusteringAdversary, ...]
    view: View
    judged: tuple[Judged, ...] = field(repr=False)
    seeds: tuple[int, ...]

    @property
    def key(self) -> tuple[Hashable, ...]:
        return "clusters", self.adversaries[0].embed, self.view.on

    def pieces(self) -> list[Piece]:
        first, codes = self.adversaries[0], self.view.codes
        sizes = tuple(sorted({one.attribute.n_classes for one in self.judged}))
        # One set of codes: one graph of neighbours serves all embeddings. New codes: each makes its own.
        graph = NeighbourGraph.of(codes[0], 14) if first.embed and len(codes) == 1 else None
        pieces = []
        for repeat, seed in enumerate(self.seeds):
            Z = codes[repeat % len(codes)]
            cost = 2e-3 * len(Z) if first.embed else 2e-7 * Z.size * sum(sizes)
            arguments = self.adversaries, Z, graph, sizes, seed
            setup = EMBEDDING if first.embed else 0.0
            text = f"{first.name} on {self.view.on}"
            pieces.append(Piece((*self.key, repeat), _cluster, arguments, cost, text, setup))
        return pieces

    def findings(self, results: Results) -> Found:
        parts = [results[(*self.key, repeat)] for repeat in range(len(self.seeds))]
        found: list[Finding] = []
        tables = []
        for adversary in self.adversaries:
            for one in self.judged:
                clusters = [part[adversary.name, one.attribute.n_classes] for part in parts]
                more, table = self._of_clusters(adversary, one, clusters)
                found += more
                tables.append(table)
        return found, tables

    def _of_clusters(
        self, adversary: ClusteringAdversary, judged: Judged, clusters: list[IntArray]
    ) -> tuple[list[Finding], ClassTable]:
        attribute, y, n_classes = judged.attribute, judged.attribute.y, judged.attribute.n_classes
        guesses = np.stack([cross_matched(labels, y, judged.folds, n_classes) for labels in clusters])
        matched = [
            match_clusters(labels, y, int(labels.max()) + 1, n_classes)[labels] == y for labels in clusters
        ]
        repeats = f"{len(clusters)} repeats, whose spread is in the interval. {self.view.notes}".strip()
        about = self.about.of(
            attribute,
            source=adversary.name,
            threat_model=_threat(adversary, self.view),
            on=self.view.on,
            notes=f"Clusters named after records of other folds; {repeats}",
        )
        found, table = guess_findings(about, attribute, guesses, self.view.look is Look.RAW)
        hits = np.stack(matched).astype(np.float64)
        ends = repeated_interval(hits, about.confidence)
        notes = f"Clusters named after the audited records themselves; {repeats}"
        value = float(hits.mean())
        found.append(about.estimate("matched success", value, ends, within=(0.0, 1.0), notes=notes))
        return found, table


def _threat(adversary: Any, view: View) -> str:
    return RAW if view.look is Look.RAW else str(adversary.threat_model)


@dataclass(frozen=True, eq=False)
class Piece:
    """One piece of work: `function(*arguments)`, whose result is kept under `key`."""

    key: Hashable
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    cost: float = 0.0  # seconds on one core, roughly: the costly ones begin first
    text: str = ""  # for the progress bar
    setup: float = 0.0  # seconds before the first such piece of a process begins


def run_pieces(pieces: Sequence[Piece], n_jobs: int, report: Report) -> dict[Hashable, Any]:
    """The results by key. Every piece has its own seed, so their order and place change nothing."""
    ordered = sorted(pieces, key=lambda piece: -piece.cost - piece.setup)
    results: dict[Hashable, Any] = {}
    size = sum(part.size for piece in pieces for part in piece.arguments if isinstance(part, np.ndarray))
    if n_jobs == 1 or size < SMALL:
        for done, piece in enumerate(ordered):
            report(done, len(ordered), piece.text)
            results[piece.key] = piece.function(*piece.arguments)
        return results
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    calls = (delayed(_numbered)(i, piece.function, piece.arguments) for i, piece in enumerate(ordered))
    report(0, len(ordered), "starting")
    with warnings.catch_warnings():
        # joblib replaces a worker whose memory has grown and warns, in a thread of its own: where warnings
        # are errors, that thread would die and the results never come.
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs", category=UserWarning)
        for done, (i, result) in enumerate(parallel(calls), 1):
            results[ordered[i].key] = result
            report(done, len(ordered), ordered[i].text)
    return results


def expected_seconds(pieces: Sequence[Piece], n_jobs: int) -> float:
    """How long the pieces will take, roughly: at least the longest, and all of them shared among cores."""
    cores = n_jobs if n_jobs > 0 else os.cpu_count() or 1
    longest = max((piece.cost for piece in pieces), default=0.0)
    setup = max((piece.setup for piece in pieces), default=0.0)
    return setup + max(sum(piece.cost for piece in pieces) / cores, longest)


def _numbered(i: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[int, Any]:
    return i, function(*arguments)


def _fit_fold(
    adversary: Any, Z: FloatArray, y: IntArray, folds: IntArray, fold: int, n_classes: int, seed: int
) -> FloatArray:
    held = folds == fold
    # A copy: fits of one adversary may run at the same time.
    return predict(reseeded(adversary, seed), Z[~held], y[~held], Z[held], n_classes)


def _fit_numbers(adversary: Any, Z: FloatArray, values: FloatArray, folds: IntArray, seed: int) -> FloatArray:
    result = np.empty(len(Z))
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        result[held] = predict_values(reseeded(adversary, seed), Z[~held], values[~held], Z[held])
    return result


def _cluster(
    adversaries: tuple[ClusteringAdversary, ...],
    Z: FloatArray,
    graph: NeighbourGraph | None,
    sizes: tuple[int, ...],
    seed: int,
) -> dict[tuple[str, int], IntArray]:
    """One embedding for several adversaries: their clusters by name and number of classes."""
    points = adversaries[0].embedding(Z, seed, graph)
    return {(one.name, size): one.clusters(points, size, seed) for one in adversaries for size in sizes}


def _cost(adversary: Any, n: int, d: int, n_classes: int) -> float:
    """Seconds that a fit on n records takes on one core, roughly; an unknown one counts as trees."""
    name = adversary.name
    if "neighbour" in name:
        return 1e-10 * n**2 * d
    if "network" in name:
        return 1.2e-6 * n * (d + 30)
    if "logistic" in name or "ridge" in name:
        return 8e-8 * n * d * n_classes
    if "residues" in name or "order" in name:
        return 1e-6 * n * (d + 10)
    if "counts" in name:
        return 1e-7 * n
    return 0.3 + 8e-7 * n * d * (n_classes if n_classes > 2 else 1)
