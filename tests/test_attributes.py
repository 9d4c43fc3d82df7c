"""One reading of private columns: fit, audit and sweep agree on what a column of any kind is."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest

import privacyfunnel as pf
from privacyfunnel.attributes import Attribute, read_attributes
from privacyfunnel.auditing import logistic_regression
from privacyfunnel.errors import InvalidInputError

N = 48
LIBRARIES = ("pandas", "polars", "pyarrow", "array", "list")


def repeated(values):
    return [values[i * 7 % len(values)] for i in range(N)]


# The values of a column, its classes (None for numbers), and the libraries that have such a column.
ODD = ("pandas", "array", "list")
KINDS = {
    "whole numbers": ([3, 1, 2, 1], (1, 2, 3), LIBRARIES),
    "booleans": ([True, False, False], (False, True), LIBRARIES),
    "texts": (["b", "a", "ä"], ("a", "b", "ä"), LIBRARIES),
    "numbers": ([0.5, 1.25, -3.0, 7.5], None, LIBRARIES),
    "whole floats": ([2.0, 1.0, 2.0], (1, 2), LIBRARIES),
    "dates": ([date(2024, 5, 17), date(1999, 1, 1)], (date(1999, 1, 1), date(2024, 5, 17)), LIBRARIES),
    "times": (
        [datetime(2024, 5, 17, 12, 30), datetime(1999, 1, 1)],
        (datetime(1999, 1, 1), datetime(2024, 5, 17, 12, 30)),
        LIBRARIES,
    ),
    "a mixture": (["a", 1, date(2024, 5, 17)], (date(2024, 5, 17), 1, "a"), ODD),
    "decimals with places": ([Decimal("1.25"), Decimal("1.75"), Decimal("2.50")], None, LIBRARIES),
    "decimals without": ([Decimal(7), Decimal(10**20)], (7, 10**20), LIBRARIES),
    "decimals that are whole": ([Decimal("1.00"), Decimal("2.00")], (1, 2), LIBRARIES),
    "codes with zeros in front": (["007", "7", "08"], ("007", "08", "7"), LIBRARIES),
    "bytes that are texts": ([b"m", b"f"], ("f", "m"), LIBRARIES),
    "whole numbers and others": ([1, 2.5, 2], None, ODD),
    "fractions": ([Fraction(1, 3), Fraction(1, 2)], None, ODD),
    "long identifiers": ([2**63 - 1, 2**63 - 2], (2**63 - 2, 2**63 - 1), LIBRARIES),
}
COLUMNS = [(kind, library) for kind, (_, _, there) in KINDS.items() for library in there]


def column(kind, library, values):
    """A private column `p` in this library."""
    if library == "pandas":
        return pandas.DataFrame({"p": values})
    if library == "polars":
        return polars.DataFrame({"p": values})
    if library == "pyarrow":
        return pa.table({"p": values})
    if library == "list":
        return {"p": values}
    # As NumPy has them: dates and times have types of their own.
    units = {"dates": "M8[D]", "times": "M8[ns]"}
    if kind in ("a mixture", "decimals without"):
        return {"p": np.array(values, dtype=object)}
    return {"p": np.array(values, dtype=units.get(kind))}


def assert_is(read, kind):
    classes = KINDS[kind][1]
    (one,) = read
    assert one.name == "p"
    assert one.is_numeric == (classes is None)
    if classes is not None:
        assert one.classes == classes
        assert list(map(type, one.classes)) == list(map(type, classes))


@pytest.mark.parametrize(("kind", "library"), COLUMNS)
def test_a_column_is_the_same_in_every_library(kind, library):
    values, classes, _ = KINDS[kind]
    given = repeated(values)
    read = read_attributes(column(kind, library, given), N)
    assert_is(read, kind)
    if classes is None:
        assert read[0].values.tolist() == [float(value) for value in given]
    else:
        plain = [value.decode() if isinstance(value, bytes) else value for value in given]
        assert [read[0].classes[i] for i in read[0].y] == plain
    again = read_attributes(column(kind, library, given), N, like=read)
    np.testing.assert_array_equal(again[0].y, read[0].y)


@pytest.fixture(scope="module")
def records():
    return np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)


TINY = {"hidden": (2,), "epochs": 1, "random_state": 0, "progress": False}
LINES = ["logistic regression", "ridge regression"]  # the second judges numbers only
QUICK = {"n_repeats": 1, "n_jobs": 1, "progress": False, "adversaries": [logistic_regression()]}


@pytest.mark.filterwarnings("ignore")  # of so few records
@pytest.mark.parametrize(
    ("kind", "library"),
    [(kind, there[i % len(there)]) for i, (kind, (_, _, there)) in enumerate(KINDS.items())],
)
def test_fit_audit_and_sweep_agree(kind, library, records, tmp_path):
    pytest.importorskip("torch")
    from privacyfunnel.learned import Funnel
    from privacyfunnel.sweep.data import Records
    from privacyfunnel.sweep.fits import fit_and_judge

    values, classes, _ = KINDS[kind]
    given = column(kind, library, repeated(values))
    model = Funnel(2, **TINY).fit(records, private=given)
    assert_is(model.attributes_, kind)
    assert all(not len(one.y) for one in model.attributes_)  # of nobody
    model.save(tmp_path / "model")
    assert_is(pf.load(tmp_path / "model").attributes_, kind)
    for report in (
        pf.audit(model, records + 1, given, **QUICK, numeric=None if classes else ["p"]),
        pf.audit(Z=records, private=given, **QUICK | ({} if classes else {"adversaries": None})),
    ):
        (told,) = report.meta["attributes"]
        assert (told["name"], told["kind"]) == ("p", "numbers" if classes is None else "classes")
        if classes is not None:
            assert told["n_classes"] == len(classes)
    y = column(kind, "array", repeated(values))["p"]
    numbers = fit_and_judge(
        "funnel",
        {"n_components": 2, "hidden": [2], "epochs": 1, "adversaries": LINES},
        0,
        Records(records, y, records + 1, y, name="p"),
    )
    assert numbers["attribute"] == "p"
    assert ("explained_variance" in numbers) == (classes is None)
    largest = np.bincount(read_attributes(given)[0].y).max() / N
    assert numbers["chance"] == pytest.approx(largest)


@pytest.mark.parametrize("library", LIBRARIES)
def test_categories_are_what_they_say(library):
    words = repeated(["low", "high", "mid"])
    given = {
        "pandas": lambda: pandas.Series(pandas.Categorical(words, ["mid", "high", "low", "never"]), name="p"),
        "polars": lambda: polars.Series("p", words, dtype=polars.Categorical),
        "pyarrow": lambda: pa.table({"p": pa.array(words).dictionary_encode()}),
        "array": lambda: {"p": np.array(words)},
        "list": lambda: {"p": words},
    }[library]()
    (read,) = read_attributes(given, N)
    assert (read.name, read.classes) == ("p", ("high", "low", "mid"))
    assert [read.classes[i] for i in read.y] == words


MISSING = {
    "pandas": lambda: pandas.Series(["a", "b", None, "a"]),
    "pandas Int64": lambda: pandas.Series([1, 2, None, 4], dtype="Int64"),
    "pandas dates": lambda: pandas.Series(
        pandas.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-01"])
    ),
    "polars": lambda: polars.Series([1, 2, None, 4]),
    "pyarrow": lambda: pa.chunked_array([[1.5, 2.5], [None, 4.5]]),
    "floats": lambda: np.array([1.0, 2.0, np.nan, 4.0]),
    "objects": lambda: np.array(["a", 1, None, 2], dtype=object),
    "list": lambda: [Decimal("1.5"), Decimal(2), Decimal("nan"), Decimal(1)],
    "dates": lambda: np.array(["2024-01-01", "2024-01-02", "nat", "2024-01-01"], dtype="M8[D]"),
}


@pytest.mark.parametrize("given", MISSING.values(), ids=MISSING)
def test_a_missing_value_gets_one_sentence_everywhere(given, records):
    from privacyfunnel.learned import Funnel

    sentence = "row 2 is missing; give it a class of its own, or drop the record."
    for called, refuse in (
        ("private y", lambda: read_attributes(given(), 4)),
        ("private y", lambda: Funnel(2, **TINY).fit(records[:4], given())),
        ("private y", lambda: pf.audit(Z=records[:4], private=given(), **QUICK)),
    ):
        with pytest.raises(InvalidInputError) as error:
            refuse()
        assert str(error.value) == f"{called}: {sentence}"


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        (np.zeros((4, 2, 2)), {}, r"private must be one column or a table of them; its shape is \(4, 2, 2\)"),
        ({"a": np.zeros((4, 2))}, {}, "private a must hold one value a record"),
        ([1, 2], {"n": 4}, "private y has 2 values for 4 records; pass one for each record"),
        ([], {}, "private y has 0 values for no records"),
        ([[1], [1, 2]], {}, "private y: A label must be hashable"),
        ([1j, 2.0], {}, None),
        (np.array([1j, 2.0]), {}, "private y holds values of type complex128"),
        ([1.5, float("inf")], {}, "private y: row 1 has an infinite value"),
        ([1.5, 1e200], {}, "private y: row 1 has a value beyond"),
        ([b"\xff", b"a"], {}, "private y holds bytes that are no text"),
        (polars.LazyFrame({"a": [1]}), {}, "private is a lazy frame, which has no rows yet"),
        (polars.DataFrame(), {}, "private has no columns"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), {}, "private has the column 'a' twice"),
        ([1, 2], {"numeric": ["z"]}, "numeric names 'z', which is no private attribute; they are y"),
        ([True, False], {"numeric": ["y"]}, "numeric names 'y', which does not hold numbers"),
        (["1", "2"], {"numeric": ["y"]}, "numeric names 'y', which does not hold numbers"),
        ([1, 2], {"numeric": ["y"], "classes": [1, 2]}, "numeric names 'y', which has named classes"),
        ([1, 2], {"classes": [1, 3]}, "private y: the value 2 in row 1 was not among the classes"),
        ([1, "1"], {"classes": [1, 2]}, "the value '1' in row 1 was not among the classes"),
    ],
)
def test_what_is_no_attribute_gets_one_sentence(given, options, message):
    if message is None:  # objects that can be told apart are labels, whatever they are
        assert len(read_attributes(given)[0].classes) == 2
        return
    with pytest.raises(InvalidInputError, match=message):
        read_attributes(given, **options)


def test_columns_without_names_are_numbered_alike():
    table = np.arange(8).reshape(4, 2)
    assert [one.name for one in read_attributes(table)] == ["y0", "y1"]
    assert [one.name for one in read_attributes(table[:, 0])] == ["y"]
    assert [one.name for one in read_attributes(table, name="task")] == ["task0", "task1"]
    known = [
        Attribute("age", (), np.zeros(0, dtype=np.intp), np.zeros(0)),
        Attribute("sex", (0, 1), np.zeros(0)),
    ]
    read = read_attributes(table, numeric=None, known=known)
    assert [(one.name, one.is_numeric) for one in read] == [("age", True), ("sex", False)]
    # What a mechanism says holds for what has its name, and for numbers.
    read = read_attributes({"age": ["a", "b"], "other": [1, 2]}, numeric=None, known=known)
    assert [(one.name, one.is_numeric) for one in read] == [("age", False), ("other", False)]
    assert not read_attributes({"age": [1, 2]}, numeric=(), known=known)[0].is_numeric


def test_a_whole_age_trained_as_a_number_is_audited_as_one(tmp_path):
    pytest.importorskip("torch")
    from privacyfunnel.learned import Funnel

    rng = np.random.default_rng(0)
    age = rng.integers(18, 69, 400)
    x = np.column_stack([age / 10 + 0.1 * rng.normal(size=400), rng.normal(size=400)]).astype(np.float32)
    frame = pandas.DataFrame({"age": age})
    model = Funnel(2, hidden=(16,), epochs=3, random_state=0, numeric=("age",), progress=False)
    model.fit(x[:200], private=frame[:200])
    model.save(tmp_path / "model")
    model.save(tmp_path / "encoder", part="encoder")
    options = {"n_repeats": 1, "n_jobs": 1, "effort": "quick", "progress": False}
    for mechanism, given, numeric, kind, n_classes in (
        (model, frame[200:], None, "numbers", 8),
        (pf.load(tmp_path / "model"), age[200:], None, "numbers", 8),  # without its name
        (model, frame[200:], (), "classes", len(set(age[200:].tolist()))),
        (pf.load(tmp_path / "encoder"), frame[200:], None, "classes", len(set(age[200:].tolist()))),
        (pf.load(tmp_path / "encoder"), frame[200:], ["age"], "numbers", 8),
    ):
        report = pf.audit(mechanism, x[200:], given, numeric=numeric, **options)
        (told,) = report.meta["attributes"]
        assert (told["name"], told["kind"], told["n_classes"]) == ("age", kind, n_classes)
        explained = [one for one in report.findings if one.quantity == "explained variance"]
        assert bool(explained) == (kind == "numbers")
