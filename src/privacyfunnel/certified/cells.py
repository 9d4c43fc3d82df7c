"""Quantisers: which of finitely many cells a record is in.

Cells are made from the records that the release is solved on, and from no others: the certificate needs that.
They know a task through its prediction from the record, and the private attribute not at all.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from ..errors import InvalidInputError, shortened
from .held_out import coarse, coarse_mean, group_means, spread_of
from .predictor import ROUNDED, Predictor, rounded_spread
from .stored import all_below, numbers_from, numbers_to

#: A cell of fewer records is dissolved into the nearest.
LEAST_IN_CELL = 20
#: What a certain prediction of the task counts in a distance, in units of the spread of all records.
TASK_WEIGHT = 3.0
#: Wider records are quantised in the space of so many principal components.
WIDE, COMPONENTS = 200, 50


@dataclass(frozen=True, eq=False)
class Space:
    """Where distances between records are measured: points, their main directions, a code, a prediction.

    Attributes
    ----------
    origin, directions : (d,) and (d, k) arrays, optional
        Principal components of wide records.
    encoder, shape : object with `transform`, and the shape of a record that it wants, optional
        What makes codes of records; a learned funnel, or any transformer.
    predictor : Predictor, optional
        Its probabilities, times `weight`, are coordinates too.
    """

    origin: FloatArray | None = None
    directions: FloatArray | None = None
    encoder: Any = None
    predictor: Predictor | None = None
    weight: float = 0.0
    shape: tuple[int, ...] = ()

    def __call__(self, points: FloatArray, predicted: FloatArray | None = None) -> FloatArray:
        """Coordinates (n, k); `predicted` takes the place of the predictor's own probabilities."""
        base = points
        if self.encoder is not None:
            given = points.reshape(len(points), *self.shape) if self.shape else points
            base = np.asarray(self.encoder.transform(given), dtype=np.float64).reshape(len(points), -1)
        elif self.origin is not None and self.directions is not None:
            base = (points - self.origin) @ self.directions
        if self.predictor is None:
            return base
        shares = self.predictor(points) if predicted is None else predicted
        return np.hstack([base, self.weight * shares])

    def makes(self, shape: tuple[int, ...], n_features: int) -> bool:
        """Whether records of so many numbers have coordinates of this shape; an encoder is not asked."""
        width = n_features
        if self.origin is not None and self.directions is not None:
            if self.origin.shape != (n_features,) or self.directions.shape[:-1] != (n_features,):
                return False
            width = self.directions.shape[-1]
        if self.predictor is not None:
            if self.predictor.centre.shape != (n_features,):
                return False
            width += self.predictor.n_classes
        return shape == (width,)


