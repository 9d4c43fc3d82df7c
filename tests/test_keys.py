"""Keys are their owner's alone, and draw the same symbol for the same person, here and in any engine."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

import privacyfunnel as pf
from privacyfunnel.errors import DataFileError, InvalidInputError
from privacyfunnel.keys import keyed_uniform, new_key, read_key

KEY = bytes(range(32))
ROWS = [[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]
# Of the ids "1" and "anna" with the key above and a fingerprint of zeros, and of the mechanism below.
VECTORS = [0.2582371369634132, 0.6727026387719414]
FINGERPRINT = "e4ffab4a9430cde2b6ef03e3e0ed7b247a250e89d2bf1ae72f1d941ccec1b311"


def mechanism(**more: object) -> pf.TableMechanism:
    return pf.TableMechanism(ROWS, x_labels=["a", "b"], x_names=["letter"], **more)  # type: ignore[arg-type]


def twin(text: str, key: bytes, fingerprint: str) -> float:
    """The published formula, with Python's own HMAC and exact division."""
    digest = hmac.new(key, (fingerprint + text).encode(), hashlib.sha256).digest()
    return (int.from_bytes(digest, "big") >> (256 - 53)) / 2**53


def test_numbers_are_those_of_the_formula() -> None:
    ids = ["", "7", "süd 西", "x" * 500, 7, -3, 10**30, date(2020, 2, 29), UUID(int=5), np.int32(9)]
    found = keyed_uniform(ids, KEY, "ab" * 32)
    assert found.tolist() == [twin(str(one), KEY, "ab" * 32) for one in ids]
    assert found[1] == found[4]
    assert ((found >= 0) & (found < 1)).all()


def test_vectors() -> None:
    """What other programs must compute; these numbers never change."""
    assert keyed_uniform(["1", "anna"], KEY, "00" * 32).tolist() == VECTORS
    assert mechanism().fingerprint == FINGERPRINT


def test_a_person_gets_the_same_symbol_in_every_kind_of_release() -> None:
    letters, ids = ["a", "b"] * 50, [f"p{i}" for i in range(100)]
    one = mechanism()
    drawn = one.release(letters, key=KEY, id=ids)
    assert drawn == one.release(letters, key=KEY, id=np.array(ids))
    assert one.release(np.array(letters), key=KEY, id=ids).tolist() == drawn
    assert [one.release(x, key=KEY, id=person) for x, person in zip(letters, ids, strict=True)] == drawn
    order = np.random.default_rng(0).permutation(100)
    again = one.release([letters[i] for i in order], key=KEY, id=[ids[i] for i in order])
    assert [drawn[i] for i in order] == again
    assert drawn != one.release(letters, key=bytes(32), id=ids)
    assert drawn != one.relabel({0: "other"}).release(letters, key=KEY, id=ids)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"letter": letters, "person": ids})
    released = one.release_frame(frame, key=KEY, id="person", keep="person", shuffle=True)
    assert dict(zip(released["person"], released["z"], strict=True)) == dict(zip(ids, drawn, strict=True))
    assert list(one.release_frame(frame, key=KEY, id="person").columns) == ["z"]
    assert one.release(frame["letter"], key=KEY, id=frame["person"]).tolist() == drawn
    ids_left = [person for person, x in zip(ids, letters, strict=True) if x == "a"]
    smaller = pf.TableMechanism(ROWS[:1], x_labels=["a"], x_names=["letter"])
    left = smaller.release_frame(frame, key=KEY, id="person", unknown="drop")
    assert left["z"].tolist() == smaller.release(["a"] * 50, key=KEY, id=ids_left)


def test_symbols_have_their_probabilities() -> None:
    from scipy.stats import chisquare

    drawn = mechanism().release(["a"] * 40_000, key=KEY, id=list(range(40_000)))
    assert chisquare(np.bincount(drawn), np.array(ROWS[0]) * 40_000).pvalue > 1e-3
    assert set(mechanism().release(["b"] * 2_000, key=KEY, id=list(range(2_000)))) == {1, 2}


