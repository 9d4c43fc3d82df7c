"""Values in messages: as Python writes them, and never longer than a line or two."""

from __future__ import annotations

import pytest

import privacyfunnel as pf
from privacyfunnel.errors import InvalidInputError, shortened


@pytest.mark.parametrize("value", ["Bonn", "it's", 7, 2.5, None, ("a", 1), ["a"], {"a": 1}, b"x", -0.0])
def test_a_short_value_is_as_python_writes_it(value: object) -> None:
    assert shortened(value) == repr(value)


def test_a_long_value_is_not() -> None:
    texts = ["x" * 10_000, b"x" * 10_000, ("y" * 10_000, "z" * 10_000)]
    for value in (*texts, list(range(10_000)), 10**4000, 10**5000):
        assert len(shortened(value)) < 200


def test_messages_of_the_library() -> None:
    mechanism = pf.TableMechanism([[1.0], [1.0]], x_labels=["a" * 10_000, "b"], x_names=["c" * 10_000])
    with pytest.raises(InvalidInputError, match="is not one of the 2 letters") as unknown:
        mechanism.release(["d" * 10_000])
    with pytest.raises(InvalidInputError, match="must be distinct") as twice:
        pf.Joint([[0.5], [0.5]], x_labels=["a" * 10_000] * 2)
    for error in (unknown, twice):
        assert len(str(error.value)) < 500
