"""IDX files, as those of MNIST: arrays, and images with the labels that lie beside them."""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataFileError

# The third byte of an IDX file; numbers are big-endian.
_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IN_FOLDER = "train-images-idx3-ubyte"


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


def images_path(path: str) -> Path:
    """The file of the images: in a folder the one for training."""
    if not os.path.isdir(path):
        return Path(path)
    for name in (_IN_FOLDER, f"{_IN_FOLDER}.gz"):
        if os.path.exists(os.path.join(path, name)):
            return Path(path, name)
    raise DataFileError(
        f"{path}: there is no {_IN_FOLDER} (or .gz) in this folder; name the file with the images."
    )


def labels_path(images: Path) -> Path | None:
    """The file of the labels beside that of the images, if there is one."""
    labels = images.with_name(images.name.replace("images", "labels").replace("idx3", "idx1"))
    names = [labels, labels.with_name(labels.name.removesuffix(".gz")), labels.with_name(f"{labels.name}.gz")]
    return next((name for name in names if name != images and name.exists()), None)
