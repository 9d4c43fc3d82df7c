"""What fit is given: records, what is private about them, a task, and who they belong to."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..alphabet import factorise, require_columns
from ..arrays import IntArray
from ..attributes import N_BINS, Attribute, read_attributes
from ..errors import InvalidInputError, shortened
from ..frames import arrow_column, read_frame
from .material import Material
from .readers import ArrayReader, FrameReader, Reader, is_frame, n_records, taken
from .tables import TableSchema

#: The share of the records that cells and release are made from; the others certify.
SOLVING_SHARE = 2 / 3
#: Private classes of fewer records cannot be spoken of.
LEAST_IN_CLASS = 10
#: Private classes, at most.
MOST_CLASSES = 100
#: Records that cells are made from, at most; all others of their part are counted.
MOST_SHAPING = 50_000
#: Records that are made points of at a time.
CHUNK = 1 << 16


@dataclass(frozen=True, eq=False)
class Private:
    """What is to be protected: one attribute, or the combination of several.

    Attributes
    ----------
    names : of the attributes
    labels : of the combinations that occur; tuples where there are several attributes
    y : (n,) array
        The combination of each record.
    notes : what was done to numbers
    values : of (n,) arrays
        For each attribute its values, numbered: finer than `y` where numbers are cut into classes.
    """

    names: tuple[str, ...]
    labels: tuple[Hashable, ...]
    y: IntArray
    notes: tuple[str, ...] = ()
    values: tuple[IntArray, ...] = ()

    @property
    def n_classes(self) -> int:
        return len(self.labels)

    def parts(self, at: int) -> IntArray:
        """(n_classes,) for each combination the number of the value that one of several attributes has."""
        numbers: dict[Hashable, int] = {}
        values = [label[at] for label in self.labels if isinstance(label, tuple)]
        return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.intp)

    @classmethod
    def read(cls, given: Any, n: int, rows: IntArray, others: IntArray) -> Private:
        """Checked; numbers are cut where those of these rows are cut into classes of equal size.

        `rows` and `others` are the two parts, one record of each person: values are to be shared by people.
        """
        attributes = tuple(_cut(one, rows) for one in read_attributes(given, n, name="private"))
        people = np.concatenate([rows, others])
        if not attributes:
            raise InvalidInputError(
                "fit: name what is private: private='column' of a frame, or a value for each record.",
                names=("private",),
            )
        for one in attributes:
            _check_classes(one, people)
        names = tuple(one.name for one in attributes)
        notes = tuple(_said(one, "private") for one in attributes if one.is_numeric)
        values = tuple(_numbered(one) for one in attributes)
        if len(attributes) == 1:
            return cls(names, attributes[0].classes, attributes[0].y, notes, values)
        code = np.zeros(n, dtype=np.int64)
        for one in attributes:
            code = code * one.n_classes + one.y
        found, y = np.unique(code, return_inverse=True)
        labels = []
        for value in found.tolist():
            parts: list[Hashable] = []
            for one in reversed(attributes):
                value, number = divmod(value, one.n_classes)
                parts.append(one.classes[number])
            labels.append(tuple(reversed(parts)))
        combined = cls(names, tuple(labels), y.astype(np.intp), notes, values)
        _check_rare(" × ".join(names), combined.labels, combined.y, people)
        return combined


def _numbered(one: Attribute) -> IntArray:
    return one.y if one.values is None else np.unique(one.values, return_inverse=True)[1].astype(np.intp)


def _cut(one: Attribute, rows: IntArray) -> Attribute:
    """A numeric attribute with the classes of some of its records: what certifies has no part in them."""
    if one.values is None:
        return one
    edges = np.unique(np.quantile(one.values[rows], np.linspace(0, 1, N_BINS + 1)[1:-1]))
    used, y = np.unique(np.searchsorted(edges, one.values, side="right"), return_inverse=True)
    bounds = ["−∞", *(f"{edge:.3g}" for edge in edges.tolist()), "∞"]
    # The number keeps apart two classes whose rounded ends look the same.
    classes = tuple(f"{i + 1}: {bounds[i]} … {bounds[i + 1]}" for i in used.tolist())
    return replace(one, classes=classes, y=y.astype(np.intp))


def read_task(given: Any, n: int, rows: IntArray) -> Attribute | None:
    """The task, if there is one: classes, or numbers cut where those of these rows are, into equal parts."""
    found = read_attributes(given, n, name="task", what="task")
    if len(found) > 1:
        raise InvalidInputError(
            f"task must be one column; it has {', '.join(one.name for one in found)}. Combine them first.",
            names=("task",),
        )
    if not found:
        return None
    if found[0].n_classes < 2 or found[0].n_classes > MOST_CLASSES:
        raise InvalidInputError(
            f"task {found[0].name} has {found[0].n_classes:,} different values; a task has 2 to "
            f"{MOST_CLASSES} classes, or numbers that are not all whole.",
            names=("task",),
        )
    return _cut(found[0], rows)


def _said(one: Attribute, what: str) -> str:
    return (
        f"{what} {one.name} is a number: what is protected is which of {one.n_classes} classes of equal size "
        f"it is in ({', '.join(map(str, one.classes))}), not finer differences."
    )


def _check_classes(one: Attribute, people: IntArray) -> None:
    if one.n_classes < 2:
        raise InvalidInputError(
            f"private {one.name} is the same for every record; there is nothing to protect.",
            names=("private",),
        )
    if one.n_classes == len(one.y):
        raise InvalidInputError(
            f"private {one.name} is different for every record, like a name or a number of a person; leave "
            "such a column out of the release, or name a property that people share.",
            names=("private",),
        )
    _check_rare(one.name, one.classes, one.y, people)


def _check_rare(name: str, labels: Sequence[Hashable], y: IntArray, people: IntArray) -> None:
    """Refuse too many values, and those of too few people; `people` are rows, one of each."""
    counts = np.bincount(y[people], minlength=len(labels))
    if len(labels) > MOST_CLASSES:
        raise InvalidInputError(
            f"private {name} has {len(labels):,} different values; at most {MOST_CLASSES} can be protected, "
            "so group them.",
            names=("private",),
        )
    rare = int(counts.argmin())
    fewest = int(counts[rare])
    if fewest < LEAST_IN_CLASS:
        one = fewest == 1
        what = ("record" if one else "records") if len(people) == len(y) else "person" if one else "people"
        raise InvalidInputError(
            f"private {name}: the value {shortened(labels[rare])} has {fewest} {what}, too few "
            "to say anything about; group private values so that each has"
            f" {LEAST_IN_CLASS} or more.",
            names=("private",),
        )


def split_records(n: int, groups: IntArray | None, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows that solve, and rows that certify, one of each person.

    Certificates need independence, and what a rule holds is to be shared by ten people: ten records of one
    person would make a value of theirs alone common. At random, and not class by class: the two parts are
    then independent of each other.
    """
    units = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    n_units = int(units.max()) + 1
    certifying = np.ones(n_units, dtype=bool)
    certifying[rng.permutation(n_units)[: math.ceil(SOLVING_SHARE * n_units)]] = False
    if not certifying.any():
        raise InvalidInputError(
            f"fit: {n_units} {'records' if groups is None else 'people'} cannot be split into a part to "
            "solve on and one to certify; use more."
        )
    order = rng.permutation(n)
    one_each = np.sort(order[np.unique(units[order], return_index=True)[1]])
    certifies = certifying[units[one_each]]
    return one_each[~certifies], one_each[certifies]