@dataclass(frozen=True, eq=False)
class Cells:
    """A fitted quantiser.

    Attributes
    ----------
    kind : "kmeans", "tree" or "given"
    space : Space
    centres : (n_raw, k) array
        Centres in that space; of a tree and of a given clusterer the mean points of what it tells apart.
    number : (n_raw,) array
        The cell of each, after small ones were merged.
    nodes : (n_nodes, 5) array, optional
        Of a tree: column, threshold, left, right, and the leaf's number or −1.
    clusterer, labels : optional
        Of a given clusterer: what predicts, and the labels it gave.
    """

    kind: str
    space: Space
    centres: FloatArray
    number: IntArray
    nodes: FloatArray | None = None
    clusterer: Any = None
    labels: IntArray | None = None

    @property
    def n_cells(self) -> int:
        return int(self.number.max()) + 1

    def __call__(self, points: FloatArray, predicted: FloatArray | None = None) -> IntArray:
        """The cell of each record."""
        numbers: IntArray = self.number[self._raw(points, predicted)]
        return numbers

    def _raw(self, points: FloatArray, predicted: FloatArray | None) -> IntArray:
        if self.nodes is not None:
            return _leaves(self.nodes, points)
        if self.clusterer is not None:
            assert self.labels is not None
            found = np.asarray(self.clusterer.predict(points)).astype(np.intp)
            at = np.minimum(np.searchsorted(self.labels, found), len(self.labels) - 1)
            strange = self.labels[at] != found  # a label of no record that the cells were made from
            if strange.any():
                at[strange] = _nearest(points[strange], self.centres)
            return at
        return _nearest(self.space(points, predicted), self.centres)

    def merged(self, cells: IntArray, means: FloatArray) -> Cells:
        """The same with every cell of fewer than LEAST_IN_CELL of these records merged into the nearest."""
        return replace(self, number=_merged(cells, means)[self.number])

    @property
    def can_save(self) -> bool:
        """Whether it can be written: no clusterer was given, and no encoder of another kind than ours."""
        return self.clusterer is None and (self.space.encoder is None or _can_save(self.space))

    def to_dict(self) -> dict[str, Any]:
        """JSON types; a given clusterer, or an encoder of another kind than ours, cannot be written."""
        if not self.can_save:
            what = self.clusterer if self.clusterer is not None else self.space.encoder
            raise InvalidInputError(
                f"save: cells made by a {type(what).__name__} cannot be written into a file; use "
                "cells='kmeans' or 'tree', or the encoder of a learned funnel.",
                names=("cells",),
            )
        space = self.space
        parts = {
            "centres": self.centres,
            "number": self.number,
            "nodes": self.nodes,
            "origin": space.origin,
            "directions": space.directions,
        }
        arrays = {name: None if array is None else numbers_to(array) for name, array in parts.items()}
        predictor = None if space.predictor is None else space.predictor.to_dict()
        return {
            "kind": self.kind,
            **arrays,
            "predictor": predictor,
            "weight": space.weight,
            "encoder": space.encoder is not None,
            "shape": list(space.shape),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], n_features: int, encoder: Any = None) -> Cells:
        """The inverse of `to_dict`, for records of so many numbers; the encoder is read by the caller."""

        def array(name: str) -> FloatArray | None:
            return None if values[name] is None else numbers_from(values, name)

        predictor = None if values["predictor"] is None else Predictor.from_dict(values["predictor"])
        shape = tuple(int(n) for n in values["shape"])
        space = Space(
            array("origin"), array("directions"), encoder, predictor, float(values["weight"]), shape
        )
        number = numbers_from(values, "number").astype(np.intp)
        centres = numbers_from(values, "centres")
        nodes = array("nodes")
        if number.shape != (len(centres),) or set(number.tolist()) != set(range(int(number.max()) + 1)):
            raise ValueError("the numbers of the cells do not fit their centres.")
        if nodes is not None and not _is_tree(nodes, n_features, len(centres)):
            raise ValueError("the nodes of the tree are damaged.")
        if nodes is None and encoder is None and not space.makes(centres.shape[1:], n_features):
            raise ValueError("the centres of the cells do not fit the records.")
        return cls(str(values["kind"]), space, centres, number, nodes)


def make_cells(
    how: Any,
    points: FloatArray,
    n_cells: int,
    *,
    private: IntArray,
    task: tuple[IntArray, int] | None,
    rng: np.random.Generator,
    base: tuple[Space, FloatArray | None] | None = None,
    shape: tuple[int, ...] = (),
) -> tuple[Cells, IntArray]:
    """A quantiser of these records into at most so many cells, and the cell of each of them.

    `base` is what `make_space` made of the same records, where several numbers of cells are tried.
    """
    if how == "tree":
        if task is None:
            raise InvalidInputError(
                "cells='tree' splits records by what they say about a task; pass task=, or use 'kmeans'.",
                names=("cells", "task"),
            )
        cells, raw = _tree(points, n_cells, task[0], rng)
    elif how != "kmeans" and _is_clusterer(how):
        cells, raw = _given(how, points, private)
    else:
        space, predicted = base or make_space(how, points, private=private, task=task, rng=rng, shape=shape)
        cells, raw = _kmeans(space, space(points, predicted), n_cells, rng)
    means = group_means(points, raw, len(cells.centres))
    if cells.kind != "kmeans":
        sizes = np.bincount(raw, minlength=len(means))
        cells = replace(cells, centres=coarse(means, sizes, spread_of(points)))
    cells = cells.merged(raw, means)
    return cells, cells.number[raw]


