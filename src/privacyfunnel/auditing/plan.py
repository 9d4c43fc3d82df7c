"""Which attacks an audit consists of, and what it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..attributes import Attribute
from ..errors import InvalidInputError
from ..sparse import Channel
from .adversaries.bounds import check_honest, fold_numbers
from .adversaries.clustering import ClusteringAdversary, NeighbourAdversary
from .adversaries.redrawing import RedrawingAdversary
from .adversaries.supervised import (
    ClassifierAdversary,
    CountingAdversary,
    OrderAdversary,
    RegressorAdversary,
    ResidueAdversary,
    default_adversaries,
    default_numeric_adversaries,
    neural_network,
    randomised_trees,
    trees_for,
)
from .attacks import (
    Attack,
    ClassAttack,
    ClassTask,
    ClusterAttack,
    Computed,
    Judged,
    Look,
    NumberAttack,
    NumberTask,
    RegionAttack,
    View,
)
from .findings import About, Finding
from .inputs import COMPONENTS, Given, Settings, Table
from .measures.bits import attribute_findings, foreign_findings, symbol_gaps
from .measures.certified import certificate_findings
from .measures.guesses import Groups, group_findings
from .measures.kept import KeptColumn, counted_findings
from .measures.tables import record_findings
from .measures.utility import density_findings, reconstruction_findings

OWN = (
    *(ClassifierAdversary, NeighbourAdversary, ClusteringAdversary, RegressorAdversary),
    *(CountingAdversary, ResidueAdversary, OrderAdversary, RedrawingAdversary),
)
#: Up to so many records an embedding is part of the default set: it costs a minute before it begins.
MOST_EMBEDDED = 5_000
#: Expected seconds from which on they are said before the work begins.
LONG = 10.0
#: Why there is no certificate of a finite alphabet.
NOT_FRESH = (
    "Upper bounds for every adversary below H(Y): nothing says that these records had no part in making the "
    "mechanism. If they had none, pass fresh_records=True (--fresh-records)."
)


class Plan:
    """The attacks of an audit. Whatever is random has a seed of its own, made from the audit's.

    Adversaries that cost much are tried on a sample of the records (`some`), where there are more than they
    shall learn from; those of a finite alphabet and of the order of rows on all (`whole`).
    """

    def __init__(
        self,
        about: About,
        settings: Settings,
        given: Given,
        adversaries: Sequence[Any] | None,
        fresh: bool = False,
    ) -> None:
        self.about, self.settings, self.given, self.fresh = about, settings, given, fresh
        self.seed = settings.seed % 2**31
        self.rows = _sample(given.n, settings)
        everything = np.arange(given.n)
        self.whole = {one.name: self._judged(one, everything) for one in given.attributes + given.tasks}
        self.some = {one.name: self._judged(one, self.rows) for one in given.attributes + given.tasks}
        # What all records share is nothing to guess.
        self.private = [one.name for one in given.attributes if one.n_classes > 1]
        most = max(one.n_classes for one in given.attributes)
        self.chosen_by_user = adversaries is not None
        chosen = self._defaults(most) if adversaries is None else self._chosen(adversaries, most)
        self.clustering = [one for one in chosen if isinstance(one, ClusteringAdversary)]
        self.classifiers = [
            one for one in chosen if hasattr(one, "predict_proba") or hasattr(one, "cross_predict")
        ]
        self.regressors = [
            one
            for one in chosen
            if one not in self.clustering and one not in self.classifiers and hasattr(one, "predict")
        ]
        if not chosen or len(self.clustering) + len(self.classifiers) + len(self.regressors) < len(chosen):
            raise InvalidInputError(
                "audit: adversaries must be objects with name, threat_model, fit and predict_proba (or "
                "predict for numbers); see privacyfunnel.auditing.Adversary."
            )
        names = [one.name for one in chosen]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"audit: adversaries need names of their own; they are {names}.")

    def check_adversaries(self, codes: Table) -> None:
        """Refuse other people's adversaries that have seen the records they are judged on."""
        for one in self.classifiers:
            if not isinstance(one, OWN):
                check_honest(one, codes.codes, self.given.attributes[0], self.settings.seed)

    def attacks(self, draws: list[Table], copies: list[FloatArray]) -> list[Attack]:
        """All that is found about the release, in the order of the report."""
        judged = self.some if draws[0].symbols is None else self.whole
        attacks: list[Attack] = [
            Computed(attribute_findings, (self.about, one, judged[one.name].attribute.y))
            for one in self.given.attributes
        ]
        if copies and self.given.X is not None:
            attacks.append(Computed(reconstruction_findings, (self.about, self.given.X.codes, copies)))
        views = self.views(draws)
        for name in self.private:
            attacks += [one for view in views for one in self._learners(view, views, name)]
            attacks += self._others(copies, name)
        attacks += self._clusters(views)
        attacks += [
            self._task(view, task.name)
            for task in self.given.tasks
            for view in views
            if view.look is not Look.DRAWS
        ]
        return attacks + self._estimates(draws[0])

    def views(self, draws: list[Table]) -> list[View]:
        """What is attacked with the whole set of adversaries; the reconstruction has its own."""
        codes = [draw.taken(self.rows).codes for draw in draws]
        views = [View(Look.RELEASE, codes, symbols=draws[0].symbols)]
        m, draw = self.settings.many_draws, self.given.release.draw
        if m and draw is not None:
            total = sum(draw(np.random.default_rng([self.settings.seed, 2, i])).codes for i in range(m))
            views.append(View(Look.DRAWS, [np.asarray(total)[self.rows] / m], n_draws=m))
        if self.given.X is not None:
            views.append(_view(Look.RAW, self.given.X, self.rows))
        return views

    def kept(self, kept: Sequence[KeptColumn], codes: Table) -> list[Attack]:
        """What kept columns tell, alone and with Z; `codes` are one release of each record."""
        letters, table = self.given.release.letters, None
        if letters is not None:
            table = self.given.mechanism.p_z_given_x
        elif codes.symbols is not None:
            letters, table = codes.symbols, np.eye(int(codes.symbols.max()) + 1)
        return [
            one
            for name in self.private
            for one in kept_attacks(self.about, self.whole[name], kept, codes, letters, table)
        ]

    def left_out(self, draws: list[Table], copies: list[FloatArray]) -> list[str]:
        """What was not audited, in sentences."""
        given, n, tried, X = self.given, self.given.n, len(self.rows), self.given.X
        most = self.settings.most_learnt
        said = []
        if not copies and (X is None or X.symbols is None):
            said.append("Reconstruction: there is no decoder that works from Z alone, and no X_hat.")
        elif copies and X is None:
            said.append("Reconstruction error: the records X were not given.")
        if self.settings.many_draws and given.release.draw is None:
            said.append("Many draws of each record: there is no mechanism to draw them from.")
        if X is None:
            said.append("The raw records X, as there are none: nothing says what was there to find.")
        if not self.chosen_by_user and draws[0].symbols is not None:
            said.append(
                "Networks, trees and clusters on the release: it has so few symbols that counts of them tell "
                "all there is to learn."
            )
        elif not self.chosen_by_user:
            if tried < n:
                said.append(
                    f"{n - tried:,} of {n:,} records: adversaries learn from {most:,} at most, "
                    f"and were tried on {tried:,} drawn at random; effort thorough takes all."
                )
            if not any(one.embed for one in self.clustering):
                said.append("Clusters of an embedding (UMAP): part of effort thorough.")
            if self.settings.effort == "quick":
                said.append("Neural networks, nearest neighbours and clusters: left out by effort quick.")
        finite = given.release.letters is not None or draws[0].symbols is not None
        if finite and not self.fresh:
            said.append(NOT_FRESH)
        if given.release.letters is None and given.release.log_density is None:
            bounds = "" if finite else " and upper bounds on I(Z;Y) below H(Y)"
            said.append(f"I(Z;X){bounds}: the mechanism tells no density P(z|x).")
        return said

    def announcement(self, seconds: float) -> str:
        """How long the work will take, for somebody who waits; empty if it is not long."""
        if seconds < LONG:
            return ""
        n, tried = self.given.n, len(self.rows)
        records = f"{n:,} records" if tried == n else f"{tried:,} of {n:,} records, drawn at random"
        about = f"{round(seconds, -1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
        return f"Auditing {records}: about {about} (a rough guess)."

    def _judged(self, one: Attribute, rows: IntArray) -> Judged:
        taken = one if len(rows) == self.given.n else one.taken(rows)
        return Judged(taken, fold_numbers(taken.y, min(self.settings.n_folds, len(rows)), self.settings.seed))

    def _defaults(self, n_classes: int) -> tuple[Any, ...]:
        """The adversaries on numbers; finite alphabets and the order of rows have their own."""
        seed, effort = self.seed, self.settings.effort
        numeric = any(one.values is not None for one in self.given.attributes)
        with_labels = default_adversaries(seed, n_classes)
        regressors = default_numeric_adversaries(seed) if numeric else ()
        if effort == "quick":
            return (with_labels[0], with_labels[2], ResidueAdversary(seed), *regressors[:1], *regressors[2:3])
        embedded = effort == "thorough" or len(self.rows) <= MOST_EMBEDDED
        return (
            *with_labels,
            ResidueAdversary(seed),
            *((ClusteringAdversary(embed=True),) if embedded else ()),
            ClusteringAdversary(embed=False),
            *regressors,
        )

    def _chosen(self, adversaries: Sequence[Any], n_classes: int) -> tuple[Any, ...]:
        """Those of the user; a text is the name of one of ours, trees by name those for so many classes."""
        seed = self.seed
        ours: list[Any] = [*default_adversaries(seed), randomised_trees(seed)]
        ours += [ResidueAdversary(seed), OrderAdversary(seed)]
        ours += [ClusteringAdversary(True), ClusteringAdversary(False), *default_numeric_adversaries(seed)]
        if (encoded := self.given.release.encoded) is not None:
            ours.append(RedrawingAdversary(*encoded, random_state=seed))
        named = {one.name: one for one in ours}
        trees = trees_for(n_classes, seed)
        named["boosted trees"] = named[trees.name]
        if missing := [one for one in adversaries if isinstance(one, str) and one not in named]:
            known = ", ".join(named)
            raise InvalidInputError(f"audit: there is no adversary {missing[0]!r}; choose from {known}.")
        chosen = [named[one] if isinstance(one, str) else one for one in adversaries]
        # Two names may stand for the same trees.
        found = [one for i, one in enumerate(chosen) if not any(one is other for other in chosen[:i])]
        # It knows the encoder's output for each record: here for those only that it is tried on.
        redraw = [isinstance(one, RedrawingAdversary) and len(one.loc) == self.given.n for one in found]
        return tuple(one.taken(self.rows) if own else one for one, own in zip(found, redraw, strict=True))

    def _learners(self, view: View, views: Sequence[View], name: str) -> list[Attack]:
        """Those who guess the class, and the number if it is one, from one view."""
        some, whole = self.some[name], self.whole[name]
        release = next(one for one in views if one.look is Look.RELEASE)
        regressors = self.regressors if some.attribute.values is not None else []
        attacks: list[Attack] = []
        if self._counted(view):
            assert view.symbols is not None
            counted = View(view.look, [view.symbols[:, None].astype(np.float64)], view.notes)
            attacks.append(ClassAttack(self.about, CountingAdversary(), counted, whole, self.seed))
            regressors = regressors[:1]
        else:
            for one in self.classifiers:
                if not _sees(one, view):
                    continue
                single = None
                if view.look is Look.DRAWS and not self._counted(release):
                    single = ClassAttack(self.about, one, release, some, self.seed)
                attacks.append(ClassAttack(self.about, one, view, some, self.seed, single))
        attacks += [NumberAttack(self.about, one, view, some, self.seed) for one in regressors]
        if view.look is Look.RELEASE and view.symbols is None:
            attacks.append(RegionAttack(self.about, view, some, self.seed))
        return attacks

    def _counted(self, view: View) -> bool:
        """Whether counts of symbols stand for all adversaries."""
        return view.symbols is not None and not self.chosen_by_user

    def _others(self, copies: list[FloatArray], name: str) -> list[Attack]:
        """Attacks on the order of rows and on reconstructions."""
        orders = [one for one in self.classifiers if isinstance(one, OrderAdversary)]
        places = View(Look.ORDER, [np.arange(self.given.n, dtype=np.float64)[:, None]])
        attacks: list[Attack] = [
            ClassAttack(self.about, one, places, self.whole[name], self.seed)
            for one in (orders if self.chosen_by_user else [OrderAdversary(self.seed)])
        ]
        if copies and self.classifiers:
            view = _view(Look.RECONSTRUCTION, Table(copies[0].reshape(self.given.n, -1)), self.rows)
            network = neural_network(self.seed)
            attacks.append(ClassAttack(self.about, network, view, self.some[name], self.seed))
        return attacks

    def _clusters(self, views: Sequence[View]) -> list[Attack]:
        seeds = tuple(
            int(np.random.default_rng([self.settings.seed, 3, i]).integers(2**31))
            for i in range(self.settings.n_repeats)
        )
        groups = [tuple(one for one in self.clustering if one.embed == embed) for embed in (True, False)]
        judged = tuple(self.some[name] for name in self.private)
        return [
            ClusterAttack(self.about, group, view, judged, seeds)
            for group in groups
            for view in views
            if view.look is not Look.DRAWS and group and judged and not self._counted(view)
        ]

    def _task(self, view: View, name: str) -> Attack:
        """How well trees do a task on one view: before (X) and after (Z)."""
        some = self.some[name]
        if some.attribute.values is None:
            trees = trees_for(some.attribute.n_classes, self.seed)
            return ClassTask(self.about, trees, view, some, self.seed)
        return NumberTask(self.about, default_numeric_adversaries(self.seed)[2], view, some, self.seed)

    def _estimates(self, codes: Table) -> list[Attack]:
        """What needs no adversary: tables, densities, distances and counts."""
        release, about, mechanism = self.given.release, self.about, self.given.mechanism
        judged = [self.whole[name] for name in self.private]
        if release.letters is not None:
            return self._certificates(release.letters, mechanism.channel) + [
                Computed(record_findings, (about, mechanism, release.letters, one.attribute, one.folds))
                for one in judged
            ]
        attacks: list[Attack] = [Computed(foreign_findings, (about, codes, self.given.attributes))]
        if codes.symbols is not None:
            attacks += self._certificates(codes.symbols)
        attacks += [Computed(_group_findings, (about, codes, one.attribute)) for one in judged]
        if release.log_density is not None:
            arguments = about, release.log_density, codes, self.given.attributes
            attacks.append(Computed(density_findings, arguments))
        return attacks

    def _certificates(self, letters: IntArray, channel: Channel | None = None) -> list[Attack]:
        """Bounds for every adversary; none of numbers, which the audit itself has cut into classes."""
        if not self.fresh:
            return []
        attributes = [self.whole[name].attribute for name in self.private]
        n_x = int(letters.max()) + 1 if channel is None else len(channel)
        return [
            Computed(_certificate, (self.about, one, letters, n_x, channel))
            for one in attributes
            if one.values is None
        ]


