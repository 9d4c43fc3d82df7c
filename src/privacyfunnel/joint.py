"""Joint: the distribution P(X,Y) of public data X and a private attribute Y."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .alphabet import as_labels, as_names, label_array
from .arrays import FloatArray
from .channels import SUM_TOLERANCE, as_channel, as_table
from .errors import InvalidInputError, InvalidJointError, shortened
from .information import entropy, mutual_information

_LARGEST_COUNT = 2.0**53


@dataclass(frozen=True, eq=False, repr=False)
class Joint:
    """A joint distribution P(X,Y), X public on axis 0 and Y private on axis 1.

    Parameters
    ----------
    p_xy : (n_x, n_y) array
        Probabilities. They must sum to 1 (tolerance 1e-9) and are never renormalised; use
        `from_counts` for counts.
    x_labels, y_labels : sequences of distinct labels, optional
        The letters; 0, 1, … by default. For several columns a letter is a tuple.
    x_names, y_names : sequences of column names
        What the letters are letters of.
    n_samples : int, optional
        How many records the probabilities were estimated from; None for a known joint.
    p_t_given_x, t_labels, t_names : (n_x, n_t) array, labels and column names, optional
        What a task T is, for `Task`: P(T|x) of each letter. `from_frame(…, task=…)` fills them.
    """

    p_xy: FloatArray
    x_labels: tuple[Hashable, ...]
    y_labels: tuple[Hashable, ...]
    x_names: tuple[str, ...]
    y_names: tuple[str, ...]
    n_samples: int | None
    p_t_given_x: FloatArray | None
    t_labels: tuple[Hashable, ...]
    t_names: tuple[str, ...]

    def __init__(
        self,
        p_xy: ArrayLike,
        *,
        x_labels: Sequence[Hashable] | None = None,
        y_labels: Sequence[Hashable] | None = None,
        x_names: str | Sequence[str] = ("x",),
        y_names: str | Sequence[str] = ("y",),
        n_samples: int | None = None,
        p_t_given_x: ArrayLike | None = None,
        t_labels: Sequence[Hashable] | None = None,
        t_names: str | Sequence[str] = ("t",),
    ) -> None:
        p = _as_table(p_xy, "p_xy")
        total = _total(p)
        if abs(total - 1.0) > SUM_TOLERANCE:
            raise InvalidJointError(
                f"Joint: p_xy must sum to 1 (tolerance {SUM_TOLERANCE:g}); it sums to {total:.6g}. "
                "Use Joint.from_counts for counts."
            )
        p.setflags(write=False)
        setting = object.__setattr__
        setting(self, "p_xy", p)
        for side, n, labels, names in (
            ("x", p.shape[0], x_labels, x_names),
            ("y", p.shape[1], y_labels, y_names),
        ):
            columns = as_names(names)
            setting(self, f"{side}_labels", _as_labels(labels, n, f"{side}_labels", columns))
            setting(self, f"{side}_names", columns)
        setting(self, "n_samples", None if n_samples is None else int(n_samples))
        for name in ("p_t_given_x", "t_labels", "t_names"):
            setting(self, name, None if name == "p_t_given_x" else ())
        if p_t_given_x is not None:
            channel = as_channel(p_t_given_x, "Joint: p_t_given_x", "xt", InvalidJointError)
            if len(channel) != p.shape[0]:
                raise InvalidJointError(
                    f"Joint: p_t_given_x must have one row a letter of X ({p.shape[0]}); it has "
                    f"{len(channel)}."
                )
            setting(self, "p_t_given_x", _read_only(channel))
            setting(self, "t_labels", _as_labels(t_labels, channel.shape[1], "t_labels", as_names(t_names)))
            setting(self, "t_names", as_names(t_names))

    @classmethod
    def from_counts(cls, counts: ArrayLike, **labels: Any) -> Joint:
        """The empirical joint of a table of counts; keeps their total as `n_samples`."""
        table = _as_table(counts, "counts")
        total = _total(table)
        if total <= 0:
            raise InvalidJointError("Joint.from_counts: every count is 0; pass at least one record.")
        if total > _LARGEST_COUNT:
            raise InvalidJointError(
                f"Joint.from_counts: the counts sum to {total:.3g}, beyond the whole numbers a float64 can "
                "hold; divide by their sum and use Joint(p_xy)."
            )
        if not np.array_equal(table, np.rint(table)):
            raise InvalidJointError(
                "Joint.from_counts: counts must be whole numbers. Use Joint(p_xy) for probabilities."
            )
        return cls(table / total, n_samples=round(total), **labels)

    @classmethod
    def from_channel(cls, p_y_given_x: ArrayLike, p_x: ArrayLike, **labels: Any) -> Joint:
        """The joint of a channel (n_x, n_y) whose rows are P(Y|x), and the distribution of its input."""
        channel = as_channel(p_y_given_x, "Joint.from_channel: p_y_given_x", "xy", InvalidJointError)
        try:
            weights = np.asarray(p_x, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidJointError("Joint.from_channel: p_x must be numbers that sum to 1.") from None
        if weights.shape != (channel.shape[0],):
            raise InvalidJointError(
                f"Joint.from_channel: p_x must have one entry a row of p_y_given_x ({channel.shape[0]}); "
                f"its shape is {weights.shape}."
            )
        return cls(channel * weights[:, None], **labels)

    @classmethod
    def from_samples(
        cls,
        x: Iterable[Hashable],
        y: Iterable[Hashable],
        *,
        task: Iterable[Hashable] | None = None,
        x_names: str | Sequence[str] = ("x",),
        y_names: str | Sequence[str] = ("y",),
        t_names: str | Sequence[str] = ("t",),
        missing: str = "error",
        max_letters: int = 10_000,
    ) -> Joint:
        """The empirical joint of the records (x[i], y[i]); keeps their number as `n_samples`.

        Parameters
        ----------
        x, y : sequences, arrays or columns of hashable labels, one a record
            NumPy scalars become Python's; a letter of several columns is a tuple. Letters are sorted.
        task : like x and y, optional
            What the release is to be useful for; P(T|x) is kept for `Task`.
        x_names, y_names, t_names : names of the columns
        missing : {"error", "letter"}
            Whether None and NaN are an error or a letter of their own, None.
        max_letters : int
            The most letters either side may have.
        """
        from .counting import PairCounter

        tasks = () if task is None else t_names
        counter = PairCounter(x_names, y_names, task=tasks, missing=missing, max_letters=max_letters)
        counter.update(x, y, task)
        return counter.to_joint()

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        public: str | Sequence[str],
        private: str | Sequence[str],
        task: str | Sequence[str] = (),
        missing: str = "error",
        max_letters: int = 10_000,
    ) -> Joint:
        """The empirical joint of the columns of a data frame; keeps the number of rows as `n_samples`.

        Parameters
        ----------
        df : pandas, polars, pyarrow or DuckDB table, any other that narwhals reads, or what streams
            Of a lazy one (polars LazyFrame, DuckDB relation) only the grouped counts reach memory. Readers,
            scanners and datasets of pyarrow, and anything with `__arrow_c_stream__`, are counted batch by
            batch.
        public, private : column name or names
            Several columns form a product alphabet: a letter is the tuple of their values, and only
            observed combinations are letters.
        task : column name or names, optional
            What the release is to be useful for: P(T|x) of their combination is kept, and
            `Task` takes any of them by name. They are not released.
        missing : {"error", "letter"}
            Whether null and NaN are an error or a letter of their own, None. Rows are never dropped.
        max_letters : int
            The most letters either side may have.
        """
        from .counting import PairCounter

        counter = PairCounter(public, private, task=task, missing=missing, max_letters=max_letters)
        counter.update_frame(df)
        return counter.to_joint()

    @property
    def n_x(self) -> int:
        return int(self.p_xy.shape[0])

    @property
    def n_y(self) -> int:
        return int(self.p_xy.shape[1])

    @cached_property
    def p_x(self) -> FloatArray:
        return _read_only(self.p_xy.sum(axis=1))

    @cached_property
    def p_y(self) -> FloatArray:
        return _read_only(self.p_xy.sum(axis=0))

    @cached_property
    def entropy_x(self) -> float:
        """H(X) in bits: the most utility any release can have."""
        return entropy(self.p_x)

    @cached_property
    def entropy_y(self) -> float:
        """H(Y) in bits."""
        return entropy(self.p_y)

    @cached_property
    def mutual_information(self) -> float:
        """I(X;Y) in bits: the leakage of releasing X itself."""
        return mutual_information(self.p_xy)

    def task_channel(self, names: str | Sequence[str]) -> FloatArray:
        """P(T|x) as rows (n_x, n_t), T the combination of these task columns."""
        columns = as_names(names)
        unknown = [name for name in columns if name not in self.t_names]
        if self.p_t_given_x is None or unknown:
            kept = f"the joint keeps {', '.join(self.t_names)}" if self.t_names else "the joint keeps no task"
            listed = ", ".join(map(shortened, unknown or columns))
            raise InvalidInputError(
                f"Task: there is no column {listed}; {kept}. Name it in Joint.from_frame(…, task=…), or pass "
                "P(T|x) itself.",
                names=("task",),
            )
        if columns == self.t_names or len(self.t_names) == 1:
            return self.p_t_given_x
        groups = _groups(self.t_labels, self.t_names, columns)
        channel = np.zeros((self.n_x, groups.max() + 1))
        np.add.at(channel.T, groups, self.p_t_given_x.T)
        return channel

    def private_groups(self, name: str) -> NDArray[np.intp]:
        """(n_y,): which letters of Y have the same value of one of the private columns."""
        if name not in self.y_names:
            raise InvalidInputError(
                f"There is no private column {shortened(name)}; the joint has {', '.join(self.y_names)}.",
                names=("max_leakage",),
            )
        if len(self.y_names) == 1:
            return np.arange(self.n_y)
        return _groups(self.y_labels, self.y_names, (name,))

    def sample(
        self, n: int, rng: int | np.random.Generator | None = None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw n independent records: two arrays of labels, x and y.

        Parameters
        ----------
        n : int
            How many records.
        rng : None, int or Generator
            None takes fresh entropy from the operating system.
        """
        if n < 0:
            raise InvalidInputError(f"Joint.sample: n must not be negative; it is {n}.")
        cells = np.random.default_rng(rng).choice(self.p_xy.size, size=n, p=self.p_xy.ravel())
        rows, columns = np.divmod(cells, self.n_y)
        return label_array(self.x_labels)[rows], label_array(self.y_labels)[columns]

    def _repr_html_(self) -> str | None:
        """What notebooks show."""
        from .report.notebook import html_of

        return html_of(self)

    def __repr__(self) -> str:
        source = "known" if self.n_samples is None else f"estimated from {self.n_samples:,} records"
        return (
            f"Joint({self.n_x} × {self.n_y}, {source}: "
            f"H(X) = {self.entropy_x:.4f}, H(Y) = {self.entropy_y:.4f}, "
            f"I(X;Y) = {self.mutual_information:.4f} bit)"
        )


