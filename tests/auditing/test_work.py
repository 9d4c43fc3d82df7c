"""Pieces of work on several cores."""

import warnings

import numpy as np
import pytest

from privacyfunnel.auditing.attacks import Piece, run_pieces

NOTHING = np.zeros(300_000)  # large enough for other processes


def total_and(table, number):
    return float(table.sum()) + number


def test_a_replaced_worker_is_no_error(monkeypatch):
    """joblib warns of it in a thread of its own, which an error would end: the results would never come."""
    import joblib

    class Warned(joblib.Parallel):
        def __call__(self, calls):
            for outcome in super().__call__(calls):
                warnings.warn("A worker stopped while some jobs were given to the executor.", stacklevel=1)
                yield outcome

    monkeypatch.setattr(joblib, "Parallel", Warned)
    pieces = [Piece(k, total_and, (NOTHING, k), float(k)) for k in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_pieces(pieces, 2, lambda *_: None) == {k: float(k) for k in range(4)}
        with pytest.raises(UserWarning):
            warnings.warn("A worker stopped while some jobs were given to the executor.", stacklevel=1)