def _certificate(
    about: About, attribute: Attribute, letters: IntArray, n_x: int, channel: Channel | None
) -> list[Finding]:
    counts = np.zeros((n_x, attribute.n_classes))
    np.add.at(counts, (letters, attribute.y), 1)
    return certificate_findings(about.of(attribute), counts, channel)


def kept_attacks(
    about: About,
    judged: Judged,
    kept: Sequence[KeptColumn],
    codes: Table,
    letters: IntArray | None = None,
    table: FloatArray | None = None,
) -> list[Attack]:
    """Each kept column, alone and with Z, and all with Z: counted where P(z|x) is known, else learnt."""
    seed, groups = about.seed % 2**31, [(one,) for one in kept]
    common = about, judged.attribute, judged.folds
    trees = trees_for(judged.attribute.n_classes, seed)
    attacks: list[Attack] = []
    for (column,) in groups:
        attacks.append(Computed(counted_findings, (*common, (column,))))
        if column.notes:  # bins hide what the last digits tell
            view = View(Look.KEPT, [column.features], columns=(column.name,))
            attacks.append(ClassAttack(about, ResidueAdversary(seed), view, judged, seed, brief=True))
    for group in [*groups, *([tuple(kept)] if len(kept) > 1 else [])]:
        if table is not None:
            attacks.append(Computed(counted_findings, (*common, group, letters, table)))
        if table is None or len(group) > 1:
            # Combinations of several columns are seen too rarely to be counted.
            features = np.column_stack([codes.narrowed(), *(one.features for one in group)])
            names = tuple(one.name for one in group)
            view = View(Look.KEPT, [features], columns=names, with_z=True)
            attacks.append(ClassAttack(about, trees, view, judged, seed, brief=True))
    return attacks


