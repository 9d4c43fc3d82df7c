"""Boosted trees over yes-or-no questions: what columns say about a task together, beyond each by itself.

All nodes of one depth ask the same question, so that a tree is a few questions and a table of values. A file
holds these and nothing else: questions are at rounded places, which are nobody's number, and a value rests on
twenty records or more and is rounded to what two of them or more can move it by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, IntArray
from .stored import all_below, numbers_from, numbers_to

#: Questions of a tree, and the share of all questions that one may choose from.
DEPTH, CHOICE = 4, 0.3
#: How far a tree goes, and what its sums of second derivatives are raised by.
RATE, RIDGE = 0.2, 5.0
#: A leaf's sum of first derivatives, in sums of second ones, at most.
MOST_STEP = 4.0
#: A leaf of fewer records says nothing.
LEAST_IN_LEAF = 20
#: Where boosting may stop, in trees; with more scores a tree there are as many times fewer.
STOPS = (25, 50, 100, 150)
#: Questions, and classes of a task, beyond which there are no trees.
MOST_QUESTIONS, MOST_BOOSTED = 1_000, 10
#: Numbers of a file are below it, so that sums of them are numbers.
MOST_WEIGHT = 1e12


@dataclass(frozen=True, eq=False)
class Trees:
    """What is added to the logarithms of the shares of a task.

    Attributes
    ----------
    questions : (q, 2) array
        Column and place: whether a record's number is above it.
    asked : (n_trees, depth) array
        The questions of each tree, by number.
    values : (n_trees, 2 ** depth, n_scores) array
        What is added for each way to answer them. One score is that of the second of two classes.
    """

    questions: FloatArray
    asked: IntArray
    values: FloatArray

    def __call__(self, points: FloatArray) -> FloatArray:
        """(n, n_scores)."""
        used = np.unique(self.asked)
        rows = answers(points, self.questions[used])
        score = np.zeros((len(points), self.values.shape[2]))
        for asked, values in zip(np.searchsorted(used, self.asked), self.values, strict=True):
            score += values[_leaves(rows, asked)]
        return score

    def first(self, n: int) -> Trees:
        """So many of the trees."""
        return Trees(self.questions, self.asked[:n], self.values[:n])

    def to_dict(self) -> dict[str, Any]:
        """JSON types."""
        return {name: numbers_to(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], n_columns: int, n_classes: int) -> Trees:
        """The inverse of `to_dict`."""
        questions, asked, table = (numbers_from(values, name) for name in cls.__dataclass_fields__)
        found = cls(questions, asked.astype(np.intp), table)
        fits = questions.ndim == 2 and questions.shape[1] == 2 and asked.ndim == 2
        fits = fits and 1 <= asked.shape[1] <= 16 and table.ndim == 3 and table.shape[0] == len(asked)
        fits = fits and table.shape[1:] == (2 ** asked.shape[1], n_scores(n_classes))
        fits = fits and np.abs(table).max(initial=0.0) < MOST_WEIGHT
        if not fits or not all_below(questions[:, 0], n_columns) or not all_below(asked, len(questions)):
            raise ValueError("the trees of the predictor do not fit it.")
        return found


def n_scores(n_classes: int) -> int:
    """Of two classes one score is enough."""
    return 1 if n_classes == 2 else n_classes


def answers(points: FloatArray, questions: FloatArray) -> IntArray:
    """(q, n): 1 where a record's number is above the place, else 0."""
    columns = questions[:, 0].astype(np.intp)
    return np.ascontiguousarray((points[:, columns] > questions[:, 1]).T, dtype=np.intp)


def boosted(
    points: FloatArray,
    questions: FloatArray,
    classes: IntArray,
    score: FloatArray,
    rng: np.random.Generator,
    n_trees: int | None = None,
) -> Trees | None:
    """Trees that improve these scores (n, n_classes); None where there is nothing to ask, or too much."""
    n, n_classes = score.shape
    if not (0 < len(questions) <= MOST_QUESTIONS and 2 <= n_classes <= MOST_BOOSTED and n >= LEAST_IN_LEAF):
        return None
    rows = answers(points, questions)
    trees = list(_grown(rows, classes, score, rng, n_trees or max(stops(n_classes))))
    asked, values = (np.stack(parts) for parts in zip(*trees, strict=True))
    return Trees(questions, asked, values)


