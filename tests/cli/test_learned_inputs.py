"""pfunnel fit, encode and decode: what is private stays what it is in the file; options that do not apply."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cli_tables import Run, write_csv
from pyarrow import parquet

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.files.values import labels, numbers

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("one_torch_thread")

TINY = ["--components", 2, "--hidden", 4, "--epochs", 1, "--seed", 1]
CODES = ["conditionalfunnel0", "conditionalfunnel1"]


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "d.npz", x=rng.random((40, 3)), y=rng.integers(2, size=40))
    return tmp_path / "d.npz"


def write_table(path: Path, y: Any, n: int = 40) -> Path:
    """Two columns of numbers, and y repeated."""
    x = np.random.default_rng(0).random((n, 2))
    values = y.take([i % len(y) for i in range(n)]) if isinstance(y, pa.Array) else np.resize(y, n)
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "y": values})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        write_csv(path, [[str(one) for one in row.values()] for row in table.to_pylist()], ["a", "b", "y"])
    return path


def write_codes(path: Path, y: list[str]) -> Path:
    return write_csv(path, [[f"0.{i}", "-0.5", one] for i, one in enumerate(y)], [*CODES, "y"])


def fit_conditional(pfunnel: Run, data: Path) -> Path:
    folder = data.with_name("model")
    private = [] if data.suffix == ".npz" else ["--private", "y"]
    ended = pfunnel("fit", data, *private, "--method", "conditional", "-o", folder, *TINY)
    assert ended.code == 0, ended.err
    return folder


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_codes_with_zeros_in_front_are_no_numbers(pfunnel: Run, tmp_path: Path, suffix: str) -> None:
    """A post code is refused as a column of X, as it is no number in a private column either."""
    codes = ["7302", "12", "007", "0.5"]
    rows = [[f"0.{i}", codes[i % 4], "mf"[i % 2]] for i in range(40)]
    data = tmp_path / f"d.{suffix}"
    if suffix == "csv":
        write_csv(data, rows, ["a", "post", "sex"])
    else:
        parquet.write_table(
            pa.table(dict(zip(["a", "post", "sex"], zip(*rows, strict=True), strict=True))), data
        )
    ask = ("fit", data, "--private", "sex", "-o", tmp_path / "model", *TINY)
    ended = pfunnel(*ask)
    assert (ended.code, (tmp_path / "model").exists()) == (2, False)
    assert "column 'post' holds codes rather than numbers (record 3 has '007', with a zero" in ended.err
    assert "encode it as one column a category, or leave it out with --drop post." in ended.err
    assert pfunnel(*ask, "--drop", "post").code == 0
    assert labels("d", "post", np.array(codes, dtype=object)).dtype.kind == "U"


def test_numbers_with_one_zero_are_numbers() -> None:
    texts = ["0", "0.5", "-0.25", "1e0", "100", "-0"]
    found = numbers("d", "a", pa.array(texts), 0)
    np.testing.assert_array_equal(found, np.array([0, 0.5, -0.25, 1, 100, 0], dtype=np.float32))
    assert numbers("d", "a", pa.array([7, 0]), 0).tolist() == [7, 0]
    for text in ("00", "-01", "+007", " 03", "00.5"):
        with pytest.raises(InvalidInputError, match="record 12 has"):
            numbers("d", "a", pa.array(["1", text]), 10)


def classes_of(folder: Path) -> list[Any] | None:
    (column,) = pf.load(folder).private_.columns
    return None if column.classes is None else column.classes.tolist()


def check_decoded(pfunnel: Run, folder: Path, codes: Path, y: Any) -> None:
    """The codes are decoded with exactly these private values."""
    back = codes.with_name("back.npz")
    ended = pfunnel("decode", codes, "-m", folder, "-o", back)
    assert ended.code == 0, ended.err
    z = np.array([[float(f"0.{i}"), -0.5] for i in range(len(y))], dtype=np.float32)
    with np.load(back) as file:
        np.testing.assert_allclose(file["x"], pf.load(folder).inverse_transform(z, private=y), atol=1e-5)


def one_line(pfunnel: Run, *args: object) -> str:
    ended = pfunnel(*args)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1, ended.err
    return ended.err


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "2", "-3"], [1, 2, -3]),
        (["007", "7", "08"], ["007", "7", "08"]),
        (["007", "1.5"], ["007", "1.5"]),
        (["01.5", "1.5"], ["01.5", "1.5"]),
        (["+7", "7"], ["+7", "7"]),
        (["1_0", "10"], ["1_0", "10"]),
        (["1_0.5", "10.5"], ["1_0.5", "10.5"]),
        (["٧", "7"], ["٧", "7"]),
        (["٧", "7.0"], ["٧", "7.0"]),
        (["5000000002", "1"], [5000000002, 1]),
        (["12345678901234567890", "12345678901234567891"], ["12345678901234567890", "12345678901234567891"]),
        (["9" * 5000, "1"], ["9" * 5000, "1"]),
        (["1.5", "2", "+.5", "1e-3", "-0.0", " 3.25", "10.", "0"], [1.5, 2, 0.5, 0.001, 0, 3.25, 10, 0]),
        (["1.0", "2.0"], [1.0, 2.0]),
        (["1.5", "inf"], [1.5, float("inf")]),
        (["true", "false"], ["true", "false"]),
        (["1", "one"], ["1", "one"]),
    ],
)
def test_texts_become_numbers_only_where_they_are_written_as_such(texts: list[str], expected: Any) -> None:
    values = labels("t.csv", "y", np.array(texts, dtype=object))
    assert values.tolist() == expected
    assert values.dtype.kind == np.array(expected).dtype.kind


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([Decimal("1.25"), Decimal("1.75")], [1.25, 1.75]),
        ([Decimal("1.00"), Decimal("2.00")], [1.0, 2.0]),
        ([Decimal(7), Decimal(8)], [7, 8]),
        ([Decimal(10**20), Decimal(10**20 + 1)], [str(10**20), str(10**20 + 1)]),
        ([b"7", b"8"], [7, 8]),
        ([b"\xc3\xa9", b"e"], ["é", "e"]),
    ],
)
def test_other_values_of_parquet_files(values: list[Any], expected: Any) -> None:
    read = labels("t.parquet", "y", pa.array(values).to_numpy(zero_copy_only=False))
    assert read.tolist() == expected
    assert read.dtype.kind == np.array(expected).dtype.kind


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(InvalidInputError, match="the private column 'y' holds bytes that are no text"):
        labels("t.parquet", "y", np.array([b"\xff", b"a"], dtype=object))


def test_decimals_are_not_cut(pfunnel: Run, tmp_path: Path) -> None:
    ratings = pa.array([Decimal("1.25"), Decimal("1.75"), Decimal("2.25"), Decimal("2.75")])
    folder = fit_conditional(pfunnel, write_table(tmp_path / "t.parquet", ratings))
    (column,) = pf.load(folder).private_.columns
    assert column.classes is None
    assert column.mean == 2.0
    codes = tmp_path / "z.parquet"
    parquet.write_table(pa.table({CODES[0]: [0.0, 0.1], CODES[1]: [-0.5, -0.5], "y": ratings[:2]}), codes)
    check_decoded(pfunnel, folder, codes, [1.25, 1.75])
    check_decoded(pfunnel, folder, write_codes(tmp_path / "z.csv", ["1.25", "2"]), [1.25, 2.0])
    codes = write_codes(tmp_path / "z.csv", ["1.25", "two"])
    message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
    assert "z.csv: record 2 has 'two' in the private column 'y', which is no number; correct it" in message


def test_codes_with_zeros_in_front(pfunnel: Run, tmp_path: Path) -> None:
    folder = fit_conditional(pfunnel, write_table(tmp_path / "t.csv", ["007", "7", "08"]))
    assert classes_of(folder) == ["007", "08", "7"]
    y = ["7", "007", "08", "007"]
    check_decoded(pfunnel, folder, write_codes(tmp_path / "z.csv", y), y)
    for wrong in ("8", "0077"):
        codes = write_codes(tmp_path / "z.csv", ["7", wrong])
        message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
        assert f"record 2 has '{wrong}' in the private column 'y', which is not among the model's" in message


def test_whole_numbers_at_decode(pfunnel: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fit_conditional(pfunnel, write_table(tmp_path / "t.csv", ["1", "7", "5000000002"]))
    assert classes_of(folder) == [1, 7, 5000000002]
    codes = write_codes(tmp_path / "z.csv", ["5000000002", "1", "7"])
    check_decoded(pfunnel, folder, codes, [5000000002, 1, 7])
    monkeypatch.setattr("privacyfunnel.files.base.BATCH_ROWS", 2)
    for wrong in ("007", "2", "7.0", "99999999999999999999", "x"):
        codes = write_codes(tmp_path / "z.csv", ["1", "7", "1", wrong])
        message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
        assert f"z.csv: record 4 has '{wrong}' in the private column 'y'" in message
    codes = write_codes(tmp_path / "z.csv", ["1", "7", ""])
    message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
    assert "record 3 has no value in the private column 'y'" in message
    assert not (tmp_path / "no.npz").exists()


def test_small_types_and_floats_at_decode(pfunnel: Run, tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((40, 2))
    for dtype in (np.int8, np.uint64, np.float32):
        np.savez(tmp_path / "d.npz", x=x, y=np.resize(np.array([3, 100], dtype=dtype), 40))
        folder = fit_conditional(pfunnel, tmp_path / "d.npz")
        check_decoded(pfunnel, folder, write_codes(tmp_path / "z.csv", ["100", "3"]), [100, 3])
        codes = write_codes(tmp_path / "z.csv", ["300", "3"])
        message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
        assert "record 1 has '300'" in message


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_booleans_at_decode(pfunnel: Run, tmp_path: Path, kind: str) -> None:
    if kind == "npz":
        x = np.random.default_rng(0).random((40, 2))
        np.savez(tmp_path / "t.npz", x=x, y=np.resize([True, False, False], 40))
    else:
        write_table(tmp_path / "t.parquet", [True, False, False])
    folder = fit_conditional(pfunnel, tmp_path / f"t.{kind}")
    assert classes_of(folder) == [False, True]
    codes = write_codes(tmp_path / "z.csv", ["True", "false", "TRUE"])
    check_decoded(pfunnel, folder, codes, [True, False, True])
    codes = write_codes(tmp_path / "z.csv", ["True", "yes"])
    message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
    assert "record 2 has 'yes' in the private column 'y', which is not among the model's classes" in message


@pytest.mark.parametrize(
    "y",
    [
        pa.array([[1, 2], [3]]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
        pa.array([{"p": 1}, {"p": 2}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    ],
)
def test_nested_columns_are_refused(pfunnel: Run, tmp_path: Path, y: Any) -> None:
    table = write_table(tmp_path / "t.parquet", y)
    message = one_line(pfunnel, "fit", table, "--private", "y", "-o", tmp_path / "m", *TINY)
    assert "t.parquet: record 1 has several values in the private column 'y'; write each" in message
    folder = fit_conditional(pfunnel, write_table(tmp_path / "t.csv", ["1", "2"]))
    codes = tmp_path / "z.parquet"
    parquet.write_table(pa.table({CODES[0]: [0.0, 0.1], CODES[1]: [0.5, 0.5], "y": y}), codes)
    message = one_line(pfunnel, "decode", codes, "-m", folder, "-o", tmp_path / "no.npz")
    assert "z.parquet: record 1 has several values in the private column 'y'" in message


def test_a_foreign_folder_is_refused_before_training(pfunnel: Run, npz: Path, monkeypatch: Any) -> None:
    from privacyfunnel.learned import Funnel

    def train(*args: Any, **more: Any) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr(Funnel, "fit", train)
    foreign = npz.with_name("foreign")
    foreign.mkdir()
    (foreign / "manifest.json").write_text('{"name": "an app"}')
    message = one_line(pfunnel, "fit", npz, "-o", foreign, *TINY)
    assert "manifest.json: this file belongs to something else; choose another folder" in message
    assert [file.name for file in foreign.iterdir()] == ["manifest.json"]


def test_options_that_do_not_apply(pfunnel: Run, npz: Path, tmp_path: Path) -> None:
    m, z = tmp_path / "m", tmp_path / "z.npz"
    table = write_table(tmp_path / "t.parquet", [1, 2])
    images = tmp_path / "images"
    images.mkdir()
    for data in (npz, images):
        message = one_line(pfunnel, "fit", data, "--drop", "y", "-o", m, *TINY)
        assert f"{data}: --drop belongs to CSV and Parquet files; leave it out" in message
    for data in (npz, images, table):
        for command in (
            ("fit", data, "-o", m, *TINY),
            ("encode", data, "-m", m, "-o", z),
            ("decode", data, "-m", m, "-o", z),
        ):
            message = one_line(pfunnel, *command, "--delimiter", ";")
            assert f"{data}: --delimiter belongs to CSV files; leave it out" in message
    message = one_line(pfunnel, "fit", table, "--private", "y", "--drop", "b", "--drop", "y", "-o", m, *TINY)
    assert "column 'y' is in both --private and --drop; name it in one of them" in message
    assert not m.exists()


def test_a_delimiter_of_csv_files(pfunnel: Run, tmp_path: Path) -> None:
    lines = ["a;b;y;id", *(f"{i};{i % 7}.5;{i % 2};n{i}" for i in range(40))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    data = [tmp_path / "t.csv", "--delimiter", ";"]
    ended = pfunnel("fit", *data, "--private", "y", "--drop", "id", "-o", tmp_path / "m", *TINY)
    assert ended.code == 0, ended.err
    assert pfunnel("encode", *data, "-m", tmp_path / "m", "-o", tmp_path / "z.csv").code == 0


@pytest.mark.parametrize("diverges", [True, False])
def test_diverged_training_is_no_success(pfunnel: Run, npz: Path, diverges: bool, monkeypatch: Any) -> None:
    from privacyfunnel.learned.steps import AlternatingStep

    step = AlternatingStep.__call__

    def lost(self: Any, *args: Any) -> Any:
        return {name: value * float("nan") for name, value in step(self, *args).items()}

    if diverges:
        monkeypatch.setattr(AlternatingStep, "__call__", lost)
    folder = npz.with_name("m")
    ended = pfunnel("fit", npz, "-o", folder, *TINY)
    assert ended.code == int(diverges), ended.err
    assert ("no longer finite" in ended.out) == diverges
    assert (pf.load(folder).status_.name == "DIVERGED") == diverges
    ended = pfunnel("fit", npz, "-o", folder, *TINY, "--json")
    assert ended.code == int(diverges)
    assert json.loads(ended.out)["finished"] is not diverges


def test_whole_numbers_can_be_named_numeric(pfunnel: Run, tmp_path: Path) -> None:
    data = write_table(tmp_path / "d.csv", np.arange(1000, 1040))
    ended = pfunnel("fit", data, "--private", "y", "--numeric", "y", "-o", tmp_path / "m", *TINY)
    assert ended.code == 0, ended.err
    assert classes_of(tmp_path / "m") is None
    ended = pfunnel("fit", data, "--private", "y", "--numeric", "a", "-o", tmp_path / "m", *TINY)
    assert ended.code == 2
    assert "numeric names 'a', which is no private attribute" in ended.err
