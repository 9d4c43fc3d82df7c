"""Counting pairs of letters: from records and data frames to the counts a Joint is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .alphabet import as_names, canonical_label, require_columns, require_single_values
from .arrays import FloatArray
from .errors import InvalidInputError, InvalidJointError, shortened
from .joint import Joint
from .order import NeighbourCounter, warn_of_order
from .sources import Source, open_source

MAX_LETTERS = 10_000

# More groups than this are fetched from a lazy frame only after their letters were counted there.
_UNCHECKED_GROUPS = 2_000_000


class PairCounter:
    """Counts of (x, y) pairs over any number of batches, so that a table need not fit in memory.

    Letters are the values themselves for one column and tuples of values for several; only observed
    combinations become letters. Values that compare equal (1, 1.0 and True) are one letter.

    Parameters
    ----------
    public, private : column name or sequence of column names
    task : column name or sequence of column names, optional
        Counted against the public letters, for P(T|x).
    missing : {"error", "letter"}
        What a missing value (null, None, NaN, NaT) is: an error, or a letter of its own, None.
        Records are never dropped.
    max_letters : int
        The most letters either side may have.

    Examples
    --------
    >>> counter = PairCounter("city", "income")
    >>> counter.update(["Oslo", "Rome", "Rome"], ["high", "low", "high"])
    >>> counter.update(["Oslo"], ["low"])
    >>> counter.to_joint().x_labels
    ('Oslo', 'Rome')
    """

    def __init__(
        self,
        public: str | Sequence[str] = "x",
        private: str | Sequence[str] = "y",
        *,
        task: str | Sequence[str] = (),
        missing: str = "error",
        max_letters: int = MAX_LETTERS,
    ) -> None:
        self.task = _column_names(task, "task") if task else ()
        self.public, self.private = _column_names(public, "public"), _column_names(private, "private")
        for name in self.public:
            if name in self.private:
                raise InvalidInputError(
                    f"Joint: column {shortened(name)} is both public and private; list it on one side only."
                )
        if missing not in ("error", "letter"):
            raise InvalidInputError(
                f'Joint: missing must be "error" or "letter"; it is {missing!r}.', names=("missing",)
            )
        if not isinstance(max_letters, int) or max_letters < 1:
            raise InvalidInputError(
                f"Joint: max_letters must be a whole number of at least 1; it is {max_letters!r}.",
                names=("max_letters",),
            )
        self.missing, self.max_letters = missing, max_letters
        self._counts: Counter[tuple[Hashable, Hashable]] = Counter()
        self._letters: tuple[set[Hashable], set[Hashable]] = (set(), set())
        self._tasks: Counter[tuple[Hashable, Hashable]] = Counter()  # of pairs (x, t)
        self._values: set[Hashable] = set()  # of the task
        self._missing: Counter[str] = Counter()
        self._neighbours: NeighbourCounter | None = NeighbourCounter()  # None for records without an order

    @property
    def n_samples(self) -> int:
        """How many records were counted so far."""
        return self._counts.total()

    def update(
        self, x: Iterable[Hashable], y: Iterable[Hashable], task: Iterable[Hashable] | None = None
    ) -> None:
        """Count the records (x[i], y[i]), and their tasks: lists, arrays or columns of labels."""
        x_values, y_values = _as_list(x, "x"), _as_list(y, "y")
        if (task is not None) != bool(self.task):
            raise InvalidInputError("Joint: pass the task of each record exactly if a task column is named.")
        t_values = None if task is None else _as_list(task, "task")
        for name, values in (("y", y_values), ("task", t_values)):
            if values is not None and len(x_values) != len(values):
                raise InvalidInputError(
                    f"Joint: x and {name} must have one label a record; x has {len(x_values)} and {name} "
                    f"{len(values)}."
                )
        try:
            pairs = Counter(zip(x_values, y_values, strict=True))
            tasks = Counter(zip(x_values, t_values, strict=True)) if t_values is not None else Counter()
        except TypeError:
            raise InvalidInputError(
                "Joint: a label must be hashable; turn lists into tuples and arrays into text first."
            ) from None
        if self._neighbours is not None:
            self._neighbours.update(y_values)
        self._add((x, y, n) for (x, y), n in pairs.items())
        self._add_tasks((x, t, n) for (x, t), n in tasks.items())

    def update_texts(self, columns: Mapping[str, list[str | None]]) -> None:
        """Count records given as columns of texts; None is a missing value."""

        def letters(names: Sequence[str]) -> list[Any]:
            return list(_zip_letters([columns[name] for name in names]))

        self.update(letters(self.public), letters(self.private), letters(self.task) if self.task else None)

    def update_frame(self, frame: Any) -> None:
        """Count the records of a data frame; of a lazy one only the grouped counts reach memory.

        Parameters
        ----------
        frame : pandas, polars, pyarrow, DuckDB or any other frame that narwhals reads, or what streams:
            readers, scanners and datasets of pyarrow, and anything with `__arrow_c_stream__`
        """
        columns = list(dict.fromkeys([*self.public, *self.private, *self.task]))
        if (source := _as_source(frame)) is not None:
            import pyarrow as pa

            for batch in source.batches(columns, coded=True):
                self.update_frame(pa.Table.from_batches([batch]))
            return
        grouped = _grouped(frame, columns)
        self._count_neighbours(frame)
        groups = self._collect(grouped)
        values = {name: groups[name].to_list() for name in columns}
        counts = next(groups[name].to_list() for name in groups.columns if name not in columns)

        def letters(names: Sequence[str]) -> Iterable[Any]:
            return _zip_letters([values[name] for name in names])

        self._add(zip(letters(self.public), letters(self.private), counts, strict=True))
        if self.task:
            self._add_tasks(zip(letters(self.public), letters(self.task), counts, strict=True))

    def to_joint(self) -> Joint:
        """The joint of everything counted so far, letters in sorted order.

        Warns where the order of the records tells the private columns; records of a lazy frame have none.
        """
        if not self._counts:
            raise InvalidJointError("Joint: there are no records; pass a table with at least one row.")
        x_labels, y_labels = (_in_order(letters) for letters in self._letters)
        table = _table(self._counts, x_labels, y_labels)
        if self._neighbours is not None:
            warn_of_order(self._neighbours.agreeing, table.sum(axis=0), ", ".join(self.private))
        return Joint.from_counts(
            table,
            x_labels=x_labels,
            y_labels=y_labels,
            x_names=self.public,
            y_names=self.private,
            **self._task_table(x_labels),
        )

    def _task_table(self, x_labels: list[Hashable]) -> dict[str, Any]:
        """P(T|x) with its labels and names, where there is a task."""
        if not self.task:
            return {}
        t_labels = _in_order(self._values)
        table = _table(self._tasks, x_labels, t_labels)
        channel = table / table.sum(axis=1, keepdims=True)
        return {"p_t_given_x": channel, "t_labels": t_labels, "t_names": self.task}

    def _count_neighbours(self, frame: Any) -> None:
        import narwhals as nw
        import pyarrow as pa

        data = nw.from_native(frame)
        if not isinstance(data, nw.DataFrame):
            self._neighbours = None
        if self._neighbours is None:
            return
        columns = [data[name] for name in self.private]
        try:
            self._neighbours.update_columns([column.to_arrow() for column in columns])
        except pa.ArrowException:  # a pandas column of mixed objects
            self._neighbours.update(list(zip(*[column.to_list() for column in columns], strict=True)))

    def _add(self, pairs: Iterable[tuple[Hashable, Hashable, int]]) -> None:
        x_letters, y_letters = self._letters
        for raw_x, raw_y, n in pairs:
            x = self._seen(raw_x, x_letters, self.public, int(n))
            y = self._seen(raw_y, y_letters, self.private, int(n))
            self._counts[x, y] += int(n)
        self._refuse_missing()

    def _add_tasks(self, pairs: Iterable[tuple[Hashable, Hashable, int]]) -> None:
        for raw_x, raw_t, n in pairs:
            self._tasks[canonical_label(raw_x), self._seen(raw_t, self._values, self.task, int(n))] += int(n)
        self._refuse_missing()

    def _seen(self, raw: Hashable, letters: set[Hashable], names: Sequence[str], n: int) -> Hashable:
        """The letter of n records, which is one of the letters now."""
        letter = canonical_label(raw)
        letters.add(letter)
        if len(letters) > self.max_letters:
            self._raise_too_many(names)
        for name in _missing_columns(letter, names):
            self._missing[name] += n
        return letter

    def _refuse_missing(self) -> None:
        if self._missing and self.missing == "error":
            listed = ", ".join(f"{shortened(name)} ({n:,})" for name, n in sorted(self._missing.items()))
            raise InvalidInputError(
                f"Joint: missing values in column {listed} among the {self.n_samples:,} records read; "
                'pass missing="letter" to give them a letter of their own, or fill or drop them first.',
                names=("missing",),
            )

    def _raise_too_many(self, names: Sequence[str]) -> None:
        listed = " × ".join(map(shortened, names))
        raise InvalidInputError(
            f"Joint: {listed} has more than {self.max_letters:,} distinct letters; group or round its values "
            "first, or raise max_letters.",
            names=("max_letters",),
        )

    def _collect(self, grouped: Any) -> Any:
        """The groups in memory, refused before they are fetched when they are far too many."""
        if not hasattr(grouped, "collect"):
            return grouped
        groups = run_lazily(grouped.head(_UNCHECKED_GROUPS + 1))
        if len(groups) <= _UNCHECKED_GROUPS:
            return groups
        import narwhals as nw

        for names in (self.public, self.private):
            letters = run_lazily(grouped.select(*names).unique().select(n=nw.len()))
            if letters["n"].to_list()[0] > self.max_letters:
                self._raise_too_many(names)
        return run_lazily(grouped)


def _as_source(frame: Any) -> Source | None:
    """The batches of what streams and is no frame of narwhals."""
    import narwhals as nw

    try:
        data = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return None if isinstance(data, (nw.DataFrame, nw.LazyFrame)) else open_source(frame, "Joint.from_frame")


def _grouped(frame: Any, columns: list[str]) -> Any:
    """The frame grouped by the columns, with the size of each group in one more column; lazy stays lazy."""
    import narwhals as nw

    try:
        data = nw.from_native(frame)
        schema = data.collect_schema()
    except nw.exceptions.DuplicateError:
        raise InvalidInputError(
            "Joint.from_frame: two columns have the same name; rename one of them."
        ) from None
    except TypeError:
        raise InvalidInputError(
            f"Joint.from_frame: a {type(frame).__name__} is no data frame; pass a pandas, polars, pyarrow or "
            "DuckDB table, or use Joint.from_samples."
        ) from None
    require_columns(columns, schema, "Joint")
    require_single_values(columns, schema, "Joint")
    size = "n"
    while size in columns:
        size += "_"
    data = data.select(*columns)
    if data.implementation.is_pyarrow():
        # pyarrow groups a dictionary column only if all of its chunks share one dictionary.
        data = nw.from_native(data.to_native().unify_dictionaries())
    try:
        return data.group_by(*columns).agg(nw.len().alias(size))
    except TypeError:
        listed = ", ".join(map(shortened, columns))
        raise InvalidInputError(
            f"Joint: a value in column {listed} is not hashable; turn lists into text first."
        ) from None


def run_lazily(lazy: Any) -> Any:
    """Execute a lazy frame without holding its records."""
    if lazy.implementation.is_polars():
        try:
            # The in-memory engine would load the columns before grouping them.
            return lazy.collect(engine="streaming")
        except (TypeError, ValueError):  # older versions of polars have no such option
            return lazy.collect()
    return lazy.collect()


def _column_names(names: str | Sequence[str], side: str) -> tuple[str, ...]:
    """The names as a tuple, checked."""
    columns = as_names(names) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in columns):
        raise InvalidInputError(
            f"Joint: the {side} columns must be given by name, as text, not as {columns}; rename the columns "
            "of the frame if theirs are numbers."
        )
    if not columns:
        raise InvalidInputError(f"Joint: no {side} column is given; name at least one.")
    if len(set(columns)) != len(columns):
        raise InvalidInputError(f"Joint: a {side} column is listed twice in {columns}; list it once.")
    return columns


def _as_list(values: Any, name: str) -> list[Any]:
    """The labels of a one-dimensional list, array or column."""
    if isinstance(values, str | bytes) or len(getattr(values, "shape", (0,))) != 1:
        raise InvalidInputError(
            f"Joint: {name} must be a sequence with one label a record; for several columns pass tuples, or "
            "use Joint.from_frame."
        )
    if isinstance(values, np.ndarray):
        # Nanoseconds have no Python type: NumPy would hand out bare integers.
        return list((values.astype("datetime64[us]") if values.dtype.kind == "M" else values).tolist())
    for convert in ("to_list", "to_pylist"):
        if hasattr(values, convert):
            return list(getattr(values, convert)())
    try:
        return list(values)
    except TypeError:
        raise InvalidInputError(
            f"Joint: {name} must be a sequence of labels, not {type(values).__name__}."
        ) from None


def _zip_letters(columns: list[list[Any]]) -> Iterable[Any]:
    return columns[0] if len(columns) == 1 else zip(*columns, strict=True)


def _missing_columns(letter: Hashable, names: Sequence[str]) -> list[str]:
    if isinstance(letter, tuple):
        columns = names if len(names) == len(letter) > 1 else (names[0],) * len(letter)
        return sorted({name for name, value in zip(columns, letter, strict=True) if value is None})
    return [names[0]] if letter is None else []


def _table(
    counts: Counter[tuple[Hashable, Hashable]], rows: list[Hashable], columns: list[Hashable]
) -> FloatArray:
    """The counts of pairs as a table with these rows and columns."""
    row_of, column_of = ({letter: i for i, letter in enumerate(side)} for side in (rows, columns))
    table = np.zeros((len(rows), len(columns)))
    for (row, column), n in counts.items():
        table[row_of[row], column_of[column]] = n
    return table


def _in_order(letters: set[Hashable]) -> list[Hashable]:
    """Letters sorted, missing ones last; by type and text where they do not compare."""
    try:
        return sorted(letters, key=_order_key)
    except TypeError:
        return sorted(letters, key=lambda letter: (letter is None, type(letter).__name__, str(letter)))


def _order_key(letter: Any) -> Any:
    if isinstance(letter, tuple):
        return (False, tuple(_order_key(element) for element in letter))
    return (letter is None, letter)