def _grown(
    rows: IntArray, classes: IntArray, score: FloatArray, rng: np.random.Generator, n_trees: int
) -> Iterator[tuple[IntArray, FloatArray]]:
    m = n_scores(score.shape[1])
    told = np.eye(score.shape[1])[classes][:, -m:]
    plain = rows.astype(np.float32)
    for _ in range(n_trees):
        shares = softmax(score)[:, -m:]
        # First and second derivatives of each score, and one for each record.
        sums = np.hstack([told - shares, shares * (1 - shares), np.ones((len(score), 1))])
        some = rng.choice(len(rows), max(1, round(CHOICE * len(rows))), replace=False)
        asked = _questions(plain[some], rows, some, sums.astype(np.float32), m)
        leaf = _leaves(rows, asked)
        values = _values(_summed(leaf, sums, 2**DEPTH), m)
        score = np.hstack([score[:, :-m], score[:, -m:] + values[leaf]])
        yield asked, values


def _questions(plain: Any, rows: IntArray, some: IntArray, sums: Any, m: int) -> IntArray:
    """One question after the other, of some of them: the one that all leaves together gain most from."""
    leaf = np.zeros(len(sums), dtype=np.intp)
    asked = []
    for level in range(DEPTH):
        k, width = 2**level, sums.shape[1]
        spread = np.zeros((len(sums), k, width), dtype=np.float32)
        spread[np.arange(len(sums)), leaf] = sums
        yes = (plain @ spread.reshape(len(sums), -1)).reshape(len(plain), k, width).astype(np.float64)
        no = _summed(leaf, sums.astype(np.float64), k) - yes
        best = int(some[(_gain(yes, m) + _gain(no, m)).argmax()])
        asked.append(best)
        leaf = 2 * leaf + rows[best]
    return np.array(asked, dtype=np.intp)


def _gain(sums: FloatArray, m: int) -> FloatArray:
    gains = np.square(sums[..., :m]) / (np.maximum(sums[..., m : 2 * m], 0.0) + RIDGE)
    found: FloatArray = np.where(sums[..., -1:] > LEAST_IN_LEAF - 0.5, gains, 0.0).sum(axis=(-2, -1))
    return found


def _values(sums: FloatArray, m: int) -> FloatArray:
    """Of each leaf: a step towards its optimum, rounded; nothing where it has few records."""
    curve = sums[:, m : 2 * m] + RIDGE
    steps = np.clip(sums[:, :m] / curve, -MOST_STEP, MOST_STEP)
    # One record moves the sum by 1 and the curve by 1/4 at most, so a value by RATE (1 + |step| / 4) / curve.
    unit = 2.0 ** np.ceil(np.log2(2 * RATE / curve))
    values = np.rint(RATE * steps / unit) * unit
    found: FloatArray = np.where(sums[:, -1:] >= LEAST_IN_LEAF, values, 0.0)
    return found


def stops(n_classes: int) -> tuple[int, ...]:
    """Numbers of trees to choose from."""
    return tuple(max(1, stop // n_scores(n_classes)) for stop in STOPS)


def softmax(score: FloatArray) -> FloatArray:
    """Shares (n, n_classes) of their logarithms."""
    raised = np.exp(score - score.max(axis=1, keepdims=True))
    shares: FloatArray = raised / raised.sum(axis=1, keepdims=True)
    return shares


def _summed(leaf: IntArray, sums: FloatArray, k: int) -> FloatArray:
    return np.stack([np.bincount(leaf, column, k) for column in sums.T], axis=1)


def _leaves(rows: IntArray, asked: IntArray) -> IntArray:
    leaf: IntArray = rows[asked[0]]
    for question in asked[1:]:
        leaf = 2 * leaf + rows[question]
    return leaf