def test_letters_as_texts_have_the_same_fingerprint() -> None:
    of_numbers = pf.TableMechanism(ROWS, x_labels=[1, None], x_names=["n"])
    of_texts = pf.TableMechanism(ROWS, x_labels=["1", None], x_names=["n"])
    assert of_numbers.fingerprint == of_texts.fingerprint
    others = [
        pf.TableMechanism(ROWS, x_labels=["1", "None"], x_names=["n"]),
        pf.TableMechanism(ROWS, x_labels=["1", None], x_names=["m"]),
        pf.TableMechanism([[0.5, 0.25, 0.25], [0.5, 0.0, 0.5]], x_labels=["1", None], x_names=["n"]),
        pf.TableMechanism([*ROWS, [1, 0, 0]], x_labels=["1", None, "2"], x_names=["n"]),
    ]
    assert len({of_texts.fingerprint, *(one.fingerprint for one in others)}) == 5


def test_a_saved_mechanism_draws_the_same(tmp_path: Path) -> None:
    mechanism().save(tmp_path / "m.json")
    assert pf.load(tmp_path / "m.json").fingerprint == mechanism().fingerprint


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (None, "no id"),
        (float("nan"), "no id"),
        (1.5, "type float"),
        (2.0, "type float"),
        (True, "type bool"),
        (b"a", "type bytes"),
        (Decimal(1), "type Decimal"),
        (datetime(2020, 1, 1), "type datetime"),
        ("\ud800", "type str"),
        ((1, 2), "type tuple"),
    ],
)
def test_what_reads_differently_elsewhere_is_no_id(value: object, what: str) -> None:
    with pytest.raises(InvalidInputError, match=f"record 2 has .*{what}"):
        keyed_uniform(["a", value], KEY, "00" * 32)


def test_key_and_ids_go_together() -> None:
    one = mechanism()
    with pytest.raises(InvalidInputError, match="go together"):
        one.release(["a"], key=KEY)
    with pytest.raises(InvalidInputError, match="go together"):
        one.release(["a"], id=["p"])
    with pytest.raises(InvalidInputError, match="leave rng out"):
        one.release(["a"], 0, key=KEY, id=["p"])
    with pytest.raises(InvalidInputError, match="an id for each of the 2 letters; there are 1"):
        one.release(["a", "b"], key=KEY, id=["p"])
    with pytest.raises(InvalidInputError, match="must be 32 bytes") as caught:
        one.release(["a"], key=b"secret", id=["p"])
    assert "secret" not in str(caught.value)


def test_a_column_that_people_share_is_no_id() -> None:
    """Drawn by the public column, a release is a function of it and tells more than was computed."""
    import polars as pl

    one = mechanism(private_names=["sex"])
    frame = pl.DataFrame({"letter": ["a", "b"], "sex": ["m", "f"], "person": [1, 2]})
    assert one.release_frame(frame, key=KEY, id="person").height == 2
    for name in ("letter", "sex"):
        with pytest.raises(InvalidInputError, match="would be drawn alike; name a column that tells"):
            one.release_frame(frame, key=KEY, id=name)
        with pytest.raises(InvalidInputError, match="would be drawn alike"):
            one.to_sql("people", dialect="duckdb", id=name)


def test_a_key_is_made_once_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "owner.key"
    key = new_key(path)
    assert read_key(path) == key
    with pytest.raises(DataFileError, match="never replaced"):
        new_key(path)
    assert read_key(path) == key
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(DataFileError, match="pfunnel key new"):
        read_key(tmp_path / "none.key")


def test_nothing_saved_has_the_key(tmp_path: Path) -> None:
    one = mechanism()
    one.release(["a"], key=KEY, id=["p"])
    one.save(tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text(encoding="utf-8")
    assert KEY.hex() not in text
    assert json.loads(text)["version"] == 2


def test_points_of_time_are_no_whole_numbers() -> None:
    """NumPy has nanoseconds as whole numbers: a date would draw other numbers here than elsewhere."""
    mechanism = pf.TableMechanism([[0.5, 0.5]], x_labels=["a"])
    days = np.array(["2020-02-29", "2021-01-01"], dtype="datetime64[D]")
    same = mechanism.release(["a", "a"], key=KEY, id=["2020-02-29", "2021-01-01"])
    assert list(mechanism.release(["a", "a"], key=KEY, id=days)) == list(same)
    for ids in (days.astype("datetime64[ns]"), list(days.astype("datetime64[ns]")), days - days[0]):
        with pytest.raises(InvalidInputError, match="record 1 has an id of type"):
            mechanism.release(["a", "a"], key=KEY, id=ids)