def _groups(labels: Sequence[Hashable], names: tuple[str, ...], columns: tuple[str, ...]) -> NDArray[np.intp]:
    """Numbers of the letters, equal where these columns of their tuples are."""
    places = [names.index(name) for name in columns]
    values = [tuple(label[at] for at in places) for label in labels]  # type: ignore[index]
    index = {value: at for at, value in enumerate(dict.fromkeys(values))}
    return np.array([index[value] for value in values], dtype=np.intp)


def _as_table(values: ArrayLike, name: str) -> FloatArray:
    shape = "(n_x, n_y), one row a public letter and one column a private one"
    return as_table(values, f"Joint: {name}", shape, InvalidJointError)


def _total(table: FloatArray) -> float:
    with np.errstate(over="ignore"):  # an infinite sum is reported like any other that is not 1
        return float(table.sum())


def _read_only(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _as_labels(
    labels: Sequence[Hashable] | None, n: int, name: str, columns: tuple[str, ...]
) -> tuple[Hashable, ...]:
    if not columns:
        raise InvalidJointError(f"Joint: {name[0]}_names is empty; name at least one column.")
    result = as_labels(labels, n, f"Joint: {name}", InvalidJointError)
    if len(columns) > 1 and labels is not None:
        for label in result:
            if not isinstance(label, tuple) or len(label) != len(columns):
                raise InvalidJointError(
                    f"Joint: {name} must be tuples with a value for each of {columns}; one is "
                    f"{shortened(label)}."
                )
    return result
