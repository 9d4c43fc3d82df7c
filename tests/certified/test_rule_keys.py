"""A rule with a key draws one row for each person: here, batch by batch, from a file, and again tomorrow."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.cluster import KMeans

import privacyfunnel as pf
from privacyfunnel.certified import CertifiedFunnel, CertifiedRule
from privacyfunnel.errors import InvalidInputError
from privacyfunnel.keys import PersonNumbers

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def people() -> pa.Table:
    rng = np.random.default_rng(0)
    n = 1_500
    sex = rng.integers(0, 2, n)
    return pa.table(
        {
            "person": np.arange(n),
            "sex": np.array(["f", "m"])[sex],
            "hours": np.rint(40 + 5 * sex + 8 * rng.normal(size=n)).astype(int),
            "job": np.array(["a", "b", "c"])[(sex + rng.integers(0, 2, n)) % 3],
        }
    )


@pytest.fixture(scope="module")
def funnel(people: pa.Table) -> CertifiedFunnel:
    made = CertifiedFunnel(0.3, n_cells=6, random_state=0)
    return made.fit(people.drop_columns(["person"]), private="sex")


@pytest.fixture(scope="module")
def rule(funnel: CertifiedFunnel) -> CertifiedRule:
    found: CertifiedRule = funnel.rule_
    return found


def test_numbers_are_those_of_the_formula() -> None:
    drawn = PersonNumbers(["7", "anna"], KEY, "ab" * 32, 3)
    found = np.array([drawn.random(2) for _ in range(3)])
    for person, column in zip(("7", "anna"), found.T, strict=True):
        seed = hmac.new(KEY, ("ab" * 32 + person).encode(), hashlib.sha256).digest()
        stream = hashlib.shake_256(seed).digest(24)
        twin = [(int.from_bytes(stream[8 * i : 8 * i + 8], "big") >> 11) / 2**53 for i in range(3)]
        assert column.tolist() == twin
    assert "drawn" not in repr(drawn)


def test_a_person_gets_the_same_row_however_it_is_released(
    people: pa.Table, rule: CertifiedRule, tmp_path: Path
) -> None:
    drawn = rule.release(people, key=KEY, id="person", keep="person")
    order = np.random.default_rng(1).permutation(len(people))
    assert rule.release(people.take(order), key=KEY, id="person", keep="person").equals(drawn.take(order))
    assert rule.release(people.slice(700, 5), key=KEY, id="person", keep="person").equals(drawn.slice(700, 5))
    assert rule.release(people, key=KEY, id=people["person"]).equals(drawn.drop_columns(["person"]))
    pq.write_table(people, tmp_path / "people.parquet")
    how = {"key": KEY, "id": "person", "keep": "person"}
    rule.release_stream(tmp_path / "people.parquet", tmp_path / "out.parquet", **how, shuffle=True)
    written = pq.read_table(tmp_path / "out.parquet")
    assert not written.equals(drawn)
    assert written.sort_by("person").equals(drawn)
    assert not rule.release(people, key=bytes(32), id="person", keep="person").equals(drawn)
    assert not rule.release(people, keep="person").equals(drawn)


def test_a_rule_that_was_saved_draws_the_same(
    people: pa.Table, funnel: CertifiedFunnel, rule: CertifiedRule, tmp_path: Path
) -> None:
    funnel.save(tmp_path / "rule", part="release")
    again = pf.load(tmp_path / "rule")
    assert again.fingerprint == rule.fingerprint
    first = rule.release(people, key=KEY, id="person")
    assert again.release(people, key=KEY, id="person").equals(first)
    assert KEY.hex() not in (tmp_path / "rule" / "rule.json").read_text()
    other = CertifiedFunnel(0.2, n_cells=6, random_state=0).fit(
        people.drop_columns(["person"]), private="sex"
    )
    assert other.rule_.fingerprint != rule.fingerprint


def test_rows_have_their_distribution(people: pa.Table, rule: CertifiedRule) -> None:
    from scipy.stats import chisquare, kstest

    n = 20_000
    same = people.take(np.zeros(n, dtype=int))
    ids = np.arange(n)
    symbols = rule.release(same, key=KEY, id=ids, records="symbol")["z"].to_numpy()
    p_z = rule.mechanism.p_z_given_x[rule.cells_of(people.slice(0, 1))[0]]
    used = p_z > 0
    assert set(symbols) <= set(np.flatnonzero(used))
    assert chisquare(np.bincount(symbols, minlength=len(p_z))[used], p_z[used] * n).pvalue > 1e-3
    rows = rule.release(same, key=KEY, id=ids)
    assert rule.tables is not None
    anew = rule.tables.draw(symbols, 0)  # the same symbols, other numbers
    assert kstest(rows["hours"].to_numpy(), anew["hours"].to_numpy()).pvalue > 1e-3
    # Neither number nor column follows from another one of the same person.
    numbers = PersonNumbers(ids.tolist(), KEY, rule.fingerprint, 5)
    table = np.corrcoef([numbers.random(n) for _ in range(5)])
    assert np.abs(table - np.eye(5)).max() < 5 / np.sqrt(n)


def test_arrays_have_ids_beside_them() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 3)) + y[:, None]
    rule = CertifiedFunnel(0.3, n_cells=6, random_state=0).fit(X, y).rule_
    ids = [f"p{i}" for i in range(900)]
    first = rule.release(X, key=KEY, id=ids)
    assert np.array_equal(first, rule.release(X, key=KEY, id=ids))
    assert np.array_equal(first[:7], rule.release(X[:7], key=KEY, id=ids[:7]))
    other = CertifiedFunnel(0.3, cells=KMeans(6, n_init=1, random_state=0), random_state=0).fit(X, y).rule_
    assert len(other.release(X)) == 900
    with pytest.raises(InvalidInputError, match="a rule that can be saved"):
        other.release(X, key=KEY, id=ids)


def test_what_does_not_go_together(people: pa.Table, rule: CertifiedRule) -> None:
    with pytest.raises(InvalidInputError, match="go together"):
        rule.release(people, key=KEY)
    with pytest.raises(InvalidInputError, match="go together"):
        rule.release(people, id="person")
    with pytest.raises(InvalidInputError, match="leave rng out"):
        rule.release(people, key=KEY, id="person", rng=0)
    with pytest.raises(InvalidInputError, match="release: id"):
        rule.release(people, key=KEY, id="nobody")
    with pytest.raises(InvalidInputError, match="must be 32 bytes"):
        rule.release(people, key=b"short", id="person")
    with pytest.raises(InvalidInputError, match="people who share a value of it would be"):
        rule.release(people, key=KEY, id="sex")
    with pytest.raises(InvalidInputError, match="people who share a value of it would be"):
        rule.release_stream(people.to_reader(), key=KEY, id="sex")
    gone = people.set_column(0, "person", pa.array([None, *range(1, len(people))]))
    with pytest.raises(InvalidInputError, match="record 1 has no id"):
        rule.release(gone, key=KEY, id="person")
