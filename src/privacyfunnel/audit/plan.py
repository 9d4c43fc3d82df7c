"""One audit under way: which attacks there are, and what is measured besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..mechanism import TableMechanism
from ..progress import progress_bar, say_first
from .adversaries.clustering import ClusteringAdversary
from .adversaries.counting import CountingAdversary
from .adversaries.crossfit import fold_numbers
from .adversaries.hidden import OrderAdversary, ResidueAdversary
from .adversaries.neighbours import NeighbourAdversary
from .adversaries.numeric import RegressorAdversary, default_numeric_adversaries
from .adversaries.supervised import ClassifierAdversary, default_adversaries, neural_network
from .attack import Attack, Outcome, View, class_attack, cluster_attack, number_attack
from .bits import attribute_findings, marked_short
from .context import Context
from .given import Given, Settings
from .honesty import check_honest
from .inputs import COMPONENTS, Attribute, Table
from .known import density_findings_of, foreign_findings
from .tables import record_findings
from .unmeasured import symbol_gaps
from .utility import reconstruction_findings, task_attack
from .work import expected_seconds, run_pieces
from .worst_off import Groups, group_findings, region_attack

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

OWN = (
    *(ClassifierAdversary, NeighbourAdversary, ClusteringAdversary, RegressorAdversary),
    *(CountingAdversary, ResidueAdversary, OrderAdversary),
)
#: Up to so many records an embedding is part of the default set: it costs a minute before it begins.
MOST_EMBEDDED = 5_000
#: Expected seconds from which on they are said before the work begins.
LONG = 10.0


@dataclass(frozen=True, eq=False)
class Judged:
    """An attribute or task on the records that some adversaries are tried on, and the folds of these."""

    attribute: Attribute
    folds: IntArray


class Plan:
    """The attacks of an audit. Whatever is random has a seed of its own, made from the audit's.

    Adversaries that cost much are tried on a sample of the records (`some`), where there are more than they
    shall learn from; those of a finite alphabet and of the order of rows on all (`whole`).
    """

    def __init__(
        self, context: Context, settings: Settings, given: Given, adversaries: Sequence[Any] | None
    ) -> None:
        self.context, self.settings, self.given = context, settings, given
        self.outcome = Outcome()
        self.not_audited: list[str] = []
        self.rows = _sample(given.n, settings)
        everything = np.arange(given.n)
        self.whole = {one.name: self._judged(one, everything) for one in given.attributes + given.tasks}
        self.some = {one.name: self._judged(one, self.rows) for one in given.attributes + given.tasks}
        # What all records share is nothing to guess.
        self.private = [one for one in given.attributes if one.n_classes > 1]
        most = max(one.n_classes for one in given.attributes)
        self.chosen_by_user = adversaries is not None
        chosen = self._defaults(most) if adversaries is None else tuple(adversaries)
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
                "predict for numbers); see privacyfunnel.audit.Adversary."
            )
        names = [one.name for one in chosen]
        if len(set(names)) < len(names):
            raise InvalidInputError(f"audit: adversaries need names of their own; they are {names}.")

    @property
    def names(self) -> list[str]:
        """The adversaries that were tried, in the order of the report."""
        found = self.outcome.findings
        return list(dict.fromkeys(one.source for one in found if one.threat_model and one.on != "X"))

    def carry_out(self, n_jobs: int, progress: bool | None) -> Outcome:
        """Draw, attack, measure."""
        draws = self.given.draws(self.settings.n_repeats, self.settings.seed)
        for one in self.classifiers:
            if not isinstance(one, OWN):
                check_honest(one, draws[0].codes, self.given.attributes[0], self.settings.seed)
        found = self.outcome.findings
        for attribute in self.given.attributes:
            judged = self.some if draws[0].symbols is None else self.whole
            found += attribute_findings(self.context, attribute, judged[attribute.name].attribute.y)
        found += reconstruction_findings(self.context, self.given, draws, self.outcome, self.not_audited)
        self.outcome.codes = draws[0]
        attacks = self._attacks(draws)
        pieces = [piece for one in attacks for piece in one.pieces]
        seconds = expected_seconds(pieces, n_jobs)
        if seconds >= LONG:
            say_first(self._announcement(seconds), progress)
        with progress_bar("Auditing", progress) as report:
            results = run_pieces(pieces, n_jobs, report)
        for attack in attacks:
            attack.read(results)
        found += self._without_adversaries(draws[0])
        self.outcome.findings = marked_short(found)
        return self.outcome

    def _announcement(self, seconds: float) -> str:
        n, tried = self.given.n, len(self.rows)
        records = f"{n:,} records" if tried == n else f"{tried:,} of {n:,} records, drawn at random"
        return f"Auditing {records}: about {_rounded(seconds)} (a rough guess)."

    def _judged(self, one: Attribute, rows: IntArray) -> Judged:
        taken = one if len(rows) == self.given.n else one.taken(rows)
        return Judged(taken, fold_numbers(taken.y, min(self.settings.n_folds, len(rows)), self.settings.seed))

    def _defaults(self, n_classes: int) -> tuple[Any, ...]:
        """The adversaries on numbers; finite alphabets and the order of rows have their own."""
        seed, effort = self.settings.seed % 2**31, self.settings.effort
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

    def _views(self, draws: list[Table]) -> list[View]:
        """What is attacked with the whole set of adversaries; the reconstruction has its own."""
        rows = self.rows
        views = [View("Z", [draw.taken(rows).codes for draw in draws], symbols=draws[0].symbols)]
        m, draw = self.settings.many_draws, self.given.release.draw
        if m and draw is not None:
            total = sum(draw(np.random.default_rng([self.settings.seed, 2, i])).codes for i in range(m))
            views.append(View(f"Z × {m}", [np.asarray(total)[rows] / m]))
        elif m:
            self.not_audited.append("Many draws of each record: there is no mechanism to draw them from.")
        if self.given.X is not None:
            views.append(_view("X", self.given.X, rows))
        else:
            self.not_audited.append(
                "The raw records X, as there are none: nothing says what was there to find."
            )
        return views

    def _attacks(self, draws: list[Table]) -> list[Attack]:
        views = self._views(draws)
        attacks = [
            attack
            for attribute in self.private
            for attack in [
                *(one for view in views for one in self._class_attacks(view, attribute.name)),
                *self._other_attacks(draws, attribute.name),
            ]
        ]
        attacks += self._cluster_attacks(views)
        seed = self.settings.seed % 2**31
        for task in self.given.tasks:
            for view in views:
                if not view.on.startswith("Z ×"):
                    some = self.some[task.name]
                    attacks.append(
                        task_attack(self.context, self.outcome, view, some.attribute, some.folds, seed)
                    )
        self._say_what_was_left_out(draws)
        return attacks

    def _class_attacks(self, view: View, name: str) -> list[Attack]:
        """Those who guess the class, and the number if it is one, from one view."""
        common, seed = (self.context, self.outcome), self.settings.seed % 2**31
        some, whole = self.some[name], self.whole[name]
        classifiers = [one for one in self.classifiers if _sees(one, view)]
        regressors = self.regressors if some.attribute.values is not None else []
        if view.symbols is not None and not self.chosen_by_user:
            counted = View(view.on, [view.symbols[:, None].astype(np.float64)], view.notes)
            counting = CountingAdversary()
            attacks = [class_attack(*common, counting, counted, whole.attribute, whole.folds, seed)]
            classifiers, regressors = [], regressors[:1]
        else:
            attacks = []
        attacks += [class_attack(*common, one, view, some.attribute, some.folds, seed) for one in classifiers]
        attacks += [number_attack(*common, one, view, some.attribute, some.folds, seed) for one in regressors]
        if view.on == "Z" and view.symbols is None:
            attacks.append(region_attack(*common, view, some.attribute, some.folds, seed))
        return attacks

    def _other_attacks(self, draws: list[Table], name: str) -> list[Attack]:
        """Attacks on the order of rows and on reconstructions."""
        common, seed = (self.context, self.outcome), self.settings.seed % 2**31
        some, whole = self.some[name], self.whole[name]
        attacks: list[Attack] = []
        orders = [one for one in self.classifiers if isinstance(one, OrderAdversary)]
        for one in orders if self.chosen_by_user else [OrderAdversary(seed)]:
            places = View("order", [np.arange(self.given.n, dtype=np.float64)[:, None]])
            attacks.append(class_attack(*common, one, places, whole.attribute, whole.folds, seed))
        if self.outcome.reconstructed is not None and self.classifiers:
            view = _view("X_hat", Table(self.outcome.reconstructed.reshape(self.given.n, -1)), self.rows)
            network = neural_network(seed)
            attacks.append(class_attack(*common, network, view, some.attribute, some.folds, seed))
        return attacks

    def _cluster_attacks(self, views: list[View]) -> list[Attack]:
        seeds = [
            int(np.random.default_rng([self.settings.seed, 3, i]).integers(2**31))
            for i in range(self.settings.n_repeats)
        ]
        embedding = [one for one in self.clustering if one.embed]
        plain = [one for one in self.clustering if not one.embed]
        attacks: list[Attack] = []
        drawn = [view for view in views if view.on in ("X", "Z")]
        folds = {name: one.folds for name, one in self.some.items()}
        attributes = [self.some[one.name].attribute for one in self.private]
        for group in (embedding, plain):
            for view in drawn:
                if group and attributes and (view.symbols is None or self.chosen_by_user):
                    attacks.append(
                        cluster_attack(self.context, self.outcome, group, view, attributes, folds, seeds)
                    )
        return attacks

    def _say_what_was_left_out(self, draws: list[Table]) -> None:
        if self.chosen_by_user:
            return
        n, tried = self.given.n, len(self.rows)
        if draws[0].symbols is not None:
            self.not_audited.append(
                "Networks, trees and clusters on the release: it has so few symbols that counts of them tell "
                "all there is to learn."
            )
            return
        if tried < n:
            self.not_audited.append(
                f"{n - tried:,} of {n:,} records: adversaries learn from {self.settings.most_learnt:,} at "
                f"most, and were tried on {tried:,} drawn at random; effort thorough takes all."
            )
        if not any(one.embed for one in self.clustering):
            self.not_audited.append("Clusters of an embedding (UMAP): part of effort thorough.")
        if self.settings.effort == "quick":
            self.not_audited.append(
                "Neural networks, nearest neighbours and clusters: left out by effort quick."
            )

    def _without_adversaries(self, codes: Table) -> list[Any]:
        """Estimates from tables, densities, distances and counts."""
        release, context, seed = self.given.release, self.context, self.settings.seed
        if release.letters is not None and isinstance(self.given.mechanism, TableMechanism):
            return [
                one
                for attribute in self.private
                for one in record_findings(
                    self.given.mechanism,
                    release.letters,
                    attribute,
                    self.whole[attribute.name].folds,
                    confidence=context.confidence,
                    seed=seed,
                )
            ]
        found = foreign_findings(context, codes, self.given.attributes)
        if codes.symbols is not None:
            for attribute in self.private:
                found += group_findings(context, attribute, Groups.of_symbols(codes.symbols, attribute))
                found += symbol_gaps(context, attribute, codes.symbols)
        else:
            for attribute in self.private:
                groups = Groups.of_columns(codes.codes, attribute)
                found += [] if groups is None else group_findings(context, attribute, groups)
        if release.log_density is None:
            self.not_audited.append(
                "I(Z;X) and upper bounds on I(Z;Y) below H(Y): the mechanism tells no density P(z|x)."
            )
            return found
        return found + density_findings_of(context, release.log_density, codes, self.given.attributes)


def _sample(n: int, settings: Settings) -> IntArray:
    """The records that costly adversaries are tried on: as many as leave the allowed number to learn from."""
    if settings.most_learnt is None:
        return np.arange(n)
    most = settings.most_learnt * settings.n_folds // (settings.n_folds - 1)
    rows = np.random.default_rng([settings.seed, 29]).permutation(n)[:most]
    return np.sort(rows).astype(np.intp)


def _sees(adversary: Any, view: View) -> bool:
    """Residues are of numbers as they are released, the order of rows is a view of its own."""
    if isinstance(adversary, ResidueAdversary):
        return view.on == "Z"
    return not isinstance(adversary, OrderAdversary)


def _view(on: str, table: Table, rows: IntArray) -> View:
    taken = table.taken(rows)
    codes = taken.narrowed()
    reduced = codes.shape[1] < taken.codes.shape[1]
    notes = f"On the {COMPONENTS} leading principal components." if reduced else ""
    return View(on, [codes], notes, table.symbols)


def _rounded(seconds: float) -> str:
    return f"{round(seconds, -1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"