def _group_findings(about: About, codes: Table, attribute: Attribute) -> list[Finding]:
    """The worst-off symbol, or value of a column of few values."""
    if codes.symbols is None:
        groups = Groups.of_columns(codes.codes, attribute)
        return [] if groups is None else group_findings(about, attribute, groups)
    found = group_findings(about, attribute, Groups.of_symbols(codes.symbols, attribute))
    return found + symbol_gaps(about, attribute, codes.symbols)


def _sample(n: int, settings: Settings) -> IntArray:
    """The records that costly adversaries are tried on: as many as leave the allowed number to learn from."""
    if settings.most_learnt is None:
        return np.arange(n)
    most = settings.most_learnt * settings.n_folds // (settings.n_folds - 1)
    rows = np.random.default_rng([settings.seed, 29]).permutation(n)[:most]
    return np.sort(rows).astype(np.intp)


def _sees(adversary: Any, view: View) -> bool:
    """Residues and draws are of numbers as they are released, the order of rows is a view of its own."""
    if isinstance(adversary, (ResidueAdversary, RedrawingAdversary)):
        return view.look is Look.RELEASE
    return not isinstance(adversary, OrderAdversary)


def _view(look: Look, table: Table, rows: IntArray) -> View:
    taken = table.taken(rows)
    codes = taken.narrowed()
    reduced = codes.shape[1] < taken.codes.shape[1]
    notes = f"On the {COMPONENTS} leading principal components." if reduced else ""
    return View(look, [codes], notes, table.symbols)
