"""One audit under way: which attacks there are, and what is measured besides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..mechanism import TableMechanism
from ..progress import progress_bar
from .adversaries.clustering import ClusteringAdversary
from .adversaries.crossfit import fold_numbers
from .adversaries.neighbours import NeighbourAdversary
from .adversaries.numeric import RegressorAdversary, default_numeric_adversaries
from .adversaries.supervised import ClassifierAdversary, default_adversaries, neural_network
from .attack import Attack, Outcome, View, class_attack, cluster_attack, number_attack
from .bits import attribute_findings
from .context import Context
from .given import Given, Settings
from .honesty import check_honest
from .inputs import COMPONENTS, Table
from .known import density_findings_of, foreign_findings
from .tables import record_findings
from .utility import reconstruction_findings, task_attack
from .work import run_pieces

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

OWN = (ClassifierAdversary, NeighbourAdversary, ClusteringAdversary, RegressorAdversary)


class Plan:
    """The attacks of an audit. Whatever is random has a seed of its own, made from the audit's."""

    def __init__(
        self, context: Context, settings: Settings, given: Given, adversaries: Sequence[Any] | None
    ) -> None:
        self.context, self.settings, self.given = context, settings, given
        self.outcome = Outcome()
        self.not_audited: list[str] = []
        n_folds = min(settings.n_folds, given.n)
        self.folds = {
            one.name: fold_numbers(one.y, n_folds, settings.seed) for one in given.attributes + given.tasks
        }
        most = max(one.n_classes for one in given.attributes)
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
        self.names = [one.name for one in chosen]
        if len(set(self.names)) < len(self.names):
            raise InvalidInputError(f"audit: adversaries need names of their own; they are {self.names}.")

    def carry_out(self, n_jobs: int, progress: bool | None) -> Outcome:
        """Draw, attack, measure."""
        draws = self.given.draws(self.settings.n_repeats, self.settings.seed)
        for one in self.classifiers:
            if not isinstance(one, OWN):
                check_honest(one, draws[0].codes, self.given.attributes[0], self.settings.seed)
        found = self.outcome.findings
        for attribute in self.given.attributes:
            found += attribute_findings(self.context, attribute)
        found += reconstruction_findings(self.context, self.given, draws, self.outcome, self.not_audited)
        self.outcome.codes = draws[0]
        attacks = self._attacks(draws)
        with progress_bar("Auditing", progress) as report:
            results = run_pieces([piece for one in attacks for piece in one.pieces], n_jobs, report)
        for attack in attacks:
            attack.read(results)
        found += self._without_adversaries(draws[0])
        return self.outcome

    def _defaults(self, n_classes: int) -> tuple[Any, ...]:
        seed = self.settings.seed % 2**31
        numeric = any(one.values is not None for one in self.given.attributes)
        return (
            *default_adversaries(seed, n_classes),
            ClusteringAdversary(embed=True),
            ClusteringAdversary(embed=False),
            *(default_numeric_adversaries(seed) if numeric else ()),
        )

    def _views(self, draws: list[Table]) -> list[View]:
        """What is attacked with the whole set of adversaries; the reconstruction has its own."""
        views = [View("Z", [draw.codes for draw in draws])]
        m, draw = self.settings.many_draws, self.given.release.draw
        if m and draw is not None:
            total = sum(draw(np.random.default_rng([self.settings.seed, 2, i])).codes for i in range(m))
            views.append(View(f"Z × {m}", [np.asarray(total) / m]))
        elif m:
            self.not_audited.append("Many draws of each record: there is no mechanism to draw them from.")
        if self.given.X is not None:
            views.append(_view("X", self.given.X))
        else:
            self.not_audited.append(
                "The raw records X, as there are none: nothing says what was there to find."
            )
        return views

    def _attacks(self, draws: list[Table]) -> list[Attack]:
        attacks: list[Attack] = []
        common = self.context, self.outcome
        seed = self.settings.seed % 2**31
        views = self._views(draws)
        for attribute in self.given.attributes:
            folds = self.folds[attribute.name]
            for view in views:
                for adversary in self.classifiers:
                    attacks.append(class_attack(*common, adversary, view, attribute, folds, seed))
                if attribute.values is not None:
                    for regressor in self.regressors:
                        attacks.append(number_attack(*common, regressor, view, attribute, folds, seed))
            if self.outcome.reconstructed is not None and self.classifiers:
                view = _view("X_hat", Table(self.outcome.reconstructed.reshape(self.given.n, -1)))
                attacks.append(class_attack(*common, neural_network(seed), view, attribute, folds, seed))
        seeds = [
            int(np.random.default_rng([self.settings.seed, 3, i]).integers(2**31))
            for i in range(self.settings.n_repeats)
        ]
        embedding = [one for one in self.clustering if one.embed]
        plain = [one for one in self.clustering if not one.embed]
        for group in (embedding, plain):
            for view in views:
                if group and not view.on.startswith("Z ×"):
                    attacks.append(
                        cluster_attack(*common, group, view, self.given.attributes, self.folds, seeds)
                    )
        for task in self.given.tasks:
            for view in views:
                if not view.on.startswith("Z ×"):
                    attacks.append(task_attack(*common, view, task, self.folds[task.name], seed))
        return attacks

    def _without_adversaries(self, codes: Table) -> list[Any]:
        """Estimates from tables, densities and distances."""
        release, context, seed = self.given.release, self.context, self.settings.seed
        if release.letters is not None and isinstance(self.given.mechanism, TableMechanism):
            return [
                one
                for attribute in self.given.attributes
                for one in record_findings(
                    self.given.mechanism,
                    release.letters,
                    attribute,
                    self.folds[attribute.name],
                    confidence=context.confidence,
                    seed=seed,
                )
            ]
        found = foreign_findings(context, codes, self.given.attributes)
        if release.log_density is None:
            self.not_audited.append(
                "I(Z;X) and upper bounds on I(Z;Y) below H(Y): the mechanism tells no density P(z|x)."
            )
            return found
        return found + density_findings_of(context, release.log_density, codes, self.given.attributes)


def _view(on: str, table: Table) -> View:
    codes = table.narrowed()
    reduced = codes.shape[1] < table.codes.shape[1]
    return View(on, [codes], f"On the {COMPONENTS} leading principal components." if reduced else "")
