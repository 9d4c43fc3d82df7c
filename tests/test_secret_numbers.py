"""Numbers that a secret decides: the same for whoever has it, as random as the system's for all others."""

import hashlib
from fractions import Fraction

import numpy as np
from scipy.stats import kstest

from privacyfunnel.arrays import SecretNumbers, random_order, uniform

SECRET = bytes(range(32))


def slow(number: int, call: int, n: int) -> list[float]:
    """SHAKE-256(secret ‖ number ‖ call), eight bytes a number, of which the top 53 bits count."""
    head = SECRET + number.to_bytes(8, "big") + call.to_bytes(8, "big")
    data = hashlib.shake_256(head).digest(8 * n)
    words = [int.from_bytes(data[8 * i : 8 * i + 8], "big") >> 11 for i in range(n)]
    return [float(Fraction(word, 2**53)) for word in words]


def test_numbers_are_those_of_the_hash():
    numbers = SecretNumbers(SECRET, 7)
    assert uniform(5, numbers).tolist() == slow(7, 0, 5)
    assert uniform(3, numbers).tolist() == slow(7, 1, 3)
    assert SecretNumbers(SECRET, 8).random(5).tolist() == slow(8, 0, 5)
    assert repr(numbers) == "SecretNumbers()"


def test_numbers_are_uniform():
    drawn = np.concatenate([SecretNumbers(SECRET, number).random(20_000) for number in range(5)])
    assert kstest(drawn, "uniform").pvalue > 1e-6
    assert len(set(drawn.tolist())) == drawn.size
    assert sorted(random_order(1000, None)) == list(range(1000))
