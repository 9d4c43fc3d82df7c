"""Loaders of image sets: MNIST and Fashion-MNIST from IDX files or OpenML, and scikit-learn's digits."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError, InvalidInputError
from ..files.idx import read_idx
from .tables import DATA_FOLDER_VARIABLE, fetched

_N_TRAIN = 60_000
# Digits kept for testing, the last of the set: other people wrote them.
_N_DIGITS_TEST = 497


class ImageSet(NamedTuple):
    """Images (n, height, width) and their labels (n,), for training and for testing."""

    x_train: NDArray[Any]
    y_train: NDArray[np.int64]
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]


def load_mnist(dtype: str = "float32") -> ImageSet:
    """MNIST: 60,000 + 10,000 handwritten digits of 28 × 28 pixels.

    Read from the IDX files in $PRIVACYFUNNEL_DATA/mnist (their usual names, gzipped or not) if there is such
    a folder, and from OpenML with scikit-learn (which keeps a copy) otherwise.

    Parameters
    ----------
    dtype : "float32" or "uint8"
        Pixels in [0, 1], or as they are stored, 0 … 255.

    Raises
    ------
    DataFileError
        If a file of the folder is missing or damaged, or there is no folder and OpenML cannot be reached.
    """
    return _load("load_mnist", "mnist", 554, dtype)


def load_fashion_mnist(dtype: str = "float32") -> ImageSet:
    """Fashion-MNIST: 60,000 + 10,000 pieces of clothing of 28 × 28 pixels, from the folder fashion-mnist.

    Otherwise as `load_mnist`.
    """
    return _load("load_fashion_mnist", "fashion-mnist", 40996, dtype)


def load_digits(dtype: str = "float32") -> ImageSet:
    """1,300 + 497 handwritten digits of 8 × 8 pixels; they come with scikit-learn, so nothing is fetched.

    Parameters
    ----------
    dtype : "float32" or "uint8"
        Pixels in [0, 1], or as they are stored, 0 … 16.
    """
    _check_dtype("load_digits", dtype)
    from sklearn.datasets import load_digits as load

    bunch = load()
    images = bunch.images.astype(np.uint8)
    x = images if dtype == "uint8" else images.astype(np.float32) / np.float32(16)
    y = bunch.target.astype(np.int64)
    return ImageSet(x[:-_N_DIGITS_TEST], y[:-_N_DIGITS_TEST], x[-_N_DIGITS_TEST:], y[-_N_DIGITS_TEST:])


def _load(caller: str, name: str, data_id: int, dtype: str) -> ImageSet:
    _check_dtype(caller, dtype)
    root = os.environ.get(DATA_FOLDER_VARIABLE)
    folder = Path(root) / name if root else None
    if folder is not None and folder.is_dir():
        parts = [*_pair(folder, "train"), *_pair(folder, "t10k")]
    else:
        parts = _from_openml(caller, name, data_id)
    if dtype == "float32":
        parts[0], parts[2] = (x.astype(np.float32) / np.float32(255) for x in (parts[0], parts[2]))
    return ImageSet(*parts)


def _pair(folder: Path, part: str) -> list[NDArray[Any]]:
    """Images and labels of one part, checked against each other."""
    image_path = _find(folder, f"{part}-images-idx3-ubyte")
    label_path = _find(folder, f"{part}-labels-idx1-ubyte")
    images, labels = read_idx(image_path), read_idx(label_path)
    for path, array, ndim in ((image_path, images, 3), (label_path, labels, 1)):
        if array.ndim != ndim or array.dtype != np.uint8:
            raise DataFileError(
                f"{path}: expected bytes in {ndim} dimensions; the file holds {array.dtype} in {array.ndim}. "
                "Replace it with the original."
            )
    if len(images) != len(labels):
        raise DataFileError(
            f"{image_path} holds {len(images)} images and {label_path.name} {len(labels)} labels; "
            "fetch both again."
        )
    return [images, labels.astype(np.int64)]


def _find(folder: Path, name: str) -> Path:
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    raise DataFileError(
        f"{folder / name}.gz is missing; put it there, or rename the folder to fetch the set from OpenML."
    )


def _from_openml(caller: str, name: str, data_id: int) -> list[NDArray[Any]]:
    # The parser without pandas takes minutes and gigabytes on images; it is the last resort.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    bunch = fetched(caller, "images", f"{name}/train-images-idx3-ubyte.gz and the rest", data_id, parser)
    x = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 28, 28)
    y = np.asarray(bunch.target).astype(np.int64)
    return [x[:_N_TRAIN], y[:_N_TRAIN], x[_N_TRAIN:], y[_N_TRAIN:]]


def _check_dtype(caller: str, dtype: str) -> None:
    if dtype not in ("float32", "uint8"):
        raise InvalidInputError(f"{caller}: dtype must be 'float32' or 'uint8'; it is {dtype!r}.")
