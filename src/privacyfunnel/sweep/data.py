"""What a run's `data` stands for: a joint for solvers, records for learned funnels, and its fingerprint.

A mapping with ``name`` (a data set of the library) or ``file`` and options:

- a joint: the name of one of `datasets.known_joints`, or a table (the names adult and german-credit, or a
  CSV or Parquet file) with ``public`` and ``private`` columns;
- records: mnist, fashion-mnist, digits, adult (``private``: sex or race), or a file: .npz with arrays x and
  y, and x_test and y_test unless a share is to be kept for testing, IDX images, or a table of numbers with
  its ``private`` column, without what ``drop`` names; ``n_train`` and ``n_test`` take the first so many of
  each. Where ``n_test`` asks for more than there are, records that ``n_train`` left out of the training
  part follow: no training sees them either.

A name that is no data set is taken for a file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError, InvalidInputError, shortened
from .runs import canonical

if TYPE_CHECKING:
    from ..joint import Joint

IMAGES = ("mnist", "fashion-mnist", "digits")
TABLES = ("adult", "german-credit")
_TEST_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Records:
    """Records for a learned funnel: x public, y private, and for some sets a target that users are after.

    The encoder learns from the training part. Releases are judged on the other part alone, because on
    records that trained the encoder leakage looks smaller than it is. `name` is that of y.
    """

    x_train: NDArray[Any]
    y_train: NDArray[Any]
    x_test: NDArray[Any]
    y_test: NDArray[Any]
    target_train: NDArray[Any] | None = None
    target_test: NDArray[Any] | None = None
    name: str = "y"


def resolve(data: Mapping[str, Any], *, named: bool = True) -> dict[str, Any]:
    """The same with the absolute path of its file: workers may live in other folders.

    Where it is `named`, a name must be that of a data set or a file; a user's function may have others.
    """
    resolved = dict(data)
    name = resolved.get("name")
    if named and (name is None) == (resolved.get("file") is None):
        raise InvalidInputError("data must have either a name or a file.")
    if named and name is not None and name not in (known := {*IMAGES, *TABLES, *_known_joints()}):
        if not os.path.exists(str(name)):
            raise InvalidInputError(
                f"data: {name!r} is neither a file nor a data set; the sets are {', '.join(sorted(known))}."
            )
        resolved["file"] = resolved.pop("name")
    if "file" in resolved:
        resolved["file"] = os.path.abspath(str(resolved["file"]))
    return resolved


def load_joint(data: Mapping[str, Any]) -> Joint:
    """The joint that `data` stands for."""
    return _cached_joint(canonical(dict(data)), _stamp(data))


def load_records(data: Mapping[str, Any]) -> Records:
    """The records that `data` stands for."""
    return _cached_records(canonical(dict(data)), _stamp(data))


def content_mark(kind: str, data: Mapping[str, Any]) -> str | None:
    """A hash of all that a method of a kind sees of its data; None where a function reads a named set."""
    return _cached_mark(kind, canonical(dict(data)), _stamp(data))


def training_mark(records: Records) -> str:
    """A hash of what a training sees of the records."""
    return _fingerprint(records, ("x_train", "y_train", "name"))


def _fingerprint(content: Joint | Records, parts: Sequence[str] | None = None) -> str:
    """A hash of everything in it that a run sees: other data are another run, wherever they come from."""
    digest = hashlib.sha256()
    for part in (f.name for f in fields(content)) if parts is None else parts:
        value = getattr(content, part)
        if part == "name" and value == "y":  # what runs were known by before it had others
            continue
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            digest.update(f"{part} {value.shape} {value.dtype.str} ".encode())
            digest.update(np.ascontiguousarray(value).view(np.uint8).data)
        else:
            listed = value.tolist() if isinstance(value, np.ndarray) else value
            digest.update(f"{part} {listed!r} ".encode())
    return digest.hexdigest()


def _stamp(data: Mapping[str, Any]) -> tuple[int, int] | None:
    """What tells that a file was changed since it was read."""
    if "file" not in data:
        return None
    try:
        status = os.stat(data["file"])
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise DataFileError(f"{data['file']}: cannot read the file ({reason}); check the name.") from None
    return status.st_mtime_ns, status.st_size


# A worker meets the same data again and again.
@lru_cache(maxsize=16)
def _cached_joint(text: str, stamp: tuple[int, int] | None) -> Joint:
    return _read_joint(json.loads(text))


@lru_cache(maxsize=2)
def _cached_records(text: str, stamp: tuple[int, int] | None) -> Records:
    return _read_records(json.loads(text))


@lru_cache(maxsize=256)
def _cached_mark(kind: str, text: str, stamp: tuple[int, int] | None) -> str | None:
    data = json.loads(text)
    if kind == "solver":
        return _fingerprint(load_joint(data))
    if kind == "estimator":
        return _fingerprint(load_records(data))
    if "file" not in data:
        return None
    with open(data["file"], "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=1)
def _known_joints() -> dict[str, Joint]:
    from ..datasets import known_joints

    return {known.name: known.joint for known in known_joints()}


def _read_joint(data: Mapping[str, Any]) -> Joint:
    from ..files import read_joint
    from ..joint import Joint

    options = {key: value for key, value in data.items() if key not in ("name", "file")}
    _allow(options, ("public", "private", "missing"))
    if data.get("name") in (known := _known_joints()):
        _allow(options, ())
        return known[data["name"]]
    if data.get("name") in IMAGES:
        raise InvalidInputError(
            f"data: {data['name']} is no table of letters; give it to a learned method, such as funnel."
        )
    if not (options.get("public") and options.get("private")):
        raise InvalidInputError("data: name the public and private columns of the table.")
    if "file" in data:
        return read_joint(data["file"], progress=False, **options)
    from ..datasets import load_adult, load_german_credit

    frame = load_adult() if data["name"] == "adult" else load_german_credit()
    return Joint.from_frame(frame, **options)


def _read_records(data: Mapping[str, Any]) -> Records:
    options = {key: value for key, value in data.items() if key not in ("name", "file")}
    if "file" in data:
        _allow(options, ("n_train", "n_test", "private", "drop"))
        whole = _from_file(data["file"], _one_private(options), _names(options, "drop"))
    elif data["name"] in IMAGES:
        _allow(options, ("n_train", "n_test"))
        from .. import datasets

        whole = Records(*getattr(datasets, f"load_{data['name'].replace('-', '_')}")())
    elif data["name"] == "adult":
        _allow(options, ("n_train", "n_test", "private"))
        whole = _adult(_one_private(options) or "sex")
    else:
        raise InvalidInputError(
            f"data: {data['name']} is no set of records; choose {', '.join(IMAGES)}, adult or an .npz file."
        )
    n_train, n_test = (_count(options, name) for name in ("n_train", "n_test"))
    left = 0 if n_train is None or n_test is None else max(0, n_test - len(whole.y_test))
    parts: dict[str, Any] = {}
    for part in ("x", "y", "target"):
        train, test = getattr(whole, f"{part}_train"), getattr(whole, f"{part}_test")
        if train is not None:
            others = train[n_train : (n_train or 0) + left] if left else train[:0]
            parts[f"{part}_train"] = train[:n_train]
            parts[f"{part}_test"] = np.concatenate([test, others]) if len(others) else test[:n_test]
    return Records(**parts, name=whole.name)


def _count(options: Mapping[str, Any], name: str) -> int | None:
    value = options.get(name)
    if value is not None and (type(value) is not int or value < 1):
        raise InvalidInputError(f"data: {name} must be a whole number from 1 on; it is {value!r}.")
    return value


def _adult(private: str) -> Records:
    """Adult as numbers: sex or race is private, neither is in x, income is the target."""
    import narwhals as nw

    from ..datasets import adult_records

    if private not in ("sex", "race"):
        raise InvalidInputError(f"data: private must be sex or race for adult; it is {private!r}.")
    adult = adult_records()
    frame = nw.from_native(adult.X, eager_only=True)
    y = adult.private if private == "sex" else np.array(frame["race"].to_list())
    names = [name for name in frame.columns if name != "race"] if private == "race" else frame.columns
    transformer = adult.transformer
    kept = set(names)
    transformer.set_params(
        transformers=[
            (label, step, [c for c in columns if c in kept])
            for label, step, columns in transformer.transformers
        ]
    )
    # A fixed order: the table's own is not known to be random.
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [int(_TEST_SHARE * len(y))])
    rows = frame.select(names)
    x_train = transformer.fit_transform(rows[train.tolist()].to_native())
    x_test = transformer.transform(rows[test.tolist()].to_native())
    return Records(
        x_train.astype(np.float32),
        y[train],
        x_test.astype(np.float32),
        y[test],
        adult.income[train],
        adult.income[test],
    )


def _names(options: Mapping[str, Any], name: str) -> list[str]:
    """Columns in the data of a run: one name, or a list of names."""
    given = options.get(name, [])
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
        raise InvalidInputError(f"data: {name} must name columns, as texts; it is {shortened(given)}.")
    return names


def _one_private(options: Mapping[str, Any]) -> str | None:
    """The private column, also where it is the only one of a list, as tables of letters take them."""
    names = _names(options, "private")
    if len(names) > 1:
        raise InvalidInputError(
            f"data: private must be one column for a learned method; it is {', '.join(names)}."
        )
    return names[0] if names else None


def _from_file(path: str, private: str | None, drop: Sequence[str]) -> Records:
    """Records of any kind of file; without a part for testing, a share of them is kept for it."""
    from ..files import open_records

    source = open_records(path)
    if private is None and not source.private:
        raise InvalidInputError(f"{path}: name the private column, as private.")
    if drop and source.table is None:
        raise InvalidInputError(f"{path}: drop belongs to CSV and Parquet files; leave it out.")
    found = source.records([private] if private is not None else source.private, drop, as_written=True)
    x, ((name, y),) = found.array, found.private.items()
    if len(x) != len(y):
        raise InvalidInputError(f"{path}: x has {len(x)} records and y {len(y)}; save one y for each x.")
    if source.table is None and {"x_test", "y_test"} <= {*source.columns}:
        return Records(x, y, source.matrix("x_test", as_written=True), *source.values(["y_test"]).values())
    order = np.random.default_rng(0).permutation(len(x))
    test, train = np.split(order, [int(_TEST_SHARE * len(x))])
    return Records(x[train], y[train], x[test], y[test], name=name)


def _allow(options: Mapping[str, Any], names: Sequence[str]) -> None:
    if unknown := [name for name in options if name not in names]:
        allowed = f"there are {', '.join(names)}" if names else "it has none"
        raise InvalidInputError(f"data: {unknown[0]!r} is no option of this data set; {allowed}.")
