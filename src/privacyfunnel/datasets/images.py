"""Loaders of image sets: MNIST and Fashion-MNIST from IDX files or OpenML, and scikit-learn's digits."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError, InvalidInputError, MissingDependencyError
from .tables import DATA_FOLDER_VARIABLE

# The third byte of an IDX file; numbers are big-endian.
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
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


def read_idx(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of an IDX file, gzipped or not.

    Raises
    ------
    DataFileError
        If it cannot be read, is no IDX file, or is shorter or longer than its header says.
    """
    path = Path(path)
    try:
        with path.open("rb") as raw:
            zipped = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            magic = stream.read(4)
            if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _IDX_TYPES or magic[3] == 0:
                raise DataFileError(
                    f"{path}: this is no IDX file (it begins with {magic.hex(' ') or 'nothing'}); "
                    "replace it with the original."
                )
            kind = np.dtype(_IDX_TYPES[magic[2]])
            header = stream.read(4 * magic[3])
            if len(header) < 4 * magic[3]:
                raise DataFileError(f"{path}: the file is cut off inside its header; fetch it again.")
            shape = struct.unpack(f">{magic[3]}I", header)
            size = math.prod(shape) * kind.itemsize
            # In pieces: a damaged header must not reserve memory that the file does not fill.
            pieces, left = [], size + 1
            while left > 0 and (piece := stream.read(min(left, 1 << 24))):
                pieces.append(piece)
                left -= len(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(f"{path}: the file is cut off or damaged ({error}); fetch it again.") from None
    except DataFileError:
        raise
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read ({error.strerror or error}).") from None
    data = b"".join(pieces)
    if len(data) != size:
        found = f"only {len(data)}" if len(data) < size else "more"
        raise DataFileError(
            f"{path}: the header promises {' × '.join(map(str, shape))} values, {size} bytes, and there are "
            f"{found}; fetch the file again."
        )
    values = np.frombuffer(data, dtype=kind).astype(kind.newbyteorder("="), copy=True)
    try:
        return values.reshape(shape)
    except ValueError:
        raise DataFileError(
            f"{path}: the header promises {len(shape)} dimensions, more than an array can have; fetch the "
            "file again."
        ) from None


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
    image_path, label_path = (
        _find(folder, f"{part}-images-idx3-ubyte"),
        _find(folder, f"{part}-labels-idx1-ubyte"),
    )
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
    remedy = (
        f"set {DATA_FOLDER_VARIABLE} to a folder that holds {name}/train-images-idx3-ubyte.gz and the rest"
    )
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise MissingDependencyError(
            f"{caller}: fetching from OpenML needs scikit-learn: pip install scikit-learn, or {remedy}."
        ) from error
    # The parser without pandas takes minutes and gigabytes on images; it is the last resort.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        bunch = fetch_openml(data_id=data_id, as_frame=False, parser=parser)
    except (OSError, ValueError) as error:
        raise DataFileError(
            f"{caller}: cannot fetch the images from OpenML ({error}); try again when online, or {remedy}."
        ) from error
    x = np.asarray(bunch.data).astype(np.uint8).reshape(-1, 28, 28)
    y = np.asarray(bunch.target).astype(np.int64)
    return [x[:_N_TRAIN], y[:_N_TRAIN], x[_N_TRAIN:], y[_N_TRAIN:]]


def _check_dtype(caller: str, dtype: str) -> None:
    if dtype not in ("float32", "uint8"):
        raise InvalidInputError(f"{caller}: dtype must be 'float32' or 'uint8'; it is {dtype!r}.")