@dataclass(frozen=True, eq=False)
class Read:
    """What fit was given, read and checked.

    Attributes
    ----------
    X : array or frame
    private : Private
    task : Attribute, optional
    solving, certifying : rows of the two parts
    hidden : names of the columns of X that are never released: what is private, and who people are
    target : name of the column of X that is the task: released, and no input
    copies : names of the columns of X that are private values under another name, hidden too
    """

    X: Any
    n: int
    private: Private
    task: Attribute | None
    solving: IntArray
    certifying: IntArray
    hidden: tuple[str, ...] = ()
    target: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @classmethod
    def of(cls, X: Any, private: Any, task: Any, groups: Any, rng: np.random.Generator) -> Read:
        n = n_records(X)
        if not is_frame(X):
            named: list[tuple[str, ...]] = [(), (), ()]
            for name, value in (("private", private), ("task", task), ("groups", groups)):
                if isinstance(value, str):
                    raise InvalidInputError(
                        f"fit: {name}={shortened(value)} names a column, and X is no frame; pass the values.",
                        names=(name,),
                    )
        else:
            named = [
                _names(X, private, "private"),
                _names(X, task, "task"),
                _names(X, groups, "groups"),
            ]
        values = [_columns(X, *both) for both in zip((private, task, groups), named, strict=True)]
        owner = read_attributes(values[2], n, name="groups", what="groups")
        if len(owner) > 1:
            raise InvalidInputError(
                "groups must be one column, of who a record belongs to.", names=("groups",)
            )
        repeated = [name for name in named[1] if name in named[0]]
        if repeated:
            raise InvalidInputError(
                f"fit: {shortened(repeated[0])} is both private and the task; a release cannot tell it and "
                "hide it.",
                names=("private", "task"),
            )
        solving, certifying = split_records(n, owner[0].y if owner else None, rng)
        private_ = Private.read(values[0], n, solving, certifying)
        hidden = (*named[0], *named[2])
        same = copies_of(X, private_, solving, (*hidden, *named[1])) if is_frame(X) else ()
        return cls(
            X,
            n,
            private_,
            read_task(values[1], n, solving),
            solving,
            certifying,
            (*hidden, *same),
            named[1],
            same,
        )

    def close(self) -> None:
        """Give back what was opened for reading."""

    @property
    def n_certifying(self) -> int:
        return len(self.certifying)

    @property
    def solving_counts(self) -> IntArray:
        """How many records that solve are in each private class."""
        return np.bincount(self.private.y[self.solving], minlength=self.private.n_classes)

    def shaping(self, rng: np.random.Generator) -> IntArray:
        """Rows that cells are made from."""
        if len(self.solving) <= MOST_SHAPING:
            return self.solving
        return np.sort(rng.permutation(self.solving)[:MOST_SHAPING])

    def parts(self, reader: Reader, shaping: IntArray) -> Iterator[tuple[Material, bool]]:
        """All records but these, piece by piece, and whether they certify."""
        rest = np.setdiff1d(self.solving, shaping, assume_unique=True)
        for rows, certifies in ((rest, False), (self.certifying, True)):
            for start in range(0, len(rows), CHUNK):
                yield self.material(reader, rows[start : start + CHUNK]), certifies

    @property
    def notes(self) -> tuple[str, ...]:
        if self.task is None or not self.task.is_numeric:
            return self.private.notes
        return (*self.private.notes, f"task {self.task.name} is a number, cut into classes of equal size.")

    @property
    def unreleased(self) -> dict[str, str]:
        """Why columns of X are not released, by their names."""
        copies = dict.fromkeys(self.copies, "it is the private column itself, or tells the same")
        return dict.fromkeys(self.hidden, "as asked") | copies

    def reader(self, rows: IntArray) -> Reader:
        """How records become points; what depends on the data is learned from these rows."""
        if not is_frame(self.X):
            return ArrayReader.of(self.X)
        drop = self.unreleased | dict.fromkeys(self.target, "it is the task")
        return FrameReader(TableSchema.read(taken(self.X, rows), drop=drop))

    def material(self, reader: Reader, rows: IntArray) -> Material:
        t = None if self.task is None else self.task.y[rows]
        return Material(reader.points(taken(self.X, rows)), self.private.y[rows], t)