def make_space(
    how: Any,
    points: FloatArray,
    *,
    private: IntArray,
    task: tuple[IntArray, int] | None,
    rng: np.random.Generator,
    shape: tuple[int, ...] = (),
) -> tuple[Space, FloatArray | None]:
    """The space that distances are measured in, and what other records predict of each record's task."""
    space = Space()
    if how != "kmeans":
        shaped = points.reshape(len(points), *shape) if shape else points
        space = replace(space, encoder=fitted(how, shaped, private), shape=shape)
    elif points.shape[1] > WIDE:
        from sklearn.decomposition import PCA

        n = min(COMPONENTS, points.shape[1], len(points))
        pca = PCA(n, svd_solver="covariance_eigh").fit(points)
        # A rule holds both: of the exact mean, whoever knows all records but one could take away the others.
        space = replace(space, origin=coarse_mean(points), directions=_coarse_directions(pca.components_.T))
    if task is None:
        return space, None
    predictor, predicted = Predictor.cross_fit(points, *task, rng)
    spread = float(np.sqrt(space(points).var(axis=0).sum()))
    weight = TASK_WEIGHT * (spread or 1.0) / np.sqrt(2)  # each certain prediction moves two coordinates
    # Two digits: the exact one would tell how far out the last record is.
    return replace(space, predictor=predictor, weight=float(f"{weight:.1e}")), predicted


def _coarse_directions(directions: FloatArray) -> FloatArray:
    """Principal directions, rounded to about an eighth of what their entries usually are.

    Exact, they are equations about the sum of squares, which has the last record in it. Distances between
    records change by less than the space leaves out anyway.
    """
    step = 2.0 ** np.rint(np.log2(1 / (8 * np.sqrt(len(directions)))))
    return np.ascontiguousarray(np.rint(directions / step) * step)


def _is_clusterer(given: Any) -> bool:
    """Whether it names cells itself; what only makes codes has cells made of these."""
    return hasattr(given, "predict") and (hasattr(given, "fit_predict") or not hasattr(given, "transform"))


def fitted(given: Any, points: FloatArray, private: IntArray) -> Any:
    """A clusterer or transformer as it is, if it is fitted; else a copy, fitted on these records."""
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not (hasattr(given, "transform") or hasattr(given, "predict")):
        raise InvalidInputError(
            "cells must be 'kmeans', 'tree', or an object with transform or predict, such as a clusterer or "
            f"the encoder of a learned funnel; it is {shortened(given)}.",
            names=("cells",),
        )
    try:
        check_is_fitted(given)
    except NotFittedError:
        return clone(given).fit(points, private)
    except TypeError:  # no estimator of scikit-learn: taken as it is
        return given
    return given


def _kmeans(
    space: Space, coordinates: FloatArray, n_cells: int, rng: np.random.Generator
) -> tuple[Cells, IntArray]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    n, seed = min(n_cells, len(coordinates)), int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different records than cells
        found = KMeans(n, n_init=1, random_state=seed).fit(coordinates)
    centres = np.ascontiguousarray(found.cluster_centers_, dtype=np.float64)
    centres, raw = _dissolved(coordinates, centres)
    # A rule holds the centres: each is rounded to what two of its records or more could move it by.
    sizes = np.bincount(raw, minlength=len(centres))
    centres, raw = _dissolved(coordinates, coarse(centres, sizes, spread_of(coordinates)))
    return Cells("kmeans", space, centres, np.arange(len(centres))), raw


def _dissolved(coordinates: FloatArray, centres: FloatArray) -> tuple[FloatArray, IntArray]:
    """The centres that at least LEAST_IN_CELL records are nearest to, and the one of each record.

    Smallest first, each is taken away and its records go to the nearest of the others. A rule holds the
    centres: that of a few records would tell where these people are, and that of one is the record itself.
    """
    raw, alive = _nearest(coordinates, centres), np.arange(len(centres))
    while len(alive) > 1:
        sizes = np.bincount(raw, minlength=len(centres))[alive]
        if sizes.min() >= LEAST_IN_CELL:
            break
        gone, alive = alive[sizes.argmin()], np.delete(alive, sizes.argmin())
        mine = raw == gone
        if mine.any():
            raw[mine] = alive[_nearest(coordinates[mine], centres[alive])]
    return centres[alive], np.searchsorted(alive, raw).astype(np.intp)


