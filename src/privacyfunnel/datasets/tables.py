"""Loaders of public tables, which are inside the package: German credit and Adult."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from importlib.resources import files
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ..errors import DataFileError, MissingDependencyError
from ..frames import make_frame

DATA_FOLDER_VARIABLE = "PRIVACYFUNNEL_DATA"

# Number of the first code of each column, and what it and the next ones mean; 7 of the purposes, vacation,
# is in the key and not in the table.
_GERMAN_KEY: dict[str, tuple[Any, ...]] = {
    "status": (11, "< 0 DM", "0 to 200 DM", ">= 200 DM or salary account", "no account"),
    "credit_history": (
        *(30, "none, or all paid", "all paid at this bank", "existing paid till now", "delayed in the past"),
        "critical account",
    ),
    "purpose": (
        *(40, "new car", "used car", "furniture", "radio or television", "domestic appliances", "repairs"),
        *("education", "vacation", "retraining", "business"),
    ),
    "savings": (61, "< 100 DM", "100 to 500 DM", "500 to 1000 DM", ">= 1000 DM", "unknown or none"),
    "employment": (71, "unemployed", "< 1 year", "1 to 4 years", "4 to 7 years", ">= 7 years"),
    "personal_status": (
        *(91, "male: divorced or separated", "female: divorced, separated or married", "male: single"),
        *("male: married or widowed", "female: single"),
    ),
    "other_debtors": (101, "none", "co-applicant", "guarantor"),
    "property": (
        121,
        "real estate",
        "savings agreement or life insurance",
        "car or other",
        "unknown or none",
    ),
    "installment_plans": (141, "bank", "stores", "none"),
    "housing": (151, "rent", "own", "free"),
    "skill_level": (
        *(171, "unemployed or unskilled, non-resident", "unskilled, resident", "skilled"),
        "management or highly qualified",
    ),
    "telephone": (191, "none", "registered"),
    "foreign_worker": (201, "yes", "no"),
}
_GERMAN_CODES = {
    column: {f"A{first + i}": word for i, word in enumerate(words)}
    for column, (first, *words) in _GERMAN_KEY.items()
} | {"credit": {"1": "good", "2": "bad"}}
_GERMAN_CODES["purpose"]["A410"] = "others"


def load_german_credit() -> Any:
    """The UCI German credit table: 1,000 loan applicants, codes decoded into words.

    `personal_status` is also given as its two parts, `sex` and `marital_status`. The words are those of
    UCI's key, which has been corrected since (Grömping 2019): by the corrected key `personal_status` does
    not tell all men from women. Use the table to try methods, not to draw conclusions about people.

    Returns
    -------
    frame
        Of the library that `make_frame` finds. Source and licence (CC BY 4.0): german-credit-licence.md
        beside the data.
    """
    with files(__package__).joinpath("german-credit.csv.gz").open("rb") as stream:
        columns = _read_csv(stream)
    for name, words in _GERMAN_CODES.items():
        columns[name] = [words[code] for code in columns[name]]
    parts = [status.split(": ") for status in columns["personal_status"]]
    columns["sex"] = [sex for sex, _ in parts]
    columns["marital_status"] = [marital for _, marital in parts]
    return make_frame({name: _numbers(values) for name, values in columns.items()})


def load_adult() -> Any:
    """The UCI Adult table (census income, training part): 32,561 people, 15 columns.

    An unknown value is the text "?", as in the original. A file $PRIVACYFUNNEL_DATA/adult/adult.csv.gz is
    read instead where there is one.

    Returns
    -------
    frame
        Of the library that `make_frame` finds. Source and licence (CC BY 4.0): adult-licence.md beside the
        data.

    Raises
    ------
    DataFileError
        If the file of the folder is damaged.
    """
    folder = os.environ.get(DATA_FOLDER_VARIABLE)
    path = Path(folder) / "adult" / "adult.csv.gz" if folder else None
    if path and path.is_file():
        return make_frame({name: _numbers(values) for name, values in _adult_from_file(path).items()})
    import pyarrow.parquet as parquet

    with files(__package__).joinpath("adult.parquet").open("rb") as stream:
        table = parquet.read_table(stream)
    return make_frame({name: table[name].to_pylist() for name in table.column_names})


class AdultRecords(NamedTuple):
    """Adult as a learned funnel wants it; see `adult_records`."""

    X: Any
    private: Any
    income: Any
    transformer: Any


def adult_records() -> AdultRecords:
    """Adult as records to be encoded: sex is private, income is what a user of the release is after.

    Returns
    -------
    AdultRecords
        X: the frame without sex and income. private: "Female" or "Male". income: whether it is above 50,000 $
        a year; a funnel does not see it, it is there to measure utility. transformer: a ColumnTransformer,
        not fitted, that makes numbers of X: the two capital columns as log(1 + x), all numbers scaled,
        categories one-hot (those that were not in training give zeros).

    Raises
    ------
    MissingDependencyError
        If neither pandas nor polars is installed: scikit-learn picks columns by name from those only.

    Examples
    --------
    >>> X, sex, income, transformer = adult_records()            # doctest: +SKIP
    >>> model = make_pipeline(transformer, Funnel()).fit(X, sex)  # doctest: +SKIP
    """
    import narwhals as nw
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    frame = nw.from_native(load_adult(), eager_only=True)
    if frame.implementation.is_pyarrow():
        raise MissingDependencyError("adult_records needs pandas or polars: pip install pandas.")
    X = frame.drop("sex", "income-per-year")
    numeric = [name for name in X.columns if X[name].dtype.is_numeric()]
    # A few people have capital gains a thousand times the median of the others.
    skewed = [name for name in numeric if name.startswith("capital-")]
    logarithm = FunctionTransformer(np.log1p, feature_names_out="one-to-one")
    transformer = ColumnTransformer(
        [
            ("numbers", StandardScaler(), [name for name in numeric if name not in skewed]),
            ("capital", make_pipeline(logarithm, StandardScaler()), skewed),
            (
                "categories",
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                [name for name in X.columns if name not in numeric],
            ),
        ],
        verbose_feature_names_out=False,
    )
    income = np.array([value.startswith(">50K") for value in frame["income-per-year"].to_list()])
    return AdultRecords(X.to_native(), np.array(frame["sex"].to_list()), income, transformer)


def _adult_from_file(path: Path) -> dict[str, list[str]]:
    try:
        with path.open("rb") as stream:
            return _read_csv(stream)
    except (OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
        raise DataFileError(
            f"load_adult: cannot read {path} ({error}); replace the file, or remove it: the table is inside "
            "the package."
        ) from error


def fetched(caller: str, what: str, file: str, data_id: int, parser: str) -> Any:
    """A set of OpenML, as scikit-learn gives it; `file` would be in the folder instead."""
    remedy = f"set {DATA_FOLDER_VARIABLE} to a folder that holds {file}"
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise MissingDependencyError(
            f"{caller}: fetching from OpenML needs scikit-learn: pip install scikit-learn, or {remedy}."
        ) from error
    try:
        return fetch_openml(data_id=data_id, as_frame=False, parser=parser)
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"{caller}: cannot fetch the {what} from OpenML ({error}); try again when online, or {remedy}."
        ) from error


def _read_csv(stream: IO[bytes]) -> dict[str, list[str]]:
    """The columns of a gzipped CSV with a header row, blanks around values removed."""
    with gzip.open(stream, "rt", encoding="utf-8", newline="") as text:
        header, *rows = ([cell.strip() for cell in row] for row in csv.reader(text) if row)
    return {name: list(values) for name, values in zip(header, zip(*rows, strict=True), strict=True)}


def _numbers(values: list[str]) -> list[str] | list[int]:
    """The values as whole numbers if all of them are."""
    try:
        return [int(value) for value in values]
    except ValueError:
        return values
