"""The types of arrays, random numbers and random order."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InvalidInputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]


def from_tensor(values: Any) -> Any:
    """A tensor as an array, everything else as it is. NumPy has no bfloat16."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    return (values.float() if "bfloat16" in str(values.dtype) else values).numpy()


class SecretNumbers:
    """Random numbers that a secret decides: whoever has it draws the same ones, nobody else can tell them
    from the operating system's (SHAKE-256 of the secret, a number and a counter).

    For work that may be done again elsewhere, such as a partition of a cluster whose worker was lost: drawn
    anew, what was released before and after would tell more than once.
    """

    def __init__(self, secret: bytes, number: int) -> None:
        self._head = secret + number.to_bytes(8, "big")
        self._count = 0

    def random(self, n: int) -> FloatArray:
        """The next n numbers, multiples of 2⁻⁵³ in [0, 1)."""
        data = hashlib.shake_256(self._head + self._count.to_bytes(8, "big")).digest(8 * n)
        self._count += 1
        bits = np.frombuffer(data, dtype=">u8").astype(np.uint64) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53

    def __repr__(self) -> str:
        return "SecretNumbers()"


def uniform(n: int, rng: int | np.random.Generator | SecretNumbers | None) -> FloatArray:
    """n independent numbers, uniform on the multiples of 2⁻⁵³ in [0, 1).

    For None each number comes from the operating system's own bits. A generator seeded from them would
    not do: its state can be reconstructed from enough released symbols, and with it the random
    numbers behind all the others, which undoes the privacy of every row. int and Generator are for results
    that have to be reproduced.
    """
    if rng is None:
        bits = np.frombuffer(os.urandom(8 * n), dtype=np.uint64) >> np.uint64(11)
        return bits.astype(np.float64) * 2.0**-53
    if isinstance(rng, (np.random.Generator, SecretNumbers)):
        return rng.random(n)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng)).random(n)
    raise InvalidInputError(
        f"rng must be None, a whole number ≥ 0 or a numpy Generator; it is {rng!r}.", names=("rng",)
    )


def one_generator(rng: int | np.random.Generator | None) -> np.random.Generator | None:
    """What several draws can go on from: a whole number would begin the same numbers again for each."""
    if isinstance(rng, (int, np.integer)):
        uniform(0, rng)  # refuses what is no seed
        return np.random.default_rng(int(rng))
    return rng


def random_order(n: int, rng: int | np.random.Generator | None) -> IntArray:
    """The numbers 0 … n−1 in random order; for None from the operating system's own bits.

    These are sorted on 64 random bits each. Two of n are equal, and keep their order, with a probability
    below n²/2⁶⁵.
    """
    if rng is None:
        return np.argsort(np.frombuffer(os.urandom(8 * n), dtype=np.uint64), kind="stable")
    return np.argsort(uniform(n, rng), kind="stable")
