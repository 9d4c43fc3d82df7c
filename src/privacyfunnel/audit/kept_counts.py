"""What columns that are handed out beside Z tell: records counted by letter, kept value and private class."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidInputError
from ..information import mutual_information
from ..joint import Joint
from ..mechanism import TableMechanism

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: The most entries of the table of kept value, symbol and class: 400 MB.
MOST_ENTRIES = 50_000_000
#: A value that fewer records share tells about them more than counts can measure.
FEWEST = 10
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Cells:
    """Records by letter of X and value of the kept columns.

    Attributes
    ----------
    letters, kept : (m,) int arrays
        The letter and the number of the kept value of each cell.
    counts : (m, n_classes) array
        Records of each private class.
    n_kept : int
    """

    letters: IntArray
    kept: IntArray
    counts: FloatArray
    n_kept: int

    @classmethod
    def of_records(cls, letters: IntArray, kept: IntArray, y: IntArray, n_classes: int) -> Cells:
        """The cells of records given by their numbers."""
        n_kept, n_letters = int(kept.max()) + 1, int(letters.max()) + 1
        keys, cell = np.unique(kept * n_letters + letters, return_inverse=True)
        counts = np.zeros((len(keys), n_classes))
        np.add.at(counts, (cell, y), 1)
        return cls(keys % n_letters, keys // n_letters, counts, n_kept)

    def released(self, table: FloatArray) -> FloatArray:
        """Expected records by kept value, symbol and class, (n_kept, n_z, n_classes), for a table P(z|x).

        With the square of the table the same sum is what the bias of the bits needs.
        """
        shape = self.n_kept, table.shape[1], self.counts.shape[1]
        if math.prod(shape) > MOST_ENTRIES:
            raise InvalidInputError(
                f"{self.n_kept:,} values of the kept columns with {table.shape[1]:,} symbols are too many to "
                "measure together; keep fewer columns, or group their values."
            )
        result = np.zeros(shape)
        step = max(1, _BLOCK // (shape[1] * shape[2]))
        for start in range(0, len(self.kept), step):
            part = slice(start, start + step)
            weights = table[self.letters[part]][:, :, None] * self.counts[part][:, None, :]
            np.add.at(result, self.kept[part], weights)
        return result


def nothing_released(n_letters: int) -> FloatArray:
    """The table of a Z that is constant, for what the kept columns tell alone."""
    return np.ones((n_letters, 1))


def guess_share(released: FloatArray) -> float:
    """How often the likeliest class of each kept value and symbol is right, on these very records."""
    return float(released.max(axis=2).sum() / released.sum())


def bits(released: FloatArray) -> float:
    """I(Z, K; Y) of these very records."""
    return mutual_information(released.reshape(-1, released.shape[2]) / released.sum())


def corrected_bits(cells: Cells, table: FloatArray) -> float:
    """The same, without the first-order bias of measuring on a sample; it can be negative.

    `resampling.leakage_bias` for the mechanism that takes (x, k) to (z, k).
    """
    released, squares = cells.released(table), cells.released(table**2)
    n = float(released.sum())
    seen = released > 0
    by_symbol, squares_by_symbol = released.sum(axis=2), squares.sum(axis=2)
    used = by_symbol > 0
    n_classes = int((released.sum(axis=(0, 1)) > 0).sum())
    terms = float((squares[seen] / released[seen]).sum())
    terms -= float((squares_by_symbol[used] / by_symbol[used]).sum())
    return bits(released) - (terms - n_classes + 1) / (2 * n * math.log(2))


@dataclass(frozen=True)
class KeptMeasure:
    """What kept columns tell about the private attribute, exact on the records that were counted.

    Attributes
    ----------
    columns : names
    guess, guess_with_z : float
        How often the best guess is right from the columns alone, and together with Z.
    leakage, leakage_with_z : float
        I(K;Y) and I(Z,K;Y) in bits.
    rare_share : float
        Share of the records whose kept value fewer than ten records have.
    """

    columns: tuple[str, ...]
    guess: float
    guess_with_z: float
    leakage: float
    leakage_with_z: float
    rare_share: float


def measure_kept(mechanism: TableMechanism, joint: Joint, columns: tuple[str, ...]) -> KeptMeasure:
    """What columns tell beside Z, on the joint whose letters are those of the mechanism and then theirs."""
    n_public = len(mechanism.x_names)
    letters: list[tuple[object, ...]] = list(joint.x_labels)  # type: ignore[arg-type]
    row_of = {
        label if isinstance(label, tuple) else (label,): i for i, label in enumerate(mechanism.x_labels)
    }
    number_of: dict[tuple[object, ...], int] = {}
    kept = [number_of.setdefault(letter[n_public:], len(number_of)) for letter in letters]
    cells = Cells(
        np.array([row_of[letter[:n_public]] for letter in letters], dtype=np.intp),
        np.array(kept, dtype=np.intp),
        joint.p_xy * (joint.n_samples or 1),
        len(number_of),
    )
    alone = cells.released(nothing_released(mechanism.n_x))
    together = cells.released(mechanism.p_z_given_x)
    sizes = alone.sum(axis=(1, 2))
    return KeptMeasure(
        columns,
        guess_share(alone),
        guess_share(together),
        bits(alone),
        bits(together),
        float(sizes[np.rint(sizes) < FEWEST].sum() / sizes.sum()),
    )