def copies_of(X: Any, private: Private, rows: IntArray, known: Sequence[str]) -> tuple[str, ...]:
    """Columns whose values go one to one with those of a private attribute, or that have its name.

    Found on the records that solve: those that certify have no part in what is released.
    """
    frame = read_frame(taken(X, rows), "fit")
    found = []
    for name in frame.columns:
        if name in known:
            continue
        if name in private.names or any(_one_to_one(frame[name], values[rows]) for values in private.values):
            found.append(name)
    return tuple(found)


def _one_to_one(series: Any, numbers: IntArray) -> bool:
    """Whether each value of a column goes with one of these numbers, and the other way round."""
    n_there, column = len(np.unique(numbers)), arrow_column(series)
    if n_there < 2 or column is None or series.n_unique() != n_there:
        return False
    _, codes = factorise(column)
    pairs = codes.astype(np.int64) * (int(numbers.max()) + 1) + numbers
    return len(np.unique(pairs)) == n_there


def _names(X: Any, given: Any, what: str) -> tuple[str, ...]:
    """The columns of the frame that are named; none where values are given."""
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, (list, tuple)) or not texts or not all(isinstance(one, str) for one in texts):
        return ()
    columns = read_frame(X, "fit").columns
    if len(texts) == n_records(X) and not set(texts) <= set(columns):
        return ()  # a value for each record
    require_columns(texts, columns, f"fit: {what}")
    return tuple(dict.fromkeys(texts))


def _columns(X: Any, given: Any, names: tuple[str, ...]) -> Any:
    if not names:
        return given
    frame = read_frame(X, "fit")
    return {name: frame[name].to_native() for name in names}
