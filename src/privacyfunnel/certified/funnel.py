"""CertifiedFunnel: records in, records of the same kind out, with a bound that no adversary beats."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..arrays import FloatArray, IntArray
from ..channels import to_one
from ..checks import finite_number, whole_number
from ..errors import InfeasibleError, InvalidInputError, shortened
from ..measured import Measured
from ..measures import LEAKAGES
from ..mechanism import Rng, TableMechanism
from ..pipelines import PrivateAtFit
from ..solution import Solution
from .categories import shares_in_tens
from .cells import Cells
from .choice import CertifiedFrontier, CertifiedPoint
from .making import Plan, choose_cells
from .material import Material
from .problem import SHARES, Limits
from .readers import ArrayReader, is_frame, taken
from .reading import Private, Read
from .rule import CertifiedRule
from .sorting import Certifying, Counting, Sorted
from .streamed import StreamedRead, comes_in_batches
from .tables import ColumnTables, TableSchema
from .twins import warn_of_twins
from .verdict import Guess, Verdict

UTILITIES = ("distance", "information", "task")


class CertifiedFunnel(PrivateAtFit, BaseEstimator):  # type: ignore[misc]
    """Release records that stay useful and tell at most so much about a private attribute.

    Records are quantised into cells, and the funnel is solved on the cells: of all rules P(symbol | cell)
    whose leakage keeps a share of the limit, the most useful one. The records that certify have no part in
    any of this. On them the leakage of Z about Y has an upper bound that holds for every adversary, and the
    most daring rule whose bound keeps the limit is taken. The guarantee, with the stated confidence: of a new
    person's record from the same population nobody learns more than `max_leakage` about the private
    attribute from one release. See docs/certified.md for the proof and its limits.

    Parameters
    ----------
    max_leakage : float, mapping, function or None
        The limit: bits for "information", a share of people for "success" and "parity". A mapping gives each
        private attribute a limit of its own, all certified together; a number is for their combination, and
        with it for each. Of guesses ("success") a number is for each, and with it for their combination: who
        guesses wrong about one of two may be right about the other, always. A function is given the shares of
        the private classes among the records that solve, to ten records, for limits such as "5 % more than by
        chance". None takes the knee of the certified trade-off.
    leakage : {"information", "success", "parity"}
        What telling means: bits about Y; how often the best guess is right; how differently any decision that
        is made from the release can treat two private classes.
    n_cells : int or "auto"
        How many kinds of records are told apart. "auto" rehearses a few numbers around
        0.2 · n_certify · bits/(|Y|−1) on the records that solve.
    utility : {"distance", "information", "task"}, optional
        What useful means: closeness to the record, bits about the cell, bits about the task. By default
        "task" where fit is given one, else "distance".
    cells : "kmeans", "tree", or a clusterer or transformer
        Who makes the cells. "tree" splits records by what they say about the task. A clusterer's own cells
        are taken; of the codes of a transformer, or of the encoder of a learned funnel, k-means makes cells.
        One that is fitted already must have been fitted on other records than these.
    confidence : float
    random_state : None, int or Generator
        For fit alone: releases draw from the operating system's entropy.

    Attributes
    ----------
    certificate_ : Measured
        The guarantee. `certificates_` has it by attribute.
    verdict_ : Verdict
        What is kept and what can be guessed; `str` is one sentence.
    solution_ : Solution
        The release on cells, on the records that solve; None where the trade-off's knee was taken.
    frontier_ : CertifiedFrontier
        The trade-off, certified at points that were fixed beforehand; made when it is first asked for.
    rule_ : CertifiedRule
        What releases. It holds no private value.
    notes_ : sentences
    """

    def __init__(
        self,
        max_leakage: float | Mapping[str, float] | Callable[[FloatArray], float] | None = 0.05,
        *,
        leakage: str = "information",
        n_cells: int | str = "auto",
        utility: str | None = None,
        cells: Any = "kmeans",
        confidence: float = 0.95,
        random_state: Any = None,
    ) -> None:
        self.max_leakage = max_leakage
        self.leakage = leakage
        self.n_cells = n_cells
        self.utility = utility
        self.cells = cells
        self.confidence = confidence
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, private: Any = None, task: Any = None, groups: Any = None
    ) -> Self:
        """Make the rule from records X and their private attributes, and certify it.

        Parameters
        ----------
        X : array (n, …), images, frame, or records that come in batches
            A file, a folder of Parquet files, a dataset or reader of pyarrow, a lazy frame of polars, a
            relation of DuckDB: cells are made from a sample, and the others are counted batch by batch;
            `private` and `task` are then names of columns. docs/certified.md says more.
        y : private attributes, where `private` is not given: in a pipeline y is the target, so give it there
        private : one column or several, or names of columns of the frame X
            Classes; numbers that are not all whole are cut into classes of equal size. Needed here alone.
        task : column, or the name of one, optional
            What the release is to be useful for. A target and not an input: releasing needs no task.
        groups : column, or the name of one, optional
            Who a record belongs to, where people have several.
        """
        if private is not None and y is not None:
            raise InvalidInputError("fit: y is the private attribute where private is not given; pass one.")
        made = type(self)(**self.get_params(deep=False))  # a fit that fails leaves this one as it was
        made._fit(X, y if private is None else private, task, groups)
        for name in [name for name in vars(self) if name.endswith("_")]:  # of an earlier fit
            del self.__dict__[name]
        self.__dict__.update(vars(made))  # what a pipeline has put here during the fit stays
        return self

    def _fit(self, X: Any, private: Any, task: Any, groups: Any) -> None:
        rng = np.random.default_rng(self.random_state)
        read = (StreamedRead if comes_in_batches(X) else Read).of(X, private, task, groups, rng)
        try:
            if groups is None:
                warn_of_twins(read.X, read.private.values)
            self._fit_to(read, rng)
        finally:
            read.close()

    def _fit_to(self, read: Read, rng: np.random.Generator) -> None:
        plan = self._plan(read)
        shaping = read.shaping(rng)
        reader = read.reader(shaping)
        if not reader.n_features:
            raise InvalidInputError(
                "fit: no column tells records apart, for none has two values that 10 of the "
                f"{len(shaping):,} records share from which the rule is made; pass a column that varies, "
                "more records, or put values into groups."
            )
        if isinstance(reader, ArrayReader) and len(reader.shape) > 1:
            plan = replace(plan, shape=reader.shape)
        sample = read.material(reader, shaping)
        cells, at = choose_cells(plan, sample, read.n_certifying, rng)
        solved, held_out = Counting(plan, cells, sample, at), Certifying(plan, cells, sample.points)
        for part, certifies in read.parts(reader, shaping):
            if certifies and held_out.sums is None:
                self._refuse_trained_on(cells, part)
            (held_out if certifies else solved).add(part)
        assert held_out.sums is not None
        people = Sorted(cells, at, solved.counts, solved.tasks, held_out.sums)
        solution = None
        if plan.limits is None:
            made = people.made(plan, sample.points)
        else:
            people, made, solution = people.kept(plan, sample.points)
        self.made_, self.held_out_, self.n_features_in_ = made, people.sums, reader.n_features
        self.score_before_ = held_out.score()
        self.utility_ = plan.utility
        self.task_name_ = None if read.task is None else read.task.name
        rule = CertifiedRule(
            reader,
            people.cells,
            TableMechanism.constant(made.problem.joint),
            shares_in_tens(people.sizes),
            made.means,
            plan.private.names,
            made.problem.bound(0.0),
        )
        self.notes_ = read.notes
        self.people_: _People | None = None
        if is_frame(read.X):
            frame = taken(read.X, shaping)
            self.people_ = _People(TableSchema.read(frame, drop=read.unreleased), frame, people.at)
            self.notes_ += self.people_.schema.report
        self._certify(plan, rule, solution)

    def _certify(self, plan: Plan, rule: CertifiedRule, solution: Solution | None) -> None:
        """Take the release that keeps the limit, or the knee of the trade-off."""
        problem = self.made_.problem
        if plan.limits is None or solution is None:
            self.rule_ = rule
            self._take(self.frontier_.knee)
            return
        self.solution_: Solution | None = solution
        if isinstance(plan.limits, Mapping):
            self.certificates_ = {name: problem.bound(limit) for name, limit in plan.limits.items()}
            certificate = problem.bound(1.0)
            certificate = replace(certificate, note=f"of every limit: {certificate.note}", unit="")
        else:
            certificate = problem.bound(plan.limits)
            self.certificates_ = {" × ".join(plan.private.names): certificate}
        table = solution.mechanism.p_z_given_x
        # Which candidate is taken depends on the records that certify: all of them are allowed for.
        guess = problem.guess_bounds(table, len(SHARES) + 1)
        if problem.leakage == "success" and guess.keys() == self.certificates_.keys():
            # The limit itself is about guesses, and the sequence that certified it allows for no more.
            guess = {name: one.value for name, one in self.certificates_.items()}
        self._release_by(rule, solution.mechanism, certificate, guess)

    def _take(self, point: CertifiedPoint) -> None:
        """Release by a point of the certified trade-off."""
        self.solution_ = None
        # It was chosen after looking: what holds is what all points together have.
        interval = point.bound.interval
        certificate = replace(
            point.bound,
            interval=interval and replace(interval, level=self.made_.problem.confidence),
        )
        self.certificates_ = {" × ".join(self.rule_.private_names): certificate}
        self._release_by(self.rule_, point.mechanism, certificate, point.guess)

    def _release_by(
        self, rule: CertifiedRule, mechanism: TableMechanism, certificate: Measured, guess: dict[str, float]
    ) -> None:
        # Made anew: what the solver knows is how common each cell is to the last record.
        mechanism = TableMechanism(
            mechanism.sparse,
            x_names=mechanism.x_names,
            private_names=mechanism.private_names,
            marginal=to_one(rule.p_cells @ mechanism.channel),
            p_x=rule.p_cells,
        )
        self.certificate_ = certificate
        made, problem, table = self.made_, self.made_.problem, mechanism.p_z_given_x
        tables = None
        people = self.people_
        if people is not None:
            weights = mechanism.sparse[people.cells]
            tables = ColumnTables.count(people.schema, people.frame, weights)
            tables = replace(tables, shares=rule.p_cells @ table)  # told to ten records
        self.rule_ = replace(rule, mechanism=mechanism, certificate=certificate, tables=tables)
        chance = problem.commonest()
        scored = made.tasks is not None
        self.verdict_ = Verdict(
            tuple(Guess(name, min(value, 1.0), chance[name]) for name, value in guess.items()),
            problem.confidence,
            self.held_out_.variance_kept(table, made.symbol_points(table)),
            problem.n_held_out,
            self.task_name_ or "",
            self.held_out_.task_score(table, made.symbol_tasks(table)) if scored else None,
            self.score_before_,
            made.tasks is None or made.tasks.shape[1] == 2,
            certificate.value if problem.leakage == "parity" else None,
            mechanism.n_z == 1,
        )

    @property
    def frontier_(self) -> CertifiedFrontier:
        """The certified trade-off; the bounds of its points hold together with the confidence.

        Another statement than `certificate_`: each of the two has the confidence by itself.
        """
        check_is_fitted(self, "made_")
        if "frontier_" not in self.__dict__:
            self.__dict__["frontier_"] = CertifiedFrontier.of(self.made_.problem)
        found: CertifiedFrontier = self.__dict__["frontier_"]
        return found

    def choose(self, *, max_leakage: float | None = None, keep_variance: float | None = None) -> Self:
        """A copy that releases by another point of `frontier_`, or a mixture of two: after looking at it.

        Parameters
        ----------
        max_leakage : float
            The most useful release whose bound is at most this; or
        keep_variance : float
            the least telling one that keeps this share of the variance of the records that solve.
        """
        if (max_leakage is None) == (keep_variance is None):
            raise InvalidInputError(
                "choose: pass either max_leakage or keep_variance.", names=("max_leakage", "keep_variance")
            )
        if self.rule_.tables is not None and self.people_ is None:
            raise InvalidInputError(
                "choose: the columns of a release are counted from the records of fit, which no file holds; "
                "choose before saving, or fit again."
            )
        front = self.frontier_
        chosen = copy.copy(self)
        if max_leakage is not None:
            chosen._take(front.most_useful(finite_number("max_leakage", max_leakage, 0.0)))
            return chosen
        if self.utility_ != "distance":
            raise InvalidInputError(
                "choose: keep_variance goes with utility='distance'; fit with it.",
                names=("keep_variance", "utility"),
            )
        asked = finite_number("keep_variance", keep_variance, 0.0)
        cells = self._variance_of_cells()
        if asked > cells:
            raise InfeasibleError(
                f"{100 * asked:g} % of the variance cannot be kept: the {self.made_.problem.joint.n_x} cells "
                f"themselves keep {100 * cells:.1f} %; ask for less, or use more cells.",
                names=("keep_variance", "n_cells"),
            )
        chosen._take(front.least_telling(asked / cells))
        return chosen

    def _variance_of_cells(self) -> float:
        """The share of the variance of held-out records that their cells keep."""
        whole = np.eye(len(self.made_.means))
        return self.held_out_.variance_kept(whole, self.made_.means)

    def kept_by_column(self) -> dict[str, float]:
        """The share of the variance of each column that a release keeps, on the records that certify."""
        check_is_fitted(self)
        rule = self.rule_
        return self.held_out_.variance_by_column(rule.mechanism.p_z_given_x, rule.points, rule.reader.names())

    def transform(self, X: Any, *, points: bool = False, rng: Rng = None) -> Any:
        """A symbol for each record, 0, 1, …; or with `points` the typical record of the symbol as numbers.

        Each call draws anew. Several releases of one record tell more than one: draw once, store the result.
        """
        check_is_fitted(self)
        symbols = self.rule_.transform(X, rng)
        return self.rule_.points[symbols] if points else symbols

    def inverse_transform(self, Z: Any) -> Any:
        """The typical record of each symbol, in the shape of the records."""
        check_is_fitted(self)
        return self.rule_.inverse_transform(Z)

    def release(
        self,
        X: Any,
        *,
        records: str = "columns",
        keep: str | Sequence[str] = (),
        rng: Rng = None,
        key: bytes | None = None,
        id: Any = None,
    ) -> Any:
        """Records of the same kind as X, made from their symbols alone; see `CertifiedRule.release`."""
        check_is_fitted(self)
        return self.rule_.release(X, records=records, keep=keep, rng=rng, key=key, id=id)

    def release_stream(
        self,
        source: Any,
        sink: Any = None,
        *,
        records: str = "columns",
        keep: str | Sequence[str] = (),
        rng: Rng = None,
        key: bytes | None = None,
        id: str | None = None,
        shuffle: bool = False,
    ) -> Any:
        """Release a table batch by batch; see `CertifiedRule.release_stream`."""
        check_is_fitted(self)
        how: dict[str, Any] = {"records": records, "keep": keep, "rng": rng, "key": key, "id": id}
        return self.rule_.release_stream(source, sink, **how, shuffle=shuffle)

    def describe(self) -> Any:
        """Which cells share a symbol, in words: a frame with a row a symbol, common ones first."""
        check_is_fitted(self)
        return self.rule_.describe()

    def save(self, path: Any, part: str = "all") -> None:
        """Write the fitted funnel into a folder; `privacyfunnel.load` reads it back.

        Parameters
        ----------
        path : folder
        part : "all" or "release"
            "all" is for the owner: it tells how many records have each private value. "release" is what to
            hand on to whoever releases: a `CertifiedRule`, which tells no private value.
        """
        from .saving import save_funnel, save_rule

        check_is_fitted(self)
        if part not in ("all", "release"):
            raise InvalidInputError(f"save: part must be 'all' or 'release'; it is {part!r}.")
        if part == "all":
            save_funnel(self, path)
        else:
            save_rule(self.rule_, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []  # symbols are numbers 0, 1, …
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rule_")

    def _plan(self, read: Read) -> Plan:
        """The settings, checked."""
        if self.leakage not in LEAKAGES:
            raise InvalidInputError(
                f"leakage must be one of {', '.join(map(repr, LEAKAGES))}; it is {shortened(self.leakage)}.",
                names=("leakage",),
            )
        utility = self.utility or ("distance" if read.task is None else "task")
        if utility not in UTILITIES:
            raise InvalidInputError(
                f"utility must be one of {', '.join(map(repr, UTILITIES))}; it is {shortened(utility)}.",
                names=("utility",),
            )
        if utility == "task" and read.task is None:
            raise InvalidInputError(
                "utility='task' needs a task; pass task= to fit.", names=("utility", "task")
            )
        confidence = finite_number("confidence", self.confidence, 0.0, strict=True)
        if confidence >= 1:
            raise InvalidInputError(
                f"confidence must be between 0 and 1, such as 0.95; it is {confidence:g}.",
                names=("confidence",),
            )
        n_cells = None if self.n_cells == "auto" else whole_number("n_cells", self.n_cells, 2)
        limit: Any = self.max_leakage
        if callable(limit):
            limit = _made_from_shares(limit, self.leakage, read)
        elif self.leakage == "success" and len(read.private.names) > 1 and np.isscalar(limit):
            limit = dict.fromkeys(read.private.names, limit)
        limits = _checked_limits(limit, read.private)
        return Plan(self.cells, n_cells, utility, self.leakage, limits, confidence, read.private, read.task)

    def _refuse_trained_on(self, cells: Cells, certifying: Material) -> None:
        """Refuse an encoder that was trained on records that are to certify."""
        share = getattr(cells.space.encoder, "trained_on", None)
        if share is None:
            return
        points = certifying.points[:5_000]
        if (share(points.reshape(len(points), *(cells.space.shape or (-1,)))) or 0.0) > 0.0:
            raise InvalidInputError(
                "cells: this encoder was trained on some of the records that are to certify it, so that "
                "nothing could be said of new people; pass records that it has not seen.",
                names=("cells",),
            )


@dataclass(frozen=True, eq=False)
class _People:
    """The frame that columns are counted from, and the cell of each of its records."""

    schema: TableSchema
    frame: Any
    cells: IntArray


def _made_from_shares(limit: Callable[[FloatArray], float], leakage: str, read: Read) -> Any:
    """The limit that a function makes from the private shares; of guesses one for each attribute.

    The limit leaves the house with the rule, and with it what it was computed from: shares are told to ten.
    """
    private, counts = read.private, read.solving_counts
    if leakage != "success" or len(private.names) == 1:
        return limit(shares_in_tens(counts))
    groups = {name: private.parts(at) for at, name in enumerate(private.names)}
    return {name: limit(shares_in_tens(np.bincount(part, counts))) for name, part in groups.items()}


def _checked_limits(given: Any, private: Private) -> Limits | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        return finite_number("max_leakage", given, 0.0, strict=True)
    if set(given) != set(private.names):
        raise InvalidInputError(
            f"max_leakage has limits for {', '.join(map(str, given)) or 'nothing'}, and the private "
            f"attributes are {', '.join(private.names)}; give each of them one.",
            names=("max_leakage",),
        )
    return {
        name: finite_number(f"max_leakage of {name}", given[name], 0.0, strict=True) for name in private.names
    }