def _tree(
    points: FloatArray, n_cells: int, classes: IntArray, rng: np.random.Generator
) -> tuple[Cells, IntArray]:
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        max_leaf_nodes=max(2, n_cells),
        min_samples_leaf=min(LEAST_IN_CELL, max(1, len(points) // 2)),
        random_state=int(rng.integers(2**31)),
    ).fit(points.astype(np.float32), classes)
    inner = tree.tree_
    leaf = inner.children_left < 0
    number = np.where(leaf, np.cumsum(leaf) - 1, -1)
    sides = (np.where(leaf, 0, side) for side in (inner.children_left, inner.children_right))
    # The tree cuts in the middle between two people: a rule holds the place to a hundredth of the spread.
    column = np.where(leaf, 0, inner.feature)
    unit = (ROUNDED * rounded_spread(points))[column]
    places = np.where(leaf, 0.0, np.rint(inner.threshold / unit) * unit)
    nodes = np.column_stack([column, places, *sides, number]).astype(np.float64)
    raw = _leaves(nodes, points)
    n = int(leaf.sum())
    return Cells("tree", Space(), group_means(points, raw, n), np.arange(n), nodes), raw


def _is_tree(nodes: FloatArray, n_columns: int, n_leaves: int) -> bool:
    """Whether every way through the nodes of a file ends in a leaf: each leads to later ones alone."""
    if nodes.ndim != 2 or nodes.shape[1] != 5 or not len(nodes):
        return False
    inner = np.flatnonzero(nodes[:, 4] == -1)
    sides = nodes[inner, 2:4]
    return (
        all_below(np.delete(nodes[:, 4], inner), n_leaves)
        and all_below(nodes[inner, 0], n_columns)
        and all_below(sides, len(nodes))
        and bool(np.all(sides > inner[:, None]))
    )


def _leaves(nodes: FloatArray, points: FloatArray) -> IntArray:
    """The leaf of each record; numbers are compared in float32, as the tree was grown."""
    values = points.astype(np.float32)
    at, rows = np.zeros(len(points), dtype=np.intp), np.arange(len(points))
    column, left, right, leaf = (nodes[:, i].astype(np.intp) for i in (0, 2, 3, 4))
    for _ in range(len(nodes)):
        inside = leaf[at] < 0
        if not inside.any():
            break
        here = at[inside]
        goes_left = values[rows[inside], column[here]] <= nodes[here, 1]
        at[inside] = np.where(goes_left, left[here], right[here])
    return leaf[at]


def _given(clusterer: Any, points: FloatArray, private: IntArray) -> tuple[Cells, IntArray]:
    model = fitted(clusterer, points, private)
    labels, raw = np.unique(np.asarray(model.predict(points)).astype(np.intp), return_inverse=True)
    raw = raw.astype(np.intp)
    means = group_means(points, raw, len(labels))
    return Cells("given", Space(), means, np.arange(len(labels)), clusterer=model, labels=labels), raw


def _nearest(coordinates: FloatArray, centres: FloatArray) -> IntArray:
    from sklearn.metrics import pairwise_distances_argmin

    return np.asarray(pairwise_distances_argmin(coordinates, centres), dtype=np.intp)


def _merged(cells: IntArray, means: FloatArray) -> IntArray:
    """The new number of each cell: those of fewer than LEAST_IN_CELL join the nearest, smallest first."""
    n = len(means)
    sizes = np.bincount(cells, minlength=n).astype(np.float64)
    places, group = means.copy(), np.arange(n)
    alive = np.ones(n, dtype=bool)
    while alive.sum() > 1:
        small = int(np.where(alive, sizes, np.inf).argmin())
        if sizes[small] >= LEAST_IN_CELL:
            break
        alive[small] = False
        others = np.flatnonzero(alive)
        near = int(others[np.square(places[others] - places[small]).sum(axis=1).argmin()])
        both = sizes[near] + sizes[small]
        if both > 0:
            places[near] = (sizes[near] * places[near] + sizes[small] * places[small]) / both
        sizes[near] = both
        group[group == small] = near
    numbers: IntArray = np.unique(group, return_inverse=True)[1].astype(np.intp)
    return numbers


def _can_save(space: Space) -> bool:
    """Whether the encoder is one of this library's, which write themselves into a folder."""
    return type(space.encoder).__module__.startswith("privacyfunnel.learned")
