"""Image sets from IDX files, OpenML and scikit-learn, and Adult as records."""

from __future__ import annotations

import gzip
import struct
import sys
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest

from privacyfunnel import datasets
from privacyfunnel.errors import DataFileError, InvalidInputError, MissingDependencyError


def idx(array: np.ndarray, code: int = 0x08) -> bytes:
    """The bytes of an IDX file, written independently of the reader."""
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return bytes([0, 0, code, array.ndim]) + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


rng = np.random.default_rng(0)
IMAGES = {
    "train": rng.integers(0, 256, (12, 28, 28), np.uint8),
    "t10k": rng.integers(0, 256, (5, 28, 28), np.uint8),
}
LABELS = {"train": np.arange(12, dtype=np.uint8) % 10, "t10k": np.arange(5, dtype=np.uint8)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with a small set in the usual files."""
    monkeypatch.setenv("PRIVACYFUNNEL_DATA", str(tmp_path))
    for name in ("mnist", "fashion-mnist"):
        (tmp_path / name).mkdir()
        for part in ("train", "t10k"):
            images, labels = f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"
            (tmp_path / name / images).write_bytes(gzip.compress(idx(IMAGES[part])))
            (tmp_path / name / labels).write_bytes(gzip.compress(idx(LABELS[part])))
    return tmp_path / "mnist"


@pytest.mark.parametrize("load", [datasets.load_mnist, datasets.load_fashion_mnist])
def test_images_come_from_the_folder(folder, load) -> None:
    x_train, y_train, x_test, y_test = load("uint8")
    np.testing.assert_array_equal(x_train, IMAGES["train"])
    np.testing.assert_array_equal(x_test, IMAGES["t10k"])
    np.testing.assert_array_equal(y_train, LABELS["train"])
    np.testing.assert_array_equal(y_test, LABELS["t10k"])
    scaled = load()
    assert (scaled.x_train.dtype, scaled.y_train.dtype) == (np.float32, np.int64)
    np.testing.assert_allclose(scaled.x_test, IMAGES["t10k"] / 255, rtol=1e-6)
    assert scaled.x_train.max() <= 1


def test_files_that_are_not_zipped_will_do(folder) -> None:
    path = folder / "t10k-images-idx3-ubyte.gz"
    path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    path.unlink()
    np.testing.assert_array_equal(datasets.load_mnist("uint8").x_test, IMAGES["t10k"])


@pytest.mark.parametrize(
    ("code", "kind"), [(0x08, "u1"), (0x09, "i1"), (0x0B, "i2"), (0x0C, "i4"), (0x0D, "f4"), (0x0E, "f8")]
)
def test_every_number_type_is_read(tmp_path, code, kind) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind)
    (tmp_path / "a.idx").write_bytes(idx(array, code))
    read = datasets.read_idx(tmp_path / "a.idx")
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype
    assert read.flags.writeable


whole = idx(IMAGES["train"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no IDX file .it begins with nothing"),
        (b"P5 28 28 255", "no IDX file .it begins with 50 35 20 32"),
        (b"\0\0\x07\x03" + whole[4:], "no IDX file .it begins with 00 00 07 03"),
        (b"\0\0\x08\x00", "no IDX file"),
        (whole[:9], "cut off inside its header"),
        (whole[:-1], "promises 12 × 28 × 28 values, 9408 bytes, and there are only 9407"),
        (whole + b"\0", "9408 bytes, and there are more"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "and there are only 0"),
        (b"\0\0\x08\xc8" + b"\0\0\0\1" * 200 + b"\7", "promises 200 dimensions, more than an array"),
        (gzip.compress(whole)[:-900], "cut off or damaged"),
        (gzip.compress(whole)[:40] + b"\xff" * 40 + gzip.compress(whole)[80:], "cut off or damaged"),
    ],
    ids=[
        "empty",
        "foreign",
        "type",
        "scalar",
        "header",
        "short",
        "long",
        "huge",
        "dimensions",
        "cut gzip",
        "bad gzip",
    ],
)
def test_a_damaged_file_gets_one_sentence(folder, content, message) -> None:
    (folder / "train-images-idx3-ubyte.gz").write_bytes(content)
    with pytest.raises(DataFileError, match=r"train-images-idx3-ubyte\.gz: .*" + message) as caught:
        datasets.load_mnist()
    assert "\n" not in str(caught.value)


def test_files_that_do_not_belong_together(folder) -> None:
    labels = folder / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(idx(LABELS["t10k"]))
    with pytest.raises(DataFileError, match=r"holds 12 images and train-labels-idx1-ubyte\.gz 5 labels"):
        datasets.load_mnist()
    labels.write_bytes(idx(IMAGES["train"]))
    with pytest.raises(DataFileError, match="expected bytes in 1 dimensions; the file holds uint8 in 3"):
        datasets.load_mnist()
    labels.unlink()
    with pytest.raises(DataFileError, match=r"train-labels-idx1-ubyte\.gz is missing"):
        datasets.load_mnist()
    with pytest.raises(DataFileError, match="cannot be read"):
        datasets.read_idx(folder)
    with pytest.raises(DataFileError, match=r"nowhere.*cannot be read"):
        datasets.read_idx(folder / "nowhere")


def test_images_come_from_openml_where_there_is_no_folder(monkeypatch) -> None:
    asked = []

    def fetch(**options):
        asked.append(options["data_id"])
        return SimpleNamespace(
            data=np.tile(np.arange(784) % 256, (60_003, 1)).astype(np.uint8),
            target=np.array(["7"] * 60_000 + ["1", "2", "3"], dtype=object),
        )

    monkeypatch.delenv("PRIVACYFUNNEL_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    data = datasets.load_mnist("uint8")
    assert (data.x_train.shape, data.x_test.shape) == ((60_000, 28, 28), (3, 28, 28))
    assert data.y_test.tolist() == [1, 2, 3]
    assert data.x_test[0, 1, 0] == 28
    datasets.load_fashion_mnist("uint8")
    assert asked == [554, 40996]


def test_what_to_do_when_the_images_are_nowhere(monkeypatch) -> None:
    def fetch(**options):
        raise URLError("no route to host")

    monkeypatch.delenv("PRIVACYFUNNEL_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(DataFileError, match=r"load_fashion_mnist: .*no route.*set PRIVACYFUNNEL_DATA"):
        datasets.load_fashion_mnist()
    with pytest.raises(InvalidInputError, match="dtype must be 'float32' or 'uint8'; it is 'int'"):
        datasets.load_mnist("int")


def test_digits_need_no_file(monkeypatch) -> None:
    monkeypatch.delenv("PRIVACYFUNNEL_DATA", raising=False)
    data = datasets.load_digits()
    assert (data.x_train.shape, data.x_test.shape) == ((1300, 8, 8), (497, 8, 8))
    assert (data.x_train.min(), data.x_train.max(), data.x_train.dtype) == (0, 1, np.float32)
    np.testing.assert_array_equal(datasets.load_digits("uint8").x_test, data.x_test * 16)
    assert set(data.y_test.tolist()) == set(range(10))


# Adult as records

ADULT = b"""age,workclass,capital-gain,relationship,sex,income-per-year
39,Private,0,Husband,Male,<=50K
50,?,99999,Wife,Female,>50K
28,Private,0,Wife,Female,<=50K
"""


@pytest.fixture
def adult(tmp_path, monkeypatch):
    monkeypatch.setenv("PRIVACYFUNNEL_DATA", str(tmp_path))
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult.csv.gz").write_bytes(gzip.compress(ADULT))


def test_adult_records_keep_the_private_column_and_income_out(adult) -> None:
    X, private, income, transformer = datasets.adult_records()
    assert list(X.columns) == ["age", "workclass", "capital-gain", "relationship"]
    assert private.tolist() == ["Male", "Female", "Female"]
    assert income.tolist() == [False, True, False]
    numbers = transformer.fit_transform(X)
    names = transformer.get_feature_names_out().tolist()
    assert names == [
        *("age", "capital-gain", "workclass_?", "workclass_Private"),
        *("relationship_Husband", "relationship_Wife"),
    ]
    np.testing.assert_allclose(numbers[:, :2].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(numbers[:, :2].std(axis=0), 1)
    np.testing.assert_array_equal(numbers[:, 2:], [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 0, 1]])
    unseen = X.head(1).assign(workclass="Never-worked")
    np.testing.assert_array_equal(transformer.transform(unseen)[0, 2:4], [0, 0])


def test_adult_records_work_with_polars(adult, monkeypatch) -> None:
    polars = pytest.importorskip("polars")
    with monkeypatch.context() as without_pandas:
        without_pandas.setitem(sys.modules, "pandas", None)
        frame = datasets.load_adult()
    assert isinstance(frame, polars.DataFrame)
    monkeypatch.setattr("privacyfunnel.datasets.tables.load_adult", lambda: frame)
    X, _, _, transformer = datasets.adult_records()
    assert isinstance(X, polars.DataFrame)
    assert transformer.fit_transform(X).shape == (3, 6)


def test_adult_records_ask_for_a_frame_library(adult, monkeypatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match="needs pandas or polars"):
        datasets.adult_records()
